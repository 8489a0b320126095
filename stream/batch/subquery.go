package batch

import (
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A subquery is a query inside an expression, while one execution lasts. Its rows
// are remembered: of one that depends on no outer row all, otherwise those for
// outer values seen before.
type subquery struct {
	plan     plan.Node
	typs     []types.Type
	refs     []outerRef // what its rows depend on
	volatile bool       // they depend on more: nothing is remembered
	limit    int        // rows that are enough; 0: all
	env      *Env
	rows     *chunk.Chunk
	table    *hashTable // of rows, for membership; nil: not made yet
	memo     map[string]*chunk.Chunk
	bytes    int64 // of memo
	key      []byte
}

// An outerRef is a column of an enclosing row: of the query level levels out.
type outerRef struct{ level, index int }

func (e *Env) subqueryOf(s *expr.Subquery) (*subquery, error) {
	if q := e.queries[s]; q != nil {
		return q, nil
	}
	n, ok := s.Plan.(plan.Node)
	if !ok {
		return nil, fmt.Errorf("batch: a subquery has a %T for a plan", s.Plan)
	}
	q := &subquery{plan: n, typs: e.typesOf(n), env: e.under(nil)}
	q.refs, q.volatile = dependencies(n)
	switch s.Kind {
	case expr.SubqueryExists:
		q.limit = 1
	case expr.SubqueryScalar:
		q.limit = 2
	}
	if e.queries == nil {
		e.queries = map[*expr.Subquery]*subquery{}
	}
	e.queries[s] = q
	return q, nil
}

// subquery implements expr.Ctx.Subquery. outer[0] is the row of the query that holds the subquery.
func (e *Env) subquery(s *expr.Subquery, outer []types.Row) (*chunk.Chunk, error) {
	q, err := e.subqueryOf(s)
	if err != nil {
		return nil, err
	}
	if len(q.refs) == 0 && (!q.volatile || !s.Correlated) {
		if q.rows == nil {
			if q.rows, err = e.runSubquery(q, outer); err != nil {
				return nil, err
			}
			e.remember(chunkBytes(q.rows))
		}
		return q.rows, nil
	}
	if q.volatile {
		return e.runSubquery(q, outer)
	}
	q.key = q.key[:0]
	for _, r := range q.refs {
		if r.level > len(outer) || r.index >= len(outer[r.level-1]) {
			return e.runSubquery(q, outer) // it will say what is wrong
		}
		q.key = appendDatum(q.key, outer[r.level-1][r.index])
	}
	if c := q.memo[string(q.key)]; c != nil {
		return c, nil
	}
	key := string(q.key)
	c, err := e.runSubquery(q, outer)
	if err != nil {
		return nil, err
	}
	bytes := chunkBytes(c) + int64(len(key)) + 200
	if q.bytes+bytes > e.Memory/8 || e.remember(bytes) {
		e.remember(-q.bytes)
		q.memo, q.bytes = nil, 0
	}
	if q.memo == nil {
		q.memo = map[string]*chunk.Chunk{}
	}
	q.memo[key] = c
	q.bytes += bytes
	return c, nil
}

// remember counts bytes of what is kept until the execution ends.
func (e *execution) remember(bytes int64) (over bool) {
	if e.memo == nil {
		e.memo = e.mem.open()
	}
	return e.memo.add(bytes)
}

func (e *Env) runSubquery(q *subquery, outer []types.Row) (*chunk.Chunk, error) {
	q.env.Ctx.Outer = outer
	it, err := build(q.plan, q.env)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	return collect(e.goCtx, it, q.typs, q.limit, func(bytes int64) error {
		if bytes > e.Memory {
			return e.errMemory("the result of a subquery")
		}
		return nil
	})
}

// under is e for a query inside: with outer rows.
func (e *Env) under(outer []types.Row) *Env {
	sub := *e
	ctx := *e.Ctx
	ctx.Outer = outer
	sub.Ctx = &ctx
	return &sub
}

// dependencies collects the references of a plan to rows outside it, and whether
// it has volatile functions.
func dependencies(n plan.Node) (refs []outerRef, volatile bool) {
	var walk func(n plan.Node, depth int)
	walk = func(n plan.Node, depth int) {
		exprsOf(n, func(x expr.Expr) {
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
				case *expr.Call:
					volatile = volatile || x.Fn.Volatile == expr.Volatile
				case *expr.Subquery:
					if sub, ok := x.Plan.(plan.Node); ok {
						walk(sub, depth+1)
					}
				}
				return true
			})
		})
		for i, in := range n.Inputs() {
			d := depth
			if j, ok := n.(*plan.Join); ok && j.Lateral && i == 1 {
				d++
			}
			walk(in, d)
		}
	}
	walk(n, 0)
	return refs, volatile
}

// exprsOf calls f for each expression of a node.
func exprsOf(n plan.Node, f func(expr.Expr)) {
	each := func(es ...expr.Expr) {
		for _, e := range es {
			if e != nil {
				f(e)
			}
		}
	}
	switch n := n.(type) {
	case *plan.Scan:
		for _, r := range n.Ranges {
			each(r.Eq...)
			each(r.Lo, r.Hi)
		}
	case *plan.Values:
		for _, r := range n.Rows {
			each(r...)
		}
	case *plan.Filter:
		each(n.Cond)
	case *plan.Project:
		each(n.Exprs...)
	case *plan.Join:
		each(n.On)
	case *plan.Limit:
		each(n.Count, n.Offset)
	case *plan.FuncScan:
		each(n.Args...)
	case *plan.ProjectSet:
		for _, as := range n.Args {
			each(as...)
		}
	}
}
