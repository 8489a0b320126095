package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

func randomOrder(rnd *rand.Rand, cols int) []expr.Order {
	out := make([]expr.Order, 1+rnd.IntN(3))
	for i := range out {
		out[i] = expr.Order{Col: rnd.IntN(cols), Desc: rnd.IntN(2) == 0, NullsFirst: rnd.IntN(2) == 0}
	}
	return out
}

func compareNaive(a, b types.Row, by []expr.Order) int {
	for _, o := range by {
		x, y := a[o.Col], b[o.Col]
		switch {
		case x.IsNull() && y.IsNull():
			continue
		case x.IsNull() != y.IsNull():
			if x.IsNull() == o.NullsFirst {
				return -1
			}
			return 1
		}
		if d := types.Compare(x, y); d != 0 {
			if o.Desc {
				return -d
			}
			return d
		}
	}
	return 0
}

func sortNaive(rows []types.Row, by []expr.Order) []types.Row {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b types.Row) int { return compareNaive(a, b, by) })
	return out
}

func TestSort(t *testing.T) {
	seeds(t, 60, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		typs := randomTypes(rnd, 1+rnd.IntN(4))
		rows := randomRows(rnd, typs, randomLen(rnd))
		by := randomOrder(rnd, len(typs))
		n := &plan.Sort{Input: r.table(typs, rows), By: by}
		r.sizes(rnd, func() { r.same(n, r.must(n), sortNaive(rows, by), true) })
	})
}

func TestSortManyRuns(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	typs := []types.Type{types.Int8, types.Text}
	var rows []types.Row
	for i := range 120_000 {
		rows = append(rows, types.Row{types.NewInt(rnd.Int64N(1000)), types.NewString(string(rune('a' + i%26)))})
	}
	by := []expr.Order{{Col: 0}}
	n := &plan.Sort{Input: r.table(typs, rows), By: by}
	want := sortNaive(rows, by)
	for _, mem := range []int64{0, 1 << 20, 20 << 10} { // runs in memory, some on disk, more of them than are merged at a time
		r.env.Memory = mem
		r.same(n, r.must(n), want, true)
	}
}

func TestLimit(t *testing.T) {
	seeds(t, 80, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		typs := randomTypes(rnd, 2)
		rows := randomRows(rnd, typs, randomLen(rnd))
		in := r.table(typs, rows)
		l := &plan.Limit{Input: in}
		want := rows
		var by []expr.Order
		if rnd.IntN(4) > 0 {
			by = randomOrder(rnd, len(typs))
			l.Input = &plan.Sort{Input: in, By: by}
			want = sortNaive(rows, by)
			if rnd.IntN(2) == 0 {
				p := &plan.Project{Input: l.Input}
				for _, c := range []int{1, 0} {
					p.Exprs, p.Names = append(p.Exprs, col(in, c)), append(p.Names, "x")
				}
				l.Input = p
			}
			l.WithTies = rnd.IntN(2) == 0
		}
		if rnd.IntN(3) > 0 {
			off := rnd.IntN(30)
			l.Offset = num(int64(off))
			want = want[min(off, len(want)):]
		}
		if rnd.IntN(5) > 0 {
			k := rnd.IntN(60)
			l.Count = num(int64(k))
			to := min(k, len(want))
			for l.WithTies && to > 0 && to < len(want) && compareNaive(want[to-1], want[to], by) == 0 {
				to++
			}
			want = want[:to]
		}
		if _, ok := l.Input.(*plan.Project); ok {
			flipped := make([]types.Row, len(want))
			for i, r := range want {
				flipped[i] = types.Row{r[1], r[0]}
			}
			want = flipped
		}
		r.sizes(rnd, func() { r.same(l, r.must(l), want, true) })
	})
}

// A first rows' heap is trimmed more than once, and given up where the limit is large.
func TestTopNLong(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	var rows []types.Row
	for range 90_000 {
		rows = append(rows, types.Row{types.NewInt(rnd.Int64N(500)), types.NewInt(rnd.Int64N(3))})
	}
	in := r.table([]types.Type{types.Int8, types.Int8}, rows)
	by := []expr.Order{{Col: 0, Desc: true}, {Col: 1}}
	want := sortNaive(rows, by)
	for _, k := range []int{1, 10, 5000, 70_000} {
		for _, ties := range []bool{false, true} {
			l := &plan.Limit{Input: &plan.Sort{Input: in, By: by}, Count: num(int64(k)), WithTies: ties}
			to := k
			for ties && compareNaive(want[to-1], want[to], by) == 0 {
				to++
			}
			r.same(l, r.must(l), want[:to], true)
		}
	}
}

func TestLimitErrors(t *testing.T) {
	r := newRig(t)
	in := r.table([]types.Type{types.Int8}, randomRows(rand.New(rand.NewPCG(1, 1)), []types.Type{types.Int8}, 5))
	for _, l := range []*plan.Limit{{Input: in, Count: num(-1)}, {Input: &plan.Sort{Input: in, By: []expr.Order{{}}}, Count: num(-1)}} {
		if _, err := r.run(l); err == nil || err.Error() != "LIMIT must not be negative" {
			t.Errorf("got %v", err)
		}
	}
	if _, err := r.run(&plan.Limit{Input: in, Offset: num(-1)}); err == nil || err.Error() != "OFFSET must not be negative" {
		t.Errorf("got %v", err)
	}
	null := &expr.Const{Typ: types.Int8}
	if got := r.must(&plan.Limit{Input: in, Count: null, Offset: null}); len(got) != 5 {
		t.Errorf("%d rows", len(got))
	}
}

func TestDistinct(t *testing.T) {
	seeds(t, 60, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		typs := randomTypes(rnd, 1+rnd.IntN(3))
		rows := randomRows(rnd, typs, randomLen(rnd))
		in := r.table(typs, rows)
		d := &plan.Distinct{Input: in}
		on := upTo(len(typs))
		sorted := rows
		ordered := false
		switch rnd.IntN(3) {
		case 0:
			on = on[:1+rnd.IntN(len(on))]
			rnd.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
			d.On = on
			for _, c := range on[:rnd.IntN(len(on)+1)] {
				d.Order = append(d.Order, expr.Order{Col: c, Desc: rnd.IntN(2) == 0})
			}
			if len(d.Order) == len(on) {
				d.Order = append(d.Order, randomOrder(rnd, len(typs))...)
			}
			if d.Order != nil {
				sorted = sortNaive(rows, d.Order)
				ordered = true
			}
		case 1:
			on = on[:1]
			d.On = on
		}
		var want []types.Row
		for _, row := range sorted {
			if !slices.ContainsFunc(want, func(w types.Row) bool { return w.Project(on).Equal(row.Project(on)) }) {
				want = append(want, row)
			}
		}
		r.sizes(rnd, func() { r.same(d, r.must(d), want, false) })
		if ordered {
			s := &plan.Sort{Input: d, By: d.Order}
			r.same(s, r.must(s), sortNaive(want, d.Order), len(d.Order) > len(on))
			got := r.must(d)
			if !slices.IsSortedFunc(got, func(a, b types.Row) int { return compareNaive(a, b, d.Order) }) {
				t.Error("DISTINCT ON lost the order")
			}
		}
	})
}

func TestBlanksOfChar(t *testing.T) {
	r := newRig(t)
	var rows []types.Row
	for _, s := range []string{"b", "a ", "a", "b  ", "a   "} {
		rows = append(rows, types.Row{types.NewString(s)})
	}
	in := r.table([]types.Type{types.Bpchar}, rows)
	if got := r.must(&plan.Distinct{Input: in}); len(got) != 2 {
		t.Errorf("distinct: %d rows", len(got))
	}
	s := &plan.Sort{Input: in, By: []expr.Order{{Col: 0}}}
	got := texts(s, r.must(s))
	if want := []string{"a ", "a", "a   ", "b", "b  "}; !slices.Equal(got, want) {
		t.Errorf("sorted: %q", got)
	}
}

func TestSetOps(t *testing.T) {
	seeds(t, 60, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		typs := randomTypes(rnd, 1+rnd.IntN(2))
		n := &plan.SetOp{Op: plan.SetOpKind(rnd.IntN(3)), All: rnd.IntN(2) == 0}
		var ins [][]types.Row
		for range 2 + rnd.IntN(2) {
			rows := randomRows(rnd, typs, randomLen(rnd))
			ins = append(ins, rows)
			n.Ins = append(n.Ins, r.table(typs, rows))
		}
		n.Out = n.Ins[0].Schema()
		type counted struct {
			row types.Row
			n   []int
		}
		var all []*counted
		for k, rows := range ins {
			for _, row := range rows {
				i := slices.IndexFunc(all, func(c *counted) bool { return c.row.Equal(row) })
				if i < 0 {
					i = len(all)
					all = append(all, &counted{row, make([]int, len(ins))})
				}
				all[i].n[k]++
			}
		}
		var want []types.Row
		for _, c := range all {
			times := c.n[0]
			for _, m := range c.n[1:] {
				switch {
				case n.Op == plan.Union:
					times += m
				case n.Op == plan.Intersect:
					times = min(times, m)
				case n.All:
					times = max(0, times-m)
				case m > 0:
					times = 0
				}
			}
			if !n.All {
				times = min(times, 1)
			}
			for range times {
				want = append(want, c.row)
			}
		}
		if n.Op == plan.Union && n.All {
			want = slices.Concat(ins...)
		}
		r.sizes(rnd, func() { r.same(n, normal(typs, r.must(n)), normal(typs, want), false) })
	})
}

// normal replaces values by the least of those they are equal to, as text, so that rows can be compared as texts.
func normal(typs []types.Type, rows []types.Row) []types.Row {
	out := make([]types.Row, len(rows))
	for i, row := range rows {
		for _, d := range row {
			out[i] = append(out[i], normalValue(d))
		}
	}
	return out
}

func normalValue(d types.Datum) types.Datum {
	switch d.Kind() {
	case types.KindDecimal:
		return types.NewDecimal(d.Decimal().Normalise())
	case types.KindFloat:
		if d.Float() == 0 {
			return types.NewFloat(0)
		}
	case types.KindInterval:
		days, us := d.Interval().Span()
		return types.NewInterval(types.Interval{Days: int32(days), Micros: us})
	case types.KindList:
		l := *d.List()
		l.Items = slices.Clone(l.Items)
		for i := range l.Items {
			l.Items[i] = normalValue(l.Items[i])
		}
		return types.NewList(&l)
	}
	return d
}
