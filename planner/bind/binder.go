// Package bind turns PostgreSQL's syntax tree into typed relational plans: it
// resolves names against a catalog snapshot, types every expression, and says in
// PostgreSQL's words what is wrong and where.
//
// The one idea: a FROM clause becomes a plan whose output row is numbered from
// 0, and a scope maps names to those numbers. Scopes form a chain; a name found
// n scopes out becomes an OuterRef of level n. Aggregates, window and set-returning
// functions are collected while the expressions around them are bound over the
// FROM row, and are moved below those expressions afterwards.
package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// Options is what binding depends on besides the statement.
type Options struct {
	Cat        *catalog.Snapshot
	SearchPath []string
	// ParamTypes are the types a client gave for $1, $2 …; a zero Type (or one of
	// type unknown) is inferred.
	ParamTypes []types.Type
	// Ctx gives the style in which literals are read. nil: a literal whose meaning
	// depends on the session is read when the plan runs, so the plan may be kept.
	Ctx *expr.Ctx
	// Streaming: the query of a view or a sink. Sources may be read, parameters may not be used.
	Streaming bool
	User      string
	// Clauses of the statement that Query's tree is of; Bind takes them from its statement.
	Clauses parser.Clauses
	// OnRelation is told of each relation the statement itself names, the insides of
	// views excluded; nil: nobody asks.
	OnRelation func(*catalog.Relation)
}

// binder holds what is common to one statement and the views it expands.
type binder struct {
	o      Options
	params []types.Type
	pos    map[expr.Expr]int // where the text of a column reference begins
	views  []catalog.ID      // being expanded, outermost first
	works  *int              // how many recursive queries there are, views included
}

func newBinder(o Options) *binder {
	b := &binder{o: o, params: slices.Clone(o.ParamTypes), pos: map[expr.Expr]int{}, works: new(int)}
	for i, t := range b.params {
		if t.OID == types.OIDUnknown {
			b.params[i] = types.Type{}
		}
	}
	return b
}

// Bind binds a SELECT, VALUES, TABLE, INSERT, UPDATE or DELETE statement, and
// returns the types of its parameters.
func Bind(stmt parser.Statement, o Options) (plan.Statement, []types.Type, error) {
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, nil, err
	}
	b := newBinder(o)
	out, err := b.statement(stmt.Node)
	if err != nil {
		return nil, nil, err
	}
	for i, t := range b.params {
		if t.OID == 0 {
			return nil, nil, sqlerr.New(sqlerr.IndeterminateType, "could not determine data type of parameter $%d", i+1)
		}
	}
	return out, b.params, nil
}

func (b *binder) statement(n *ast.Node) (plan.Statement, error) {
	if n == nil {
		return nil, sqlerr.Unsupported("binding this statement")
	}
	switch s := n.Node.(type) {
	case *ast.Node_SelectStmt:
		return b.query(s.SelectStmt)
	case *ast.Node_InsertStmt:
		return b.insert(s.InsertStmt)
	case *ast.Node_UpdateStmt:
		return b.update(s.UpdateStmt)
	case *ast.Node_DeleteStmt:
		return b.delete(s.DeleteStmt)
	case *ast.Node_MergeStmt:
		return nil, sqlerr.Unsupported("MERGE")
	}
	return nil, sqlerr.Unsupported("binding %T", n.Node)
}

// Query binds the query of a view, a COPY or an EXPLAIN. It must have no
// parameter that ParamTypes does not type.
func Query(n *ast.Node, o Options) (*plan.Query, error) {
	if err := refuseClauses(o.Clauses); err != nil {
		return nil, err
	}
	b := newBinder(o)
	s, ok := n.GetNode().(*ast.Node_SelectStmt)
	if !ok {
		return nil, sqlerr.New(sqlerr.Syntax, "a query is expected here")
	}
	return b.query(s.SelectStmt)
}

// query binds a whole query. The names of hidden columns do not reach the result.
func (b *binder) query(s *ast.SelectStmt) (*plan.Query, error) {
	r, err := b.selectStmt(s, nil, nil, false)
	if err != nil {
		return nil, err
	}
	q := &plan.Query{Root: r.node, Names: make([]string, len(r.cols)), Origin: make([]plan.Origin, len(r.cols))}
	for i, c := range r.cols {
		q.Names[i], q.Origin[i] = c.name, c.origin
	}
	return q, nil
}

// param is the reference to $n at a position.
func (b *binder) param(n, pos int) (expr.Expr, error) {
	if b.o.Streaming || len(b.views) > 0 {
		return nil, sqlerr.New("42P02", "there is no parameter $%d", n).At(pos)
	}
	if n < 1 || n > 65535 {
		return nil, sqlerr.New("42P02", "there is no parameter $%d", n).At(pos)
	}
	for len(b.params) < n {
		b.params = append(b.params, types.Type{})
	}
	t := b.params[n-1]
	if t.OID == 0 {
		t = types.Null
	}
	p := &expr.Param{Index: n, Typ: t}
	b.pos[p] = pos
	return p, nil
}

// setParam gives the untyped parameter p the type its context wants.
func (b *binder) setParam(p *expr.Param, t types.Type) (expr.Expr, error) {
	t = t.Base()
	switch have := b.params[p.Index-1]; {
	case have.OID == 0:
		b.params[p.Index-1] = t
	case !have.Equal(t):
		return nil, sqlerr.New("42P08", "inconsistent types deduced for parameter $%d", p.Index).
			WithDetail("%s versus %s", types.FormatType(have), types.FormatType(t)).At(b.posOf(p))
	}
	q := &expr.Param{Index: p.Index, Typ: t}
	b.pos[q] = b.posOf(p)
	return q, nil
}

func (b *binder) posOf(e expr.Expr) int {
	if p, ok := b.pos[e]; ok {
		return p
	}
	return -1
}

// at sets the position of err, unless it has one.
func at(err error, pos int) error {
	if err == nil {
		return nil
	}
	e := sqlerr.From(err)
	if e.Pos != 0 || pos < 0 {
		return err
	}
	c := *e
	return c.At(pos)
}

// strs are the strings of a list of String nodes.
func strs(list []*ast.Node) []string {
	out := make([]string, 0, len(list))
	for _, n := range list {
		if s := n.GetString_(); s != nil {
			out = append(out, s.Sval)
		}
	}
	return out
}
