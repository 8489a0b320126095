//go:build cgo

package parser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	wasm "github.com/wasilibs/go-pgquery"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"streamdb/sql/parser/ast"
)

// texts are the inputs of all golden files.
func texts(tb testing.TB) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal(err, files)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		for part := range strings.SplitSeq(string(b), "\n\n") {
			if _, text, ok := strings.Cut(part, "\n"); ok {
				text, _, _ = strings.Cut(text, "\n----")
				out = append(out, text)
			}
		}
	}
	return out
}

// TestBackendsAgree: the C build and the WebAssembly build of the grammar give equal trees and equal errors. A build has one of
// them; this test links both.
func TestBackendsAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("the WebAssembly module takes seconds to compile")
	}
	for _, text := range texts(t) {
		a, errA := pg_query.Parse(text)
		b, errB := wasm.Parse(text)
		noArgLocation(a)
		noArgLocation(b)
		switch {
		case (errA == nil) != (errB == nil), errA != nil && errA.Error() != errB.Error():
			t.Errorf("%q: %v, %v", text, errA, errB)
		case errA == nil && !proto.Equal(a, b):
			t.Errorf("%q: the trees differ", text)
		}
		if errA != nil || len(a.Stmts) == 0 {
			continue
		}
		x, errX := pg_query.Deparse(a)
		y, errY := wasm.Deparse(b)
		if x != y || (errX == nil) != (errY == nil) {
			t.Errorf("%q: written as %q (%v), %q (%v)", text, x, errX, y, errY)
		}
	}
}

// noArgLocation clears what only the C build's release notes: where the grammar of PostgreSQL wrote an option's argument.
func noArgLocation(r *ast.ParseResult) {
	if r == nil {
		return
	}
	walk(r.ProtoReflect(), func(m protoreflect.Message) {
		if d, ok := m.Interface().(*ast.DefElem); ok {
			d.ArgLocation = 0
		}
	})
}

// TestLexer: our scanner cuts as PostgreSQL's.
func TestLexer(t *testing.T) {
	more := []string{"a=-1", "a@-1", "a<=-1", "1.5e3.2", "1..10", ".5", "5.", "1e5", "1e", "0x1F", "0x", "1_000", "$1 $a$x$a$", "a$1 _b é1", "a--b\n+1", "a/*x*/b", "a*/*x*/b",
		"x'1f' b'01' e'a\\'b' u&'x' u&\"x\"", "a::int :=b =>c a:b", "a<>b a!=b a>=b ||", "'a''b' \"a\"\"b\"", "a[1:2]", "~~* !~~*", "+-*/", "@#", "<-", "->>", "?|", "a.b.*"}
	for _, text := range append(texts(t), more...) {
		want, err := pg_query.Scan(text)
		if err != nil {
			continue
		}
		got, e := lex(text)
		if e != nil && strings.HasPrefix(e.Message, "trailing junk after parameter") {
			continue // PostgreSQL 15 refuses that too, the linked grammar does not
		}
		if e != nil {
			t.Errorf("%q: %v", text, e)
			continue
		}
		i := 0
		for _, w := range want.Tokens {
			if w.Token == pg_query.Token_SQL_COMMENT || w.Token == pg_query.Token_C_COMMENT {
				continue
			}
			if i >= len(got.toks) || got.toks[i].pos != w.Start || got.toks[i].end != w.End {
				t.Errorf("%q: token %d is %v, want %d to %d", text, i, got.toks[min(i, len(got.toks)-1)], w.Start, w.End)
				break
			}
			i++
		}
	}
}
