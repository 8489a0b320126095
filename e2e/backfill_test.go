package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"streamdb/e2e/embed"
	"streamdb/sql/catalog"
	"streamdb/stream/engine"
)

// The scenarios by which arrangement backfill and locality backfill are known to
// break, each at the level of SQL against an engine in this process:
//
//	Replication       rows written but not yet committed are in the view (chunks of one row, three actors, 30 rows a second)
//	ReplicationPruned the same with columns that the view does not read
//	EmptyUpstream     the end of a table is reached while rows arrive: none is lost
//	BusyUpstream      a table that is written without pause does not starve the build
//	Tombstones        long runs of deleted keys hold up neither the build nor the barriers
//	Backpressure      a join that multiplies its input does not keep a later FLUSH waiting
//	Progress          rows done keep to the rate limit, and survive a crash
//	Cancel            five builds cancelled in each way; names are free, nothing is in the store
//	CancelBusy        the same when barriers are slow since a join multiplies
//	Background        builds in the background survive crashes, and their rows are right
//	Rescale           1, 2, 3 actors while rows are written, before and after the build
//	RescaleMixed      vnodes that are done and that are not change hands: 101,000 rows
//	BackfillParallel  two actors while a view is built, three afterwards
//	Locality          a provider buffers, then drains; limit 0 freezes it, DEFAULT completes it; a crash in between
//	LocalityPlans     providers under joins, self joins, changes of the key, VALUES, an index and a fixed order
//	Order             backfill_order: what is refused, and who waits for whom
type scenario struct {
	t  *testing.T
	db *embed.DB
	c  *embed.Conn
}

// newScenario opens an engine that ends with the test; then nothing may be left of what has no name any more.
func newScenario(t *testing.T, o engine.Options) *scenario {
	t.Helper()
	dir, err := embed.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = dir
	s := &scenario{t: t, db: embed.New(o)}
	removeAll(t, dir)
	s.open()
	t.Cleanup(func() {
		if s.db.DB == nil {
			return
		}
		owned := s.db.Owned()
		s.close()
		if !t.Failed() {
			if err := embed.Strays(dir, owned); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *scenario) open() {
	s.t.Helper()
	if err := s.db.Start(context.Background()); err != nil {
		s.t.Fatalf("open: %v", err)
	}
	s.c = s.conn()
}

func (s *scenario) close() {
	s.t.Helper()
	s.c.Close()
	if err := s.db.Crash(); err != nil {
		s.t.Errorf("close: %v", err)
	}
}

// crash ends the engine with what is committed, and opens it again.
func (s *scenario) crash() {
	s.t.Helper()
	s.close()
	s.open()
}

func (s *scenario) conn() *embed.Conn {
	s.t.Helper()
	c, err := s.db.Connect()
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// do says SQL that must succeed within a minute.
func (s *scenario) do(sql string) *embed.Answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("no answer in a minute"))
	defer cancel()
	a, err := s.c.Exec(ctx, sql)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return a
}

// want compares an answer's rows, in byte order.
func (s *scenario) want(sql string, rows ...string) {
	s.t.Helper()
	if got := s.do(sql).Lines(); strings.Join(got, "\n") != strings.Join(rows, "\n") {
		s.t.Fatalf("%s\n got %q\nwant %q", sql, got, rows)
	}
}

func (s *scenario) number(sql string) int64 {
	s.t.Helper()
	a := s.do(sql)
	if len(a.Rows) != 1 {
		s.t.Fatalf("%s: %d rows", sql, len(a.Rows))
	}
	n, err := strconv.ParseInt(a.Rows[0][0], 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// same compares a view with its query, at one epoch.
func (s *scenario) same(view, query string) {
	s.t.Helper()
	q := fmt.Sprintf("SELECT '+', a.* FROM (SELECT * FROM %[1]s EXCEPT ALL (%[2]s)) AS a UNION ALL SELECT '-', b.* FROM ((%[2]s) EXCEPT ALL SELECT * FROM %[1]s) AS b", view, query)
	if a := s.do(q); len(a.Rows) > 0 {
		s.t.Fatalf("%s differs from %s in %d rows, first: %s", view, query, len(a.Rows), a.Lines()[0])
	}
}

// until asks again and again, at most for a minute, until ok.
func (s *scenario) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("after a minute: not yet %s", what)
		}
	}
}

// job is a condition on system relations: the rows of a relation's job.
func (s *scenario) job(column, name string) string {
	return fmt.Sprintf("%s = %d", column, s.rel(name).ID)
}

// rel is what the catalog says of a relation.
func (s *scenario) rel(name string) *catalog.Relation { return s.db.Catalog().Any("public", name) }

// while runs f on a connection of its own, again and again, until the returned function is called.
func (s *scenario) while(f func(c *embed.Conn, i int) error) (stop func()) {
	c := s.conn()
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		defer c.Close()
		for i := 0; ; i++ {
			select {
			case <-quit:
				ended <- nil
				return
			default:
			}
			if err := f(c, i); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() {
		s.t.Helper()
		close(quit)
		if err := <-ended; err != nil {
			s.t.Fatalf("meanwhile: %v", err)
		}
	}
}

func say(c *embed.Conn, format string, args ...any) error {
	sql := fmt.Sprintf(format, args...)
	if _, err := c.Exec(context.Background(), sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

func TestBackfillReplication(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{ChunkSize: 1, Interval: 100 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, v int);
		INSERT INTO t SELECT i, i FROM generate_series(1, 100) AS x (i); INSERT INTO t SELECT i, i FROM generate_series(201, 300) AS x (i);
		SET streaming_parallelism = 3; SET backfill_rate_limit = 300; SET background_ddl = on;
		CREATE MATERIALIZED VIEW m AS SELECT * FROM t`)
	// Not flushed: at first only the upstream's memory has them.
	s.do(`SET implicit_flush = off`)
	for i := 101; i <= 200; i += 10 {
		s.do(fmt.Sprintf(`INSERT INTO t SELECT i, i FROM generate_series(%d, %d) AS x (i); UPDATE t SET v = v + 1 WHERE k %% 50 = %d`, i, i+9, i%50))
	}
	s.do(`WAIT; SET implicit_flush = on`)
	s.want(`SELECT count(*) FROM m`, "300")
	s.same("m", "SELECT * FROM t")
	s.want(`SELECT DISTINCT parallelism FROM rw_catalog.rw_fragments WHERE `+s.job("table_id", "m"), "3")
}

func TestBackfillReplicationPruned(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{ChunkSize: 1, Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (a text, k int PRIMARY KEY, b numeric, c int, d text, e int[]);
		INSERT INTO t SELECT 'a' || i, i, i / 4.0, i % 7, repeat('d', i % 20), ARRAY[i, NULL] FROM generate_series(1, 600) AS x (i);
		SET background_ddl = on; SET backfill_rate_limit = 2000;
		CREATE MATERIALIZED VIEW m1 AS SELECT c FROM t;
		CREATE MATERIALIZED VIEW m2 AS SELECT d, k FROM t WHERE c > 2;
		CREATE MATERIALIZED VIEW m3 AS SELECT c, count(*) AS n, max(a) AS a FROM t GROUP BY c;
		CREATE MATERIALIZED VIEW m4 AS SELECT count(*) AS n FROM t; SET implicit_flush = off`)
	for i := range 20 {
		s.do(fmt.Sprintf(`UPDATE t SET b = b + 1 WHERE k %% 10 = %d; UPDATE t SET c = (c + 1) %% 7, e = NULL WHERE k %% 13 = %d; DELETE FROM t WHERE k = %d; INSERT INTO t (k, c) VALUES (%d, 3)`, i%10, i%13, i*29, 1000+i))
	}
	s.do(`WAIT; SET implicit_flush = on; FLUSH`)
	s.same("m1", "SELECT c FROM t")
	s.same("m2", "SELECT d, k FROM t WHERE c > 2")
	s.same("m3", "SELECT c, count(*) AS n, max(a) AS a FROM t GROUP BY c")
	s.same("m4", "SELECT count(*) AS n FROM t")
}

func TestBackfillEmptyUpstream(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 256} {
		s := newScenario(t, engine.Options{ChunkSize: chunk, Interval: time.Millisecond, Parallelism: 4})
		s.do(`CREATE TABLE t (k int PRIMARY KEY)`)
		stop := s.while(func(c *embed.Conn, i int) error {
			time.Sleep(time.Millisecond / 2)
			return say(c, "SET implicit_flush = off; INSERT INTO t VALUES (%d), (%d)", 2*i, 2*i+1)
		})
		for i := range 20 {
			s.do(fmt.Sprintf(`CREATE MATERIALIZED VIEW m%d AS SELECT * FROM t`, i))
		}
		stop()
		s.do(`FLUSH`)
		for i := range 20 {
			s.same(fmt.Sprintf("m%d", i), "SELECT * FROM t")
		}
	}
}

func TestBackfillBusyUpstream(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 10 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 30000) AS x (i)`)
	stop := s.while(func(c *embed.Conn, i int) error {
		return say(c, "SET implicit_flush = off; UPDATE t SET v = v + 1 WHERE k BETWEEN %d AND %d", i*37%30000, i*37%30000+500)
	})
	began := time.Now()
	s.do(`CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v`)
	took := time.Since(began)
	stop()
	s.do("FLUSH")
	s.same("m", "SELECT v, count(*) AS n FROM t GROUP BY v")
	if took > 30*time.Second { // one row a barrier would take five minutes
		t.Errorf("the build took %s", took)
	}
}

func TestBackfillTombstones(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 10 * time.Millisecond, ChunkSize: 64})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 200000) AS x (i);
		DELETE FROM t WHERE k BETWEEN 100 AND 199900`)
	stop := s.while(func(c *embed.Conn, i int) error {
		return say(c, "INSERT INTO t VALUES (%d, 1); DELETE FROM t WHERE k = %[1]d; UPDATE t SET v = v + 1 WHERE k = %d", 1000+i, i%99)
	})
	began := time.Now()
	for _, m := range []string{"off", "always"} {
		s.do(`SET locality_backfill_mode = ` + m + `; CREATE MATERIALIZED VIEW m_` + m + ` AS SELECT v % 10 AS g, count(*) AS n FROM t GROUP BY v % 10`)
	}
	took := time.Since(began)
	stop()
	for _, m := range []string{"off", "always"} {
		s.same("m_"+m, "SELECT v % 10 AS g, count(*) AS n FROM t GROUP BY v % 10")
	}
	if took > 20*time.Second {
		t.Errorf("two builds of 200 rows among 200,000 deleted ones took %s", took)
	}
}

func TestBackfillBackpressure(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{})
	s.do(`CREATE TABLE fact (k int PRIMARY KEY, g int); CREATE TABLE dim (g int, v int);
		INSERT INTO fact SELECT i, i % 10 FROM generate_series(1, 5000) AS x (i);
		INSERT INTO dim SELECT i % 10, i FROM generate_series(1, 2000) AS x (i);
		CREATE SINK gone AS SELECT fact.k, dim.v FROM fact JOIN dim ON fact.g = dim.g WITH (connector = 'blackhole');
		SET implicit_flush = off; INSERT INTO fact SELECT i, i % 10 FROM generate_series(5001, 10000) AS x (i)`)
	began := time.Now()
	s.do(`FLUSH`) // a million rows in front of it
	first := time.Since(began)
	began = time.Now()
	s.do(`FLUSH`)
	if took := time.Since(began); took > time.Second {
		t.Errorf("FLUSH took %s; the one before, behind a million rows, %s", took, first)
	}
}

func TestBackfillProgress(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 50 * time.Millisecond, Parallelism: 1})
	s.do(`CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t SELECT i FROM generate_series(1, 1000) AS x (i);
		SET background_ddl = on; SET backfill_rate_limit = 50; CREATE MATERIALIZED VIEW m AS SELECT k FROM t`)
	began := time.Now()
	// bounds holds the rows done to the limit: half of it at least, for a busy machine, and no more than a half above it.
	bounds := func(since time.Time, from int64) int64 {
		t.Helper()
		done := s.number(`SELECT rows_done FROM rw_catalog.rw_ddl_progress`)
		due := 50 * time.Since(since).Seconds()
		if got := float64(done - from); got < due/2-25 || got > due*1.5+50 {
			t.Errorf("%d rows done after %d, at 50 a second %.0f are due", done, from, due)
		}
		if total := s.number(`SELECT rows_total FROM rw_catalog.rw_ddl_progress`); total != 1000 {
			t.Errorf("%d rows in all", total)
		}
		return done
	}
	for range 4 {
		time.Sleep(500 * time.Millisecond)
		bounds(began, 0)
	}
	before := bounds(began, 0)
	s.crash()
	began = time.Now()
	s.until("read from the store", func() bool { return s.number(`SELECT rows_done FROM rw_catalog.rw_ddl_progress`) > 0 })
	if after := s.number(`SELECT rows_done FROM rw_catalog.rw_ddl_progress`); after < before-15 || after > before+25 {
		t.Errorf("%d rows done before the crash, %d after it", before, after)
	} else {
		time.Sleep(700 * time.Millisecond)
		bounds(began, after)
	}
	s.do(`ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = 0`)
	held := s.number(`SELECT rows_done FROM rw_catalog.rw_ddl_progress`)
	time.Sleep(200 * time.Millisecond)
	if now := s.number(`SELECT rows_done FROM rw_catalog.rw_ddl_progress`); now > held {
		t.Errorf("paused at %d rows, now %d", held, now)
	}
	s.do(`ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	s.same("m", "SELECT k FROM t")
}

// build starts a statement on a connection of its own and returns how to interrupt it and where its outcome comes.
func (s *scenario) build(set, sql, name string) (context.CancelFunc, chan error) {
	s.t.Helper()
	c := s.conn()
	if err := say(c, "%s", set); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(ctx, sql)
		c.Close()
		done <- err
	}()
	s.until("begun", func() bool { return s.rel(name) != nil || len(done) > 0 })
	return cancel, done
}

// cancelled cancels a build in one of three ways and waits until nothing is left of it.
func (s *scenario) cancelled(how int, name string, cancel context.CancelFunc, done chan error) {
	s.t.Helper()
	r := s.rel(name)
	if r == nil {
		s.t.Fatalf("%s ended by itself: %v", name, <-done)
	}
	began := time.Now()
	switch how % 3 {
	case 0:
		cancel()
	case 1:
		s.do(fmt.Sprintf("CANCEL JOBS %d", r.ID))
	case 2:
		s.do("DROP MATERIALIZED VIEW " + name)
	}
	if err := <-done; embed.Code(err) != "57014" {
		s.t.Fatalf("cancelled in way %d: %v", how%3, err)
	}
	if took := time.Since(began); took > 3*time.Second { // one, on a machine of our own
		s.t.Errorf("way %d took %s", how%3, took)
	}
	cancel()
	s.want(`SHOW JOBS`)
	if s.rel(name) != nil {
		s.t.Fatalf("%s is in the catalog", name)
	}
	for _, id := range append([]catalog.ID{r.ID}, r.State...) {
		s.until("empty", func() bool {
			s.do("FLUSH")
			return s.db.Rows(id) == 0 && s.db.Bytes(id) == 0
		})
	}
}

func TestBackfillCancel(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 5000) AS x (i)`)
	for how := range 5 {
		cancel, done := s.build(`SET backfill_rate_limit = 200; SET locality_backfill_mode = `+[]string{"off", "always"}[how%2], `CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g`, "m")
		time.Sleep(50 * time.Millisecond)
		s.cancelled(how, "m", cancel, done)
	}
	s.do(`CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g`)
	s.same("m", "SELECT g, count(*) AS n FROM t GROUP BY g")
}

func TestBackfillCancelBusy(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, 1 FROM generate_series(1, 10000) AS x (i)`)
	for how := range 3 {
		// A hundred million rows.
		cancel, done := s.build("SET streaming_parallelism = 2", `CREATE MATERIALIZED VIEW m AS SELECT a.g, count(*) AS n FROM t AS a JOIN t AS b ON a.g = b.g GROUP BY a.g`, "m")
		time.Sleep(150 * time.Millisecond)
		s.cancelled(how, "m", cancel, done)
	}
	s.do(`CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g`)
	s.want("SELECT * FROM m", "1 | 10000")
}

func TestBackfillBackground(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 10 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int, v int); CREATE TABLE u (g int, w text);
		INSERT INTO t SELECT i, i % 50, i FROM generate_series(1, 2000) AS x (i); INSERT INTO u SELECT i % 60, 'w' || i FROM generate_series(1, 120) AS x (i);
		SET background_ddl = on; SET backfill_rate_limit = 3000`)
	queries := []string{"SELECT * FROM t", "SELECT t.k, u.w FROM t JOIN u ON t.g = u.g", "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g", "SELECT DISTINCT g FROM t",
		"SELECT k, v FROM t UNION ALL SELECT g, length(w) FROM u"}
	for i, q := range queries {
		s.do(fmt.Sprintf("CREATE MATERIALIZED VIEW m%d AS %s", i, q))
	}
	s.do("CREATE INDEX i ON t (g)")
	for i := range 5 {
		s.do(fmt.Sprintf("INSERT INTO t SELECT i, i %% 50, i FROM generate_series(%d, %d) AS x (i); UPDATE t SET g = g + 1 WHERE k %% 97 = %d; DELETE FROM t WHERE k %% 89 = %d", 3000+i*50, 3049+i*50, i, i))
		time.Sleep(60 * time.Millisecond)
		s.crash()
	}
	for i := range queries {
		s.do(fmt.Sprintf("ALTER MATERIALIZED VIEW m%d SET BACKFILL_RATE_LIMIT = DEFAULT", i))
	}
	s.do("ALTER INDEX i SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
	for i, q := range queries {
		s.same(fmt.Sprintf("m%d", i), q)
	}
	s.want("SELECT count(*) FROM t WHERE g = 7", s.do("SELECT count(*) FROM t WHERE coalesce(g) = 7").Lines()...)
}

func TestBackfillRescale(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 30) AS x (i);
		SET streaming_parallelism = 1; SET background_ddl = on; SET backfill_rate_limit = 40;
		CREATE MATERIALIZED VIEW m AS SELECT k, g FROM t; CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n FROM t GROUP BY g; SET backfill_rate_limit = DEFAULT; SET background_ddl = off`)
	for p := 1; p <= 3; p++ {
		s.do(fmt.Sprintf("ALTER MATERIALIZED VIEW m SET PARALLELISM = %d; ALTER MATERIALIZED VIEW n SET PARALLELISM = %[1]d; ALTER TABLE t SET PARALLELISM = %[1]d; INSERT INTO t SELECT i, i %% 7 FROM generate_series(%d, %d) AS x (i)", p, 21+10*p, 30+10*p))
	}
	s.do("WAIT")
	s.want("SELECT count(*) FROM m", "60")
	s.same("n", "SELECT g, count(*) AS n FROM t GROUP BY g")
	s.do(`CREATE MATERIALIZED VIEW mm AS SELECT sum(n) AS n FROM n`)
	stop := s.while(func(c *embed.Conn, i int) error {
		return say(c, "UPDATE t SET g = g + 1 WHERE k %% 10 = %d; INSERT INTO t VALUES (%d, 0)", i%10, 1000+i)
	})
	for _, p := range []int{3, 2, 4, 1} {
		s.do(fmt.Sprintf("ALTER MATERIALIZED VIEW n SET PARALLELISM = %d; ALTER TABLE t SET PARALLELISM = %d; ALTER MATERIALIZED VIEW m SET PARALLELISM = %[1]d", p, 5-p))
		s.want("SELECT DISTINCT parallelism FROM rw_catalog.rw_fragments WHERE "+s.job("table_id", "m"), fmt.Sprint(p))
		s.same("m", "SELECT k, g FROM t")
		s.same("n", "SELECT g, count(*) AS n FROM t GROUP BY g")
	}
	stop()
	s.same("mm", "SELECT count(*) AS n FROM t")
	s.crash()
	s.want("SELECT DISTINCT parallelism FROM rw_catalog.rw_fragments WHERE "+s.job("table_id", "m"), "1")
	s.same("n", "SELECT g, count(*) AS n FROM t GROUP BY g")
	s.same("m", "SELECT k, g FROM t")
}

func TestBackfillRescaleMixed(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 100000) AS x (i);
		SET streaming_parallelism = 4; SET background_ddl = on; SET backfill_rate_limit = 100000;
		CREATE MATERIALIZED VIEW m AS SELECT k, g FROM t; CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n FROM t GROUP BY g`)
	for _, done := range []int64{10_000, 50_000, 90_000} {
		s.until("so far", func() bool {
			a := s.do("SELECT rows_done FROM rw_catalog.rw_ddl_progress ORDER BY ddl_id LIMIT 1")
			if len(a.Rows) == 0 {
				return true
			}
			n, _ := strconv.ParseInt(a.Rows[0][0], 10, 64)
			return n >= done
		})
		p := map[int64]int{10_000: 1, 50_000: 3, 90_000: 2}[done]
		s.do(fmt.Sprintf("ALTER MATERIALIZED VIEW m SET PARALLELISM = %d; ALTER MATERIALIZED VIEW n SET PARALLELISM = %[1]d; INSERT INTO t SELECT i, i %% 10 FROM generate_series(%d, %d) AS x (i)", p, 100_001+done, 100_000+done+333))
	}
	s.do("INSERT INTO t VALUES (0, 0); WAIT")
	s.want("SELECT count(*) FROM m", "101000")
	s.same("m", "SELECT k, g FROM t")
	s.same("n", "SELECT g, count(*) AS n FROM t GROUP BY g")
}

func TestBackfillParallelism(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 500) AS x (i);
		SET streaming_parallelism = 3; SET streaming_parallelism_for_backfill = 2; SET background_ddl = on; SET backfill_rate_limit = 1;
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g`)
	// The number of actors, not what the catalog wishes for.
	actors := `SELECT DISTINCT actors FROM rw_catalog.rw_fragment_backfill_progress WHERE ` + s.job("job_id", "m")
	s.want(actors, "2")
	s.crash()
	s.want(actors, "2")
	s.do("ALTER MATERIALIZED VIEW m SET BACKFILL_PARALLELISM = 4")
	s.want(actors, "4")
	s.do("ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
	s.until("three actors", func() bool {
		return strings.Join(s.do(`SELECT DISTINCT parallelism FROM rw_catalog.rw_fragments WHERE `+s.job("table_id", "m")).Lines(), ",") == "3"
	})
	s.do("UPDATE t SET g = g + 1 WHERE k % 3 = 0")
	s.same("m", "SELECT g, count(*) AS n FROM t GROUP BY g")
}

func TestBackfillLocality(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 20 * time.Millisecond})
	s.do(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, -i FROM generate_series(1, 10000) AS x (i);
		SET locality_backfill_mode = always; SET background_ddl = on; SET backfill_rate_limit = 0;
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g`)
	provider := `SELECT current_row_count FROM rw_catalog.rw_fragment_backfill_progress WHERE upstream_id IS NULL AND ` + s.job("job_id", "m")
	scan := `SELECT current_row_count FROM rw_catalog.rw_fragment_backfill_progress WHERE upstream_id IS NOT NULL AND ` + s.job("job_id", "m")
	s.want(provider, "0")
	// The scan runs, the provider is held: fragment by fragment.
	fragment := func(where string) string {
		return s.do(`SELECT fragment_id FROM rw_catalog.rw_fragment_backfill_progress WHERE upstream_id ` + where + ` AND ` + s.job("job_id", "m")).Rows[0][0]
	}
	s.do(fmt.Sprintf("ALTER FRAGMENT %s SET BACKFILL_RATE_LIMIT = 100000; ALTER FRAGMENT %s SET BACKFILL_RATE_LIMIT = 0", fragment("IS NOT NULL"), fragment("IS NULL")))
	s.until("buffered", func() bool { return s.number(scan) == 10000 })
	s.want(provider, "0")
	s.crash()
	s.want(provider, "0")
	s.do(`UPDATE t SET g = g - 20000 WHERE k <= 10; DELETE FROM t WHERE k = 11; INSERT INTO t VALUES (11, -11)`)
	s.do(fmt.Sprintf("ALTER FRAGMENT %s SET BACKFILL_RATE_LIMIT = 3000", fragment("IS NULL")))
	s.until("drained in part", func() bool { return s.number(provider) > 500 })
	s.do(fmt.Sprintf("ALTER FRAGMENT %s SET BACKFILL_RATE_LIMIT = 0", fragment("IS NULL")))
	held := s.number(provider)
	s.do("UPDATE t SET g = g - 20000 WHERE k BETWEEN 20 AND 25; FLUSH")
	time.Sleep(100 * time.Millisecond)
	if now := s.number(provider); now > held+12 || now < held-12 {
		t.Errorf("held at %d rows, now %d", held, now)
	}
	s.crash()
	s.do(fmt.Sprintf("ALTER FRAGMENT %s SET BACKFILL_RATE_LIMIT = DEFAULT", fragment("IS NULL")))
	s.do(`ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	s.want("SELECT count(*), min(n), max(n) FROM m", "10000 | 1 | 1")
	s.same("m", "SELECT g, count(*) AS n FROM t GROUP BY g")
}

func TestBackfillLocalityPlans(t *testing.T) {
	t.Parallel()
	for _, p := range []int{1, 4} {
		s := newScenario(t, engine.Options{Interval: 5 * time.Millisecond, Parallelism: p, ChunkSize: 32})
		s.do(`CREATE TABLE a (k int PRIMARY KEY, g int, v int); CREATE TABLE b (k int PRIMARY KEY, g int, v int); CREATE INDEX bg ON b (g) INCLUDE (v);
			INSERT INTO a SELECT i, i % 40, i % 9 FROM generate_series(1, 1500) AS x (i); INSERT INTO b SELECT i, nullif(i % 50, 3), i % 5 FROM generate_series(1, 700) AS x (i);
			SET locality_backfill_mode = always`)
		stop := s.while(func(c *embed.Conn, i int) error {
			return say(c, "UPDATE a SET g = (g + 1) %% 40, v = v + 1 WHERE k %% 50 = %d; UPDATE b SET g = nullif(g + 1, 20) WHERE k %% 31 = %d; DELETE FROM a WHERE k = %d; INSERT INTO a VALUES (%d, NULL, 1)", i%50, i%31, i, 5000+i)
		})
		queries := []string{
			"SELECT a.k, b.v FROM a JOIN b ON a.g = b.g WHERE b.k < 60",
			"SELECT a.g, sum(b.v) AS s FROM a LEFT JOIN b ON a.g = b.g GROUP BY a.g",
			"SELECT x.k, y.v FROM a AS x JOIN a AS y ON x.k = y.g",
			"WITH s AS (SELECT g, count(*) AS n, sum(v) AS t FROM a GROUP BY g) SELECT x.g, y.n FROM s AS x JOIN s AS y ON x.n = y.n AND x.g = y.g WHERE x.t > 5",
			"SELECT a.v, x.w, count(*) AS n FROM a JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS x (g, w) ON a.g = x.g GROUP BY a.v, x.w",
			"SELECT DISTINCT g FROM b",
			"SELECT g, max(k) AS k FROM b GROUP BY g",
		}
		for i, q := range queries {
			with := ""
			if strings.Contains(q, "a JOIN b") {
				with = " WITH (backfill_order = FIXED(b -> a))"
			}
			s.do(fmt.Sprintf("CREATE MATERIALIZED VIEW m%d%s AS %s", i, with, q))
		}
		stop()
		for i, q := range queries {
			s.same(fmt.Sprintf("m%d", i), q)
		}
	}
}

func TestBackfillOrder(t *testing.T) {
	t.Parallel()
	s := newScenario(t, engine.Options{Interval: 10 * time.Millisecond})
	s.do(`CREATE TABLE a (k int PRIMARY KEY); CREATE TABLE b (k int PRIMARY KEY); CREATE TABLE c (k int PRIMARY KEY);
		INSERT INTO a SELECT generate_series(1, 50); INSERT INTO b SELECT generate_series(1, 50); INSERT INTO c SELECT generate_series(1, 50)`)
	const query = "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k"
	for order, want := range map[string]string{
		"FIXED(a -> b, b -> a)":         "cyclic",
		"FIXED(a -> b, b -> c, c -> a)": "cyclic",
		"FIXED(a -> a)":                 "cyclic",
		"FIXED(a -> nowhere)":           "nowhere",
	} {
		_, err := s.c.Exec(context.Background(), "CREATE MATERIALIZED VIEW m WITH (backfill_order = "+order+") AS "+query)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", order, err)
		}
	}
	s.do("SET background_ddl = on; SET backfill_rate_limit = 0; SET locality_backfill_mode = off; CREATE MATERIALIZED VIEW m WITH (backfill_order = FIXED(c -> a, b -> a)) AS " + query)
	state := func() string {
		return strings.Join(s.do(`SELECT t.name, f.phase FROM rw_catalog.rw_fragment_backfill_progress AS f JOIN rw_catalog.rw_tables AS t ON t.id = f.upstream_id WHERE `+s.job("f.job_id", "m")).Lines(), ", ")
	}
	s.until("only a waits", func() bool {
		got := state()
		return strings.Contains(got, "a | wait") && !strings.Contains(got, "b | wait") && !strings.Contains(got, "c | wait")
	})
	s.do("INSERT INTO a VALUES (60); INSERT INTO b VALUES (60); INSERT INTO c VALUES (60); ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
	s.want("SELECT count(*) FROM m", "51")
	s.do("SET backfill_rate_limit = DEFAULT; CREATE MATERIALIZED VIEW n WITH (backfill_order = AUTO) AS " + query + "; WAIT")
	s.same("n", query)
}
