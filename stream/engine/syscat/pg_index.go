package syscat

import (
	_ "embed"
	"strings"
	"sync"

	"streamdb/sql/types"
)

//go:embed data/opclasses.txt
var opclassText string

// opclassData is PostgreSQL's operator families and classes of ordered and
// hashed types, their operators and functions: the fields of each line.
var opclassData = sync.OnceValue(func() map[string][][]string {
	m := map[string][][]string{}
	for line := range dataLines(opclassText) {
		f := strings.Fields(line)
		m[f[0]] = append(m[f[0]], f[1:])
	}
	return m
})

// btreeClass is the default btree operator class of a type; 0: none.
var btreeClasses = sync.OnceValue(func() map[uint32]int64 {
	m := map[uint32]int64{}
	for _, f := range opclassData()["c"] {
		if f[1] == "403" && f[5] == "t" {
			m[uint32(atoi(f[4]))] = atoi(f[0])
		}
	}
	return m
})

func atoi(s string) int64 { return numbers(s)[0] }

// btreeClass is the default btree operator class of t. Some types share
// another's: varchar is ordered as text, an array by anyarray's.
func btreeClass(t types.Type) int64 {
	oid := t.OID
	switch {
	case oid == types.OIDVarchar:
		oid = types.OIDText
	case oid == types.OIDRegclass, oid == types.OIDRegtype, oid == types.OIDRegproc, oid == types.OIDRegnamespace:
		oid = types.OIDOid
	case t.Elem != nil && oid != types.OIDOidVector:
		oid = types.OIDAnyArray
	}
	return btreeClasses()[oid]
}

// keyTypes are the types of an index's key columns.
func (x *index) keyTypes() []types.Type {
	out := make([]types.Type, len(x.keys))
	for i, k := range x.keys {
		out[i] = x.table.rel.Columns[k.Col].Type
	}
	return out
}

// perKey makes an int2vector or oidvector with a value for each key column.
func perKey(elem types.Type, f func(t types.Type) int64) column[index] {
	return datum(func(x *index) types.Datum {
		var out []int64
		for _, t := range x.keyTypes() {
			out = append(out, f(t))
		}
		return vector(elem, out)
	})
}

// keyNumbers are the column numbers of the table that an index has, included ones last.
func (x *index) keyNumbers() []int64 {
	var out []int64
	for _, k := range x.keys {
		out = append(out, x.table.attnum(k.Col))
	}
	for _, c := range x.included {
		out = append(out, x.table.attnum(c))
	}
	return out
}

func indexSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_index": &table[index]{
			rows: func(w *world, _ Info) []index { return w.objects().indexes },
			cols: map[string]column[index]{
				"indexrelid":   num(func(x *index) int64 { return x.oid }),
				"indrelid":     num(func(x *index) int64 { return x.table.oid }),
				"indnatts":     num(func(x *index) int64 { return int64(len(x.keys) + len(x.included)) }),
				"indnkeyatts":  num(func(x *index) int64 { return int64(len(x.keys)) }),
				"indisunique":  boolean(func(x *index) bool { return x.unique }),
				"indisprimary": boolean(func(x *index) bool { return x.primary }),
				"indkey":       datum(func(x *index) types.Datum { return vector(types.Int2, x.keyNumbers()) }),
				"indcollation": perKey(types.Oid, collationOf),
				"indclass":     perKey(types.Oid, btreeClass),
				"indoption": datum(func(x *index) types.Datum {
					out := make([]int64, len(x.keys))
					for i, k := range x.keys {
						if k.Desc {
							out[i] = 3 // descending, NULLs first
						}
					}
					return vector(types.Int2, out)
				}),
			},
			fixed: map[string]any{"indimmediate": true, "indisvalid": true, "indisready": true, "indislive": true},
		},
		"pg_catalog.pg_constraint": &table[constraint]{
			rows: constraints,
			cols: map[string]column[constraint]{
				"oid":          num(func(c *constraint) int64 { return c.oid }),
				"conname":      str(func(c *constraint) string { return c.name }),
				"connamespace": num(func(c *constraint) int64 { return schemaOID(c.table.schema) }),
				"contype":      str(func(c *constraint) string { return string(c.kind) }),
				"conrelid":     num(func(c *constraint) int64 { return c.table.oid }),
				"conindid":     num(func(c *constraint) int64 { return c.index }),
				"conkey": datum(func(c *constraint) types.Datum {
					if len(c.keys) == 0 {
						return types.Datum{}
					}
					return ints(types.Int2, c.keys)
				}),
				"conbin":       datum(func(c *constraint) types.Datum { return text(c.check) }),
				"connoinherit": boolean(func(c *constraint) bool { return c.kind == 'p' }),
			},
			fixed: map[string]any{"convalidated": true, "conislocal": true, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " "},
		},
		"pg_catalog.pg_opfamily": &list{
			cols: []string{"oid", "opfmethod", "opfname", "opfnamespace", "opfowner"},
			rows: func(*world, Info) (out [][]any) {
				for _, f := range opclassData()["f"] {
					out = append(out, []any{atoi(f[0]), atoi(f[1]), f[2], catalogSchema, rootRole})
				}
				return out
			},
		},
		"pg_catalog.pg_opclass": &list{
			cols: []string{"oid", "opcmethod", "opcname", "opcnamespace", "opcowner", "opcfamily", "opcintype", "opcdefault", "opckeytype"},
			rows: func(*world, Info) (out [][]any) {
				for _, f := range opclassData()["c"] {
					out = append(out, []any{atoi(f[0]), atoi(f[1]), f[2], catalogSchema, rootRole, atoi(f[3]), atoi(f[4]), f[5] == "t", atoi(f[6])})
				}
				return out
			},
		},
		"pg_catalog.pg_amop": &list{
			cols: []string{"oid", "amopfamily", "amoplefttype", "amoprighttype", "amopstrategy", "amoppurpose", "amopopr", "amopmethod", "amopsortfamily"},
			rows: func(*world, Info) (out [][]any) {
				for _, f := range opclassData()["o"] {
					out = append(out, []any{atoi(f[0]), atoi(f[1]), atoi(f[2]), atoi(f[3]), atoi(f[4]), "s", atoi(f[5]), atoi(f[6]), 0})
				}
				return out
			},
		},
		"pg_catalog.pg_amproc": &list{
			cols: []string{"oid", "amprocfamily", "amproclefttype", "amprocrighttype", "amprocnum", "amproc"},
			rows: func(*world, Info) (out [][]any) {
				for _, f := range opclassData()["p"] {
					out = append(out, []any{atoi(f[0]), atoi(f[1]), atoi(f[2]), atoi(f[3]), atoi(f[4]), atoi(f[5])})
				}
				return out
			},
		},
	}
}

// A constraint is a row of pg_constraint.
type constraint struct {
	oid   int64
	name  string
	kind  byte // contype: p or c
	table *class
	index int64 // of a primary key
	keys  []int64
	check string // SQL text of a CHECK
}

// constraints are all primary keys and CHECKs, by table.
func constraints(w *world, _ Info) []constraint {
	o := w.objects()
	var out []constraint
	for i := range o.classes {
		c := &o.classes[i]
		if c.kind == 'i' {
			continue
		}
		if x := o.index(c.oid | primaryIndexBit); x != nil {
			out = append(out, constraint{oid: primaryKeyOID(c), name: x.name, kind: 'p', table: c, index: x.oid, keys: x.keyNumbers()})
		}
		for n, ch := range c.rel.Checks {
			out = append(out, constraint{oid: checkOID(c, n), name: ch.Name, kind: 'c', table: c, keys: c.mentioned(ch.Expr), check: ch.Expr})
		}
	}
	return out
}

// mentioned are the numbers of the columns whose names occur in SQL text.
func (c *class) mentioned(sql string) []int64 {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(sql, func(r rune) bool {
		return !(r == '_' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127)
	}) {
		words[w] = true
	}
	var out []int64
	for i := range c.attrs {
		if words[c.attrs[i].col.Name] {
			out = append(out, c.attrs[i].num)
		}
	}
	return out
}
