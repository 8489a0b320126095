package chunk

import (
	"fmt"

	"streamdb/sql/types"
)

// HashInto combines the values of c into the running hashes h, one a row, so
// that values equal in SQL combine equally (1.0 and 1.00, -0 and 0, NaN and NaN,
// 24 hours and 1 day, NULL and NULL). It is the same in every process and version.
func HashInto(c Column, h []uint64) {
	switch v := c.(type) {
	case *Vec[int64]:
		if v.Nulls == nil {
			data := v.Data[:len(h)]
			for i := range h {
				h[i] = types.Mix(h[i], uint64(data[i]))
			}
			return
		}
		hashVec(v, h, func(x int64) uint64 { return uint64(x) })
	case *Vec[bool]:
		hashVec(v, h, types.HashBool)
	case *Vec[float64]:
		hashVec(v, h, types.HashFloat)
	case *Vec[string]:
		hashVec(v, h, types.HashString)
	case *Vec[types.Decimal]:
		hashVec(v, h, types.Decimal.Hash)
	case *Vec[types.Interval]:
		hashVec(v, h, types.Interval.Hash)
	case *Vec[*types.List]:
		hashVec(v, h, (*types.List).Hash)
	default:
		panic(fmt.Sprintf("chunk: hash of %T", c))
	}
}

func hashVec[T any](v *Vec[T], h []uint64, f func(T) uint64) {
	for i := range h {
		if v.Nulls != nil && v.Nulls[i] {
			h[i] = types.Mix(h[i], types.HashNull)
			continue
		}
		h[i] = types.Mix(h[i], f(v.Data[i]))
	}
}

// Hash is the hash of each of n rows over all cols.
func Hash(cols []Column, n int) []uint64 {
	h := make([]uint64, n)
	for _, c := range cols {
		HashInto(c, h)
	}
	return h
}

// Vnodes gives each of n rows its vnode, 0 ≤ vnode < count: its hash over the
// distribution columns dist of cols, reduced. With no distribution column every row is in vnode 0.
func Vnodes(cols []Column, dist []int, n, count int) []uint16 {
	out := make([]uint16, n)
	if len(dist) == 0 || count <= 1 {
		return out
	}
	h := make([]uint64, n)
	for _, d := range dist {
		HashInto(cols[d], h)
	}
	for i, x := range h {
		out[i] = uint16(types.Reduce(x, count))
	}
	return out
}

// VnodeOf is the vnode of one boxed row: what Vnodes gives it in a column.
func VnodeOf(row types.Row, dist []int, count int) uint16 {
	if len(dist) == 0 || count <= 1 {
		return 0
	}
	var h uint64
	for _, d := range dist {
		h = types.Mix(h, row[d].Hash())
	}
	return uint16(types.Reduce(h, count))
}
