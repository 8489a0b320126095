package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/connector"
	"streamdb/stream/exec"
)

// DefaultVnodes is the number of vnodes of a relation: the most actors it can
// have. A range read across all costs one seek each.
const DefaultVnodes = 64

// Options of a Manager; zero values are filled in by NewManager where noted.
type Options struct {
	Store    *storage.Store
	Clock    storage.Clock
	Logger   *slog.Logger
	Metrics  *Metrics
	Exec     *exec.Metrics
	Cache    *exec.Budget
	Interval time.Duration // between barriers while something is active; 0: 100 ms
	// ChunkSize is the rows of a chunk that a scan or operator emits; 0: 1024.
	ChunkSize int
	ExprCtx   func(rel *catalog.Relation) *expr.Ctx // what the expressions of a job may depend on
	Fatal     func(error)                           // an epoch could not be made durable: the process must end
	// StageFailed notes in an epoch that a job has stopped with an error; nil: nobody needs to know.
	StageFailed func(e storage.Epoch, rel catalog.ID, err error)
	// Failed is told, on its own goroutine, of jobs that have stopped with an error, the first one first.
	Failed  func(rels []catalog.ID, err error)
	Seed    uint64
	Drivers []connector.Driver // of sources
	Tuning  *stream.Tuning     // of all executors; nil: the defaults
	// SpillDir is where operators spill to unnamed files, on the store's disk; "": the system's.
	SpillDir string
}

// A Manager owns the running jobs.
//
// Invariants:
//  1. One at a time, who holds turn changes which actors there are and who sends to whom: what it
//     has built against the dataflow as it is is true of its barrier.
//  2. A job's generation changes with the barrier at which its actors take over, while no writer sends.
type Manager struct {
	store   *storage.Store
	clock   storage.Clock
	log     *slog.Logger
	metrics *Metrics
	execM   *exec.Metrics
	cache   *exec.Budget
	chunk   int
	exprCtx func(*catalog.Relation) *expr.Ctx
	failed  func([]catalog.ID, error)

	stageFailed func(storage.Epoch, catalog.ID, error)
	seed        uint64
	drivers     []connector.Driver
	coord       *Coordinator
	actorSeq    atomic.Uint32
	failures    sync.WaitGroup
	leaving     sync.WaitGroup // removed jobs whose actors have not ended yet
	tuning      *stream.Tuning
	spillDir    string
	turn        chan struct{} // a token; see invariant 1
	resizing    sync.WaitGroup
	ctx         context.Context // ends with Close
	cancel      context.CancelCauseFunc
	paused      atomic.Bool // all backfills

	mu      sync.Mutex
	jobs    map[catalog.ID]*Job
	closing bool // no job is started any more
}

// NewManager starts a manager without jobs.
func NewManager(o Options) *Manager {
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.ChunkSize == 0 {
		o.ChunkSize = 1024
	}
	if o.StageFailed == nil {
		o.StageFailed = func(storage.Epoch, catalog.ID, error) {}
	}
	m := &Manager{stageFailed: o.StageFailed, store: o.Store, clock: o.Clock, log: o.Logger, metrics: o.Metrics, execM: o.Exec, cache: o.Cache, chunk: o.ChunkSize,
		exprCtx: o.ExprCtx, failed: o.Failed, seed: o.Seed, drivers: o.Drivers, jobs: map[catalog.ID]*Job{},
		tuning: o.Tuning, spillDir: o.SpillDir, turn: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.coord = NewCoordinator(o.Store, o.Clock, o.Logger, o.Metrics, o.Interval, o.Fatal)
	m.coord.mu.Lock()
	m.coord.onCommit, m.coord.stalled = m.committed, m.warnStalled
	m.coord.mu.Unlock()
	return m
}

// Coordinator gives access to epochs: writing, flushing and waiting.
func (m *Manager) Coordinator() *Coordinator { return m.coord }

func (m *Manager) nextActor() stream.ActorID { return stream.ActorID(m.actorSeq.Add(1)) }

// env is what the executors of an actor share.
func (m *Manager) env(j *Job, f *fragment, a *actor, set storage.VnodeSet, vnodes int) *exec.Env {
	return &exec.Env{
		Store: m.store, In: a.in, Vnodes: set, VnodeCount: vnodes,
		Job: j.Rel.ID, Fragment: f.plan.ID, Actor: a.id,
		ChunkSize: m.chunk, Cache: m.cache, Clock: m.clock, Metrics: m.execM,
		Logger:        logJob(m.log, j.Rel).With("fragment", uint32(f.plan.ID), "actor", uint32(a.id)),
		WaitCommitted: m.coord.Wait,
		Progress:      f.progress, Limiter: f.limiter, Waiting: !f.started.Load(), GlobalPause: m.paused.Load(),
		Pace: m.coord.governor.pace, Tuning: m.tuning, Spot: &a.spot, SpillDir: m.spillDir,
		ExprCtx:   func() *expr.Ctx { return m.exprCtx(j.Rel) },
		ExprError: func(op string, err error) { j.exprError(m, op, err) },
		Seed:      m.seed + uint64(a.id),
	}
}

// openSource gives a source's actor i of n its reader and its splits, which go round.
func (m *Manager) openSource(env *exec.Env, src *catalog.Relation, i, n int) error {
	name, _ := connector.Option(src, "connector")
	at := slices.IndexFunc(m.drivers, func(d connector.Driver) bool { return d.Name == name })
	if at < 0 {
		return fmt.Errorf("source %q: there is no connector %q", src.Name, name)
	}
	splits, err := m.drivers[at].Splits(src)
	if err != nil {
		return fmt.Errorf("source %q: %w", src.Name, err)
	}
	for k, s := range splits {
		if k%n == i {
			env.Splits = append(env.Splits, s)
		}
	}
	env.Source, err = m.drivers[at].Reader(src, uint64(src.ID))
	return err
}

// Job returns a running or failed job; nil: there is none.
func (m *Manager) Job(id catalog.ID) *Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[id]
}

// Jobs returns all jobs by ID.
func (m *Manager) Jobs() []*Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*Job, 0, len(m.jobs))
	for _, j := range m.jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *Job) int { return int(a.Rel.ID) - int(b.Rel.ID) })
	return out
}

// A Spec is a job that is to run.
type Spec struct {
	Rel         *catalog.Relation
	Graph       *plan.Graph
	Parallelism int
	// Building is the parallelism until the job is built, when it goes over to Parallelism by itself;
	// 0: Parallelism, as for a job that is built already.
	Building int
}

// Start starts a job and connects it to the jobs it reads; stage is called with
// the epoch of its first barrier, to commit its catalog entry with. Start returns
// when that epoch is committed; the backfill goes on (see Job.Built).
func (m *Manager) Start(ctx context.Context, s Spec, stage func(storage.Epoch)) (*Job, error) {
	if err := m.take(ctx, m.turn); err != nil {
		return nil, err
	}
	j, e, err := m.begin(ctx, s, stage)
	<-m.turn
	if err == nil {
		err = m.coord.Wait(ctx, e)
	}
	if err == nil {
		err = j.Err()
	}
	return j, err
}

// begin makes a job and returns the epoch of its first barrier. The caller holds turn.
func (m *Manager) begin(ctx context.Context, s Spec, stage func(storage.Epoch)) (*Job, storage.Epoch, error) {
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		return nil, 0, errClosing
	}
	j, err := m.build(s)
	if err != nil {
		m.mu.Unlock()
		return nil, 0, err
	}
	m.launch(j)
	m.mu.Unlock()
	mut := &stream.Mutation{Add: map[stream.ActorID][]*stream.Dispatcher{}}
	for _, l := range j.gen.Load().ups {
		for a, d := range l.disp {
			mut.Add[a] = append(mut.Add[a], d...)
		}
	}
	e, err := m.coord.Submit(ctx, Command{Mutation: mut, Stage: stage, Start: []Start{j.first()}})
	return j, e, err
}

// take takes a token, which who has it gives back.
func (m *Manager) take(ctx context.Context, token chan struct{}) error {
	select {
	case token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.ctx.Done():
		return errClosing
	}
}

// build makes a job with its actors, connected to the jobs it reads. Nothing runs
// yet. The caller holds mu.
func (m *Manager) build(s Spec) (*Job, error) {
	j := &Job{Rel: s.Rel, Graph: s.Graph, finished: true, started: m.clock.Now(), built: make(chan struct{}), limits: s.Rel, samples: map[plan.FragmentID]*rateSample{}, normal: s.Parallelism, building: s.Building}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	for _, f := range s.Graph.Fragments {
		if backfills(f.Root) {
			j.finished = false
		}
		if _, ok := head(f.Root).(*plan.StreamSource); ok {
			j.source = true
		}
	}
	n := s.Parallelism
	if !j.finished && s.Building > 0 {
		n = s.Building
	}
	g, err := m.generate(j, n, nil)
	if err != nil {
		j.cancel(err)
		return nil, err
	}
	j.gen.Store(g)
	j.active = !j.finished || j.source
	if j.finished {
		close(j.built)
	}
	return j, nil
}

// launch makes a job known, runs its actors, which wait for their first barrier,
// and makes the coordinator send barriers by the clock while the job backfills or
// reads a connector. The caller holds mu.
func (m *Manager) launch(j *Job) {
	m.jobs[j.Rel.ID] = j
	if j.active {
		m.coord.Activate(1)
	}
	m.start(j.gen.Load())
}

// first is what begins with the job's first barrier.
func (j *Job) first() Start {
	g := j.gen.Load()
	return Start{Alive: func() bool { return j.Err() == nil }, Expect: g.ids(), Heads: g.heads()}
}

// Restore starts the given jobs, upstream ones first, all with one barrier. A job
// that cannot be built does not run, and neither do those that read it. stage, with
// why those did not start, adds to that barrier's epoch.
func (m *Manager) Restore(ctx context.Context, all []Spec, stage func(e storage.Epoch, failed map[catalog.ID]error)) error {
	if err := m.take(ctx, m.turn); err != nil {
		return err
	}
	e, err := m.restore(ctx, all, stage)
	<-m.turn
	if err != nil {
		return err
	}
	return m.coord.Wait(ctx, e)
}

func (m *Manager) restore(ctx context.Context, all []Spec, stage func(e storage.Epoch, failed map[catalog.ID]error)) (storage.Epoch, error) {
	m.mu.Lock()
	failed := map[catalog.ID]error{}
	cmd := Command{Stage: func(e storage.Epoch) { stage(e, failed) }}
	var started []*Job
	for _, r := range all {
		j, err := m.build(r)
		if err != nil {
			failed[r.Rel.ID] = err
			continue
		}
		for _, l := range j.gen.Load().ups {
			for _, a := range m.jobs[l.up.Rel].gen.Load().actors {
				a.run.Out = append(a.run.Out, l.disp[a.id]...)
			}
		}
		m.jobs[r.Rel.ID] = j
		started = append(started, j)
		cmd.Start = append(cmd.Start, j.first())
	}
	for _, j := range started {
		m.launch(j)
	}
	m.mu.Unlock()
	return m.coord.Submit(ctx, cmd)
}

// A Removal is a job that is to go, and what those who wait for it are told.
type Removal struct {
	ID    catalog.ID
	Cause error
}

// Remove takes jobs down at once and forgets them. stage adds their removal to an
// epoch: it is committed no later than the first epoch that they have no full part
// in, so that no restart finds them with a part of an epoch missing. An actor that
// is in the middle of something long ends later; what it seals then is not kept.
func (m *Manager) Remove(jobs []Removal, stage func(storage.Epoch)) {
	m.mu.Lock()
	var gone, first []*Job
	for _, r := range jobs {
		j := m.jobs[r.ID]
		if j == nil {
			continue
		}
		delete(m.jobs, r.ID)
		gone = append(gone, j)
		if j.mark(r.Cause) {
			first = append(first, j)
		}
	}
	m.coord.StageAll(stage)
	m.mu.Unlock()
	for _, j := range first {
		m.down(j)
	}
	for _, j := range gone {
		m.leaving.Go(j.wg.Wait)
	}
}

// fail stops the job of an actor that ended with an error, and all jobs that read it.
func (m *Manager) fail(j *Job, a *actor, err error) {
	var p *stream.PanicError
	if errors.As(err, &p) {
		m.log.Error("actor panicked", "job", j.Rel.Name, "actor", a.id, "panic", p.Value, "stack", string(p.Stack))
	}
	m.failures.Add(1)
	go func() {
		defer m.failures.Done()
		m.mu.Lock()
		if m.closing || m.jobs[j.Rel.ID] != j || j.Err() != nil {
			m.mu.Unlock()
			return
		}
		// All are marked before any is taken down: a job that is connected after this
		// finds that what it would read has stopped.
		var ids []catalog.ID
		var down []*Job
		for i, d := range m.readers(j) {
			cause := err
			if i > 0 {
				cause = fmt.Errorf("%q, which it reads, has stopped: %w", j.Rel.Name, err)
			}
			if d.mark(cause) {
				down = append(down, d)
				ids = append(ids, d.Rel.ID)
			}
		}
		// An epoch may now be committed without a part of what these jobs did in it.
		m.coord.StageAll(func(e storage.Epoch) {
			for _, d := range down {
				m.stageFailed(e, d.Rel.ID, d.Err())
			}
		})
		m.mu.Unlock()
		m.metrics.Failures.Inc()
		m.log.Error("job stopped", "job", j.Rel.Name, "err", err)
		for _, d := range down {
			m.down(d)
		}
		if m.failed != nil {
			m.failed(ids, err)
		}
	}()
}

// readers returns j and all jobs that read it, directly or not, j first.
func (m *Manager) readers(j *Job) []*Job {
	out := []*Job{j}
	for i := 0; i < len(out); i++ {
		for _, id := range sortedIDs(m.jobs) {
			d := m.jobs[id]
			if slices.Contains(out, d) {
				continue
			}
			for _, u := range d.Graph.Upstreams {
				if u.Rel == out[i].Rel.ID {
					out = append(out, d)
					break
				}
			}
		}
	}
	return out
}

func sortedIDs(m map[catalog.ID]*Job) []catalog.ID {
	ids := make([]catalog.ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Throttle makes the limits of a changed relation those of its backfills; it
// returns when they are in force and what stage does is committed.
func (m *Manager) Throttle(ctx context.Context, rel *catalog.Relation, stage func(storage.Epoch)) error {
	if err := m.take(ctx, m.turn); err != nil {
		return err
	}
	j := m.Job(rel.ID)
	e, err := m.coord.Submit(ctx, Command{Stage: stage, Change: func(storage.Epoch) *stream.Mutation {
		if j != nil {
			j.mu.Lock()
			j.limits = rel
			j.mu.Unlock()
			for _, f := range j.gen.Load().order {
				if f.limiter != nil {
					f.limiter.Set(rel.FragmentRate(uint32(f.plan.ID)))
				}
			}
		}
		return nil
	}})
	<-m.turn
	if err != nil {
		return err
	}
	return m.coord.Wait(ctx, e)
}

// SetLatencyTarget makes backfills slow down while statements wait for their epochs for
// longer than d; 0: they never do.
func (m *Manager) SetLatencyTarget(d time.Duration) { m.coord.governor.setTarget(d) }

// SetStallReport changes for how long an epoch may be in flight, or a backfill that may
// move stand still, before that is reported; 0: for ever.
func (m *Manager) SetStallReport(d time.Duration) { m.coord.SetStall(d) }

// Pause stops the backfills of all jobs, or lets them go on (pause false). The
// caller keeps it apart from Create: a job starts as things are when it is built.
func (m *Manager) Pause(ctx context.Context, pause bool) error {
	m.paused.Store(pause)
	e, err := m.coord.Submit(ctx, Command{Mutation: &stream.Mutation{Pause: pause, Resume: !pause}})
	if err != nil {
		return err
	}
	return m.coord.Wait(ctx, e)
}

// Paused reports whether all backfills are paused.
func (m *Manager) Paused() bool { return m.paused.Load() }

// Ports returns where a table's job takes what is written into the table: one
// port an actor, and for each vnode the index of its port. They hold until the next
// barrier only, so that it must be called inside Coordinator.Write.
func (m *Manager) Ports(id catalog.ID) (ports []stream.Port, owner []uint16, err error) {
	j := m.Job(id)
	if j == nil {
		return nil, nil, fmt.Errorf("relation %d has no job", id)
	}
	if err := j.Err(); err != nil {
		return nil, nil, err
	}
	for _, f := range j.gen.Load().order {
		if _, ok := f.head.(*plan.StreamDML); ok {
			for _, a := range f.actors {
				ports = append(ports, a.heads[0])
			}
			return ports, f.owner, nil
		}
	}
	return nil, nil, fmt.Errorf("relation %q takes no rows", j.Rel.Name)
}

var errClosing = errors.New("the server is shutting down")

// Close takes all jobs down and stops the coordinator. What is not committed is lost, as by a crash.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closing = true
	m.cancel(errClosing)
	jobs := make([]*Job, 0, len(m.jobs))
	for _, id := range sortedIDs(m.jobs) {
		jobs = append(jobs, m.jobs[id])
	}
	m.mu.Unlock()
	m.coord.shut(errClosing)
	for _, j := range jobs {
		if j.mark(errClosing) {
			m.down(j)
		}
	}
	for _, j := range jobs {
		j.wg.Wait()
	}
	m.coord.Close(errClosing)
	m.failures.Wait()
	m.leaving.Wait()
	m.resizing.Wait()
}
