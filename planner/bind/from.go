package bind

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// names is where names of tables resolve: the rows outside, and the WITH clauses.
type names struct {
	lat  *scope // what a LATERAL item sees; its depth is the depth of every item
	stop *scope // what any item sees: the rows of enclosing queries
	ctes *cte
}

// blind are the names for an item without LATERAL.
func (n names) blind() *scope { return blindTo(n.lat, n.stop) }

// fromList binds FROM a, b, …; nil for an empty list.
func (b *binder) fromList(items []*ast.Node, parent *scope, ctes *cte) (*from, error) {
	var acc *from
	for _, item := range items {
		if acc == nil {
			f, err := b.fromItem(item, names{parent, parent, ctes})
			if err != nil {
				return nil, err
			}
			acc = f
			continue
		}
		lat := &scope{from: acc, parent: parent}
		f, err := b.fromItem(item, names{lat, parent, ctes})
		if err != nil {
			return nil, err
		}
		if acc, err = b.cross(plan.Inner, acc, f, lat); err != nil {
			return nil, err
		}
	}
	return acc, nil
}

// cross puts right beside left. lat is the scope of left's row that right was bound in.
func (b *binder) cross(kind plan.JoinKind, left, right *from, lat *scope) (*from, error) {
	for _, t := range right.tables {
		if t.alias != "" && slices.ContainsFunc(left.tables, func(l *table) bool {
			return l.alias == t.alias && (l.schema == t.schema || l.schema == "" || t.schema == "")
		}) {
			return nil, sqlerr.New("42712", `table name "%s" specified more than once`, t.alias)
		}
	}
	if !lat.used {
		right.node = shiftOuter(right.node, 0, -1)
	}
	moved := right.shifted(left.width())
	return &from{
		node:   &plan.Join{Kind: kind, Left: left.node, Right: right.node, Lateral: lat.used},
		tables: slices.Concat(left.tables, moved.tables),
		cols:   slices.Concat(left.cols, moved.cols),

		covered: slices.Concat(left.covered, moved.covered),
	}, nil
}

func (b *binder) fromItem(n *ast.Node, in names) (*from, error) {
	switch x := n.Node.(type) {
	case *ast.Node_RangeVar:
		return b.rangeVar(x.RangeVar, in)
	case *ast.Node_RangeSubselect:
		s := x.RangeSubselect
		parent := in.lat
		if !s.Lateral {
			parent = in.blind()
		}
		r, err := b.selectStmt(s.Subquery.GetSelectStmt(), parent, in.ctes, false)
		if err != nil {
			return nil, err
		}
		return b.derived(r, s.Alias)
	case *ast.Node_RangeFunction:
		return b.rangeFunction(x.RangeFunction, in)
	case *ast.Node_JoinExpr:
		return b.join(x.JoinExpr, in)
	case *ast.Node_RangeTableSample:
		return nil, sqlerr.Unsupported("TABLESAMPLE").At(int(x.RangeTableSample.Location))
	case *ast.Node_RangeTableFunc:
		return nil, sqlerr.Unsupported("XMLTABLE").At(int(x.RangeTableFunc.Location))
	case *ast.Node_JsonTable:
		return nil, sqlerr.Unsupported("JSON_TABLE")
	}
	return nil, sqlerr.Unsupported("%T in FROM", n.Node)
}

// derived is a subquery's result as a FROM item.
func (b *binder) derived(r *result, alias *ast.Alias) (*from, error) {
	t := &table{alias: alias.GetAliasname()}
	for i, c := range r.cols {
		t.cols = append(t.cols, &column{name: c.name, typ: c.typ, index: i, table: t, origin: c.origin})
	}
	if err := t.rename(alias); err != nil {
		return nil, err
	}
	return &from{node: r.node, tables: []*table{t}, cols: t.cols}, nil
}

// rename applies the column names of an alias to the visible columns.
func (t *table) rename(alias *ast.Alias) error {
	if alias == nil {
		return nil
	}
	colnames := strs(alias.Colnames)
	var visible []*column
	for _, c := range t.cols {
		if !c.hidden && !c.sys {
			visible = append(visible, c)
		}
	}
	if len(colnames) > len(visible) {
		return sqlerr.New("42P10", `table "%s" has %d columns available but %d columns specified`, t.alias, len(visible), len(colnames))
	}
	for i, n := range colnames {
		visible[i].name = n
	}
	return nil
}

func (b *binder) rangeVar(n *ast.RangeVar, in names) (*from, error) {
	later := false
	if n.Schemaname == "" {
		for c := in.ctes; c != nil; c = c.outer {
			if c.name == n.Relname && c.later {
				later = true
			} else if c.name == n.Relname {
				return b.cteRef(c, n, in)
			}
		}
	}
	rel, err := b.relation(n)
	if later && sqlerr.Code(err) == sqlerr.UndefinedTable {
		return nil, sqlerr.From(err).WithDetail(`There is a WITH item named "%s", but it cannot be referenced from this part of the query.`, n.Relname).
			WithHint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
	}
	if err != nil {
		return nil, err
	}
	f, err := b.relationFrom(rel, n.Alias, int(n.Location))
	if err != nil {
		return nil, err
	}
	if n.Alias == nil {
		f.tables[0].schema = rel.Schema
	}
	return f, nil
}

// relationFrom is a relation, or what a view stands for, as a FROM item.
func (b *binder) relationFrom(rel *catalog.Relation, alias *ast.Alias, pos int) (*from, error) {
	t := &table{alias: rel.Name, rel: rel}
	if alias != nil {
		t.alias = alias.Aliasname
	}
	var node plan.Node
	switch rel.Kind {
	case catalog.View:
		n, err := b.expandView(rel)
		if err != nil {
			return nil, err
		}
		node = n
	case catalog.Index:
		return nil, sqlerr.New(sqlerr.WrongObjectType, `cannot open relation "%s"`, rel.Name).
			WithDetail("This operation is not supported for indexes.").At(pos)
	case catalog.Sink:
		return nil, sqlerr.New(sqlerr.WrongObjectType, `cannot open relation "%s"`, rel.Name).
			WithDetail("This operation is not supported for sinks.").At(pos)
	case catalog.Source:
		if !b.o.Streaming {
			return nil, sqlerr.Unsupported(`a query that reads source "%s" directly`, rel.Name).At(pos).
				WithHint("Create a materialized view over the source and query that.")
		}
		node = b.scan(rel, t.alias)
	case catalog.Table, catalog.MaterializedView, catalog.System:
		node = b.scan(rel, t.alias)
	default:
		return nil, sqlerr.Unsupported(`reading "%s"`, rel.Name).At(pos)
	}
	for i, c := range rel.Columns {
		t.cols = append(t.cols, &column{
			name: c.Name, typ: c.Type, index: i, hidden: c.Hidden, table: t,
			origin: plan.Origin{Rel: rel.ID, Col: i + 1},
		})
	}
	if rel.Kind != catalog.View {
		for _, s := range systemColumns {
			if !slices.ContainsFunc(rel.Columns, func(c catalog.Column) bool { return c.Name == s.name }) {
				t.cols = append(t.cols, &column{name: s.name, typ: s.typ, sys: true, table: t})
			}
		}
	}
	if err := t.rename(alias); err != nil {
		return nil, at(err, pos)
	}
	return &from{node: node, tables: []*table{t}, cols: t.cols}, nil
}

// scan reads all columns of a relation.
func (b *binder) scan(rel *catalog.Relation, alias string) *plan.Scan {
	cols := make([]int, len(rel.Columns))
	for i := range cols {
		cols[i] = i
	}
	return &plan.Scan{Rel: rel, Cols: cols, Alias: alias}
}

// relation resolves the name of a relation that may be read.
func (b *binder) relation(n *ast.RangeVar) (*catalog.Relation, error) {
	pos := int(n.Location)
	rel, err := b.o.resolve(n)
	if err != nil {
		return nil, err
	}
	if rel.Building {
		return nil, sqlerr.New(sqlerr.NotPrepared, `"%s" is still being created`, rel.Name).At(pos).
			WithHint("SHOW JOBS tells how far it is.")
	}
	if b.o.OnRelation != nil {
		b.o.OnRelation(rel)
	}
	return rel, nil
}

// resolve finds a relation by its possibly qualified name.
func (o Options) resolve(n *ast.RangeVar) (*catalog.Relation, error) {
	pos := int(n.Location)
	full := n.Relname
	var rel *catalog.Relation
	if n.Schemaname != "" {
		full = n.Schemaname + "." + n.Relname
		rel = o.Cat.Relation(n.Schemaname, n.Relname)
	} else {
		rel = o.Cat.Resolve(o.SearchPath, n.Relname)
	}
	if rel != nil {
		return rel, nil
	}
	err := sqlerr.New(sqlerr.UndefinedTable, `relation "%s" does not exist`, full).At(pos)
	var among []string
	for _, r := range o.Cat.Relations() {
		switch {
		case r.Kind == catalog.Index || r.Kind == catalog.Sink || r.Building:
		case n.Schemaname != "" && r.Schema == n.Schemaname,
			n.Schemaname == "" && slices.Contains(o.SearchPath, r.Schema):
			among = append(among, r.Name)
		case n.Schemaname == "" && r.Kind != catalog.System && r.Name == n.Relname:
			return nil, err.WithHint(`Perhaps you meant the relation "%s.%s".`, r.Schema, r.Name)
		}
	}
	if near := sqlerr.Nearest(n.Relname, among); near != "" {
		return nil, err.WithHint(`Perhaps you meant the relation "%s".`, near)
	}
	return nil, err
}

// expandView binds a view's text with the search path it was created under.
func (b *binder) expandView(rel *catalog.Relation) (plan.Node, error) {
	if slices.Contains(b.views, rel.ID) {
		return nil, sqlerr.New("42P17", `infinite recursion detected in view "%s"`, rel.Name)
	}
	n, err := parser.ParseQuery(rel.Definition)
	if err == nil {
		err = refuseClauses(n.Clauses)
	}
	if err != nil {
		return nil, fmt.Errorf(`view "%s": %w`, rel.Name, err)
	}
	vb := &binder{o: b.o, pos: map[expr.Expr]int{}, works: b.works, views: append(b.views[:len(b.views):len(b.views)], rel.ID)}
	vb.o.OnRelation = nil
	if len(rel.SearchPath) > 0 {
		vb.o.SearchPath = rel.SearchPath
	}
	r, err := vb.selectStmt(n.Node.GetSelectStmt(), nil, nil, false)
	if err != nil {
		e := *sqlerr.From(err)
		e.Pos = 0 // it is in the view's text
		e.Message = fmt.Sprintf(`view "%s": %s`, rel.Name, e.Message)
		return nil, &e
	}
	if len(r.cols) != len(rel.Columns) {
		return nil, sqlerr.New(sqlerr.NotPrepared, `view "%s" has %d columns but its query gives %d`, rel.Name, len(rel.Columns), len(r.cols))
	}
	return r.node, nil
}

// join binds a JOIN b ON …, USING (…) or NATURAL.
func (b *binder) join(n *ast.JoinExpr, in names) (*from, error) {
	left, err := b.fromItem(n.Larg, in)
	if err != nil {
		return nil, err
	}
	var kind plan.JoinKind
	switch n.Jointype {
	case ast.JoinType_JOIN_INNER:
		kind = plan.Inner
	case ast.JoinType_JOIN_LEFT:
		kind = plan.Left
	case ast.JoinType_JOIN_RIGHT:
		kind = plan.Right
	case ast.JoinType_JOIN_FULL:
		kind = plan.Full
	default:
		return nil, sqlerr.Unsupported("join type %v", n.Jointype)
	}
	lat := &scope{from: left, parent: in.lat, outer: kind == plan.Right || kind == plan.Full}
	right, err := b.fromItem(n.Rarg, names{lat, in.stop, in.ctes})
	if err != nil {
		return nil, err
	}
	out, err := b.cross(kind, left, right, lat)
	if err != nil {
		return nil, err
	}
	j := out.node.(*plan.Join)
	switch {
	case n.Quals != nil:
		e := &env{b: b, scope: &scope{from: out, parent: in.blind()}, ctes: in.ctes, clause: "JOIN conditions"}
		if j.On, err = e.condition(n.Quals, "JOIN/ON"); err != nil {
			return nil, err
		}
		if c, ok := j.On.(*expr.Const); ok && !c.Val.IsNull() && c.Val.Bool() {
			j.On = nil
		}
	case n.IsNatural || len(n.UsingClause) > 0:
		using := strs(n.UsingClause)
		if n.IsNatural {
			using = commonNames(left, right)
		}
		if out, err = b.using(j, left, right.shifted(left.width()), out, using, n.JoinUsingAlias); err != nil {
			return nil, err
		}
	}
	if n.Alias != nil {
		t := &table{alias: n.Alias.Aliasname}
		for _, c := range out.cols {
			if !c.sys {
				m := *c
				m.table = t
				t.cols = append(t.cols, &m)
			}
		}
		if err := t.rename(n.Alias); err != nil {
			return nil, err
		}
		covered := out.covered
		for _, o := range out.tables {
			covered = append(covered, o.alias)
			t.work = t.work || o.work
		}
		out = &from{node: out.node, tables: []*table{t}, cols: t.cols, covered: covered}
	}
	return out, nil
}

// commonNames are the columns of NATURAL JOIN, in the left side's order.
func commonNames(left, right *from) []string {
	var out []string
	for _, l := range left.cols {
		if l.hidden || l.sys || slices.Contains(out, l.name) {
			continue
		}
		if slices.ContainsFunc(right.cols, func(r *column) bool { return r.name == l.name && !r.hidden && !r.sys }) {
			out = append(out, l.name)
		}
	}
	return out
}

// using merges the named columns of both sides of join j: they come first, once.
func (b *binder) using(j *plan.Join, left, right, out *from, cols []string, alias *ast.Alias) (*from, error) {
	pick := func(f *from, name, side string) (*column, error) {
		var hit *column
		for _, c := range f.cols {
			if c.name != name || c.hidden || c.sys {
				continue
			}
			if hit != nil {
				return nil, sqlerr.New(sqlerr.AmbiguousColumn, `common column name "%s" appears more than once in %s table`, name, side)
			}
			hit = c
		}
		if hit == nil {
			return nil, sqlerr.New(sqlerr.UndefinedColumn, `column "%s" specified in USING clause does not exist in %s table`, name, side)
		}
		return hit, nil
	}
	width := out.width()
	var conds, extra []expr.Expr
	var extraNames []string
	var merged []*column
	drop := map[*column]bool{}
	for i, name := range cols {
		if slices.Contains(cols[:i], name) {
			return nil, sqlerr.New(sqlerr.DuplicateColumn, `column name "%s" appears more than once in USING clause`, name)
		}
		l, err := pick(left, name, "left")
		if err != nil {
			return nil, err
		}
		r, err := pick(right, name, "right")
		if err != nil {
			return nil, err
		}
		drop[l], drop[r] = true, true
		le, re := b.ref(l, 0, -1), b.ref(r, 0, -1)
		eq, err := b.operator("=", le, re)
		if err != nil {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "JOIN/USING types %s and %s cannot be matched", types.FormatType(l.typ), types.FormatType(r.typ))
		}
		conds = append(conds, eq)
		common, err := expr.CommonType([]types.Type{l.typ, r.typ})
		if err != nil {
			return nil, err
		}
		m := *l
		switch {
		case l.typ.Equal(common) && (j.Kind == plan.Inner || j.Kind == plan.Left):
		case r.typ.Equal(common) && (j.Kind == plan.Inner || j.Kind == plan.Right):
			m = *r
			m.name = name
		default:
			if le, err = b.coerce(le, common, implicit, -1); err != nil {
				return nil, err
			}
			if re, err = b.coerce(re, common, implicit, -1); err != nil {
				return nil, err
			}
			m = column{name: name, typ: common, index: width + len(extra)}
			switch j.Kind {
			case plan.Full:
				extra = append(extra, &expr.Coalesce{Args: []expr.Expr{le, re}, Typ: common})
			case plan.Right:
				extra = append(extra, re)
			default:
				extra = append(extra, le)
			}
			extraNames = append(extraNames, name)
		}
		merged = append(merged, &m)
	}
	j.On = expr.And(conds...)
	res := &from{node: out.node, tables: out.tables, cols: slices.Clone(merged), covered: out.covered}
	for _, side := range []*from{left, right} {
		for _, c := range side.cols {
			if !drop[c] {
				res.cols = append(res.cols, c)
			}
		}
	}
	if len(extra) > 0 {
		p := identity(out.node)
		p.Exprs = append(p.Exprs, extra...)
		p.Names = append(p.Names, extraNames...)
		res.node = p
	}
	if alias != nil {
		t := &table{alias: alias.Aliasname}
		for _, c := range merged {
			m := *c
			m.table = t
			t.cols = append(t.cols, &m)
		}
		res.tables = append(res.tables, t)
	}
	return res, nil
}

// identity is a projection that changes nothing, to be added to.
func identity(n plan.Node) *plan.Project {
	p := &plan.Project{Input: n}
	for i, f := range n.Schema() {
		p.Exprs = append(p.Exprs, &expr.ColRef{Index: i, Typ: f.Type, Name: f.Name})
		p.Names = append(p.Names, f.Name)
	}
	return p
}

// rangeFunction binds FROM f(args) [WITH ORDINALITY] [AS t(a, b)]; it sees the items to its left.
func (b *binder) rangeFunction(n *ast.RangeFunction, in names) (*from, error) {
	if isWindowing(n) {
		return b.windowing(n, in)
	}
	fn := n.Functions[0].GetList().GetItems()[0]
	e := &env{b: b, scope: &scope{parent: in.lat}, ctes: in.ctes, clause: "functions in FROM"}
	t := &table{alias: n.Alias.GetAliasname()}
	var node plan.Node
	switch calls := tableCalls(n); {
	case calls != nil:
		if t.alias == "" {
			t.alias = outputName(calls[0])
		}
		scan, err := e.funcScan(calls, t.alias, n.Ordinality)
		if err != nil {
			return nil, err
		}
		node = scan
	default:
		x, err := e.expr(fn)
		if err != nil {
			return nil, err
		}
		if x, err = b.known(x); err != nil {
			return nil, err
		}
		if t.alias == "" {
			t.alias = outputName(fn)
		}
		p := &plan.Project{Input: oneRow(), Exprs: []expr.Expr{x}, Names: []string{t.alias}}
		if n.Ordinality {
			p.Exprs = append(p.Exprs, intConst(1, types.Int8))
			p.Names = append(p.Names, "ordinality")
		}
		node = p
	}
	defs := n.Coldeflist
	for _, f := range n.Functions {
		if items := f.GetList().GetItems(); len(defs) == 0 && len(items) > 1 {
			defs = items[1].GetList().GetItems()
		}
	}
	if len(defs) > 0 { // no function of ours returns rows of any columns
		return nil, sqlerr.New(sqlerr.Syntax, `a column definition list is only allowed for functions returning "record"`).At(int(defs[0].GetColumnDef().GetLocation()))
	}
	for i, f := range node.Schema() {
		t.cols = append(t.cols, &column{name: f.Name, typ: f.Type, index: i, table: t})
	}
	if err := t.rename(n.Alias); err != nil {
		return nil, err
	}
	return &from{node: node, tables: []*table{t}, cols: t.cols}, nil
}

// tableCalls are the functions of a FROM item: one that returns a set, those of ROWS
// FROM, or those that unnest(a, b) stands for; nil if it is one value.
func tableCalls(n *ast.RangeFunction) []*ast.Node {
	var out []*ast.Node
	for _, f := range n.Functions {
		item := f.GetList().GetItems()[0]
		call := item.GetFuncCall()
		if len(n.Functions) == 1 && (call == nil || !isTableFunc(call)) {
			return nil
		}
		if call != nil && len(call.Args) > 1 && funcName(call.Funcname) == "unnest" {
			for _, a := range call.Args {
				out = append(out, &ast.Node{Node: &ast.Node_FuncCall{FuncCall: &ast.FuncCall{Funcname: call.Funcname, Args: []*ast.Node{a}, Location: call.Location}}})
			}
			continue
		}
		out = append(out, item)
	}
	return out
}

// funcScan calls set-returning functions side by side. A single column has the item's name.
func (e *env) funcScan(calls []*ast.Node, alias string, ordinality bool) (*plan.FuncScan, error) {
	var fns []*expr.TableFunc
	var args [][]expr.Expr
	var out types.Schema
	for _, c := range calls {
		var fn *expr.TableFunc
		var xs []expr.Expr
		var err error
		if call := c.GetFuncCall(); call != nil && isTableFunc(call) {
			fn, xs, err = e.tableFunc(call)
		} else if xs, err = e.exprs([]*ast.Node{c}); err == nil {
			if xs[0], err = e.b.known(xs[0]); err == nil {
				fn = oneValue(outputName(c), xs[0].Type())
			}
		}
		if err != nil {
			return nil, err
		}
		cols := slices.Clone(fn.Columns(typesOf(xs)))
		if len(cols) == 1 {
			cols[0].Name = alias
			if len(calls) > 1 {
				cols[0].Name = fn.Name
			}
		}
		fns, args, out = append(fns, fn), append(args, xs), append(out, cols...)
	}
	if ordinality {
		out = append(out, types.Field{Name: "ordinality", Type: types.Int8})
	}
	return &plan.FuncScan{Fn: sideBySide(fns, args), Args: slices.Concat(args...), Out: out, Ordinality: ordinality}, nil
}

// oneRow is the row of a SELECT without FROM.
func oneRow() plan.Node { return &plan.Values{Rows: [][]expr.Expr{{}}} }
