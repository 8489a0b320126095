package syscat

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// Objects that are no relations of ours get identifiers from the relation's:
// a table's primary key is an index and a constraint to PostgreSQL.
const (
	primaryIndexBit = 1 << 30 // | the table's ID
	primaryKeyBase  = 0x50000000
	ruleBase        = 0x51000000 // the _RETURN rule of a view
	defaultBase     = 0x60000000 // | the table's ID << 8 | the column's number
	checkBase       = 0x70000000 // the same, with the constraint's number
	namedBase       = 0x20000000 // schemas, roles, servers: a hash of the name
)

const (
	catalogSchema = 11   // pg_catalog
	publicSchema  = 2200 // public
	infoSchema    = 13207
	rwSchema      = 14999 // rw_catalog
	rootRole      = 10
	btreeMethod   = 403
	heapMethod    = 2

	defaultCollation = 100
	cCollation       = 950
)

// Catalogs, as class in pg_description and pg_depend.
const (
	classOfType       = 1247
	classOfProc       = 1255
	classOfClass      = 1259
	classOfConstraint = 2606
	classOfDefault    = 2604
	classOfNamespace  = 2615
	classOfRewrite    = 2618
	classOfServer     = 1417
	classOfDatabase   = 1262
)

// namedOID makes an identifier from a name that has no other.
func namedOID(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return namedBase | int64(h.Sum32()>>4)
}

func schemaOID(name string) int64 {
	switch name {
	case "pg_catalog":
		return catalogSchema
	case "public":
		return publicSchema
	case "information_schema":
		return infoSchema
	case "rw_catalog":
		return rwSchema
	}
	return namedOID("schema " + name)
}

func roleOID(name string) int64 {
	if name == "" || name == systemOwner {
		return rootRole
	}
	return namedOID("role " + name)
}

// A class is a row of pg_class: a relation, or the index of a primary key.
type class struct {
	oid     int64
	schema  string
	name    string
	kind    byte // relkind
	rel     *catalog.Relation
	primary bool // the primary key's index of the table rel
	indexed bool // has indexes
	attrs   []attr
}

// An attr is a row of pg_attribute: a column that users see.
type attr struct {
	class *class
	num   int64
	col   *catalog.Column
	at    int // column of class.rel
}

// An index is a row of pg_index.
type index struct {
	*class
	table    *class
	keys     []catalog.KeyColumn // columns of table.rel
	included []int
	unique   bool
}

// objects are the objects of a snapshot. All slices are sorted by OID.
type objects struct {
	snap    *catalog.Snapshot
	classes []class
	attrs   []attr // of all classes, in their order
	indexes []index
	schemas []string
	// keys are the indexes of primary keys by schema and name; made when first asked.
	keys func() map[[2]string]*class
}

func objectsOf(snap *catalog.Snapshot) *objects {
	rels := snap.Relations()
	n, columns := 0, 0
	for _, r := range rels {
		n++
		columns += len(r.Columns) + r.PrimaryKey
		if r.PrimaryKey > 0 {
			n++
		}
	}
	o := &objects{snap: snap, classes: make([]class, 0, n), attrs: make([]attr, 0, columns), schemas: snap.Schemas()}
	for _, r := range rels {
		if !r.Building {
			o.classes = append(o.classes, class{oid: int64(r.ID), schema: r.Schema, name: r.Name, kind: relkind(r), rel: r})
		}
	}
	for _, r := range rels {
		if r.PrimaryKey > 0 && !r.Building && r.Kind == catalog.Table {
			o.classes = append(o.classes, class{oid: int64(r.ID) | primaryIndexBit, schema: r.Schema, name: r.PrimaryKeyName, kind: 'i', rel: r, primary: true})
		}
	}
	for i := range o.classes { // neither slice grows any more: pointers stay valid
		c := &o.classes[i]
		first := len(o.attrs)
		o.attrs = c.appendAttributes(o.attrs)
		c.attrs = o.attrs[first:len(o.attrs):len(o.attrs)]
	}
	for i := range o.classes {
		if c := &o.classes[i]; c.kind == 'i' {
			if x := (index{class: c}); x.describe(o) {
				o.indexes = append(o.indexes, x)
			}
		}
	}
	o.keys = sync.OnceValue(func() map[[2]string]*class {
		m := map[[2]string]*class{}
		for i := range o.indexes {
			if c := o.indexes[i].class; c.primary {
				m[[2]string{c.schema, c.name}] = c
			}
		}
		return m
	})
	return o
}

// describe fills in what x is of; false: its relation is not there.
func (x *index) describe(o *objects) bool {
	r := x.rel
	x.unique = x.primary || r.Unique
	if x.primary {
		x.table, x.keys = o.class(int64(r.ID)), r.Key[:r.PrimaryKey]
	} else {
		if x.table = o.class(int64(r.Of)); x.table == nil {
			return false
		}
		for k := range r.IndexKey {
			key := catalog.KeyColumn{Col: r.IndexCols[k]}
			for _, rk := range r.Key {
				if rk.Col == k {
					key.Desc = rk.Desc
				}
			}
			x.keys = append(x.keys, key)
		}
		for _, k := range includedColumns(r) {
			x.included = append(x.included, r.IndexCols[k])
		}
	}
	x.table.indexed = true
	return true
}

// class finds a class by OID; nil: there is none.
func (o *objects) class(oid int64) *class {
	i, ok := slices.BinarySearchFunc(o.classes, oid, func(c class, oid int64) int { return cmp.Compare(c.oid, oid) })
	if !ok {
		return nil
	}
	return &o.classes[i]
}

// index finds an index by OID; nil: there is none.
func (o *objects) index(oid int64) *index {
	i, ok := slices.BinarySearchFunc(o.indexes, oid, func(x index, oid int64) int { return cmp.Compare(x.oid, oid) })
	if !ok {
		return nil
	}
	return &o.indexes[i]
}

// named finds a class by name; nil: there is none.
func (o *objects) named(schema, name string) *class {
	if r := o.snap.Relation(schema, name); r != nil {
		return o.class(int64(r.ID))
	}
	return o.keys()[[2]string{schema, name}]
}

// includedColumns are the columns of an index that its INCLUDE names; the
// others behind its key are there for our own use.
func includedColumns(r *catalog.Relation) []int {
	i := strings.Index(strings.ToLower(r.Definition), "include")
	if i < 0 {
		return nil
	}
	clause := r.Definition[i:]
	if end := strings.IndexByte(clause, ')'); end >= 0 {
		clause = clause[:end]
	}
	words := strings.FieldsFunc(strings.ToLower(clause), func(c rune) bool { return strings.ContainsRune(`(), "`+"\t\n", c) })
	var out []int
	for k := r.IndexKey; k < len(r.Columns); k++ {
		if !r.Columns[k].Hidden && slices.Contains(words, strings.ToLower(r.Columns[k].Name)) {
			out = append(out, k)
		}
	}
	return out
}

func relkind(r *catalog.Relation) byte {
	switch r.Kind {
	case catalog.View:
		return 'v'
	case catalog.MaterializedView:
		return 'm'
	case catalog.Index:
		return 'i'
	case catalog.Source, catalog.Sink:
		return 'f' // clients know foreign tables: psql shows their options
	case catalog.System:
		if relations().views[r.ID] {
			return 'v'
		}
	}
	return 'r'
}

// appendAttributes appends the columns of c that users see, numbered from 1.
func (c *class) appendAttributes(out []attr) []attr {
	first := len(out)
	add := func(col int) {
		out = append(out, attr{class: c, num: int64(len(out)-first) + 1, col: &c.rel.Columns[col], at: col})
	}
	switch {
	case c.primary:
		for _, k := range c.rel.Key[:c.rel.PrimaryKey] {
			add(k.Col)
		}
	case c.kind == 'i':
		for k := range min(c.rel.IndexKey, len(c.rel.Columns)) {
			add(k)
		}
		for _, k := range includedColumns(c.rel) {
			add(k)
		}
	default:
		for i := range c.rel.Columns {
			if !c.rel.Columns[i].Hidden {
				add(i)
			}
		}
	}
	return out
}

// attnum is the number that users know column col of c.rel by; 0: hidden.
func (c *class) attnum(col int) int64 {
	for i := range c.attrs {
		if c.attrs[i].at == col {
			return c.attrs[i].num
		}
	}
	return 0
}

// owner is the role that owns c.
func (c *class) owner() string {
	if c.rel.Owner == "" {
		return systemOwner
	}
	return c.rel.Owner
}

func (c *class) system() bool { return c.rel.Kind == catalog.System }

// isPrimaryKeyColumn reports whether col is in the declared primary key.
func (c *class) isPrimaryKeyColumn(col int) bool {
	return slices.ContainsFunc(c.rel.Key[:c.rel.PrimaryKey], func(k catalog.KeyColumn) bool { return k.Col == col })
}

func defaultOID(a *attr) int64 { return defaultBase | a.class.oid<<8&0x0fffff00 | a.num&0xff }

func checkOID(c *class, n int) int64 { return checkBase | c.oid<<8&0x0fffff00 | int64(n)&0xff }

func primaryKeyOID(c *class) int64 { return primaryKeyBase + int64(c.rel.ID) }

func ruleOID(c *class) int64 { return ruleBase + int64(c.rel.ID) }

// collationOf is the collation of columns of type t: the default one, or none.
func collationOf(t types.Type) int64 {
	oid := t.OID
	if t.Elem != nil {
		oid = t.Elem.OID
	}
	switch oid {
	case types.OIDText, types.OIDVarchar, types.OIDBpchar, types.OIDNodeTree:
		return defaultCollation
	case types.OIDName:
		return cCollation
	}
	return 0
}
