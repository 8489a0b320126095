package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// maxRanges bounds the key ranges that IN lists multiply to.
const maxRanges = 1000

// paths chooses for each scan of a batch plan what is read: a range of the relation's
// key, a range of an index that has all columns, or an index and then the relation row by row.
type paths struct {
	cat     *catalog.Snapshot
	indexes bool
	st      Stats
}

func (p *paths) choose(n plan.Node) plan.Node {
	n = mapSubqueriesOf(n, p.choose)
	switch n := n.(type) {
	case *plan.Filter:
		if s, ok := n.Input.(*plan.Scan); ok && s.Ranges == nil && s.Rel.HasRows() {
			return p.scan(s, conjuncts(n.Cond))
		}
	case *plan.Join:
		return p.join(n)
	}
	return mapInputs(n, p.choose)
}

// mapSubqueriesOf applies f to the plans of subqueries in n's own expressions.
func mapSubqueriesOf(n plan.Node, f func(plan.Node) plan.Node) plan.Node {
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

// An access is a way to read a relation under some conditions.
type access struct {
	rel    *catalog.Relation
	ranges []plan.KeyRange
	rest   []expr.Expr // conditions that the ranges do not fulfil, over the scan's columns
	eq     int         // key columns that are fixed
	ranged bool        // and the next one is bounded
	unique bool        // at most one row a range
	joined bool        // the ranges fulfil all bounds that a join gave
	cols   []int       // the scan's columns in rel; nil: rel does not have them all
}

// better orders accesses: one row, more fixed columns, a bounded column, no lookups.
func (a *access) better(b *access) bool {
	rank := func(a *access) [4]int {
		n := func(v bool) int {
			if v {
				return 1
			}
			return 0
		}
		return [4]int{n(a.unique), a.eq, n(a.ranged), n(a.cols != nil)}
	}
	ra, rb := rank(a), rank(b)
	return slices.Compare(ra[:], rb[:]) > 0
}

func (p *paths) scan(s *plan.Scan, conds []expr.Expr) plan.Node {
	best := p.best(s, conds, nil)
	if best.cols == nil {
		return lookup(s, best)
	}
	out := &plan.Scan{Rel: best.rel, Cols: best.cols, Alias: scanName(s), Ranges: best.ranges}
	return filter(out, best.rest)
}

// best is the best access to s under conds and the bounds that a join gives in addition.
func (p *paths) best(s *plan.Scan, conds []expr.Expr, more []bound) access {
	best := access{rel: s.Rel, rest: conds, cols: s.Cols}
	if a, ok := keyAccess(s.Rel, s, conds, more, func(c int) int { return c }); ok {
		a.cols = s.Cols
		best = a
	}
	if p.indexes && p.cat != nil && s.Rel.Kind != catalog.Index {
		for _, idx := range p.cat.Indexes(s.Rel.ID) {
			pos := positions(idx.IndexCols)
			a, ok := keyAccess(idx, s, conds, more, pos)
			if !ok {
				continue
			}
			if at, all := covers(idx, s.Cols); all {
				a.cols = at
			} else if a.eq == 0 || !subset(s.Rel.KeyCols(), idx.IndexCols) {
				continue // too many rows to look up one by one
			}
			if a.better(&best) {
				best = a
			}
		}
	}
	return best
}

// lookup reads an index and, for each of its rows, the relation by its key.
func lookup(s *plan.Scan, a access) plan.Node {
	key := s.Rel.KeyCols()
	pos := positions(a.rel.IndexCols)
	outer := &plan.Scan{Rel: a.rel, Cols: through(key, pos), Ranges: a.ranges}
	one := plan.KeyRange{}
	fields := s.Rel.Fields()
	for i, k := range key {
		one.Eq = append(one.Eq, &expr.OuterRef{Level: 1, Index: i, Typ: fields[k].Type, Name: fields[k].Name})
	}
	inner := &plan.Scan{Rel: s.Rel, Cols: s.Cols, Alias: scanName(s), Ranges: []plan.KeyRange{one}}
	j := &plan.Join{Kind: plan.Inner, Left: outer, Right: inner, Lateral: true}
	return filter(keep(j, plus(upTo(len(s.Cols)), len(key))), a.rest)
}

// A bound is a condition that compares one column with something that is fixed while the query runs.
type bound struct {
	col  int // of the scan
	op   string
	to   []expr.Expr // several: any of them
	cond int         // which of the conditions; negative: -1 - which of the join's keys
}

// keyAccess turns conditions on leading key columns of rel into key ranges. at maps
// columns of the scan's relation to columns of rel, -1 for none.
func keyAccess(rel *catalog.Relation, s *plan.Scan, conds []expr.Expr, more []bound, at func(int) int) (access, bool) {
	var bounds []bound
	for _, b := range more {
		if b.col = at(s.Cols[b.col]); b.col >= 0 {
			bounds = append(bounds, b)
		}
	}
	for i, c := range conds {
		if b, ok := boundOf(c, s.Schema()); ok {
			if b.cond, b.col = i, at(s.Cols[b.col]); b.col >= 0 {
				bounds = append(bounds, b)
			}
		}
	}
	a := access{rel: rel, joined: true}
	used := map[int]bool{} // by bound.cond
	ranges := []plan.KeyRange{{}}
	for _, k := range rel.Key {
		i := slices.IndexFunc(bounds, func(b bound) bool { return b.col == k.Col && b.op == "=" })
		if i >= 0 && len(ranges)*len(bounds[i].to) <= maxRanges {
			var next []plan.KeyRange
			for _, r := range ranges {
				for _, e := range bounds[i].to {
					next = append(next, plan.KeyRange{Eq: append(slices.Clone(r.Eq), e)})
				}
			}
			ranges = next
			used[bounds[i].cond] = true
			a.eq++
			continue
		}
		var lo, hi *bound
		for i := range bounds {
			b := &bounds[i]
			if b.col != k.Col {
				continue
			}
			switch {
			case (b.op == ">" || b.op == ">=") && lo == nil:
				lo = b
			case (b.op == "<" || b.op == "<=") && hi == nil:
				hi = b
			}
		}
		for i := range ranges {
			if lo != nil {
				ranges[i].Lo, ranges[i].LoInc = lo.to[0], lo.op == ">="
				used[lo.cond], a.ranged = true, true
			}
			if hi != nil {
				ranges[i].Hi, ranges[i].HiInc = hi.to[0], hi.op == "<="
				used[hi.cond], a.ranged = true, true
			}
		}
		break
	}
	if a.eq == 0 && !a.ranged {
		return a, false
	}
	a.ranges = ranges
	a.unique = a.eq == len(rel.Key)
	for _, b := range more {
		a.joined = a.joined && used[b.cond]
	}
	for i, c := range conds {
		if !used[i] {
			a.rest = append(a.rest, c)
		}
	}
	return a, true
}

// boundOf recognizes column op fixed, fixed op column, column IN (fixed, …), an OR of
// such equalities of one column, and column = ANY (array literal).
func boundOf(e expr.Expr, s types.Schema) (bound, bool) {
	col := func(e expr.Expr) (int, bool) {
		c, ok := e.(*expr.ColRef)
		if !ok {
			return 0, false
		}
		return c.Index, true
	}
	fits := func(c int, es ...expr.Expr) bool {
		return len(es) > 0 && !slices.ContainsFunc(es, func(e expr.Expr) bool {
			return !isFixed(e) || !sameHash(s[c].Type, e.Type()) || s[c].Type.OID == types.OIDBpchar
		})
	}
	switch e := e.(type) {
	case *expr.Call:
		op, l, r, ok := comparison(e)
		if !ok {
			return bound{}, false
		}
		if _, ok := col(l); !ok {
			flip := map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
			l, r, op = r, l, flip[op]
		}
		c, ok := col(l)
		if !ok || !slices.Contains([]string{"=", "<", "<=", ">", ">="}, op) || !fits(c, r) {
			return bound{}, false
		}
		return bound{col: c, op: op, to: []expr.Expr{r}}, true
	case *expr.InList:
		c, ok := col(e.Arg)
		if !ok || e.Negate || e.Eq == nil || e.Eq.Name != "=" || !fits(c, e.List...) {
			return bound{}, false
		}
		return inBound(c, e.List)
	case *expr.Logic: // column = a OR column IN (b, c)
		if !e.Or {
			return bound{}, false
		}
		at, list := -1, []expr.Expr(nil)
		for _, a := range e.Args {
			b, ok := boundOf(a, s)
			if !ok || b.op != "=" || at >= 0 && b.col != at {
				return bound{}, false
			}
			at, list = b.col, append(list, b.to...)
		}
		return inBound(at, list)
	case *expr.Quantified:
		c, ok := col(e.Left)
		if !ok || e.All || e.Op == nil || e.Op.Name != "=" {
			return bound{}, false
		}
		var list []expr.Expr
		switch a := e.Array.(type) {
		case *expr.ArrayExpr:
			list = a.Elems
		case *expr.Const:
			if a.Val.IsNull() || a.Typ.Elem == nil {
				return bound{}, false
			}
			for _, d := range a.Val.List().Items {
				list = append(list, &expr.Const{Val: d, Typ: *a.Typ.Elem})
			}
		}
		if !fits(c, list...) {
			return bound{}, false
		}
		return inBound(c, list)
	}
	return bound{}, false
}

// inBound is the bound of a list, repeated constants and NULLs, which equal nothing, left out.
func inBound(c int, list []expr.Expr) (bound, bool) {
	var to []expr.Expr
	for _, e := range list {
		if k, ok := e.(*expr.Const); ok && k.Val.IsNull() {
			continue
		}
		if !slices.ContainsFunc(to, func(t expr.Expr) bool { return expr.Equal(t, e) }) {
			to = append(to, e)
		}
	}
	return bound{col: c, op: "=", to: to}, len(to) > 0
}

// isFixed reports whether e has one value while its query runs once.
func isFixed(e expr.Expr) bool {
	return !has(e, func(e expr.Expr) bool {
		_, col := e.(*expr.ColRef)
		return col || isSubquery(e) || isVolatile(e)
	})
}
