package bind

import (
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// hypothetical binds rank(v, …) WITHIN GROUP (ORDER BY k, …) and its like: the rank
// that a row of these values would have among the rows, which is a matter of how many
// of them come before it.
func (e *env) hypothetical(name string, x *ast.FuncCall) (expr.Expr, error) {
	pos := int(x.Location)
	in := *e
	in.inAgg, in.inWin = true, false
	direct, err := in.exprs(x.Args)
	if err != nil {
		return nil, err
	}
	keys := make([]sortKey, len(x.AggOrder))
	for i, n := range x.AggOrder {
		if keys[i], err = in.sortKey(n); err != nil {
			return nil, err
		}
	}
	if len(direct) != len(keys) {
		var all []types.Type
		for _, k := range keys {
			all = append(all, k.x.Type())
		}
		return nil, sqlerr.New(sqlerr.UndefinedFunction, "function %s(%s) does not exist", name, typeList(append(typesOf(direct), all...))).At(pos).
			WithHint("To use the hypothetical-set aggregate %s, the number of hypothetical direct arguments (here %d) must match the number of ordering columns (here %d).",
				name, len(direct), len(keys))
	}
	c := aggCall{name: name, pos: pos}
	if err := e.aggFilter(&c, x); err != nil {
		return nil, err
	}
	// From the last key to the first: a row comes before if its key does, or is equal and the rest does.
	var before, equal expr.Expr = boolConst(false), boolConst(true)
	for i := len(keys) - 1; i >= 0; i-- {
		pair := []expr.Expr{keys[i].x, direct[i]}
		nodes := []*ast.Node{x.AggOrder[i].GetSortBy().Node, x.Args[i]}
		if _, err := e.b.unify(pair, nodes, "WITHIN GROUP"); err != nil {
			return nil, err
		}
		if err := sortable(pair[0].Type(), location(nodes[0])); err != nil {
			return nil, err
		}
		less, err := e.b.sortsBefore(pair[0], pair[1], keys[i], pos)
		if err != nil {
			return nil, err
		}
		d, err := e.b.distinctFrom(pair[0], pair[1], pos)
		if err != nil {
			return nil, err
		}
		before = or([]expr.Expr{less, expr.And(not(d), before)})
		equal = expr.And(not(d), equal)
		keys[i].x, direct[i] = pair[0], pair[1]
	}
	c.check = direct
	count := func(what string, cond expr.Expr, args ...expr.Expr) (expr.Expr, error) {
		fn, _, err := expr.ResolveAgg(what, typesOf(args), len(args) == 0)
		if err != nil {
			return nil, err
		}
		one := c
		one.fn, one.typ, one.args, one.distinct, one.filter = fn, fn.Ret, args, what == "count" && len(args) > 0, expr.And(cond, c.filter)
		return e.collect(one)
	}
	add := func(l, r expr.Expr) (expr.Expr, error) { return e.b.call("+", true, []expr.Expr{l, r}, pos) }
	one := intConst(1, types.Int8)
	switch name {
	case "rank":
		n, err := count("count", before)
		if err != nil {
			return nil, err
		}
		return add(n, one)
	case "dense_rank":
		if len(keys) != 1 {
			return nil, sqlerr.Unsupported("dense_rank with several values WITHIN GROUP").At(pos)
		}
		n, err := count("count", before, keys[0].x)
		if err != nil {
			return nil, err
		}
		null, err := count("bool_or", before, &expr.IsNull{Arg: keys[0].x}) // not counted among the values
		if err != nil {
			return nil, err
		}
		extra := &expr.Case{Whens: []expr.When{{Cond: null, Then: intConst(2, types.Int8)}}, Else: one, Typ: types.Int8}
		return add(n, extra)
	}
	cond, extra := before, int64(0)
	if name == "cume_dist" {
		cond, extra = or([]expr.Expr{before, equal}), 1
	}
	part, err := count("count", cond)
	if err != nil {
		return nil, err
	}
	all, err := count("count", nil)
	if err != nil {
		return nil, err
	}
	var ratio [2]expr.Expr
	for i, n := range []expr.Expr{part, all} {
		if n, err = add(n, intConst(extra, types.Int8)); err != nil {
			return nil, err
		}
		if ratio[i], err = e.b.coerce(n, types.Float8, implicit, pos); err != nil {
			return nil, err
		}
	}
	div, err := e.b.call("/", true, ratio[:], pos)
	if err != nil || extra > 0 {
		return div, err
	}
	none, err := e.b.call("=", true, []expr.Expr{all, intConst(0, types.Int8)}, pos)
	if err != nil {
		return nil, err
	}
	zero := &expr.Const{Val: types.NewFloat(0), Typ: types.Float8}
	return &expr.Case{Whens: []expr.When{{Cond: none, Then: zero}}, Else: div, Typ: types.Float8}, nil
}

// sortsBefore is true where x comes before y in the order of k.
func (b *binder) sortsBefore(x, y expr.Expr, k sortKey, pos int) (expr.Expr, error) {
	op := "<"
	if k.desc {
		op = ">"
	}
	less, err := b.call(op, true, []expr.Expr{x, y}, pos)
	if err != nil {
		return nil, err
	}
	first, last := y, x // NULLs come last
	if k.nullsFirst {
		first, last = x, y
	}
	return or([]expr.Expr{&expr.Coalesce{Args: []expr.Expr{less, boolConst(false)}, Typ: types.Bool},
		expr.And(&expr.IsNull{Arg: first}, &expr.IsNull{Arg: last, Negate: true})}), nil
}
