package exec

import (
	"context"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
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
			b.tick(throttle(stream.Unlimited))
			b.change(10)
			b.tick(throttle(stream.Paused)) // it does not run ahead of the barrier now
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
		b.tick(throttle(stream.Unlimited))
		b.drain()
		if done, total := b.prog.Done.Load(), b.prog.Total.Load(); done != total || done != int64(len(b.w.rows)) {
			t.Fatalf("buffer=%v: %d of %d rows at the end, %d there are", buffer, done, total, len(b.w.rows))
		}
	}
}

// A limit that is changed counts from the barrier that brings it (A4.8).
func TestBackfillThrottleAtBarrier(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		b := newBench(t, 15, func(b *bench) { b.buffer = buffer; b.size = 8; b.pace = &stream.Pace{} })
		b.pace.SetLimit(8)
		b.begin(300)
		b.tick(startBackfill())
		b.tick(nil)
		b.tick(&stream.Mutation{Throttle: map[catalog.ID]int64{backfillKey.Job: 0}})
		at := b.delivered()
		for range 5 {
			b.touch(3)
			b.tick(nil)
		}
		if n := b.delivered(); n != at || at == 0 {
			t.Fatalf("buffer=%v: %d rows before rate 0 and %d after", buffer, at, n)
		}
		b.tick(throttle(stream.Unlimited))
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
