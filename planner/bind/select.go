package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A result is a bound query with its visible columns.
type result struct {
	node plan.Node
	cols []outCol
}

type outCol struct {
	name   string
	typ    types.Type
	origin plan.Origin
	// lit is an untyped literal or parameter that the query's user shall type; the
	// plan has NULL in its place. nil: the column is typed. See retype.
	lit expr.Expr
	pos int
}

// A target is a column of the select list, or one added to sort by.
type target struct {
	x      expr.Expr
	name   string
	origin plan.Origin
	pos    int
}

// selectStmt binds a query whose rows stand inside parent's. keepUnknown leaves
// untyped literals of the select list to the caller.
func (b *binder) selectStmt(s *ast.SelectStmt, parent *scope, ctes *cte, keepUnknown bool) (*result, error) {
	switch {
	case s == nil:
		return nil, sqlerr.Unsupported("a statement that is no query, used as one,")
	case s.IntoClause != nil:
		return nil, sqlerr.Unsupported("SELECT INTO").At(int(s.IntoClause.GetRel().GetLocation())).WithHint("Use CREATE TABLE AS.")
	case len(s.LockingClause) > 0:
		return nil, sqlerr.Unsupported("SELECT … FOR UPDATE or FOR SHARE")
	case len(s.WindowClause) > 0:
		return nil, sqlerr.Unsupported("the WINDOW clause").At(int(s.WindowClause[0].GetWindowDef().GetLocation()))
	}
	inner, err := b.with(s.WithClause, parent, ctes)
	if err != nil {
		return nil, err
	}
	var r *result
	switch {
	case s.Op == ast.SetOperation_SETOP_UNION || s.Op == ast.SetOperation_SETOP_INTERSECT || s.Op == ast.SetOperation_SETOP_EXCEPT:
		r, err = b.setOp(s, parent, inner)
	case len(s.ValuesLists) > 0:
		r, err = b.values(s, parent, inner)
	default:
		r, err = b.plainSelect(s, parent, inner, keepUnknown)
	}
	if err != nil {
		return nil, err
	}
	return r, b.checkUnused(inner, ctes)
}

// A selection is one plain SELECT while it is bound.
type selection struct {
	b       *binder
	stmt    *ast.SelectStmt
	scope   *scope
	ctes    *cte
	calls   *collector
	targets []target
	visible int // leading targets that come out
	where   expr.Expr
	having  expr.Expr
	groups  []expr.Expr
}

func (b *binder) plainSelect(s *ast.SelectStmt, parent *scope, ctes *cte, keepUnknown bool) (*result, error) {
	f, err := b.fromList(s.FromClause, parent, ctes)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &from{node: oneRow()}
	}
	q := &selection{b: b, stmt: s, scope: &scope{from: f, parent: parent}, ctes: ctes, calls: &collector{}}
	e := q.env("SELECT")
	e.calls = q.calls
	if q.targets, err = e.targetList(s.TargetList); err != nil {
		return nil, err
	}
	q.visible = len(q.targets)
	if s.WhereClause != nil {
		if q.where, err = q.env("WHERE").condition(s.WhereClause, "WHERE"); err != nil {
			return nil, err
		}
	}
	if s.HavingClause != nil {
		h := q.env("HAVING")
		h.calls, h.noSets = q.calls, "HAVING"
		if q.having, err = h.condition(s.HavingClause, "HAVING"); err != nil {
			return nil, err
		}
	}
	order, err := q.orderBy(e, s.SortClause)
	if err != nil {
		return nil, err
	}
	if q.groups, err = q.groupBy(s.GroupClause); err != nil {
		return nil, err
	}
	on, err := q.distinctOn(e, order)
	if err != nil {
		return nil, err
	}
	count, offset, err := q.env("LIMIT").limit(s)
	if err != nil {
		return nil, err
	}
	lits, err := q.typeTargets(keepUnknown && len(s.DistinctClause) == 0, order)
	if err != nil {
		return nil, err
	}

	node, err := q.project()
	if err != nil {
		return nil, err
	}
	if len(s.DistinctClause) > 0 {
		d := &plan.Distinct{Input: node, On: on}
		if on != nil {
			d.Order = order
		}
		node = d
	}
	node = finish(node, order, count, offset, s.LimitOption == ast.LimitOption_LIMIT_OPTION_WITH_TIES)
	if q.visible < len(q.targets) {
		p := identity(node)
		p.Exprs, p.Names = p.Exprs[:q.visible], p.Names[:q.visible]
		node = p
	}
	r := &result{node: node}
	for i, t := range q.targets[:q.visible] {
		r.cols = append(r.cols, outCol{name: t.name, typ: t.x.Type(), origin: t.origin, lit: lits[i], pos: t.pos})
	}
	return r, nil
}

// finish puts ORDER BY and LIMIT over a query.
func finish(node plan.Node, order []expr.Order, count, offset expr.Expr, ties bool) plan.Node {
	if len(order) > 0 {
		node = &plan.Sort{Input: node, By: order}
	}
	if count != nil || offset != nil {
		node = &plan.Limit{Input: node, Count: count, Offset: offset, WithTies: ties}
	}
	return node
}

func (q *selection) env(clause string) *env {
	return &env{b: q.b, scope: q.scope, ctes: q.ctes, clause: clause}
}

// targetList binds a select or RETURNING list.
func (e *env) targetList(list []*ast.Node) ([]target, error) {
	var out []target
	for _, n := range list {
		rt := n.GetResTarget()
		if ref := rt.Val.GetColumnRef(); ref != nil && ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			ts, err := e.star(ref)
			if err != nil {
				return nil, err
			}
			out = append(out, ts...)
			continue
		}
		if ind := rt.Val.GetAIndirection(); ind != nil && ind.Indirection[len(ind.Indirection)-1].GetAStar() != nil {
			ts, err := e.setStar(ind)
			if err != nil {
				return nil, err
			}
			out = append(out, ts...)
			continue
		}
		x, err := e.expr(rt.Val)
		if err != nil {
			return nil, err
		}
		t := target{x: x, name: rt.Name, pos: location(rt.Val)}
		if t.name == "" {
			t.name = outputName(rt.Val)
		}
		t.origin = e.originOf(x)
		out = append(out, t)
	}
	return out, nil
}

// originOf is the table column that an expression is.
func (e *env) originOf(x expr.Expr) plan.Origin {
	c, ok := x.(*expr.ColRef)
	if !ok || e.scope == nil || e.scope.from == nil {
		return plan.Origin{}
	}
	for _, t := range e.scope.from.tables {
		for _, col := range t.cols {
			if col.index == c.Index && !col.sys {
				return col.origin
			}
		}
	}
	return plan.Origin{}
}

// star expands * and t.*.
func (e *env) star(ref *ast.ColumnRef) ([]target, error) {
	pos := int(ref.Location)
	names := strs(ref.Fields)
	var cols []*column
	level := 0
	switch len(names) {
	case 0:
		if e.scope.from == nil || len(e.scope.from.tables) == 0 {
			return nil, sqlerr.New(sqlerr.Syntax, "SELECT * with no tables specified is not valid").At(pos)
		}
		cols = e.scope.from.cols
	default:
		schema := ""
		if len(names) > 1 {
			schema = names[len(names)-2]
		}
		name := names[len(names)-1]
		t, l, s, err := e.scope.lookupTable(schema, name, pos)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, e.scope.noTable(name, pos)
		}
		s.used = true
		cols, level = t.cols, l
	}
	var out []target
	for _, c := range cols {
		if c.hidden || c.sys {
			continue
		}
		out = append(out, target{x: e.b.ref(c, level, pos), name: c.name, origin: c.origin, pos: pos})
	}
	return out, nil
}

// setStar expands (f(x)).* of a set-returning function.
func (e *env) setStar(ind *ast.A_Indirection) ([]target, error) {
	pos := location(ind.Arg)
	call := ind.Arg.GetFuncCall()
	if call == nil || !isTableFunc(call) || len(ind.Indirection) > 1 {
		return nil, sqlerr.Unsupported("expanding a composite value").At(pos)
	}
	probe := *e
	probe.calls = &collector{}
	fn, args, err := probe.tableFunc(call)
	if err != nil {
		return nil, err
	}
	var out []target
	for i, f := range fn.Columns(typesOf(args)) {
		x, err := e.setFunction(call, i)
		if err != nil {
			return nil, err
		}
		out = append(out, target{x: x, name: f.Name, pos: pos})
	}
	return out, nil
}

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

// groupBy binds GROUP BY; nil without one.
func (q *selection) groupBy(list []*ast.Node) ([]expr.Expr, error) {
	var out []expr.Expr
	for _, n := range list {
		if gs := n.GetGroupingSet(); gs != nil {
			if gs.Kind == ast.GroupingSetKind_GROUPING_SET_EMPTY && len(list) == 1 {
				return nil, nil
			}
			return nil, sqlerr.Unsupported("GROUPING SETS, ROLLUP or CUBE").At(int(gs.Location))
		}
		if row := n.GetRowExpr(); row != nil { // GROUP BY (a, b)
			xs, err := q.groupBy(row.Args)
			if err != nil {
				return nil, err
			}
			out = append(out, xs...)
			continue
		}
		e := q.env("GROUP BY")
		pos := location(n)
		var x expr.Expr
		i := -1
		if ref := n.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
			var err error
			if i, err = q.outputNamed(ref.Fields[0].GetString_().Sval, "GROUP BY", pos); err != nil {
				return nil, err
			}
		} else if n.GetAConst() != nil {
			k, ok := constInt(n)
			if !ok {
				return nil, sqlerr.New(sqlerr.Syntax, "non-integer constant in GROUP BY").At(pos)
			}
			if k < 1 || k > q.visible {
				return nil, sqlerr.New("42P10", "GROUP BY position %d is not in select list", k).At(pos)
			}
			i = k - 1
		}
		var err error
		if i >= 0 {
			if q.targets[i].x, err = q.b.known(q.targets[i].x); err != nil {
				return nil, err
			}
			x = q.targets[i].x
			visitExpr(x, func(y expr.Expr) {
				switch c, ok := y.(*expr.ColRef); {
				case !ok:
				case c.Index >= setMark:
					err = sqlerr.Unsupported("a set-returning function in GROUP BY").At(pos)
				case c.Index >= aggMark:
					err = sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in GROUP BY").At(q.calls.aggs[c.Index-aggMark].pos)
				}
			})
			if err != nil {
				return nil, err
			}
		} else {
			if x, err = e.expr(n); err != nil {
				return nil, err
			}
			if x, err = q.b.known(x); err != nil {
				return nil, err
			}
		}
		if err := sortable(x.Type(), pos); err != nil {
			return nil, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(x.Type())).At(pos)
		}
		if !slices.ContainsFunc(out, func(g expr.Expr) bool { return expr.Equal(g, x) }) {
			out = append(out, x)
		}
	}
	return out, nil
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
		i, err := q.findTarget(e, n, "SELECT DISTINCT ON")
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
		le.noColumns = sqlerr.New("42P10", "argument of %s must not contain variables", clause)
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

// typeTargets makes untyped targets text or, if keep, takes the literals out for the caller to type.
func (q *selection) typeTargets(keep bool, order []expr.Order) ([]expr.Expr, error) {
	lits := make([]expr.Expr, len(q.targets))
	for i, t := range q.targets {
		if t.x.Type().OID != types.OIDUnknown {
			continue
		}
		sorted := slices.ContainsFunc(order, func(o expr.Order) bool { return o.Col == i })
		if keep && !sorted {
			lits[i] = t.x
			q.targets[i].x = &expr.Const{Typ: types.Text}
			continue
		}
		x, err := q.b.known(t.x)
		if err != nil {
			return nil, err
		}
		q.targets[i].x = x
	}
	return lits, nil
}

// retype gives a result's columns the wanted types. what is the construct in
// errors; name, if not nil, words the error for column i.
func (b *binder) retype(r *result, want []types.Type, how expr.CastContext, mismatch func(i int, have types.Type) error) error {
	p, merged := r.node.(*plan.Project)
	if merged {
		c := *p
		c.Exprs = slices.Clone(p.Exprs)
		p = &c
	} else {
		p = identity(r.node)
	}
	changed := false
	for i := range r.cols {
		x := p.Exprs[i]
		if r.cols[i].lit != nil {
			x = r.cols[i].lit
		}
		y, err := b.coerce(x, want[i], how, r.cols[i].pos)
		if err != nil {
			if sqlerr.Code(err) == sqlerr.DatatypeMismatch && mismatch != nil {
				return mismatch(i, x.Type())
			}
			return err
		}
		changed = changed || y != p.Exprs[i]
		p.Exprs[i] = y
		r.cols[i].typ, r.cols[i].lit = y.Type(), nil
	}
	if changed {
		r.node = p
	}
	return nil
}
