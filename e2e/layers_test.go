package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"streamdb/e2e/harness"
)

// layers lists the directories from the bottom up. A package imports only from
// its own directory and from directories on the lines before it.
var layers = [][]string{
	{"sql"},
	{"planner", "storage"},
	{"stream"},
	{"pgwire"},
	{"cmd"},
}

// outside are directories that are no part of the product: nothing in it imports
// them, and they import nothing of it.
var outside = []string{"e2e"}

// Tests that need thousands of databases run them in their own process; what they
// may know of the product is what a program that embeds it knows.
var (
	embedders = []string{"streamdb/e2e", "streamdb/e2e/embed"}
	embedded  = []string{"stream/engine", "storage", "sql/catalog", "sql/sqlerr", "sql/types"}
)

// parserModules are the external SQL parsers, and parserUsers those who may name them.
var (
	parserModules = []string{"github.com/pganalyze/pg_query_go", "github.com/wasilibs/go-pgquery"}
	parserUsers   = []string{"streamdb/sql/parser", "streamdb/planner/bind"}
)

func TestLayers(t *testing.T) {
	for _, cgo := range []string{"0", "1"} {
		for pkg, imports := range packages(t, cgo) {
			for _, imp := range imports {
				if fault := checkImport(pkg, imp); fault != "" {
					t.Errorf("CGO_ENABLED=%s: %s imports %s, %s", cgo, pkg, imp, fault)
				}
			}
		}
	}
}

// packages lists the module's packages with what they import, tests included.
func packages(t *testing.T, cgo string) map[string][]string {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all
}

// checkImport says what is wrong with pkg importing imp; empty: nothing.
func checkImport(pkg, imp string) string {
	if slices.ContainsFunc(parserModules, func(m string) bool { return strings.HasPrefix(imp, m) }) {
		if !slices.ContainsFunc(parserUsers, func(u string) bool { return pkg == u || strings.HasPrefix(pkg, u+"/") }) {
			return "which only " + strings.Join(parserUsers, " and ") + " may name"
		}
		return ""
	}
	path, ours := strings.CutPrefix(imp, "streamdb/")
	if !ours {
		return ""
	}
	from, _, _ := strings.Cut(strings.TrimPrefix(pkg, "streamdb/"), "/")
	to, _, _ := strings.Cut(path, "/")
	if from == to {
		return ""
	}
	if from == "e2e" && slices.Contains(embedders, pkg) && slices.Contains(embedded, path) {
		return ""
	}
	if slices.Contains(outside, from) || slices.Contains(outside, to) {
		return "but end-to-end tests and the product know nothing of each other"
	}
	lower := func(dir string) int {
		return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, dir) })
	}
	switch a, b := lower(from), lower(to); {
	case a < 0:
		return "but " + from + " is no layer"
	case b < 0:
		return "but " + to + " is no layer"
	case b >= a:
		return "which is not below it"
	}
	return ""
}

func TestCheckImport(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		ok       bool
	}{
		{"streamdb/stream/exec", "streamdb/storage", true},
		{"streamdb/stream/exec", "streamdb/stream", true},
		{"streamdb/stream/exec", "streamdb/pgwire", false},
		{"streamdb/planner/bind", "streamdb/storage", false},
		{"streamdb/storage", "streamdb/planner", false},
		{"streamdb/sql/expr", "streamdb/sql/types", true},
		{"streamdb/sql/expr", "streamdb/util", false},
		{"streamdb/cmd/streamdb", "streamdb/e2e/slt", false},
		{"streamdb/e2e", "streamdb/sql/expr", false},
		{"streamdb/e2e/slt", "streamdb/stream/engine", false},
		{"streamdb/e2e/embed", "streamdb/stream/engine", true},
		{"streamdb/stream/engine", "streamdb/e2e/embed", false},
		{"streamdb/e2e", "streamdb/e2e/slt", true},
		{"streamdb/sql/parser", "github.com/pganalyze/pg_query_go/v6", true},
		{"streamdb/planner", "github.com/wasilibs/go-pgquery", false},
		{"streamdb/sql/types", "fmt", true},
	} {
		if fault := checkImport(c.pkg, c.imp); (fault == "") != c.ok {
			t.Errorf("%s imports %s: %q, want ok %v", c.pkg, c.imp, fault, c.ok)
		}
	}
}
