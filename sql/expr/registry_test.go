package expr

import (
	"fmt"
	"strings"
	"testing"

	"streamdb/sql/types"
)

func TestRegistry(t *testing.T) {
	seen, oids := map[string]bool{}, map[uint32]string{}
	sig := func(name string, args []types.Type) string {
		var b strings.Builder
		b.WriteString(name + "(")
		for i, a := range args {
			if i > 0 {
				b.WriteByte(',')
			}
			if b.WriteString(a.String()); polymorphic(a) {
				fmt.Fprint(&b, a.OID)
			}
		}
		return b.String() + ")"
	}
	check := func(oid uint32, kind, s string) {
		if seen[kind+s] {
			t.Errorf("%s is there twice", s)
		}
		seen[kind+s] = true
		if oid == 0 {
			t.Errorf("%s has no OID", s)
		}
		if o, ok := oids[oid]; ok {
			t.Errorf("%s has the OID of %s", s, o)
		}
		oids[oid] = s
	}
	for _, f := range Funcs() {
		kind := "f"
		if f.Operator {
			kind = "o"
		}
		check(f.OID, kind, sig(f.Name, f.Args))
		if f.Kernel == nil {
			t.Errorf("%s has no kernel", sig(f.Name, f.Args))
		}
	}
	for _, f := range Aggs() {
		check(f.OID, "f", sig(f.Name, f.Args))
	}
	for _, f := range TableFuncs() {
		check(f.OID, "f", sig(f.Name, f.Args))
	}
	t.Logf("%d functions and operators, %d aggregates, %d table functions", len(Funcs()), len(Aggs()), len(TableFuncs()))
}

// TestCatalogFunctions checks that what catalog queries of known clients call resolves.
func TestCatalogFunctions(t *testing.T) {
	for sig := range strings.FieldsSeq(`version() current_database() current_schemas(bool) current_schema() pg_get_expr(pg_node_tree,oid)
		format_type(oid,int4) pg_sleep(float8) array_upper(anyarray,int4) pg_get_constraintdef(oid) quote_ident(text) col_description(oid,int4)
		obj_description(oid,name) pg_get_indexdef(oid,int4,bool) current_setting(text) pg_get_userbyid(oid) pg_tablespace_location(oid)
		set_config(text,text,bool) array_to_string(anyarray,text) pg_get_indexdef(oid) pg_get_viewdef(oid,bool) pg_table_is_visible(oid)
		pg_get_expr(pg_node_tree,oid,bool) pg_get_serial_sequence(text,text) acldefault(char,oid) array_lower(anyarray,int4) btrim(text,text)
		has_schema_privilege(text,text) lower(text) pg_encoding_to_char(int4) pg_get_function_result(oid) pg_get_viewdef(oid) pg_is_in_recovery()
		pg_type_is_visible(oid) replace(text,text,text) shobj_description(oid,name) substring(text,int4,int4) age(xid) array_length(anyarray,int4)
		btrim(text) current_role() extract(text,timestamptz) floor(numeric) getdatabaseencoding() has_any_column_privilege(name,text,text)
		has_database_privilege(oid,text) has_schema_privilege(name,text,text) has_table_privilege(name,text,text) parse_ident(text,bool)
		pg_advisory_unlock_all() pg_backend_pid() pg_char_to_encoding(name) pg_collation_is_visible(oid) pg_conversion_is_visible(oid)
		pg_database_size(name) pg_function_is_visible(oid) pg_get_function_arguments(oid) pg_get_function_sqlbody(oid) pg_get_partkeydef(oid)
		pg_get_ruledef(oid,bool) pg_get_statisticsobjdef_columns(oid) pg_get_triggerdef(oid,bool) pg_has_role(name,text)
		pg_index_column_has_property(regclass,int4,text) pg_opclass_is_visible(oid) pg_operator_is_visible(oid) pg_opfamily_is_visible(oid)
		pg_postmaster_start_time() pg_relation_is_publishable(regclass) pg_relation_size(regclass) pg_size_pretty(int8) pg_stat_get_numscans(oid)
		pg_statistics_obj_is_visible(oid) pg_table_size(regclass) pg_tablespace_size(oid) pg_total_relation_size(regclass)
		pg_ts_config_is_visible(oid) pg_ts_dict_is_visible(oid) pg_ts_parser_is_visible(oid) pg_ts_template_is_visible(oid) quote_literal(text)
		round(numeric) rtrim(text,text) session_user() string_to_array(text,text) substr(text,int4) substr(text,int4,int4) substring(text,int4)
		timezone(text,timestamptz) translate(text,text,text) txid_current() upper(text) user()`) {
		s := parseSignature(sig + " any")
		for i := range s.args {
			if s.args[i].OID == types.OIDAnyArray {
				s.args[i] = types.ArrayOf(types.Int2)
			}
		}
		if _, _, err := Resolve(s.name, false, s.args); err != nil {
			t.Errorf("%s: %v", sig, err)
		}
	}
	for _, sig := range []string{"generate_series(int4,int4)", "unnest(name[])", "generate_subscripts(int2vector,int4)", "pg_options_to_table(text[])",
		"pg_get_keywords()", "_pg_expandarray(int2vector)"} {
		s := parseSignature(sig + " any")
		if _, _, err := ResolveTableFunc(s.name, s.args); err != nil {
			t.Errorf("%s: %v", sig, err)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{"+(int4,int8)", "int8"}, {"+(int4,numeric)", "numeric"}, {"+(int4,float8)", "float8"}, {"+(float4,numeric)", "float8"},
		{"+(unknown,int4)", "int4"}, {"||(unknown,unknown)", "text"}, {"||(varchar,unknown)", "text"}, {"=(name,unknown)", "bool"},
		{"=(varchar,text)", "bool"}, {"=(regclass,oid)", "bool"}, {"=(oid,int4)", "bool"}, {"lower(varchar)", "text"},
		{"array_append(int4[],unknown)", "int4[]"}, {"sum(int4)", "int8"}, {"sum(int8)", "numeric"}, {"avg(int4)", "numeric"},
		{"avg(float4)", "float8"}, {"max(varchar)", "text"}, {"min(date)", "date"}, {"array_agg(int4)", "int4[]"}, {"array_agg(varchar)", "varchar[]"},
		{"string_agg(text,unknown)", "text"}, {"count(int4)", "int8"}, {"max(name)", "text"}, {"sum(unknown)", "42725"}, {"sum(text)", "42883"},
		{"+(text,int4)", "42883"}, {"+(unknown,unknown)", "42725"}, {"nosuch(int4)", "42883"}, {"max(bool)", "42883"},
		{"=(int2vector,int2vector)", "bool"}, {"=(int4[],int4[])", "bool"}, {"|(bool,bool)", "42883"},
	} {
		s := parseSignature(c.call + " any")
		var got types.Type
		var err error
		if IsAgg(s.name) {
			var f *AggFunc
			var want []types.Type
			if f, want, err = ResolveAgg(s.name, s.args, false); err == nil {
				if got = f.Ret; f.RetType != nil {
					got = f.RetType(want)
				}
			}
		} else {
			var f *Func
			var want []types.Type
			if f, want, err = Resolve(s.name, s.operator, s.args); err == nil {
				if got = f.Ret; f.RetType != nil {
					got = f.RetType(want)
				}
			}
		}
		if err != nil {
			if code := errCode(err); code != c.want {
				t.Errorf("%s: %v", c.call, err)
			}
			continue
		}
		if len(c.want) == 5 && c.want[0] == '4' || !got.Equal(sigType(c.want)) {
			t.Errorf("%s gives %v, want %s", c.call, got, c.want)
		}
	}
}
