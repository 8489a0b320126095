package expr

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// tableRows is what a call of a set-returning function gives: columns by |, rows by ;.
func tableRows(text string) (out string) {
	defer func() {
		if p := recover(); p != nil {
			err, ok := p.(error)
			if !ok {
				panic(p)
			}
			e := sqlerr.From(err)
			out = fmt.Sprintf("ERROR %s: %s", e.Code, e.Message)
		}
	}()
	r := &reader{toks: scan(text)}
	name := r.word()
	r.at++
	r.expect("(")
	args := r.list(")")
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	fn, want, err := ResolveTableFunc(name, ts)
	if err != nil {
		panic(err)
	}
	vals := make([]types.Datum, len(args))
	for i, a := range args {
		vals[i] = check(EvalConst(nil, check((&Ctx{}).MakeCast(a, want[i], false))))
	}
	rows := check(fn.Rows(&Ctx{}, vals))
	var lines []string
	for i := range rows.N {
		var cols []string
		for _, c := range rows.Cols {
			s := "NULL"
			if !c.Null(i) {
				s = check(output(nil, c.Type(), c.Datum(i)))
			}
			cols = append(cols, s)
		}
		lines = append(lines, strings.Join(cols, "|"))
	}
	return strings.Join(lines, ";")
}

// TestTableFuncs checks set-returning functions against PostgreSQL 15's answers.
func TestTableFuncs(t *testing.T) {
	data, err := os.ReadFile("testdata/tables.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		text, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want = strings.ReplaceAll(want, `\\`, `\`)
		if got := tableRows(text); got != want {
			t.Errorf("%s\n got %q\nwant %q", text, got, want)
		}
	}
}
