package engine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/sql/sqlerr"
)

// filled is a database with a table of n rows, k from 1.
func filled(t *testing.T, dir string, n int) (*DB, *Session) {
	t.Helper()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, fmt.Sprintf(`CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT i, i %% 97 FROM generate_series(1, %d) AS s(i)`, n))
	return db, s
}

const sameAsQuery = `SELECT count(*) FROM ((SELECT * FROM m EXCEPT ALL SELECT g, count(*), max(k) FROM t GROUP BY g) UNION ALL
	(SELECT g, count(*), max(k) FROM t GROUP BY g EXCEPT ALL SELECT * FROM m)) AS d`

// A job and the table that it reads get other parallelisms while it is built and
// while rows are written, and all is as if nothing had been.
func TestRescaleWhileBuilding(t *testing.T) {
	dir := t.TempDir()
	db, s := filled(t, dir, 20_000)
	must(t, s, `SET background_ddl = on; SET backfill_rate_limit = 1000; SET streaming_parallelism = 1;
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n, max(k) AS top FROM t GROUP BY g`)
	stop, wrote := make(chan struct{}), make(chan int)
	w := session(t, db)
	var writes atomic.Int64
	go func() {
		for n := 0; ; n++ {
			writes.Store(int64(n))
			select {
			case <-stop:
				wrote <- n
				return
			default:
				must(t, w, fmt.Sprintf(`INSERT INTO t VALUES (%d, %d); DELETE FROM t WHERE k = %d; UPDATE t SET g = g + 1 WHERE k = %d`, 100_000+n, n%97, 2*n+1, 2*n+2))
			}
		}
	}()
	for _, p := range []string{"4", "2", "7", "adaptive"} {
		begin := time.Now()
		must(t, s, `ALTER MATERIALIZED VIEW m SET PARALLELISM = `+p)
		must(t, s, `ALTER TABLE t SET PARALLELISM = `+p)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("two rescales took %v", d)
		}
		before := writes.Load()
		eventually(t, func() bool { return writes.Load() >= before+3 })
	}
	want(t, s, `SELECT count(*) > 0 FROM rw_catalog.rw_ddl_progress WHERE rows_done < rows_total`, "t")
	must(t, s, `ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT; ALTER MATERIALIZED VIEW m SET PARALLELISM = 3; ALTER TABLE t SET PARALLELISM = 1`)
	close(stop)
	if n := <-wrote; n < 10 {
		t.Errorf("only %d writes meanwhile", n)
	}
	want(t, s, sameAsQuery, "0")
	want(t, s, `SELECT DISTINCT parallelism FROM rw_catalog.rw_streaming_parallelism WHERE name = 'm' AND distribution_type = 'HASH'`, "3")
	db.jobs.Close() // as a crash
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	want(t, s, sameAsQuery, "0")
	want(t, s, `SELECT DISTINCT parallelism FROM rw_catalog.rw_streaming_parallelism WHERE name = 'm' AND distribution_type = 'HASH'`, "3")
	must(t, s, `DELETE FROM t WHERE g < 40; ALTER MATERIALIZED VIEW m SET PARALLELISM = 5; UPDATE t SET g = 0 WHERE g = 50`)
	want(t, s, sameAsQuery, "0")
	wantCode(t, s, `ALTER MATERIALIZED VIEW m SET PARALLELISM = 65`, sqlerr.InvalidParameter)
	wantCode(t, s, `ALTER MATERIALIZED VIEW m SET PARALLELISM = 0.5`, sqlerr.InvalidParameter)
	wantCode(t, s, `ALTER TABLE m SET PARALLELISM = 2`, sqlerr.WrongObjectType)
}

// A job that is built with a parallelism of its own goes over to the normal one.
func TestParallelismForBackfill(t *testing.T) {
	db, s := filled(t, t.TempDir(), 5000)
	defer db.Close()
	must(t, s, `SET background_ddl = on; SET backfill_rate_limit = 0; SET streaming_parallelism = 3; SET streaming_parallelism_for_backfill = 2;
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n, max(k) AS top FROM t GROUP BY g`)
	const now = `SELECT DISTINCT parallelism FROM rw_catalog.rw_streaming_parallelism WHERE name = 'm' AND distribution_type = 'HASH'`
	want(t, s, now, "2")
	must(t, s, `ALTER MATERIALIZED VIEW m SET BACKFILL_PARALLELISM = 4`)
	want(t, s, now, "4")
	must(t, s, `ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	eventually(t, func() bool { return strings.Join(must(t, s, now), ",") == "3" })
	want(t, s, sameAsQuery, "0")
}

// eventually waits for a condition.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// Backfills stop and go on one by one, all together, by fragment and over a restart.
func TestPauseBackfill(t *testing.T) {
	dir := t.TempDir()
	db, s := filled(t, dir, 3000)
	must(t, s, `PAUSE BACKFILL; SET background_ddl = on; CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n, max(k) AS top FROM t GROUP BY g`)
	const done = `SELECT rows_done FROM rw_catalog.rw_ddl_progress`
	time.Sleep(100 * time.Millisecond)
	want(t, s, done, "0")
	want(t, s, `SELECT waits_for FROM rw_catalog.rw_ddl_progress`, "paused: all backfills are")
	must(t, s, `PAUSE BACKFILL m; RESUME BACKFILL`)
	time.Sleep(50 * time.Millisecond)
	want(t, s, done, "0")
	fragment := must(t, s, `SELECT fragment_id FROM rw_catalog.rw_fragment_backfill_progress`)[0]
	must(t, s, `ALTER FRAGMENT `+fragment+` SET BACKFILL_RATE_LIMIT = 0; RESUME BACKFILL m`)
	time.Sleep(50 * time.Millisecond)
	want(t, s, done, "0")
	want(t, s, `SELECT fragment_id, node_name, rate_limit FROM rw_catalog.rw_rate_limit`, fragment+"|STREAM_SCAN|0")
	must(t, s, `INSERT INTO t VALUES (-1, 5)`) // barriers pass
	must(t, s, `ALTER SYSTEM SET pause_on_next_bootstrap = on`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	must(t, s, `ALTER FRAGMENT `+fragment+` SET BACKFILL_RATE_LIMIT = DEFAULT`)
	time.Sleep(50 * time.Millisecond)
	want(t, s, done, "0")
	must(t, s, `RESUME BACKFILL; WAIT`)
	want(t, s, sameAsQuery, "0")
	wantCode(t, s, `ALTER FRAGMENT 77 SET BACKFILL_RATE_LIMIT = 5`, sqlerr.UndefinedObject)
	wantCode(t, s, `PAUSE BACKFILL nothing`, sqlerr.UndefinedTable)
}

// System parameters are in force at once and after a restart.
func TestSystemParameters(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `ALTER SYSTEM SET locality_sort_buffer_activate_threshold = 7; ALTER SYSTEM SET backfill_barrier_latency_target_ms = 12; SET enable_locality_sort_buffer = off`)
	show := func() string { return strings.Join(must(t, s, `SHOW PARAMETERS`), " ") }
	for _, p := range []string{"locality_sort_buffer_activate_threshold|7|true", "backfill_barrier_latency_target_ms|12|true", "enable_locality_sort_buffer|false|true"} {
		if !strings.Contains(show(), p) {
			t.Errorf("%s: not in %s", p, show())
		}
	}
	want(t, s, `SHOW enable_locality_sort_buffer`, "off")
	wantCode(t, s, `ALTER SYSTEM SET stall_report_secs = -1`, sqlerr.InvalidParameter)
	wantCode(t, s, `ALTER SYSTEM SET nothing = 1`, sqlerr.UndefinedObject)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	if n := db.tuning.SortThreshold.Load(); n != 7 || !db.tuning.SortBuffer.Load() {
		t.Errorf("threshold %d, sort buffer %v", n, db.tuning.SortBuffer.Load())
	}
	must(t, s, `ALTER SYSTEM RESET locality_sort_buffer_activate_threshold`)
	want(t, s, `SHOW locality_sort_buffer_activate_threshold`, "65536")
}

// A row that another session inserts meanwhile, where the statement says what becomes
// of a row that is there already, is no violation: the transaction can be tried again.
func TestUpsertAgainstConcurrentInsert(t *testing.T) {
	db, s := filled(t, t.TempDir(), 3)
	defer db.Close()
	must(t, s, `BEGIN; INSERT INTO t VALUES (9, 1) ON CONFLICT DO NOTHING`)
	must(t, session(t, db), `INSERT INTO t VALUES (9, 2)`)
	wantCode(t, s, `COMMIT`, sqlerr.SerializationFailure)
	must(t, s, `BEGIN; INSERT INTO t VALUES (10, 1)`)
	must(t, session(t, db), `INSERT INTO t VALUES (10, 2)`)
	wantCode(t, s, `COMMIT`, sqlerr.UniqueViolation)
}
