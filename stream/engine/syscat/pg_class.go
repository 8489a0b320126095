package syscat

import (
	"cmp"
	"slices"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

const pageSize = 8192

// relationRows is the number of rows of a relation; -1: not known, as PostgreSQL has it.
func relationRows(in Info, c *class) float64 {
	if c.rel.HasRows() {
		return float64(in.Rows(c.rel.ID))
	}
	if c.kind == 'r' {
		return -1
	}
	return 0
}

// relationBytes is the size of a relation itself, without its indexes. A primary
// key is the table's own order and takes no more room.
func relationBytes(in Info, c *class) int64 {
	if c.rel.HasRows() && !c.primary {
		return in.Bytes(c.rel.ID)
	}
	return 0
}

func classSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_class": &table[class]{
			rows: func(w *world, _ Info) []class { return w.objects().classes },
			cols: map[string]column[class]{
				"oid":          num(func(c *class) int64 { return c.oid }),
				"relname":      str(func(c *class) string { return c.name }),
				"relnamespace": num(func(c *class) int64 { return schemaOID(c.schema) }),
				"relowner":     num(func(c *class) int64 { return roleOID(c.owner()) }),
				"relam": num(func(c *class) int64 {
					switch c.kind {
					case 'r', 'm':
						return heapMethod
					case 'i':
						return btreeMethod
					}
					return 0
				}),
				"relfilenode": num(func(c *class) int64 {
					if c.kind == 'r' || c.kind == 'm' || c.kind == 'i' {
						return c.oid
					}
					return 0
				}),
				"relpages": live(func(in Info, c *class) types.Datum {
					return types.NewInt(min((relationBytes(in, c)+pageSize-1)/pageSize, 1<<31-1))
				}),
				"reltuples":      live(func(in Info, c *class) types.Datum { return types.NewFloat(float64(float32(relationRows(in, c)))) }),
				"relhasindex":    boolean(func(c *class) bool { return c.indexed }),
				"relkind":        str(func(c *class) string { return string(c.kind) }),
				"relnatts":       num(func(c *class) int64 { return int64(len(c.attrs)) }),
				"relchecks":      num(func(c *class) int64 { return int64(checksOf(c)) }),
				"relhasrules":    boolean(func(c *class) bool { return c.kind == 'v' || c.kind == 'm' }),
				"relispopulated": boolean(func(*class) bool { return true }),
				"relreplident": str(func(c *class) string {
					if c.kind == 'r' && !c.system() || c.kind == 'm' {
						return "d"
					}
					return "n"
				}),
				"reloptions": datum(func(c *class) types.Datum {
					if c.kind == 'f' || len(c.rel.With) == 0 {
						return types.Datum{}
					}
					return options(c.rel.With)
				}),
			},
			fixed: map[string]any{"relpersistence": "p"},
		},
		"pg_catalog.pg_namespace": &table[string]{
			rows: func(w *world, _ Info) []string { return w.objects().schemas },
			cols: map[string]column[string]{
				"oid":     num(func(s *string) int64 { return schemaOID(*s) }),
				"nspname": str(func(s *string) string { return *s }),
			},
			fixed: map[string]any{"nspowner": rootRole},
		},
		"pg_catalog.pg_foreign_table": &table[class]{
			rows: foreignTables,
			cols: map[string]column[class]{
				"ftrelid":   num(func(c *class) int64 { return c.oid }),
				"ftserver":  num(func(c *class) int64 { return serverOID(connectorOf(c.rel)) }),
				"ftoptions": datum(func(c *class) types.Datum { return options(c.rel.With) }),
			},
		},
		"pg_catalog.pg_foreign_server": &table[string]{
			rows: connectors,
			cols: map[string]column[string]{
				"oid":     num(func(s *string) int64 { return serverOID(*s) }),
				"srvname": str(func(s *string) string { return *s }),
				"srvfdw":  num(func(s *string) int64 { return serverOID(*s) }),
			},
			fixed: map[string]any{"srvowner": rootRole},
		},
		"pg_catalog.pg_foreign_data_wrapper": &table[string]{
			rows: connectors,
			cols: map[string]column[string]{
				"oid":     num(func(s *string) int64 { return serverOID(*s) }),
				"fdwname": str(func(s *string) string { return *s }),
			},
			fixed: map[string]any{"fdwowner": rootRole},
		},
	}
}

// checksOf is the number of CHECK constraints of c.
func checksOf(c *class) int {
	if c.kind == 'i' {
		return 0
	}
	return len(c.rel.Checks)
}

func foreignTables(w *world, _ Info) []class {
	var out []class
	for _, c := range w.objects().classes {
		if c.kind == 'f' {
			out = append(out, c)
		}
	}
	return out
}

// connectors are the names of the connectors in use: foreign servers to PostgreSQL's clients.
func connectors(w *world, _ Info) []string {
	var out []string
	for _, c := range foreignTables(w, nil) {
		out = append(out, connectorOf(c.rel))
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}

func serverOID(connector string) int64 { return namedOID("server " + connector) }

// connectorOf names what a source reads or a sink writes.
func connectorOf(r *catalog.Relation) string {
	for _, o := range r.With {
		if o.Name == "connector" {
			return o.Value
		}
	}
	return "streamdb"
}

// option is the value of a WITH option; "": not given.
func option(r *catalog.Relation, name string) string {
	for _, o := range r.With {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}
