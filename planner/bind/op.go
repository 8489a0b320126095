package bind

import (
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// call resolves and applies a function or operator to bound arguments.
func (b *binder) call(name string, operator bool, args []expr.Expr, pos int) (expr.Expr, error) {
	fn, want, err := expr.Resolve(name, operator, typesOf(args))
	if err != nil {
		return nil, at(err, pos)
	}
	cast := make([]expr.Expr, len(args))
	for i, a := range args {
		if cast[i], err = b.operand(a, want[i], pos); err != nil {
			return nil, err
		}
	}
	typ := fn.Ret
	if fn.RetType != nil {
		typ = fn.RetType(typesOf(cast))
	}
	return &expr.Call{Fn: fn, Args: cast, Typ: typ}, nil
}

func (b *binder) operator(name string, l, r expr.Expr) (expr.Expr, error) {
	return b.call(name, true, []expr.Expr{l, r}, -1)
}

// opName is an operator as written: + or OPERATOR(pg_catalog.+).
func opName(list []*ast.Node, pos int) (string, error) {
	names := strs(list)
	if len(names) == 0 {
		return "", sqlerr.New(sqlerr.Syntax, "an operator is missing").At(pos)
	}
	if len(names) > 1 && names[len(names)-2] != "pg_catalog" { // there is none by that name
		return names[len(names)-2] + "." + names[len(names)-1], nil
	}
	name := names[len(names)-1]
	if name == "!=" {
		name = "<>"
	}
	return name, nil
}

func (e *env) aExpr(x *ast.A_Expr) (expr.Expr, error) {
	pos := int(x.Location)
	switch x.Kind {
	case ast.A_Expr_Kind_AEXPR_OP:
		name, err := opName(x.Name, pos)
		if err != nil {
			return nil, err
		}
		if x.Lexpr == nil {
			return e.prefix(name, x.Rexpr, pos)
		}
		return e.compareOp(name, x.Lexpr, x.Rexpr, pos)
	case ast.A_Expr_Kind_AEXPR_OP_ANY, ast.A_Expr_Kind_AEXPR_OP_ALL:
		return e.quantified(x)
	case ast.A_Expr_Kind_AEXPR_DISTINCT, ast.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		out, err := e.distinct(x.Lexpr, x.Rexpr, pos)
		if err == nil && x.Kind == ast.A_Expr_Kind_AEXPR_NOT_DISTINCT {
			out = not(out)
		}
		return out, err
	case ast.A_Expr_Kind_AEXPR_NULLIF:
		args, err := e.exprs([]*ast.Node{x.Lexpr, x.Rexpr})
		if err != nil {
			return nil, err
		}
		eq, err := e.b.call("=", true, args, pos)
		if err != nil {
			return nil, err
		}
		// The result is the first argument as it was made comparable; a plain one keeps its own type.
		val := args[0]
		if val.Type().OID == types.OIDUnknown {
			val = eq.(*expr.Call).Args[0]
		}
		return &expr.Case{Whens: []expr.When{{Cond: eq, Then: &expr.Const{Typ: val.Type()}}}, Else: val, Typ: val.Type()}, nil
	case ast.A_Expr_Kind_AEXPR_IN:
		return e.in(x)
	case ast.A_Expr_Kind_AEXPR_LIKE, ast.A_Expr_Kind_AEXPR_ILIKE, ast.A_Expr_Kind_AEXPR_SIMILAR:
		name, err := opName(x.Name, pos)
		if err != nil {
			return nil, err
		}
		return e.compareOp(name, x.Lexpr, x.Rexpr, pos)
	case ast.A_Expr_Kind_AEXPR_BETWEEN, ast.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		ast.A_Expr_Kind_AEXPR_BETWEEN_SYM, ast.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return e.between(x)
	}
	return nil, sqlerr.Unsupported("%v", x.Kind).At(pos)
}

// prefix applies a prefix operator; the grammar has made a sign before a number part of it.
func (e *env) prefix(name string, arg *ast.Node, pos int) (expr.Expr, error) {
	a, err := e.expr(arg)
	if err != nil {
		return nil, err
	}
	return e.b.call(name, true, []expr.Expr{a}, pos)
}

// distinctFrom is x IS DISTINCT FROM y; with NULL it is a null test.
func (b *binder) distinctFrom(x, y expr.Expr, pos int) (expr.Expr, error) {
	isNull := func(e expr.Expr) bool {
		c, ok := e.(*expr.Const)
		return ok && c.Val.IsNull()
	}
	if isNull(y) {
		return &expr.IsNull{Arg: x, Negate: true}, nil
	}
	if isNull(x) {
		return &expr.IsNull{Arg: y, Negate: true}, nil
	}
	return b.call(fnDistinct, true, []expr.Expr{x, y}, pos)
}

func (e *env) between(x *ast.A_Expr) (expr.Expr, error) {
	pos := int(x.Location)
	bounds := x.Rexpr.GetList().GetItems()
	if len(bounds) != 2 {
		return nil, sqlerr.New(sqlerr.Syntax, "BETWEEN needs two bounds").At(pos)
	}
	within := func(lo, hi *ast.Node) (expr.Expr, error) {
		a, err := e.compareOp(">=", x.Lexpr, lo, pos)
		if err != nil {
			return nil, err
		}
		b, err := e.compareOp("<=", x.Lexpr, hi, pos)
		if err != nil {
			return nil, err
		}
		return expr.And(a, b), nil
	}
	out, err := within(bounds[0], bounds[1])
	if err != nil {
		return nil, err
	}
	switch x.Kind {
	case ast.A_Expr_Kind_AEXPR_BETWEEN_SYM, ast.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		rev, err := within(bounds[1], bounds[0])
		if err != nil {
			return nil, err
		}
		out = or([]expr.Expr{out, rev})
	}
	switch x.Kind {
	case ast.A_Expr_Kind_AEXPR_NOT_BETWEEN, ast.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		out = not(out)
	}
	return out, nil
}

// in binds x [NOT] IN (list).
func (e *env) in(x *ast.A_Expr) (expr.Expr, error) {
	pos := int(x.Location)
	name, err := opName(x.Name, pos)
	if err != nil {
		return nil, err
	}
	negate := name == "<>"
	items := x.Rexpr.GetList().GetItems()
	if row := x.Lexpr.GetRowExpr(); row != nil {
		var conds []expr.Expr
		for _, it := range items {
			c, err := e.compareOp("=", x.Lexpr, it, pos)
			if err != nil {
				return nil, err
			}
			conds = append(conds, c)
		}
		out := or(conds)
		if negate {
			out = not(out)
		}
		return out, nil
	}
	arg, err := e.expr(x.Lexpr)
	if err != nil {
		return nil, err
	}
	list, err := e.exprs(items)
	if err != nil {
		return nil, err
	}
	all := append([]expr.Expr{arg}, list...)
	nodes := append([]*ast.Node{x.Lexpr}, items...)
	t, err := e.b.common(all, nodes, "IN")
	if err == nil {
		// One equality for the whole list, if there is one over the common type.
		t = t.Base()
		if eq, want, err := expr.Resolve("=", true, []types.Type{t, t}); err == nil {
			for i, a := range all {
				if all[i], err = e.b.operand(a, want[min(i, 1)], location(nodes[i])); err != nil {
					return nil, err
				}
			}
			return &expr.InList{Arg: all[0], List: all[1:], Eq: eq, Negate: negate}, nil
		}
	}
	var conds []expr.Expr
	for _, it := range list {
		c, err := e.b.call("=", true, []expr.Expr{arg, it}, pos)
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	out := or(conds)
	if negate {
		out = not(out)
	}
	return out, nil
}

// quantified binds x op ANY (array) and x op ALL (array).
func (e *env) quantified(x *ast.A_Expr) (expr.Expr, error) {
	pos := int(x.Location)
	name, err := opName(x.Name, pos)
	if err != nil {
		return nil, err
	}
	left, err := e.expr(x.Lexpr)
	if err != nil {
		return nil, err
	}
	right, err := e.expr(x.Rexpr)
	if err != nil {
		return nil, err
	}
	if right.Type().OID == types.OIDUnknown {
		if left, err = e.b.known(left); err != nil {
			return nil, err
		}
		at, ok := arrayOf(left.Type().Base())
		if !ok {
			return nil, sqlerr.New(sqlerr.UndefinedObject, "could not find array type for data type %s", types.FormatType(left.Type())).At(pos)
		}
		if right, err = e.b.coerce(right, at, implicit, location(x.Rexpr)); err != nil {
			return nil, err
		}
	}
	elem := right.Type().Elem
	if elem == nil {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "op ANY/ALL (array) requires array on right side").At(pos)
	}
	op, want, err := expr.Resolve(name, true, []types.Type{left.Type(), *elem})
	if err != nil {
		return nil, at(err, pos)
	}
	if op.Ret.OID != types.OIDBool {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "op ANY/ALL (array) requires operator to yield boolean").At(pos)
	}
	if left, err = e.b.operand(left, want[0], pos); err != nil {
		return nil, err
	}
	if !polymorphic(want[1]) && !want[1].Equal(*elem) && !(elem.OID == types.OIDVarchar && want[1].OID == types.OIDText) {
		at, ok := arrayOf(want[1].Base())
		if !ok {
			return nil, sqlerr.New(sqlerr.UndefinedObject, "could not find array type for data type %s", types.FormatType(want[1])).At(pos)
		}
		if right, err = e.b.coerce(right, at, implicit, location(x.Rexpr)); err != nil {
			return nil, err
		}
	}
	return &expr.Quantified{Left: left, Array: right, Op: op, All: x.Kind == ast.A_Expr_Kind_AEXPR_OP_ALL}, nil
}
