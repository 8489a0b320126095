package engine

import (
	"bytes"
	"strings"

	"streamdb/planner/bind"
	"streamdb/sql/sqlerr"
)

// A field is one value of a line.
type field struct {
	text []byte
	null bool
}

// A lineParser finds lines and takes them apart.
type lineParser interface {
	// next returns the length of the first line of b with its line end, 0 if it is not complete; last: no more bytes follow.
	next(b []byte, last bool) (int, error)
	// split appends the fields of a line (without its end) to dst.
	split(line []byte, dst []field) ([]field, error)
}

// textLines is COPY's text format.
type textLines struct{ st *bind.CopyStmt }

// next: a line end after a backslash is data.
func (p *textLines) next(b []byte, last bool) (int, error) {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			break
		}
		i += from
		n := 0
		for n < i && b[i-1-n] == '\\' {
			n++
		}
		if n%2 == 0 {
			return i + 1, nil
		}
		from = i + 1
	}
	if last {
		return len(b), nil
	}
	return 0, nil
}

func (p *textLines) split(line []byte, dst []field) ([]field, error) {
	null := p.st.Null
	for {
		i := 0
		escaped := false
		for i < len(line) && line[i] != p.st.Delimiter {
			if line[i] == '\\' {
				escaped = true
				i++
			}
			i++
		}
		i = min(i, len(line))
		f := field{text: line[:i]}
		switch {
		case string(f.text) == null:
			f.null = true
		case escaped:
			f.text = unescape(f.text)
		}
		dst = append(dst, f)
		if i >= len(line) {
			return dst, nil
		}
		line = line[i+1:]
	}
}

// unescape undoes the backslashes of the text format.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		switch c := b[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'v':
			out = append(out, '\v')
		case 'x':
			v, n := 0, 0
			for n < 2 && i+1 < len(b) && strings.IndexByte("0123456789abcdefABCDEF", b[i+1]) >= 0 {
				v = v*16 + hexVal(b[i+1])
				i, n = i+1, n+1
			}
			if n == 0 {
				out = append(out, 'x')
			} else {
				out = append(out, byte(v))
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := int(c - '0')
			for n := 1; n < 3 && i+1 < len(b) && b[i+1] >= '0' && b[i+1] <= '7'; n++ {
				i++
				v = v*8 + int(b[i]-'0')
			}
			out = append(out, byte(v))
		default:
			out = append(out, c)
		}
	}
	return out
}

func hexVal(c byte) int {
	switch {
	case c <= '9':
		return int(c - '0')
	case c <= 'F':
		return int(c-'A') + 10
	}
	return int(c-'a') + 10
}

// csvLines is COPY's CSV format. A quoted field may hold line ends.
type csvLines struct{ st *bind.CopyStmt }

func (p *csvLines) next(b []byte, last bool) (int, error) {
	quoted := false
	q, esc := p.st.Quote, p.st.Escape
	// Most lines have no quote at all.
	if i := bytes.IndexByte(b, '\n'); i >= 0 && bytes.IndexByte(b[:i], q) < 0 {
		return i + 1, nil
	}
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == esc && esc != q:
			i++
		case c == q:
			quoted = !quoted
		case c == '\n' && !quoted:
			return i + 1, nil
		}
	}
	if last {
		if quoted {
			return 0, sqlerr.New(sqlerr.BadCopy, "unterminated CSV quoted field")
		}
		return len(b), nil
	}
	return 0, nil
}

func (p *csvLines) split(line []byte, dst []field) ([]field, error) {
	q, esc, delim := p.st.Quote, p.st.Escape, p.st.Delimiter
	for {
		end := bytes.IndexByte(line, delim)
		if end < 0 {
			end = len(line)
		}
		var f field
		if bytes.IndexByte(line[:end], q) < 0 {
			f.text = line[:end]
			f.null = string(f.text) == p.st.Null
		} else {
			var err error
			if f.text, end, err = quotedField(line, q, esc, delim); err != nil {
				return nil, err
			}
		}
		dst = append(dst, f)
		if end >= len(line) {
			return dst, nil
		}
		line = line[end+1:]
	}
}

// quotedField reads a field that has quotes, up to its delimiter.
func quotedField(line []byte, q, esc, delim byte) (text []byte, end int, err error) {
	quoted := false
	i := 0
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted && c == esc && i+1 < len(line) && (line[i+1] == q || line[i+1] == esc):
			i++
			text = append(text, line[i])
		case c == q:
			quoted = !quoted
		case c == delim && !quoted:
			return text, i, nil
		default:
			text = append(text, c)
		}
	}
	if quoted {
		return nil, 0, sqlerr.New(sqlerr.BadCopy, "unterminated CSV quoted field")
	}
	return text, i, nil
}
