package types

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

func errArray(s, format string, args ...any) error {
	return sqlerr.New(sqlerr.InvalidText, "malformed array literal: \"%s\"", s).WithDetail(format, args...)
}

// parseArray reads PostgreSQL's {…}, also nested and with dimensions in front.
func parseArray(t Type, s string, st *Style) (Datum, error) {
	p := arrayParser{text: s, rest: strings.TrimLeft(s, " \t\n\r\v\f"), elem: *t.Elem, st: st}
	if p.elem.Mod == 0 {
		p.elem.Mod = t.Mod
	}
	var lowers, lengths []int
	for strings.HasPrefix(p.rest, "[") {
		end := strings.IndexByte(p.rest, ']')
		if end < 0 {
			return Datum{}, errArray(s, "Missing \"]\" after array dimensions.")
		}
		lo, hi, two := strings.Cut(p.rest[1:end], ":")
		lower, upper := 1, 0
		var err error
		if two {
			if lower, err = strconv.Atoi(strings.TrimSpace(lo)); err == nil {
				upper, err = strconv.Atoi(strings.TrimSpace(hi))
			}
		} else {
			upper, err = strconv.Atoi(strings.TrimSpace(lo))
		}
		if err != nil {
			return Datum{}, errArray(s, "\"[\" must introduce explicitly-specified array dimensions.")
		}
		if upper < lower {
			return Datum{}, sqlerr.New("2202E", "upper bound cannot be less than lower bound")
		}
		lowers, lengths = append(lowers, lower), append(lengths, upper-lower+1)
		p.rest = strings.TrimLeft(p.rest[end+1:], " \t\n\r\v\f")
	}
	if len(lowers) > 0 {
		if !strings.HasPrefix(p.rest, "=") {
			return Datum{}, errArray(s, "Missing \"=\" after array dimensions.")
		}
		p.rest = strings.TrimLeft(p.rest[1:], " \t\n\r\v\f")
	}
	if !strings.HasPrefix(p.rest, "{") {
		if len(lowers) > 0 {
			return Datum{}, errArray(s, "Array contents must start with \"{\".")
		}
		return Datum{}, errArray(s, "Array value must start with \"{\" or dimension information.")
	}
	list, err := p.list(0)
	if err != nil {
		return Datum{}, err
	}
	if strings.TrimLeft(p.rest, " \t\n\r\v\f") != "" {
		return Datum{}, errArray(s, "Junk after closing right brace.")
	}
	if len(lowers) > 0 && !list.setBounds(lowers, lengths) {
		return Datum{}, errArray(s, "Specified array dimensions do not match array contents.")
	}
	if len(list.Dims()) == 0 {
		list = &List{Elem: list.Elem, Lower: 1}
	}
	return NewList(list), nil
}

// setBounds sets the lower bound of every dimension; false where lengths are not those of l.
func (l *List) setBounds(lowers, lengths []int) bool {
	if len(l.Items) != lengths[0] {
		return false
	}
	l.Lower = lowers[0]
	for _, item := range l.Items {
		if (item.kind == KindList) != (len(lowers) > 1) {
			return false
		}
		if item.kind == KindList && !item.List().setBounds(lowers[1:], lengths[1:]) {
			return false
		}
	}
	return true
}

// Dims is the length of every dimension, outermost first; none for an empty array.
func (l *List) Dims() []int {
	var out []int
	for l != nil && len(l.Items) > 0 {
		out = append(out, len(l.Items))
		if l.Items[0].kind != KindList {
			return out
		}
		l = l.Items[0].List()
	}
	return nil
}

// An arrayParser reads nested braces from the left of rest.
type arrayParser struct {
	text, rest string
	elem       Type
	st         *Style
	depth      int // of the braces that hold elements, once known
}

const maxDims = 6

// list reads one pair of braces; rest starts at the opening one.
func (p *arrayParser) list(level int) (*List, error) {
	if level >= maxDims {
		return nil, sqlerr.New(sqlerr.ProgramLimit, "number of array dimensions (%d) exceeds the maximum allowed (%d)", level+1, maxDims)
	}
	out := &List{Elem: p.elem, Lower: 1}
	p.rest = p.rest[1:]
	for first := true; ; first = false {
		p.rest = strings.TrimLeft(p.rest, " \t\n\r\v\f")
		if p.rest == "" {
			return nil, errArray(p.text, "Unexpected end of input.")
		}
		if p.rest[0] == '}' && first && level == 0 {
			p.rest = p.rest[1:]
			return out, nil
		}
		var item Datum
		var err error
		switch p.rest[0] {
		case '{':
			if p.depth > 0 && p.depth <= level+1 {
				return nil, errArray(p.text, "Unexpected \"{\" character.")
			}
			sub, err := p.list(level + 1)
			if err != nil {
				return nil, err
			}
			if len(out.Items) > 0 && (out.Items[0].kind != KindList || !sameDims(out.Items[0].List(), sub)) {
				return nil, errArray(p.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			item = NewList(sub)
		case '}', ',':
			return nil, errArray(p.text, "Unexpected \"%c\" character.", p.rest[0])
		default:
			if p.depth == 0 {
				p.depth = level + 1
			} else if p.depth != level+1 {
				return nil, errArray(p.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			if len(out.Items) > 0 && out.Items[0].kind == KindList {
				return nil, errArray(p.text, "Unexpected array element.")
			}
			if item, err = p.element(); err != nil {
				return nil, err
			}
		}
		out.Items = append(out.Items, item)
		p.rest = strings.TrimLeft(p.rest, " \t\n\r\v\f")
		switch {
		case p.rest == "":
			return nil, errArray(p.text, "Unexpected end of input.")
		case p.rest[0] == ',':
			p.rest = p.rest[1:]
		case p.rest[0] == '}':
			p.rest = p.rest[1:]
			return out, nil
		default:
			if p.rest[0] == '{' {
				return nil, errArray(p.text, "Unexpected \"{\" character.")
			}
			return nil, errArray(p.text, "Unexpected array element.")
		}
	}
}

func sameDims(a, b *List) bool {
	x, y := a.Dims(), b.Dims()
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// element reads one value, quoted or bare.
func (p *arrayParser) element() (Datum, error) {
	var buf []byte
	quoted := false
	i := 0
	if p.rest[0] == '"' {
		quoted = true
		for i = 1; ; i++ {
			if i >= len(p.rest) {
				return Datum{}, errArray(p.text, "Unexpected end of input.")
			}
			if p.rest[i] == '"' {
				i++
				break
			}
			if p.rest[i] == '\\' {
				if i++; i >= len(p.rest) {
					return Datum{}, errArray(p.text, "Unexpected end of input.")
				}
			}
			buf = append(buf, p.rest[i])
		}
	} else {
		keep := 0 // trailing blanks that are not escaped do not count
		for ; i < len(p.rest) && strings.IndexByte(",{}\"", p.rest[i]) < 0; i++ {
			c := p.rest[i]
			if c == '\\' {
				if i++; i >= len(p.rest) {
					return Datum{}, errArray(p.text, "Unexpected end of input.")
				}
				buf = append(buf, p.rest[i])
				keep, quoted = len(buf), true
				continue
			}
			buf = append(buf, c)
			if !isSpace(c) {
				keep = len(buf)
			}
		}
		if i < len(p.rest) && p.rest[i] == '"' {
			return Datum{}, errArray(p.text, "Unexpected array element.")
		}
		buf = buf[:keep]
	}
	p.rest = p.rest[i:]
	if !quoted && strings.EqualFold(string(buf), "null") {
		return Datum{}, nil
	}
	return ParseText(p.elem, string(buf), p.st)
}

// appendText appends l as PostgreSQL does: bounds only where one is not 1.
func (l *List) appendText(dst []byte, t Type, st *Style) []byte {
	elem := l.Elem
	if t.Elem != nil {
		elem = *t.Elem
		if elem.Mod == 0 {
			elem.Mod = t.Mod
		}
	}
	if t.OID == OIDInt2Vector || t.OID == OIDOidVector {
		for i, d := range l.Items {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = AppendText(dst, elem, d, st)
		}
		return dst
	}
	odd := false
	for x := l; x != nil && len(x.Items) > 0; {
		odd = odd || x.Lower != 1
		if x.Items[0].kind != KindList {
			break
		}
		x = x.Items[0].List()
	}
	if odd {
		for x := l; ; {
			dst = strconv.AppendInt(append(dst, '['), int64(x.Lower), 10)
			dst = strconv.AppendInt(append(dst, ':'), int64(x.Lower+len(x.Items)-1), 10)
			dst = append(dst, ']')
			if x.Items[0].kind != KindList {
				break
			}
			x = x.Items[0].List()
		}
		dst = append(dst, '=')
	}
	return l.appendBraces(dst, elem, st)
}

func (l *List) appendBraces(dst []byte, elem Type, st *Style) []byte {
	dst = append(dst, '{')
	for i, d := range l.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case d.IsNull():
			dst = append(dst, "NULL"...)
		case d.kind == KindList:
			dst = d.List().appendBraces(dst, elem, st)
		default:
			start := len(dst)
			dst = quoteElement(AppendText(dst, elem, d, st), start)
		}
	}
	return append(dst, '}')
}

// quoteElement puts quotes around dst[start:] where a reader would need them.
func quoteElement(dst []byte, start int) []byte {
	text := dst[start:]
	need := len(text) == 0 || len(text) == 4 && strings.EqualFold(string(text), "null")
	for _, c := range text {
		if need {
			break
		}
		need = c == '"' || c == '\\' || c == '{' || c == '}' || c == ',' || isSpace(c)
	}
	if !need {
		return dst
	}
	s := string(text)
	dst = append(dst[:start], '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// parseVector reads int2vector and oidvector: numbers with blanks between.
func parseVector(t Type, s string, st *Style) (Datum, error) {
	out := &List{Elem: *t.Elem}
	for w := range strings.FieldsSeq(s) {
		d, err := ParseText(*t.Elem, w, st)
		if err != nil {
			return Datum{}, err
		}
		out.Items = append(out.Items, d)
	}
	return NewList(out), nil
}
