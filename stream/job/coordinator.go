// Package job turns plan graphs into running actors and drives them with
// barriers: creation, cancellation, failure, progress and recovery of jobs.
//
// The one idea: everything that changes the running dataflow rides on a barrier,
// and an epoch is finished when every actor that was alive in it has reported;
// then, and only then, the store commits it.
package job

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"streamdb/storage"
	"streamdb/stream"
)

// maxInFlight bounds the epochs between injection and commit: one is being
// processed while another commits, and a third may wait for the disk.
const maxInFlight = 3

// defaultStall is how long an epoch may be in flight before it is worth a warning.
const defaultStall = 10 * time.Second

// eagerWait is how long after a command's barrier the next one follows at the latest, while something is active.
const eagerWait = 2 * time.Millisecond

// A Command changes the dataflow with the next barrier.
type Command struct {
	Mutation *stream.Mutation
	// Stage is called with the barrier's epoch before it is sent, to add catalog
	// changes and the like that commit with it; nil: nothing.
	Stage func(e storage.Epoch)
	// Start are the actors whose first barrier this is.
	Start []Start
	// Alive is asked before the barrier is sent: if it is not, the command is dropped as a whole; nil: it always is.
	Alive func() bool
	// Change is called when the barrier is about to be sent and no writer sends anything.
	// What it returns is added to Mutation. nil: nothing.
	Change func(e storage.Epoch) *stream.Mutation
}

// A Start is a set of actors, those of a job, that begin with a barrier.
type Start struct {
	// Alive is asked before the barrier is sent: a job that has been stopped since
	// never begins. Who stops it calls Forget only after Alive has turned false.
	Alive func() bool
	// Expect report from this barrier on.
	Expect []stream.ActorID
	// Heads get this barrier, and all later ones, from the coordinator itself.
	Heads []Head
	// TakeOver: the barrier is the last one of the actors that these take over from, who
	// report it. These are expected to report from the next one on.
	TakeOver bool
}

// A Head is where the coordinator puts barriers into the dataflow.
type Head struct {
	Actor stream.ActorID
	Port  stream.Port
}

// A Coordinator sends barriers, collects them and commits epochs.
//
// Invariants:
//  1. Epochs are injected, finished and committed in order.
//  2. An actor is expected at an epoch iff it was alive when its barrier was injected and has not been forgotten since.
//  3. While writeMu is held for reading no barrier is injected: what a writer sends then is in one epoch.
//  4. No lock is held while an epoch is made durable: barriers and writers go on.
type Coordinator struct {
	store    *storage.Store
	clock    storage.Clock
	log      *slog.Logger
	metrics  *Metrics
	fatal    func(error)                          // an epoch could not be made durable
	onCommit func(storage.Epoch) *stream.Mutation // called after each commit; may ask for a mutation
	stalled  func()                               // called every stallAfter while one epoch is in flight
	governor *governor

	writeMu sync.RWMutex

	mu         sync.Mutex
	stallAfter time.Duration // that an epoch is in flight; 0: it is never reported
	interval   time.Duration
	eager      time.Duration // after a command: the next wait, growing to interval, so that small jobs are built at once
	last       storage.Epoch // newest injected
	committed  storage.Epoch
	heads      []Head
	live       map[stream.ActorID]bool
	inflight   []*flight
	commands   []pending
	wanted     storage.Epoch // somebody waits for this epoch
	asked      time.Time     // since when somebody waits for the open epoch; zero: nobody does
	dirty      bool          // something was written since the last barrier
	active     int           // jobs that need barriers by the clock
	closed     error
	waiters    []waiter
	kick       chan struct{}
	finished   sync.Cond // a flight at the front may be complete
	wg         sync.WaitGroup
	cancel     context.CancelFunc
}

type flight struct {
	epoch   storage.Epoch
	missing map[stream.ActorID]bool
	start   time.Time
	asked   time.Time // as Coordinator.asked
}

type pending struct {
	cmd  Command
	done chan injected
}

// An injected is the outcome of a command: the epoch whose barrier carried it.
type injected struct {
	epoch storage.Epoch
	err   error
}

// errDropped is of a command that was not alive any more.
var errDropped = errors.New("what was to change has stopped")

type waiter struct {
	epoch storage.Epoch
	ch    chan error
}

// NewCoordinator starts a coordinator over the store's committed epoch. fatal is
// called at most once, with the error that kept an epoch from being durable.
func NewCoordinator(store *storage.Store, clock storage.Clock, log *slog.Logger, m *Metrics, interval time.Duration, fatal func(error)) *Coordinator {
	c := &Coordinator{store: store, clock: clock, log: log, metrics: m, fatal: fatal, governor: newGovernor(&stream.Pace{}), stallAfter: defaultStall, interval: interval, eager: interval,
		last: store.Committed(), committed: store.Committed(), live: map[stream.ActorID]bool{}, kick: make(chan struct{}, 1)}
	c.finished.L = &c.mu
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Add(2)
	go func() { defer c.wg.Done(); c.inject(ctx) }()
	go func() { defer c.wg.Done(); c.commit() }()
	return c
}

// shut makes everybody who waits, and all later calls, end with err; epochs in
// flight are not committed.
func (c *Coordinator) shut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.closed = err
	}
	for _, w := range c.waiters {
		w.ch <- c.closed
	}
	c.waiters = nil
	for _, p := range c.commands {
		close(p.done)
	}
	c.commands = nil
	c.finished.Broadcast()
	c.cancel()
}

// Close is shut, and waits for what runs. Jobs must have been taken down: the
// next barrier may be waiting for a writer whose rows no actor takes any more.
func (c *Coordinator) Close(err error) {
	c.shut(err)
	c.wg.Wait()
}

// SetInterval changes how often barriers are sent while something is active.
func (c *Coordinator) SetInterval(d time.Duration) {
	c.mu.Lock()
	c.interval = d
	c.mu.Unlock()
	c.wake()
}

// SetStall changes for how long an epoch may be in flight before that is reported; 0: for ever.
func (c *Coordinator) SetStall(d time.Duration) {
	c.mu.Lock()
	c.stallAfter = d
	c.mu.Unlock()
	c.wake()
}

func (c *Coordinator) stall() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stallAfter
}

// Activate adds n (which may be negative) to the jobs that need barriers by the clock.
func (c *Coordinator) Activate(n int) {
	c.mu.Lock()
	c.active += n
	c.mu.Unlock()
	c.wake()
}

func (c *Coordinator) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Submit queues a command and returns the epoch of the barrier that carried it. A
// command whose ctx ends before that is taken back.
func (c *Coordinator) Submit(ctx context.Context, cmd Command) (storage.Epoch, error) {
	p := pending{cmd, make(chan injected, 1)}
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		return 0, c.closed
	}
	c.commands = append(c.commands, p)
	c.mu.Unlock()
	c.wake()
	var in injected
	var ok bool
	select {
	case in, ok = <-p.done:
	case <-ctx.Done():
		c.mu.Lock()
		n := len(c.commands)
		c.commands = slices.DeleteFunc(c.commands, func(q pending) bool { return q.done == p.done })
		taken := len(c.commands) == n
		c.mu.Unlock()
		if !taken {
			return 0, context.Cause(ctx)
		}
		in, ok = <-p.done
	}
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, c.closed
	}
	return in.epoch, in.err
}

// Write calls send so that everything it sends into the dataflow is in one epoch,
// and returns that epoch. If now, a barrier follows at once.
func (c *Coordinator) Write(now bool, send func(e storage.Epoch) error) (storage.Epoch, error) {
	c.writeMu.RLock()
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		c.writeMu.RUnlock()
		return 0, c.closed
	}
	e := c.last + 1
	c.dirty = true
	if now {
		c.wanted = max(c.wanted, e)
		if c.asked.IsZero() {
			c.asked = c.clock.Now()
		}
	}
	c.mu.Unlock()
	err := send(e)
	c.writeMu.RUnlock()
	c.wake()
	return e, err
}

// Flush makes a barrier follow at once and returns the epoch it ends.
func (c *Coordinator) Flush() (storage.Epoch, error) {
	return c.Write(true, func(storage.Epoch) error { return nil })
}

// Wait blocks until e is committed.
func (c *Coordinator) Wait(ctx context.Context, e storage.Epoch) error {
	c.mu.Lock()
	if e <= c.committed {
		c.mu.Unlock()
		return nil
	}
	if c.closed != nil {
		c.mu.Unlock()
		return c.closed
	}
	w := waiter{e, make(chan error, 1)}
	c.waiters = append(c.waiters, w)
	c.mu.Unlock()
	select {
	case err := <-w.ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// inject sends a barrier when one is due: at once for commands and for epochs
// somebody waits for, and by the clock while something was written or is active.
func (c *Coordinator) inject(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var sent, warned time.Time
	for ctx.Err() == nil {
		var stalled func()
		c.mu.Lock()
		full := len(c.inflight) >= maxInFlight
		urgent := len(c.commands) > 0 || c.wanted > c.last
		idle := !c.dirty && c.active == 0
		wait := time.Hour
		now := c.clock.Now()
		if len(c.inflight) > 0 && c.stallAfter > 0 {
			wait = c.stallAfter
			if now.Sub(c.inflight[0].start) >= wait && now.Sub(warned) >= wait {
				warned = now
				stalled = c.stalled
			}
		}
		if !full && !urgent && !idle {
			wait = max(0, min(c.governor.interval(now, c.interval), c.eager)-now.Sub(sent))
		}
		c.mu.Unlock()
		if stalled != nil {
			stalled()
		}
		if !full && (urgent || !idle && wait == 0) {
			sent = c.clock.Now()
			c.barrier(sent)
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// barrier ends the open epoch and sends the next barrier into all heads.
func (c *Coordinator) barrier(now time.Time) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.mu.Lock()
	e := c.last + 1
	cmds := c.commands
	c.commands = nil
	c.dirty = false
	c.eager = min(2*c.eager, c.interval)
	if len(cmds) > 0 {
		c.eager = min(eagerWait, c.interval)
	}
	f := &flight{epoch: e, missing: map[stream.ActorID]bool{}, start: now, asked: c.asked}
	c.asked = time.Time{}
	var mut *stream.Mutation
	var later []stream.ActorID
	done := make([]injected, len(cmds))
	for i, p := range cmds {
		if p.cmd.Alive != nil && !p.cmd.Alive() {
			done[i].err = errDropped
			continue
		}
		done[i].epoch = e
		if p.cmd.Stage != nil {
			p.cmd.Stage(e)
		}
		mut = merge(mut, p.cmd.Mutation)
		if p.cmd.Change != nil {
			mut = merge(mut, p.cmd.Change(e))
		}
		for _, st := range p.cmd.Start {
			if !st.Alive() {
				continue
			}
			if st.TakeOver {
				later = append(later, st.Expect...)
			} else {
				for _, a := range st.Expect {
					c.live[a] = true
				}
			}
			c.heads = append(c.heads, st.Heads...)
		}
	}
	for a := range c.live {
		f.missing[a] = true
	}
	c.last = e
	c.inflight = append(c.inflight, f)
	heads := c.heads
	if mut != nil && len(mut.Stop) > 0 {
		for a := range mut.Stop {
			delete(c.live, a)
		}
		c.heads = slices.DeleteFunc(slices.Clone(c.heads), func(h Head) bool { return mut.Stop[h.Actor] })
	}
	for _, a := range later {
		c.live[a] = true
	}
	c.metrics.InFlight.Set(float64(len(c.inflight)))
	c.mu.Unlock()
	m := stream.Message{Barrier: &stream.Barrier{Epoch: e, Mutation: mut}}
	for _, h := range heads {
		// A closed inbox belongs to a job that is being taken down; Forget follows.
		_ = h.Port.In.Send(h.Port.Channel, m)
	}
	for i, p := range cmds {
		p.done <- done[i]
	}
	c.mu.Lock()
	c.finished.Broadcast()
	c.mu.Unlock()
}

// merge joins the mutations of commands that share a barrier.
func merge(a, b *stream.Mutation) *stream.Mutation {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	out := &stream.Mutation{Pause: a.Pause && !b.Resume || b.Pause, Resume: a.Resume && !b.Pause || b.Resume}
	out.Stop = union(a.Stop, b.Stop)
	out.Remove = union(a.Remove, b.Remove)
	out.StartBackfill = union(a.StartBackfill, b.StartBackfill)
	out.Switch = union(a.Switch, b.Switch)
	out.Add = map[stream.ActorID][]*stream.Dispatcher{}
	for _, m := range []map[stream.ActorID][]*stream.Dispatcher{a.Add, b.Add} {
		for k, v := range m {
			out.Add[k] = append(out.Add[k], v...)
		}
	}
	return out
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	out := make(map[K]V, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

// Collect is told by an actor that it has sealed its state up to b and passed b on.
func (c *Coordinator) Collect(a stream.ActorID, b *stream.Barrier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.inflight {
		if f.epoch == b.Epoch {
			delete(f.missing, a)
			if len(f.missing) == 0 {
				c.finished.Broadcast()
			}
		}
	}
}

// Forget takes actors out of every epoch: they will report no more. Their heads get no more barriers.
func (c *Coordinator) Forget(actors []stream.ActorID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := map[stream.ActorID]bool{}
	for _, a := range actors {
		gone[a] = true
		delete(c.live, a)
		for _, f := range c.inflight {
			delete(f.missing, a)
		}
	}
	kept := make([]Head, 0, len(c.heads))
	for _, h := range c.heads {
		if !gone[h.Actor] {
			kept = append(kept, h)
		}
	}
	c.heads = kept
	c.finished.Broadcast()
}

// StageAll calls stage for every epoch that is not committed and for the open one,
// and makes a barrier follow at once. What it stages is committed with whichever
// of them comes first, and overrides what was staged for the others before.
func (c *Coordinator) StageAll(stage func(e storage.Epoch)) {
	c.mu.Lock()
	for _, f := range c.inflight {
		stage(f.epoch)
	}
	stage(c.last + 1)
	c.wanted = max(c.wanted, c.last+1)
	c.mu.Unlock()
	c.wake()
}

// Stalled returns the oldest epoch in flight, since when, and the actors it waits for, by number.
func (c *Coordinator) Stalled() (e storage.Epoch, since time.Time, actors []stream.ActorID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inflight) == 0 {
		return 0, time.Time{}, nil
	}
	f := c.inflight[0]
	for a := range f.missing {
		actors = append(actors, a)
	}
	slices.Sort(actors)
	return f.epoch, f.start, actors
}

// commit makes finished epochs durable, in order, while later ones are processed.
func (c *Coordinator) commit() {
	for {
		c.mu.Lock()
		for c.closed == nil && (len(c.inflight) == 0 || len(c.inflight[0].missing) > 0) {
			c.finished.Wait()
		}
		if c.closed != nil {
			c.mu.Unlock()
			return
		}
		f := c.inflight[0]
		c.mu.Unlock()

		begin := c.clock.Now()
		c.metrics.BarrierLatency.Observe(begin.Sub(f.start).Seconds())
		if err := c.store.Commit(f.epoch); err != nil {
			c.log.Error("epoch cannot be made durable", "epoch", f.epoch, "err", err)
			c.fatal(err)
			c.shut(err)
			return
		}
		now := c.clock.Now()
		c.metrics.EpochLatency.Observe(now.Sub(f.start).Seconds())
		if !f.asked.IsZero() {
			c.governor.observe(now, now.Sub(f.asked))
		}

		c.mu.Lock()
		c.inflight = c.inflight[1:]
		c.committed = f.epoch
		c.metrics.InFlight.Set(float64(len(c.inflight)))
		c.metrics.Epoch.Set(float64(f.epoch))
		kept := c.waiters[:0]
		for _, w := range c.waiters {
			if w.epoch <= f.epoch {
				w.ch <- nil
			} else {
				kept = append(kept, w)
			}
		}
		c.waiters = kept
		hook := c.onCommit
		c.mu.Unlock()
		if hook != nil {
			if mut := hook(f.epoch); mut != nil {
				c.mu.Lock()
				if c.closed == nil {
					c.commands = append(c.commands, pending{Command{Mutation: mut}, make(chan injected, 1)})
				}
				c.mu.Unlock()
			}
		}
		c.wake()
	}
}
