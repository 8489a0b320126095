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
	WaitsFor    string // what keeps it from going faster; "": nothing
}

// A rateSample smooths the speed of a backfill.
type rateSample struct {
	at   time.Time
	done int64
	rate float64
}

// Report tells how far the job has come.
func (m *Manager) Report(j *Job) Report {
	j.mu.Lock()
	r := Report{Rel: j.Rel, Started: j.started, Rate: j.rate, Finished: j.finished, Err: j.err, Left: -1}
	j.mu.Unlock()
	g := j.gen.Load()
	for _, f := range g.order {
		if f.progress == nil {
			continue
		}
		p := f.shown().progress
		fr := FragmentReport{Fragment: f.plan.ID, Phase: stream.Phase(p.Phase.Load()), Done: p.Done.Load(), Total: p.Total.Load(), Actors: int(p.Actors), Finished: int(p.Finished.Load())}
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
		fr.Total = max(fr.Total, fr.Done)
		r.Done += fr.Done
		r.Total += fr.Total
		r.Fragments = append(r.Fragments, fr)
	}
	held := m.stalled()
	now := m.clock.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.sample
	switch since := now.Sub(s.at); {
	case s.at.IsZero():
		*s = rateSample{at: now, done: r.Done}
	case since >= 500*time.Millisecond:
		v := float64(r.Done-s.done) / since.Seconds()
		if s.rate > 0 {
			v = 0.6*v + 0.4*s.rate
		}
		*s = rateSample{now, r.Done, v}
	}
	r.RowsPerSec = s.rate
	if s.rate > 0 {
		r.Left = time.Duration(float64(r.Total-r.Done) / s.rate * float64(time.Second))
	}
	switch {
	case held != "":
		r.WaitsFor = held
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

// stalled says what holds the oldest epoch, if it is in flight for stallAfter or longer; "": nothing.
func (m *Manager) stalled() string {
	e, since, actors := m.coord.Stalled()
	held := m.clock.Now().Sub(since)
	if e == 0 || held < stallAfter {
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
					who = fmt.Sprintf("%q, fragment %d, actor %d", j.Rel.Name, f.plan.ID, a.id)
				}
			}
		}
	}
	if n := len(actors) - 1; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: it holds epoch %d, in flight for %d s", who, e, int(held.Seconds()))
}

// warnStalled logs what holds the oldest epoch.
func (m *Manager) warnStalled() {
	if s := m.stalled(); s != "" {
		m.log.Warn("an epoch does not end", "held_by", s)
	}
}
