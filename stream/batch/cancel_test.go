package batch

import (
	"context"
	"errors"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// Long queries of every kind end soon after their context does, and leave nothing behind.
func TestCancel(t *testing.T) {
	series := func(n int64) plan.Node {
		fn, _, err := expr.ResolveTableFunc("generate_series", []types.Type{types.Int8, types.Int8})
		if err != nil {
			t.Fatal(err)
		}
		return &plan.FuncScan{Fn: fn, Args: []expr.Expr{num(1), num(n)}, Out: types.Schema{{Name: "g", Type: types.Int8}}}
	}
	endless := series(1 << 40)
	long := series(1_000_000)
	none := func(n plan.Node) plan.Node {
		return &plan.Filter{Input: n, Cond: op(t, "<", col(n, 0), num(0))}
	}
	count := func(n plan.Node) plan.Node {
		return &plan.Agg{Input: n, Aggs: []expr.Agg{aggCall(t, n, "count")}, Names: []string{"n"}}
	}
	never := op(t, "<", op(t, "+", &expr.ColRef{Index: 0, Typ: types.Int8}, &expr.ColRef{Index: 1, Typ: types.Int8}), num(0))
	distinct := aggCall(t, endless, "count", 0)
	distinct.Distinct = true
	for name, n := range map[string]plan.Node{
		"filter":            none(endless),
		"sort":              &plan.Sort{Input: endless, By: []expr.Order{{Col: 0, Desc: true}}},
		"top n":             &plan.Limit{Input: &plan.Sort{Input: endless, By: []expr.Order{{Col: 0, Desc: true}}}, Count: num(100)},
		"large limit":       &plan.Limit{Input: &plan.Sort{Input: endless, By: []expr.Order{{Col: 0, Desc: true}}}, Count: num(1 << 30)},
		"offset":            &plan.Limit{Input: endless, Offset: num(1 << 39)},
		"count":             count(endless),
		"groups":            &plan.Agg{Input: endless, GroupBy: []int{0}},
		"count distinct":    &plan.Agg{Input: endless, Aggs: []expr.Agg{distinct}, Names: []string{"n"}},
		"distinct":          none(&plan.Distinct{Input: endless}),
		"except":            &plan.SetOp{Op: plan.Except, Ins: []plan.Node{endless, long}, Out: endless.Schema()},
		"hash join":         count(&plan.Join{Left: endless, Right: endless, LeftKeys: []int{0}, RightKeys: []int{0}}),
		"semi join":         count(&plan.Join{Kind: plan.Anti, Left: endless, Right: long, LeftKeys: []int{0}, RightKeys: []int{0}}),
		"nested loop":       &plan.Join{Left: long, Right: long, On: never},
		"nested loop, big":  &plan.Join{Left: long, Right: endless, On: never},
		"lateral":           none(&plan.Join{Left: endless, Right: none(series(10)), Lateral: true}),
		"lateral, big":      none(&plan.Join{Left: series(10), Right: none(endless), Lateral: true}),
		"subquery":          projected(series(1), &expr.Subquery{Kind: expr.SubqueryExists, Plan: none(endless), Typ: types.Bool}),
		"correlated":        none(projected(endless, &expr.Subquery{Kind: expr.SubqueryScalar, Plan: count(series(1000)), Typ: types.Int8, Correlated: true})),
		"set in the select": none(&plan.ProjectSet{Input: endless, Names: []string{"x"}, Fns: []*expr.TableFunc{endless.(*plan.FuncScan).Fn}, Args: [][]expr.Expr{{num(1), num(0)}}}),
	} {
		for _, memory := range []int64{0, 1 << 20} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				r.env.Memory = memory
				it, err := Run(n, &r.env)
				if err != nil {
					t.Fatal(err)
				}
				defer it.Close()
				reason := errors.New("canceled for a test")
				ctx, cancel := context.WithCancelCause(context.Background())
				var at time.Time
				time.AfterFunc(30*time.Millisecond, func() { at = time.Now(); cancel(reason) })
				for err == nil {
					var c *chunk.Chunk
					c, err = it.Next(ctx)
					if err == nil && c == nil {
						t.Fatal("it ended")
					}
				}
				late := time.Since(at)
				if err != reason {
					t.Errorf("got %v", err)
				}
				if late > 200*time.Millisecond { // 10 ms is what it should be on an idle machine
					t.Errorf("%v late", late)
				}
				t.Logf("%v late", late)
			})
		}
	}
}

// Closing early, at any point, closes everything.
func TestEarlyClose(t *testing.T) {
	r := newRig(t)
	var rows []types.Row
	for i := range 3000 {
		rows = append(rows, types.Row{types.NewInt(int64(i % 700)), types.NewInt(int64(i))})
	}
	in := r.table([]types.Type{types.Int8, types.Int8}, rows)
	sorted := &plan.Sort{Input: in, By: []expr.Order{{Col: 1, Desc: true}}}
	join := func(kind plan.JoinKind) plan.Node {
		return &plan.Join{Kind: kind, Left: in, Right: sorted, LeftKeys: []int{0}, RightKeys: []int{0}}
	}
	distinct := aggCall(t, in, "array_agg", 1)
	distinct.Distinct = true
	for _, n := range []plan.Node{sorted, &plan.Distinct{Input: in}, &plan.Agg{Input: in, GroupBy: []int{0}, Aggs: []expr.Agg{distinct}, Names: []string{"x"}},
		join(plan.Inner), join(plan.Full), join(plan.Semi), &plan.Join{Left: in, Right: in},
		&plan.SetOp{Op: plan.Intersect, All: true, Ins: []plan.Node{in, in}, Out: in.Schema()},
		&plan.Limit{Input: sorted, Count: num(2500)}} {
		for _, mem := range []int64{0, 3000, 30000} {
			for chunks := range 4 {
				r.env.Memory = mem
				it, err := Run(n, &r.env)
				if err != nil {
					t.Fatal(err)
				}
				for range chunks {
					if _, err := it.Next(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				it.Close()
				it.Close()
				if m := it.(*top).run.mem; m.used != 0 || m.shares != 0 {
					t.Errorf("%T: %+v left", n, m)
				}
				if c, err := it.Next(context.Background()); c != nil || err != nil {
					t.Errorf("%T after Close: %v, %v", n, c, err)
				}
			}
		}
	}
	if files := openFiles(t); files > 0 {
		t.Errorf("%d temporary files are open", files)
	}
}
