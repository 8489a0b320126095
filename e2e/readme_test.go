package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamdb/e2e/harness"
	"streamdb/e2e/slt"
)

// TestReadme plays the README's session through psql: what it shows is what one gets.
func TestReadme(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```\ndev=> ")
	session, _, found := strings.Cut("dev=> "+rest, "\n```")
	if !found {
		t.Fatal("README.md has no session that begins with dev=>")
	}
	var script, want strings.Builder
	for line := range strings.Lines(session + "\n") {
		if sql, is := strings.CutPrefix(line, "dev=> "); is {
			script.WriteString(sql)
		} else if sql, is := strings.CutPrefix(line, "dev-> "); is {
			script.WriteString(sql)
		} else {
			want.WriteString(line)
		}
	}
	s := startServer(t)
	cmd := psqlCommand(t.Context(), s.Addr(), "dev", script.String())
	cmd.Dir = root
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, got)
	}
	// The last blank line of a table is lost where the session in the file ends.
	a, b := strings.TrimRight(want.String(), "\n"), strings.TrimRight(string(got), "\n")
	if a != b {
		t.Errorf("README.md differs (- README, + psql)\n%s", slt.Diff(strings.Split(a, "\n"), strings.Split(b, "\n")))
	}
}

// TestDemo plays docs/demo.sql, which must end without an error and leave nothing.
func TestDemo(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "demo.sql"))
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t)
	if out := psql(t, s.Addr(), "dev", string(text)); !strings.Contains(out, "Harbour|2|39.50|25.00") {
		t.Errorf("the demo shows no total of Harbour:\n%s", out)
	}
	if left := psql(t, s.Addr(), "dev", "SELECT relname FROM pg_class WHERE relname IN ('spend', 'top3', 'shops', 'sales');\n"); left != "" {
		t.Errorf("the demo left %s", left)
	}
}
