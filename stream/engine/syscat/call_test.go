package syscat

import (
	"fmt"
	"strings"
	"testing"

	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func TestCall(t *testing.T) {
	key := int(primaryIndexBit)
	for _, c := range []struct {
		name string
		args []any
		want string // the value, or SQLSTATE and message
	}{
		{"version", nil, "PostgreSQL 13.14.0-streamdb-0.1 (a streaming database)"},
		{"current_user", nil, "root"},
		{"current_database", nil, "dev"},
		{"current_schema", nil, "public"},
		{"current_schemas", []any{true}, "{pg_catalog,public}"},
		{"current_schemas", []any{false}, "{public}"},
		{"current_setting", []any{"server_version"}, "13.14.0"},
		{"current_setting", []any{"nope"}, "42704 unrecognized configuration parameter \"nope\""},
		{"current_setting", []any{"nope", true}, "<NULL>"},
		{"set_config", []any{"bytea_output", "hex", false}, "hex"},
		{"set_config", []any{"nope", "x", false}, "42704 unrecognized configuration parameter \"nope\""},
		{"pg_backend_pid", nil, "7"},
		{"inet_client_port", nil, "5000"},
		{"pg_postmaster_start_time", nil, "1000000"},
		{"pg_sleep", []any{1.5}, "0A000 function pg_sleep() is not supported"},
		{"pg_cancel_backend", []any{8}, "0A000 function pg_cancel_backend() is not supported"},
		{"no_such_function", nil, "0A000 function no_such_function() is not supported"},

		{"regclassin", []any{"t"}, "20000"},
		{"regclassin", []any{"T"}, "20000"},
		{"regclassin", []any{`"T"`}, "42P01 relation \"T\" does not exist"},
		{"regclassin", []any{"public.t"}, "20000"},
		{"regclassin", []any{`"public"."t"`}, "20000"},
		{"regclassin", []any{"dev.s.pair"}, "20001"},
		{"regclassin", []any{"pair"}, "42P01 relation \"pair\" does not exist"},
		{"regclassin", []any{"pg_class"}, "1259"},
		{"regclassin", []any{"information_schema.tables"}, "13425"},
		{"regclassin", []any{"1259"}, "1259"},
		{"regclassin", []any{"-"}, "0"},
		{"regclassin", []any{"unborn"}, "42P01 relation \"unborn\" does not exist"},
		{"regclassin", []any{"a..b"}, "42602 invalid name syntax"},
		{"to_regclass", []any{"pair"}, "<NULL>"},
		{"regclassout", []any{20000}, "t"},
		{"regclassout", []any{20001}, "s.pair"},
		{"regclassout", []any{20000 | key}, "t_pkey"},
		{"regclassout", []any{1259}, "pg_class"},
		{"regclassout", []any{99}, "99"},
		{"regclassout", []any{0}, "-"},
		{"regprocout", []any{750}, "array_in"},
		{"regprocin", []any{"array_in"}, "750"},
		{"regprocin", []any{"lower"}, "870"},
		{"regprocin", []any{"round"}, "42725 more than one function named \"round\""},
		{"regprocin", []any{"nope"}, "42883 function \"nope\" does not exist"},
		{"regtypeout", []any{1007}, "integer[]"},
		{"regtypein", []any{"int4"}, "23"},
		{"regtypein", []any{"nope"}, "42704 type \"nope\" does not exist"},
		{"regnamespacein", []any{"public"}, "2200"},
		{"regnamespacein", []any{"nope"}, "3F000 schema \"nope\" does not exist"},
		{"regnamespaceout", []any{11}, "pg_catalog"},
		{"format_type", []any{1043, 14}, "character varying(10)"},
		{"format_type", []any{23, nil}, "integer"},
		{"format_type", []any{99999, -1}, "???"},
		{"format_type", []any{5078, nil}, "anycompatiblearray"},
		{"pg_get_userbyid", []any{10}, "root"},
		{"pg_get_userbyid", []any{77}, "unknown (OID=77)"},
		{"pg_table_is_visible", []any{20000}, "t"},
		{"pg_table_is_visible", []any{20001}, "f"},
		{"pg_table_is_visible", []any{99}, "<NULL>"},
		{"pg_type_is_visible", []any{23}, "t"},
		{"pg_function_is_visible", []any{750}, "t"},
		{"pg_ts_dict_is_visible", []any{5}, "<NULL>"},

		{"pg_get_expr", []any{"a + 1", 20000}, "a + 1"},
		{"pg_get_expr", []any{nil, 20000}, "<NULL>"},
		{"pg_get_viewdef", []any{20005}, "SELECT id, name FROM t WHERE id > 1;"},
		{"pg_get_viewdef", []any{"mv", true}, "SELECT name, count(*) AS n FROM t GROUP BY name;"},
		{"pg_get_viewdef", []any{20000}, "Not a view"},
		{"pg_get_viewdef", []any{99}, "<NULL>"},
		{"pg_get_indexdef", []any{20003}, "CREATE INDEX t_name ON public.t USING btree (name, amount DESC)"},
		{"pg_get_indexdef", []any{20003, 0, true}, "CREATE INDEX t_name ON public.t USING btree (name, amount DESC)"},
		{"pg_get_indexdef", []any{20003, 2, true}, "amount"},
		{"pg_get_indexdef", []any{20004, 2, true}, "name"},
		{"pg_get_indexdef", []any{20004, 3, true}, ""},
		{"pg_get_indexdef", []any{20001 | key}, "CREATE UNIQUE INDEX pair_key ON s.pair USING btree (a, b)"},
		{"pg_get_indexdef", []any{20000}, "<NULL>"},
		{"pg_get_constraintdef", []any{primaryKeyBase + 20001}, "PRIMARY KEY (a, b)"},
		{"pg_get_constraintdef", []any{checkBase | 20000<<8}, "CHECK ((amount > 0))"},
		{"pg_get_constraintdef", []any{checkBase | 20000<<8, true}, "CHECK (amount > 0)"},
		{"pg_get_ruledef", []any{ruleBase + 20005}, "CREATE RULE \"_RETURN\" AS\n    ON SELECT TO public.v DO INSTEAD SELECT id, name FROM t WHERE id > 1;"},
		{"pg_get_function_result", []any{870}, "text"},
		{"pg_get_function_arguments", []any{870}, "text"},
		{"pg_get_serial_sequence", []any{"t", "id"}, "<NULL>"},
		{"pg_get_serial_sequence", []any{"t", "nope"}, "42703 column \"nope\" of relation \"t\" does not exist"},
		{"obj_description", []any{20000, "pg_class"}, "a remark"},
		{"obj_description", []any{20000, "pg_proc"}, "<NULL>"},
		{"col_description", []any{20000, 2}, "of a column"},
		{"col_description", []any{20000, 1}, "<NULL>"},
		{"shobj_description", []any{5, "pg_database"}, "<NULL>"},
		{"pg_index_column_has_property", []any{20003, 2, "desc"}, "t"},
		{"pg_index_column_has_property", []any{20003, 1, "asc"}, "t"},
		{"pg_index_column_has_property", []any{20003, 3, "asc"}, "<NULL>"},

		{"pg_relation_size", []any{20000}, "1048576"},
		{"pg_relation_size", []any{20005}, "0"},
		{"pg_relation_size", []any{99}, "<NULL>"},
		{"pg_indexes_size", []any{20000}, "2097152"},
		{"pg_total_relation_size", []any{"t"}, "3145728"},
		{"pg_database_size", []any{"dev"}, "8388608"},
		{"pg_database_size", []any{"nope"}, "3D000 database \"nope\" does not exist"},
		{"pg_tablespace_location", []any{1663}, ""},

		{"has_table_privilege", []any{"t", "SELECT"}, "t"},
		{"has_table_privilege", []any{20000, "SELECT"}, "t"},
		{"has_table_privilege", []any{"bo", "t", "SELECT"}, "t"},
		{"has_table_privilege", []any{"eve", "t", "SELECT"}, "42704 role \"eve\" does not exist"},
		{"has_table_privilege", []any{"nope", "SELECT"}, "42P01 relation \"nope\" does not exist"},
		{"has_table_privilege", []any{99, "SELECT"}, "<NULL>"},
		{"has_column_privilege", []any{"t", "id", "SELECT"}, "t"},
		{"has_schema_privilege", []any{"s", "USAGE"}, "t"},
		{"has_schema_privilege", []any{"nope", "USAGE"}, "3F000 schema \"nope\" does not exist"},
		{"has_database_privilege", []any{"dev", "CREATE"}, "t"},
		{"has_database_privilege", []any{5, "CREATE"}, "t"},
	} {
		var args []types.Datum
		for _, a := range c.args {
			args = append(args, datumOf(a, types.Text))
		}
		d, err := Call(c.name, args, types.Text, testSession())
		var got string
		switch {
		case err != nil:
			got = sqlerr.Code(err) + " " + err.Error()
		case d.IsNull():
			got = "<NULL>"
		case d.Kind() == types.KindInt:
			got = fmt.Sprint(d.Int())
		default:
			typ := map[types.Kind]types.Type{types.KindBool: types.Bool, types.KindString: types.Text, types.KindList: types.ArrayOf(types.Name)}[d.Kind()]
			got = string(types.AppendText(nil, typ, d, nil))
		}
		if got != c.want {
			t.Errorf("%s(%v) = %s, want %s", c.name, c.args, got, c.want)
		}
	}
}

// manyRelations is a catalog of n tables of ten columns, each with a key.
func manyRelations(n int) *catalog.Snapshot {
	rels := Relations()
	for i := range n {
		r := &catalog.Relation{ID: catalog.ID(20000 + i), Schema: "public", Name: fmt.Sprintf("t%d", i), Kind: catalog.Table, Key: []catalog.KeyColumn{{Col: 0}}, PrimaryKey: 1, PrimaryKeyName: fmt.Sprintf("t%d_pkey", i)}
		for c := range 10 {
			r.Columns = append(r.Columns, catalog.Column{Name: fmt.Sprintf("c%d", c), Type: types.Int4})
		}
		rels = append(rels, r)
	}
	return catalog.NewSnapshot([]string{"pg_catalog", "public"}, rels)
}

// BenchmarkFresh reads what \d reads, of a snapshot not read before.
func BenchmarkFresh(b *testing.B) {
	for _, q := range []struct{ rel, cols string }{
		{"pg_class", "oid relname relnamespace relkind relowner relam"},
		{"pg_attribute", "attrelid attname atttypid attnum attisdropped attnotnull atttypmod attcollation"},
	} {
		b.Run(q.rel, func(b *testing.B) {
			snap := manyRelations(10000)
			r := snap.Relation("pg_catalog", q.rel)
			var cols []int
			for i, c := range r.Columns {
				if strings.Contains(" "+q.cols+" ", " "+c.Name+" ") {
					cols = append(cols, i)
				}
			}
			for b.Loop() {
				in := testSession()
				next := *snap
				in.snap = &next
				if _, err := Rows(b.Context(), r, cols, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestKept: what was read from a snapshot does not change when another has been read.
func TestKept(t *testing.T) {
	in := testSession()
	before := read(t, in, "pg_catalog.pg_class", []string{"relname"}, nil)
	next := testSession()
	next.snap = in.snap.With(nil, []catalog.ID{20002})
	after := read(t, next, "pg_catalog.pg_class", []string{"relname"}, nil)
	if len(after) != len(before)-1 {
		t.Errorf("%d relations after a drop, %d before", len(after), len(before))
	}
	for range 2 * keptWorlds {
		other := testSession()
		read(t, other, "pg_catalog.pg_class", []string{"relname"}, nil)
	}
	if again := read(t, in, "pg_catalog.pg_class", []string{"relname"}, nil); len(again) != len(before) {
		t.Errorf("%d relations, %d when read first", len(again), len(before))
	}
	if len(worlds.recent) > keptWorlds {
		t.Errorf("%d snapshots are kept", len(worlds.recent))
	}
}
