package bind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
)

// FuzzBind: whatever the text, binding gives a plan or an error a client may see, and does not panic.
func FuzzBind(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	w := newWorld()
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			cmd, rest, _ := strings.Cut(block, "\n")
			input, _, _ := strings.Cut(rest, "\n----")
			for stmt := range strings.SplitSeq(input, "\n;;\n") {
				if strings.HasPrefix(cmd, "bind") {
					f.Add(stmt)
				}
				if stmts, err := parser.Parse(stmt); cmd == "setup" && err == nil {
					for _, s := range stmts {
						_, _ = w.ddl(s)
					}
				}
			}
		}
	}
	judged := newWorld()
	for i, path := range judgedFiles(f) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		setup, rest, _ := strings.Cut(string(text), "\n\n")
		if stmts, err := parser.Parse(setup); i == 0 && err == nil {
			for _, s := range stmts {
				_, _ = judged.ddl(s)
			}
		}
		for block := range strings.SplitSeq(rest, "\n\n") {
			stmt, _, _ := strings.Cut(strings.TrimSpace(block), "\n")
			f.Add(stmt)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		stmts, err := parser.Parse(text)
		if err != nil {
			return
		}
		for _, s := range stmts {
			if s.Node == nil {
				continue
			}
			for _, w := range []*world{w, judged} {
				if _, _, err := Bind(s, w.options()); sqlerr.Code(err) == sqlerr.Internal {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	})
}
