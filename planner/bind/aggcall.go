package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// An aggCall is an aggregate over expressions of the FROM row.
type aggCall struct {
	fn       *expr.AggFunc
	name     string
	args     []expr.Expr
	typ      types.Type
	distinct bool
	filter   expr.Expr // nil: none
	order    []sortKey
	check    []expr.Expr // direct arguments of an ordered-set aggregate, the same in all rows of a group
	pos      int
}

// aggregate binds a call of an aggregate function and collects it.
func (e *env) aggregate(name string, x *ast.FuncCall) (expr.Expr, error) {
	in := *e
	in.inAgg, in.inWin = true, false
	c, err := e.aggCall(name, x, &in)
	if err != nil {
		return nil, err
	}
	return e.collect(c)
}

// collect gives an aggregate to the query it belongs to, and returns what stands for its value.
func (e *env) collect(c aggCall) (expr.Expr, error) {
	level, err := e.aggLevel(&c)
	if err != nil {
		return nil, err
	}
	calls := e.calls
	if level == 0 && e.inAgg {
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate function calls cannot be nested").At(c.pos)
	}
	if level > 0 {
		if calls, err = e.outerCalls(level, c.pos); err != nil {
			return nil, err
		}
	} else if e.calls == nil || e.noAggs {
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate functions are not allowed in %s", e.clause).At(c.pos)
	}
	// Equal calls are computed once.
	i := slices.IndexFunc(calls.aggs, c.equal)
	if i < 0 {
		i = len(calls.aggs)
		calls.aggs = append(calls.aggs, c)
	}
	if level > 0 {
		return &expr.OuterRef{Level: level, Index: aggMark + i, Typ: c.typ, Name: c.name}, nil
	}
	return &expr.ColRef{Index: aggMark + i, Typ: c.typ, Name: c.name}, nil
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
		k, err := in.typedKey(n)
		if err != nil {
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
	c.check = c.args[:len(direct)]
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
		c.check = slices.Clone(c.check)
		for i, x := range c.check {
			c.check[i] = f(x)
		}
	}
	c.args, c.order = slices.Clone(c.args), slices.Clone(c.order)
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
