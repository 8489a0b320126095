package exec

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// k, g, v, f, s: key, group, value, filter, text
var aggSchema = schemaOf(types.Int8, types.Int8, types.Int8, types.Bool, types.Text)

func aggRow(next *int64) func(r *rand.Rand) types.Row {
	return func(r *rand.Rand) types.Row {
		*next++
		return types.Row{
			types.NewInt(*next), maybeNull(r, types.NewInt(r.Int64N(6))), maybeNull(r, types.NewInt(r.Int64N(9)-3)),
			maybeNull(r, types.NewBool(r.IntN(2) == 0)), maybeNull(r, types.NewString(fmt.Sprint("s", r.IntN(4)))),
		}
	}
}

// aggNode: count(*), count(v), sum(v), min(v), max(v) filter f, count(distinct v), sum(distinct v) filter f, string_agg(s,s order by s desc nulls last)
func aggNode(t testing.TB, group []int, appendOnly bool) *plan.StreamHashAgg {
	in := mergeOf(0, aggSchema, 0)
	in.AppendOnly = appendOnly
	call := func(name string, args ...int) expr.Agg { return aggCallOf(t, aggSchema, name, args...) }
	maxF := call("max", 2)
	maxF.Filter = 3
	cd, sd := call("count", 2), call("sum", 2)
	cd.Distinct, sd.Distinct, sd.Filter = true, true, 3
	arr := call("array_agg", 4)
	arr.Order = []expr.Order{{Col: 4, Desc: true}, {Col: 0}}
	n := &plan.StreamHashAgg{GroupBy: group, Aggs: []expr.Agg{call("count"), call("count", 2), call("sum", 2), call("min", 2), maxF, cd, sd, arr}}
	dist := upTo(len(group))
	n.Values = make([]*plan.TableDesc, len(n.Aggs))
	n.DistinctState = make([]*plan.TableDesc, len(n.Aggs))
	cols := slices.Concat(group, []int{2, 0})
	for i := range n.Aggs {
		if !n.Aggs[i].Fn.Retractable && !appendOnly || n.Aggs[i].Order != nil {
			n.Values[i] = stateTable(catalog.ID(30+i), aggSchema, cols, upTo(len(cols)), dist)
		}
	}
	dc := slices.Concat(group, []int{2})
	d := stateTable(50, aggSchema, dc, upTo(len(dc)), dist)
	n.DistinctState[5], n.DistinctState[6] = d, d
	n.State = stateTable(20, aggSchema, group, upTo(len(group)), dist)
	n.Operator = plan.Props{Schema: aggSchema.Project(group), Key: upTo(len(group)), In: []plan.Stream{in}}
	for i, a := range n.Aggs {
		n.Schema = append(n.Schema, types.Field{Name: fmt.Sprint("a", i), Type: a.Typ})
	}
	return n
}

// naiveAgg recomputes what aggNode says.
func naiveAgg(n *plan.StreamHashAgg, rows []types.Row) []types.Row {
	groups := map[string][]types.Row{}
	for _, r := range rows {
		groups[fmt.Sprint(r.Project(n.GroupBy))] = append(groups[fmt.Sprint(r.Project(n.GroupBy))], r)
	}
	if len(n.GroupBy) == 0 && len(groups) == 0 {
		groups[""] = nil
	}
	var out []types.Row
	for _, g := range groups {
		var cv, sum, sumD int64
		var mn, mx types.Datum
		all, filtered := map[int64]bool{}, map[int64]bool{}
		var ss []types.Row
		for _, r := range g {
			ss = append(ss, types.Row{r[4], r[0]})
			v := r[2]
			if v.IsNull() {
				continue
			}
			cv++
			sum += v.Int()
			if mn.IsNull() || v.Int() < mn.Int() {
				mn = v
			}
			all[v.Int()] = true
			if !r[3].IsNull() && r[3].Bool() {
				if mx.IsNull() || v.Int() > mx.Int() {
					mx = v
				}
				if !filtered[v.Int()] {
					sumD += v.Int()
				}
				filtered[v.Int()] = true
			}
		}
		num := func(has bool, x int64) types.Datum {
			if !has {
				return types.Datum{}
			}
			return types.NewDecimal(types.NewDecimalInt(x))
		}
		slices.SortFunc(ss, func(a, b types.Row) int {
			// DESC NULLS LAST, since NullsFirst is not set
			switch {
			case a[0].IsNull() != b[0].IsNull():
				if a[0].IsNull() {
					return 1
				}
				return -1
			case !a[0].IsNull() && a[0].Str() != b[0].Str():
				return -strings.Compare(a[0].Str(), b[0].Str())
			}
			return cmp.Compare(a[1].Int(), b[1].Int())
		})
		list := types.Datum{}
		if len(ss) > 0 {
			l := &types.List{Elem: types.Text, Lower: 1}
			for _, s := range ss {
				l.Items = append(l.Items, s[0])
			}
			list = types.NewList(l)
		}
		row := types.Row{}
		if len(n.GroupBy) > 0 {
			row = append(row, g[0].Project(n.GroupBy)...)
		}
		row = append(row, types.NewInt(int64(len(g))), types.NewInt(cv), num(cv > 0, sum), mn, mx,
			types.NewInt(int64(len(all))), num(len(filtered) > 0, sumD), list)
		out = append(out, row)
	}
	return out
}

func TestHashAgg(t *testing.T) {
	for _, tc := range []struct {
		name       string
		group      []int
		size       int
		budget     int64
		appendOnly bool
		limit      int
	}{
		{name: "grouped", group: []int{1}, size: 256},
		{name: "single rows", group: []int{1}, size: 1},
		{name: "tiny budget", group: []int{1}, size: 256, budget: 1},
		{name: "two columns", group: []int{1, 4}, size: 7, budget: 400},
		{name: "global", size: 256},
		{name: "append only", group: []int{1}, size: 256, appendOnly: true},
		{name: "early flush", group: []int{1, 4}, size: 3, budget: 1, limit: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(4) {
				r := newRig(t)
				rnd := rand.New(rand.NewPCG(seed, 1))
				var next int64
				w := &world{schema: aggSchema, rand: rnd, fresh: aggRow(&next)}
				n := aggNode(t, tc.group, tc.appendOnly)
				start := func() *run {
					x := r.start(n, 1, func(e *Env) { e.ChunkSize, e.Cache, e.dirty = tc.size, NewBudget(tc.budget), tc.limit })
					r.barrier(nil)
					return x
				}
				x := start()
				got := newKeyed(upTo(len(tc.group))...)
				for step := range 40 {
					for range rnd.IntN(3) {
						for _, c := range pieces(w.change(1+rnd.IntN(30), tc.size, !tc.appendOnly), tc.size) {
							x.send(0, c)
						}
					}
					if rnd.IntN(9) == 0 && !tc.appendOnly { // everything goes
						w.rows = w.deleteAllTo(x, 0, tc.size)
					}
					r.barrier(nil)
					got.apply(t, n.Schema, x.take())
					w.mark()
					got.check(t, bagOf(n.Schema, naiveAgg(n, w.rows)), "seed %d step %d", seed, step)
					if rnd.IntN(8) == 0 {
						if rnd.IntN(2) == 0 { // changes that are lost
							for _, c := range pieces(w.change(5, tc.size, !tc.appendOnly), tc.size) {
								x.send(0, c)
							}
							w.lose()
						}
						r.crash()
						x = start()
						got.apply(t, n.Schema, x.take())
						got.check(t, bagOf(n.Schema, naiveAgg(n, w.rows)), "seed %d step %d after restart", seed, step)
					}
				}
				r.stop()
				r.open()
			}
		})
	}
}
