package parser

import (
	"strings"

	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// Clauses are the clauses of our own that were found inside PostgreSQL's text. The tree does not show them: who reads the tree
// must ask for them, or refuse what it does not know.
type Clauses struct {
	EmitOnWindowClose *Emit      // nil: none
	Temporal          []Temporal // FOR SYSTEM_TIME AS OF PROCTIME()
	Asof              []Asof     // ASOF JOIN
	Types             []*Composite
}

// An Emit is EMIT ON WINDOW CLOSE after a view's query.
type Emit struct{ Pos int }

// A Temporal is FOR SYSTEM_TIME AS OF PROCTIME() after a table's name.
type Temporal struct {
	Pos   int
	Table int // the Location of the table's RangeVar
}

// An Asof is an ASOF [LEFT] JOIN … ON.
type Asof struct {
	Pos int
	on  int // of ON; -1: it has none, and the grammar refuses it
	to  int // of the first token after ON that is no parenthesis: the condition's first location is not after it
}

// A Composite is struct<…> or map(…) as a type. The tree has a type named struct or map in its place.
type Composite struct {
	Pos    int      // the Location of the type's name
	Fields []Field  // of a struct; nil for a map
	Key    *TypeRef // of a map; nil for a struct
	Value  *TypeRef
}

// A Field is one field of a struct type.
type Field struct {
	Pos  int
	Name string
	Type *TypeRef
}

// A TypeRef is a type's name and, for a struct or a map or an array of these, what is in it.
type TypeRef struct {
	Name      *ast.TypeName
	Composite *Composite // nil for PostgreSQL's types
}

func (c *Clauses) empty() bool {
	return c.EmitOnWindowClose == nil && len(c.Temporal)+len(c.Asof)+len(c.Types) == 0
}

// IsTemporal says whether FOR SYSTEM_TIME AS OF PROCTIME() follows the table.
func (c *Clauses) IsTemporal(t *ast.RangeVar) bool {
	for _, x := range c.Temporal {
		if int32(x.Table) == t.GetLocation() {
			return true
		}
	}
	return false
}

// IsAsof says whether the join is an ASOF join.
func (c *Clauses) IsAsof(j *ast.JoinExpr) bool {
	if len(c.Asof) == 0 || j.GetQuals() == nil {
		return false
	}
	at := int(leftmost(j.Quals.ProtoReflect()))
	for _, x := range c.Asof {
		if x.on < at && at <= x.to {
			return true
		}
	}
	return false
}

// Composite returns what is in a struct or map type; nil for another type.
func (c *Clauses) Composite(t *ast.TypeName) *Composite {
	for _, x := range c.Types {
		if int32(x.Pos) == t.GetLocation() {
			return x
		}
	}
	return nil
}

// maskClauses finds our clauses in a span, overwrites them in m and notes them in c.
func (p *parser) maskClauses(s span, m *mask, c *Clauses) error {
	return p.maskClausesIn(s, s.lo, m, c)
}

// maskClausesIn is maskClauses for a part of the statement that begins with the token first.
func (p *parser) maskClausesIn(s span, first int, m *mask, c *Clauses) error {
	if !p.lex.clauses {
		return nil
	}
	for i := s.lo; i < s.hi; i++ {
		switch {
		case p.toks[i].kind == op:
			if p.is(i, "{") {
				if !p.is(i-1, "map") || i == s.lo {
					return p.unexpected(i)
				}
				if err := p.maskMapLiteral(i, s.hi, m); err != nil {
					return err
				}
			}
		case p.toks[i].kind != word:
		case p.seq(i, "emit", "on", "window", "close"):
			if i+4 < s.hi && !p.is(i+4, ")") {
				return p.unexpected(i + 4)
			}
			c.EmitOnWindowClose = &Emit{int(p.toks[i].pos)}
			m.blank(int(p.toks[i].pos), int(p.toks[i+3].end))
			i += 3
		case p.seq(i, "for", "system_time"):
			next, err := p.maskTemporal(i, s.hi, m, c)
			if err != nil {
				return err
			}
			i = next - 1
		case p.is(i, "asof"):
			p.maskAsof(i, s.hi, m, c)
		case p.is(i, "struct") && p.opensAngle(i+1), p.is(i, "map") && p.is(i+1, "(") && p.typePosition(first, i):
			r := typeReader{p: p, i: i, hi: s.hi}
			t, ok, err := r.composite()
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			c.Types = append(c.Types, t)
			m.blank(int(p.toks[i].end), r.offset())
			i = r.i - 1
			if r.sub > 0 {
				i = r.i
			}
		}
	}
	return nil
}

// maskGrant leaves out what kind of relation a GRANT is for, where PostgreSQL has no word for it: it takes a name
// without a kind for any relation.
func (p *parser) maskGrant(s span, m *mask) {
	for i := s.lo; i < s.hi; i++ {
		if !p.is(i, "on") {
			continue
		}
		at := i + 1
		switch {
		case p.seq(at, "all", "materialized", "views"):
			m.blank(int(p.toks[at+1].pos), int(p.toks[at+2].end))
			m.put(int(p.toks[at+1].pos), "TABLES")
		case p.seq(at, "all", "sources"):
			m.put(int(p.toks[at+1].pos), "TABLES ")
		case p.seq(at, "materialized", "view"):
			m.blank(int(p.toks[at].pos), int(p.toks[at+1].end))
		case (p.is(at, "view") || p.is(at, "source") || p.is(at, "sink") || p.is(at, "subscription")) && p.named(at+1) && !p.is(at+1, "to") && !p.is(at+1, "from"):
			m.blank(int(p.toks[at].pos), int(p.toks[at].end))
		}
		return
	}
}

func (p *parser) maskTemporal(i, hi int, m *mask, c *Clauses) (next int, err error) {
	at := int(p.toks[i].pos)
	for k, w := range []string{"for", "system_time", "as", "of"} {
		if i+k >= hi || !p.is(i+k, w) {
			return 0, p.unexpected(i + k)
		}
	}
	if !p.seq(i+4, "proctime", "(", ")") || i+7 > hi {
		return 0, sqlerr.Unsupported("FOR SYSTEM_TIME AS OF anything but PROCTIME()").At(int(p.toks[min(i+4, hi-1)].pos))
	}
	// The table's name ends before FOR, with an alias between them perhaps.
	n := i - 1
	if p.named(n-1) && !p.tablePrefix(n-1) {
		n--
	} else if p.is(n-1, "as") {
		n -= 2
	}
	if n < 0 || !p.named(n) {
		return 0, p.unexpected(i)
	}
	for n >= 2 && p.is(n-1, ".") {
		n -= 2
	}
	c.Temporal = append(c.Temporal, Temporal{Pos: at, Table: int(p.toks[n].pos)})
	m.blank(at, int(p.toks[i+6].end))
	return i + 7, nil
}

// named says whether a token can be a name.
func (p *parser) named(i int) bool {
	if i < 0 {
		return false
	}
	switch p.toks[i].kind {
	case quoted:
		return true
	case word:
		k, ok := keyword(strings.ToLower(p.src(i)))
		return !ok || k.Category != Reserved
	}
	return false
}

// tablePrefix says whether a word stands before a table's name rather than being one.
func (p *parser) tablePrefix(i int) bool { return p.is(i, "join") }

func (p *parser) maskAsof(i, hi int, m *mask, c *Clauses) {
	j := i + 1
	switch {
	case p.seq(j, "left", "outer"):
		j += 2
	case p.is(j, "left"), p.is(j, "inner"):
		j++
	}
	if j >= hi || !p.is(j, "join") || p.is(i-1, ".") {
		return
	}
	a := Asof{Pos: int(p.toks[i].pos), on: -1, to: -1}
	open, depth := 1, 0 // joins that wait for their ON
	for k := j + 1; k < hi && depth >= 0 && open > 0; k++ {
		depth += p.nesting(k)
		switch {
		case depth != 0 || p.toks[k].kind != word:
		case p.is(k, "join") && !p.unconditional(k):
			open++
		case p.is(k, "using"):
			open--
		case p.is(k, "on"):
			if open--; open == 0 {
				a.on = int(p.toks[k].pos)
				for k++; k < hi && p.is(k, "("); k++ {
				}
				a.to = int(p.toks[k].pos)
			}
		}
	}
	c.Asof = append(c.Asof, a)
	m.blank(a.Pos, int(p.toks[i].end))
}

// unconditional says whether a JOIN has no ON: CROSS JOIN, NATURAL [LEFT [OUTER] …] JOIN.
func (p *parser) unconditional(i int) bool {
	if p.is(i-1, "cross") {
		return true
	}
	for i--; p.is(i, "outer") || p.is(i, "left") || p.is(i, "right") || p.is(i, "full") || p.is(i, "inner"); i-- {
	}
	return p.is(i, "natural")
}

// maskMapLiteral makes MAP {k: v, …} the call MAP (k, v, …), which is as long.
func (p *parser) maskMapLiteral(i, hi int, m *mask) error {
	depth := 0
	for k := i; k < hi; k++ {
		depth += p.nesting(k)
		switch {
		case depth == 0 && p.is(k, "}"):
			m.put(int(p.toks[i].pos), "(")
			m.put(int(p.toks[k].pos), ")")
			return nil
		case depth == 0:
			return p.unexpected(k)
		case depth == 1 && p.is(k, ":"):
			m.put(int(p.toks[k].pos), ",")
		}
	}
	return p.unexpected(hi)
}
