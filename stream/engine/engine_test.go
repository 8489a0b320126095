package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// open opens a database for a test, in memory unless dir is given.
func open(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{Dir: dir, Fatal: func(err error) { t.Errorf("fatal: %v", err) }, Interval: 10 * time.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func session(t *testing.T, db *DB) *Session {
	t.Helper()
	s, err := db.Session(SessionOptions{User: "root", Database: DefaultDatabase})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// query runs statements and returns the rows of the last one as text, sorted.
func query(ctx context.Context, s *Session, text string) ([]string, error) {
	stmts, err := s.Parse(text)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, st := range stmts {
		out = nil
		p, err := s.Prepare(ctx, st, nil)
		if err != nil {
			s.Fail()
			return nil, err
		}
		r, err := s.Execute(ctx, p, nil)
		if err != nil {
			s.Fail()
			return nil, err
		}
		for {
			c, err := r.Next(ctx)
			if err != nil {
				r.Close()
				s.Fail()
				return nil, err
			}
			if c == nil {
				break
			}
			for i := range c.Len() {
				var row []string
				for _, col := range c.Cols {
					if col.Null(i) {
						row = append(row, "NULL")
						continue
					}
					row = append(row, string(types.AppendText(nil, col.Type(), col.Datum(i), s.Style())))
				}
				out = append(out, strings.Join(row, "|"))
			}
		}
		r.Close()
	}
	slices.Sort(out)
	return out, nil
}

func must(t *testing.T, s *Session, text string) []string {
	t.Helper()
	rows, err := query(t.Context(), s, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows
}

func want(t *testing.T, s *Session, text string, rows ...string) {
	t.Helper()
	if got := must(t, s, text); !slices.Equal(got, rows) {
		t.Fatalf("%s\n got %q\nwant %q", text, got, rows)
	}
}

func wantCode(t *testing.T, s *Session, text, code string) {
	t.Helper()
	if _, err := query(t.Context(), s, text); sqlerr.Code(err) != code {
		t.Fatalf("%s: got %v (%s), want %s", text, err, sqlerr.Code(err), code)
	}
}

func TestViewFollowsTable(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, g text, v int);
		INSERT INTO t VALUES (1, 'a', 10), (2, 'a', NULL), (3, NULL, 5);
		CREATE MATERIALIZED VIEW m AS SELECT g, count(*) AS n, sum(v) AS s, min(v) AS lo FROM t GROUP BY g`)
	want(t, s, `SELECT * FROM m`, "NULL|1|5|5", "a|2|10|10")
	must(t, s, `UPDATE t SET g = 'b' WHERE k = 1; DELETE FROM t WHERE k = 3`)
	want(t, s, `SELECT * FROM m`, "a|1|NULL|NULL", "b|1|10|10")
	wantCode(t, s, `INSERT INTO t VALUES (2, 'x', 1)`, sqlerr.UniqueViolation)
	wantCode(t, s, `INSERT INTO t VALUES (7, 'x', 1), (7, 'y', 1)`, sqlerr.UniqueViolation)
	wantCode(t, s, `DROP TABLE t`, sqlerr.DependentObjects)
	must(t, s, `DROP TABLE t CASCADE`)
	wantCode(t, s, `SELECT * FROM m`, sqlerr.UndefinedTable)
}

func TestTransactionBlock(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s, o := session(t, db), session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2);
		CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS s FROM t`)
	must(t, s, `BEGIN; UPDATE t SET v = 10 WHERE k = 1; SAVEPOINT a; DELETE FROM t WHERE k = 2; INSERT INTO t VALUES (3, 3)`)
	want(t, s, `SELECT * FROM t`, "1|10", "3|3")
	want(t, s, `SELECT * FROM m`, "3")
	want(t, o, `SELECT * FROM t`, "1|1", "2|2")
	must(t, s, `ROLLBACK TO a`)
	want(t, s, `SELECT * FROM t`, "1|10", "2|2")
	must(t, s, `COMMIT`)
	want(t, o, `SELECT * FROM m`, "12")

	// The second of two transactions that change one row must be retried.
	must(t, s, `BEGIN; UPDATE t SET v = v + 1 WHERE k = 1`)
	must(t, o, `UPDATE t SET v = v + 5 WHERE k = 1`)
	wantCode(t, s, `COMMIT`, sqlerr.SerializationFailure)
	want(t, s, `SELECT v FROM t WHERE k = 1`, "15")

	// An error makes the block useless until its end.
	must(t, s, `BEGIN`)
	wantCode(t, s, `SELECT nothing`, sqlerr.UndefinedColumn)
	wantCode(t, s, `SELECT 1`, sqlerr.InFailedTransaction)
	must(t, s, `COMMIT`)
	want(t, s, `SELECT 1`, "1")
}

// Increments by many sessions must all count: an UPDATE sees what others have sent.
func TestConcurrentUpdates(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0);
		CREATE MATERIALIZED VIEW m AS SELECT max(v) AS v FROM t`)
	var wg sync.WaitGroup
	const sessions, each = 8, 25
	for range sessions {
		wg.Add(1)
		go func() {
			defer wg.Done()
			o, err := db.Session(SessionOptions{User: "root", Database: DefaultDatabase})
			if err != nil {
				t.Error(err)
				return
			}
			defer o.Close()
			for range each {
				if _, err := query(context.Background(), o, `UPDATE t SET v = v + 1 WHERE k = 1`); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	want(t, s, `SELECT v FROM m`, fmt.Sprint(sessions*each))
}

func TestCancelLeavesNothing(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int);
		INSERT INTO t SELECT g, g FROM generate_series(1, 2000) AS g;
		SET backfill_rate_limit = 1`)
	before := len(db.Catalog().Relations())
	for _, how := range []string{"interrupt", "cancel jobs", "drop"} {
		ctx, stop := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := query(ctx, s, `CREATE MATERIALIZED VIEW m AS SELECT v, count(*) FROM t GROUP BY v`)
			failed <- err
		}()
		o := session(t, db)
		for len(db.building()) == 0 {
			must(t, o, `FLUSH`)
		}
		begin := time.Now()
		switch how {
		case "interrupt":
			stop(errCanceled)
		case "cancel jobs":
			must(t, o, fmt.Sprintf(`CANCEL JOBS %d`, db.building()[0].Rel.ID))
		case "drop":
			must(t, o, `DROP MATERIALIZED VIEW m`)
		}
		if err := <-failed; sqlerr.Code(err) != sqlerr.QueryCanceled {
			t.Fatalf("%s: got %v", how, err)
		}
		stop(nil)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s took %v", how, took)
		}
		if n := len(db.Catalog().Relations()); n != before {
			t.Errorf("%s: %d relations, %d before", how, n, before)
		}
		want(t, o, `SHOW JOBS`)
	}
	// The table is unharmed, and the name is free again.
	must(t, s, `SET backfill_rate_limit = DEFAULT; CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t; INSERT INTO t VALUES (0, 0)`)
	want(t, s, `SELECT n FROM m`, "2001")
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE u (v int, w text);
		INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 1000) AS g;
		INSERT INTO u VALUES (1, 'one'), (2, 'two'), (2, 'zwei');
		CREATE MATERIALIZED VIEW m AS SELECT u.w, count(*) AS n FROM t JOIN u ON t.v = u.v GROUP BY u.w;
		CREATE MATERIALIZED VIEW mm AS SELECT sum(n) AS n FROM m;
		SET background_ddl = on; SET backfill_rate_limit = 100;
		CREATE MATERIALIZED VIEW slow AS SELECT v, count(*) AS n FROM t GROUP BY v`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	defer db.Close()
	s = session(t, db)
	want(t, s, `SELECT * FROM m`, "one|100", "two|100", "zwei|100")
	must(t, s, `INSERT INTO t VALUES (2001, 1); ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	want(t, s, `SELECT n FROM mm`, "301")
	want(t, s, `SELECT n FROM slow WHERE v = 1`, "101")
	want(t, s, `SELECT count(*), sum(n) FROM slow`, "10|1001")
}

// Rate 0 pauses a backfill; raising it lets it go on.
func TestRateLimitPauses(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t SELECT g FROM generate_series(1, 500) AS g;
		SET background_ddl = on; SET backfill_rate_limit = 0;
		CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t`)
	for range 5 {
		must(t, s, `FLUSH`)
	}
	want(t, s, `SELECT rows_done FROM rw_catalog.rw_ddl_progress`, "0")
	must(t, s, `INSERT INTO t VALUES (501); ALTER MATERIALIZED VIEW m SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT`)
	want(t, s, `SELECT n FROM m`, "501")
}

// A row that moves in the order leaves and arrives under one key.
func TestTopNRowMoves(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int, v text); INSERT INTO t VALUES (1, 'b'), (2, 'b'), (3, 'c'), (4, NULL), (5, NULL);
		CREATE MATERIALIZED VIEW m AS SELECT v FROM t ORDER BY v NULLS FIRST LIMIT 3 OFFSET 1`)
	want(t, s, `SELECT * FROM m`, "NULL", "b", "b")
	must(t, s, `UPDATE t SET v = NULL WHERE k IN (1, 2)`)
	want(t, s, `SELECT * FROM m`, "NULL", "NULL", "NULL")
}

// copyIn runs a COPY FROM STDIN, giving it data in pieces of n bytes.
func copyData(t *testing.T, ctx context.Context, s *Session, sql, data string, n int) (string, error) {
	t.Helper()
	stmts, err := s.Parse(sql)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Prepare(ctx, stmts[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Execute(ctx, p, nil)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for len(data) > 0 {
		n := min(n, len(data))
		if err := r.CopyIn.Write(ctx, []byte(data[:n])); err != nil {
			s.Fail()
			return "", err
		}
		data = data[n:]
	}
	tag, err := r.CopyIn.Finish(ctx)
	if err != nil {
		s.Fail()
	}
	return tag, err
}

// copyOut runs a COPY TO STDOUT.
func copyOut(t *testing.T, s *Session, sql string) string {
	t.Helper()
	stmts, err := s.Parse(sql)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Prepare(t.Context(), stmts[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Execute(t.Context(), p, nil)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer r.Close()
	var out strings.Builder
	for {
		b, err := r.CopyOut.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			return out.String()
		}
		out.Write(b)
	}
}

func TestCopyBinary(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	const cols = `k int PRIMARY KEY, a bigint, b text, c numeric(10,2), d double precision, e timestamptz, f bool, g int[], h bytea, i jsonb, j date, k2 uuid, l interval, m smallint, n real, o varchar(5)`
	must(t, s, `CREATE TABLE t (`+cols+`); CREATE TABLE u (`+cols+`);
		INSERT INTO t (k) VALUES (0);
		INSERT INTO t SELECT g, g * 10000000000, 'x' || g, g / 3.0, g / 7.0, '2024-05-05 12:00:00+00', g % 2 = 0, ARRAY[g, NULL, 3], '\x00ff', '{"a": [1, null]}', '2024-01-01', '00000000-0000-0000-0000-00000000000a', '1 mon 2 days 3 us', -g, 1.5, 'abc' FROM generate_series(1, 300) AS g`)
	data := copyOut(t, s, `COPY t TO STDOUT (FORMAT binary)`)
	for _, n := range []int{7, 1 << 20} {
		if tag, err := copyData(t, t.Context(), s, `COPY u FROM STDIN (FORMAT binary)`, data, n); err != nil || tag != "COPY 301" {
			t.Fatalf("%s, %v", tag, err)
		}
		if a, b := copyOut(t, s, `COPY (SELECT * FROM t ORDER BY k) TO STDOUT`), copyOut(t, s, `COPY (SELECT * FROM u ORDER BY k) TO STDOUT`); a != b {
			t.Fatalf("got %.300s\nwant %.300s", b, a)
		}
		want(t, s, `SELECT count(*) FROM u`, "301")
		must(t, s, `DELETE FROM u`)
	}
	for _, bad := range []string{"", data[:5], data[:20], data[:len(data)-9], "x" + data, data + "x"} {
		if _, err := copyData(t, t.Context(), s, `COPY u FROM STDIN (FORMAT binary)`, bad, 64); sqlerr.Code(err) != sqlerr.BadCopy && bad != data[:len(data)-9] {
			t.Errorf("%.20q: got %v", bad, err)
		}
	}
	want(t, s, `SELECT count(*) FROM u`, "0")
	if got := copyOut(t, s, `COPY u TO STDOUT (FORMAT binary)`); got != binaryHeader+"\xff\xff" {
		t.Errorf("empty table: %q", got)
	}
	if got := copyOut(t, s, `COPY u (k, a) TO STDOUT (FORMAT csv, HEADER)`); got != "k,a\n" {
		t.Errorf("empty table: %q", got)
	}
}

// A large COPY that fails or is cancelled leaves nothing, wherever it has come to.
func TestLargeCopyLeavesNothing(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v text); CREATE TABLE u (k int, v text); INSERT INTO t VALUES (-1, 'x'); INSERT INTO u VALUES (-1, 'x');
		CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(k) AS s FROM t; CREATE MATERIALIZED VIEW mu AS SELECT count(*) AS n, sum(k) AS s FROM u`)
	const rows = copyAtomic + 20_000
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "%d\tv\n", i)
	}
	data := b.String()
	untouched := func(what string) {
		t.Helper()
		for _, q := range []string{`SELECT * FROM t`, `SELECT * FROM u`} {
			want(t, s, q, "-1|x")
		}
		want(t, s, `SELECT * FROM m`, "1|-1")
		want(t, s, `SELECT * FROM mu`, "1|-1")
		if t.Failed() {
			t.Fatal(what)
		}
	}
	for _, table := range []string{"t", "u"} {
		if _, err := copyData(t, t.Context(), s, `COPY `+table+` FROM STDIN`, data+"7x\tv\n", 1<<16); sqlerr.Code(err) != "22P02" {
			t.Fatalf("got %v", err)
		}
		untouched("bad last line")
		// Cancelled once rows have been seen.
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for db.Rows(db.Catalog().Any("public", table).ID) <= 1 && ctx.Err() == nil {
				time.Sleep(100 * time.Microsecond)
			}
			cancel(errCanceled)
		}()
		if tag, err := copyData(t, ctx, s, `COPY `+table+` FROM STDIN`, data, 1<<16); err == nil {
			// Too late: everything is there.
			want(t, s, `SELECT count(*) FROM `+table, fmt.Sprint(rows+1))
			must(t, s, `DELETE FROM `+table+` WHERE k >= 0`)
			t.Logf("%s before the cancel", tag)
		} else if sqlerr.Code(err) != sqlerr.QueryCanceled {
			t.Fatalf("got %v", err)
		}
		if rows := must(t, s, `SELECT count(*) FROM `+table); rows[0] != "1" {
			// Cancelled while it waited for the last rows: they were handed over, all of them.
			want(t, s, `SELECT count(*) FROM `+table, fmt.Sprint(copyAtomic+20_000+1))
			must(t, s, `DELETE FROM `+table+` WHERE k >= 0`)
		}
		untouched("cancel")
	}
	if _, err := copyData(t, t.Context(), s, `COPY t FROM STDIN`, data+"-1\tv\n", 1<<16); sqlerr.Code(err) != sqlerr.UniqueViolation {
		t.Fatalf("got %v", err)
	}
	untouched("duplicate in the last line")
	must(t, s, `BEGIN`)
	if _, err := copyData(t, t.Context(), s, `COPY t FROM STDIN`, data, 1<<16); err != nil {
		t.Fatal(err)
	}
	want(t, s, `SELECT count(*) FROM t`, fmt.Sprint(rows+1))
	must(t, s, `ROLLBACK`)
	untouched("rollback")
	if tag, err := copyData(t, t.Context(), s, `COPY t FROM STDIN`, data, 1<<16); err != nil || tag != fmt.Sprint("COPY ", rows) {
		t.Fatalf("%s, %v", tag, err)
	}
	want(t, s, `SELECT n FROM m`, fmt.Sprint(rows+1))
}

// A line end after a backslash is data; the statement's time limit counts for COPY, too.
func TestCopyText(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int, v text)`)
	for _, n := range []int{1, 100} {
		if _, err := copyData(t, t.Context(), s, `COPY t FROM STDIN`, "1\ta\\\nb\n2\tc\\\\\n3\t\\N\n\\.\nrest", n); err != nil {
			t.Fatal(err)
		}
		want(t, s, `SELECT k, length(v), v FROM t`, "1|3|a\nb", "2|2|c\\", "3|NULL|NULL")
		must(t, s, `DELETE FROM t`)
	}
	must(t, s, `SET statement_timeout = 1`)
	stmts, _ := s.Parse(`COPY t FROM STDIN`)
	p, err := s.Prepare(t.Context(), stmts[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Execute(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for begin := time.Now(); err == nil && time.Since(begin) < 10*time.Second; {
		err = r.CopyIn.Write(t.Context(), []byte("1\ta\n"))
	}
	if sqlerr.Code(err) != sqlerr.QueryCanceled {
		t.Fatalf("got %v", err)
	}
}

// A cursor shows what was there when it was declared, whatever its transaction
// does afterwards, and one WITH HOLD outlives it if it commits.
func TestCursorInTransaction(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 5000) AS g`)
	must(t, s, `BEGIN; SAVEPOINT a; UPDATE t SET v = 1 WHERE k % 2 = 0; DELETE FROM t WHERE k = 4999; INSERT INTO t VALUES (6000, 1);
		DECLARE c CURSOR FOR SELECT k, v FROM t ORDER BY k; DECLARE d CURSOR FOR SELECT k, v FROM t`)
	want(t, s, `FETCH 2 FROM c`, "1|0", "2|1")
	must(t, s, `MOVE 1 FROM d`)
	must(t, s, `UPDATE t SET v = 2; DELETE FROM t WHERE k > 10`)
	want(t, s, `SELECT count(*), sum(v) FROM t`, "10|20")
	for _, c := range []string{"c", "d"} {
		got := must(t, s, `FETCH ALL FROM `+c)
		sum := 0
		for _, r := range got {
			if strings.HasSuffix(r, "|1") {
				sum++
			}
		}
		if n := len(got); n != 4998 && n != 4999 || sum != 2501 && sum != 2500 {
			t.Errorf("cursor %s: %d rows, %d of them changed", c, n, sum)
		}
	}
	must(t, s, `ROLLBACK TO a`)
	want(t, s, `SELECT count(*), sum(v) FROM t`, "5000|0")
	must(t, s, `COMMIT`)
	wantCode(t, s, `FETCH 1 FROM c`, sqlerr.UndefinedCursor)
	must(t, s, `BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT k FROM t WHERE k < 3 ORDER BY k; COMMIT; DELETE FROM t`)
	want(t, s, `FETCH 5 FROM h`, "1", "2")
	must(t, s, `CLOSE h; BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT 1; ROLLBACK`)
	wantCode(t, s, `FETCH 1 FROM h`, sqlerr.UndefinedCursor)
}
