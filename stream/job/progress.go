package job

import (
	"fmt"
	"slices"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/storage"
	"streamdb/stream"
)

// A FragmentReport is how far one scan or locality provider has come.
type FragmentReport struct {
	Fragment    plan.FragmentID
	Upstream    catalog.ID // the relation a scan reads; 0: a locality provider
	Phase       stream.Phase
	Done, Total int64
	Actors      int
	Finished    int
	WaitsFor    []plan.FragmentID
	Rate        int64 // the limit in force, in rows per second; -1: none
	RowsPerSec  float64
	Left        time.Duration // < 0: unknown
}

// A Report is how far a job's backfills have come.
type Report struct {
	Rel         *catalog.Relation
	Started     time.Time
	Done, Total int64         // rows over all scans and locality providers
	RowsPerSec  float64       // over the last few seconds
	Left        time.Duration // until done at that speed; < 0: unknown
	Rate        int64         // the limit in force
	Finished    bool
	Err         error
	Fragments   []FragmentReport
	StateBytes  int64  // of all its operators
	WaitsFor    string // what keeps it from going faster; "": nothing
}

// Phase is that of the scan or locality provider that is least far; "": it has none.
func (r *Report) Phase() string {
	out := ""
	for _, f := range r.Fragments {
		if out == "" || f.Phase != stream.PhaseDone {
			out = f.Phase.String()
		}
	}
	return out
}

// A rateSample smooths the speed of a backfill.
type rateSample struct {
	at   time.Time
	done int64
	rate float64 // rows per second
}

// take takes in how many rows are done.
func (s *rateSample) take(now time.Time, done int64) {
	switch since := now.Sub(s.at); {
	case s.at.IsZero():
		*s = rateSample{at: now, done: done}
	case since >= 500*time.Millisecond:
		v := max(0, float64(done-s.done)/since.Seconds())
		if s.rate > 0 {
			v = 0.6*v + 0.4*s.rate
		}
		*s = rateSample{now, done, v}
	}
}

// left is how long the rest takes at that speed; < 0: unknown.
func (s *rateSample) left(done, total int64) time.Duration {
	if s.rate <= 0 {
		return -1
	}
	return time.Duration(float64(total-done) / s.rate * float64(time.Second))
}

// Report tells how far the job has come.
func (m *Manager) Report(j *Job) Report {
	j.mu.Lock()
	r := Report{Rel: j.Rel, Started: j.started, Rate: j.limits.BackfillRate(), Finished: j.finished, Err: j.err, Left: -1}
	j.mu.Unlock()
	g := j.gen.Load()
	for _, f := range g.order {
		if f.progress == nil {
			continue
		}
		p := f.shown().progress
		fr := FragmentReport{Fragment: f.plan.ID, Phase: stream.Phase(p.Phase.Load()), Done: p.Done.Load(), Total: p.Total.Load(), Actors: len(f.actors), Finished: int(p.Finished.Load())}
		switch {
		case f.finished():
			fr.Phase, fr.Finished = stream.PhaseDone, fr.Actors
		case p.Through.Load() >= p.Actors:
			fr.Phase = stream.PhaseCatchUp
		}
		if s := scanOf(f.plan.Root); s != nil {
			fr.Upstream = s.Table.ID
		}
		if !f.started.Load() {
			for _, d := range j.Graph.BackfillOrder[f.plan.ID] {
				if !g.frags[d].finished() {
					fr.WaitsFor = append(fr.WaitsFor, d)
				}
			}
		}
		fr.Rate = f.limiter.Rate()
		fr.Total = max(fr.Total, fr.Done)
		r.Done += fr.Done
		r.Total += fr.Total
		r.Fragments = append(r.Fragments, fr)
	}
	for _, t := range j.Graph.Tables() {
		r.StateBytes += m.store.Bytes(uint32(t.ID))
	}
	held, still := m.stalled(), ""
	now := m.clock.Now()
	if !r.Finished && r.Err == nil {
		still = m.still(j, now)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sample.take(now, r.Done)
	r.RowsPerSec, r.Left = j.sample.rate, j.sample.left(r.Done, r.Total)
	for i := range r.Fragments {
		f := &r.Fragments[i]
		s := j.samples[f.Fragment]
		if s == nil {
			s = &rateSample{}
			j.samples[f.Fragment] = s
		}
		s.take(now, f.Done)
		f.RowsPerSec, f.Left = s.rate, s.left(f.Done, f.Total)
		if f.Phase == stream.PhaseDone {
			f.RowsPerSec, f.Left = 0, 0
		}
	}
	switch {
	case held != "":
		r.WaitsFor = held
	case still != "":
		r.WaitsFor = still
	case r.Finished:
	case m.Paused():
		r.WaitsFor = "paused: all backfills are"
	case r.Rate == stream.Paused:
		r.WaitsFor = "paused: backfill_rate_limit = 0"
	case r.Rate > 0:
		r.WaitsFor = fmt.Sprintf("backfill_rate_limit = %d", r.Rate)
	}
	if r.Finished {
		r.Left = 0
	}
	return r
}

func scanOf(n plan.Stream) *plan.StreamTableScan {
	if s, ok := n.(*plan.StreamTableScan); ok {
		return s
	}
	for _, in := range n.Inputs() {
		if s := scanOf(in); s != nil {
			return s
		}
	}
	return nil
}

// committed is called after each epoch: it lets fragments start whose
// predecessors are done, and tells those who wait for a job that it is built.
func (m *Manager) committed(storage.Epoch) *stream.Mutation {
	var mut *stream.Mutation
	for _, j := range m.Jobs() {
		j.mu.Lock()
		skip := j.finished
		j.mu.Unlock()
		if skip {
			continue
		}
		m.warnStill(j)
		all := true
		g := j.gen.Load()
		for _, f := range g.order {
			all = all && f.finished()
			if f.started.Load() {
				continue
			}
			if !slices.ContainsFunc(j.Graph.BackfillOrder[f.plan.ID], func(id plan.FragmentID) bool { return !g.frags[id].finished() }) {
				f.started.Store(true)
				if mut == nil {
					mut = &stream.Mutation{StartBackfill: map[stream.FragmentKey]bool{}}
				}
				mut.StartBackfill[f.key] = true
			}
		}
		if all {
			m.finish(j)
		}
	}
	return mut
}

func (m *Manager) finish(j *Job) {
	j.mu.Lock()
	first := !j.finished
	idle := first && j.active && !j.source
	j.finished = true
	j.active = j.active && !idle
	j.mu.Unlock()
	if first {
		close(j.built)
	}
	if idle {
		m.coord.Activate(-1)
	}
	if first {
		m.settleSize(j)
	}
}

// settleSize gives a job that is built the parallelism that it has from then on.
func (m *Manager) settleSize(j *Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.mu.Lock()
	to := j.wanted()
	j.mu.Unlock()
	if m.closing || m.jobs[j.Rel.ID] != j || to == j.Parallelism() {
		return
	}
	m.resizing.Go(func() {
		err := m.resize(m.ctx, j.Rel.ID, nil, func(*Job) {})
		if err != nil && j.Err() == nil && m.ctx.Err() == nil {
			m.log.Error("job keeps the parallelism of its backfill", "job", j.Rel.Name, "err", err)
		}
	})
}

// stalled says what holds the oldest epoch, if it is in flight for too long; "": nothing.
func (m *Manager) stalled() string {
	e, since, actors := m.coord.Stalled()
	held, most := m.clock.Now().Sub(since), m.coord.stall()
	if e == 0 || most == 0 || held < most {
		return ""
	}
	if len(actors) == 0 {
		return fmt.Sprintf("the disk: epoch %d is being written, in flight for %d s", e, int(held.Seconds()))
	}
	who := fmt.Sprintf("actor %d", actors[0])
	for _, j := range m.Jobs() {
		for _, f := range j.gen.Load().order {
			for _, a := range f.actors {
				if a.id == actors[0] {
					who = fmt.Sprintf("%q, fragment %d, actor %d%s", j.Rel.Name, f.plan.ID, a.id, a.where())
				}
			}
		}
	}
	if n := len(actors) - 1; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: it holds epoch %d, in flight for %d s", who, e, int(held.Seconds()))
}

// where names the executor, the table and the vnode that an actor was last seen at.
func (a *actor) where() string {
	p, vnode, ok := a.spot.At()
	if !ok {
		return ""
	}
	out := ", in " + p.Executor
	if p.Table != "" {
		out += fmt.Sprintf(" of %q", p.Table)
	}
	if vnode >= 0 {
		out += fmt.Sprintf(", vnode %d", vnode)
	}
	return out
}

// warnStalled logs what holds the oldest epoch.
func (m *Manager) warnStalled() {
	if s := m.stalled(); s != "" {
		m.log.Warn("an epoch does not end", "held_by", s)
	}
}

// warnStill logs, once a while, that a job's backfill stands still.
func (m *Manager) warnStill(j *Job) {
	now, most := m.clock.Now(), m.coord.stall()
	j.mu.Lock()
	recent := now.Sub(j.warned) < most
	j.mu.Unlock()
	if recent {
		return
	}
	if s := m.still(j, now); s != "" {
		j.mu.Lock()
		j.warned = now
		j.mu.Unlock()
		m.log.Warn("a backfill stands still", "job", j.Rel.Name, "where", s)
	}
}

// still says which of a job's backfills may move and has not for too long; "": none.
// The job is not finished.
func (m *Manager) still(j *Job, now time.Time) string {
	most := m.coord.stall()
	if most == 0 || m.Paused() {
		return ""
	}
	for _, f := range j.gen.Load().order {
		if f.progress == nil || f.finished() || !f.started.Load() || f.limiter.Rate() == stream.Paused {
			continue
		}
		p := f.shown().progress
		ph := stream.Phase(p.Phase.Load())
		if ph != stream.PhaseScan && ph != stream.PhaseDrain || p.Through.Load() >= p.Actors {
			continue
		}
		moved := p.LastMove.Load()
		since := now.Sub(time.UnixMicro(moved))
		if rate := f.limiter.Rate(); rate > 0 {
			since -= time.Second // one row a second is a limit, too
		}
		if moved == 0 || since < most {
			continue
		}
		out := fmt.Sprintf("fragment %d has not moved for %d s", f.plan.ID, int(since.Seconds()))
		for _, a := range f.actors {
			out += fmt.Sprintf("; actor %d%s", a.id, a.where())
		}
		return out
	}
	return ""
}
