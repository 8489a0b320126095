package parser

import (
	"strings"

	"streamdb/sql/parser/ast"
)

// extension reads a statement if it is one of ours; the Ext is nil if it is PostgreSQL's.
func (p *parser) extension(s span, c *Clauses) (Ext, error) {
	if p.toks[s.lo].kind != word {
		return nil, nil
	}
	r := p.reader(s)
	var buf [12]byte
	if len(p.src(s.lo)) > len(buf) {
		return nil, nil
	}
	switch string(lower(buf[:0], p.src(s.lo))) {
	case "create":
		return r.create(c)
	case "alter":
		return r.alter(c)
	case "drop":
		return r.drop()
	case "comment":
		return r.comment()
	case "show":
		return r.show(c)
	case "describe", "desc":
		return r.describe()
	case "explain":
		return r.explain()
	case "flush":
		r.i++
		return &Flush{r.pos()}, r.finish()
	case "recover":
		e := &Recover{Pos: r.pos()}
		r.i++
		if !r.done() {
			e.Kind = r.kind(MaterializedView, Table, Index, Sink, Source)
			e.Name = r.name()
		}
		return r.result(e)
	case "check":
		e := &Check{Pos: r.pos()}
		r.i++
		r.expect("materialized", "view")
		e.Name = r.name()
		return r.result(e)
	case "pause", "resume":
		e := &Backfill{Pos: r.pos(), Resume: r.next("resume")}
		r.i++
		if r.expect("backfill"); !r.done() {
			e.Name = r.name()
		}
		return r.result(e)
	case "wait":
		return r.wait()
	case "cancel":
		return r.cancelJobs()
	case "kill":
		return r.kill()
	case "copy":
		if p.seq(s.lo+1, "(", "subscribe") {
			return r.copySubscribe()
		}
	case "declare":
		if s.lo+3 < s.hi && p.seq(s.lo+2, "subscription", "cursor") {
			return r.declareSubscription(c)
		}
	case "fetch":
		return r.fetchWith()
	}
	return nil, nil
}

// result is what a statement's function returns: an Ext only without an error.
func (r *reader) result(e Ext) (Ext, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	return e, nil
}

// skip takes the next token and, if it opens a group, all of that.
func (r *reader) skip() {
	if r.nesting(r.i) > 0 {
		depth := 0
		for ; r.i < r.hi; r.i++ {
			if depth += r.nesting(r.i); depth == 0 {
				break
			}
		}
	}
	r.i = min(r.i+1, r.hi)
}

// tree hands the statement's masked text to the grammar.
func (r *reader) tree(m *mask, suffix string, c *Clauses, masked ...span) *ast.Node {
	if r.err != nil {
		return nil
	}
	if err := r.maskRest(m, c, masked); err != nil {
		r.failWith(err)
		return nil
	}
	n, err := r.sub("", m, suffix)
	if err != nil {
		r.failWith(err)
		return nil
	}
	return n
}

// maskRest masks the clauses inside of PostgreSQL's text in what lies between the given spans, which were dealt with.
func (r *reader) maskRest(m *mask, c *Clauses, masked []span) error {
	if !r.lex.clauses {
		return nil
	}
	from := r.lo
	for _, s := range append(masked, span{r.hi, r.hi}) {
		if s.lo > from {
			if err := r.maskClausesIn(span{from, s.lo}, r.lo, m, c); err != nil {
				return err
			}
		}
		from = max(from, s.hi)
	}
	return nil
}

func (r *reader) wait() (Ext, error) {
	w := &Wait{Pos: r.pos()}
	r.i++
	if w.Kind = r.kind(MaterializedView, Table, Index, Sink, Source); w.Kind != "" {
		w.Name = r.name()
	}
	return r.result(w)
}

func (r *reader) cancelJobs() (Ext, error) {
	e := &CancelJobs{Pos: r.pos()}
	r.i++
	if !r.accept("jobs") {
		r.expect("job")
	}
	for r.err == nil {
		e.IDs = append(e.IDs, r.integer())
		if !r.accept(",") {
			break
		}
	}
	return r.result(e)
}

// integer takes a non-negative integer.
func (r *reader) integer() int64 {
	if !r.kindIs(number) {
		r.fail()
		return 0
	}
	var n int64
	for _, c := range []byte(r.src(r.i)) {
		if !isDigit(c) || n > (1<<63-10)/10 {
			r.fail()
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	r.i++
	return n
}

func (r *reader) kill() (Ext, error) {
	e := &Kill{Pos: r.pos()}
	r.i++
	if r.kindIs(str) {
		e.Process = r.literal()
	} else if r.kindIs(number) {
		e.Process = r.src(r.i)
		r.integer()
	} else {
		r.fail()
	}
	return r.result(e)
}

func (r *reader) drop() (Ext, error) {
	e := &Drop{Pos: r.pos()}
	r.i++
	if e.Kind = r.kind(Source, Sink, Subscription, Connection, Secret); e.Kind == "" {
		return nil, nil
	}
	e.IfExists = r.accept("if", "exists")
	e.Names = append(e.Names, r.name())
	for r.accept(",") {
		e.Names = append(e.Names, r.name())
	}
	if e.Cascade = r.accept("cascade"); !e.Cascade {
		r.accept("restrict")
	}
	return r.result(e)
}

func (r *reader) comment() (Ext, error) {
	e := &Comment{Pos: r.pos()}
	r.i++
	if !r.accept("on") {
		return nil, nil
	}
	if e.Kind = r.kind(Source, Sink, Subscription, Connection, Secret); e.Kind == "" || e.Kind == Subscription && r.is(r.i+1, ".") {
		return nil, nil
	}
	e.Name = r.name()
	r.expect("is")
	if !r.accept("null") {
		s := r.literal()
		e.Text = &s
	}
	return r.result(e)
}

func (r *reader) copySubscribe() (Ext, error) {
	e := &CopySubscribe{Pos: r.pos()}
	r.i += 3
	r.accept("to")
	e.Name = r.name()
	if r.accept("with") || r.next("(") {
		e.With = r.flags()
	}
	r.expect(")", "to", "stdout")
	if r.accept("with") || r.next("(") {
		e.Copy = r.flags()
	}
	return r.result(e)
}

// flags takes a list of options whose values may stand without an equals sign, as in COPY and EXPLAIN.
func (r *reader) flags() []Option {
	var out []Option
	r.expect("(")
	for r.err == nil {
		o := Option{Pos: r.here(), Kind: Flag, Value: "true"}
		o.ValuePos = o.Pos
		o.Name = r.label()
		if r.accept("=") || !r.next(",") && !r.next(")") {
			r.value(&o)
		}
		out = append(out, o)
		if !r.accept(",") {
			break
		}
	}
	r.expect(")")
	return out
}

func (r *reader) declareSubscription(c *Clauses) (Ext, error) {
	e := &DeclareSubscriptionCursor{Pos: r.pos()}
	r.i++
	e.Name = r.ident()
	r.expect("subscription", "cursor", "for")
	e.Subscription = r.name()
	if r.accept("full") {
		e.Full = true
	} else if r.accept("since") && r.err == nil {
		n, err := r.expr(span{r.i, r.hi}, c)
		if err != nil {
			return nil, err
		}
		e.Since, r.i = n, r.hi
	}
	return r.result(e)
}

func (r *reader) fetchWith() (Ext, error) {
	e := &FetchWith{Pos: r.pos()}
	m := r.bytes(r.span)
	for r.i++; !r.next("with", "("); r.i++ {
		if r.done() {
			return nil, nil
		}
	}
	from := r.here()
	e.With = r.with()
	if err := r.finish(); err != nil {
		return nil, err
	}
	m.blank(from, int(r.toks[r.hi-1].end))
	n := r.tree(m, "", &Clauses{})
	if e.Fetch = n.GetFetchStmt(); e.Fetch == nil {
		r.failWith(r.unexpected(r.lo))
	}
	return r.result(e)
}

// shows are the lists that SHOW knows, in words.
var shows = [...]string{"TABLES", "MATERIALIZED VIEWS", "VIEWS", "INDEXES", "SOURCES", "SINKS", "SUBSCRIPTIONS", "SCHEMAS", "DATABASES", "FUNCTIONS",
	"COLUMNS", "JOBS", "PROCESSLIST", "PARAMETERS", "CLUSTER", "INTERNAL TABLES", "CONNECTIONS", "SECRETS", "CURSORS", "SUBSCRIPTION CURSORS"}

func (r *reader) show(c *Clauses) (Ext, error) {
	r.i++
	if r.accept("create") {
		e := &ShowCreate{Pos: r.pos()}
		if e.Kind = r.kind(Table, MaterializedView, View, Index, Source, Sink, Subscription, Connection, Function); e.Kind == "" {
			r.fail()
		}
		e.Name = r.name()
		return r.result(e)
	}
	e := &Show{Pos: r.pos()}
	for _, w := range shows {
		if r.accept(strings.Fields(strings.ToLower(w))...) {
			e.What = w
			break
		}
	}
	if e.What == "" && r.accept("index") {
		e.What = "INDEXES"
	}
	if e.What == "" {
		return nil, nil
	}
	if r.accept("from") || r.accept("in") {
		n := r.name()
		e.From = &n
	} else if e.What == "COLUMNS" {
		r.fail()
	}
	if r.accept("like") {
		if r.err == nil && r.i < r.hi {
			e.LikePos = r.here()
		}
		s := r.literal()
		e.Like = &s
	}
	if r.accept("where") {
		n, err := r.expr(span{r.i, r.hi}, c)
		if err != nil {
			return nil, err
		}
		e.Where, r.i = n, r.hi
	}
	return r.result(e)
}

func (r *reader) describe() (Ext, error) {
	e := &Describe{Pos: r.pos()}
	r.i++
	if r.i+1 < r.hi && !r.is(r.i+1, ".") {
		e.Fragments = r.accept("fragments")
	}
	e.Name = r.name()
	return r.result(e)
}

func (r *reader) explain() (Ext, error) {
	e := &Explain{Pos: r.pos()}
	r.i++
	if r.next("(") && !r.is(r.i+1, "select") && !r.is(r.i+1, "with") && !r.is(r.i+1, "values") && !r.is(r.i+1, "(") {
		e.Options = r.flags()
		for _, o := range e.Options {
			on := o.Value != "false" && o.Value != "off" && o.Value != "0"
			switch o.Name {
			case "analyze":
				e.Analyze = on
			case "verbose":
				e.Verbose = on
			}
		}
	} else {
		e.Analyze = r.accept("analyze") || r.accept("analyse")
		e.Verbose = r.accept("verbose")
		if e.Analyze && r.next("(") && !r.is(r.i+1, "select") && !r.is(r.i+1, "with") && !r.is(r.i+1, "values") && !r.is(r.i+1, "(") {
			e.Options = r.flags()
		}
	}
	if r.done() || r.next("explain") {
		r.fail()
		return nil, r.err
	}
	if k := r.kind(MaterializedView, View, Index, Sink, Source, Subscription); k != "" {
		e.Kind, e.Name = k, r.name()
		return r.result(e)
	}
	st, err := r.inner(span{r.i, r.hi})
	if err != nil {
		return nil, err
	}
	if !explainable(st) {
		r.fail()
	}
	e.Stmt, r.i = st, r.hi
	return r.result(e)
}

// inner parses a statement inside of another.
func (p *parser) inner(s span) (*Statement, error) {
	st := p.statement(s)
	ext, err := p.extension(s, &st.Clauses)
	if err != nil {
		return nil, err
	}
	if st.Ext = ext; ext != nil {
		return &st, nil
	}
	m := p.bytes(s)
	if err := p.maskClauses(s, m, &st.Clauses); err != nil {
		return nil, err
	}
	if st.Node, err = p.sub("", m, ""); err != nil {
		return nil, err
	}
	return &st, nil
}

func explainable(s *Statement) bool {
	switch s.Ext.(type) {
	case nil:
	case *CreateTable, *CreateSource, *CreateMaterializedView, *CreateIndex, *CreateSink, *AlterQuery, *CopySubscribe:
		return true
	default:
		return false
	}
	switch s.Node.Node.(type) {
	case *ast.Node_SelectStmt, *ast.Node_InsertStmt, *ast.Node_UpdateStmt, *ast.Node_DeleteStmt, *ast.Node_MergeStmt, *ast.Node_DeclareCursorStmt,
		*ast.Node_CreateTableAsStmt, *ast.Node_RefreshMatViewStmt, *ast.Node_ExecuteStmt, *ast.Node_CreateStmt, *ast.Node_IndexStmt, *ast.Node_ViewStmt:
		return true
	}
	return false
}
