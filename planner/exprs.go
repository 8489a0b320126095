package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// visit calls f for e and everything in it, plans of subqueries aside.
func visit(e expr.Expr, f func(expr.Expr)) {
	if e != nil {
		expr.Walk(e, func(e expr.Expr) bool { f(e); return true })
	}
}

// has reports whether e or an expression in it satisfies f; plans of subqueries aside.
func has(e expr.Expr, f func(expr.Expr) bool) bool {
	found := false
	visit(e, func(e expr.Expr) { found = found || f(e) })
	return found
}

func isSubquery(e expr.Expr) bool { _, ok := e.(*expr.Subquery); return ok }

func isVolatile(e expr.Expr) bool {
	c, ok := e.(*expr.Call)
	return ok && c.Fn.Volatile == expr.Volatile
}

// mapRefs rewrites the references an expression makes to the row it is evaluated
// on: its ColRefs, and the OuterRefs inside its subqueries that point at that row.
// depth is how many query levels e lies below the row: 0 for the expression itself.
// f gets the column number; inside a subquery only a ColRef can be its answer.
func mapRefs(e expr.Expr, depth int, f func(int) expr.Expr) expr.Expr {
	if e == nil {
		return nil
	}
	return expr.Transform(e, func(e expr.Expr) expr.Expr {
		switch r := e.(type) {
		case *expr.ColRef:
			if depth > 0 {
				return r
			}
			to := f(r.Index)
			if c, ok := to.(*expr.ColRef); ok && c.Name == "" {
				return &expr.ColRef{Index: c.Index, Typ: r.Typ, Name: r.Name}
			}
			return to
		case *expr.OuterRef:
			if depth == 0 || r.Level != depth {
				return r
			}
			c := f(r.Index).(*expr.ColRef)
			return &expr.OuterRef{Level: r.Level, Index: c.Index, Typ: r.Typ, Name: r.Name}
		case *expr.Subquery:
			return withPlan(r, func(n plan.Node) plan.Node { return mapPlanRefs(n, depth+1, f) })
		}
		return e
	})
}

// withPlan is s with f applied to its plan.
func withPlan(s *expr.Subquery, f func(plan.Node) plan.Node) *expr.Subquery {
	c := *s
	c.Plan = f(s.Plan.(plan.Node))
	return &c
}

// mapPlanRefs is mapRefs for all expressions of a plan that lies depth levels below the row.
func mapPlanRefs(n plan.Node, depth int, f func(int) expr.Expr) plan.Node {
	in := n.Inputs()
	out := make([]plan.Node, len(in))
	for i, c := range in {
		d := depth
		if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
			d++
		}
		out[i] = mapPlanRefs(c, d, f)
	}
	return mapExprs(withInputs(n, out), func(e expr.Expr) expr.Expr { return mapRefs(e, depth, f) })
}

// visitRefs calls f with every column that mapRefs would map; inner tells those inside a subquery.
func visitRefs(e expr.Expr, f func(col int, inner bool)) { visitExprRefs(e, 0, f) }

func visitExprRefs(e expr.Expr, depth int, f func(col int, inner bool)) {
	visit(e, func(e expr.Expr) {
		switch e := e.(type) {
		case *expr.ColRef:
			if depth == 0 {
				f(e.Index, false)
			}
		case *expr.OuterRef:
			if depth > 0 && e.Level == depth {
				f(e.Index, true)
			}
		case *expr.Subquery:
			if n, ok := e.Plan.(plan.Node); ok {
				visitPlanRefs(n, depth+1, f)
			}
		}
	})
}

func visitPlanRefs(n plan.Node, depth int, f func(col int, inner bool)) {
	for i, c := range n.Inputs() {
		d := depth
		if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
			d++
		}
		visitPlanRefs(c, d, f)
	}
	for _, e := range nodeExprs(n) {
		visitExprRefs(e, depth, f)
	}
}

// columns returns the columns e reads, sorted, without duplicates.
func columns(es ...expr.Expr) []int {
	var out []int
	for _, e := range es {
		visitRefs(e, func(c int, _ bool) { out = append(out, c) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// remap renumbers the columns e reads.
func remap(e expr.Expr, f func(int) int) expr.Expr {
	return mapRefs(e, 0, func(i int) expr.Expr { return &expr.ColRef{Index: f(i)} })
}

func shift(e expr.Expr, by int) expr.Expr { return remap(e, func(i int) int { return i + by }) }

// substitute replaces e's columns by the expressions that compute them. It is
// not possible (false) where one of them is volatile, or is not a plain column but is
// read inside a subquery.
func substitute(e expr.Expr, by []expr.Expr) (expr.Expr, bool) {
	ok := true
	visitRefs(e, func(c int, inner bool) {
		if _, col := by[c].(*expr.ColRef); inner && !col || has(by[c], isVolatile) {
			ok = false
		}
	})
	if !ok {
		return nil, false
	}
	return mapRefs(e, 0, func(i int) expr.Expr { return by[i] }), true
}

// conjuncts splits nested ANDs; nil is true and has none.
func conjuncts(e expr.Expr) []expr.Expr {
	if e == nil {
		return nil
	}
	if l, ok := e.(*expr.Logic); ok && !l.Or {
		var out []expr.Expr
		for _, a := range l.Args {
			out = append(out, conjuncts(a)...)
		}
		return out
	}
	if isTrue(e) {
		return nil
	}
	return []expr.Expr{e}
}

// and is the conjunction of cs; nil for none.
func and(cs []expr.Expr) expr.Expr {
	switch len(cs) {
	case 0:
		return nil
	case 1:
		return cs[0]
	}
	return &expr.Logic{Args: cs}
}

func isTrue(e expr.Expr) bool {
	c, ok := e.(*expr.Const)
	return ok && !c.Val.IsNull() && c.Typ.Equal(types.Bool) && c.Val.Bool()
}

// isFalse reports whether e as a condition passes no row.
func isFalse(e expr.Expr) bool {
	c, ok := e.(*expr.Const)
	return ok && (c.Val.IsNull() || c.Typ.Equal(types.Bool) && !c.Val.Bool())
}

// comparison takes apart a binary operator call; ok is false for anything else.
func comparison(e expr.Expr) (op string, l, r expr.Expr, ok bool) {
	c, is := e.(*expr.Call)
	if !is || !c.Fn.Operator || len(c.Args) != 2 {
		return "", nil, nil, false
	}
	return c.Fn.Name, c.Args[0], c.Args[1], true
}

// nullIfNull reports whether e is surely NULL in a row in which all columns of side are NULL.
func nullIfNull(e expr.Expr, side func(int) bool) bool {
	switch e := e.(type) {
	case *expr.ColRef:
		return side(e.Index)
	case *expr.Const:
		return e.Val.IsNull()
	case *expr.Call:
		return e.Fn.Strict && slices.ContainsFunc(e.Args, func(a expr.Expr) bool { return nullIfNull(a, side) })
	case *expr.Cast:
		return nullIfNull(e.Arg, side)
	case *expr.Not:
		return nullIfNull(e.Arg, side)
	case *expr.InList:
		return nullIfNull(e.Arg, side)
	case *expr.Logic:
		return !slices.ContainsFunc(e.Args, func(a expr.Expr) bool { return !nullIfNull(a, side) })
	case *expr.Coalesce:
		return !slices.ContainsFunc(e.Args, func(a expr.Expr) bool { return !nullIfNull(a, side) })
	}
	return false
}

// rejectsNull reports whether condition e passes no row in which all columns of side are NULL.
func rejectsNull(e expr.Expr, side func(int) bool) bool {
	switch e := e.(type) {
	case *expr.Logic:
		rejects := func(a expr.Expr) bool { return rejectsNull(a, side) }
		if e.Or {
			return !slices.ContainsFunc(e.Args, func(a expr.Expr) bool { return !rejects(a) })
		}
		return slices.ContainsFunc(e.Args, rejects)
	case *expr.IsNull:
		return e.Negate && nullIfNull(e.Arg, side)
	}
	return isFalse(e) || nullIfNull(e, side)
}

// colRefs are references to columns of a schema, by number.
func colRefs(s types.Schema, cols []int) []expr.Expr {
	out := make([]expr.Expr, len(cols))
	for i, c := range cols {
		out[i] = colRef(s, c)
	}
	return out
}

func colRef(s types.Schema, c int) *expr.ColRef {
	return &expr.ColRef{Index: c, Typ: s[c].Type, Name: s[c].Name}
}

// upTo is 0, 1, … n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// union is the sorted union of column sets.
func union(sets ...[]int) []int {
	out := slices.Concat(sets...)
	slices.Sort(out)
	return slices.Compact(out)
}

// subset reports whether all of a are in b.
func subset(a, b []int) bool {
	return !slices.ContainsFunc(a, func(c int) bool { return !slices.Contains(b, c) })
}

// appendNew appends those of more that cols does not have yet.
func appendNew(cols []int, more ...int) []int {
	for _, c := range more {
		if !slices.Contains(cols, c) {
			cols = append(cols, c)
		}
	}
	return cols
}

// plus adds by to each of cols.
func plus(cols []int, by int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = c + by
	}
	return out
}

// through maps cols by f into a new slice.
func through(cols []int, f func(int) int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = f(c)
	}
	return out
}

// positions gives where column c is in cols; -1: nowhere.
func positions(cols []int) func(int) int {
	at := make(map[int]int, len(cols))
	for i, c := range slices.Backward(cols) {
		at[c] = i
	}
	return func(c int) int {
		if i, ok := at[c]; ok {
			return i
		}
		return -1
	}
}
