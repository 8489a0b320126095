package plan

import (
	"fmt"
	"strings"

	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// ExplainNode prints a planned batch query as EXPLAIN does.
func ExplainNode(n Node) string { return printNode(n, "Batch").Text() }

// ExplainLogical prints a relational plan as EXPLAIN (LOGICAL) does.
func ExplainLogical(n Node) string { return printNode(n, "Logical").Text() }

// ExplainNodeJSON is ExplainNode with FORMAT JSON, ExplainNodeDOT with FORMAT DOT.
func ExplainNodeJSON(n Node) string { return printNode(n, "Batch").JSON() }
func ExplainNodeDOT(n Node) string  { return printNode(n, "Batch").DOT() }

func printNode(n Node, prefix string) *printed {
	p, _ := (&nodePrinter{prefix: prefix}).print(n)
	return p
}

// A nodePrinter prints relational nodes. Its recursion returns the columns' names as EXPLAIN
// shows them, for the node above.
type nodePrinter struct {
	prefix string
	next   int // number of the next $expr
}

func (np *nodePrinter) print(n Node) (*printed, types.Schema) {
	p := &printed{}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan.")
	s := n.Schema()
	var ins []types.Schema
	for _, in := range n.Inputs() {
		c, cs := np.print(in)
		p.in, ins = append(p.in, *c), append(ins, cs)
	}
	out := append(types.Schema(nil), s...)
	if l, ok := n.(*Limit); ok && np.prefix == "Batch" {
		if by, ok := l.Input.(*Sort); ok { // the two run as one
			kind = "TopN"
			p.add("order", "%s", list(orders(by.By, ins[0])))
			p.in = p.in[0].in
		}
	}
	if len(ins) > 0 && len(ins[0]) == len(out) {
		copy(out, ins[0])
	}
	batch := np.prefix == "Batch"
	switch n := n.(type) {
	case *Scan:
		table := n.Rel.Name
		if n.Alias != "" {
			table = n.Alias
		}
		for i := range out {
			out[i].Name = table + "." + s[i].Name
		}
		p.add("table", "%s", n.Rel.Name)
		p.add("columns", "%s", list(allNames(out)))
		if n.Ranges != nil {
			p.add("scan_ranges", "%s", ranges(n))
		}
	case *Values:
		rows := make([]string, len(n.Rows))
		for i, r := range n.Rows {
			rows[i] = list(exprTexts(r, nil))
		}
		p.add("rows", "%s", list(rows))
	case *Filter:
		p.add("predicate", "%s", exprText(n.Cond, ins[0]))
	case *Project:
		texts := exprTexts(n.Exprs, ins[0])
		for i, e := range n.Exprs {
			if c, ok := e.(*expr.ColRef); ok {
				out[i].Name = ins[0][c.Index].Name
				continue
			}
			np.next++
			out[i].Name = fmt.Sprintf("$expr%d", np.next)
			texts[i] += " as " + out[i].Name
		}
		p.add("exprs", "%s", list(texts))
	case *Join:
		both := append(ins[0][:len(ins[0]):len(ins[0])], ins[1]...)
		copy(out, both)
		p.add("type", "%s", n.Kind)
		switch {
		case n.Lateral && batch:
			kind = "LateralJoin"
		case n.Lateral:
			kind = "Apply"
		case len(n.LeftKeys) > 0 && batch:
			kind = "HashJoin"
		case batch:
			kind = "NestedLoopJoin"
		}
		if len(n.LeftKeys) > 0 {
			p.add("predicate", "%s", joinPredicate(n.LeftKeys, n.RightKeys, n.NullSafe, ins[0], ins[1]))
		}
		switch {
		case n.On != nil && len(n.LeftKeys) > 0:
			p.add("condition", "%s", exprText(n.On, both))
		case n.On != nil:
			p.add("predicate", "%s", exprText(n.On, both))
		case len(n.LeftKeys) == 0:
			p.add("predicate", "true")
		}
	case *Agg:
		for i, c := range n.GroupBy {
			out[i].Name = ins[0][c].Name
		}
		aggs := aggTexts(ins[0], n.Aggs)
		for i, a := range aggs {
			out[len(n.GroupBy)+i].Name = a
		}
		if len(n.GroupBy) > 0 {
			if batch {
				kind = "HashAgg"
			}
			p.add("group_key", "%s", list(names(ins[0], n.GroupBy)))
		} else if batch {
			kind = "SimpleAgg"
		}
		p.add("aggs", "%s", list(aggs))
	case *Distinct:
		if n.On != nil {
			p.add("on", "%s", list(names(ins[0], n.On)))
		}
		if len(n.Order) > 0 {
			p.add("order", "%s", list(orders(n.Order, ins[0])))
		}
	case *Sort:
		p.add("order", "%s", list(orders(n.By, ins[0])))
	case *Limit:
		if n.Count != nil {
			p.add("limit", "%s", exprText(n.Count, nil))
		}
		if n.Offset != nil {
			p.add("offset", "%s", exprText(n.Offset, nil))
		}
		if n.WithTies {
			p.add("with_ties", "true")
		}
	case *SetOp:
		kind = [...]string{"Union", "Intersect", "Except"}[n.Op]
		p.add("all", "%t", n.All)
	case *FuncScan:
		kind = "TableFunction"
		p.add("", "%s(%s)", n.Fn.Name, strings.Join(exprTexts(n.Args, nil), ", "))
		if n.Ordinality {
			p.add("ordinality", "true")
		}
	case *ProjectSet:
		copy(out, ins[0])
		calls := make([]string, len(n.Fns))
		for i, f := range n.Fns {
			calls[i] = f.Name + "(" + strings.Join(exprTexts(n.Args[i], ins[0]), ", ") + ")"
			out[len(ins[0])+i].Name = calls[i]
		}
		p.add("select_list", "%s", list(calls))
	}
	p.name = np.prefix + kind
	np.subqueries(n, p)
	return p, out
}

// subqueries adds the plans of subqueries in n's expressions as further inputs.
func (np *nodePrinter) subqueries(n Node, p *printed) {
	for _, e := range ownExprs(n) {
		expr.Walk(e, func(e expr.Expr) bool {
			if s, ok := e.(*expr.Subquery); ok {
				if sub, ok := s.Plan.(Node); ok {
					c, _ := np.print(sub)
					c.name = "Subquery " + c.name
					p.in = append(p.in, *c)
				}
			}
			return true
		})
	}
}

// ownExprs are the expressions of a node that may hold subqueries.
func ownExprs(n Node) []expr.Expr {
	var out []expr.Expr
	switch n := n.(type) {
	case *Filter:
		out = []expr.Expr{n.Cond}
	case *Project:
		out = n.Exprs
	case *Join:
		if n.On != nil {
			out = []expr.Expr{n.On}
		}
	case *Values:
		for _, r := range n.Rows {
			out = append(out, r...)
		}
	case *Limit:
		for _, e := range []expr.Expr{n.Count, n.Offset} {
			if e != nil {
				out = append(out, e)
			}
		}
	case *FuncScan:
		out = n.Args
	case *ProjectSet:
		for _, a := range n.Args {
			out = append(out, a...)
		}
	}
	return out
}

// ranges prints a scan's key ranges: "[id = 5, day > 3 AND day <= 7]"; ranges are separated by " OR ".
func ranges(n *Scan) string {
	key := relColumns(n.Rel, n.Rel.KeyCols())
	parts := make([]string, len(n.Ranges))
	for i, r := range n.Ranges {
		var conds []string
		for k, e := range r.Eq {
			conds = append(conds, key[k]+" = "+exprText(e, nil))
		}
		if r.Lo != nil {
			conds = append(conds, key[len(r.Eq)]+map[bool]string{true: " >= ", false: " > "}[r.LoInc]+exprText(r.Lo, nil))
		}
		if r.Hi != nil {
			conds = append(conds, key[len(r.Eq)]+map[bool]string{true: " <= ", false: " < "}[r.HiInc]+exprText(r.Hi, nil))
		}
		parts[i] = strings.Join(conds, " AND ")
	}
	return "[" + strings.Join(parts, " OR ") + "]"
}
