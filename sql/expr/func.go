package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A Volatility says how often a function must be evaluated.
type Volatility uint8

const (
	Immutable Volatility = iota
	Stable               // constant within a statement: now(), current_user
	Volatile             // random()
)

// A Kernel computes a function over columns of n rows. For a strict function,
// rows with a NULL argument may be computed on garbage but come out NULL. A
// kernel reports a row's error through ctx.RowError(i, err): it returns nil when
// the row shall become NULL and evaluation go on. An argument column of one row
// may stand for n equal ones; the result has n rows.
type Kernel func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error)

// A Func is one overload of a function or operator.
type Func struct {
	OID      uint32 // stable, PostgreSQL's own where it has the function
	Name     string // PostgreSQL's name: "lower", "+", "~~"
	Operator bool   // Name is an operator symbol
	Args     []types.Type
	Variadic bool // the last argument repeats
	Ret      types.Type
	Strict   bool // NULL in, NULL out
	Volatile Volatility
	Kernel   Kernel
	// RetType computes the result type from the arguments' where Ret is polymorphic; nil: Ret.
	RetType func(args []types.Type) types.Type

	total  bool   // never fails: may be evaluated on rows that do not need it
	native native // compares Go values directly
}

// A TableFunc is a set-returning function: FROM f(args), or in a select list.
type TableFunc struct {
	OID     uint32
	Name    string
	Args    []types.Type
	Columns func(args []types.Type) types.Schema
	// Rows computes the rows for one set of argument values.
	Rows func(ctx *Ctx, args []types.Datum) (*chunk.Chunk, error)
}

// A System answers the functions that need a session or the catalogs
// (current_user, format_type, pg_get_indexdef, 'x'::regclass …). The engine implements it.
type System interface {
	CallSystem(name string, args []types.Datum, ret types.Type) (types.Datum, error)
}

// A Ctx is what an evaluation may depend on besides its input. The zero Ctx evaluates constants.
type Ctx struct {
	Style  *types.Style // time zone and formats; nil: defaults
	Params []types.Datum
	Now    int64       // transaction timestamp, µs since 2000-01-01 UTC
	Outer  []types.Row // rows of the enclosing queries, innermost first (OuterRef Level 1 = Outer[0])
	Sys    System      // nil: system functions are an error
	// Subquery runs a sub-plan with row as a new innermost outer row and returns all its rows; nil: not allowed here.
	Subquery func(s *Subquery, outer []types.Row) (*chunk.Chunk, error)
	// OnError: nil means that an error ends the evaluation. Otherwise it is told of
	// each row whose expression failed, and that row becomes NULL as a whole.
	OnError func(err error)
	failed  map[int]bool
	frame   frame         // where the rows being evaluated come from
	Seed    func() uint64 // randomness for random(), gen_random_uuid(); nil: an error
}

// An AggFunc is one overload of an aggregate function.
type AggFunc struct {
	OID     uint32
	Name    string
	Args    []types.Type
	Ret     types.Type
	RetType func(args []types.Type) types.Type // nil: Ret
	// New makes an accumulator of groups for a call with the given argument types.
	New func(args []types.Type, ret types.Type) Accumulator
	// Retractable: Update with a Delete undoes an Insert exactly. Where false
	// (min, max, and every DISTINCT or ordered call) a streaming operator keeps the
	// input values themselves in state.
	Retractable bool
	// OrderedSet: called as f(direct) WITHIN GROUP (ORDER BY values). The first Direct of Args are the
	// direct arguments; the Accumulator gets them as columns like the others, and
	// the rows in the order of the call, which the rest of Args are the keys of.
	OrderedSet bool
	Direct     int
}

// An Order is one sort key.
type Order struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

// An Agg is an aggregate call over columns of its input.
type Agg struct {
	Fn       *AggFunc
	Args     []int // input columns; empty: count(*)
	Typ      types.Type
	Distinct bool
	Filter   int     // boolean input column that must be true, or -1
	Order    []Order // ORDER BY inside the call; nil: none
}

// An Accumulator holds the state of one aggregate for many groups, densely
// numbered from 0. It is not safe for concurrent use.
type Accumulator interface {
	// Grow makes room for groups 0…n-1; new ones are empty.
	Grow(n int)
	// Update adds row sel[k] (or k if sel is nil) of args to group groups[k]; ops nil: all Insert.
	// Rows whose arguments are NULL count only where SQL says so.
	Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error
	// Output appends the value of group g to col, which has the call's type.
	Output(g int32, col chunk.Column) error
	// AppendState and LoadState move a group's state to and from bytes; LoadState returns the rest of b.
	AppendState(dst []byte, g int32) []byte
	LoadState(g int32, b []byte) ([]byte, error)
	// Reset empties group g for reuse.
	Reset(g int32)
}
