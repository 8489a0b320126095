package engine

import (
	"strings"
	"testing"

	"streamdb/sql/sqlerr"
)

// Relations that others read change their names and schemas and swap them; who
// reads them goes on reading the same rows, also after a restart.
func TestRenameWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE SCHEMA other; CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE "U u" (k int PRIMARY KEY, v int);
		INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO "U u" VALUES (1, 10);
		CREATE INDEX ti ON t (v) INCLUDE (k);
		CREATE VIEW v AS SELECT t.k, t.v + 1 AS w /* of t */ FROM t -- from t
		;
		CREATE MATERIALIZED VIEW m1 AS WITH "U u" AS (SELECT k FROM t), x AS (SELECT t.k, public.t.v FROM public . t) SELECT x.k, x.v, "U u".k AS j FROM x JOIN "U u" ON x.k = "U u".k;
		CREATE MATERIALIZED VIEW m2 AS SELECT a.k, "U u".v AS s FROM t a JOIN "U u" ON "U u".k = a.k - a.k + 1 WHERE EXISTS (SELECT 1 FROM v WHERE v.k = a.k);
		CREATE MATERIALIZED VIEW m3 AS SELECT t.v, count(*) AS n FROM t JOIN t AS t2 ON t.k = t2.k GROUP BY t.v;
		CREATE MATERIALIZED VIEW mm WITH (backfill_order = FIXED (m1 -> m3)) AS SELECT m1.k, m3.n FROM m1 JOIN m3 ON m1.v = m3.v;
		CREATE SINK s FROM m1 WITH (connector = 'blackhole')`)
	check := func() {
		t.Helper()
		want(t, s, `SELECT * FROM mm`, "1|1", "2|1")
		for _, v := range []string{"m2", "m3", "mm"} {
			want(t, s, `CHECK MATERIALIZED VIEW `+v)
		}
		want(t, s, `SELECT k, w FROM v`, "1|2", "2|3")
	}
	check()
	must(t, s, `ALTER TABLE t RENAME TO "t new"; ALTER TABLE "U u" SET SCHEMA other; ALTER MATERIALIZED VIEW m1 RENAME TO m1b; ALTER INDEX ti RENAME TO tj; ALTER VIEW v SET SCHEMA other; ALTER VIEW other.v RENAME TO vv; ALTER VIEW other.vv RENAME TO v; ALTER VIEW other.v SET SCHEMA public`)
	check()
	want(t, s, `CHECK MATERIALIZED VIEW m1b`)
	if text := must(t, s, `SHOW CREATE VIEW v`)[0]; !strings.Contains(text, `/* of t */ FROM public."t new" AS t`) {
		t.Error(text)
	}
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (7, 7)`)
	check()
	must(t, s, `ALTER TABLE t SWAP WITH "t new"`)
	check()
	want(t, s, `SELECT * FROM "t new"`, "7|7")
	want(t, s, `SELECT k FROM t WHERE v = 2`, "2")
	wantCode(t, s, `ALTER TABLE t SWAP WITH m1b`, sqlerr.WrongObjectType)
	wantCode(t, s, `ALTER TABLE t SWAP WITH t`, sqlerr.InvalidParameter)
	wantCode(t, s, `ALTER TABLE t SWAP WITH nothing`, sqlerr.UndefinedTable)
	must(t, s, `ALTER MATERIALIZED VIEW m2 SWAP WITH m3`)
	want(t, s, `SELECT * FROM m3`, "1|10", "2|10")
	must(t, s, `ALTER MATERIALIZED VIEW m2 SWAP WITH m3; ALTER TABLE t SET SCHEMA other`)
	check()
	want(t, s, `SELECT schemaname FROM pg_indexes WHERE indexname = 'tj'`, "other")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	check()
	must(t, s, `INSERT INTO other.t VALUES (3, 3)`)
	want(t, s, `SELECT k FROM mm`, "1", "2", "3")
	must(t, s, `DELETE FROM other.t WHERE k = 3`)
	check()
	want(t, s, `SELECT count(*) FROM rw_catalog.rw_job_errors`, "0")
}

// A name that now would mean another relation is made to mean the one it meant.
func TestRenameInFrontOfAnother(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE SCHEMA a; CREATE TABLE a.x (k int PRIMARY KEY); CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO a.x VALUES (2); SET search_path = a, public;
		CREATE MATERIALIZED VIEW m AS SELECT k FROM t; CREATE VIEW v AS SELECT t.k FROM t; ALTER TABLE x RENAME TO t`)
	want(t, s, `SELECT * FROM t`, "2")
	want(t, s, `SELECT * FROM v`, "1")
	want(t, s, `CHECK MATERIALIZED VIEW m`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	must(t, s, `INSERT INTO public.t VALUES (5)`)
	want(t, s, `SELECT * FROM a.m`, "1", "5")
	want(t, s, `SELECT * FROM a.v`, "1", "5")
}
