package bind

import (
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A column is one that a FROM clause offers.
type column struct {
	name   string
	typ    types.Type
	index  int // in the row of the FROM clause
	hidden bool
	sys    bool // system column: found by name only, and only where nothing else is
	table  *table
	origin plan.Origin
}

// A table is a FROM item under the name by which columns are qualified.
type table struct {
	alias  string
	schema string            // "": an alias hides the schema
	rel    *catalog.Relation // nil: a subquery, function or join
	cols   []*column
	work   bool // what a recursive query's step reads
}

// A from is a bound FROM clause, or a part of one.
type from struct {
	node   plan.Node
	tables []*table  // names that qualify columns
	cols   []*column // what unqualified names and * mean, in order
	// covered are the names of tables that the alias of a join hides.
	covered []string
}

func (f *from) width() int {
	if f == nil || f.node == nil {
		return 0
	}
	return len(f.node.Schema())
}

// shifted is f with its columns n further right, as the right side of a join has them.
func (f *from) shifted(n int) *from {
	if n == 0 {
		return f
	}
	moved := map[*column]*column{}
	move := func(c *column) *column {
		m := moved[c]
		if m == nil {
			m = new(column)
			*m = *c
			m.index += n
			moved[c] = m
		}
		return m
	}
	out := &from{node: f.node, covered: f.covered}
	for _, t := range f.tables {
		nt := *t
		nt.cols = make([]*column, len(t.cols))
		for i, c := range t.cols {
			nt.cols[i] = move(c)
			nt.cols[i].table = &nt
		}
		out.tables = append(out.tables, &nt)
	}
	for _, c := range f.cols {
		out.cols = append(out.cols, move(c))
	}
	return out
}

// A scope is one level of names. The chain of parents is the chain of rows at
// run time: every scope counts as a level for OuterRefs, blind ones included.
type scope struct {
	from   *from
	parent *scope
	// blind: the row is there but may not be named (a FROM item without LATERAL).
	blind bool
	// used: an OuterRef to this scope was made. Only kept for scopes of lateral joins.
	used bool
	// outer: the join is RIGHT or FULL, so its right side may not refer to the left.
	outer bool
	// env: where the subquery stands that is being bound inside this row; nil: none is.
	env *env
}

// blindTo copies the chain from s up to stop (not included) so that only the
// names of stop and beyond can be seen, at the levels they have from s.
func blindTo(s, stop *scope) *scope {
	if s == stop || s == nil {
		return s
	}
	return &scope{from: s.from, parent: blindTo(s.parent, stop), blind: true}
}

// ref makes the reference to column c of the scope level out from here.
func (b *binder) ref(c *column, level, pos int) expr.Expr {
	name := c.name
	if c.table != nil && c.table.alias != "" {
		name = c.table.alias + "." + c.name
	}
	var e expr.Expr
	if level == 0 {
		e = &expr.ColRef{Index: c.index, Typ: c.typ, Name: name}
	} else {
		e = &expr.OuterRef{Level: level, Index: c.index, Typ: c.typ, Name: name}
	}
	if pos >= 0 {
		b.pos[e] = pos
	}
	return e
}

// found is where a name was found.
type found struct {
	col   *column
	level int
	scope *scope
}

// lookup finds an unqualified column; col nil: there is none.
func (s *scope) lookup(name string, pos int) (found, error) {
	level := 0
	for ; s != nil; s, level = s.parent, level+1 {
		if s.blind || s.from == nil {
			continue
		}
		var hit *column
		for _, c := range s.from.cols {
			if c.name != name || c.sys || c == hit {
				continue
			}
			if hit != nil {
				if hit.hidden != c.hidden { // a hidden column gives way
					if hit.hidden {
						hit = c
					}
					continue
				}
				return found{}, sqlerr.New(sqlerr.AmbiguousColumn, `column reference "%s" is ambiguous`, name).At(pos)
			}
			hit = c
		}
		if hit == nil {
			for _, c := range s.from.cols {
				if c.sys && c.name == name {
					if hit != nil {
						return found{}, sqlerr.New(sqlerr.AmbiguousColumn, `column reference "%s" is ambiguous`, name).At(pos)
					}
					hit = c
				}
			}
		}
		if hit != nil {
			return found{hit, level, s}, nil
		}
	}
	return found{}, nil
}

// lookupTable finds a FROM item by its name; t nil: there is none.
func (s *scope) lookupTable(schema, name string, pos int) (t *table, level int, at *scope, err error) {
	for ; s != nil; s, level = s.parent, level+1 {
		if s.blind || s.from == nil {
			continue
		}
		for _, c := range s.from.tables {
			if c.alias != name || schema != "" && schema != c.schema {
				continue
			}
			if t != nil {
				return nil, 0, nil, sqlerr.New("42P09", `table reference "%s" is ambiguous`, name).At(pos)
			}
			t = c
		}
		if t != nil {
			return t, level, s, nil
		}
	}
	return nil, 0, nil, nil
}

// noTable is the error for a qualifier that names no FROM item.
func (s *scope) noTable(name string, pos int) error {
	for t := s; t != nil; t = t.parent {
		if t.from == nil {
			continue
		}
		if slices.Contains(t.from.covered, name) {
			return sqlerr.New(sqlerr.UndefinedTable, `invalid reference to FROM-clause entry for table "%s"`, name).At(pos).
				WithHint(`There is an entry for table "%s", but it cannot be referenced from this part of the query.`, name)
		}
		for _, c := range t.from.tables {
			if t.blind && c.alias == name {
				return sqlerr.New(sqlerr.UndefinedTable, `invalid reference to FROM-clause entry for table "%s"`, name).At(pos).
					WithHint(`There is an entry for table "%s", but it cannot be referenced from this part of the query.`, name)
			}
			if !t.blind && c.rel != nil && c.rel.Name == name && c.alias != name {
				return sqlerr.New(sqlerr.UndefinedTable, `invalid reference to FROM-clause entry for table "%s"`, name).At(pos).
					WithHint(`Perhaps you meant to reference the table alias "%s".`, c.alias)
			}
		}
	}
	err := sqlerr.New(sqlerr.UndefinedTable, `missing FROM-clause entry for table "%s"`, name).At(pos)
	var names []string
	for t := s; t != nil; t = t.parent {
		if t.from != nil && !t.blind {
			for _, c := range t.from.tables {
				names = append(names, c.alias)
			}
		}
	}
	if near := sqlerr.Nearest(name, names); near != "" {
		err = err.WithHint(`Perhaps you meant to reference the table alias "%s".`, near)
	}
	return err
}

// noColumn is the error for an unqualified name that is no column.
func (s *scope) noColumn(name string, pos int) error {
	err := sqlerr.New(sqlerr.UndefinedColumn, `column "%s" does not exist`, name).At(pos)
	for t := s; t != nil; t = t.parent {
		if t.from == nil || !t.blind {
			continue
		}
		for _, tab := range t.from.tables {
			for _, c := range tab.cols {
				if c.name == name && !c.sys {
					return err.WithHint(`There is a column named "%s" in table "%s", but it cannot be referenced from this part of the query.`, name, tab.alias)
				}
			}
		}
	}
	var names []string
	for t := s; t != nil; t = t.parent {
		if t.from == nil || t.blind {
			continue
		}
		for _, tab := range t.from.tables {
			for _, c := range tab.cols {
				if !c.sys && !c.hidden {
					names = append(names, tab.alias+"."+c.name)
				}
			}
		}
	}
	if near := sqlerr.NearestBy(name, names, func(n string) string { return n[strings.LastIndexByte(n, '.')+1:] }); near != "" {
		return err.WithHint(`Perhaps you meant to reference the column "%s".`, near)
	}
	return err
}

// columnRef binds a, t.a or s.t.a.
func (e *env) columnRef(n *ast.ColumnRef) (expr.Expr, error) {
	pos := int(n.Location)
	if n.Fields[len(n.Fields)-1].GetAStar() != nil {
		return nil, sqlerr.Unsupported("a row expansion via \"*\" here").At(pos)
	}
	names := strs(n.Fields)
	switch len(names) {
	case 1:
		f, err := e.scope.lookup(names[0], pos)
		if err != nil {
			return nil, err
		}
		if f.col == nil {
			if t, _, _, err := e.scope.lookupTable("", names[0], pos); err == nil && t != nil {
				return nil, sqlerr.Unsupported(`the whole-row reference "%s"`, names[0]).At(pos)
			}
			return nil, e.noColumn(names[0], pos)
		}
		return e.found(f, pos)
	case 2, 3, 4:
		if len(names) == 4 {
			names = names[1:] // the database's name
		}
		schema := ""
		if len(names) == 3 {
			schema, names = names[0], names[1:]
		}
		t, level, s, err := e.scope.lookupTable(schema, names[0], pos)
		if err != nil {
			return nil, err
		}
		if t == nil {
			if other, _, _, err := e.scope.lookupTable("", names[0], -1); schema != "" && err == nil && other != nil {
				return nil, sqlerr.New(sqlerr.UndefinedTable, `invalid reference to FROM-clause entry for table "%s"`, names[0]).At(pos).
					WithHint(`There is an entry for table "%s", but it cannot be referenced from this part of the query.`, names[0])
			}
			return nil, e.scope.noTable(names[0], pos)
		}
		i := slices.IndexFunc(t.cols, func(c *column) bool { return c.name == names[1] })
		if i < 0 {
			err := sqlerr.New(sqlerr.UndefinedColumn, "column %s.%s does not exist", names[0], names[1]).At(pos)
			var all []string
			for _, c := range t.cols {
				if !c.hidden && !c.sys {
					all = append(all, c.name)
				}
			}
			if near := sqlerr.Nearest(names[1], all); near != "" {
				err = err.WithHint(`Perhaps you meant to reference the column "%s.%s".`, names[0], near)
			}
			return nil, err
		}
		c := t.cols[i]
		if n := countName(t.cols, names[1]); n > 1 && !c.sys {
			return nil, sqlerr.New(sqlerr.AmbiguousColumn, `column reference "%s" is ambiguous`, names[1]).At(pos)
		}
		return e.found(found{c, level, s}, pos)
	}
	return nil, sqlerr.New(sqlerr.Syntax, "improper qualified name (too many dotted names): %s", strings.Join(names, ".")).At(pos)
}

func countName(cols []*column, name string) int {
	n := 0
	for _, c := range cols {
		if c.name == name && !c.hidden {
			n++
		}
	}
	return n
}

// noColumn is scope.noColumn with this environment's scope, which may be nil.
func (e *env) noColumn(name string, pos int) error {
	if e.noColumns != nil {
		return at(e.noColumns, pos)
	}
	return e.scope.noColumn(name, pos)
}

// found makes the reference to a column that lookup found.
func (e *env) found(f found, pos int) (expr.Expr, error) {
	if e.noColumns != nil && f.level == 0 {
		return nil, at(e.noColumns, pos)
	}
	if f.col.sys {
		return systemColumn(f.col, pos)
	}
	f.scope.used = true
	if f.scope.outer {
		return nil, sqlerr.New("42P10", `invalid reference to FROM-clause entry for table "%s"`, f.col.table.alias).At(pos).
			WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
	}
	return e.b.ref(f.col, f.level, pos), nil
}

// systemColumns are the columns every relation has besides its own.
var systemColumns = [...]struct {
	name string
	typ  types.Type
}{
	{"tableoid", types.Oid},
	{"ctid", types.Type{OID: types.OIDTid}},
	{"xmin", types.Xid},
	{"xmax", types.Xid},
}

// systemColumn is the value of a system column: constants, and of user relations only tableoid.
func systemColumn(c *column, pos int) (expr.Expr, error) {
	rel := c.table.rel
	switch c.name {
	case "tableoid":
		return &expr.Const{Val: types.NewInt(int64(rel.ID)), Typ: c.typ}, nil
	case "ctid":
		if rel.Kind == catalog.System {
			return &expr.Const{Typ: c.typ}, nil
		}
	case "xmin", "xmax":
		if rel.Kind == catalog.System {
			return &expr.Const{Val: types.NewInt(0), Typ: c.typ}, nil
		}
	}
	return nil, sqlerr.Unsupported(`the system column "%s" of a table`, c.name).At(pos)
}
