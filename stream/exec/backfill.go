package exec

import (
	"context"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A backfill delivers the rows of a table in key order while changes to that table
// stream in, and after that the changes alone. The table is another job's (arrangement
// backfill) or one that the backfill has itself filled from its input (locality provider).
//
// Each vnode has a position. What the stream brings is held until the barrier; then
// changes at or below their vnode's position are passed on, for the rows there were
// delivered before, and the others are in the table, where the scan will meet them: the
// upstream has written them there, or the provider does so beside its log.
//
// Invariants:
//  1. The scan reads the table as of the last barrier. What it and the stream have
//     delivered at a barrier is the table as of this barrier, up to the positions.
//  2. Positions, rows and the table's changes commit with the epoch; a restart goes on from there.
//  3. A barrier waits for at most one chunk of the scan, and for the rate limit never.
//  4. While the scan may read, each barrier interval delivers a chunk of it, however
//     busy the stream is, or as many rows as Env.Pace has, one at the least.
//  5. A position's rows are the rows of the table at or below it: what is delivered is
//     counted, and so are the changes that are passed on.
//
// The vnodes of an upstream take turns, so that one whose reading is slow (deleted rows,
// cold files) does not keep the others where they are, and what a stream brings is passed
// on in equal parts whatever its vnode. A turn costs a seek, so it is a few chunks long.
type backfill struct {
	in     *stream.Inbox
	env    *Env
	table  snapshot
	object uint32 // of the table, for its row count
	codec  *storage.Codec
	cols   []int // of the table, in the stream's order
	read   *storage.Decoder
	schema []chunk.Column // all the table's columns, for keys: those of the chunk at hand
	types  []types.Type   // of the stream's columns
	pos    *positions
	key    stream.FragmentKey
	phase  stream.Phase // while it delivers

	own *providedRows // a locality provider's table, which it fills first; nil: the table is another job's

	waiting bool // until StartBackfill
	paused  bool // all backfills are
	held    []*chunk.Chunk
	since   int       // rows that came from the stream since the scan had its turn
	turn    time.Time // when that was
	moved   bool      // the scan had a turn since the last barrier
	sent    int       // rows it delivered since then
	most    int       // rows it may deliver until the next; see pace
	stands  int       // the vnode (its index) that the table stands in; -1: none
	took    int       // rows of its turn
	turned  time.Time // when that began
	tail    bool      // the scan is through, its end not yet persisted
	place   *stream.Place
	ended   storage.Epoch // that has the end, which is not told yet; 0: none
	scanned prometheus.Counter
	ratio   prometheus.Gauge
}

// firstPace and lastPace bound the chunks that a backfill delivers between two barriers.
const (
	firstPace = 8
	lastPace  = 1024
)

// pace adapts what is delivered in an epoch to what the store takes: while commits
// keep up with barriers it grows, and when they fall behind it shrinks, so that the
// statements that share the epochs do not wait long for them.
func (x *backfill) pace(e storage.Epoch) {
	size := x.env.chunkSize()
	if behind := int64(e) - int64(x.env.Store.Committed()); behind > 2 {
		x.most = max(x.most*7/10, size)
	} else if x.sent >= x.most {
		x.most = min(x.most+x.most/2, lastPace*size)
	}
	x.sent = 0
}

// room is how many rows of the next chunk may be delivered in this epoch.
func (x *backfill) room() int {
	n := x.env.chunkSize()
	if x.sent >= x.most {
		return 0
	}
	if l := x.env.Pace.Limit(); l > 0 {
		n = min(n, max(l-x.sent, 0))
	}
	return n
}

// A vnode's turn ends after so many chunks, or after turnTime.
const (
	turnChunks = 8
	turnTime   = 20 * time.Millisecond
)

// turnAfter is how long a busy stream may keep the scan from its turn; so many
// rows as a chunk has do, too.
const turnAfter = 5 * time.Millisecond

func newArrangementBackfill(env *Env, n *plan.StreamTableScan) (*backfill, error) {
	var d storage.Desc
	if env.Upstream != nil {
		d = env.Upstream(n.Table.ID)
	} else {
		d = RelationDesc(n.Table)
	}
	x := newBackfill(env, n.Progress, d, n.Cols, n.Schema.Types())
	x.waiting, x.phase, x.place = env.Waiting, stream.PhaseScan, place(n)
	return x, nil
}

func newBackfill(env *Env, progress *plan.TableDesc, d storage.Desc, cols []int, out []types.Type) *backfill {
	x := &backfill{
		in: env.In, env: env, object: d.ID, cols: cols,
		codec: storage.NewCodec(d), schema: make([]chunk.Column, len(d.Schema)),
		pos: newPositions(env, progress), key: stream.FragmentKey{Job: env.Job, Fragment: env.Fragment},
		paused: env.GlobalPause, most: firstPace * env.chunkSize(), stands: -1,
	}
	x.read = x.codec.NewDecoder(cols)
	x.types = out
	if m := env.Metrics; m != nil {
		job, fragment := strconv.Itoa(int(env.Job)), strconv.Itoa(int(env.Fragment))
		x.scanned, x.ratio = m.scanned.WithLabelValues(job, fragment), m.backfill.WithLabelValues(job, fragment)
	}
	return x
}

func (x *backfill) Run(ctx context.Context, emit stream.Emit) error {
	defer closeOnDone(ctx, x.in)()
	_, first, err := x.in.Recv()
	if err != nil {
		return err
	}
	x.mutate(first.Barrier)
	// It goes on before anything is read: what is to be read commits with it.
	if err := emit(first); err != nil {
		return err
	}
	if err := x.open(ctx, first.Barrier.Epoch); err != nil {
		return err
	}
	defer func() { x.close() }()
	for !x.pos.finished() || x.tail {
		if err := x.step(ctx, emit); err != nil {
			return err
		}
	}
	x.close()
	return x.forward(emit)
}

// forward passes everything on. It tells of the end once that is committed, so
// that who hears of it sees all the rows.
func (x *backfill) forward(emit stream.Emit) error {
	pass := emit
	if x.own != nil {
		b := &sortBuffer{env: x.env, codec: x.codec, read: x.read, types: x.types, log: x.own.log.table}
		defer b.close()
		pass = func(m stream.Message) error { return b.pass(m, emit) }
	}
	for {
		_, m, err := x.in.Recv()
		if err != nil {
			return err
		}
		if m.Barrier != nil && x.ended != 0 && x.env.Store.Committed() >= x.ended {
			x.report()
			x.ended = 0
		}
		if err := pass(m); err != nil {
			return err
		}
	}
}

func (x *backfill) close() {
	if x.table != nil {
		x.table.close()
		x.table = nil
	}
}

// open loads the positions and opens the table where there is something left to deliver.
func (x *backfill) open(ctx context.Context, e storage.Epoch) error {
	// Who had the vnodes before may have ended this very epoch.
	if x.env.WaitCommitted != nil {
		if err := x.env.WaitCommitted(ctx, e); err != nil {
			return err
		}
	}
	rows, held, err := x.pos.load()
	if err != nil {
		return err
	}
	x.delivered(rows)
	x.holds(held)
	x.count()
	if x.pos.finished() {
		x.through()
		x.report() // of another run, or an actor without vnodes: nothing is left to persist
		return nil
	}
	if x.own != nil {
		x.own.log.ended = e
		if x.pos.begun() {
			x.waiting = false // the input was complete before
		}
		x.setPhase(stream.PhaseBuffer)
	} else {
		x.table = &upstreamRows{table: x.env.Store.SharedRows(x.codec.Desc(), x.env.Vnodes, x.cols), clock: x.env.clock()}
		x.setPhase(stream.PhaseWait)
	}
	if !x.waiting {
		x.begin()
	}
	x.turn = x.env.clock().Now()
	return nil
}

// begin lets the scan read.
func (x *backfill) begin() {
	if x.own != nil {
		x.pos.begin()
		x.own.log.free()
	}
	x.setPhase(x.phase)
}

// step handles one message of the stream or gives the scan a turn, or waits for either.
func (x *backfill) step(ctx context.Context, emit stream.Emit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, m, ok, err := x.in.TryRecv()
	switch {
	case err != nil:
		return err
	case !ok:
		if !x.scanning() {
			x.wait(ctx, time.Time{})
			return nil
		}
		if x.env.Pace.Limit() > 0 {
			runtime.Gosched() // somebody waits for what runs beside us
		}
		return x.scan(ctx, emit, true)
	case m.Barrier != nil:
		if !x.moved && x.scanning() {
			if err := x.scan(ctx, emit, false); err != nil {
				return err
			}
		}
		return x.barrier(m, emit)
	case m.Chunk != nil:
		return x.change(ctx, m.Chunk, emit)
	}
	return nil // watermarks mean nothing yet
}

// scanning reports whether the scan may read, the rate limit aside.
func (x *backfill) scanning() bool {
	return !x.waiting && !x.paused && !x.tail && !paused(x.env.Limiter)
}

// change takes in a chunk of the stream.
func (x *backfill) change(ctx context.Context, c *chunk.Chunk, emit stream.Emit) error {
	switch {
	case x.tail:
		return x.pass(c, emit)
	case x.own != nil && x.waiting:
		return x.put(c)
	}
	x.held = append(x.held, c)
	x.since += c.Len()
	if x.scanning() && (x.since >= x.env.chunkSize() || x.env.clock().Now().Sub(x.turn) >= turnAfter) {
		return x.scan(ctx, emit, false)
	}
	return nil
}

// put puts what a locality provider gets into its log.
func (x *backfill) put(c *chunk.Chunk) error {
	vnodes := x.codec.Vnodes(c.Cols, c.Len())
	more := int64(0)
	for i := range c.Len() {
		v := vnodeAt(vnodes, i)
		at := x.pos.index[v]
		if at < 0 {
			return inconsistent(x.pos.table, "row %s of vnode %d came to an actor without it", describe(c.Cols, i), v)
		}
		x.pos.at[at].held += c.Op(i).Sign()
		x.pos.dirty[at] = true
		more += c.Op(i).Sign()
	}
	x.holds(more)
	return x.own.append(c, vnodes)
}

// scan delivers at most a chunk of rows, as many as the rate limit lets it. idle: there is
// nothing else to do, so it may wait for the limit or for the stream.
func (x *backfill) scan(ctx context.Context, emit stream.Emit, idle bool) error {
	if gap := x.env.Pace.Gap(); gap > 0 {
		if at := x.turn.Add(gap); x.env.clock().Now().Before(at) {
			if idle {
				x.wait(ctx, at)
			}
			return nil
		}
	}
	n := x.room()
	if n == 0 {
		if idle {
			x.wait(ctx, time.Time{})
		}
		return nil
	}
	if l := x.env.Limiter; l != nil {
		if n = l.Allow(n); n == 0 {
			if idle {
				x.wait(ctx, l.NextAt())
			}
			return nil
		}
	}
	x.since, x.turn, x.moved = 0, x.env.clock().Now(), true
	c, end, err := x.readRows(n)
	if err != nil {
		return err
	}
	if l := x.env.Limiter; l != nil {
		l.Return(n - c.N)
	}
	x.sent += c.N
	x.delivered(int64(c.N))
	if x.scanned != nil {
		x.scanned.Add(float64(c.N))
	}
	if c.N > 0 {
		if err := emit(stream.Message{Chunk: c}); err != nil {
			return err
		}
	}
	if !end {
		return nil
	}
	// Everything there was at the last barrier has been delivered: what came since is all news.
	x.tail = true
	x.through()
	return x.passAll(emit)
}

// passAll passes on what came since the last barrier, as far as the scan has gone past it.
func (x *backfill) passAll(emit stream.Emit) error {
	for _, c := range x.held {
		if err := x.pass(c, emit); err != nil {
			return err
		}
	}
	clear(x.held)
	x.held = x.held[:0]
	return nil
}

// delivered counts rows that lie at or below the positions from now on.
func (x *backfill) delivered(rows int64) {
	if p := x.env.Progress; p != nil {
		p.Done.Add(rows)
		p.LastMove.Store(x.env.now())
	}
}

// readRows reads up to n rows from the positions on; end: there are no more. It may
// return fewer where something else is to be seen to.
func (x *backfill) readRows(n int) (c *chunk.Chunk, end bool, err error) {
	c = &chunk.Chunk{Cols: make([]chunk.Column, len(x.types))}
	for j, t := range x.types {
		c.Cols[j] = chunk.New(t, n)
	}
	for !x.pos.finished() {
		i := x.pos.turn()
		v := x.pos.vnodes[i]
		x.env.Spot.Enter(x.place, int(v))
		if x.stands != i {
			ready, err := x.table.seek(v, x.pos.at[i].key)
			if err != nil || !ready {
				return c, false, err
			}
			x.stands, x.took, x.turned = i, 0, x.env.clock().Now()
		}
		from := c.N
		done, err := x.readVnode(i, c, n)
		if err != nil {
			return nil, false, err
		}
		x.took += c.N - from
		if x.pos.at[i].rows += int64(c.N - from); done {
			if at := &x.pos.at[i]; x.own != nil && at.rows != at.held {
				return nil, false, inconsistent(x.own.log.table, "vnode %d has %d rows and should have %d", v, at.rows, at.held)
			}
			if err := x.table.finish(v); err != nil {
				return nil, false, err
			}
			x.pos.finish(i)
			x.pos.pass()
			x.stands = -1
			continue
		}
		if x.own == nil && (x.took >= turnChunks*x.env.chunkSize() || x.env.clock().Now().Sub(x.turned) >= turnTime) {
			x.pos.pass()
		}
		return c, false, nil
	}
	return c, true, nil
}

// readVnode appends rows of the vnode that the table stands in until c has n; done: it has no more.
func (x *backfill) readVnode(i int, c *chunk.Chunk, n int) (done bool, err error) {
	for seen := 0; c.N < n; {
		kv, ok, err := x.table.next()
		if err != nil || !ok {
			return !ok, err
		}
		seen++
		if kv.Val != nil {
			if err := x.read.Decode(kv.Key, kv.Val, c.Cols); err != nil {
				return false, err
			}
			c.N++
		}
		if c.N == n || seen == maxSeen {
			x.pos.saw(i, kv.Key)
			return false, nil
		}
	}
	return false, nil
}

// maxSeen is how many keys a vnode's reader passes at a time, those without a row among them.
const maxSeen = 1 << 16

// barrier ends an epoch.
func (x *backfill) barrier(m stream.Message, emit stream.Emit) error {
	e := m.Barrier.Epoch
	if err := x.passAll(emit); err != nil {
		return err
	}
	if err := x.table.seal(e); err != nil {
		return err
	}
	x.count()
	if err := x.pos.commit(e); err != nil {
		return err
	}
	if x.tail {
		x.tail, x.ended = false, e
	}
	x.moved = false
	x.pace(e)
	x.mutate(m.Barrier)
	return emit(m)
}

// pass passes on the changes of a chunk that the scan has gone past. The others are in the
// table when it comes to them.
func (x *backfill) pass(c *chunk.Chunk, emit stream.Emit) error {
	for j, col := range x.cols {
		x.schema[col] = c.Cols[j]
	}
	vnodes := x.codec.Vnodes(x.schema, c.Len())
	var past, ahead []int
	var key []byte
	more, held := int64(0), int64(0)
	for i := range c.Len() {
		v := vnodeAt(vnodes, i)
		at := x.pos.index[v]
		if at < 0 {
			return inconsistent(x.pos.table, "row %s of vnode %d came to an actor without it", describe(c.Cols, i), v)
		}
		if x.own != nil {
			x.pos.at[at].held += c.Op(i).Sign()
			x.pos.dirty[at] = true
			held += c.Op(i).Sign()
		}
		passed := x.pos.at[at].done
		if !passed && x.pos.at[at].key != nil {
			key = x.codec.AppendKeyVnode(key[:0], v, x.schema, i)
			passed = x.pos.passed(int(at), key)
		}
		if passed {
			past = append(past, i)
			x.pos.at[at].rows += c.Op(i).Sign()
			x.pos.dirty[at] = true
			more += c.Op(i).Sign()
		} else {
			ahead = append(ahead, i)
		}
	}
	x.delivered(more)
	x.holds(held)
	if x.own != nil && len(ahead) > 0 { // the upstream has written it
		if err := x.own.write(c, vnodes, ahead); err != nil {
			return err
		}
	}
	switch len(past) {
	case 0:
		return nil
	case c.Len():
		return emit(stream.Message{Chunk: c})
	}
	return emit(stream.Message{Chunk: c.Gather(past)})
}

// mutate applies what a barrier changes.
func (x *backfill) mutate(b *stream.Barrier) {
	mu := b.Mutation
	if mu == nil {
		return
	}
	if mu.Pause {
		x.paused = true
	}
	if mu.Resume {
		x.paused = false
	}
	if x.waiting && mu.StartBackfill[x.key] {
		x.waiting = false
		x.begin()
		x.turn = x.env.clock().Now()
	}
}

// wait blocks until the stream has something, the time comes (zero: never) or the context ends.
func (x *backfill) wait(ctx context.Context, at time.Time) {
	waitUntil(ctx, x.in, x.env.clock(), at)
}

// waitUntil blocks until an inbox has something or was closed, the time at comes (zero:
// never), or the context ends.
func waitUntil(ctx context.Context, in *stream.Inbox, clock storage.Clock, at time.Time) {
	if !at.IsZero() {
		t := time.AfterFunc(max(0, at.Sub(clock.Now())), in.Wake)
		defer t.Stop()
	}
	in.WaitUntil(func() bool { return ctx.Err() != nil || !at.IsZero() && !clock.Now().Before(at) })
}

// count looks at how many rows there are.
func (x *backfill) count() {
	p := x.env.Progress
	if p == nil {
		return
	}
	if x.own == nil {
		p.Total.Store(x.env.Store.Rows(x.object))
	}
	total := p.Total.Load()
	if x.ratio != nil {
		ratio := 1.0
		if done := p.Done.Load(); total > 0 && p.Finished.Load() < p.Actors {
			ratio = min(1, float64(done)/float64(total))
		}
		x.ratio.Set(ratio)
	}
}

// through tells that this actor has nothing left to deliver.
func (x *backfill) through() {
	if p := x.env.Progress; p != nil {
		p.Through.Add(1)
	}
}

// report tells that this actor is done.
func (x *backfill) report() {
	p := x.env.Progress
	if p == nil {
		return
	}
	x.env.logger().Debug("backfill finished", "table", x.codec.Desc().Name, "vnodes", len(x.pos.vnodes), "rows", p.Done.Load())
	p.LastMove.Store(x.env.now())
	if p.Finished.Add(1) < p.Actors {
		return
	}
	p.Total.Store(p.Done.Load())
	p.Phase.Store(int32(stream.PhaseDone))
	if x.ratio != nil {
		x.ratio.Set(1)
	}
}

// holds counts rows that a locality provider has put by.
func (x *backfill) holds(rows int64) {
	if p := x.env.Progress; p != nil && x.own != nil {
		p.Total.Add(rows)
	}
}

// setPhase shows a phase; actors go through phases together, but for the last one.
func (x *backfill) setPhase(ph stream.Phase) {
	p := x.env.Progress
	if p == nil {
		return
	}
	p.LastMove.Store(x.env.now())
	for {
		now := p.Phase.Load()
		if now >= int32(ph) || p.Phase.CompareAndSwap(now, int32(ph)) {
			return
		}
	}
}
