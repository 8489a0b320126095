// Package e2e drives the built binary over the Postgres wire: script files, random
// tests against PostgreSQL 15 as the judge, kill -9 at random moments. Where thousands
// of runs are wanted it drives an engine in its own process instead (package embed).
//
// The one idea: nothing here knows the code it tests. A server is a program with a
// data directory; what it promises is checked by asking it.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/e2e/harness"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	rewrite = flag.Bool("rewrite", false, "replace the expectations in testdata by what the server (PostgreSQL, for testdata/common) answers")
	seed    = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one, printed")
	race    = flag.Bool("server-race", false, "build the server with the race detector")
)

// shared is what tests have in common: one build, one PostgreSQL. Both are made when first asked for.
var shared struct {
	dir      string
	binary   func() (string, error)
	postgres func() (*harness.Postgres, error)
	judge    *harness.Postgres // nil: never asked for
	database atomic.Int64      // number of the next test's database
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "streamdb-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared.dir = dir
	shared.binary = sync.OnceValues(func() (string, error) { return harness.Build(context.Background(), dir, *race) })
	shared.postgres = sync.OnceValues(func() (*harness.Postgres, error) {
		p, err := harness.StartPostgres(context.Background(), false)
		shared.judge = p
		return p, err
	})
	defer func() {
		if shared.judge != nil {
			shared.judge.Stop()
		}
	}()
	return m.Run()
}

// runSeed is the seed a random test takes; it is printed when the test fails.
func runSeed(t *testing.T) uint64 {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())%1_000_000 + 1
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with: go test ./e2e -run '^%s$' -seed %d", t.Name(), s)
		}
	})
	return s
}

// newServer makes a server on a fresh directory that ends with the test; it is not yet started.
func newServer(t *testing.T) *harness.Server {
	t.Helper()
	bin, err := shared.binary()
	if err != nil {
		t.Fatal(err)
	}
	s, err := harness.NewServer(bin, filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the server's log ends:\n%s", s.Log())
		}
	})
	return s
}

// removeAll removes a directory at the test's end, after what was registered later.
func removeAll(t *testing.T, dir string) { t.Cleanup(func() { os.RemoveAll(dir) }) }

// startServer is newServer, started.
func startServer(t *testing.T) *harness.Server {
	t.Helper()
	s := newServer(t)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// judge returns the shared PostgreSQL and the name of an empty database in it.
func judge(t *testing.T) (*harness.Postgres, string) {
	t.Helper()
	p, err := shared.postgres()
	if err != nil {
		t.Fatal(err) // never a skip: without the judge nothing is tested
	}
	name := fmt.Sprintf("test_%d", shared.database.Add(1))
	if err := p.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return p, name
}

// connect opens a connection to the server that closes with the test.
func connect(t *testing.T, open func(context.Context) (*pgconn.PgConn, error)) *pgconn.PgConn {
	t.Helper()
	conn, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// mustExec runs SQL that must succeed and returns the last result.
func mustExec(t *testing.T, conn *pgconn.PgConn, sql string) *pgconn.Result {
	t.Helper()
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if len(results) == 0 {
		return &pgconn.Result{}
	}
	return results[len(results)-1]
}
