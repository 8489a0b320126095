package bind

import (
	"slices"
	"strings"

	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// Aggregates, window and set-returning functions are not evaluated where they stand.
// While the expression around one is bound, a ColRef with an index from here on
// stands in for it; select.go puts the real column number there.
const (
	aggMark = 1 << 24
	winMark = 1 << 25
	setMark = 1 << 26
	// groupMark: GROUPING calls.
	groupMark = 1 << 23
)

// A collector holds the calls that one SELECT computes below its expressions.
type collector struct {
	aggs      []aggCall
	wins      []winCall
	sets      []setCall
	groupings []groupingCall
	// windows are those that wins and named refer to.
	windows []*window
	named   []namedWindow // the WINDOW clause
}

// A sortKey is an expression to order by.
type sortKey struct {
	x          expr.Expr
	desc       bool
	nullsFirst bool
}

// funcName is a function's name without its schema.
func funcName(list []*ast.Node) string {
	names := strs(list)
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// checkSchema refuses functions qualified by a schema that has none.
func (e *env) checkSchema(call *ast.FuncCall) error {
	names := strs(call.Funcname)
	if len(names) < 2 {
		return nil
	}
	switch schema := names[len(names)-2]; {
	case schema == "pg_catalog" || schema == "information_schema":
		return nil
	case !e.b.o.Cat.HasSchema(schema):
		return sqlerr.New(sqlerr.InvalidSchema, `schema "%s" does not exist`, schema).At(int(call.Location))
	default:
		args, err := e.exprs(call.Args)
		if err != nil {
			return err
		}
		return sqlerr.New(sqlerr.UndefinedFunction, "function %s(%s) does not exist", strings.Join(names, "."), typeList(typesOf(args))).At(int(call.Location)).
			WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
	}
}

func (e *env) funcCall(x *ast.FuncCall) (expr.Expr, error) {
	pos := int(x.Location)
	if err := e.checkSchema(x); err != nil {
		return nil, err
	}
	name := funcName(x.Funcname)
	if x.Over != nil && (expr.IsAgg(name) || expr.IsWindowFunc(name)) {
		return e.windowCall(name, x)
	}
	if expr.IsAgg(name) {
		return e.aggregate(name, x)
	}
	if x.AggWithinGroup && isHypothetical(name) {
		return e.hypothetical(name, x)
	}
	if expr.IsWindowFunc(name) {
		args, err := e.args(name, x)
		if err != nil {
			return nil, err
		}
		if _, _, err := expr.ResolveWindow(name, typesOf(args)); err != nil {
			return nil, at(err, pos)
		}
		return nil, sqlerr.New(sqlerr.WrongObjectType, "window function %s requires an OVER clause", name).At(pos)
	}
	if isTableFunc(x) {
		if err := onlyAggregates(name, x); err != nil {
			return nil, err
		}
		return e.setFunction(x, -1)
	}
	args, err := e.args(name, x)
	if err != nil {
		return nil, e.b.qualified(err, x)
	}
	if x.FuncVariadic {
		if name, args, err = e.b.variadic(name, args, x); err != nil {
			return nil, err
		}
	}
	if name == "overlaps" {
		return e.b.overlaps(args, pos)
	}
	out, err := e.b.call(name, false, args, pos)
	if err != nil && len(args) == 1 && sqlerr.Code(err) == sqlerr.UndefinedFunction {
		// name(x) may be a cast to the type of that name.
		if t, ok := types.ByName(name); ok && expr.CanCast(args[0].Type(), t, expr.Explicit) {
			return e.b.coerce(args[0], t, explicit, pos)
		}
	}
	if err != nil {
		return nil, e.b.qualified(err, x)
	}
	return out, onlyAggregates(name, x)
}

// qualified words the error for a function there is not as the function was written:
// what the grammar makes of EXTRACT and its like is in pg_catalog.
func (b *binder) qualified(err error, x *ast.FuncCall) error {
	names := strs(x.Funcname)
	e, ok := err.(*sqlerr.Error)
	if !ok || len(names) < 2 || e.Code != sqlerr.UndefinedFunction || !strings.HasPrefix(e.Message, "function "+names[len(names)-1]+"(") {
		return err
	}
	c := *e
	c.Message = "function " + strings.Join(names, ".") + strings.TrimPrefix(e.Message, "function "+names[len(names)-1])
	return &c
}

// variadic gives f(…, VARIADIC array) the elements of the array as arguments.
func (b *binder) variadic(name string, args []expr.Expr, x *ast.FuncCall) (string, []expr.Expr, error) {
	last := len(args) - 1
	node := x.Args[last]
	arr := args[last]
	takes := slices.ContainsFunc(expr.Funcs(), func(f *expr.Func) bool {
		return !f.Operator && f.Name == name && f.Variadic && len(f.Args) == len(args)
	})
	if !takes {
		return "", nil, sqlerr.New(sqlerr.UndefinedFunction, "function %s(%s) does not exist", name, typeList(typesOf(args))).At(int(x.Location)).
			WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
	}
	if arr.Type().Elem == nil {
		return "", nil, sqlerr.New(sqlerr.DatatypeMismatch, "VARIADIC argument must be an array").At(location(node))
	}
	if a, ok := arr.(*expr.ArrayExpr); ok && (len(a.Elems) == 0 || a.Elems[0].Type().Elem == nil) {
		return name, append(args[:last:last], a.Elems...), nil
	}
	switch name {
	case "concat":
		return "array_to_string", []expr.Expr{arr, &expr.Const{Val: types.NewString(""), Typ: types.Text}}, nil
	case "concat_ws":
		return "array_to_string", []expr.Expr{arr, args[0]}, nil
	}
	return "", nil, sqlerr.Unsupported("VARIADIC with an array that is not written out, in a call of %s,", name).At(location(node))
}

func typeList(ts []types.Type) string {
	s := make([]string, len(ts))
	for i, t := range ts {
		s[i] = types.FormatType(t)
	}
	return strings.Join(s, ", ")
}

// onlyAggregates refuses what only a call of an aggregate may have.
func onlyAggregates(name string, x *ast.FuncCall) error {
	for _, wrong := range []struct {
		is   bool
		what string
	}{{x.AggStar, name + "(*)"}, {x.AggDistinct, "DISTINCT"}, {x.AggWithinGroup, "WITHIN GROUP"}, {len(x.AggOrder) > 0, "ORDER BY"}, {x.AggFilter != nil, "FILTER"}} {
		if wrong.is {
			return sqlerr.New(sqlerr.WrongObjectType, "%s specified, but %s is not an aggregate function", wrong.what, name).At(int(x.Location))
		}
	}
	if x.Over != nil {
		return sqlerr.New(sqlerr.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", name).At(int(x.Location))
	}
	return nil
}

// parameters are the names of the parameters of a function that may be called with
// name => value; those left out are zero. nil: it may not be.
func parameters(name string) []string {
	if name == "make_interval" {
		return []string{"years", "months", "weeks", "days", "hours", "mins", "secs"}
	}
	return nil
}

// args binds a call's arguments and puts named ones in their place; what WITHIN GROUP orders by comes last.
func (e *env) args(name string, x *ast.FuncCall) ([]expr.Expr, error) {
	named := map[string]bool{}
	var args []expr.Expr
	var describe []string
	for _, n := range x.Args {
		na := n.GetNamedArgExpr()
		switch {
		case na == nil && len(named) > 0:
			return nil, sqlerr.New(sqlerr.Syntax, "positional argument cannot follow named argument").At(location(n))
		case na != nil && named[na.Name]:
			return nil, sqlerr.New(sqlerr.Syntax, `argument name "%s" used more than once`, na.Name).At(int(na.Location))
		}
		val, prefix := n, ""
		if na != nil {
			named[na.Name] = true
			val, prefix = na.Arg, na.Name+" => "
		}
		a, err := e.expr(val)
		if err != nil {
			return nil, err
		}
		args, describe = append(args, a), append(describe, prefix+types.FormatType(a.Type()))
	}
	if x.AggWithinGroup {
		for _, n := range x.AggOrder {
			k, err := e.sortKey(n)
			if err != nil {
				return nil, err
			}
			args = append(args, k.x)
		}
	}
	params := parameters(name)
	if params == nil && len(named) == 0 {
		return args, nil
	}
	noSuch := sqlerr.New(sqlerr.UndefinedFunction, "function %s(%s) does not exist", name, strings.Join(describe, ", ")).At(int(x.Location)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
	out := make([]expr.Expr, len(params))
	for i, n := range x.Args {
		k := i
		if na := n.GetNamedArgExpr(); na != nil {
			k = slices.Index(params, na.Name)
		}
		if k < 0 || k >= len(out) || out[k] != nil {
			return nil, noSuch
		}
		out[k] = args[i]
	}
	for i := range out {
		if out[i] == nil {
			out[i] = intConst(0, types.Int4)
		}
	}
	return out, nil
}
