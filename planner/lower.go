package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// lower puts an Expand's equal in terms of other nodes in its place, and refuses
// nodes that the passes do not know, so that their own switches need no error path.
// Plans of subqueries are lowered where they stand.
func lower(n plan.Node) (plan.Node, error) {
	switch n.(type) {
	case *plan.Scan, *plan.Values, *plan.Filter, *plan.Project, *plan.Join, *plan.Agg, *plan.Distinct,
		*plan.Sort, *plan.Limit, *plan.SetOp, *plan.FuncScan, *plan.ProjectSet, *plan.Expand:
	case *plan.Window:
		return nil, sqlerr.Unsupported("a window function (OVER)")
	case *plan.Recursive, *plan.WorkTable:
		return nil, sqlerr.Unsupported("WITH RECURSIVE")
	default:
		return nil, fmt.Errorf("planner: unsupported: %T", n)
	}
	ins := slices.Clone(n.Inputs())
	for i, in := range ins {
		var err error
		if ins[i], err = lower(in); err != nil {
			return nil, err
		}
	}
	if x, ok := n.(*plan.Expand); ok {
		return expanded(x, ins[0]), nil
	}
	if !slices.Equal(ins, n.Inputs()) {
		n = withInputs(n, ins)
	}
	var err error
	for _, e := range nodeExprs(n) {
		visit(e, func(e expr.Expr) {
			s, ok := e.(*expr.Subquery)
			if !ok || err != nil {
				return
			}
			sub, ok := s.Plan.(plan.Node)
			if !ok {
				err = fmt.Errorf("planner: unsupported subquery plan: %T", s.Plan)
				return
			}
			if sub, err = lower(sub); err == nil {
				s.Plan = sub
			}
		})
	}
	return n, err
}

// expanded is a union of what each grouping set makes of the input.
func expanded(x *plan.Expand, in plan.Node) plan.Node {
	from := in.Schema()
	u := &plan.SetOp{Op: plan.Union, All: true, Out: x.Schema()}
	for number, set := range x.Sets {
		p := &plan.Project{Input: in}
		for i, f := range from {
			p.Exprs, p.Names = append(p.Exprs, colRef(from, i)), append(p.Names, f.Name)
		}
		kept := map[int]bool{}
		for _, i := range set {
			kept[i] = true
		}
		for i, c := range x.Cols {
			e := expr.Expr(colRef(from, c))
			if !kept[i] {
				e = &expr.Const{Typ: from[c].Type}
			}
			p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, x.Names[i])
		}
		p.Exprs = append(p.Exprs, &expr.Const{Typ: types.Int8, Val: types.NewInt(int64(number))})
		p.Names = append(p.Names, x.Names[len(x.Cols)])
		u.Ins = append(u.Ins, p)
	}
	if len(u.Ins) == 1 {
		return u.Ins[0]
	}
	return u
}
