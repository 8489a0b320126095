package storage

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"streamdb/sql/sqlerr"
)

// A pin is a view of one committed epoch that readers share. Invariants:
//
//  1. While refs is above zero and the pin is not dead, the engine was not told
//     to discard the pin's epoch: reads through it are right.
//  2. dead is set before the discard, so a reader that finds it unset after a
//     read has read rightly. Every read looks after itself.
type pin struct {
	ps    *pins
	epoch Epoch
	v     view
	refs  atomic.Int64
	dead  atomic.Bool
	since time.Time // when it was superseded; zero: it is the current one. Guarded by ps.mu
}

// pins are the views in use. It alone decides what the engine may discard.
type pins struct {
	eng    engine
	clock  Clock
	maxAge time.Duration
	cur    atomic.Pointer[pin]        // newest committed; the store holds one reference
	index  atomic.Pointer[blockIndex] // nil: no object has blocks
	cache  blockCache

	mu     sync.Mutex
	all    []*pin  // every pin with references
	recent []Epoch // the last epochs that were current; kept so that a reader who asked for the newest still gets it
	floor  Epoch   // below it, versions may be gone
}

const recentEpochs = 4

// advance makes e the current epoch and lets the engine discard what nobody can read any more.
func (ps *pins) advance(e Epoch) error {
	v, err := ps.eng.view(e)
	if err != nil {
		return err
	}
	p := &pin{ps: ps, epoch: e, v: v}
	p.refs.Store(1)
	ps.mu.Lock()
	ps.all = append(ps.all, p)
	old := ps.cur.Swap(p)
	now := ps.clock.Now()
	if old != nil {
		old.since = now
	}
	ps.recent = append(ps.recent, e)
	if len(ps.recent) > recentEpochs {
		ps.recent = slices.Delete(ps.recent, 0, len(ps.recent)-recentEpochs)
	}
	ps.mu.Unlock()
	if old != nil {
		old.release()
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	floor := ps.recent[0]
	for _, p := range ps.all {
		if !p.since.IsZero() && now.Sub(p.since) > ps.maxAge {
			p.dead.Store(true)
			continue
		}
		floor = min(floor, p.epoch)
	}
	if floor > ps.floor {
		ps.floor = floor
		ps.eng.discard(floor)
	}
	return nil
}

func (ps *pins) committed() Epoch { return ps.cur.Load().epoch }

func (ps *pins) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.all)
}

// latest takes a reference on the newest committed epoch's view.
func (ps *pins) latest() *pin {
	for {
		if p := ps.cur.Load(); p.ref() {
			return p
		}
	}
}

func (ps *pins) at(e Epoch) (*pin, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if cur := ps.committed(); e > cur {
		return nil, sqlerr.New(sqlerr.NotPrepared, "epoch %d is not committed yet, the newest is %d", e, cur)
	}
	for _, p := range ps.all {
		if p.epoch == e && !p.dead.Load() && p.ref() {
			return p, nil
		}
	}
	if e < ps.floor {
		return nil, tooOld(e)
	}
	v, err := ps.eng.view(e)
	if err != nil {
		return nil, err
	}
	p := &pin{ps: ps, epoch: e, v: v, since: ps.clock.Now()}
	p.refs.Store(1)
	ps.all = append(ps.all, p)
	return p, nil
}

func tooOld(e Epoch) error {
	return sqlerr.New(sqlerr.SnapshotTooOld, "snapshot too old: epoch %d", e).
		WithHint("Run the statement again.")
}

// ref takes a reference unless the last one is gone.
func (p *pin) ref() bool {
	for {
		n := p.refs.Load()
		if n == 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (p *pin) release() {
	if p.refs.Add(-1) > 0 {
		return
	}
	p.ps.mu.Lock()
	if i := slices.Index(p.ps.all, p); i >= 0 {
		p.ps.all = slices.Delete(p.ps.all, i, i+1)
	}
	p.ps.mu.Unlock()
	p.v.close()
}

// check says whether what was just read may be trusted.
func (p *pin) check() error {
	if p.dead.Load() {
		return tooOld(p.epoch)
	}
	return nil
}

func readError(err error) error { return fmt.Errorf("read state: %w", err) }

// get reads a full key; nil: absent. Rows of objects are read by row.
func (p *pin) get(key []byte) ([]byte, error) {
	val, meta, err := p.v.get(key)
	if err == nil && meta == metaBig {
		val, err = p.join(key, val)
	}
	if err != nil {
		return nil, readError(err)
	}
	return val, p.check()
}
