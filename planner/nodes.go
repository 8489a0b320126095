package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// withInputs returns n over other inputs.
func withInputs(n plan.Node, in []plan.Node) plan.Node {
	switch n := n.(type) {
	case *plan.Scan, *plan.Values, *plan.FuncScan:
		return n
	case *plan.Filter:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.Project:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.Join:
		c := *n
		c.Left, c.Right = in[0], in[1]
		return &c
	case *plan.Agg:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.Distinct:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.Sort:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.Limit:
		c := *n
		c.Input = in[0]
		return &c
	case *plan.SetOp:
		c := *n
		c.Ins = in
		return &c
	case *plan.ProjectSet:
		c := *n
		c.Input = in[0]
		return &c
	default:
		panic(fmt.Sprintf("planner: unsupported: %T", n))
	}
}

// mapInputs returns n with f applied to each input.
func mapInputs(n plan.Node, f func(plan.Node) plan.Node) plan.Node {
	in := n.Inputs()
	if len(in) == 0 {
		return n
	}
	out := make([]plan.Node, len(in))
	for i, c := range in {
		out[i] = f(c)
	}
	return withInputs(n, out)
}

// nodeExprs returns the expressions of n itself, not those of its inputs.
func nodeExprs(n plan.Node) []expr.Expr {
	var out []expr.Expr
	mapExprs(n, func(e expr.Expr) expr.Expr { out = append(out, e); return e })
	return out
}

// mapExprs returns a copy of n with f applied to each of its own expressions.
func mapExprs(n plan.Node, f func(expr.Expr) expr.Expr) plan.Node {
	all := func(in []expr.Expr) []expr.Expr {
		out := make([]expr.Expr, len(in))
		for i, e := range in {
			out[i] = f(e)
		}
		return out
	}
	opt := func(e expr.Expr) expr.Expr {
		if e == nil {
			return nil
		}
		return f(e)
	}
	switch n := n.(type) {
	case *plan.Scan:
		if n.Ranges == nil {
			return n
		}
		c := *n
		c.Ranges = slices.Clone(n.Ranges)
		for i := range c.Ranges {
			r := &c.Ranges[i]
			r.Eq, r.Lo, r.Hi = all(r.Eq), opt(r.Lo), opt(r.Hi)
		}
		return &c
	case *plan.Values:
		c := *n
		c.Rows = make([][]expr.Expr, len(n.Rows))
		for i, r := range n.Rows {
			c.Rows[i] = all(r)
		}
		return &c
	case *plan.Filter:
		c := *n
		c.Cond = f(n.Cond)
		return &c
	case *plan.Project:
		c := *n
		c.Exprs = all(n.Exprs)
		return &c
	case *plan.Join:
		c := *n
		c.On = opt(n.On)
		return &c
	case *plan.Limit:
		c := *n
		c.Count, c.Offset = opt(n.Count), opt(n.Offset)
		return &c
	case *plan.FuncScan:
		c := *n
		c.Args = all(n.Args)
		return &c
	case *plan.ProjectSet:
		c := *n
		c.Args = make([][]expr.Expr, len(n.Args))
		for i, a := range n.Args {
			c.Args[i] = all(a)
		}
		return &c
	default: // Agg, Distinct, Sort, SetOp have columns, not expressions
		return n
	}
}

// filter puts a Filter over n for conjuncts; n itself for none.
func filter(n plan.Node, cs []expr.Expr) plan.Node {
	if len(cs) == 0 {
		return n
	}
	return &plan.Filter{Input: n, Cond: and(cs)}
}

// keep projects n to the given columns, in that order.
func keep(n plan.Node, cols []int) plan.Node {
	s := n.Schema()
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = s[c].Name
	}
	return &plan.Project{Input: n, Exprs: colRefs(s, cols), Names: names}
}

// empty is no rows with the columns of n.
func empty(n plan.Node) plan.Node { return &plan.Values{Out: n.Schema()} }

func isEmpty(n plan.Node) bool {
	v, ok := n.(*plan.Values)
	return ok && len(v.Rows) == 0
}
