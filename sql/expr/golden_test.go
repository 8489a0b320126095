package expr

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
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
	for _, file := range []string{"operators", "casts", "math", "strings", "datetime", "arrays", "tochar", "misc"} {
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
