package exec_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/batch"
	"streamdb/stream/exec"
	"streamdb/stream/job"
)

// A database is the planner, the job manager and the executors over a store in
// memory, without sessions: views are made of SQL text, rows come from the test.
type database struct {
	crashing atomic.Bool
	t        testing.TB
	disk     *storage.MemDisk
	store    *storage.Store
	jobs     *job.Manager
	cat      *catalog.Snapshot
	next     catalog.ID
	restored []job.Spec
	queries  map[string]string
	settings planner.Settings
	chunk    int
	tuning   *stream.Tuning
	budget   int64
	dir      string
	rnd      *rand.Rand
	tables   map[string]*table
}

// A table is what the test knows of its rows; the last is visible columns only.
type table struct {
	rel  *catalog.Relation
	rows []types.Row // all columns; of tables without a key the row id is found when read back
}

func openDatabase(t testing.TB, seed uint64) *database {
	db := &database{t: t, disk: storage.NewMemDisk(), cat: catalog.NewSnapshot([]string{"public", "pg_catalog"}, nil), next: catalog.FirstUserID,
		queries: map[string]string{}, rnd: rand.New(rand.NewPCG(seed, 8)), tables: map[string]*table{}, chunk: 64}
	db.open()
	t.Cleanup(func() { db.jobs.Close(); db.store.Close() })
	return db
}

func (db *database) open() {
	s, err := storage.Open(db.storage())
	if err != nil {
		db.t.Fatal(err)
	}
	db.store = s
	db.jobs = job.NewManager(job.Options{Store: s, Clock: systemClock{}, Logger: slog.New(slog.DiscardHandler), Metrics: job.NewMetrics(nil), Exec: exec.NewMetrics(nil),
		Cache: exec.NewBudget(db.budget), Tuning: db.tuning, Interval: 5 * time.Millisecond, ChunkSize: db.chunk,
		ExprCtx: func(*catalog.Relation) *expr.Ctx { return &expr.Ctx{} },
		Fatal: func(err error) {
			if !db.crashing.Load() { // a commit that the power loss cut off
				db.t.Error(err)
			}
		},
		Failed: func(ids []catalog.ID, err error) { db.t.Errorf("job %v: %v", ids, err) },
	})
}

// storage is where the rows are: in memory, or in dir.
func (db *database) storage() storage.Options {
	if db.dir != "" {
		return storage.Options{Dir: db.dir}
	}
	return storage.Options{Disk: db.disk}
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// stats are the store's row counts, as the planner asks for them.
type stats struct{ s *storage.Store }

func (s stats) Rows(id catalog.ID) int64  { return s.s.Rows(uint32(id)) }
func (s stats) Bytes(id catalog.ID) int64 { return s.s.Bytes(uint32(id)) }

func (db *database) options() bind.Options {
	return bind.Options{Cat: db.cat, SearchPath: []string{"public"}}
}

func (db *database) id() catalog.ID { db.next++; return db.next }

func (db *database) create(rel *catalog.Relation, g *plan.Graph, n int) {
	db.t.Helper()
	for _, t := range g.Tables() {
		t.ID = db.id()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	spec := job.Spec{Rel: rel, Graph: g, Parallelism: n}
	j, err := db.jobs.Start(ctx, spec, nil)
	if err != nil {
		db.t.Fatalf("create %s: %v", rel.Name, err)
	}
	db.restored = append(db.restored, spec)
	db.cat = db.cat.With([]*catalog.Relation{rel}, nil)
	if db.rnd.IntN(2) == 0 {
		db.built(j)
	}
}

func (db *database) built(j *job.Job) {
	db.t.Helper()
	select {
	case <-j.Built():
	case <-time.After(20 * time.Second):
		db.t.Fatalf("%s is not built: %+v", j.Rel.Name, db.jobs.Report(j))
	}
	if err := j.Err(); err != nil {
		db.t.Fatalf("%s: %v", j.Rel.Name, err)
	}
}

func (db *database) parallelism() int { return 1 + db.rnd.IntN(3) }

func (db *database) table(sql string) {
	db.t.Helper()
	stmt, err := parser.ParseOne(sql)
	if err != nil {
		db.t.Fatal(err)
	}
	rel, err := bind.CreateTable(stmt, db.options())
	if err != nil {
		db.t.Fatal(err)
	}
	rel.ID = db.id()
	g, err := planner.PlanTable(rel)
	if err != nil {
		db.t.Fatal(err)
	}
	db.create(rel, g, db.parallelism())
	db.tables[rel.Name] = &table{rel: rel}
}

func (db *database) view(name, query string) {
	db.t.Helper()
	stmt, err := parser.ParseOne("CREATE MATERIALIZED VIEW " + name + " AS " + query)
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	rel, q, err := bind.View(stmt, db.options())
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	rel.ID = db.id()
	g, rel, err := planner.PlanView(q, rel, db.cat, db.settings, stats{db.store})
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	db.queries[name] = query
	db.create(rel, g, db.parallelism())
}

// read runs a query at a snapshot.
func (db *database) read(snap *storage.Snapshot, query string) []string {
	db.t.Helper()
	stmt, err := parser.ParseOne(query)
	if err != nil {
		db.t.Fatal(err)
	}
	st, _, err := bind.Bind(stmt, db.options())
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	q, err := planner.PlanBatch(st.(*plan.Query), db.cat, planner.Settings{}, stats{db.store})
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	it, err := batch.Run(q.Root, &batch.Env{Snap: snap, Ctx: &expr.Ctx{}, Desc: exec.RelationDesc})
	if err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
	defer it.Close()
	var out []string
	for {
		c, err := it.Next(context.Background())
		if err != nil {
			db.t.Fatalf("%s: %v", query, err)
		}
		if c == nil {
			break
		}
		for i := range c.Len() {
			var b strings.Builder
			for j, col := range c.Cols[:len(q.Names)] {
				if j > 0 {
					b.WriteByte('|')
				}
				if d := col.Datum(i); d.IsNull() {
					b.WriteString("NULL")
				} else if s := string(types.AppendText(nil, col.Type(), d, nil)); col.Type().Kind() == types.KindDecimal && strings.Contains(s, ".") {
					b.WriteString(strings.TrimRight(strings.TrimRight(s, "0"), ".")) // which of 1.0 and 1.00 max gives is open
				} else {
					b.WriteString(s)
				}
			}
			out = append(out, b.String())
		}
	}
	sort.Strings(out)
	return out
}

// check compares every view with its query, at one epoch.
func (db *database) check(what string) {
	db.t.Helper()
	snap, err := db.store.Latest()
	if err != nil {
		db.t.Fatal(err)
	}
	defer snap.Close()
	names := make([]string, 0, len(db.queries))
	for n := range db.queries {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		j := db.jobs.Job(db.cat.Relation("public", n).ID)
		select {
		case <-j.Built():
		default:
			continue
		}
		if err := j.Err(); err != nil {
			db.t.Fatalf("%s: %s: %v", what, n, err)
		}
		// It may have been built after the snapshot was taken.
		got := db.read(snap, "SELECT * FROM "+n)
		want := db.read(snap, db.queries[n])
		if !slices.Equal(got, want) {
			again, _ := db.store.Latest()
			got, want = db.read(again, "SELECT * FROM "+n), db.read(again, db.queries[n])
			again.Close()
			if !slices.Equal(got, want) {
				db.t.Fatalf("%s: view %s: %s\n--- got\n%s\n--- want\n%s", what, n, db.queries[n], strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// write hands changes of a table to its actors, and waits until they are committed.
func (db *database) write(changes map[string]*chunk.Chunk) {
	db.t.Helper()
	names := make([]string, 0, len(changes))
	for n := range changes {
		names = append(names, n)
	}
	sort.Strings(names)
	e, err := db.jobs.Coordinator().Write(true, func(storage.Epoch) error {
		for _, n := range names {
			rel := db.tables[n].rel
			ports, owner, err := db.jobs.Ports(rel.ID)
			if err != nil {
				return err
			}
			id := slices.IndexFunc(rel.Columns, func(c catalog.Column) bool { return c.Hidden })
			if err := exec.NewDMLSource(ports, owner, rel.Dist, id).Write(changes[n]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = db.jobs.Coordinator().Wait(ctx, e)
	}
	if err != nil {
		stalled, _, actors := db.jobs.Coordinator().Stalled()
		db.t.Fatalf("write: %v (epoch %d waits for %v)", err, stalled, actors)
	}
}

// randomRow makes a row of a table; unique says that column 0 must be new.
func (db *database) randomRow(t *table) types.Row {
	row := make(types.Row, len(t.rel.Columns))
	for i, c := range t.rel.Columns {
		if c.Hidden || !c.NotNull && db.rnd.IntN(7) == 0 {
			continue
		}
		switch c.Type.OID {
		case types.OIDInt4, types.OIDInt8:
			n := int64(8)
			if c.NotNull {
				n = 60
			}
			row[i] = types.NewInt(db.rnd.Int64N(n))
		case types.OIDNumeric:
			row[i] = types.NewDecimal(types.NewDecimalParts(db.rnd.Int64N(40)-10, db.rnd.IntN(3)))
		case types.OIDFloat8:
			row[i] = types.NewFloat(float64(db.rnd.Int64N(20)-5) / 4)
		case types.OIDBool:
			row[i] = types.NewBool(db.rnd.IntN(2) == 0)
		case types.OIDTimestamp:
			row[i] = types.NewInt(db.rnd.Int64N(5) * 3600e6)
		default:
			row[i] = types.NewString(string(rune('a' + db.rnd.IntN(5))))
		}
	}
	return row
}

// change makes random changes to a table: inserts, deletes, updates of keys and of the rest.
func (db *database) change(name string, n int) *chunk.Chunk {
	t := db.tables[name]
	key := t.rel.KeyCols()
	hidden := t.rel.PrimaryKey == 0
	if hidden {
		db.reload(t)
	}
	// A statement changes a key at most once: deletes first, then inserts.
	var dels, ins []types.Row
	taken := func(r types.Row) bool {
		same := func(o types.Row) bool { return o.Project(key).Equal(r.Project(key)) }
		return slices.ContainsFunc(t.rows, same) || slices.ContainsFunc(ins, same)
	}
	k := db.rnd.IntN(n + 1)
	if db.rnd.IntN(15) == 0 {
		k = len(t.rows)
	}
	for range min(k, len(t.rows)) {
		i := db.rnd.IntN(len(t.rows))
		dels = append(dels, t.rows[i])
		t.rows = slices.Delete(t.rows, i, i+1)
		if db.rnd.IntN(2) == 0 { // an update
			r := db.randomRow(t)
			if db.rnd.IntN(3) > 0 {
				for _, c := range key {
					r[c] = dels[len(dels)-1][c]
				}
			}
			if hidden {
				r[key[0]] = dels[len(dels)-1][key[0]]
			}
			if !taken(r) {
				ins = append(ins, r)
			}
		}
	}
	for range db.rnd.IntN(n + 1) {
		r := db.randomRow(t)
		if hidden {
			ins = append(ins, r)
		} else if !taken(r) {
			ins = append(ins, r)
		}
	}
	t.rows = append(t.rows, ins...)
	b := chunk.NewBuilder(t.rel.Fields().Types(), len(dels)+len(ins)+1)
	for _, r := range dels {
		b.AppendRow(chunk.Delete, r)
	}
	for _, r := range ins {
		b.AppendRow(chunk.Insert, r)
	}
	return b.Take()
}

// reload reads a table's rows back.
func (db *database) reload(t *table) {
	snap, err := db.store.Latest()
	if err != nil {
		db.t.Fatal(err)
	}
	defer snap.Close()
	t.rows = nil
	all := make([]int, len(t.rel.Columns))
	for i := range all {
		all[i] = i
	}
	for c, err := range snap.ScanChunks(exec.RelationDesc(t.rel), all, nil, nil, 1000) {
		if err != nil {
			db.t.Fatal(err)
		}
		for i := range c.Len() {
			t.rows = append(t.rows, c.Row(i))
		}
	}
}

// rescale gives a job other actors, which have other vnodes than the old ones had.
func (db *database) rescale() {
	db.t.Helper()
	r := &db.restored[db.rnd.IntN(len(db.restored))]
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r.Parallelism = 1 + db.rnd.IntN(4)
	if err := db.jobs.Rescale(ctx, r.Rel.ID, r.Parallelism, nil); err != nil {
		db.t.Fatalf("rescale %s: %v", r.Rel.Name, err)
	}
}

// crash kills everything and restores the jobs.
func (db *database) crash() {
	db.t.Helper()
	db.crashing.Store(true)
	db.disk.Crash()
	db.jobs.Close()
	db.store.Close()
	db.crashing.Store(false)
	db.open()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := db.jobs.Restore(ctx, db.restored, func(_ storage.Epoch, failed map[catalog.ID]error) {
		for id, err := range failed {
			db.t.Errorf("restore %d: %v", id, err)
		}
	}); err != nil {
		db.t.Fatalf("restore: %v", err)
	}
	for _, t := range db.tables {
		db.reload(t)
	}
}

var equalityViews = []string{
	"SELECT * FROM a",
	"SELECT id, x + 1 AS x1, s || 'z' AS sz FROM a WHERE x > 2 OR s = 'b'",
	"SELECT count(*), sum(x), min(d), max(s), avg(f) FROM a",
	"SELECT x, count(*) AS n, sum(d), min(f), max(d), count(DISTINCT s) AS cs, sum(DISTINCT x) FILTER (WHERE b) AS sx FROM a GROUP BY x",
	"SELECT s, b, string_agg(s, ',' ORDER BY id), array_agg(x ORDER BY id DESC), bool_and(b), stddev(d) FROM a GROUP BY s, b HAVING count(*) > 1",
	"SELECT DISTINCT x, s FROM a",
	"SELECT DISTINCT trim_scale(d) AS d FROM c",
	"SELECT a.id, a.s, c.v FROM a JOIN c ON a.x = c.k",
	"SELECT a.id, c.k, c.v FROM a LEFT JOIN c ON a.x = c.k AND a.d < c.d",
	"SELECT a.id, c.k, c.v FROM a RIGHT JOIN c ON a.x = c.k AND a.s = c.t",
	"SELECT a.id, c.k, c.v, a.x FROM a FULL JOIN c ON a.x = c.k",
	"SELECT p.i, a.id FROM p JOIN a ON p.i = a.id AND p.j > a.x",
	"SELECT a.id, c.v FROM a, c WHERE a.x < c.k AND a.f > 2",
	"SELECT id FROM a WHERE x IN (SELECT k FROM c WHERE v > 3)",
	"SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.x AND c.v = a.id)",
	"SELECT id FROM a WHERE EXISTS (SELECT 1 FROM c WHERE c.k = a.x AND c.v > a.x)",
	"SELECT x, sum(n) FROM (SELECT a.x, count(*) AS n FROM a JOIN c ON a.x = c.k GROUP BY a.x, a.s) q GROUP BY x",
	"SELECT id, x FROM a UNION ALL SELECT k, v FROM c",
	"SELECT x FROM a UNION SELECT k FROM c",
	"SELECT id, x, d FROM a ORDER BY x DESC, id LIMIT 5",
	"SELECT id, x FROM a ORDER BY x NULLS FIRST, id LIMIT 4 OFFSET 2",
	"SELECT i, j FROM p ORDER BY j, i FETCH FIRST 3 ROWS WITH TIES",
	"SELECT DISTINCT ON (x) x, id, s FROM a ORDER BY x, id DESC",
	"SELECT date_trunc('day', ts) AS day, count(*), max(v) FROM c GROUP BY 1",
	"SELECT l.id AS l, r.id AS r FROM a l JOIN a r ON l.x = r.x AND l.id < r.id",
	"SELECT CASE WHEN x > 3 THEN 'big' ELSE 'small' END AS size, count(*) FROM a GROUP BY 1",
	"SELECT a.id, p.j, c.v FROM a JOIN p ON a.id = p.i LEFT JOIN c ON p.j = c.k",
	"SELECT k, max(v) FROM c GROUP BY k HAVING max(v) > 2 AND count(*) < 6",
}

// Every view equals its query, at every epoch, whatever comes first: rows or view,
// for any parallelism, chunk size, budget and locality, with kills in between.
func TestEquality(t *testing.T) {
	seeds := uint64(6)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testEquality(t, seed, 40)
		})
	}
}

func testEquality(t *testing.T, seed uint64, steps int) {
	db := openDatabase(t, seed)
	db.chunk = []int{1, 7, 256}[db.rnd.IntN(3)]
	db.budget = []int64{0, 1, 20_000}[db.rnd.IntN(3)]
	db.settings = planner.Settings{LocalityEnabled: true, LocalityMode: []string{"off", "always"}[db.rnd.IntN(2)], JoinOrdering: db.rnd.IntN(2) == 0}
	db.tuning = stream.NewTuning()
	db.tuning.SortThreshold.Store(int64(db.rnd.IntN(8)))
	db.jobs.Close()
	db.open()
	db.table("CREATE TABLE a (id bigint PRIMARY KEY, x int, s text, d numeric, f double precision, b boolean)")
	db.table("CREATE TABLE c (k int, v bigint, t text, d numeric, ts timestamp)")
	db.table("CREATE TABLE p (i bigint NOT NULL, j int NOT NULL, n text, PRIMARY KEY (i, j))")
	only := os.Getenv("EQUALITY_VIEW")
	todo := db.rnd.Perm(len(equalityViews))[:12]
	for step := range steps {
		what := fmt.Sprintf("seed %d step %d", seed, step)
		if len(todo) > 0 && db.rnd.IntN(2) == 0 {
			q := equalityViews[todo[0]]
			if only == "" || strings.Contains(q, only) {
				db.view(fmt.Sprint("v", todo[0]), q)
			}
			todo = todo[1:]
			db.check(what + " after create")
		}
		changes := map[string]*chunk.Chunk{}
		for _, n := range []string{"a", "c", "p"} {
			if db.rnd.IntN(2) == 0 {
				if c := db.change(n, 1+db.rnd.IntN(12)); c != nil {
					changes[n] = c
				}
			}
		}
		db.write(changes)
		db.check(what)
		if db.rnd.IntN(3) == 0 {
			db.rescale()
		}
		if db.rnd.IntN(12) == 0 {
			db.crash()
			db.check(what + " after a kill")
		}
	}
	for _, r := range db.restored {
		db.built(db.jobs.Job(r.Rel.ID))
	}
	db.write(nil)
	db.check("at the end")
}

// BenchmarkViews measures the backfill of views over a table of 300,000 rows, on disk.
func BenchmarkViews(b *testing.B) {
	for i, q := range []string{
		"SELECT * FROM t",
		"SELECT g, count(*), sum(v) FROM t GROUP BY g",
		"SELECT g, max(s) FROM t GROUP BY g",
		"SELECT a.id, b.g FROM t a JOIN t b ON a.id = b.id",
		"SELECT id, v FROM t ORDER BY v DESC LIMIT 10",
	} {
		b.Run(fmt.Sprint(i), func(b *testing.B) {
			dir := b.TempDir() // first, so that it is removed last
			db := openDatabase(b, 1)
			db.jobs.Close()
			db.dir, db.budget = dir, 256<<20
			db.chunk = 1024
			db.open()
			db.table("CREATE TABLE t (id bigint PRIMARY KEY, g int, v numeric, s text)")
			for from := range 10 {
				c := chunk.NewBuilder(db.tables["t"].rel.Fields().Types(), 30001)
				for k := range 30000 {
					n := int64(from*30000 + k)
					c.AppendRow(chunk.Insert, types.Row{types.NewInt(n), types.NewInt(n % 1000), types.NewDecimal(types.NewDecimalParts(n*5, 1)), types.NewString(fmt.Sprint("text ", n))})
				}
				db.write(map[string]*chunk.Chunk{"t": c.Take()})
			}
			db.rnd = rand.New(rand.NewPCG(1, 1))
			b.ResetTimer()
			for range b.N {
				name := fmt.Sprintf("v%d_%d", b.N, len(db.queries))
				db.view(name, q)
				db.built(db.jobs.Job(db.cat.Relation("public", name).ID))
			}
			b.ReportMetric(300000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
