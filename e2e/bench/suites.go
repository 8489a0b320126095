package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"streamdb/e2e/harness"

	"github.com/jackc/pgx/v5/pgconn"
)

// suites are measurements of their own, by the name of -suite. Each prints a table.
var suites = map[string]func(*bench, context.Context) error{
	"locality": (*bench).localitySuite, "sortbuffer": (*bench).sortBufferSuite,
	"governor": (*bench).governorSuite, "rescale": (*bench).rescaleSuite,
}

// loaded starts one of ours with more arguments and loads the flights.
func (b *bench) loaded(ctx context.Context, args ...string) (*harness.Server, *pgconn.PgConn, func(), error) {
	s, err := b.openWith(ctx, args...)
	if err != nil {
		return nil, nil, nil, err
	}
	conn, err := s.connect(ctx)
	if err == nil {
		err = b.copyFlights(ctx, conn, *times)
	}
	if err != nil {
		s.stop()
		return nil, nil, nil, err
	}
	return s.server, conn, s.stop, nil
}

// copyFlights loads the flights times over, each time under ids of its own.
func (b *bench) copyFlights(ctx context.Context, conn *pgconn.PgConn, times int) error {
	if _, err := exec(ctx, conn, tables); err != nil {
		return err
	}
	lines := bytes.SplitAfter(b.set.flights, []byte("\n"))
	for k := range times {
		r, w := io.Pipe()
		go func() {
			out := bufio.NewWriterSize(w, 1<<20)
			for i, line := range lines {
				if len(line) > 0 {
					out.WriteString(strconv.Itoa(k*b.set.rows + i + 1))
					out.Write(line[bytes.IndexByte(line, ','):])
				}
			}
			w.CloseWithError(out.Flush())
		}()
		if _, err := conn.CopyFrom(ctx, r, "COPY flights FROM STDIN WITH (FORMAT csv)"); err != nil {
			return err
		}
	}
	return nil
}

// counters reads the sum of each of some counters from a server's metrics.
func counters(s *harness.Server, names ...string) ([]float64, error) {
	resp, err := http.Get("http://" + s.HTTP() + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := make([]float64, len(names))
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		name, _, _ := strings.Cut(sc.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if i := slices.Index(names, name); i >= 0 {
			v, err := strconv.ParseFloat(sc.Text()[strings.LastIndexByte(sc.Text(), ' ')+1:], 64)
			if err != nil {
				return nil, err
			}
			out[i] += v
		}
	}
	return out, nil
}

// cpu is what a process has used, in seconds.
func cpu(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	u, _ := strconv.ParseFloat(f[11], 64)
	k, _ := strconv.ParseFloat(f[12], 64)
	return (u + k) / 100
}

// localityViews have more state than the cache of the suite.
var localityViews = []struct{ name, query string }{
	{"grouped", "SELECT origin, destination, flown_at, count(*) AS n, sum(delay_min) AS late, max(distance_mi) AS far FROM flights GROUP BY origin, destination, flown_at"},
	{"join", "SELECT f.id, g.id AS other, f.delay_min - g.delay_min AS d FROM flights f JOIN flights g ON f.origin = g.destination AND f.flown_at = g.flown_at"},
}

// localitySuite builds views whose state exceeds the cache, with locality off, auto and always.
func (b *bench) localitySuite(ctx context.Context) error {
	s, conn, stop, err := b.loaded(ctx, "--state-cache", "64MB")
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%d rows, 64 MB of cache\n\n| view | locality | seconds | CPU seconds | state reads | rows |\n|---|---|---:|---:|---:|---:|\n", b.set.rows**times)
	names := []string{"streamdb_cache_misses_total", "streamdb_storage_overlay_misses_total"}
	for _, v := range localityViews {
		if !strings.Contains(v.name, *only) {
			continue
		}
		took := map[string][3][]float64{}
		rows := ""
		for range *runs {
			for _, mode := range []string{"off", "auto", "always"} {
				before, err := counters(s, names...)
				if err != nil {
					return err
				}
				began, c := time.Now(), cpu(s.PID())
				if _, err := exec(ctx, conn, "SET locality_backfill_mode = "+mode+"; CREATE MATERIALIZED VIEW bench_view AS "+v.query); err != nil {
					return err
				}
				secs, used := time.Since(began).Seconds(), cpu(s.PID())-c
				after, err := counters(s, names...)
				if err != nil {
					return err
				}
				t := took[mode]
				t[0], t[1], t[2] = append(t[0], secs), append(t[1], used), append(t[2], max(after[0]-before[0], after[1]-before[1]))
				took[mode] = t
				got, err := exec(ctx, conn, "SELECT count(*) FROM bench_view")
				if err != nil {
					return err
				}
				if n := string(got[0][0]); rows != "" && n != rows {
					return fmt.Errorf("%s with locality %s has %s rows, before %s", v.name, mode, n, rows)
				} else {
					rows = n
				}
				if _, err := exec(ctx, conn, "DROP MATERIALIZED VIEW bench_view"); err != nil {
					return err
				}
			}
		}
		for _, mode := range []string{"off", "auto", "always"} {
			t := took[mode]
			fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", v.name, mode, show(t[0]), show(t[1]), show(t[2]), rows)
		}
	}
	return nil
}

// sortBufferSuite changes two million rows in one statement under a view whose state
// exceeds the cache, with the sort buffer and without.
func (b *bench) sortBufferSuite(ctx context.Context) error {
	s, conn, stop, err := b.loaded(ctx, "--state-cache", "64MB")
	if err != nil {
		return err
	}
	defer stop()
	if _, err := exec(ctx, conn, "SET locality_backfill_mode = always; CREATE MATERIALIZED VIEW bench_view AS "+localityViews[0].query); err != nil {
		return err
	}
	n := min(2_000_000, b.set.rows)
	fmt.Printf("one UPDATE of %d rows\n\n| sort buffer | seconds | CPU seconds |\n|---|---:|---:|\n", n)
	took, used := map[string][]float64{}, map[string][]float64{}
	for range *runs {
		for _, mode := range []string{"off", "on"} {
			if _, err := exec(ctx, conn, "ALTER SYSTEM SET enable_locality_sort_buffer = "+mode); err != nil {
				return err
			}
			began, c := time.Now(), cpu(s.PID())
			if _, err := exec(ctx, conn, fmt.Sprintf("UPDATE flights SET delay_min = delay_min + 1 WHERE id <= %d", n)); err != nil {
				return err
			}
			took[mode] = append(took[mode], time.Since(began).Seconds())
			used[mode] = append(used[mode], cpu(s.PID())-c)
		}
	}
	for _, mode := range []string{"off", "on"} {
		fmt.Printf("| %s | %s | %s |\n", mode, show(took[mode]), show(used[mode]))
	}
	return nil
}

// probe inserts rows into a small table, one after another, and measures from
// sending each to seeing it through a view on a view, until stop is closed.
func probe(ctx context.Context, s *harness.Server, stop <-chan struct{}, slowest *atomic.Int64) ([]float64, error) {
	conn, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	start, err := exec(ctx, conn, "SELECT coalesce(max(n), 0) FROM probe_total")
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(string(start[0][0]))
	var took []float64
	for {
		select {
		case <-stop:
			return took, nil
		case <-time.After(10 * time.Millisecond):
		}
		began := time.Now()
		// The INSERT returns when every view has the row; the SELECT makes sure.
		if _, err := exec(ctx, conn, fmt.Sprintf("INSERT INTO probe VALUES (%d, %d, 1)", n, n%10)); err != nil {
			return nil, err
		}
		n++
		rows, err := exec(ctx, conn, "SELECT n FROM probe_total")
		if err != nil {
			return nil, err
		}
		if len(rows) != 1 || string(rows[0][0]) != strconv.Itoa(n) {
			return nil, fmt.Errorf("the view on a view does not have row %d", n)
		}
		d := time.Since(began)
		took = append(took, ms(d))
		slowest.Store(max(slowest.Load(), int64(d)))
	}
}

const probeTables = `CREATE TABLE probe (id bigint PRIMARY KEY, g int, v int);
	CREATE MATERIALIZED VIEW probe_g AS SELECT g, count(*) AS n, sum(v) AS s FROM probe GROUP BY g;
	CREATE MATERIALIZED VIEW probe_total AS SELECT sum(n)::bigint AS n, sum(s) AS s FROM probe_g`

// governorSuite measures the freshness of a running view while nothing else happens and while another
// view is built beside it, with the governor and without.
func (b *bench) governorSuite(ctx context.Context) error {
	s, conn, stop, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := exec(ctx, conn, probeTables); err != nil {
		return err
	}
	fmt.Printf("%d rows\n\n| beside | target, ms | p50, ms | p99, ms | slowest, ms | build, rows/s |\n|---|---:|---:|---:|---:|---:|\n", b.set.rows**times)
	measure := func(beside string, target int, during func(context.Context) error) error {
		if _, err := exec(ctx, conn, fmt.Sprintf("ALTER SYSTEM SET backfill_barrier_latency_target_ms = %d", target)); err != nil {
			return err
		}
		quit := make(chan struct{})
		var slowest atomic.Int64
		var took []float64
		done := make(chan error, 1)
		go func() {
			var err error
			took, err = probe(ctx, s, quit, &slowest)
			done <- err
		}()
		began := time.Now()
		err := during(ctx)
		wall := time.Since(began)
		close(quit)
		if e := <-done; err == nil {
			err = e
		}
		speed := "–"
		if beside != "nothing" {
			rows, _ := exec(ctx, conn, "SELECT rows_done FROM rw_catalog.rw_ddl_progress")
			n := float64(b.set.rows * *times)
			if len(rows) == 1 {
				n, _ = strconv.ParseFloat(string(rows[0][0]), 64)
			}
			speed = show([]float64{n / wall.Seconds()})
		}
		fmt.Printf("| %s | %d | %.2f | %.2f | %.2f | %s |\n", beside, target, percentile(took, 50), percentile(took, 99), float64(slowest.Load())/1e6, speed)
		return err
	}
	idle := func(ctx context.Context) error { time.Sleep(10 * time.Second); return nil }
	if err := measure("nothing", 0, idle); err != nil {
		return err
	}
	for _, target := range []int{0, 20, 8} {
		build := func(ctx context.Context) error {
			c, err := s.Connect(ctx)
			if err != nil {
				return err
			}
			defer c.Close(ctx)
			if _, err := exec(ctx, c, "SET background_ddl = on; CREATE MATERIALIZED VIEW bench_view AS "+busiest2); err != nil {
				return err
			}
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				rows, err := exec(ctx, c, "SELECT 1 FROM rw_catalog.rw_ddl_progress")
				if err != nil || len(rows) == 0 {
					return err
				}
			}
			return nil
		}
		if err := measure("a build", target, build); err != nil {
			return err
		}
		if _, err := exec(ctx, conn, "DROP MATERIALIZED VIEW IF EXISTS bench_view"); err != nil {
			if _, err := exec(ctx, conn, "CANCEL JOBS "+buildingJob(ctx, conn)); err != nil {
				return err
			}
		}
	}
	return nil
}

func buildingJob(ctx context.Context, conn *pgconn.PgConn) string {
	rows, err := exec(ctx, conn, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
	if err != nil || len(rows) == 0 {
		return "0"
	}
	return string(rows[0][0])
}

const busiest2 = `SELECT origin, destination, count(*) AS n, avg(delay_min) AS late, max(delay_min) AS worst FROM flights GROUP BY origin, destination`

// rescaleSuite gives a job that is being built, and the table it reads, other parallelisms.
func (b *bench) rescaleSuite(ctx context.Context) error {
	s, conn, stop, err := b.loaded(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := exec(ctx, conn, probeTables); err != nil {
		return err
	}
	if _, err := exec(ctx, conn, "SET background_ddl = on; SET streaming_parallelism = 1; CREATE MATERIALIZED VIEW bench_view AS "+localityViews[0].query); err != nil {
		return err
	}
	fmt.Printf("%d rows, grouped view\n\n| parallelism | ALTER, ms | slowest write beside it, ms | rows done by then |\n|---|---:|---:|---:|\n", b.set.rows**times)
	for _, p := range []int{4, 2} {
		time.Sleep(time.Second)
		quit := make(chan struct{})
		var slowest atomic.Int64
		done := make(chan error, 1)
		go func() { _, err := probe(ctx, s, quit, &slowest); done <- err }()
		time.Sleep(200 * time.Millisecond)
		slowest.Store(0)
		began := time.Now()
		if _, err := exec(ctx, conn, fmt.Sprintf("ALTER MATERIALIZED VIEW bench_view SET PARALLELISM = %d", p)); err != nil {
			return err
		}
		took := time.Since(began)
		time.Sleep(500 * time.Millisecond)
		close(quit)
		if err := <-done; err != nil {
			return err
		}
		rows, err := exec(ctx, conn, "SELECT progress FROM rw_catalog.rw_ddl_progress")
		if err != nil {
			return err
		}
		at := "built"
		if len(rows) > 0 {
			at = string(rows[0][0])
		}
		fmt.Printf("| %d | %.1f | %.1f | %s |\n", p, ms(took), float64(slowest.Load())/1e6, at)
	}
	if _, err := exec(ctx, conn, "WAIT"); err != nil {
		return err
	}
	rows, err := exec(ctx, conn, fmt.Sprintf("SELECT count(*) FROM ((SELECT * FROM bench_view EXCEPT ALL (%[1]s)) UNION ALL ((%[1]s) EXCEPT ALL SELECT * FROM bench_view)) AS d", localityViews[0].query))
	if err != nil {
		return err
	}
	fmt.Printf("\nrows that differ from the query: %s\n", rows[0][0])
	return nil
}
