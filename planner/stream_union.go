package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// setOp plans UNION, and INTERSECT and EXCEPT (without ALL) as semi and anti
// joins on all columns, in which NULL equals NULL.
func (b *builder) setOp(n *plan.SetOp) (plan.Stream, error) {
	if n.Op == plan.Union {
		all := &plan.SetOp{Op: plan.Union, All: true, Ins: n.Ins, Out: n.Out}
		if !n.All {
			return b.distinct(&plan.Distinct{Input: all})
		}
		return b.unionAll(all)
	}
	name, kind := "INTERSECT", plan.Semi
	if n.Op == plan.Except {
		name, kind = "EXCEPT", plan.Anti
	}
	if n.All {
		return nil, sqlerr.Unsupported("%s ALL in a streaming query", name)
	}
	cols := upTo(len(n.Out))
	nullSafe := make([]bool, len(cols))
	for i := range nullSafe {
		nullSafe[i] = true
	}
	out := n.Ins[0]
	for _, in := range n.Ins[1:] {
		out = &plan.Join{Kind: kind, Left: out, Right: in, LeftKeys: cols, RightKeys: cols, NullSafe: nullSafe}
	}
	return b.distinct(&plan.Distinct{Input: out})
}

// unionAll merges its inputs. Keys of different inputs may be equal, so the number
// of the input is part of the key. Key columns that are no output columns share
// hidden columns by type; an input that has none for one fills it with NULL.
func (b *builder) unionAll(n *plan.SetOp) (plan.Stream, error) {
	width := len(n.Out)
	ins := make([]plan.Stream, len(n.Ins))
	slots := []types.Type{}        // hidden columns
	use := make([][]int, len(ins)) // use[i][s]: column of input i in slot s; -1: none
	var visible []int              // output columns that are in some input's key
	appendOnly := true
	for i, node := range n.Ins {
		in, err := b.build(node)
		if err != nil {
			return nil, err
		}
		ins[i] = in
		p := in.Props()
		appendOnly = appendOnly && p.AppendOnly
		taken := make([]bool, len(slots), len(slots)+len(p.Key))
		for _, k := range p.Key {
			if k < width {
				visible = append(visible, k)
				continue
			}
			s := slices.IndexFunc(upTo(len(slots)), func(s int) bool { return !taken[s] && slots[s].Equal(p.Schema[k].Type) })
			if s < 0 {
				s = len(slots)
				slots, taken = append(slots, p.Schema[k].Type), append(taken, false)
			}
			taken[s] = true
			for len(use[i]) <= s {
				use[i] = append(use[i], -1)
			}
			use[i][s] = k
		}
	}
	source := width + len(slots)
	key := append(union(visible), plus(upTo(len(slots)), width)...)
	key = append(key, source)
	var dist plan.Dist
	if len(key) > 1 { // else every input has at most one row
		dist = plan.Dist{Kind: plan.HashShard, Cols: key}
	}
	for i, in := range ins {
		s := in.Props().Schema
		es := colRefs(s, upTo(width))
		for slot, t := range slots {
			if slot < len(use[i]) && use[i][slot] >= 0 {
				es = append(es, colRef(s, use[i][slot]))
			} else {
				es = append(es, &expr.Const{Typ: t})
			}
		}
		es = append(es, &expr.Const{Val: types.NewInt(int64(i)), Typ: types.Int4})
		p := b.project(in, es).(*plan.StreamProject)
		if len(p.Exprs) > len(es) { // a key column is there twice: it has a slot
			p.Exprs, p.Schema = p.Exprs[:len(es)], p.Schema[:len(es)]
		}
		p.Schema[source].Name = "$src"
		p.Key, p.Order = key, nil
		ins[i] = port(p, dist)
	}
	p := plan.Props{Schema: slices.Clone(n.Out), Key: key, Dist: dist, AppendOnly: appendOnly, In: ins}
	for s, t := range slots {
		p.Schema = append(p.Schema, types.Field{Name: fmt.Sprintf("$key%d", s+1), Type: t})
	}
	p.Schema = append(p.Schema, types.Field{Name: "$src", Type: types.Int4})
	return &plan.StreamUnion{Operator: p}, nil
}
