package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// breakTable makes a table's job fail: it is given a row that lacks a column.
func breakTable(t *testing.T, db *DB, name string) error {
	t.Helper()
	rel := db.Catalog().Any("public", name)
	row := chunk.New(types.Int4, 1)
	row.Append(types.NewInt(-99))
	e, err := db.commitChanges([]*changeSet{{rel: rel, ins: []*chunk.Chunk{chunk.Make(row)}}}, []*tableWriter{db.writer(rel)})
	if err != nil {
		t.Fatal(err)
	}
	return db.waitEpoch(t.Context(), e, rel)
}

// A job that fails stops, says so, and takes those that read it along; others go
// on. What was written meanwhile is not acknowledged, and a restart does not start
// it again.
func TestFailedJobStaysFailed(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE u (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (1, 1);
		CREATE MATERIALIZED VIEW good AS SELECT count(*) AS n FROM u;
		CREATE MATERIALIZED VIEW m AS SELECT t.k, u.v FROM t JOIN u ON t.k = u.k; CREATE MATERIALIZED VIEW mm AS SELECT count(v) AS n FROM m; CREATE INDEX mi ON m (v)`)
	want(t, s, `SELECT * FROM mm`, "1")
	if err := breakTable(t, db, "t"); sqlerr.Code(err) != sqlerr.NotPrepared {
		t.Fatalf("got %v", err)
	}
	for db.Catalog().Any("public", "mm").Failed == "" {
		must(t, s, `FLUSH`)
	}
	check := func() {
		t.Helper()
		for _, r := range []string{"t", "m", "mm"} {
			wantCode(t, s, `SELECT * FROM `+r, sqlerr.NotPrepared)
		}
		wantCode(t, s, `INSERT INTO t VALUES (5, 5)`, sqlerr.NotPrepared)
		if _, err := query(t.Context(), s, `CREATE MATERIALIZED VIEW over AS SELECT count(*) FROM m`); err == nil {
			t.Fatal("created a view over one that has stopped")
		}
		want(t, s, `SHOW JOBS`)
		want(t, s, `SELECT count(*) FROM rw_catalog.rw_job_errors`, "4")
		must(t, s, `INSERT INTO u VALUES (2, 2); UPDATE u SET v = v + 1 WHERE k = 2`)
		want(t, s, `SELECT * FROM good`, "2")
		must(t, s, `DELETE FROM u WHERE k = 2`)
	}
	check()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	check()
	must(t, s, `DROP TABLE t CASCADE; CREATE TABLE t (k int); CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t JOIN u ON t.k = u.k; INSERT INTO t VALUES (1)`)
	want(t, s, `SELECT * FROM m`, "1")
	want(t, s, `SELECT count(*) FROM rw_catalog.rw_job_errors`, "0")
}

// A view over a job that stops while the view is being created leaves nothing.
func TestFailsWhileItIsCreated(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT g, g FROM generate_series(1, 1000) AS g; SET backfill_rate_limit = 1`)
	failed := make(chan error, 1)
	go func() {
		_, err := query(t.Context(), s, `CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v`)
		failed <- err
	}()
	o := session(t, db)
	for len(db.building()) == 0 {
		must(t, o, `FLUSH`)
	}
	breakTable(t, db, "t")
	if err := <-failed; err == nil {
		t.Fatal("no error")
	}
	want(t, o, `SHOW MATERIALIZED VIEWS`)
	want(t, o, `SHOW JOBS`)
	must(t, o, `DROP TABLE t; CREATE TABLE t (k int); CREATE MATERIALIZED VIEW m AS SELECT * FROM t`)
}

// Views come, are cancelled and go while others write, and the database
// closes in the middle of it: nothing hangs, and what stays is right.
func TestChurn(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		db := open(t, dir)
		s := session(t, db)
		if round == 0 {
			must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE u (k int, v int); INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 500) AS g;
				CREATE MATERIALIZED VIEW stays AS SELECT v, count(*) AS n FROM t GROUP BY v`)
		}
		want(t, s, `SELECT * FROM (SELECT v, count(*) AS n FROM t GROUP BY v EXCEPT SELECT * FROM stays) AS d`)
		must(t, s, `DELETE FROM u`)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		running := func() bool {
			select {
			case <-stop:
				return false
			default:
				return true
			}
		}
		for w := range 4 {
			o := session(t, db)
			r := rand.New(rand.NewPCG(uint64(round), uint64(w)))
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; running(); i++ {
					ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, fmt.Errorf("it hangs"))
					sql := fmt.Sprintf(`INSERT INTO t VALUES (%d, %d) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v`, r.IntN(1000), r.IntN(10))
					switch {
					case w == 1:
						sql = fmt.Sprintf(`INSERT INTO u VALUES (%d, 1)`, i)
					case w == 2:
						from := "t"
						if i > 0 && r.IntN(2) == 0 {
							from = fmt.Sprintf("x%d_%d", round, i-1)
						}
						sql = fmt.Sprintf(`CREATE MATERIALIZED VIEW x%d_%d AS SELECT %s FROM %s`, round, i, []string{"k, v, 0 AS s", "v, count(*) AS n"}[r.IntN(2)], from)
						if r.IntN(2) == 0 {
							c, stop := context.WithCancelCause(ctx)
							time.AfterFunc(time.Duration(r.IntN(8))*time.Millisecond, func() { stop(errCanceled) })
							ctx = c
						}
					case w == 3:
						sql = fmt.Sprintf(`DROP MATERIALIZED VIEW IF EXISTS x%d_%d CASCADE`, round, r.IntN(50))
					}
					_, err := query(ctx, o, sql)
					if ctx.Err() != nil && context.Cause(ctx).Error() == "it hangs" {
						t.Errorf("%s: %v", sql, err)
					} else if err != nil && w < 2 && running() {
						t.Errorf("%s: %v", sql, err)
					}
					cancel()
				}
			}()
		}
		time.Sleep(700 * time.Millisecond)
		if round < 2 {
			close(stop)
			closed := make(chan error, 1)
			go func() { closed <- db.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("Close hangs")
			}
			wg.Wait()
			continue
		}
		close(stop)
		wg.Wait()
		want(t, s, `SELECT * FROM (SELECT v, count(*) AS n FROM t GROUP BY v EXCEPT SELECT * FROM stays) AS d`)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A view whose rows explode is cancelled within a second, whatever its actors are at.
func TestCancelExplosion(t *testing.T) {
	for _, q := range []string{
		`SELECT a.k, b.k AS k2 FROM t AS a JOIN t AS b ON a.g = b.g`,
		`SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.g = b.g`,
		`SELECT a.k, max(b.k) AS m FROM t AS a JOIN t AS b ON a.g = b.g GROUP BY a.k`,
	} {
		db := open(t, "")
		s := session(t, db)
		must(t, s, `CREATE TABLE t (k int PRIMARY KEY, g int); INSERT INTO t SELECT k, 1 FROM generate_series(1, 8000) AS k`)
		ctx, stop := context.WithCancelCause(t.Context())
		var begin time.Time
		time.AfterFunc(300*time.Millisecond, func() { begin = time.Now(); stop(errCanceled) })
		_, err := query(ctx, s, `CREATE MATERIALIZED VIEW m AS `+q)
		took := time.Since(begin)
		if sqlerr.Code(err) != sqlerr.QueryCanceled {
			t.Errorf("%s: got %v", q, err)
		} else if took > time.Second {
			t.Errorf("%s: took %v", q, took)
		}
		t.Logf("%s: %v", q, took)
		begin = time.Now()
		must(t, s, `INSERT INTO t VALUES (0, 0)`)
		want(t, s, `SHOW JOBS`)
		t.Logf("insert: %v", time.Since(begin))
		db.Close()
	}
}
