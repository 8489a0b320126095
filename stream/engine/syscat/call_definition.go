package syscat

import (
	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// procDef makes a function of a function's OID.
func procDef(f func(p *proc) string) function {
	return func(c *call) (types.Datum, error) {
		p := allProcs().byOID[c.oid(0)]
		if p == nil {
			return types.Datum{}, nil
		}
		return types.NewString(f(p)), nil
	}
}

func viewDef(c *call) (types.Datum, error) {
	x, err := c.class(0)
	if x == nil || err != nil {
		return types.Datum{}, err
	}
	if x.rel.Kind != catalog.View && x.rel.Kind != catalog.MaterializedView {
		if x.kind == 'v' {
			return types.Datum{}, nil // a system view is computed, it has no query
		}
		return types.NewString("Not a view"), nil
	}
	return types.NewString(viewText(x)), nil
}

func indexDef(c *call) (types.Datum, error) {
	x := c.objects().index(c.oid(0))
	if x == nil {
		return types.Datum{}, nil
	}
	col := c.oid(1)
	if col == 0 {
		return types.NewString(x.definition()), nil
	}
	if col < 0 || int(col) > len(x.keys)+len(x.included) {
		return types.NewString(""), nil
	}
	if i := int(col) - 1; i < len(x.keys) {
		return types.NewString(x.keyColumn(i)), nil
	}
	return types.NewString(parser.QuoteIdent(x.table.rel.Columns[x.included[int(col)-1-len(x.keys)]].Name)), nil
}

func constraintDef(c *call) (types.Datum, error) {
	for _, k := range constraints(worldOf(c.Snapshot()), c.Info) {
		if k.oid == c.oid(0) {
			return types.NewString(k.definition(!c.null(1) && c.args[1].Bool())), nil
		}
	}
	return types.Datum{}, nil
}

func ruleDef(c *call) (types.Datum, error) {
	x := c.objects().class(c.oid(0) - ruleBase)
	if x == nil || x.kind != 'v' && x.kind != 'm' || x.system() {
		return types.Datum{}, nil
	}
	return types.NewString("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO " + x.qualified() + " DO INSTEAD " + viewText(x)), nil
}

// comment is the text that COMMENT ON has set for a relation (sub 0) or a column.
func comment(c *call, oid, sub int64) types.Datum {
	x := c.objects().class(oid)
	switch {
	case x == nil || x.primary:
		return types.Datum{}
	case sub == 0:
		return text(x.rel.Comment)
	case sub > 0 && int(sub) <= len(x.attrs) && x.kind != 'i':
		return text(x.attrs[sub-1].col.Comment)
	}
	return types.Datum{}
}

func definitionFunctions() map[string]function {
	null := value(types.Datum{})
	return map[string]function{
		// What pg_attrdef and pg_constraint hold is SQL text already.
		"pg_get_expr": func(c *call) (types.Datum, error) {
			if c.null(0) || c.null(1) {
				return types.Datum{}, nil
			}
			return c.args[0], nil
		},
		"pg_get_viewdef":       viewDef,
		"pg_get_indexdef":      indexDef,
		"pg_get_constraintdef": constraintDef,
		"pg_get_ruledef":       ruleDef,
		"pg_get_triggerdef":    null, "pg_get_partkeydef": null, "pg_get_statisticsobjdef": null, "pg_get_statisticsobjdef_columns": null,
		"pg_get_partition_constraintdef": null, "pg_get_function_sqlbody": null, "pg_get_function_arg_default": null,
		"pg_get_function_result":             procDef((*proc).result),
		"pg_get_function_arguments":          procDef(func(p *proc) string { return p.arguments(true) }),
		"pg_get_function_identity_arguments": procDef(func(p *proc) string { return p.arguments(false) }),
		"pg_get_functiondef": procDef(func(p *proc) string {
			return "CREATE OR REPLACE FUNCTION pg_catalog." + parser.QuoteIdent(p.name) + "(" + p.arguments(true) + ")\n RETURNS " + p.result() + "\n LANGUAGE internal\nAS $function$" + p.name + "$function$\n"
		}),
		"pg_get_serial_sequence": func(c *call) (types.Datum, error) {
			x, err := c.class(0)
			if x == nil || err != nil {
				return types.Datum{}, err
			}
			for i := range x.attrs {
				if x.attrs[i].col.Name == c.text(1) {
					return types.Datum{}, nil // there are no sequences
				}
			}
			return types.Datum{}, sqlerr.New(sqlerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.text(1), x.name)
		},
		"obj_description": func(c *call) (types.Datum, error) {
			if len(c.args) > 1 && c.text(1) != "pg_class" {
				return types.Datum{}, nil
			}
			return comment(c, c.oid(0), 0), nil
		},
		"col_description": func(c *call) (types.Datum, error) {
			if c.oid(1) <= 0 {
				return types.Datum{}, nil
			}
			return comment(c, c.oid(0), c.oid(1)), nil
		},
		"shobj_description": null,
		"pg_index_column_has_property": func(c *call) (types.Datum, error) {
			x := c.objects().index(c.oid(0))
			n := int(c.oid(1)) - 1
			if x == nil || n < 0 || n >= len(x.keys)+len(x.included) {
				return types.Datum{}, nil
			}
			key := n < len(x.keys)
			desc := key && x.keys[n].Desc
			switch c.text(2) {
			case "asc":
				return types.NewBool(key && !desc), nil
			case "desc", "nulls_first":
				return types.NewBool(desc), nil
			case "nulls_last":
				return types.NewBool(key && !desc), nil
			case "orderable":
				return types.NewBool(key), nil
			case "returnable":
				return types.NewBool(true), nil
			case "search_array", "search_nulls":
				return types.NewBool(key), nil
			case "distance_orderable":
				return types.NewBool(false), nil
			}
			return types.Datum{}, nil
		},
		"pg_relation_is_updatable": func(c *call) (types.Datum, error) {
			x := c.objects().class(c.oid(0))
			if x != nil && x.rel.Kind == catalog.Table && !x.primary {
				return types.NewInt(28), nil // INSERT 8, UPDATE 4, DELETE 16
			}
			return types.NewInt(0), nil
		},
		"pg_relation_filenode": func(c *call) (types.Datum, error) {
			x, err := c.class(0)
			if x == nil || err != nil || x.kind == 'v' || x.kind == 'f' {
				return types.Datum{}, err
			}
			return types.NewInt(x.oid), nil
		},
		"pg_relation_filepath": null,
		"pg_tablespace_location": func(c *call) (types.Datum, error) {
			if c.null(0) {
				return types.Datum{}, nil
			}
			return types.NewString(""), nil
		},
	}
}
