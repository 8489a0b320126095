package exec

import (
	"cmp"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// bestValues bounds the values that min and max remember of a group.
const bestValues = 16

// An extreme is min or max over rows that may be deleted. The table counts all
// values, best first; memory has the best few of each group, so that the table is
// read only when all of them have gone.
type extreme[T any] struct {
	*valueTable
	arg   int
	typ   types.Type
	order func(a, b T) int // best first
	best  []best[T]        // by slot
}

// A best is what is known of one group.
//
// Invariant: unless stale, vals are exactly the values of the group that are not
// worse than the last of them, and all values of the group if complete.
type best[T any] struct {
	vals     []T
	complete bool
	stale    bool // the table has to be read
}

func newExtreme(env *Env, n *plan.StreamHashAgg, a expr.Agg, t *plan.TableDesc, groups func() []chunk.Column) aggregate {
	typ := n.In[0].Props().Schema[a.Args[0]].Type
	switch typ.Kind() {
	case types.KindBool:
		return extremeOf(env, n, a, t, groups, func(a, b bool) int { return cmp.Compare(b2i(a), b2i(b)) })
	case types.KindInt:
		return extremeOf(env, n, a, t, groups, cmp.Compare[int64])
	case types.KindFloat:
		return extremeOf(env, n, a, t, groups, types.CompareFloat)
	case types.KindString:
		return extremeOf(env, n, a, t, groups, cmp.Compare[string])
	case types.KindDecimal:
		return extremeOf(env, n, a, t, groups, types.Decimal.Cmp)
	case types.KindInterval:
		return extremeOf(env, n, a, t, groups, types.Interval.Cmp)
	default:
		return extremeOf(env, n, a, t, groups, (*types.List).Cmp)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func extremeOf[T any](env *Env, n *plan.StreamHashAgg, a expr.Agg, t *plan.TableDesc, groups func() []chunk.Column, order func(a, b T) int) *extreme[T] {
	max := a.Fn.Name == "max"
	x := &extreme[T]{arg: a.Args[0], typ: n.In[0].Props().Schema[a.Args[0]].Type, order: order}
	if max {
		x.order = func(a, b T) int { return order(b, a) }
	}
	a.Distinct = false // makes no difference to it
	x.valueTable = newValueTable(env, n, a, t, []expr.Order{{Col: a.Args[0], Desc: max, NullsFirst: max}}, groups)
	return x
}

func (x *extreme[T]) grow(n int) {
	for len(x.best) < n {
		x.best = append(x.best, best[T]{complete: true})
	}
}

func (x *extreme[T]) update(groups []int32, in *chunk.Chunk) error {
	v := chunk.Of[T](in.Cols[x.arg])
	if v.HasNulls() {
		var sel []int
		var gs []int32
		for i, null := range v.Nulls {
			if !null {
				sel, gs = append(sel, i), append(gs, groups[i])
			}
		}
		if len(sel) == 0 {
			return nil
		}
		in, groups = in.Gather(sel), gs
		v = chunk.Of[T](in.Cols[x.arg])
	}
	changed, err := x.counts.update(in)
	if err != nil {
		return err
	}
	for _, i := range changed {
		b := &x.best[groups[i]]
		switch {
		case b.stale:
		case in.Op(int(i)) == chunk.Insert:
			b.insert(v.Data[i], x.order)
		default:
			b.delete(v.Data[i], x.order)
		}
	}
	return nil
}

func (b *best[T]) insert(v T, order func(a, b T) int) {
	i, found := slices.BinarySearchFunc(b.vals, v, order)
	if found || i == len(b.vals) && !b.complete {
		return // worse than what is known
	}
	b.vals = slices.Insert(b.vals, i, v)
	if n := len(b.vals); n > bestValues {
		var zero T
		b.vals[n-1] = zero
		b.vals, b.complete = b.vals[:n-1], false
	}
}

func (b *best[T]) delete(v T, order func(a, b T) int) {
	if i, found := slices.BinarySearchFunc(b.vals, v, order); found {
		b.vals = slices.Delete(b.vals, i, i+1)
	}
	b.stale = len(b.vals) == 0 && !b.complete
}

// refill reads the best values of a group.
func (x *extreme[T]) refill(slot int32) error {
	b := best[T]{complete: true}
	values, err := x.scan(slot)
	if err != nil {
		return err
	}
	col := []chunk.Column{chunk.New(x.typ, bestValues+1)}
	for kv, err := range values {
		if err == nil {
			err = x.read.Decode(kv.Key, kv.Val, col)
		}
		if err != nil {
			return err
		}
		if col[0].Len() > bestValues {
			b.complete = false
			break
		}
	}
	vals := chunk.Of[T](col[0]).Data
	b.vals = vals[:min(len(vals), bestValues):min(len(vals), bestValues)]
	x.best[slot] = b
	return nil
}

func (x *extreme[T]) output(slot int32, col chunk.Column) error {
	if x.best[slot].stale {
		if err := x.refill(slot); err != nil {
			return err
		}
	}
	if b := &x.best[slot]; len(b.vals) > 0 {
		chunk.Of[T](col).AppendValue(b.vals[0])
		return nil
	}
	col.AppendNull()
	return nil
}

func (x *extreme[T]) save(dst []byte, _ int32) []byte { return dst }

func (x *extreme[T]) load(slot int32, b []byte, value chunk.Column) ([]byte, error) {
	x.best[slot] = best[T]{complete: value.Null(0)}
	if v := chunk.Of[T](value); !v.Null(0) {
		x.best[slot].vals = []T{v.Data[0]}
	}
	return b, nil
}

func (x *extreme[T]) reset(slot int32) { x.best[slot] = best[T]{complete: true} }
