package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// load measures COPY and the building of views over what was copied.
func (b *bench) load(ctx context.Context, s *system, r *recorder) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := exec(ctx, conn, tables); err != nil {
		return err
	}
	began := time.Now()
	if _, err := conn.CopyFrom(ctx, bytes.NewReader(b.set.flights), "COPY flights FROM STDIN WITH (FORMAT csv)"); err != nil {
		return err
	}
	r.add("COPY into a keyed table", "rows/s", "more", float64(b.set.rows)/time.Since(began).Seconds())
	if _, err := conn.CopyFrom(ctx, bytes.NewReader(b.set.airports), "COPY airports FROM STDIN WITH (FORMAT csv)"); err != nil {
		return err
	}
	for _, v := range []struct{ figure, settings, query string }{
		{"backfill, plain copy", "", "SELECT * FROM flights"},
		{"backfill, busiest (join and aggregates)", "SET locality_backfill_mode = auto", busiest},
		{"backfill, busiest, locality always", "SET locality_backfill_mode = always", busiest},
	} {
		if !r.ours && strings.HasSuffix(v.figure, "always") {
			continue // PostgreSQL has no such mode
		}
		if r.ours && v.settings != "" {
			if _, err := exec(ctx, conn, v.settings); err != nil {
				return err
			}
		}
		began := time.Now()
		if _, err := exec(ctx, conn, "CREATE MATERIALIZED VIEW bench_view AS "+v.query); err != nil {
			return err
		}
		r.add(v.figure, "rows/s", "more", float64(b.set.rows)/time.Since(began).Seconds())
		if err := checkCount(ctx, conn, v.query); err != nil {
			return err
		}
		if _, err := exec(ctx, conn, "DROP MATERIALIZED VIEW bench_view"); err != nil {
			return err
		}
	}
	return nil
}

// checkCount makes sure that a figure stands for a right answer.
func checkCount(ctx context.Context, conn *pgconn.PgConn, query string) error {
	view, err := exec(ctx, conn, "SELECT count(*) FROM bench_view")
	if err != nil {
		return err
	}
	want, err := exec(ctx, conn, "SELECT count(*) FROM ("+query+") AS q")
	if err != nil {
		return err
	}
	if string(view[0][0]) != string(want[0][0]) {
		return fmt.Errorf("the view has %s rows, its query %s", view[0][0], want[0][0])
	}
	return nil
}

// insert measures INSERT of one row, durable and (ours) in every view, with 1 and 32 clients.
func (b *bench) insert(ctx context.Context, s *system, r *recorder) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := exec(ctx, conn, "CREATE TABLE t (id bigint PRIMARY KEY, g int, v int)"); err != nil {
		return err
	}
	if r.ours {
		if _, err := exec(ctx, conn, "CREATE MATERIALIZED VIEW per_g AS SELECT g, count(*) AS n, sum(v) AS s, max(v) AS hi FROM t GROUP BY g"); err != nil {
			return err
		}
	}
	next := 0
	for _, clients := range []int{1, 32} {
		took, wall, err := inserts(ctx, s, clients, &next)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("INSERT 1 row, %d clients", clients)
		r.add(name+", p50", "ms", "less", percentile(took, 50))
		r.add(name+", p99", "ms", "less", percentile(took, 99))
		r.add(name, "rows/s", "more", float64(len(took))/wall.Seconds())
	}
	return nil
}

// inserts lets clients insert for three seconds and returns what each statement took, in ms.
func inserts(ctx context.Context, s *system, clients int, next *int) ([]float64, time.Duration, error) {
	var mu sync.Mutex
	var all []float64
	var firstErr error
	var wg sync.WaitGroup
	began := time.Now()
	for range clients {
		wg.Go(func() {
			took, err := insertLoop(ctx, s, began.Add(3*time.Second), func() int {
				mu.Lock()
				defer mu.Unlock()
				*next++
				return *next
			})
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if firstErr == nil {
				firstErr = err
			}
		})
	}
	wg.Wait()
	return all, time.Since(began), firstErr
}

func insertLoop(ctx context.Context, s *system, until time.Time, id func() int) ([]float64, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Prepare(ctx, "ins", "INSERT INTO t VALUES ($1, $2, $3)", nil); err != nil {
		return nil, err
	}
	var took []float64
	for time.Now().Before(until) {
		n := id()
		args := [][]byte{[]byte(strconv.Itoa(n)), []byte(strconv.Itoa(n % 100)), []byte(strconv.Itoa(n % 1000))}
		began := time.Now()
		if _, err := conn.ExecPrepared(ctx, "ins", args, nil, nil).Close(); err != nil {
			return nil, err
		}
		took = append(took, ms(time.Since(began)))
	}
	return took, nil
}

// freshness measures from sending an INSERT to seeing it through a view on a view
// in another session.
func (b *bench) freshness(ctx context.Context, s *system, r *recorder) error {
	if !r.ours {
		return nil // PostgreSQL's views are as old as their last REFRESH
	}
	writer, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer writer.Close(ctx)
	reader, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	for _, sql := range []string{
		"CREATE TABLE t (id bigint PRIMARY KEY, g int, v int)",
		"CREATE MATERIALIZED VIEW per_g AS SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
		"CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n, sum(s) AS s FROM per_g",
	} {
		if _, err := exec(ctx, writer, sql); err != nil {
			return err
		}
	}
	var took []float64
	for i := range 500 {
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := exec(ctx, writer, fmt.Sprintf("INSERT INTO t VALUES (%d, %d, 1)", i, i%10))
			done <- err
		}()
		for {
			rows, err := exec(ctx, reader, "SELECT n FROM total")
			if err != nil {
				return err
			}
			if len(rows) == 1 && string(rows[0][0]) == strconv.Itoa(i+1) {
				break
			}
		}
		took = append(took, ms(time.Since(began)))
		if err := <-done; err != nil {
			return err
		}
	}
	r.add("freshness through a view on a view, p50", "ms", "less", percentile(took, 50))
	r.add("freshness through a view on a view, p99", "ms", "less", percentile(took, 99))
	return nil
}

// start measures from the process's start to the first answer, empty and after
// kill -9 with the flights loaded, idle memory, and the binary.
func (b *bench) start(ctx context.Context, s *system, r *recorder) error {
	if !r.ours {
		return nil
	}
	restart := func(figure string) error {
		s.server.Kill()
		began := time.Now()
		if err := s.server.Start(ctx); err != nil {
			return err
		}
		r.add(figure, "ms", "less", ms(time.Since(began)))
		return nil
	}
	if err := restart("start to first answer, empty"); err != nil {
		return err
	}
	if err := b.rss(s, r, "idle memory, empty"); err != nil {
		return err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := exec(ctx, conn, tables); err != nil {
		return err
	}
	if _, err := conn.CopyFrom(ctx, bytes.NewReader(b.set.flights), "COPY flights FROM STDIN WITH (FORMAT csv)"); err != nil {
		return err
	}
	if _, err := conn.CopyFrom(ctx, bytes.NewReader(b.set.airports), "COPY airports FROM STDIN WITH (FORMAT csv)"); err != nil {
		return err
	}
	if _, err := exec(ctx, conn, "CREATE MATERIALIZED VIEW bench_view AS "+busiest); err != nil {
		return err
	}
	conn.Close(ctx)
	if err := restart("start to first answer, all flights, after kill -9"); err != nil {
		return err
	}
	if err := b.rss(s, r, "idle memory, all flights and busiest"); err != nil {
		return err
	}
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	r.add("binary", "MB", "less", float64(info.Size())/1e6)
	return nil
}

// rss records the process's resident memory after ten idle seconds.
func (b *bench) rss(s *system, r *recorder, figure string) error {
	time.Sleep(10 * time.Second)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.server.PID()))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return err
			}
			r.add(figure, "MB", "less", kb*1024/1e6)
			return nil
		}
	}
	return fmt.Errorf("no VmRSS in /proc/%d/status", s.server.PID())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func percentile(v []float64, p int) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, len(s)*p/100)]
}
