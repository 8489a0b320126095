package bind

import (
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// View binds CREATE VIEW and CREATE MATERIALIZED VIEW: the relation (no ID yet;
// of a materialized view the planner fills in the key) and its query.
func View(stmt parser.Statement, o Options) (*catalog.Relation, *plan.Query, error) {
	r := &catalog.Relation{Kind: catalog.View, Conflict: catalog.ConflictNone}
	var name *ast.RangeVar
	var query *ast.Node
	var aliases []string
	o.Streaming = true
	into := stmt.Node.GetCreateTableAsStmt()
	if ext, ok := stmt.Ext.(*parser.CreateMaterializedView); ok {
		into = ext.Create
		for _, w := range ext.With {
			r.With = append(r.With, catalog.Option{Name: w.Name, Value: w.Value})
		}
	}
	switch v := stmt.Node.GetViewStmt(); {
	case v != nil:
		name, query, aliases = v.View, v.Query, strs(v.Aliases)
		switch {
		case v.WithCheckOption != ast.ViewCheckOption_NO_CHECK_OPTION && v.WithCheckOption != ast.ViewCheckOption_VIEW_CHECK_OPTION_UNDEFINED:
			return nil, nil, sqlerr.Unsupported("WITH CHECK OPTION").At(int(name.Location))
		case name.Relpersistence == "t":
			return nil, nil, sqlerr.Unsupported("a temporary view").At(int(name.Location))
		}
	case into != nil && into.Objtype == ast.ObjectType_OBJECT_MATVIEW:
		name, query, aliases = into.Into.Rel, into.Query, strs(into.Into.ColNames)
		r.Kind, r.Vnodes = catalog.MaterializedView, vnodes
		if into.Into.SkipData {
			return nil, nil, sqlerr.Unsupported("WITH NO DATA").At(int(name.Location))
		}
	default:
		return nil, nil, sqlerr.New(sqlerr.Internal, "View: not a CREATE VIEW")
	}
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, nil, err
	}
	q, err := queryOf(r, stmt, name, query, aliases, o)
	return r, q, err
}

// CreateTableAs binds CREATE TABLE … AS: the table (no ID yet), and the query
// whose rows go into its visible columns; nil for WITH NO DATA.
func CreateTableAs(stmt parser.Statement, o Options) (*catalog.Relation, *plan.Query, error) {
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, nil, err
	}
	as := stmt.Node.GetCreateTableAsStmt()
	t := &tableBinder{b: newBinder(scalarOptions(o)), rel: &catalog.Relation{Kind: catalog.Table, Vnodes: vnodes}}
	ext, _ := stmt.Ext.(*parser.CreateTable)
	if ext != nil {
		as = ext.As
		if err := t.extension(ext); err != nil {
			return nil, nil, err
		}
	}
	if as == nil {
		return nil, nil, sqlerr.New(sqlerr.Internal, "CreateTableAs: not a CREATE TABLE AS")
	}
	if as.Into.Rel.Relpersistence == "t" {
		return nil, nil, sqlerr.Unsupported("a temporary table").At(int(as.Into.Rel.Location))
	}
	q, err := queryOf(t.rel, stmt, as.Into.Rel, as.Query, strs(as.Into.ColNames), o)
	if err != nil {
		return nil, nil, err
	}
	t.rel.Definition, t.rel.DependsOn = stmt.Text, nil
	if err := t.primaryKey(ext); err != nil {
		return nil, nil, err
	}
	if as.Into.SkipData {
		q = nil
	}
	return t.rel, q, nil
}

// queryOf binds the query a relation is defined by, and takes the relation's columns from it.
func queryOf(r *catalog.Relation, stmt parser.Statement, name *ast.RangeVar, query *ast.Node, aliases []string, o Options) (*plan.Query, error) {
	schema, err := o.creationSchema(name.Schemaname, name.Relname, int(name.Location))
	if err != nil {
		return nil, err
	}
	r.Schema, r.Name, r.Owner, r.SearchPath = schema, name.Relname, o.User, slices.Clone(o.SearchPath)
	r.Definition, _ = parser.DefiningQuery(&stmt)
	reads := o.OnRelation
	o.OnRelation = func(rel *catalog.Relation) {
		if rel.ID >= catalog.FirstUserID && !slices.Contains(r.DependsOn, rel.ID) {
			r.DependsOn = append(r.DependsOn, rel.ID)
		}
		if reads != nil {
			reads(rel)
		}
	}
	q, err := Query(query, o)
	if err != nil {
		return nil, err
	}
	slices.Sort(r.DependsOn)
	if len(aliases) > len(q.Names) {
		if r.Kind != catalog.View {
			return nil, sqlerr.New(sqlerr.Syntax, "too many column names were specified").At(int(name.Location))
		}
		return nil, sqlerr.New(sqlerr.Syntax, "CREATE VIEW specifies more column names than columns").At(int(name.Location))
	}
	copy(q.Names, aliases)
	for i, f := range q.Root.Schema() {
		if slices.Contains(q.Names[:i], q.Names[i]) {
			return nil, sqlerr.New(sqlerr.DuplicateColumn, `column "%s" specified more than once`, q.Names[i]).
				WithHint("Give each column of the query a name of its own with AS.")
		}
		if err := storable(q.Names[i], f.Type, -1); err != nil {
			return nil, err
		}
		r.Columns = append(r.Columns, catalog.Column{Name: q.Names[i], Type: f.Type})
	}
	return q, nil
}

// Sink binds CREATE SINK: the sink (no ID yet) and the query whose rows it
// delivers, SELECT * for FROM.
func Sink(stmt parser.Statement, o Options) (*catalog.Relation, *plan.Query, error) {
	ext, ok := stmt.Ext.(*parser.CreateSink)
	if !ok {
		return nil, nil, sqlerr.New(sqlerr.Internal, "Sink: not a CREATE SINK")
	}
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, nil, err
	}
	if ext.Into != nil {
		return nil, nil, sqlerr.Unsupported("CREATE SINK INTO a table").At(ext.Into.Pos)
	}
	t := &tableBinder{rel: &catalog.Relation{Kind: catalog.Sink, Conflict: catalog.ConflictNone, Vnodes: vnodes}}
	query := ext.Query
	if ext.From != nil {
		query = selectAll(&ast.RangeVar{Schemaname: ext.From.Schema, Relname: ext.From.Name, Location: int32(ext.From.Pos)})
	}
	o.Streaming = true
	name := &ast.RangeVar{Schemaname: ext.Name.Schema, Relname: ext.Name.Name, Location: int32(ext.Name.Pos)}
	q, err := queryOf(t.rel, stmt, name, query, nil, o)
	if err != nil {
		return nil, nil, err
	}
	t.rel.Definition = stmt.Text
	if err := t.connector(ext.With, ext.Format); err != nil {
		return nil, nil, err
	}
	return t.rel, q, nil
}

// selectAll is the tree of SELECT * FROM name.
func selectAll(name *ast.RangeVar) *ast.Node {
	star := &ast.Node{Node: &ast.Node_ColumnRef{ColumnRef: &ast.ColumnRef{
		Fields: []*ast.Node{{Node: &ast.Node_AStar{AStar: &ast.A_Star{}}}}, Location: name.Location}}}
	return &ast.Node{Node: &ast.Node_SelectStmt{SelectStmt: &ast.SelectStmt{
		TargetList: []*ast.Node{{Node: &ast.Node_ResTarget{ResTarget: &ast.ResTarget{Val: star}}}},
		FromClause: []*ast.Node{{Node: &ast.Node_RangeVar{RangeVar: name}}},
		Op:         ast.SetOperation_SETOP_NONE,
	}}}
}

// CreateIndex binds CREATE INDEX: the index (no ID yet) and the query that fills
// it, a projection of its relation. The index holds its key columns, the INCLUDEd
// ones (by default all others) and the relation's key.
func CreateIndex(stmt parser.Statement, o Options) (*catalog.Relation, plan.Node, error) {
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, nil, err
	}
	s := stmt.Node.GetIndexStmt()
	ext, _ := stmt.Ext.(*parser.CreateIndex)
	if ext != nil {
		s = ext.Create
	}
	if s == nil {
		return nil, nil, sqlerr.New(sqlerr.Internal, "CreateIndex: not a CREATE INDEX")
	}
	b := newBinder(scalarOptions(o))
	pos := int(s.Relation.Location)
	of, err := b.relation(s.Relation)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case of.Kind != catalog.Table && of.Kind != catalog.MaterializedView:
		return nil, nil, sqlerr.New(sqlerr.WrongObjectType, `cannot create index on relation "%s"`, of.Name).At(pos).
			WithDetail("Only tables and materialized views have indexes.")
	case s.Unique:
		return nil, nil, sqlerr.Unsupported("a UNIQUE index").At(pos).WithHint("A PRIMARY KEY is kept unique.")
	case s.WhereClause != nil:
		return nil, nil, sqlerr.Unsupported("a partial index").At(location(s.WhereClause))
	case s.AccessMethod != "" && s.AccessMethod != "btree":
		return nil, nil, sqlerr.Unsupported("access method %s", s.AccessMethod).At(pos)
	}
	r := &catalog.Relation{
		Kind: catalog.Index, Schema: of.Schema, Name: s.Idxname, Of: of.ID, Vnodes: vnodes, Conflict: catalog.ConflictNone,
		Definition: stmt.Text, Owner: o.User, SearchPath: slices.Clone(o.SearchPath), AppendOnly: of.AppendOnly, DependsOn: []catalog.ID{of.ID},
	}
	x := &indexBinder{b: b, of: of, rel: r, query: &plan.Project{Input: b.scan(of, of.Name)}}
	var parts []string
	for _, n := range s.IndexParams {
		name, err := x.key(n.GetIndexElem(), pos)
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, name)
	}
	if r.Name == "" {
		r.Name = indexName(o.Cat, of, parts)
	}
	r.IndexKey = len(r.Columns)
	for _, n := range s.IndexIncludingParams {
		el := n.GetIndexElem()
		if el.Name == "" {
			return nil, nil, sqlerr.Unsupported("an expression in INCLUDE").At(pos)
		}
		i, err := indexColumn(of, el.Name)
		if err != nil {
			return nil, nil, err
		}
		x.hold(i, false)
	}
	if len(s.IndexIncludingParams) == 0 {
		for i, c := range of.Columns {
			if !c.Hidden {
				x.hold(i, false)
			}
		}
	}
	for _, k := range of.Key {
		at := x.hold(k.Col, true)
		if !slices.ContainsFunc(r.Key, func(o catalog.KeyColumn) bool { return o.Col == at }) {
			r.Key = append(r.Key, catalog.KeyColumn{Col: at, Desc: k.Desc})
		}
	}
	r.Dist = []int{0}
	if ext != nil {
		for _, w := range ext.With {
			r.With = append(r.With, catalog.Option{Name: w.Name, Value: w.Value})
		}
		if ext.Distributed != nil {
			if err := x.distribute(ext.Distributed); err != nil {
				return nil, nil, err
			}
		}
	}
	return r, x.query, nil
}

// indexColumn finds the column that CREATE INDEX names, in PostgreSQL's words, which name no position.
func indexColumn(rel *catalog.Relation, name string) (int, error) {
	i, err := findColumn(rel, name, -1)
	if e, ok := err.(*sqlerr.Error); ok {
		e.Message = fmt.Sprintf(`column "%s" does not exist`, name)
	}
	return i, err
}

type indexBinder struct {
	b     *binder
	of    *catalog.Relation
	rel   *catalog.Relation
	query *plan.Project
}

// key adds a key column and returns its name.
func (x *indexBinder) key(el *ast.IndexElem, pos int) (string, error) {
	if len(el.Opclass) > 0 {
		if name := el.Opclass[len(el.Opclass)-1].GetString_().GetSval(); !strings.HasSuffix(name, "_ops") {
			return "", sqlerr.New(sqlerr.UndefinedObject, `operator class "%s" does not exist for access method "btree"`, name).At(pos)
		}
	}
	desc := el.Ordering == ast.SortByDir_SORTBY_DESC
	if n := el.NullsOrdering; n == ast.SortByNulls_SORTBY_NULLS_FIRST && !desc || n == ast.SortByNulls_SORTBY_NULLS_LAST && desc {
		return "", sqlerr.Unsupported("an index with NULLS FIRST ascending or NULLS LAST descending").At(pos)
	}
	var e expr.Expr
	of, name := -1, el.Name
	if el.Expr == nil {
		i, err := indexColumn(x.of, el.Name)
		if err != nil {
			return "", err
		}
		c := x.of.Columns[i]
		e, of = &expr.ColRef{Index: i, Typ: c.Type, Name: x.of.Name + "." + c.Name}, i
	} else {
		var err error
		if e, err = x.b.scalarNode(el.Expr, x.of, "index expressions"); err != nil {
			return "", err
		}
		if e, err = x.b.known(e); err != nil {
			return "", err
		}
		if expr.VolatilityOf(e) != expr.Immutable {
			return "", sqlerr.New("42P17", "functions in index expression must be marked IMMUTABLE").At(location(el.Expr))
		}
		if c, ok := e.(*expr.ColRef); ok {
			of, name = c.Index, x.of.Columns[c.Index].Name
		} else if name = outputName(el.Expr); name == "?column?" {
			name = "expr"
		}
	}
	if err := sortable(e.Type(), pos); err != nil {
		return "", sqlerr.New(sqlerr.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", types.FormatType(e.Type())).At(pos)
	}
	if of >= 0 && slices.Contains(x.rel.IndexCols, of) {
		return "", sqlerr.New(sqlerr.DuplicateColumn, `column "%s" appears twice in index`, name).At(pos)
	}
	unique := name
	for n := 1; slices.ContainsFunc(x.rel.Columns, func(c catalog.Column) bool { return c.Name == unique }); n++ {
		unique = fmt.Sprintf("%s%d", name, n)
	}
	x.rel.Key = append(x.rel.Key, catalog.KeyColumn{Col: len(x.rel.Columns), Desc: desc})
	x.add(unique, e, of, false)
	return name, nil
}

func (x *indexBinder) add(name string, e expr.Expr, of int, hidden bool) {
	c := catalog.Column{Name: name, Type: e.Type(), Hidden: hidden}
	if of >= 0 {
		c.NotNull = x.of.Columns[of].NotNull
	}
	x.rel.Columns = append(x.rel.Columns, c)
	x.rel.IndexCols = append(x.rel.IndexCols, of)
	x.query.Exprs = append(x.query.Exprs, e)
	x.query.Names = append(x.query.Names, name)
}

// hold makes sure that column i of the relation is in the index and returns where.
func (x *indexBinder) hold(i int, hidden bool) int {
	if at := slices.Index(x.rel.IndexCols, i); at >= 0 {
		return at
	}
	c := x.of.Columns[i]
	name := c.Name
	for n := 1; slices.ContainsFunc(x.rel.Columns, func(o catalog.Column) bool { return o.Name == name }); n++ {
		name = fmt.Sprintf("%s%d", c.Name, n) // an expression has the name
	}
	x.add(name, &expr.ColRef{Index: i, Typ: c.Type, Name: x.of.Name + "." + c.Name}, i, hidden || c.Hidden)
	return len(x.rel.Columns) - 1
}

// distribute binds DISTRIBUTED BY, a prefix of the key.
func (x *indexBinder) distribute(list []*ast.Node) error {
	x.rel.Dist = nil
	for _, n := range list {
		e, err := x.b.scalarNode(n, x.of, "DISTRIBUTED BY")
		if err != nil {
			return err
		}
		at := slices.IndexFunc(x.query.Exprs[:x.rel.IndexKey], func(o expr.Expr) bool { return expr.Equal(o, e) })
		if at < 0 || at != len(x.rel.Dist) {
			return sqlerr.New(sqlerr.InvalidParameter, "DISTRIBUTED BY must name the first columns of the index").At(location(n))
		}
		x.rel.Dist = append(x.rel.Dist, at)
	}
	return nil
}

// indexName names an index as PostgreSQL does.
func indexName(cat *catalog.Snapshot, of *catalog.Relation, parts []string) string {
	base := of.Name + "_" + strings.Join(parts, "_") + "_idx"
	name := base
	for n := 1; cat.Relation(of.Schema, name) != nil; n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	return name
}
