package bind

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// target resolves the table that a statement changes.
func (b *binder) target(n *ast.RangeVar, verb string) (*catalog.Relation, error) {
	pos := int(n.Location)
	rel, err := b.relation(n)
	if err != nil {
		return nil, err
	}
	var what string
	switch rel.Kind {
	case catalog.Table:
		if rel.AppendOnly && verb != "insert into" {
			return nil, sqlerr.New(sqlerr.WrongObjectType, `cannot %s table "%s"`, verb, rel.Name).At(pos).
				WithDetail("The table is append only.")
		}
		return rel, nil
	case catalog.System:
		return nil, sqlerr.New("42501", `permission denied: "%s" is a system catalog`, rel.Name).At(pos)
	case catalog.View:
		return nil, sqlerr.New(sqlerr.NotPrepared, `cannot %s view "%s"`, verb, rel.Name).At(pos).
			WithDetail("Views are not automatically updatable.")
	case catalog.MaterializedView:
		what = "materialized view"
	case catalog.Index:
		return nil, sqlerr.New(sqlerr.WrongObjectType, `cannot open relation "%s"`, rel.Name).At(pos).
			WithDetail("This operation is not supported for indexes.")
	case catalog.Source:
		what = "source"
	default:
		what = "sink"
	}
	return nil, sqlerr.New(sqlerr.WrongObjectType, `cannot change %s "%s"`, what, rel.Name).At(pos)
}

// tableFrom is a table as the only FROM item; hidden columns can be named.
func tableFrom(rel *catalog.Relation, alias string, shift int) *from {
	t := &table{alias: rel.Name, schema: rel.Schema, rel: rel}
	if alias != "" {
		t.alias, t.schema = alias, ""
	}
	for i, c := range rel.Columns {
		t.cols = append(t.cols, &column{name: c.Name, typ: c.Type, index: i + shift, hidden: c.Hidden, table: t,
			origin: plan.Origin{Rel: rel.ID, Col: i + 1}})
	}
	for _, s := range systemColumns {
		if !slices.ContainsFunc(rel.Columns, func(c catalog.Column) bool { return c.Name == s.name }) {
			t.cols = append(t.cols, &column{name: s.name, typ: s.typ, sys: true, table: t})
		}
	}
	return &from{tables: []*table{t}, cols: t.cols}
}

// findColumn finds the column of a table that an INSERT or UPDATE names.
func findColumn(rel *catalog.Relation, name string, pos int) (int, error) {
	i := slices.IndexFunc(rel.Columns, func(c catalog.Column) bool { return c.Name == name && !c.Hidden })
	if i >= 0 {
		return i, nil
	}
	err := sqlerr.New(sqlerr.UndefinedColumn, `column "%s" of relation "%s" does not exist`, name, rel.Name).At(pos)
	var all []string
	for _, c := range rel.Columns {
		if !c.Hidden {
			all = append(all, c.Name)
		}
	}
	if near := sqlerr.Nearest(name, all); near != "" {
		err = err.WithHint(`Perhaps you meant to reference the column "%s.%s".`, rel.Name, near)
	}
	return 0, err
}

// assign coerces a value to the type of the column it is stored in.
func (b *binder) assign(x expr.Expr, c catalog.Column, pos int) (expr.Expr, error) {
	y, err := b.coerce(x, c.Type, assignment, pos)
	if err != nil && sqlerr.Code(err) == sqlerr.DatatypeMismatch {
		return nil, notAssignable(c, x.Type(), pos)
	}
	return y, err
}

func notAssignable(c catalog.Column, have types.Type, pos int) error {
	return sqlerr.New(sqlerr.DatatypeMismatch, `column "%s" is of type %s but expression is of type %s`, c.Name,
		types.FormatType(c.Type), types.FormatType(have)).At(pos).
		WithHint("You will need to rewrite or cast the expression.")
}

func notGenerated(c catalog.Column, pos int) error {
	return sqlerr.New("428C9", `cannot insert a non-DEFAULT value into column "%s"`, c.Name).At(pos).
		WithDetail(`Column "%s" is a generated column.`, c.Name)
}

// defaultOf is a column's default, NULL without one. A generated column's is NULL
// until generate puts its expression there.
func (b *binder) defaultOf(rel *catalog.Relation, i int) (expr.Expr, error) {
	c := rel.Columns[i]
	if c.Default == "" {
		return &expr.Const{Typ: c.Type}, nil
	}
	return scalarAs(c.Default, nil, c, b.o)
}

// fullRow projects node, whose columns are the given ones of the table, to all of
// the table's columns: the others have their defaults.
func (b *binder) fullRow(rel *catalog.Relation, node plan.Node, cols []int) (*plan.Project, error) {
	p := &plan.Project{Input: node}
	for i, c := range rel.Columns {
		var x expr.Expr = &expr.ColRef{Index: slices.Index(cols, i), Typ: c.Type, Name: c.Name}
		if !slices.Contains(cols, i) {
			var err error
			if x, err = b.defaultOf(rel, i); err != nil {
				return nil, err
			}
		}
		p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, c.Name)
	}
	return p, nil
}

// generate puts the expressions of generated columns over a node whose first
// columns are the table's; others pass.
func (b *binder) generate(rel *catalog.Relation, node plan.Node, shift int) (plan.Node, error) {
	if !slices.ContainsFunc(rel.Columns, func(c catalog.Column) bool { return c.Generated != "" }) {
		return node, nil
	}
	p := identity(node)
	for i, c := range rel.Columns {
		if c.Generated == "" {
			continue
		}
		x, err := scalarAs(c.Generated, rel, c, b.o)
		if err != nil {
			return nil, err
		}
		p.Exprs[shift+i] = shiftCols(x, shift)
	}
	return p, nil
}

// checks are a table's CHECK constraints over its row.
func (b *binder) checks(rel *catalog.Relation) ([]expr.Expr, error) {
	var out []expr.Expr
	for _, c := range rel.Checks {
		x, err := scalarOf(c.Expr, rel, b.o, "check constraints")
		if err != nil {
			return nil, err
		}
		if x, err = b.coerce(x, types.Bool, assignment, -1); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func (b *binder) insert(s *ast.InsertStmt) (*plan.Insert, error) {
	ctes, err := b.with(s.WithClause, nil, nil)
	if err != nil {
		return nil, err
	}
	rel, err := b.target(s.Relation, "insert into")
	if err != nil {
		return nil, err
	}
	if s.Override == ast.OverridingKind_OVERRIDING_SYSTEM_VALUE {
		return nil, sqlerr.Unsupported("OVERRIDING SYSTEM VALUE")
	}
	// The columns given, in the order of the values.
	var cols []int
	var colPos []int
	for _, n := range s.Cols {
		rt := n.GetResTarget()
		pos := int(rt.Location)
		if len(rt.Indirection) > 0 {
			return nil, sqlerr.Unsupported("inserting into a part of a column").At(pos)
		}
		i, err := findColumn(rel, rt.Name, pos)
		if err != nil {
			return nil, err
		}
		if slices.Contains(cols, i) {
			return nil, sqlerr.New(sqlerr.DuplicateColumn, `column "%s" specified more than once`, rt.Name).At(pos)
		}
		cols, colPos = append(cols, i), append(colPos, pos)
	}
	if s.Cols == nil {
		for i, c := range rel.Columns {
			if !c.Hidden {
				cols = append(cols, i)
			}
		}
	}
	ins := &plan.Insert{Table: rel, Conflict: rel.Conflict}
	sel := s.SelectStmt.GetSelectStmt()
	var node plan.Node
	switch {
	case sel == nil: // DEFAULT VALUES
		node, cols = oneRow(), nil
	case len(sel.ValuesLists) > 0 && !(len(sel.ValuesLists) == 1 && returnsSet(sel.ValuesLists[0])) && len(sel.SortClause) == 0 && sel.LimitCount == nil && sel.LimitOffset == nil && sel.WithClause == nil:
		node, cols, err = b.insertValues(rel, sel.ValuesLists, cols, colPos, ctes)
	case len(sel.ValuesLists) == 1 && returnsSet(sel.ValuesLists[0]): // PostgreSQL takes one row of VALUES for a SELECT
		one := &ast.SelectStmt{Op: ast.SetOperation_SETOP_NONE}
		for _, item := range sel.ValuesLists[0].GetList().GetItems() {
			one.TargetList = append(one.TargetList, &ast.Node{Node: &ast.Node_ResTarget{ResTarget: &ast.ResTarget{Val: item, Location: int32(location(item))}}})
		}
		node, cols, err = b.insertQuery(rel, one, cols, colPos, ctes)
	default:
		node, cols, err = b.insertQuery(rel, sel, cols, colPos, ctes)
	}
	if err != nil {
		return nil, err
	}
	p, err := b.fullRow(rel, node, cols)
	if err != nil {
		return nil, err
	}
	if ins.Source, err = b.generate(rel, p, 0); err != nil {
		return nil, err
	}
	if s.OnConflictClause != nil {
		if err := b.onConflict(ins, s.Relation, s.OnConflictClause); err != nil {
			return nil, err
		}
	}
	if ins.Checks, err = b.checks(rel); err != nil {
		return nil, err
	}
	ins.Returning, err = b.returning(rel, s.Relation.Alias.GetAliasname(), s.ReturningList, nil, nil)
	return ins, err
}

// returnsSet reports whether an item of a row of VALUES is a call of a set-returning function.
func returnsSet(row *ast.Node) bool {
	return slices.ContainsFunc(row.GetList().GetItems(), func(n *ast.Node) bool {
		return n.GetFuncCall() != nil && isTableFunc(n.GetFuncCall())
	})
}

// tooMany checks that there are not more values than columns, nor fewer than were named.
func tooMany(values, cols int, named bool, pos int) error {
	switch {
	case values > cols:
		return sqlerr.New(sqlerr.Syntax, "INSERT has more expressions than target columns").At(pos)
	case values < cols && named:
		return sqlerr.New(sqlerr.Syntax, "INSERT has more target columns than expressions").At(pos)
	}
	return nil
}

// insertValues binds the rows of INSERT … VALUES. Its node has the columns it
// returns: those given, less generated ones, which may only be DEFAULT.
func (b *binder) insertValues(rel *catalog.Relation, lists []*ast.Node, cols, colPos []int, ctes *cte) (plan.Node, []int, error) {
	// The table's columns are not to be named here, but a name that is one shall get that as its error.
	e := &env{b: b, scope: &scope{parent: &scope{from: tableFrom(rel, "", 0), blind: true}}, ctes: ctes, clause: "VALUES"}
	out := &plan.Values{}
	width := len(lists[0].GetList().GetItems())
	for r, n := range lists {
		items := n.GetList().GetItems()
		if len(items) != width {
			pos := -1
			if len(items) > 0 {
				pos = location(items[0])
			}
			return nil, nil, sqlerr.New(sqlerr.Syntax, "VALUES lists must all be the same length").At(pos)
		}
		if r == 0 {
			pos := location(items[min(len(cols), width-1)])
			if width < len(colPos) {
				pos = colPos[width]
			}
			if err := tooMany(width, len(cols), colPos != nil, pos); err != nil {
				return nil, nil, err
			}
			cols = cols[:width]
		}
		row := make([]expr.Expr, 0, width)
		for j, item := range items {
			c := rel.Columns[cols[j]]
			isDefault := item.GetSetToDefault() != nil
			if c.Generated != "" {
				if !isDefault {
					return nil, nil, notGenerated(c, location(item))
				}
				continue
			}
			var x expr.Expr
			var err error
			if isDefault {
				x, err = b.defaultOf(rel, cols[j])
			} else if x, err = e.expr(item); err == nil {
				x, err = b.assign(x, c, location(item))
			}
			if err != nil {
				return nil, nil, err
			}
			row = append(row, x)
		}
		out.Rows = append(out.Rows, row)
	}
	cols = slices.DeleteFunc(slices.Clone(cols), func(i int) bool { return rel.Columns[i].Generated != "" })
	for _, i := range cols {
		out.Out = append(out.Out, types.Field{Name: rel.Columns[i].Name, Type: rel.Columns[i].Type})
	}
	return out, cols, nil
}

// insertQuery binds the query of INSERT … SELECT.
func (b *binder) insertQuery(rel *catalog.Relation, sel *ast.SelectStmt, cols, colPos []int, ctes *cte) (plan.Node, []int, error) {
	r, err := b.selectStmt(sel, nil, ctes, true)
	if err != nil {
		return nil, nil, err
	}
	pos := -1
	if len(r.cols) > len(cols) {
		pos = r.cols[len(cols)].pos
	} else if len(r.cols) < len(colPos) {
		pos = colPos[len(r.cols)]
	}
	if err := tooMany(len(r.cols), len(cols), colPos != nil, pos); err != nil {
		return nil, nil, err
	}
	cols = cols[:len(r.cols)]
	want := make([]types.Type, len(cols))
	for j, i := range cols {
		if rel.Columns[i].Generated != "" {
			return nil, nil, notGenerated(rel.Columns[i], r.cols[j].pos)
		}
		want[j] = rel.Columns[i].Type
	}
	err = b.retype(r, want, assignment, func(j int, have types.Type) error {
		return notAssignable(rel.Columns[cols[j]], have, r.cols[j].pos)
	})
	return r.node, cols, err
}

// onConflict binds ON CONFLICT DO NOTHING and DO UPDATE.
func (b *binder) onConflict(ins *plan.Insert, target *ast.RangeVar, c *ast.OnConflictClause) error {
	rel := ins.Table
	pos := int(c.Location)
	if in := c.Infer; in != nil {
		if in.WhereClause != nil { // an index of all rows is one of those rows, too
			e := &env{b: b, scope: &scope{from: tableFrom(rel, target.Alias.GetAliasname(), 0)}, clause: "WHERE"}
			if _, err := e.condition(in.WhereClause, "WHERE"); err != nil {
				return err
			}
		}
		if in.Conname != "" {
			if rel.PrimaryKey == 0 || in.Conname != rel.PrimaryKeyName {
				return sqlerr.New(sqlerr.UndefinedObject, `constraint "%s" for table "%s" does not exist`, in.Conname, rel.Name).At(int(in.Location))
			}
		} else if err := matchKey(rel, in); err != nil {
			return err
		}
	} else if c.Action == ast.OnConflictAction_ONCONFLICT_UPDATE {
		return sqlerr.New(sqlerr.Syntax, "ON CONFLICT DO UPDATE requires inference specification or constraint name").At(pos).
			WithHint("For example, ON CONFLICT (column_name).")
	}
	if c.Action != ast.OnConflictAction_ONCONFLICT_UPDATE {
		if rel.PrimaryKey > 0 {
			ins.Conflict = catalog.ConflictIgnore
		}
		return nil
	}
	// Existing row ++ excluded row.
	f := tableFrom(rel, target.Alias.GetAliasname(), 0)
	ex := tableFrom(rel, "excluded", len(rel.Columns))
	for _, c := range ex.tables[0].cols {
		c.origin = plan.Origin{}
	}
	f.tables, f.cols = append(f.tables, ex.tables...), append(f.cols, ex.cols...)
	e := &env{b: b, scope: &scope{from: f}, clause: "UPDATE"}
	sets, err := e.assignments(rel, c.TargetList)
	if err != nil {
		return err
	}
	ins.UpdateExprs, err = e.newRow(rel, sets)
	if err != nil {
		return err
	}
	if c.WhereClause != nil {
		e.clause = "WHERE"
		if ins.UpdateWhere, err = e.condition(c.WhereClause, "WHERE"); err != nil {
			return err
		}
	}
	return nil
}

// matchKey checks that ON CONFLICT names the primary key.
func matchKey(rel *catalog.Relation, in *ast.InferClause) error {
	var given []int
	for _, n := range in.IndexElems {
		el := n.GetIndexElem()
		if el.Expr != nil {
			return noConflictKey(in)
		}
		i, err := findColumn(rel, el.Name, int(in.Location))
		if e, ok := err.(*sqlerr.Error); ok {
			e.Message = fmt.Sprintf(`column "%s" does not exist`, el.Name)
			return e
		}
		if !slices.Contains(given, i) {
			given = append(given, i)
		}
	}
	match := rel.PrimaryKey == len(given)
	for _, k := range rel.Key[:rel.PrimaryKey] {
		match = match && slices.Contains(given, k.Col)
	}
	if !match {
		return noConflictKey(in)
	}
	return nil
}

func noConflictKey(in *ast.InferClause) error {
	return sqlerr.New("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification").At(int(in.Location))
}
