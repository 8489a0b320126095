package bind

import (
	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// subLink binds a query inside an expression.
func (e *env) subLink(x *ast.SubLink) (expr.Expr, error) {
	pos := int(x.Location)
	switch x.SubLinkType {
	case ast.SubLinkType_EXISTS_SUBLINK:
		r, err := e.subSelect(x)
		if err != nil {
			return nil, err
		}
		return subquery(expr.SubqueryExists, r.node, types.Bool), nil
	case ast.SubLinkType_EXPR_SUBLINK:
		r, err := e.subSelect(x)
		if err != nil {
			return nil, err
		}
		if len(r.cols) != 1 {
			return nil, sqlerr.New(sqlerr.Syntax, "subquery must return only one column").At(pos)
		}
		return subquery(expr.SubqueryScalar, r.node, r.cols[0].typ), nil
	case ast.SubLinkType_ARRAY_SUBLINK:
		r, err := e.subSelect(x)
		if err != nil {
			return nil, err
		}
		if len(r.cols) != 1 {
			return nil, sqlerr.New(sqlerr.Syntax, "subquery must return only one column").At(pos)
		}
		t := r.cols[0].typ.Base()
		at := t
		if t.Elem == nil {
			var ok bool
			if at, ok = arrayOf(t); !ok {
				return nil, sqlerr.New(sqlerr.UndefinedObject, "could not find array type for data type %s", types.FormatType(t)).At(pos)
			}
		}
		return subquery(expr.SubqueryArray, r.node, at), nil
	case ast.SubLinkType_ANY_SUBLINK, ast.SubLinkType_ALL_SUBLINK:
		return e.quantifiedSubquery(x)
	}
	return nil, sqlerr.Unsupported("%v", x.SubLinkType).At(pos)
}

func (e *env) subSelect(x *ast.SubLink) (*result, error) {
	return e.b.selectStmt(x.Subselect.GetSelectStmt(), e.scope, e.ctes, false)
}

func subquery(kind expr.SubqueryKind, n plan.Node, t types.Type) *expr.Subquery {
	return &expr.Subquery{Kind: kind, Plan: n, Typ: t, Correlated: correlated(n, 0)}
}

// quantifiedSubquery binds x IN (SELECT …), x op ANY (SELECT …) and x op ALL (SELECT …).
func (e *env) quantifiedSubquery(x *ast.SubLink) (expr.Expr, error) {
	pos := int(x.Location)
	name := "="
	if len(x.OperName) > 0 {
		var err error
		if name, err = opName(x.OperName, pos); err != nil {
			return nil, err
		}
	}
	lefts := []*ast.Node{x.Testexpr}
	if row := x.Testexpr.GetRowExpr(); row != nil {
		lefts = row.Args
	}
	all := x.SubLinkType == ast.SubLinkType_ALL_SUBLINK
	negate := false
	if len(lefts) > 1 {
		switch {
		case name == "=" && !all:
		case name == "<>" && all: // not equal to any
			name, all, negate = "=", false, true
		default:
			return nil, sqlerr.Unsupported("comparing a row by %s with the rows of a subquery", name).At(pos)
		}
	}
	left, err := e.exprs(lefts)
	if err != nil {
		return nil, err
	}
	r, err := e.subSelect(x)
	if err != nil {
		return nil, err
	}
	if len(r.cols) > len(left) {
		return nil, sqlerr.New(sqlerr.Syntax, "subquery has too many columns").At(pos)
	}
	if len(r.cols) < len(left) {
		return nil, sqlerr.New(sqlerr.Syntax, "subquery has too few columns").At(pos)
	}
	out := &expr.Subquery{Kind: expr.SubqueryAny, Typ: types.Bool}
	if all {
		out.Kind = expr.SubqueryAll
	}
	want := make([]types.Type, len(left))
	for i, l := range left {
		op, args, err := expr.Resolve(name, true, []types.Type{l.Type(), r.cols[i].typ})
		if err != nil {
			return nil, at(err, pos)
		}
		if op.Ret.OID != types.OIDBool {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "operator %s must return type boolean, not type %s", name, types.FormatType(op.Ret)).At(pos)
		}
		if l, err = e.b.operand(l, args[0], pos); err != nil {
			return nil, err
		}
		out.Left, out.Ops = append(out.Left, l), append(out.Ops, op)
		want[i] = args[1]
		if have := r.cols[i].typ; polymorphic(want[i]) || want[i].Equal(have) || want[i].OID == types.OIDText && have.OID == types.OIDVarchar {
			want[i] = have
		}
	}
	if err := e.b.retype(r, want, implicit, nil); err != nil {
		return nil, at(err, pos)
	}
	out.Plan, out.Correlated = r.node, correlated(r.node, 0)
	if negate {
		return not(out), nil
	}
	return out, nil
}

// rowSubquery binds (a, b) op (SELECT x, y).
func (e *env) rowSubquery(name string, row *ast.RowExpr, sub *ast.SubLink, pos int) (expr.Expr, error) {
	ls, err := e.exprs(row.Args)
	if err != nil {
		return nil, err
	}
	rs, err := e.columnsOf(sub, len(ls))
	if err != nil {
		return nil, err
	}
	return e.b.compareRows(name, ls, rs, pos)
}

// columnsOf is a subquery of one row as n scalar subqueries, one for each column.
func (e *env) columnsOf(sub *ast.SubLink, n int) ([]expr.Expr, error) {
	r, err := e.subSelect(sub)
	if err != nil {
		return nil, err
	}
	if len(r.cols) != n {
		return nil, sqlerr.New(sqlerr.Syntax, "number of columns does not match number of values").At(int(sub.Location))
	}
	out := make([]expr.Expr, n)
	for i, c := range r.cols {
		p := identity(r.node)
		p.Exprs, p.Names = p.Exprs[i:i+1], p.Names[i:i+1]
		out[i] = subquery(expr.SubqueryScalar, p, c.typ)
	}
	return out, nil
}
