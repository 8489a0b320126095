package syscat

import (
	"slices"

	"streamdb/sql/types"
)

const (
	internalLanguage = 12
	databaseOID      = 5
	tablespaceOID    = 1663
)

// roles are the users there are reasons to know of, the superuser first.
func roles(w *world, in Info) []string {
	names := []string{in.User()}
	for i := range w.objects().classes {
		names = append(names, w.objects().classes[i].owner())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	out := []string{systemOwner}
	for _, n := range names {
		if n != "" && n != systemOwner {
			out = append(out, n)
		}
	}
	return out
}

func roleTable(oid, name string, fixed map[string]any) source {
	cols := map[string]column[string]{name: str(func(r *string) string { return *r })}
	if oid != "" {
		cols[oid] = num(func(r *string) int64 { return roleOID(*r) })
	}
	return &table[string]{rows: roles, changing: true, cols: cols, fixed: fixed}
}

// A described is a row of pg_description.
type described struct {
	class, object, sub int64
	text               string
}

func descriptions(w *world, _ Info) []described {
	var out []described
	for i := range w.objects().classes {
		c := &w.objects().classes[i]
		if c.primary {
			continue
		}
		if c.rel.Comment != "" {
			out = append(out, described{classOfClass, c.oid, 0, c.rel.Comment})
		}
		if c.kind == 'i' {
			continue
		}
		for k := range c.attrs {
			if a := &c.attrs[k]; a.col.Comment != "" {
				out = append(out, described{classOfClass, c.oid, a.num, a.col.Comment})
			}
		}
	}
	return out
}

// A dependency is a row of pg_depend: the first object cannot be without the second.
type dependency struct {
	class, object, sub          int64
	refClass, refObject, refSub int64
	kind                        byte // a: dropped with it; i: part of it; n: in its way
}

func dependencies(w *world, in Info) []dependency {
	o := w.objects()
	var out []dependency
	for _, d := range defaults(w, in) {
		out = append(out, dependency{classOfDefault, defaultOID(d.attr), 0, classOfClass, d.class.oid, d.num, 'a'})
	}
	for _, c := range constraints(w, in) {
		for _, k := range c.keys {
			out = append(out, dependency{classOfConstraint, c.oid, 0, classOfClass, c.table.oid, k, 'a'})
		}
		if c.index != 0 {
			out = append(out, dependency{classOfClass, c.index, 0, classOfConstraint, c.oid, 0, 'i'})
		}
	}
	for i := range o.indexes {
		if x := &o.indexes[i]; !x.primary {
			for _, k := range x.keyNumbers() {
				out = append(out, dependency{classOfClass, x.oid, 0, classOfClass, x.table.oid, k, 'a'})
			}
		}
	}
	for i := range o.classes {
		c := &o.classes[i]
		switch {
		case c.system() || c.kind == 'i':
		case c.kind == 'v' || c.kind == 'm':
			out = append(out, dependency{classOfRewrite, ruleOID(c), 0, classOfClass, c.oid, 0, 'i'})
			for _, d := range c.rel.DependsOn {
				out = append(out, dependency{classOfRewrite, ruleOID(c), 0, classOfClass, int64(d), 0, 'n'})
			}
		default:
			for _, d := range c.rel.DependsOn {
				out = append(out, dependency{classOfClass, c.oid, 0, classOfClass, int64(d), 0, 'n'})
			}
		}
		if !c.system() && c.schema != "public" {
			out = append(out, dependency{classOfClass, c.oid, 0, classOfNamespace, schemaOID(c.schema), 0, 'n'})
		}
	}
	return out
}

// userViews are the views and materialized views.
func userViews(w *world, _ Info) []*class {
	var out []*class
	for i := range w.objects().classes {
		if c := &w.objects().classes[i]; !c.system() && (c.kind == 'v' || c.kind == 'm') {
			out = append(out, c)
		}
	}
	return out
}

func objectSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_database": &list{
			cols: []string{"oid", "datname", "datdba", "encoding", "datlocprovider", "datallowconn", "datconnlimit", "datfrozenxid", "datminmxid", "dattablespace", "datcollate", "datctype"},
			rows: func(_ *world, in Info) [][]any {
				return [][]any{{databaseOID, in.Database(), rootRole, 6, "c", true, -1, 0, 0, tablespaceOID, "C", "C"}}
			},
		},
		"pg_catalog.pg_tablespace": &list{
			cols: []string{"oid", "spcname", "spcowner"},
			rows: func(*world, Info) [][]any {
				return [][]any{{tablespaceOID, "pg_default", rootRole}, {tablespaceOID + 1, "pg_global", rootRole}}
			},
		},
		"pg_catalog.pg_am": &list{
			cols: []string{"oid", "amname", "amhandler", "amtype"},
			rows: func(*world, Info) [][]any {
				return [][]any{{heapMethod, "heap", 3, "t"}, {btreeMethod, "btree", 330, "i"}, {405, "hash", 331, "i"}}
			},
		},
		"pg_catalog.pg_language": &list{
			cols: []string{"oid", "lanname", "lanowner", "lanispl", "lanpltrusted"},
			rows: func(*world, Info) [][]any {
				return [][]any{{internalLanguage, "internal", rootRole, false, false}, {14, "sql", rootRole, false, true}}
			},
		},
		"pg_catalog.pg_collation": &list{
			cols: []string{"oid", "collname", "collnamespace", "collowner", "collprovider", "collisdeterministic", "collencoding", "collcollate", "collctype"},
			rows: func(*world, Info) [][]any {
				return [][]any{
					{100, "default", catalogSchema, rootRole, "d", true, -1, nil, nil},
					{950, "C", catalogSchema, rootRole, "c", true, -1, "C", "C"},
					{951, "POSIX", catalogSchema, rootRole, "c", true, -1, "POSIX", "POSIX"},
				}
			},
		},
		"pg_catalog.pg_authid": roleTable("oid", "rolname", map[string]any{
			"rolsuper": true, "rolinherit": true, "rolcreaterole": true, "rolcreatedb": true, "rolcanlogin": true, "rolreplication": true, "rolbypassrls": true, "rolconnlimit": -1}),
		"pg_catalog.pg_roles": roleTable("oid", "rolname", map[string]any{
			"rolsuper": true, "rolinherit": true, "rolcreaterole": true, "rolcreatedb": true, "rolcanlogin": true, "rolreplication": true, "rolbypassrls": true, "rolconnlimit": -1,
			"rolpassword": masked}),
		"pg_catalog.pg_user":   roleTable("usesysid", "usename", map[string]any{"usecreatedb": true, "usesuper": true, "userepl": true, "usebypassrls": true, "passwd": masked}),
		"pg_catalog.pg_shadow": roleTable("usesysid", "usename", map[string]any{"usecreatedb": true, "usesuper": true, "userepl": true, "usebypassrls": true}),
		"pg_catalog.pg_description": &table[described]{
			rows: descriptions,
			cols: map[string]column[described]{
				"objoid":      num(func(d *described) int64 { return d.object }),
				"classoid":    num(func(d *described) int64 { return d.class }),
				"objsubid":    num(func(d *described) int64 { return d.sub }),
				"description": str(func(d *described) string { return d.text }),
			},
		},
		"pg_catalog.pg_depend": &table[dependency]{
			rows: dependencies,
			cols: map[string]column[dependency]{
				"classid":     num(func(d *dependency) int64 { return d.class }),
				"objid":       num(func(d *dependency) int64 { return d.object }),
				"objsubid":    num(func(d *dependency) int64 { return d.sub }),
				"refclassid":  num(func(d *dependency) int64 { return d.refClass }),
				"refobjid":    num(func(d *dependency) int64 { return d.refObject }),
				"refobjsubid": num(func(d *dependency) int64 { return d.refSub }),
				"deptype":     str(func(d *dependency) string { return string(d.kind) }),
			},
		},
		"pg_catalog.pg_rewrite": &table[*class]{
			rows: userViews,
			cols: map[string]column[*class]{
				"oid":       num(func(c **class) int64 { return ruleOID(*c) }),
				"ev_class":  num(func(c **class) int64 { return (*c).oid }),
				"ev_action": datum(func(c **class) types.Datum { return types.NewString((*c).rel.Definition) }),
			},
			fixed: map[string]any{"rulename": "_RETURN", "ev_type": "1", "ev_enabled": "O", "is_instead": true, "ev_qual": "<>"},
		},
	}
}
