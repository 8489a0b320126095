package parser

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// TestGolden runs the scripts in testdata: the text after a command is parsed, and what comes out is printed.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "parse":
				stmts, err := Parse(d.Input)
				if err != nil {
					return dumpError(d.Input, err)
				}
				checkLocations(t, d, d.Input, stmts)
				var b strings.Builder
				for i := range stmts {
					dumpStatement(&b, d.Input, &stmts[i])
				}
				return b.String()
			case "expr":
				n, c, err := ParseExprClauses(d.Input)
				if err != nil {
					return dumpError(d.Input, err)
				}
				checkNames(t, d, d.Input, n)
				return dump(n) + dumpClauses(&c) + "\n"
			case "type":
				n, err := ParseTypeRef(d.Input)
				if err != nil {
					return dumpError(d.Input, err)
				}
				return dump(n) + "\n"
			case "tags":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					s, err := ParseOne(strings.TrimSpace(line))
					if err != nil {
						b.WriteString(dumpError(line, err))
						continue
					}
					fmt.Fprintln(&b, Tag(&s))
				}
				return b.String()
			case "set":
				var b strings.Builder
				for line := range strings.Lines(d.Input) {
					s, err := ParseOne(strings.TrimSpace(line))
					if err != nil {
						b.WriteString(dumpError(line, err))
						continue
					}
					n := s.Node.GetVariableSetStmt()
					if n == nil {
						fmt.Fprintf(&b, "%T\n", s.Node.Node)
						continue
					}
					v, err := SetValues(n)
					fmt.Fprintf(&b, "%s %s %q %v\n", n.Kind, n.Name, v, err)
				}
				return b.String()
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func dumpError(text string, err error) string {
	e := sqlerr.From(err)
	s := fmt.Sprintf("%s %s", e.Code, e.Message)
	if e.Pos > 0 {
		s += fmt.Sprintf("\n  at %d: %.20q", e.Pos-1, text[e.Pos-1:])
	}
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s + "\n"
}

func dumpStatement(b *strings.Builder, text string, s *Statement) {
	if text[s.Offset:s.Offset+s.Len] != s.Text {
		fmt.Fprintf(b, "TEXT DIFFERS: ")
	}
	fmt.Fprintf(b, "%d+%d %s", s.Offset, s.Len, Tag(s))
	if s.Params > 0 {
		fmt.Fprintf(b, " params=%d", s.Params)
	}
	b.WriteString("\n")
	if s.Ext != nil {
		fmt.Fprintf(b, "  %s\n", dump(s.Ext))
	} else {
		fmt.Fprintf(b, "  %s\n", dump(s.Node))
	}
	if c := dumpClauses(&s.Clauses); c != "" {
		fmt.Fprintf(b, " %s\n", c)
	}
	if q, at := DefiningQuery(s); q != "" {
		fmt.Fprintf(b, "  query at %d: %s\n", at, q)
	}
}

func dumpClauses(c *Clauses) string {
	if c.empty() {
		return ""
	}
	return " " + dump(c)
}

// dump prints a struct of ours with the fields that are not zero, and a tree as SQL.
func dump(v any) string {
	var b strings.Builder
	dumpValue(&b, reflect.ValueOf(v))
	return b.String()
}

func dumpValue(b *strings.Builder, v reflect.Value) {
	if v.Kind() == reflect.Pointer && !v.IsNil() && v.CanInterface() {
		if m, ok := v.Interface().(proto.Message); ok {
			b.WriteString(dumpTree(m))
			return
		}
		if s, ok := v.Interface().(*Statement); ok {
			b.WriteString("{\n")
			dumpStatement(b, strings.Repeat(" ", s.Offset)+s.Text, s)
			b.WriteString("}")
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		dumpValue(b, v.Elem())
	case reflect.Struct:
		if n, ok := v.Interface().(Name); ok {
			parts := []string{n.Catalog, n.Schema, n.Name}
			fmt.Fprintf(b, "%s@%d", strings.TrimLeft(strings.Join(parts, "."), "."), n.Pos)
			return
		}
		if o, ok := v.Interface().(Option); ok {
			fmt.Fprintf(b, "%s@%d=%s %q@%d", o.Name, o.Pos, o.Kind, o.Value, o.ValuePos)
			return
		}
		b.WriteString(v.Type().Name() + "{")
		sep := ""
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && v.Type().Field(i).IsExported() {
				b.WriteString(sep + v.Type().Field(i).Name + ": ")
				dumpValue(b, f)
				sep = ", "
			}
		}
		b.WriteString("}")
	case reflect.Slice:
		b.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			dumpValue(b, v.Index(i))
		}
		b.WriteString("]")
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprintf(b, "%v", v.Interface())
	}
}

func dumpTree(m proto.Message) string {
	var s string
	var err error
	switch n := m.(type) {
	case *ast.TypeName:
		s, err = DeparseType(n)
	case *ast.CreateStmt:
		s, err = Deparse(&ast.Node{Node: &ast.Node_CreateStmt{CreateStmt: n}})
	case *ast.CreateTableAsStmt:
		s, err = Deparse(&ast.Node{Node: &ast.Node_CreateTableAsStmt{CreateTableAsStmt: n}})
	case *ast.IndexStmt:
		s, err = Deparse(&ast.Node{Node: &ast.Node_IndexStmt{IndexStmt: n}})
	case *ast.FetchStmt:
		s, err = Deparse(&ast.Node{Node: &ast.Node_FetchStmt{FetchStmt: n}})
	case *ast.AlterTableStmt:
		s, err = Deparse(&ast.Node{Node: &ast.Node_AlterTableStmt{AlterTableStmt: n}})
	case *ast.Node:
		if strings.HasSuffix(fmt.Sprintf("%T", n.Node), "Stmt") {
			s, err = Deparse(n)
		} else {
			s, err = DeparseExpr(n)
		}
	}
	if err != nil {
		return err.Error()
	}
	return "«" + s + "»"
}

// checkLocations demands that each name in a tree stands in the text where its location says.
func checkLocations(t *testing.T, d *datadriven.TestData, text string, stmts []Statement) {
	for _, s := range stmts {
		if s.Node != nil {
			checkNames(t, d, text, s.Node)
		}
		if s.Ext != nil {
			checkIn(t, d, text, reflect.ValueOf(s.Ext))
		}
	}
}

func checkIn(t *testing.T, d *datadriven.TestData, text string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if m, ok := v.Interface().(proto.Message); ok {
			checkNames(t, d, text, m)
			return
		}
		checkIn(t, d, text, v.Elem())
	case reflect.Struct:
		if n, ok := v.Interface().(Name); ok && n != (Name{}) {
			first := n.Name
			if n.Schema != "" {
				first = n.Schema
			}
			if n.Catalog != "" {
				first = n.Catalog
			}
			if !begins(text[n.Pos:], first) {
				t.Errorf("%s: %v is not at %d", d.Pos, n, n.Pos)
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				checkIn(t, d, text, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkIn(t, d, text, v.Index(i))
		}
	}
}

func begins(text, name string) bool {
	return len(text) >= len(name) && strings.EqualFold(text[:len(name)], name) || strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "U&") || strings.HasPrefix(text, "u&")
}

func checkNames(t *testing.T, d *datadriven.TestData, text string, m proto.Message) {
	walk(m.ProtoReflect(), func(m protoreflect.Message) {
		name, at := "", int32(-1)
		switch n := m.Interface().(type) {
		case *ast.ColumnRef:
			name, at = n.Fields[0].GetString_().GetSval(), n.Location
		case *ast.RangeVar:
			name, at = n.Relname, n.Location
			if n.Schemaname != "" {
				name = n.Schemaname
			}
			if n.Catalogname != "" {
				name = n.Catalogname
			}
		case *ast.ColumnDef:
			name, at = n.Colname, n.Location
		}
		if at >= 0 && !begins(text[at:], name) {
			t.Errorf("%s: %q is not at %d", d.Pos, name, at)
		}
	})
}

func walk(m protoreflect.Message, f func(protoreflect.Message)) {
	f(m)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), f)
			}
		default:
			walk(v.Message(), f)
		}
		return true
	})
}

// TestErrorType: every error is one that the wire can show.
func TestErrorType(t *testing.T) {
	for _, text := range []string{"selec", "select 'a", "show create", "\x00", "a\xff", "create source s (a int) with", "select 1 limit 1,2", "(", "create sink"} {
		_, err := Parse(text)
		var e *sqlerr.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v (%T)", text, err, err)
		}
	}
}

// TestDeep: texts that would make PostgreSQL's C code overflow its stack are refused before it sees them.
func TestDeep(t *testing.T) {
	for _, n := range []int{1000, maxDepth - 100, maxDepth + 10, 200000} {
		for name, text := range deepTexts(n) {
			if n > 20000 && strings.HasPrefix(name, "flat") {
				continue // only slow
			}
			_, err := Parse(text)
			if err != nil && sqlerr.Code(err) != "54001" {
				t.Errorf("%s × %d: %v", name, n, err)
			}
			if flat := strings.HasPrefix(name, "flat"); err != nil && (flat || n == 1000) || err == nil && !flat && n > maxDepth {
				t.Errorf("%s × %d: %v", name, n, err)
			}
		}
	}
}

// TestDeepTypes: so are types.
func TestDeepTypes(t *testing.T) {
	for _, text := range []string{strings.Repeat("struct<a ", 5000), strings.Repeat("map(int, ", 5000), "create table t (" + strings.Repeat("a struct<a int, b ", 5000),
		strings.Repeat("struct<a ", 200) + "int" + strings.Repeat(">", 200), "select " + strings.Repeat("x::struct<a int, b ", 3000)} {
		if _, err := ParseTypeRef(text); err == nil {
			t.Errorf("%.20s… is a type", text)
		}
		if _, err := Parse(text); err == nil {
			t.Errorf("%.20s… is a statement", text)
		}
	}
}

// TestClauseLookup: the clauses are found again from the nodes of the tree.
func TestClauseLookup(t *testing.T) {
	s, err := ParseOne(`SELECT x::struct<a int>, y::int FROM s.a, b JOIN c FOR SYSTEM_TIME AS OF PROCTIME() AS d ON b.x = d.x
		JOIN (e ASOF JOIN (f JOIN g ON f.x = g.x CROSS JOIN h) ON ((e.x = f.x)) AND e.t >= f.t) ON true ASOF LEFT JOIN i NATURAL LEFT JOIN j ON CAST(a.x AS int) = i.x`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	walk(s.Node.ProtoReflect(), func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *ast.RangeVar:
			if s.Clauses.IsTemporal(n) {
				got = append(got, "temporal "+n.Relname)
			}
		case *ast.JoinExpr:
			if s.Clauses.IsAsof(n) {
				q, err := DeparseExpr(n.Quals)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, "asof "+q)
			}
		case *ast.TypeName:
			if c := s.Clauses.Composite(n); c != nil {
				got = append(got, fmt.Sprintf("composite of %d", len(c.Fields)))
			}
		}
	})
	slices.Sort(got)
	want := []string{"asof a.x::int = i.x", "asof e.x = f.x AND e.t >= f.t", "composite of 1", "temporal c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRoundTrip: what Deparse writes parses to the same tree.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		"SELECT DISTINCT ON (a) a, b AS \"B\" FROM t, LATERAL (SELECT * FROM u WHERE u.x = t.x) v WHERE a IN (1, 2) AND b LIKE 'x%' ORDER BY a DESC NULLS FIRST LIMIT 1 OFFSET 2",
		"SELECT sum(x) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), CASE a WHEN 1 THEN 'x' ELSE NULL END, a::numeric(10, 2), ARRAY[1, 2], e'\\n' FROM t",
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
		"INSERT INTO t (a, b) VALUES (1, DEFAULT) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *",
	} {
		a, err := ParseOne(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Deparse(a.Node)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseOne(again)
		if err != nil || !Equal(a.Node, b.Node) {
			t.Errorf("%s\nis written as\n%s\n%v", text, again, err)
		}
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "A": `"A"`, "a b": `"a b"`, `a"b`: `"a""b"`, "select": `"select"`, "int": `"int"`, "left": `"left"`, "text": "text", "": `""`, "1a": `"1a"`, "é": `"é"`, "a$": `"a$"`} {
		if got := QuoteIdent(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for s, want := range map[string]string{"a": "'a'", "a'b": "'a''b'", `a\b`: `E'a\\b'`} {
		if got := QuoteLiteral(s); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}

func deepTexts(n int) map[string]string {
	r := strings.Repeat
	return map[string]string{
		"plus":        "select 1" + r("+1", n),
		"minus":       "select " + r("- ", n) + "1",
		"not":         "select " + r("not ", n) + "a",
		"cast":        "select 1" + r("::int", n),
		"union":       "select 1,2" + r(" union select 1,2", n),
		"join":        "select 1 from a" + r(" join a on x and y", n),
		"is null":     "select a" + r(" is null", n),
		"collate":     "select a" + r(` collate "C"`, n),
		"zone":        "select a" + r(" at time zone 'UTC'", n),
		"nested plus": "select " + r("(1+", n) + "1" + r(")", n),
		"calls":       "select " + r("f(", 2*n) + "1" + r(")", 2*n),
		"flat and":    "select a" + r(" and a = 1 + 2", n),
		"flat or":     "select a" + r(" or not a", n),
		"flat list":   "select 1 in (1" + r(",1+2", n) + ")",
		"flat values": "insert into t values (1, -1)" + r(",(1, -2)", n),
		"flat where":  "select a" + r(", x + 1", n) + " from b",
	}
}
