package exec

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant is a wrong way to do something, made of the right one.
type mutant struct {
	what  string
	test  string
	edits []edit
}

type edit struct{ file, from, to string }

func readMutants(t *testing.T) (out []*mutant) {
	text, err := os.ReadFile("testdata/mutants")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, ok := strings.Cut(line, " ")
		if word == "mutant" {
			out = append(out, &mutant{what: rest})
		}
		if !ok || len(out) == 0 {
			t.Fatalf("testdata/mutants:%d: %q", n+1, line)
		}
		m := out[len(out)-1]
		last := len(m.edits) - 1
		join := func(s *string) {
			if *s != "" {
				*s += "\n"
			}
			*s += rest
		}
		switch word {
		case "mutant":
		case "test":
			m.test = rest
		case "file":
			m.edits = append(m.edits, edit{file: rest})
		case "-":
			join(&m.edits[last].from)
		case "+":
			join(&m.edits[last].to)
		default:
			t.Fatalf("testdata/mutants:%d: %q", n+1, line)
		}
	}
	return out
}

// files are the mutant's changed files by name.
func (m *mutant) files(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, e := range m.edits {
		text, ok := out[e.file]
		if !ok {
			b, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.from); n != 1 {
			t.Fatalf("%s: %q is there %d times in %s", m.what, e.from, n, e.file)
		}
		out[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
	return out
}

// The mutants are of this code, and their tests exist.
func TestMutantsApply(t *testing.T) {
	for _, m := range readMutants(t) {
		if m.files(t); m.test == "" || len(m.edits) == 0 {
			t.Errorf("%s: incomplete", m.what)
		}
	}
}

// Each mutant fails the test that is there for it. It takes minutes: STREAMDB_MUTANTS=1.
func TestMutants(t *testing.T) {
	if os.Getenv("STREAMDB_MUTANTS") == "" {
		t.Skip("STREAMDB_MUTANTS is not set")
	}
	for _, m := range readMutants(t) {
		t.Run(m.what, func(t *testing.T) {
			dir := t.TempDir()
			overlay := struct{ Replace map[string]string }{map[string]string{}}
			for name, text := range m.files(t) {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				real, err := filepath.Abs(name)
				if err != nil {
					t.Fatal(err)
				}
				overlay.Replace[real] = path
			}
			b, err := json.Marshal(overlay)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(dir, "test")
			if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", path, "-o", bin, ".").CombinedOutput(); err != nil {
				t.Fatalf("it does not build: %s", out)
			}
			name := m.test
			if !strings.ContainsAny(name, "/$") {
				name += "$"
			}
			out, err := exec.Command(bin, "-test.run", fmt.Sprint("^", name), "-test.timeout", "20s").CombinedOutput()
			if err == nil || strings.Contains(string(out), "no tests to run") {
				t.Fatalf("%s does not see it: %s", m.test, out)
			}
		})
	}
}
