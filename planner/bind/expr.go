package bind

import (
	"fmt"
	"strconv"
	"strings"

	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// An env is where an expression stands: what it may name and collect.
type env struct {
	b         *binder
	scope     *scope
	ctes      *cte
	clause    string        // the clause in errors: "aggregate functions are not allowed in WHERE"
	noColumns *sqlerr.Error // not nil: columns are not allowed here, with this error
	calls     *collector    // where aggregates and set-returning functions go; nil: neither is allowed
	noAggs    bool          // calls takes set-returning functions only
	noSets    string        // set-returning functions are not allowed here although calls takes them; why
	inAgg     bool          // inside an aggregate's arguments
	noSub     string        // what a subquery cannot be used in; "": it can
	windows   bool          // calls takes window functions too
	inWin     bool          // inside a window function's arguments
}

// expr binds an expression. What is left untyped (type unknown) is for the caller to type.
func (e *env) expr(n *ast.Node) (expr.Expr, error) {
	if n == nil {
		return nil, sqlerr.New(sqlerr.Syntax, "an expression is missing")
	}
	switch x := n.Node.(type) {
	case *ast.Node_ColumnRef:
		return e.columnRef(x.ColumnRef)
	case *ast.Node_AConst:
		return e.constant(x.AConst)
	case *ast.Node_ParamRef:
		return e.b.param(int(x.ParamRef.Number), int(x.ParamRef.Location))
	case *ast.Node_AExpr:
		return e.aExpr(x.AExpr)
	case *ast.Node_BoolExpr:
		return e.boolExpr(x.BoolExpr)
	case *ast.Node_FuncCall:
		return e.funcCall(x.FuncCall)
	case *ast.Node_TypeCast:
		return e.typeCast(x.TypeCast)
	case *ast.Node_NullTest:
		return e.nullTest(x.NullTest)
	case *ast.Node_BooleanTest:
		return e.booleanTest(x.BooleanTest)
	case *ast.Node_CaseExpr:
		return e.caseExpr(x.CaseExpr)
	case *ast.Node_CoalesceExpr:
		ce := *e
		ce.noSets = "COALESCE"
		args, err := ce.exprs(x.CoalesceExpr.Args)
		if err != nil {
			return nil, err
		}
		t, err := e.b.unify(args, x.CoalesceExpr.Args, "COALESCE")
		if err != nil {
			return nil, err
		}
		return &expr.Coalesce{Args: args, Typ: t}, nil
	case *ast.Node_MinMaxExpr:
		m := x.MinMaxExpr
		name := "greatest"
		if m.Op == ast.MinMaxOp_IS_LEAST {
			name = "least"
		}
		args, err := e.exprs(m.Args)
		if err != nil {
			return nil, err
		}
		if _, err = e.b.unify(args, m.Args, strings.ToUpper(name)); err != nil {
			return nil, err
		}
		return e.b.call(name, false, args, int(m.Location))
	case *ast.Node_SqlvalueFunction:
		return e.valueFunction(x.SqlvalueFunction)
	case *ast.Node_SubLink:
		return e.subLink(x.SubLink)
	case *ast.Node_AArrayExpr:
		return e.array(x.AArrayExpr.Elements, nil, int(x.AArrayExpr.Location))
	case *ast.Node_AIndirection:
		return e.indirection(x.AIndirection)
	case *ast.Node_CollateClause:
		return e.collate(x.CollateClause)
	case *ast.Node_NamedArgExpr:
		return nil, sqlerr.Unsupported("a named argument here").At(int(x.NamedArgExpr.Location))
	case *ast.Node_RowExpr:
		return nil, sqlerr.Unsupported("a row value here").At(int(x.RowExpr.Location))
	case *ast.Node_SetToDefault:
		return nil, sqlerr.New(sqlerr.Syntax, "DEFAULT is not allowed in this context").At(int(x.SetToDefault.Location))
	case *ast.Node_CurrentOfExpr:
		return nil, sqlerr.Unsupported("WHERE CURRENT OF")
	case *ast.Node_GroupingFunc:
		return e.grouping(x.GroupingFunc)
	case *ast.Node_JsonIsPredicate:
		return nil, sqlerr.Unsupported("IS JSON").At(location(x.JsonIsPredicate.Expr))
	case *ast.Node_XmlExpr:
		return nil, sqlerr.Unsupported("XML").At(int(x.XmlExpr.Location))
	}
	return nil, sqlerr.Unsupported("%s", nodeName(n)).At(location(n))
}

// nodeName names a kind of syntax for errors: "JsonObjectConstructor".
func nodeName(n *ast.Node) string {
	s := fmt.Sprintf("%T", n.GetNode())
	return s[strings.LastIndex(s, "Node_")+len("Node_"):]
}

func (e *env) exprs(list []*ast.Node) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(list))
	for i, n := range list {
		x, err := e.expr(n)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// known is expr with leftover untyped literals made text.
func (b *binder) known(x expr.Expr) (expr.Expr, error) {
	if x.Type().OID == types.OIDUnknown {
		return b.coerce(x, types.Text, implicit, -1)
	}
	return x, nil
}

// condition binds an expression that must be boolean.
func (e *env) condition(n *ast.Node, what string) (expr.Expr, error) {
	x, err := e.expr(n)
	if err != nil {
		return nil, err
	}
	return e.b.boolean(x, n, what)
}

func (b *binder) boolean(x expr.Expr, n *ast.Node, what string) (expr.Expr, error) {
	y, err := b.coerce(x, types.Bool, assignment, location(n))
	if err != nil {
		if sqlerr.Code(err) == sqlerr.DatatypeMismatch {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "argument of %s must be type boolean, not type %s", what, types.FormatType(x.Type())).At(location(n))
		}
		return nil, err
	}
	return y, nil
}

// constant gives a literal PostgreSQL's first type: int4, int8 or numeric by size; strings stay unknown.
func (e *env) constant(c *ast.A_Const) (expr.Expr, error) {
	out := &expr.Const{Typ: types.Null}
	pos := int(c.Location)
	if c.Isnull {
		e.b.pos[out] = pos
		return out, nil
	}
	switch v := c.Val.(type) {
	case *ast.A_Const_Ival:
		out.Val, out.Typ = types.NewInt(int64(v.Ival.GetIval())), types.Int4
	case *ast.A_Const_Fval:
		s := v.Fval.Fval
		if n, err := strconv.ParseInt(s, 0, 64); err == nil {
			out.Val, out.Typ = types.NewInt(n), types.Int8
			if n == int64(int32(n)) {
				out.Typ = types.Int4
			}
			break
		}
		d, err := types.ParseDecimal(strings.ReplaceAll(s, "_", ""))
		if err != nil {
			return nil, at(err, pos)
		}
		out.Val, out.Typ = types.NewDecimal(d), types.Numeric
	case *ast.A_Const_Boolval:
		out.Val, out.Typ = types.NewBool(v.Boolval.GetBoolval()), types.Bool
	case *ast.A_Const_Sval:
		out.Val = types.NewString(v.Sval.GetSval())
		e.b.pos[out] = pos
	case *ast.A_Const_Bsval:
		return nil, sqlerr.Unsupported("a bit string").At(pos)
	default: // the tree leaves out a zero
		out.Val, out.Typ = types.NewInt(0), types.Int4
	}
	return out, nil
}

func (e *env) boolExpr(x *ast.BoolExpr) (expr.Expr, error) {
	what := "AND"
	switch x.Boolop {
	case ast.BoolExprType_OR_EXPR:
		what = "OR"
	case ast.BoolExprType_NOT_EXPR:
		arg, err := e.condition(x.Args[0], "NOT")
		if err != nil {
			return nil, err
		}
		return not(arg), nil
	}
	var args []expr.Expr
	for _, n := range x.Args {
		a, err := e.condition(n, what)
		if err != nil {
			return nil, err
		}
		if l, ok := a.(*expr.Logic); ok && l.Or == (what == "OR") {
			args = append(args, l.Args...)
		} else {
			args = append(args, a)
		}
	}
	return &expr.Logic{Or: what == "OR", Args: args}, nil
}

func or(conds []expr.Expr) expr.Expr {
	if len(conds) == 1 {
		return conds[0]
	}
	return &expr.Logic{Or: true, Args: conds}
}

func not(x expr.Expr) expr.Expr {
	switch x := x.(type) {
	case *expr.Not:
		return x.Arg
	case *expr.IsNull:
		return &expr.IsNull{Arg: x.Arg, Negate: !x.Negate}
	case *expr.InList:
		y := *x
		y.Negate = !x.Negate
		return &y
	}
	return &expr.Not{Arg: x}
}

func (e *env) nullTest(x *ast.NullTest) (expr.Expr, error) {
	negate := x.Nulltesttype == ast.NullTestType_IS_NOT_NULL
	if r, err := e.row(x.Arg); err != nil || r != nil {
		if err != nil {
			return nil, err
		}
		return rowNull(r, negate), nil
	}
	y, err := e.expr(x.Arg)
	if err != nil {
		return nil, err
	}
	if c, ok := y.(*expr.Const); ok && c.Typ.OID == types.OIDUnknown {
		y, _ = e.b.known(y)
	}
	return &expr.IsNull{Arg: y, Negate: negate}, nil
}

func boolConst(v bool) expr.Expr { return &expr.Const{Val: types.NewBool(v), Typ: types.Bool} }

func intConst(v int64, t types.Type) expr.Expr { return &expr.Const{Val: types.NewInt(v), Typ: t} }

func (e *env) booleanTest(x *ast.BooleanTest) (expr.Expr, error) {
	var what string
	var val, negate, unknown bool
	switch x.Booltesttype {
	case ast.BoolTestType_IS_TRUE:
		what, val = "IS TRUE", true
	case ast.BoolTestType_IS_NOT_TRUE:
		what, val, negate = "IS NOT TRUE", true, true
	case ast.BoolTestType_IS_FALSE:
		what = "IS FALSE"
	case ast.BoolTestType_IS_NOT_FALSE:
		what, negate = "IS NOT FALSE", true
	case ast.BoolTestType_IS_UNKNOWN:
		what, unknown = "IS UNKNOWN", true
	case ast.BoolTestType_IS_NOT_UNKNOWN:
		what, unknown, negate = "IS NOT UNKNOWN", true, true
	default:
		return nil, sqlerr.Unsupported("boolean test %v", x.Booltesttype).At(int(x.Location))
	}
	arg, err := e.condition(x.Arg, what)
	if err != nil {
		return nil, err
	}
	if unknown {
		return &expr.IsNull{Arg: arg, Negate: negate}, nil
	}
	// The value where it is known, and false where it is not.
	if !val {
		arg = not(arg)
	}
	out := expr.Expr(&expr.Coalesce{Args: []expr.Expr{arg, boolConst(false)}, Typ: types.Bool})
	if negate {
		out = &expr.Not{Arg: out}
	}
	return out, nil
}

func (e *env) caseExpr(x *ast.CaseExpr) (expr.Expr, error) {
	ce := *e
	ce.noSets = "CASE"
	var arg expr.Expr
	if x.Arg != nil {
		a, err := ce.expr(x.Arg)
		if err != nil {
			return nil, err
		}
		if arg, err = e.b.known(a); err != nil {
			return nil, err
		}
	}
	out := &expr.Case{}
	// PostgreSQL looks at the default's type first.
	vals := []expr.Expr{&expr.Const{Typ: types.Null}}
	nodes := []*ast.Node{x.Defresult}
	for _, n := range x.Args {
		w := n.GetCaseWhen()
		var cond expr.Expr
		var err error
		if arg == nil {
			we := ce
			we.noSets = "CASE/WHEN"
			cond, err = we.condition(w.Expr, "CASE/WHEN")
		} else {
			var v expr.Expr
			if v, err = ce.expr(w.Expr); err == nil {
				cond, err = e.b.call("=", true, []expr.Expr{arg, v}, int(w.Location))
			}
		}
		if err != nil {
			return nil, err
		}
		then, err := ce.expr(w.Result)
		if err != nil {
			return nil, err
		}
		out.Whens = append(out.Whens, expr.When{Cond: cond})
		vals, nodes = append(vals, then), append(nodes, w.Result)
	}
	if x.Defresult != nil {
		d, err := ce.expr(x.Defresult)
		if err != nil {
			return nil, err
		}
		vals[0] = d
	}
	t, err := e.b.unify(vals, nodes, "CASE")
	if err != nil {
		return nil, err
	}
	out.Typ = t
	for i := range out.Whens {
		out.Whens[i].Then = vals[i+1]
	}
	if x.Defresult != nil {
		out.Else = vals[0]
	}
	return out, nil
}

// unify coerces expressions to their common type, in place. what is the construct in errors.
func (b *binder) unify(xs []expr.Expr, nodes []*ast.Node, what string) (types.Type, error) {
	t, err := b.common(xs, nodes, what)
	if err != nil {
		return t, err
	}
	for i, x := range xs {
		pos := -1
		if i < len(nodes) {
			pos = location(nodes[i])
		}
		if xs[i], err = b.coerce(x, t, implicit, pos); err != nil {
			if sqlerr.Code(err) == sqlerr.DatatypeMismatch {
				return t, sqlerr.New(sqlerr.CannotCoerce, "%s could not convert type %s to %s", what, types.FormatType(x.Type()), types.FormatType(t)).At(pos)
			}
			return t, err
		}
	}
	return t, nil
}

// common is the common type of expressions, by PostgreSQL's rule for UNION, CASE and the like.
func (b *binder) common(xs []expr.Expr, nodes []*ast.Node, what string) (types.Type, error) {
	ts := typesOf(xs)
	t, err := expr.CommonType(ts)
	if err == nil {
		if t.OID == types.OIDUnknown {
			t = types.Text
		}
		// All of one type with one modifier keep the modifier.
		for _, o := range ts {
			if o.Equal(t) && o.Mod != ts[0].Mod || !o.Equal(t) {
				return t.Base(), nil
			}
		}
		t.Mod = ts[0].Mod
		return t, nil
	}
	for i := 1; i < len(ts); i++ {
		if _, e := expr.CommonType(ts[:i+1]); e != nil {
			before, _ := expr.CommonType(ts[:i])
			pos := -1
			if i < len(nodes) {
				pos = location(nodes[i])
			}
			return t, sqlerr.New(sqlerr.DatatypeMismatch, "%s types %s and %s cannot be matched", what,
				types.FormatType(before), types.FormatType(ts[i])).At(pos)
		}
	}
	return t, err
}

func typesOf(xs []expr.Expr) []types.Type {
	out := make([]types.Type, len(xs))
	for i, x := range xs {
		out[i] = x.Type()
	}
	return out
}

func (e *env) valueFunction(x *ast.SQLValueFunction) (expr.Expr, error) {
	pos := int(x.Location)
	var name string
	prec := types.Type{}
	switch x.Op {
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		name = "current_date"
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_TIME, ast.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
		return nil, sqlerr.Unsupported("time with time zone (CURRENT_TIME)").At(pos).WithHint("Use LOCALTIME.")
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:
		name = "now"
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		name, prec = "now", types.Timestamptz
	case ast.SQLValueFunctionOp_SVFOP_LOCALTIME:
		name = "localtime"
	case ast.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		name, prec = "localtime", types.Time
	case ast.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:
		name = "localtimestamp"
	case ast.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		name, prec = "localtimestamp", types.Timestamp
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, ast.SQLValueFunctionOp_SVFOP_CURRENT_USER, ast.SQLValueFunctionOp_SVFOP_USER:
		name = "current_user"
	case ast.SQLValueFunctionOp_SVFOP_SESSION_USER:
		name = "session_user"
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		name = "current_database"
	case ast.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		name = "current_schema"
	default:
		return nil, sqlerr.Unsupported("%v", x.Op).At(pos)
	}
	out, err := e.b.call(name, false, nil, pos)
	if err != nil || prec.OID == 0 {
		return out, err
	}
	prec.Mod = min(max(x.Typmod, 0), 6) + 1
	return e.b.coerce(out, prec, explicit, pos)
}

func (e *env) collate(x *ast.CollateClause) (expr.Expr, error) {
	names := strs(x.Collname)
	y, err := e.expr(x.Arg)
	if err != nil {
		return nil, err
	}
	if y, err = e.b.known(y); err != nil {
		return nil, err
	}
	switch y.Type().OID {
	case types.OIDText, types.OIDVarchar, types.OIDBpchar, types.OIDName:
		if !byteCollation(names[len(names)-1]) {
			return nil, noCollation(names, int(x.Location))
		}
		return y, nil
	}
	return nil, sqlerr.New(sqlerr.DatatypeMismatch, "collations are not supported by type %s", types.FormatType(y.Type())).At(int(x.Location))
}

// byteCollation reports whether a collation orders text as we do, or is the default.
func byteCollation(name string) bool {
	switch name {
	case "default", "C", "POSIX", "ucs_basic", "C.utf8", "C.UTF-8":
		return true
	}
	return false
}

func noCollation(names []string, pos int) error {
	return sqlerr.New(sqlerr.UndefinedObject, `collation "%s" for encoding "UTF8" does not exist`, strings.Join(names, ".")).At(pos).
		WithHint(`Text is ordered by its bytes, as by the collation "C".`)
}

// array binds ARRAY[…]; want is the type it is cast to, nil: none.
func (e *env) array(elems []*ast.Node, want *types.Type, pos int) (expr.Expr, error) {
	if len(elems) == 0 {
		if want == nil || want.Elem == nil {
			return nil, sqlerr.New(sqlerr.IndeterminateType, "cannot determine type of empty array").At(pos).
				WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
		}
		return &expr.ArrayExpr{Typ: want.Base()}, nil
	}
	xs := make([]expr.Expr, len(elems))
	nested := false
	for i, n := range elems {
		var err error
		if a := n.GetAArrayExpr(); a != nil {
			xs[i], err = e.array(a.Elements, want, int(a.Location))
			nested = true
		} else {
			xs[i], err = e.expr(n)
		}
		if err != nil {
			return nil, err
		}
	}
	if want != nil && want.Elem != nil {
		to := *want.Elem
		if nested {
			to = *want
		}
		for i, x := range xs {
			var err error
			if xs[i], err = e.b.coerce(x, to, explicit, location(elems[i])); err != nil {
				return nil, err
			}
		}
		return &expr.ArrayExpr{Elems: xs, Typ: want.Base()}, nil
	}
	t, err := e.b.unify(xs, elems, "ARRAY")
	if err != nil {
		return nil, err
	}
	t = t.Base()
	if t.Elem != nil { // of arrays: one type for all dimensions
		return &expr.ArrayExpr{Elems: xs, Typ: t}, nil
	}
	at, ok := arrayOf(t)
	if !ok {
		return nil, sqlerr.New(sqlerr.UndefinedObject, "could not find array type for data type %s", types.FormatType(t)).At(pos)
	}
	return &expr.ArrayExpr{Elems: xs, Typ: at}, nil
}
