package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/exec"
)

// A Job is the running dataflow of one relation.
type Job struct {
	Rel   *catalog.Relation // as of its creation; the catalog has the current one
	Graph *plan.Graph

	frags   map[plan.FragmentID]*fragment
	order   []*fragment // as in Graph
	actors  []*actor
	ups     []upstreamLink
	ctx     context.Context
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup
	started time.Time
	built   chan struct{} // closed when all backfills are finished
	source  bool          // has connector heads: always active

	mu       sync.Mutex
	err      error // why it stopped; nil while it runs
	rate     int64 // backfill rows per second
	finished bool
	active   bool // counts as active with the coordinator
	sample   rateSample
	errs     []ExprError // the newest expression errors
	errCount int64
}

// An ExprError is an expression of a view that failed and became NULL.
type ExprError struct {
	At       time.Time
	Operator string
	Message  string
}

const keptExprErrors = 100

type fragment struct {
	key      stream.FragmentKey
	plan     *plan.Fragment
	head     plan.Stream
	actors   []*actor
	owner    []uint16 // vnode → index into actors
	progress *stream.Progress
	limiter  *exec.Limiter
	started  atomic.Bool // its backfill may deliver
}

type actor struct {
	id    stream.ActorID
	in    *stream.Inbox
	run   *stream.Actor
	env   *exec.Env
	heads []stream.Port // where the coordinator puts barriers; empty: they come from upstream
}

type upstreamLink struct {
	up   plan.Upstream
	disp map[stream.ActorID][]*stream.Dispatcher // upstream actor → its new dispatchers
}

// head returns the leaf that feeds a fragment's chain. Multi-input operators have StreamMerge leaves.
func head(n plan.Stream) plan.Stream {
	for len(n.Inputs()) > 0 {
		n = n.Inputs()[0]
	}
	return n
}

// owners spreads vnodes over n actors in contiguous ranges, so that each actor reads one key range.
func owners(vnodes, n int) []uint16 {
	out := make([]uint16, vnodes)
	for v := range out {
		out[v] = uint16(v * n / vnodes)
	}
	return out
}

// build makes the actors of a graph and connects them among themselves. Nothing runs yet.
func (m *Manager) build(rel *catalog.Relation, g *plan.Graph, parallelism int) (*Job, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	j := &Job{Rel: rel, Graph: g, frags: map[plan.FragmentID]*fragment{}, finished: true, ctx: ctx, cancel: cancel, started: m.clock.Now(), built: make(chan struct{}), rate: stream.Unlimited}
	if rel.RateLimit != nil {
		j.rate = *rel.RateLimit
	}
	vnodes := rel.Vnodes
	if vnodes == 0 {
		vnodes = DefaultVnodes
	}
	for _, pf := range g.Fragments {
		f := &fragment{key: stream.FragmentKey{Job: rel.ID, Fragment: pf.ID}, plan: pf, head: head(pf.Root)}
		n := min(parallelism, vnodes)
		if pf.Single {
			n = 1
		}
		if pf.SameAs != 0 {
			same := j.frags[pf.SameAs]
			n = len(same.actors)
		}
		f.owner = owners(vnodes, n)
		f.started.Store(len(g.BackfillOrder[pf.ID]) == 0)
		if backfills(pf.Root) {
			j.finished = false
			f.progress = &stream.Progress{Actors: int32(n)}
			f.limiter = exec.NewLimiter(j.rate, m.clock)
		}
		for i := range n {
			a := &actor{id: m.nextActor(), in: stream.NewInbox()}
			a.run = &stream.Actor{ID: a.id}
			set := storage.NewVnodeSet(vnodes)
			for v, o := range f.owner {
				if int(o) == i {
					set.Add(uint16(v))
				}
			}
			a.env = m.env(j, f, a, set, vnodes)
			a.env.Single = pf.Single
			switch h := f.head.(type) {
			case *plan.StreamSource:
				j.source = true
				if err := m.openSource(a.env, h.Rel, i, n); err != nil {
					cancel(nil)
					return nil, err
				}
				a.heads = append(a.heads, stream.Port{In: a.in, Channel: a.in.Open(0)})
			case *plan.StreamDML, *plan.StreamValues:
				a.heads = append(a.heads, stream.Port{In: a.in, Channel: a.in.Open(0)})
			}
			f.actors = append(f.actors, a)
			j.actors = append(j.actors, a)
		}
		j.frags[pf.ID] = f
		j.order = append(j.order, f)
	}
	for _, e := range g.Edges {
		from, to := j.frags[e.From], j.frags[e.To]
		if from == nil || to == nil {
			cancel(nil)
			return nil, fmt.Errorf("plan of %q has an edge from fragment %d to %d, which are not there", rel.Name, e.From, e.To)
		}
		for i, a := range from.actors {
			a.run.Out = append(a.run.Out, dispatcher(e.Dist, nil, to, e.Port, e.NoShuffle, i))
		}
	}
	for _, f := range j.order {
		for _, a := range f.actors {
			x, err := exec.Build(a.env, f.plan.Root)
			if err != nil {
				cancel(nil)
				return nil, err
			}
			a.run.Exec = x
		}
	}
	j.active = !j.finished || j.source
	if j.finished {
		close(j.built)
	}
	return j, nil
}

// backfills reports whether a fragment has a scan or locality provider of its own.
func backfills(n plan.Stream) bool {
	switch n := n.(type) {
	case *plan.StreamTableScan:
		return n.Kind == plan.ArrangementBackfill
	case *plan.StreamLocalityProvider:
		return true
	}
	for _, in := range n.Inputs() {
		if backfills(in) {
			return true
		}
	}
	return false
}

// dispatcher makes one sender's dispatcher to the actors of a fragment.
func dispatcher(d plan.Dist, cols []int, to *fragment, port int, noShuffle bool, index int) *stream.Dispatcher {
	out := &stream.Dispatcher{Dist: d, Cols: cols, Owner: to.owner}
	targets := to.actors
	if noShuffle {
		targets = to.actors[index : index+1]
		out.Dist = plan.Dist{Kind: plan.Single}
	}
	for _, t := range targets {
		out.To = append(out.To, stream.Port{In: t.in, Channel: t.in.Open(port)})
	}
	return out
}

// connect makes the dispatchers from the jobs j reads. They take effect when they
// are added to the upstream actors.
func (m *Manager) connect(j *Job) error {
	for _, u := range j.Graph.Upstreams {
		up := m.jobs[u.Rel]
		if up == nil {
			return fmt.Errorf("relation %d, which %q reads, does not run", u.Rel, j.Rel.Name)
		}
		if err := up.Err(); err != nil {
			return fmt.Errorf("%q, which %q reads, has stopped: %w", up.Rel.Name, j.Rel.Name, err)
		}
		to := j.frags[u.To]
		link := upstreamLink{up: u, disp: map[stream.ActorID][]*stream.Dispatcher{}}
		last := up.order[len(up.order)-1]
		for i, a := range last.actors {
			link.disp[a.id] = append(link.disp[a.id], dispatcher(u.Dist, u.Cols, to, u.Port, false, i))
		}
		j.ups = append(j.ups, link)
	}
	return nil
}

// start runs the actors. They wait for their first barrier.
func (m *Manager) start(j *Job) {
	for _, a := range j.actors {
		a.run.Collect = m.coord.Collect
		j.wg.Add(1)
		go func() {
			defer j.wg.Done()
			err := a.run.Run(j.ctx)
			if err == nil || errors.Is(err, stream.ErrGone) || j.ctx.Err() != nil {
				return
			}
			m.fail(j, a, err)
		}()
	}
}

func (j *Job) ids() []stream.ActorID {
	out := make([]stream.ActorID, len(j.actors))
	for i, a := range j.actors {
		out[i] = a.id
	}
	return out
}

func (j *Job) heads() []Head {
	var out []Head
	for _, a := range j.actors {
		for _, p := range a.heads {
			out = append(out, Head{a.id, p})
		}
	}
	return out
}

// Err is why the job has stopped; nil while it runs.
func (j *Job) Err() error { j.mu.Lock(); defer j.mu.Unlock(); return j.err }

// Built is closed when all backfills of the job are finished, or it has stopped.
func (j *Job) Built() <-chan struct{} { return j.built }

// mark makes cause the reason why the job has stopped, and reports whether it is
// the first one; who was first must take the job down. From here on the job is
// not connected to others, and begins with no barrier if it has not begun yet.
func (j *Job) mark(cause error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return false
	}
	j.err = cause
	return true
}

// down ends the actors of a marked job at once, whatever is queued for them. It
// does not wait for their goroutines.
func (m *Manager) down(j *Job) {
	j.mu.Lock()
	done, active := j.finished, j.active
	j.finished, j.active = true, false
	j.mu.Unlock()
	// Before the context ends, which makes executors close their inboxes with its
	// cause: senders of other jobs must find that the receiver is gone, not an error.
	for _, a := range j.actors {
		a.in.Close(stream.ErrGone)
	}
	j.cancel(j.Err())
	m.coord.Forget(j.ids())
	if !done {
		close(j.built)
	}
	if active {
		m.coord.Activate(-1)
	}
}

// exprError counts an expression of the job that failed and keeps it for users to see.
func (j *Job) exprError(m *Manager, operator string, err error) {
	m.metrics.ExprErrors.WithLabelValues(j.Rel.Name).Inc()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errCount++
	if len(j.errs) == keptExprErrors {
		j.errs = j.errs[1:]
	}
	j.errs = append(j.errs, ExprError{At: m.clock.Now(), Operator: operator, Message: err.Error()})
}

// ExprErrors returns how many expressions have failed since the job started, and the newest of them.
func (j *Job) ExprErrors() (int64, []ExprError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.errCount, append([]ExprError(nil), j.errs...)
}

func logJob(l *slog.Logger, r *catalog.Relation) *slog.Logger {
	return l.With("job", uint32(r.ID), "name", r.Name)
}
