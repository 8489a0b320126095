package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamdb/e2e/harness"
	"streamdb/e2e/slt"
)

// The story of the README, played through the real psql: tables, \copy, a view over
// a join, always fresh, kept through kill -9, and what PostgreSQL says to the same.

const flightTables = `
CREATE TABLE flights (id bigint PRIMARY KEY, flown_at timestamp, origin text, destination text, delay_min int, distance_mi int);
CREATE TABLE airports (iata text PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision);
`

const busiest = `SELECT a.state, f.origin, count(*) n, avg(f.delay_min) avg_delay, max(f.delay_min) worst FROM flights f JOIN airports a ON a.iata = f.origin GROUP BY a.state, f.origin`

const perState = `SELECT state, sum(n) AS flights, max(worst) AS worst, count(*) AS airports FROM busiest GROUP BY state`

const readBusiest = "SELECT * FROM busiest ORDER BY state, origin;\n"

const readBoth = readBusiest + "SELECT * FROM per_state ORDER BY state;\n"

// changes touch every part of the join: new rows, moved ones, gone ones, on both sides.
const changes = `
INSERT INTO flights VALUES (9000001, '2001-07-01 00:00', 'LAX', 'JFK', 999, 2475), (9000002, '2001-07-01 00:00', 'XXX', 'JFK', 5, 1), (9000003, '2001-07-01 00:00', NULL, 'JFK', 5, 1);
UPDATE flights SET delay_min = delay_min - 100 WHERE origin IN ('ORD', 'ATL');
UPDATE flights SET origin = 'SFO' WHERE origin = 'DEN';
UPDATE flights SET delay_min = NULL WHERE origin = 'SEA';
DELETE FROM flights WHERE origin = 'BOS' OR id % 7 = 0;
UPDATE airports SET state = 'ZZ' WHERE state = 'TX';
DELETE FROM airports WHERE iata = 'PHX';
INSERT INTO airports VALUES ('XXX', 'Nowhere', 'Nowhere', NULL, 'USA', 0, 0);
`

// flightData returns the commands that copy the data: a sample of 2,000 flights, or
// all 3,000,000 where they lie beside the checkout and STREAMDB_FULL=1.
func flightData(t *testing.T) string {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "e2e", "testdata", "flights")
	flights := fmt.Sprintf("\\copy flights FROM '%s/flights.csv' WITH (FORMAT csv, HEADER true)\n", dir)
	if full := filepath.Join(root, "..", "shared", "data"); os.Getenv("STREAMDB_FULL") == "1" {
		dir = full
		flights = fmt.Sprintf("\\copy flights FROM PROGRAM 'zcat %s/flights.csv.gz' WITH (FORMAT csv, HEADER true)\n", dir)
	}
	return flights + fmt.Sprintf("\\copy airports FROM '%s/airports.csv' WITH (FORMAT csv, HEADER true)\n", dir)
}

func TestFlights(t *testing.T) {
	data := flightData(t)
	p, db := judge(t)
	judged := func(script string) string { return psql(t, p.Addr(), db, script) }
	judged(flightTables + data + "CREATE VIEW busiest AS " + busiest + ";\nCREATE VIEW per_state AS " + perState + ";\n")
	before := judged(readBoth)
	if strings.Count(before, "\n") < 50 {
		t.Fatalf("too little data to tell anything:\n%s", before)
	}
	judged(changes)
	after := judged(readBoth)

	makeBusiest := "CREATE MATERIALIZED VIEW busiest AS " + busiest + ";\n"
	makePerState := "CREATE MATERIALIZED VIEW per_state AS " + perState + ";\n"
	for _, c := range []struct{ name, setUp string }{
		{"data first", flightTables + data + makeBusiest + makePerState},
		{"view first", flightTables + makeBusiest + makePerState + data},
		{"in the middle", flightTables + data[:strings.Index(data, "\n")+1] + makeBusiest + data[strings.Index(data, "\n")+1:] + makePerState},
		{"always", flightTables + data + "SET locality_backfill_mode = always;\n" + makeBusiest + makePerState},
		{"parallelism 1", flightTables + data + "SET streaming_parallelism = 1;\n" + makeBusiest + makePerState},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startServer(t)
			say := func(script string) string { return psql(t, s.Addr(), "dev", script) }
			say(c.setUp)
			same(t, "after the copy", before, say(readBoth))
			say(changes)
			same(t, "after the changes", after, say(readBoth))
			s.Kill()
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "after kill -9", after, say(readBoth))
			say("DELETE FROM flights WHERE id = 9000001;")
			same(t, "the view and its query after one more change", say(busiest+" ORDER BY state, origin;"), say(readBusiest))
		})
	}
}

func TestFlightsExplain(t *testing.T) {
	s := startServer(t)
	say := func(script string) string { return psql(t, s.Addr(), "dev", script) }
	say(flightTables)
	explain := "EXPLAIN CREATE MATERIALIZED VIEW busiest AS " + busiest + ";\n"
	always := say("SET locality_backfill_mode = always;\n" + explain)
	for _, node := range []string{"StreamMaterialize", "StreamHashAgg", "StreamHashJoin", "StreamLocalityProvider { locality_columns: [", "StreamTableScan { table: f"} {
		if !strings.Contains(always, node) {
			t.Errorf("EXPLAIN under always has no %s:\n%s", node, always)
		}
	}
	if off := say("SET locality_backfill_mode = off;\n" + explain); strings.Contains(off, "StreamLocalityProvider") {
		t.Errorf("EXPLAIN under off has a StreamLocalityProvider:\n%s", off)
	}
	if dist := say(strings.Replace(explain, "EXPLAIN", "EXPLAIN (DISTSQL)", 1)); !strings.Contains(dist, "Fragment 1") || !strings.Contains(dist, "Fragment 2") {
		t.Errorf("EXPLAIN (DISTSQL) shows no fragments:\n%s", dist)
	}
	if left := say("SELECT count(*) FROM pg_class WHERE relname = 'busiest';"); left != "0\n" {
		t.Errorf("EXPLAIN made the view")
	}
}

// TestFlightsDescribe is what psql's own commands show.
func TestFlightsDescribe(t *testing.T) {
	s := startServer(t)
	psql(t, s.Addr(), "dev", flightTables+"CREATE INDEX flights_origin ON flights (origin);\nCREATE VIEW late AS SELECT * FROM flights WHERE delay_min > 60;\nCREATE MATERIALIZED VIEW busiest AS "+busiest+";\n")
	for _, c := range []struct {
		command string
		want    []string
	}{
		{`\d`, []string{"public | airports | table", "public | busiest | materialized view", "public | flights | table", "public | late | view"}},
		{`\dt`, []string{"public | airports | table | root", "public | flights | table | root"}},
		{`\dm`, []string{"public | busiest | materialized view | root"}},
		{`\dv`, []string{"public | late | view | root"}},
		{`\di`, []string{"public | flights_origin | index | root | flights"}},
		{`\d flights`, []string{`Table "public.flights"`, "id | bigint | | not null |", "flown_at | timestamp without time zone | | |", "origin | text", "delay_min | integer", "Indexes:", `"flights_pkey" PRIMARY KEY`, "flights_origin"}},
		{`\d airports`, []string{"latitude | double precision"}},
		{`\d busiest`, []string{`Materialized view "public.busiest"`, "state | text", "n | bigint", "avg_delay | numeric", "worst | integer"}},
		{`\d late`, []string{`View "public.late"`, "distance_mi | integer"}},
		{`\d+ busiest`, []string{"View definition:"}},
		{`SHOW TABLES;`, []string{"airports", "flights"}},
		{`SHOW MATERIALIZED VIEWS;`, []string{"busiest"}},
		{`DESCRIBE flights;`, []string{"flown_at", "timestamp", "primary key"}},
	} {
		out, err := runPsql(t.Context(), s.Addr(), "dev", c.command+"\n", "-P", "border=1")
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		flat := strings.Join(strings.Fields(out), " ")
		for _, w := range c.want {
			if !strings.Contains(flat, w) {
				t.Errorf("%s shows no %q:\n%s", c.command, w, out)
			}
		}
	}
}

// TestFlightsBuild: a slow build shows its progress to a second session, Ctrl-C ends
// it within a second and leaves nothing, and a restart in the middle loses nothing.
func TestFlightsBuild(t *testing.T) {
	s := startServer(t)
	say := func(script string) string { return psql(t, s.Addr(), "dev", script) }
	say(flightTables + flightData(t))
	limit := "SET backfill_rate_limit = 100;\n" // the sample would take 20 seconds
	if os.Getenv("STREAMDB_FULL") == "1" {
		limit = "SET backfill_rate_limit = 100000;\n"
	}
	script := limit + "CREATE MATERIALIZED VIEW busiest AS " + busiest + ";\n"

	build := startPsql(t, s.Addr(), script)
	jobs := waitFor(t, "SHOW JOBS shows the build", func() (string, bool) {
		out := say("SHOW JOBS;\n")
		return out, strings.Contains(out, "busiest")
	})
	t.Logf("SHOW JOBS: %s", strings.TrimSpace(jobs))
	waitFor(t, "progress in rw_ddl_progress", func() (string, bool) {
		out := say("SELECT progress FROM rw_catalog.rw_ddl_progress;\n")
		return out, strings.Contains(out, "%") && !strings.HasPrefix(out, "0.00%")
	})
	began := time.Now()
	build.Process.Signal(syscall.SIGINT)
	if err := build.Wait(); err == nil {
		t.Error("CREATE MATERIALIZED VIEW succeeded in spite of Ctrl-C")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Ctrl-C took %s", took)
	}
	if out := build.Stderr.(*bytes.Buffer).String(); !strings.Contains(out, "canceling statement due to user request") {
		t.Errorf("psql after Ctrl-C: %s", out)
	}
	for _, q := range []string{"SHOW JOBS;", "SELECT * FROM rw_catalog.rw_ddl_progress;", "SELECT relname FROM pg_class WHERE relname LIKE '%busiest%';"} {
		if out := say(q + "\n"); out != "" {
			t.Errorf("Ctrl-C left behind: %s %s", q, out)
		}
	}

	// A build in the background goes on after kill -9 from where it was.
	say("SET background_ddl = true;\n" + script)
	waitFor(t, "rows done", func() (string, bool) {
		out := say("SELECT progress FROM rw_catalog.rw_ddl_progress;\n")
		return out, strings.Contains(out, "%") && !strings.HasPrefix(out, "0.00%")
	})
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	say("ALTER MATERIALIZED VIEW busiest SET BACKFILL_RATE_LIMIT = DEFAULT;\n")
	waitFor(t, "the build's end", func() (string, bool) {
		out := say("SHOW JOBS;\n")
		return out, out == ""
	})
	same(t, "after a restart in the middle of the build", say(busiest+" ORDER BY state, origin;"), say(readBusiest))
}

// waitFor asks until the answer will do, for at most 30 seconds.
func waitFor(t *testing.T, what string, ask func() (string, bool)) string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		out, ok := ask()
		if ok {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s; last answer:\n%s", what, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// same compares two answers of psql.
func same(t *testing.T, when, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("%s (- wanted, + got)\n%s", when, slt.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}

// psql runs a script that must succeed and returns what it prints: rows only, unaligned.
func psql(t *testing.T, addr, db, script string) string {
	t.Helper()
	out, err := runPsql(t.Context(), addr, db, script, "-qAt")
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, script)
	}
	return out
}

func psqlCommand(ctx context.Context, addr, db, script string, args ...string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(addr)
	args = append([]string{"-X", "-v", "ON_ERROR_STOP=1", "-h", host, "-p", port, "-U", "root", "-d", db, "-f", "-"}, args...)
	cmd := exec.CommandContext(ctx, "psql", args...)
	cmd.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8", "PAGER=cat", "LC_ALL=C.UTF-8")
	cmd.Stdin = strings.NewReader(script)
	return cmd
}

func runPsql(ctx context.Context, addr, db, script string, args ...string) (string, error) {
	cmd := psqlCommand(ctx, addr, db, script, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

// startPsql starts a script whose end the test waits for itself.
func startPsql(t *testing.T, addr, script string) *exec.Cmd {
	t.Helper()
	cmd := psqlCommand(t.Context(), addr, "dev", script, "-qAt")
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
