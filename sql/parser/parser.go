package parser

import (
	"strings"

	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// A Statement is one statement of a text.
type Statement struct {
	Node    *ast.Node // PostgreSQL's tree; nil for an extension statement
	Ext     Ext       // nil for one of PostgreSQL's
	Text    string    // from its first token to its last, without the semicolon
	Offset  int       // of Text in the whole text
	Len     int       // of Text
	Clauses Clauses   // the clauses of our own inside it
	Params  int       // the highest n of the $n in it
}

// Parse parses a text of any number of statements; empty ones are dropped. Errors are *sqlerr.Error with a position in text.
// As in PostgreSQL the whole text is refused if any statement of it is.
func Parse(text string) ([]Statement, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	spans := p.split()
	stmts := make([]Statement, len(spans))
	m := mask{text: text}
	plain := 0
	for i, s := range spans {
		stmts[i] = p.statement(s)
		ext, err := p.extension(s, &stmts[i].Clauses)
		if err != nil {
			// A fault of an earlier statement comes first.
			if plain > 0 {
				if _, e := p.plain(m.string()[:p.toks[s.lo].pos]); e != nil {
					return nil, e
				}
			}
			return nil, err
		}
		if ext != nil {
			stmts[i].Ext = ext
			m.blank(int(p.toks[s.lo].pos), int(p.toks[s.hi-1].end))
			continue
		}
		plain++
		if err := p.maskStatement(s, &m, &stmts[i].Clauses); err != nil {
			return nil, err
		}
	}
	if plain == 0 {
		return stmts, nil
	}
	r, err := p.plain(m.string())
	if err != nil {
		return nil, err
	}
	if len(r.Stmts) != plain {
		if plain != len(stmts) {
			return nil, sqlerr.New(sqlerr.Internal, "the grammar found %d statements, the scanner %d", len(r.Stmts), plain)
		}
		// The grammar knows better where the statements end.
		spans = p.spansOf(r)
		stmts = make([]Statement, len(spans))
		for i, s := range spans {
			stmts[i] = p.statement(s)
			if err := p.maskClauses(s, &mask{text: text}, &stmts[i].Clauses); err != nil {
				return nil, err
			}
		}
	}
	n := 0
	for i := range stmts {
		if stmts[i].Ext == nil {
			stmts[i].Node = r.Stmts[n].Stmt
			n++
		}
	}
	return stmts, nil
}

// maskStatement overwrites and notes what is ours in one of PostgreSQL's statements.
func (p *parser) maskStatement(s span, m *mask, c *Clauses) error {
	if p.is(s.lo, "grant") || p.is(s.lo, "revoke") {
		p.maskGrant(s, m)
	}
	return p.maskClauses(s, m, c)
}

// ParseOne parses a text that must hold exactly one statement.
func ParseOne(text string) (Statement, error) {
	stmts, err := Parse(text)
	if err != nil {
		return Statement{}, err
	}
	switch len(stmts) {
	case 0:
		return Statement{}, sqlerr.New(sqlerr.Syntax, "syntax error at end of input").At(len(text))
	case 1:
		return stmts[0], nil
	}
	return Statement{}, sqlerr.New(sqlerr.Syntax, "cannot insert multiple commands into a prepared statement").At(stmts[1].Offset)
}

// ParseQuery parses one SELECT, VALUES or TABLE query.
func ParseQuery(text string) (Statement, error) {
	s, err := ParseOne(text)
	if err != nil {
		return Statement{}, err
	}
	if s.Node.GetSelectStmt() == nil {
		return Statement{}, near(text, s.Offset)
	}
	return s, nil
}

// ParseExpr parses one expression.
func ParseExpr(text string) (*ast.Node, error) {
	e, c, err := ParseExprClauses(text)
	if err == nil && !c.empty() {
		return nil, sqlerr.Unsupported("a struct or map type in this expression")
	}
	return e, err
}

// ParseExprClauses is ParseExpr for an expression that may hold types that only we know.
func ParseExprClauses(text string) (*ast.Node, Clauses, error) {
	var c Clauses
	p, err := newParser(text)
	if err != nil {
		return nil, c, err
	}
	e, err := p.expr(p.all(), &c)
	return e, c, err
}

// ParseType parses the name of a type that PostgreSQL's grammar knows.
func ParseType(text string) (*ast.TypeName, error) {
	t, err := ParseTypeRef(text)
	if err != nil {
		return nil, err
	}
	if t.Composite != nil {
		return nil, sqlerr.Unsupported("a struct or map type here")
	}
	return t.Name, nil
}

// ParseTypeRef parses the name of any type.
func ParseTypeRef(text string) (*TypeRef, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	return p.typeRef(p.all())
}

// A parser holds a text and its tokens.
type parser struct {
	text string
	toks []token // the last is of kind end
	lex  *lexer
}

// A span is a range of tokens, hi excluded.
type span struct{ lo, hi int }

func newParser(text string) (*parser, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	l, err := lex(text)
	if err != nil {
		return nil, err
	}
	l.add(end, len(text), len(text))
	p := &parser{text, l.toks, l}
	if err := p.checkDepth(); err != nil {
		return nil, err
	}
	return p, nil
}

// all is everything but the end.
func (p *parser) all() span { return span{0, len(p.toks) - 1} }

// src returns the text of a token.
func (p *parser) src(i int) string { return p.text[p.toks[i].pos:p.toks[i].end] }

// is says whether a token is the given word (in lower case) unquoted, or the given operator.
func (p *parser) is(i int, w string) bool {
	if i < 0 || i >= len(p.toks) {
		return false
	}
	t := p.toks[i]
	switch t.kind {
	case op:
		return p.src(i) == w
	case word:
		return int(t.end-t.pos) == len(w) && strings.EqualFold(p.src(i), w)
	}
	return false
}

// seq says whether the tokens from i on are the given ones.
func (p *parser) seq(i int, words ...string) bool {
	for k, w := range words {
		if !p.is(i+k, w) {
			return false
		}
	}
	return true
}

// split finds the statements: they end at a semicolon outside of parentheses and of a function's BEGIN ATOMIC … END.
func (p *parser) split() []span {
	var out []span
	lo, depth, body := 0, 0, 0
	for i, t := range p.toks {
		switch {
		case t.kind == end:
			if i > lo {
				out = append(out, span{lo, i})
			}
		case t.kind == op && t.end-t.pos == 1:
			switch p.text[t.pos] {
			case '(':
				depth++
			case ')':
				depth--
			case ';':
				if depth > 0 || body > 0 {
					break
				}
				if i > lo {
					out = append(out, span{lo, i})
				}
				lo, depth = i+1, 0
			}
		case t.kind == word && body > 0:
			switch {
			case p.is(i, "case"), p.is(i, "begin"):
				body++
			case p.is(i, "end"):
				body--
			}
		case t.kind == word && p.is(i, "atomic") && p.is(i-1, "begin") && p.is(lo, "create"):
			body = 1
		}
	}
	return out
}

// spansOf finds the tokens of each statement of a parsed text.
func (p *parser) spansOf(r *ast.ParseResult) []span {
	var out []span
	for _, s := range r.Stmts {
		from, to := s.StmtLocation, s.StmtLocation+s.StmtLen
		if s.StmtLen == 0 {
			to = int32(len(p.text))
		}
		sp := span{p.tokenAt(int(from)), p.tokenAt(int(to))}
		for sp.lo < sp.hi && p.is(sp.lo, ";") {
			sp.lo++
		}
		out = append(out, sp)
	}
	return out
}

// tokenAt returns the first token that begins at an offset or after it.
func (p *parser) tokenAt(offset int) int {
	lo, hi := 0, len(p.toks)-1
	for lo < hi {
		if mid := (lo + hi) / 2; int(p.toks[mid].pos) < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// statement fills in what does not need a tree.
func (p *parser) statement(s span) Statement {
	if s.lo >= s.hi {
		return Statement{}
	}
	from, to := int(p.toks[s.lo].pos), int(p.toks[s.hi-1].end)
	st := Statement{Text: p.text[from:to], Offset: from, Len: to - from}
	if p.lex.params {
		for _, t := range p.toks[s.lo:s.hi] {
			if t.kind == param {
				st.Params = max(st.Params, paramNumber(p.text[t.pos+1:t.end]))
			}
		}
	}
	return st
}

func paramNumber(digits string) int {
	n := 0
	for i := range len(digits) {
		if n = n*10 + int(digits[i]-'0'); n > 1<<20 {
			return 1 << 20 // more than any protocol message can bind
		}
	}
	return n
}

// plain hands text of the parser's length to the grammar.
func (p *parser) plain(text string) (*ast.ParseResult, error) {
	r, c := grammar(text)
	if c != nil {
		return nil, p.refuse(c, text, 0, 0)
	}
	return r, nil
}

// sub hands a stretch of the text, or the mask over it, to the grammar with something before and after it, and returns the
// one statement's tree, its locations counted in the whole text.
func (p *parser) sub(prefix string, m *mask, suffix string) (*ast.Node, error) {
	text := prefix + m.string() + suffix
	shift := m.base - len(prefix)
	r, c := grammar(text)
	if c != nil {
		return nil, p.refuse(c, text, shift, m.base)
	}
	if len(r.Stmts) != 1 {
		return nil, p.unexpected(p.tokenAt(m.base + len(m.text)))
	}
	n := r.Stmts[0].Stmt
	shiftLocations(n.ProtoReflect(), int32(shift))
	return n, nil
}

// bytes returns the mask over a range of tokens.
func (p *parser) bytes(s span) *mask {
	from, to := int(p.toks[s.lo].pos), int(p.toks[s.lo].pos)
	if s.hi > s.lo {
		to = int(p.toks[s.hi-1].end)
	}
	return &mask{text: p.text[from:to], base: from}
}

// query parses an embedded query.
func (p *parser) query(s span, c *Clauses) (*ast.Node, error) {
	if s.lo >= s.hi {
		return nil, p.unexpected(s.lo)
	}
	m := p.bytes(s)
	if err := p.maskClauses(s, m, c); err != nil {
		return nil, err
	}
	n, err := p.sub("", m, "")
	if err != nil {
		return nil, err
	}
	if sel := n.GetSelectStmt(); sel == nil || sel.IntoClause != nil {
		return nil, p.unexpected(s.lo)
	}
	return n, nil
}

// expr parses one embedded expression.
func (p *parser) expr(s span, c *Clauses) (*ast.Node, error) {
	list, err := p.exprs(s, c)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		for i, depth := s.lo, 0; i < s.hi; i++ {
			depth += p.nesting(i)
			if depth == 0 && p.is(i, ",") {
				return nil, p.unexpected(i)
			}
		}
		return nil, p.unexpected(s.lo)
	}
	return list[0], nil
}

// exprs parses an embedded list of expressions.
func (p *parser) exprs(s span, c *Clauses) ([]*ast.Node, error) {
	if s.lo >= s.hi {
		return nil, p.unexpected(s.lo)
	}
	// The list is parsed as a SELECT's, so words that would lead out of that list are refused first.
	for i, depth := s.lo, 0; i < s.hi; i++ {
		depth += p.nesting(i)
		if depth < 0 || depth == 0 && (p.is(i, ";") || p.leavesList(i)) {
			return nil, p.unexpected(i)
		}
	}
	m := p.bytes(s)
	if err := p.maskClauses(s, m, c); err != nil {
		return nil, err
	}
	n, err := p.sub("SELECT ", m, "")
	if err != nil {
		return nil, err
	}
	sel := n.GetSelectStmt()
	if sel == nil || len(sel.DistinctClause) > 0 || len(sel.TargetList) == 0 || p.is(s.lo, "all") {
		return nil, p.unexpected(s.lo)
	}
	out := make([]*ast.Node, len(sel.TargetList))
	for i, t := range sel.TargetList {
		rt := t.GetResTarget()
		if rt.Name != "" {
			return nil, p.unexpected(s.hi - 1)
		}
		if f := rt.Val.GetColumnRef(); f != nil && len(f.Fields) == 1 && f.Fields[0].GetAStar() != nil {
			return nil, p.unexpected(p.tokenAt(int(f.Location)))
		}
		out[i] = rt.Val
	}
	return out, nil
}

// leavesList says whether a token would end a SELECT's list of expressions.
func (p *parser) leavesList(i int) bool {
	if p.toks[i].kind != word || p.is(i-1, ".") {
		return false
	}
	switch strings.ToLower(p.src(i)) {
	case "from":
		return !p.is(i-1, "distinct")
	case "into", "where", "group", "having", "window", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for", "as":
		return true
	}
	return false
}

// nesting is +1 for an opening and -1 for a closing parenthesis or bracket.
func (p *parser) nesting(i int) int {
	t := p.toks[i]
	if t.kind != op || t.end-t.pos != 1 {
		return 0
	}
	switch p.text[t.pos] {
	case '(', '[', '{':
		return 1
	case ')', ']', '}':
		return -1
	}
	return 0
}
