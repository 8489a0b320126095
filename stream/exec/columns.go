package exec

import (
	"math"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// cells is a column that is written in place: an operator's memory of one column
// of its keys or rows, by slot. It is a *vecCells[T] for the T of the column's kind.
type cells interface {
	// col is the column of all slots; it shares memory.
	col() chunk.Column
	// set makes slot (≤ the number of slots) the value at i of src.
	set(slot int32, src chunk.Column, i int)
	// equal reports whether slot and the value at i of src are not distinct.
	equal(slot int32, src chunk.Column, i int) bool
	// clear forgets what slot refers to.
	clear(slot int32)
	// size is the memory that slot's value refers to, in bytes, itself included.
	size(slot int32) int
}

type vecCells[T any] struct {
	v  *chunk.Vec[T]
	eq func(a, b T) bool
	sz func(T) int
}

func newCells(t types.Type) cells {
	switch v := chunk.New(t, 0).(type) {
	case *chunk.Vec[bool]:
		return &vecCells[bool]{v, same[bool], flat[bool](1)}
	case *chunk.Vec[int64]:
		return &vecCells[int64]{v, same[int64], flat[int64](8)}
	case *chunk.Vec[float64]:
		return &vecCells[float64]{v, equalFloat, flat[float64](8)}
	case *chunk.Vec[string]:
		return &vecCells[string]{v, same[string], func(s string) int { return 16 + len(s) }}
	case *chunk.Vec[types.Decimal]:
		return &vecCells[types.Decimal]{v, func(a, b types.Decimal) bool { return a.Cmp(b) == 0 }, flat[types.Decimal](24)}
	case *chunk.Vec[types.Interval]:
		return &vecCells[types.Interval]{v, func(a, b types.Interval) bool { return a.Cmp(b) == 0 }, flat[types.Interval](16)}
	case *chunk.Vec[*types.List]:
		return &vecCells[*types.List]{v, func(a, b *types.List) bool { return a.Cmp(b) == 0 }, func(l *types.List) int {
			if l == nil {
				return 8
			}
			return 64 + 48*len(l.Items)
		}}
	default:
		panic("exec: unknown kind of column")
	}
}

func same[T comparable](a, b T) bool { return a == b }

func equalFloat(a, b float64) bool { return a == b || a != a && b != b }

func flat[T any](n int) func(T) int { return func(T) int { return n } }

func (c *vecCells[T]) col() chunk.Column { return c.v }

func (c *vecCells[T]) set(slot int32, src chunk.Column, i int) {
	s := src.(*chunk.Vec[T])
	if int(slot) == len(c.v.Data) {
		if s.Null(i) {
			c.v.AppendNull()
		} else {
			c.v.AppendValue(s.Data[i])
		}
		return
	}
	c.v.Data[slot] = s.Data[i]
	switch null := s.Null(i); {
	case c.v.Nulls != nil:
		c.v.Nulls[slot] = null
	case null:
		c.v.Nulls = make([]bool, len(c.v.Data), cap(c.v.Data))
		c.v.Nulls[slot] = true
	}
}

func (c *vecCells[T]) equal(slot int32, src chunk.Column, i int) bool {
	s := src.(*chunk.Vec[T])
	if a, b := c.v.Null(int(slot)), s.Null(i); a || b {
		return a && b
	}
	return c.eq(c.v.Data[slot], s.Data[i])
}

func (c *vecCells[T]) clear(slot int32) {
	var zero T
	c.v.Data[slot] = zero
}

func (c *vecCells[T]) size(slot int32) int { return c.sz(c.v.Data[slot]) }

// gather is src's rows idx; a negative index is NULL.
func gather(src chunk.Column, idx []int32) chunk.Column {
	switch v := src.(type) {
	case *chunk.Vec[bool]:
		return gatherVec(v, idx)
	case *chunk.Vec[int64]:
		return gatherVec(v, idx)
	case *chunk.Vec[float64]:
		return gatherVec(v, idx)
	case *chunk.Vec[string]:
		return gatherVec(v, idx)
	case *chunk.Vec[types.Decimal]:
		return gatherVec(v, idx)
	case *chunk.Vec[types.Interval]:
		return gatherVec(v, idx)
	case *chunk.Vec[*types.List]:
		return gatherVec(v, idx)
	default:
		panic("exec: unknown kind of column")
	}
}

func gatherVec[T any](v *chunk.Vec[T], idx []int32) chunk.Column {
	data := make([]T, len(idx))
	var nulls []bool
	for k, i := range idx {
		switch {
		case i < 0:
			if nulls == nil {
				nulls = make([]bool, len(idx))
			}
			nulls[k] = true
		default:
			data[k] = v.Data[i]
			if v.Nulls != nil && v.Nulls[i] {
				if nulls == nil {
					nulls = make([]bool, len(idx))
				}
				nulls[k] = true
			}
		}
	}
	return chunk.NewVec(v.Type(), data, nulls)
}

// identical reports whether rows i and j of c cannot be told apart, which is
// stricter than being equal: 1.0 and 1.00 differ. It may say false for lists that
// are the same.
func identical(c chunk.Column, i, j int) bool {
	if a, b := c.Null(i), c.Null(j); a || b {
		return a && b
	}
	switch v := c.(type) {
	case *chunk.Vec[bool]:
		return v.Data[i] == v.Data[j]
	case *chunk.Vec[int64]:
		return v.Data[i] == v.Data[j]
	case *chunk.Vec[float64]:
		return math.Float64bits(v.Data[i]) == math.Float64bits(v.Data[j])
	case *chunk.Vec[string]:
		return v.Data[i] == v.Data[j]
	case *chunk.Vec[types.Decimal]:
		return string(v.Data[i].AppendBinary(nil)) == string(v.Data[j].AppendBinary(nil))
	case *chunk.Vec[types.Interval]:
		return v.Data[i] == v.Data[j]
	default:
		return false
	}
}

// isNull is the boolean column "src IS NULL".
func isNull(src chunk.Column) chunk.Column {
	data := make([]bool, src.Len())
	for i := range data {
		data[i] = src.Null(i)
	}
	return chunk.NewVec(types.Bool, data, nil)
}

// ints widens slots to what Column.Gather takes.
func ints(s []int32) []int {
	out := make([]int, len(s))
	for i, x := range s {
		out[i] = int(x)
	}
	return out
}

func newColumns(s types.Schema, n int) []chunk.Column {
	out := make([]chunk.Column, len(s))
	for i, f := range s {
		out[i] = chunk.New(f.Type, n)
	}
	return out
}

func project(cols []chunk.Column, at []int) []chunk.Column {
	out := make([]chunk.Column, len(at))
	for i, j := range at {
		out[i] = cols[j]
	}
	return out
}

// truncate empties columns that nobody else has; their memory is used again.
func truncate(cols []chunk.Column) {
	for _, c := range cols {
		switch v := c.(type) {
		case *chunk.Vec[bool]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[int64]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[float64]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[string]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[types.Decimal]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[types.Interval]:
			v.Data, v.Nulls = v.Data[:0], nil
		case *chunk.Vec[*types.List]:
			v.Data, v.Nulls = v.Data[:0], nil
		}
	}
}
