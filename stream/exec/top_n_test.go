package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

type topCase struct {
	group         []int
	order         []expr.Order
	offset, limit int64
	ties          bool
	grows         bool
	budget        int64
	early         int
}

// compareBy orders two values as an Order says.
func compareBy(a, b types.Datum, o expr.Order) int {
	if a.IsNull() || b.IsNull() {
		if a.IsNull() && b.IsNull() {
			return 0
		}
		if a.IsNull() == o.NullsFirst {
			return -1
		}
		return 1
	}
	if o.Desc {
		return types.Compare(b, a)
	}
	return types.Compare(a, b)
}

func naiveTop(tc topCase, rows []types.Row) []types.Row {
	groups := map[string][]types.Row{}
	for _, r := range rows {
		k := fmt.Sprint(r.Project(tc.group))
		groups[k] = append(groups[k], r)
	}
	byOrder := func(a, b types.Row) int {
		for _, o := range tc.order {
			if c := compareBy(a[o.Col], b[o.Col], o); c != 0 {
				return c
			}
		}
		return 0
	}
	var out []types.Row
	for _, g := range groups {
		slices.SortFunc(g, func(a, b types.Row) int {
			if c := byOrder(a, b); c != 0 {
				return c
			}
			return types.Compare(a[0], b[0])
		})
		end := int(min(int64(len(g)), tc.offset+tc.limit))
		for tc.ties && end > int(tc.offset) && end > 0 && end < len(g) && byOrder(g[end], g[end-1]) == 0 {
			end++
		}
		for i := int(tc.offset); i < end; i++ {
			out = append(out, g[i])
		}
	}
	return out
}

func TestTopN(t *testing.T) {
	byV := []expr.Order{{Col: 2, Desc: true, NullsFirst: true}}
	odd := []expr.Order{{Col: 2, NullsFirst: true}, {Col: 4, Desc: true}}
	for i, tc := range []topCase{
		{order: byV, limit: 3},
		{order: odd, limit: 5, offset: 2, budget: 1},
		{group: []int{1}, order: byV, limit: 1, budget: 500},
		{group: []int{1, 3}, order: odd, limit: 2, offset: 1, early: 2, budget: 1},
		{order: byV, limit: 2, ties: true},
		{group: []int{1}, order: byV, limit: 2, ties: true, budget: 1},
		{group: []int{1}, order: byV, limit: 2, grows: true, budget: 1},
		{group: []int{1}, order: byV, limit: 2, offset: 1, grows: true, ties: true},
		{order: byV, limit: 1 << 62, offset: 4},
		{order: byV, limit: 0},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				testTopN(t, tc, seed)
			}
		})
	}
}

func testTopN(t *testing.T, tc topCase, seed uint64) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	var next int64
	w := &world{schema: aggSchema, rand: rnd, fresh: aggRow(&next)}
	in := mergeOf(0, aggSchema, 0)
	in.AppendOnly = tc.grows
	n := &plan.StreamTopN{GroupBy: tc.group, Order: tc.order, Limit: tc.limit, Offset: tc.offset, WithTies: tc.ties}
	n.State = stateTable(20, aggSchema, upTo(5), append(slices.Clone(tc.group), 0), tc.group)
	n.Schema, n.In = aggSchema, []plan.Stream{in}
	start := func() *run {
		x := r.start(n, 1, func(e *Env) { e.ChunkSize, e.Cache, e.dirty = 8, NewBudget(tc.budget), tc.early })
		r.barrier(nil)
		return x
	}
	x := start()
	got := newKeyed(append(slices.Clone(tc.group), 0)...)
	for step := range 40 {
		for range rnd.IntN(3) {
			k := 1 + rnd.IntN(40)
			if rnd.IntN(3) == 0 {
				k = 3
			}
			for _, c := range pieces(w.change(k, 8, !tc.grows), 8) {
				x.send(0, c)
			}
		}
		if rnd.IntN(8) == 0 && !tc.grows && len(w.rows) > 4 { // all but some
			rest := w.rows[:4]
			w.rows = w.rows[4:]
			w.deleteAllTo(x, 0, 8)
			w.rows = rest
		}
		r.barrier(nil)
		w.mark()
		got.apply(t, n.Schema, x.take())
		got.check(t, bagOf(n.Schema, naiveTop(tc, w.rows)), "seed %d step %d", seed, step)
		if rnd.IntN(8) == 0 {
			w.change(3, 8, false)
			w.lose()
			r.crash()
			x = start()
		}
	}
}

func TestDedup(t *testing.T) {
	for _, budget := range []int64{0, 1, 600} {
		r := newRig(t)
		rnd := rand.New(rand.NewPCG(uint64(budget), 5))
		var next int64
		w := &world{schema: aggSchema, rand: rnd, fresh: aggRow(&next)}
		n := &plan.StreamDedup{Cols: []int{2, 4}}
		n.State = stateTable(20, aggSchema, []int{2, 4}, []int{0, 1}, []int{0})
		n.Schema, n.In = aggSchema, []plan.Stream{mergeOf(0, aggSchema, 0)}
		start := func() *run {
			x := r.start(n, 1, func(e *Env) { e.Cache = NewBudget(budget) })
			r.barrier(nil)
			return x
		}
		x := start()
		got := bag{}
		for range 20 {
			for _, c := range pieces(w.change(4, 3, false), 3) {
				x.send(0, c)
			}
			r.barrier(nil)
			w.mark()
			got.apply(t, n.Schema, x.take())
			seen := map[string]bool{}
			var want []types.Row
			for _, row := range w.rows {
				if k := fmt.Sprint(row[2], row[4]); !seen[k] {
					seen[k] = true
					want = append(want, row)
				}
			}
			got.check(t, bagOf(n.Schema, want), "budget %d", budget)
			if rnd.IntN(5) == 0 {
				r.crash()
				x = start()
			}
		}
	}
}
