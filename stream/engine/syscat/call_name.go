package syscat

import (
	"strconv"
	"strings"

	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// splitName reads a possibly qualified SQL name: a.b, "A".b. Error 42602.
func splitName(s string) ([]string, error) {
	invalid := func() error { return sqlerr.New("42602", "invalid name syntax") }
	var out []string
	rest := strings.TrimSpace(s)
	for {
		var part string
		if strings.HasPrefix(rest, `"`) {
			var b strings.Builder
			i := 1
			for ; ; i++ {
				if i >= len(rest) {
					return nil, invalid()
				}
				if rest[i] != '"' {
					b.WriteByte(rest[i])
					continue
				}
				if i+1 < len(rest) && rest[i+1] == '"' {
					i++
					b.WriteByte('"')
					continue
				}
				break
			}
			part, rest = b.String(), rest[i+1:]
		} else {
			i := strings.IndexAny(rest, `. "`)
			if i < 0 {
				i = len(rest)
			}
			part, rest = strings.ToLower(rest[:i]), rest[i:]
		}
		if part == "" {
			return nil, invalid()
		}
		out = append(out, part)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return out, nil
		}
		if rest[0] != '.' {
			return nil, invalid()
		}
		rest = strings.TrimSpace(rest[1:])
	}
}

// path is the schemas in which an unqualified name is looked up.
func (c *call) path() []string {
	p := c.SearchPath()
	if contains(p, "pg_catalog") {
		return p
	}
	return append([]string{"pg_catalog"}, p...)
}

// lookUp finds a relation by its parts; nil: there is none.
func (c *call) lookUp(parts []string) *class {
	if len(parts) == 3 && parts[0] == c.Database() {
		parts = parts[1:]
	}
	o := c.objects()
	switch len(parts) {
	case 2:
		return o.named(parts[0], parts[1])
	case 1:
		for _, schema := range c.path() {
			if x := o.named(schema, parts[0]); x != nil {
				return x
			}
		}
	}
	return nil
}

// visible reports whether x's bare name finds x.
func (c *call) visible(x *class) bool { return c.lookUp([]string{x.name}) == x }

// class finds the relation that argument i names or numbers: nil where a number
// is no relation's, 42P01 where a name is not.
func (c *call) class(i int) (*class, error) {
	if c.null(i) {
		return nil, nil
	}
	if c.args[i].Kind() == types.KindInt {
		return c.objects().class(c.args[i].Int()), nil
	}
	return c.named(c.text(i))
}

func (c *call) named(name string) (*class, error) {
	if n, ok := number(name); ok {
		return c.objects().class(n), nil
	}
	parts, err := splitName(name)
	if err != nil {
		return nil, err
	}
	x := c.lookUp(parts)
	if x == nil {
		return nil, sqlerr.New(sqlerr.UndefinedTable, "relation \"%s\" does not exist", strings.Join(parts, "."))
	}
	return x, nil
}

// missing turns the error that there is no such object into NULL, for the to_reg… functions.
func missing(d types.Datum, err error) (types.Datum, error) {
	switch sqlerr.Code(err) {
	case sqlerr.UndefinedTable, sqlerr.UndefinedFunction, sqlerr.UndefinedObject, sqlerr.InvalidSchema, sqlerr.AmbiguousFunction, "42602":
		return types.Datum{}, nil
	}
	return d, err
}

func orNull(f function) function {
	return func(c *call) (types.Datum, error) { return missing(f(c)) }
}

func regclassIn(c *call) (types.Datum, error) {
	s := c.text(0)
	if s == "-" {
		return types.NewInt(0), nil
	}
	if n, ok := number(s); ok {
		return types.NewInt(n), nil
	}
	x, err := c.named(s)
	if err != nil {
		return types.Datum{}, err
	}
	return types.NewInt(x.oid), nil
}

// regOut makes an output function: the name of what the number stands for, or the number.
func regOut(name func(c *call, oid int64) string) function {
	return func(c *call) (types.Datum, error) {
		oid := c.oid(0)
		if oid == 0 {
			return types.NewString("-"), nil
		}
		if s := name(c, oid); s != "" {
			return types.NewString(s), nil
		}
		return types.NewString(strconv.FormatInt(oid, 10)), nil
	}
}

func regclassName(c *call, oid int64) string {
	x := c.objects().class(oid)
	switch {
	case x == nil:
		return ""
	case c.visible(x):
		return parser.QuoteIdent(x.name)
	}
	return x.qualified()
}

// regprocName is a function's name, with its schema where the bare name means several.
func regprocName(_ *call, oid int64) string {
	p := allProcs().byOID[oid]
	switch {
	case p == nil:
		return ""
	case len(allProcs().byName[p.name]) > 1:
		return "pg_catalog." + parser.QuoteIdent(p.name)
	}
	return parser.QuoteIdent(p.name)
}

func regprocIn(c *call) (types.Datum, error) {
	s := c.text(0)
	if s == "-" {
		return types.NewInt(0), nil
	}
	if n, ok := number(s); ok {
		return types.NewInt(n), nil
	}
	parts, err := splitName(s)
	if err != nil {
		return types.Datum{}, err
	}
	var found []*proc
	if len(parts) == 1 || parts[0] == "pg_catalog" {
		found = allProcs().byName[parts[len(parts)-1]]
	}
	switch len(found) {
	case 0:
		return types.Datum{}, sqlerr.New(sqlerr.UndefinedFunction, "function \"%s\" does not exist", s)
	case 1:
		return types.NewInt(found[0].oid), nil
	}
	return types.Datum{}, sqlerr.New(sqlerr.AmbiguousFunction, "more than one function named \"%s\"", s)
}

func regnamespaceIn(c *call) (types.Datum, error) {
	s := c.text(0)
	if n, ok := number(s); ok {
		return types.NewInt(n), nil
	}
	parts, err := splitName(s)
	if err != nil {
		return types.Datum{}, err
	}
	if len(parts) != 1 || !c.Snapshot().HasSchema(parts[0]) {
		return types.Datum{}, sqlerr.New(sqlerr.InvalidSchema, "schema \"%s\" does not exist", strings.Join(parts, "."))
	}
	return types.NewInt(schemaOID(parts[0])), nil
}

func schemaName(c *call, oid int64) string {
	for _, s := range c.objects().schemas {
		if schemaOID(s) == oid {
			return s
		}
	}
	return ""
}

func regtypeIn(c *call) (types.Datum, error) {
	s := c.text(0)
	if n, ok := number(s); ok {
		return types.NewInt(n), nil
	}
	t, ok := types.ByName(s)
	if !ok {
		return types.Datum{}, sqlerr.New(sqlerr.UndefinedObject, "type \"%s\" does not exist", s)
	}
	return types.NewInt(int64(t.OID)), nil
}

// roleName is the name of a role; "": there is none.
func roleName(c *call, oid int64) string {
	for _, r := range roles(worldOf(c.Snapshot()), c.Info) {
		if roleOID(r) == oid {
			return r
		}
	}
	return ""
}

// knownOID makes a …_is_visible function: all objects of the catalogs that exist are in pg_catalog, which is always searched.
func knownOID(exists func(oid int64) bool) function {
	return func(c *call) (types.Datum, error) {
		if c.null(0) || !exists(c.oid(0)) {
			return types.Datum{}, nil
		}
		return types.NewBool(true), nil
	}
}

func nameFunctions() map[string]function {
	nothing := knownOID(func(int64) bool { return false })
	return map[string]function{
		"regclassin": regclassIn, "regclassout": regOut(regclassName), "to_regclass": orNull(regclassIn),
		"regprocin": regprocIn, "regprocout": regOut(regprocName), "to_regproc": orNull(regprocIn),
		"regtypein": regtypeIn, "to_regtype": orNull(regtypeIn),
		"regtypeout":     regOut(func(_ *call, oid int64) string { return typeName(oid) }),
		"regnamespacein": regnamespaceIn, "to_regnamespace": orNull(regnamespaceIn),
		"regnamespaceout": regOut(func(c *call, oid int64) string {
			if s := schemaName(c, oid); s != "" {
				return parser.QuoteIdent(s)
			}
			return ""
		}),
		"regroleout": regOut(roleName),
		"format_type": func(c *call) (types.Datum, error) {
			if c.null(0) {
				return types.Datum{}, nil
			}
			t, ok := types.ByOID(uint32(c.oid(0)))
			if !ok {
				if s := typeName(c.oid(0)); s != "" {
					return types.NewString(s), nil
				}
				return types.NewString("???"), nil
			}
			if !c.null(1) {
				t.Mod = int32(c.oid(1)) + 1
			} else if t.OID == types.OIDBpchar {
				return types.NewString("character"), nil
			}
			return types.NewString(types.FormatType(t)), nil
		},
		"pg_get_userbyid": func(c *call) (types.Datum, error) {
			if c.null(0) {
				return types.Datum{}, nil
			}
			if n := roleName(c, c.oid(0)); n != "" {
				return types.NewString(n), nil
			}
			return types.NewString("unknown (OID=" + strconv.FormatInt(c.oid(0), 10) + ")"), nil
		},
		"pg_table_is_visible": func(c *call) (types.Datum, error) {
			x := c.objects().class(c.oid(0))
			if x == nil {
				return types.Datum{}, nil
			}
			return types.NewBool(c.visible(x)), nil
		},
		"pg_type_is_visible":     knownOID(func(oid int64) bool { _, ok := types.InfoOf(uint32(oid)); return ok }),
		"pg_function_is_visible": knownOID(func(oid int64) bool { return allProcs().byOID[oid] != nil }),
		"pg_operator_is_visible": knownOID(func(oid int64) bool {
			for _, o := range operators() {
				if o.oid == oid {
					return true
				}
			}
			return false
		}),
		"pg_collation_is_visible":  knownOID(func(oid int64) bool { return oid == 100 || oid == 950 || oid == 951 }),
		"pg_opclass_is_visible":    knownOID(func(oid int64) bool { return hasOID("c", oid) }),
		"pg_opfamily_is_visible":   knownOID(func(oid int64) bool { return hasOID("f", oid) }),
		"pg_conversion_is_visible": nothing, "pg_statistics_obj_is_visible": nothing, "pg_ts_config_is_visible": nothing,
		"pg_ts_dict_is_visible": nothing, "pg_ts_parser_is_visible": nothing, "pg_ts_template_is_visible": nothing,
	}
}

func hasOID(what string, oid int64) bool {
	for _, f := range opclassData()[what] {
		if atoi(f[0]) == oid {
			return true
		}
	}
	return false
}
