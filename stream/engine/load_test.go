package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"streamdb/sql/sqlerr"
)

// loadQueries are views that are made while their inputs change.
var loadQueries = []string{
	"SELECT id, v * 2 AS v2, note FROM acct WHERE v % 10 <> 3",
	"SELECT w, v % 10 AS k, count(*) AS n, max(note) AS m, count(DISTINCT v) AS d FROM acct WHERE v > 8 GROUP BY w, v % 10",
	"SELECT a.id, l.seq, a.note, l.what FROM acct a LEFT JOIN log l ON l.id = a.id AND l.seq % 10 > 2",
	"SELECT b.w, b.n, c.n + 1 AS logged FROM by_writer b JOIN last_log c ON c.w = b.w",
	"SELECT id, v FROM acct ORDER BY v DESC, id LIMIT 14",
	"SELECT DISTINCT v % 13 AS x, w FROM acct",
}

// Views that are made while others write equal their queries at every epoch.
func TestViewsMadeUnderLoad(t *testing.T) {
	db := open(t, t.TempDir())
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE acct (id bigint PRIMARY KEY, w int, v bigint, note text); CREATE TABLE log (w int, seq bigint, id bigint, what text);
		CREATE MATERIALIZED VIEW by_writer AS SELECT w, count(*) AS n, sum(v) AS s FROM acct GROUP BY w;
		CREATE MATERIALIZED VIEW last_log AS SELECT w, count(*) AS n, max(seq) AS last FROM log GROUP BY w`)
	const writers = 3
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range writers {
		o := session(t, db)
		r := rand.New(rand.NewPCG(1, uint64(w)))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for next := 0; ; next += 10 {
				select {
				case <-stop:
					return
				default:
				}
				var sql string
				switch lo := w*1_000_000 + r.IntN(next+1); r.IntN(6) {
				case 0, 1:
					for i := range 10 {
						sql += fmt.Sprintf(", (%d, %d, %d, 'n%d')", w*1_000_000+next+i, w, r.IntN(1000), r.IntN(1000))
					}
					sql = "INSERT INTO acct VALUES " + sql[2:]
				case 2:
					sql = fmt.Sprintf("UPDATE acct SET note = note || 'u' WHERE w = %d AND id >= %d", w, lo)
				case 3:
					sql = fmt.Sprintf("DELETE FROM acct WHERE w = %d AND id <= %d", w, lo)
				case 4:
					sql = fmt.Sprintf("UPDATE acct SET v = v + 1 WHERE w = %d AND id <= %d", w, lo)
				default:
					sql = fmt.Sprintf("BEGIN; DELETE FROM acct WHERE id = %d; INSERT INTO log VALUES (%d, %d, %d, 'moved'); COMMIT", lo, w, next, lo)
				}
				if _, err := query(context.Background(), o, sql); err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
		}()
	}
	defer close(stop)
	r := rand.New(rand.NewPCG(1, 100))
	for i, end := 0, time.Now().Add(loadTime); time.Now().Before(end); i++ {
		q := loadQueries[r.IntN(len(loadQueries))]
		must(t, s, fmt.Sprintf("SET streaming_parallelism = %d; SET locality_backfill_mode = %s", 1+3*r.IntN(2), []string{"off", "always", "auto"}[r.IntN(3)]))
		must(t, s, fmt.Sprintf("CREATE MATERIALIZED VIEW m%d AS %s", i, q))
		for range 3 {
			// One SELECT reads one epoch.
			if rows := must(t, s, fmt.Sprintf("SELECT 'gone', * FROM (%[1]s EXCEPT ALL SELECT * FROM m%[2]d) AS a UNION ALL SELECT 'more', * FROM (SELECT * FROM m%[2]d EXCEPT ALL %[1]s) AS b",
				"SELECT * FROM ("+q+") AS q", i)); len(rows) > 0 {
				t.Fatalf("view %d %s (%s, parallelism %s) differs: %q", i, q, s.set.get("locality_backfill_mode"), s.set.get("streaming_parallelism"), rows)
			}
		}
		if i%4 == 3 {
			for j := i - 3; j <= i; j++ {
				must(t, s, fmt.Sprintf("DROP MATERIALIZED VIEW m%d", j))
			}
		}
	}
}

const loadTime = 2 * time.Second

// Transfers between accounts by many sessions, in transactions and by single
// statements, keep the total, in the table and in views, at every epoch.
func TestTransfers(t *testing.T) {
	db := open(t, "")
	defer db.Close()
	s := session(t, db)
	const accounts, sessions = 10, 4
	must(t, s, fmt.Sprintf(`CREATE TABLE a (k int PRIMARY KEY, v bigint); CREATE TABLE b (k int PRIMARY KEY, v bigint); CREATE TABLE moves (who int, n int);
		INSERT INTO a SELECT g, 100 FROM generate_series(1, %[1]d) AS g; INSERT INTO b SELECT g, 100 FROM generate_series(1, %[1]d) AS g;
		CREATE MATERIALIZED VIEW sa AS SELECT sum(v) AS v FROM a; CREATE MATERIALIZED VIEW sb AS SELECT sum(v) AS v FROM b;
		CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS v FROM (SELECT v FROM a UNION ALL SELECT v FROM b) AS u;
		CREATE MATERIALIZED VIEW per AS SELECT who, count(*) AS n FROM moves GROUP BY who`, accounts))
	var wg sync.WaitGroup
	var acked, retried [sessions]int
	end := time.Now().Add(loadTime / 2)
	for w := range sessions {
		o := session(t, db)
		r := rand.New(rand.NewPCG(7, uint64(w)))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Now().Before(end) {
				from, to := []string{"a", "b"}[r.IntN(2)], []string{"a", "b"}[r.IntN(2)]
				k, l := 1+r.IntN(accounts), 1+r.IntN(accounts)
				sql := fmt.Sprintf(`BEGIN; UPDATE %s SET v = v - 1 WHERE k = %d; SAVEPOINT x; UPDATE %s SET v = v + 50 WHERE k = %d; ROLLBACK TO x;
					UPDATE %s SET v = v + 1 WHERE k = %d; INSERT INTO moves VALUES (%d, 1); COMMIT`, from, k, to, l, to, l, w)
				if r.IntN(3) == 0 {
					sql = fmt.Sprintf(`UPDATE %[1]s SET v = v + CASE WHEN k = %[2]d THEN 1 ELSE -1 END WHERE k IN (%[2]d, %[3]d)`, from, k, k%accounts+1)
				}
				_, err := query(context.Background(), o, sql)
				switch {
				case err == nil:
					if sql[0] == 'B' {
						acked[w]++
					}
				case sqlerr.Code(err) == sqlerr.SerializationFailure:
					retried[w]++
					if o.Status() != 'I' {
						t.Errorf("status %c after a failed COMMIT", o.Status())
					}
				default:
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
		}()
	}
	for time.Now().Before(end) {
		want(t, s, `SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b), (SELECT v FROM sa) + (SELECT v FROM sb), (SELECT v FROM total)`, "2000|2000|2000")
	}
	wg.Wait()
	for w, n := range acked {
		want(t, s, fmt.Sprintf(`SELECT n FROM per WHERE who = %d`, w), fmt.Sprint(n))
	}
	t.Logf("%v transfers, %v retries", acked, retried)
}
