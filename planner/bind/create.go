package bind

import (
	"fmt"
	"slices"

	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// vnodes is how many parts a new relation's rows are hashed into.
const vnodes = 64

// rowID is the hidden key of a table without a primary key.
const rowID = "_row_id"

// creationSchema is the schema that a new relation goes into.
func (o Options) creationSchema(schema, name string, pos int) (string, error) {
	if schema == "" {
		for _, s := range o.SearchPath {
			if s != "pg_catalog" && o.Cat.HasSchema(s) {
				return s, nil
			}
		}
		return "", sqlerr.New(sqlerr.InvalidSchema, "no schema has been selected to create in").At(pos)
	}
	switch {
	case schema == "pg_catalog" || schema == "information_schema" || schema == "rw_catalog":
		return "", sqlerr.New("42501", `permission denied to create "%s.%s"`, schema, name).At(pos).
			WithDetail("System catalog modifications are currently disallowed.")
	case !o.Cat.HasSchema(schema):
		return "", sqlerr.New(sqlerr.InvalidSchema, `schema "%s" does not exist`, schema).At(pos)
	}
	return schema, nil
}

// refuseClauses says no to clauses that the tree does not show and binding does not know.
func refuseClauses(c parser.Clauses) error {
	switch {
	case c.EmitOnWindowClose != nil:
		return sqlerr.Unsupported("EMIT ON WINDOW CLOSE").At(c.EmitOnWindowClose.Pos)
	case len(c.Temporal) > 0:
		return sqlerr.Unsupported("FOR SYSTEM_TIME AS OF PROCTIME()").At(c.Temporal[0].Pos)
	case len(c.Asof) > 0:
		return sqlerr.Unsupported("ASOF JOIN").At(c.Asof[0].Pos)
	case len(c.Types) > 0 && c.Types[0].Fields != nil:
		return sqlerr.Unsupported("a struct type").At(c.Types[0].Pos)
	case len(c.Types) > 0:
		return sqlerr.Unsupported("a map type").At(c.Types[0].Pos)
	}
	return nil
}

// refuseColumns says no to what a column list may hold besides columns and generated ones.
func refuseColumns(c parser.Columns, include []parser.Include) error {
	switch {
	case c.Wildcard:
		return sqlerr.Unsupported("* among the columns")
	case len(c.Watermarks) > 0:
		return sqlerr.Unsupported("WATERMARK FOR").At(c.Watermarks[0].Pos)
	case len(include) > 0:
		return sqlerr.Unsupported("INCLUDE").At(include[0].Pos)
	}
	return nil
}

// CreateTable binds CREATE TABLE with a column list; the relation has no ID yet.
func CreateTable(stmt parser.Statement, o Options) (*catalog.Relation, error) {
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, err
	}
	s := stmt.Node.GetCreateStmt()
	ext, _ := stmt.Ext.(*parser.CreateTable)
	if ext != nil {
		s = ext.Create
	}
	if s == nil {
		return nil, sqlerr.New(sqlerr.Internal, "CreateTable: not a CREATE TABLE with a column list")
	}
	t := &tableBinder{b: newBinder(scalarOptions(o)), rel: &catalog.Relation{Kind: catalog.Table}}
	if err := t.head(stmt, s.Relation, o); err != nil {
		return nil, err
	}
	if ext != nil {
		if err := t.extension(ext); err != nil {
			return nil, err
		}
	}
	if err := t.elements(s); err != nil {
		return nil, err
	}
	if err := t.finish(ext); err != nil {
		return nil, err
	}
	return t.rel, nil
}

// CreateSource binds CREATE SOURCE; the relation has no ID yet.
func CreateSource(stmt parser.Statement, o Options) (*catalog.Relation, error) {
	ext, ok := stmt.Ext.(*parser.CreateSource)
	if !ok {
		return nil, sqlerr.New(sqlerr.Internal, "CreateSource: not a CREATE SOURCE")
	}
	if err := refuseClauses(stmt.Clauses); err != nil {
		return nil, err
	}
	if err := refuseColumns(ext.Columns, ext.Include); err != nil {
		return nil, err
	}
	if len(ext.Columns.Generated) > 0 {
		return nil, sqlerr.Unsupported("a generated column of a source").At(ext.Columns.Generated[0].Pos)
	}
	t := &tableBinder{b: newBinder(scalarOptions(o)), rel: &catalog.Relation{Kind: catalog.Source, AppendOnly: true, Conflict: catalog.ConflictNone}}
	name := &ast.RangeVar{Schemaname: ext.Name.Schema, Relname: ext.Name.Name, Location: int32(ext.Name.Pos)}
	if err := t.head(stmt, name, o); err != nil {
		return nil, err
	}
	if err := t.connector(ext.With, ext.Format); err != nil {
		return nil, err
	}
	if err := t.elements(ext.Create); err != nil {
		return nil, err
	}
	switch {
	case t.keyPos >= 0 && t.key != nil:
		return nil, sqlerr.Unsupported("a PRIMARY KEY of a source").At(t.keyPos).WithHint("Use CREATE TABLE with the same connector, which keeps the rows.")
	case len(t.checks) > 0:
		return nil, sqlerr.Unsupported("a CHECK constraint of a source").At(t.checks[0].pos)
	case len(t.rel.Columns) == 0:
		return nil, sqlerr.New("42P16", `source "%s" has no columns`, t.rel.Name).At(ext.Name.Pos)
	}
	for i, d := range t.defaults {
		if d.Default != nil {
			return nil, sqlerr.Unsupported(`a DEFAULT of column "%s" of a source`, t.rel.Columns[i].Name).At(location(d.Default))
		}
	}
	return t.rel, nil
}

// A tableBinder gathers a relation from a column list.
type tableBinder struct {
	b        *binder
	rel      *catalog.Relation
	defaults []columnExprs // of each column
	key      []string      // of PRIMARY KEY; nil: none
	keyName  string
	keyPos   int
	checks   []check
	computed []parser.Generated
	// identities are the columns declared GENERATED … AS IDENTITY.
	identities map[string]bool
	found      map[string]int // where NULL or NOT NULL was said of a column
}

type columnExprs struct{ Default, Generated *ast.Node }

type check struct {
	name   string
	column string // the column it stands at; "": the table
	x      *ast.Node
	pos    int
}

// head takes what all CREATE statements have.
func (t *tableBinder) head(stmt parser.Statement, n *ast.RangeVar, o Options) error {
	if n.Relpersistence == "t" {
		return sqlerr.Unsupported("a temporary table").At(int(n.Location))
	}
	schema, err := o.creationSchema(n.Schemaname, n.Relname, int(n.Location))
	if err != nil {
		return err
	}
	r := t.rel
	r.Schema, r.Name = schema, n.Relname
	r.Definition, r.Owner, r.SearchPath = stmt.Text, o.User, slices.Clone(o.SearchPath)
	r.Vnodes = vnodes
	return nil
}

func (t *tableBinder) extension(ext *parser.CreateTable) error {
	if err := refuseColumns(ext.Columns, ext.Include); err != nil {
		return err
	}
	switch {
	case len(ext.VersionColumns) > 0:
		return sqlerr.Unsupported("WITH VERSION COLUMN").At(ext.Pos)
	case ext.From != nil:
		return sqlerr.Unsupported("CREATE TABLE … FROM a source").At(ext.From.Pos)
	case ext.Engine != "" && ext.Engine != "hummock":
		return sqlerr.Unsupported("ENGINE = %s", ext.Engine).At(ext.Pos)
	}
	t.rel.AppendOnly = ext.AppendOnly
	t.computed = ext.Columns.Generated
	for _, op := range ext.With {
		if op.Name == "connector" {
			return t.connector(ext.With, ext.Format)
		}
	}
	if ext.Format != nil {
		return sqlerr.New(sqlerr.InvalidParameter, "FORMAT needs a connector in WITH").At(ext.Format.Pos)
	}
	for _, op := range ext.With {
		switch op.Name {
		case "fillfactor", "autovacuum_enabled", "toast.autovacuum_enabled", "retention_seconds", "source_rate_limit", "dml_rate_limit", "backfill_rate_limit":
			t.rel.With = append(t.rel.With, catalog.Option{Name: op.Name, Value: op.Value})
		default:
			return sqlerr.New(sqlerr.InvalidParameter, `unrecognized parameter "%s"`, op.Name).At(op.Pos)
		}
	}
	return nil
}

// connector takes the WITH options of a source and its format.
func (t *tableBinder) connector(with []parser.Option, f *parser.Format) error {
	r := t.rel
	has := false
	for _, op := range with {
		if op.Kind == parser.SecretRef {
			return sqlerr.Unsupported("a secret as a value").At(op.ValuePos)
		}
		if slices.ContainsFunc(r.With, func(o catalog.Option) bool { return o.Name == op.Name }) {
			return sqlerr.New(sqlerr.Syntax, `parameter "%s" specified more than once`, op.Name).At(op.Pos)
		}
		has = has || op.Name == "connector"
		r.With = append(r.With, catalog.Option{Name: op.Name, Value: op.Value})
	}
	if !has {
		return sqlerr.New(sqlerr.InvalidParameter, `source "%s" needs a connector`, r.Name).
			WithHint("For example, WITH (connector = 'datagen').")
	}
	if f != nil {
		if f.KeyEncode != "" {
			return sqlerr.Unsupported("KEY ENCODE").At(f.Pos)
		}
		r.With = append(r.With, catalog.Option{Name: "format", Value: f.Format}, catalog.Option{Name: "encode", Value: f.Encode})
		for _, op := range f.Options {
			r.With = append(r.With, catalog.Option{Name: "encode." + op.Name, Value: op.Value})
		}
	}
	return nil
}

// elements binds columns and constraints.
func (t *tableBinder) elements(s *ast.CreateStmt) error {
	t.keyPos, t.found, t.identities = -1, map[string]int{}, map[string]bool{}
	pos := int(s.Relation.GetLocation())
	switch {
	case len(s.InhRelations) > 0 || s.Partbound != nil:
		return sqlerr.Unsupported("INHERITS or PARTITION OF").At(pos)
	case s.Partspec != nil:
		return sqlerr.Unsupported("PARTITION BY").At(pos)
	case s.OfTypename != nil:
		return sqlerr.Unsupported("a table of a composite type").At(pos)
	case s.Tablespacename != "":
		return sqlerr.Unsupported("TABLESPACE").At(pos)
	case s.AccessMethod != "" && s.AccessMethod != "heap":
		return sqlerr.Unsupported("access method %s", s.AccessMethod).At(pos)
	}
	for _, n := range s.TableElts {
		var err error
		switch x := n.Node.(type) {
		case *ast.Node_ColumnDef:
			err = t.column(x.ColumnDef)
		case *ast.Node_Constraint:
			err = t.constraint(x.Constraint, "")
		case *ast.Node_TableLikeClause:
			err = t.like(x.TableLikeClause)
		default:
			err = sqlerr.Unsupported("%s in CREATE TABLE", nodeName(n))
		}
		if err != nil {
			return err
		}
	}
	for _, n := range s.Constraints {
		if err := t.constraint(n.GetConstraint(), ""); err != nil {
			return err
		}
	}
	for _, g := range t.computed {
		i := t.index(g.Column)
		if i < 0 {
			return sqlerr.New(sqlerr.UndefinedColumn, `column "%s" does not exist`, g.Column).At(g.Pos)
		}
		t.defaults[i].Generated = g.Expr
	}
	return nil
}

func (t *tableBinder) index(name string) int {
	return slices.IndexFunc(t.rel.Columns, func(c catalog.Column) bool { return c.Name == name })
}

func (t *tableBinder) column(d *ast.ColumnDef) error {
	pos := int(d.Location)
	if t.index(d.Colname) >= 0 {
		return sqlerr.New(sqlerr.DuplicateColumn, `column "%s" specified more than once`, d.Colname).At(pos)
	}
	if isSystem(d.Colname) {
		return sqlerr.New(sqlerr.DuplicateColumn, `column name "%s" conflicts with a system column name`, d.Colname).At(pos)
	}
	if d.TypeName == nil {
		return sqlerr.New(sqlerr.Syntax, `column "%s" has no type`, d.Colname).At(pos)
	}
	serial, err := t.serial(d)
	if err != nil {
		return err
	}
	typ := serial
	if serial.OID == 0 {
		if typ, err = t.b.typeName(d.TypeName); err != nil {
			return err
		}
	}
	if err := storable(d.Colname, typ, int(d.TypeName.Location)); err != nil {
		return err
	}
	if d.CollClause != nil {
		if !collatable(typ) {
			return sqlerr.New(sqlerr.DatatypeMismatch, "collations are not supported by type %s", types.FormatType(typ)).At(int(d.CollClause.Location))
		}
		if names := strs(d.CollClause.Collname); !byteCollation(names[len(names)-1]) {
			return noCollation(names, int(d.CollClause.Location))
		}
	}
	t.rel.Columns = append(t.rel.Columns, catalog.Column{Name: d.Colname, Type: typ, NotNull: d.IsNotNull})
	t.defaults = append(t.defaults, columnExprs{Default: d.RawDefault})
	if serial.OID != 0 {
		if err := t.fromSequence(len(t.defaults)-1, pos); err != nil {
			return err
		}
	}
	for _, c := range d.Constraints {
		if err := t.constraint(c.GetConstraint(), d.Colname); err != nil {
			return err
		}
	}
	return nil
}

func isSystem(name string) bool {
	for _, s := range systemColumns {
		if s.name == name {
			return true
		}
	}
	return name == "cmin" || name == "cmax"
}

// storable refuses types that no table can hold.
func storable(column string, t types.Type, pos int) error {
	switch t.OID {
	case types.OIDUnknown, types.OIDVoid, types.OIDRecord, types.OIDAny, types.OIDAnyArray, types.OIDAnyElement:
		return sqlerr.New("42P16", `column "%s" has pseudo-type %s`, column, types.FormatType(t)).At(pos)
	}
	return nil
}

// constraint takes a constraint of a column, or of the table if column is "".
func (t *tableBinder) constraint(c *ast.Constraint, column string) error {
	pos := int(c.Location)
	i := t.index(column)
	switch c.Contype {
	case ast.ConstrType_CONSTR_NULL, ast.ConstrType_CONSTR_NOTNULL:
		is := 1
		if c.Contype == ast.ConstrType_CONSTR_NOTNULL {
			is = 2
		}
		if was := t.found[column]; was != 0 && was != is {
			return sqlerr.New(sqlerr.Syntax, `conflicting NULL/NOT NULL declarations for column "%s" of table "%s"`, column, t.rel.Name).At(pos)
		}
		t.found[column] = is
		t.rel.Columns[i].NotNull = is == 2
	case ast.ConstrType_CONSTR_DEFAULT:
		if t.defaults[i].Default != nil {
			return sqlerr.New(sqlerr.Syntax, `multiple default values specified for column "%s" of table "%s"`, column, t.rel.Name).At(pos)
		}
		if t.defaults[i].Generated != nil {
			return t.bothExprs(column, pos)
		}
		t.defaults[i].Default = c.RawExpr
	case ast.ConstrType_CONSTR_GENERATED:
		if t.defaults[i].Default != nil {
			return t.bothExprs(column, pos)
		}
		t.defaults[i].Generated = c.RawExpr
	case ast.ConstrType_CONSTR_IDENTITY:
		return t.identity(c, i)
	case ast.ConstrType_CONSTR_CHECK:
		t.checks = append(t.checks, check{c.Conname, column, c.RawExpr, pos})
	case ast.ConstrType_CONSTR_PRIMARY:
		if t.key != nil {
			return sqlerr.New("42P16", `multiple primary keys for table "%s" are not allowed`, t.rel.Name).At(pos)
		}
		if len(c.Including) > 0 || c.Deferrable {
			return sqlerr.Unsupported("a PRIMARY KEY with INCLUDE or DEFERRABLE").At(pos)
		}
		t.key, t.keyName, t.keyPos = strs(c.Keys), c.Conname, pos
		if column != "" {
			t.key = []string{column}
		}
	case ast.ConstrType_CONSTR_UNIQUE:
		return sqlerr.Unsupported("a UNIQUE constraint").At(pos).WithHint("A PRIMARY KEY is kept unique.")
	case ast.ConstrType_CONSTR_FOREIGN:
		return sqlerr.Unsupported("a FOREIGN KEY constraint").At(pos)
	case ast.ConstrType_CONSTR_EXCLUSION:
		return sqlerr.Unsupported("an EXCLUDE constraint").At(pos)
	case ast.ConstrType_CONSTR_ATTR_NOT_DEFERRABLE, ast.ConstrType_CONSTR_ATTR_IMMEDIATE:
	default:
		return sqlerr.Unsupported("a deferrable constraint").At(pos)
	}
	return nil
}

func (t *tableBinder) bothExprs(column string, pos int) error {
	return sqlerr.New(sqlerr.Syntax, `both default and generation expression specified for column "%s" of table "%s"`, column, t.rel.Name).At(pos)
}

// finish binds defaults, generated columns and checks, and settles the key.
func (t *tableBinder) finish(ext *parser.CreateTable) error {
	r := t.rel
	if err := t.primaryKey(ext); err != nil {
		return err
	}
	for i := range r.Columns {
		if err := t.columnExprs(i); err != nil {
			return err
		}
	}
	for _, c := range t.checks {
		x, err := t.b.scalarNode(c.x, r, "check constraints")
		if err != nil {
			return err
		}
		if _, err := t.b.boolean(x, c.x, "CHECK"); err != nil {
			return err
		}
		text, err := parser.DeparseExpr(c.x)
		if err != nil {
			return err
		}
		if c.name == "" {
			c.name = t.checkName(c, x)
		} else if slices.ContainsFunc(r.Checks, func(o catalog.Check) bool { return o.Name == c.name }) {
			return sqlerr.New(sqlerr.DuplicateObject, `check constraint "%s" already exists`, c.name).At(c.pos)
		}
		r.Checks = append(r.Checks, catalog.Check{Name: c.name, Expr: text})
	}
	return nil
}

// checkName names a check as PostgreSQL does: after its column if it has one.
func (t *tableBinder) checkName(c check, x expr.Expr) string {
	base := t.rel.Name
	if cols := expr.Columns(x); c.column != "" {
		base += "_" + c.column
	} else if len(cols) == 1 {
		base += "_" + t.rel.Columns[cols[0]].Name
	}
	base += "_check"
	name := base
	for n := 1; slices.ContainsFunc(t.rel.Checks, func(o catalog.Check) bool { return o.Name == name }); n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	return name
}

func (t *tableBinder) columnExprs(i int) error {
	if i >= len(t.defaults) {
		return nil // the hidden row id
	}
	c := &t.rel.Columns[i]
	d := t.defaults[i]
	if d.Default != nil && d.Generated != nil {
		return t.bothExprs(c.Name, location(d.Default))
	}
	n, rel, clause := d.Default, (*catalog.Relation)(nil), "DEFAULT expressions"
	if d.Generated != nil {
		n, rel, clause = d.Generated, t.rel, "column generation expressions"
	}
	if n == nil {
		return nil
	}
	text, err := parser.DeparseExpr(n)
	if err != nil {
		return err
	}
	if d.Generated != nil {
		c.Generated = text
	} else {
		c.Default = text
	}
	x, err := t.b.scalarNode(n, rel, clause)
	if err != nil {
		return err
	}
	if x, err = t.b.coerceColumn(x, *c, clause, location(n)); err != nil {
		return err
	}
	if d.Generated == nil {
		return nil
	}
	if expr.VolatilityOf(x) != expr.Immutable {
		return sqlerr.New("42P17", "generation expression is not immutable").At(location(n))
	}
	for _, k := range expr.Columns(x) {
		if k < len(t.defaults) && t.defaults[k].Generated != nil {
			return sqlerr.New("42P17", `cannot use generated column "%s" in column generation expression`, t.rel.Columns[k].Name).
				WithDetail("A generated column cannot reference another generated column.").At(location(n))
		}
	}
	return nil
}

// primaryKey settles the relation's key: the declared one, or a hidden row id.
func (t *tableBinder) primaryKey(ext *parser.CreateTable) error {
	r := t.rel
	r.Conflict = catalog.ConflictNone
	if t.key != nil {
		for _, name := range t.key {
			i := t.index(name)
			if i < 0 {
				return sqlerr.New(sqlerr.UndefinedColumn, `column "%s" named in key does not exist`, name).At(t.keyPos)
			}
			c := &r.Columns[i]
			if slices.ContainsFunc(r.Key, func(k catalog.KeyColumn) bool { return k.Col == i }) {
				return sqlerr.New(sqlerr.DuplicateColumn, `column "%s" appears twice in primary key constraint`, name).At(t.keyPos)
			}
			if err := sortable(c.Type, t.keyPos); err != nil {
				return sqlerr.New(sqlerr.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", types.FormatType(c.Type)).At(t.keyPos)
			}
			c.NotNull = true
			r.Key = append(r.Key, catalog.KeyColumn{Col: i})
		}
		r.PrimaryKey = len(r.Key)
		r.Conflict = catalog.ConflictError
		if r.PrimaryKeyName = t.keyName; r.PrimaryKeyName == "" {
			r.PrimaryKeyName = r.Name + "_pkey"
		}
	} else {
		if i := t.index(rowID); i >= 0 {
			return sqlerr.New(sqlerr.DuplicateColumn, `column name "%s" conflicts with a system column name`, rowID).
				WithHint("A table without a primary key has a hidden column of that name.")
		}
		r.Key = []catalog.KeyColumn{{Col: len(r.Columns)}}
		r.Columns = append(r.Columns, catalog.Column{Name: rowID, Type: types.Int8, NotNull: true, Hidden: true})
	}
	r.Dist = r.KeyCols()
	if ext == nil || ext.OnConflict == parser.ConflictNone {
		return nil
	}
	if t.key == nil {
		return sqlerr.New(sqlerr.InvalidParameter, `table "%s" has an ON CONFLICT clause but no primary key`, r.Name).At(ext.Pos)
	}
	switch ext.OnConflict {
	case parser.ConflictOverwrite:
		r.Conflict = catalog.ConflictOverwrite
	case parser.ConflictIgnore:
		r.Conflict = catalog.ConflictIgnore
	case parser.ConflictUpdateIfNotNull:
		r.Conflict = catalog.ConflictUpdateIfNotNull
	default:
		return sqlerr.Unsupported("ON CONFLICT %s", ext.OnConflict).At(ext.Pos)
	}
	if r.AppendOnly && r.Conflict != catalog.ConflictIgnore {
		return sqlerr.New(sqlerr.InvalidParameter, "an append only table can only ignore conflicts").At(ext.Pos)
	}
	return nil
}
