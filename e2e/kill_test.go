package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/e2e/harness"
	"streamdb/e2e/slt"

	"github.com/jackc/pgx/v5/pgconn"
)

var kills = flag.Int("kills", 5, "kills -9 of TestKill (the proof: 300)")

// TestKill kills the server at random moments of mixed load: inside INSERT, UPDATE,
// DELETE, transactions, CREATE and DROP of views, and inside the recovery from the
// kill before. After each start: what was acknowledged is there, what was under way
// is there wholly or not at all, and every view equals its query.
func TestKill(t *testing.T) {
	s := runSeed(t)
	k := &killer{t: t, seed: s, r: rand.New(rand.NewPCG(s, 1)), s: startServer(t), views: map[string]string{}}
	k.setUp()
	began := time.Now()
	for k.round = range *kills {
		k.load()
		k.restart()
		k.verify()
		if k.round%50 == 49 {
			t.Logf("%d kills, %d in recovery, %d statements acknowledged, %d cut off, %s", k.round+1, k.inRecovery, k.acked, k.cut, time.Since(began).Round(time.Second))
		}
	}
	t.Logf("seed %d: %d kills, %d of them in recovery; %d statements acknowledged, %d cut off; %s", s, *kills, k.inRecovery, k.acked, k.cut, time.Since(began).Round(time.Second))
}

const writers = 3

// A killer is one run. Between load and verify it is used by one goroutine.
type killer struct {
	t     *testing.T
	seed  uint64
	round int
	r     *rand.Rand
	s     *harness.Server

	killed  atomic.Bool // sessions may lose their connections from here on
	writers [writers]*writer
	views   map[string]string // acknowledged views and their queries
	// What the DDL session had under way at the kill; empty name: nothing.
	pending struct {
		name, query string
		drop        bool
	}
	made int // views ever made: the next one's number

	inRecovery, acked, cut int
}

func (k *killer) fatalf(format string, args ...any) {
	k.t.Helper()
	k.t.Fatalf("seed %d, kill %d: %s", k.seed, k.round+1, fmt.Sprintf(format, args...))
}

// setUp makes two tables, with and without key, and the views that stay.
func (k *killer) setUp() {
	conn, err := k.s.Connect(k.t.Context())
	if err != nil {
		k.fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	mustExec(k.t, conn, "CREATE TABLE acct (id bigint PRIMARY KEY, w int, v bigint, note text)")
	mustExec(k.t, conn, "CREATE TABLE log (w int, seq bigint, id bigint, what text)")
	for name, query := range map[string]string{
		"by_writer": "SELECT w, count(*) AS n, sum(v) AS s, min(v) AS lo, max(v) AS hi FROM acct GROUP BY w",
		"last_log":  "SELECT w, count(*) AS n, max(seq) AS last FROM log GROUP BY w",
		"on_view":   "SELECT count(*) AS n, sum(s) AS s FROM by_writer",
	} {
		k.views[name] = query
	}
	for _, name := range []string{"by_writer", "last_log", "on_view"} {
		mustExec(k.t, conn, "CREATE MATERIALIZED VIEW "+name+" AS "+k.views[name])
	}
	for i := range k.writers {
		k.writers[i] = &writer{id: i, rows: map[int64]string{}, next: 1}
	}
}

// load runs all sessions until the kill, which comes after 20 to 500 ms.
func (k *killer) load() {
	ctx, cancel := context.WithCancel(k.t.Context())
	defer cancel()
	k.killed.Store(false)
	errs := make([]error, writers+1)
	var wg sync.WaitGroup
	for i, w := range k.writers {
		r := rand.New(rand.NewPCG(k.r.Uint64(), 2))
		wg.Go(func() { errs[i] = w.write(ctx, k, r) })
	}
	r := rand.New(rand.NewPCG(k.r.Uint64(), 3))
	wg.Go(func() { errs[writers] = k.ddl(ctx, r) })
	select {
	case <-time.After(time.Duration(20+k.r.IntN(480)) * time.Millisecond):
	case <-k.s.Exited():
		k.fatalf("the server ended by itself")
	}
	k.killed.Store(true)
	k.s.Kill()
	cancel()
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		k.fatalf("%v", err)
	}
}

// restart starts the server, one time in three killing it once more before it answers.
func (k *killer) restart() {
	for k.r.IntN(3) == 0 {
		if err := k.s.Launch(); err != nil {
			k.fatalf("start: %v", err)
		}
		select {
		case <-time.After(time.Duration(k.r.IntN(250)) * time.Millisecond):
		case <-k.s.Exited():
			k.fatalf("the server did not open")
		}
		k.s.Kill()
		k.inRecovery++
	}
	if err := k.s.Start(k.t.Context()); err != nil {
		k.fatalf("open after kill -9: %v", err)
	}
}

// verify compares the server's rows with what the sessions remember.
func (k *killer) verify() {
	conn, err := k.s.Connect(k.t.Context())
	if err != nil {
		k.fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	k.settleViews(conn)
	for _, w := range k.writers {
		k.acked, k.cut = k.acked+w.acked, k.cut+w.cut
		w.acked, w.cut = 0, 0
		if err := w.verify(k.t.Context(), conn); err != nil {
			k.fatalf("%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.views)) {
		view, err1 := run(k.t.Context(), conn, "SELECT * FROM "+name)
		query, err2 := run(k.t.Context(), conn, k.views[name])
		if err := errors.Join(err1, err2); err != nil {
			k.fatalf("view %s: %v", name, err)
		}
		if !slices.Equal(view.rows, query.rows) {
			k.fatalf("view %s is not its query %s (- query, + view)\n%s", name, k.views[name], slt.Diff(query.rows, view.rows))
		}
	}
}

// settleViews waits for builds that went on after the start and decides what
// became of the statement that was under way.
func (k *killer) settleViews(conn *pgconn.PgConn) {
	deadline := time.Now().Add(60 * time.Second)
	for {
		jobs, err := run(k.t.Context(), conn, "SHOW JOBS")
		if err != nil {
			k.fatalf("SHOW JOBS: %v", err)
		}
		if len(jobs.rows) == 0 {
			break
		}
		if time.Now().After(deadline) {
			k.fatalf("jobs do not end: %v", jobs.rows)
		}
		time.Sleep(20 * time.Millisecond)
	}
	have, err := run(k.t.Context(), conn, "SELECT relname FROM pg_class WHERE relkind = 'm'")
	if err != nil {
		k.fatalf("list views: %v", err)
	}
	if p := k.pending; p.name != "" {
		if slices.Contains(have.rows, p.name) {
			k.views[p.name] = p.query
		} else {
			delete(k.views, p.name)
		}
		k.pending.name = ""
	}
	if want := slices.Sorted(maps.Keys(k.views)); !slices.Equal(have.rows, want) {
		k.fatalf("views differ (- acknowledged, + there)\n%s", slt.Diff(want, have.rows))
	}
}

// templates are the queries of views that come and go; %d is a number under 10.
var templates = []string{
	"SELECT id, v * 2 AS v2, note FROM acct WHERE v %% 10 <> %d",
	"SELECT w, v %% 10 AS k, count(*) AS n, max(note) AS m, count(DISTINCT v) AS d FROM acct WHERE v > %d GROUP BY w, v %% 10",
	"SELECT a.id, l.seq, a.note, l.what FROM acct a LEFT JOIN log l ON l.id = a.id AND l.seq %% 10 > %d",
	"SELECT b.w, b.n, c.n + %d AS logged FROM by_writer b JOIN last_log c ON c.w = b.w",
	"SELECT id, v FROM acct ORDER BY v DESC, id LIMIT 1%d",
	"SELECT DISTINCT v %% 1%d AS x, w FROM acct",
}

// ddl makes and drops views until the server is gone.
func (k *killer) ddl(ctx context.Context, r *rand.Rand) error {
	conn, err := k.s.Connect(ctx)
	if err != nil {
		return k.dead(err)
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(k.views)) {
			if strings.HasPrefix(n, "tmp") {
				names = append(names, n)
			}
		}
		k.pending.drop = len(names) > 4 || len(names) > 0 && r.IntN(3) == 0
		if k.pending.drop {
			k.pending.name = names[r.IntN(len(names))]
			k.pending.query = k.views[k.pending.name]
			_, err = run(ctx, conn, "DROP MATERIALIZED VIEW "+k.pending.name)
		} else {
			k.made++
			k.pending.name = fmt.Sprintf("tmp%d", k.made)
			k.pending.query = fmt.Sprintf(templates[r.IntN(len(templates))], r.IntN(10))
			settings := fmt.Sprintf("SET streaming_parallelism = %d; SET locality_backfill_mode = %s", 1+3*r.IntN(2), []string{"off", "always", "auto"}[r.IntN(3)])
			if _, err = run(ctx, conn, settings); err == nil {
				_, err = run(ctx, conn, "CREATE MATERIALIZED VIEW "+k.pending.name+" AS "+k.pending.query)
			}
		}
		if err != nil {
			return k.dead(err)
		}
		if k.pending.drop {
			delete(k.views, k.pending.name)
		} else {
			k.views[k.pending.name] = k.pending.query
		}
		k.pending.name = ""
	}
	return nil
}

// dead turns the errors of a killed server into nil. What the server itself said
// is a fault, and so is a connection it lost while it lived.
func (k *killer) dead(err error) error {
	var said *pgconn.PgError
	if !k.killed.Load() || errors.As(err, &said) {
		return err
	}
	return nil
}

// A writer is one session that owns the rows with its w. It remembers what was
// acknowledged and, if the server died in between, what was under way.
type writer struct {
	id   int
	rows map[int64]string // acct: id to "v note"
	logs []string         // log: acknowledged rows
	next int64            // for new ids and sequence numbers

	under      *change // sent, not answered
	acked, cut int
}

// A change is one statement or transaction and what it would leave.
type change struct {
	sql    string // statements, one a line, parted by ";\n"
	copied string // the data of a COPY; empty: sql is none
	rows   map[int64]string
	logs   []string
	next   int64
}

// write changes this writer's rows until the server is gone.
func (w *writer) write(ctx context.Context, k *killer, r *rand.Rand) error {
	conn, err := k.s.Connect(ctx)
	if err != nil {
		return k.dead(err)
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		c := w.change(r)
		w.under = &c
		// A transaction goes statement by statement, so that the kill may come between.
		for _, sql := range strings.Split(c.sql, ";\n") {
			var err error
			if c.copied != "" {
				_, err = conn.CopyFrom(ctx, strings.NewReader(c.copied), sql)
			} else {
				_, err = run(ctx, conn, sql)
			}
			if err != nil {
				w.cut++
				if err := k.dead(err); err != nil {
					return fmt.Errorf("writer %d: %s: %w", w.id, sql, err)
				}
				return nil
			}
		}
		w.take(c)
		w.acked++
	}
	return nil
}

func (w *writer) take(c change) {
	w.rows, w.logs, w.next, w.under = c.rows, c.logs, c.next, nil
}

// change invents the next change.
func (w *writer) change(r *rand.Rand) change {
	c := change{rows: maps.Clone(w.rows), logs: w.logs, next: w.next}
	var ids []int64
	for id := range c.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	switch x := r.IntN(10); {
	case x < 3 || len(ids) < 5:
		c.sql = w.insert(&c, r, 1+r.IntN(20))
	case x < 4:
		w.copy(&c, r, 1+r.IntN(50))
	case x < 6:
		lo := ids[r.IntN(len(ids))]
		for _, id := range ids {
			if id >= lo {
				v, note, _ := strings.Cut(c.rows[id], " ")
				c.rows[id] = v + " " + note + "u"
			}
		}
		c.sql = fmt.Sprintf("UPDATE acct SET note = note || 'u' WHERE w = %d AND id >= %d", w.id, lo)
	case x < 8 || len(ids) > 300:
		hi := ids[r.IntN(len(ids))]
		maps.DeleteFunc(c.rows, func(id int64, _ string) bool { return id <= hi })
		c.sql = fmt.Sprintf("DELETE FROM acct WHERE w = %d AND id <= %d", w.id, hi)
	default:
		// One transaction over both tables.
		id := ids[r.IntN(len(ids))]
		delete(c.rows, id)
		sql := []string{"BEGIN", fmt.Sprintf("DELETE FROM acct WHERE id = %d", id), w.insert(&c, r, 3)}
		if len(c.logs) > 300 {
			c.logs = nil
			sql = append(sql, fmt.Sprintf("DELETE FROM log WHERE w = %d", w.id))
		}
		n := c.next
		c.next++
		c.logs = append(slices.Clip(c.logs), fmt.Sprintf("%d | %d | moved", n, id))
		sql = append(sql, fmt.Sprintf("INSERT INTO log VALUES (%d, %d, %d, 'moved')", w.id, n, id), "COMMIT")
		c.sql = strings.Join(sql, ";\n")
	}
	return c
}

// row adds a new row to a change.
func (w *writer) row(c *change, r *rand.Rand) (id int64, v int) {
	id, v = int64(w.id)*1_000_000_000+c.next, r.IntN(1000)
	c.next++
	c.rows[id] = fmt.Sprintf("%d n%d", v, v)
	return id, v
}

func (w *writer) copy(c *change, r *rand.Rand, n int) {
	c.sql = "COPY acct FROM STDIN"
	for range n {
		id, v := w.row(c, r)
		c.copied += fmt.Sprintf("%d\t%d\t%d\tn%d\n", id, w.id, v, v)
	}
}

func (w *writer) insert(c *change, r *rand.Rand, n int) string {
	var values []string
	for range n {
		id, v := w.row(c, r)
		values = append(values, fmt.Sprintf("(%d, %d, %d, 'n%d')", id, w.id, v, v))
	}
	return "INSERT INTO acct VALUES " + strings.Join(values, ", ")
}

// verify asks for this writer's rows: they must be as remembered, or as remembered
// with what was under way.
func (w *writer) verify(ctx context.Context, conn *pgconn.PgConn) error {
	acct, err1 := run(ctx, conn, fmt.Sprintf("SELECT id, v, note FROM acct WHERE w = %d", w.id))
	logs, err2 := run(ctx, conn, fmt.Sprintf("SELECT seq, id, what FROM log WHERE w = %d", w.id))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	before := w.lines(w.rows, w.logs)
	got := append(acct.rows, logs.rows...)
	slices.Sort(got)
	if slices.Equal(got, before) {
		w.under = nil
		return nil
	}
	if w.under == nil {
		return fmt.Errorf("writer %d: acknowledged rows differ (- acknowledged, + there)\n%s", w.id, slt.Diff(before, got))
	}
	if after := w.lines(w.under.rows, w.under.logs); !slices.Equal(got, after) {
		return fmt.Errorf("writer %d: neither as acknowledged nor with what was under way:\n%s\n(- acknowledged, + there)\n%s\n(- with it, + there)\n%s",
			w.id, w.under.sql, slt.Diff(before, got), slt.Diff(after, got))
	}
	w.take(*w.under)
	return nil
}

func (w *writer) lines(rows map[int64]string, logs []string) []string {
	var out []string
	for id, r := range rows {
		v, note, _ := strings.Cut(r, " ")
		out = append(out, fmt.Sprintf("%d | %s | %s", id, v, note))
	}
	out = append(out, logs...)
	slices.Sort(out)
	return out
}
