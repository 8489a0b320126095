package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"streamdb/e2e/harness"
	"streamdb/e2e/slt"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestCommon plays testdata/common on PostgreSQL, which made the answers in it
// (-rewrite), and on streamdb, which must give the same.
func TestCommon(t *testing.T) {
	eachFile(t, "testdata/common/*.slt", func(t *testing.T, path string) {
		t.Run("postgres", func(t *testing.T) {
			p, db := judge(t)
			play(t, path, slt.Options{
				Connect: func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, db) },
				Before:  harness.Refresh,
				Labels:  []string{"postgres", "postgresql"},
				Rewrite: *rewrite,
			})
		})
		if *rewrite {
			return
		}
		t.Run("streamdb", func(t *testing.T) {
			play(t, path, slt.Options{Connect: startServer(t).Connect, Labels: []string{"streamdb", "risingwave"}})
		})
	})
}

// TestExtended plays files of testdata/common through the extended protocol.
func TestExtended(t *testing.T) {
	eachFile(t, "testdata/common/[adqt]*.slt", func(t *testing.T, path string) {
		play(t, path, slt.Options{Connect: startServer(t).Connect, Labels: []string{"streamdb", "risingwave"}, Extended: true})
	})
}

// TestStreamdb plays testdata/streamdb: what PostgreSQL does not know.
func TestStreamdb(t *testing.T) {
	eachFile(t, "testdata/streamdb/*.slt", func(t *testing.T, path string) {
		play(t, path, slt.Options{Connect: startServer(t).Connect, Labels: []string{"streamdb", "risingwave"}, Rewrite: *rewrite})
	})
}

// TestMemory plays one file on a server that keeps everything in memory.
func TestMemory(t *testing.T) {
	s := newServer(t)
	s.Data = ":memory:"
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	play(t, "testdata/common/views.slt", slt.Options{Connect: s.Connect, Labels: []string{"streamdb", "risingwave"}})
}

// eachFile runs a test for each file; files whose name begins with _ are for including.
func eachFile(t *testing.T, glob string, run func(t *testing.T, path string)) {
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no files (%v)", glob, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".slt")
		if strings.HasPrefix(name, "_") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, path)
		})
	}
}

func play(t *testing.T, path string, o slt.Options) {
	t.Helper()
	o.Vars = map[string]string{"__TEST_DIR__": t.TempDir()}
	if err := slt.RunFile(t.Context(), path, o); err != nil {
		t.Errorf("%v", err)
	}
}
