package planner

import (
	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// fold computes constant expressions once and simplifies AND and OR that a
// constant decides. What fails to compute stays, to fail (or not) when it runs.
func fold(n plan.Node) plan.Node {
	n = mapInputs(n, fold)
	return mapExprs(n, foldExpr)
}

func foldExpr(e expr.Expr) expr.Expr { return expr.Fold(&expr.Ctx{}, e) }

// mapSubqueries applies f to the plan of every subquery in n's expressions, at every level of n.
func mapSubqueries(n plan.Node, f func(plan.Node) plan.Node) plan.Node {
	n = mapInputs(n, func(in plan.Node) plan.Node { return mapSubqueries(in, f) })
	return mapExprs(n, func(e expr.Expr) expr.Expr {
		if !has(e, isSubquery) {
			return e
		}
		return expr.Transform(e, func(e expr.Expr) expr.Expr {
			if s, ok := e.(*expr.Subquery); ok {
				return withPlan(s, f)
			}
			return e
		})
	})
}
