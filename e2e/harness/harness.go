// Package harness starts what the end-to-end tests and the bench need: the built
// binary, killed and started again at will, and a PostgreSQL 15 to judge it by.
//
// The one idea: both are child processes behind a TCP address in a directory of
// their own, so that whoever holds one may kill it at any moment and nothing of
// it is left when its owner ends.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Root is the directory of the module's go.mod, found from the working directory upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// Build builds cmd/streamdb into dir and returns the binary's path. STREAMDB_BIN
// names a binary to take instead. race builds with the race detector.
func Build(ctx context.Context, dir string, race bool) (string, error) {
	if bin := os.Getenv("STREAMDB_BIN"); bin != "" {
		return bin, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "streamdb")
	args := []string{"build", "-buildvcs=false", "-o", bin}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/streamdb")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/streamdb: %w\n%s", err, out)
	}
	return bin, nil
}

// FreePort asks the system for a TCP port on loopback that nobody listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Connect opens a connection to addr ("host:port").
func Connect(ctx context.Context, addr, database string) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf("postgres://root@%s/%s?sslmode=disable&connect_timeout=5", addr, database))
}

// waitReady connects again and again until a query is answered, exited is
// closed, or ctx ends.
func waitReady(ctx context.Context, addr, database string, exited <-chan struct{}) error {
	for {
		err := ready(ctx, addr, database)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("the process ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("no answer on %s: %w", addr, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, addr, database string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := Connect(ctx, addr, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SELECT 1").ReadAll()
	return err
}
