package engine

import (
	"slices"
	"testing"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
)

func TestCheckMaterializedView(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE SCHEMA x; SET search_path = x, public; CREATE TABLE t (k int PRIMARY KEY, g text, j json);
		INSERT INTO t VALUES (1, 'a', '{"a": 1}'), (2, 'a', NULL), (3, NULL, '[1]'), (4, 'b', 'null');
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n FROM t GROUP BY g -- a comment
		; CREATE MATERIALIZED VIEW l AS SELECT g, j FROM t; CREATE INDEX li ON l (g); SET search_path = public`)
	for _, v := range []string{"m", "l"} {
		want(t, s, `CHECK MATERIALIZED VIEW x.`+v)
	}
	must(t, s, `DELETE FROM x.t WHERE k = 2`)
	want(t, s, `CHECK MATERIALIZED VIEW x.m`)
	wantCode(t, s, `CHECK MATERIALIZED VIEW x.t`, sqlerr.WrongObjectType)
	wantCode(t, s, `CHECK MATERIALIZED VIEW m`, sqlerr.UndefinedTable)

	// A view that is wrong: a row too many and one too few.
	v := db.Catalog().Any("x", "m")
	other := *v
	other.Definition = "SELECT g, count(*) AS n FROM t WHERE g <> 'b' GROUP BY g UNION ALL SELECT 'c', 7"
	db.cat.Store(db.Catalog().With([]*catalog.Relation{&other}, nil))
	want(t, s, `CHECK MATERIALIZED VIEW x.m`, "+|c|7", "-|NULL|1", "-|b|1")
}

// A statement of another session ends, or the session.
func TestCancelBackend(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	ended := make(chan *sqlerr.Error, 1)
	o, err := db.Session(SessionOptions{User: "root", Database: DefaultDatabase, Terminate: func(why *sqlerr.Error) { ended <- why }})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for _, c := range []struct{ call, code string }{{"pg_cancel_backend", sqlerr.QueryCanceled}, {"pg_terminate_backend", "57P01"}} {
		got := make(chan error, 1)
		go func() {
			_, err := query(t.Context(), o, `SELECT pg_sleep(60)`)
			got <- err
		}()
		for len(must(t, s, `SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`)) == 0 {
			time.Sleep(time.Millisecond)
		}
		want(t, s, `SELECT `+c.call+`(pid) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()`, "t")
		if err := <-got; sqlerr.Code(err) != c.code {
			t.Fatalf("%s: got %v", c.call, err)
		}
	}
	if why := <-ended; why.Code != "57P01" {
		t.Fatalf("got %v", why)
	}
	want(t, s, `SELECT pg_cancel_backend(12345)`, "f")
}

// What an index that is being built offers to a view is not a part of the view's plan, also later.
func TestViewPlannedBesideBuildingIndex(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE w (k int PRIMARY KEY, q int); INSERT INTO t VALUES (1), (2), (3); INSERT INTO w VALUES (1, 2);
		SET background_ddl = on; SET backfill_rate_limit = 0; CREATE INDEX i ON w (q); SET locality_backfill_mode = always; SET backfill_rate_limit = default;
		CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.q = t.k); ALTER INDEX i SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	want(t, s, `SELECT * FROM m`, "1", "3")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	want(t, s, `SELECT * FROM m`, "1", "3")
	must(t, s, `INSERT INTO w VALUES (2, 3)`)
	want(t, s, `SELECT * FROM m`, "1")
}

// A transaction block sees what its session wrote before, also when that was not waited for.
func TestBlockAfterUnflushedWrite(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int)`)
	for i := range 20 {
		must(t, s, `SET implicit_flush = off; DELETE FROM t; INSERT INTO t VALUES (1, 1), (2, 1)`)
		must(t, s, `BEGIN; INSERT INTO t VALUES (1, 7), (3, 7) ON CONFLICT DO NOTHING; COMMIT; SET implicit_flush = on`)
		if got := must(t, s, `SELECT k, v FROM t`); !slices.Equal(got, []string{"1|1", "2|1", "3|7"}) {
			t.Fatalf("round %d: %q", i, got)
		}
	}
}
