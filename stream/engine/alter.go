package engine

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"streamdb/planner"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// objectKinds are PostgreSQL's kinds of what can be renamed and moved.
var objectKinds = map[ast.ObjectType]parser.ObjectKind{
	ast.ObjectType_OBJECT_TABLE: parser.Table, ast.ObjectType_OBJECT_VIEW: parser.View,
	ast.ObjectType_OBJECT_MATVIEW: parser.MaterializedView, ast.ObjectType_OBJECT_INDEX: parser.Index,
}

// rename is ALTER … RENAME of a relation or of a column.
func (s *Session) rename(n *ast.RenameStmt) (*Result, error) {
	kind, ok := objectKinds[n.RenameType]
	name := rangeVarName(n.Relation)
	switch {
	case n.Relation == nil:
		return nil, sqlerr.Unsupported("ALTER %s … RENAME", objectWords(n.RenameType))
	case n.RenameType == ast.ObjectType_OBJECT_COLUMN:
		kind := objectKinds[n.RelationType]
		return s.alterRelation(kind, name, n.MissingOk, func(r *catalog.Relation) error {
			if err := s.notRead(r); err != nil {
				return err
			}
			return renameColumn(r, n.Subname, n.Newname)
		})
	case !ok:
		return nil, sqlerr.Unsupported("ALTER %s … RENAME", objectWords(n.RenameType))
	}
	return s.alterRelation(kind, name, n.MissingOk, func(r *catalog.Relation) error { return s.moveTo(r, r.Schema, n.Newname) })
}

// setSchema is ALTER … SET SCHEMA.
func (s *Session) setSchema(n *ast.AlterObjectSchemaStmt) (*Result, error) {
	kind, ok := objectKinds[n.ObjectType]
	if !ok || n.Relation == nil {
		return nil, sqlerr.Unsupported("ALTER %s … SET SCHEMA", objectWords(n.ObjectType))
	}
	return s.alterRelation(kind, rangeVarName(n.Relation), n.MissingOk, func(r *catalog.Relation) error { return s.moveTo(r, n.Newschema, r.Name) })
}

// alterObject is RENAME TO, OWNER TO and SET SCHEMA of sources and sinks.
func (s *Session) alterObject(x *parser.AlterObject) (*Result, error) {
	return s.alterRelation(x.Kind, x.Name, x.IfExists, func(r *catalog.Relation) error {
		switch x.Action {
		case "RENAME":
			return s.moveTo(r, r.Schema, x.To)
		case "SCHEMA":
			return s.moveTo(r, x.To, r.Name)
		}
		return sqlerr.Unsupported("ALTER %s … OWNER TO", x.Kind).At(x.Pos)
	})
}

func objectWords(t ast.ObjectType) string {
	return strings.ReplaceAll(strings.TrimPrefix(t.String(), "OBJECT_"), "_", " ")
}

func rangeVarName(rv *ast.RangeVar) parser.Name {
	return parser.Name{Pos: int(rv.GetLocation()), Schema: rv.GetSchemaname(), Name: rv.GetRelname()}
}

// alterRelation changes what the catalog says of a relation. change gets a copy.
func (s *Session) alterRelation(kind parser.ObjectKind, name parser.Name, ifExists bool, change func(*catalog.Relation) error) (*Result, error) {
	tag := "ALTER " + string(kind)
	if err := s.notInBlock(tag); err != nil {
		return nil, err
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	r, err := s.alterable(kind, name)
	if err != nil {
		if ifExists && sqlerr.Code(err) == sqlerr.UndefinedTable {
			s.noticef("relation %q does not exist, skipping", name.Name)
			return done(tag), nil
		}
		return nil, err
	}
	n := *r
	n.Columns = slices.Clone(r.Columns)
	if err := change(&n); err != nil {
		return nil, err
	}
	return done(tag), s.putNames(&n)
}

// alterable resolves the name of a relation that is to be changed.
func (s *Session) alterable(kind parser.ObjectKind, name parser.Name) (*catalog.Relation, error) {
	r, err := s.find(name)
	if err != nil {
		return nil, err
	}
	switch want, ok := dropKinds[kind]; {
	case r.Kind == catalog.System:
		return nil, sqlerr.New("42501", "permission denied: %q is a system catalog", r.Name).At(name.Pos)
	case ok && r.Kind != want:
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not %s", r.Name, article(kindName(want))).At(name.Pos)
	case r.Building:
		return nil, sqlerr.New("55006", "%s %q is being created", kindName(r.Kind), r.Name).At(name.Pos)
	}
	return r, nil
}

// putNames changes names of relations, wherever they are said.
func (s *Session) putNames(put ...*catalog.Relation) error {
	db := s.db
	for _, n := range slices.Clone(put) {
		if old := db.Catalog().ByID(n.ID); old.Schema == n.Schema {
			continue
		}
		for _, i := range db.Catalog().Indexes(n.ID) { // they are where their relation is
			if other := db.Catalog().Any(n.Schema, i.Name); other != nil {
				return sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists in schema %q", i.Name, n.Schema)
			}
			c := *i
			c.Schema = n.Schema
			put = append(put, &c)
		}
	}
	for _, n := range put {
		if n.Kind == catalog.Table || n.Kind == catalog.Index {
			n.Definition = definitionText(db.Catalog(), n)
		}
	}
	all, err := db.rename(put)
	if err != nil {
		return err
	}
	return db.change(all, nil, nil)
}

// swap is ALTER … SWAP WITH: two relations take each other's name, and who reads them goes on reading the same one.
func (s *Session) swap(x *parser.AlterSwap) (*Result, error) {
	tag := "ALTER " + string(x.Kind)
	if err := s.notInBlock(tag); err != nil {
		return nil, err
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	a, err := s.alterable(x.Kind, x.Name)
	if err != nil {
		return nil, err
	}
	b, err := s.alterable(x.Kind, x.Other)
	if err != nil {
		return nil, err
	}
	if a.ID == b.ID {
		return nil, sqlerr.New(sqlerr.InvalidParameter, "%s %q cannot be swapped with itself", kindName(a.Kind), a.Name).At(x.Other.Pos)
	}
	na, nb := *a, *b
	na.Schema, na.Name, nb.Schema, nb.Name = b.Schema, b.Name, a.Schema, a.Name
	return done(tag), s.putNames(&na, &nb)
}

// notRead refuses to change the names of columns that the definitions of others may name.
func (s *Session) notRead(r *catalog.Relation) error {
	var by []string
	for _, d := range s.db.Catalog().Dependents(r.ID) {
		by = append(by, fmt.Sprintf("%s %s depends on %s %s", kindName(d.Kind), d.Name, kindName(r.Kind), r.Name))
	}
	if len(by) == 0 {
		return nil
	}
	return sqlerr.New(sqlerr.DependentObjects, "cannot alter %s %s because other objects depend on it", kindName(r.Kind), r.Name).
		WithDetail("%s", strings.Join(by, "\n")).WithHint("Their definitions name it. Drop them first and create them again afterwards.")
}

// moveTo gives a relation another name or schema.
func (s *Session) moveTo(r *catalog.Relation, schema, name string) error {
	cat := s.db.Catalog()
	switch {
	case !cat.HasSchema(schema):
		return sqlerr.New(sqlerr.InvalidSchema, "schema %q does not exist", schema)
	case slices.Contains(systemSchemas, schema) && schema != "public":
		return sqlerr.New("42501", "permission denied to create %q", schema+"."+name).WithDetail("System catalog modifications are currently disallowed.")
	case schema != r.Schema && cat.Any(schema, name) != nil:
		return sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists in schema %q", name, schema)
	case cat.Any(schema, name) != nil:
		return sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists", name)
	}
	r.Schema, r.Name = schema, name
	return nil
}

func renameColumn(r *catalog.Relation, from, to string) error {
	at := slices.IndexFunc(r.Columns, func(c catalog.Column) bool { return c.Name == from && !c.Hidden })
	switch {
	case at < 0:
		return sqlerr.New(sqlerr.UndefinedColumn, "column %q does not exist", from)
	case slices.ContainsFunc(r.Columns, func(c catalog.Column) bool { return c.Name == to }):
		return sqlerr.New(sqlerr.DuplicateColumn, "column %q of relation %q already exists", to, r.Name)
	}
	switch r.Kind {
	case catalog.Table:
		if len(r.With) > 0 {
			return sqlerr.Unsupported("RENAME COLUMN of a table with options")
		}
		word := regexp.MustCompile(`(?i)(^|[^\pL\d_])` + regexp.QuoteMeta(from) + `($|[^\pL\d_])`)
		for _, c := range r.Checks {
			if word.MatchString(c.Expr) {
				return sqlerr.Unsupported("RENAME COLUMN of a column that the constraint %q names", c.Name)
			}
		}
		for _, c := range r.Columns {
			if word.MatchString(c.Generated) {
				return sqlerr.Unsupported("RENAME COLUMN of a column that the generated column %q names", c.Name)
			}
		}
		r.Columns[at].Name = to
	case catalog.View:
		r.Columns[at].Name = to
		r.Definition = "SELECT * FROM (" + r.Definition + ") AS _v(" + quotedNames(r.Columns) + ")"
	default:
		return sqlerr.Unsupported("RENAME COLUMN of %s", article(kindName(r.Kind)))
	}
	return nil
}

// samePlan plans a relation after a change of the names of put and checks that its state still fits.
func (db *DB) samePlan(old, n *catalog.Relation, now, then *catalog.Snapshot, put []*catalog.Relation) (*catalog.PlanInput, error) {
	out := *n.Plan
	if order, ok := out.Settings["backfill_order"]; ok {
		out.Settings = maps.Clone(out.Settings)
		out.Settings["backfill_order"] = renamedOrder(order, now, put)
	}
	in := &recordedPlan{&out}
	set := db.plannerSettings(in.get)
	var err error
	if set.BackfillOrder, err = planner.ParseBackfillOrder(in.Settings["backfill_order"]); err != nil {
		return nil, err
	}
	was, err := db.replan(old)
	if err != nil {
		return nil, err
	}
	g, _, err := db.planJob(n, before(then, n), set, in.stats(), jobExprCtx(in.get("timezone")))
	if err != nil {
		return nil, err
	}
	a, b := was.Tables(), g.Tables()
	reads := func(a, b plan.Upstream) bool { return a.Rel == b.Rel && a.To == b.To }
	if len(a) != len(b) || len(was.Fragments) != len(g.Fragments) || !slices.EqualFunc(was.Upstreams, g.Upstreams, reads) {
		return nil, sqlerr.Unsupported("a change of names after which %q is planned in another way", old.Name)
	}
	for i := range b {
		b[i].ID = a[i].ID
	}
	out.Fingerprint = fingerprint(g)
	return &out, nil
}

// definitionText is the CREATE statement of a table or an index, written anew.
func definitionText(cat *catalog.Snapshot, r *catalog.Relation) string {
	name := qualified(&parser.Name{Schema: r.Schema, Name: r.Name})
	if r.Kind == catalog.Index {
		return indexText(cat, r)
	}
	var parts []string
	for _, c := range r.Columns {
		if c.Hidden {
			continue
		}
		p := parser.QuoteIdent(c.Name) + " " + types.FormatType(c.Type)
		if c.Generated != "" {
			p += " GENERATED ALWAYS AS (" + c.Generated + ") STORED"
		}
		if c.Default != "" {
			p += " DEFAULT " + c.Default
		}
		if c.NotNull {
			p += " NOT NULL"
		}
		parts = append(parts, p)
	}
	if r.PrimaryKey > 0 {
		var key []string
		for _, k := range r.Key[:r.PrimaryKey] {
			key = append(key, parser.QuoteIdent(r.Columns[k.Col].Name))
		}
		parts = append(parts, "CONSTRAINT "+parser.QuoteIdent(r.PrimaryKeyName)+" PRIMARY KEY ("+strings.Join(key, ", ")+")")
	}
	for _, c := range r.Checks {
		parts = append(parts, "CONSTRAINT "+parser.QuoteIdent(c.Name)+" CHECK ("+c.Expr+")")
	}
	text := "CREATE TABLE " + name + " (" + strings.Join(parts, ", ") + ")"
	if r.AppendOnly {
		text += " APPEND ONLY"
	}
	switch r.Conflict {
	case catalog.ConflictOverwrite:
		text += " ON CONFLICT OVERWRITE"
	case catalog.ConflictIgnore:
		text += " ON CONFLICT IGNORE"
	case catalog.ConflictUpdateIfNotNull:
		text += " ON CONFLICT DO UPDATE IF NOT NULL"
	}
	if len(r.With) > 0 {
		var with []string
		for _, o := range r.With {
			with = append(with, o.Name+" = "+parser.QuoteLiteral(o.Value))
		}
		text += " WITH (" + strings.Join(with, ", ") + ")"
	}
	return text
}

// indexText puts a new name into an index's definition.
func indexText(cat *catalog.Snapshot, r *catalog.Relation) string {
	stmt, err := parser.ParseOne(r.Definition)
	if err != nil {
		return r.Definition
	}
	n := stmt.Node.GetIndexStmt()
	if x, ok := stmt.Ext.(*parser.CreateIndex); ok {
		n = x.Create
	}
	if n == nil || n.Relation == nil {
		return r.Definition
	}
	on := int(n.Relation.Location)
	head := "CREATE INDEX "
	if n.Unique {
		head = "CREATE UNIQUE INDEX "
	}
	return head + parser.QuoteIdent(r.Name) + " ON " + r.Definition[on:]
}

// alterTable is what PostgreSQL's ALTER TABLE and its kin do to the catalog alone.
func (s *Session) alterTable(n *ast.AlterTableStmt) (*Result, error) {
	for _, c := range n.Cmds {
		cmd := c.GetAlterTableCmd()
		switch cmd.GetSubtype() {
		case ast.AlterTableType_AT_ChangeOwner:
			owner := cmd.GetNewowner().GetRolename()
			if owner != s.user {
				return nil, sqlerr.Unsupported("ALTER %s … OWNER TO another user", objectWords(n.Objtype))
			}
		default:
			return nil, sqlerr.Unsupported("ALTER %s … %s", objectWords(n.Objtype), strings.ReplaceAll(strings.TrimPrefix(cmd.GetSubtype().String(), "AT_"), "_", " "))
		}
	}
	return done("ALTER " + objectWords(n.Objtype)), nil
}
