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
	return r, nil
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
	sets    [][]int // of groups; nil: one set of all
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
	e.calls, e.windows = q.calls, true
	if err := q.windowClause(s.WindowClause); err != nil {
		return nil, err
	}
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
	if err := q.groupBy(s.GroupClause, s.GroupDistinct); err != nil {
		return nil, err
	}
	for i := range q.calls.named {
		if _, err := e.namedWindow(q.calls.named[i].def.Name, i+1, -1); err != nil {
			return nil, err
		}
	}
	on, err := q.distinctOn(e, order)
	if err != nil {
		return nil, err
	}
	count, offset, err := q.env("LIMIT").limit(s)
	if err != nil {
		return nil, err
	}
	if len(q.calls.aggs) > 0 && slices.ContainsFunc(f.tables, func(t *table) bool { return t.work }) {
		return nil, sqlerr.New(invalidRecursion, "aggregate functions are not allowed in a recursive query's recursive term").At(q.calls.aggs[0].pos)
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
		r, err := e.row(ind.Arg)
		switch {
		case err != nil:
			return nil, err
		case r == nil || len(ind.Indirection) > 1:
			return nil, sqlerr.Unsupported("expanding a composite value").At(pos)
		}
		var out []target
		for i, x := range r.cols {
			out = append(out, target{x: x, name: r.names[i], origin: e.originOf(x), pos: pos})
		}
		return out, nil
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
