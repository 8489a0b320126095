package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"streamdb/sql/sqlerr"
)

func TestRename(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int CHECK (v > 0), w text DEFAULT 'x' NOT NULL); INSERT INTO t VALUES (1, 1);
		CREATE TABLE u (a int); INSERT INTO u VALUES (1), (2), (2); CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM u GROUP BY a;
		CREATE VIEW pv AS SELECT a + 1 AS b FROM u; CREATE SCHEMA other; CREATE INDEX i ON u (a)`)
	wantCode(t, s, `ALTER TABLE u RENAME COLUMN a TO b`, sqlerr.DependentObjects)
	wantCode(t, s, `ALTER TABLE t RENAME TO u`, sqlerr.DuplicateTable)
	wantCode(t, s, `ALTER TABLE nothing RENAME TO u`, sqlerr.UndefinedTable)
	must(t, s, `ALTER TABLE IF EXISTS nothing RENAME TO u`)
	wantCode(t, s, `ALTER VIEW t RENAME TO x`, sqlerr.WrongObjectType)
	wantCode(t, s, `ALTER TABLE t RENAME COLUMN v TO x`, sqlerr.NotSupported) // the constraint names it
	wantCode(t, s, `ALTER TABLE t RENAME COLUMN k TO w`, sqlerr.DuplicateColumn)
	wantCode(t, s, `ALTER TABLE t RENAME COLUMN z TO y`, sqlerr.UndefinedColumn)
	wantCode(t, s, `ALTER TABLE t SET SCHEMA pg_catalog`, "42501")
	wantCode(t, s, `ALTER MATERIALIZED VIEW m RENAME COLUMN n TO o`, sqlerr.NotSupported)
	must(t, s, `ALTER TABLE t RENAME COLUMN w TO "W x"; ALTER TABLE t RENAME TO "T 2"; ALTER TABLE "T 2" SET SCHEMA other;
		ALTER MATERIALIZED VIEW m RENAME TO m2; ALTER VIEW pv RENAME COLUMN b TO c; ALTER VIEW pv RENAME TO pv2; ALTER INDEX i RENAME TO i2`)
	check := func() {
		t.Helper()
		wantCode(t, s, `SELECT * FROM t`, sqlerr.UndefinedTable)
		wantCode(t, s, `SELECT * FROM m`, sqlerr.UndefinedTable)
		wantCode(t, s, `INSERT INTO other."T 2" VALUES (5, 0, 'q')`, sqlerr.CheckViolation)
		want(t, s, `SELECT k, "W x" FROM other."T 2"`, "1|x")
		want(t, s, `SELECT * FROM m2`, "1|1", "2|2")
		want(t, s, `SELECT c FROM pv2`, "2", "3", "3")
		want(t, s, `SELECT count(*) FROM u WHERE a = 2`, "2")
		for _, show := range []string{`SHOW CREATE TABLE other."T 2"`, `SHOW CREATE INDEX i2`} {
			text := must(t, s, show)[0]
			if !strings.Contains(text, "T 2") && !strings.Contains(text, "i2 ON u") {
				t.Errorf("%s: %s", show, text)
			}
		}
	}
	check()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	check()
	must(t, s, `INSERT INTO u VALUES (7); INSERT INTO other."T 2" VALUES (2, 2)`)
	want(t, s, `SELECT n FROM m2 WHERE a = 7`, "1")
	want(t, s, `SELECT count(*) FROM other."T 2"`, "2")
	// What SHOW CREATE says makes the same table.
	text := must(t, s, `SHOW CREATE TABLE other."T 2"`)[0]
	must(t, s, `DROP TABLE other."T 2"`)
	must(t, s, text[strings.Index(text, "CREATE TABLE"):])
	wantCode(t, s, `INSERT INTO other."T 2" VALUES (5, 0, 'q')`, sqlerr.CheckViolation)
}

// A view that a job reads keeps its definition: the job's plan was made from it.
func TestReplaceViewThatIsRead(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int); CREATE VIEW v AS SELECT k FROM t; CREATE VIEW vv AS SELECT k FROM v; CREATE MATERIALIZED VIEW m AS SELECT k FROM vv`)
	must(t, s, `CREATE OR REPLACE VIEW v AS SELECT k FROM t`)
	wantCode(t, s, `CREATE OR REPLACE VIEW v AS SELECT k + 1 AS k FROM t`, sqlerr.NotSupported)
	wantCode(t, s, `DROP VIEW vv`, sqlerr.DependentObjects)
	must(t, s, `CREATE SINK s FROM v WITH (connector = 'blackhole')`)
	must(t, s, `DROP MATERIALIZED VIEW m; DROP VIEW vv`)
	wantCode(t, s, `DROP VIEW v`, sqlerr.DependentObjects)
	must(t, s, `DROP SINK s; CREATE OR REPLACE VIEW v AS SELECT k + 1 AS k FROM t`)
}

func TestPauseOnNextBootstrap(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t SELECT g FROM generate_series(1, 100) AS g;
		ALTER SYSTEM SET backfill_paused = on; SET background_ddl = on; CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t`)
	wantCode(t, s, `ALTER SYSTEM SET nothing = 1`, sqlerr.UndefinedObject)
	wantCode(t, s, `ALTER SYSTEM SET backfill_paused = 7`, sqlerr.InvalidParameter)
	must(t, s, `FLUSH; FLUSH; INSERT INTO t VALUES (101)`)
	want(t, s, `SELECT rows_done FROM rw_catalog.rw_ddl_progress`, "0")
	must(t, s, `ALTER SYSTEM SET pause_on_next_bootstrap TO true`)
	for i, paused := range []string{"true", "false"} {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open(t, dir)
		s = session(t, db)
		want(t, s, `SHOW PARAMETERS LIKE '%pause%'`, "backfill_paused|"+paused+"|true", "pause_on_next_bootstrap|false|true")
		if i == 0 {
			must(t, s, `FLUSH; FLUSH`)
			want(t, s, `SELECT rows_done FROM rw_catalog.rw_ddl_progress`, "0")
			must(t, s, `ALTER SYSTEM SET backfill_paused = off; WAIT`)
		}
		want(t, s, `SELECT n FROM m`, "101")
	}
	db.Close()
}

func TestIdleInTransaction(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	ended := make(chan *sqlerr.Error, 1)
	s, err := db.Session(SessionOptions{User: "root", Database: DefaultDatabase, Terminate: func(why *sqlerr.Error) { ended <- why }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must(t, s, `SET idle_in_transaction_session_timeout = '20ms'; SELECT 1`)
	time.Sleep(40 * time.Millisecond)
	must(t, s, `BEGIN; SELECT 1; COMMIT`)
	time.Sleep(40 * time.Millisecond)
	select {
	case why := <-ended:
		t.Fatalf("ended outside a transaction: %v", why)
	default:
	}
	must(t, s, `BEGIN`)
	select {
	case why := <-ended:
		if why.Code != "25P03" {
			t.Fatalf("got %v", why)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("not ended")
	}
}

func TestSettingsInTransactions(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	told := map[string]string{}
	s, err := db.Session(SessionOptions{User: "root", Database: DefaultDatabase, Changed: func(name, v string) { told[name] = v }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	zone := func(want string) {
		t.Helper()
		if got := must(t, s, `SHOW timezone`)[0]; got != want || told["TimeZone"] != want {
			t.Fatalf("time zone %s, told %s, want %s", got, told["TimeZone"], want)
		}
	}
	must(t, s, `SET timezone = 'Asia/Tokyo'`)
	zone("Asia/Tokyo")
	must(t, s, `BEGIN; SET timezone = 'UTC'; SAVEPOINT a; SET LOCAL timezone = 'Europe/Paris'`)
	zone("Europe/Paris")
	must(t, s, `ROLLBACK TO a`)
	zone("UTC")
	must(t, s, `COMMIT`)
	zone("UTC")
	must(t, s, `BEGIN; SET LOCAL timezone = 'Europe/Paris'; COMMIT`)
	zone("UTC")
	must(t, s, `BEGIN; SET LOCAL timezone = 'Europe/Paris'; SET timezone = 'Asia/Tokyo'; COMMIT`)
	zone("Asia/Tokyo")
	must(t, s, `BEGIN; SET timezone = 'Europe/Paris'; ROLLBACK`)
	zone("Asia/Tokyo")
	must(t, s, `DISCARD ALL`)
	zone("UTC")
}

// A transaction over two tables of which one has gone changes neither.
func TestTransactionOverDroppedTable(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s, o := session(t, db), session(t, db)
	must(t, s, `CREATE TABLE a (k int PRIMARY KEY); CREATE TABLE b (k int PRIMARY KEY)`)
	must(t, s, `BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)`)
	must(t, o, `DROP TABLE b`)
	wantCode(t, s, `COMMIT`, sqlerr.UndefinedTable)
	want(t, s, `SELECT * FROM a`)
}

func TestExplainFormats(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int PRIMARY KEY)`)
	for _, c := range [][2]string{
		{`EXPLAIN (FORMAT JSON) SELECT * FROM a`, "{"},
		{`EXPLAIN (FORMAT DOT) SELECT * FROM a`, "digraph"},
		{`EXPLAIN (FORMAT JSON) CREATE MATERIALIZED VIEW m AS SELECT v, count(*) FROM a GROUP BY v`, "{"},
		{`EXPLAIN (DISTSQL, FORMAT JSON) CREATE MATERIALIZED VIEW m AS SELECT v, count(*) FROM a GROUP BY v`, "{"},
		{`EXPLAIN (FORMAT DOT) CREATE MATERIALIZED VIEW m AS SELECT v, count(*) FROM a GROUP BY v`, "digraph"},
		{`EXPLAIN (BACKFILL) CREATE MATERIALIZED VIEW m WITH (backfill_order = FIXED(b -> a)) AS SELECT a.v FROM a JOIN b ON a.k = b.k`, `  "public.b" -> "public.a";`},
	} {
		rows := must(t, s, c[0])
		if !strings.Contains(strings.Join(rows, "\n"), c[1]) {
			t.Errorf("%s: %q", c[0], rows)
		}
	}
	wantCode(t, s, `EXPLAIN (FORMAT YAML) SELECT 1`, sqlerr.NotSupported)
	wantCode(t, s, `EXPLAIN (BACKFILL) SELECT 1`, sqlerr.NotSupported)
	wantCode(t, s, `RECOVER`, sqlerr.NotSupported)
}

// CREATE TABLE AS that fails leaves no table.
func TestCreateTableAsFails(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	wantCode(t, s, `CREATE TABLE t AS SELECT 1 / (g - 3) AS x FROM generate_series(1, 5) AS g`, "22012")
	want(t, s, `SHOW TABLES`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := query(ctx, s, `CREATE TABLE t AS SELECT 1 AS x`); err == nil {
		t.Fatal("no error")
	}
	want(t, s, `SHOW TABLES`)
	must(t, s, `CREATE TABLE t AS SELECT 1 AS x`)
}
