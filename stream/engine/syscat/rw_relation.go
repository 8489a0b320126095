package syscat

import (
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// relationsOf makes rows of the relations of some kinds, by ID.
func relationsOf(kinds ...catalog.Kind) func(w *world, in Info) []*class {
	return func(w *world, _ Info) []*class {
		var out []*class
		for i := range w.objects().classes {
			if c := &w.objects().classes[i]; !c.primary && slices.Contains(kinds, c.rel.Kind) {
				out = append(out, c)
			}
		}
		return out
	}
}

// rwTable is the source of a relation that lists relations; more adds to the columns they all have.
func rwTable(more map[string]column[*class], kinds ...catalog.Kind) source {
	t := &table[*class]{
		rows: relationsOf(kinds...),
		cols: map[string]column[*class]{
			"id":          num(classOID),
			"name":        str(className),
			"schema_id":   num(func(c **class) int64 { return schemaOID((*c).schema) }),
			"owner":       num(func(c **class) int64 { return roleOID((*c).owner()) }),
			"append_only": boolean(func(c **class) bool { return (*c).rel.AppendOnly }),
			"definition": live(func(in Info, c **class) types.Datum {
				return types.NewString(Mask((*c).rel, in.Definition((*c).rel, false)))
			}),
		},
	}
	for n, c := range more {
		t.cols[n] = c
	}
	return t
}

// A rwColumn is a row of rw_columns: hidden columns are there too.
type rwColumn struct {
	*class
	at int
}

func (c *rwColumn) col() *catalog.Column { return &c.rel.Columns[c.at] }

func (c *rwColumn) inKey() bool {
	n := len(c.rel.Key)
	if c.rel.PrimaryKey > 0 {
		n = c.rel.PrimaryKey
	}
	return slices.ContainsFunc(c.rel.Key[:n], func(k catalog.KeyColumn) bool { return k.Col == c.at })
}

func rwColumns(w *world, _ Info) []rwColumn {
	var out []rwColumn
	for i := range w.objects().classes {
		c := &w.objects().classes[i]
		for k := range c.rel.Columns {
			if !c.primary {
				out = append(out, rwColumn{c, k})
			}
		}
	}
	return out
}

var userKinds = []catalog.Kind{catalog.Table, catalog.View, catalog.MaterializedView, catalog.Index, catalog.Source, catalog.Sink}

func rwSources() map[string]source {
	connector := map[string]column[*class]{"connector": str(func(c **class) string { return connectorOf((*c).rel) })}
	kind := map[string]column[*class]{"relation_type": str(func(c **class) string { return kindName((*c).rel.Kind) })}
	return map[string]source{
		"rw_catalog.rw_tables": rwTable(nil, catalog.Table),
		"rw_catalog.rw_materialized_views": rwTable(map[string]column[*class]{
			"background_ddl": boolean(func(c **class) bool { return (*c).rel.Background }),
		}, catalog.MaterializedView),
		"rw_catalog.rw_views":     rwTable(nil, catalog.View),
		"rw_catalog.rw_relations": rwTable(kind, userKinds...),
		"rw_catalog.rw_indexes": rwTable(map[string]column[*class]{
			"primary_table_id": num(func(c **class) int64 { return int64((*c).rel.Of) }),
			"key_columns": datum(func(c **class) types.Datum {
				return ints(types.Int2, positions((*c).rel.IndexCols[:(*c).rel.IndexKey]))
			}),
			"include_columns": datum(func(c **class) types.Datum {
				var out []int
				for _, k := range includedColumns((*c).rel) {
					out = append(out, (*c).rel.IndexCols[k])
				}
				return ints(types.Int2, positions(out))
			}),
		}, catalog.Index),
		"rw_catalog.rw_sources": rwTable(map[string]column[*class]{
			"connector": connector["connector"],
			"columns": datum(func(c **class) types.Datum {
				var names []string
				for _, a := range (*c).attrs {
					names = append(names, a.col.Name)
				}
				return texts(types.Varchar, names)
			}),
			"format":      datum(func(c **class) types.Datum { return text(strings.ToUpper(option((*c).rel, "format"))) }),
			"row_encode":  datum(func(c **class) types.Datum { return text(strings.ToUpper(option((*c).rel, "encode"))) }),
			"append_only": boolean(func(**class) bool { return true }),
		}, catalog.Source),
		"rw_catalog.rw_sinks": rwTable(map[string]column[*class]{
			"connector": connector["connector"],
			"sink_type": str(func(c **class) string {
				if t := option((*c).rel, "type"); t != "" {
					return strings.ToUpper(t)
				}
				return "APPEND-ONLY"
			}),
		}, catalog.Sink),
		"rw_catalog.rw_system_tables": rwTable(nil, catalog.System),
		"rw_catalog.rw_table_stats": &table[*class]{
			rows: relationsOf(catalog.Table, catalog.MaterializedView, catalog.Index),
			cols: map[string]column[*class]{
				"id":               num(classOID),
				"total_key_count":  live(func(in Info, c **class) types.Datum { return types.NewInt(in.Rows((*c).rel.ID)) }),
				"total_value_size": live(func(in Info, c **class) types.Datum { return types.NewInt(in.Bytes((*c).rel.ID)) }),
			},
		},
		"rw_catalog.rw_relation_info": &table[*class]{
			rows: relationsOf(userKinds...),
			cols: map[string]column[*class]{
				"schemaname":    str(classSchema),
				"relationname":  str(className),
				"relationowner": num(func(c **class) int64 { return roleOID((*c).owner()) }),
				"definition": live(func(in Info, c **class) types.Datum {
					return types.NewString(Mask((*c).rel, in.Definition((*c).rel, false)))
				}),
				"relationtype": str(func(c **class) string { return strings.ToUpper(kindName((*c).rel.Kind)) }),
				"relationid":   num(classOID),
			},
			fixed: map[string]any{"relationtimezone": "UTC"},
		},
		"rw_catalog.rw_schemas": &table[string]{
			rows: func(w *world, _ Info) []string { return w.objects().schemas },
			cols: map[string]column[string]{
				"id":   num(func(s *string) int64 { return schemaOID(*s) }),
				"name": str(func(s *string) string { return *s }),
			},
			fixed: map[string]any{"owner": rootRole},
		},
		"rw_catalog.rw_users":     roleTable("id", "name", map[string]any{"is_super": true, "create_db": true, "create_user": true, "can_login": true, "is_admin": false}),
		"rw_catalog.rw_databases": &list{cols: []string{"id", "name", "owner", "resource_group"}, rows: func(_ *world, in Info) [][]any { return [][]any{{databaseOID, in.Database(), rootRole, "default"}} }},
		"rw_catalog.rw_columns": &table[rwColumn]{
			rows: rwColumns,
			cols: map[string]column[rwColumn]{
				"relation_id":           num(func(c *rwColumn) int64 { return c.oid }),
				"name":                  str(func(c *rwColumn) string { return c.col().Name }),
				"position":              num(func(c *rwColumn) int64 { return int64(c.at) + 1 }),
				"is_hidden":             boolean(func(c *rwColumn) bool { return c.col().Hidden }),
				"is_primary_key":        boolean((*rwColumn).inKey),
				"is_distribution_key":   boolean(func(c *rwColumn) bool { return slices.Contains(c.rel.Dist, c.at) }),
				"is_generated":          boolean(func(c *rwColumn) bool { return c.col().Generated != "" }),
				"is_nullable":           boolean(func(c *rwColumn) bool { return !c.col().NotNull }),
				"generation_expression": datum(func(c *rwColumn) types.Datum { return text(c.col().Generated) }),
				"data_type":             str(func(c *rwColumn) string { return types.FormatType(c.col().Type) }),
				"type_oid":              num(func(c *rwColumn) int64 { return int64(c.col().Type.OID) }),
				"type_len":              num(func(c *rwColumn) int64 { return int64(typeInfo(c.col().Type).Len) }),
				"udt_type":              str(func(c *rwColumn) string { return strings.TrimPrefix(typeInfo(c.col().Type).Name, "_") }),
			},
		},
		"rw_catalog.rw_functions": &table[proc]{
			rows: func(*world, Info) []proc { return nil }, // RisingWave lists user-defined functions here; there are none
		},
		"rw_catalog.rw_depend": &table[[2]int64]{
			rows: func(w *world, _ Info) (out [][2]int64) {
				for i := range w.objects().classes {
					c := &w.objects().classes[i]
					if c.primary {
						continue
					}
					for _, d := range c.rel.DependsOn {
						out = append(out, [2]int64{c.oid, int64(d)})
					}
					if c.rel.Of != 0 && !slices.Contains(c.rel.DependsOn, c.rel.Of) {
						out = append(out, [2]int64{c.oid, int64(c.rel.Of)})
					}
				}
				return out
			},
			cols: map[string]column[[2]int64]{
				"objid":    num(func(d *[2]int64) int64 { return d[0] }),
				"refobjid": num(func(d *[2]int64) int64 { return d[1] }),
			},
		},
		"rw_catalog.rw_description": &table[described]{
			rows: descriptions,
			cols: map[string]column[described]{
				"objoid":   num(func(d *described) int64 { return d.object }),
				"classoid": num(func(d *described) int64 { return d.class }),
				"objsubid": datum(func(d *described) types.Datum {
					if d.sub == 0 {
						return types.Datum{}
					}
					return types.NewInt(d.sub)
				}),
				"description": str(func(d *described) string { return d.text }),
			},
		},
		"rw_catalog.rw_types": &table[types.Info]{
			rows: func(*world, Info) []types.Info { return types.All() },
			cols: map[string]column[types.Info]{
				"id":        num(func(t *types.Info) int64 { return int64(t.OID) }),
				"name":      str(func(t *types.Info) string { return t.SQLName }),
				"input_oid": typeFunc(func(f typeFuncs) int64 { return f.input }),
				"typarray":  num(func(t *types.Info) int64 { return int64(t.Array) }),
			},
		},
		"rw_catalog.rw_processlist": &table[SessionInfo]{
			rows:     func(_ *world, in Info) []SessionInfo { return in.Sessions() },
			changing: true,
			cols: map[string]column[SessionInfo]{
				"id":       num(func(s *SessionInfo) int64 { return int64(s.ID) }),
				"user":     str(func(s *SessionInfo) string { return s.User }),
				"host":     str(func(s *SessionInfo) string { return s.Remote }),
				"database": str(func(s *SessionInfo) string { return s.Database }),
				"time": datum(func(s *SessionInfo) types.Datum {
					if !s.Active {
						return types.Datum{}
					}
					started := time.UnixMicro(types.UnixOf(s.QueryStart))
					return types.NewString(started.UTC().Format("2006-01-02 15:04:05"))
				}),
				"info": datum(func(s *SessionInfo) types.Datum {
					if !s.Active {
						return types.Datum{}
					}
					return types.NewString(s.Query)
				}),
			},
			fixed: map[string]any{"worker_id": 1},
		},
		"rw_catalog.rw_worker_nodes": &list{
			cols: []string{"id", "host", "type", "state", "parallelism", "is_streaming", "is_serving", "rw_version"},
			rows: func(_ *world, in Info) [][]any {
				return [][]any{{1, net.IPv4(127, 0, 0, 1).String(), "WORKER_TYPE_COMPUTE_NODE", "RUNNING", runtime.GOMAXPROCS(0), true, true, in.Version()}}
			},
		},
	}
}

// positions are column numbers from 1.
func positions(cols []int) []int64 {
	out := make([]int64, len(cols))
	for i, c := range cols {
		out[i] = int64(c) + 1
	}
	return out
}
