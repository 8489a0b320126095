package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/exec"
)

// A generation is the actors of a job at one parallelism. A job begins with one;
// a rescale puts another in its place at a barrier.
type generation struct {
	job         *Job
	parallelism int
	frags       map[plan.FragmentID]*fragment
	order       []*fragment // as in Job.Graph
	actors      []*actor
	// ups are the links from the jobs it reads. They belong to who holds Manager.turn.
	ups    []upstreamLink
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// Of a generation that takes over from another one:
	gate  chan struct{} // closed when the barrier at which it does is sent; nil: it is the first
	begin storage.Epoch // that barrier; valid once gate is closed
	// behind are the actors that have not passed a barrier of their own yet. While there
	// are any, reports show what the generation before had reached.
	behind atomic.Int32
}

type fragment struct {
	key      stream.FragmentKey
	plan     *plan.Fragment
	head     plan.Stream
	actors   []*actor
	owner    []uint16 // vnode → index into actors
	progress *stream.Progress
	limiter  *exec.Limiter
	started  atomic.Bool              // its backfill may deliver
	ended    atomic.Bool              // it was finished already when its actors took over
	before   atomic.Pointer[fragment] // whose numbers are shown; nil: its own
}

type actor struct {
	id    stream.ActorID
	in    *stream.Inbox
	run   *stream.Actor
	env   *exec.Env
	heads []stream.Port // where the coordinator puts barriers; empty: they come from upstream
	spot  stream.Spot
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

func vnodesOf(rel *catalog.Relation) int {
	if rel.Vnodes == 0 {
		return DefaultVnodes
	}
	return rel.Vnodes
}

// sizes returns how many actors each fragment of a graph has at a parallelism.
func sizes(g *plan.Graph, vnodes, parallelism int) map[plan.FragmentID]int {
	out := map[plan.FragmentID]int{}
	for _, f := range g.Fragments {
		n := max(1, min(parallelism, vnodes))
		if f.Single {
			n = 1
		}
		if f.SameAs != 0 {
			n = out[f.SameAs]
		}
		out[f.ID] = n
	}
	return out
}

// generate makes the actors of a job and connects them among themselves. Nothing
// runs yet. before is the generation that they take over from; nil: they are the first.
func (m *Manager) generate(j *Job, parallelism int, before *generation) (_ *generation, err error) {
	g := &generation{job: j, parallelism: parallelism, frags: map[plan.FragmentID]*fragment{}}
	g.ctx, g.cancel = context.WithCancelCause(j.ctx)
	defer func() {
		if err != nil {
			g.discard(err)
		}
	}()
	vnodes := vnodesOf(j.Rel)
	size := sizes(j.Graph, vnodes, parallelism)
	for _, pf := range j.Graph.Fragments {
		f := &fragment{key: stream.FragmentKey{Job: j.Rel.ID, Fragment: pf.ID}, plan: pf, head: head(pf.Root)}
		n := size[pf.ID]
		f.owner = owners(vnodes, n)
		var old *fragment
		if before != nil {
			old = before.frags[pf.ID]
			f.before.Store(old)
		}
		f.started.Store(len(j.Graph.BackfillOrder[pf.ID]) == 0 || old != nil && old.started.Load())
		if backfills(pf.Root) {
			f.progress = &stream.Progress{Actors: int32(n)}
			if old != nil {
				f.limiter = old.limiter
			} else {
				f.limiter = exec.NewLimiter(j.limits.FragmentRate(uint32(pf.ID)), m.clock)
			}
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
			f.actors = append(f.actors, a)
			g.actors = append(g.actors, a)
			switch h := f.head.(type) {
			case *plan.StreamSource:
				if err := m.openSource(a.env, h.Rel, i, n); err != nil {
					return nil, err
				}
				a.heads = append(a.heads, stream.Port{In: a.in, Channel: a.in.Open(0)})
			case *plan.StreamDML, *plan.StreamValues:
				a.heads = append(a.heads, stream.Port{In: a.in, Channel: a.in.Open(0)})
			}
		}
		g.frags[pf.ID] = f
		g.order = append(g.order, f)
	}
	g.behind.Store(int32(len(g.actors)))
	if before != nil {
		g.gate = make(chan struct{})
	}
	for _, e := range j.Graph.Edges {
		from, to := g.frags[e.From], g.frags[e.To]
		if from == nil || to == nil {
			return nil, fmt.Errorf("plan of %q has an edge from fragment %d to %d, which are not there", j.Rel.Name, e.From, e.To)
		}
		for i, a := range from.actors {
			a.run.Out = append(a.run.Out, dispatcher(e.Dist, nil, to, e.Port, e.NoShuffle, i, (*stream.Inbox).Open))
		}
	}
	for _, f := range g.order {
		for _, a := range f.actors {
			x, err := exec.Build(a.env, f.plan.Root)
			if err != nil {
				return nil, err
			}
			a.run.Exec = x
		}
	}
	if err := m.connect(g); err != nil {
		return nil, err
	}
	return g, nil
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

// dispatcher makes one sender's dispatcher to the actors of a fragment; open makes
// its channels, those that it has from the start or from a barrier on.
func dispatcher(d plan.Dist, cols []int, to *fragment, port int, noShuffle bool, index int, open func(*stream.Inbox, int) int) *stream.Dispatcher {
	out := &stream.Dispatcher{Dist: d, Cols: cols, Owner: to.owner}
	targets := to.actors
	if noShuffle {
		targets = to.actors[index : index+1]
		out.Dist = plan.Dist{Kind: plan.Single}
	}
	for _, t := range targets {
		out.To = append(out.To, stream.Port{In: t.in, Channel: open(t.in, port)})
	}
	return out
}

// connect makes the dispatchers from the jobs that g's job reads. They take effect
// when they are added to the upstream actors.
func (m *Manager) connect(g *generation) error {
	rel := g.job.Rel
	for _, u := range g.job.Graph.Upstreams {
		up := m.jobs[u.Rel]
		if up == nil {
			return fmt.Errorf("relation %d, which %q reads, does not run", u.Rel, rel.Name)
		}
		if err := up.Err(); err != nil {
			return fmt.Errorf("%q, which %q reads, has stopped: %w", up.Rel.Name, rel.Name, err)
		}
		to := g.frags[u.To]
		link := upstreamLink{up: u, disp: map[stream.ActorID][]*stream.Dispatcher{}}
		for i, a := range up.gen.Load().outlet().actors {
			link.disp[a.id] = append(link.disp[a.id], dispatcher(u.Dist, u.Cols, to, u.Port, false, i, (*stream.Inbox).Open))
		}
		g.ups = append(g.ups, link)
	}
	return nil
}

// outlet is the fragment whose output other jobs read.
func (g *generation) outlet() *fragment { return g.order[len(g.order)-1] }

// start runs the actors. They wait for their first barrier. The caller holds m.mu.
func (m *Manager) start(g *generation) {
	j := g.job
	j.mu.Lock()
	j.gens = append(j.gens, g)
	j.mu.Unlock()
	for _, a := range g.actors {
		passed := 0
		a.run.Collect = func(id stream.ActorID, b *stream.Barrier) {
			m.coord.Collect(id, b)
			// With its second barrier it has loaded its positions.
			if passed++; passed == 2 && g.gate != nil {
				g.caughtUp()
			}
		}
		j.wg.Add(1)
		g.wg.Add(1)
		go func() {
			defer j.wg.Done()
			defer g.wg.Done()
			if !m.takeOver(g) {
				a.env.Close()
				return
			}
			err := a.run.Run(g.ctx)
			if err == nil {
				a.in.Close(stream.ErrGone)
				return
			}
			if errors.Is(err, stream.ErrGone) || g.ctx.Err() != nil {
				return
			}
			m.fail(j, a, err)
		}()
	}
}

// takeOver waits until the barrier at which g's actors take over is committed. By
// then those before have sealed all they did, and everything up to it can be read.
func (m *Manager) takeOver(g *generation) bool {
	if g.gate == nil {
		return true
	}
	select {
	case <-g.gate:
	case <-g.ctx.Done():
		return false
	}
	return m.coord.Wait(g.ctx, g.begin) == nil
}

func (g *generation) ids() []stream.ActorID {
	out := make([]stream.ActorID, len(g.actors))
	for i, a := range g.actors {
		out[i] = a.id
	}
	return out
}

func (g *generation) heads() []Head {
	var out []Head
	for _, a := range g.actors {
		for _, p := range a.heads {
			out = append(out, Head{a.id, p})
		}
	}
	return out
}

// shut closes the inboxes: senders of other jobs find that the receivers are gone.
func (g *generation) shut() {
	for _, a := range g.actors {
		a.in.Close(stream.ErrGone)
	}
}

// caughtUp is called by each actor when its own progress is what is to be shown.
func (g *generation) caughtUp() {
	if g.behind.Add(-1) > 0 {
		return
	}
	for _, f := range g.order {
		f.ended.Store(f.finished())
		f.before.Store(nil)
	}
}

// discard ends a generation that has never begun.
func (g *generation) discard(cause error) {
	g.cancel(cause)
	g.shut()
	for _, a := range g.actors {
		a.env.Close()
	}
}

// finished reports whether all actors of a fragment have told that they are done.
func (f *fragment) finished() bool {
	if f.progress == nil || f.ended.Load() {
		return true
	}
	f = f.shown()
	return f.ended.Load() || f.progress.Finished.Load() >= f.progress.Actors
}

// shown is the fragment whose progress is to be shown for f.
func (f *fragment) shown() *fragment {
	for b := f.before.Load(); b != nil; b = f.before.Load() {
		f = b
	}
	return f
}
