package parser

import (
	"errors"
	"testing"

	"streamdb/sql/sqlerr"
)

// FuzzParse: no text makes the parser panic, positions lie in the text, and a statement's text parses by itself to the same tag.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT 1; SHOW TABLES WHERE a = 1",
		"CREATE SOURCE s (a struct<x int, y map(varchar, int[])>, *, b int AS a + 1, WATERMARK FOR b AS b) INCLUDE header 'x' varchar AS h WITH (a.b = 'c', d = -1, e = SECRET f) FORMAT PLAIN ENCODE JSON (x = 'y')",
		"CREATE SINK s INTO t AS SELECT * FROM a ASOF LEFT JOIN b ON a.x = b.x JOIN c FOR SYSTEM_TIME AS OF PROCTIME() d ON true EMIT ON WINDOW CLOSE WITH (connector = 'x')",
		"CREATE MATERIALIZED VIEW v WITH (backfill_order = FIXED(a -> b -> c), x = 1) AS SELECT MAP {1: 2}::struct<a struct<b int>>",
		"EXPLAIN (VERBOSE, FORMAT JSON) ALTER MATERIALIZED VIEW v AS SELECT 1; CANCEL JOBS 1, 2; KILL '1'",
		"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; ALTER TABLE t SET x = bounded(1)",
		"COPY (SUBSCRIBE v) TO STDOUT; FETCH 1 FROM c WITH (timeout = '1s'); GRANT ALL ON SINK s TO u",
		"CREATE TABLE t (a int) APPEND ONLY ON CONFLICT DO UPDATE IF NOT NULL WITH VERSION COLUMN (a) FROM s TABLE 'x'",
		"U&\"a\" E'\\'' $a$ $$ $a$ B'1' /* /* */ */ -- \n 'é' `x`",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10000 {
			return
		}
		stmts, err := Parse(text)
		if err != nil {
			var e *sqlerr.Error
			if !errors.As(err, &e) || e.Code == sqlerr.Internal {
				t.Fatalf("%q: %v (%T)", text, err, err)
			}
			if e.Pos < 0 || e.Pos > len(text)+1 {
				t.Fatalf("%q: position %d", text, e.Pos)
			}
			return
		}
		for i := range stmts {
			s := &stmts[i]
			if (s.Node == nil) == (s.Ext == nil) {
				t.Fatalf("%q: statement %d is %v and %v", text, i, s.Node, s.Ext)
			}
			DefiningQuery(s)
			again, err := Parse(s.Text)
			if err != nil || len(again) != 1 || Tag(&again[0]) != Tag(s) {
				t.Fatalf("%q: %q parses to %v, %v", text, s.Text, again, err)
			}
			if s.Node != nil && !Equal(s.Node, again[0].Node) {
				t.Fatalf("%q: %q parses to another tree", text, s.Text)
			}
		}
		if _, _, err := ParseExprClauses(text); err != nil && sqlerr.Code(err) == sqlerr.Internal {
			t.Fatal(err)
		}
		if _, err := ParseTypeRef(text); err != nil && sqlerr.Code(err) == sqlerr.Internal {
			t.Fatal(err)
		}
	})
}
