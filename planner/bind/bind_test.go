package bind

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A world is a catalog that scripts add to.
type world struct {
	cat  *catalog.Snapshot
	path []string
	next catalog.ID
}

func newWorld() *world {
	sys := func(id catalog.ID, schema, name string, cols ...catalog.Column) *catalog.Relation {
		return &catalog.Relation{ID: id, Schema: schema, Name: name, Kind: catalog.System, Columns: cols, Conflict: catalog.ConflictNone}
	}
	col := func(name string, t types.Type) catalog.Column { return catalog.Column{Name: name, Type: t} }
	nameArray := types.ArrayOf(types.Name)
	return &world{
		cat: catalog.NewSnapshot([]string{"public", "other", "pg_catalog", "information_schema"}, []*catalog.Relation{
			sys(1259, "pg_catalog", "pg_class", col("oid", types.Oid), col("relname", types.Name), col("relnamespace", types.Oid),
				col("relkind", types.Char), col("relowner", types.Oid), col("relam", types.Oid), col("reltuples", types.Float4), col("reloptions", types.ArrayOf(types.Text))),
			sys(2615, "pg_catalog", "pg_namespace", col("oid", types.Oid), col("nspname", types.Name)),
			sys(1249, "pg_catalog", "pg_attribute", col("attrelid", types.Oid), col("attname", types.Name), col("atttypid", types.Oid),
				col("attnum", types.Int2), col("atttypmod", types.Int4), col("attisdropped", types.Bool), col("attnotnull", types.Bool)),
			sys(2610, "pg_catalog", "pg_index", col("indexrelid", types.Oid), col("indrelid", types.Oid), col("indisprimary", types.Bool),
				col("indkey", types.Int2Vector)),
			sys(2601, "pg_catalog", "pg_am", col("oid", types.Oid), col("amname", types.Name)),
			sys(9001, "pg_catalog", "pg_names", col("names", nameArray)),
		}),
		path: []string{"public"},
		next: catalog.FirstUserID,
	}
}

func (w *world) options() Options {
	return Options{Cat: w.cat, SearchPath: w.path, User: "root"}
}

func (w *world) add(r *catalog.Relation) {
	r.ID = w.next
	w.next++
	w.cat = w.cat.With([]*catalog.Relation{r}, nil)
}

// ddl runs a CREATE statement and prints the relation.
func (w *world) ddl(stmt parser.Statement) (string, error) {
	var r *catalog.Relation
	var node plan.Node
	var err error
	switch x := stmt.Ext.(type) {
	case *parser.CreateSource:
		r, err = CreateSource(stmt, w.options())
	case *parser.CreateTable:
		if x.As != nil {
			var q *plan.Query
			if r, q, err = CreateTableAs(stmt, w.options()); q != nil {
				node = q.Root
			}
		} else {
			r, err = CreateTable(stmt, w.options())
		}
	case *parser.CreateIndex:
		r, node, err = CreateIndex(stmt, w.options())
	case *parser.CreateSink:
		var q *plan.Query
		if r, q, err = Sink(stmt, w.options()); q != nil {
			node = q.Root
		}
	case *parser.CreateMaterializedView:
		r, node, err = w.view(stmt)
	case nil:
		switch n := stmt.Node; {
		case n.GetCreateStmt() != nil:
			r, err = CreateTable(stmt, w.options())
		case n.GetIndexStmt() != nil:
			r, node, err = CreateIndex(stmt, w.options())
		case n.GetCreateTableAsStmt() != nil && n.GetCreateTableAsStmt().Objtype.String() == "OBJECT_TABLE":
			var q *plan.Query
			if r, q, err = CreateTableAs(stmt, w.options()); q != nil {
				node = q.Root
			}
		default:
			r, node, err = w.view(stmt)
		}
	default:
		return "", fmt.Errorf("no DDL: %T", x)
	}
	if err != nil {
		return "", err
	}
	w.add(r)
	out := printRelation(r)
	if node != nil {
		out += printNode(node)
	}
	return out, nil
}

func (w *world) view(stmt parser.Statement) (*catalog.Relation, plan.Node, error) {
	r, q, err := View(stmt, w.options())
	if err != nil {
		return nil, nil, err
	}
	if r.Kind == catalog.MaterializedView {
		r.Key = []catalog.KeyColumn{{Col: 0}} // the planner's work
	}
	return r, q.Root, nil
}

func TestBind(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "judged") {
			return // TestJudged's
		}
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			// Statements are separated by lines of their own that are ";;"; most inputs are one.
			for i, text := range strings.Split(d.Input, "\n;;\n") {
				if i > 0 {
					out.WriteString("----\n")
				}
				s, err := w.run(d, text)
				if err != nil {
					s += printError(err, text)
				}
				out.WriteString(s)
			}
			return out.String()
		})
	})
}

func (w *world) run(d *datadriven.TestData, text string) (string, error) {
	if d.Cmd == "path" {
		w.path = strings.Fields(text)
		return "", nil
	}
	if d.Cmd == "scalar" {
		var rel *catalog.Relation
		if d.HasArg("of") {
			var name string
			for _, a := range d.CmdArgs {
				if a.Key == "of" {
					name = a.Vals[0]
				}
			}
			rel = w.cat.Relation("public", name)
		}
		x, err := Scalar(text, rel, w.options())
		if err != nil {
			return "", err
		}
		return printExpr(x) + " " + types.FormatType(x.Type()) + "\n", nil
	}
	stmts, err := parser.Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, stmt := range stmts {
		var s string
		switch d.Cmd {
		case "ddl":
			s, err = w.ddl(stmt)
		case "setup": // as ddl, without output
			_, err = w.ddl(stmt)
		case "bind":
			o := w.options()
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "params":
					for _, v := range a.Vals {
						t, _ := types.ByName(v)
						o.ParamTypes = append(o.ParamTypes, t)
					}
				case "streaming":
					o.Streaming = true
				}
			}
			s, err = bindText(stmt, o)
		case "copy":
			var c *CopyStmt
			if c, err = Copy(stmt, w.options()); err == nil {
				s = fmt.Sprintf("from=%v cols=%v %+v\n", c.From, c.Cols, c.CopyFormat)
				if c.Query != nil {
					s += printNode(c.Query.Root)
				}
				if c.Insert != nil {
					s += printNode(c.Insert.Source)
				}
			}
		default:
			return "", fmt.Errorf("unknown command %s", d.Cmd)
		}
		out.WriteString(s)
		if err != nil {
			return out.String(), err
		}
	}
	return out.String(), nil
}

func bindText(stmt parser.Statement, o Options) (string, error) {
	p, params, err := Bind(stmt, o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, t := range params {
		fmt.Fprintf(&b, "$%d %s\n", i+1, types.FormatType(t))
	}
	returning := func(r *plan.Returning) {
		if r != nil {
			for i, e := range r.Exprs {
				fmt.Fprintf(&b, "returning %s: %s %s\n", r.Names[i], printExpr(e), types.FormatType(e.Type()))
			}
		}
	}
	checks := func(xs []expr.Expr) {
		for _, x := range xs {
			fmt.Fprintf(&b, "check %s\n", printExpr(x))
		}
	}
	switch p := p.(type) {
	case *plan.Query:
		for i, f := range p.Root.Schema() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.Names[i] + " " + types.FormatType(f.Type))
			if p.Origin[i].Rel != 0 {
				fmt.Fprintf(&b, "@%d.%d", p.Origin[i].Rel, p.Origin[i].Col)
			}
		}
		b.WriteString("\n" + printNode(p.Root))
	case *plan.Insert:
		fmt.Fprintf(&b, "insert %s conflict=%d\n", p.Table.Name, p.Conflict)
		for i, x := range p.UpdateExprs {
			fmt.Fprintf(&b, "set %s = %s\n", p.Table.Columns[i].Name, printExpr(x))
		}
		if p.UpdateWhere != nil {
			fmt.Fprintf(&b, "where %s\n", printExpr(p.UpdateWhere))
		}
		checks(p.Checks)
		returning(p.Returning)
		b.WriteString(printNode(p.Source))
	case *plan.Update:
		fmt.Fprintf(&b, "update %s\n", p.Table.Name)
		checks(p.Checks)
		returning(p.Returning)
		b.WriteString(printNode(p.Source))
	case *plan.Delete:
		fmt.Fprintf(&b, "delete %s\n", p.Table.Name)
		returning(p.Returning)
		b.WriteString(printNode(p.Source))
	}
	return b.String(), nil
}

// printError shows an error's fields, and the text that its position points to.
func printError(err error, text string) string {
	e := sqlerr.From(err)
	s := fmt.Sprintf("%s %s", e.Code, e.Message)
	if e.Pos > 0 {
		at := min(e.Pos-1, len(text))
		s += fmt.Sprintf("  <%s>", strings.SplitN(text[at:min(at+20, len(text))], "\n", 2)[0])
	}
	if e.Detail != "" {
		s += "\n  detail: " + e.Detail
	}
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s + "\n"
}

func printRelation(r *catalog.Relation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s kind=%d key=%v dist=%v conflict=%d", r.Schema, r.Name, r.Kind, r.Key, r.Dist, r.Conflict)
	if r.PrimaryKey > 0 {
		fmt.Fprintf(&b, " primary=%d %s", r.PrimaryKey, r.PrimaryKeyName)
	}
	if r.AppendOnly {
		b.WriteString(" append-only")
	}
	if r.Kind == catalog.Index {
		fmt.Fprintf(&b, " of=%d indexkey=%d cols=%v", r.Of, r.IndexKey, r.IndexCols)
	}
	if len(r.DependsOn) > 0 {
		fmt.Fprintf(&b, " reads=%v", r.DependsOn)
	}
	b.WriteByte('\n')
	for _, c := range r.Columns {
		fmt.Fprintf(&b, "  %s %s", c.Name, types.FormatType(c.Type))
		for _, f := range []struct {
			is   bool
			text string
		}{{c.NotNull, "not null"}, {c.Hidden, "hidden"}, {c.Default != "", "default " + c.Default}, {c.Generated != "", "generated " + c.Generated}} {
			if f.is {
				b.WriteString(" " + f.text)
			}
		}
		b.WriteByte('\n')
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "  check %s: %s\n", c.Name, c.Expr)
	}
	for _, o := range r.With {
		fmt.Fprintf(&b, "  with %s = %s\n", o.Name, o.Value)
	}
	return b.String()
}

func printNode(n plan.Node) string {
	var b strings.Builder
	node(&b, n, 0)
	return b.String()
}

func node(b *strings.Builder, n plan.Node, depth int) {
	b.WriteString(strings.Repeat("  ", depth))
	list := func(xs []expr.Expr) string {
		out := make([]string, len(xs))
		for i, x := range xs {
			out[i] = printExpr(x)
		}
		return strings.Join(out, ", ")
	}
	var subs []expr.Expr
	switch x := n.(type) {
	case *plan.Scan:
		fmt.Fprintf(b, "scan %s", x.Rel.Name)
		if x.Alias != x.Rel.Name {
			b.WriteString(" " + x.Alias)
		}
	case *plan.Values:
		fmt.Fprintf(b, "values")
		for _, r := range x.Rows {
			fmt.Fprintf(b, " (%s)", list(r))
			subs = append(subs, r...)
		}
	case *plan.Filter:
		fmt.Fprintf(b, "filter %s", printExpr(x.Cond))
		subs = append(subs, x.Cond)
	case *plan.Project:
		out := make([]string, len(x.Exprs))
		for i, e := range x.Exprs {
			out[i] = printExpr(e)
			if c, ok := e.(*expr.ColRef); !ok || c.Name != x.Names[i] && !strings.HasSuffix(c.Name, "."+x.Names[i]) {
				out[i] = x.Names[i] + ": " + out[i]
			}
		}
		fmt.Fprintf(b, "project %s", strings.Join(out, ", "))
		subs = append(subs, x.Exprs...)
	case *plan.Join:
		fmt.Fprintf(b, "join %s", [...]string{"inner", "left", "right", "full", "semi", "anti"}[x.Kind])
		if x.Lateral {
			b.WriteString(" lateral")
		}
		if x.On != nil {
			fmt.Fprintf(b, " on %s", printExpr(x.On))
			subs = append(subs, x.On)
		}
	case *plan.Agg:
		fmt.Fprintf(b, "agg %v", x.GroupBy)
		for i, a := range x.Aggs {
			fmt.Fprintf(b, " %s=%s(%s", x.Names[i], a.Fn.Name, strings.Trim(fmt.Sprint(a.Args), "[]"))
			if a.Distinct {
				b.WriteString(" distinct")
			}
			if len(a.Order) > 0 {
				fmt.Fprintf(b, " order %v", a.Order)
			}
			b.WriteString(")")
			if a.Filter >= 0 {
				fmt.Fprintf(b, " filter %d", a.Filter)
			}
			b.WriteString(" " + types.FormatType(a.Typ))
		}
	case *plan.Distinct:
		b.WriteString("distinct")
		if x.On != nil {
			fmt.Fprintf(b, " on %v order %v", x.On, x.Order)
		}
	case *plan.Sort:
		fmt.Fprintf(b, "sort")
		for _, o := range x.By {
			fmt.Fprintf(b, " %d", o.Col)
			if o.Desc {
				b.WriteString(" desc")
			}
			if o.NullsFirst != o.Desc {
				fmt.Fprintf(b, " nulls first=%v", o.NullsFirst)
			}
		}
	case *plan.Limit:
		fmt.Fprintf(b, "limit")
		if x.Count != nil {
			fmt.Fprintf(b, " %s", printExpr(x.Count))
			subs = append(subs, x.Count)
		}
		if x.Offset != nil {
			fmt.Fprintf(b, " offset %s", printExpr(x.Offset))
		}
		if x.WithTies {
			b.WriteString(" with ties")
		}
	case *plan.SetOp:
		fmt.Fprintf(b, "%s all=%v", [...]string{"union", "intersect", "except"}[x.Op], x.All)
	case *plan.FuncScan:
		fmt.Fprintf(b, "funcscan %s(%s)", x.Fn.Name, list(x.Args))
		if x.Ordinality {
			b.WriteString(" ordinality")
		}
		subs = append(subs, x.Args...)
	case *plan.ProjectSet:
		b.WriteString("projectset")
		for i, f := range x.Fns {
			fmt.Fprintf(b, " %s: %s(%s)", x.Names[i], f.Name, list(x.Args[i]))
			subs = append(subs, x.Args[i]...)
		}
	case *plan.Window:
		fmt.Fprintf(b, "window partition %v order %v", x.PartitionBy, x.OrderBy)
		for i, f := range x.Funcs {
			fmt.Fprintf(b, "\n%s  %s: ", strings.Repeat("  ", depth), x.Names[i])
			if f.Name != "" {
				fmt.Fprintf(b, "%s(%s)", f.Name, list(f.Args))
				subs = append(subs, f.Args...)
			} else {
				fmt.Fprintf(b, "agg %s(%s)", f.Agg.Fn.Name, strings.Trim(fmt.Sprint(f.Agg.Args), "[]"))
				if f.Agg.Filter >= 0 {
					fmt.Fprintf(b, " filter %d", f.Agg.Filter)
				}
			}
			fmt.Fprintf(b, " %s %s", types.FormatType(f.Typ), printFrame(f.Frame))
		}
	case *plan.Expand:
		fmt.Fprintf(b, "expand %v sets %v", x.Cols, x.Sets)
	case *plan.Recursive:
		fmt.Fprintf(b, "recursive %d all=%v %v", x.ID, x.All, typesIn(x.Out))
	case *plan.WorkTable:
		fmt.Fprintf(b, "worktable %d", x.ID)
	default:
		fmt.Fprintf(b, "%T", n)
	}
	b.WriteByte('\n')
	for _, s := range subs {
		visitExpr(s, func(x expr.Expr) {
			if q, ok := x.(*expr.Subquery); ok {
				b.WriteString(strings.Repeat("  ", depth) + "  subquery:\n")
				node(b, q.Plan.(plan.Node), depth+2)
			}
		})
	}
	for _, in := range n.Inputs() {
		node(b, in, depth+1)
	}
}

func typesIn(s types.Schema) []string {
	out := make([]string, len(s))
	for i, f := range s {
		out[i] = types.FormatType(f.Type)
	}
	return out
}

func printFrame(f plan.Frame) string {
	bound := func(b plan.Bound) string {
		s := [...]string{"unbounded preceding", "preceding", "current", "following", "unbounded following"}[b.Kind]
		if b.Offset != nil {
			s = printExpr(b.Offset) + " " + s
		}
		return s
	}
	s := [...]string{"range", "rows", "groups"}[f.Mode] + " " + bound(f.Start) + " to " + bound(f.End)
	return s + [...]string{"", " without current", " without group", " without ties"}[f.Exclude]
}

// printExpr writes columns as name#index and outer ones as name^level#index.
func printExpr(e expr.Expr) string {
	list := func(xs []expr.Expr) string {
		out := make([]string, len(xs))
		for i, x := range xs {
			out[i] = printExpr(x)
		}
		return strings.Join(out, ", ")
	}
	infix := func(op string, xs []expr.Expr) string {
		out := make([]string, len(xs))
		for i, x := range xs {
			out[i] = printExpr(x)
		}
		return "(" + strings.Join(out, " "+op+" ") + ")"
	}
	switch x := e.(type) {
	case *expr.ColRef:
		return fmt.Sprintf("%s#%d", x.Name, x.Index)
	case *expr.OuterRef:
		return fmt.Sprintf("%s^%d#%d", x.Name, x.Level, x.Index)
	case *expr.Call:
		if x.Fn.Operator && len(x.Args) == 2 {
			return infix(x.Fn.Name, x.Args)
		}
		return x.Fn.Name + "(" + list(x.Args) + ")"
	case *expr.Cast:
		s := "::"
		if !x.Explicit {
			s = ":::" // by assignment or implicitly
		}
		return printExpr(x.Arg) + s + types.FormatType(x.Typ)
	case *expr.Logic:
		if x.Or {
			return infix("OR", x.Args)
		}
		return infix("AND", x.Args)
	case *expr.InList:
		not := ""
		if x.Negate {
			not = "NOT "
		}
		return "(" + printExpr(x.Arg) + " " + not + "IN (" + list(x.List) + "))"
	case *expr.Case:
		s := "CASE"
		for _, w := range x.Whens {
			s += " WHEN " + printExpr(w.Cond) + " THEN " + printExpr(w.Then)
		}
		if x.Else != nil {
			s += " ELSE " + printExpr(x.Else)
		}
		return s + " END"
	case *expr.Coalesce:
		return "COALESCE(" + list(x.Args) + ")"
	case *expr.Not:
		return "NOT " + printExpr(x.Arg)
	case *expr.IsNull:
		if x.Negate {
			return printExpr(x.Arg) + " IS NOT NULL"
		}
		return printExpr(x.Arg) + " IS NULL"
	case *expr.ArrayExpr:
		return "ARRAY[" + list(x.Elems) + "]"
	case *expr.Quantified:
		q := "ANY"
		if x.All {
			q = "ALL"
		}
		return "(" + printExpr(x.Left) + " " + x.Op.Name + " " + q + " " + printExpr(x.Array) + ")"
	case *expr.Subquery:
		s := [...]string{"SCALAR", "EXISTS", "ANY", "ALL", "ARRAY"}[x.Kind]
		for i, l := range x.Left {
			s = printExpr(l) + " " + x.Ops[i].Name + " " + s
		}
		if x.Correlated {
			s += " correlated"
		}
		return "(" + s + ")"
	}
	return expr.String(e)
}

// TestRelations: a statement's relations are reported, a view's own are not.
func TestRelations(t *testing.T) {
	w := newWorld()
	for _, s := range []string{"create table a(x int)", "create table b(y int)", "create view v as select * from a"} {
		stmts, err := parser.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ddl(stmts[0]); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	o := w.options()
	o.OnRelation = func(r *catalog.Relation) { got = append(got, r.Name) }
	stmts, err := parser.Parse("select * from v, b where exists (select 1 from b)")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Bind(stmts[0], o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"v", "b", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
