package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// orderBy binds ORDER BY: an output name, an ordinal, or an expression, which
// becomes a further target unless it is one of the list.
func (q *selection) orderBy(e *env, list []*ast.Node) ([]expr.Order, error) {
	var out []expr.Order
	for _, n := range list {
		sb := n.GetSortBy()
		i, err := q.findTarget(e, sb.Node, "ORDER BY")
		if err != nil {
			return nil, err
		}
		desc, nullsFirst, err := direction(sb)
		if err != nil {
			return nil, err
		}
		if q.targets[i].x, err = q.b.known(q.targets[i].x); err != nil {
			return nil, err
		}
		if err := sortable(q.targets[i].x.Type(), location(sb.Node)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o expr.Order) bool { return o.Col == i }) {
			out = append(out, expr.Order{Col: i, Desc: desc, NullsFirst: nullsFirst})
		}
	}
	return out, nil
}

// sortable refuses types without an order.
func sortable(t types.Type, pos int) error {
	if _, _, err := expr.Resolve("<", true, []types.Type{t, t}); err != nil {
		return sqlerr.New(sqlerr.UndefinedFunction, "could not identify an ordering operator for type %s", types.FormatType(t)).At(pos).
			WithHint("Use an explicit ordering operator or modify the query.")
	}
	return nil
}

func direction(sb *ast.SortBy) (desc, nullsFirst bool, err error) {
	switch sb.SortbyDir {
	case ast.SortByDir_SORTBY_DESC:
		desc = true
	case ast.SortByDir_SORTBY_USING:
		switch op, _ := opName(sb.UseOp, -1); op {
		case "<":
		case ">":
			desc = true
		default:
			return false, false, sqlerr.New(sqlerr.WrongObjectType, "operator %s is not a valid ordering operator", op).
				At(int(sb.Location)).WithHint(`Ordering operators must be "<" or ">" members of btree operator families.`)
		}
	}
	nullsFirst = desc
	switch sb.SortbyNulls {
	case ast.SortByNulls_SORTBY_NULLS_FIRST:
		nullsFirst = true
	case ast.SortByNulls_SORTBY_NULLS_LAST:
		nullsFirst = false
	}
	return desc, nullsFirst, nil
}

// sortKey binds one item of an ORDER BY that is not a query's.
func (e *env) sortKey(n *ast.Node) (sortKey, error) {
	sb := n.GetSortBy()
	x, err := e.expr(sb.Node)
	if err != nil {
		return sortKey{}, err
	}
	k := sortKey{x: x}
	k.desc, k.nullsFirst, err = direction(sb)
	return k, err
}

// typedKey is sortKey for a place that can sort only by a known type: the order of an
// aggregate or of a window.
func (e *env) typedKey(n *ast.Node) (sortKey, error) {
	k, err := e.sortKey(n)
	if err != nil {
		return k, err
	}
	if k.x, err = e.b.known(k.x); err != nil {
		return k, err
	}
	return k, sortable(k.x.Type(), location(n))
}

// findTarget finds the target that an item of ORDER BY, GROUP BY or DISTINCT ON
// means, and adds one if there is none.
func (q *selection) findTarget(e *env, n *ast.Node, clause string) (int, error) {
	pos := location(n)
	if ref := n.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
		i, err := q.outputNamed(ref.Fields[0].GetString_().Sval, clause, pos)
		if i >= 0 || err != nil {
			return i, err
		}
	}
	if n.GetAConst() != nil {
		i, ok := constInt(n)
		if !ok {
			return 0, sqlerr.New(sqlerr.Syntax, "non-integer constant in %s", clause).At(pos)
		}
		if i < 1 || i > q.visible {
			return 0, sqlerr.New("42P10", "%s position %d is not in select list", clause, i).At(pos)
		}
		return i - 1, nil
	}
	x, err := e.expr(n)
	if err != nil {
		return 0, err
	}
	if x, err = q.b.known(x); err != nil {
		return 0, err
	}
	for i, t := range q.targets {
		if expr.Equal(t.x, x) {
			return i, nil
		}
	}
	q.targets = append(q.targets, target{x: x, name: outputName(n), pos: pos})
	return len(q.targets) - 1, nil
}

// outputNamed finds the visible target of a name, -1 if there is none. GROUP BY
// takes an input column of that name first, as SQL99 has it.
func (q *selection) outputNamed(name, clause string, pos int) (int, error) {
	if clause == "GROUP BY" {
		own := &scope{from: q.scope.from}
		if f, err := own.lookup(name, pos); err != nil || f.col != nil {
			return -1, err
		}
	}
	hit := -1
	for i, t := range q.targets[:q.visible] {
		if t.name != name {
			continue
		}
		if hit >= 0 && !expr.Equal(q.targets[hit].x, t.x) {
			return -1, sqlerr.New(sqlerr.AmbiguousColumn, `%s "%s" is ambiguous`, clause, name).At(pos)
		}
		if hit < 0 {
			hit = i
		}
	}
	return hit, nil
}

// groupItem binds an expression of GROUP BY and returns its number in q.groups.
func (q *selection) groupItem(n *ast.Node) (int, error) {
	e := q.env("GROUP BY")
	e.calls, e.noAggs = q.calls, true
	pos := location(n)
	var x expr.Expr
	i := -1
	if ref := n.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
		var err error
		if i, err = q.outputNamed(ref.Fields[0].GetString_().Sval, "GROUP BY", pos); err != nil {
			return 0, err
		}
	} else if n.GetAConst() != nil {
		k, ok := constInt(n)
		if !ok {
			return 0, sqlerr.New(sqlerr.Syntax, "non-integer constant in GROUP BY").At(pos)
		}
		if k < 1 || k > q.visible {
			return 0, sqlerr.New("42P10", "GROUP BY position %d is not in select list", k).At(pos)
		}
		i = k - 1
	}
	var err error
	if i >= 0 {
		if q.targets[i].x, err = q.b.known(q.targets[i].x); err != nil {
			return 0, err
		}
		x = q.targets[i].x
		visitExpr(x, func(y expr.Expr) {
			c, ok := y.(*expr.ColRef)
			switch {
			case !ok || err != nil || c.Index < aggMark || c.Index >= setMark:
			case c.Index >= winMark:
				err = sqlerr.New(sqlerr.WindowingError, "window functions are not allowed in GROUP BY").At(q.calls.wins[c.Index-winMark].pos)
			default:
				err = sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in GROUP BY").At(q.calls.aggs[c.Index-aggMark].pos)
			}
		})
		if err != nil {
			return 0, err
		}
	} else {
		if x, err = e.expr(n); err != nil {
			return 0, err
		}
		if x, err = q.b.known(x); err != nil {
			return 0, err
		}
	}
	if err := sortable(x.Type(), pos); err != nil {
		return 0, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(x.Type())).At(pos)
	}
	k := slices.IndexFunc(q.groups, func(g expr.Expr) bool { return expr.Equal(g, x) })
	if k < 0 {
		k = len(q.groups)
		q.groups = append(q.groups, x)
	}
	return k, nil
}

// distinctOn binds DISTINCT ON and checks both kinds of DISTINCT against ORDER BY.
func (q *selection) distinctOn(e *env, order []expr.Order) ([]int, error) {
	d := q.stmt.DistinctClause
	if len(d) == 0 {
		return nil, nil
	}
	if d[0].GetNode() == nil { // plain DISTINCT is a list of one empty node
		for i, o := range order {
			if o.Col >= q.visible {
				return nil, sqlerr.New("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list").
					At(location(q.stmt.SortClause[i]))
			}
		}
		for i, t := range q.targets[:q.visible] {
			x, err := q.b.known(t.x)
			if err != nil {
				return nil, err
			}
			q.targets[i].x = x
			if err := sortable(x.Type(), t.pos); err != nil {
				return nil, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(x.Type())).At(t.pos)
			}
		}
		return nil, nil
	}
	on := []int{}
	for _, n := range d {
		i, err := q.findTarget(e, n, "DISTINCT ON")
		if err != nil {
			return nil, err
		}
		if q.targets[i].x, err = q.b.known(q.targets[i].x); err != nil {
			return nil, err
		}
		if !slices.Contains(on, i) {
			on = append(on, i)
		}
	}
	lead := order[:min(len(on), len(order))]
	if slices.ContainsFunc(lead, func(o expr.Order) bool { return !slices.Contains(on, o.Col) }) {
		// The position is that of the first of DISTINCT ON that is not ordered by.
		at := slices.IndexFunc(on, func(c int) bool { return !slices.ContainsFunc(lead, func(o expr.Order) bool { return o.Col == c }) })
		return nil, sqlerr.New("42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions").At(location(d[max(at, 0)]))
	}
	return on, nil
}

// limit binds LIMIT and OFFSET; nil: none.
func (e *env) limit(s *ast.SelectStmt) (count, offset expr.Expr, err error) {
	bound := func(n *ast.Node, clause string) (expr.Expr, error) {
		if n == nil {
			return nil, nil
		}
		le := *e
		le.clause = clause
		x, err := le.expr(n)
		if err != nil {
			return nil, err
		}
		y, err := e.b.coerce(x, types.Int8, assignment, location(n))
		if err != nil {
			if sqlerr.Code(err) == sqlerr.DatatypeMismatch {
				return nil, sqlerr.New(sqlerr.DatatypeMismatch, "argument of %s must be type bigint, not type %s", clause, types.FormatType(x.Type())).At(location(n))
			}
			return nil, err
		}
		v := firstColumn(x)
		if v == nil {
			v = ownRef(x)
		}
		if v != nil {
			return nil, sqlerr.New("42P10", "argument of %s must not contain variables", clause).At(e.b.posOf(v))
		}
		if c, ok := y.(*expr.Const); ok && c.Val.IsNull() {
			return nil, nil // LIMIT ALL
		}
		return y, nil
	}
	if count, err = bound(s.LimitCount, "LIMIT"); err != nil {
		return nil, nil, err
	}
	if offset, err = bound(s.LimitOffset, "OFFSET"); err != nil {
		return nil, nil, err
	}
	if s.LimitOption == ast.LimitOption_LIMIT_OPTION_WITH_TIES && len(s.SortClause) == 0 {
		return nil, nil, sqlerr.New(sqlerr.Syntax, "WITH TIES cannot be specified without ORDER BY clause")
	}
	return count, offset, nil
}

// ownRef is a reference to the row x stands in, made in a subquery of x; nil if there is none.
func ownRef(x expr.Expr) expr.Expr {
	var hit expr.Expr
	visitExpr(x, func(y expr.Expr) {
		if s, ok := y.(*expr.Subquery); ok {
			mapOuter(s.Plan.(plan.Node), 0, func(r *expr.OuterRef, depth int) expr.Expr {
				if r.Level-depth == 1 && hit == nil {
					hit = r
				}
				return r
			})
		}
	})
	return hit
}
