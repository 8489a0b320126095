package planner

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "seed of the first random plan; 0: the fixed default")
	plansFlag = flag.Int("plans", 1500, "random plans to try")
)

// TestRandomPlans compares what random plans mean with what the planner makes of them.
func TestRandomPlans(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = 1
	}
	for i := range uint64(*plansFlag) {
		if err := tryPlan(seed + i); err != nil {
			t.Fatalf("-seed %d: %v", seed+i, err)
		}
	}
}

func tryPlan(seed uint64) error {
	g := &planGen{r: rand.New(rand.NewPCG(seed, 1)), w: numbersWorld()}
	ev := &evaluator{data: map[catalog.ID][]row{}, cat: g.w.snapshot()}
	for _, r := range g.w.rels {
		if r.Kind != catalog.Index {
			ev.data[r.ID] = g.data(r)
		}
	}
	s := Settings{LocalityEnabled: true, LocalityMode: []string{"off", "auto", "always"}[g.r.IntN(3)], CacheBudget: 100,
		IndexSelection: g.r.IntN(2) == 0, JoinOrdering: g.r.IntN(2) == 0}

	g.streaming = true
	n := g.node(4)
	want := bag(ev.node(n, nil))
	before := plan.ExplainLogical(n)
	if err := samePlan(ev, n, want, s, g.w); err != nil {
		return fmt.Errorf("%w\nplan:\n%s", err, before)
	}
	q := &plan.Query{Root: n}
	for i := range n.Schema() {
		q.Names = append(q.Names, fmt.Sprintf("c%d", i))
	}
	root, err := StreamPlan(q, &catalog.Relation{ID: 20000, Name: "v"}, ev.cat, s, g.w)
	if err != nil {
		return fmt.Errorf("stream: %w\nplan:\n%s", err, before)
	}
	got, err := ev.stream(root)
	if err == nil {
		err = validate(root)
	}
	if err == nil {
		visible := make([]row, len(got))
		for i, r := range got {
			visible[i] = r[:len(q.Names)]
		}
		if bag(visible) != want {
			err = fmt.Errorf("got\n%s\nwant\n%s", bag(visible), want)
		}
	}
	if err != nil {
		return fmt.Errorf("stream: %w\nplan:\n%s\nbecame\n%s", err, before, plan.Explain(root, true))
	}
	g2, v, err := PlanView(q, &catalog.Relation{ID: 20000, Name: "v"}, ev.cat, s, g.w)
	if err == nil {
		err = validateGraph(g2, v)
	}
	if err != nil {
		return fmt.Errorf("graph: %w\nplan:\n%s", err, before)
	}

	g.streaming = false
	n = g.node(3)
	if g.r.IntN(2) == 0 {
		for id := range g.w.rows {
			g.w.rows[id] = 1000000 // looking up pays
		}
		n = g.join(&plan.Filter{Input: g.leaf(), Cond: op("=", &expr.ColRef{Index: 0, Typ: types.Int4}, num(1))}, g.leaf())
	}
	return samePlan(ev, n, bag(ev.node(n, nil)), s, g.w)
}

func samePlan(ev *evaluator, n plan.Node, want string, s Settings, w *world) error {
	before := plan.ExplainLogical(n)
	opt, err := Optimize(n, s, w)
	if err != nil {
		return err
	}
	if got := bag(ev.node(opt, nil)); got != want {
		return fmt.Errorf("optimized: got\n%s\nwant\n%s\nplan:\n%s\nbecame\n%s", got, want, before, plan.ExplainLogical(opt))
	}
	batch, err := PlanNode(n, ev.cat, s, w)
	if err != nil {
		return err
	}
	if got := bag(ev.node(batch, nil)); got != want {
		return fmt.Errorf("batch: got\n%s\nwant\n%s\nplan:\n%s\nbecame\n%s", got, want, before, plan.ExplainNode(batch))
	}
	if plan.ExplainLogical(n) != before {
		return fmt.Errorf("the planner changed its input:\n%s", before)
	}
	return nil
}

func numbersWorld() *world {
	w := &world{rows: map[catalog.ID]int64{}}
	w.add(catalog.Table, "t", "id* int4, a int4, b int4", "rows=10")
	w.add(catalog.Table, "u", "x* int4, y* int4, z int4", "dist=x", "rows=10")
	w.add(catalog.Table, "e", "_row_id* int4, k int4", "append", "rows=10")
	w.add(catalog.Index, "t_a", "a* int4, id* int4, b int4", "of=t", "dist=a")
	w.add(catalog.Index, "t_b", "b* int4, id* int4", "of=t", "dist=b")
	w.add(catalog.Index, "u_z", "z* int4, x* int4, y* int4", "of=u", "dist=z")
	return w
}

// A planGen makes random plans over few small integers, so that joins and
// groups meet.
type planGen struct {
	r         *rand.Rand
	w         *world
	streaming bool  // no subqueries, no lateral joins
	outer     []int // widths of the enclosing queries' rows, innermost first
}

func (g *planGen) data(r *catalog.Relation) []row {
	var out []row
	seen := map[string]bool{}
	for range g.r.IntN(8) {
		x := make(row, len(r.Columns))
		for i := range x {
			if x[i] = (value{n: int64(g.r.IntN(4))}); g.r.IntN(4) == 0 {
				x[i] = null
			}
		}
		for _, k := range r.Key {
			x[k.Col].null = false
		}
		if k := x.key(r.KeyCols()); !seen[k] {
			seen[k] = true
			out = append(out, x)
		}
	}
	return out
}

func (g *planGen) node(depth int) plan.Node {
	if depth == 0 || g.r.IntN(6) == 0 {
		return g.leaf()
	}
	in := func() plan.Node { return g.node(depth - 1) }
	switch g.r.IntN(16) {
	case 0, 1, 2:
		n := in()
		if g.r.IntN(2) == 0 {
			n = g.join(n, in())
		}
		return &plan.Filter{Input: n, Cond: g.cond(len(n.Schema()), depth)}
	case 3, 4:
		return g.project(in())
	case 5, 6, 7, 8:
		return g.join(in(), in())
	case 9, 10:
		return g.agg(in())
	case 11:
		n := in()
		d := &plan.Distinct{Input: n}
		if g.r.IntN(2) == 0 {
			d.On = g.some(len(n.Schema()))
			if len(d.On) == 0 {
				d.On = nil
			} else {
				d.Order = allOrders(n)
			}
		}
		return d
	case 12:
		n := in()
		return &plan.Limit{Input: &plan.Sort{Input: n, By: allOrders(n)}, Count: big(int64(g.r.IntN(4)))}
	case 13:
		s := &plan.SetOp{Op: plan.SetOpKind(g.r.IntN(3))}
		s.All = s.Op == plan.Union && g.r.IntN(2) == 0
		a, b := in(), in()
		width := min(len(a.Schema()), len(b.Schema()))
		a, b = keep(a, upTo(width)), keep(b, upTo(width))
		s.Out = a.Schema()
		s.Ins = []plan.Node{a, b}
		return s
	case 14:
		n := in()
		return &plan.Sort{Input: n, By: allOrders(n)[:1]}
	default:
		if g.streaming {
			return g.leaf()
		}
		l := in()
		g.outer = append([]int{len(l.Schema())}, g.outer...)
		r := g.node(1)
		r = &plan.Filter{Input: r, Cond: g.cond(len(r.Schema()), 0)}
		g.outer = g.outer[1:]
		return &plan.Join{Kind: []plan.JoinKind{plan.Inner, plan.Left}[g.r.IntN(2)], Left: l, Right: r, Lateral: true}
	}
}

func allOrders(n plan.Node) []expr.Order {
	var out []expr.Order
	for i := range n.Schema() {
		out = append(out, expr.Order{Col: i})
	}
	return out
}

func (g *planGen) leaf() plan.Node {
	names := []string{"t", "u", "e"}
	i := g.r.IntN(8)
	if i == 7 {
		v := &plan.Values{Out: types.Schema{{Name: "v", Type: types.Int4}}}
		for range g.r.IntN(3) {
			v.Rows = append(v.Rows, []expr.Expr{num(int64(g.r.IntN(4)))})
		}
		return v
	}
	return g.w.scan(names[i%3], "").n
}

// some picks columns, in random order.
func (g *planGen) some(width int) []int {
	out := g.r.Perm(width)
	return out[:g.r.IntN(min(3, width)+1)]
}

func (g *planGen) project(n plan.Node) plan.Node {
	p := &plan.Project{Input: n}
	for i := range 1 + g.r.IntN(3) {
		p.Exprs = append(p.Exprs, g.scalar(len(n.Schema())))
		p.Names = append(p.Names, fmt.Sprintf("p%d", i))
	}
	return p
}

func (g *planGen) scalar(width int) expr.Expr {
	switch {
	case g.r.IntN(3) == 0:
		return num(int64(g.r.IntN(4)))
	case len(g.outer) > 0 && g.r.IntN(3) == 0:
		l := g.r.IntN(len(g.outer))
		return &expr.OuterRef{Level: l + 1, Index: g.r.IntN(g.outer[l]), Typ: types.Int4}
	case g.r.IntN(5) == 0:
		return op("+", g.scalar(width), g.scalar(width))
	}
	return &expr.ColRef{Index: g.r.IntN(width), Typ: types.Int4}
}

func (g *planGen) cond(width, depth int) expr.Expr {
	switch g.r.IntN(10) {
	case 0:
		return &expr.Logic{Or: true, Args: []expr.Expr{g.cond(width, depth), g.cond(width, depth)}}
	case 1, 2:
		return &expr.Logic{Args: []expr.Expr{g.cond(width, depth), g.cond(width, depth)}}
	case 3:
		return &expr.Not{Arg: g.cond(width, depth)}
	case 4, 7:
		return &expr.IsNull{Arg: g.scalar(width), Negate: g.r.IntN(2) == 0}
	case 5:
		if !g.streaming && depth > 0 {
			g.outer = append([]int{width}, g.outer...)
			n := g.node(1)
			n = &plan.Filter{Input: n, Cond: g.cond(len(n.Schema()), 0)}
			g.outer = g.outer[1:]
			return &expr.Subquery{Kind: expr.SubqueryExists, Plan: plan.Node(n), Typ: types.Bool, Correlated: true}
		}
		fallthrough
	case 6:
		return &expr.InList{Arg: g.scalar(width), List: []expr.Expr{num(1), num(2), num(1)}, Eq: op("=", num(1), num(1)).(*expr.Call).Fn}
	}
	return op([]string{"=", "=", "=", "<", ">", distinctFrom, notDistinctFrom}[g.r.IntN(7)], g.scalar(width), g.scalar(width))
}

func (g *planGen) join(l, r plan.Node) plan.Node {
	kind := plan.JoinKind(g.r.IntN(6))
	j := &plan.Join{Kind: kind, Left: l, Right: r}
	width := len(l.Schema())
	if g.r.IntN(5) > 0 {
		cs := []expr.Expr{op([]string{"=", "=", notDistinctFrom}[g.r.IntN(3)],
			&expr.ColRef{Index: g.r.IntN(width), Typ: types.Int4}, &expr.ColRef{Index: width + g.r.IntN(len(r.Schema())), Typ: types.Int4})}
		for range g.r.IntN(3) {
			cs = append(cs, g.cond(width+len(r.Schema()), 0))
		}
		j.On = and(cs)
	}
	return j
}

func (g *planGen) agg(n plan.Node) plan.Node {
	a := &plan.Agg{Input: n, GroupBy: g.some(len(n.Schema()))}
	if len(a.GroupBy) == 0 {
		a.GroupBy = nil
	}
	for i := range g.r.IntN(3) {
		fn := []string{"count", "sum", "max"}[g.r.IntN(3)]
		c := expr.Agg{Fn: &expr.AggFunc{Name: fn, Retractable: retractable[fn]}, Typ: types.Int4, Filter: -1, Distinct: g.r.IntN(3) == 0,
			Args: []int{g.r.IntN(len(n.Schema()))}}
		if g.r.IntN(3) == 0 {
			c.Filter = g.r.IntN(len(n.Schema()))
		}
		a.Aggs, a.Names = append(a.Aggs, c), append(a.Names, fmt.Sprintf("g%d", i))
	}
	if len(a.GroupBy)+len(a.Aggs) == 0 {
		return g.project(n)
	}
	return a
}
