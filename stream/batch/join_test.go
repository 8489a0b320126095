package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// joinNaive tries every pair.
func joinNaive(kind plan.JoinKind, left, right []types.Row, nl, nr int, on func(l, r types.Row) bool) []types.Row {
	var out []types.Row
	pair := func(l, r types.Row) {
		if l == nil {
			l = make(types.Row, nl)
		}
		if r == nil {
			r = make(types.Row, nr)
		}
		out = append(out, append(append(types.Row{}, l...), r...))
	}
	hit := make([]bool, len(right))
	for _, l := range left {
		found := false
		for i, r := range right {
			if !on(l, r) {
				continue
			}
			found, hit[i] = true, true
			if kind != plan.Semi && kind != plan.Anti {
				pair(l, r)
			}
		}
		switch {
		case kind == plan.Semi && found, kind == plan.Anti && !found:
			out = append(out, l)
		case (kind == plan.Left || kind == plan.Full) && !found:
			pair(l, nil)
		}
	}
	if kind == plan.Right || kind == plan.Full {
		for i, r := range right {
			if !hit[i] {
				pair(nil, r)
			}
		}
	}
	return out
}

func TestJoin(t *testing.T) {
	seeds(t, 120, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		keys := randomTypes(rnd, rnd.IntN(3))
		lt, rt := append(keys[:len(keys):len(keys)], types.Int4), append([]types.Type{types.Int4}, keys...)
		left, right := randomRows(rnd, lt, randomLen(rnd)), randomRows(rnd, rt, randomLen(rnd))
		if len(keys) == 0 && len(left)*len(right) > 20_000 {
			left = left[:20]
		}
		n := &plan.Join{Kind: plan.JoinKind(rnd.IntN(6)), Left: r.table(lt, left), Right: r.table(rt, right)}
		for i := range keys {
			n.LeftKeys, n.RightKeys = append(n.LeftKeys, i), append(n.RightKeys, i+1)
		}
		if rnd.IntN(2) == 0 {
			for range keys {
				n.NullSafe = append(n.NullSafe, rnd.IntN(2) == 0)
			}
		}
		residual := rnd.IntN(2) == 0
		if residual {
			n.On = op(t, "<", &expr.ColRef{Index: len(keys), Typ: types.Int4}, &expr.ColRef{Index: len(keys) + 1, Typ: types.Int4})
		}
		want := joinNaive(n.Kind, left, right, len(lt), len(rt), func(l, r types.Row) bool {
			for i := range keys {
				a, b := l[i], r[i+1]
				if a.IsNull() || b.IsNull() {
					if n.NullSafe == nil || !n.NullSafe[i] || a.IsNull() != b.IsNull() {
						return false
					}
					continue
				}
				if types.Compare(a, b) != 0 {
					return false
				}
			}
			if !residual {
				return true
			}
			a, b := l[len(keys)], r[0]
			return !a.IsNull() && !b.IsNull() && a.Int() < b.Int()
		})
		r.sizes(rnd, func() { r.same(n, r.must(n), want, false) })
	})
}

// All rows share one key, so that splitting by hash does not help.
func TestJoinOneKey(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	r := newRig(t)
	var left, right []types.Row
	for i := range 300 {
		left = append(left, types.Row{types.NewInt(7), types.NewInt(int64(i))})
		right = append(right, types.Row{types.NewInt(7), types.NewInt(int64(rnd.IntN(600)))})
	}
	typs := []types.Type{types.Int8, types.Int8}
	for kind := plan.Inner; kind <= plan.Anti; kind++ {
		n := &plan.Join{Kind: kind, Left: r.table(typs, left), Right: r.table(typs, right), LeftKeys: []int{0}, RightKeys: []int{0}}
		n.On = op(t, "=", &expr.ColRef{Index: 1, Typ: types.Int8}, &expr.ColRef{Index: 3, Typ: types.Int8})
		want := joinNaive(kind, left, right, 2, 2, func(l, r types.Row) bool { return l[1].Int() == r[1].Int() })
		r.env.Memory = 3000
		r.same(n, r.must(n), want, false)
	}
}

// A join holds the input that ends first, and an empty one ends it at once.
func TestJoinSides(t *testing.T) {
	r := newRig(t)
	var many []types.Row
	for i := range 10_000 {
		many = append(many, types.Row{types.NewInt(int64(i))})
	}
	typs := []types.Type{types.Int8}
	big, small, none := r.table(typs, many), r.table(typs, many[5:8]), r.table(typs, nil)
	join := func(kind plan.JoinKind, l, right plan.Node) int {
		return len(r.must(&plan.Join{Kind: kind, Left: l, Right: right, LeftKeys: []int{0}, RightKeys: []int{0}}))
	}
	for _, c := range []struct {
		kind plan.JoinKind
		l, r plan.Node
		want int
	}{
		{plan.Inner, small, big, 3}, {plan.Left, small, big, 3}, {plan.Right, small, big, 10_000}, {plan.Full, small, big, 10_000},
		{plan.Inner, big, small, 3}, {plan.Left, big, small, 10_000}, {plan.Right, big, small, 3}, {plan.Full, big, small, 10_000},
		{plan.Semi, small, big, 3}, {plan.Anti, big, small, 9_997},
		{plan.Inner, none, big, 0}, {plan.Inner, big, none, 0}, {plan.Left, none, big, 0}, {plan.Right, none, big, 10_000},
		{plan.Left, big, none, 10_000}, {plan.Right, big, none, 0}, {plan.Full, none, big, 10_000}, {plan.Full, none, none, 0},
		{plan.Semi, big, none, 0}, {plan.Anti, big, none, 10_000}, {plan.Anti, none, big, 0},
	} {
		if got := join(c.kind, c.l, c.r); got != c.want {
			t.Errorf("kind %d: %d rows, want %d", c.kind, got, c.want)
		}
	}
}

func TestLateral(t *testing.T) {
	seeds(t, 60, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		typs := []types.Type{types.Int8, types.Int8}
		left, right := randomRows(rnd, typs, min(150, randomLen(rnd))), randomRows(rnd, typs, min(150, randomLen(rnd)))
		lp, rp := r.table(typs, left), r.table(typs, right)
		n := &plan.Join{Left: lp, Lateral: true, Kind: []plan.JoinKind{plan.Inner, plan.Left, plan.Semi, plan.Anti}[rnd.IntN(4)]}
		n.Right = &plan.Filter{Input: rp, Cond: op(t, "=", col(rp, 0), outerCol(1, 0, types.Int8))}
		residual := rnd.IntN(2) == 0
		if residual {
			n.On = op(t, "<", &expr.ColRef{Index: 1, Typ: types.Int8}, &expr.ColRef{Index: 3, Typ: types.Int8})
		}
		want := joinNaive(n.Kind, left, right, 2, 2, func(l, r types.Row) bool {
			if l[0].IsNull() || r[0].IsNull() || l[0].Int() != r[0].Int() {
				return false
			}
			return !residual || !l[1].IsNull() && !r[1].IsNull() && l[1].Int() < r[1].Int()
		})
		r.sizes(rnd, func() { r.same(n, r.must(n), want, false) })
	})
}

// A lateral join inside a lateral join sees the rows of both.
func TestLateralNested(t *testing.T) {
	r := newRig(t)
	ints := func(n int) plan.Node {
		var rows []types.Row
		for i := range n {
			rows = append(rows, types.Row{types.NewInt(int64(i + 1))})
		}
		return r.table([]types.Type{types.Int8}, rows)
	}
	a, b := ints(3), ints(4)
	series := func(args ...expr.Expr) plan.Node {
		fn, _, err := expr.ResolveTableFunc("generate_series", []types.Type{types.Int8, types.Int8})
		if err != nil {
			t.Fatal(err)
		}
		return &plan.FuncScan{Fn: fn, Args: args, Out: types.Schema{{Name: "g", Type: types.Int8}, {Name: "ordinality", Type: types.Int8}}, Ordinality: true}
	}
	// a, LATERAL (b, LATERAL generate_series(a.x, b.x))
	inner := &plan.Join{Left: b, Right: series(outerCol(2, 0, types.Int8), outerCol(1, 0, types.Int8)), Lateral: true}
	n := &plan.Join{Left: a, Right: inner, Lateral: true}
	var want []types.Row
	for x := int64(1); x <= 3; x++ {
		for y := int64(1); y <= 4; y++ {
			for z := x; z <= y; z++ {
				want = append(want, types.Row{types.NewInt(x), types.NewInt(y), types.NewInt(z), types.NewInt(z - x + 1)})
			}
		}
	}
	r.same(n, r.must(n), want, true)
}

func TestSeries(t *testing.T) {
	r := newRig(t)
	const top, bottom = int64(1<<63 - 1), int64(-1 << 63)
	for _, c := range []struct {
		from, to, step int64
		want           string
	}{
		{1, 3, 1, "[1 2 3]"}, {3, 1, 1, "[]"}, {5, 1, -2, "[5 3 1]"}, {1, 6, 2, "[1 3 5]"},
		{top - 1, top, 1, fmt.Sprint([]int64{top - 1, top})}, {top - 1, top, 2, fmt.Sprint([]int64{top - 1})},
		{bottom + 1, bottom, -1, fmt.Sprint([]int64{bottom + 1, bottom})},
	} {
		fn, _, err := expr.ResolveTableFunc("generate_series", []types.Type{types.Int8, types.Int8, types.Int8})
		if err != nil {
			t.Fatal(err)
		}
		got := []int64{}
		for _, row := range r.must(&plan.FuncScan{Fn: fn, Args: []expr.Expr{num(c.from), num(c.to), num(c.step)}, Out: types.Schema{{Name: "g", Type: types.Int8}}}) {
			got = append(got, row[0].Int())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestProjectSet(t *testing.T) {
	r := newRig(t)
	in := r.table([]types.Type{types.Int8, types.Int8}, []types.Row{
		{types.NewInt(2), types.NewInt(3)}, {types.NewInt(0), types.NewInt(0)}, {types.NewInt(1), {}}, {types.NewInt(3), types.NewInt(1)}})
	fn, _, err := expr.ResolveTableFunc("generate_series", []types.Type{types.Int8, types.Int8})
	if err != nil {
		t.Fatal(err)
	}
	n := &plan.ProjectSet{Input: in, Fns: []*expr.TableFunc{fn, fn}, Names: []string{"a", "b"},
		Args: [][]expr.Expr{{num(1), col(in, 0)}, {num(1), col(in, 1)}}}
	i, null := types.NewInt, types.Datum{}
	want := []types.Row{
		{i(2), i(3), i(1), i(1)}, {i(2), i(3), i(2), i(2)}, {i(2), i(3), null, i(3)},
		{i(1), null, i(1), null},
		{i(3), i(1), i(1), i(1)}, {i(3), i(1), i(2), null}, {i(3), i(1), i(3), null},
	}
	for _, size := range []int{0, 1, 2} {
		r.env.ChunkSize = size
		r.same(n, r.must(n), want, true)
	}
}
