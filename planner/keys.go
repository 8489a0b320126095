package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// joinKeys takes equalities between the two sides out of every join's condition
// and makes them keys. A side that is an expression is computed by a projection
// below the join.
func joinKeys(n plan.Node) plan.Node {
	n = mapInputs(n, joinKeys)
	j, ok := n.(*plan.Join)
	if !ok || j.Lateral || j.On == nil {
		return n
	}
	ls, rs := j.Left.Schema(), j.Right.Schema()
	out := *j
	out.LeftKeys, out.RightKeys, out.NullSafe = slices.Clone(j.LeftKeys), slices.Clone(j.RightKeys), slices.Clone(j.NullSafe)
	var rest, leftMore, rightMore []expr.Expr
	for _, c := range conjuncts(j.On) {
		l, r, nullSafe, ok := equality(c, len(ls))
		if !ok {
			rest = append(rest, c)
			continue
		}
		lk, lIsCol := l.(*expr.ColRef)
		rk, rIsCol := r.(*expr.ColRef)
		// One column is a key once: a second equality of it stays a condition.
		if lIsCol && slices.Contains(out.LeftKeys, lk.Index) || rIsCol && slices.Contains(out.RightKeys, rk.Index-len(ls)) {
			rest = append(rest, c)
			continue
		}
		if lIsCol {
			out.LeftKeys = append(out.LeftKeys, lk.Index)
		} else {
			out.LeftKeys = append(out.LeftKeys, len(ls)+len(leftMore))
			leftMore = append(leftMore, l)
		}
		if rIsCol {
			out.RightKeys = append(out.RightKeys, rk.Index-len(ls))
		} else {
			out.RightKeys = append(out.RightKeys, len(rs)+len(rightMore))
			rightMore = append(rightMore, shift(r, -len(ls)))
		}
		out.NullSafe = append(out.NullSafe, nullSafe)
	}
	out.Left, out.Right = extend(j.Left, leftMore), extend(j.Right, rightMore)
	out.On = and(rest)
	if leftMore == nil && rightMore == nil {
		return &out
	}
	if out.On != nil {
		out.On = remap(out.On, func(c int) int {
			if c >= len(ls) {
				return c + len(leftMore)
			}
			return c
		})
	}
	cols := upTo(len(ls))
	if j.Kind != plan.Semi && j.Kind != plan.Anti {
		cols = append(cols, plus(upTo(len(rs)), len(ls)+len(leftMore))...)
	}
	return keep(&out, cols)
}

// extend computes further columns after n's.
func extend(n plan.Node, more []expr.Expr) plan.Node {
	if len(more) == 0 {
		return n
	}
	p := keep(n, upTo(len(n.Schema()))).(*plan.Project)
	for range more {
		p.Names = append(p.Names, "?column?")
	}
	p.Exprs = append(p.Exprs, more...)
	return p
}

// equality takes apart a condition that says that something of the left columns
// (below width) equals something of the right ones, if equal values also have equal
// hashes and equal state keys.
func equality(c expr.Expr, width int) (l, r expr.Expr, nullSafe, ok bool) {
	op, l, r, ok := comparison(c)
	if not, is := c.(*expr.Not); is {
		op, l, r, ok = comparison(not.Arg)
		nullSafe, ok, op = true, ok && op == distinctFrom, "="
	} else if op == notDistinctFrom {
		nullSafe, op = true, "="
	}
	if !ok || op != "=" || !sameHash(l.Type(), r.Type()) || has(l, unfitKey) || has(r, unfitKey) {
		return nil, nil, false, false
	}
	side := func(e expr.Expr) int {
		cols := columns(e)
		switch {
		case len(cols) == 0:
			return 0
		case cols[len(cols)-1] < width:
			return -1
		case cols[0] >= width:
			return 1
		}
		return 0
	}
	switch ls, rs := side(l), side(r); {
	case ls == -1 && rs == 1:
		return l, r, nullSafe, true
	case ls == 1 && rs == -1:
		return r, l, nullSafe, true
	}
	return nil, nil, false, false
}

// Operators by which the function registry knows IS [NOT] DISTINCT FROM.
const (
	distinctFrom    = "IS DISTINCT FROM"
	notDistinctFrom = "IS NOT DISTINCT FROM"
)

func unfitKey(e expr.Expr) bool { return isVolatile(e) || isSubquery(e) }

// sameHash reports whether equal values of two types have equal hashes and key bytes.
func sameHash(a, b types.Type) bool {
	return a.Equal(b) || isInteger(a) && isInteger(b) || isText(a) && isText(b)
}

func isInteger(t types.Type) bool {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return true
	}
	return false
}

func isText(t types.Type) bool { return t.OID == types.OIDText || t.OID == types.OIDVarchar }
