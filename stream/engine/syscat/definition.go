package syscat

import (
	"strings"

	"streamdb/sql/parser"
)

// definition is the CREATE INDEX statement of an index, as pg_get_indexdef writes it.
func (x *index) definition() string {
	var b strings.Builder
	b.WriteString("CREATE ")
	if x.unique {
		b.WriteString("UNIQUE ")
	}
	b.WriteString("INDEX " + parser.QuoteIdent(x.name) + " ON " + x.table.qualified() + " USING btree (")
	for i := range x.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(x.keyColumn(i))
		if x.keys[i].Desc {
			b.WriteString(" DESC")
		}
	}
	b.WriteByte(')')
	for i, c := range x.included {
		if i == 0 {
			b.WriteString(" INCLUDE (")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(parser.QuoteIdent(x.table.rel.Columns[c].Name))
		if i == len(x.included)-1 {
			b.WriteByte(')')
		}
	}
	return b.String()
}

// keyColumn is the name of key column i.
func (x *index) keyColumn(i int) string {
	return parser.QuoteIdent(x.table.rel.Columns[x.keys[i].Col].Name)
}

// qualified is the name of c as it stands in SQL, with its schema.
func (c *class) qualified() string {
	return parser.QuoteIdent(c.schema) + "." + parser.QuoteIdent(c.name)
}

// definition is a constraint as pg_get_constraintdef writes it; pretty leaves out
// the parentheses that are not needed.
func (c *constraint) definition(pretty bool) string {
	if c.kind == 'c' {
		check := c.check
		if !enclosed(check) {
			check = "(" + check + ")"
		}
		if pretty {
			return "CHECK " + check
		}
		return "CHECK (" + check + ")"
	}
	names := make([]string, len(c.keys))
	for i, k := range c.keys {
		names[i] = parser.QuoteIdent(c.table.attrs[k-1].col.Name)
	}
	return "PRIMARY KEY (" + strings.Join(names, ", ") + ")"
}

// enclosed reports whether s is one expression in parentheses.
func enclosed(s string) bool {
	if !strings.HasPrefix(s, "(") || strings.ContainsAny(s, `'"$`) {
		return false // parentheses in quotes are not worth counting
	}
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(s)-1
			}
		}
	}
	return false
}
