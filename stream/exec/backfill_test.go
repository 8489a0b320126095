package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A handClock stands still until it is moved.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func newHandClock() *handClock { return &handClock{now: time.Unix(1_700_000_000, 0)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A bench is a table and a backfill of it by some actors.
type bench struct {
	*rig
	rnd     *rand.Rand
	rel     *catalog.Relation
	cols    []int // that the backfill reads
	out     types.Schema
	buffer  bool // a locality provider over the table's changes
	size    int
	clock   *handClock
	limit   *Limiter
	pace    *stream.Pace
	spot    *stream.Spot
	tuning  *stream.Tuning
	sorts   int64 // bytes that a sort holds in memory; 0: as usual
	prog    *stream.Progress
	parts   []storage.VnodeSet
	waiting bool
	paused  bool

	table *run
	fills []*run
	w     *world
	used  map[string]bool
	got   *keyed
}

var backfillKey = stream.FragmentKey{Job: 7, Fragment: 3}

func newBench(t testing.TB, seed uint64, mod func(*bench)) *bench {
	rel := &catalog.Relation{
		ID: 100, Name: "t", Kind: catalog.Table, Conflict: catalog.ConflictNone, Vnodes: vnodes,
		Columns: []catalog.Column{{Name: "a", Type: types.Int8}, {Name: "v", Type: types.Int8}, {Name: "b", Type: types.Text}, {Name: "w", Type: types.Numeric}},
		Key:     []catalog.KeyColumn{{Col: 0}, {Col: 2, Desc: true}}, Dist: []int{0},
	}
	b := &bench{rig: newRig(t), rnd: rand.New(rand.NewPCG(seed, 3)), rel: rel, cols: []int{2, 3, 0}, size: 16, clock: newHandClock(), got: newKeyed(0, 2), used: map[string]bool{}}
	b.parts = []storage.VnodeSet{storage.Full(vnodes)}
	b.limit = NewLimiter(stream.Unlimited, b.clock)
	b.w = &world{schema: rel.Fields(), rand: b.rnd}
	if mod != nil {
		mod(b)
	}
	b.out = rel.Fields().Project(b.cols)
	if b.buffer {
		b.cols, b.out = []int{0, 1, 2, 3}, rel.Fields()
	}
	if !b.buffer {
		b.got.key = []int{2, 0}
	} else {
		b.got.key = []int{0, 1, 2}
	}
	b.startTable()
	return b
}

func logTable(id catalog.ID) *plan.TableDesc {
	return &plan.TableDesc{ID: id, Name: "log", Key: []int{0, 1, 2}, Dist: []int{0}, Schema: types.Schema{
		{Name: "vnode", Type: types.Int2}, {Name: "generation", Type: types.Int8}, {Name: "number", Type: types.Int8}, {Name: "block", Type: types.Bytea}}}
}

func (b *bench) split(n int) {
	b.parts = make([]storage.VnodeSet, n)
	for v := range vnodes {
		b.parts[b.rnd.IntN(n)].Add(uint16(v))
	}
}

func (b *bench) startTable() {
	n := &plan.StreamMaterialize{Rel: b.rel}
	n.In = []plan.Stream{mergeOf(0, b.rel.Fields(), 0, 2)}
	b.table = b.start(n, 1, nil)
}

// node is the backfill's plan.
func (b *bench) node() plan.Stream {
	progress := &plan.TableDesc{ID: 201, Name: "progress"}
	if !b.buffer {
		n := &plan.StreamTableScan{Table: b.rel, Cols: b.cols, Progress: progress}
		n.Schema = b.out
		return n
	}
	n := &plan.StreamLocalityProvider{Cols: []int{1}, Progress: progress}
	n.Buffer = stateTable(202, b.out, upTo(4), []int{1, 0, 2}, []int{1})
	n.Log = logTable(203)
	n.Schema = b.out
	n.In = []plan.Stream{mergeOf(0, b.out, 0, 2)}
	return n
}

// startFills starts the backfill's actors; they begin with the next barrier.
func (b *bench) startFills() {
	b.prog = &stream.Progress{Actors: int32(len(b.parts))}
	d := &stream.Dispatcher{Cols: b.cols, Dist: plan.Dist{Kind: plan.HashShard, Cols: []int{2}}, Owner: make([]uint16, vnodes)}
	if b.buffer {
		d.Dist.Cols = []int{1}
	}
	b.fills = nil
	for i, part := range b.parts {
		x := b.start(b.node(), 1, func(e *Env) {
			e.Job, e.Fragment, e.Single = backfillKey.Job, backfillKey.Fragment, len(b.parts) == 1
			e.Vnodes, e.ChunkSize, e.Clock, e.Limiter, e.Progress = part, b.size, b.clock, b.limit, b.prog
			e.Waiting, e.GlobalPause, e.Pace, e.Spot = b.waiting, b.paused, b.pace, b.spot
			e.Tuning, e.sortBudget, e.SpillDir = b.tuning, b.sorts, b.t.TempDir()
		})
		d.To = append(d.To, stream.Port{In: x.in, Channel: x.ports[0]})
		x.ports[0] = -1
		for v := range part.All() {
			d.Owner[v] = uint16(i)
		}
		b.fills = append(b.fills, x)
	}
	b.table.outs = []*stream.Dispatcher{d}
}

// fresh makes a row with a key that is not in use.
func (b *bench) fresh(*rand.Rand) types.Row {
	for {
		row := types.Row{types.NewInt(b.rnd.Int64N(300)), maybeNull(b.rnd, types.NewInt(b.rnd.Int64N(20))),
			maybeNull(b.rnd, types.NewString(string(rune('a'+b.rnd.IntN(20))))), types.NewDecimal(types.NewDecimalInt(b.rnd.Int64N(50)))}
		taken := slices.ContainsFunc(b.w.rows, func(o types.Row) bool {
			return types.Equal(o[0], row[0]) && types.Equal(o[2], row[2])
		})
		if !taken {
			return row
		}
	}
}

// change makes n random changes to the table; updates keep or change the key.
func (b *bench) change(n int) {
	c := chunk.NewBuilder(b.w.schema.Types(), 3*n+1)
	for range n {
		k := b.rnd.IntN(10)
		if k < 5 || len(b.w.rows) == 0 {
			row := b.fresh(nil)
			b.w.rows = append(b.w.rows, row)
			c.AppendRow(chunk.Insert, row)
			continue
		}
		i := b.rnd.IntN(len(b.w.rows))
		c.AppendRow(chunk.Delete, b.w.rows[i])
		if k < 8 {
			next := b.fresh(nil)
			if k < 7 {
				next[0], next[2] = b.w.rows[i][0], b.w.rows[i][2]
			}
			b.w.rows[i] = next
			c.AppendRow(chunk.Insert, next)
			continue
		}
		b.w.rows = slices.Delete(b.w.rows, i, i+1)
	}
	b.table.send(0, c.Take())
}

// touch updates n random rows, which keep their keys.
func (b *bench) touch(n int) {
	c := chunk.NewBuilder(b.w.schema.Types(), 2*n+1)
	for range n {
		i := b.rnd.IntN(len(b.w.rows))
		c.AppendRow(chunk.Delete, b.w.rows[i])
		b.w.rows[i] = slices.Clone(b.w.rows[i])
		b.w.rows[i][3] = types.NewDecimal(types.NewDecimalInt(b.rnd.Int64N(50)))
		c.AppendRow(chunk.Insert, b.w.rows[i])
	}
	b.table.send(0, c.Take())
}

func (b *bench) want() bag {
	rows := make([]types.Row, len(b.w.rows))
	for i, r := range b.w.rows {
		rows[i] = r.Project(b.cols)
	}
	return bagOf(b.out, rows)
}

// tick ends an epoch and checks that nothing was delivered that is not in the table.
func (b *bench) tick(mu *stream.Mutation) {
	b.t.Helper()
	b.barrier(mu)
	for _, x := range b.fills {
		b.got.apply(b.t, b.out, x.take())
	}
	b.w.mark()
	want := b.want()
	for k, n := range b.got.bag {
		if n > want[k] {
			b.t.Fatalf("epoch %d: row %s delivered and not in the table", b.epoch, k)
		}
	}
}

func (b *bench) finished() bool { return b.prog.Finished.Load() == b.prog.Actors }

// crashed restarts everything; what was not committed is lost.
func (b *bench) crashed() {
	b.crash()
	b.w.lose()
	b.startTable()
	b.startFills()
}

func startBackfill() *stream.Mutation {
	return &stream.Mutation{StartBackfill: map[stream.FragmentKey]bool{backfillKey: true}}
}

// throttle changes the limit as a barrier is sent.
func (b *bench) throttle(rate int64) {
	b.limit.Set(rate)
	b.tick(nil)
}

func (b *bench) fill(n int) {
	for n > 0 {
		b.change(min(n, 40))
		n -= 40
	}
	b.tick(nil)
}

// begin fills the table and starts the backfill: a locality provider gets all rows from its input.
func (b *bench) begin(n int) {
	if b.buffer {
		b.startFills()
		b.tick(nil)
	}
	b.fill(n)
	if !b.buffer {
		b.startFills()
		b.tick(nil)
	}
}

// A table under change, a backfill that is throttled, paused, restarted with other
// actors and killed: at the end, and ever after, it has delivered the table.
func TestBackfillRandom(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("buffer=%v/%d", buffer, seed), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, seed, func(b *bench) {
					b.buffer = buffer
					b.size = []int{1, 3, 16, 256}[b.rnd.IntN(4)]
					b.waiting = b.rnd.IntN(3) == 0
					b.sorts = []int64{0, 200, 3000}[b.rnd.IntN(3)]
					b.tuning = stream.NewTuning()
					b.tuning.SortThreshold.Store(int64(b.rnd.IntN(30)))
					if b.rnd.IntN(2) == 0 {
						b.split(1 + b.rnd.IntN(3))
					}
					b.limit.Set([]int64{stream.Unlimited, 50, 300, 0}[b.rnd.IntN(4)])
				})
				b.begin(b.rnd.IntN(500))
				for step := 0; step < 60 || !b.finished() && step < 4000; step++ {
					quiet := step > 60
					for range b.rnd.IntN(4) {
						if !quiet || b.rnd.IntN(10) == 0 {
							b.change(1 + b.rnd.IntN(20))
						}
					}
					b.clock.move(time.Duration(b.rnd.IntN(100)) * time.Millisecond)
					var mu *stream.Mutation
					switch k := b.rnd.IntN(20); {
					case step == 60:
						b.limit.Set(2000)
						mu = &stream.Mutation{Resume: true, StartBackfill: map[stream.FragmentKey]bool{backfillKey: true}}
						b.waiting = false
					case quiet:
					case k == 0:
						b.limit.Set([]int64{stream.Unlimited, 20, 100, 0}[b.rnd.IntN(4)])
					case k == 1:
						mu = &stream.Mutation{Pause: true}
					case k == 2:
						mu = &stream.Mutation{Resume: true}
					case k == 3 && step > 10:
						mu, b.waiting = startBackfill(), false
					case k == 4:
						if b.rnd.IntN(2) == 0 {
							b.split(1 + b.rnd.IntN(3))
						}
						b.crashed()
						if b.buffer && !b.waiting {
							mu = startBackfill() // who orders backfills says it again after a restart
						}
					}
					b.tick(mu)
				}
				if !b.finished() {
					t.Fatalf("not finished: %d of %d rows, phase %v", b.prog.Done.Load(), b.prog.Total.Load(), stream.Phase(b.prog.Phase.Load()))
				}
				for range 10 {
					b.got.check(t, b.want(), "after the backfill")
					b.change(10)
					if b.rnd.IntN(4) == 0 {
						b.crashed()
						b.tick(nil)
						b.tick(nil)
						if !b.finished() {
							t.Fatal("a restart after the end is not finished at once")
						}
					}
					b.tick(nil)
				}
				if ph := stream.Phase(b.prog.Phase.Load()); ph != stream.PhaseDone {
					t.Fatalf("phase %v at the end", ph)
				}
				if b.buffer {
					for range 3 {
						b.tick(nil)
						b.store.Idle(context.Background())
					}
					if n := b.store.Rows(202); n != 0 {
						t.Fatalf("%d rows left in the buffer", n)
					}
					if n := b.store.Rows(203); n != 0 {
						t.Fatalf("%d blocks left in the log", n)
					}
				}
			})
		}
	}
}

// An end that is found by the read which a barrier forces loses none of the
// interval's changes (B7.1), of an empty table neither.
func TestBackfillEndAtForcedRead(t *testing.T) {
	for _, rows := range []int{0, 5, 16} {
		b := newBench(t, 1, func(b *bench) { b.limit.Set(stream.Paused) })
		b.fill(rows)
		b.startFills()
		b.throttle(stream.Paused)
		b.change(30)
		b.throttle(stream.Unlimited)
		// From here on everything is read by the barrier or before it; either way nothing is lost.
		b.change(30)
		b.tick(nil)
		b.change(30)
		b.tick(nil)
		b.drain()
		b.got.check(t, b.want(), "%d rows", rows)
	}
}

// Changes to a vnode that is through always pass, whatever its actor's other vnodes
// are at: here one vnode is done and one not started, as after rescaling (B7.2).
func TestBackfillCompletedVnodePasses(t *testing.T) {
	b := newBench(t, 2, func(b *bench) { b.limit.Set(stream.Unlimited) })
	b.fill(200)
	// One actor finishes vnode 0; then another owns all of them.
	one := storage.NewVnodeSet(vnodes)
	one.Add(0)
	b.parts = []storage.VnodeSet{one}
	b.startFills()
	b.table.outs = nil // only barriers matter to it
	b.fills[0].ports[0] = 0
	for range 4 {
		b.barrier(nil)
		b.got.apply(t, b.out, b.fills[0].take())
	}
	b.parts = []storage.VnodeSet{storage.Full(vnodes)}
	b.limit.Set(stream.Paused)
	b.crashed()
	b.tick(nil)
	before := b.got.String()
	// Changes while nothing may be read.
	b.change(100)
	b.tick(nil)
	if b.got.String() == before {
		t.Fatal("no change of the finished vnode passed")
	}
	want := bag{}
	for _, r := range b.w.rows {
		if chunk.VnodeOf(r, []int{0}, vnodes) == 0 {
			want[text(r.Project(b.cols), b.out)]++
		}
	}
	b.got.check(t, want, "vnode 0")
}

// At one row a second a barrier is not held up, and a second gives one row (B7.3).
func TestBackfillLowRate(t *testing.T) {
	b := newBench(t, 3, func(b *bench) { b.limit = NewLimiter(1, b.clock); b.limit.Allow(1) })
	b.fill(100)
	b.startFills()
	b.tick(nil)
	start := time.Now()
	for range 50 {
		b.tick(nil)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Fatalf("50 barriers took %v", d)
	}
	if n := b.prog.Done.Load(); n != 0 {
		t.Fatalf("%d rows in no time", n)
	}
	for s := range int64(5) {
		b.clock.move(time.Second)
		b.touch(50) // a busy stream
		b.tick(nil)
		b.tick(nil)
		if n := b.prog.Done.Load(); n != s+1 {
			t.Fatalf("%d rows after %d seconds", n, s+1)
		}
	}
}

// However busy the stream, each interval delivers at least a chunk of the table.
func TestBackfillNotStarved(t *testing.T) {
	b := newBench(t, 4, func(b *bench) { b.size = 8; b.paused = true })
	b.fill(400)
	b.startFills()
	b.tick(&stream.Mutation{Resume: true})
	for range 20 {
		before := b.prog.Done.Load()
		for range 20 {
			b.change(20)
		}
		b.tick(nil)
		if b.got.String() == b.want().String() {
			return // it is through
		}
		if n := b.prog.Done.Load() - before; n < 8 {
			t.Fatalf("%d rows in an interval", n)
		}
	}
}

// A range of deleted rows is got past, in memory and after a restart.
func TestBackfillTombstones(t *testing.T) {
	b := newBench(t, 5, func(b *bench) { b.size = 4; b.limit.Set(stream.Paused) })
	b.fill(600)
	keep := b.w.rows[:3]
	b.table.send(0, chunkOf(b.w.schema, true, b.w.rows[3:]))
	b.w.rows = keep
	b.tick(nil)
	b.startFills()
	b.tick(nil)
	b.throttle(stream.Unlimited)
	b.tick(nil)
	b.crashed()
	b.drain()
	b.got.check(t, b.want(), "rows")
}

// drain ends epochs until the backfill is through.
func (b *bench) drain() {
	b.t.Helper()
	for range 200 {
		if b.finished() {
			return
		}
		b.tick(nil)
	}
	b.t.Fatalf("not finished: %d of %d rows", b.prog.Done.Load(), b.prog.Total.Load())
}

// Progress counts rows, goes on after a kill and ends at what there was.
func TestBackfillProgress(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		b := newBench(t, 6, func(b *bench) { b.buffer = buffer; b.size = 10; b.limit = NewLimiter(100, b.clock) })
		if !buffer {
			b.fill(300)
		}
		b.startFills()
		b.tick(nil)
		if buffer {
			b.fill(300)
			if ph := stream.Phase(b.prog.Phase.Load()); ph != stream.PhaseBuffer {
				t.Fatalf("phase %v", ph)
			}
			b.tick(startBackfill())
		}
		total := int64(len(b.w.rows))
		for range 5 {
			b.clock.move(100 * time.Millisecond)
			b.tick(nil)
		}
		done := b.prog.Done.Load()
		if done < 40 || done > 60 || b.prog.Total.Load() != total {
			t.Fatalf("buffer=%v: %d of %d rows after half a second at 100 a second; %d there are", buffer, done, b.prog.Total.Load(), total)
		}
		b.crashed()
		b.tick(nil)
		b.tick(nil)
		b.tick(nil)
		kept := int64(0)
		for _, n := range b.got.bag {
			kept += int64(n)
		}
		if again := b.prog.Done.Load(); again < kept || again > kept+20 {
			t.Fatalf("buffer=%v: %d rows committed before the kill, %d done after", buffer, kept, again)
		}
		b.throttle(stream.Unlimited)
		b.drain()
		if n := b.prog.Done.Load(); n != total {
			t.Fatalf("buffer=%v: %d of %d rows at the end", buffer, n, total)
		}
		b.got.check(t, b.want(), "rows")
	}
}

// Pause, resume and rate 0 stop and start scans and locality providers at a barrier.
func TestBackfillPause(t *testing.T) {
	for _, buffer := range []bool{false, true} {
		b := newBench(t, 7, func(b *bench) { b.buffer = buffer; b.size = 5; b.paused = true })
		b.begin(100)
		b.tick(startBackfill())
		still := func(what string) {
			t.Helper()
			before := b.prog.Done.Load()
			for range 3 {
				b.change(5)
				b.tick(nil)
			}
			if n := b.prog.Done.Load(); n != before {
				t.Fatalf("buffer=%v: %d rows while %s", buffer, n-before, what)
			}
		}
		still("paused")
		b.throttle(0)
		b.tick(&stream.Mutation{Resume: true})
		still("at rate 0")
		b.throttle(stream.Unlimited)
		b.drain()
		b.got.check(t, b.want(), "rows")
	}
}

// A cancelled actor ends at once, whatever it waits for.
func TestBackfillCancel(t *testing.T) {
	for _, rate := range []int64{stream.Unlimited, stream.Paused, 1} {
		b := newBench(t, 8, func(b *bench) { b.limit = NewLimiter(rate, b.clock) })
		b.fill(100)
		b.startFills()
		b.tick(nil)
		x := b.fills[0]
		start := time.Now()
		x.cancel()
		if err := x.fails(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Fatalf("it took %v", d)
		}
		b.table.outs = nil
	}
}

// A locality provider delivers in the order of its columns.
func TestLocalityProviderOrder(t *testing.T) {
	b := newBench(t, 9, func(b *bench) { b.buffer = true; b.size = 7 })
	b.startFills()
	b.tick(nil)
	b.fill(300)
	b.tick(startBackfill())
	b.barrier(nil)
	last := ""
	runs := map[string]int{}
	for _, c := range b.fills[0].take() {
		for i := range c.Len() {
			v := c.Row(i)[1]
			k := "NULL"
			if !v.IsNull() {
				k = fmt.Sprint(v.Int())
			}
			if k != last {
				runs[k]++
				last = k
			}
		}
	}
	for k, n := range runs {
		if n > 1 {
			t.Errorf("value %s came in %d runs", k, n)
		}
	}
}

// An inconsistent change fails the actor with a message that names the table.
func TestInconsistency(t *testing.T) {
	r := newRig(t)
	x := r.start(aggNode(t, []int{1}, false), 1, nil)
	r.barrier(nil)
	x.send(0, chunk.Parse("I I I B T\n- 1 1 1 t a"))
	r.epoch++
	x.in.Send(0, stream.Message{Barrier: &stream.Barrier{Epoch: r.epoch}})
	err := <-x.ended
	if err == nil || !strings.Contains(err.Error(), "state table") {
		t.Fatalf("error %v", err)
	}
	r.runs = nil
	if errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
