package job

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream/exec"
)

// A rig is a manager over a store in memory, with tables t and u of two integers
// (k, the key, and v) and views over them by their SQL.
type rig struct {
	t     testing.TB
	store *storage.Store
	m     *Manager
	cat   *catalog.Snapshot
	ids   catalog.ID
	rels  map[string]*catalog.Relation
	rows  map[string]map[int64]int64 // of the tables
	mu    sync.Mutex                 // of rels and rows
	fails chan error
}

func newRig(t testing.TB, mod func(*Options)) *rig {
	t.Helper()
	store, err := storage.Open(storage.Options{Dir: ":memory:", Clock: wallClock{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: store, cat: catalog.NewSnapshot([]string{"public"}, nil), ids: 1, rels: map[string]*catalog.Relation{}, rows: map[string]map[int64]int64{}, fails: make(chan error, 10)}
	o := Options{Store: store, Clock: wallClock{}, Logger: slog.New(slog.DiscardHandler), Metrics: NewMetrics(nil), Interval: 2 * time.Millisecond, ChunkSize: 16, Seed: 1,
		ExprCtx: func(*catalog.Relation) *expr.Ctx { return &expr.Ctx{} },
		Fatal:   func(err error) { t.Error(err) },
		Failed:  func(_ []catalog.ID, err error) { r.fails <- err },
	}
	if mod != nil {
		mod(&o)
	}
	r.m = NewManager(o)
	t.Cleanup(func() {
		r.m.Close()
		store.Close()
	})
	return r
}

func (r *rig) id() catalog.ID { r.ids++; return r.ids + 1000 }

func (r *rig) add(rel *catalog.Relation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rels[rel.Name] = rel
	r.cat = r.cat.With([]*catalog.Relation{rel}, nil)
}

func (r *rig) table(name string, parallelism int) {
	r.t.Helper()
	rel := &catalog.Relation{ID: r.id(), Schema: "public", Name: name, Kind: catalog.Table, Vnodes: 16, PrimaryKey: 1, Conflict: catalog.ConflictError,
		Columns: []catalog.Column{{Name: "k", Type: types.Int8}, {Name: "v", Type: types.Int8}}, Key: []catalog.KeyColumn{{Col: 0}}, Dist: []int{0}}
	g, err := planner.PlanTable(rel)
	if err == nil {
		_, err = r.m.Start(r.t.Context(), Spec{Rel: rel, Graph: g, Parallelism: parallelism}, nil)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.rows[name] = map[int64]int64{}
	r.add(rel)
}

// spec plans a view.
func (r *rig) spec(name, query, locality string, parallelism, building int, rate *int64) Spec {
	r.t.Helper()
	rel := &catalog.Relation{ID: r.id(), Schema: "public", Name: name, Kind: catalog.MaterializedView, Definition: query, Vnodes: 16, RateLimit: rate, Conflict: catalog.ConflictNone}
	stmt, err := parser.ParseQuery(query)
	if err != nil {
		r.t.Fatal(err)
	}
	q, err := bind.Query(stmt.Node, bind.Options{Cat: r.cat, SearchPath: []string{"public"}, Streaming: true, Ctx: &expr.Ctx{}})
	if err != nil {
		r.t.Fatal(err)
	}
	g, planned, err := planner.PlanView(q, rel, r.cat, planner.Settings{Vnodes: 16, LocalityEnabled: true, LocalityMode: locality}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, t := range g.Tables() {
		t.ID = r.id()
		planned.State = append(planned.State, t.ID)
	}
	r.add(planned)
	return Spec{Rel: planned, Graph: g, Parallelism: parallelism, Building: building}
}

func (r *rig) view(name, query string, parallelism int) *Job {
	r.t.Helper()
	j, err := r.m.Start(r.t.Context(), r.spec(name, query, "off", parallelism, 0, nil), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

func (r *rig) built(j *Job) {
	r.t.Helper()
	select {
	case <-j.Built():
	case <-time.After(20 * time.Second):
		r.t.Fatalf("%s is not built: %+v", j.Rel.Name, r.m.Report(j))
	}
	if err := j.Err(); err != nil {
		r.t.Fatal(err)
	}
}

// write changes n random rows of a table in one epoch.
func (r *rig) write(rnd *rand.Rand, table string, n int) (storage.Epoch, error) {
	r.mu.Lock()
	rel := r.rels[table]
	r.mu.Unlock()
	return r.m.coord.Write(rnd.IntN(4) == 0, func(storage.Epoch) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		ports, owner, err := r.m.Ports(rel.ID)
		if err != nil {
			return err
		}
		var ops []chunk.Op
		var ks, vs []int64
		put := func(op chunk.Op, k, v int64) {
			ops, ks, vs = append(ops, op), append(ks, k), append(vs, v)
		}
		rows := r.rows[table]
		for range n {
			k := rnd.Int64N(400)
			if v, ok := rows[k]; ok {
				put(chunk.Delete, k, v)
				delete(rows, k)
				if rnd.IntN(3) == 0 {
					continue
				}
			}
			v := rnd.Int64N(40)
			put(chunk.Insert, k, v)
			rows[k] = v
		}
		d := exec.NewDMLSource(ports, owner, rel.Dist, -1)
		return d.Write(&chunk.Chunk{Ops: ops, N: len(ops), Cols: []chunk.Column{chunk.NewVec(types.Int8, ks, nil), chunk.NewVec(types.Int8, vs, nil)}})
	})
}

func (r *rig) flush() {
	r.t.Helper()
	e, err := r.m.coord.Flush()
	if err == nil {
		ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
		defer cancel()
		err = r.m.coord.Wait(ctx, e)
	}
	if err != nil {
		_, _, actors := r.m.coord.Stalled()
		r.t.Fatalf("flush: %v; waiting for %v: %s", err, actors, r.m.stalled())
	}
}

// got is a relation's visible rows, sorted.
func (r *rig) got(name string) []string {
	r.t.Helper()
	rel := r.rels[name]
	snap, err := r.store.Latest()
	if err != nil {
		r.t.Fatal(err)
	}
	defer snap.Close()
	var cols []int
	for i, c := range rel.Columns {
		if !c.Hidden {
			cols = append(cols, i)
		}
	}
	var out []string
	for c, err := range snap.ScanChunks(exec.RelationDesc(rel), cols, nil, nil, 1000) {
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range c.Len() {
			var row []string
			for _, col := range c.Cols {
				row = append(row, string(types.AppendText(nil, col.Type(), col.Datum(i), nil)))
			}
			out = append(out, strings.Join(row, " "))
		}
	}
	slices.Sort(out)
	return out
}

// The queries of views, and what they come to.
const (
	copyOfT = "SELECT k, v FROM t"
	aggOfT  = "SELECT v, count(*) AS c, sum(k) AS s FROM t GROUP BY v"
	overAgg = "SELECT c, count(*) AS n FROM agg GROUP BY c"
	joined  = "SELECT t.k, u.v FROM t JOIN u ON t.v = u.k"
	global  = "SELECT count(*) AS n, max(v) AS m FROM t"
)

func (r *rig) want(query string) []string {
	t, u := r.rows["t"], r.rows["u"]
	count, sum := map[int64]int64{}, map[int64]int64{}
	most := int64(-1)
	for k, v := range t {
		count[v]++
		sum[v] += k
		most = max(most, v)
	}
	var out []string
	line := func(vs ...any) { out = append(out, strings.TrimSuffix(fmt.Sprintln(vs...), "\n")) }
	switch query {
	case copyOfT:
		for k, v := range t {
			line(k, v)
		}
	case aggOfT:
		for v, c := range count {
			line(v, c, sum[v])
		}
	case overAgg:
		n := map[int64]int64{}
		for _, c := range count {
			n[c]++
		}
		for c, n := range n {
			line(c, n)
		}
	case joined:
		for k, v := range t {
			if w, ok := u[v]; ok {
				line(k, w)
			}
		}
	case global:
		if most < 0 {
			line(0, "")
		} else {
			line(len(t), most)
		}
	}
	slices.Sort(out)
	return out
}

// check compares the views of a set with their queries.
func (r *rig) check(views map[string]string) {
	r.t.Helper()
	r.flush()
	for _, name := range slices.Sorted(maps.Keys(views)) {
		got, want := r.got(name), r.want(views[name])
		if !slices.Equal(got, want) {
			r.t.Errorf("%s: %d rows, want %d\n%s", name, len(got), len(want), difference(got, want))
		}
	}
}

func difference(got, want []string) string {
	var b strings.Builder
	for _, g := range got {
		if !slices.Contains(want, g) {
			fmt.Fprintln(&b, "+", g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			fmt.Fprintln(&b, "-", w)
		}
	}
	return b.String()
}

func rate(n int64) *int64 { return &n }

func rescale(t testing.TB, r *rig, name string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.m.Rescale(ctx, r.rels[name].ID, n, nil); err != nil {
		t.Fatalf("rescale %s to %d: %v (%s)", name, n, err, r.m.stalled())
	}
}
