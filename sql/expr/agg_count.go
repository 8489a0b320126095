package expr

import (
	"encoding/binary"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// countAcc is count(*) and count(x).
type countAcc struct {
	column bool // count(x): NULLs do not count
	n      []int64
}

func (a *countAcc) Grow(n int) { a.n = grown(a.n, n) }

func (a *countAcc) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	var nulls []bool
	if a.column && args[0].HasNulls() {
		nulls = nullSlice(args[0])
	}
	if sel == nil && ops == nil && nulls == nil {
		for _, g := range groups {
			a.n[g]++
		}
		return nil
	}
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if nulls != nil && nulls[i] {
			continue
		}
		if ops == nil {
			a.n[g]++
		} else {
			a.n[g] += ops[i].Sign()
		}
	}
	return nil
}

func (a *countAcc) Output(g int32, col chunk.Column) error {
	col.(*chunk.Vec[int64]).AppendValue(a.n[g])
	return nil
}

func (a *countAcc) AppendState(dst []byte, g int32) []byte { return binary.AppendVarint(dst, a.n[g]) }

func (a *countAcc) LoadState(g int32, b []byte) (rest []byte, err error) {
	a.n[g], rest, err = readVarint(b)
	return rest, err
}

func (a *countAcc) Reset(g int32) { a.n[g] = 0 }

// boolAcc is bool_and, every and bool_or: it counts both values, and so can take them back.
type boolAcc struct {
	or     bool
	counts []boolCount
}

type boolCount struct{ yes, no int64 }

func (a *boolAcc) Grow(n int) { a.counts = grown(a.counts, n) }

func (a *boolAcc) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x bool, sign int64) {
		if x {
			a.counts[g].yes += sign
		} else {
			a.counts[g].no += sign
		}
	})
	return nil
}

func (a *boolAcc) Output(g int32, col chunk.Column) error {
	c := a.counts[g]
	switch {
	case c.yes == 0 && c.no == 0:
		col.AppendNull()
	case a.or:
		col.(*chunk.Vec[bool]).AppendValue(c.yes > 0)
	default:
		col.(*chunk.Vec[bool]).AppendValue(c.no == 0)
	}
	return nil
}

func (a *boolAcc) AppendState(dst []byte, g int32) []byte {
	dst = binary.AppendVarint(dst, a.counts[g].yes)
	return binary.AppendVarint(dst, a.counts[g].no)
}

func (a *boolAcc) LoadState(g int32, b []byte) (rest []byte, err error) {
	if a.counts[g].yes, b, err = readVarint(b); err != nil {
		return nil, err
	}
	a.counts[g].no, b, err = readVarint(b)
	return b, err
}

func (a *boolAcc) Reset(g int32) { a.counts[g] = boolCount{} }

type bitOp uint8

const (
	bitAnd bitOp = iota
	bitOr
	bitXor
)

// bitAcc is bit_and, bit_or and bit_xor.
type bitAcc struct {
	op  bitOp
	val []int64
	has []bool
}

func (a *bitAcc) Grow(n int) { a.val, a.has = grown(a.val, n), grown(a.has, n) }

func (a *bitAcc) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("bit aggregate", sel, len(groups), ops); err != nil {
		return err
	}
	eachValue(groups, sel, nil, args[0], func(g int32, x int64, _ int64) {
		switch {
		case !a.has[g]:
			a.val[g], a.has[g] = x, true
		case a.op == bitAnd:
			a.val[g] &= x
		case a.op == bitOr:
			a.val[g] |= x
		default:
			a.val[g] ^= x
		}
	})
	return nil
}

func (a *bitAcc) Output(g int32, col chunk.Column) error {
	if !a.has[g] {
		col.AppendNull()
		return nil
	}
	col.(*chunk.Vec[int64]).AppendValue(a.val[g])
	return nil
}

func (a *bitAcc) AppendState(dst []byte, g int32) []byte {
	d := types.Datum{}
	if a.has[g] {
		d = types.NewInt(a.val[g])
	}
	return appendDatum(dst, d)
}

func (a *bitAcc) LoadState(g int32, b []byte) ([]byte, error) {
	d, b, err := readDatum(b, types.Type{})
	if err != nil {
		return nil, err
	}
	a.val[g], a.has[g] = d.Int(), !d.IsNull()
	return b, nil
}

func (a *bitAcc) Reset(g int32) { a.val[g], a.has[g] = 0, false }
