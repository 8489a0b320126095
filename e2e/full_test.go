package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"streamdb/e2e/slt"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestDiskFull: on a file system of 200 MB that fills up, writes are refused with
// 53100 before anything breaks, reads go on, nothing acknowledged is lost, also
// through kill -9 while it is full, and writes go on when space is back.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount is refused here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	s := newServer(t)
	s.Data = filepath.Join(dir, "data")
	s.Args = []string{"--disk-reserve", "48MiB"}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, s.Connect)
	mustExec(t, conn, "CREATE TABLE t (id bigint PRIMARY KEY, pad text)")
	mustExec(t, conn, "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, max(id) AS last FROM t")

	// Something else takes most of the space: what is left fills within seconds.
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 100<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	acked := fillUp(t, conn)
	check := func(conn *pgconn.PgConn, when string) {
		t.Helper()
		want := []string{fmt.Sprintf("%d | %d", acked, acked)}
		for _, q := range []string{"SELECT * FROM v", "SELECT count(*), max(id) FROM t"} {
			if got, err := run(t.Context(), conn, q); err != nil || !slices.Equal(got.rows, want) {
				t.Fatalf("%s: %s: %v\n%s", when, q, err, slt.Diff(want, got.rows))
			}
		}
	}
	check(conn, "full")
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("start on a full disk: %v", err)
	}
	conn = connect(t, s.Connect)
	check(conn, "full, after kill -9")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		_, err := run(t.Context(), conn, fmt.Sprintf("INSERT INTO t VALUES (%d, 'x')", acked+1))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("5 s after space is back: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	acked++
	check(conn, "space is back")
}

// fillUp inserts until the server refuses and returns how many rows it has.
func fillUp(t *testing.T, conn *pgconn.PgConn) int {
	t.Helper()
	pad := strings.Repeat("0123456789abcdef", 64)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	acked := 0
	for {
		var values []string
		for i := range 500 {
			// Rows that do not compress to nothing.
			values = append(values, fmt.Sprintf("(%d, '%x%s')", acked+i+1, (acked+i)*7919, pad[i%64:]))
		}
		_, err := run(ctx, conn, "INSERT INTO t VALUES "+strings.Join(values, ", "))
		var said *pgconn.PgError
		switch {
		case err == nil:
			acked += len(values)
		case errors.As(err, &said) && said.Code == "53100":
			t.Logf("refused after %d rows: %s", acked, said.Message)
			if acked == 0 {
				t.Fatal("refused from the start")
			}
			return acked
		default:
			t.Fatalf("after %d rows: %v, want SQLSTATE 53100", acked, err)
		}
	}
}
