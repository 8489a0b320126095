package bind

import (
	"slices"
	"strings"

	"streamdb/planner/plan"
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

// An aggCall is an aggregate over expressions of the FROM row.
type aggCall struct {
	fn       *expr.AggFunc
	name     string
	args     []expr.Expr
	typ      types.Type
	distinct bool
	filter   expr.Expr // nil: none
	order    []sortKey
	direct   int // leading args of an ordered-set aggregate that must be the same in all rows of a group
	pos      int
}

// A setCall is a set-returning function of the select list.
type setCall struct {
	fn   *expr.TableFunc
	name string
	args []expr.Expr
	typ  types.Type
	rank int // 0, or one more than the greatest rank of a set-returning function in its arguments
	pos  int
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

func isTableFunc(call *ast.FuncCall) bool {
	return expr.IsTableFunc(funcName(call.Funcname))
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
	if expr.IsWindowFunc(name) && x.AggWithinGroup {
		return nil, sqlerr.Unsupported("the hypothetical-set aggregate %s", name).At(pos)
	}
	if expr.IsWindowFunc(name) {
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
	if x.AggWithinGroup {
		for _, n := range x.AggOrder {
			k, err := e.sortKey(n)
			if err != nil {
				return nil, err
			}
			args = append(args, k.x)
		}
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

// args binds a call's arguments and puts named ones in their place.
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

// aggregate binds a call of an aggregate function and collects it.
func (e *env) aggregate(name string, x *ast.FuncCall) (expr.Expr, error) {
	pos := int(x.Location)
	in := *e
	in.inAgg, in.inWin = true, false
	c, err := e.aggCall(name, x, &in)
	if err != nil {
		return nil, err
	}
	level, err := e.aggLevel(&c)
	if err != nil {
		return nil, err
	}
	calls := e.calls
	if level == 0 && e.inAgg {
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate function calls cannot be nested").At(pos)
	}
	if level > 0 {
		if calls, err = e.outerCalls(level, pos); err != nil {
			return nil, err
		}
	} else if e.calls == nil || e.noAggs {
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in %s", e.clause).At(pos)
	}
	// Equal calls are computed once.
	i := slices.IndexFunc(calls.aggs, c.equal)
	if i < 0 {
		i = len(calls.aggs)
		calls.aggs = append(calls.aggs, c)
	}
	if level > 0 {
		return &expr.OuterRef{Level: level, Index: aggMark + i, Typ: c.typ, Name: name}, nil
	}
	return &expr.ColRef{Index: aggMark + i, Typ: c.typ, Name: name}, nil
}

// aggCall binds an aggregate's arguments, order and filter; in is where its arguments stand.
func (e *env) aggCall(name string, x *ast.FuncCall, in *env) (aggCall, error) {
	pos := int(x.Location)
	c := aggCall{name: name, distinct: x.AggDistinct, pos: pos}
	if x.FuncVariadic {
		return c, sqlerr.Unsupported("VARIADIC in a call of %s", name).At(pos)
	}
	args, err := in.exprs(wholeRows(e, name, x.Args))
	if err != nil {
		return c, err
	}
	if x.AggWithinGroup {
		return c, e.orderedSet(&c, args, x, in)
	}
	if len(args) == 0 && !x.AggStar {
		if _, _, err := expr.ResolveAgg(name, nil, true); err == nil {
			return c, sqlerr.New(sqlerr.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", name).At(pos)
		}
	}
	fn, want, err := expr.ResolveAgg(name, typesOf(args), x.AggStar)
	if err != nil {
		return c, at(err, pos)
	}
	if fn.OrderedSet {
		return c, sqlerr.New(sqlerr.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name).At(pos)
	}
	c.fn, c.typ = fn, fn.Ret
	for i, a := range args {
		if a, err = e.b.operand(a, want[i], pos); err != nil {
			return c, err
		}
		c.args = append(c.args, a)
	}
	if fn.RetType != nil {
		c.typ = fn.RetType(typesOf(c.args))
	}
	if x.AggDistinct && len(args) == 0 {
		return c, sqlerr.New(sqlerr.WrongObjectType, "DISTINCT specified, but %s takes no argument", name).At(pos)
	}
	for _, n := range x.AggOrder {
		k, err := in.sortKey(n)
		if err != nil {
			return c, err
		}
		if k.x, err = e.b.known(k.x); err != nil {
			return c, err
		}
		if err := sortable(k.x.Type(), location(n)); err != nil {
			return c, err
		}
		if x.AggDistinct && !slices.ContainsFunc(c.args, func(a expr.Expr) bool { return expr.Equal(a, k.x) }) {
			return c, sqlerr.New("42P10", "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list").At(location(n))
		}
		c.order = append(c.order, k)
	}
	if x.AggDistinct {
		for i, a := range c.args {
			if sortable(a.Type(), -1) != nil {
				return c, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(a.Type())).At(location(x.Args[i]))
			}
		}
		if len(c.order) == 0 && (name == "array_agg" || name == "string_agg") {
			for _, a := range c.args { // PostgreSQL finds equal values by sorting
				c.order = append(c.order, sortKey{x: a})
			}
		}
	}
	return c, e.aggFilter(&c, x)
}

func (e *env) aggFilter(c *aggCall, x *ast.FuncCall) (err error) {
	if x.AggFilter != nil {
		fe := &env{b: e.b, scope: e.scope, ctes: e.ctes, clause: "FILTER"}
		c.filter, err = fe.condition(x.AggFilter, "FILTER")
	}
	return err
}

// orderedSet binds f(direct) WITHIN GROUP (ORDER BY …): the direct arguments come
// first and are the same in every row of a group.
func (e *env) orderedSet(c *aggCall, direct []expr.Expr, x *ast.FuncCall, in *env) error {
	if x.AggDistinct {
		return sqlerr.New(sqlerr.Syntax, "cannot use DISTINCT with WITHIN GROUP").At(c.pos)
	}
	var ordered []expr.Expr
	for _, n := range x.AggOrder {
		k, err := in.sortKey(n)
		if err != nil {
			return err
		}
		c.order = append(c.order, k)
		ordered = append(ordered, k.x)
	}
	fn, want, err := expr.ResolveOrderedSet(c.name, typesOf(direct), typesOf(ordered))
	if err != nil {
		return at(err, c.pos)
	}
	c.fn = fn
	for i, a := range append(direct, ordered...) {
		if a, err = e.b.operand(a, want[i], c.pos); err != nil {
			return err
		}
		if i >= len(direct) {
			if err := sortable(a.Type(), location(x.AggOrder[i-len(direct)])); err != nil {
				return err
			}
			c.order[i-len(direct)].x = a
		}
		c.args = append(c.args, a)
	}
	c.direct = len(direct)
	c.typ = fn.Type(typesOf(c.args))
	return e.aggFilter(c, x)
}

// wholeRows makes count(t.*) and count(t) the count of a column of t that is never
// NULL where there is a row of t.
func wholeRows(e *env, name string, args []*ast.Node) []*ast.Node {
	if name != "count" || len(args) != 1 || args[0].GetColumnRef() == nil || e.scope == nil {
		return args
	}
	ref := args[0].GetColumnRef()
	names := strs(ref.Fields)
	if len(names) != 1 {
		return args
	}
	if len(ref.Fields) == 1 {
		if f, err := e.scope.lookup(names[0], -1); err != nil || f.col != nil {
			return args
		}
	}
	t, _, _, err := e.scope.lookupTable("", names[0], -1)
	if err != nil || t == nil || t.rel == nil || len(t.rel.Key) == 0 {
		return args
	}
	col := t.cols[t.rel.Key[0].Col].name
	field := func(s string) *ast.Node { return &ast.Node{Node: &ast.Node_String_{String_: &ast.String{Sval: s}}} }
	return []*ast.Node{{Node: &ast.Node_ColumnRef{ColumnRef: &ast.ColumnRef{
		Fields: []*ast.Node{field(names[0]), field(col)}, Location: ref.Location}}}}
}

// aggLevel is how many queries out the aggregate belongs: to that of the innermost
// column in its arguments. Its expressions are turned into ones over that query's row.
func (e *env) aggLevel(c *aggCall) (int, error) {
	const none = 1 << 30
	level, subqueries := none, false
	look := func(x expr.Expr) {
		visitExpr(x, func(x expr.Expr) {
			switch x := x.(type) {
			case *expr.ColRef:
				level = 0
			case *expr.OuterRef:
				level = min(level, x.Level)
			case *expr.Subquery:
				subqueries = true
				mapOuter(x.Plan.(plan.Node), 0, func(r *expr.OuterRef, depth int) expr.Expr {
					level = min(level, r.Level-depth-1)
					return r
				})
			}
		})
	}
	all := func(f func(expr.Expr) expr.Expr) {
		for i, x := range c.args {
			c.args[i] = f(x)
		}
		for i := range c.order {
			c.order[i].x = f(c.order[i].x)
		}
		if c.filter != nil {
			c.filter = f(c.filter)
		}
	}
	all(func(x expr.Expr) expr.Expr { look(x); return x })
	if level == 0 || level == none {
		return 0, nil
	}
	if subqueries {
		return 0, sqlerr.Unsupported("a subquery in an aggregate of an outer query").At(c.pos)
	}
	all(func(x expr.Expr) expr.Expr {
		return mapExpr(x, func(x expr.Expr) (expr.Expr, bool) {
			r, ok := x.(*expr.OuterRef)
			if !ok {
				return x, false
			}
			var y expr.Expr = &expr.OuterRef{Level: r.Level - level, Index: r.Index, Typ: r.Typ, Name: r.Name}
			if r.Level == level {
				y = &expr.ColRef{Index: r.Index, Typ: r.Typ, Name: r.Name}
			}
			if p, ok := e.b.pos[r]; ok {
				e.b.pos[y] = p
			}
			return y, true
		})
	})
	return level, nil
}

// outerCalls is where the query level levels out collects its aggregates.
func (e *env) outerCalls(level, pos int) (*collector, error) {
	s := e.scope
	for range level {
		s = s.parent
	}
	switch o := s.env; {
	case o == nil:
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in FROM clause of their own query level").At(pos)
	case o.inAgg:
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate function calls cannot be nested").At(pos)
	case o.calls == nil || o.noAggs:
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in %s", o.clause).At(pos)
	default:
		return o.calls, nil
	}
}

func (c aggCall) equal(o aggCall) bool {
	eq := func(a, b expr.Expr) bool { return a == nil && b == nil || a != nil && b != nil && expr.Equal(a, b) }
	if c.fn != o.fn || c.distinct != o.distinct || !slices.EqualFunc(c.args, o.args, eq) || !eq(c.filter, o.filter) {
		return false
	}
	return slices.EqualFunc(c.order, o.order, func(a, b sortKey) bool {
		return a.desc == b.desc && a.nullsFirst == b.nullsFirst && eq(a.x, b.x)
	})
}

// tableFunc resolves a set-returning function and binds its arguments.
func (e *env) tableFunc(x *ast.FuncCall) (*expr.TableFunc, []expr.Expr, error) {
	pos := int(x.Location)
	if err := e.checkSchema(x); err != nil {
		return nil, nil, err
	}
	if x.FuncVariadic {
		return nil, nil, sqlerr.Unsupported("VARIADIC in a call of a set-returning function").At(pos)
	}
	args, err := e.exprs(x.Args)
	if err != nil {
		return nil, nil, err
	}
	fn, want, err := expr.ResolveTableFunc(funcName(x.Funcname), typesOf(args))
	if err != nil {
		return nil, nil, at(err, pos)
	}
	for i, a := range args {
		if args[i], err = e.b.coerce(a, want[i], implicit, pos); err != nil {
			return nil, nil, err
		}
	}
	return fn, args, nil
}

// setFunction binds a set-returning function of a select list; field is the
// column of its rows that is wanted, -1: its only one.
func (e *env) setFunction(x *ast.FuncCall, field int) (expr.Expr, error) {
	pos := int(x.Location)
	switch {
	case e.inAgg:
		return nil, sqlerr.New(sqlerr.NotSupported, "aggregate function calls cannot contain set-returning function calls").At(pos).WithHint(lateralHint)
	case e.inWin:
		return nil, sqlerr.New(sqlerr.NotSupported, "window function calls cannot contain set-returning function calls").At(pos).WithHint(lateralHint)
	case e.noSets == "CASE/WHEN":
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "argument of CASE/WHEN must not return a set").At(pos)
	case e.noSets == "CASE" || e.noSets == "COALESCE":
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.noSets).At(pos).WithHint(lateralHint)
	case e.noSets != "":
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.noSets).At(pos)
	case e.calls == nil:
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.clause).At(pos)
	}
	fn, args, err := e.tableFunc(x)
	if err != nil {
		return nil, err
	}
	out := fn.Columns(typesOf(args))
	if field < 0 {
		if len(out) != 1 {
			return nil, sqlerr.Unsupported("the row of function %s as one value", fn.Name).At(pos).
				WithHint("Call it in FROM, or take its columns one by one: (%s(…)).%s.", fn.Name, out[0].Name)
		}
		field = 0
	}
	if len(out) > 1 {
		fn = fieldOf(fn, field)
	}
	c := setCall{fn: fn, name: out[field].Name, args: args, typ: out[field].Type, pos: pos}
	if len(out) == 1 {
		c.name = fn.Name
	}
	for _, a := range args {
		visitExpr(a, func(x expr.Expr) {
			if r, ok := x.(*expr.ColRef); ok && r.Index >= setMark {
				c.rank = max(c.rank, e.calls.sets[r.Index-setMark].rank+1)
			}
		})
	}
	// Equal calls give equal rows side by side: one is enough.
	for i, o := range e.calls.sets {
		if o.fn.OID == c.fn.OID && o.fn.Name == c.fn.Name && o.name == c.name && slices.EqualFunc(o.args, c.args, expr.Equal) {
			return &expr.ColRef{Index: setMark + i, Typ: c.typ, Name: c.name}, nil
		}
	}
	e.calls.sets = append(e.calls.sets, c)
	return &expr.ColRef{Index: setMark + len(e.calls.sets) - 1, Typ: c.typ, Name: c.name}, nil
}

// indirection binds subscripts, slices and (f(x)).column.
func (e *env) indirection(x *ast.A_Indirection) (expr.Expr, error) {
	pos := location(x.Arg)
	rest := x.Indirection
	var base expr.Expr
	var err error
	if name := rest[0].GetString_(); name != nil {
		if base, err = e.fieldOf(x.Arg, name.Sval); err != nil {
			return nil, err
		}
		rest = rest[1:]
	} else if base, err = e.expr(x.Arg); err != nil {
		return nil, err
	}
	for len(rest) > 0 {
		n := 0
		for n < len(rest) && rest[n].GetAIndices() != nil {
			n++
		}
		if n == 0 {
			return nil, notComposite(rest[0].GetString_().GetSval(), base.Type(), pos)
		}
		if base, err = e.subscript(base, rest[:n], pos); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return base, nil
}

// fieldOf binds (x).name: of a row, or of what a set-returning function returns.
func (e *env) fieldOf(x *ast.Node, name string) (expr.Expr, error) {
	if call := x.GetFuncCall(); call != nil && isTableFunc(call) {
		field, err := e.fieldIndex(call, name)
		if err != nil {
			return nil, err
		}
		return e.setFunction(call, field)
	}
	r, err := e.row(x)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return e.field(r, name)
	}
	y, err := e.expr(x)
	if err != nil {
		return nil, err
	}
	return nil, notComposite(name, y.Type(), location(x))
}

// fieldIndex finds a column of a set-returning function's rows.
func (e *env) fieldIndex(call *ast.FuncCall, field string) (int, error) {
	probe := *e
	probe.calls = &collector{} // what is collected while looking is not kept
	probe.noSets = ""
	fn, args, err := probe.tableFunc(call)
	if err != nil {
		return 0, err
	}
	out := fn.Columns(typesOf(args))
	i := slices.IndexFunc(out, func(f types.Field) bool { return f.Name == field })
	if i < 0 {
		return 0, sqlerr.New(sqlerr.UndefinedColumn, `column "%s" not found in data type record`, field).At(int(call.Location))
	}
	return i, nil
}

// subscript binds a[i] and a[i][j], or a[i:j] where any of them is a slice.
func (e *env) subscript(base expr.Expr, idx []*ast.Node, pos int) (expr.Expr, error) {
	t := base.Type()
	if t.Elem == nil {
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", types.FormatType(t)).At(pos)
	}
	slice := slices.ContainsFunc(idx, func(n *ast.Node) bool { return n.GetAIndices().IsSlice })
	if slice && len(idx) > 1 {
		return nil, sqlerr.Unsupported("a slice of several dimensions").At(pos)
	}
	bound := func(n *ast.Node, missing expr.Expr) (expr.Expr, error) {
		if n == nil {
			return missing, nil
		}
		x, err := e.expr(n)
		if err != nil {
			return nil, err
		}
		y, err := e.b.coerce(x, types.Int4, assignment, location(n))
		if err != nil && sqlerr.Code(err) == sqlerr.DatatypeMismatch {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "array subscript must have type integer").At(location(n))
		}
		return y, err
	}
	args := []expr.Expr{base}
	for _, n := range idx {
		ind := n.GetAIndices()
		if !slice {
			u, err := bound(ind.Uidx, nil)
			if err != nil {
				return nil, err
			}
			args = append(args, u)
			continue
		}
		// A plain subscript among slices is the slice from 1 to it; a bound left out is NULL.
		lo, err := bound(ind.Lidx, &expr.Const{Typ: types.Int4})
		if err != nil {
			return nil, err
		}
		if !ind.IsSlice {
			lo = intConst(1, types.Int4)
		}
		hi, err := bound(ind.Uidx, &expr.Const{Typ: types.Int4})
		if err != nil {
			return nil, err
		}
		args = append(args, lo, hi)
	}
	if slice {
		return e.b.call(fnSlice, false, args, pos)
	}
	return e.b.call(fnSubscript, false, args, pos)
}

// unsetSets makes the plan that evaluates set-returning functions over node, and returns where each one's column is.
func unsetSets(node plan.Node, sets []setCall, lower func(expr.Expr) (expr.Expr, error)) (plan.Node, []int, error) {
	where := make([]int, len(sets))
	for rank, left := 0, len(sets); left > 0; rank++ {
		p := &plan.ProjectSet{Input: node}
		width := len(node.Schema())
		for i, s := range sets {
			if s.rank != rank {
				continue
			}
			args := make([]expr.Expr, len(s.args))
			for j, a := range s.args {
				x, err := lower(a)
				if err != nil {
					return nil, nil, err
				}
				args[j] = mapCols(x, func(c *expr.ColRef) expr.Expr {
					if c.Index >= setMark {
						return &expr.ColRef{Index: where[c.Index-setMark], Typ: c.Typ, Name: c.Name}
					}
					return c
				})
			}
			where[i] = width + len(p.Fns)
			p.Fns = append(p.Fns, s.fn)
			p.Args = append(p.Args, args)
			p.Names = append(p.Names, s.name)
			left--
		}
		if len(p.Fns) > 0 {
			node = p
		}
	}
	return node, where, nil
}
