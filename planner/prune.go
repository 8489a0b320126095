package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// prune drops columns that nobody reads. need are the columns of n that are
// wanted, sorted. out[i] is the old number of the result's column i: a sorted
// superset of need.
func prune(n plan.Node, need []int) (_ plan.Node, out []int) {
	switch n := n.(type) {
	case *plan.Scan:
		c := *n
		c.Cols = make([]int, len(need))
		for i, k := range need {
			c.Cols[i] = n.Cols[k]
		}
		return &c, need

	case *plan.Values:
		v := &plan.Values{Out: n.Out.Project(need), Rows: make([][]expr.Expr, len(n.Rows))}
		for i, r := range n.Rows {
			v.Rows[i] = pick(r, need)
		}
		return v, need

	case *plan.Filter:
		in, out := prune(n.Input, union(need, columns(n.Cond)))
		return &plan.Filter{Input: in, Cond: remap(n.Cond, positions(out))}, out

	case *plan.Project:
		es := pick(n.Exprs, need)
		in, at := prune(n.Input, columns(es...))
		p := &plan.Project{Input: in, Exprs: make([]expr.Expr, len(need)), Names: pick(n.Names, need)}
		for i, e := range es {
			p.Exprs[i] = remap(e, positions(at))
		}
		return p, need

	case *plan.Join:
		return pruneJoin(n, need)

	case *plan.Agg:
		a := &plan.Agg{}
		out := upTo(len(n.GroupBy))
		want := slices.Clone(n.GroupBy)
		for i, g := range n.Aggs {
			if !slices.Contains(need, len(n.GroupBy)+i) {
				continue
			}
			out = append(out, len(n.GroupBy)+i)
			a.Aggs, a.Names = append(a.Aggs, g), append(a.Names, n.Names[i])
			want = append(want, aggColumns(g)...)
		}
		in, at := exact(n.Input, union(want))
		pos := positions(at)
		a.Input = in
		if n.GroupBy != nil {
			a.GroupBy = through(n.GroupBy, pos)
		}
		for i, g := range a.Aggs {
			a.Aggs[i] = remapAgg(g, pos)
		}
		return a, out

	case *plan.Distinct:
		want := upTo(len(n.Schema()))
		if n.On != nil {
			want = union(need, n.On, orderColumns(n.Order))
		}
		in, out := exact(n.Input, want)
		d := &plan.Distinct{Input: in, Order: remapOrder(n.Order, positions(out))}
		if n.On != nil {
			d.On = through(n.On, positions(out))
		}
		return d, out

	case *plan.Sort:
		in, out := prune(n.Input, union(need, orderColumns(n.By)))
		return &plan.Sort{Input: in, By: remapOrder(n.By, positions(out))}, out

	case *plan.Limit:
		in, out := prune(n.Input, need)
		return withInputs(n, []plan.Node{in}), out

	case *plan.SetOp:
		if !(n.All && n.Op == plan.Union) { // the other columns decide which rows are equal
			need = upTo(len(n.Out))
		}
		s := &plan.SetOp{Op: n.Op, All: n.All, Out: n.Out.Project(need), Ins: make([]plan.Node, len(n.Ins))}
		for i, in := range n.Ins {
			s.Ins[i], _ = exact(in, need)
		}
		return s, need

	case *plan.FuncScan:
		return n, upTo(len(n.Out))

	case *plan.ProjectSet: // every set counts: the longest makes the rows
		width := len(n.Input.Schema())
		want, _ := splitAt(need, width)
		for _, a := range n.Args {
			want = union(want, columns(a...))
		}
		in, at := prune(n.Input, want)
		p := mapExprs(n, func(e expr.Expr) expr.Expr { return remap(e, positions(at)) })
		return withInputs(p, []plan.Node{in}), append(slices.Clone(at), plus(upTo(len(n.Fns)), width)...)

	default:
		panic(fmt.Sprintf("planner: unsupported: %T", n))
	}
}

func pruneJoin(n *plan.Join, need []int) (plan.Node, []int) {
	width := len(n.Left.Schema())
	l, r := splitAt(union(need, columns(n.On)), width)
	l, r = union(l, n.LeftKeys), union(plus(r, -width), n.RightKeys)
	if n.Lateral {
		visitPlanRefs(n.Right, 1, func(c int, _ bool) { l = append(l, c) })
		l = union(l)
	}
	left, lo := exact(n.Left, l)
	right, ro := exact(n.Right, r)
	if n.Lateral {
		pos := positions(lo)
		right = mapPlanRefs(right, 1, func(c int) expr.Expr { return &expr.ColRef{Index: pos(c)} })
	}
	all := append(slices.Clone(lo), plus(ro, width)...)
	c := *n
	c.Left, c.Right = left, right
	c.LeftKeys, c.RightKeys = through(n.LeftKeys, positions(lo)), through(n.RightKeys, positions(ro))
	if n.On != nil {
		c.On = remap(n.On, positions(all))
	}
	if n.Kind == plan.Semi || n.Kind == plan.Anti {
		return &c, lo
	}
	return &c, all
}

// exact is prune with nothing but need in the result, so that what copies or
// stores rows (joins, aggregates, exchanges) does not carry what a filter below it read.
func exact(n plan.Node, need []int) (plan.Node, []int) {
	in, out := prune(n, need)
	if !slices.Equal(out, need) {
		in = keep(in, through(need, positions(out)))
	}
	return in, need
}

// splitAt divides sorted columns at width.
func splitAt(cols []int, width int) (below, from []int) {
	i, _ := slices.BinarySearch(cols, width)
	return slices.Clone(cols[:i]), slices.Clone(cols[i:])
}

func pick[T any](from []T, which []int) []T {
	out := make([]T, len(which))
	for i, w := range which {
		out[i] = from[w]
	}
	return out
}

// aggColumns are the input columns an aggregate call reads.
func aggColumns(a expr.Agg) []int {
	out := append(slices.Clone(a.Args), orderColumns(a.Order)...)
	if a.Filter >= 0 {
		out = append(out, a.Filter)
	}
	return out
}

func remapAgg(a expr.Agg, f func(int) int) expr.Agg {
	a.Args, a.Order = through(a.Args, f), remapOrder(a.Order, f)
	if a.Filter >= 0 {
		a.Filter = f(a.Filter)
	}
	return a
}

func orderColumns(by []expr.Order) []int {
	out := make([]int, len(by))
	for i, o := range by {
		out[i] = o.Col
	}
	return out
}

func remapOrder(by []expr.Order, f func(int) int) []expr.Order {
	if by == nil {
		return nil
	}
	out := slices.Clone(by)
	for i := range out {
		out[i].Col = f(out[i].Col)
	}
	return out
}

// pruneRoot prunes a whole plan; its output columns stay.
func pruneRoot(n plan.Node) plan.Node {
	out, _ := exact(n, upTo(len(n.Schema())))
	return out
}
