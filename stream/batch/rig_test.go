package batch

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A rig runs plans over relations that the test makes up.
type rig struct {
	t    testing.TB
	rows map[catalog.ID]*chunk.Chunk
	env  Env
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, rows: map[catalog.ID]*chunk.Chunk{}}
	r.env.TempDir = t.TempDir()
	r.env.System = func(_ context.Context, rel *catalog.Relation, cols []int) (*chunk.Chunk, error) {
		return r.rows[rel.ID].Project(cols), nil
	}
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 100 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	})
	return r
}

// table makes a relation of rows, and the scan of all its columns.
func (r *rig) table(typs []types.Type, rows []types.Row) *plan.Scan {
	rel := &catalog.Relation{ID: catalog.ID(len(r.rows) + 1), Name: fmt.Sprintf("t%d", len(r.rows)+1), Kind: catalog.System}
	g := newGrower(typs, len(rows))
	for i, t := range typs {
		rel.Columns = append(rel.Columns, catalog.Column{Name: fmt.Sprintf("c%d", i), Type: t})
		for _, row := range rows {
			g.cols[i].Append(row[i])
		}
	}
	g.n = len(rows)
	r.rows[rel.ID] = g.chunk()
	return &plan.Scan{Rel: rel, Cols: upTo(len(typs))}
}

// run gives a plan's rows in order.
func (r *rig) run(n plan.Node) ([]types.Row, error) {
	r.t.Helper()
	it, err := Run(n, &r.env)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	typs := n.Schema().Types()
	var out []types.Row
	for {
		c, err := it.Next(context.Background())
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		if c.Len() == 0 || len(c.Cols) != len(typs) {
			r.t.Fatalf("a chunk of %d rows and %d columns of a plan with %d", c.Len(), len(c.Cols), len(typs))
		}
		for i, col := range c.Cols {
			if col.Len() != c.Len() || col.Type().Kind() != typs[i].Kind() {
				r.t.Fatalf("column %d of type %d has %d values of type %d, chunk %d", i, typs[i].OID, col.Len(), col.Type().OID, c.Len())
			}
		}
		for i := range c.Len() {
			out = append(out, c.Row(i))
		}
	}
	if c, err := it.Next(context.Background()); c != nil || err != nil {
		r.t.Fatalf("after the end: %v, %v", c, err)
	}
	it.Close()
	it.Close()
	if m := it.(*top).run.mem; m.used != 0 || m.shares != 0 {
		r.t.Fatalf("after Close: %+v", m)
	}
	return out, nil
}

func (r *rig) must(n plan.Node) []types.Row {
	r.t.Helper()
	rows, err := r.run(n)
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// sizes runs f with small and usual chunks, with much and hardly any memory.
func (r *rig) sizes(rnd *rand.Rand, f func()) {
	r.t.Helper()
	for _, mem := range []int64{0, 1 + rnd.Int64N(3000), 20000} {
		r.env.Memory, r.env.ChunkSize = mem, 1+rnd.IntN(40)
		if rnd.IntN(3) == 0 {
			r.env.ChunkSize = 0
		}
		f()
	}
}

func rowText(typs []types.Type, row types.Row) string {
	var b strings.Builder
	for i, d := range row {
		if i > 0 {
			b.WriteByte('|')
		}
		if d.IsNull() {
			b.WriteString("NULL")
		} else {
			b.WriteString(d.Text(typs[i]))
		}
	}
	return b.String()
}

func texts(n plan.Node, rows []types.Row) []string {
	typs := n.Schema().Types()
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = rowText(typs, r)
	}
	return out
}

// same fails unless got and want are equal; as sets of rows unless ordered.
func (r *rig) same(n plan.Node, got, want []types.Row, ordered bool) {
	r.t.Helper()
	g, w := texts(n, got), texts(n, want)
	if !ordered {
		slices.Sort(g)
		slices.Sort(w)
	}
	if slices.Equal(g, w) {
		return
	}
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	show := func(s []string) string { return strings.Join(s[max(0, min(i-2, len(s))):min(i+4, len(s))], "\n  ") }
	r.t.Fatalf("memory %d, chunk %d: %d rows, want %d; row %d:\n  %s\nwant\n  %s", r.env.Memory, r.env.ChunkSize, len(g), len(w), i, show(g), show(w))
}

var kinds = []types.Type{types.Int4, types.Int8, types.Text, types.Float8, types.Numeric, types.IntervalT, types.Bool, types.ArrayOf(types.Int4), types.ArrayOf(types.Text),
	types.ArrayOf(types.Numeric), types.Bpchar}

// value makes a value of few different ones, so that they meet.
func value(rnd *rand.Rand, t types.Type) types.Datum {
	if rnd.IntN(8) == 0 {
		return types.Datum{}
	}
	n := rnd.IntN(12)
	switch t.Kind() {
	case types.KindBool:
		return types.NewBool(n&1 == 0)
	case types.KindInt:
		return types.NewInt(int64(n - 4))
	case types.KindFloat:
		return types.NewFloat([]float64{0, math.Copysign(0, -1), 1, -1, 1.5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e-300, 2, 3}[n])
	case types.KindString:
		return types.NewString([]string{"", "a", "b", "ab", "abcdefgh", "abcdefghi", "abcdefghij", "a\x00", "é", "z", "aa", "B"}[n])
	case types.KindDecimal:
		return types.NewDecimal(types.NewDecimalParts([]int64{0, 1, 10, 100, -1, -10, 15, 150, 2, 20, 3, -3}[n], n%3))
	case types.KindInterval:
		return types.NewInterval([]types.Interval{{}, {Days: 1}, {Micros: 86400e6}, {Months: 1}, {Days: 30}, {Micros: 1}, {Micros: -1}, {Days: -1},
			{Months: 12}, {Months: 1, Days: -30}, {Days: 2}, {Days: 1, Micros: 86400e6}}[n])
	case types.KindList:
		l := &types.List{Elem: *t.Elem, Lower: 1}
		for range n % 4 {
			l.Items = append(l.Items, value(rnd, *t.Elem))
		}
		return types.NewList(l)
	}
	panic("no values")
}

func randomRows(rnd *rand.Rand, typs []types.Type, n int) []types.Row {
	out := make([]types.Row, n)
	for i := range out {
		for _, t := range typs {
			out[i] = append(out[i], value(rnd, t))
		}
	}
	return out
}

func randomTypes(rnd *rand.Rand, n int) []types.Type {
	out := make([]types.Type, n)
	for i := range out {
		out[i] = kinds[rnd.IntN(len(kinds)-1)] // without char(n), whose blanks the naive operators do not know
	}
	return out
}

func randomLen(rnd *rand.Rand) int { return []int{0, 1, 3, 20, 150, 400}[rnd.IntN(6)] }

// seeds runs f with seeds of the test.
func seeds(t *testing.T, n int, f func(t *testing.T, rnd *rand.Rand)) {
	if testing.Short() {
		n = n/4 + 1
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
	}
}

func op(t testing.TB, name string, args ...expr.Expr) expr.Expr {
	t.Helper()
	typs := make([]types.Type, len(args))
	for i, a := range args {
		typs[i] = a.Type()
	}
	fn, want, err := expr.Resolve(name, !strings.ContainsAny(name, "abcdefghijklmnopqrstuvwxyz"), typs)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		if !want[i].Equal(typs[i]) {
			args[i] = &expr.Cast{Arg: a, Typ: want[i]}
		}
	}
	ret := fn.Ret
	if fn.RetType != nil {
		ret = fn.RetType(want)
	}
	return &expr.Call{Fn: fn, Args: args, Typ: ret}
}

func col(n plan.Node, i int) expr.Expr { return &expr.ColRef{Index: i, Typ: n.Schema()[i].Type} }
func num(v int64) expr.Expr            { return &expr.Const{Val: types.NewInt(v), Typ: types.Int8} }
func outerCol(level, i int, t types.Type) expr.Expr {
	return &expr.OuterRef{Level: level, Index: i, Typ: t, Name: "o"}
}

func aggCall(t testing.TB, in plan.Node, name string, args ...int) expr.Agg {
	t.Helper()
	typs := make([]types.Type, len(args))
	for i, a := range args {
		typs[i] = in.Schema()[a].Type
	}
	fn, _, err := expr.ResolveAgg(name, typs, len(args) == 0)
	if err != nil {
		t.Fatal(err)
	}
	ret := fn.Ret
	if fn.RetType != nil {
		ret = fn.RetType(typs)
	}
	return expr.Agg{Fn: fn, Args: args, Typ: ret, Filter: -1}
}

// A query gives the same rows in the same order each time, in memory or not.
func TestDeterminism(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(2, 3))
	rel := &catalog.Relation{ID: 20000, Name: "t", Kind: catalog.Table, Vnodes: 16, Dist: []int{0}, Key: []catalog.KeyColumn{{Col: 0}},
		Columns: []catalog.Column{{Name: "a", Type: types.Int8}, {Name: "b", Type: types.Int8}}}
	var rows []types.Row
	for i := range 20_000 {
		rows = append(rows, types.Row{types.NewInt(int64(i)), types.NewInt(rnd.Int64N(3000))})
	}
	r.stored(rel, rows)
	in := &plan.Scan{Rel: rel, Cols: []int{0, 1}}
	distinct := aggCall(t, in, "count", 0)
	distinct.Distinct = true
	for _, n := range []plan.Node{
		in,
		&plan.Distinct{Input: in, On: []int{1}},
		&plan.Agg{Input: in, GroupBy: []int{1}, Aggs: []expr.Agg{aggCall(t, in, "array_agg", 0), distinct}, Names: []string{"x", "y"}},
		&plan.Join{Kind: plan.Full, Left: in, Right: in, LeftKeys: []int{0}, RightKeys: []int{1}},
		&plan.Sort{Input: in, By: []expr.Order{{Col: 1}}},
		&plan.SetOp{Op: plan.Intersect, All: true, Ins: []plan.Node{in, in}, Out: in.Schema()},
	} {
		for _, mem := range []int64{0, 50_000} {
			r.env.Memory = mem
			first := texts(n, r.must(n))
			for range 2 {
				if !slices.Equal(first, texts(n, r.must(n))) {
					t.Errorf("%T with %d bytes: another order", n, mem)
				}
			}
		}
	}
}

// Subqueries are allowed wherever expressions are.
func TestSubqueryPlaces(t *testing.T) {
	r := newRig(t)
	a, b := r.ints(1, 2, 3), r.ints(2, 3, 4)
	eq := op(t, "=", num(1), num(1)).(*expr.Call).Fn
	in := func(x expr.Expr, n plan.Node) expr.Expr {
		return &expr.Subquery{Kind: expr.SubqueryAny, Plan: n, Left: []expr.Expr{x}, Ops: []*expr.Func{eq}, Typ: types.Bool}
	}
	two := &expr.Subquery{Kind: expr.SubqueryScalar, Plan: r.ints(2), Typ: types.Int8}
	sum := op(t, "+", &expr.ColRef{Index: 0, Typ: types.Int8}, &expr.ColRef{Index: 1, Typ: types.Int8})
	least := &plan.Filter{Input: b, Cond: op(t, "<", col(b, 0), outerCol(1, 1, types.Int8))}
	exists := &expr.Subquery{Kind: expr.SubqueryExists, Plan: least, Typ: types.Bool, Correlated: true}
	for _, c := range []struct {
		n    plan.Node
		want int
	}{
		{&plan.Values{Out: a.Schema(), Rows: [][]expr.Expr{{two}, {num(1)}}}, 2},
		{&plan.Limit{Input: a, Count: two}, 2},
		{&plan.Filter{Input: a, Cond: in(col(a, 0), b)}, 2},
		{&plan.Filter{Input: a, Cond: &expr.Not{Arg: in(op(t, "+", col(a, 0), two), b)}}, 1},
		{&plan.Join{Left: a, Right: b, On: in(sum, r.ints(3, 7))}, 2},
		{&plan.Join{Left: a, Right: b, On: exists}, 6},
		{&plan.Join{Kind: plan.Anti, Left: a, Right: b, LeftKeys: []int{0}, RightKeys: []int{0}, On: exists}, 2},
		{&plan.Join{Left: a, Right: b, On: exists, Lateral: true}, 6},
	} {
		for _, size := range []int{0, 1} {
			r.env.ChunkSize = size
			if got := r.must(c.n); len(got) != c.want {
				t.Errorf("%T: %d rows, want %d", c.n, len(got), c.want)
			}
		}
	}
}
