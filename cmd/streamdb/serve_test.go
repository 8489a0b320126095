package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// parse reads a command line as main does.
func parse(t *testing.T, args ...string) (*serve, error) {
	t.Helper()
	var c cli
	k, err := newParser(&c, io.Discard)
	if err != nil {
		return nil, err
	}
	_, err = k.Parse(append([]string{"serve"}, args...))
	return &c.Serve, err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Flags beat the environment, which beats the file, which beats the defaults.
func TestPrecedence(t *testing.T) {
	file := writeFile(t, "parallelism = 3\nmax_connections = 30\naccept-loss = true\n[serve]\nmemory-limit = \"2GiB\"\nbarrier-interval = \"20ms\"\n")
	t.Setenv("STREAMDB_MAX_CONNECTIONS", "20")
	t.Setenv("STREAMDB_PARALLELISM", "2")
	s, err := parse(t, "--config", file, "--parallelism", "1")
	if err != nil {
		t.Fatal(err)
	}
	if s.Parallelism != 1 || s.MaxConnections != 20 || s.MemoryLimit != 2<<30 || s.BarrierInterval != 20*time.Millisecond || !s.AcceptLoss || s.Data != "./data" {
		t.Errorf("%+v", s)
	}
	t.Setenv("STREAMDB_CONFIG", file)
	if s, err = parse(t); err != nil || s.MemoryLimit != 2<<30 || s.Parallelism != 2 {
		t.Errorf("with STREAMDB_CONFIG: %+v, %v", s, err)
	}
}

func TestBadConfig(t *testing.T) {
	for text, want := range map[string]string{
		"nosuch = 1":                   "there is no flag --nosuch",
		"config = \"x\"":               "there is no flag --config",
		"parallelism = [1]":            "parallelism is not one value",
		"parallelism = \"many\"":       "many",
		"memory-limit = \"a lot\"":     `"a lot" is not a size`,
		"log-level = \"loud\"":         "must be one of",
		"this is no TOML":              "",
		"[serve]\nlisten = 1\nx.y = 2": "there is no flag --x",
	} {
		if _, err := parse(t, "--config", writeFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := parse(t, "--config", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "1000": 1000, "512MiB": 512 << 20, "2GB": 2e9, "1.5g": 3 << 29, " 4 KiB ": 4096, "7b": 7} {
		var s size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "1PB", "NaN", "1e30"} {
		if err := new(size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:4566": true, "127.8.0.1:1": true, "[::1]:4566": true, "localhost:4566": true,
		"0.0.0.0:4566": false, ":4566": false, "[::]:4566": false, "10.0.0.1:4566": false, "example.com:1": false, "4566": false} {
		if err := checkListen(addr, false); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := checkListen("0.0.0.0:4566", true); err != nil {
		t.Error(err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The whole of serve: it starts, answers clients and HTTP, stops, and has kept what it was given.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := parse(t, "--data", dir, "--listen", freeAddr(t), "--http", freeAddr(t), "--disk-reserve", "1MiB", "--pprof")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		var log bytes.Buffer
		go func() { done <- s.run(ctx, slog.New(slog.NewTextHandler(&log, nil))) }()
		for get(t, s.HTTP, "/readyz") != 200 {
			select {
			case err := <-done:
				t.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
		for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/": 200, "/debug/pprof/": 200, "/nosuch": 404} {
			if got := get(t, s.HTTP, path); got != want {
				t.Errorf("%s: %d", path, got)
			}
		}
		conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://root@%s/dev?sslmode=disable", s.Listen))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := conn.Exec(ctx, "CREATE TABLE t (a int PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(ctx, "INSERT INTO t VALUES (7)"); err != nil {
				t.Fatal(err)
			}
		}
		var a int
		if err := conn.QueryRow(ctx, "SELECT a FROM t").Scan(&a); err != nil || a != 7 {
			t.Fatal(a, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if text := log.String(); strings.Count(text, "msg=ready") != 1 || !strings.Contains(text, "msg=stopped") {
			t.Errorf("log:\n%s", text)
		}
		conn.Close(context.Background())
	}
}

// get is the status of a page, 0 if nobody answers.
func get(t *testing.T, addr, path string) int {
	t.Helper()
	resp, err := http.Get("http://" + addr + path)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestServeTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, s := range []serve{
		{Data: ":memory:", Listen: l.Addr().String(), HTTP: freeAddr(t)},
		{Data: ":memory:", Listen: freeAddr(t), HTTP: l.Addr().String()},
		{Data: ":memory:", Listen: "0.0.0.0:0"},
	} {
		if err := s.run(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}

func TestVersion(t *testing.T) {
	var c cli
	var out bytes.Buffer
	k, err := newParser(&c, &out)
	if err != nil {
		t.Fatal(err)
	}
	kctx, err := k.Parse([]string{"version"})
	if err == nil {
		err = kctx.Run()
	}
	if err != nil || !strings.HasPrefix(out.String(), "streamdb dev (go") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
