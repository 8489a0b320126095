package syscat

import (
	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// classesOf makes the rows of a view over pg_class: the classes of some kinds.
func classesOf(kinds string, keep func(c *class) bool) func(w *world, in Info) []*class {
	return func(w *world, _ Info) []*class {
		var out []*class
		for i := range w.objects().classes {
			c := &w.objects().classes[i]
			for k := range len(kinds) {
				if c.kind == kinds[k] && (keep == nil || keep(c)) {
					out = append(out, c)
				}
			}
		}
		return out
	}
}

func user(c *class) bool { return !c.system() }

func className(c **class) string   { return (*c).name }
func classSchema(c **class) string { return (*c).schema }
func classOwner(c **class) string  { return (*c).owner() }
func classOID(c **class) int64     { return (*c).oid }

// viewText is a view's query as pg_get_viewdef gives it.
func viewText(c *class) string { return c.rel.Definition + ";" }

func viewSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_tables": &table[*class]{
			rows: classesOf("r", nil),
			cols: map[string]column[*class]{
				"schemaname": str(classSchema), "tablename": str(className), "tableowner": str(classOwner),
				"hasindexes": boolean(func(c **class) bool { return (*c).indexed }),
			},
			fixed: map[string]any{"hasrules": false, "hastriggers": false, "rowsecurity": false},
		},
		"pg_catalog.pg_views": &table[*class]{
			rows: classesOf("v", nil),
			cols: map[string]column[*class]{
				"schemaname": str(classSchema), "viewname": str(className), "viewowner": str(classOwner),
				"definition": datum(func(c **class) types.Datum {
					if (*c).system() {
						return types.Datum{}
					}
					return types.NewString(viewText(*c))
				}),
			},
		},
		"pg_catalog.pg_matviews": &table[*class]{
			rows: classesOf("m", nil),
			cols: map[string]column[*class]{
				"schemaname": str(classSchema), "matviewname": str(className), "matviewowner": str(classOwner),
				"hasindexes": boolean(func(c **class) bool { return (*c).indexed }),
				"definition": str(func(c **class) string { return viewText(*c) }),
			},
			fixed: map[string]any{"ispopulated": true},
		},
		"pg_catalog.pg_indexes": &table[index]{
			rows: func(w *world, _ Info) []index { return w.objects().indexes },
			cols: map[string]column[index]{
				"schemaname": str(func(x *index) string { return x.schema }),
				"tablename":  str(func(x *index) string { return x.table.name }),
				"indexname":  str(func(x *index) string { return x.name }),
				"indexdef":   str(func(x *index) string { return x.definition() }),
			},
		},
		"pg_catalog.pg_stat_user_tables":    tableStats(user),
		"pg_catalog.pg_stat_all_tables":     tableStats(nil),
		"pg_catalog.pg_stat_sys_tables":     tableStats((*class).system),
		"pg_catalog.pg_statio_user_tables":  tableIO(user),
		"pg_catalog.pg_statio_all_tables":   tableIO(nil),
		"pg_catalog.pg_statio_sys_tables":   tableIO((*class).system),
		"pg_catalog.pg_stat_user_indexes":   indexStats(user),
		"pg_catalog.pg_stat_all_indexes":    indexStats(nil),
		"pg_catalog.pg_statio_user_indexes": indexStats(user),
		"pg_catalog.pg_statio_all_indexes":  indexStats(nil),
	}
}

// tableStats is pg_stat_*_tables. What is not counted is zero.
func tableStats(keep func(*class) bool) source {
	fixed := map[string]any{}
	for _, n := range []string{"seq_scan", "seq_tup_read", "n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_dead_tup", "n_mod_since_analyze", "n_ins_since_vacuum",
		"vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count"} {
		fixed[n] = 0
	}
	return &table[*class]{
		rows: classesOf("rm", keep),
		cols: map[string]column[*class]{
			"relid": num(classOID), "schemaname": str(classSchema), "relname": str(className),
			"n_live_tup": live(func(in Info, c **class) types.Datum { return types.NewInt(int64(max(relationRows(in, *c), 0))) }),
		},
		fixed: fixed,
	}
}

func tableIO(keep func(*class) bool) source {
	return &table[*class]{
		rows:  classesOf("rm", keep),
		cols:  map[string]column[*class]{"relid": num(classOID), "schemaname": str(classSchema), "relname": str(className)},
		fixed: map[string]any{"heap_blks_read": 0, "heap_blks_hit": 0, "idx_blks_read": 0, "idx_blks_hit": 0},
	}
}

func indexStats(keep func(*class) bool) source {
	return &table[index]{
		rows: func(w *world, _ Info) []index {
			var out []index
			for _, x := range w.objects().indexes {
				if keep == nil || keep(x.class) {
					out = append(out, x)
				}
			}
			return out
		},
		cols: map[string]column[index]{
			"relid":        num(func(x *index) int64 { return x.table.oid }),
			"indexrelid":   num(func(x *index) int64 { return x.oid }),
			"schemaname":   str(func(x *index) string { return x.schema }),
			"relname":      str(func(x *index) string { return x.table.name }),
			"indexrelname": str(func(x *index) string { return x.name }),
		},
		fixed: map[string]any{"idx_scan": 0, "idx_tup_read": 0, "idx_tup_fetch": 0, "idx_blks_read": 0, "idx_blks_hit": 0},
	}
}

// kindName is what RisingWave's catalogs call a kind of relation.
func kindName(k catalog.Kind) string {
	switch k {
	case catalog.Table:
		return "table"
	case catalog.View:
		return "view"
	case catalog.MaterializedView:
		return "materialized view"
	case catalog.Index:
		return "index"
	case catalog.Source:
		return "source"
	case catalog.Sink:
		return "sink"
	}
	return "system table"
}
