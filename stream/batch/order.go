package batch

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// compareValue orders two values that are not NULL.
func compareValue(a chunk.Column, i int, b chunk.Column, j int) int {
	switch x := a.(type) {
	case *chunk.Vec[int64]:
		return cmp.Compare(x.Data[i], b.(*chunk.Vec[int64]).Data[j])
	case *chunk.Vec[string]:
		return cmp.Compare(x.Data[i], b.(*chunk.Vec[string]).Data[j])
	case *chunk.Vec[float64]:
		return types.CompareFloat(x.Data[i], b.(*chunk.Vec[float64]).Data[j])
	case *chunk.Vec[types.Decimal]:
		return x.Data[i].Cmp(b.(*chunk.Vec[types.Decimal]).Data[j])
	case *chunk.Vec[types.Interval]:
		return x.Data[i].Cmp(b.(*chunk.Vec[types.Interval]).Data[j])
	}
	return types.Compare(a.Datum(i), b.Datum(j))
}

// compareBy orders row i of a and row j of b by sort keys. Columns of char(n) must be without trailing blanks.
func compareBy(a []chunk.Column, i int, b []chunk.Column, j int, by []expr.Order) int {
	for _, o := range by {
		x, y := a[o.Col], b[o.Col]
		xn, yn := x.Null(i), y.Null(j)
		if xn || yn {
			if xn == yn {
				continue
			}
			if xn == o.NullsFirst {
				return -1
			}
			return 1
		}
		d := compareValue(x, i, y, j)
		if d == 0 {
			continue
		}
		if o.Desc {
			return -d
		}
		return d
	}
	return 0
}

// A sortKey is a row with as much of its first sort key as fits a word, so that
// most comparisons look at nothing else.
type sortKey struct {
	word  uint64
	row   int32
	class uint8 // 0, 2: NULL that comes first, last; 1: a value
}

// sortKeys makes the keys of n rows. exact: equal words are equal values.
func sortKeys(cols []chunk.Column, n int, by []expr.Order) (keys []sortKey, exact bool) {
	keys = make([]sortKey, n)
	for i := range keys {
		keys[i].row, keys[i].class = int32(i), 1
	}
	if len(by) == 0 {
		return keys, true
	}
	o := by[0]
	exact = true
	switch v := cols[o.Col].(type) {
	case *chunk.Vec[int64]:
		for i, x := range v.Data[:n] {
			keys[i].word = uint64(x) ^ 1<<63
		}
	case *chunk.Vec[bool]:
		for i, x := range v.Data[:n] {
			if x {
				keys[i].word = 1
			}
		}
	case *chunk.Vec[float64]:
		for i, x := range v.Data[:n] {
			keys[i].word = floatWord(x)
		}
	case *chunk.Vec[string]:
		exact = false
		for i, x := range v.Data[:n] {
			keys[i].word = stringWord(x)
		}
	default:
		exact = false
	}
	if o.Desc {
		for i := range keys {
			keys[i].word = ^keys[i].word
		}
	}
	if col := cols[o.Col]; col.HasNulls() {
		class := uint8(2)
		if o.NullsFirst {
			class = 0
		}
		for i := range keys {
			if col.Null(i) {
				keys[i].class, keys[i].word = class, 0
			}
		}
	}
	return keys, exact
}

func floatWord(x float64) uint64 {
	switch {
	case x != x:
		return math.MaxUint64
	case x == 0:
		x = 0 // -0
	}
	b := math.Float64bits(x)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func stringWord(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	var w uint64
	for i := range len(s) {
		w |= uint64(s[i]) << (56 - 8*i)
	}
	return w
}

// sortIndex returns the order of n rows by sort keys; equal rows keep their order.
func sortIndex(cols []chunk.Column, n int, by []expr.Order) []int {
	out := make([]int, n)
	for i, k := range sortRows(cols, n, by) {
		out[i] = int(k.row)
	}
	return out
}

func sortRows(cols []chunk.Column, n int, by []expr.Order) []sortKey {
	keys, exact := sortKeys(cols, n, by)
	rest := by
	if exact && len(by) > 0 {
		rest = by[1:]
	}
	slices.SortFunc(keys, func(a, b sortKey) int {
		switch {
		case a.class != b.class:
			return int(a.class) - int(b.class)
		case a.word < b.word:
			return -1
		case a.word > b.word:
			return 1
		}
		if len(rest) > 0 {
			if d := compareBy(cols, int(a.row), cols, int(b.row), rest); d != 0 {
				return d
			}
		}
		return int(a.row - b.row)
	})
	return keys
}

// orderColumns is cols with those that are sorted by made comparable, see keyColumn.
func orderColumns(cols []chunk.Column, by []expr.Order) []chunk.Column {
	out := cols
	for _, o := range by {
		if k := keyColumn(cols[o.Col]); k != cols[o.Col] {
			if &out[0] == &cols[0] {
				out = slices.Clone(cols)
			}
			out[o.Col] = k
		}
	}
	return out
}
