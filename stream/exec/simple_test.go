package exec

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/connector/blackhole"
	"streamdb/stream/connector/datagen"
)

func op(t testing.TB, name string, a, b expr.Expr) expr.Expr {
	t.Helper()
	f, _, err := expr.Resolve(name, true, []types.Type{a.Type(), b.Type()})
	if err != nil {
		t.Fatal(err)
	}
	return &expr.Call{Fn: f, Args: []expr.Expr{a, b}, Typ: f.Ret}
}

func col(i int, t types.Type) expr.Expr { return &expr.ColRef{Index: i, Typ: t} }

// pretty joins the pretty forms of chunks.
func pretty(cs []*chunk.Chunk) string {
	var out []string
	for _, c := range cs {
		out = append(out, strings.TrimSpace(c.String()))
	}
	return strings.Join(out, "\n--\n")
}

// An expression that fails is NULL where it is projected and drops the row where it filters; it is reported.
func TestProjectFilterErrors(t *testing.T) {
	r := newRig(t)
	s := schemaOf(types.Int8, types.Int8)
	div := op(t, "/", col(0, types.Int8), col(1, types.Int8))
	pos := op(t, ">", div, &expr.Const{Val: types.NewInt(1), Typ: types.Int8})
	var errs []string
	report := func(e *Env) {
		e.ExprError = func(op string, err error) { errs = append(errs, op+": "+err.Error()) }
	}
	p := &plan.StreamProject{Exprs: []expr.Expr{col(1, types.Int8), div}}
	p.Schema, p.In = s, []plan.Stream{mergeOf(0, s, 0)}
	f := &plan.StreamFilter{Cond: pos}
	f.Schema, f.In = s, []plan.Stream{mergeOf(0, s, 0)}
	x, y := r.start(p, 1, report), r.start(f, 1, report)
	r.barrier(nil)
	c := chunk.Parse("I I\n+ 6 3\n+ 1 0\n- 5 0\n+ 9 .\n- 8 2")
	x.send(0, c)
	r.barrier(nil)
	y.send(0, c)
	r.barrier(nil)
	if got, want := pretty(x.take()), "I I\n+ 3 2\n+ 0 .\n- 0 .\n+ . .\n- 2 4"; got != want {
		t.Errorf("project: %s", got)
	}
	if got, want := pretty(y.take()), "I I\n+ 6 3\n- 8 2"; got != want {
		t.Errorf("filter: %s", got)
	}
	if got, want := strings.Join(errs, "\n"), strings.TrimSpace(strings.Repeat("StreamProject: division by zero\n", 2)+strings.Repeat("StreamFilter: division by zero\n", 2)); got != want {
		t.Errorf("errors: %s", got)
	}
}

// Literal rows come once in the life of a job.
func TestValuesOnce(t *testing.T) {
	r := newRig(t)
	n := &plan.StreamValues{Rows: [][]expr.Expr{{&expr.Const{Val: types.NewInt(1), Typ: types.Int8}}, {&expr.Const{Typ: types.Int8}}},
		Progress: &plan.TableDesc{ID: 5, Name: "values"}}
	n.Schema = schemaOf(types.Int8)
	r.start(n, 1, nil)
	r.barrier(nil)
	r.crash() // before it was committed
	x := r.start(n, 1, nil)
	r.barrier(nil)
	r.barrier(nil)
	if got := pretty(x.take()); got != "I\n+ 1\n+ ." {
		t.Errorf("rows %s", got)
	}
	r.crash()
	x = r.start(n, 1, nil)
	r.barrier(nil)
	r.barrier(nil)
	if got := pretty(x.take()); got != "" {
		t.Errorf("again %s", got)
	}
}

// Row ids are never given twice, by whichever actor and after whatever restart, and lie in their actor's vnodes.
func TestRowIDs(t *testing.T) {
	r := newRig(t)
	s := schemaOf(types.Int8, types.Text)
	n := &plan.StreamRowIDGen{Col: 0}
	n.Schema, n.In = s, []plan.Stream{mergeOf(0, s, 0)}
	seen := map[int64]bool{}
	rnd := rand.New(rand.NewPCG(1, 6))
	for range 5 {
		parts := []storage.VnodeSet{storage.NewVnodeSet(vnodes), storage.NewVnodeSet(vnodes)}
		for v := range vnodes {
			parts[rnd.IntN(2)].Add(uint16(v))
		}
		var runs []*run
		for _, p := range parts {
			if p.Len() > 0 {
				runs = append(runs, r.start(n, 1, func(e *Env) { e.Vnodes, e.Single = p, false }))
			}
		}
		r.barrier(nil)
		for range 4 {
			for _, x := range runs {
				b := chunk.NewBuilder(s.Types(), 1000)
				for range rnd.IntN(600) {
					b.AppendRow(chunk.Insert, types.Row{{}, types.NewString("x")})
				}
				b.AppendRow(chunk.Delete, types.Row{types.NewInt(-5), types.NewString("old")})
				x.send(0, b.Take())
			}
			r.barrier(nil)
			for _, x := range runs {
				for _, c := range x.take() {
					for i := range c.Len() {
						id := c.Row(i)[0].Int()
						if c.Op(i) == chunk.Delete {
							if id != -5 {
								t.Fatalf("id of a deleted row became %d", id)
							}
							continue
						}
						if seen[id] {
							t.Fatalf("id %d twice", id)
						}
						seen[id] = true
						if v := chunk.VnodeOf(c.Row(i), []int{0}, vnodes); !x.env.Vnodes.Has(v) {
							t.Fatalf("id %d of foreign vnode %d", id, v)
						}
					}
				}
			}
		}
		r.crash()
	}
}

// What a table does with keys that are taken.
func TestMaterializeConflicts(t *testing.T) {
	in := []string{"I I T\n+ 1 10 a\n+ 2 20 b", "I I T\n+ 1 11 .\n+ 1 12 c\n- 2 0 x\n+ 3 . d\n- 9 9 z", "I I T\n+ 1 12 c\n+ 3 31 .\n- 3 0 q\n+ 3 33 e"}
	for _, tc := range []struct {
		c    catalog.Conflict
		want string
		rows string
	}{
		{catalog.ConflictOverwrite, "I I T\n+ 1 10 a\n+ 2 20 b\n--\nI I T\n- 1 10 a\n+ 1 11 .\n- 1 11 .\n+ 1 12 c\n- 2 20 b\n+ 3 . d\n--\nI I T\n- 3 . d\n+ 3 31 .\n- 3 31 .\n+ 3 33 e", "1|12|c\n3|33|e"},
		{catalog.ConflictIgnore, "I I T\n+ 1 10 a\n+ 2 20 b\n--\nI I T\n- 2 20 b\n+ 3 . d\n--\nI I T\n- 3 . d\n+ 3 33 e", "1|10|a\n3|33|e"},
		{catalog.ConflictUpdateIfNotNull, "I I T\n+ 1 10 a\n+ 2 20 b\n--\nI I T\n- 1 10 a\n+ 1 11 a\n- 1 11 a\n+ 1 12 c\n- 2 20 b\n+ 3 . d\n--\nI I T\n- 3 . d\n+ 3 31 d\n- 3 31 d\n+ 3 33 e", "1|12|c\n3|33|e"},
	} {
		r := newRig(t)
		rel := &catalog.Relation{ID: 9, Name: "t", Kind: catalog.Table, Conflict: tc.c, Vnodes: vnodes, Dist: []int{0}, Key: []catalog.KeyColumn{{Col: 0}},
			Columns: []catalog.Column{{Name: "k", Type: types.Int8}, {Name: "v", Type: types.Int8}, {Name: "s", Type: types.Text}}}
		n := &plan.StreamMaterialize{Rel: rel}
		n.In = []plan.Stream{mergeOf(0, rel.Fields(), 0)}
		x := r.start(n, 1, nil)
		r.barrier(nil)
		for _, c := range in {
			x.send(0, chunk.Parse(c))
			r.barrier(nil)
		}
		if got := pretty(x.take()); got != tc.want {
			t.Errorf("conflict %d: %s", tc.c, got)
		}
		snap, err := r.store.Latest()
		if err != nil {
			t.Fatal(err)
		}
		b := bag{}
		for c, err := range snap.ScanChunks(RelationDesc(rel), []int{0, 1, 2}, nil, nil, 100) {
			if err != nil {
				t.Fatal(err)
			}
			b.apply(t, rel.Fields(), []*chunk.Chunk{c})
		}
		snap.Close()
		if b.String() != tc.rows || r.store.Rows(9) != 2 {
			t.Errorf("conflict %d: rows %s", tc.c, b)
		}
	}
}

// A source's rows come exactly once, however often it is killed, and the rate limit holds.
func TestSourceDatagen(t *testing.T) {
	clock := newHandClock()
	rel := &catalog.Relation{ID: 9, Name: "gen", Kind: catalog.Source,
		Columns: []catalog.Column{{Name: "n", Type: types.Int8}, {Name: "v", Type: types.Varchar}, {Name: "x", Type: types.Float8}, {Name: "_row_id", Type: types.Int8, Hidden: true}},
		With: []catalog.Option{{Name: "connector", Value: "datagen"}, {Name: "fields.n.kind", Value: "sequence"}, {Name: "fields.n.start", Value: "1"}, {Name: "fields.n.end", Value: "500"},
			{Name: "fields.v.length", Value: "4"}, {Name: "datagen.rows.per.second", Value: "1000"}, {Name: "datagen.split.num", Value: "3"}},
	}
	d := datagen.Driver()
	splits, err := d.Splits(rel)
	if err != nil || len(splits) != 3 {
		t.Fatal(splits, err)
	}
	r := newRig(t)
	n := &plan.StreamSource{Rel: rel, Offsets: &plan.TableDesc{ID: 11, Name: "offsets"}}
	n.Schema = rel.Fields()
	limit := NewLimiter(stream.Unlimited, clock)
	start := func(per int) []*run {
		var out []*run
		for i := 0; i < len(splits); i += per {
			rd, err := d.Reader(rel, 42)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.start(n, 1, func(e *Env) {
				e.Source, e.Splits, e.Clock, e.Limiter, e.ChunkSize = rd, splits[i:min(i+per, len(splits))], clock, limit, 16
			}))
		}
		r.barrier(nil)
		return out
	}
	rnd := rand.New(rand.NewPCG(1, 7))
	xs := start(1)
	got := bag{}
	for step := range 300 {
		clock.move(10 * time.Millisecond)
		r.barrier(nil)
		for _, x := range xs {
			for _, c := range x.take() {
				for i := range c.Len() {
					row := c.Row(i)
					if len(row[1].Str()) != 4 || !row[3].IsNull() || row[2].IsNull() {
						t.Fatal(text(row, n.Schema))
					}
					got[text(row[:1], n.Schema)]++
				}
			}
		}
		if rnd.IntN(10) == 0 && step < 100 {
			r.crash()
			xs = start(1 + rnd.IntN(3))
		}
	}
	if len(got) != 500 {
		t.Fatalf("%d rows", len(got))
	}
	for k, n := range got {
		if n != 1 {
			t.Fatalf("row %s came %d times", k, n)
		}
	}
}

func TestSinkCounts(t *testing.T) {
	r := newRig(t)
	w := &blackhole.Writer{}
	s := schemaOf(types.Int8)
	n := &plan.StreamSink{Rel: &catalog.Relation{Name: "s"}}
	n.In = []plan.Stream{mergeOf(0, s, 0)}
	x := r.start(n, 1, func(e *Env) { e.Sink = w })
	r.barrier(nil)
	x.send(0, chunk.Parse("I\n+ 1\n- 1\n+ 2"))
	e := r.barrier(nil)
	if in, del, at := w.Rows(); in != 2 || del != 1 || at != e {
		t.Fatal(in, del, at)
	}
}

// A limiter grants its rate, never more, and nothing while paused.
func TestLimiter(t *testing.T) {
	c := newHandClock()
	l := NewLimiter(1000, c)
	l.Allow(1000)
	for range 10 {
		c.move(50 * time.Millisecond)
		if n := l.Allow(1000); n != 50 {
			t.Fatal(n)
		}
	}
	c.move(10 * time.Second)
	if n := l.Allow(1000); n != 100 {
		t.Fatalf("burst of %d", n)
	}
	at := l.NextAt()
	c.move(at.Sub(c.Now()))
	if n := l.Allow(1000); n < 1 || n > 11 {
		t.Fatal(n)
	}
	l.Set(stream.Paused)
	if n := l.Allow(5); n != 0 || !l.NextAt().IsZero() {
		t.Fatal(n)
	}
	l.Set(stream.Unlimited)
	if n := l.Allow(5); n != 5 {
		t.Fatal(n)
	}
}
