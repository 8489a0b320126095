package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// delivered is the rows that have come out, over all restarts.
func (b *bench) delivered() (n int64) {
	for _, k := range b.got.bag {
		n += int64(k)
	}
	return n
}

// Between two barriers at most as many rows come as the pace has, one at the least; the
// stream's changes are not counted.
func TestBackfillPace(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		for _, limit := range []int{1, 5, 40} {
			b := newBench(t, 11, func(b *bench) { b.buffer = buffer; b.size = 16; b.pace = &stream.Pace{} })
			b.pace.SetLimit(limit)
			b.begin(300)
			if buffer {
				b.tick(startBackfill())
			}
			before := b.delivered()
			for range 5 {
				b.tick(nil)
			}
			n := b.delivered() - before
			if n > int64(5*limit) || n < 5 {
				t.Fatalf("buffer=%v: %d rows in 5 intervals at %d an interval", buffer, n, limit)
			}
			b.pace.SetLimit(0)
			b.drain()
			b.got.check(t, b.want(), "rows")
		}
	}
}

// A spot names the executor that has a message, down to where it waits for room.
func TestSpot(t *testing.T) {
	r := newRig(t)
	spot := &stream.Spot{}
	n := aggNode(t, []int{1}, false)
	x := r.start(n, 1, func(e *Env) { e.Spot = spot })
	r.barrier(nil)
	if p, vnode, ok := spot.At(); !ok || p.Executor != "StreamMerge" && p.Executor != "StreamHashAgg" && p.Executor != "Dispatch" || vnode != -1 {
		t.Fatalf("at %v, vnode %d", p, vnode)
	}
	seen := map[stream.Place]bool{}
	leaf := &plan.StreamFilter{}
	leaf.In = []plan.Stream{mergeOf(0, schemaOf(types.Int8), 0)}
	steps := &located{step(func(emit stream.Emit) error { return emit(stream.Message{}) }), spot, place(leaf), place(n)}
	note := func() {
		p, _, _ := spot.At()
		seen[p] = true
	}
	if err := steps.Run(t.Context(), func(stream.Message) error { note(); return nil }); err != nil {
		t.Fatal(err)
	}
	if note(); !seen[*place(n)] || !seen[*place(leaf)] || len(seen) != 2 {
		t.Fatalf("seen %v", seen)
	}
	x.cancel()
}

type step func(emit stream.Emit) error

func (s step) Run(_ context.Context, emit stream.Emit) error { return s(emit) }

// A scan's spot names the table and the vnode.
func TestSpotOfScan(t *testing.T) {
	spot := &stream.Spot{}
	b := newBench(t, 12, func(b *bench) { b.spot = spot; b.limit.Set(stream.Unlimited) })
	b.fill(50)
	b.startFills()
	b.waitFor(func() bool {
		p, vnode, ok := spot.At()
		return ok && p.Executor == "StreamTableScan" && (p.Table == "t" && vnode >= -1)
	})
}

// waitFor ends epochs until something is so.
func (b *bench) waitFor(ok func() bool) {
	b.t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		b.tick(nil)
	}
	b.t.Fatal("it did not come")
}

// Vnodes take turns: none has come far while another has not begun (A4.6).
func TestBackfillInterleaves(t *testing.T) {
	b := newBench(t, 13, func(b *bench) { b.size = 2; b.pace = &stream.Pace{} })
	b.pace.SetLimit(16)
	b.fill(600)
	total := map[uint16]int{}
	for _, r := range b.w.rows {
		total[chunk.VnodeOf(r, []int{0}, vnodes)]++
	}
	b.startFills()
	b.waitFor(func() bool { return b.delivered() >= 7*16+2 }) // a turn of each vnode
	begun := map[uint16]int{}
	for _, x := range b.w.rows {
		if b.got.bag[text(x.Project(b.cols), b.out)] > 0 {
			begun[chunk.VnodeOf(x, []int{0}, vnodes)]++
		}
	}
	if len(begun) < len(total) {
		t.Fatalf("after %d rows only %d of %d vnodes have begun", b.delivered(), len(begun), len(total))
	}
	b.pace.SetLimit(0)
	b.drain()
	b.got.check(t, b.want(), "rows")
}

// What is done is, at every barrier and over restarts, the number of rows that have come
// out, whatever changes while they do; at the end it is all there are (A4.7).
func TestBackfillProgressExact(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		b := newBench(t, 14, func(b *bench) { b.buffer = buffer; b.size = 4; b.pace = &stream.Pace{} })
		b.pace.SetLimit(4)
		b.begin(300)
		b.tick(startBackfill())
		for i := range 12 {
			b.change(10)
			b.throttle(stream.Unlimited)
			b.change(10)
			b.throttle(stream.Paused) // it does not run ahead of the barrier now
			if n, want := b.prog.Done.Load(), b.delivered(); n != want {
				t.Fatalf("buffer=%v: %d rows done, %d came", buffer, n, want)
			}
			if i == 6 {
				b.crashed()
				b.tick(nil)
				b.tick(nil)
			}
		}
		b.pace.SetLimit(0)
		b.throttle(stream.Unlimited)
		b.drain()
		if done, total := b.prog.Done.Load(), b.prog.Total.Load(); done != total || done != int64(len(b.w.rows)) {
			t.Fatalf("buffer=%v: %d of %d rows at the end, %d there are", buffer, done, total, len(b.w.rows))
		}
	}
}

// A limit that is changed as a barrier is sent is kept from that barrier on (A4.8).
func TestBackfillThrottleAtBarrier(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		b := newBench(t, 15, func(b *bench) { b.buffer = buffer; b.size = 8; b.pace = &stream.Pace{} })
		b.pace.SetLimit(8)
		b.begin(300)
		b.tick(startBackfill())
		b.tick(nil)
		b.throttle(stream.Paused)
		at := b.delivered()
		for range 5 {
			b.touch(3)
			b.tick(nil)
		}
		if n := b.delivered(); n != at || at == 0 {
			t.Fatalf("buffer=%v: %d rows before rate 0 and %d after", buffer, at, n)
		}
		b.throttle(stream.Unlimited)
		b.pace.SetLimit(0)
		b.drain()
		b.got.check(t, b.want(), "rows")
	}
}

// With a gap in the pace an actor's turns lie so far apart, even where a barrier comes.
func TestBackfillGap(t *testing.T) {
	b := newBench(t, 16, func(b *bench) { b.size = 4; b.pace = &stream.Pace{} })
	b.fill(200)
	b.pace.SetGap(time.Second)
	b.startFills()
	for range 5 {
		b.tick(nil)
	}
	for n := range int64(4) {
		if done := b.prog.Done.Load(); done != n*4 {
			t.Fatalf("%d rows after %d seconds", done, n)
		}
		b.clock.move(time.Second)
		for range 3 {
			b.tick(nil)
		}
	}
	b.pace.SetGap(0)
	b.drain()
	b.got.check(t, b.want(), "rows")
	if b.prog.Through.Load() != 1 {
		t.Fatalf("%d actors are through", b.prog.Through.Load())
	}
}

// A fakeRows is a table whose vnodes are scripts of keys, with and without rows.
type fakeRows struct {
	keys  func(vnode uint16, i int) (storage.KV, bool)
	vnode uint16
	i     int
	seeks int
}

func (f *fakeRows) seek(vnode uint16, after []byte) (bool, error) {
	f.vnode, f.seeks, f.i = vnode, f.seeks+1, 0
	if after != nil {
		f.i = int(binary.BigEndian.Uint32(after[2:])) + 1
	}
	return true, nil
}

func (f *fakeRows) next() (storage.KV, bool, error) {
	kv, ok := f.keys(f.vnode, f.i)
	kv.Key = binary.BigEndian.AppendUint32(storage.VnodePrefix(f.vnode), uint32(f.i))
	f.i++
	return kv, ok, nil
}

func (f *fakeRows) finish(uint16) error      { return nil }
func (f *fakeRows) seal(storage.Epoch) error { return nil }
func (f *fakeRows) close()                   {}

// scanOf makes a scan of a table of one int8, which is no key, over a script.
func scanOf(t *testing.T, b *bench, f *fakeRows) *backfill {
	rel := &catalog.Relation{ID: 100, Name: "t", Kind: catalog.Table, Vnodes: vnodes,
		Columns: []catalog.Column{{Name: "a", Type: types.Numeric}}, Key: []catalog.KeyColumn{{Col: 0}}, Dist: []int{0}}
	n := &plan.StreamTableScan{Table: rel, Cols: []int{0}, Progress: &plan.TableDesc{ID: 201}}
	n.Schema = rel.Fields()
	x, err := newArrangementBackfill(&Env{Store: b.store, Vnodes: storage.Full(vnodes), VnodeCount: vnodes, Clock: b.clock, ChunkSize: 4}, n)
	if err != nil {
		t.Fatal(err)
	}
	x.table = f
	return x
}

func numericRow(codec *storage.Codec) []byte {
	return codec.AppendValue(nil, []chunk.Column{chunk.NewVec(types.Numeric, []types.Decimal{types.NewDecimalInt(1)}, nil)}, 0)
}

// A read that meets no row comes back nevertheless, and goes on where it was: the position
// is the key last seen (A4.5, B7.7).
func TestBackfillSeesKeysWithoutRows(t *testing.T) {
	b := newBench(t, 17, nil)
	end := 3*maxSeen + 5
	x := scanOf(t, b, &fakeRows{keys: func(v uint16, i int) (storage.KV, bool) { return storage.KV{}, v == 0 && i < end }})
	for k := 1; k <= 3; k++ {
		c, done, err := x.readRows(4)
		if err != nil || done || c.N > 0 {
			t.Fatalf("%d rows, end %v, %v", c.N, done, err)
		}
		if want := binary.BigEndian.AppendUint32(storage.VnodePrefix(0), uint32(k*maxSeen-1)); !bytes.Equal(x.pos.at[0].key, want) || !x.pos.dirty[0] {
			t.Fatalf("the position is %x after %d keys", x.pos.at[0].key, k*maxSeen)
		}
	}
	if _, done, err := x.readRows(4); err != nil || !done {
		t.Fatalf("end %v, %v", done, err)
	}
}

// A vnode that is slow to read gives its turn away; one that is not is read on without a
// seek, a few chunks at a time (A4.6).
func TestBackfillTurns(t *testing.T) {
	b := newBench(t, 18, nil)
	var x *backfill
	f := &fakeRows{}
	f.keys = func(v uint16, i int) (storage.KV, bool) {
		if v == 3 {
			b.clock.move(turnTime)
		}
		return storage.KV{Val: numericRow(x.codec)}, i < 1000
	}
	x = scanOf(t, b, f)
	chunks := map[uint16]int{}
	for range 8 * turnChunks {
		c, _, err := x.readRows(4)
		if err != nil || c.N != 4 {
			t.Fatal(c.N, err)
		}
		chunks[f.vnode]++
	}
	if chunks[3] != 1 && chunks[3] != 2 || chunks[0] < turnChunks || chunks[7] != turnChunks {
		t.Fatalf("chunks a vnode: %v", chunks)
	}
	if f.seeks > 10 {
		t.Fatalf("%d seeks for %d chunks", f.seeks, 8*turnChunks)
	}
}

// Rows that were written and not committed when the scan came by are neither lost nor
// delivered twice, with commits far apart and keys before, in and behind what was there (B8, replication).
func TestBackfillUncommitted(t *testing.T) {
	b := newBench(t, 19, func(b *bench) { b.size = 4; b.pace = &stream.Pace{} })
	row := func(k int64) types.Row {
		return types.Row{types.NewInt(k), types.NewInt(k), types.NewString("x"), types.NewDecimal(types.NewDecimalInt(k))}
	}
	insert := func(from, to int64) {
		var rows []types.Row
		for k := from; k < to; k++ {
			rows = append(rows, row(k))
		}
		b.w.rows = append(b.w.rows, rows...)
		b.table.send(0, chunkOf(b.w.schema, false, rows))
	}
	insert(1, 101)
	insert(201, 301)
	b.tick(nil)
	b.pace.SetLimit(6)
	b.startFills()
	b.tick(nil)
	b.waitFor(func() bool { return b.delivered() > 0 })
	b.every = 10
	for k := int64(101); k < 201; k += 5 {
		insert(k, k+5)
		b.tick(nil)
	}
	b.pace.SetLimit(0)
	b.every = 0
	b.drain()
	b.got.check(t, b.want(), "rows")
}

// queued gives a scan of an endless table n chunks of the stream, all there at once with the
// barrier behind them, and returns the rows that the scan delivers until that has passed.
func queued(t *testing.T, n int) (rows int) {
	b := newBench(t, 20, nil)
	var x *backfill
	x = scanOf(t, b, &fakeRows{keys: func(uint16, int) (storage.KV, bool) {
		return storage.KV{Val: numericRow(x.codec)}, true
	}})
	x.in = stream.NewInbox()
	x.in.Open(0)
	for range n {
		x.in.Send(0, stream.Message{Chunk: chunk.Parse("D\n+ 1\n+ 2\n+ 3\n+ 4")})
	}
	x.in.Send(0, stream.Message{Barrier: &stream.Barrier{Epoch: 1 << 20}})
	for done := false; !done; {
		if err := x.step(t.Context(), func(m stream.Message) error {
			if m.Chunk != nil && m.Chunk.Ops == nil { // the scan's
				rows += m.Chunk.N
			}
			done = m.Barrier != nil
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// A stream that never pauses leaves the scan its share: a row for each of its own (A4.4, B7.6).
func TestBackfillShare(t *testing.T) {
	if n := queued(t, 6); n < 20 {
		t.Fatalf("%d rows beside 24 of the stream", n)
	}
}

// A barrier that comes before the scan's turn brings a chunk, not a row (A4.4).
func TestBackfillFloor(t *testing.T) {
	if n := queued(t, 0); n != 4 {
		t.Fatalf("%d rows", n)
	}
}
