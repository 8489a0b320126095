package planner

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
)

// queries are the plans that testdata/plans names, built by hand.
var queries = map[string]func(w *world) rowset{
	"busiest": func(w *world) rowset {
		f, a := w.scan("flights", "f"), w.scan("airports", "a")
		return f.join(plan.Inner, a, func(b rowset) expr.Expr { return b.equal("a.iata", "f.origin") }).
			agg([]string{"a.state", "f.origin"}, "count()", "avg(f.delay)", "max(f.delay)")
	},
	"comma-join": func(w *world) rowset {
		j := w.scan("t", "").join(plan.Inner, w.scan("u", ""), nil).join(plan.Inner, w.scan("airports", "a"), nil)
		return j.where(j.equal("t.b", "a.iata"), j.equal("a.state", "u.b"), op(">", j.col("t.a"), num(5)), op("=", j.col("u.a"), num(1))).
			project("t.id", "u.a", "a.name")
	},
	"left-to-inner": func(w *world) rowset {
		j := w.scan("t", "").join(plan.Left, w.scan("u", ""), func(b rowset) expr.Expr { return b.equal("t.id", "u.id") })
		return j.where(op(">", j.col("u.a"), num(5)))
	},
	"left": func(w *world) rowset {
		j := w.scan("t", "").join(plan.Left, w.scan("u", ""), func(b rowset) expr.Expr {
			return and([]expr.Expr{b.equal("t.a", "u.a"), op("<", b.col("t.c"), num(3)), op("<", b.col("u.id"), num(4))})
		})
		return j.where(op("=", j.col("t.b"), str("x"))).project("t.b", "u.b")
	},
	"full": func(w *world) rowset {
		return w.scan("t", "").join(plan.Full, w.scan("u", ""), func(b rowset) expr.Expr { return b.equal("t.a", "u.a") }).project("t.b", "u.b")
	},
	"semi": func(w *world) rowset {
		return w.scan("t", "").join(plan.Semi, w.scan("u", ""), func(b rowset) expr.Expr { return b.equal("t.a", "u.a") }).project("t.b")
	},
	"inequality": func(w *world) rowset {
		return w.scan("t", "").join(plan.Inner, w.scan("u", ""), func(b rowset) expr.Expr { return op("<", b.col("t.a"), b.col("u.a")) }).project("t.id", "u.id")
	},
	"expression-key": func(w *world) rowset {
		return w.scan("t", "").join(plan.Inner, w.scan("u", ""), func(b rowset) expr.Expr { return op("=", op("+", b.col("t.a"), num(1)), b.col("u.a")) }).project("t.b", "u.b")
	},
	"having": func(w *world) rowset {
		g := w.scan("t", "").agg([]string{"a", "b"}, "sum(c)", "count(distinct c)", "count()")
		return g.where(op("=", g.col("a"), num(7)), op(">", g.col("sum(c)"), big(3))).project("b", "sum(c)")
	},
	"global":   func(w *world) rowset { return w.scan("flights", "").agg(nil, "count()") },
	"copy":     func(w *world) rowset { return w.scan("flights", "").project("day", "origin") },
	"top":      func(w *world) rowset { return w.scan("t", "").sort("-c", "b").limit(10).project("b") },
	"ordered":  func(w *world) rowset { return w.scan("t", "").sort("c") },
	"distinct": func(w *world) rowset { return w.scan("t", "").project("a", "b").distinct() },
	"dedup":    func(w *world) rowset { return w.scan("events", "").project("kind").distinct() },
	"distinct-on": func(w *world) rowset {
		r := w.scan("t", "")
		r.n = &plan.Distinct{Input: r.n, On: r.cols("a"), Order: r.order("a", "-c")}
		return r.project("a", "b")
	},
	"union": func(w *world) rowset {
		u := setOp(plan.Union, true, w.scan("t", "").project("a", "b"), w.scan("u", "").project("id", "b"), w.scan("flights", "").project("delay", "origin"))
		return u.where(op("=", u.col("b"), str("x")))
	},
	"except": func(w *world) rowset {
		return setOp(plan.Except, false, w.scan("t", "").project("a", "b"), w.scan("u", "").project("a", "b"))
	},
	"values": func(w *world) rowset {
		r := w.scan("one", "").project("id")
		r.n = &plan.Values{Out: r.n.Schema(), Rows: [][]expr.Expr{{num(1)}, {num(2)}}}
		return r
	},
	"by-index": func(w *world) rowset { return w.scan("t", "").agg([]string{"a"}, "sum(c)") },
	"by-key":   func(w *world) rowset { return w.scan("t", "").agg([]string{"id"}, "sum(c)") },
	"chain": func(w *world) rowset {
		g := w.scan("t", "").agg([]string{"b", "c"}, "sum(a)")
		return g.join(plan.Inner, w.scan("u", ""), func(b rowset) expr.Expr { return b.equal("b", "u.b") }).project("sum(a)", "u.a")
	},
	"single": func(w *world) rowset { return w.scan("one", "").agg([]string{"x"}, "count()") },
	"self": func(w *world) rowset {
		return w.scan("t", "x").join(plan.Inner, w.scan("t", "y"), func(b rowset) expr.Expr { return b.equal("x.id", "y.a") }).project("x.b", "y.b")
	},
	"false": func(w *world) rowset { return w.scan("t", "").where(boolean(false)) },
	"point": func(w *world) rowset { r := w.scan("t", ""); return r.where(op("=", num(5), r.col("id"))).project("b") },
	"range": func(w *world) rowset {
		r := w.scan("t", "")
		return r.where(op(">", r.col("id"), num(5)), op("<=", r.col("id"), num(9)), op("=", r.col("b"), str("x")))
	},
	"indexed": func(w *world) rowset {
		r := w.scan("t", "")
		return r.where(op("=", r.col("a"), num(5)), op("<", r.col("id"), num(9)))
	},
	"lookup": func(w *world) rowset {
		r := w.scan("u", "")
		return r.where(op("=", r.col("b"), str("x")), op(">", r.col("a"), num(0)))
	},
	"in": func(w *world) rowset {
		r := w.scan("t", "")
		return r.where(&expr.InList{Arg: r.col("id"), List: []expr.Expr{num(1), num(2), num(1)}, Eq: op("=", num(1), num(1)).(*expr.Call).Fn})
	},
	"count-scan": func(w *world) rowset {
		r := w.scan("t", "")
		return r.where(op(">", r.col("c"), num(1))).agg(nil, "count()")
	},
}

func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w := newWorld()
			s := Settings{LocalityEnabled: true, LocalityMode: "off", CacheBudget: 64 << 20, IndexSelection: true, JoinOrdering: true}
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "mode":
					s.LocalityMode = a.Vals[0]
				case "no-index":
					s.IndexSelection = false
				case "order":
					o, err := ParseBackfillOrder(strings.Join(a.Vals, ","))
					if err != nil {
						return err.Error() + "\n"
					}
					s.BackfillOrder = o
				}
			}
			build := queries[strings.TrimSpace(d.Input)]
			if build == nil {
				return "no such query\n"
			}
			q := build(w).query()
			out, err := explained(d.Cmd, q, w, s)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out + "\n"
		})
	})
}

func explained(cmd string, q *plan.Query, w *world, s Settings) (string, error) {
	rel := &catalog.Relation{ID: 20000, Schema: "public", Name: "v", Kind: catalog.MaterializedView}
	switch cmd {
	case "logical":
		n, err := Optimize(q.Root, s, w)
		if err != nil {
			return "", err
		}
		return plan.ExplainLogical(n), nil
	case "batch":
		q, err := PlanBatch(q, w.snapshot(), s, w)
		if err != nil {
			return "", err
		}
		return plan.ExplainNode(q.Root), nil
	case "stream", "verbose":
		n, err := StreamPlan(q, rel, w.snapshot(), s, w)
		if err != nil {
			return "", err
		}
		return plan.Explain(n, cmd == "verbose"), nil
	case "distsql", "backfill":
		g, _, err := PlanView(q, rel, w.snapshot(), s, w)
		if err != nil {
			return "", err
		}
		if cmd == "backfill" {
			return plan.ExplainBackfill(g, w.Rows, 500_000, true), nil
		}
		return plan.ExplainGraph(g), nil
	}
	return "unknown command " + cmd, nil
}
