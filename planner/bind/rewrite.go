package bind

import (
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// mapExpr rebuilds an expression from the top down: f may replace a node, and
// says whether its children are then left alone. Nodes that do not change are
// kept as they are, so that what is known of them (their position) stays known.
// It does not enter the plans of subqueries.
func mapExpr(e expr.Expr, f func(expr.Expr) (expr.Expr, bool)) expr.Expr {
	e, done := f(e)
	if done {
		return e
	}
	one := func(x expr.Expr) expr.Expr {
		if x == nil {
			return nil
		}
		return mapExpr(x, f)
	}
	list := func(xs []expr.Expr) ([]expr.Expr, bool) {
		var out []expr.Expr
		for i, x := range xs {
			y := one(x)
			if y != x && out == nil {
				out = append(make([]expr.Expr, 0, len(xs)), xs[:i]...)
			}
			if out != nil {
				out = append(out, y)
			}
		}
		if out == nil {
			return xs, false
		}
		return out, true
	}
	switch x := e.(type) {
	case *expr.ColRef, *expr.Const, *expr.Param, *expr.OuterRef:
		return e
	case *expr.Call:
		if args, changed := list(x.Args); changed {
			return &expr.Call{Fn: x.Fn, Args: args, Typ: x.Typ}
		}
	case *expr.Cast:
		if a := one(x.Arg); a != x.Arg {
			return &expr.Cast{Arg: a, Typ: x.Typ, Explicit: x.Explicit}
		}
	case *expr.Logic:
		if args, changed := list(x.Args); changed {
			return &expr.Logic{Or: x.Or, Args: args}
		}
	case *expr.Not:
		if a := one(x.Arg); a != x.Arg {
			return &expr.Not{Arg: a}
		}
	case *expr.IsNull:
		if a := one(x.Arg); a != x.Arg {
			return &expr.IsNull{Arg: a, Negate: x.Negate}
		}
	case *expr.Case:
		out := &expr.Case{Whens: make([]expr.When, len(x.Whens)), Else: one(x.Else), Typ: x.Typ}
		changed := out.Else != x.Else
		for i, w := range x.Whens {
			out.Whens[i] = expr.When{Cond: one(w.Cond), Then: one(w.Then)}
			changed = changed || out.Whens[i] != w
		}
		if changed {
			return out
		}
	case *expr.Coalesce:
		if args, changed := list(x.Args); changed {
			return &expr.Coalesce{Args: args, Typ: x.Typ}
		}
	case *expr.InList:
		arg := one(x.Arg)
		if l, changed := list(x.List); changed || arg != x.Arg {
			return &expr.InList{Arg: arg, List: l, Eq: x.Eq, Negate: x.Negate}
		}
	case *expr.ArrayExpr:
		if l, changed := list(x.Elems); changed {
			return &expr.ArrayExpr{Elems: l, Typ: x.Typ}
		}
	case *expr.Quantified:
		l, a := one(x.Left), one(x.Array)
		if l != x.Left || a != x.Array {
			return &expr.Quantified{Left: l, Array: a, Op: x.Op, All: x.All}
		}
	case *expr.Subquery:
		if l, changed := list(x.Left); changed {
			out := *x
			out.Left = l
			return &out
		}
	default:
		panic(fmt.Sprintf("bind: unknown expression %T", e))
	}
	return e
}

// visitExpr calls f for every part of e, subqueries' plans excluded.
func visitExpr(e expr.Expr, f func(expr.Expr)) {
	expr.Walk(e, func(x expr.Expr) bool { f(x); return true })
}

// mapCols replaces column references.
func mapCols(e expr.Expr, f func(*expr.ColRef) expr.Expr) expr.Expr {
	return mapExpr(e, func(x expr.Expr) (expr.Expr, bool) {
		if c, ok := x.(*expr.ColRef); ok {
			return f(c), true
		}
		return x, false
	})
}

// placeMarks gives the calls collected under the marks from lo up to hi their columns:
// at says where the i-th of them is. Subqueries may refer to them, too.
func placeMarks(e expr.Expr, lo, hi int, at func(i int) int) expr.Expr {
	return mapExpr(e, func(x expr.Expr) (expr.Expr, bool) {
		switch x := x.(type) {
		case *expr.ColRef:
			if x.Index >= lo && x.Index < hi {
				return &expr.ColRef{Index: at(x.Index - lo), Typ: x.Typ, Name: x.Name}, true
			}
		case *expr.Subquery:
			p := mapOuter(x.Plan.(plan.Node), 0, func(r *expr.OuterRef, depth int) expr.Expr {
				if r.Level-depth == 1 && r.Index >= lo && r.Index < hi {
					return &expr.OuterRef{Level: r.Level, Index: at(r.Index - lo), Typ: r.Typ, Name: r.Name}
				}
				return r
			})
			if p != x.Plan {
				y := *x
				y.Plan = p
				return &y, false
			}
		}
		return x, false
	})
}

// shiftCols moves all column references n to the right.
func shiftCols(e expr.Expr, n int) expr.Expr {
	if n == 0 || e == nil {
		return e
	}
	return mapCols(e, func(c *expr.ColRef) expr.Expr {
		return &expr.ColRef{Index: c.Index + n, Typ: c.Typ, Name: c.Name}
	})
}

// An outerFunc replaces a reference to a row outside; depth is how many rows
// inside lie between, so that Level - depth is the level seen from where the walk began.
type outerFunc func(r *expr.OuterRef, depth int) expr.Expr

// mapOuterExpr replaces the references of e to rows outside depth levels, those in subqueries included.
func mapOuterExpr(e expr.Expr, depth int, f outerFunc) expr.Expr {
	if e == nil {
		return nil
	}
	return mapExpr(e, func(x expr.Expr) (expr.Expr, bool) {
		switch x := x.(type) {
		case *expr.OuterRef:
			if x.Level > depth {
				return f(x, depth), true
			}
		case *expr.Subquery:
			if p := mapOuter(x.Plan.(plan.Node), depth+1, f); p != x.Plan {
				out := *x
				out.Plan = p
				return &out, false
			}
		}
		return x, false
	})
}

// mapOuter replaces a plan's references to rows outside depth levels. It does
// not change n but returns the changed plan, or n if nothing changed.
func mapOuter(n plan.Node, depth int, f outerFunc) plan.Node {
	one := func(e expr.Expr) expr.Expr { return mapOuterExpr(e, depth, f) }
	list := func(xs []expr.Expr) ([]expr.Expr, bool) {
		changed := false
		out := make([]expr.Expr, len(xs))
		for i, x := range xs {
			out[i] = one(x)
			changed = changed || out[i] != x
		}
		return out, changed
	}
	lists := func(xss [][]expr.Expr) ([][]expr.Expr, bool) {
		changed := false
		out := make([][]expr.Expr, len(xss))
		for i, xs := range xss {
			var c bool
			out[i], c = list(xs)
			changed = changed || c
		}
		return out, changed
	}
	sub := func(n plan.Node) plan.Node { return mapOuter(n, depth, f) }
	switch x := n.(type) {
	case *plan.Scan:
	case *plan.Values:
		if rows, changed := lists(x.Rows); changed {
			return &plan.Values{Out: x.Out, Rows: rows}
		}
	case *plan.Filter:
		in, c := sub(x.Input), one(x.Cond)
		if in != x.Input || c != x.Cond {
			return &plan.Filter{Input: in, Cond: c}
		}
	case *plan.Project:
		in := sub(x.Input)
		if es, changed := list(x.Exprs); changed || in != x.Input {
			return &plan.Project{Input: in, Exprs: es, Names: x.Names}
		}
	case *plan.Join:
		l, on := sub(x.Left), one(x.On)
		inner := depth
		if x.Lateral {
			inner++
		}
		r := mapOuter(x.Right, inner, f)
		if l != x.Left || r != x.Right || on != x.On {
			out := *x
			out.Left, out.Right, out.On = l, r, on
			return &out
		}
	case *plan.Agg:
		if in := sub(x.Input); in != x.Input {
			out := *x
			out.Input = in
			return &out
		}
	case *plan.Distinct:
		if in := sub(x.Input); in != x.Input {
			return &plan.Distinct{Input: in, On: x.On, Order: x.Order}
		}
	case *plan.Sort:
		if in := sub(x.Input); in != x.Input {
			return &plan.Sort{Input: in, By: x.By}
		}
	case *plan.Limit:
		in, c, o := sub(x.Input), one(x.Count), one(x.Offset)
		if in != x.Input || c != x.Count || o != x.Offset {
			return &plan.Limit{Input: in, Count: c, Offset: o, WithTies: x.WithTies}
		}
	case *plan.SetOp:
		changed := false
		ins := make([]plan.Node, len(x.Ins))
		for i, in := range x.Ins {
			ins[i] = sub(in)
			changed = changed || ins[i] != in
		}
		if changed {
			return &plan.SetOp{Op: x.Op, All: x.All, Ins: ins, Out: x.Out}
		}
	case *plan.FuncScan:
		if args, changed := list(x.Args); changed {
			return &plan.FuncScan{Fn: x.Fn, Args: args, Out: x.Out, Ordinality: x.Ordinality}
		}
	case *plan.ProjectSet:
		in := sub(x.Input)
		if args, changed := lists(x.Args); changed || in != x.Input {
			return &plan.ProjectSet{Input: in, Fns: x.Fns, Args: args, Names: x.Names}
		}
	case *plan.Window:
		in := sub(x.Input)
		changed := in != x.Input
		funcs := make([]plan.WindowFunc, len(x.Funcs))
		for i, f := range x.Funcs {
			args, c := list(f.Args)
			if changed = changed || c; c {
				f.Args = args
			}
			for _, b := range []*plan.Bound{&f.Frame.Start, &f.Frame.End} {
				o := one(b.Offset)
				changed = changed || o != b.Offset
				b.Offset = o
			}
			funcs[i] = f
		}
		if changed {
			out := *x
			out.Input, out.Funcs = in, funcs
			return &out
		}
	case *plan.Expand:
		if in := sub(x.Input); in != x.Input {
			out := *x
			out.Input = in
			return &out
		}
	case *plan.Recursive:
		base, step := sub(x.Base), sub(x.Step)
		if base != x.Base || step != x.Step {
			out := *x
			out.Base, out.Step = base, step
			return &out
		}
	case *plan.WorkTable:
	default:
		panic(fmt.Sprintf("bind: unknown plan node %T", n))
	}
	return n
}

// shiftOuter adds n to the levels of all references to rows outside depth levels.
func shiftOuter(p plan.Node, depth, n int) plan.Node {
	return mapOuter(p, depth, shiftLevel(n))
}

func shiftLevel(n int) outerFunc {
	return func(r *expr.OuterRef, _ int) expr.Expr {
		return &expr.OuterRef{Level: r.Level + n, Index: r.Index, Typ: r.Typ, Name: r.Name}
	}
}

// correlated reports whether a plan refers to the row n levels outside it, n from 1; 0: to any.
func correlated(p plan.Node, n int) bool {
	hit := false
	mapOuter(p, 0, func(r *expr.OuterRef, depth int) expr.Expr {
		if n == 0 || r.Level-depth == n {
			hit = true
		}
		return r
	})
	return hit
}
