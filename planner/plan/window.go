package plan

import (
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

type (
	// A Window computes functions over the rows of a partition in an order; output: input
	// columns, then one column a function. Functions with other partitions or orders are in
	// Windows of their own, one over the other; those with other frames are not. Rows equal in
	// OrderBy are peers; without OrderBy all rows of a partition are.
	Window struct {
		Input       Node
		PartitionBy []int
		OrderBy     []expr.Order
		Funcs       []WindowFunc
		Names       []string
	}

	// An Expand repeats each input row once a grouping set. Output: input columns, then a
	// copy of each of Cols that is NULL where the set does not have it, then the number
	// of the set as a bigint. An Agg above that groups by the copies and the number
	// computes GROUPING SETS, ROLLUP and CUBE.
	Expand struct {
		Input Node
		Cols  []int   // all columns that any set has
		Sets  [][]int // indexes into Cols
		Names []string
	}

	// A Recursive computes WITH RECURSIVE, in batch only: the rows of Base, then those of
	// Step over the rows that came last (its WorkTables of the same ID), until there are none. All
	// false: UNION, a row that has been there is dropped. One Recursive may stand at several
	// places of a plan (a WITH query that is named twice), and each run has its own work table.
	Recursive struct {
		ID   int
		Base Node
		Step Node
		All  bool
		Out  types.Schema
	}

	// A WorkTable is what Step of a Recursive reads.
	WorkTable struct {
		ID  int
		Out types.Schema
	}
)

// A WindowFunc is one function of a Window.
type WindowFunc struct {
	// Name of the window function: row_number, rank, dense_rank, percent_rank, cume_dist, ntile,
	// lag, lead, first_value, last_value or nth_value; "": Agg over the frame.
	Name  string      // with Args of the types expr.ResolveWindow wants
	Args  []expr.Expr // over the input; for Name only
	Agg   expr.Agg    // for Name "", with its filter
	Typ   types.Type
	Frame Frame // for aggregates, first_value, last_value and nth_value
}

// A FrameMode says what frame offsets count.
type FrameMode uint8

const (
	Range FrameMode = iota
	Rows
	Groups
)

// A BoundKind is where a frame begins or ends.
type BoundKind uint8

const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// A Bound of a frame. Offset is for Preceding and Following, the same for all rows: a
// bigint; in Range what is added to the order column: bigint for integers, double
// precision for real and double precision, numeric, or an interval for dates and times.
// NULL and negative offsets are errors (22004, 22013) where the window is computed.
type Bound struct {
	Kind   BoundKind
	Offset expr.Expr
}

// An Exclusion says which rows of a frame are left out.
type Exclusion uint8

const (
	ExcludeNoOthers Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// A Frame is the rows around the current one that a function sees.
type Frame struct {
	Mode       FrameMode
	Start, End Bound
	Exclude    Exclusion
}

func (n *Window) Inputs() []Node    { return []Node{n.Input} }
func (n *Expand) Inputs() []Node    { return []Node{n.Input} }
func (n *Recursive) Inputs() []Node { return []Node{n.Base, n.Step} }
func (n *WorkTable) Inputs() []Node { return nil }

func (n *Window) Schema() types.Schema {
	in := n.Input.Schema()
	out := in[:len(in):len(in)]
	for i, f := range n.Funcs {
		out = append(out, types.Field{Name: n.Names[i], Type: f.Typ})
	}
	return out
}

func (n *Expand) Schema() types.Schema {
	in := n.Input.Schema()
	out := in[:len(in):len(in)]
	for i, c := range n.Cols {
		out = append(out, types.Field{Name: n.Names[i], Type: in[c].Type})
	}
	return append(out, types.Field{Name: n.Names[len(n.Cols)], Type: types.Int8})
}

func (n *Recursive) Schema() types.Schema { return n.Out }
func (n *WorkTable) Schema() types.Schema { return n.Out }
