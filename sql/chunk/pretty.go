package chunk

import (
	"fmt"
	"strings"

	"streamdb/sql/types"
)

// The pretty form of a chunk is for tests and golden files. The first line has
// the column types, each further line a row: its op, then its values.
//
//	I T TS
//	+ 1 abc 2026-01-01T00:00:00
//	- 2 "a b" .
//
// A point is NULL; a value is quoted where it is empty, a point itself, or has
// blanks, quotes or backslashes in it.

// prettyCodes are the short names of types; any other is written by its SQL name.
var prettyCodes = []struct {
	code string
	typ  types.Type
}{
	{"I", types.Int8}, {"i", types.Int4}, {"s", types.Int2}, {"T", types.Text}, {"F", types.Float8}, {"f", types.Float4},
	{"B", types.Bool}, {"D", types.Numeric}, {"DT", types.Date}, {"TM", types.Time}, {"TS", types.Timestamp}, {"TZ", types.Timestamptz},
	{"IV", types.IntervalT}, {"Y", types.Bytea},
}

func prettyType(code string) (types.Type, bool) {
	for _, p := range prettyCodes {
		if p.code == code {
			return p.typ, true
		}
	}
	if elem, ok := strings.CutSuffix(code, "[]"); ok {
		if t, ok := prettyType(elem); ok {
			return types.ArrayOf(t), true
		}
	}
	return types.ByName(code)
}

func prettyCode(t types.Type) string {
	for _, p := range prettyCodes {
		if p.typ == t {
			return p.code
		}
	}
	if t.Elem != nil && types.ArrayOf(*t.Elem).OID == t.OID {
		return prettyCode(*t.Elem) + "[]"
	}
	if info, ok := types.InfoOf(t.OID); ok && t.Mod == 0 {
		return info.Name
	}
	return strings.ReplaceAll(types.FormatType(t), " ", "_")
}

// Parse reads the pretty form. The ops U- and U+ stand for the two halves of an update. It panics on
// anything else: it is for tests.
func Parse(text string) *Chunk {
	text = strings.TrimLeft(text, " \t\n")
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") { // no columns, so the line of types was empty
		return ParseTyped(nil, text)
	}
	head, rows, _ := strings.Cut(text, "\n")
	var typs []types.Type
	for _, code := range strings.Fields(head) {
		t, ok := prettyType(code)
		if !ok {
			panic(fmt.Sprintf("chunk: no type %q in %q", code, head))
		}
		typs = append(typs, t)
	}
	return ParseTyped(typs, rows)
}

// ParseTyped reads rows in the pretty form, without the line of types.
func ParseTyped(typs []types.Type, text string) *Chunk {
	c := &Chunk{Cols: make([]Column, len(typs))}
	for i, t := range typs {
		c.Cols[i] = New(t, 0)
	}
	deletes := false
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		op, rest, _ := strings.Cut(line, " ")
		switch op {
		case "+", "U+":
			c.Ops = append(c.Ops, Insert)
		case "-", "U-":
			c.Ops = append(c.Ops, Delete)
			deletes = true
		default:
			panic(fmt.Sprintf("chunk: no op in %q", line))
		}
		words := prettyWords(rest)
		if len(words) != len(typs) {
			panic(fmt.Sprintf("chunk: %d values for %d columns in %q", len(words), len(typs), line))
		}
		for i, w := range words {
			if w.null {
				c.Cols[i].AppendNull()
				continue
			}
			d, err := types.ParseText(typs[i], w.text, nil)
			if err != nil {
				panic(fmt.Sprintf("chunk: %v in %q", err, line))
			}
			c.Cols[i].Append(d)
		}
		c.N++
	}
	if !deletes {
		c.Ops = nil
	}
	return c
}

type prettyWord struct {
	text string
	null bool
}

func prettyWords(s string) []prettyWord {
	var out []prettyWord
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return out
		}
		if s[0] != '"' {
			w, rest, _ := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
			out = append(out, prettyWord{w, w == "."})
			s = rest
			continue
		}
		var b strings.Builder
		i := 1
		for ; i < len(s) && s[i] != '"'; i++ {
			if s[i] == '\\' && i+1 < len(s) {
				if i++; s[i] == 'n' {
					b.WriteByte('\n')
					continue
				}
			}
			b.WriteByte(s[i])
		}
		out = append(out, prettyWord{text: b.String()})
		s = s[min(i+1, len(s)):]
	}
}

// String is c in the pretty form.
func (c *Chunk) String() string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for i, col := range c.Cols {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(prettyCode(col.Type()))
	}
	b.WriteByte('\n')
	for i := range c.N {
		b.WriteByte("+-"[c.Op(i)])
		for _, col := range c.Cols {
			b.WriteByte(' ')
			b.WriteString(PrettyValue(col.Type(), col.Datum(i)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// PrettyValue is one value in the pretty form.
func PrettyValue(t types.Type, d types.Datum) string {
	if d.IsNull() {
		return "."
	}
	s := string(types.AppendText(nil, t, d, nil))
	switch t.OID {
	case types.OIDTimestamp, types.OIDTimestamptz:
		s = strings.Replace(s, " ", "T", 1)
	}
	if s != "" && s != "." && !strings.ContainsAny(s, " \t\n\"\\") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
