package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A GROUP BY with several grouping sets groups the rows of an Expand by copies of
// the grouping expressions, NULL where a set does not have one, and by the number of
// the set. A set of nothing has a row even if there are no rows to group, so it is an
// aggregation of its own, beside the others. GROUPING() is a matter of the set's number.

// maxSets is how many grouping sets PostgreSQL allows, and maxCube how many things in a CUBE.
const (
	maxSets = 4096
	maxCube = 12
)

// A groupingCall is GROUPING(args).
type groupingCall struct {
	args []expr.Expr
	pos  []int
}

// groupBy binds GROUP BY: all expressions to group by, in q.groups, and the sets of
// them, in q.sets; nil: one set of all.
func (q *selection) groupBy(list []*ast.Node, distinct bool) error {
	sets := [][]int{{}}
	for _, n := range list {
		more, err := q.groupingSets(n)
		if err != nil {
			return err
		}
		if len(sets)*len(more) > maxSets {
			return sqlerr.New("54001", "too many grouping sets present (maximum %d)", maxSets).At(location(n))
		}
		var product [][]int
		for _, s := range sets {
			for _, m := range more {
				product = append(product, appendSet(s, m))
			}
		}
		sets = product
	}
	if distinct {
		seen := map[string]bool{}
		sets = slices.DeleteFunc(sets, func(s []int) bool {
			key := make([]byte, 0, 2*len(s))
			for _, i := range slices.Sorted(slices.Values(s)) {
				key = append(key, byte(i>>8), byte(i))
			}
			again := seen[string(key)]
			seen[string(key)] = true
			return again
		})
	}
	if len(sets) > 1 {
		q.sets = sets
	}
	return nil
}

// appendSet is the union of two sets.
func appendSet(s, more []int) []int {
	out := slices.Clone(s)
	for _, i := range more {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// groupingSets are the sets that one item of GROUP BY stands for.
func (q *selection) groupingSets(n *ast.Node) ([][]int, error) {
	gs := n.GetGroupingSet()
	if gs == nil {
		s, err := q.simpleSet(n)
		return [][]int{s}, err
	}
	switch gs.Kind {
	case ast.GroupingSetKind_GROUPING_SET_EMPTY:
		return [][]int{{}}, nil
	case ast.GroupingSetKind_GROUPING_SET_SETS:
		var out [][]int
		for _, c := range gs.Content {
			more, err := q.groupingSets(c)
			if err != nil {
				return nil, err
			}
			if out = append(out, more...); len(out) > maxSets {
				return nil, sqlerr.New("54001", "too many grouping sets present (maximum %d)", maxSets).At(int(gs.Location))
			}
		}
		return out, nil
	}
	parts := make([][]int, len(gs.Content))
	for i, c := range gs.Content {
		var err error
		if parts[i], err = q.simpleSet(c); err != nil {
			return nil, err
		}
	}
	var out [][]int
	if gs.Kind == ast.GroupingSetKind_GROUPING_SET_ROLLUP {
		for n := len(parts); n >= 0; n-- {
			var s []int
			for _, p := range parts[:n] {
				s = appendSet(s, p)
			}
			out = append(out, s)
		}
		return out, nil
	}
	if len(parts) > maxCube {
		return nil, sqlerr.New("54011", "CUBE is limited to %d elements", maxCube).At(int(gs.Location))
	}
	for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
		var s []int
		for i, p := range parts {
			if mask>>(len(parts)-1-i)&1 != 0 {
				s = appendSet(s, p)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// simpleSet is an expression or a list (a, b) of them.
func (q *selection) simpleSet(n *ast.Node) ([]int, error) {
	items := []*ast.Node{n}
	if row := n.GetRowExpr(); row != nil && row.RowFormat == ast.CoercionForm_COERCE_IMPLICIT_CAST {
		items = row.Args
	}
	var out []int
	for _, item := range items {
		if row := item.GetRowExpr(); row != nil && row.RowFormat == ast.CoercionForm_COERCE_IMPLICIT_CAST && item != n {
			more, err := q.simpleSet(item)
			if err != nil {
				return nil, err
			}
			out = appendSet(out, more)
			continue
		}
		i, err := q.groupItem(item)
		if err != nil {
			return nil, err
		}
		out = appendSet(out, []int{i})
	}
	return out, nil
}

// grouping binds GROUPING(…); what it is worth is known once GROUP BY is.
func (e *env) grouping(x *ast.GroupingFunc) (expr.Expr, error) {
	pos := int(x.Location)
	switch {
	case e.calls == nil || e.noAggs:
		return nil, sqlerr.New(sqlerr.GroupingError, "grouping operations are not allowed in %s", e.clause).At(pos)
	case e.inAgg:
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate function calls cannot be nested").At(pos)
	case len(x.Args) > 31:
		return nil, sqlerr.New("54023", "GROUPING must have fewer than 32 arguments").At(pos)
	}
	in := *e
	in.inAgg = true // neither aggregates nor window functions stand in it
	args, err := in.exprs(x.Args)
	if err != nil {
		return nil, err
	}
	c := groupingCall{args: args}
	for _, a := range x.Args {
		c.pos = append(c.pos, location(a))
	}
	for i, o := range e.calls.groupings {
		if slices.EqualFunc(o.args, args, expr.Equal) {
			return &expr.ColRef{Index: groupMark + i, Typ: types.Int4, Name: "grouping"}, nil
		}
	}
	e.calls.groupings = append(e.calls.groupings, c)
	return &expr.ColRef{Index: groupMark + len(e.calls.groupings) - 1, Typ: types.Int4, Name: "grouping"}, nil
}

// groupingValue is what a GROUPING call is over the aggregated row.
func (g *grouping) groupingValue(c groupingCall) (expr.Expr, error) {
	at := make([]int, len(c.args))
	for i, a := range c.args {
		if at[i] = slices.IndexFunc(g.keys[:g.grouped], func(k expr.Expr) bool { return expr.Equal(k, a) }); at[i] < 0 {
			return nil, sqlerr.New(sqlerr.GroupingError, "arguments to GROUPING must be grouping expressions of the associated query level").At(c.pos[i])
		}
	}
	bits := func(set []int) expr.Expr {
		n := int64(0)
		for _, k := range at {
			n <<= 1
			if !slices.Contains(set, k) {
				n |= 1
			}
		}
		return intConst(n, types.Int4)
	}
	if g.q.sets == nil {
		return intConst(0, types.Int4), nil
	}
	out := &expr.Case{Typ: types.Int4}
	set := &expr.ColRef{Index: g.grouped, Typ: types.Int8, Name: setColumn}
	last := len(g.q.sets) - 1
	for i, s := range g.q.sets[:last] {
		eq, err := g.q.b.operator("=", set, intConst(int64(i), types.Int8))
		if err != nil {
			return nil, err
		}
		out.Whens = append(out.Whens, expr.When{Cond: eq, Then: bits(s)})
	}
	out.Else = bits(g.q.sets[last])
	return out, nil
}

// setColumn names the number of the grouping set, which is a grouping column behind the others.
const setColumn = "$set"

// aggregateSets is aggregate for several grouping sets.
func (g *grouping) aggregateSets(node plan.Node) plan.Node {
	// Grouping expressions become columns behind the input's.
	pre := identity(node)
	width := len(pre.Exprs)
	x := &plan.Expand{Sets: [][]int{}}
	for _, k := range g.keys[:g.grouped] {
		c, ok := k.(*expr.ColRef)
		i := 0
		if ok {
			i = c.Index
		} else {
			i = len(pre.Exprs)
			pre.Exprs, pre.Names = append(pre.Exprs, k), append(pre.Names, "$expr")
		}
		x.Cols, x.Names = append(x.Cols, i), append(x.Names, shortName(k))
	}
	x.Names = append(x.Names, setColumn)
	input := node
	if len(pre.Exprs) > width {
		input = pre
	}
	var empty []int // the numbers of the sets of nothing
	var numbers []int64
	for i, s := range g.q.sets {
		if len(s) == 0 {
			empty = append(empty, i)
			continue
		}
		x.Sets, numbers = append(x.Sets, s), append(numbers, int64(i))
	}
	var out types.Schema
	var parts []plan.Node
	if len(x.Sets) > 0 {
		x.Input = input
		first := len(input.Schema())
		keys := make([]expr.Expr, len(g.keys))
		for i, k := range g.keys {
			if keys[i] = k; i <= g.grouped {
				keys[i] = &expr.ColRef{Index: first + i, Typ: k.Type(), Name: nameOf(k)}
			}
		}
		a := g.build(x, keys)
		out = a.Schema()
		parts = append(parts, g.numbered(a, numbers))
	}
	for _, i := range empty {
		a := g.build(input, nil)
		p := &plan.Project{Input: a}
		for j, k := range g.keys {
			var e expr.Expr = &expr.Const{Typ: k.Type()}
			if j == g.grouped {
				e = intConst(int64(i), types.Int8)
			}
			p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, shortName(k))
		}
		for j, f := range a.Schema() {
			p.Exprs, p.Names = append(p.Exprs, &expr.ColRef{Index: j, Typ: f.Type, Name: f.Name}), append(p.Names, f.Name)
		}
		if out == nil {
			out = p.Schema()
		}
		parts = append(parts, p)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &plan.SetOp{Op: plan.Union, All: true, Ins: parts, Out: out}
}

// numbered gives the sets, which Expand counts without the empty ones, their own numbers.
func (g *grouping) numbered(a *plan.Agg, numbers []int64) plan.Node {
	same := true
	for i, n := range numbers {
		same = same && n == int64(i)
	}
	if same {
		return a
	}
	p := identity(a)
	set := p.Exprs[g.grouped]
	c := &expr.Case{Typ: types.Int8}
	eq, _, err := expr.Resolve("=", true, []types.Type{types.Int8, types.Int8})
	if err != nil {
		panic(err) // bigint has an equality
	}
	for i, n := range numbers {
		if n != int64(i) {
			c.Whens = append(c.Whens, expr.When{
				Cond: &expr.Call{Fn: eq, Args: []expr.Expr{set, intConst(int64(i), types.Int8)}, Typ: types.Bool},
				Then: intConst(n, types.Int8)})
		}
	}
	c.Else = set
	p.Exprs[g.grouped] = c
	return p
}
