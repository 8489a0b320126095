package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

func TestAgg(t *testing.T) {
	seeds(t, 120, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		keys := randomTypes(rnd, rnd.IntN(3))
		typs := append(slices.Clone(keys), types.Int8, types.Text, types.Bool)
		rows := randomRows(rnd, typs, randomLen(rnd))
		in := r.table(typs, rows)
		k := len(keys)
		n := &plan.Agg{Input: in, GroupBy: upTo(k)}
		add := func(a expr.Agg) {
			n.Aggs, n.Names = append(n.Aggs, a), append(n.Names, "a")
		}
		with := func(a expr.Agg, distinct bool, filter int, order ...expr.Order) expr.Agg {
			a.Distinct, a.Filter, a.Order = distinct, filter, order
			return a
		}
		desc := rnd.IntN(2) == 0
		add(aggCall(t, in, "count"))
		add(aggCall(t, in, "sum", k))
		add(with(aggCall(t, in, "count", k), true, -1))
		add(with(aggCall(t, in, "sum", k), true, k+2))
		add(with(aggCall(t, in, "max", k+1), true, k+2))
		add(with(aggCall(t, in, "array_agg", k), false, -1, expr.Order{Col: k + 1, Desc: desc}, expr.Order{Col: k}))
		add(with(aggCall(t, in, "array_agg", k), true, -1))
		add(with(aggCall(t, in, "string_agg", k+1, k+1), true, -1, expr.Order{Col: k + 1, Desc: true}))

		var groups [][]types.Row
		if k == 0 {
			groups = [][]types.Row{nil}
		}
		for _, row := range rows {
			i := slices.IndexFunc(groups, func(g []types.Row) bool { return len(g) > 0 && g[0][:k].Equal(row[:k]) })
			if i < 0 && k == 0 {
				i = 0
			} else if i < 0 {
				i = len(groups)
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], row)
		}
		var want []types.Row
		for _, g := range groups {
			var row types.Row
			if k > 0 {
				row = append(row, g[0][:k]...)
			}
			want = append(want, append(row, aggNaive(g, k, desc)...))
		}
		r.sizes(rnd, func() { r.same(n, normal(typs, r.must(n)), normal(typs, want), false) })
	})
}

// aggNaive computes the calls of TestAgg over one group.
func aggNaive(g []types.Row, k int, desc bool) types.Row {
	sumOf := func(rows []types.Row) types.Datum {
		sum, any := int64(0), false
		for _, r := range rows {
			if !r[k].IsNull() {
				sum, any = sum+r[k].Int(), true
			}
		}
		if !any {
			return types.Datum{}
		}
		return types.NewDecimal(types.NewDecimalInt(sum))
	}
	unique := func(rows []types.Row, c int) []types.Row {
		var out []types.Row
		for _, r := range rows {
			if !slices.ContainsFunc(out, func(o types.Row) bool { return types.Equal(o[c], r[c]) }) {
				out = append(out, r)
			}
		}
		return out
	}
	yes := slices.DeleteFunc(slices.Clone(g), func(r types.Row) bool { return !r[k+2].Bool() })
	ints := func(rows []types.Row) types.Datum {
		if len(rows) == 0 {
			return types.Datum{}
		}
		l := &types.List{Elem: types.Int8, Lower: 1}
		for _, r := range rows {
			l.Items = append(l.Items, r[k])
		}
		return types.NewList(l)
	}
	count := 0
	for _, r := range unique(g, k) {
		if !r[k].IsNull() {
			count++
		}
	}
	most := types.Datum{}
	for _, r := range yes {
		if !r[k+1].IsNull() && (most.IsNull() || r[k+1].Str() > most.Str()) {
			most = r[k+1]
		}
	}
	var text strings.Builder
	first := true
	for _, r := range sortNaive(unique(g, k+1), []expr.Order{{Col: k + 1, Desc: true}}) {
		if r[k+1].IsNull() {
			continue
		}
		if !first {
			text.WriteString(r[k+1].Str())
		}
		text.WriteString(r[k+1].Str())
		first = false
	}
	joined := types.Datum{}
	if !first {
		joined = types.NewString(text.String())
	}
	return types.Row{types.NewInt(int64(len(g))), sumOf(g), types.NewInt(int64(count)), sumOf(unique(yes, k)), most,
		ints(sortNaive(g, []expr.Order{{Col: k + 1, Desc: desc}, {Col: k}})), ints(sortNaive(unique(g, k), []expr.Order{{Col: k}})), joined}
}

// Groups far beyond memory are split more than once.
func TestAggManyGroups(t *testing.T) {
	r := newRig(t)
	const groups = 20_000
	var rows []types.Row
	for i := range 3 * groups {
		rows = append(rows, types.Row{types.NewString(fmt.Sprintf("key %d", i*7919%groups)), types.NewInt(int64(i))})
	}
	in := r.table([]types.Type{types.Text, types.Int8}, rows)
	n := &plan.Agg{Input: in, GroupBy: []int{0}, Names: []string{"n", "s", "d"}, Aggs: []expr.Agg{aggCall(t, in, "count"), aggCall(t, in, "sum", 1), aggCall(t, in, "count", 1)}}
	n.Aggs[2].Distinct = true
	r.env.Memory = 100 << 10
	got := r.must(n)
	seen := map[string]bool{}
	for _, row := range got {
		if seen[row[0].Str()] || row[1].Int() != 3 || row[3].Int() != 3 {
			t.Fatalf("group %v", row)
		}
		seen[row[0].Str()] = true
	}
	if len(got) != groups {
		t.Fatalf("%d groups", len(got))
	}
}

func TestAggOfNothing(t *testing.T) {
	r := newRig(t)
	in := r.table([]types.Type{types.Int8}, nil)
	n := &plan.Agg{Input: in, Names: []string{"n", "s"}, Aggs: []expr.Agg{aggCall(t, in, "count"), aggCall(t, in, "sum", 0)}}
	r.same(n, r.must(n), []types.Row{{types.NewInt(0), {}}}, true)
	n.GroupBy = []int{0}
	r.same(n, r.must(n), nil, true)
}
