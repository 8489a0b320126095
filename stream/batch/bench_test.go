package batch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// bench makes a table of n rows: a key, two numbers with 1,000 and n/4 values, a text.
func (r *rig) bench(n int, engine string) *catalog.Relation {
	rel := &catalog.Relation{ID: 20000, Name: "t", Kind: catalog.Table, Vnodes: 64, Dist: []int{0}, Key: []catalog.KeyColumn{{Col: 0}}}
	for i, ty := range []types.Type{types.Int8, types.Int8, types.Int8, types.Text} {
		rel.Columns = append(rel.Columns, catalog.Column{Name: string(rune('a' + i)), Type: ty})
	}
	s, err := storage.Open(storage.Options{Dir: r.t.TempDir(), Engine: engine})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	r.env.Desc = func(rel *catalog.Relation) storage.Desc {
		return storage.Desc{ID: uint32(rel.ID), Name: rel.Name, Tag: storage.TagRows, Schema: rel.Fields(), Key: rel.KeyCols(), Dist: rel.Dist, Vnodes: rel.Vnodes}
	}
	tab := s.Table(r.env.Desc(rel), storage.Full(rel.Vnodes))
	rnd := rand.New(rand.NewPCG(1, 1))
	e := s.Committed()
	for from := 0; from < n; from += 100_000 {
		var a, b, c []int64
		var d []string
		for i := from; i < min(n, from+100_000); i++ {
			a, b, c = append(a, int64(i)), append(b, rnd.Int64N(1000)), append(c, rnd.Int64N(int64(n/4+1)))
			d = append(d, fmt.Sprintf("some text %d", i))
		}
		ch := chunk.Make(chunk.NewVec(types.Int8, a, nil), chunk.NewVec(types.Int8, b, nil), chunk.NewVec(types.Int8, c, nil), chunk.NewVec(types.Text, d, nil))
		if err := tab.WriteChunk(ch); err != nil {
			r.t.Fatal(err)
		}
		e++
		if err := tab.Commit(e); err != nil {
			r.t.Fatal(err)
		}
		if err := s.Commit(e); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.env.Snap, err = s.Latest(); err != nil {
		r.t.Fatal(err)
	}
	snap := r.env.Snap
	r.t.Cleanup(snap.Close)
	return rel
}

func (r *rig) drain(n plan.Node) int {
	it, err := Run(n, &r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	defer it.Close()
	rows := 0
	for {
		c, err := it.Next(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		if c == nil {
			return rows
		}
		rows += c.Len()
	}
}

// cpu is the processor time that the process has used, in seconds: what counts on a machine that others use too.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkQueries(b *testing.B) {
	const rows = 1_000_000
	r := newRig(b)
	rel := r.bench(rows, "badger")
	t := &plan.Scan{Rel: rel, Cols: []int{0, 1, 2, 3}}
	ints := &plan.Scan{Rel: rel, Cols: []int{0, 1, 2}}
	agg := func(by int, calls ...expr.Agg) plan.Node {
		n := &plan.Agg{Input: ints, GroupBy: []int{by}, Aggs: calls}
		for range calls {
			n.Names = append(n.Names, "x")
		}
		return n
	}
	count, sum, distinct := aggCall(b, ints, "count"), aggCall(b, ints, "sum", 0), aggCall(b, ints, "count", 2)
	distinct.Distinct = true
	for _, q := range []struct {
		name   string
		n      plan.Node
		memory int64
	}{
		{"scan", t, 0},
		{"count", &plan.Agg{Input: &plan.Scan{Rel: rel}, Aggs: []expr.Agg{count}, Names: []string{"n"}}, 0},
		{"filter project", &plan.Project{Input: &plan.Filter{Input: ints, Cond: op(b, "<", col(ints, 1), num(500))}, Exprs: []expr.Expr{op(b, "+", col(ints, 0), col(ints, 1))}, Names: []string{"x"}}, 0},
		{"agg 1000 groups", agg(1, count, sum), 0},
		{"agg 250k groups", agg(2, count, sum), 0},
		{"agg 1M groups", agg(0, count, sum), 0},
		{"agg 1M groups, spilled", agg(0, count, sum), 8 << 20},
		{"count distinct", agg(1, distinct), 0},
		{"join 1M x 1M", &plan.Join{Left: ints, Right: ints, LeftKeys: []int{0}, RightKeys: []int{0}}, 0},
		{"join 1M x 1M, spilled", &plan.Join{Left: ints, Right: ints, LeftKeys: []int{0}, RightKeys: []int{0}}, 8 << 20},
		{"join 1M x 1k", &plan.Join{Left: ints, Right: &plan.Limit{Input: ints, Count: num(1000)}, LeftKeys: []int{1}, RightKeys: []int{1}}, 0},
		{"sort", &plan.Sort{Input: t, By: []expr.Order{{Col: 2}, {Col: 0}}}, 0},
		{"sort by text", &plan.Sort{Input: t, By: []expr.Order{{Col: 3}}}, 0},
		{"sort, spilled", &plan.Sort{Input: t, By: []expr.Order{{Col: 2}, {Col: 0}}}, 8 << 20},
		{"top 100", &plan.Limit{Input: &plan.Sort{Input: t, By: []expr.Order{{Col: 2}, {Col: 0}}}, Count: num(100)}, 0},
		{"distinct", &plan.Distinct{Input: &plan.Scan{Rel: rel, Cols: []int{2}}}, 0},
	} {
		b.Run(q.name, func(b *testing.B) {
			r.t = b
			r.env.Memory = q.memory
			b.ReportAllocs()
			from := cpu()
			for b.Loop() {
				r.drain(q.n)
			}
			b.ReportMetric(float64(b.N)*rows/(cpu()-from)/1e6, "Mrows/cpu-s")
		})
	}
	b.Run("point", func(b *testing.B) {
		r.t = b
		r.env.Memory = 0
		b.ReportAllocs()
		key, from := int64(0), cpu()
		for b.Loop() {
			key = (key + 7919) % rows
			n := &plan.Project{Input: &plan.Scan{Rel: rel, Cols: []int{1, 3}, Ranges: []plan.KeyRange{{Eq: []expr.Expr{num(key)}}}}, Names: []string{"b", "d"}}
			n.Exprs = []expr.Expr{col(n.Input, 0), col(n.Input, 1)}
			if r.drain(n) != 1 {
				b.Fatal("not found")
			}
		}
		b.ReportMetric((cpu()-from)/float64(b.N)*1e6, "cpu-us/op")
	})
	b.Run("range", func(b *testing.B) {
		r.t = b
		from := cpu()
		for b.Loop() {
			n := &plan.Scan{Rel: rel, Cols: []int{1, 3}, Ranges: []plan.KeyRange{{Lo: num(5000), Hi: num(5100), LoInc: true}}}
			if r.drain(n) != 100 {
				b.Fatal("not found")
			}
		}
		b.ReportMetric((cpu()-from)/float64(b.N)*1e6, "cpu-us/op")
	})
	b.Run("lookup", func(b *testing.B) {
		r.t = b
		s := &plan.Scan{Rel: rel, Cols: []int{1, 3}, Ranges: []plan.KeyRange{{Eq: []expr.Expr{outerCol(1, 0, types.Int8)}}}}
		from := cpu()
		for b.Loop() {
			r.drain(&plan.Join{Left: &plan.Limit{Input: ints, Count: num(10000)}, Right: s, Lateral: true})
		}
		b.ReportMetric(float64(b.N)*10000/(cpu()-from)/1e6, "Mrows/cpu-s")
	})
}
