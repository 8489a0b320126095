package slt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestParse(t *testing.T) {
	records, err := Parse("a.slt", `# a comment
statement ok
CREATE TABLE t (a int);

onlyif streamdb
statement error 42P01 relation "x" .*
SELECT * FROM x

statement count 3 retry 2 backoff 100ms
INSERT INTO t
VALUES (1), (2), (3)

query IT rowsort lab retry 3 backoff 1s
SELECT 1, 'a'
----
1 a

query error
SELECT nope
----
column "nope" does not exist

connection two

include _x.slt

sleep 1500ms

hash-threshold 8

control sortmode rowsort

subtest deep

halt
`)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []Kind{Statement, Statement, Statement, Query, Query, Connection, Include, Sleep, HashThreshold, Control, Subtest, Halt}
	if len(records) != len(kinds) {
		t.Fatalf("%d records, want %d", len(records), len(kinds))
	}
	for i, k := range kinds {
		if records[i].Kind != k {
			t.Errorf("record %d (%s): kind %d, want %d", i, records[i].Pos, records[i].Kind, k)
		}
	}
	if r := records[1]; r.Want.Code != "42P01" || r.Want.Message.String() != `relation "x" .*` || len(r.Guards) != 1 || !r.Guards[0].Only || r.Line != 6 {
		t.Errorf("error statement: %+v", r)
	}
	if r := records[2]; r.Want.Count != 3 || r.Retry != (Retry{2, 100 * time.Millisecond}) || r.SQL != "INSERT INTO t\nVALUES (1), (2), (3)" {
		t.Errorf("count statement: %+v", r)
	}
	if r := records[3]; r.Sort != RowSort || r.Label != "lab" || r.Retry != (Retry{3, time.Second}) || strings.Join(r.Want.Lines, "|") != "1 a" {
		t.Errorf("query: %+v", r)
	}
	if r := records[4]; !r.Want.Err || strings.Join(r.Want.Full, "|") != `column "nope" does not exist` {
		t.Errorf("query error: %+v", r)
	}
	if r := records[7]; r.Wait != 1500*time.Millisecond {
		t.Errorf("sleep: %+v", r)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"system ok\necho":              "1: system is refused",
		"\nstatement ok\n\nhalt":       `2: no SQL below "statement ok"`,
		"statement maybe\nSELECT 1":    `1: unknown expectation "maybe"`,
		"statement error (\nSELECT 1":  "1: error parsing regexp",
		"statement ok\nSELECT 1\n----": "3: a statement has no rows",
		"sleep long":                   "1: time: invalid duration",
		"onlyif x":                     "2: skipif or onlyif without a record",
		"frobnicate":                   `1: unknown record "frobnicate"`,
		"query I retry x backoff 1s\n": "1: retry wants a number",
	} {
		_, err := Parse("f", text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFormat(t *testing.T) {
	rows := [][][]byte{{[]byte("b"), nil}, {[]byte("a"), {}}, {[]byte("x\ny"), []byte(" ")}, {[]byte(" "), []byte(" ")}}
	for mode, want := range map[SortMode]string{
		NoSort:    `b NULL|a (empty)|x\ny|(blank)`,
		RowSort:   `(blank)|a (empty)|b NULL|x\ny`,
		ValueSort: ` | | |(empty)|NULL|a|b|x\ny`,
	} {
		if got := strings.Join(format(rows, mode), "|"); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	if got, want := hash([]string{"1", "2"}, 2), "2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0"; got != want {
		t.Errorf("hash: %s, want %s", got, want)
	}
}

func TestCheck(t *testing.T) {
	parse := func(text string) Record {
		records, err := Parse("f", text)
		if err != nil {
			t.Fatal(err)
		}
		return records[0]
	}
	noTable := &pgconn.PgError{Code: "42P01", Message: `relation "t" does not exist`}
	for _, c := range []struct {
		text string
		got  outcome
		want string // part of the error; empty: met
	}{
		{"statement ok\nX", outcome{}, ""},
		{"statement ok\nX", outcome{err: noTable}, "error 42P01"},
		{"statement count 2\nX", outcome{count: 2}, ""},
		{"statement count 2\nX", outcome{count: 1}, "1 rows changed, want 2"},
		{"statement error\nX", outcome{err: noTable}, ""},
		{"statement error\nX", outcome{}, "want an error"},
		{"statement error 42P01\nX", outcome{err: noTable}, ""},
		{"statement error 42703\nX", outcome{err: noTable}, "want SQLSTATE 42703"},
		{"statement error 42P01 exist$\nX", outcome{err: noTable}, ""},
		{"statement error nowhere\nX", outcome{err: noTable}, `like "nowhere"`},
		{"query error\nX\n----\nrelation \"t\" does not exist", outcome{err: noTable}, ""},
		{"query error\nX\n----\nrelation \"u\" does not exist", outcome{err: noTable}, "message differs"},
		{"query I\nX\n----\n1\n2", outcome{columns: 1, lines: []string{"1", "2"}}, ""},
		{"query I\nX\n----\n1\n2", outcome{columns: 1, lines: []string{"1", "3"}}, "- 2\n\t+ 3"},
		{"query II\nX\n----\n1", outcome{columns: 1, lines: []string{"1"}}, "1 columns, want 2"},
	} {
		r := runner{labels: map[string]labelled{}}
		err := r.check(parse(c.text), c.got)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.slt")
	text := `# kept
query I rowsort
SELECT 1

statement ok
SELECT nope

query TT
SELECT 1, 2
----
old
older

# the end
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	records, err := ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := []outcome{
		{columns: 1, lines: []string{"1"}},
		{err: &pgconn.PgError{Code: "42703"}},
		{columns: 2, lines: []string{"1 2"}},
	}
	var edits []edit
	for i, r := range records {
		edits = append(edits, *editOf(r, got[i]))
	}
	if err := rewrite(path, edits); err != nil {
		t.Fatal(err)
	}
	want := `# kept
query I rowsort
SELECT 1
----
1

statement error 42703
SELECT nope

query TT
SELECT 1, 2
----
1 2

# the end
`
	if b, _ := os.ReadFile(path); string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
}

func TestDiff(t *testing.T) {
	if got, want := Diff([]string{"a", "b", "c"}, []string{"a", "x", "c"}), "\t  a\n\t- b\n\t+ x\n\t  c"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
