package parser

import (
	"strings"

	"streamdb/sql/sqlerr"
)

// opensAngle says whether a token is or begins with <.
func (p *parser) opensAngle(i int) bool {
	return p.toks[i].kind == op && p.text[p.toks[i].pos] == '<'
}

// typePosition says whether the name before a parenthesis can only be a type's: after ::, in CAST (x AS …), and after a
// column's or parameter's name in a definition. first is the statement's first token.
func (p *parser) typePosition(first, i int) bool {
	switch {
	case i == first:
		return false
	case p.is(i-1, "::"):
		return true
	case p.is(i-1, "as"):
		for k, depth := i-1, 0; k > first; k-- {
			if depth += p.nesting(k); depth > 0 {
				return p.is(k-1, "cast") || p.is(k-1, "try_cast")
			}
		}
		return false
	case p.is(first, "alter"):
		return p.named(i - 1)
	case p.is(first, "create"):
		return p.is(i-1, "returns") || p.named(i-1) && (p.is(i-2, "(") || p.is(i-2, ","))
	}
	return false
}

// typeRef parses a span that is a type's name.
func (p *parser) typeRef(s span) (*TypeRef, error) {
	r := typeReader{p: p, i: s.lo, hi: s.hi}
	t, ok, err := r.typ()
	if err != nil {
		return nil, err
	}
	if !ok || r.i < s.hi {
		return nil, p.unexpected(r.i)
	}
	return t, nil
}

// A typeReader reads types from tokens. Since >> is one token, it can stand inside of one.
type typeReader struct {
	p   *parser
	i   int // token
	sub int // bytes of it that were taken
	hi  int

	depth int // structs and maps that are open
}

// maxTypeDepth bounds how deep structs and maps may nest.
const maxTypeDepth = 100

// offset is where the reader stands, right after what was taken last.
func (r *typeReader) offset() int {
	if r.sub > 0 {
		return int(r.p.toks[r.i].pos) + r.sub
	}
	return int(r.p.toks[r.i-1].end)
}

// closes says whether a > comes next.
func (r *typeReader) closes() bool {
	t := r.p.toks[r.i]
	return r.i < r.hi && t.kind == op && r.p.text[int(t.pos)+r.sub] == '>'
}

func (r *typeReader) take() {
	if r.sub++; int(r.p.toks[r.i].pos)+r.sub == int(r.p.toks[r.i].end) {
		r.i++
		r.sub = 0
	}
}

// typ reads one type up to a comma, a closing parenthesis or a >. ok is false if what is there is no type.
func (r *typeReader) typ() (t *TypeRef, ok bool, err error) {
	p, first := r.p, r.i
	t = &TypeRef{}
	inner := 0 // where a struct's or map's parentheses end
	if first >= r.hi || r.sub > 0 || !p.named(first) {
		return nil, false, nil
	}
	if p.is(first, "struct") && p.opensAngle(first+1) || p.is(first, "map") && p.is(first+1, "(") {
		if t.Composite, ok, err = r.composite(); !ok || err != nil {
			return nil, ok, err
		}
		inner = r.offset()
	}
	for depth := 0; r.i < r.hi && r.sub == 0; r.i++ {
		if depth == 0 && (p.is(r.i, ",") || p.is(r.i, ")") || r.closes()) {
			break
		}
		depth += p.nesting(r.i)
		if depth == 0 && p.toks[r.i].kind == word && r.i > first && !p.named(r.i) && !p.is(r.i, "array") && !p.seq(r.i, "with", "time", "zone") {
			return nil, false, nil
		}
	}
	from := int(p.toks[first].pos)
	m := &mask{text: p.text[from:r.offset()], base: from}
	if t.Composite != nil {
		m.blank(int(p.toks[first].end), inner)
	}
	n, err := p.sub("SELECT NULL::", m, "")
	if err != nil {
		return nil, true, err
	}
	var cast = n.GetSelectStmt().GetTargetList()
	if len(cast) != 1 || cast[0].GetResTarget().GetName() != "" || cast[0].GetResTarget().GetVal().GetTypeCast().GetArg().GetAConst() == nil {
		return nil, true, p.unexpected(min(first+1, r.i))
	}
	t.Name = cast[0].GetResTarget().Val.GetTypeCast().TypeName
	return t, true, nil
}

// composite reads struct<name type, …> or map(type, type).
func (r *typeReader) composite() (c *Composite, ok bool, err error) {
	if r.depth++; r.depth > maxTypeDepth {
		return nil, true, tooDeep()
	}
	defer func() { r.depth-- }()
	p := r.p
	c = &Composite{Pos: int(p.toks[r.i].pos)}
	if p.is(r.i, "map") {
		r.i += 2
		if c.Key, ok, err = r.typ(); !ok || err != nil {
			return nil, ok, err
		}
		if !p.is(r.i, ",") {
			return nil, false, nil
		}
		r.i++
		if c.Value, ok, err = r.typ(); !ok || err != nil {
			return nil, ok, err
		}
		if r.i >= r.hi || !p.is(r.i, ")") {
			return nil, false, nil
		}
		r.i++
		return c, true, nil
	}
	r.i++
	if p.toks[r.i].end-p.toks[r.i].pos != 1 {
		if p.is(r.i, "<>") {
			return nil, true, sqlerr.New(sqlerr.Syntax, "a struct type needs at least one field").At(c.Pos)
		}
		return nil, false, nil
	}
	r.i++
	for {
		if r.i >= r.hi || r.sub > 0 || !p.named(r.i) {
			return nil, false, nil
		}
		f := Field{Pos: int(p.toks[r.i].pos)}
		if f.Name, err = p.ident(r.i); err != nil {
			return nil, true, err
		}
		r.i++
		if f.Type, ok, err = r.typ(); !ok || err != nil {
			return nil, ok, err
		}
		c.Fields = append(c.Fields, f)
		switch {
		case r.closes():
			r.take()
			return c, true, nil
		case r.i < r.hi && r.sub == 0 && p.is(r.i, ","):
			r.i++
		default:
			return nil, false, nil
		}
	}
}

// ident returns the name that a token stands for: unquoted ones are folded to lower case, all are cut at 63 bytes.
func (p *parser) ident(i int) (string, error) {
	t := p.toks[i]
	s := p.src(i)
	switch {
	case t.kind == word:
		s = string(lower(nil, s))
	case t.kind == quoted && s[0] == '"':
		s = strings.ReplaceAll(s[1:len(s)-1], `""`, `"`)
	case t.kind == quoted:
		// Unicode escapes are the grammar's business.
		n, err := p.sub("SELECT ", &mask{text: s, base: int(t.pos)}, "")
		if err != nil {
			return "", err
		}
		s = n.GetSelectStmt().GetTargetList()[0].GetResTarget().GetVal().GetColumnRef().GetFields()[0].GetString_().GetSval()
	default:
		return "", p.unexpected(i)
	}
	return truncate(s), nil
}

// truncate cuts a name at 63 bytes, between characters.
func truncate(s string) string {
	const most = 63
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// literal returns the value of a string constant.
func (p *parser) literal(i int) (string, error) {
	t := p.toks[i]
	s := p.src(i)
	switch {
	case t.kind != str:
		return "", p.unexpected(i)
	case s[0] == '\'':
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'"), nil
	case s[0] == '$':
		tag := strings.IndexByte(s[1:], '$') + 2
		return s[tag : len(s)-tag], nil
	}
	n, err := p.sub("SELECT ", &mask{text: s, base: int(t.pos)}, "")
	if err != nil {
		return "", err
	}
	v := n.GetSelectStmt().GetTargetList()[0].GetResTarget().GetVal()
	if tc := v.GetTypeCast(); tc != nil { // N'…'
		v = tc.Arg
	}
	return v.GetAConst().GetSval().GetSval(), nil
}
