package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// filter puts WHERE over a FROM clause. A conjunct that is [NOT] EXISTS (…) or
// x IN (…) becomes a semi or anti join where the subquery's own conditions are
// all that ties it to the row outside. NOT IN does not: with a NULL among the
// rows it is never true.
func (b *binder) filter(node plan.Node, where expr.Expr) plan.Node {
	if where == nil {
		return node
	}
	var rest []expr.Expr
	var joins []*plan.Join
	width := len(node.Schema())
	for _, c := range expr.Conjuncts(where) {
		kind := plan.Semi
		s, ok := c.(*expr.Subquery)
		if n, is := c.(*expr.Not); is {
			if s, ok = n.Arg.(*expr.Subquery); ok && s.Kind == expr.SubqueryExists {
				kind = plan.Anti
			} else {
				ok = false
			}
		}
		if ok {
			if j := semiJoin(kind, s, width); j != nil {
				joins = append(joins, j)
				continue
			}
		}
		rest = append(rest, c)
	}
	// What refers to rows outside comes last, so that it can be taken off again.
	var own, outer []expr.Expr
	for _, c := range rest {
		if len(joins) > 0 && refersOut(c) {
			outer = append(outer, c)
		} else {
			own = append(own, c)
		}
	}
	if cond := expr.And(own...); cond != nil {
		node = &plan.Filter{Input: node, Cond: cond}
	}
	for _, j := range joins {
		j.Left = node
		node = j
	}
	if cond := expr.And(outer...); cond != nil {
		node = &plan.Filter{Input: node, Cond: cond}
	}
	return node
}

// semiJoin makes the join that a subquery condition is, its left side of width
// columns still missing; nil where it is none.
func semiJoin(kind plan.JoinKind, s *expr.Subquery, width int) *plan.Join {
	var left []expr.Expr
	switch s.Kind {
	case expr.SubqueryExists:
	case expr.SubqueryAny:
		for _, op := range s.Ops {
			if op.Name != "=" {
				return nil
			}
		}
		left = s.Left
		for _, l := range left {
			if expr.HasSubquery(l) {
				return nil
			}
		}
	default:
		return nil
	}
	right := s.Plan.(plan.Node)
	var keys []expr.Expr // the columns compared with left, over right
	for i := range left {
		keys = append(keys, &expr.ColRef{Index: i, Typ: right.Schema()[i].Type, Name: right.Schema()[i].Name})
	}
	var on []expr.Expr
	if correlated(right, 1) {
		// Take off what does not change which rows there are, down to the filter that has the correlation.
		core := right
	peel:
		for {
			switch n := core.(type) {
			case *plan.Project:
				for i, k := range keys {
					keys[i] = mapCols(k, func(c *expr.ColRef) expr.Expr { return n.Exprs[c.Index] })
				}
				core = n.Input
			case *plan.Sort:
				core = n.Input
			case *plan.Distinct:
				if n.On != nil {
					return nil
				}
				core = n.Input
			default:
				break peel
			}
		}
		right, on = pullCorrelation(core)
		if correlated(right, 1) || slices.ContainsFunc(on, expr.HasSubquery) || slices.ContainsFunc(keys, expr.HasSubquery) {
			return nil
		}
	}
	// The subquery's row is no longer a level of its own.
	right = shiftOuter(right, 0, -1)
	moved := make([]expr.Expr, 0, len(on)+len(left))
	for i, l := range left {
		moved = append(moved, &expr.Call{Fn: s.Ops[i], Args: []expr.Expr{l, inward(keys[i], width)}, Typ: s.Ops[i].Ret})
	}
	for _, c := range on {
		moved = append(moved, inward(c, width))
	}
	return &plan.Join{Kind: kind, Right: right, On: expr.And(moved...)}
}

// pullCorrelation takes the conditions that refer to the row outside off the
// filter and inner join that n begins with; they are over n's columns.
func pullCorrelation(n plan.Node) (plan.Node, []expr.Expr) {
	split := func(cond expr.Expr) (stay expr.Expr, out []expr.Expr) {
		var rest []expr.Expr
		for _, c := range expr.Conjuncts(cond) {
			if refersOut(c) {
				out = append(out, c)
			} else {
				rest = append(rest, c)
			}
		}
		return expr.And(rest...), out
	}
	switch x := n.(type) {
	case *plan.Filter:
		stay, out := split(x.Cond)
		in, more := pullCorrelation(x.Input)
		if stay != nil {
			in = &plan.Filter{Input: in, Cond: stay}
		}
		return in, append(out, more...)
	case *plan.Join:
		if x.Kind == plan.Inner && !x.Lateral {
			stay, out := split(x.On)
			if len(out) > 0 {
				y := *x
				y.On = stay
				return &y, out
			}
		}
	}
	return n, nil
}

// refersOut reports whether e refers to the row right outside it.
func refersOut(e expr.Expr) bool {
	hit := false
	mapOuterExpr(e, 0, func(r *expr.OuterRef, depth int) expr.Expr {
		hit = hit || r.Level-depth == 1
		return r
	})
	return hit
}

// inward turns an expression over a subquery's row into one over outer row ++ subquery's row.
func inward(e expr.Expr, width int) expr.Expr {
	return mapExpr(e, func(x expr.Expr) (expr.Expr, bool) {
		switch x := x.(type) {
		case *expr.ColRef:
			return &expr.ColRef{Index: x.Index + width, Typ: x.Typ, Name: x.Name}, true
		case *expr.OuterRef:
			if x.Level == 1 {
				return &expr.ColRef{Index: x.Index, Typ: x.Typ, Name: x.Name}, true
			}
			return &expr.OuterRef{Level: x.Level - 1, Index: x.Index, Typ: x.Typ, Name: x.Name}, true
		}
		return x, false
	})
}
