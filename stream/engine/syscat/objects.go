package syscat

import (
	"hash/fnv"
	"slices"
	"strings"

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
	classes []class
	indexes []index
	byOID   map[int64]*class
	indexOf map[int64]*index // by the index's OID
	byName  map[[2]string]*class
	schemas []string
}

func objectsOf(snap *catalog.Snapshot) *objects {
	rels := snap.Relations()
	o := &objects{
		classes: make([]class, 0, len(rels)+len(rels)/4), byOID: make(map[int64]*class, len(rels)), indexOf: map[int64]*index{},
		byName: make(map[[2]string]*class, len(rels)), schemas: snap.Schemas(),
	}
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
	for i := range o.classes { // no more appends: pointers stay valid
		c := &o.classes[i]
		c.attrs = c.attributes()
		o.byOID[c.oid] = c
		if name := [2]string{c.schema, c.name}; !c.primary || o.byName[name] == nil {
			o.byName[name] = c
		}
	}
	for i := range o.classes {
		c := &o.classes[i]
		if c.kind != 'i' {
			continue
		}
		x := index{class: c, unique: c.primary || c.rel.Unique}
		if c.primary {
			x.table, x.keys = o.byOID[int64(c.rel.ID)], c.rel.Key[:c.rel.PrimaryKey]
		} else {
			if x.table = o.byOID[int64(c.rel.Of)]; x.table == nil {
				continue
			}
			for k := range c.rel.IndexKey {
				key := catalog.KeyColumn{Col: c.rel.IndexCols[k]}
				for _, rk := range c.rel.Key {
					if rk.Col == k {
						key.Desc = rk.Desc
					}
				}
				x.keys = append(x.keys, key)
			}
			for _, k := range includedColumns(c.rel) {
				x.included = append(x.included, c.rel.IndexCols[k])
			}
		}
		x.table.indexed = true
		o.indexes = append(o.indexes, x)
	}
	for i := range o.indexes {
		o.indexOf[o.indexes[i].oid] = &o.indexes[i]
	}
	return o
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

// attributes are the columns of c that users see, numbered from 1.
func (c *class) attributes() []attr {
	var out []attr
	add := func(col int) {
		out = append(out, attr{class: c, num: int64(len(out)) + 1, col: &c.rel.Columns[col], at: col})
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
		out = make([]attr, 0, len(c.rel.Columns))
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
	case types.OIDText, types.OIDVarchar, types.OIDBpchar:
		return 100
	case types.OIDName:
		return 950
	}
	return 0
}
