package syscat

import (
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// privilege makes a has_…_privilege function. Everybody may do everything; what
// is asked about must exist: an unknown name is an error, an unknown number NULL.
// find is given the argument that holds the object: the last but one, or the one
// before where the last two are a column and a privilege.
func privilege(back int, find func(c *call, i int) (bool, error)) function {
	return func(c *call) (types.Datum, error) {
		for i := range c.args {
			if c.null(i) {
				return types.Datum{}, nil
			}
		}
		i := len(c.args) - back
		if i < 0 {
			return types.Datum{}, sqlerr.New(sqlerr.UndefinedFunction, "function %s with %d arguments does not exist", c.name, len(c.args))
		}
		if i > 0 && c.args[0].Kind() == types.KindString && !contains(roles(worldOf(c.Snapshot()), c.Info), c.text(0)) && c.text(0) != "public" {
			return types.Datum{}, sqlerr.New(sqlerr.UndefinedObject, "role \"%s\" does not exist", c.text(0))
		}
		ok, err := find(c, i)
		if err != nil || !ok {
			return types.Datum{}, err
		}
		return types.NewBool(true), nil
	}
}

func privilegeFunctions() map[string]function {
	relation := func(c *call, i int) (bool, error) {
		x, err := c.class(i)
		return x != nil, err
	}
	schema := func(c *call, i int) (bool, error) {
		if c.args[i].Kind() == types.KindInt {
			return schemaName(c, c.oid(i)) != "", nil
		}
		if !c.Snapshot().HasSchema(c.text(i)) {
			return false, sqlerr.New(sqlerr.InvalidSchema, "schema \"%s\" does not exist", c.text(i))
		}
		return true, nil
	}
	db := func(c *call, i int) (bool, error) {
		if c.args[i].Kind() == types.KindInt {
			return c.oid(i) == databaseOID, nil
		}
		if c.text(i) != c.Database() {
			return false, sqlerr.New(sqlerr.InvalidDatabase, "database \"%s\" does not exist", c.text(i))
		}
		return true, nil
	}
	any := func(*call, int) (bool, error) { return true, nil }
	return map[string]function{
		"has_table_privilege": privilege(2, relation), "has_any_column_privilege": privilege(2, relation), "has_sequence_privilege": privilege(2, relation),
		"has_column_privilege": privilege(3, relation),
		"has_schema_privilege": privilege(2, schema), "has_database_privilege": privilege(2, db),
		"has_function_privilege": privilege(2, any), "has_tablespace_privilege": privilege(2, any), "has_type_privilege": privilege(2, any),
		"has_language_privilege": privilege(2, any), "has_foreign_data_wrapper_privilege": privilege(2, any), "has_server_privilege": privilege(2, any),
		"has_parameter_privilege": privilege(2, any), "pg_has_role": privilege(2, any),
		"row_security_active": value(types.NewBool(false)),
		// No privileges are recorded, so the defaults need no list either.
		"acldefault": value(types.Datum{}),
	}
}
