package batch

import (
	"fmt"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// memoRows bounds how many results of correlated subqueries are remembered.
const memoRows = 1 << 14

// subqueries remembers the rows of subqueries during one execution: of an
// uncorrelated one all rows, of a correlated one those for outer rows seen before.
type subqueries struct {
	rows map[*expr.Subquery]*chunk.Chunk
	memo map[*expr.Subquery]map[string]*chunk.Chunk
	refs map[*expr.Subquery][]outerRef
	held int
}

// An outerRef is a column of an enclosing row that a subquery depends on.
type outerRef struct{ level, index int }

// subquery implements expr.Ctx.Subquery. outer[0] is the row of the query that holds the subquery.
func (e *Env) subquery(s *expr.Subquery, outer []types.Row) (*chunk.Chunk, error) {
	n, ok := s.Plan.(plan.Node)
	if !ok {
		return nil, fmt.Errorf("batch: a subquery has a %T for a plan", s.Plan)
	}
	m := e.subs
	if !s.Correlated {
		if c := m.rows[s]; c != nil {
			return c, nil
		}
		c, err := e.runSub(n, outer)
		if err == nil {
			if m.rows == nil {
				m.rows = map[*expr.Subquery]*chunk.Chunk{}
			}
			m.rows[s] = c
		}
		return c, err
	}
	if m.refs == nil {
		m.refs, m.memo = map[*expr.Subquery][]outerRef{}, map[*expr.Subquery]map[string]*chunk.Chunk{}
	}
	refs, ok := m.refs[s]
	if !ok {
		refs = outerRefs(n, 0, nil)
		m.refs[s], m.memo[s] = refs, map[string]*chunk.Chunk{}
	}
	var key strings.Builder
	for _, r := range refs {
		if r.level-1 >= len(outer) || outer[r.level-1] == nil {
			return e.runSub(n, outer)
		}
		d := outer[r.level-1][r.index]
		fmt.Fprintf(&key, "%t|%s|", d.IsNull(), datumKey(d))
	}
	if c := m.memo[s][key.String()]; c != nil {
		return c, nil
	}
	c, err := e.runSub(n, outer)
	if err == nil && m.held+c.Len()+1 <= memoRows {
		m.held += c.Len() + 1
		m.memo[s][key.String()] = c
	}
	return c, err
}

// datumKey is a text that equal values share.
func datumKey(d types.Datum) string {
	switch d.Kind() {
	case types.KindInt, types.KindBool:
		return fmt.Sprint(d.Int())
	case types.KindString:
		return fmt.Sprintf("%q", d.Str())
	case types.KindFloat:
		return fmt.Sprint(d.Float())
	case types.KindDecimal:
		return d.Decimal().String()
	case types.KindInterval:
		return fmt.Sprint(d.Interval())
	case types.KindList:
		var b strings.Builder
		for _, i := range d.List().Items {
			b.WriteString(datumKey(i) + ",")
		}
		return b.String()
	}
	return ""
}

// runSub runs a plan for given outer rows and collects it.
func (e *Env) runSub(n plan.Node, outer []types.Row) (*chunk.Chunk, error) {
	sub := *e
	ctx := *e.Ctx
	ctx.Outer = outer
	sub.Ctx = &ctx
	// A deeper query's results depend on more outer rows than this one's: its memory is its own.
	sub.subs = &subqueries{}
	ctx.Subquery = sub.subquery
	it, err := build(n, &sub)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	return all(e.goCtx, it, n.Schema().Types(), e.Memory)
}

// outerRefs collects the references of a plan to rows outside it. depth is how
// many queries lie between the plan and the subquery asked about.
func outerRefs(n plan.Node, depth int, refs []outerRef) []outerRef {
	add := func(x expr.Expr) {
		expr.Walk(x, func(x expr.Expr) bool {
			switch x := x.(type) {
			case *expr.OuterRef:
				if x.Level > depth {
					r := outerRef{x.Level - depth, x.Index}
					for _, o := range refs {
						if o == r {
							return true
						}
					}
					refs = append(refs, r)
				}
			case *expr.Subquery:
				if sub, ok := x.Plan.(plan.Node); ok {
					refs = outerRefs(sub, depth+1, refs)
				}
			}
			return true
		})
	}
	exprsOf(n, add)
	for i, in := range n.Inputs() {
		d := depth
		if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
			d++
		}
		refs = outerRefs(in, d, refs)
	}
	return refs
}

// exprsOf calls f for each expression of a node.
func exprsOf(n plan.Node, f func(expr.Expr)) {
	opt := func(e expr.Expr) {
		if e != nil {
			f(e)
		}
	}
	switch n := n.(type) {
	case *plan.Scan:
		for _, r := range n.Ranges {
			for _, e := range r.Eq {
				f(e)
			}
			opt(r.Lo)
			opt(r.Hi)
		}
	case *plan.Values:
		for _, r := range n.Rows {
			for _, e := range r {
				f(e)
			}
		}
	case *plan.Filter:
		f(n.Cond)
	case *plan.Project:
		for _, e := range n.Exprs {
			f(e)
		}
	case *plan.Join:
		opt(n.On)
	case *plan.Limit:
		opt(n.Count)
		opt(n.Offset)
	case *plan.FuncScan:
		for _, e := range n.Args {
			f(e)
		}
	case *plan.ProjectSet:
		for _, as := range n.Args {
			for _, e := range as {
				f(e)
			}
		}
	}
}
