package syscat

import (
	"streamdb/sql/types"
)

// typeInfo is what pg_type says of t.
func typeInfo(t types.Type) types.Info {
	info, _ := types.InfoOf(t.OID)
	return info
}

// typmodOf is the modifier as pg_attribute has it: an array's is its elements'.
func typmodOf(t types.Type) int64 {
	if t.Elem != nil && t.Mod == 0 {
		return int64(t.Elem.Typmod())
	}
	return int64(t.Typmod())
}

// A defaulted is a column with a default or a generation expression.
type defaulted struct {
	*attr
	text string
}

func defaults(w *world, _ Info) []defaulted {
	var out []defaulted
	for i := range w.objects().classes {
		c := &w.objects().classes[i]
		if c.kind == 'i' {
			continue
		}
		for k := range c.attrs {
			a := &c.attrs[k]
			switch {
			case a.col.Generated != "":
				out = append(out, defaulted{a, a.col.Generated})
			case a.col.Default != "":
				out = append(out, defaulted{a, a.col.Default})
			}
		}
	}
	return out
}

func attributeSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_attribute": &table[attr]{
			rows: func(w *world, _ Info) []attr { return w.objects().attrs },
			cols: map[string]column[attr]{
				"attrelid":   num(func(a *attr) int64 { return a.class.oid }),
				"attname":    str(func(a *attr) string { return a.col.Name }),
				"atttypid":   num(func(a *attr) int64 { return int64(a.col.Type.OID) }),
				"attlen":     num(func(a *attr) int64 { return int64(typeInfo(a.col.Type).Len) }),
				"attnum":     num(func(a *attr) int64 { return a.num }),
				"atttypmod":  num(func(a *attr) int64 { return typmodOf(a.col.Type) }),
				"attbyval":   boolean(func(a *attr) bool { return typeInfo(a.col.Type).ByVal }),
				"attalign":   str(func(a *attr) string { return string(typeInfo(a.col.Type).Align) }),
				"attstorage": str(func(a *attr) string { return string(typeInfo(a.col.Type).Storage) }),
				"attndims": num(func(a *attr) int64 {
					if a.col.Type.Elem != nil && a.col.Type.OID != types.OIDInt2Vector && a.col.Type.OID != types.OIDOidVector {
						return 1
					}
					return 0
				}),
				"attnotnull": boolean(func(a *attr) bool { return a.class.notNull(a) }),
				"atthasdef":  boolean(func(a *attr) bool { return a.class.kind != 'i' && (a.col.Default != "" || a.col.Generated != "") }),
				"attgenerated": str(func(a *attr) string {
					if a.class.kind != 'i' && a.col.Generated != "" {
						return "s"
					}
					return ""
				}),
				"attcollation": num(func(a *attr) int64 {
					if a.class.kind == 'i' && !a.class.primary && a.num > int64(a.class.rel.IndexKey) {
						return 0 // an INCLUDEd column
					}
					if c := collationOf(a.col.Type); c == 0 || !a.class.system() || a.class.kind == 'v' {
						return c
					}
					return cCollation // PostgreSQL's own tables are in byte order
				}),
			},
			fixed: map[string]any{"attstattarget": -1, "attcacheoff": -1, "attislocal": true},
		},
		"pg_catalog.pg_attrdef": &table[defaulted]{
			rows: defaults,
			cols: map[string]column[defaulted]{
				"oid":     num(func(d *defaulted) int64 { return defaultOID(d.attr) }),
				"adrelid": num(func(d *defaulted) int64 { return d.class.oid }),
				"adnum":   num(func(d *defaulted) int64 { return d.num }),
				"adbin":   str(func(d *defaulted) string { return d.text }),
			},
		},
	}
}

// notNull reports whether a column has a NOT NULL constraint; an index's columns have none.
func (c *class) notNull(a *attr) bool {
	if c.kind == 'i' {
		return false
	}
	return a.col.NotNull || c.isPrimaryKeyColumn(a.at)
}
