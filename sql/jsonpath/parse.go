package jsonpath

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// Parse compiles a path. Errors: 42601 for its syntax, 22P02 for an empty one.
func Parse(s string) (*Path, error) {
	p := &parser{s: s}
	if err := p.scan(); err != nil {
		return nil, err
	}
	if len(p.toks) == 0 {
		return nil, sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type jsonpath: \"%s\"", s)
	}
	path := &Path{}
	if t := p.peek(); t.kind == word && (t.is("lax") || t.is("strict")) {
		path.strict = t.is("strict")
		p.at++
	}
	it, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	if p.at < len(p.toks) {
		return nil, p.unexpected()
	}
	path.root = it
	return path, nil
}

type tokenKind uint8

const (
	end tokenKind = iota
	punct
	word
	quoted
	number
	variable
)

type token struct {
	kind tokenKind
	text string // resolved
	raw  string
}

func (t token) is(w string) bool { return t.kind == word && strings.EqualFold(t.text, w) }

// exact: null, true and false are these words in lower case only.
func (t token) exact(w string) bool { return t.kind == word && t.raw == w }

type parser struct {
	s     string
	toks  []token
	at    int
	depth int // of nesting
	subs  int // of array subscripts around, where "last" may stand
	scope int // of filters around, where @ may stand
}

func (p *parser) peek() token {
	if p.at < len(p.toks) {
		return p.toks[p.at]
	}
	return token{}
}

func (p *parser) accept(s string) bool {
	if t := p.peek(); t.kind == punct && t.text == s {
		p.at++
		return true
	}
	return false
}

func (p *parser) acceptWord(s string) bool {
	if p.peek().is(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(s string) error {
	if !p.accept(s) {
		return p.unexpected()
	}
	return nil
}

func (p *parser) unexpected() error {
	t := p.peek()
	if t.kind == end {
		return sqlerr.New(sqlerr.Syntax, "syntax error at end of jsonpath input")
	}
	return sqlerr.New(sqlerr.Syntax, "syntax error at or near \"%s\" of jsonpath input", t.raw)
}

const special = "?%$.[]{}()|&!=<>@#,*:-+/\\\" \t\n\r\f"

func (p *parser) scan() error {
	s := p.s
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
			continue
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return sqlerr.New(sqlerr.Syntax, "unexpected end of comment at end of jsonpath input")
			}
			i += n + 4
			continue
		case c == '"':
			text, n, err := unquote(s[i:])
			if err != nil {
				return err
			}
			i += n
			p.toks = append(p.toks, token{quoted, text, s[start:i]})
			continue
		case c == '$' && i+1 < len(s) && s[i+1] == '"':
			text, n, err := unquote(s[i+1:])
			if err != nil {
				return err
			}
			i += n + 1
			p.toks = append(p.toks, token{variable, text, s[start:i]})
			continue
		case c == '$' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) < 0:
			i++
			for i < len(s) && (strings.IndexByte(special, s[i]) < 0) {
				i++
			}
			p.toks = append(p.toks, token{variable, s[start+1 : i], s[start:i]})
			continue
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			digits := func() {
				for i < len(s) && s[i] >= '0' && s[i] <= '9' {
					i++
				}
			}
			digits()
			if i < len(s) && s[i] == '.' {
				i++
				digits()
			}
			if j := i; i < len(s) && (s[i] == 'e' || s[i] == 'E') {
				i++
				if i < len(s) && (s[i] == '+' || s[i] == '-') {
					i++
				}
				if i == len(s) || s[i] < '0' || s[i] > '9' {
					i = j
				}
				digits()
			}
			if i < len(s) && (strings.IndexByte(special, s[i]) < 0) {
				return sqlerr.New(sqlerr.Syntax, "trailing junk after numeric literal at or near \"%s\" of jsonpath input", s[start:i+1])
			}
			p.toks = append(p.toks, token{number, s[start:i], s[start:i]})
			continue
		case strings.IndexByte(special, c) < 0 || c == '\\':
			var b strings.Builder
			for i < len(s) && (strings.IndexByte(special, s[i]) < 0 || s[i] == '\\') {
				if s[i] != '\\' {
					b.WriteByte(s[i])
					i++
					continue
				}
				text, n, err := escape(s[i:])
				if err != nil {
					return err
				}
				b.WriteString(text)
				i += n
			}
			p.toks = append(p.toks, token{word, b.String(), s[start:i]})
			continue
		}
		i++
		for _, two := range []string{"&&", "||", "==", "!=", "<>", "<=", ">=", "**"} {
			if strings.HasPrefix(s[start:], two) {
				i = start + 2
			}
		}
		p.toks = append(p.toks, token{punct, s[start:i], s[start:i]})
	}
	return nil
}

// unquote reads a string in double quotes and gives its length in s.
func unquote(s string) (string, int, error) {
	var b strings.Builder
	for i := 1; i < len(s); {
		switch s[i] {
		case '"':
			return b.String(), i + 1, nil
		case '\\':
			text, n, err := escape(s[i:])
			if err != nil {
				return "", 0, err
			}
			b.WriteString(text)
			i += n
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return "", 0, sqlerr.New(sqlerr.Syntax, "unterminated quoted string at end of jsonpath input")
}

// escape reads one escape sequence, or a pair of surrogates.
func escape(s string) (string, int, error) {
	if len(s) < 2 {
		return "", 0, sqlerr.New(sqlerr.Syntax, "unexpected end after backslash at end of jsonpath input")
	}
	switch s[1] {
	case 'b':
		return "\b", 2, nil
	case 'f':
		return "\f", 2, nil
	case 'n':
		return "\n", 2, nil
	case 'r':
		return "\r", 2, nil
	case 't':
		return "\t", 2, nil
	case 'v':
		return "\v", 2, nil
	case 'x':
		if len(s) >= 4 {
			if v, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
				return string(rune(v)), 4, nil
			}
		}
		return "", 0, sqlerr.New(sqlerr.Syntax, "invalid hexadecimal character sequence at or near \"%s\" of jsonpath input", s[:min(len(s), 3)])
	case 'u':
		one := func(s string) (rune, int, bool) {
			if len(s) > 2 && s[2] == '{' {
				n := strings.IndexByte(s, '}')
				if n < 0 {
					return 0, 0, false
				}
				v, err := strconv.ParseUint(s[3:n], 16, 32)
				return rune(v), n + 1, err == nil
			}
			if len(s) < 6 {
				return 0, 0, false
			}
			v, err := strconv.ParseUint(s[2:6], 16, 16)
			return rune(v), 6, err == nil
		}
		r, n, ok := one(s)
		if !ok {
			return "", 0, sqlerr.New(sqlerr.Syntax, "invalid Unicode escape sequence at or near \"%s\" of jsonpath input", s[:min(len(s), 6)])
		}
		if utf16.IsSurrogate(r) {
			if rest := s[n:]; strings.HasPrefix(rest, `\u`) {
				if low, m, ok := one(rest); ok {
					r, n = utf16.DecodeRune(r, low), n+m
				}
			}
			if r == utf8.RuneError || utf16.IsSurrogate(r) {
				return "", 0, sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type jsonpath").
					WithDetail("Unicode low surrogate must follow a high surrogate.")
			}
		}
		if r == 0 {
			return "", 0, sqlerr.New("22P05", "unsupported Unicode escape sequence").WithDetail("\\u0000 cannot be converted to text.")
		}
		return string(r), n, nil
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	return s[1 : 1+n], 1 + n, nil
}

// binaryOps by level: a level's operators bind tighter than those of the ones before.
var binaryOps = []map[string]op{
	{"||": opOr}, {"&&": opAnd},
	{"==": opEq, "!=": opNe, "<>": opNe, "<": opLt, ">": opGt, "<=": opLe, ">=": opGe},
	{"+": opAdd, "-": opSub}, {"*": opMul, "/": opDiv, "%": opMod},
}

func (p *parser) binary(level int) (*item, error) {
	if level == len(binaryOps) {
		return p.unary()
	}
	if p.depth++; p.depth > 5000 {
		return nil, sqlerr.New("54001", "stack depth limit exceeded")
	}
	defer func() { p.depth-- }()
	left, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		o, ok := op(0), false
		if t.kind == punct {
			o, ok = binaryOps[level][t.text]
		}
		if level == 2 && !ok {
			return p.suffix(left)
		}
		if !ok {
			return left, nil
		}
		logical := level < 2 // && and || join predicates, all others values
		if left.predicate() != logical {
			return nil, p.unexpected()
		}
		p.at++
		right, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		if right.predicate() != logical {
			return nil, p.unexpected()
		}
		left = &item{op: o, left: left, right: right}
		if level == 2 {
			return left, nil
		}
	}
}

// suffix is starts with or like_regex, if one of them follows.
func (p *parser) suffix(left *item) (*item, error) {
	switch {
	case p.acceptWord("starts"):
		if !p.acceptWord("with") {
			return nil, p.unexpected()
		}
		t := p.peek()
		p.at++
		switch t.kind {
		case quoted:
			return &item{op: opStarts, left: left, right: &item{op: opString, str: t.text}}, nil
		case variable:
			return &item{op: opStarts, left: left, right: &item{op: opVariable, str: t.text}}, nil
		}
		p.at--
		return nil, p.unexpected()
	case p.acceptWord("like_regex"):
		t := p.peek()
		if t.kind != quoted {
			return nil, p.unexpected()
		}
		p.at++
		it := &item{op: opLike, left: left, str: t.text}
		if p.acceptWord("flag") {
			f := p.peek()
			if f.kind != quoted {
				return nil, p.unexpected()
			}
			p.at++
			for _, c := range "ismxq" { // PostgreSQL prints them in this order
				if strings.ContainsRune(f.text, c) {
					it.flags += string(c)
				}
			}
			for _, c := range f.text {
				if !strings.ContainsRune("ismxq", c) {
					return nil, sqlerr.New(sqlerr.Syntax, "invalid input syntax for type jsonpath").
						WithDetail("Unrecognized flag character \"%c\" in LIKE_REGEX predicate.", c)
				}
			}
			if strings.ContainsRune(it.flags, 'x') && !strings.ContainsRune(it.flags, 'q') {
				return nil, sqlerr.New(sqlerr.NotSupported, "XQuery \"x\" flag (expanded regular expressions) is not implemented")
			}
		}
		return it, nil
	}
	return left, nil
}

func (p *parser) unary() (*item, error) {
	if p.depth++; p.depth > 5000 {
		return nil, sqlerr.New("54001", "stack depth limit exceeded")
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("+"), p.accept("-"):
		o := opPlus
		if p.toks[p.at-1].text == "-" {
			o = opMinus
		}
		arg, err := p.unary()
		if err != nil {
			return nil, err
		}
		if arg.op == opNumber && arg.next == nil { // a signed literal
			n := *arg
			if o == opMinus {
				n.num = n.num.Neg()
			}
			return &n, nil
		}
		return &item{op: o, left: arg}, nil
	case p.accept("!"):
		if t := p.peek(); !(t.kind == punct && t.text == "(") && !t.is("exists") {
			return nil, p.unexpected()
		}
		arg, err := p.primary()
		if err != nil {
			return nil, err
		}
		if !arg.op.predicate() {
			return nil, p.unexpected()
		}
		return &item{op: opNot, left: arg}, nil
	}
	it, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.accessors(it)
}

func (p *parser) primary() (*item, error) {
	t := p.peek()
	p.at++
	switch t.kind {
	case quoted:
		return &item{op: opString, str: t.text}, nil
	case variable:
		return &item{op: opVariable, str: t.text}, nil
	case number:
		d, err := types.ParseDecimal(t.text)
		return &item{op: opNumber, num: d}, err
	case word:
		switch {
		case t.exact("null"):
			return &item{op: opNull}, nil
		case t.exact("true"), t.exact("false"):
			return &item{op: opBool, yes: t.raw == "true"}, nil
		case t.is("last"):
			if p.subs == 0 {
				return nil, sqlerr.New(sqlerr.Syntax, "LAST is allowed only in array subscripts")
			}
			return &item{op: opLast}, nil
		case t.is("exists"):
			if err := p.expect("("); err != nil {
				return nil, err
			}
			arg, err := p.binary(3)
			if err != nil {
				return nil, err
			}
			return &item{op: opExists, left: arg}, p.expect(")")
		}
	case punct:
		switch t.text {
		case "$":
			return &item{op: opRoot}, nil
		case "@":
			if p.scope == 0 {
				return nil, sqlerr.New(sqlerr.Syntax, "@ is not allowed in root expressions")
			}
			return &item{op: opCurrent}, nil
		case "(":
			inner, err := p.binary(0)
			if err != nil {
				return nil, err
			}
			if err := p.expect(")"); err != nil {
				return nil, err
			}
			if inner.op.predicate() && p.peek().is("is") {
				p.at++
				if !p.acceptWord("unknown") {
					return nil, p.unexpected()
				}
				return &item{op: opUnknown, left: inner}, nil
			}
			return inner, nil
		}
	}
	p.at--
	return nil, p.unexpected()
}

var methods = map[string]bool{"abs": true, "size": true, "type": true, "floor": true, "double": true, "ceiling": true, "keyvalue": true, "datetime": true}

// accessors reads what follows a primary.
func (p *parser) accessors(it *item) (*item, error) {
	head := *it
	tail := &head
	for tail.next != nil {
		tail = tail.next
	}
	add := func(x *item) {
		tail.next = x
		tail = x
	}
	for {
		switch {
		case p.accept("."):
			t := p.peek()
			p.at++
			switch {
			case t.kind == punct && t.text == "*":
				add(&item{op: opAnyKey})
			case t.kind == punct && t.text == "**":
				any, err := p.levels()
				if err != nil {
					return nil, err
				}
				add(any)
			case t.kind == word && methods[t.text] && p.accept("("):
				m := &item{op: opMethod, str: t.text}
				if t.text == "datetime" && p.peek().kind == quoted {
					m.left = &item{op: opString, str: p.peek().text}
					p.at++
				}
				if err := p.expect(")"); err != nil {
					return nil, err
				}
				add(m)
			case t.kind == word || t.kind == quoted:
				add(&item{op: opKey, str: t.text})
			default:
				p.at--
				return nil, p.unexpected()
			}
		case p.accept("["):
			if p.accept("*") {
				if err := p.expect("]"); err != nil {
					return nil, err
				}
				add(&item{op: opAnyArray})
				continue
			}
			idx := &item{op: opIndex}
			p.subs++
			for {
				from, err := p.binary(3)
				if err != nil {
					return nil, err
				}
				sub := [2]*item{from, nil}
				if p.acceptWord("to") {
					if sub[1], err = p.binary(3); err != nil {
						return nil, err
					}
				}
				idx.subs = append(idx.subs, sub)
				if !p.accept(",") {
					break
				}
			}
			p.subs--
			if err := p.expect("]"); err != nil {
				return nil, err
			}
			add(idx)
		case p.accept("?"):
			if err := p.expect("("); err != nil {
				return nil, err
			}
			p.scope++
			pred, err := p.binary(0)
			p.scope--
			if err != nil {
				return nil, err
			}
			if !pred.predicate() {
				return nil, p.unexpected()
			}
			if err := p.expect(")"); err != nil {
				return nil, err
			}
			add(&item{op: opFilter, left: pred})
		default:
			return &head, nil
		}
	}
}

// levels reads what may follow .**
func (p *parser) levels() (*item, error) {
	it := &item{op: opAny, last: noLimit}
	if !p.accept("{") {
		return it, nil
	}
	level := func() (uint32, error) {
		if p.acceptWord("last") {
			return noLimit, nil
		}
		t := p.peek()
		n, err := strconv.ParseUint(t.text, 10, 31)
		if t.kind != number || err != nil {
			return 0, p.unexpected()
		}
		p.at++
		return uint32(n), nil
	}
	var err error
	if it.first, err = level(); err != nil {
		return nil, err
	}
	it.last = it.first
	if p.acceptWord("to") {
		if it.last, err = level(); err != nil {
			return nil, err
		}
	}
	return it, p.expect("}")
}
