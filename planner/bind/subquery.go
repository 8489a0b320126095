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
	if e.noSub != "" {
		return nil, sqlerr.New(sqlerr.NotSupported, "cannot use subquery in %s", e.noSub).At(pos)
	}
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
	parent := e.scope
	if parent == nil {
		parent = &scope{}
	}
	was := parent.env
	parent.env = e // aggregates of this level may stand inside
	defer func() { parent.env = was }()
	return e.b.selectStmt(x.Subselect.GetSelectStmt(), parent, e.ctes, false)
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
	if len(lefts) > 1 && name == "<>" && all { // not equal to any
		name, all, negate = "=", false, true
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
	if len(lefts) > 1 && (name != "=" || all) {
		return e.rowQuantified(name, left, r, all, pos)
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
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "row comparison operator must yield type boolean, not type %s", types.FormatType(op.Ret)).At(pos)
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

// rowQuantified is a comparison of a row with every row of a query that is not an
// equality with any: the comparison is computed inside the query, and is true of any, or of all.
func (e *env) rowQuantified(name string, left []expr.Expr, r *result, all bool, pos int) (expr.Expr, error) {
	p := &plan.Project{Input: r.node, Names: []string{"$compare"}}
	outer, cols := make([]expr.Expr, len(left)), make([]expr.Expr, len(left))
	for i, c := range r.cols {
		cols[i] = &expr.ColRef{Index: i, Typ: c.typ, Name: c.name}
		outer[i] = outward(left[i])
	}
	cmp, err := e.b.compareRows(name, outer, cols, false, pos)
	if err != nil {
		return nil, err
	}
	p.Exprs = []expr.Expr{cmp}
	eq, _, err := expr.Resolve("=", true, []types.Type{types.Bool, types.Bool})
	if err != nil {
		return nil, err
	}
	out := subquery(expr.SubqueryAny, p, types.Bool)
	if all {
		out.Kind = expr.SubqueryAll
	}
	out.Left, out.Ops = []expr.Expr{boolConst(true)}, []*expr.Func{eq}
	return out, nil
}

// outward turns an expression over a row into one that stands in a query inside it.
func outward(x expr.Expr) expr.Expr {
	return mapExpr(x, func(x expr.Expr) (expr.Expr, bool) {
		switch x := x.(type) {
		case *expr.ColRef:
			return &expr.OuterRef{Level: 1, Index: x.Index, Typ: x.Typ, Name: x.Name}, true
		case *expr.OuterRef:
			return shiftLevel(1)(x, 0), true
		case *expr.Subquery:
			y := *x
			y.Plan = shiftOuter(x.Plan.(plan.Node), 0, 1)
			return &y, false
		}
		return x, false
	})
}

// rowSubquery binds (a, b) op (SELECT x, y).
func (e *env) rowSubquery(name string, l *row, sub *ast.SubLink, pos int) (expr.Expr, error) {
	r, err := e.subSelect(sub)
	if err != nil {
		return nil, err
	}
	switch {
	case len(r.cols) > len(l.cols):
		return nil, sqlerr.New(sqlerr.Syntax, "subquery has too many columns").At(pos)
	case len(r.cols) < len(l.cols):
		return nil, sqlerr.New(sqlerr.Syntax, "subquery has too few columns").At(pos)
	}
	return e.b.compareRows(name, l.cols, oneByOne(r), false, pos)
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
	return oneByOne(r), nil
}

func oneByOne(r *result) []expr.Expr {
	out := make([]expr.Expr, len(r.cols))
	for i, c := range r.cols {
		p := identity(r.node)
		p.Exprs, p.Names = p.Exprs[i:i+1], p.Names[i:i+1]
		out[i] = subquery(expr.SubqueryScalar, p, c.typ)
	}
	return out
}
