package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// counting counts how often relations are read.
func (r *rig) counting() map[string]int {
	calls := map[string]int{}
	system := r.env.System
	r.env.System = func(ctx context.Context, rel *catalog.Relation, cols []int) (*chunk.Chunk, error) {
		calls[rel.Name]++
		return system(ctx, rel, cols)
	}
	return calls
}

func (r *rig) ints(vals ...any) *plan.Scan {
	var rows []types.Row
	for _, v := range vals {
		d := types.Datum{}
		if n, ok := v.(int); ok {
			d = types.NewInt(int64(n))
		}
		rows = append(rows, types.Row{d})
	}
	return r.table([]types.Type{types.Int8}, rows)
}

func (r *rig) column(n plan.Node) []any {
	r.t.Helper()
	var out []any
	for _, row := range r.must(n) {
		switch {
		case row[0].IsNull():
			out = append(out, nil)
		case row[0].Kind() == types.KindBool:
			out = append(out, row[0].Bool())
		default:
			out = append(out, int(row[0].Int()))
		}
	}
	return out
}

func equalAny(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func projected(in plan.Node, x expr.Expr) plan.Node {
	return &plan.Project{Input: in, Exprs: []expr.Expr{x}, Names: []string{"x"}}
}

func TestSubqueries(t *testing.T) {
	r := newRig(t)
	outer := r.ints(1, 2, nil, 3, 2)
	inner := r.ints(2, 3, 3)
	withNull, none := r.ints(2, nil), r.ints()
	eq := op(t, "=", num(1), num(1)).(*expr.Call).Fn
	lt := op(t, "<", num(1), num(1)).(*expr.Call).Fn
	in := func(n plan.Node) expr.Expr {
		return &expr.Subquery{Kind: expr.SubqueryAny, Plan: n, Left: []expr.Expr{col(outer, 0)}, Ops: []*expr.Func{eq}, Typ: types.Bool}
	}
	same := &plan.Filter{Input: inner, Cond: op(t, "=", col(inner, 0), outerCol(1, 0, types.Int8))}
	count := func(n plan.Node) plan.Node {
		return &plan.Agg{Input: n, Aggs: []expr.Agg{aggCall(t, n, "count")}, Names: []string{"n"}}
	}
	for _, c := range []struct {
		name string
		x    expr.Expr
		want []any
	}{
		{"in", in(inner), []any{false, true, nil, true, true}},
		{"in with null", in(withNull), []any{nil, true, nil, nil, true}},
		{"in nothing", in(none), []any{false, false, false, false, false}},
		{"not in", &expr.Not{Arg: in(inner)}, []any{true, false, nil, false, false}},
		{"less than all", &expr.Subquery{Kind: expr.SubqueryAll, Plan: inner, Left: []expr.Expr{col(outer, 0)}, Ops: []*expr.Func{lt}, Typ: types.Bool},
			[]any{true, false, nil, false, false}},
		{"exists", &expr.Subquery{Kind: expr.SubqueryExists, Plan: inner, Typ: types.Bool}, []any{true, true, true, true, true}},
		{"correlated exists", &expr.Subquery{Kind: expr.SubqueryExists, Plan: same, Typ: types.Bool, Correlated: true}, []any{false, true, false, true, true}},
		{"correlated count", &expr.Subquery{Kind: expr.SubqueryScalar, Plan: count(same), Typ: types.Int8, Correlated: true}, []any{0, 1, 0, 2, 1}},
		{"scalar of nothing", &expr.Subquery{Kind: expr.SubqueryScalar, Plan: none, Typ: types.Int8}, []any{nil, nil, nil, nil, nil}},
	} {
		for _, size := range []int{0, 1, 2} {
			r.env.ChunkSize = size
			if got := r.column(projected(outer, c.x)); !equalAny(got, c.want) {
				t.Errorf("%s, chunk %d: %v, want %v", c.name, size, got, c.want)
			}
		}
	}

	_, err := r.run(projected(outer, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: inner, Typ: types.Int8}))
	if sqlerr.Code(err) != sqlerr.CardinalityViolation || err.Error() != "more than one row returned by a subquery used as an expression" {
		t.Errorf("two rows: %v", err)
	}
}

// A row of two levels out is seen, and what does not depend on the row at hand is not computed again.
func TestNestedSubqueries(t *testing.T) {
	r := newRig(t)
	calls := r.counting()
	a, b, c := r.ints(1, 2, 3, 1, 2), r.ints(10, 20), r.ints(100, 200, 300)
	// select (select sum((select count(*) from c where a.x + b.x <= c.x)) from b) from a
	sum := op(t, "+", outerCol(2, 0, types.Int8), outerCol(1, 0, types.Int8))
	deep := &plan.Filter{Input: c, Cond: op(t, "<=", op(t, "*", sum, num(10)), col(c, 0))}
	count := &plan.Agg{Input: deep, Aggs: []expr.Agg{aggCall(t, deep, "count")}, Names: []string{"n"}}
	mid := projected(b, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: count, Typ: types.Int8, Correlated: true})
	total := &plan.Agg{Input: mid, Aggs: []expr.Agg{aggCall(t, mid, "max", 0)}, Names: []string{"n"}}
	n := projected(a, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: total, Typ: types.Int8, Correlated: true})
	// 10*(1+10) = 110: 200, 300; 10*(1+20) = 210: 300.
	if got := r.column(n); !equalAny(got, []any{2, 2, 2, 2, 2}) {
		t.Errorf("%v", got)
	}
	for name, n := range calls {
		if n != 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

// Volatile functions are called for each row.
func TestVolatileSubquery(t *testing.T) {
	r := newRig(t)
	seed := uint64(0)
	r.env.Ctx = &expr.Ctx{Seed: func() uint64 { seed++; return seed << 40 }}
	a, one := r.ints(1, 1, 1), r.ints(1)
	x := op(t, "random")
	same := &plan.Filter{Input: one, Cond: op(t, "=", col(one, 0), outerCol(1, 0, types.Int8))}
	n := projected(a, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: projected(same, x), Typ: types.Float8, Correlated: true})
	seen := map[float64]bool{}
	for _, row := range r.must(n) {
		seen[row[0].Float()] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d different values", len(seen))
	}
	n = projected(a, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: projected(one, x), Typ: types.Float8})
	seen = map[float64]bool{}
	for _, row := range r.must(n) {
		seen[row[0].Float()] = true
	}
	if len(seen) != 1 {
		t.Errorf("uncorrelated: %d different values", len(seen))
	}
}

// What was remembered is forgotten where it becomes too much, and answers stay right.
func TestMemoMemory(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(8, 9))
	var vals []any
	for range 500 {
		vals = append(vals, rnd.IntN(50))
	}
	a, b := r.ints(vals...), r.ints(vals...)
	same := &plan.Filter{Input: b, Cond: op(t, "=", col(b, 0), outerCol(1, 0, types.Int8))}
	count := &plan.Agg{Input: same, Aggs: []expr.Agg{aggCall(t, same, "count")}, Names: []string{"n"}}
	n := projected(a, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: count, Typ: types.Int8, Correlated: true})
	times := map[any]int{}
	for _, v := range vals {
		times[v]++
	}
	var want []any
	for _, v := range vals {
		want = append(want, times[v])
	}
	for _, mem := range []int64{0, 2000, 20000} {
		r.env.Memory = mem
		if got := r.column(n); !equalAny(got, want) {
			t.Errorf("memory %d: %v", mem, got)
		}
	}
	r.env.Memory = 100
	_, err := r.run(projected(r.ints(1), &expr.Subquery{Kind: expr.SubqueryArray, Plan: b, Typ: types.ArrayOf(types.Int8)}))
	if sqlerr.Code(err) != sqlerr.OutOfMemory {
		t.Errorf("large result: %v", err)
	}
}

// An error of an expression ends the query, as it is.
func TestErrorsPass(t *testing.T) {
	r := newRig(t)
	in := r.ints(1, 0)
	bad := projected(in, op(t, "/", num(1), col(in, 0)))
	for _, n := range []plan.Node{
		bad,
		&plan.Sort{Input: bad, By: []expr.Order{{}}},
		&plan.Distinct{Input: bad},
		&plan.Agg{Input: bad, GroupBy: []int{0}},
		&plan.Join{Left: bad, Right: in}, &plan.Join{Left: in, Right: bad}, &plan.Join{Left: in, Right: bad, Lateral: true},
		&plan.Join{Left: in, Right: in, On: op(t, "=", op(t, "/", num(1), col(in, 0)), num(1))},
		&plan.SetOp{Op: plan.Except, Ins: []plan.Node{in, bad}, Out: in.Schema()},
		&plan.Limit{Input: &plan.Sort{Input: bad, By: []expr.Order{{}}}, Count: num(1)},
		projected(in, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: bad, Typ: types.Int8}),
	} {
		_, err := r.run(n)
		var e *sqlerr.Error
		if !errors.As(err, &e) || e.Code != sqlerr.DivisionByZero {
			t.Errorf("%T: %v", n, err)
		}
	}
}
