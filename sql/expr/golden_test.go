package expr

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// answer is the value of an SQL expression as psql shows it, or its error.
func answer(text string, e Expr, err error) string {
	if err == nil {
		var d chunk.Column
		if d, err = Eval(&Ctx{}, e, &chunk.Chunk{N: 1}); err == nil {
			if d.Null(0) {
				return "NULL"
			}
			s, err := output(nil, e.Type(), d.Datum(0))
			if err != nil {
				return err.Error()
			}
			return s
		}
	}
	se := sqlerr.From(err)
	return fmt.Sprintf("ERROR %s: %s", se.Code, se.Message)
}

// TestGolden checks expressions against PostgreSQL 15's answers, which testdata/*.tsv hold: expression, tab, answer.
func TestGolden(t *testing.T) {
	for _, file := range []string{"operators", "casts", "math", "strings", "datetime", "arrays", "tochar", "misc", "json", "jsonpath", "edge"} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + file + ".tsv")
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
				text, want, ok := strings.Cut(line, "\t")
				if !ok {
					t.Fatalf("line %d: no tab", n+1)
				}
				want = strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(want)
				e, err := readExpr(text, nil)
				if got := answer(text, e, err); got != want {
					t.Errorf("line %d: %s\n got %q\nwant %q", n+1, text, got, want)
				}
			}
		})
	}
}

// FuzzTemplates looks for panics in what reads templates, patterns and encodings.
func FuzzTemplates(f *testing.F) {
	for _, s := range []string{"FM9,999.99MI", "9.9EEEE", "RN", "S00V9", "PR.0", "YYYY-MM-DD HH24:MI:SS.US TZH", "Y,YYY IDDDth", "%2$-*3$s %I", `(a|b)+?\y[[:alpha:]]`, "a\\_%"} {
		f.Add(s, "12.5 March 2001")
	}
	calls := []string{"to_char", "to_number", "to_date", "to_timestamp", "regexp_replace", "regexp_match", "encode", "decode", "format", "similar_to_escape",
		"split_part", "date_trunc", "timezone"}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 60 || len(text) > 60 {
			return
		}
		p, s := &Const{Val: types.NewString(pattern), Typ: types.Text}, &Const{Val: types.NewString(text), Typ: types.Text}
		num := &Const{Val: types.NewDecimal(types.NewDecimalParts(int64(len(text))*7919-1000, len(pattern)%5)), Typ: types.Numeric}
		ts := &Const{Val: types.NewInt(int64(len(text)) * 1234567890123), Typ: types.Timestamp}
		iv := &Const{Val: types.NewInterval(types.Interval{Months: int32(len(text)), Days: 3, Micros: -123456789}), Typ: types.IntervalT}
		bytes := &Const{Val: types.NewString(text), Typ: types.Bytea}
		for _, name := range calls {
			for _, args := range [][]Expr{{s, p}, {num, p}, {ts, p}, {iv, p}, {p, ts}, {p, s}, {p, s, num}, {s, p, s}, {bytes, p}, {p, iv}} {
				ts := make([]types.Type, len(args))
				for i, a := range args {
					ts[i] = a.Type()
				}
				fn, want, err := Resolve(name, false, ts)
				if err != nil {
					continue
				}
				cast := make([]Expr, len(args))
				for i, a := range args {
					cast[i] = &Cast{Arg: a, Typ: want[i], Explicit: true}
				}
				EvalConst(nil, &Call{Fn: fn, Args: cast, Typ: fn.Ret}) // errors are fine
			}
		}
	})
}
