// Package chunk holds rows column by column, with the change each row makes.
//
// The one idea: operators loop over typed slices. A Column is a *Vec[T] for the
// T of its type's physical kind, so one generic kernel serves many SQL types.
package chunk

import (
	"fmt"

	"streamdb/sql/types"
)

// An Op says what a row does to the relation it belongs to. An update is a
// Delete and an Insert of the same key.
type Op uint8

const (
	Insert Op = iota
	Delete
)

// Sign is +1 for rows that arrive and -1 for rows that leave.
func (op Op) Sign() int64 { return 1 - 2*int64(op) }

// A Column is a *Vec[T]. Kernels take the Vec; the interface is for code that
// does not care about T.
type Column interface {
	Type() types.Type
	Len() int
	Null(i int) bool
	Datum(i int) types.Datum // for edges only

	Append(d types.Datum)         // for edges only
	AppendNull()                  // appends NULL
	AppendFrom(src Column, i int) // appends src's value i; src has the same kind
	Gather(sel []int) Column      // a new column of the selected rows
	Slice(from, to int) Column    // shares memory
	HasNulls() bool               // some row is NULL
	As(t types.Type) Column       // the same values under another type of the same kind; shares memory
}

// A Vec is the one implementation of Column. Kernels work on Data and Nulls
// directly; Data[i] is T's zero value where Nulls[i] is set.
type Vec[T any] struct {
	Data  []T
	Nulls []bool // nil: no row is NULL
	typ   types.Type
}

// NewVec makes a column of type t over data; nulls may be nil. T must be t's kind.
func NewVec[T any](t types.Type, data []T, nulls []bool) *Vec[T] {
	return &Vec[T]{Data: data, Nulls: nulls, typ: t}
}

// Of returns c as the Vec it is. It panics if T is not c's kind: the binder has typed every expression.
func Of[T any](c Column) *Vec[T] { return c.(*Vec[T]) }

// New makes an empty column of type t with room for n rows.
func New(t types.Type, n int) Column {
	switch t.Kind() {
	case types.KindBool:
		return NewVec(t, make([]bool, 0, n), nil)
	case types.KindInt:
		return NewVec(t, make([]int64, 0, n), nil)
	case types.KindFloat:
		return NewVec(t, make([]float64, 0, n), nil)
	case types.KindString:
		return NewVec(t, make([]string, 0, n), nil)
	case types.KindDecimal:
		return NewVec(t, make([]types.Decimal, 0, n), nil)
	case types.KindInterval:
		return NewVec(t, make([]types.Interval, 0, n), nil)
	case types.KindList:
		return NewVec(t, make([]*types.List, 0, n), nil)
	}
	panic(fmt.Sprintf("chunk: no column for type %d", t.OID))
}

// Nulls makes a column of n NULLs.
func Nulls(t types.Type, n int) Column {
	c := New(t, n)
	for range n {
		c.AppendNull()
	}
	return c
}

// Repeat makes a column that holds d n times.
func Repeat(t types.Type, d types.Datum, n int) Column {
	c := New(t, n)
	for range n {
		c.Append(d)
	}
	return c
}

func (v *Vec[T]) Type() types.Type { return v.typ }
func (v *Vec[T]) Len() int         { return len(v.Data) }
func (v *Vec[T]) Null(i int) bool  { return v.Nulls != nil && v.Nulls[i] }
func (v *Vec[T]) HasNulls() bool {
	for _, n := range v.Nulls {
		if n {
			return true
		}
	}
	return false
}

func (v *Vec[T]) Datum(i int) types.Datum {
	if v.Null(i) {
		return types.Datum{}
	}
	switch x := any(v.Data[i]).(type) {
	case bool:
		return types.NewBool(x)
	case int64:
		return types.NewInt(x)
	case float64:
		return types.NewFloat(x)
	case string:
		return types.NewString(x)
	case types.Decimal:
		return types.NewDecimal(x)
	case types.Interval:
		return types.NewInterval(x)
	case *types.List:
		return types.NewList(x)
	}
	panic("chunk: unknown kind")
}

func (v *Vec[T]) Append(d types.Datum) {
	if d.IsNull() {
		v.AppendNull()
		return
	}
	var x any
	switch d.Kind() {
	case types.KindBool:
		x = d.Bool()
	case types.KindInt:
		x = d.Int()
	case types.KindFloat:
		x = d.Float()
	case types.KindString:
		x = d.Str()
	case types.KindDecimal:
		x = d.Decimal()
	case types.KindInterval:
		x = d.Interval()
	case types.KindList:
		x = d.List()
	}
	v.AppendValue(x.(T))
}

// AppendValue appends a value that is not NULL.
func (v *Vec[T]) AppendValue(x T) {
	v.Data = append(v.Data, x)
	if v.Nulls != nil {
		v.Nulls = append(v.Nulls, false)
	}
}

func (v *Vec[T]) AppendNull() {
	if v.Nulls == nil {
		v.Nulls = make([]bool, len(v.Data), cap(v.Data)+1)
	}
	var zero T
	v.Data = append(v.Data, zero)
	v.Nulls = append(v.Nulls, true)
}

func (v *Vec[T]) AppendFrom(src Column, i int) {
	s := src.(*Vec[T])
	if s.Null(i) {
		v.AppendNull()
		return
	}
	v.AppendValue(s.Data[i])
}

func (v *Vec[T]) Gather(sel []int) Column {
	out := &Vec[T]{typ: v.typ, Data: make([]T, len(sel))}
	for i, s := range sel {
		out.Data[i] = v.Data[s]
	}
	if v.Nulls != nil {
		out.Nulls = make([]bool, len(sel))
		for i, s := range sel {
			out.Nulls[i] = v.Nulls[s]
		}
	}
	return out
}

func (v *Vec[T]) Slice(from, to int) Column {
	out := &Vec[T]{typ: v.typ, Data: v.Data[from:to:to]}
	if v.Nulls != nil {
		out.Nulls = v.Nulls[from:to:to]
	}
	return out
}

func (v *Vec[T]) As(t types.Type) Column { return &Vec[T]{typ: t, Data: v.Data, Nulls: v.Nulls} }

// A Chunk is a batch of changes: row i applies Op(i) to the values at i of every
// column. It is immutable once emitted and has no hidden rows.
type Chunk struct {
	Ops  []Op // nil: all Insert
	Cols []Column
	N    int // rows; set also where there are no columns
}

// Make makes a chunk of inserts from columns of equal length.
func Make(cols ...Column) *Chunk {
	c := &Chunk{Cols: cols}
	if len(cols) > 0 {
		c.N = cols[0].Len()
	}
	return c
}

func (c *Chunk) Len() int { return c.N }

// Op says what row i does.
func (c *Chunk) Op(i int) Op {
	if c.Ops == nil {
		return Insert
	}
	return c.Ops[i]
}

// Row boxes row i; for edges only.
func (c *Chunk) Row(i int) types.Row {
	r := make(types.Row, len(c.Cols))
	for j, col := range c.Cols {
		r[j] = col.Datum(i)
	}
	return r
}

// Gather returns the selected rows, in the order of sel.
func (c *Chunk) Gather(sel []int) *Chunk {
	out := &Chunk{Cols: make([]Column, len(c.Cols)), N: len(sel)}
	for i, col := range c.Cols {
		out.Cols[i] = col.Gather(sel)
	}
	if c.Ops != nil {
		out.Ops = make([]Op, len(sel))
		for i, s := range sel {
			out.Ops[i] = c.Ops[s]
		}
	}
	return out
}

// Slice returns rows [from, to); it shares memory.
func (c *Chunk) Slice(from, to int) *Chunk {
	out := &Chunk{Cols: make([]Column, len(c.Cols)), N: to - from}
	for i, col := range c.Cols {
		out.Cols[i] = col.Slice(from, to)
	}
	if c.Ops != nil {
		out.Ops = c.Ops[from:to:to]
	}
	return out
}

// Project returns the given columns with the same ops; it shares memory.
func (c *Chunk) Project(cols []int) *Chunk {
	out := &Chunk{Ops: c.Ops, Cols: make([]Column, len(cols)), N: c.N}
	for i, j := range cols {
		out.Cols[i] = c.Cols[j]
	}
	return out
}

// A Builder collects rows into chunks of at most size rows. Append columns' values
// through Cols (one value each), then call Done once a row.
type Builder struct {
	Cols []Column
	ops  []Op
	del  bool // ops holds a Delete
	n    int
	size int
	typs []types.Type
}

// NewBuilder makes a builder of chunks with the given column types.
func NewBuilder(typs []types.Type, size int) *Builder {
	b := &Builder{size: size, typs: typs}
	b.reset()
	return b
}

func (b *Builder) reset() {
	b.Cols = make([]Column, len(b.typs))
	for i, t := range b.typs {
		b.Cols[i] = New(t, min(b.size, 1024))
	}
	b.ops, b.del, b.n = nil, false, 0
}

// Done ends a row whose values were appended to every column of Cols. It
// returns a chunk when one is full, and nil otherwise.
func (b *Builder) Done(op Op) *Chunk {
	b.ops = append(b.ops, op)
	b.del = b.del || op == Delete
	if b.n++; b.n >= b.size {
		return b.Take()
	}
	return nil
}

// AppendRow appends a boxed row; for edges and tests.
func (b *Builder) AppendRow(op Op, r types.Row) *Chunk {
	for i, d := range r {
		b.Cols[i].Append(d)
	}
	return b.Done(op)
}

// AppendFrom appends row i of c.
func (b *Builder) AppendFrom(op Op, c *Chunk, i int) *Chunk {
	for j, col := range c.Cols {
		b.Cols[j].AppendFrom(col, i)
	}
	return b.Done(op)
}

// Len is the number of rows collected.
func (b *Builder) Len() int { return b.n }

// Take returns what has been collected, or nil, and starts afresh.
func (b *Builder) Take() *Chunk {
	if b.n == 0 {
		return nil
	}
	c := &Chunk{Cols: b.Cols, N: b.n}
	if b.del {
		c.Ops = b.ops
	}
	b.reset()
	return c
}
