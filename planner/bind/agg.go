package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// project builds the plan up to the projection of all targets: FROM, WHERE,
// grouping, HAVING, window functions, set-returning functions, select list.
func (q *selection) project() (plan.Node, error) {
	node := q.b.filter(q.scope.from.node, q.where)
	lower := func(e expr.Expr) (expr.Expr, error) { return e, nil }
	wins := &windowing{q.calls.wins, q.calls.windows}
	grouped := len(q.stmt.GroupClause) > 0 || q.having != nil || len(q.calls.aggs) > 0 || len(q.calls.groupings) > 0
	xs := make([]expr.Expr, len(q.targets))
	names := make([]string, len(q.targets))
	for i, t := range q.targets {
		xs[i], names[i] = t.x, t.name
	}
	if grouped {
		var err error
		if node, err = q.groupedSets(node, xs); err != nil {
			return nil, err
		}
		g := &grouping{q: q, keys: slices.Clone(q.groups), grouped: len(q.groups)}
		if q.sets != nil {
			g.keys = append(g.keys, &expr.ColRef{Index: -1, Typ: types.Int8, Name: setColumn})
		}
		g.findKeyed()
		// All that stands above the aggregation is lowered first: it may add grouping columns.
		for i, x := range xs {
			if xs[i], err = g.lower(x); err != nil {
				return nil, err
			}
		}
		for _, c := range q.calls.aggs {
			for _, x := range c.check {
				if _, err := g.lower(x); err != nil {
					return nil, sqlerr.From(err).WithDetail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
				}
			}
		}
		having := q.having
		if having != nil {
			if having, err = g.lower(having); err != nil {
				return nil, err
			}
		}
		if wins, err = wins.lowerTo(g.lower); err != nil {
			return nil, err
		}
		args := make([][]expr.Expr, len(q.calls.sets))
		for i, s := range q.calls.sets {
			args[i] = make([]expr.Expr, len(s.args))
			for j, a := range s.args {
				if args[i][j], err = g.lower(a); err != nil {
					return nil, err
				}
			}
		}
		node = g.aggregate(node)
		for i := range xs {
			xs[i] = g.place(xs[i])
		}
		if having != nil {
			node = &plan.Filter{Input: node, Cond: g.place(having)}
		}
		if wins, err = wins.lowerTo(func(e expr.Expr) (expr.Expr, error) { return g.place(e), nil }); err != nil {
			return nil, err
		}
		for i, s := range q.calls.sets {
			s.args = args[i]
			for j := range s.args {
				s.args[j] = g.place(s.args[j])
			}
			q.calls.sets[i] = s
		}
	}
	if len(wins.calls) > 0 {
		var where []int
		node, where = wins.over(node)
		place := func(e expr.Expr) expr.Expr {
			return placeMarks(e, winMark, setMark, func(i int) int { return where[i] })
		}
		for i := range xs {
			xs[i] = place(xs[i])
		}
		for _, s := range q.calls.sets {
			for j := range s.args {
				s.args[j] = place(s.args[j])
			}
		}
	}
	if len(q.calls.sets) > 0 {
		n, where, err := unsetSets(node, q.calls.sets, lower)
		if err != nil {
			return nil, err
		}
		node = n
		for i := range xs {
			xs[i] = placeMarks(xs[i], setMark, 2*setMark, func(i int) int { return where[i] })
		}
	}
	return &plan.Project{Input: node, Exprs: xs, Names: names}, nil
}

// groupedSets evaluates the set-returning functions that are grouped by below the
// aggregation; wherever else they stand they are columns then.
func (q *selection) groupedSets(node plan.Node, xs []expr.Expr) (plan.Node, error) {
	early := map[int]bool{}
	var mark func(e expr.Expr)
	mark = func(e expr.Expr) {
		visitExpr(e, func(x expr.Expr) {
			if c, ok := x.(*expr.ColRef); ok && c.Index >= setMark && !early[c.Index-setMark] {
				early[c.Index-setMark] = true
				for _, a := range q.calls.sets[c.Index-setMark].args {
					mark(a)
				}
			}
		})
	}
	for _, g := range q.groups {
		mark(g)
	}
	if len(early) == 0 {
		return node, nil
	}
	// Their numbers among the early ones and among the rest.
	var first, rest []setCall
	number := make([]int, len(q.calls.sets))
	for i, s := range q.calls.sets {
		if early[i] {
			number[i] = len(first)
			first = append(first, s)
		} else {
			number[i] = len(rest)
			rest = append(rest, s)
		}
	}
	for i := range first {
		first[i].args = slices.Clone(first[i].args)
		for j, a := range first[i].args {
			first[i].args[j] = mapCols(a, func(c *expr.ColRef) expr.Expr {
				if c.Index >= setMark {
					return &expr.ColRef{Index: setMark + number[c.Index-setMark], Typ: c.Typ, Name: c.Name}
				}
				return c
			})
		}
	}
	node, where, err := unsetSets(node, first, func(e expr.Expr) (expr.Expr, error) { return e, nil })
	if err != nil {
		return nil, err
	}
	place := func(e expr.Expr) expr.Expr {
		return mapCols(e, func(c *expr.ColRef) expr.Expr {
			switch i := c.Index - setMark; {
			case i < 0:
				return c
			case early[i]:
				return &expr.ColRef{Index: where[number[i]], Typ: c.Typ, Name: c.Name}
			default:
				return &expr.ColRef{Index: setMark + number[i], Typ: c.Typ, Name: c.Name}
			}
		})
	}
	for i := range xs {
		xs[i] = place(xs[i])
	}
	for i := range q.groups {
		q.groups[i] = place(q.groups[i])
	}
	for i := range rest {
		rest[i].args = slices.Clone(rest[i].args)
		rest[i].rank = 0
		for j, a := range rest[i].args {
			rest[i].args[j] = place(a)
			visitExpr(rest[i].args[j], func(x expr.Expr) {
				if c, ok := x.(*expr.ColRef); ok && c.Index >= setMark {
					rest[i].rank = max(rest[i].rank, rest[c.Index-setMark].rank+1)
				}
			})
		}
	}
	q.calls.sets = rest
	return node, nil
}

// A grouping moves expressions over the FROM row to the row that aggregation
// gives: grouping columns, then aggregates.
type grouping struct {
	q *selection
	// keys are over the FROM row: what is grouped by, the number of the grouping set
	// where there are several, and functionally dependent columns, added while lowering.
	keys    []expr.Expr
	grouped int // how many keys are what is grouped by
	owner   map[int]*table
	keyed   map[*table]bool // the primary key is among the keys
}

// findKeyed finds the tables whose whole primary key is grouped by: their other columns may be used freely.
func (g *grouping) findKeyed() {
	g.owner, g.keyed = map[int]*table{}, map[*table]bool{}
	for _, t := range g.q.scope.from.tables {
		if t.rel == nil {
			continue
		}
		at := map[string]int{}
		for i, c := range t.rel.Columns {
			if i < len(t.cols) && !t.cols[i].sys {
				g.owner[t.cols[i].index] = t
				at[c.Name] = t.cols[i].index
			}
		}
		if t.rel.PrimaryKey == 0 {
			continue
		}
		all := true
		for _, k := range t.rel.Key[:t.rel.PrimaryKey] {
			i := g.key(at[t.rel.Columns[k.Col].Name])
			all = all && i >= 0 && !slices.ContainsFunc(g.q.sets, func(s []int) bool { return !slices.Contains(s, i) })
		}
		g.keyed[t] = all
	}
}

// key finds the grouping column that is column i of the FROM row.
func (g *grouping) key(i int) int {
	return slices.IndexFunc(g.keys, func(k expr.Expr) bool {
		c, ok := k.(*expr.ColRef)
		return ok && c.Index == i
	})
}

// column is the grouping column for column i of the FROM row, -1 if it is not grouped by.
func (g *grouping) column(i int, t types.Type, name string) int {
	if k := g.key(i); k >= 0 {
		return k
	}
	if owner := g.owner[i]; owner != nil && g.keyed[owner] {
		g.keys = append(g.keys, &expr.ColRef{Index: i, Typ: t, Name: name})
		return len(g.keys) - 1
	}
	return -1
}

func (g *grouping) lower(e expr.Expr) (expr.Expr, error) {
	var failed error
	out := mapExpr(e, func(x expr.Expr) (expr.Expr, bool) {
		if c, ok := x.(*expr.ColRef); ok && c.Index >= aggMark {
			return x, true
		} else if ok && c.Index >= groupMark {
			v, err := g.groupingValue(g.q.calls.groupings[c.Index-groupMark])
			if err != nil {
				if failed == nil {
					failed = err
				}
				return x, true
			}
			return v, true
		}
		if _, ok := x.(*expr.Const); ok {
			return x, true
		}
		for i, k := range g.keys {
			if expr.Equal(x, k) {
				ref := &expr.ColRef{Index: i, Typ: x.Type(), Name: nameOf(k)}
				return ref, true
			}
		}
		switch x := x.(type) {
		case *expr.ColRef:
			if k := g.column(x.Index, x.Typ, x.Name); k >= 0 {
				return &expr.ColRef{Index: k, Typ: x.Typ, Name: x.Name}, true
			}
			if failed == nil {
				failed = sqlerr.New(sqlerr.GroupingError, `column "%s" must appear in the GROUP BY clause or be used in an aggregate function`, x.Name).At(g.q.b.posOf(x))
			}
			return x, true
		case *expr.Subquery:
			p := mapOuter(x.Plan.(plan.Node), 0, func(r *expr.OuterRef, depth int) expr.Expr {
				if r.Level-depth != 1 || r.Index >= aggMark {
					return r
				}
				k := g.column(r.Index, r.Typ, r.Name)
				if k < 0 {
					if failed == nil {
						failed = sqlerr.New(sqlerr.GroupingError, `subquery uses ungrouped column "%s" from outer query`, r.Name).At(g.q.b.posOf(r))
					}
					return r
				}
				return &expr.OuterRef{Level: r.Level, Index: k, Typ: r.Typ, Name: r.Name}
			})
			if p != x.Plan {
				y := *x
				y.Plan = p
				return &y, false
			}
		}
		return x, false
	})
	return out, failed
}

func nameOf(e expr.Expr) string {
	if c, ok := e.(*expr.ColRef); ok {
		return c.Name
	}
	return ""
}

// place gives the aggregates in a lowered expression their columns, known once all grouping columns are.
func (g *grouping) place(e expr.Expr) expr.Expr {
	return placeMarks(e, aggMark, winMark, func(i int) int { return len(g.keys) + i })
}

// aggregate builds the aggregation over node.
func (g *grouping) aggregate(node plan.Node) plan.Node {
	if g.q.sets != nil {
		return g.aggregateSets(node)
	}
	return g.build(node, g.keys)
}

// build makes an aggregation of the collected aggregates by keys. Keys and arguments
// that are not columns are computed by a projection below it.
func (g *grouping) build(node plan.Node, keys []expr.Expr) *plan.Agg {
	var pre []expr.Expr
	add := func(e expr.Expr) int {
		for i, p := range pre {
			if expr.Equal(p, e) {
				return i
			}
		}
		pre = append(pre, e)
		return len(pre) - 1
	}
	a := &plan.Agg{}
	for _, k := range keys {
		a.GroupBy = append(a.GroupBy, add(k))
	}
	for _, c := range g.q.calls.aggs {
		call := expr.Agg{Fn: c.fn, Typ: c.typ, Distinct: c.distinct, Filter: -1}
		for _, x := range c.args {
			call.Args = append(call.Args, add(x))
		}
		if c.filter != nil {
			call.Filter = add(c.filter)
		}
		for _, k := range c.order {
			call.Order = append(call.Order, expr.Order{Col: add(k.x), Desc: k.desc, NullsFirst: k.nullsFirst})
		}
		a.Aggs = append(a.Aggs, call)
		a.Names = append(a.Names, c.name)
	}
	a.Input = node
	if slices.ContainsFunc(pre, func(e expr.Expr) bool { _, plain := e.(*expr.ColRef); return !plain }) {
		p := &plan.Project{Input: node, Exprs: pre}
		for _, e := range pre {
			p.Names = append(p.Names, shortName(e))
		}
		a.Input = p
		return a
	}
	// All are columns of node.
	at := func(i int) int { return pre[i].(*expr.ColRef).Index }
	for i, c := range a.GroupBy {
		a.GroupBy[i] = at(c)
	}
	for i := range a.Aggs {
		call := &a.Aggs[i]
		for j, c := range call.Args {
			call.Args[j] = at(c)
		}
		for j := range call.Order {
			call.Order[j].Col = at(call.Order[j].Col)
		}
		if call.Filter >= 0 {
			call.Filter = at(call.Filter)
		}
	}
	return a
}

// shortName names a computed column: a column keeps its own name.
func shortName(e expr.Expr) string {
	n := nameOf(e)
	if n == "" {
		return "$expr"
	}
	for i := len(n) - 1; i >= 0; i-- {
		if n[i] == '.' {
			return n[i+1:]
		}
	}
	return n
}
