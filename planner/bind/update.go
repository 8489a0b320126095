package bind

import (
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// assignments binds a SET list: the new value of each column that is set.
func (e *env) assignments(rel *catalog.Relation, list []*ast.Node) (map[int]expr.Expr, error) {
	sets := map[int]expr.Expr{}
	multi := map[*ast.Node][]expr.Expr{} // the values of SET (a, b) = …
	for _, n := range list {
		rt := n.GetResTarget()
		pos := int(rt.Location)
		i, err := findColumn(rel, rt.Name, pos)
		if err != nil {
			return nil, err
		}
		if len(rt.Indirection) > 0 {
			return nil, sqlerr.Unsupported("updating a part of a column").At(pos)
		}
		if _, twice := sets[i]; twice {
			return nil, sqlerr.New(sqlerr.Syntax, `multiple assignments to same column "%s"`, rt.Name).At(pos)
		}
		c := rel.Columns[i]
		val := rt.Val
		var x expr.Expr
		if m := val.GetMultiAssignRef(); m != nil {
			switch {
			case m.Source.GetRowExpr() != nil:
				args := m.Source.GetRowExpr().Args
				if len(args) != int(m.Ncolumns) {
					return nil, sqlerr.New(sqlerr.Syntax, "number of columns does not match number of values").At(location(m.Source))
				}
				val = args[m.Colno-1]
			case m.Source.GetSubLink() != nil:
				if multi[m.Source] == nil {
					if multi[m.Source], err = e.columnsOf(m.Source.GetSubLink(), int(m.Ncolumns)); err != nil {
						return nil, err
					}
				}
				x = multi[m.Source][m.Colno-1]
			default:
				return nil, sqlerr.New(sqlerr.NotSupported, "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression").At(location(m.Source))
			}
		}
		switch {
		case x == nil && val.GetSetToDefault() != nil:
			if x, err = e.b.defaultOf(rel, i); err != nil {
				return nil, err
			}
		case c.Generated != "":
			return nil, sqlerr.New("428C9", `column "%s" can only be updated to DEFAULT`, c.Name).At(pos).
				WithDetail(`Column "%s" is a generated column.`, c.Name)
		case x == nil:
			if x, err = e.expr(val); err != nil {
				return nil, err
			}
		}
		if x, err = e.b.assign(x, c, location(val)); err != nil {
			return nil, err
		}
		sets[i] = x
	}
	return sets, nil
}

// newRow is a row of the table after an update: what was set, generated columns
// computed from the new values, the rest as it was. The old row is columns 0 and on.
func (e *env) newRow(rel *catalog.Relation, sets map[int]expr.Expr) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(rel.Columns))
	for i, c := range rel.Columns {
		if out[i] = sets[i]; out[i] == nil || c.Generated != "" {
			out[i] = &expr.ColRef{Index: i, Typ: c.Type, Name: rel.Name + "." + c.Name}
		}
	}
	plain := slices.Clone(out)
	for i, c := range rel.Columns {
		if c.Generated == "" {
			continue
		}
		x, err := scalarAs(c.Generated, rel, c, e.b.o)
		if err != nil {
			return nil, err
		}
		out[i] = mapCols(x, func(r *expr.ColRef) expr.Expr { return plain[r.Index] })
	}
	return out, nil
}

// changed is the FROM clause of an UPDATE or DELETE: the table and what it is joined with, and its rows that qualify.
func (b *binder) changed(rel *catalog.Relation, n *ast.RangeVar, others []*ast.Node, where *ast.Node, ctes *cte) (plan.Node, *scope, error) {
	f := tableFrom(rel, n.Alias.GetAliasname(), 0)
	f.node = b.scan(rel, f.tables[0].alias)
	if len(others) > 0 {
		right, err := b.fromList(others, nil, ctes)
		if err != nil {
			return nil, nil, err
		}
		if f, err = b.cross(plan.Inner, f, right, &scope{}); err != nil {
			return nil, nil, err
		}
	}
	sc := &scope{from: f}
	if where.GetCurrentOfExpr() != nil {
		return nil, nil, sqlerr.Unsupported("WHERE CURRENT OF")
	}
	var cond expr.Expr
	if where != nil {
		var err error
		e := &env{b: b, scope: sc, ctes: ctes, clause: "WHERE"}
		if cond, err = e.condition(where, "WHERE"); err != nil {
			return nil, nil, err
		}
	}
	return b.filter(f.node, cond), sc, nil
}

// once keeps one of the joined rows of each row of the table, which comes first in node.
func once(rel *catalog.Relation, node plan.Node) plan.Node {
	return &plan.Distinct{Input: node, On: rel.KeyCols()}
}

func (b *binder) update(s *ast.UpdateStmt) (*plan.Update, error) {
	ctes, err := b.with(s.WithClause, nil, nil)
	if err != nil {
		return nil, err
	}
	rel, err := b.target(s.Relation, "update")
	if err != nil {
		return nil, err
	}
	node, sc, err := b.changed(rel, s.Relation, s.FromClause, s.WhereClause, ctes)
	if err != nil {
		return nil, err
	}
	e := &env{b: b, scope: sc, ctes: ctes, clause: "UPDATE"}
	sets, err := e.assignments(rel, s.TargetList)
	if err != nil {
		return nil, err
	}
	row, err := e.newRow(rel, sets)
	if err != nil {
		return nil, err
	}
	p := &plan.Project{Input: node}
	for i, c := range rel.Columns {
		p.Exprs = append(p.Exprs, &expr.ColRef{Index: i, Typ: c.Type, Name: rel.Name + "." + c.Name})
		p.Names = append(p.Names, c.Name)
	}
	for i, c := range rel.Columns {
		p.Exprs = append(p.Exprs, row[i])
		p.Names = append(p.Names, c.Name)
	}
	out := &plan.Update{Table: rel, Source: p}
	if len(s.FromClause) > 0 {
		out.Source = once(rel, p)
	}
	if out.Checks, err = b.checks(rel); err != nil {
		return nil, err
	}
	out.Returning, err = b.returning(rel, s.Relation.Alias.GetAliasname(), s.ReturningList, sc, ctes)
	return out, err
}

func (b *binder) delete(s *ast.DeleteStmt) (*plan.Delete, error) {
	ctes, err := b.with(s.WithClause, nil, nil)
	if err != nil {
		return nil, err
	}
	rel, err := b.target(s.Relation, "delete from")
	if err != nil {
		return nil, err
	}
	node, sc, err := b.changed(rel, s.Relation, s.UsingClause, s.WhereClause, ctes)
	if err != nil {
		return nil, err
	}
	if len(s.UsingClause) > 0 {
		p := identity(node)
		p.Exprs, p.Names = p.Exprs[:len(rel.Columns)], p.Names[:len(rel.Columns)]
		node = once(rel, p)
	}
	out := &plan.Delete{Table: rel, Source: node}
	out.Returning, err = b.returning(rel, s.Relation.Alias.GetAliasname(), s.ReturningList, sc, ctes)
	return out, err
}

// returning binds a RETURNING list over the table's columns; nil for none. full
// is the scope of the statement, with what the table was joined with, nil: the table alone.
func (b *binder) returning(rel *catalog.Relation, alias string, list []*ast.Node, full *scope, ctes *cte) (*plan.Returning, error) {
	if len(list) == 0 {
		return nil, nil
	}
	sc := full
	if sc == nil {
		sc = &scope{from: tableFrom(rel, alias, 0)}
	}
	e := &env{b: b, scope: sc, ctes: ctes, clause: "RETURNING"}
	targets, err := e.targetList(list)
	if err != nil {
		return nil, err
	}
	out := &plan.Returning{}
	for _, t := range targets {
		x, err := b.known(t.x)
		if err != nil {
			return nil, err
		}
		visitExpr(x, func(y expr.Expr) {
			if c, ok := y.(*expr.ColRef); ok && c.Index >= len(rel.Columns) && err == nil {
				err = sqlerr.Unsupported(`"%s" in RETURNING, which is of another table,`, c.Name).At(b.posOf(c))
			}
			if s, ok := y.(*expr.Subquery); ok && err == nil {
				mapOuter(s.Plan.(plan.Node), 0, func(r *expr.OuterRef, depth int) expr.Expr {
					if r.Level-depth == 1 && r.Index >= len(rel.Columns) {
						err = sqlerr.Unsupported(`"%s" in RETURNING, which is of another table,`, r.Name).At(b.posOf(r))
					}
					return r
				})
			}
		})
		if err != nil {
			return nil, err
		}
		out.Exprs = append(out.Exprs, x)
		out.Names = append(out.Names, t.name)
		out.Origin = append(out.Origin, t.origin)
	}
	return out, nil
}

// Scalar binds an expression in SQL text over the columns of a relation (nil:
// none), as defaults, generated columns and CHECK constraints are kept.
func Scalar(text string, rel *catalog.Relation, o Options) (expr.Expr, error) {
	return scalarOf(text, rel, o, "this expression")
}

func scalarOf(text string, rel *catalog.Relation, o Options, clause string) (expr.Expr, error) {
	n, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return newBinder(scalarOptions(o)).scalarNode(n, rel, clause)
}

// scalarOptions: text kept in the catalog has no parameters.
func scalarOptions(o Options) Options {
	o.ParamTypes, o.Streaming, o.OnRelation = nil, true, nil
	return o
}

func (b *binder) scalarNode(n *ast.Node, rel *catalog.Relation, clause string) (expr.Expr, error) {
	e := &env{b: b, scope: &scope{}, clause: clause, noSub: strings.TrimSuffix(clause, "s")}
	if rel == nil {
		e.noColumns = sqlerr.New(sqlerr.NotSupported, "cannot use column reference in DEFAULT expression")
	} else {
		e.scope.from = tableFrom(rel, "", 0)
	}
	return e.expr(n)
}

// scalarAs is the expression of a default or a generated column, of the column's type. rel nil: a default.
func scalarAs(text string, rel *catalog.Relation, c catalog.Column, o Options) (expr.Expr, error) {
	clause := "column generation expressions"
	if rel == nil {
		clause = "DEFAULT expressions"
	}
	n, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	b := newBinder(scalarOptions(o))
	x, err := b.scalarNode(n, rel, clause)
	if err == nil {
		x, err = b.coerceColumn(x, c, clause, -1)
	}
	if err != nil {
		e := *sqlerr.From(err)
		e.Pos = 0 // it is in the catalog's text
		return nil, &e
	}
	return x, nil
}

// coerceColumn gives a default or generation expression its column's type.
func (b *binder) coerceColumn(x expr.Expr, c catalog.Column, clause string, pos int) (expr.Expr, error) {
	y, err := b.coerce(x, c.Type, assignment, pos)
	if err != nil && sqlerr.Code(err) == sqlerr.DatatypeMismatch {
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, `column "%s" is of type %s but default expression is of type %s`, c.Name,
			types.FormatType(c.Type), types.FormatType(x.Type())).At(pos).
			WithHint("You will need to rewrite or cast the expression.")
	}
	return y, err
}
