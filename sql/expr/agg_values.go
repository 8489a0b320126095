package expr

import (
	"cmp"
	"encoding/binary"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// extreme is min and max over values of one kind.
type extreme[T any] struct {
	max  bool
	less func(a, b T) bool
	typ  types.Type
	val  []T
	has  []bool
}

func newExtreme(t types.Type, max bool) Accumulator {
	switch t.Kind() {
	case types.KindInt:
		return &extreme[int64]{max: max, typ: t, less: cmp.Less[int64]}
	case types.KindFloat:
		return &extreme[float64]{max: max, typ: t, less: func(a, b float64) bool { return types.CompareFloat(a, b) < 0 }}
	case types.KindDecimal:
		return &extreme[types.Decimal]{max: max, typ: t, less: func(a, b types.Decimal) bool { return a.Cmp(b) < 0 }}
	case types.KindInterval:
		return &extreme[types.Interval]{max: max, typ: t, less: func(a, b types.Interval) bool { return a.Cmp(b) < 0 }}
	case types.KindList:
		return &extreme[*types.List]{max: max, typ: t, less: func(a, b *types.List) bool { return a.Cmp(b) < 0 }}
	case types.KindBool:
		return &extreme[bool]{max: max, typ: t, less: func(a, b bool) bool { return !a && b }}
	}
	return &extreme[string]{max: max, typ: t, less: cmp.Less[string]}
}

func (a *extreme[T]) Grow(n int) { a.val, a.has = grown(a.val, n), grown(a.has, n) }

func (a *extreme[T]) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("min or max", sel, len(groups), ops); err != nil {
		return err
	}
	v := chunk.Of[T](args[0])
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Nulls != nil && v.Nulls[i] {
			continue
		}
		x := v.Data[i]
		if !a.has[g] {
			a.val[g], a.has[g] = x, true
			continue
		}
		if a.max {
			if a.less(a.val[g], x) {
				a.val[g] = x
			}
		} else if a.less(x, a.val[g]) {
			a.val[g] = x
		}
	}
	return nil
}

func (a *extreme[T]) Output(g int32, col chunk.Column) error {
	if !a.has[g] {
		col.AppendNull()
		return nil
	}
	col.(*chunk.Vec[T]).AppendValue(a.val[g])
	return nil
}

func (a *extreme[T]) AppendState(dst []byte, g int32) []byte {
	if !a.has[g] {
		return appendDatum(dst, types.Datum{})
	}
	return appendDatum(dst, chunk.NewVec(a.typ, a.val[g:g+1], nil).Datum(0))
}

func (a *extreme[T]) LoadState(g int32, b []byte) ([]byte, error) {
	elem := types.Type{}
	if a.typ.Elem != nil {
		elem = *a.typ.Elem
	}
	d, b, err := readDatum(b, elem)
	if err != nil {
		return nil, err
	}
	a.Reset(g)
	if d.IsNull() {
		return b, nil
	}
	if d.Kind() != a.typ.Kind() {
		return nil, errState()
	}
	v := chunk.NewVec[T](a.typ, nil, nil)
	v.Append(d)
	a.val[g], a.has[g] = v.Data[0], true
	return b, nil
}

func (a *extreme[T]) Reset(g int32) {
	var zero T
	a.val[g], a.has[g] = zero, false
}

// stringAgg is string_agg over text and bytea: values in the order they come.
type stringAgg struct {
	text [][]byte
	n    []int64
}

func (a *stringAgg) Grow(n int) { a.text, a.n = grown(a.text, n), grown(a.n, n) }

func (a *stringAgg) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("string_agg", sel, len(groups), ops); err != nil {
		return err
	}
	v, sep := chunk.Of[string](args[0]), chunk.Of[string](args[1])
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Null(i) {
			continue
		}
		if a.n[g] > 0 {
			a.text[g] = append(a.text[g], sep.Data[i]...) // a NULL separator is empty
		}
		a.text[g] = append(a.text[g], v.Data[i]...)
		a.n[g]++
	}
	return nil
}

func (a *stringAgg) Output(g int32, col chunk.Column) error {
	if a.n[g] == 0 {
		col.AppendNull()
		return nil
	}
	col.(*chunk.Vec[string]).AppendValue(string(a.text[g]))
	return nil
}

func (a *stringAgg) AppendState(dst []byte, g int32) []byte {
	dst = binary.AppendVarint(dst, a.n[g])
	return appendDatum(dst, types.NewString(string(a.text[g])))
}

func (a *stringAgg) LoadState(g int32, b []byte) (rest []byte, err error) {
	a.Reset(g)
	if a.n[g], b, err = readVarint(b); err != nil {
		return nil, err
	}
	d, b, err := readDatum(b, types.Type{})
	if err != nil {
		return nil, err
	}
	a.text[g] = append(a.text[g], d.Str()...)
	return b, nil
}

func (a *stringAgg) Reset(g int32) {
	a.text[g], a.n[g] = nil, 0
}

// arrayAgg is array_agg, NULLs included, in the order they come.
type arrayAgg struct {
	elem   types.Type
	nested bool // the values are arrays, and become a further dimension
	items  [][]types.Datum
}

func (a *arrayAgg) Grow(n int) { a.items = grown(a.items, n) }

func (a *arrayAgg) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("array_agg", sel, len(groups), ops); err != nil {
		return err
	}
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		d := args[0].Datum(i)
		if a.nested {
			if err := sameShape(a.items[g], d); err != nil {
				return err
			}
		}
		a.items[g] = append(a.items[g], d)
	}
	return nil
}

func (a *arrayAgg) Output(g int32, col chunk.Column) error {
	if len(a.items[g]) == 0 {
		col.AppendNull()
		return nil
	}
	items := append([]types.Datum(nil), a.items[g]...)
	col.Append(types.NewList(&types.List{Elem: a.elem, Items: items, Lower: 1}))
	return nil
}

func (a *arrayAgg) AppendState(dst []byte, g int32) []byte {
	return appendDatum(dst, types.NewList(&types.List{Items: a.items[g], Lower: 1}))
}

func (a *arrayAgg) LoadState(g int32, b []byte) (rest []byte, err error) {
	a.items[g], rest, err = readItems(b, a.elem)
	return rest, err
}

// readItems reads the values of a list that appendDatum wrote.
func readItems(b []byte, elem types.Type) (items []types.Datum, rest []byte, err error) {
	d, b, err := readDatum(b, elem)
	if err != nil {
		return nil, nil, err
	}
	if d.Kind() != types.KindList {
		return nil, nil, errState()
	}
	return d.List().Items, b, nil
}

func (a *arrayAgg) Reset(g int32) { a.items[g] = nil }
