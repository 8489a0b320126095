package syscat

import (
	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// indexBytes is the size of all indexes of x.
func indexBytes(c *call, x *class) int64 {
	var n int64
	o := c.objects()
	for i := range o.indexes {
		if k := &o.indexes[i]; k.table == x {
			n += relationBytes(c.Info, k.class)
		}
	}
	return n
}

func sizeOf(size func(c *call, x *class) int64) function {
	return func(c *call) (types.Datum, error) {
		x, err := c.class(0)
		if x == nil || err != nil {
			return types.Datum{}, err
		}
		return types.NewInt(size(c, x)), nil
	}
}

// storedBytes is the size of everything stored, operators' state too.
func storedBytes(c *call) int64 {
	var n int64
	for _, r := range c.Snapshot().Relations() {
		if r.Kind == catalog.System {
			continue
		}
		if r.HasRows() {
			n += c.Bytes(r.ID)
		}
		for _, s := range r.State {
			n += c.Bytes(s)
		}
	}
	return n
}

func sizeFunctions() map[string]function {
	own := sizeOf(func(c *call, x *class) int64 { return relationBytes(c.Info, x) })
	return map[string]function{
		"pg_relation_size":       own,
		"pg_table_size":          own,
		"pg_indexes_size":        sizeOf(indexBytes),
		"pg_total_relation_size": sizeOf(func(c *call, x *class) int64 { return relationBytes(c.Info, x) + indexBytes(c, x) }),
		"pg_database_size": func(c *call) (types.Datum, error) {
			if c.null(0) {
				return types.Datum{}, nil
			}
			if c.args[0].Kind() == types.KindString && c.text(0) != c.Database() {
				return types.Datum{}, sqlerr.New(sqlerr.InvalidDatabase, "database \"%s\" does not exist", c.text(0))
			}
			if c.args[0].Kind() == types.KindInt && c.oid(0) != databaseOID {
				return types.Datum{}, nil
			}
			return types.NewInt(storedBytes(c)), nil
		},
		"pg_tablespace_size": func(c *call) (types.Datum, error) {
			switch {
			case c.null(0):
				return types.Datum{}, nil
			case c.oid(0) == tablespaceOID, c.text(0) == "pg_default":
				return types.NewInt(storedBytes(c)), nil
			case c.oid(0) == tablespaceOID+1, c.text(0) == "pg_global":
				return types.NewInt(0), nil
			case c.args[0].Kind() == types.KindString:
				return types.Datum{}, sqlerr.New(sqlerr.UndefinedObject, "tablespace \"%s\" does not exist", c.text(0))
			}
			return types.Datum{}, nil
		},
		"pg_stat_get_numscans": value(types.NewInt(0)),
		"pg_stat_get_live_tuples": func(c *call) (types.Datum, error) {
			x, err := c.class(0)
			if x == nil || err != nil {
				return types.NewInt(0), err
			}
			return types.NewInt(int64(max(relationRows(c.Info, x), 0))), nil
		},
	}
}
