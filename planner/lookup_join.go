package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// A join reads its right side by key, once for each left row, where few left rows
// meet a large relation.
const (
	lookupMaxRows = 1000 // left rows
	lookupFactor  = 20   // how many rows may be scanned for the price of a lookup
)

// join chooses the access paths of a join's sides.
func (p *paths) join(j *plan.Join) plan.Node {
	left := p.choose(j.Left)
	out := *j
	out.Left = left
	if right, ok := p.lookupSide(j, left); ok {
		out.Right, out.Lateral = right, true
		out.LeftKeys, out.RightKeys, out.NullSafe = nil, nil, nil
		return &out
	}
	out.Right = p.choose(j.Right)
	return &out
}

// lookupSide is the right side of j as a lookup by j's keys, if that is possible and pays.
func (p *paths) lookupSide(j *plan.Join, left plan.Node) (plan.Node, bool) {
	if j.Lateral || j.Kind != plan.Inner && j.Kind != plan.Left || len(j.LeftKeys) == 0 || slices.Contains(j.NullSafe, true) {
		return nil, false
	}
	var above *plan.Project
	var conds []expr.Expr
	right := j.Right
	if pr, ok := right.(*plan.Project); ok && isPlain(pr.Exprs) {
		above, right = pr, pr.Input
	}
	if f, ok := right.(*plan.Filter); ok {
		conds, right = conjuncts(f.Cond), f.Input
	}
	s, ok := right.(*plan.Scan)
	if !ok || s.Ranges != nil || !s.Rel.HasRows() || slices.ContainsFunc(conds, func(e expr.Expr) bool { return has(e, isOuter) || has(e, isSubquery) }) {
		return nil, false
	}
	if n := max(1, rows(left, p.st)); n > lookupMaxRows || n*lookupFactor > float64(p.st.Rows(s.Rel.ID)) {
		return nil, false
	}
	if a := p.best(s, conds, nil); a.eq > 0 {
		return nil, false // few rows anyhow, read once
	}
	ls := left.Schema()
	var keys []bound
	for i, k := range j.RightKeys {
		if above != nil {
			k = above.Exprs[k].(*expr.ColRef).Index
		}
		l := j.LeftKeys[i]
		keys = append(keys, bound{col: k, op: "=", cond: -1 - i, to: []expr.Expr{&expr.OuterRef{Level: 1, Index: l, Typ: ls[l].Type, Name: ls[l].Name}}})
	}
	a := p.best(s, conds, keys)
	if !a.joined || a.cols == nil || a.ranges == nil {
		return nil, false
	}
	out := filter(&plan.Scan{Rel: a.rel, Cols: a.cols, Alias: scanName(s), Ranges: a.ranges}, a.rest)
	if above != nil {
		out = withInputs(above, []plan.Node{out})
	}
	return out, true
}
