package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"streamdb/sql/catalog"
	"streamdb/storage"
	"streamdb/stream"
)

// Rescale gives a running job another parallelism, at one barrier and while it,
// those who read it and those who write to it go on; stage adds to the barrier's
// epoch (nil: nothing). It returns when that epoch is committed. A job that is being
// built with a parallelism of its own (Spec.Building) takes it on when it is built.
//
// At barrier B the job's actors seal what they have and end; those that take over
// get the same barrier as their first, and wait until B is committed, which is when
// they can read what the others have sealed. Who sends to the job turns to them
// with B. Who reads it has B from the old actors as their last message; channels of
// the new ones have been reserved in its inboxes, and are listened to after B. So
// nobody else sees more of a rescale than a barrier.
func (m *Manager) Rescale(ctx context.Context, id catalog.ID, parallelism int, stage func(storage.Epoch)) error {
	return m.resize(ctx, id, stage, func(j *Job) { j.normal = parallelism })
}

// RescaleBackfill is Rescale for the parallelism that a job has until it is built;
// 0: the one it will have then. Of a job that is built it changes nothing but what stage does.
func (m *Manager) RescaleBackfill(ctx context.Context, id catalog.ID, parallelism int, stage func(storage.Epoch)) error {
	return m.resize(ctx, id, stage, func(j *Job) { j.building = parallelism })
}

// Parallelism is how many actors the job's fragments have, those aside that have one.
func (j *Job) Parallelism() int { return j.gen.Load().parallelism }

// wanted is the parallelism that the job should have. The caller holds j.mu.
func (j *Job) wanted() int {
	if !j.finished && j.building > 0 {
		return j.building
	}
	return j.normal
}

// resize changes a job's parallelisms as set does, and its actors if need be.
func (m *Manager) resize(ctx context.Context, id catalog.ID, stage func(storage.Epoch), set func(*Job)) error {
	if err := m.take(ctx, m.turn); err != nil {
		return err
	}
	e, err := m.replace(ctx, id, stage, set)
	<-m.turn
	if err == nil {
		err = m.coord.Wait(ctx, e)
	}
	if err != nil {
		return err
	}
	if j := m.Job(id); j != nil {
		return j.Err()
	}
	return nil
}

// replace sends the barrier at which a job's actors are replaced and returns its
// epoch. The caller holds turn.
func (m *Manager) replace(ctx context.Context, id catalog.ID, stage func(storage.Epoch), set func(*Job)) (storage.Epoch, error) {
	m.mu.Lock()
	j := m.jobs[id]
	err := error(nil)
	switch {
	case m.closing:
		err = errClosing
	case j == nil:
		err = fmt.Errorf("relation %d has no job", id)
	default:
		err = j.Err()
	}
	if err != nil {
		m.mu.Unlock()
		return 0, err
	}
	j.mu.Lock()
	normal, building := j.normal, j.building
	set(j)
	to := j.wanted()
	j.normal, j.building = normal, building // until the barrier is sent
	j.mu.Unlock()
	cmd := Command{Stage: stage, Alive: func() bool { return j.Err() == nil }}
	keep := func() {
		j.mu.Lock()
		set(j)
		j.mu.Unlock()
	}
	old := j.gen.Load()
	vnodes := vnodesOf(j.Rel)
	if maps.Equal(sizes(j.Graph, vnodes, to), sizes(j.Graph, vnodes, old.parallelism)) {
		m.mu.Unlock()
		cmd.Change = func(storage.Epoch) *stream.Mutation { keep(); return nil }
		return m.dropped(j)(m.coord.Submit(ctx, cmd))
	}
	g, err := m.generate(j, to, old)
	if err != nil {
		m.mu.Unlock()
		return 0, err
	}
	paused := m.paused.Load()
	s := m.succeed(g, old)
	m.start(g)
	m.resizing.Add(1)
	m.mu.Unlock()

	cmd.Mutation = s.mutation
	cmd.Start = []Start{{Alive: cmd.Alive, Expect: g.ids(), Heads: g.heads(), TakeOver: true}}
	cmd.Change = func(e storage.Epoch) *stream.Mutation {
		keep()
		mut := &stream.Mutation{StartBackfill: map[stream.FragmentKey]bool{}}
		// What other barriers have changed since the actors were built.
		for _, f := range g.order {
			if old.frags[f.plan.ID].started.Load() {
				f.started.Store(true)
				mut.StartBackfill[f.key] = true
			}
		}
		if now := m.paused.Load(); now != paused {
			mut.Pause, mut.Resume = now, !now
		}
		g.begin = e
		j.gen.Store(g)
		close(g.gate)
		return mut
	}
	e, err := m.dropped(j)(m.coord.Submit(ctx, cmd))
	gone := old
	if err != nil {
		gone = g
		g.cancel(err)
		g.shut()
		s.release()
	} else {
		s.settle()
		m.log.Info("job rescaled", "job", j.Rel.Name, "from", old.parallelism, "to", to, "epoch", e)
	}
	go func() {
		defer m.resizing.Done()
		gone.wg.Wait()
		j.mu.Lock()
		j.gens = slices.DeleteFunc(j.gens, func(g *generation) bool { return g == gone })
		j.mu.Unlock()
	}()
	return e, err
}

// dropped makes the error of a command that was dropped with its job the job's.
func (m *Manager) dropped(j *Job) func(storage.Epoch, error) (storage.Epoch, error) {
	return func(e storage.Epoch, err error) (storage.Epoch, error) {
		if errors.Is(err, errDropped) {
			err = j.Err()
		}
		return e, err
	}
}

// A succession is what changes around a job whose actors are replaced.
type succession struct {
	mutation *stream.Mutation
	links    []relinked
}

// A relinked is a link of a reader, and the dispatchers that it will consist of.
type relinked struct {
	link *upstreamLink
	disp map[stream.ActorID][]*stream.Dispatcher
}

// succeed connects a generation that takes over from old to the jobs around it.
// connect has made the dispatchers from those it reads. The caller holds mu and turn.
func (m *Manager) succeed(g, old *generation) *succession {
	mut := &stream.Mutation{Stop: map[stream.ActorID]bool{}, Add: map[stream.ActorID][]*stream.Dispatcher{}, Remove: map[*stream.Dispatcher]bool{}, Switch: map[*stream.Inbox]stream.Switch{}}
	s := &succession{mutation: mut}
	for _, a := range old.actors {
		mut.Stop[a.id] = true
	}
	for _, l := range old.ups {
		for _, ds := range l.disp {
			for _, d := range ds {
				mut.Remove[d] = true
			}
		}
	}
	for _, l := range g.ups {
		for a, ds := range l.disp {
			mut.Add[a] = append(mut.Add[a], ds...)
		}
	}
	for _, a := range g.actors {
		a.run.Later = []*stream.Dispatcher{}
	}
	for _, id := range sortedIDs(m.jobs) {
		reader := m.jobs[id]
		if reader.Err() != nil {
			continue
		}
		rg := reader.gen.Load()
		for i := range rg.ups {
			l := &rg.ups[i]
			if l.up.Rel != g.job.Rel.ID {
				continue
			}
			for _, ds := range l.disp {
				for _, d := range ds {
					for _, p := range d.To {
						sw := mut.Switch[p.In]
						sw.Close = append(sw.Close, p.Channel)
						mut.Switch[p.In] = sw
					}
				}
			}
			r := relinked{l, map[stream.ActorID][]*stream.Dispatcher{}}
			for i, a := range g.outlet().actors {
				d := dispatcher(l.up.Dist, l.up.Cols, rg.frags[l.up.To], l.up.Port, false, i, (*stream.Inbox).Reserve)
				for _, p := range d.To {
					sw := mut.Switch[p.In]
					sw.Open = append(sw.Open, p.Channel)
					mut.Switch[p.In] = sw
				}
				a.run.Later = append(a.run.Later, d)
				r.disp[a.id] = append(r.disp[a.id], d)
			}
			s.links = append(s.links, r)
		}
	}
	return s
}

// settle makes the readers' links those that the barrier has put in force.
func (s *succession) settle() {
	for _, r := range s.links {
		r.link.disp = r.disp
	}
}

// release takes back what was reserved, when the barrier was not sent.
func (s *succession) release() {
	for in, sw := range s.mutation.Switch {
		for _, c := range sw.Open {
			in.Release(c)
		}
	}
}
