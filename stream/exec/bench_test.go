package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

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

// BenchmarkBuild builds a view over a table in random order of what the view groups or joins
// by, whose state is larger than the cache, with a locality provider and without.
func BenchmarkBuild(b *testing.B) {
	const rows = 300 << 10
	s := schemaOf(types.Int8, types.Int8, types.Text)
	for _, op := range []string{"join", "agg"} {
		for _, tc := range []struct {
			cache int64
			on    bool
		}{{4 << 20, false}, {4 << 20, true}, {1 << 30, false}, {1 << 30, true}} {
			on := tc.on
			b.Run(fmt.Sprintf("%s/cache=%d/provider=%v", op, tc.cache>>20, on), func(b *testing.B) {
				for range b.N {
					cs := randomChunks(s, rows/1024, func(r *rand.Rand, i int) types.Row {
						k := int64(i) * 2654435761 % (rows / 4)
						return types.Row{types.NewInt(int64(i)), types.NewInt(k), types.NewString("some text of the row")}
					})
					store := benchStore(b, true)
					budget := NewBudget(tc.cache)
					ports := 1
					var n plan.Stream
					if op == "agg" {
						a := &plan.StreamHashAgg{GroupBy: []int{1}, Aggs: []expr.Agg{aggCallOf(b, s, "count"), aggCallOf(b, s, "max", 2)}}
						a.Values = []*plan.TableDesc{nil, stateTable(30, s, []int{1, 2, 0}, upTo(3), []int{0})}
						a.State = stateTable(20, s, []int{1}, []int{0}, []int{0})
						a.Schema = schemaOf(types.Int8, types.Int8, types.Text)
						a.In = []plan.Stream{mergeOf(0, s, 0)}
						n = a
					} else {
						ports = 2
						j := &plan.StreamHashJoin{Kind: plan.Inner, LeftKeys: []int{1}, RightKeys: []int{1}}
						j.LeftState, j.RightState = stateTable(20, s, upTo(3), []int{1, 0}, []int{1}), stateTable(21, s, upTo(3), []int{1, 0}, []int{1})
						j.Schema, j.Output = append(append(types.Schema{}, s...), s...), upTo(6)
						j.In = []plan.Stream{mergeOf(0, s, 0), mergeOf(1, s, 0)}
						n = j
					}
					b.ResetTimer()
					out := buildThrough(b, &Env{Store: store, Cache: budget}, n, ports, s, cs, on)
					b.StopTimer()
					if want := rows / 4; op == "agg" && out != want {
						b.Fatalf("%d groups, want %d", out, want)
					}
					b.ReportMetric(float64(ports*rows)/b.Elapsed().Seconds(), "rows/s")
				}
			})
		}
	}
}

// buildThrough sends the chunks to all ports of n, through providers of column 1 if on, a
// barrier each 20 chunks, and returns the rows that came out less those that went.
func buildThrough(b *testing.B, env *Env, n plan.Stream, ports int, s types.Schema, cs []*chunk.Chunk, on bool) (out int) {
	type actor struct {
		in   *stream.Inbox
		done chan error
	}
	var actors []actor
	start := func(n plan.Stream, e Env, ports int, emit stream.Emit) *stream.Inbox {
		in := stream.NewInbox()
		e.In, e.Vnodes, e.VnodeCount, e.Single = in, storage.Full(64), 64, true
		for p := range ports {
			in.Open(p)
		}
		x, err := Build(&e, n)
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- x.Run(context.Background(), emit) }()
		actors = append(actors, actor{in, done})
		return in
	}
	epochs := make(chan storage.Epoch, 100)
	top := start(n, *env, ports, func(m stream.Message) error {
		if c := m.Chunk; c != nil {
			for i := range c.Len() {
				out += int(c.Op(i).Sign())
			}
		}
		if m.Barrier != nil {
			epochs <- m.Barrier.Epoch
		}
		return nil
	})
	heads := make([]func(stream.Message), ports)
	progress := make([]*stream.Progress, ports)
	for p := range ports {
		heads[p] = func(m stream.Message) { top.Send(p, m) }
		if !on {
			continue
		}
		id := catalog.ID(100 + 10*p)
		lp := &plan.StreamLocalityProvider{Cols: []int{1}, Progress: &plan.TableDesc{ID: id, Name: "progress"}}
		lp.Buffer, lp.Log = stateTable(id+1, s, upTo(3), []int{1, 0}, []int{1}), logTable(id+2)
		lp.Schema, lp.In = s, []plan.Stream{mergeOf(0, s, 0)}
		e := *env
		progress[p] = &stream.Progress{Actors: 1}
		e.Progress, e.Fragment = progress[p], plan.FragmentID(p)
		e.SpillDir = b.TempDir()
		in := start(lp, e, 1, func(m stream.Message) error { return top.Send(p, m) })
		heads[p] = func(m stream.Message) { in.Send(0, m) }
	}
	e := env.Store.Committed()
	barrier := func(mu *stream.Mutation) {
		e++
		for _, send := range heads {
			send(stream.Message{Barrier: &stream.Barrier{Epoch: e, Mutation: mu}})
		}
		for _, a := range actors {
			select {
			case err := <-a.done:
				b.Fatal(err)
			default:
			}
		}
		<-epochs
		if err := env.Store.Commit(e); err != nil {
			b.Fatal(err)
		}
	}
	barrier(nil)
	for i, c := range cs {
		for _, send := range heads {
			send(stream.Message{Chunk: c})
		}
		if i%20 == 19 {
			barrier(nil)
		}
	}
	barrier(nil)
	if on {
		mu := &stream.Mutation{StartBackfill: map[stream.FragmentKey]bool{}}
		for p := range ports {
			mu.StartBackfill[stream.FragmentKey{Fragment: plan.FragmentID(p)}] = true
		}
		barrier(mu)
		for _, p := range progress {
			for p.Finished.Load() == 0 {
				time.Sleep(20 * time.Millisecond)
				barrier(nil)
			}
		}
	}
	for _, a := range actors {
		a.in.Close(errBench)
		<-a.done
	}
	return out
}
