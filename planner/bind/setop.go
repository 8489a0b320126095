package bind

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// setOp binds UNION, INTERSECT and EXCEPT with their ORDER BY and LIMIT.
func (b *binder) setOp(s *ast.SelectStmt, parent *scope, ctes *cte) (*result, error) {
	r, err := b.setTree(s, parent, ctes)
	if err != nil {
		return nil, err
	}
	return r, b.resultOrder(r, s, parent, ctes)
}

func (b *binder) setTree(s *ast.SelectStmt, parent *scope, ctes *cte) (*result, error) {
	side := func(s *ast.SelectStmt) (*result, error) {
		if s.Op != ast.SetOperation_SETOP_NONE && s.Op != ast.SetOperation_SET_OPERATION_UNDEFINED &&
			s.WithClause == nil && len(s.SortClause) == 0 && s.LimitCount == nil && s.LimitOffset == nil {
			return b.setTree(s, parent, ctes)
		}
		return b.selectStmt(s, parent, ctes, true)
	}
	l, err := side(s.Larg)
	if err != nil {
		return nil, err
	}
	r, err := side(s.Rarg)
	if err != nil {
		return nil, err
	}
	out := &plan.SetOp{All: s.All}
	name := "UNION"
	switch s.Op {
	case ast.SetOperation_SETOP_INTERSECT:
		out.Op, name = plan.Intersect, "INTERSECT"
	case ast.SetOperation_SETOP_EXCEPT:
		out.Op, name = plan.Except, "EXCEPT"
	}
	want, err := b.setTypes(name, l, r, !out.All || out.Op != plan.Union)
	if err != nil {
		return nil, err
	}
	for _, side := range []*result{l, r} {
		if err := b.retype(side, want, implicit, nil); err != nil {
			return nil, err
		}
	}
	res := &result{}
	for i, c := range l.cols {
		out.Out = append(out.Out, types.Field{Name: c.name, Type: want[i]})
		res.cols = append(res.cols, outCol{name: c.name, typ: want[i], pos: c.pos})
	}
	// UNION ALL of UNION ALL is one.
	if u, ok := l.node.(*plan.SetOp); ok && u.Op == plan.Union && out.Op == plan.Union && u.All && out.All {
		out.Ins = slices.Clone(u.Ins)
	} else {
		out.Ins = []plan.Node{l.node}
	}
	out.Ins = append(out.Ins, r.node)
	res.node = out
	return res, nil
}

// untyped is the column's type, unknown where a literal is still to be typed.
func (c outCol) untyped() types.Type {
	if c.lit != nil {
		return types.Null
	}
	return c.typ
}

// resultOrder puts ORDER BY and LIMIT over a query that is no plain SELECT; they name its columns only.
func (b *binder) resultOrder(r *result, s *ast.SelectStmt, parent *scope, ctes *cte) error {
	var order []expr.Order
	for _, n := range s.SortClause {
		sb := n.GetSortBy()
		pos := location(sb.Node)
		col := -1
		if ref := sb.Node.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
			name := ref.Fields[0].GetString_().Sval
			for i, c := range r.cols {
				if c.name == name {
					if col >= 0 {
						return sqlerr.New(sqlerr.AmbiguousColumn, `ORDER BY "%s" is ambiguous`, name).At(pos)
					}
					col = i
				}
			}
			if col < 0 {
				return sqlerr.New(sqlerr.UndefinedColumn, `column "%s" does not exist`, name).At(pos)
			}
		} else if i, ok := constInt(sb.Node); ok {
			if i < 1 || i > len(r.cols) {
				return sqlerr.New("42P10", "ORDER BY position %d is not in select list", i).At(pos)
			}
			col = i - 1
		}
		if col < 0 {
			// What is wrong with the expression itself comes first.
			t := &table{}
			for i, c := range r.cols {
				t.cols = append(t.cols, &column{name: c.name, typ: c.typ, index: i, table: t})
			}
			oe := &env{b: b, scope: &scope{from: &from{node: r.node, cols: t.cols}, parent: parent}, ctes: ctes, clause: "ORDER BY", calls: &collector{}, windows: true}
			if _, err := oe.expr(sb.Node); err != nil {
				return err
			}
			what := "UNION/INTERSECT/EXCEPT"
			if len(s.ValuesLists) > 0 {
				what = "VALUES"
			}
			return sqlerr.New(sqlerr.NotSupported, "invalid %s ORDER BY clause", what).At(pos).
				WithDetail("Only result column names can be used, not expressions or functions.").
				WithHint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
		}
		desc, nullsFirst, err := direction(sb)
		if err != nil {
			return err
		}
		if err := sortable(r.cols[col].typ, pos); err != nil {
			return err
		}
		order = append(order, expr.Order{Col: col, Desc: desc, NullsFirst: nullsFirst})
	}
	e := &env{b: b, scope: &scope{parent: parent}, ctes: ctes}
	count, offset, err := e.limit(s)
	if err != nil {
		return err
	}
	r.node = finish(r.node, order, count, offset, s.LimitOption == ast.LimitOption_LIMIT_OPTION_WITH_TIES)
	return nil
}

// values binds VALUES (…), (…) as a query.
func (b *binder) values(s *ast.SelectStmt, parent *scope, ctes *cte) (*result, error) {
	e := &env{b: b, scope: &scope{parent: parent}, ctes: ctes, clause: "VALUES"}
	rows := make([][]expr.Expr, len(s.ValuesLists))
	for i, n := range s.ValuesLists {
		items := n.GetList().GetItems()
		if i > 0 && len(items) != len(rows[0]) {
			pos := -1
			if len(items) > 0 {
				pos = location(items[0])
			}
			return nil, sqlerr.New(sqlerr.Syntax, "VALUES lists must all be the same length").At(pos)
		}
		var err error
		if rows[i], err = e.exprs(items); err != nil {
			return nil, err
		}
	}
	out := &plan.Values{Rows: rows}
	r := &result{node: out}
	col := make([]expr.Expr, len(rows))
	nodes := make([]*ast.Node, len(rows))
	for j := range rows[0] {
		for i := range rows {
			col[i], nodes[i] = rows[i][j], s.ValuesLists[i].GetList().Items[j]
		}
		t, err := b.unify(col, nodes, "VALUES")
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i][j] = col[i]
		}
		name := fmt.Sprintf("column%d", j+1)
		out.Out = append(out.Out, types.Field{Name: name, Type: t})
		r.cols = append(r.cols, outCol{name: name, typ: t, pos: location(nodes[0])})
	}
	return r, b.resultOrder(r, s, parent, ctes)
}
