package parser

import (
	"streamdb/sql/parser/ast"
)

func (r *reader) create(c *Clauses) (Ext, error) {
	r.i++
	switch {
	case r.accept("source"):
		return r.createSource(c)
	case r.accept("sink"):
		return r.createSink(c)
	case r.accept("subscription"):
		return r.createSubscription()
	case r.accept("connection"):
		e := &CreateConnection{Pos: r.pos(), IfNotExists: r.ifNotExists(), Name: r.name()}
		r.expect("with")
		e.With = r.options()
		return r.result(e)
	case r.accept("secret"):
		e := &CreateSecret{Pos: r.pos(), IfNotExists: r.ifNotExists(), Name: r.name()}
		e.With = r.with()
		r.expect("as")
		e.Value = r.literal()
		return r.result(e)
	case r.accept("materialized", "view"):
		return r.createMaterializedView(c)
	case r.accept("unique", "index"), r.accept("index"):
		return r.createIndex(c)
	}
	for r.accept("temporary") || r.accept("temp") || r.accept("local") || r.accept("global") || r.accept("unlogged") {
	}
	if r.accept("table") {
		return r.createTable(c)
	}
	return nil, nil
}

func (r *reader) createSource(c *Clauses) (Ext, error) {
	e := &CreateSource{Pos: r.pos(), IfNotExists: r.ifNotExists(), Name: r.name()}
	m := r.bytes(r.span)
	m.put(r.pos(), "CREATE TABLE ")
	m.blank(r.pos()+len("CREATE TABLE "), int(r.toks[r.lo+1].end)) // comments or more space between the two words
	suffix := "()"
	var masked []span
	if r.next("(") {
		suffix = ""
		masked = r.columns(m, &e.Columns, c)
	}
	rest := r.i
	for !r.done() {
		switch {
		case r.next("include"):
			e.Include = append(e.Include, r.include())
		case e.With == nil && r.next("with", "("):
			e.With = r.with()
		case e.Format == nil && r.next("format"):
			e.Format = r.format()
		default:
			r.fail()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if rest < r.hi {
		m.blank(int(r.toks[rest].pos), int(r.toks[r.hi-1].end))
	}
	n := r.tree(m, suffix, c, append(masked, span{rest, r.hi})...)
	e.Create = n.GetCreateStmt()
	if r.err == nil && e.Create == nil {
		r.failWith(r.unexpected(r.lo))
	}
	return r.result(e)
}

// columns walks the column list that comes next, overwrites in m what PostgreSQL does not know and returns the spans of it.
func (r *reader) columns(m *mask, cols *Columns, c *Clauses) []span {
	var masked []span
	list := r.group()
	kept := false
	comma := -1 // before the element
	for lo := list.lo; lo < list.hi && r.err == nil; {
		hi, depth := lo, 0
		for ; hi < list.hi; hi++ {
			if depth += r.element(&hi, list.hi); depth == 0 && r.is(hi, ",") {
				break
			}
		}
		ours := r.column(span{lo, hi}, cols, c, m, &masked)
		if comma >= 0 && (ours || !kept) {
			m.blank(int(r.toks[comma].pos), int(r.toks[comma].end))
		}
		kept = kept || !ours
		comma = hi
		lo = hi + 1
		if lo == list.hi && hi < list.hi && ours {
			r.failWith(r.unexpected(list.hi)) // a comma that nothing follows
		}
	}
	return masked
}

// element is nesting, but steps over a struct type, whose commas are inside of < and >.
func (r *reader) element(i *int, hi int) int {
	if r.is(*i, "struct") && r.opensAngle(*i+1) {
		t := typeReader{p: r.parser, i: *i, hi: hi}
		if _, ok, err := t.composite(); ok && err == nil {
			*i = t.i - 1
		}
		return 0
	}
	return r.nesting(*i)
}

// column deals with one element of a column list and says whether all of it is ours.
func (r *reader) column(s span, cols *Columns, c *Clauses, m *mask, masked *[]span) bool {
	whole := func() bool {
		m.blank(int(r.toks[s.lo].pos), int(r.toks[s.hi-1].end))
		*masked = append(*masked, s)
		return true
	}
	switch {
	case s.lo >= s.hi:
		return false
	case s.hi == s.lo+1 && r.is(s.lo, "*"):
		cols.Wildcard = true
		return whole()
	case r.seq(s.lo, "watermark", "for"):
		w := Watermark{Pos: int(r.toks[s.lo].pos)}
		sub := r.reader(s)
		sub.i += 2
		w.Column = sub.ident()
		sub.expect("as")
		if sub.err != nil {
			r.failWith(sub.err)
			return true
		}
		at := span{sub.i, s.hi}
		if r.seq(s.hi-2, "with", "ttl") && s.hi-2 > sub.i {
			w.TTL = true
			at.hi -= 2
		}
		n, err := r.expr(at, c)
		if err != nil {
			r.failWith(err)
			return true
		}
		w.Expr = n
		cols.Watermarks = append(cols.Watermarks, w)
		return whole()
	}
	for i, depth := s.lo, 0; i < s.hi; i++ {
		depth += r.element(&i, s.hi)
		if depth != 0 || !r.is(i, "as") || r.is(i-1, "always") && r.storedAt(i, s.hi) || r.is(i-1, "default") || i == s.lo {
			continue
		}
		from := i
		if r.is(i-1, "always") && r.is(i-2, "generated") {
			from = i - 2
		}
		at := span{i + 1, s.hi}
		// PRIMARY KEY may follow the expression.
		for k := at.lo; k < at.hi; k++ {
			if r.seq(k, "primary", "key") && k == s.hi-2 {
				at.hi = k
			}
		}
		if r.is(at.hi-1, "virtual") && at.hi-1 > at.lo {
			at.hi--
		}
		name, err := r.parser.ident(s.lo)
		if err != nil {
			r.failWith(err)
			return false
		}
		n, err := r.expr(at, c)
		if err != nil {
			r.failWith(err)
			return false
		}
		upTo := at.hi
		if upTo < s.hi && r.is(upTo, "virtual") {
			upTo++
		}
		cols.Generated = append(cols.Generated, Generated{Pos: int(r.toks[at.lo].pos), Column: name, Expr: n})
		m.blank(int(r.toks[from].pos), int(r.toks[upTo-1].end))
		*masked = append(*masked, span{from, upTo})
		break
	}
	return false
}

// storedAt says whether STORED follows the parentheses after the AS at i, or IDENTITY the AS: PostgreSQL's own form.
func (r *reader) storedAt(i, hi int) bool {
	if r.is(i+1, "identity") {
		return true
	}
	depth := 0
	for k := i + 1; k < hi; k++ {
		if depth += r.nesting(k); depth == 0 {
			return k+1 < hi && r.is(k+1, "stored")
		}
	}
	return false
}

func (r *reader) createTable(c *Clauses) (Ext, error) {
	e := &CreateTable{Pos: r.pos()}
	m := r.bytes(r.span)
	r.ifNotExists()
	r.name()
	if r.err != nil || r.next("of") || r.next("partition", "of") {
		return nil, nil // the grammar has the better complaint
	}
	var masked []span
	if r.next("(") {
		masked = r.columns(m, &e.Columns, c)
	}
	ours := e.Columns.Wildcard || len(masked) > 0
	for !r.done() {
		from := r.i
		switch {
		case r.accept("append", "only"):
			e.AppendOnly = true
		case r.next("on", "conflict"):
			r.i += 2
			e.OnConflict = r.conflict()
		case r.accept("with", "version", "column"):
			e.VersionColumns = r.names()
		case r.next("with", "("):
			e.With = append(e.With, r.with()...)
		case r.next("include"):
			e.Include = append(e.Include, r.include())
		case r.next("format"):
			e.Format = r.format()
		case r.next("engine", "="):
			r.i += 2
			e.Engine = r.label()
		case r.accept("from"):
			n := r.name()
			e.From = &n
			r.expect("table")
			e.External = r.literal()
		case r.accept("as"):
			r.i = r.hi
			continue
		default:
			r.skip()
			continue
		}
		if r.err != nil {
			return nil, r.err
		}
		ours = true
		m.blank(int(r.toks[from].pos), int(r.toks[r.i-1].end))
		masked = append(masked, span{from, r.i})
	}
	if r.err != nil {
		return nil, r.err
	}
	if !ours {
		return nil, nil
	}
	n := r.tree(m, "", c, masked...)
	e.Create, e.As = n.GetCreateStmt(), n.GetCreateTableAsStmt()
	if r.err == nil && e.Create == nil && e.As == nil {
		r.failWith(r.unexpected(r.lo))
	}
	return r.result(e)
}

// conflict takes what follows ON CONFLICT.
func (r *reader) conflict() ConflictAction {
	switch {
	case r.accept("overwrite"):
		return ConflictOverwrite
	case r.accept("ignore"), r.accept("do", "nothing"):
		return ConflictIgnore
	case r.accept("do", "update", "if", "not", "null"):
		return ConflictUpdateIfNotNull
	case r.accept("do", "update"):
		r.accept("full")
		return ConflictOverwrite
	}
	r.fail()
	return ConflictNone
}

func (r *reader) createMaterializedView(c *Clauses) (Ext, error) {
	e := &CreateMaterializedView{Pos: r.pos()}
	r.ifNotExists()
	r.name()
	if r.next("(") {
		r.skip()
	}
	if r.err != nil || !r.next("with", "(") {
		return nil, nil
	}
	from := r.i
	r.i++
	r.optionList(func(o Option) { e.With = append(e.With, o) }, func(o *BackfillOrder) { e.BackfillOrder = o })
	if r.err != nil {
		return nil, r.err
	}
	m := r.bytes(r.span)
	m.blank(int(r.toks[from].pos), int(r.toks[r.i-1].end))
	n := r.tree(m, "", c, span{from, r.i})
	e.Create = n.GetCreateTableAsStmt()
	if r.err == nil && e.Create == nil {
		r.failWith(r.unexpected(r.lo))
	}
	r.i = r.hi
	return r.result(e)
}

func (r *reader) createIndex(c *Clauses) (Ext, error) {
	e := &CreateIndex{Pos: r.pos()}
	m := r.bytes(r.span)
	var masked []span
	for !r.done() {
		from := r.i
		switch {
		case r.accept("distributed", "by"):
			list, err := r.exprs(r.group(), c)
			if r.err == nil && err != nil {
				r.failWith(err)
			}
			e.Distributed = list
		case r.next("with", "("):
			e.With = append(e.With, r.with()...)
		default:
			r.skip()
			continue
		}
		if r.err != nil {
			return nil, r.err
		}
		m.blank(int(r.toks[from].pos), int(r.toks[r.i-1].end))
		masked = append(masked, span{from, r.i})
	}
	if len(masked) == 0 {
		return nil, nil
	}
	n := r.tree(m, "", c, masked...)
	e.Create = n.GetIndexStmt()
	if r.err == nil && e.Create == nil {
		r.failWith(r.unexpected(r.lo))
	}
	return r.result(e)
}

func (r *reader) createSink(c *Clauses) (Ext, error) {
	e := &CreateSink{Pos: r.pos(), IfNotExists: r.ifNotExists(), Name: r.name()}
	if r.accept("into") {
		n := r.name()
		e.Into = &n
		if r.next("(") {
			e.IntoColumns = r.names()
		}
	}
	switch {
	case r.accept("from"):
		n := r.name()
		e.From = &n
	case r.accept("as"):
		e.Query, e.QueryText = r.embeddedQuery(c)
	default:
		r.fail()
	}
	e.With = r.with()
	e.Format = r.format()
	if e.With == nil && e.Format != nil {
		e.With = r.with()
	}
	return r.result(e)
}

// embeddedQuery takes a query up to a WITH list or a FORMAT of ours or the end.
func (r *reader) embeddedQuery(c *Clauses) (*ast.Node, string) {
	from := r.i
	for !r.done() && !r.next("with", "(") && !(r.next("format") && r.is(r.i+2, "encode")) {
		r.skip()
	}
	if r.err != nil {
		return nil, ""
	}
	n, err := r.query(span{from, r.i}, c)
	if err != nil {
		r.failWith(err)
		return nil, ""
	}
	return n, r.text[r.toks[from].pos:r.toks[r.i-1].end]
}

func (r *reader) createSubscription() (Ext, error) {
	e := &CreateSubscription{Pos: r.pos(), IfNotExists: r.ifNotExists(), Name: r.name()}
	if r.next("connection") {
		return nil, nil // PostgreSQL's own
	}
	r.expect("from")
	e.From = r.name()
	e.With = r.with()
	return r.result(e)
}
