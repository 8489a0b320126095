package expr

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// systems adds the functions of catalog queries and sessions. What depends on
// the session or the catalog is asked of Ctx.Sys under the function's own name.
func systems(r *registry) {
	yes, no := types.NewBool(true), types.NewBool(false)
	void := types.NewString("")

	r.defs(sys,
		"version() text stable", "current_database() name stable", "current_catalog() name stable", "current_schema() name stable",
		"current_schemas(bool) name[] stable", "current_user() name stable", "session_user() name stable", "user() name stable",
		"current_role() name stable", "current_setting(text) text stable", "current_setting(text,bool) text stable",
		"set_config(text,text,bool) text volatile lax", "pg_backend_pid() int4 stable", "pg_postmaster_start_time() timestamptz stable",
		"pg_conf_load_time() timestamptz stable", "txid_current() int8 stable", "age(xid) int4 stable", "pg_sleep(float8) void volatile",
		"pg_sleep_for(interval) void volatile", "pg_sleep_until(timestamptz) void volatile",
		"pg_cancel_backend(int4) bool volatile", "pg_terminate_backend(int4) bool volatile",
		"inet_server_port() int4 stable", "inet_client_port() int4 stable", "current_query() text volatile",

		"pg_get_expr(pg_node_tree,oid) text stable", "pg_get_expr(pg_node_tree,oid,bool) text stable",
		"pg_get_constraintdef(oid) text stable", "pg_get_constraintdef(oid,bool) text stable",
		"pg_get_indexdef(oid) text stable", "pg_get_indexdef(oid,int4,bool) text stable",
		"pg_get_viewdef(oid) text stable", "pg_get_viewdef(oid,bool) text stable", "pg_get_viewdef(text) text stable",
		"pg_get_userbyid(oid) name stable", "pg_get_serial_sequence(text,text) text stable",
		"pg_get_functiondef(oid) text stable", "pg_get_function_result(oid) text stable", "pg_get_function_arguments(oid) text stable",
		"pg_get_function_identity_arguments(oid) text stable", "pg_get_function_sqlbody(oid) text stable",
		"pg_get_partkeydef(oid) text stable", "pg_get_ruledef(oid) text stable", "pg_get_ruledef(oid,bool) text stable",
		"pg_get_statisticsobjdef_columns(oid) text stable", "pg_get_triggerdef(oid) text stable", "pg_get_triggerdef(oid,bool) text stable",
		"obj_description(oid,name) text stable", "obj_description(oid) text stable", "col_description(oid,int4) text stable",
		"shobj_description(oid,name) text stable",
		"pg_table_is_visible(oid) bool stable",
		"pg_relation_size(regclass) int8 volatile", "pg_relation_size(regclass,text) int8 volatile", "pg_table_size(regclass) int8 volatile",
		"pg_total_relation_size(regclass) int8 volatile", "pg_indexes_size(regclass) int8 volatile",
		"pg_database_size(name) int8 volatile", "pg_database_size(oid) int8 volatile",
		"pg_tablespace_size(oid) int8 volatile", "pg_tablespace_size(name) int8 volatile",
		"pg_index_column_has_property(regclass,int4,text) bool stable", "pg_relation_filenode(regclass) oid stable",
		"to_regclass(text) regclass stable", "to_regnamespace(text) regnamespace stable", "to_regproc(text) regproc stable",
	)
	r.defs(value(yes),
		"pg_type_is_visible(oid) bool stable", "pg_function_is_visible(oid) bool stable", "pg_operator_is_visible(oid) bool stable",
		"pg_opclass_is_visible(oid) bool stable", "pg_opfamily_is_visible(oid) bool stable", "pg_collation_is_visible(oid) bool stable",
		"pg_conversion_is_visible(oid) bool stable", "pg_statistics_obj_is_visible(oid) bool stable", "pg_ts_config_is_visible(oid) bool stable",
		"pg_ts_dict_is_visible(oid) bool stable", "pg_ts_parser_is_visible(oid) bool stable", "pg_ts_template_is_visible(oid) bool stable",
		"pg_relation_is_publishable(regclass) bool stable",
		"pg_try_advisory_lock(int8) bool volatile", "pg_try_advisory_lock(int4,int4) bool volatile",
		"pg_try_advisory_xact_lock(int8) bool volatile", "pg_advisory_unlock(int8) bool volatile", "pg_advisory_unlock(int4,int4) bool volatile",
	)
	// Everybody may do everything: one user, no privileges yet.
	for _, what := range []struct{ name, object string }{
		{"has_table_privilege", "text oid"}, {"has_any_column_privilege", "text oid"}, {"has_database_privilege", "text oid"},
		{"has_schema_privilege", "text oid"}, {"has_function_privilege", "text oid"}, {"has_sequence_privilege", "text oid"},
		{"has_tablespace_privilege", "text oid"}, {"has_type_privilege", "text oid"}, {"has_language_privilege", "text oid"},
		{"has_foreign_data_wrapper_privilege", "text oid"}, {"has_server_privilege", "text oid"}, {"pg_has_role", "name oid"},
	} {
		for object := range strings.FieldsSeq(what.object) {
			r.def(what.name+"("+object+",text) bool stable", value(yes))
			r.def(what.name+"(name,"+object+",text) bool stable", value(yes))
			r.def(what.name+"(oid,"+object+",text) bool stable", value(yes))
		}
	}
	for _, object := range []string{"text", "oid"} {
		for _, column := range []string{"text", "int2"} {
			r.def("has_column_privilege("+object+","+column+",text) bool stable", value(yes))
			r.def("has_column_privilege(name,"+object+","+column+",text) bool stable", value(yes))
		}
	}
	r.defs(value(no), "pg_is_in_recovery() bool stable", "pg_is_other_temp_schema(oid) bool stable", "pg_jit_available() bool stable",
		"row_security_active(oid) bool stable", "pg_is_wal_replay_paused() bool stable")
	r.defs(value(types.NewInt(0)), "pg_my_temp_schema() oid stable", "pg_stat_get_numscans(oid) int8 stable", "pg_trigger_depth() int4 stable",
		"pg_relation_is_updatable(regclass,bool) int4 stable")
	r.defs(value(types.NewString("UTF8")), "getdatabaseencoding() name stable", "pg_client_encoding() name stable")
	r.defs(value(types.NewString("")), "pg_tablespace_location(oid) text stable")
	r.defs(value(types.Datum{}), "acldefault(char,oid) aclitem[]", "pg_relation_filepath(regclass) text stable", "pg_collation_for(any) text stable")
	r.defs(value(void), "pg_advisory_unlock_all() void volatile", "pg_advisory_lock(int8) void volatile", "pg_advisory_lock(int4,int4) void volatile",
		"pg_advisory_xact_lock(int8) void volatile", "pg_stat_clear_snapshot() void volatile")

	r.def("format_type(oid,int4) text stable lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		mod := int64(-1)
		if !a[1].IsNull() {
			mod = a[1].Int()
		}
		return types.NewString(formatType(uint32(a[0].Int()), int32(mod), !a[1].IsNull())), nil
	}))
	r.def("pg_typeof(any) regtype stable lax", typed(func(_ *Ctx, ts []types.Type, _ []types.Datum) (types.Datum, error) {
		return types.NewInt(int64(ts[0].OID)), nil
	}))
	r.def("to_regtype(text) regtype stable", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		t, ok := types.ByName(a[0].Str())
		if !ok {
			return types.Datum{}, nil
		}
		return types.NewInt(int64(t.OID)), nil
	}))
	r.def("pg_encoding_to_char(int4) name stable", f1(func(n int64) string {
		switch n {
		case 0:
			return "SQL_ASCII"
		case 6:
			return "UTF8"
		case 8:
			return "LATIN1"
		}
		return ""
	}))
	r.def("pg_char_to_encoding(name) int4 stable", f1(func(s string) int64 {
		switch e := strings.ToLower(s); {
		case isUTF8(e):
			return 6
		case e == "sql_ascii":
			return 0
		case e == "latin1":
			return 8
		}
		return -1
	}))
	r.def("pg_size_pretty(int8) text", f1(prettySize))
	r.def("pg_size_pretty(numeric) text", f1(func(d types.Decimal) string {
		v, err := d.Trunc(0).Int64("bigint")
		if err != nil {
			return d.String() + " bytes"
		}
		return prettySize(v)
	}))
	r.def("pg_size_bytes(text) int8", e1(sizeBytes))
}

// formatType is format_type(oid, typmod): the SQL name of a type.
func formatType(oid uint32, mod int32, given bool) string {
	if oid == 0 {
		return "-"
	}
	t, ok := types.ByOID(oid)
	if !ok {
		return "???"
	}
	t.Mod = mod + 1
	if t.OID == types.OIDBpchar && mod < 0 {
		if given {
			return "bpchar"
		}
		return "character"
	}
	return types.FormatType(t)
}

// prettySize is pg_size_pretty: bytes, kB, MB …, halves rounded away from zero, changing the unit at 10240.
func prettySize(v int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	if v > -10240 && v < 10240 {
		return strconv.FormatInt(v, 10) + " bytes"
	}
	half := v >> 9 // one bit more than the unit, for rounding
	k := 1
	for ; k < len(units)-1; k++ {
		if abs64(half) < 20480-1 {
			break
		}
		half >>= 10
	}
	if half < 0 {
		half--
	} else {
		half++
	}
	return strconv.FormatInt(half/2, 10) + " " + units[k]
}

func sizeBytes(s string) (int64, error) {
	t := strings.TrimSpace(s)
	i := 0
	for i < len(t) && (t[i] >= '0' && t[i] <= '9' || t[i] == '.' || t[i] == '-' || t[i] == '+') {
		i++
	}
	d, err := types.ParseDecimal(t[:i])
	if err != nil {
		return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid size: \"%s\"", s)
	}
	mult := int64(1)
	switch unit := strings.TrimSpace(t[i:]); strings.ToLower(unit) {
	case "", "bytes", "b":
	case "kb":
		mult = 1 << 10
	case "mb":
		mult = 1 << 20
	case "gb":
		mult = 1 << 30
	case "tb":
		mult = 1 << 40
	case "pb":
		mult = 1 << 50
	default:
		return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid size: \"%s\"", s).
			WithDetail("Invalid size unit: \"%s\".", unit).
			WithHint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
	}
	return d.Mul(types.NewDecimalInt(mult)).Int64("bigint")
}
