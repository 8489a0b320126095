package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// dropKinds says which relations each DROP takes.
var dropKinds = map[parser.ObjectKind]catalog.Kind{
	parser.Table: catalog.Table, parser.View: catalog.View, parser.MaterializedView: catalog.MaterializedView,
	parser.Index: catalog.Index, parser.Source: catalog.Source, parser.Sink: catalog.Sink,
}

// drop is DROP TABLE, VIEW, MATERIALIZED VIEW, INDEX, SOURCE and SINK. It works on
// what is being created as well.
func (s *Session) drop(ctx context.Context, kind parser.ObjectKind, names []parser.Name, ifExists, cascade bool) (*Result, error) {
	if err := s.notInBlock("DROP " + string(kind)); err != nil {
		return nil, err
	}
	want, ok := dropKinds[kind]
	if !ok {
		return nil, sqlerr.Unsupported("DROP %s", kind)
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	cat := db.Catalog()
	var roots []*catalog.Relation
	for _, n := range names {
		r := s.findAny(n)
		if r == nil {
			msg := fmt.Sprintf("%s %q does not exist", kindName(want), n.Name)
			if ifExists {
				s.notice("NOTICE", sqlerr.New("00000", "%s, skipping", msg))
				continue
			}
			e := sqlerr.New(sqlerr.UndefinedTable, "%s", msg).At(n.Pos)
			if want == catalog.Index {
				e.Code = sqlerr.UndefinedObject
			}
			return nil, e
		}
		if r.Kind == catalog.System {
			return nil, sqlerr.New("42501", "permission denied: %q is a system catalog", r.Name).At(n.Pos)
		}
		if r.Kind != want {
			return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not %s", r.Name, article(kindName(want))).At(n.Pos).
				WithHint("Use DROP %s to remove %s.", strings.ToUpper(kindName(r.Kind)), article(kindName(r.Kind)))
		}
		roots = append(roots, r)
	}
	all, err := s.dependents(cat, roots, cascade)
	if err != nil {
		return nil, err
	}
	if err := db.dropAll(all); err != nil {
		return nil, err
	}
	return done("DROP " + string(kind)), nil
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// dependents returns roots and all that must go with them, readers last. Without
// cascade only what belongs to a root itself (its indexes) goes with it.
func (s *Session) dependents(cat *catalog.Snapshot, roots []*catalog.Relation, cascade bool) ([]*catalog.Relation, error) {
	all := slices.Clone(roots)
	var blocked []string
	var extra []string
	for i := 0; i < len(all); i++ {
		for _, d := range cat.Dependents(all[i].ID) {
			if slices.Contains(all, d) {
				continue
			}
			if d.Kind != catalog.Index || d.Of != all[i].ID {
				if !cascade {
					blocked = append(blocked, fmt.Sprintf("%s %s depends on %s %s", kindName(d.Kind), d.Name, kindName(all[i].Kind), all[i].Name))
					continue
				}
				extra = append(extra, fmt.Sprintf("drop cascades to %s %s", kindName(d.Kind), d.Name))
			}
			all = append(all, d)
		}
	}
	if len(blocked) > 0 {
		slices.Sort(blocked)
		return nil, sqlerr.New(sqlerr.DependentObjects, "cannot drop %s %s because other objects depend on it", kindName(roots[0].Kind), roots[0].Name).
			WithDetail("%s", strings.Join(blocked, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	if len(extra) == 1 {
		s.noticef("%s", extra[0])
	} else if len(extra) > 1 {
		s.notice("NOTICE", sqlerr.New("00000", "drop cascades to %d other objects", len(extra)).WithDetail("%s", strings.Join(extra, "\n")))
	}
	return all, nil
}

// dropAll removes relations, their jobs and their rows. The caller holds ddl.
func (db *DB) dropAll(all []*catalog.Relation) error {
	if len(all) == 0 {
		return nil
	}
	slices.Reverse(all) // readers first
	return db.remove(all, nil)
}

// findAny resolves a name, also of what is being created; nil: there is none.
func (s *Session) findAny(n parser.Name) *catalog.Relation {
	cat := s.db.Catalog()
	if n.Schema != "" {
		return cat.Any(n.Schema, n.Name)
	}
	for _, p := range append(s.searchPath(), "pg_catalog") {
		if r := cat.Any(p, n.Name); r != nil {
			return r
		}
	}
	return nil
}

// find resolves a name or says that it does not exist.
func (s *Session) find(n parser.Name) (*catalog.Relation, error) {
	if r := s.findAny(n); r != nil {
		return r, nil
	}
	name := n.Name
	if n.Schema != "" {
		name = n.Schema + "." + n.Name
	}
	e := sqlerr.New(sqlerr.UndefinedTable, "relation %q does not exist", name).At(n.Pos)
	var names []string
	for _, r := range s.db.Catalog().Relations() {
		if r.Kind != catalog.System {
			names = append(names, r.Name)
		}
	}
	if near := sqlerr.Nearest(n.Name, names); near != "" {
		e.WithHint("Perhaps you meant %q.", near)
	}
	return nil, e
}

// dropStmt is PostgreSQL's DROP statement.
func (s *Session) dropStmt(ctx context.Context, d *ast.DropStmt) (*Result, error) {
	kinds := map[ast.ObjectType]parser.ObjectKind{
		ast.ObjectType_OBJECT_TABLE: parser.Table, ast.ObjectType_OBJECT_VIEW: parser.View,
		ast.ObjectType_OBJECT_MATVIEW: parser.MaterializedView, ast.ObjectType_OBJECT_INDEX: parser.Index,
	}
	cascade := d.Behavior == ast.DropBehavior_DROP_CASCADE
	if d.RemoveType == ast.ObjectType_OBJECT_SCHEMA {
		for _, o := range d.Objects {
			if err := s.dropSchema(o.GetString_().GetSval(), d.MissingOk, cascade); err != nil {
				return nil, err
			}
		}
		return done("DROP SCHEMA"), nil
	}
	kind, ok := kinds[d.RemoveType]
	if !ok {
		return nil, sqlerr.Unsupported("DROP %s", strings.ReplaceAll(strings.TrimPrefix(d.RemoveType.String(), "OBJECT_"), "_", " "))
	}
	var names []parser.Name
	for _, o := range d.Objects {
		n := parser.Name{Pos: -1}
		for _, part := range o.GetList().GetItems() {
			n.Catalog, n.Schema, n.Name = n.Schema, n.Name, part.GetString_().GetSval()
		}
		names = append(names, n)
	}
	return s.drop(ctx, kind, names, d.MissingOk, cascade)
}

func (s *Session) dropSchema(name string, ifExists, cascade bool) error {
	db := s.db
	if err := s.notInBlock("DROP SCHEMA"); err != nil {
		return err
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	cat := db.Catalog()
	if !cat.HasSchema(name) {
		if ifExists {
			s.noticef("schema %q does not exist, skipping", name)
			return nil
		}
		return sqlerr.New(sqlerr.InvalidSchema, "schema %q does not exist", name)
	}
	if slices.Contains(systemSchemas, name) {
		return sqlerr.New(sqlerr.DependentObjects, "cannot drop schema %s because it is required by the database system", name)
	}
	var roots []*catalog.Relation
	for _, r := range cat.Relations() {
		if r.Schema == name {
			roots = append(roots, r)
		}
	}
	if len(roots) > 0 && !cascade {
		return sqlerr.New(sqlerr.DependentObjects, "cannot drop schema %s because other objects depend on it", name).
			WithDetail("%s %s.%s depends on schema %s", kindName(roots[0].Kind), name, roots[0].Name, name).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	all, err := s.dependents(cat, roots, true)
	if err != nil {
		return err
	}
	if err := db.dropAll(all); err != nil {
		return err
	}
	return db.changeSchema(name, true)
}

// createSchema is CREATE SCHEMA.
func (s *Session) createSchema(n *ast.CreateSchemaStmt) (*Result, error) {
	db := s.db
	if len(n.SchemaElts) > 0 {
		return nil, sqlerr.Unsupported("CREATE SCHEMA with elements")
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if db.Catalog().HasSchema(n.Schemaname) {
		if n.IfNotExists {
			s.notice("NOTICE", sqlerr.New("42P06", "schema %q already exists, skipping", n.Schemaname))
			return done("CREATE SCHEMA"), nil
		}
		return nil, sqlerr.New("42P06", "schema %q already exists", n.Schemaname)
	}
	if strings.HasPrefix(n.Schemaname, "pg_") {
		return nil, sqlerr.New("42939", "unacceptable schema name %q", n.Schemaname).WithDetail(`The prefix "pg_" is reserved for system schemas.`)
	}
	if err := db.changeSchema(n.Schemaname, false); err != nil {
		return nil, err
	}
	return done("CREATE SCHEMA"), nil
}
