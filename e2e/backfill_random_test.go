package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/e2e/embed"
	"streamdb/sql/catalog"
	"streamdb/stream/engine"
)

var seeds = flag.Int("seeds", 20, "seeds of TestBackfillRandom")

// TestBackfillRandom plays random scripts against an engine in this process: tables
// under continuous change while views and indexes over them are created, paused,
// throttled, rescaled, cancelled, and the engine ends and opens again. At every look
// a finished view equals its query at the same epoch; after a cancel nothing is left.
//
// A seed fixes the script, the options and every statement; goroutines are scheduled
// as they are, so a failing seed may take several runs (-count).
func TestBackfillRandom(t *testing.T) {
	first, n := runSeed(t), *seeds
	if *seed != 0 && !flagSet("seeds") {
		n = 1
	}
	var next atomic.Int64
	var mu sync.Mutex
	failed := 0
	began := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				mu.Lock()
				stop := i >= n || failed >= max(10, n/20)
				mu.Unlock()
				if stop {
					return
				}
				s := first + uint64(i)
				sim := newBackfillSim(s)
				var err error
				pprof.Do(context.Background(), pprof.Labels("seed", sim.label), func(context.Context) { err = sim.run() })
				if err == nil {
					continue
				}
				mu.Lock()
				failed++
				path := filepath.Join(os.TempDir(), fmt.Sprintf("backfill-%d.log", s))
				os.WriteFile(path, fmt.Appendf(nil, "%s-- %v\n", sim.log.String(), err), 0o644)
				t.Errorf("seed %d: %v\n\twhat was said: %s\n\treplay with: go test ./e2e -run TestBackfillRandom -seed %d -count 20", s, err, path, s)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d to %d, %d failed, %s", first, first+uint64(n)-1, failed, time.Since(began).Round(time.Millisecond))
}

// flagSet reports whether a flag was given.
func flagSet(name string) bool {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// A backfillSim is one seed. All but log, err and the writer is used by one goroutine.
type backfillSim struct {
	seed   uint64
	label  string // of its goroutines
	r      *rand.Rand
	dir    string
	db     *embed.DB
	c      *embed.Conn
	views  []*simView
	made   int // names are not used twice, but by the test of just that
	paused bool
	writer *simWriter

	mu  sync.Mutex
	log strings.Builder
}

// A simView is a view or an index that exists or is being created.
type simView struct {
	name, kind, query string
	parent            *simView // the view it reads; nil: tables
	ready             bool
	background        bool
	cancel            context.CancelFunc // ends the session that creates it; nil: none does
	done              chan error         // its outcome; nil: it was made in the background
}

var simSeq atomic.Int64

func newBackfillSim(seed uint64) *backfillSim {
	return &backfillSim{seed: seed, label: fmt.Sprintf("%d-%d", seed, simSeq.Add(1)), r: rand.New(rand.NewPCG(seed, 0xbacf111))}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (b *backfillSim) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(&b.log, format+"\n", args...)
}

// do says SQL that must succeed.
func (b *backfillSim) do(sql string) (*embed.Answer, error) {
	b.note("%s;", sql)
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("no answer in a minute"))
	defer cancel()
	a, err := b.c.Exec(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	return a, nil
}

// all does each statement; the first error ends it.
func (b *backfillSim) all(sql ...string) error {
	for _, s := range sql {
		if _, err := b.do(s); err != nil {
			return err
		}
	}
	return nil
}

func (b *backfillSim) run() (err error) {
	if b.dir, err = embed.TempDir(); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.db = embed.New(engine.Options{Dir: b.dir, Seed: b.seed, Parallelism: pick(b.r, 1, 2, 4), ChunkSize: pick(b.r, 1, 3, 256, 256),
		Interval: pick(b.r, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, time.Second)})
	b.note("-- parallelism %d, chunk size %d, interval %s", b.db.Options.Parallelism, b.db.Options.ChunkSize, b.db.Options.Interval)
	defer func() {
		b.stopWriter()
		for _, v := range b.views {
			if v.cancel != nil {
				v.cancel()
			}
		}
		if b.db.DB != nil {
			err = errors.Join(err, b.db.Crash())
		}
	}()
	if err := b.start(); err != nil {
		return err
	}
	if err := b.tables(); err != nil {
		return err
	}
	b.startWriter()
	for range 6 + b.r.IntN(8) {
		if err := b.step(); err != nil {
			return err
		}
		if err := b.look(); err != nil {
			return err
		}
	}
	return b.end()
}

func (b *backfillSim) start() error {
	if err := b.db.Start(context.Background()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	c, err := b.db.Connect()
	b.c = c
	return err
}

// tables makes three of them: a plain key, none, a composite key with text in it.
func (b *backfillSim) tables() error {
	n := pick(b.r, 0, 1, 50, 300, 1200, 1200, 3000)
	// Few vnodes: long runs of keys in each, as large tables have.
	return b.all(fmt.Sprintf("SET streaming_max_parallelism = %d", pick(b.r, 4, 4, 16, 64)),
		"CREATE TABLE t (k int PRIMARY KEY, g int, v int, s text)",
		"CREATE TABLE u (g int, v int)",
		"CREATE TABLE w (p text, q int, v int, PRIMARY KEY (p, q))",
		fmt.Sprintf("INSERT INTO t SELECT i, CASE WHEN i %% 11 = 0 THEN NULL ELSE i %% 37 END, i %% 13, 's' || i %% 5 FROM generate_series(1, %d) AS x (i)", n),
		fmt.Sprintf("INSERT INTO u SELECT CASE WHEN i %% 7 = 0 THEN NULL ELSE i %% 41 END, i %% 3 FROM generate_series(1, %d) AS x (i)", n/8),
		fmt.Sprintf("INSERT INTO w SELECT 'p' || i %% 9, i, i %% 4 FROM generate_series(1, %d) AS x (i)", n/2),
		// A long run of deleted keys within, and one at the end.
		fmt.Sprintf("DELETE FROM t WHERE k BETWEEN %d AND %d OR k > %d", n/4, n/2, n-n/8))
}

// simQueries are what views show of the tables; each of them has one right answer.
var simQueries = []string{
	"SELECT k, g, v, s FROM t",
	"SELECT v, k FROM t WHERE v % 3 = 0 OR g IS NULL",
	"SELECT g, v FROM u",
	"SELECT q, v FROM w WHERE p > 'p3'",
	"SELECT g, count(*) AS n, sum(v) AS s, min(s) AS lo, max(v) AS hi FROM t GROUP BY g",
	"SELECT g, v, count(*) AS n FROM u GROUP BY g, v",
	"SELECT v, count(DISTINCT g) AS n, count(*) FILTER (WHERE s > 's2') AS f FROM t GROUP BY v",
	"SELECT p, max(q) AS q, sum(v) AS v FROM w GROUP BY p HAVING count(*) > 3",
	"SELECT count(*) AS n, sum(v) AS s, min(k) AS lo FROM t",
	"SELECT t.k, t.v, u.v AS uv FROM t JOIN u ON t.g = u.g WHERE u.v < 2",
	"SELECT t.k, u.v FROM t LEFT JOIN u ON t.g = u.g AND u.v = t.v",
	"SELECT t.g, u.v FROM t FULL JOIN u ON t.k = u.g",
	"SELECT t.v, w.v AS wv, count(*) AS n FROM t JOIN w ON t.k = w.q GROUP BY t.v, w.v",
	"SELECT a.k, b.v FROM t AS a JOIN t AS b ON a.k = b.g",
	"SELECT s, g, k FROM t ORDER BY s DESC, g NULLS FIRST, k LIMIT 7",
	"SELECT g, v FROM u ORDER BY g, v OFFSET 2 LIMIT 5",
	"SELECT DISTINCT g, s FROM t",
	"SELECT DISTINCT v FROM u",
	"SELECT k AS x, v FROM t UNION ALL SELECT q, v FROM w UNION ALL SELECT g, v FROM u",
	"SELECT t.g, count(*) AS n FROM t JOIN u ON t.g = u.g JOIN w ON w.q = t.k GROUP BY t.g",
	"SELECT g, count(*) AS n FROM t WHERE g IN (SELECT g FROM u) GROUP BY g",
	"SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.q = t.k)",
	"SELECT g FROM t UNION SELECT v FROM u",
	"SELECT g, v FROM t EXCEPT ALL SELECT g, v FROM u",
	"SELECT s, g, count(*) AS n FROM t GROUP BY ROLLUP (s, g)",
	"SELECT g, k, rn FROM (SELECT g, k, row_number() OVER (PARTITION BY g ORDER BY v DESC, k) AS rn FROM t) AS r WHERE rn <= 2",
	"SELECT s, k, sum(v) OVER (PARTITION BY s ORDER BY k ROWS 2 PRECEDING) AS x, lag(g) OVER (PARTITION BY s ORDER BY k) AS y FROM t WHERE k < 200",
	"SELECT DISTINCT ON (g) g, v, k FROM t ORDER BY g, v, k",
	"SELECT k, (SELECT count(*) FROM u WHERE u.g = t.g) AS n FROM t",
	"SELECT k FROM t WHERE v > (SELECT avg(v) FROM w)",
	"SELECT t.k, l.v FROM t JOIN LATERAL (SELECT u.v FROM u WHERE u.g = t.g ORDER BY u.v LIMIT 2) AS l ON true",
}

// create begins a view or an index.
func (b *backfillSim) create() error {
	b.made++
	v := &simView{name: fmt.Sprintf("m%d", b.made), kind: "MATERIALIZED VIEW", query: pick(b.r, simQueries...)}
	sql := "CREATE MATERIALIZED VIEW " + v.name + " AS "
	switch ready := slices.DeleteFunc(slices.Clone(b.views), func(v *simView) bool { return !v.ready || v.kind != "MATERIALIZED VIEW" }); {
	case b.r.IntN(6) == 0:
		v.kind = "INDEX"
		x := pick(b.r, [3]string{"t (g, v)", "SELECT k FROM t WHERE g %s", "g, v, k"}, [3]string{"t (s) INCLUDE (v)", "SELECT v FROM t WHERE s %s", ""}, [3]string{"u (g)", "SELECT v FROM u WHERE g %s", ""}, [3]string{"w (q)", "SELECT p, v FROM w WHERE q %s", ""})
		sql, v.query = "CREATE INDEX "+v.name+" ON "+x[0], x[1]
	case len(ready) > 0 && b.r.IntN(4) == 0:
		v.parent = pick(b.r, ready...)
		v.query = pick(b.r, "SELECT * FROM ", "SELECT count(*) AS n FROM ") + v.parent.name
		sql += v.query
	default:
		sql += v.query
	}
	c, err := b.db.Connect()
	if err != nil {
		return err
	}
	v.background = b.r.IntN(2) == 0
	set := fmt.Sprintf("SET streaming_max_parallelism = %d; SET streaming_parallelism = %d; SET locality_backfill_mode = %s; SET backfill_rate_limit = %s; SET background_ddl = %t",
		pick(b.r, 4, 64), pick(b.r, 1, 2, 4), pick(b.r, "off", "auto", "always"), b.rate(), v.background)
	if b.r.IntN(4) == 0 {
		set += fmt.Sprintf("; SET streaming_parallelism_for_backfill = %d", pick(b.r, 1, 2, 4))
	}
	b.note("-- another session: %s; %s;", set, sql)
	if _, err := c.Exec(context.Background(), set); err != nil {
		return fmt.Errorf("%s: %w", set, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.done, v.cancel = make(chan error, 1), cancel
	go func() {
		_, err := c.Exec(ctx, sql)
		c.Close()
		cancel()
		v.done <- err
	}()
	if v.background {
		err := <-v.done
		v.done, v.cancel = nil, nil
		if embed.Code(err) == "0A000" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	} else {
		// Most of the time the next step finds it begun.
		for i := 0; i < 200 && b.rel(v) == nil && len(v.done) == 0; i++ {
			time.Sleep(50 * time.Microsecond)
		}
	}
	b.views = append(b.views, v)
	return nil
}

func (b *backfillSim) rate() string {
	return pick(b.r, "DEFAULT", "DEFAULT", "0", "1", "300", "5000", "1000000")
}

// rel is what the catalog says of a view; nil: nothing.
func (b *backfillSim) rel(v *simView) *catalog.Relation { return b.db.Catalog().Any("public", v.name) }

// poll notes which builds have ended.
func (b *backfillSim) poll() error {
	for _, v := range b.views {
		if v.ready {
			continue
		}
		if v.done != nil {
			select {
			case err := <-v.done:
				if embed.Code(err) == "0A000" {
					b.views = slices.DeleteFunc(slices.Clone(b.views), func(o *simView) bool { return o == v })
					continue
				}
				if err != nil {
					return fmt.Errorf("create %s (%s): %w", v.name, v.query, err)
				}
				v.done, v.cancel = nil, nil
			default:
				continue
			}
		}
		r := b.rel(v)
		if r == nil {
			return fmt.Errorf("%s, which was being created in the background, is gone", v.name)
		}
		if r.Failed != "" {
			return fmt.Errorf("%s has stopped: %s", v.name, r.Failed)
		}
		v.ready = !r.Building
	}
	return nil
}

func (b *backfillSim) step() error {
	if err := b.poll(); err != nil {
		return err
	}
	var building []*simView
	for _, v := range b.views {
		if !v.ready {
			building = append(building, v)
		}
	}
	if len(b.views) == 0 {
		return b.create()
	}
	v := pick(b.r, b.views...)
	if len(building) > 0 && b.r.IntN(4) > 0 {
		v = pick(b.r, building...)
	}
	switch x := b.r.IntN(100); {
	case x < 30:
		if len(b.views) < 6 {
			return b.create()
		}
		return b.remove(v)
	case x < 45:
		return b.alter(fmt.Sprintf("ALTER %s %s SET BACKFILL_RATE_LIMIT = %s", v.kind, v.name, b.rate()))
	case x < 48:
		return b.alter(pick(b.r, "PAUSE", "RESUME") + " BACKFILL " + v.name)
	case x < 51:
		return b.alter("ALTER SYSTEM SET " + pick(b.r, "locality_sort_buffer_activate_threshold = 1", "locality_sort_buffer_activate_threshold = 40", "locality_sort_buffer_activate_threshold = 65536",
			"enable_locality_sort_buffer = off", "enable_locality_sort_buffer = on", "backfill_barrier_latency_target_ms = 1", "backfill_barrier_latency_target_ms = 0"))
	case x < 57:
		b.paused = !b.paused
		return b.all(fmt.Sprintf("ALTER SYSTEM SET backfill_paused = %t", b.paused))
	case x < 70:
		if b.r.IntN(5) == 0 {
			return b.alter(fmt.Sprintf("ALTER TABLE %s SET PARALLELISM = %d", pick(b.r, "t", "u", "w"), pick(b.r, 1, 2, 4)))
		}
		return b.alter(fmt.Sprintf("ALTER %s %s SET %s = %s", v.kind, v.name, pick(b.r, "PARALLELISM", "PARALLELISM", "BACKFILL_PARALLELISM"), pick(b.r, "1", "2", "4", "ADAPTIVE")))
	case x < 82:
		return b.remove(v)
	case x < 92:
		return b.restart()
	default:
		time.Sleep(time.Duration(b.r.IntN(20)) * time.Millisecond)
		return nil
	}
}

// alter says what may be unknown, or come too late or too early for a view.
func (b *backfillSim) alter(sql string) error {
	_, err := b.do(sql)
	switch embed.Code(err) {
	case "42P01", "0A000":
		b.note("-- %v", err)
		return nil
	}
	return err
}

// remove cancels or drops a view and all that reads it, and holds the engine to leaving nothing.
func (b *backfillSim) remove(v *simView) error {
	before := len(b.views)
	gone := []*simView{v}
	for i := 0; i < len(gone); i++ {
		for _, d := range b.views {
			if d.parent == gone[i] && !slices.Contains(gone, d) {
				gone = append(gone, d)
			}
		}
	}
	var ids []catalog.ID
	for _, g := range gone {
		if r := b.rel(g); r != nil {
			ids = append(append(ids, r.ID), r.State...)
		}
	}
	how := "drop"
	if !v.ready {
		how = pick(b.r, "drop", "cancel jobs", "interrupt")
	}
	if how == "interrupt" && v.cancel == nil {
		how = "cancel jobs"
	}
	begin := time.Now()
	r := b.rel(v)
	switch {
	case r == nil || how == "interrupt":
		b.note("-- interrupt %s", v.name)
		if v.cancel == nil {
			return fmt.Errorf("%s is not in the catalog", v.name)
		}
		v.cancel()
	case how == "cancel jobs":
		a, err := b.do(fmt.Sprintf("CANCEL JOBS %d", r.ID))
		if err != nil {
			return err
		}
		if len(a.Rows) == 0 { // it was done before
			return nil
		}
	default:
		if err := b.all(fmt.Sprintf("DROP %s IF EXISTS %s CASCADE", v.kind, v.name)); err != nil {
			return err
		}
	}
	for _, g := range gone {
		if g.done == nil {
			continue
		}
		select {
		case err := <-g.done:
			g.done, g.cancel = nil, nil
			if err == nil && g == v && how == "interrupt" {
				return nil // it was done before
			}
			if c := embed.Code(err); err != nil && c != "57014" && c != "42P01" {
				return fmt.Errorf("creating %s, cancelled by %s, ended with %w", g.name, how, err)
			}
		case <-time.After(20 * time.Second):
			return fmt.Errorf("creating %s does not end, 20 s after %s", g.name, how)
		}
	}
	if took := time.Since(begin); took > 5*time.Second { // one second, on a machine of our own
		return fmt.Errorf("%s of %s took %s", how, v.name, took)
	}
	b.views = slices.DeleteFunc(b.views, func(v *simView) bool { return slices.Contains(gone, v) })
	b.note("-- %d of %d relations are to be gone", len(gone), before)
	return b.nothingLeft(gone, ids)
}

// nothingLeft waits until no trace is left of relations.
func (b *backfillSim) nothingLeft(gone []*simView, ids []catalog.ID) error {
	var left error
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		left = nil
		for _, g := range gone {
			if b.rel(g) != nil {
				left = fmt.Errorf("%s is still in the catalog", g.name)
			}
		}
		for _, id := range ids {
			if rows, bytes := b.db.Rows(id), b.db.Bytes(id); rows != 0 || bytes != 0 {
				left = fmt.Errorf("object %d of %s still has %d rows, %d bytes", id, gone[0].name, rows, bytes)
			}
		}
		if left == nil {
			return nil
		}
		if err := b.all("FLUSH"); err != nil {
			return err
		}
	}
	return left
}

// restart ends the engine as a kill would, opens it again and holds it to what it had said.
func (b *backfillSim) restart() error {
	if err := b.poll(); err != nil {
		return err
	}
	// A statement that reads must not find its store closed under it; one that waits may.
	b.stopWriter()
	if err := b.writer.err(); err != nil {
		return err
	}
	b.note("-- crash")
	b.c.Close()
	if err := b.db.Crash(); err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	acked := map[*simView]bool{}
	for _, v := range b.views {
		if v.done == nil {
			acked[v] = true
			continue
		}
		select {
		case err := <-v.done:
			acked[v] = err == nil
			v.done, v.cancel = nil, nil
		case <-time.After(20 * time.Second):
			return fmt.Errorf("creating %s does not end with the engine", v.name)
		}
	}
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		n := embed.Goroutines("seed", b.label, "streamdb/stream")
		if n == 0 {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d goroutines of the closed engine run on", n)
		}
	}
	if b.r.IntN(3) == 0 { // and once more before it has done anything
		if err := b.db.Start(context.Background()); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if err := b.db.Crash(); err != nil {
			return err
		}
	}
	if err := b.start(); err != nil {
		return err
	}
	var kept []*simView
	for _, v := range b.views {
		r := b.rel(v)
		switch {
		case r == nil && acked[v]:
			return fmt.Errorf("%s is gone after the crash, its creation was acknowledged", v.name)
		case r != nil && !v.background && r.Building:
			return fmt.Errorf("%s is still being created, its session is gone", v.name)
		case r != nil:
			kept = append(kept, v)
		}
	}
	b.views = kept
	b.paused = false
	b.startWriter()
	return b.poll()
}

// look compares finished views with their queries.
func (b *backfillSim) look() error {
	if err := b.poll(); err != nil {
		return err
	}
	if err := b.writer.err(); err != nil {
		return err
	}
	for _, v := range b.views {
		if !v.ready {
			continue
		}
		if err := b.compare(v); err != nil {
			return err
		}
	}
	return nil
}

// compare reads a view and its query in one statement, and so at one epoch.
func (b *backfillSim) compare(v *simView) error {
	left, right := "SELECT * FROM "+v.name, v.query
	if v.kind == "INDEX" {
		// By the index, and without: the condition is one that no index answers.
		x := pick(b.r, "= 3", "IS NULL")
		if strings.Contains(v.query, " s ") {
			x = pick(b.r, "= 's3'", "> 's3'")
		}
		left = fmt.Sprintf(v.query, x)
		col := "coalesce(" + v.query[strings.LastIndex(v.query[:len(v.query)-3], " ")+1:len(v.query)-3] + ", NULL) "
		right = v.query[:strings.LastIndex(v.query[:len(v.query)-3], " ")+1] + col + x
	}
	sql := fmt.Sprintf("SELECT '+' AS diff, a.* FROM (%[1]s EXCEPT ALL (%[2]s)) AS a UNION ALL SELECT '-', b.* FROM ((%[2]s) EXCEPT ALL %[1]s) AS b", left, right)
	a, err := b.do(sql)
	if err != nil {
		return err
	}
	if len(a.Rows) > 0 {
		lines := a.Lines()
		return fmt.Errorf("%s differs from its query (+: only the view has it, -: only the query has it), %d rows:\n%s\n%s", v.name, len(lines), v.query, strings.Join(lines[:min(10, len(lines))], "\n"))
	}
	return nil
}

// end lets all builds finish, looks at everything, and at the store behind it.
func (b *backfillSim) end() error {
	if err := b.all("ALTER SYSTEM SET backfill_paused = off"); err != nil {
		return err
	}
	for _, v := range b.views {
		if !v.ready {
			if err := b.alter("RESUME BACKFILL " + v.name); err != nil {
				return err
			}
			if err := b.alter(fmt.Sprintf("ALTER %s %s SET BACKFILL_RATE_LIMIT = DEFAULT", v.kind, v.name)); err != nil {
				return err
			}
		}
	}
	for until := time.Now().Add(40 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := b.look(); err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(b.views), func(v *simView) bool { return v.ready })
		if len(left) == 0 {
			break
		}
		if time.Now().After(until) {
			a, _ := b.c.Exec(context.Background(), "SELECT * FROM rw_catalog.rw_ddl_progress")
			return fmt.Errorf("%s (%s) is not built after 40 s: %v", left[0].name, left[0].query, a)
		}
	}
	b.stopWriter()
	if err := b.look(); err != nil {
		return err
	}
	if err := b.all("FLUSH"); err != nil {
		return err
	}
	if b.r.IntN(2) == 0 {
		if err := b.restart(); err != nil {
			return err
		}
		b.stopWriter()
		if err := b.look(); err != nil {
			return err
		}
	}
	owned := b.db.Owned()
	b.c.Close()
	if err := b.db.Crash(); err != nil {
		return err
	}
	return embed.Strays(b.dir, owned)
}

// A simWriter changes the tables until it is stopped.
type simWriter struct {
	quit, ended chan struct{}
	failure     error // valid once ended is closed
}

func (w *simWriter) err() error {
	select {
	case <-w.ended:
		return w.failure
	default:
		return nil
	}
}

func (b *backfillSim) stopWriter() {
	if b.writer == nil {
		return
	}
	select {
	case <-b.writer.quit:
	default:
		close(b.writer.quit)
	}
	<-b.writer.ended
}

func (b *backfillSim) startWriter() {
	w := &simWriter{quit: make(chan struct{}), ended: make(chan struct{})}
	b.writer = w
	r := rand.New(rand.NewPCG(b.r.Uint64(), 2))
	next := 10_000 * (b.made + 1) // keys above all that were used
	b.made++
	c, err := b.db.Connect()
	go func() {
		defer close(w.ended)
		if w.failure = err; err != nil {
			return
		}
		defer c.Close()
		for {
			select {
			case <-w.quit:
				return
			default:
			}
			sql := simChange(r, &next)
			b.note("-- writer: %s;", sql)
			ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("no answer in 30 s"))
			_, err := c.Exec(ctx, sql)
			cancel()
			if err != nil && embed.Code(err) == "40001" {
				_, err = c.Exec(context.Background(), "ROLLBACK")
			}
			if err != nil {
				w.failure = fmt.Errorf("writer: %s: %w", sql, err)
				return
			}
			if r.IntN(3) == 0 {
				time.Sleep(time.Duration(r.IntN(1500)) * time.Microsecond)
			}
		}
	}()
}

// simChange is a random change of the tables. next is the next key.
func simChange(r *rand.Rand, next *int) string {
	set := ""
	if r.IntN(3) == 0 {
		set = pick(r, "SET implicit_flush = on; ", "SET implicit_flush = off; ")
	}
	if r.IntN(12) == 0 {
		return set + "BEGIN; " + simStatement(r, next) + "; " + simStatement(r, next) + "; " + pick(r, "COMMIT", "ROLLBACK")
	}
	return set + simStatement(r, next)
}

func simStatement(r *rand.Rand, next *int) string {
	some := func(n int) (int, int) { a := r.IntN(1200); return a, a + r.IntN(n) }
	switch r.IntN(15) {
	case 14: // everything at once
		return pick(r, "UPDATE t SET v = v + 1", "UPDATE t SET g = (coalesce(g, 0) + 1) % 37", "DELETE FROM t WHERE k % 3 = 1", "UPDATE w SET v = v + 1", "DELETE FROM u",
			"INSERT INTO t SELECT i, i % 37, i % 7, 's' || i % 3 FROM generate_series(1, 800) AS x (i) ON CONFLICT DO NOTHING")
	case 0, 1:
		n := pick(r, 1, 2, 40)
		*next += n
		return fmt.Sprintf("INSERT INTO t SELECT i, nullif(i %% 37, 5), i %% 13, 's' || i %% 5 FROM generate_series(%d, %d) AS x (i)", *next-n, *next-1)
	case 2:
		// Holes are filled again.
		a, z := some(60)
		return fmt.Sprintf("INSERT INTO t SELECT i, i %% 37, %d, NULL FROM generate_series(%d, %d) AS x (i) ON CONFLICT DO NOTHING", r.IntN(9), a, z)
	case 3:
		a, z := some(20)
		return fmt.Sprintf("UPDATE t SET v = v + 1 WHERE k BETWEEN %d AND %d", a, z)
	case 4:
		a, z := some(20)
		return fmt.Sprintf("UPDATE t SET g = %s WHERE k BETWEEN %d AND %d", pick(r, "NULL", "g + 1", "(k + 1) % 37", "coalesce(g, 3)"), a, z)
	case 5:
		a, z := some(10)
		return fmt.Sprintf("UPDATE t SET k = -k WHERE k BETWEEN %d AND %d AND k > 0 AND NOT EXISTS (SELECT 1 FROM t AS o WHERE o.k = -t.k)", a, z)
	case 6:
		a, z := some(pick(r, 3, 400))
		return fmt.Sprintf("DELETE FROM t WHERE k BETWEEN %d AND %d", a, z)
	case 7:
		return fmt.Sprintf("DELETE FROM t WHERE k < 0 OR k BETWEEN 10000 AND %d", *next-60)
	case 8:
		return fmt.Sprintf("INSERT INTO u VALUES (%d, 1), (%[1]d, 1), (NULL, %[2]d), (%[2]d, 2)", r.IntN(41), r.IntN(3))
	case 9:
		return fmt.Sprintf("DELETE FROM u WHERE g %% 5 = %d", r.IntN(5))
	case 10:
		return fmt.Sprintf("UPDATE u SET g = %s, v = (v + 1) %% 3 WHERE g = %d OR g IS NULL AND v = %d", pick(r, "NULL", "g - 1", "7"), r.IntN(41), r.IntN(3))
	case 11:
		a, z := some(20)
		return fmt.Sprintf("INSERT INTO w SELECT 'p' || i %% 9, i, i %% 4 FROM generate_series(%d, %d) AS x (i) ON CONFLICT (p, q) DO UPDATE SET v = w.v + 1", a, z)
	case 12:
		a, z := some(pick(r, 5, 300))
		return fmt.Sprintf("DELETE FROM w WHERE q BETWEEN %d AND %d", a, z)
	default:
		a, z := some(20)
		return fmt.Sprintf("UPDATE w SET p = p || 'x' WHERE q BETWEEN %d AND %d AND length(p) < 4 AND NOT EXISTS (SELECT 1 FROM w AS o WHERE o.q = w.q AND o.p = w.p || 'x')", a, z)
	}
}
