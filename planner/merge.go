package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// merge simplifies, inputs first: adjacent filters, projections and unions become
// one, limits go below projections, and what can have no rows becomes empty.
func merge(n plan.Node) plan.Node {
	n = mapInputs(n, merge)
	switch n := n.(type) {
	case *plan.Filter:
		if in, ok := n.Input.(*plan.Filter); ok {
			return merge(&plan.Filter{Input: in.Input, Cond: and(append(conjuncts(in.Cond), conjuncts(n.Cond)...))})
		}
		cs := conjuncts(n.Cond)
		if slices.ContainsFunc(cs, isFalse) || isEmpty(n.Input) {
			return empty(n)
		}
		return filter(n.Input, cs)

	case *plan.Project:
		return mergeProject(n)

	case *plan.Join:
		return mergeJoin(n)

	case *plan.Sort:
		if in, ok := n.Input.(*plan.Sort); ok {
			return merge(&plan.Sort{Input: in.Input, By: n.By})
		}
		if len(n.By) == 0 || isEmpty(n.Input) {
			return n.Input
		}

	case *plan.Distinct:
		if isEmpty(n.Input) {
			return n.Input
		}

	case *plan.Agg:
		if isEmpty(n.Input) && len(n.GroupBy) > 0 {
			return empty(n)
		}

	case *plan.Limit:
		if c, ok := n.Count.(*expr.Const); ok && !c.Val.IsNull() && c.Val.Int() == 0 || isEmpty(n.Input) {
			return empty(n)
		}
		if n.Count == nil && n.Offset == nil {
			return n.Input
		}
		if p, ok := n.Input.(*plan.Project); ok && !slices.ContainsFunc(p.Exprs, func(e expr.Expr) bool { return has(e, isVolatile) }) {
			return withInputs(p, []plan.Node{merge(withInputs(n, []plan.Node{p.Input}))})
		}

	case *plan.SetOp:
		if n.Op != plan.Union {
			return n
		}
		var ins []plan.Node
		for _, in := range n.Ins {
			switch u, ok := in.(*plan.SetOp); {
			case ok && u.Op == plan.Union && (u.All || !n.All):
				ins = append(ins, u.Ins...)
			case !isEmpty(in):
				ins = append(ins, in)
			}
		}
		switch {
		case len(ins) == 0:
			return empty(n)
		case len(ins) == 1 && n.All:
			return ins[0]
		case len(ins) == 1:
			return &plan.Distinct{Input: ins[0]}
		}
		return &plan.SetOp{Op: n.Op, All: n.All, Ins: ins, Out: n.Out}
	}
	return n
}

func mergeProject(n *plan.Project) plan.Node {
	identity := len(n.Exprs) == len(n.Input.Schema())
	plain := true
	for i, e := range n.Exprs {
		c, ok := e.(*expr.ColRef)
		plain = plain && ok
		identity = identity && ok && c.Index == i
	}
	if identity {
		return n.Input
	}
	switch in := n.Input.(type) {
	case *plan.Project:
		// An expression that is not a plain column or constant must not be computed twice.
		uses := make([]int, len(in.Exprs))
		for _, e := range n.Exprs {
			visitRefs(e, func(c int, _ bool) { uses[c]++ })
		}
		for i, e := range in.Exprs {
			switch e.(type) {
			case *expr.ColRef, *expr.Const, *expr.Param:
			default:
				if uses[i] > 1 || has(e, isVolatile) {
					return n
				}
			}
		}
		out := &plan.Project{Input: in.Input, Names: n.Names, Exprs: make([]expr.Expr, len(n.Exprs))}
		for i, e := range n.Exprs {
			s, ok := substitute(e, in.Exprs)
			if !ok {
				return n
			}
			out.Exprs[i] = s
		}
		return mergeProject(out)
	case *plan.Scan:
		if plain {
			cols := columnsOf(n.Exprs)
			if len(union(cols)) == len(cols) {
				c := *in
				c.Cols = pick(in.Cols, cols)
				return &c
			}
		}
	case *plan.Values:
		if len(in.Rows) == 0 {
			return empty(n)
		}
		if plain {
			cols := columnsOf(n.Exprs)
			v := &plan.Values{Out: n.Schema(), Rows: make([][]expr.Expr, len(in.Rows))}
			for i, r := range in.Rows {
				v.Rows[i] = pick(r, cols)
			}
			return v
		}
	}
	return n
}

// columnsOf gives the columns that plain references refer to, in order.
func columnsOf(es []expr.Expr) []int {
	out := make([]int, len(es))
	for i, e := range es {
		out[i] = e.(*expr.ColRef).Index
	}
	return out
}

func mergeJoin(n *plan.Join) plan.Node {
	l, r := isEmpty(n.Left), isEmpty(n.Right) || n.On != nil && isFalse(n.On)
	switch {
	case n.Kind == plan.Inner && (l || r), n.Kind == plan.Semi && (l || r), n.Kind == plan.Left && l, n.Kind == plan.Right && isEmpty(n.Right):
		return empty(n)
	case n.Kind == plan.Anti && (l || r):
		return n.Left
	}
	return n
}
