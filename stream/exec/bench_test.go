package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// benchStore opens a store in memory or, with dir, on disk.
func benchStore(b *testing.B, dir bool) *storage.Store {
	o := storage.Options{}
	if dir {
		o.Dir = b.TempDir()
	}
	s, err := storage.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

var errBench = errors.New("bench is over")

// benchRun feeds chunks round robin over ports, a barrier each so many, and commits.
func benchRun(b *testing.B, env *Env, n plan.Stream, ports int, feed func(i int) (port int, c *chunk.Chunk), each int) {
	env.In = stream.NewInbox()
	env.Vnodes, env.VnodeCount, env.Single = storage.Full(64), 64, true
	for p := range ports {
		env.In.Open(p)
	}
	x, err := Build(env, n)
	if err != nil {
		b.Fatal(err)
	}
	epochs := make(chan storage.Epoch, 100)
	done := make(chan error, 1)
	rows := 0
	go func() {
		done <- x.Run(context.Background(), func(m stream.Message) error {
			if m.Chunk != nil {
				rows += m.Chunk.Len()
			}
			if m.Barrier != nil {
				epochs <- m.Barrier.Epoch
			}
			return nil
		})
	}()
	e := env.Store.Committed()
	barrier := func() {
		e++
		for p := range ports {
			env.In.Send(p, stream.Message{Barrier: &stream.Barrier{Epoch: e}})
		}
		select {
		case <-epochs:
		case err := <-done:
			b.Fatal(err)
		}
		if err := env.Store.Commit(e); err != nil {
			b.Fatal(err)
		}
	}
	barrier()
	in := 0
	b.ResetTimer()
	for i := 0; in < b.N; i++ {
		p, c := feed(i)
		in += c.Len()
		env.In.Send(p, stream.Message{Chunk: c})
		if i%each == each-1 {
			barrier()
		}
	}
	barrier()
	b.StopTimer()
	env.In.Close(errBench)
	if err := <-done; !errors.Is(err, errBench) {
		b.Fatal(err)
	}
	b.ReportMetric(float64(in)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(rows)/float64(in), "out/in")
}

func randomChunks(s types.Schema, n int, row func(r *rand.Rand, i int) types.Row) []*chunk.Chunk {
	r := rand.New(rand.NewPCG(1, 1))
	out := make([]*chunk.Chunk, n)
	k := 0
	for i := range out {
		b := chunk.NewBuilder(s.Types(), 1025)
		for range 1024 {
			b.AppendRow(chunk.Insert, row(r, k))
			k++
		}
		out[i] = b.Take()
	}
	return out
}

func BenchmarkHashAgg(b *testing.B) {
	for _, groups := range []int64{100, 10_000, 1_000_000} {
		for _, dir := range []bool{false, true} {
			b.Run(fmt.Sprintf("groups=%d/disk=%v", groups, dir), func(b *testing.B) {
				s := schemaOf(types.Int8, types.Int8, types.Int8)
				cs := randomChunks(s, 2000, func(r *rand.Rand, i int) types.Row {
					return types.Row{types.NewInt(int64(i)), types.NewInt(r.Int64N(groups)), types.NewInt(r.Int64N(1000))}
				})
				n := &plan.StreamHashAgg{GroupBy: []int{1}, Aggs: []expr.Agg{aggCallOf(b, s, "count"), aggCallOf(b, s, "sum", 2)}}
				n.State = stateTable(20, s, []int{1}, []int{0}, []int{0})
				n.Schema = schemaOf(types.Int8, types.Int8, types.Numeric)
				n.In = []plan.Stream{mergeOf(0, s, 0)}
				benchRun(b, &Env{Store: benchStore(b, dir), Cache: NewBudget(1 << 30)}, n, 1, func(i int) (int, *chunk.Chunk) { return 0, cs[i%len(cs)] }, 100)
			})
		}
	}
}

func BenchmarkHashAggMax(b *testing.B) {
	s := schemaOf(types.Int8, types.Int8, types.Int8)
	cs := randomChunks(s, 1000, func(r *rand.Rand, i int) types.Row {
		return types.Row{types.NewInt(int64(i)), types.NewInt(r.Int64N(10000)), types.NewInt(r.Int64N(1000))}
	})
	n := &plan.StreamHashAgg{GroupBy: []int{1}, Aggs: []expr.Agg{aggCallOf(b, s, "max", 2)}}
	n.Values = []*plan.TableDesc{stateTable(30, s, []int{1, 2, 0}, upTo(3), []int{0})}
	n.State = stateTable(20, s, []int{1}, []int{0}, []int{0})
	n.Schema = schemaOf(types.Int8, types.Int8)
	n.In = []plan.Stream{mergeOf(0, s, 0)}
	benchRun(b, &Env{Store: benchStore(b, false), Cache: NewBudget(1 << 30)}, n, 1, func(i int) (int, *chunk.Chunk) { return 0, shifted(cs[i%len(cs)], i/len(cs)) }, 100)
}

// shifted gives the rows of a chunk other keys.
func shifted(c *chunk.Chunk, round int) *chunk.Chunk {
	if round == 0 {
		return c
	}
	ids := append([]int64(nil), chunk.Of[int64](c.Cols[0]).Data...)
	for i := range ids {
		ids[i] += int64(round) << 32
	}
	out := *c
	out.Cols = append([]chunk.Column{chunk.NewVec(types.Int8, ids, nil)}, c.Cols[1:]...)
	return &out
}

func BenchmarkHashJoin(b *testing.B) {
	for _, tc := range []struct {
		dims   int
		budget int64
		dir    bool
	}{{1000, 1 << 30, false}, {100_000, 1 << 30, false}, {100_000, 1 << 30, true}, {100_000, 4 << 20, true}} {
		b.Run(fmt.Sprintf("dims=%d/budget=%d/disk=%v", tc.dims, tc.budget, tc.dir), func(b *testing.B) {
			s := schemaOf(types.Int8, types.Int8, types.Text)
			facts := randomChunks(s, 1000, func(r *rand.Rand, i int) types.Row {
				return types.Row{types.NewInt(int64(i)), types.NewInt(r.Int64N(int64(tc.dims))), types.NewString("some text")}
			})
			dims := randomChunks(s, (tc.dims+1023)/1024, func(r *rand.Rand, i int) types.Row {
				return types.Row{types.NewInt(int64(i)), types.NewInt(int64(i)), types.NewString("a name of it")}
			})
			l, r := mergeOf(0, s, 0), mergeOf(1, s, 0)
			n := &plan.StreamHashJoin{Kind: plan.Inner, LeftKeys: []int{1}, RightKeys: []int{1}}
			n.LeftState, n.RightState = stateTable(20, s, upTo(3), []int{1, 0}, []int{1}), stateTable(21, s, upTo(3), []int{1, 0}, []int{1})
			n.Schema, n.Output = append(append(types.Schema{}, s...), s...), upTo(6)
			n.In = []plan.Stream{l, r}
			benchRun(b, &Env{Store: benchStore(b, tc.dir), Cache: NewBudget(tc.budget)}, n, 2, func(i int) (int, *chunk.Chunk) {
				if i < len(dims) {
					return 1, dims[i]
				}
				i -= len(dims)
				return 0, shifted(facts[i%len(facts)], i/len(facts))
			}, 100)
		})
	}
}

func BenchmarkBackfill(b *testing.B) {
	for _, dir := range []bool{false, true} {
		b.Run(fmt.Sprintf("disk=%v", dir), func(b *testing.B) {
			store := benchStore(b, dir)
			rel := &catalog.Relation{ID: 9, Name: "t", Kind: catalog.Table, Conflict: catalog.ConflictNone, Vnodes: 64, Dist: []int{0}, Key: []catalog.KeyColumn{{Col: 0}},
				Columns: []catalog.Column{{Name: "k", Type: types.Int8}, {Name: "v", Type: types.Int8}, {Name: "s", Type: types.Text}}}
			t := store.Table(RelationDesc(rel), storage.Full(64))
			cs := randomChunks(rel.Fields(), 1000, func(r *rand.Rand, i int) types.Row {
				return types.Row{types.NewInt(int64(i)), types.NewInt(r.Int64N(1000)), types.NewString("some text of it")}
			})
			e := storage.Epoch(0)
			for i, c := range cs {
				if err := t.WriteChunk(c); err != nil {
					b.Fatal(err)
				}
				if i%100 == 99 {
					e++
					t.Commit(e)
					store.Commit(e)
				}
			}
			n := &plan.StreamTableScan{Table: rel, Cols: []int{0, 1, 2}, Progress: &plan.TableDesc{ID: 20}}
			n.Schema = rel.Fields()
			b.ResetTimer()
			rows := 0
			for rows < b.N {
				e++
				n.Progress.ID++
				in := stream.NewInbox()
				in.Open(0)
				env := &Env{Store: store, In: in, Vnodes: storage.Full(64), VnodeCount: 64, Single: true, Progress: &stream.Progress{Actors: 1}}
				x, err := newArrangementBackfill(env, n)
				if err != nil {
					b.Fatal(err)
				}
				x.most = 1 << 30 // no barriers here
				in.Send(0, stream.Message{Barrier: &stream.Barrier{Epoch: e}})
				got := 0
				if err := x.Run(context.Background(), func(m stream.Message) error {
					if m.Chunk != nil {
						if got += m.Chunk.Len(); got == 1024*1000 {
							in.Close(errBench)
						}
					}
					return nil
				}); !errors.Is(err, errBench) {
					b.Fatal(err)
				}
				rows += got
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
