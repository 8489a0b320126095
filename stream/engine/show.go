package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/engine/syscat"
)

// A listing is a SHOW's table: its columns, and rows made when it runs.
type listing struct {
	cols []ResultColumn
	rows func(s *Session, x *parser.Show) ([][]string, error)
}

func textCols(names ...string) []ResultColumn {
	out := make([]ResultColumn, len(names))
	for i, n := range names {
		out[i] = ResultColumn{Name: n, Type: types.Text}
	}
	return out
}

// jobCols are SHOW JOBS' columns, RisingWave's four first.
var jobCols = []ResultColumn{{Name: "Id", Type: types.Int8}, {Name: "Statement", Type: types.Text}, {Name: "Create Type", Type: types.Text}, {Name: "Progress", Type: types.Text},
	{Name: "Rows Done", Type: types.Int8}, {Name: "Rows Total", Type: types.Int8}, {Name: "Rows/s", Type: types.Int8}, {Name: "Left", Type: types.Text}, {Name: "Phase", Type: types.Text}, {Name: "State Bytes", Type: types.Int8}, {Name: "Waits For", Type: types.Text}}

var listings = map[string]listing{
	"TABLES":             {textCols("Name"), relationsOf(catalog.Table)},
	"MATERIALIZED VIEWS": {textCols("Name"), relationsOf(catalog.MaterializedView)},
	"VIEWS":              {textCols("Name"), relationsOf(catalog.View)},
	"SOURCES":            {textCols("Name"), relationsOf(catalog.Source)},
	"SINKS":              {textCols("Name"), relationsOf(catalog.Sink)},
	"SUBSCRIPTIONS":      {textCols("Name"), nothing},
	"CONNECTIONS":        {textCols("Name", "Type", "Properties"), nothing},
	"SECRETS":            {textCols("Name"), nothing},
	"CURSORS":            {textCols("Name"), cursorsRows},
	"FUNCTIONS":          {textCols("Name", "Arguments", "Return Type", "Language", "Link"), nothing},
	"SCHEMAS":            {textCols("Name"), func(s *Session, _ *parser.Show) ([][]string, error) { return column(s.db.Catalog().Schemas()), nil }},
	"DATABASES":          {textCols("Name"), func(*Session, *parser.Show) ([][]string, error) { return [][]string{{DefaultDatabase}}, nil }},
	"INDEXES":            {textCols("Name", "On", "Key", "Include", "Distributed By"), indexRows},
	"COLUMNS":            {textCols("Name", "Type", "Is Hidden", "Description"), columnRows},
	"JOBS":               {jobCols, jobRows},
	"PROCESSLIST":        {[]ResultColumn{{Name: "Id", Type: types.Int8}, {Name: "User", Type: types.Text}, {Name: "Host", Type: types.Text}, {Name: "Database", Type: types.Text}, {Name: "Time", Type: types.Text}, {Name: "Info", Type: types.Text}}, processRows},
	"PARAMETERS":         {textCols("Name", "Value", "Mutable"), parameterRows},
	"CLUSTER":            {textCols("Addr", "State", "Parallelism"), clusterRows},
	"INTERNAL TABLES":    {textCols("Name"), internalRows},
}

func nothing(*Session, *parser.Show) ([][]string, error) { return nil, nil }

func column(names []string) [][]string {
	out := make([][]string, len(names))
	for i, n := range names {
		out[i] = []string{n}
	}
	return out
}

func relationsOf(kind catalog.Kind) func(*Session, *parser.Show) ([][]string, error) {
	return func(s *Session, x *parser.Show) ([][]string, error) {
		cat := s.db.Catalog()
		schemas := s.searchPath()
		if x.From != nil {
			if !cat.HasSchema(x.From.Name) {
				return nil, sqlerr.New(sqlerr.InvalidSchema, "schema %q does not exist", x.From.Name).At(x.From.Pos)
			}
			schemas = []string{x.From.Name}
		}
		var out []string
		for _, r := range cat.Relations() {
			if r.Kind == kind && !r.Building && slices.Contains(schemas, r.Schema) {
				out = append(out, r.Name)
			}
		}
		slices.Sort(out)
		return column(out), nil
	}
}

func cursorsRows(s *Session, _ *parser.Show) ([][]string, error) {
	var out []string
	for n := range s.cursors {
		out = append(out, n)
	}
	slices.Sort(out)
	return column(out), nil
}

func columnRows(s *Session, x *parser.Show) ([][]string, error) {
	if x.From == nil {
		return nil, sqlerr.New(sqlerr.Syntax, "SHOW COLUMNS needs FROM and a relation").At(x.Pos)
	}
	r, err := s.find(*x.From)
	if err != nil {
		return nil, err
	}
	return describeColumns(r), nil
}

func describeColumns(r *catalog.Relation) [][]string {
	var out [][]string
	for _, c := range r.Columns {
		out = append(out, []string{c.Name, types.FormatType(c.Type), strconv.FormatBool(c.Hidden), c.Comment})
	}
	return out
}

// keyText writes index or key columns: "a, b DESC".
func keyText(r *catalog.Relation, keys []catalog.KeyColumn) string {
	var out []string
	for _, k := range keys {
		n := r.Columns[k.Col].Name
		if k.Desc {
			n += " DESC"
		}
		out = append(out, n)
	}
	return strings.Join(out, ", ")
}

func indexRow(s *Session, r *catalog.Relation) []string {
	on := ""
	if of := s.db.Catalog().ByID(r.Of); of != nil {
		on = of.Name
	}
	var include, dist []string
	for _, c := range r.Columns[min(r.IndexKey, len(r.Columns)):] {
		if !c.Hidden {
			include = append(include, c.Name)
		}
	}
	for _, d := range r.Dist {
		dist = append(dist, r.Columns[d].Name)
	}
	return []string{r.Name, on, keyText(r, r.Key[:min(r.IndexKey, len(r.Key))]), strings.Join(include, ", "), strings.Join(dist, ", ")}
}

func indexRows(s *Session, x *parser.Show) ([][]string, error) {
	cat := s.db.Catalog()
	var list []*catalog.Relation
	if x.From != nil {
		of, err := s.find(*x.From)
		if err != nil {
			return nil, err
		}
		list = cat.Indexes(of.ID)
	} else {
		for _, r := range cat.Relations() {
			if r.Kind == catalog.Index && !r.Building {
				list = append(list, r)
			}
		}
	}
	var out [][]string
	for _, r := range list {
		out = append(out, indexRow(s, r))
	}
	return out, nil
}

func jobRows(s *Session, _ *parser.Show) ([][]string, error) {
	var out [][]string
	for _, j := range s.db.building() {
		r := s.db.jobs.Report(j)
		rel := j.Rel
		kind := "FOREGROUND"
		if rel.Background {
			kind = "BACKGROUND"
		}
		left := ""
		if r.Left >= 0 {
			left = shortDuration(r.Left)
		}
		out = append(out, []string{fmt.Sprint(rel.ID), syscat.Mask(rel, createText(rel)), kind, fmt.Sprintf("%.2f%% (%d/%d)", min(percent(r.Done, r.Total), 99.99), r.Done, r.Total),
			fmt.Sprint(r.Done), fmt.Sprint(r.Total), fmt.Sprint(int64(r.RowsPerSec)), left, r.Phase(), fmt.Sprint(r.StateBytes), r.WaitsFor})
	}
	return out, nil
}

func processRows(s *Session, _ *parser.Show) ([][]string, error) {
	var out [][]string
	now := s.db.clock.Now()
	for _, o := range s.db.sessionList() {
		o.mu.Lock()
		text, since := o.running, o.since
		o.mu.Unlock()
		took := ""
		if text != "" {
			took = now.Sub(since).Round(time.Millisecond).String()
		}
		out = append(out, []string{fmt.Sprint(o.id), o.user, o.o.Remote, o.database, took, text})
	}
	return out, nil
}

func (db *DB) sessionList() []*Session {
	db.mu.Lock()
	defer db.mu.Unlock()
	out := make([]*Session, 0, len(db.sessions))
	for _, s := range db.sessions {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Session) int { return cmp.Compare(a.id, b.id) })
	return out
}

func clusterRows(s *Session, _ *parser.Show) ([][]string, error) {
	return [][]string{{"this process", "RUNNING", fmt.Sprint(s.db.o.Parallelism)}}, nil
}

func internalRows(s *Session, _ *parser.Show) ([][]string, error) {
	var out [][]string
	for _, r := range s.db.Catalog().Relations() {
		for _, id := range r.State {
			out = append(out, []string{fmt.Sprintf("__internal_%s_%d", r.Name, id)})
		}
	}
	return out, nil
}

// show is SHOW of a list, with LIKE on the first column and WHERE on any.
func (s *Session) show(x *parser.Show) (*Result, error) {
	l, ok := listings[x.What]
	if !ok {
		return nil, sqlerr.Unsupported("SHOW %s", x.What).At(x.Pos)
	}
	rows, err := l.rows(s, x)
	if err != nil {
		return nil, err
	}
	c, err := listingChunk(l.cols, rows)
	if err != nil {
		return nil, err
	}
	if x.Like != nil {
		c, err = s.filterRows(c, l.cols, nil, *x.Like)
	}
	if err == nil && x.Where != nil {
		c, err = s.filterRows(c, l.cols, x.Where, "")
	}
	if err != nil {
		return nil, err
	}
	return rowsResult("SHOW", l.cols, c), nil
}

// listingChunk makes typed rows of text ones; an empty text in a number's place is NULL.
func listingChunk(cols []ResultColumn, rows [][]string) (*chunk.Chunk, error) {
	out := &chunk.Chunk{N: len(rows)}
	for i, rc := range cols {
		c := chunk.New(rc.Type, len(rows))
		for _, r := range rows {
			if rc.Type.Kind() != types.KindString && r[i] == "" {
				c.AppendNull()
				continue
			}
			d, err := types.ParseText(rc.Type, r[i], nil)
			if err != nil {
				return nil, err
			}
			c.Append(d)
		}
		out.Cols = append(out.Cols, c)
	}
	return out, nil
}

// filterRows keeps the rows that satisfy a condition over the columns' names, or whose first column is LIKE a pattern.
func (s *Session) filterRows(c *chunk.Chunk, cols []ResultColumn, where *ast.Node, like string) (*chunk.Chunk, error) {
	rel := &catalog.Relation{Name: "show", Kind: catalog.System}
	for _, rc := range cols {
		rel.Columns = append(rel.Columns, catalog.Column{Name: rc.Name, Type: rc.Type})
	}
	text := parser.QuoteIdent(cols[0].Name) + " LIKE " + parser.QuoteLiteral(like)
	if where != nil {
		var err error
		if text, err = parser.DeparseExpr(where); err != nil {
			return nil, err
		}
	}
	e, err := bind.Scalar(text, rel, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	sel, err := expr.Filter(s.exprCtx(nil), e, c)
	if err != nil {
		return nil, err
	}
	return c.Gather(sel), nil
}

var createCols = textCols("Name", "Create Sql")

// showCreate is SHOW CREATE kind name.
func (s *Session) showCreate(x *parser.ShowCreate) (*Result, error) {
	r, err := s.find(x.Name)
	if err != nil {
		return nil, err
	}
	if want, ok := dropKinds[x.Kind]; ok && r.Kind != want {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not %s", r.Name, article(kindName(want))).At(x.Name.Pos)
	}
	c, err := listingChunk(createCols, [][]string{{r.Schema + "." + r.Name, createText(r)}})
	if err != nil {
		return nil, err
	}
	return rowsResult("SHOW", createCols, c), nil
}

// createText is the statement that would create r again.
func createText(r *catalog.Relation) string {
	name := parser.QuoteIdent(r.Name)
	if r.Schema != "public" {
		name = parser.QuoteIdent(r.Schema) + "." + name
	}
	switch r.Kind {
	case catalog.View:
		return "CREATE VIEW " + name + " AS " + r.Definition
	case catalog.MaterializedView:
		return "CREATE MATERIALIZED VIEW " + name + " AS " + r.Definition
	case catalog.Sink:
		var with []string
		for _, o := range r.With {
			with = append(with, o.Name+" = "+parser.QuoteLiteral(o.Value))
		}
		return "CREATE SINK " + name + " AS " + r.Definition + " WITH (" + strings.Join(with, ", ") + ")"
	}
	return r.Definition
}

// describe is DESCRIBE name: columns, then keys, indexes, comment and health.
func (s *Session) describe(x *parser.Describe) (*Result, error) {
	r, err := s.find(x.Name)
	if err != nil {
		return nil, err
	}
	if x.Fragments {
		j := s.db.jobs.Job(r.ID)
		if j == nil {
			return nil, sqlerr.New(sqlerr.WrongObjectType, "%s %q has no job", kindName(r.Kind), r.Name).At(x.Name.Pos)
		}
		return s.textResult("QUERY PLAN", plan.ExplainGraph(j.Graph)), nil
	}
	cols := textCols("Name", "Type", "Is Hidden", "Description")
	rows := describeColumns(r)
	line := func(name, v string) {
		if v != "" {
			rows = append(rows, []string{name, v, "", ""})
		}
	}
	line("primary key", keyText(r, r.Key))
	var dist []string
	for _, d := range r.Dist {
		dist = append(dist, r.Columns[d].Name)
	}
	line("distribution key", strings.Join(dist, ", "))
	for _, i := range s.db.Catalog().Indexes(r.ID) {
		row := indexRow(s, i)
		line(i.Name, "index("+row[2]+", include("+row[3]+"), distributed by("+row[4]+"))")
	}
	line("table description", r.Name)
	line("comment", r.Comment)
	if r.HasRows() {
		state := "running"
		if r.Failed != "" {
			state = "stopped: " + r.Failed
		} else if r.Building {
			state = "being created"
		}
		line("state", state)
		line("rows", thousands(s.db.Rows(r.ID)))
		line("size", fmt.Sprintf("%.1f MB", float64(s.db.Bytes(r.ID))/1e6))
		if j := s.db.jobs.Job(r.ID); j != nil {
			if n, _ := j.ExprErrors(); n > 0 {
				line("expression errors", thousands(n)+" (see rw_catalog.rw_expression_errors)")
			}
		}
	}
	c, err := listingChunk(cols, rows)
	if err != nil {
		return nil, err
	}
	return rowsResult("DESCRIBE", cols, c), nil
}

// textResult is a result of one text column, a row a line.
func (s *Session) textResult(name, text string) *Result {
	col := chunk.New(types.Text, 16)
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		col.Append(types.NewString(strings.TrimSuffix(line, "\n")))
	}
	return rowsResult("EXPLAIN", textCols(name), chunk.Make(col))
}

// showSetting is SHOW name and SHOW ALL.
func (s *Session) showSetting(name string) (*Result, error) {
	if strings.EqualFold(name, "all") {
		cols := textCols("name", "setting", "description")
		var rows [][]string
		for _, d := range sortedSettings() {
			rows = append(rows, []string{d.name, s.set.get(d.name), d.desc})
		}
		c, err := listingChunk(cols, rows)
		if err != nil {
			return nil, err
		}
		return rowsResult("SHOW", cols, c), nil
	}
	d, err := findSetting(name)
	if err != nil {
		return nil, err
	}
	col := chunk.New(types.Text, 1)
	col.Append(types.NewString(s.set.get(d.name)))
	return rowsResult("SHOW", textCols(d.name), chunk.Make(col)), nil
}

func sortedSettings() []*settingDef {
	out := make([]*settingDef, 0, len(settingDefs))
	for _, d := range settingDefs {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *settingDef) int { return cmp.Compare(strings.ToLower(a.name), strings.ToLower(b.name)) })
	return out
}

// utilityColumns are the result columns of a statement that is no query, before it runs.
func (s *Session) utilityColumns(stmt parser.Statement) ([]ResultColumn, error) {
	switch x := stmt.Ext.(type) {
	case *parser.Show:
		return listings[x.What].cols, nil
	case *parser.ShowCreate:
		return createCols, nil
	case *parser.Describe:
		if x.Fragments {
			return textCols("QUERY PLAN"), nil
		}
		return textCols("Name", "Type", "Is Hidden", "Description"), nil
	case *parser.Explain:
		return textCols("QUERY PLAN"), nil
	case *parser.CancelJobs:
		return []ResultColumn{{Name: "Id", Type: types.Int4}}, nil
	case *parser.Check:
		v, err := s.checkedView(x)
		if err != nil {
			return nil, err
		}
		return checkColumns(v), nil
	}
	if stmt.Node == nil {
		return nil, nil
	}
	switch n := stmt.Node.GetNode().(type) {
	case *ast.Node_VariableShowStmt:
		if strings.EqualFold(n.VariableShowStmt.Name, "all") {
			return textCols("name", "setting", "description"), nil
		}
		d, err := findSetting(n.VariableShowStmt.Name)
		if err != nil {
			return nil, err
		}
		return textCols(d.name), nil
	case *ast.Node_ExecuteStmt:
		if p := s.prepared[n.ExecuteStmt.Name]; p != nil {
			return p.Columns, nil
		}
	case *ast.Node_FetchStmt:
		if c := s.cursors[n.FetchStmt.Portalname]; c != nil && !n.FetchStmt.Ismove {
			return c.cols, nil
		}
	}
	return nil, nil
}
