package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// pushdown moves conditions as near to the scans as their meaning allows, turns
// WHERE equalities over cross joins into join conditions, and makes outer joins
// whose padded rows a condition rejects into inner ones. preds are conditions on
// n's output that still seek their place, none of them volatile; the result fulfils them.
func pushdown(n plan.Node, preds []expr.Expr) plan.Node {
	switch n := n.(type) {
	case *plan.Filter:
		var fixed []expr.Expr
		var free []expr.Expr
		for _, c := range conjuncts(n.Cond) {
			if has(c, isVolatile) {
				fixed = append(fixed, c)
			} else {
				free = append(free, c)
			}
		}
		if fixed != nil { // the conditions above must see the rows that passed the volatile ones
			return filter(pushdown(n.Input, free), append(fixed, preds...))
		}
		return pushdown(n.Input, append(free, preds...))

	case *plan.Project:
		var down, stay []expr.Expr
		for _, p := range preds {
			if s, ok := substitute(p, n.Exprs); ok {
				down = append(down, s)
			} else {
				stay = append(stay, p)
			}
		}
		return filter(withInputs(n, []plan.Node{pushdown(n.Input, down)}), stay)

	case *plan.Join:
		return pushJoin(n, preds)

	case *plan.Agg:
		down, stay := split(preds, func(p expr.Expr) bool {
			cols := columns(p)
			return len(n.GroupBy) > 0 && (len(cols) == 0 || cols[len(cols)-1] < len(n.GroupBy))
		})
		for i, p := range down {
			down[i] = remap(p, func(c int) int { return n.GroupBy[c] })
		}
		return filter(withInputs(n, []plan.Node{pushdown(n.Input, down)}), stay)

	case *plan.Distinct:
		down, stay := split(preds, func(p expr.Expr) bool { return n.On == nil || subset(columns(p), n.On) })
		return filter(withInputs(n, []plan.Node{pushdown(n.Input, down)}), stay)

	case *plan.Sort:
		return withInputs(n, []plan.Node{pushdown(n.Input, preds)})

	case *plan.SetOp:
		return mapInputs(n, func(in plan.Node) plan.Node { return pushdown(in, slices.Clone(preds)) })

	case *plan.ProjectSet:
		width := len(n.Input.Schema())
		down, stay := split(preds, func(p expr.Expr) bool {
			cols := columns(p)
			return len(cols) == 0 || cols[len(cols)-1] < width
		})
		return filter(withInputs(n, []plan.Node{pushdown(n.Input, down)}), stay)

	default: // Scan, Values, FuncScan: the end; Limit: what is above must not go below
		return filter(mapInputs(n, func(in plan.Node) plan.Node { return pushdown(in, nil) }), preds)
	}
}

func split(es []expr.Expr, f func(expr.Expr) bool) (yes, no []expr.Expr) {
	for _, e := range es {
		if f(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

// pushJoin is pushdown for joins.
//
//	            WHERE left   WHERE right   ON left   ON right
//	inner       left         right         left      right
//	left        left         stays         stays     right
//	right       stays        right         left      stays
//	full        stays        stays         stays     stays
//	semi        left         –             left      right
//	anti        left         –             stays     right
func pushJoin(j *plan.Join, preds []expr.Expr) plan.Node {
	width := len(j.Left.Schema())
	onLeft := func(c int) bool { return c < width }
	onRight := func(c int) bool { return c >= width }
	kind := j.Kind
	rejects := func(side func(int) bool) bool {
		return slices.ContainsFunc(preds, func(p expr.Expr) bool { return rejectsNull(p, side) })
	}
	if (kind == plan.Left || kind == plan.Full) && rejects(onRight) {
		kind = map[plan.JoinKind]plan.JoinKind{plan.Left: plan.Inner, plan.Full: plan.Right}[kind]
	}
	if (kind == plan.Right || kind == plan.Full) && rejects(onLeft) {
		kind = map[plan.JoinKind]plan.JoinKind{plan.Right: plan.Inner, plan.Full: plan.Left}[kind]
	}

	var left, right, on, above []expr.Expr
	// side says where an expression belongs: -1 left (or nowhere), 1 right, 0 both.
	side := func(e expr.Expr) int {
		cols := columns(e)
		switch {
		case len(cols) == 0 || cols[len(cols)-1] < width:
			return -1
		case cols[0] >= width && !(j.Lateral && has(e, isOuter)):
			return 1
		default:
			return 0
		}
	}
	toLeft := kind != plan.Right && kind != plan.Full   // conditions above may go left
	toRight := kind == plan.Inner || kind == plan.Right // … and right
	where := preds
	if kind == plan.Inner {
		where = append(conjuncts(j.On), preds...) // ON and WHERE are the same
	} else {
		onToLeft := kind == plan.Right || kind == plan.Semi
		onToRight := kind == plan.Left || kind == plan.Semi || kind == plan.Anti
		for _, c := range conjuncts(j.On) {
			constant := len(columns(c)) == 0
			switch s := side(c); {
			case has(c, isVolatile):
				on = append(on, c)
			case s == 1 && onToRight || constant && onToRight && !j.Lateral:
				right = append(right, c)
			case s == -1 && onToLeft:
				left = append(left, c)
			default:
				on = append(on, c)
			}
		}
	}
	for _, p := range where {
		switch s := side(p); {
		case has(p, isVolatile):
			on = append(on, p) // of an inner join's ON
		case s == -1 && toLeft:
			left = append(left, p)
		case s == 1 && toRight:
			right = append(right, p)
		case s == -1 && len(columns(p)) == 0 && toRight && !j.Lateral:
			right = append(right, p)
		case kind == plan.Inner:
			on = append(on, p)
		default:
			above = append(above, p)
		}
	}
	if kind == plan.Inner && !j.Lateral {
		l, r := derive(on, left, right)
		left, right = append(left, l...), append(right, r...)
	}
	for i, p := range right {
		right[i] = shift(p, -width)
	}
	out := *j
	out.Kind = kind
	out.Left, out.Right = pushdown(j.Left, left), pushdown(j.Right, right)
	out.On = and(on)
	return filter(&out, above)
}

func isOuter(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.OuterRef:
		return true
	case *expr.Subquery:
		return e.Correlated
	}
	return false
}

// derive finds, for equalities a = b between the sides, conditions "a = constant"
// of one side that hold for the other side's column too.
func derive(on, left, right []expr.Expr) (moreLeft, moreRight []expr.Expr) {
	for _, e := range on {
		op, l, r, ok := comparison(e)
		a, okA := l.(*expr.ColRef)
		b, okB := r.(*expr.ColRef)
		if !ok || op != "=" || !okA || !okB || !a.Typ.Equal(b.Typ) {
			continue
		}
		if slices.ContainsFunc(right, func(p expr.Expr) bool { return fixes(p, a.Index) }) {
			a, b = b, a
		}
		copyTo := func(from []expr.Expr, a, b *expr.ColRef, have []expr.Expr) (out []expr.Expr) {
			if slices.ContainsFunc(have, func(p expr.Expr) bool { return fixes(p, b.Index) }) {
				return nil
			}
			for _, p := range from {
				if fixes(p, a.Index) {
					out = append(out, remap(p, func(int) int { return b.Index }))
				}
			}
			return out
		}
		moreRight = append(moreRight, copyTo(left, a, b, slices.Concat(right, moreRight))...)
		moreRight = append(moreRight, copyTo(left, b, a, slices.Concat(right, moreRight))...)
		moreLeft = append(moreLeft, copyTo(right, a, b, slices.Concat(left, moreLeft))...)
		moreLeft = append(moreLeft, copyTo(right, b, a, slices.Concat(left, moreLeft))...)
	}
	return moreLeft, moreRight
}

// fixes reports whether p says that column c equals a constant (or one of a list).
func fixes(p expr.Expr, c int) bool {
	isCol := func(e expr.Expr) bool { r, ok := e.(*expr.ColRef); return ok && r.Index == c }
	isConst := func(e expr.Expr) bool {
		switch e.(type) {
		case *expr.Const, *expr.Param:
			return true
		}
		return false
	}
	if op, l, r, ok := comparison(p); ok && op == "=" {
		return isCol(l) && isConst(r) || isConst(l) && isCol(r)
	}
	in, ok := p.(*expr.InList)
	return ok && !in.Negate && isCol(in.Arg) && !slices.ContainsFunc(in.List, func(e expr.Expr) bool { return !isConst(e) })
}
