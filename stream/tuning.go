package stream

import (
	"sync/atomic"
	"time"
)

// A Pace is how much backfills may do between two barriers, so that what runs
// beside them stays fresh. Whoever watches the latency of barriers sets it; every scan and
// locality provider keeps to it. A nil Pace sets no limit.
type Pace struct {
	rows atomic.Int64
	gap  atomic.Int64 // ns
}

// Limit is the most rows that one actor may deliver between two barriers; 0: no limit.
func (p *Pace) Limit() int {
	if p == nil {
		return 0
	}
	return int(p.rows.Load())
}

// SetLimit changes Limit; it counts from the next chunk on.
func (p *Pace) SetLimit(rows int) { p.rows.Store(int64(rows)) }

// Gap is how long an actor must leave between two turns of its scan, where even the least
// Limit is too much; 0: not at all. While there is a Limit, who delivers should also yield the
// processor (runtime.Gosched) after each chunk: others wait for it.
func (p *Pace) Gap() time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.gap.Load())
}

// SetGap changes Gap.
func (p *Pace) SetGap(d time.Duration) { p.gap.Store(int64(d)) }

// A Tuning is what can be changed while jobs run and needs no barrier.
type Tuning struct {
	// SortBuffer: locality providers sort the changes of an epoch that has more than SortThreshold rows.
	SortBuffer    atomic.Bool
	SortThreshold atomic.Int64
}

// DefaultSortThreshold is the rows of an epoch from which its changes are sorted.
const DefaultSortThreshold = 65536

// NewTuning returns the defaults.
func NewTuning() *Tuning {
	t := &Tuning{}
	t.SortBuffer.Store(true)
	t.SortThreshold.Store(DefaultSortThreshold)
	return t
}

// A Place is what an actor may be doing: an executor and the state table that it works on.
type Place struct{ Executor, Table string }

// A Spot is where an actor is at the moment, for the watchdog. The actor sets it,
// anyone may read it.
type Spot struct {
	at    atomic.Pointer[Place]
	vnode atomic.Int32
}

// Enter says that the actor is at p from now on, which stays as it is; vnode -1: at none in particular.
func (s *Spot) Enter(p *Place, vnode int) {
	if s == nil {
		return
	}
	s.at.Store(p)
	s.vnode.Store(int32(vnode))
}

// At returns where the actor was last; ok: it has been somewhere.
func (s *Spot) At() (p Place, vnode int, ok bool) {
	at := s.at.Load()
	if at == nil {
		return Place{}, -1, false
	}
	return *at, int(s.vnode.Load()), true
}
