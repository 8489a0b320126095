package types

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
)

// parseJSON checks a json literal and returns it as it is, or for jsonb in
// PostgreSQL's one form: keys by length and then bytes, the last of equal keys,
// numbers as numeric prints them, ", " and ": " between. Equal jsonb values thus have equal texts,
// but for numbers that differ in trailing zeros only.
func parseJSON(s string, canonical bool) (string, error) {
	if !json.Valid([]byte(s)) {
		return "", errSyntaxJSON()
	}
	if !canonical {
		return s, nil
	}
	p := jsonReader{s: s}
	out, err := p.value(nil)
	return string(out), err
}

// A jsonReader rewrites valid JSON.
type jsonReader struct {
	s string
	i int
}

func (p *jsonReader) skip() {
	for p.i < len(p.s) && isSpace(p.s[p.i]) {
		p.i++
	}
}

func (p *jsonReader) value(dst []byte) ([]byte, error) {
	p.skip()
	switch c := p.s[p.i]; c {
	case '{':
		return p.object(dst)
	case '[':
		dst = append(dst, '[')
		first := true
		err := p.items(func() (_ bool, err error) {
			if !first {
				dst = append(dst, ", "...)
			}
			first = false
			dst, err = p.value(dst)
			return true, err
		})
		if err != nil {
			return nil, err
		}
		return append(dst, ']'), nil
	case '"':
		text, err := p.str()
		return AppendJSONString(dst, text), err
	case 't', 'f', 'n':
		n := 4
		if c == 'f' {
			n = 5
		}
		dst = append(dst, p.s[p.i:p.i+n]...)
		p.i += n
		return dst, nil
	}
	d, err := ParseDecimal(p.number())
	return d.AppendText(dst), err
}

// fields calls f with the key of each field of the object at hand, before the value,
// which f must pass over. It ends where f returns false or an error.
func (p *jsonReader) fields(f func(key string) (more bool, err error)) error {
	p.i++
	for {
		p.skip()
		switch p.s[p.i] {
		case '}':
			p.i++
			return nil
		case ',':
			p.i++
			p.skip()
		}
		key, err := p.str()
		if err != nil {
			return err
		}
		p.skip()
		p.i++ // the colon
		if more, err := f(key); !more || err != nil {
			return err
		}
	}
}

// items calls f before each item of the array at hand, as fields does.
func (p *jsonReader) items(f func() (more bool, err error)) error {
	p.i++
	for {
		p.skip()
		switch p.s[p.i] {
		case ']':
			p.i++
			return nil
		case ',':
			p.i++
		}
		if more, err := f(); !more || err != nil {
			return err
		}
	}
}

func (p *jsonReader) object(dst []byte) ([]byte, error) {
	type field struct {
		key   string
		value []byte
	}
	var fields []field
	err := p.fields(func(key string) (bool, error) {
		value, err := p.value(nil)
		fields = append(fields, field{key, value})
		return true, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(fields, func(a, b field) int { return compareKeys(a.key, b.key) })
	dst = append(dst, '{')
	first := true
	for i, f := range fields {
		if i+1 < len(fields) && fields[i+1].key == f.key {
			continue // the last one counts
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = append(AppendJSONString(dst, f.key), ": "...)
		dst = append(dst, f.value...)
	}
	return append(dst, '}'), nil
}

// str reads a string with its escapes resolved.
func (p *jsonReader) str() (string, error) {
	raw := p.skipString()
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	if err := checkEscapes(raw); err != nil {
		return "", err
	}
	var out string
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		return "", sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type json: %w", err)
	}
	return out, nil
}

// checkEscapes refuses what a text cannot hold: a zero byte, half a surrogate pair.
func checkEscapes(raw string) error {
	high := false // the escape before was the first half of a pair
	for i := 0; i < len(raw); i++ {
		var r uint64
		escape := raw[i] == '\\' && raw[i+1] == 'u'
		if escape {
			r, _ = strconv.ParseUint(raw[i+2:i+6], 16, 16)
		}
		low := r >= 0xdc00 && r < 0xe000
		switch {
		case high && !low:
			return errSyntaxJSON().WithDetail("Unicode low surrogate must follow a high surrogate.")
		case low && !high:
			return errSyntaxJSON().WithDetail("Unicode low surrogate must follow a high surrogate.")
		case escape && r == 0:
			return sqlerr.New("22P05", "unsupported Unicode escape sequence").WithDetail("\\u0000 cannot be converted to text.")
		}
		high = r >= 0xd800 && r < 0xdc00
		switch {
		case escape:
			i += 5
		case raw[i] == '\\':
			i++
		}
	}
	return nil
}

func errSyntaxJSON() *sqlerr.Error {
	return sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type json")
}

// AppendJSONString appends s in quotes, escaped as PostgreSQL does: only what must be.
func AppendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			dst = append(dst, s[i:i+n]...)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
