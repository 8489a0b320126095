package engine

import (
	"strings"
	"testing"

	"streamdb/planner"
)

// Samples tell a column of few values from one of as many as there are rows, also
// where values go with the key.
func TestDistinct(t *testing.T) {
	db := open(t, t.TempDir())
	defer db.Close()
	s := session(t, db)
	must(t, s, `CREATE TABLE t (k int PRIMARY KEY, few int, tens int, half int, own text);
		INSERT INTO t SELECT i, i % 97, i / 10, CASE WHEN i % 2 = 0 THEN 0 ELSE i END, 'x' || i FROM generate_series(1, 60000) AS g(i);
		CREATE TABLE small (a int); INSERT INTO small SELECT i % 13 FROM generate_series(1, 500) AS g(i)`)
	for _, c := range []struct {
		table    string
		cols     []int
		from, to int64
	}{
		{"t", []int{1}, 97, 110}, {"t", []int{2}, 3000, 12000}, {"t", []int{3}, 20000, 60000}, {"t", []int{4}, 60000, 60000},
		{"t", []int{1, 2}, 30000, 60000}, {"small", []int{0}, 13, 13},
	} {
		rel := db.Catalog().Any("public", c.table)
		if n, ok := db.sampleDistinct(rel.ID, c.cols); !ok || n < c.from || n > c.to {
			t.Errorf("%s %v: %d different values (%v), want %d to %d", c.table, c.cols, n, ok, c.from, c.to)
		}
	}
	if _, ok := any(db).(planner.DistinctStats); ok {
		t.Error("plans of queries take samples")
	}
	// What was estimated is kept with the plan, and a restart needs no sample.
	must(t, s, `CREATE MATERIALIZED VIEW m AS SELECT own, count(*) AS n FROM t GROUP BY own; CREATE MATERIALIZED VIEW f AS SELECT few, count(*) AS n FROM t GROUP BY few`)
	explain := func(v string) string { return strings.Join(must(t, s, `EXPLAIN (VERBOSE) MATERIALIZED VIEW `+v), "\n") }
	if p := explain("m"); !strings.Contains(p, "LocalityProvider") {
		t.Errorf("60,000 groups: %s", p)
	}
	if p := explain("f"); strings.Contains(p, "LocalityProvider") || !strings.Contains(p, "97 groups") {
		t.Errorf("97 groups: %s", p)
	}
	if n := len(db.Catalog().Any("public", "m").Plan.Stats[0].Distinct); n != 1 {
		t.Errorf("%d estimates are kept", n)
	}
}
