package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// This file runs plans naively over integers and NULLs, to compare what a plan
// means before and after the planner has been at it.

type value struct {
	null bool
	n    int64
}

type row []value

var null = value{null: true}

func truth(b bool) value {
	if b {
		return value{n: 1}
	}
	return value{}
}

func (v value) String() string {
	if v.null {
		return "∅"
	}
	return fmt.Sprint(v.n)
}

// less orders NULLs last.
func (v value) compare(o value) int {
	switch {
	case v.null && o.null:
		return 0
	case v.null:
		return 1
	case o.null:
		return -1
	}
	return cmp.Compare(v.n, o.n)
}

func (r row) key(cols []int) string {
	var b strings.Builder
	for _, c := range cols {
		b.WriteString(r[c].String() + ",")
	}
	return b.String()
}

// An evaluator runs plans over the rows of relations.
type evaluator struct {
	data map[catalog.ID][]row
	cat  *catalog.Snapshot
}

// rowsOf gives a relation's rows; an index has those of its relation.
func (ev *evaluator) rowsOf(rel *catalog.Relation) []row {
	if rel.Kind != catalog.Index {
		return ev.data[rel.ID]
	}
	var out []row
	for _, r := range ev.data[rel.Of] {
		out = append(out, row(pick(r, rel.IndexCols)))
	}
	return out
}

// expr evaluates e on r; outer has the rows of enclosing queries, innermost first.
func (ev *evaluator) expr(e expr.Expr, r row, outer []row) value {
	arg := func(e expr.Expr) value { return ev.expr(e, r, outer) }
	switch e := e.(type) {
	case *expr.ColRef:
		return r[e.Index]
	case *expr.OuterRef:
		return outer[e.Level-1][e.Index]
	case *expr.Const:
		switch {
		case e.Val.IsNull():
			return null
		case e.Typ.Equal(types.Bool):
			return truth(e.Val.Bool())
		}
		return value{n: e.Val.Int()}
	case *expr.Not:
		v := arg(e.Arg)
		if v.null {
			return v
		}
		return truth(v.n == 0)
	case *expr.IsNull:
		return truth(arg(e.Arg).null != e.Negate)
	case *expr.Logic:
		out := truth(!e.Or)
		for _, a := range e.Args {
			v := arg(a)
			if !v.null && (v.n != 0) == e.Or {
				return v
			}
			if v.null {
				out = null
			}
		}
		return out
	case *expr.Call:
		a, b := arg(e.Args[0]), arg(e.Args[1])
		switch e.Fn.Name {
		case distinctFrom:
			return truth(a.compare(b) != 0)
		case notDistinctFrom:
			return truth(a.compare(b) == 0)
		}
		if a.null || b.null {
			return null
		}
		switch e.Fn.Name {
		case "=":
			return truth(a.n == b.n)
		case "<":
			return truth(a.n < b.n)
		case ">":
			return truth(a.n > b.n)
		case "+":
			return value{n: a.n + b.n}
		}
	case *expr.InList:
		v := arg(e.Arg)
		out := truth(false)
		for _, l := range e.List {
			if w := arg(l); v.null || w.null {
				out = null
			} else if v.n == w.n {
				return truth(true)
			}
		}
		return out
	case *expr.Subquery:
		if e.Kind == expr.SubqueryExists {
			return truth(len(ev.node(e.Plan.(plan.Node), append([]row{r}, outer...))) > 0)
		}
	}
	panic(fmt.Sprintf("evaluator: %T %v", e, e))
}

func (ev *evaluator) holds(e expr.Expr, r row, outer []row) bool {
	if e == nil {
		return true
	}
	v := ev.expr(e, r, outer)
	return !v.null && v.n != 0
}

// node runs a relational plan.
func (ev *evaluator) node(n plan.Node, outer []row) []row {
	var out []row
	switch n := n.(type) {
	case *plan.Scan:
		for _, r := range ev.rowsOf(n.Rel) {
			for range ev.hits(n, r, outer) {
				out = append(out, row(pick(r, n.Cols)))
			}
		}
	case *plan.Values:
		for _, es := range n.Rows {
			out = append(out, ev.exprs(es, nil, outer))
		}
	case *plan.Filter:
		for _, r := range ev.node(n.Input, outer) {
			if ev.holds(n.Cond, r, outer) {
				out = append(out, r)
			}
		}
	case *plan.Project:
		for _, r := range ev.node(n.Input, outer) {
			out = append(out, ev.exprs(n.Exprs, r, outer))
		}
	case *plan.Join:
		left := ev.node(n.Left, outer)
		if !n.Lateral {
			return ev.join(n.Kind, left, ev.node(n.Right, outer), len(n.Right.Schema()), len(n.Left.Schema()), n.LeftKeys, n.RightKeys, n.NullSafe, n.On, outer)
		}
		for _, l := range left {
			out = append(out, ev.join(n.Kind, []row{l}, ev.node(n.Right, append([]row{l}, outer...)), len(n.Right.Schema()), len(n.Left.Schema()), nil, nil, nil, n.On, outer)...)
		}
	case *plan.Agg:
		return ev.agg(ev.node(n.Input, outer), n.GroupBy, n.Aggs)
	case *plan.Distinct:
		on := n.On
		if on == nil {
			on = upTo(len(n.Schema()))
		}
		return ev.top(ev.node(n.Input, outer), on, n.Order, 0, 1)
	case *plan.Sort:
		out = slices.Clone(ev.node(n.Input, outer))
		sortRows(out, n.By)
	case *plan.Limit:
		out = ev.node(n.Input, outer)
		if n.Count != nil {
			out = out[:min(len(out), int(ev.expr(n.Count, nil, outer).n))]
		}
	case *plan.SetOp:
		return ev.setOp(n, outer)
	default:
		panic(fmt.Sprintf("evaluator: %T", n))
	}
	return out
}

// hits is how often a scan's ranges contain a row: once without ranges.
func (ev *evaluator) hits(n *plan.Scan, r row, outer []row) int {
	if n.Ranges == nil {
		return 1
	}
	hits := 0
	for _, g := range n.Ranges {
		ok := true
		for i, e := range g.Eq {
			v := ev.expr(e, nil, outer)
			ok = ok && !v.null && v.compare(r[n.Rel.Key[i].Col]) == 0
		}
		if g.Lo != nil || g.Hi != nil {
			v := r[n.Rel.Key[len(g.Eq)].Col]
			ok = ok && !v.null
			if g.Lo != nil {
				b := ev.expr(g.Lo, nil, outer)
				ok = ok && !b.null && (v.n > b.n || g.LoInc && v.n == b.n)
			}
			if g.Hi != nil {
				b := ev.expr(g.Hi, nil, outer)
				ok = ok && !b.null && (v.n < b.n || g.HiInc && v.n == b.n)
			}
		}
		if ok {
			hits++
		}
	}
	return hits
}

func (ev *evaluator) exprs(es []expr.Expr, r row, outer []row) row {
	out := make(row, len(es))
	for i, e := range es {
		out[i] = ev.expr(e, r, outer)
	}
	return out
}

func nulls(n int) row {
	out := make(row, n)
	for i := range out {
		out[i] = null
	}
	return out
}

func (ev *evaluator) join(kind plan.JoinKind, left, right []row, rw, lw int, lk, rk []int, safe []bool, on expr.Expr, outer []row) []row {
	var out []row
	matchedRight := make([]bool, len(right))
	for _, l := range left {
		matched := false
		for i, r := range right {
			ok := true
			for k := range lk {
				a, b := l[lk[k]], r[rk[k]]
				ok = ok && a.compare(b) == 0 && (!a.null || safe[k])
			}
			both := append(slices.Clone(l), r...)
			if !ok || !ev.holds(on, both, outer) {
				continue
			}
			matched, matchedRight[i] = true, true
			if kind != plan.Semi && kind != plan.Anti {
				out = append(out, both)
			}
		}
		switch {
		case kind == plan.Semi && matched, kind == plan.Anti && !matched:
			out = append(out, l)
		case (kind == plan.Left || kind == plan.Full) && !matched:
			out = append(out, append(slices.Clone(l), nulls(rw)...))
		}
	}
	if kind == plan.Right || kind == plan.Full {
		for i, r := range right {
			if !matchedRight[i] {
				out = append(out, append(nulls(lw), r...))
			}
		}
	}
	return out
}

func (ev *evaluator) agg(in []row, by []int, aggs []expr.Agg) []row {
	groups := map[string][]row{}
	var order []string
	for _, r := range in {
		k := r.key(by)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	if len(by) == 0 && len(in) == 0 {
		order = []string{""}
	}
	var out []row
	for _, k := range order {
		var o row
		if len(groups[k]) > 0 {
			o = row(pick(groups[k][0], by))
		}
		for _, a := range aggs {
			o = append(o, aggregate(groups[k], a))
		}
		out = append(out, o)
	}
	return out
}

func aggregate(rows []row, a expr.Agg) value {
	var vals []value
	seen := map[int64]bool{}
	for _, r := range rows {
		if a.Filter >= 0 && (r[a.Filter].null || r[a.Filter].n == 0) {
			continue
		}
		v := value{n: 1}
		if len(a.Args) > 0 {
			v = r[a.Args[0]]
		}
		if v.null || a.Distinct && seen[v.n] {
			continue
		}
		seen[v.n] = true
		vals = append(vals, v)
	}
	if a.Fn.Name == "count" {
		return value{n: int64(len(vals))}
	}
	if len(vals) == 0 {
		return null
	}
	out := vals[0]
	for _, v := range vals[1:] {
		switch a.Fn.Name {
		case "sum":
			out.n += v.n
		case "max":
			out.n = max(out.n, v.n)
		}
	}
	return out
}

func sortRows(rows []row, by []expr.Order) {
	slices.SortStableFunc(rows, func(a, b row) int {
		for _, o := range by {
			x, y := a[o.Col], b[o.Col]
			c := x.compare(y)
			if o.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

// top keeps rows [offset, offset+limit) of each group.
func (ev *evaluator) top(in []row, by []int, order []expr.Order, offset, limit int64) []row {
	in = slices.Clone(in)
	sortRows(in, order)
	seen := map[string]int64{}
	var out []row
	for _, r := range in {
		k := r.key(by)
		if n := seen[k]; n >= offset && n-offset < limit {
			out = append(out, r)
		}
		seen[k]++
	}
	return out
}

func (ev *evaluator) setOp(n *plan.SetOp, outer []row) []row {
	all := upTo(len(n.Out))
	out := ev.node(n.Ins[0], outer)
	for _, in := range n.Ins[1:] {
		more := ev.node(in, outer)
		if n.Op == plan.Union {
			out = append(slices.Clone(out), more...)
			continue
		}
		has := map[string]bool{}
		for _, r := range more {
			has[r.key(all)] = true
		}
		var kept []row
		for _, r := range out {
			if has[r.key(all)] == (n.Op == plan.Intersect) {
				kept = append(kept, r)
			}
		}
		out = kept
	}
	if !n.All {
		return ev.top(out, all, nil, 0, 1)
	}
	return out
}

// stream runs a streaming plan as if all input came at once, and checks that
// every operator's key identifies its rows.
func (ev *evaluator) stream(n plan.Stream) ([]row, error) {
	var ins [][]row
	for _, in := range n.Inputs() {
		r, err := ev.stream(in)
		if err != nil {
			return nil, err
		}
		ins = append(ins, r)
	}
	out := ev.operator(n, ins)
	seen := map[string]bool{}
	for _, r := range out {
		if len(r) != len(n.Props().Schema) {
			return nil, fmt.Errorf("%T: %d columns, not %d", n, len(r), len(n.Props().Schema))
		}
		k := r.key(n.Props().Key)
		if seen[k] {
			return nil, fmt.Errorf("%T: key %v is there twice: %s", n, n.Props().Key, k)
		}
		seen[k] = true
	}
	return out, nil
}

func (ev *evaluator) operator(n plan.Stream, ins [][]row) []row {
	var out []row
	switch n := n.(type) {
	case *plan.StreamTableScan:
		for _, r := range ev.rowsOf(n.Table) {
			out = append(out, row(pick(r, n.Cols)))
		}
	case *plan.StreamValues:
		for _, es := range n.Rows {
			out = append(out, ev.exprs(es, nil, nil))
		}
	case *plan.StreamFilter:
		for _, r := range ins[0] {
			if ev.holds(n.Cond, r, nil) {
				out = append(out, r)
			}
		}
	case *plan.StreamProject:
		for _, r := range ins[0] {
			out = append(out, ev.exprs(n.Exprs, r, nil))
		}
	case *plan.StreamHashJoin:
		lw, rw := len(n.In[0].Props().Schema), len(n.In[1].Props().Schema)
		for _, r := range ev.join(n.Kind, ins[0], ins[1], rw, lw, n.LeftKeys, n.RightKeys, n.NullSafe, n.Cond, nil) {
			out = append(out, row(pick(r, n.Output)))
		}
	case *plan.StreamHashAgg:
		return ev.agg(ins[0], n.GroupBy, n.Aggs)
	case *plan.StreamTopN:
		return ev.top(ins[0], n.GroupBy, n.Order, n.Offset, n.Limit)
	case *plan.StreamDedup:
		return ev.top(ins[0], n.Cols, nil, 0, 1)
	case *plan.StreamUnion:
		return slices.Concat(ins...)
	case *plan.StreamExchange, *plan.StreamLocalityProvider, *plan.StreamMaterialize:
		return ins[0]
	default:
		panic(fmt.Sprintf("evaluator: %T", n))
	}
	return out
}

// bag is a multiset of rows as text.
func bag(rows []row) string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprint(r)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
