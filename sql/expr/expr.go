// Package expr has typed scalar expressions and aggregates, and evaluates them a
// chunk at a time.
//
// The one idea: an expression is plain data (the binder builds it, planner
// passes rewrite it); Eval is one type switch that turns it into a column by
// calling typed kernels from the function registry.
package expr

import (
	"streamdb/sql/types"
)

// An Expr computes one column from a chunk. Exprs are immutable and shared.
type Expr interface {
	Type() types.Type
}

type (
	// A ColRef is column Index of the input chunk. Over a join's condition the
	// left input's columns come first.
	ColRef struct {
		Index int
		Typ   types.Type
		Name  string // for printing only: "flights.origin"
	}

	// A Const is a literal. Val is NULL for a NULL of type Typ.
	Const struct {
		Val types.Datum
		Typ types.Type
	}

	// A Param is $Index (from 1) of a prepared statement.
	Param struct {
		Index int
		Typ   types.Type
	}

	// An OuterRef is column Index of the row of the query Level levels out (1:
	// the directly enclosing one); only batch queries have them.
	OuterRef struct {
		Level, Index int
		Typ          types.Type
		Name         string
	}

	// A Call applies a function or operator. Its arguments already have the
	// function's argument types.
	Call struct {
		Fn   *Func
		Args []Expr
		Typ  types.Type
	}

	// A Cast converts Arg to Typ, modifier included.
	Cast struct {
		Arg      Expr
		Typ      types.Type
		Explicit bool // x::t or CAST; else an assignment or implicit cast (length rules differ)
	}

	// A Logic is the three-valued AND or OR of two or more arguments.
	Logic struct {
		Or   bool
		Args []Expr
	}

	// A Not is three-valued NOT.
	Not struct{ Arg Expr }

	// An IsNull is IS NULL, or IS NOT NULL if Negate. IS [NOT] TRUE/FALSE/UNKNOWN are functions.
	IsNull struct {
		Arg    Expr
		Negate bool
	}

	// A Case is the searched CASE; the simple form has been bound to equalities.
	// Branches are evaluated only for the rows that reach them.
	Case struct {
		Whens []When
		Else  Expr // nil: NULL
		Typ   types.Type
	}

	// A Coalesce gives the first argument that is not NULL, evaluating no more than it needs.
	Coalesce struct {
		Args []Expr
		Typ  types.Type
	}

	// An InList is Arg [NOT] IN (List), by equality Eq.
	InList struct {
		Arg    Expr
		List   []Expr
		Eq     *Func
		Negate bool
	}

	// An ArrayExpr is ARRAY[Elems].
	ArrayExpr struct {
		Elems []Expr
		Typ   types.Type
	}

	// A Quantified is Left Op ANY (Array), or ALL if All.
	Quantified struct {
		Left, Array Expr
		Op          *Func
		All         bool
	}

	// A Subquery is a query inside an expression. Plan is a plan.Node (this
	// package knows no plans); Ctx.Subquery runs it.
	Subquery struct {
		Kind SubqueryKind
		Plan any
		Left []Expr // SubqueryAny, SubqueryAll: the row compared with each row of the query
		Ops  []*Func
		Typ  types.Type
		// Correlated: it has OuterRefs, so it runs once a row instead of once.
		Correlated bool
	}
)

// A When is one branch of a Case.
type When struct{ Cond, Then Expr }

// A SubqueryKind says what a Subquery's rows become.
type SubqueryKind uint8

const (
	SubqueryScalar SubqueryKind = iota // the one value of the one row; NULL without a row
	SubqueryExists
	SubqueryAny // IN, = ANY
	SubqueryAll
	SubqueryArray // ARRAY(SELECT …)
)

func (e *ColRef) Type() types.Type     { return e.Typ }
func (e *Const) Type() types.Type      { return e.Typ }
func (e *Param) Type() types.Type      { return e.Typ }
func (e *OuterRef) Type() types.Type   { return e.Typ }
func (e *Call) Type() types.Type       { return e.Typ }
func (e *Cast) Type() types.Type       { return e.Typ }
func (e *Logic) Type() types.Type      { return types.Bool }
func (e *Not) Type() types.Type        { return types.Bool }
func (e *IsNull) Type() types.Type     { return types.Bool }
func (e *Case) Type() types.Type       { return e.Typ }
func (e *Coalesce) Type() types.Type   { return e.Typ }
func (e *InList) Type() types.Type     { return types.Bool }
func (e *ArrayExpr) Type() types.Type  { return e.Typ }
func (e *Quantified) Type() types.Type { return types.Bool }
func (e *Subquery) Type() types.Type   { return e.Typ }
