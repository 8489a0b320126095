package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
)

// orderJoins reorders chains of inner joins so that no relation is joined
// without a condition while another one could be joined by an equality. It keeps
// the written order otherwise: for a stream the user's order is also the order
// of backfill.
func orderJoins(n plan.Node) plan.Node {
	leaves, conds := flatten(n)
	if len(leaves) < 3 {
		return mapInputs(n, orderJoins)
	}
	start := make([]int, len(leaves)+1) // first column of each leaf
	for i, l := range leaves {
		leaves[i] = orderJoins(l)
		start[i+1] = start[i] + len(l.Schema())
	}
	leafOf := func(col int) int {
		i, found := slices.BinarySearch(start, col)
		if found {
			for start[i+1] == col { // leaves without columns
				i++
			}
			return i
		}
		return i - 1
	}
	reads := make([][]int, len(conds)) // leaves each condition reads
	for i, c := range conds {
		reads[i] = union(through(columns(c), leafOf))
	}
	order := []int{0}
	for len(order) < len(leaves) {
		next := -1
		for l := range leaves {
			if slices.Contains(order, l) {
				continue
			}
			if next < 0 {
				next = l
			}
			if slices.ContainsFunc(reads, func(r []int) bool { return slices.Contains(r, l) && len(r) > 1 && subset(r, append(order, l)) }) {
				next = l
				break
			}
		}
		order = append(order, next)
	}
	// Old column → column in the new order.
	var old []int
	for _, l := range order {
		for c := start[l]; c < start[l+1]; c++ {
			old = append(old, c)
		}
	}
	pos := positions(old)
	out := leaves[order[0]]
	used := make([]bool, len(conds))
	for i := 1; i < len(order); i++ {
		var on []expr.Expr
		for k, c := range conds {
			if !used[k] && subset(reads[k], order[:i+1]) {
				on, used[k] = append(on, remap(c, pos)), true
			}
		}
		out = &plan.Join{Kind: plan.Inner, Left: out, Right: leaves[order[i]], On: and(on)}
	}
	if slices.IsSorted(order) {
		return out
	}
	return keep(out, through(upTo(start[len(leaves)]), pos))
}

// flatten takes a tree of inner joins apart into its leaves, left to right, and
// its conditions over all their columns.
func flatten(n plan.Node) (leaves []plan.Node, conds []expr.Expr) {
	j, ok := n.(*plan.Join)
	if !ok || j.Kind != plan.Inner || j.Lateral || len(j.LeftKeys) > 0 {
		return []plan.Node{n}, nil
	}
	leaves, conds = flatten(j.Left)
	right, more := flatten(j.Right)
	width := len(j.Left.Schema())
	for _, c := range more {
		conds = append(conds, shift(c, width))
	}
	return append(leaves, right...), append(conds, conjuncts(j.On)...)
}
