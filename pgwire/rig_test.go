package pgwire

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"streamdb/stream/engine"
)

// startServer serves a database in memory for the length of a test.
func startServer(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	db, err := engine.Open(t.Context(), engine.Options{Dir: ":memory:", Interval: 5 * time.Millisecond, Parallelism: 2, Seed: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	s := NewServer(o)
	s.Open(db)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s, l.Addr().String()
}

func url(addr, more string) string {
	return fmt.Sprintf("postgres://root@%s/dev?sslmode=disable&connect_timeout=5%s", addr, more)
}

func connect(t testing.TB, addr, more string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url(addr, more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// within fails the test unless ok becomes true soon.
func within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

func (s *Server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}
