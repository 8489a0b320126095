// Package sqlgen makes random schemas, rows, views and changes for the equality
// test: SQL that PostgreSQL and streamdb both understand and that has one right answer.
//
// The one idea: an answer is compared to the character, so a generator must know
// where SQL leaves a choice and stay away from it. Every column therefore carries
// what may be done with it: arithmetic only where nothing overflows and no float
// sum depends on order (Tame), grouping and ordering only where equal values print
// alike (not Ragged: 1.5 and 1.50 are one group, but which of them is shown?).
package sqlgen

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Kind is a column's type.
type Kind int

// The types that columns have.
const (
	Bool Kind = iota
	Int2
	Int4
	Int8
	Real
	Float
	Numeric
	Text
	Bytea
	Date
	Time
	Timestamp
	Timestamptz
	Interval
	UUID
	IntArray
	TextArray
	kinds
)

var kindNames = [kinds]string{"boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "text", "bytea", "date", "time", "timestamp", "timestamptz", "interval", "uuid", "integer[]", "text[]"}

func (k Kind) String() string { return kindNames[k] }

func (k Kind) integer() bool { return k == Int2 || k == Int4 || k == Int8 }
func (k Kind) float() bool   { return k == Real || k == Float }
func (k Kind) ordered() bool { return k != Bool && k != Bytea && k != UUID } // has min and max in PostgreSQL 15

// A Col is a column, or an expression, and what may be done with it.
type Col struct {
	Name   string // in a scope: qualified; may be any expression
	Kind   Kind
	Tame   bool // small values only: one arithmetic step neither overflows nor rounds
	Ragged bool // equal values may print differently
}

// A Rel is a table or view.
type Rel struct {
	Name string
	Cols []Col
}

// A Table is a Rel that can be written to.
type Table struct {
	Rel
	Key     []int // columns of the primary key; empty: none
	counter int   // the key column that is never used twice; -1: none
	next    int64 // its next value
}

// A View is a materialized view; its columns are c0, c1, …
type View struct {
	Rel
	Query string
}

// A Gen makes SQL. The same seed makes the same SQL, as long as the caller asks for the same.
type Gen struct {
	r      *rand.Rand
	Tables []*Table
	Views  []*View // those queries may read
	alias  int
}

// New makes a generator and its tables.
func New(seed uint64) *Gen {
	g := &Gen{r: rand.New(rand.NewPCG(seed, 0x5eed))}
	for i := range 2 + g.r.IntN(2) {
		g.Tables = append(g.Tables, g.table(fmt.Sprintf("t%d", i), i))
	}
	return g
}

// Chance is true with probability p.
func (g *Gen) Chance(p float64) bool { return g.r.Float64() < p }

// N is a number in [0, n).
func (g *Gen) N(n int) int { return g.r.IntN(n) }

func pick[T any](g *Gen, from ...T) T { return from[g.r.IntN(len(from))] }

// table invents a table: the first has a plain key, the second none, others a composite one.
func (g *Gen) table(name string, i int) *Table {
	t := &Table{Rel: Rel{Name: name}, counter: -1, next: 1}
	switch i {
	case 0:
		t.Cols, t.Key, t.counter = []Col{{Name: "k", Kind: pick(g, Int4, Int8)}}, []int{0}, 0
	case 1:
	default:
		t.Cols, t.Key, t.counter = []Col{{Name: "p", Kind: pick(g, Text, Int4, Date), Tame: true}, {Name: "q", Kind: Int8}}, []int{0, 1}, 1
	}
	// Two columns every table has, so that joins find a partner.
	t.Cols = append(t.Cols, Col{Name: "j", Kind: Int4, Tame: true}, Col{Name: "s", Kind: Text, Tame: true})
	for c := range 2 + g.r.IntN(4) {
		k := Kind(g.r.IntN(int(kinds)))
		t.Cols = append(t.Cols, Col{Name: fmt.Sprintf("x%d", c), Kind: k, Tame: g.Chance(0.7), Ragged: k == Numeric && g.Chance(0.4)})
	}
	return t
}

// DDL is the table's CREATE TABLE.
func (t *Table) DDL() string {
	var parts []string
	for i, c := range t.Cols {
		def := c.Name + " " + c.Kind.String()
		if len(t.Key) == 1 && t.Key[0] == i {
			def += " PRIMARY KEY"
		}
		parts = append(parts, def)
	}
	if len(t.Key) > 1 {
		var names []string
		for _, k := range t.Key {
			names = append(names, t.Cols[k].Name)
		}
		parts = append(parts, "PRIMARY KEY ("+strings.Join(names, ", ")+")")
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", t.Name, strings.Join(parts, ", "))
}

// isKey says whether column i belongs to the key and so is never NULL.
func (t *Table) isKey(i int) bool {
	for _, k := range t.Key {
		if k == i {
			return true
		}
	}
	return false
}
