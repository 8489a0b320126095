package exec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// Changes of many keys, in memory and in files: each key comes once, in order, as the
// row it had before the first change and the row it has after the last one.
func TestChangeSort(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		s := newChangeSort(&Env{SpillDir: dir, sortBudget: []int64{200, 2000, 1 << 20}[r.IntN(3)]})
		type state struct{ was, now string }
		model := map[string]state{}
		for i := range r.IntN(3000) {
			key := strings.Repeat("prefix", r.IntN(2)) + fmt.Sprint(r.IntN(500))
			at, ok := model[key]
			if !ok {
				if at.was = ""; r.IntN(2) == 0 {
					at.was = fmt.Sprint("old", i)
				}
				at.now = at.was
			}
			op, val := chunk.Delete, at.now
			if at.now == "" {
				op, val = chunk.Insert, fmt.Sprint("new", i)
			}
			if at.now = ""; op == chunk.Insert {
				at.now = val
			}
			model[key] = at
			if _, err := s.add(op, []byte(key), []byte(val)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Fatalf("%d files have a name", len(files))
		}
		for _, key := range slices.Sorted(maps.Keys(model)) {
			f, ok, err := s.next()
			if err != nil || !ok {
				t.Fatalf("seed %d, key %q: %v, %v", seed, key, ok, err)
			}
			if want := model[key]; string(f.key) != key || string(f.was) != want.was || string(f.now) != want.now {
				t.Fatalf("seed %d: got %q: %q, %q; want %q: %+v", seed, f.key, f.was, f.now, key, want)
			}
		}
		if _, ok, err := s.next(); ok || err != nil {
			t.Fatal("more keys than there are")
		}
		s.close()
	}
}

// A key that is inserted or deleted twice on end is an error.
func TestChangeSortDouble(t *testing.T) {
	for _, op := range []chunk.Op{chunk.Insert, chunk.Delete} {
		s := newChangeSort(&Env{})
		for range 2 {
			s.add(op, []byte("k"), []byte("v"))
		}
		s.start()
		if _, _, err := s.next(); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Fatalf("error %v", err)
		}
	}
}

// What is wrong with a locality provider's input is found when it is sorted, and named.
func TestLocalityProviderInconsistent(t *testing.T) {
	for _, tc := range []struct{ name, first, later, want string }{
		{"double insert", "+ 1 5 a 1\n+ 1 5 a 2", "", "inserted twice"},
		{"delete of nothing", "- 1 5 a 1", "", "was not there"},
		{"late double insert", "+ 1 5 a 1", "+ 1 5 a 2", "inserted and was there"},
		{"late delete of nothing", "+ 1 5 a 1", "- 2 5 a 2", "was not there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 1, func(b *bench) { b.buffer = true; b.limit.Set(stream.Paused) })
			x := b.start(b.node(), 1, func(e *Env) {
				e.Job, e.Fragment, e.Clock, e.Limiter = backfillKey.Job, backfillKey.Fragment, b.clock, b.limit
			})
			b.barrier(nil)
			parse := func(s string) *chunk.Chunk { return chunk.ParseTyped(b.out.Types(), s) }
			x.send(0, parse(tc.first))
			b.barrier(startBackfill())
			if tc.later != "" {
				x.send(0, parse(tc.later))
				b.barrier(nil)
			}
			b.epoch++
			b.limit.Set(stream.Unlimited)
			x.in.Send(x.ports[0], stream.Message{Barrier: &stream.Barrier{Epoch: b.epoch}})
			err := <-x.ended
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "state table") {
				t.Fatalf("error %v", err)
			}
			b.runs = slices.DeleteFunc(b.runs, func(y *run) bool { return y == x })
		})
	}
}

// Actors that are stopped at a barrier, while they buffer, drain and after, and others
// that go on with other vnodes: nothing is lost, nothing comes twice (A4.12).
func TestLocalityProviderHandOver(t *testing.T) {
	for seed := range uint64(8) {
		b := newBench(t, seed, func(b *bench) {
			b.buffer, b.size, b.sorts, b.pace = true, 4, 500, &stream.Pace{}
			b.pace.SetLimit(10)
			b.split(2)
		})
		hand := func() {
			b.split(1 + b.rnd.IntN(4))
			b.handOff()
			b.startFills()
			b.tick(nil)
		}
		b.startFills()
		b.tick(nil)
		for range 5 {
			for range 3 {
				b.change(30)
			}
			b.tick(nil)
			hand()
		}
		if n := b.delivered(); n > 0 {
			t.Fatalf("%d rows came while it buffers", n)
		}
		b.tick(startBackfill())
		for range 15 {
			b.change(8)
			b.tick(nil)
			hand()
		}
		b.pace.SetLimit(0)
		for range 5 {
			b.change(8)
			b.tick(nil)
			hand()
		}
		b.drain()
		b.got.check(t, b.want(), "seed %d", seed)
		hand()
		b.change(20)
		b.tick(nil)
		b.got.check(t, b.want(), "seed %d, after the end", seed)
	}
}

// handOff ends the backfill's actors at a barrier that has committed.
func (b *bench) handOff() {
	b.table.outs = nil
	for _, x := range b.fills {
		x.cancel()
		if err := x.fails(); err != nil {
			b.t.Fatal(err)
		}
	}
}

// A vnode's log is of a few entries, whatever its rows, and they go when it is delivered.
func TestLocalityProviderLog(t *testing.T) {
	b := newBench(t, 3, func(b *bench) { b.buffer = true })
	b.startFills()
	b.tick(nil)
	b.fill(600)
	b.tick(nil)
	if n := b.store.Rows(203); n == 0 || n > 2*vnodes {
		t.Fatalf("%d blocks", n)
	}
	b.tick(startBackfill())
	b.drain()
	b.tick(nil)
	if n := b.store.Rows(203); n != 0 {
		t.Fatalf("%d blocks at the end", n)
	}
}

// sortRig is a locality provider that is through.
func sortRig(t *testing.T, threshold int64) (*bench, *run) {
	b := newBench(t, 1, func(b *bench) {
		b.buffer, b.size, b.sorts, b.tuning = true, 16, 400, stream.NewTuning()
		b.tuning.SortThreshold.Store(threshold)
	})
	b.startFills()
	b.tick(nil)
	b.tick(startBackfill())
	b.drain()
	b.tick(nil)
	return b, b.fills[0]
}

// Of an epoch with many changes what goes past the threshold is sorted and folded, and
// comes before the barrier, watermarks after it; a smaller epoch passes as it comes (B3.4).
func TestSortBuffer(t *testing.T) {
	b, x := sortRig(t, 100)
	parts := 0
	for _, n := range []int{50, 400, 90, 300} {
		for range n / 10 {
			b.change(10)
		}
		b.barrier(nil)
		out := x.take()
		rows, runs, last, tail := 0, 0, "", n > 100
		for _, c := range out {
			for i := range c.Len() {
				if rows++; rows <= 200 || !tail {
					continue
				}
				v := c.Row(i)[1]
				k := "NULL"
				if !v.IsNull() {
					k = fmt.Sprint(chunk.VnodeOf(c.Row(i), []int{1}, vnodes), v.Int())
				}
				if k != last {
					runs, last = runs+1, k
				}
			}
		}
		b.got.apply(t, b.out, out)
		b.w.mark()
		b.got.check(t, b.want(), "%d changes", n)
		if tail {
			if parts++; runs > 25 { // of 20 values and NULL
				t.Fatalf("%d runs of values in %d rows", runs, rows)
			}
		}
	}
	b.tuning.SortBuffer.Store(false) // it can be changed at run time
	b.change(400)
	b.barrier(nil)
	b.got.apply(t, b.out, x.take())
	b.got.check(t, b.want(), "switched off")
}

// An epoch's inserts and deletes of one key come to nothing, and its updates to one.
func TestSortBufferFolds(t *testing.T) {
	b, _ := sortRig(t, 0)
	row := func(k, v int64) types.Row {
		return types.Row{types.NewInt(k), types.NewInt(1), types.NewString("x"), types.NewDecimal(types.NewDecimalInt(v))}
	}
	send := func(rows ...any) {
		c := chunk.NewBuilder(b.out.Types(), len(rows)+1)
		for i := 0; i < len(rows); i += 2 {
			c.AppendRow(rows[i].(chunk.Op), rows[i+1].(types.Row))
		}
		b.table.send(0, c.Take())
	}
	const ins, del = chunk.Insert, chunk.Delete
	send(ins, row(1, 1), ins, row(2, 2))
	b.barrier(nil)
	b.fills[0].take()
	send(ins, row(3, 1), del, row(3, 1), del, row(1, 1), ins, row(1, 5), del, row(1, 5), ins, row(1, 7), del, row(2, 2), ins, row(2, 2), ins, row(4, 4))
	b.barrier(nil)
	var got []string
	for _, c := range b.fills[0].take() {
		for i := range c.Len() {
			got = append(got, fmt.Sprint(c.Op(i), " ", text(c.Row(i), b.out)))
		}
	}
	want := []string{"1 1|1|x|1", "0 1|1|x|7", "0 4|1|x|4"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// A watermark waits with what it speaks of.
func TestSortBufferWatermarks(t *testing.T) {
	s := schemaOf(types.Int8)
	d := storage.Desc{ID: 1, Tag: storage.TagState, Schema: s, Key: []int{0}, Vnodes: 1}
	codec := storage.NewCodec(d)
	tuning := stream.NewTuning()
	tuning.SortThreshold.Store(1)
	x := &sortBuffer{env: &Env{Tuning: tuning}, codec: codec, read: codec.NewDecoder([]int{0}), types: s.Types()}
	var got []string
	emit := func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			for i := range m.Chunk.Len() {
				got = append(got, fmt.Sprint(m.Chunk.Row(i)[0].Int()))
			}
		case m.Watermark != nil:
			got = append(got, fmt.Sprint("w", m.Watermark.Val.Int()))
		default:
			got = append(got, "b")
		}
		return nil
	}
	for _, m := range []stream.Message{
		{Watermark: &stream.Watermark{Val: types.NewInt(0)}}, {Chunk: chunk.Parse("I\n+ 9")}, {Chunk: chunk.Parse("I\n+ 8\n+ 3")}, {Watermark: &stream.Watermark{Val: types.NewInt(1)}},
		{Chunk: chunk.Parse("I\n+ 5")}, {Watermark: &stream.Watermark{Val: types.NewInt(2)}}, {Barrier: &stream.Barrier{}}, {Watermark: &stream.Watermark{Val: types.NewInt(3)}},
	} {
		if err := x.pass(m, emit); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"w0", "9", "3", "5", "8", "w2", "b", "w3"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// An epoch that is lost in a crash comes again, and nothing of what was held is left (B3.4).
func TestSortBufferCrash(t *testing.T) {
	b, _ := sortRig(t, 10)
	for range 5 {
		for range 10 {
			b.change(10)
		}
		b.crashed()
		b.tick(nil)
		b.tick(nil)
		for range 10 {
			b.change(10)
		}
		b.tick(nil)
		b.got.check(t, b.want(), "after a crash")
	}
}
