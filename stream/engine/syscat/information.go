package syscat

import (
	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// database is a column that holds the database's name.
func database(in Info) any { return in.Database() }

// yesNo is information_schema's boolean.
func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// tableType is information_schema.tables' table_type.
func tableType(c *class) string {
	switch {
	case c.kind == 'v':
		return "VIEW"
	case c.kind == 'm':
		return "MATERIALIZED VIEW" // RisingWave lists them too; PostgreSQL does not
	case c.kind == 'f':
		return "FOREIGN"
	}
	return "BASE TABLE"
}

// tableColumns are the columns of everything but indexes.
func tableColumns(w *world, _ Info) []attr {
	var out []attr
	for i := range w.objects().classes {
		if c := &w.objects().classes[i]; c.kind != 'i' {
			out = append(out, c.attrs...)
		}
	}
	return out
}

func known(v int64, ok bool) types.Datum {
	if !ok {
		return types.Datum{}
	}
	return types.NewInt(v)
}

// charLength is character_maximum_length: the n of varchar(n) and char(n).
func charLength(t types.Type) (int64, bool) {
	if (t.OID == types.OIDVarchar || t.OID == types.OIDBpchar) && t.Mod != 0 {
		return int64(t.Typmod()) - 4, true
	}
	return 0, false
}

// octetLength is character_octet_length: in UTF-8 a character has up to four bytes.
func octetLength(t types.Type) (int64, bool) {
	if n, ok := charLength(t); ok {
		return 4 * n, true
	}
	switch t.OID {
	case types.OIDText, types.OIDVarchar, types.OIDBpchar:
		return 1 << 30, true
	}
	return 0, false
}

// numericSize is numeric_precision, numeric_precision_radix and numeric_scale; -1: NULL.
func numericSize(t types.Type) (precision, radix, scale int64) {
	switch t.OID {
	case types.OIDInt2:
		return 16, 2, 0
	case types.OIDInt4:
		return 32, 2, 0
	case types.OIDInt8:
		return 64, 2, 0
	case types.OIDFloat4:
		return 24, 2, -1
	case types.OIDFloat8:
		return 53, 2, -1
	case types.OIDNumeric:
		if p, s, ok := types.NumericTypmod(t); ok {
			return int64(p), 10, int64(s)
		}
		return -1, 10, -1
	}
	return -1, -1, -1
}

func sized(which func(p, r, s int64) int64) column[attr] {
	return datum(func(a *attr) types.Datum {
		v := which(numericSize(a.col.Type))
		return known(v, v != -1)
	})
}

// timePrecision is datetime_precision.
func timePrecision(t types.Type) (int64, bool) {
	switch t.OID {
	case types.OIDDate:
		return 0, true
	case types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz:
		if t.Mod != 0 {
			return int64(t.Typmod()), true
		}
		return 6, true
	case types.OIDInterval:
		if m := t.Typmod() & 0xffff; t.Mod != 0 && m != 0xffff {
			return int64(m), true
		}
		return 6, true
	}
	return 0, false
}

// dataType is information_schema's data_type: no modifiers, arrays are ARRAY.
func dataType(t types.Type) string {
	if typeInfo(t).Category == 'A' {
		return "ARRAY"
	}
	if t.OID == types.OIDBpchar {
		return "character"
	}
	return types.FormatType(t.Base())
}

// A keyUsage is a column of a primary key.
type keyUsage struct {
	*constraint
	pos int // from 0
}

func keyUsages(w *world, in Info) []keyUsage {
	var out []keyUsage
	cs := constraints(w, in)
	for i := range cs {
		for k := range cs[i].keys {
			if cs[i].kind == 'p' {
				out = append(out, keyUsage{&cs[i], k})
			}
		}
	}
	return out
}

func (k *keyUsage) columnName() string { return k.table.attrs[k.keys[k.pos]-1].col.Name }

// privileges are what an owner may do with a relation.
var privileges = []string{"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}

// A grant is a privilege of its owner on a relation.
type grant struct {
	*class
	privilege string
}

func grants(w *world, _ Info) []grant {
	var out []grant
	for i := range w.objects().classes {
		c := &w.objects().classes[i]
		for _, p := range privileges {
			if c.kind != 'i' && c.kind != 'm' {
				out = append(out, grant{c, p})
			}
		}
	}
	return out
}

func informationSources() map[string]source {
	grantTable := func() source {
		return &table[grant]{
			rows: grants,
			cols: map[string]column[grant]{
				"grantor":        str(func(g *grant) string { return g.owner() }),
				"grantee":        str(func(g *grant) string { return g.owner() }),
				"table_schema":   str(func(g *grant) string { return g.schema }),
				"table_name":     str(func(g *grant) string { return g.name }),
				"privilege_type": str(func(g *grant) string { return g.privilege }),
				"with_hierarchy": str(func(g *grant) string { return yesNo(g.privilege == "SELECT") }),
			},
			fixed: map[string]any{"table_catalog": database, "is_grantable": "YES"},
		}
	}
	return map[string]source{
		"information_schema.columns": &table[attr]{
			rows: tableColumns,
			cols: map[string]column[attr]{
				"table_schema":             str(func(a *attr) string { return a.class.schema }),
				"table_name":               str(func(a *attr) string { return a.class.name }),
				"column_name":              str(func(a *attr) string { return a.col.Name }),
				"ordinal_position":         num(func(a *attr) int64 { return a.num }),
				"column_default":           datum(func(a *attr) types.Datum { return text(a.col.Default) }),
				"is_nullable":              str(func(a *attr) string { return yesNo(!a.class.notNull(a)) }),
				"data_type":                str(func(a *attr) string { return dataType(a.col.Type) }),
				"character_maximum_length": datum(func(a *attr) types.Datum { return known(charLength(a.col.Type)) }),
				"character_octet_length":   datum(func(a *attr) types.Datum { return known(octetLength(a.col.Type)) }),
				"numeric_precision":        sized(func(p, _, _ int64) int64 { return p }),
				"numeric_precision_radix":  sized(func(_, r, _ int64) int64 { return r }),
				"numeric_scale":            sized(func(_, _, s int64) int64 { return s }),
				"datetime_precision":       datum(func(a *attr) types.Datum { return known(timePrecision(a.col.Type)) }),
				"udt_name":                 str(func(a *attr) string { return typeInfo(a.col.Type).Name }),
				"dtd_identifier":           str(func(a *attr) string { return string(types.AppendInt(nil, a.num)) }),
				"is_generated": str(func(a *attr) string {
					if a.col.Generated != "" {
						return "ALWAYS"
					}
					return "NEVER"
				}),
				"generation_expression": datum(func(a *attr) types.Datum { return text(a.col.Generated) }),
				"is_updatable":          str(func(a *attr) string { return yesNo(a.class.rel.Kind == catalog.Table) }),
			},
			fixed: map[string]any{"table_catalog": database, "udt_catalog": database, "udt_schema": "pg_catalog", "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO"},
		},
		"information_schema.tables": &table[*class]{
			rows: classesOf("rvmf", nil),
			cols: map[string]column[*class]{
				"table_schema": str(classSchema), "table_name": str(className),
				"table_type":         str(func(c **class) string { return tableType(*c) }),
				"is_insertable_into": str(func(c **class) string { return yesNo((*c).rel.Kind == catalog.Table) }),
			},
			fixed: map[string]any{"table_catalog": database, "is_typed": "NO"},
		},
		"information_schema.schemata": &table[string]{
			rows:  func(w *world, _ Info) []string { return w.objects().schemas },
			cols:  map[string]column[string]{"schema_name": str(func(s *string) string { return *s })},
			fixed: map[string]any{"catalog_name": database, "schema_owner": systemOwner},
		},
		"information_schema.views": &table[*class]{
			rows: classesOf("v", nil),
			cols: map[string]column[*class]{
				"table_schema": str(classSchema), "table_name": str(className),
				"view_definition": datum(func(c **class) types.Datum {
					if (*c).system() {
						return types.Datum{}
					}
					return types.NewString(viewText(*c))
				}),
			},
			fixed: map[string]any{"table_catalog": database, "check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO", "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO"},
		},
		"information_schema.table_constraints": &table[constraint]{
			rows: constraints,
			cols: map[string]column[constraint]{
				"constraint_schema": str(func(c *constraint) string { return c.table.schema }),
				"constraint_name":   str(func(c *constraint) string { return c.name }),
				"table_schema":      str(func(c *constraint) string { return c.table.schema }),
				"table_name":        str(func(c *constraint) string { return c.table.name }),
				"constraint_type": str(func(c *constraint) string {
					if c.kind == 'p' {
						return "PRIMARY KEY"
					}
					return "CHECK"
				}),
			},
			fixed: map[string]any{"constraint_catalog": database, "table_catalog": database, "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"},
		},
		"information_schema.key_column_usage": &table[keyUsage]{
			rows: keyUsages,
			cols: map[string]column[keyUsage]{
				"constraint_schema": str(func(k *keyUsage) string { return k.table.schema }),
				"constraint_name":   str(func(k *keyUsage) string { return k.name }),
				"table_schema":      str(func(k *keyUsage) string { return k.table.schema }),
				"table_name":        str(func(k *keyUsage) string { return k.table.name }),
				"column_name":       str((*keyUsage).columnName),
				"ordinal_position":  num(func(k *keyUsage) int64 { return int64(k.pos) + 1 }),
			},
			fixed: map[string]any{"constraint_catalog": database, "table_catalog": database},
		},
		"information_schema.constraint_column_usage": &table[keyUsage]{
			rows: keyUsages,
			cols: map[string]column[keyUsage]{
				"constraint_schema": str(func(k *keyUsage) string { return k.table.schema }),
				"constraint_name":   str(func(k *keyUsage) string { return k.name }),
				"table_schema":      str(func(k *keyUsage) string { return k.table.schema }),
				"table_name":        str(func(k *keyUsage) string { return k.table.name }),
				"column_name":       str((*keyUsage).columnName),
			},
			fixed: map[string]any{"constraint_catalog": database, "table_catalog": database},
		},
		"information_schema.constraint_table_usage": &table[constraint]{
			rows: constraints,
			cols: map[string]column[constraint]{
				"constraint_schema": str(func(c *constraint) string { return c.table.schema }),
				"constraint_name":   str(func(c *constraint) string { return c.name }),
				"table_schema":      str(func(c *constraint) string { return c.table.schema }),
				"table_name":        str(func(c *constraint) string { return c.table.name }),
			},
			fixed: map[string]any{"constraint_catalog": database, "table_catalog": database},
		},
		"information_schema.check_constraints": &table[constraint]{
			rows: func(w *world, in Info) (out []constraint) {
				for _, c := range constraints(w, in) {
					if c.kind == 'c' {
						out = append(out, c)
					}
				}
				return out
			},
			cols: map[string]column[constraint]{
				"constraint_schema": str(func(c *constraint) string { return c.table.schema }),
				"constraint_name":   str(func(c *constraint) string { return c.name }),
				"check_clause":      str(func(c *constraint) string { return "(" + c.check + ")" }),
			},
			fixed: map[string]any{"constraint_catalog": database},
		},
		"information_schema.table_privileges":  grantTable(),
		"information_schema.role_table_grants": grantTable(),
		"information_schema.enabled_roles":     roleTable("", "role_name", nil),
		"information_schema.information_schema_catalog_name": &list{
			cols: []string{"catalog_name"},
			rows: func(_ *world, in Info) [][]any { return [][]any{{in.Database()}} },
		},
		"information_schema.character_sets": &list{
			cols: []string{"character_set_name", "character_repertoire", "form_of_use", "default_collate_catalog", "default_collate_schema", "default_collate_name"},
			rows: func(_ *world, in Info) [][]any {
				return [][]any{{"UTF8", "UCS", "UTF8", in.Database(), "pg_catalog", "C"}}
			},
		},
		"information_schema.collations": &list{
			cols: []string{"collation_catalog", "collation_schema", "collation_name", "pad_attribute"},
			rows: func(_ *world, in Info) [][]any {
				return [][]any{{in.Database(), "pg_catalog", "default", "NO PAD"}, {in.Database(), "pg_catalog", "C", "NO PAD"}, {in.Database(), "pg_catalog", "POSIX", "NO PAD"}}
			},
		},
		"information_schema.foreign_tables": &table[class]{
			rows: foreignTables,
			cols: map[string]column[class]{
				"foreign_table_schema": str(func(c *class) string { return c.schema }),
				"foreign_table_name":   str(func(c *class) string { return c.name }),
				"foreign_server_name":  str(func(c *class) string { return connectorOf(c.rel) }),
			},
			fixed: map[string]any{"foreign_table_catalog": database, "foreign_server_catalog": database},
		},
		"information_schema.foreign_servers": &table[string]{
			rows: connectors,
			cols: map[string]column[string]{
				"foreign_server_name":       str(func(s *string) string { return *s }),
				"foreign_data_wrapper_name": str(func(s *string) string { return *s }),
			},
			fixed: map[string]any{"foreign_server_catalog": database, "foreign_data_wrapper_catalog": database, "authorization_identifier": systemOwner},
		},
		"information_schema.foreign_table_options": &table[foreignOption]{
			rows: foreignOptions,
			cols: map[string]column[foreignOption]{
				"foreign_table_schema": str(func(o *foreignOption) string { return o.class.schema }),
				"foreign_table_name":   str(func(o *foreignOption) string { return o.class.name }),
				"option_name":          str(func(o *foreignOption) string { return o.Name }),
				"option_value":         str(func(o *foreignOption) string { return optionValue(o.Option) }),
			},
			fixed: map[string]any{"foreign_table_catalog": database},
		},
		"information_schema.routines": &table[proc]{
			rows: func(*world, Info) []proc { return allProcs().all },
			cols: map[string]column[proc]{
				"specific_name": str(func(p *proc) string { return p.name + "_" + string(types.AppendInt(nil, p.oid)) }),
				"routine_name":  str(func(p *proc) string { return p.name }),
				"routine_type": datum(func(p *proc) types.Datum {
					if p.kind == 'a' {
						return types.Datum{}
					}
					return types.NewString("FUNCTION")
				}),
				"data_type":        str(func(p *proc) string { return typeName(p.ret) }),
				"type_udt_name":    str(func(p *proc) string { info, _ := types.InfoOf(uint32(p.ret)); return info.Name }),
				"is_deterministic": str(func(p *proc) string { return yesNo(p.volatility == 'i') }),
				"is_null_call":     str(func(p *proc) string { return yesNo(p.strict) }),
			},
			fixed: map[string]any{"specific_catalog": database, "specific_schema": "pg_catalog", "routine_catalog": database, "routine_schema": "pg_catalog", "type_udt_catalog": database, "type_udt_schema": "pg_catalog",
				"routine_body": "EXTERNAL", "external_language": "INTERNAL", "parameter_style": "GENERAL", "sql_data_access": "MODIFIES", "security_type": "INVOKER"},
		},
	}
}

// A foreignOption is one of the WITH options of a source or sink.
type foreignOption struct {
	class class
	catalog.Option
}

func foreignOptions(w *world, in Info) []foreignOption {
	var out []foreignOption
	for _, c := range foreignTables(w, in) {
		for _, o := range c.rel.With {
			out = append(out, foreignOption{c, o})
		}
	}
	return out
}
