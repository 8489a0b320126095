package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

func objectID(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// Commit makes everything sealed and staged up to e durable and visible at once.
// Epochs commit in order. Where nothing was sealed or staged it only moves
// Committed. Any error is fatal: the state on disk may be ahead of what is
// visible, and only opening it again tells. The caller must exit.
func (s *Store) Commit(e Epoch) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	start := time.Now() // measures; decides nothing
	worked, err := s.commit(e)
	if err != nil {
		s.broken = fmt.Errorf("commit epoch %d: %w", e, err)
		return s.broken
	}
	if worked {
		s.m.commit.Observe(time.Since(start).Seconds())
	}
	s.lastCommit.Store(s.o.Clock.Now().UnixNano())
	return nil
}

func (s *Store) commit(e Epoch) (worked bool, err error) {
	if c := s.Committed(); e <= c {
		return false, fmt.Errorf("the newest committed epoch is %d already", c)
	}
	if err := s.eng.failure(); err != nil {
		return false, err
	}
	if err := s.waitRatchet(); err != nil {
		return false, err
	}
	p := s.pins.latest()
	defer p.release()
	w := &commitWriter{s: s, e: e, p: p, changed: map[uint32]digest{}}
	w.take()
	if w.n == 0 && len(s.drops) == 0 {
		s.finish(w)
		return false, s.pins.advance(e)
	}
	if err := w.planDrops(); err != nil {
		return false, err
	}
	w.planDigests()
	w.plan()
	m := mark{epoch: e, xor: w.xor, uuid: s.uuid}
	n := w.n
	if w.unbounded {
		n = math.MaxInt32
	}
	err = s.eng.apply(batch{epoch: e, n: n, bytes: w.bytes, writes: w.writes, marker: m.encode()})
	if err == nil {
		err = w.err
	}
	if err != nil {
		return false, err
	}
	s.pins.publish(e, w.changes, w.gone)
	if err := s.pins.advance(e); err != nil {
		return false, err
	}
	s.finish(w)
	s.m.rows.Add(float64(w.n))
	s.m.bytes.Add(float64(w.bytes))
	if s.ratchet != nil {
		// It may lag by one epoch: the next commit waits for it.
		run := make(chan error, 1)
		s.ratchetRun = run
		s.done.Go(func() { run <- s.ratchet.write(m) })
	}
	return true, nil
}

func (s *Store) waitRatchet() error {
	if s.ratchetRun == nil {
		return nil
	}
	err := <-s.ratchetRun
	s.ratchetRun = nil
	return err
}

// finish moves the store's own account of its objects to the committed epoch.
func (s *Store) finish(w *commitWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range w.changed {
		s.digests[id] = d
	}
	for _, id := range w.gone {
		delete(s.digests, id)
	}
	s.xor = w.xor
	var dirty int64
	for _, l := range w.layers {
		dirty += l.dirty
	}
	s.dirty.Add(-dirty)
	s.flying = nil
	s.drops = append(s.drops, w.intents...)
	s.drops = slices.DeleteFunc(s.drops, func(d *drop) bool { return d.done })
}

// A commitWriter gathers one epoch's writes.
type commitWriter struct {
	s       *Store
	e       Epoch
	p       *pin // the state before
	layers  []sealedLayer
	staged  []staged // the last of each key, in key order
	intents []*drop  // new ones
	deletes [][]byte // keys of dropped objects
	gone    []uint32 // objects whose rows are all deleted
	changed map[uint32]digest
	digests []write
	xor     uint64
	n       int
	bytes   int64
	err     error
	kbuf    []byte
	warmed  byte // says nothing

	// Of objects that have blocks or get some:
	plans     map[uint32]*objectPlan
	changes   map[uint32]*objectChange
	folded    int  // rows of blocks taken apart that are not changed at once
	unbounded bool // there are more writes than were counted
}

// take takes over what was sealed and staged up to the epoch.
func (w *commitWriter) take() {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	w.xor = s.xor
	s.staged = slices.DeleteFunc(s.staged, func(st staged) bool {
		if st.epoch > w.e {
			return false
		}
		w.staged = append(w.staged, st)
		return true
	})
	for _, st := range w.staged {
		if st.drop != 0 && !s.dropped[st.drop] {
			s.dropped[st.drop] = true
			w.intents = append(w.intents, &drop{id: st.drop})
		}
	}
	slices.SortStableFunc(w.staged, func(a, b staged) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.epoch, b.epoch))
	})
	last := w.staged[:0]
	for i, st := range w.staged {
		if i+1 == len(w.staged) || !bytes.Equal(st.key, w.staged[i+1].key) {
			last = append(last, st)
			w.count(1, len(st.key)+len(st.val))
			w.n += pieceCount(len(st.val))
		}
	}
	w.staged = last
	s.sealed = slices.DeleteFunc(s.sealed, func(l sealedLayer) bool {
		if l.l.epoch > w.e {
			return false
		}
		w.layers = append(w.layers, l)
		if !s.dropped[l.d.ID] {
			w.n += l.l.writes
			w.bytes += l.l.data + int64(prefixLen*len(l.l.ents))
		}
		return true
	})
	s.flying = slices.Clone(w.layers)
	// Actors seal in any order. Those of one epoch own different vnodes, so
	// that the first key tells them apart.
	slices.SortStableFunc(w.layers, func(a, b sealedLayer) int {
		return cmp.Or(cmp.Compare(a.d.Tag, b.d.Tag), cmp.Compare(a.d.ID, b.d.ID), -cmp.Compare(a.l.epoch, b.l.epoch),
			bytes.Compare(a.l.key(a.l.sorted[0]), b.l.key(b.l.sorted[0])))
	})
}

func (w *commitWriter) count(n, bytes int) {
	w.n += n
	w.bytes += int64(bytes)
}

// planDigests sums the layers' differences up.
func (w *commitWriter) planDigests() {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []uint32
	for _, l := range w.layers {
		id := l.d.ID
		if s.dropped[id] || l.l.delta == (digest{}) {
			continue
		}
		d, ok := w.changed[id]
		if !ok {
			d = s.digests[id]
			ids = append(ids, id)
		}
		d.add(l.l.delta)
		w.changed[id] = d
	}
	slices.Sort(ids)
	for _, id := range ids {
		old, known := s.digests[id]
		d := w.changed[id]
		if known && old == d {
			continue
		}
		if known {
			w.xor ^= old.mix(id)
		}
		w.xor ^= d.mix(id)
		w.digest(id, d.encode())
	}
	for _, id := range w.gone {
		if old, known := s.digests[id]; known {
			w.xor ^= old.mix(id)
			w.digest(id, nil)
		}
	}
}

func (w *commitWriter) digest(id uint32, val []byte) {
	w.digests = append(w.digests, write{key: objectPrefix(TagDigest, id), val: val})
	w.count(1, 32)
}

// writes yields the epoch's writes: metadata, digests, rows in key order, deletions of dropped rows.
func (w *commitWriter) writes(yield func(write) bool) {
	for _, st := range w.staged {
		if !w.stale(st.key, len(st.val), yield) || !(write{key: st.key, val: st.val}).split(yield) {
			return
		}
	}
	for _, d := range w.digests {
		if !yield(d) {
			return
		}
	}
	for i := 0; i < len(w.layers); {
		j := i + 1
		for j < len(w.layers) && w.layers[j].d.ID == w.layers[i].d.ID && w.layers[j].d.Tag == w.layers[i].d.Tag {
			j++
		}
		ok := false
		if o := w.plans[w.layers[i].d.ID]; o != nil {
			ok = w.planned(o, yield)
		} else {
			ok = w.object(w.layers[i:j], yield)
		}
		if !ok {
			return
		}
		i = j
	}
	for _, k := range w.deletes {
		if !yield(write{key: k}) {
			return
		}
	}
}

// stale yields deletions of pieces that the key's new value leaves behind.
func (w *commitWriter) stale(key []byte, size int, yield func(write) bool) bool {
	ok, err := w.p.stalePieces(key, size, yield)
	if err != nil {
		w.err = err
		return false
	}
	return ok
}

// warmAhead is how many keys are touched at once.
const warmAhead = 32

// object yields the writes of one object's layers, newest epoch first.
func (w *commitWriter) object(layers []sealedLayer, yield func(write) bool) bool {
	d := layers[0].d
	w.s.mu.Lock()
	dropped, big := w.s.dropped[d.ID], w.s.digests[d.ID].big
	w.s.mu.Unlock()
	if dropped {
		return true
	}
	prefix := objectPrefix(d.Tag, d.ID)
	one := func(raw, val []byte) bool {
		key := w.key(prefix, raw)
		if big && !w.stale(key, len(val), yield) {
			return false
		}
		return (write{key: key, val: val}).split(yield)
	}
	if layers[0].l.epoch == layers[len(layers)-1].l.epoch {
		for _, s := range layers {
			for n, i := range s.l.sorted {
				if n%warmAhead == 0 {
					w.warmed ^= s.l.warm(s.l.sorted[n:min(n+warmAhead, len(s.l.sorted))])
				}
				if s.l.ents[i].flags == entDeleted|entBorn {
					continue
				}
				if !one(s.l.key(i), s.l.val(i)) {
					return false
				}
			}
		}
		return true
	}
	m := &merge{tombs: true}
	for _, s := range layers {
		m.layers = append(m.layers, &sealedSource{l: s.l})
	}
	m.seek(nil)
	for {
		ok, err := m.next()
		if err != nil {
			w.err = err
			return false
		}
		if !ok {
			return true
		}
		if !one(m.k, m.v) {
			return false
		}
	}
}

// key joins prefix and raw until the next call: engines copy keys.
func (w *commitWriter) key(prefix, raw []byte) []byte {
	w.kbuf = append(append(w.kbuf[:0], prefix...), raw...)
	return w.kbuf
}
