package engine

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// Definitions name what they read. When a relation gets another name, the texts
// that mean it are changed to say so, and those that now would mean another one as
// well, since what a definition reads is settled when it is made: FROM t becomes
// FROM public.u AS t. Texts keep everything else, comments too.

// A nameEdit replaces a part of a text.
type nameEdit struct {
	from, to int
	text     string
}

// A renamer finds the names of relations in a definition.
type renamer struct {
	text  string
	now   func(schema, name string) *catalog.Relation // what a name means before the change; nil: nothing
	then  func(schema, name string) *catalog.Relation // and after it
	named func(catalog.ID) *catalog.Relation          // after the change
	edits []nameEdit
	bare  bool // the grammar takes no alias after the name
}

// walk looks at a tree; ctes are the WITH queries in scope.
func (w *renamer) walk(m protoreflect.Message, ctes []string) {
	switch x := m.Interface().(type) {
	case *ast.SelectStmt:
		if with := x.WithClause; with != nil {
			inner := slices.Clone(ctes)
			if with.Recursive {
				for _, c := range with.Ctes {
					inner = append(inner, c.GetCommonTableExpr().GetCtename())
				}
			}
			for _, c := range with.Ctes {
				w.walk(c.GetCommonTableExpr().GetCtequery().ProtoReflect(), inner)
				inner = append(inner, c.GetCommonTableExpr().GetCtename())
			}
			ctes = inner
		}
	case *ast.WithClause:
		return // seen with its query
	case *ast.RangeVar:
		w.relation(x, ctes)
		return
	case *ast.RangeFunction:
		if arg := windowedName(x); arg != nil {
			rv := &ast.RangeVar{Location: arg.Location}
			for _, f := range arg.Fields {
				rv.Schemaname, rv.Relname = rv.Relname, f.GetString_().GetSval()
			}
			bare := w.bare
			w.bare = true
			w.relation(rv, ctes)
			w.bare = bare
		}
	case *ast.ColumnRef:
		w.column(x)
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Kind() != protoreflect.MessageKind || !m.Has(f):
		case f.IsList():
			list := m.Get(f).List()
			for k := range list.Len() {
				w.walk(list.Get(k).Message(), ctes)
			}
		default:
			w.walk(m.Get(f).Message(), ctes)
		}
	}
}

// windowedName is the relation that TUMBLE(…) or HOP(…) in FROM names; nil: it is neither.
func windowedName(x *ast.RangeFunction) *ast.ColumnRef {
	if len(x.Functions) != 1 {
		return nil
	}
	items := x.Functions[0].GetList().GetItems()
	if len(items) == 0 {
		return nil
	}
	call := items[0].GetFuncCall()
	if call == nil || len(call.Funcname) != 1 || len(call.Args) == 0 {
		return nil
	}
	if n := call.Funcname[0].GetString_().GetSval(); n != "tumble" && n != "hop" {
		return nil
	}
	return call.Args[0].GetColumnRef()
}

// meant is the relation that a name must mean, if the text does not say so any more; nil: it does.
func (w *renamer) meant(schema, name string) *catalog.Relation {
	was := w.now(schema, name)
	if was == nil {
		return nil
	}
	if is := w.then(schema, name); is != nil && is.ID == was.ID {
		return nil
	}
	return w.named(was.ID)
}

func (w *renamer) relation(rv *ast.RangeVar, ctes []string) {
	if rv.Schemaname == "" && slices.Contains(ctes, rv.Relname) {
		return
	}
	r := w.meant(rv.Schemaname, rv.Relname)
	if r == nil {
		return
	}
	from := int(rv.Location)
	text := qualified(&parser.Name{Schema: r.Schema, Name: r.Name})
	if !w.bare && rv.Alias == nil && r.Name != rv.Relname {
		text += " AS " + parser.QuoteIdent(rv.Relname)
	}
	w.edits = append(w.edits, nameEdit{from, endOfName(w.text, from, 3), text})
}

// column takes the schema out of schema.relation.column where the relation has moved: it has an alias now.
func (w *renamer) column(c *ast.ColumnRef) {
	if len(c.Fields) != 3 {
		return
	}
	schema, name := c.Fields[0].GetString_().GetSval(), c.Fields[1].GetString_().GetSval()
	r := w.meant(schema, name)
	if r == nil {
		return
	}
	from := int(c.Location)
	w.edits = append(w.edits, nameEdit{from, endOfName(w.text, from, 2), parser.QuoteIdent(name)})
}

// endOfName is where a name of at most n parts that begins at from ends. Blanks may stand around the dots.
func endOfName(text string, from, n int) int {
	at, end := from, from
	for range n {
		if at < len(text) && text[at] == '"' {
			for at++; at < len(text); at++ {
				if text[at] != '"' {
					continue
				}
				if at+1 == len(text) || text[at+1] != '"' {
					break
				}
				at++
			}
			at++
		} else {
			for at < len(text) && (text[at] == '_' || text[at] == '$' || text[at] >= 0x80 || text[at]|0x20 >= 'a' && text[at]|0x20 <= 'z' || text[at] >= '0' && text[at] <= '9') {
				at++
			}
		}
		end = min(at, len(text))
		at += len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\r\n"))
		if at >= len(text) || text[at] != '.' {
			return end
		}
		at++
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n"))
	}
	return end
}

// renamedText is a relation's definition as it must read after a change of names from the catalog now to then.
func renamedText(r *catalog.Relation, now, then *catalog.Snapshot) (string, error) {
	w := &renamer{text: r.Definition, named: then.ByID, now: lookup(now, r), then: lookup(then, r)}
	var stmt parser.Statement
	var err error
	if r.Kind == catalog.Index {
		stmt, err = parser.ParseOne(r.Definition)
		w.bare = true
	} else {
		stmt, err = parser.ParseQuery(r.Definition)
	}
	if err != nil {
		return "", err
	}
	switch x := stmt.Ext.(type) {
	case nil:
		w.walk(stmt.Node.ProtoReflect(), nil)
	case *parser.CreateIndex:
		w.walk(x.Create.ProtoReflect(), nil)
	}
	// From the end, so that the offsets of those before stay.
	slices.SortFunc(w.edits, func(a, b nameEdit) int { return cmp.Compare(b.from, a.from) })
	text := r.Definition
	for _, e := range w.edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text, nil
}

// lookup is how the definition of r resolves names.
func lookup(cat *catalog.Snapshot, r *catalog.Relation) func(schema, name string) *catalog.Relation {
	path := r.SearchPath
	if len(path) == 0 {
		path = []string{"public"}
	}
	return func(schema, name string) *catalog.Relation {
		if schema != "" {
			return cat.Relation(schema, name)
		}
		return cat.Resolve(path, name)
	}
}

// rename returns the relations as they are after some of them, put, have got other
// names: those, and all whose definitions or plans say so. The caller holds ddl.
func (db *DB) rename(put []*catalog.Relation) ([]*catalog.Relation, error) {
	now := db.Catalog()
	then := now.With(put, nil)
	changed := map[catalog.ID]*catalog.Relation{}
	for _, r := range put {
		changed[r.ID] = r
	}
	for _, r := range then.Relations() {
		switch r.Kind {
		case catalog.View, catalog.MaterializedView, catalog.Index, catalog.Sink:
		default:
			continue
		}
		old, new := now, then
		if r.Kind != catalog.View { // the text of a view is read with what its readers know
			old, new = before(now, r), before(then, r)
		}
		text, err := renamedText(r, old, new)
		if err != nil {
			return nil, err
		}
		if text != r.Definition {
			n := *r
			n.Definition = text
			changed[r.ID] = &n
		}
	}
	then = then.With(sortedRelations(changed), nil)
	// Names are a part of the plans that are compared at a restart.
	for _, old := range now.Relations() {
		n := then.ByID(old.ID)
		if n.Kind == catalog.View && changed[n.ID] != nil {
			if err := db.sameView(old, n, then); err != nil {
				return nil, err
			}
		}
		if n.Plan == nil || n.Failed != "" || !db.reads(then, n, put) {
			continue
		}
		in, err := db.samePlan(old, n, now, then, put)
		if err != nil {
			return nil, err
		}
		if changed[n.ID] == nil && in.Fingerprint == n.Plan.Fingerprint {
			continue
		}
		c := *n
		c.Plan = in
		changed[n.ID] = &c
	}
	return sortedRelations(changed), nil
}

func sortedRelations(m map[catalog.ID]*catalog.Relation) []*catalog.Relation {
	out := make([]*catalog.Relation, 0, len(m))
	for _, r := range m {
		out = append(out, r)
	}
	slices.SortFunc(out, byID)
	return out
}

// reads reports whether r is one of some relations or reads one, directly or through views.
func (db *DB) reads(cat *catalog.Snapshot, r *catalog.Relation, some []*catalog.Relation) bool {
	if slices.ContainsFunc(some, func(s *catalog.Relation) bool { return s.ID == r.ID || s.ID == r.Of }) {
		return true
	}
	for _, id := range r.DependsOn {
		d := cat.ByID(id)
		if d == nil {
			continue
		}
		if d.Kind == catalog.View && db.reads(cat, d, some) || slices.ContainsFunc(some, func(s *catalog.Relation) bool { return s.ID == id }) {
			return true
		}
	}
	return false
}

// sameView checks that a view whose text was changed still gives the same columns.
func (db *DB) sameView(old, n *catalog.Relation, then *catalog.Snapshot) error {
	q, err := bindDefinition(n, then, jobExprCtx("UTC"))
	if err != nil {
		return err
	}
	if !slices.EqualFunc(q.Root.Schema().Types(), old.Columns, func(t types.Type, c catalog.Column) bool { return t.Equal(c.Type) }) {
		return sqlerr.Unsupported("a change of names that changes the view %q", old.Name)
	}
	return nil
}

// renamedOrder puts new names into a recorded backfill order.
func renamedOrder(text string, now *catalog.Snapshot, put []*catalog.Relation) string {
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return text
	}
	arcs := strings.Split(strings.TrimSuffix(text[open+1:], ")"), ", ")
	for i, arc := range arcs {
		names := strings.Split(arc, " -> ")
		for k, name := range names {
			for _, n := range put {
				if old := now.ByID(n.ID); old.Name == name {
					names[k] = n.Name
					break
				}
			}
		}
		arcs[i] = strings.Join(names, " -> ")
	}
	return text[:open+1] + strings.Join(arcs, ", ") + ")"
}
