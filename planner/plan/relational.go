// Package plan is the data between the planner and those who run plans:
// relational nodes (SELECT runs them directly), streaming nodes and the graph of
// fragments. It has no behaviour beyond printing itself.
package plan

import (
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A Node is a relational operator.
type Node interface {
	Schema() types.Schema
	Inputs() []Node
}

// A JoinKind says which unmatched rows a join keeps.
type JoinKind uint8

const (
	Inner JoinKind = iota
	Left
	Right
	Full
	Semi
	Anti
)

type (
	// A Scan reads a relation with rows (Table, MaterializedView, Index) or a
	// System relation, or a Source in a streaming plan.
	Scan struct {
		Rel   *catalog.Relation
		Cols  []int  // columns of Rel that come out, in order
		Alias string // for printing
		// Access path, set by the planner for batch queries; nil: whole relation.
		// Rel then is the relation whose key is read (an Index where one was chosen).
		Ranges []KeyRange
	}

	// Values gives literal rows; no rows and no columns are possible.
	Values struct {
		Out  types.Schema
		Rows [][]expr.Expr
	}

	Filter struct {
		Input Node
		Cond  expr.Expr
	}

	Project struct {
		Input Node
		Exprs []expr.Expr
		Names []string
	}

	// A Join's output is the left columns, then the right ones (Semi, Anti: left only).
	Join struct {
		Kind        JoinKind
		Left, Right Node
		On          expr.Expr // over left ++ right columns; nil: true
		// Equality keys taken out of On by the planner, pairwise; NullSafe[i]: IS NOT DISTINCT FROM.
		LeftKeys, RightKeys []int
		NullSafe            []bool
		// Lateral: Right has OuterRefs (Level 1) to Left's columns and runs once a left row. Batch only.
		Lateral bool
	}

	// An Agg groups by columns of its input; output: GroupBy columns, then one column an aggregate.
	// GroupBy nil with Global: exactly one row, also for no input.
	Agg struct {
		Input   Node
		GroupBy []int
		Aggs    []expr.Agg
		Names   []string // of the aggregates' columns
	}

	// Distinct keeps one row of equals; On (columns): DISTINCT ON, the first in Order; nil: all columns.
	Distinct struct {
		Input Node
		On    []int
		Order []expr.Order
	}

	Sort struct {
		Input Node
		By    []expr.Order
	}

	// Limit passes Count rows after skipping Offset; nil: no limit, no offset. Both are
	// bigint expressions without column references.
	Limit struct {
		Input         Node
		Count, Offset expr.Expr
		WithTies      bool // by the order of the Sort below
	}

	// A SetOp combines inputs of equal column types. Union without All is Distinct over it.
	SetOp struct {
		Op  SetOpKind
		All bool
		Ins []Node
		Out types.Schema
	}

	// FuncScan calls a set-returning function once (FROM f(args)).
	FuncScan struct {
		Fn         *expr.TableFunc
		Args       []expr.Expr
		Out        types.Schema // with a last bigint column if Ordinality
		Ordinality bool
	}

	// ProjectSet evaluates set-returning functions of a select list: for each input
	// row as many rows as the longest set, shorter ones padded with NULL.
	// Output: input columns, then one column a function.
	ProjectSet struct {
		Input Node
		Fns   []*expr.TableFunc
		Args  [][]expr.Expr
		Names []string
	}
)

// A SetOpKind is UNION, INTERSECT or EXCEPT.
type SetOpKind uint8

const (
	Union SetOpKind = iota
	Intersect
	Except
)

// A KeyRange restricts a scan to keys whose leading columns equal Eq and whose
// next column lies between Lo and Hi, by value, whatever the direction of the key; NULL
// is in no range. Ranges may overlap; a row comes once. Expressions have no column
// references; a NULL bound gives no rows.
type KeyRange struct {
	Eq           []expr.Expr
	Lo, Hi       expr.Expr // nil: unbounded
	LoInc, HiInc bool
}

func (n *Scan) Inputs() []Node       { return nil }
func (n *Values) Inputs() []Node     { return nil }
func (n *Filter) Inputs() []Node     { return []Node{n.Input} }
func (n *Project) Inputs() []Node    { return []Node{n.Input} }
func (n *Join) Inputs() []Node       { return []Node{n.Left, n.Right} }
func (n *Agg) Inputs() []Node        { return []Node{n.Input} }
func (n *Distinct) Inputs() []Node   { return []Node{n.Input} }
func (n *Sort) Inputs() []Node       { return []Node{n.Input} }
func (n *Limit) Inputs() []Node      { return []Node{n.Input} }
func (n *SetOp) Inputs() []Node      { return n.Ins }
func (n *FuncScan) Inputs() []Node   { return nil }
func (n *ProjectSet) Inputs() []Node { return []Node{n.Input} }

func (n *Scan) Schema() types.Schema   { return n.Rel.Fields().Project(n.Cols) }
func (n *Values) Schema() types.Schema { return n.Out }
func (n *Filter) Schema() types.Schema { return n.Input.Schema() }
func (n *Project) Schema() types.Schema {
	out := make(types.Schema, len(n.Exprs))
	for i, e := range n.Exprs {
		out[i] = types.Field{Name: n.Names[i], Type: e.Type()}
	}
	return out
}
func (n *Join) Schema() types.Schema {
	l := n.Left.Schema()
	if n.Kind == Semi || n.Kind == Anti {
		return l
	}
	return append(l[:len(l):len(l)], n.Right.Schema()...)
}
func (n *Agg) Schema() types.Schema {
	out := n.Input.Schema().Project(n.GroupBy)
	for i, a := range n.Aggs {
		out = append(out, types.Field{Name: n.Names[i], Type: a.Typ})
	}
	return out
}
func (n *Distinct) Schema() types.Schema { return n.Input.Schema() }
func (n *Sort) Schema() types.Schema     { return n.Input.Schema() }
func (n *Limit) Schema() types.Schema    { return n.Input.Schema() }
func (n *SetOp) Schema() types.Schema    { return n.Out }
func (n *FuncScan) Schema() types.Schema { return n.Out }
func (n *ProjectSet) Schema() types.Schema {
	in := n.Input.Schema()
	out := in[:len(in):len(in)]
	for i, f := range n.Fns {
		args := make([]types.Type, len(n.Args[i]))
		for j, a := range n.Args[i] {
			args[j] = a.Type()
		}
		out = append(out, types.Field{Name: n.Names[i], Type: f.Columns(args)[0].Type})
	}
	return out
}
