package storage

import (
	"encoding/binary"
)

// A drop is an object whose rows are to go. The intent is kept in the store, so
// that neither a crash nor a restart forgets it; readers of older epochs still
// see the rows.
type drop struct {
	id    uint32
	stage int    // index into dropTags: where deletion has come to
	after []byte // last full key deleted in this stage; nil: none
	done  bool
}

// Rows deleted with one commit: few beside an epoch's own writes, more in an epoch that has none.
const (
	dropBusy = 2_000
	dropIdle = 10_000
)

// dropPrefixes are the prefixes under which an object may have keys.
func dropPrefixes(id uint32) [][]byte {
	var out [][]byte
	for _, tag := range []byte{TagState, TagRows, TagIndex} {
		p := objectPrefix(tag, id)
		out = append(out, p)
		for _, t := range []byte{tagPieces, tagBlocks, tagBlockKeys} {
			out = append(out, append([]byte{t}, p...))
		}
	}
	return out
}

func intentKey(id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("\x00drop"), id)
}

// Drop drops objects with epoch e: nothing sealed for them is written from then
// on, and their rows are deleted with later commits, or when the store is opened again. An id is not used again.
func (s *Store) Drop(e Epoch, ids ...uint32) {
	for _, id := range ids {
		st := staged{epoch: e, key: append([]byte{TagJobs}, intentKey(id)...), val: []byte{1}, drop: id}
		s.mu.Lock()
		s.staged = append(s.staged, st)
		s.mu.Unlock()
	}
}

// planDrops adds the next deletions of dropped rows to the epoch.
func (w *commitWriter) planDrops() error {
	room := dropIdle
	if w.n > 0 {
		room = dropBusy
	}
	for _, d := range w.s.drops {
		keys, err := d.next(w.p, room)
		if err != nil {
			return err
		}
		for _, k := range keys {
			w.deletes = append(w.deletes, k)
			w.count(1, len(k))
		}
		room -= len(keys)
		if d.done {
			w.gone = append(w.gone, d.id)
			w.deletes = append(w.deletes, append([]byte{TagJobs}, intentKey(d.id)...))
			w.count(1, 16)
		}
		if room <= 0 {
			break
		}
	}
	return nil
}

// next returns up to room keys of the object, after those it returned before, and marks d done at the end.
func (d *drop) next(p *pin, room int) (keys [][]byte, err error) {
	prefixes := dropPrefixes(d.id)
	for ; d.stage < len(prefixes); d.stage, d.after = d.stage+1, nil {
		c := p.v.cursor(prefixes[d.stage])
		from := prefixes[d.stage]
		if d.after != nil {
			from = append(append([]byte{}, d.after...), 0)
		}
		for ok := c.seek(from); ok; ok = c.next() {
			if len(keys) == room {
				c.close()
				return keys, nil
			}
			k := append([]byte{}, c.key()...)
			keys = append(keys, k)
			d.after = k
		}
		err := c.err()
		c.close()
		if err != nil {
			return nil, err
		}
	}
	d.done = true
	return keys, nil
}

// finishDrops carries out, at open, what drops were left.
func (s *Store) finishDrops() error {
	p := s.pins.latest()
	defer p.release()
	var ids []uint32
	for kv, err := range p.scanTag(TagJobs, []byte("\x00drop")) {
		if err != nil {
			return err
		}
		if len(kv.Key) == len("\x00drop")+4 {
			ids = append(ids, objectID(kv.Key[len("\x00drop"):]))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var prefixes [][]byte
	e := p.epoch + 1
	w := &commitWriter{s: s, e: e, p: p, xor: s.xor, changed: map[uint32]digest{}, gone: ids}
	for _, id := range ids {
		prefixes = append(prefixes, dropPrefixes(id)...)
		w.deletes = append(w.deletes, append([]byte{TagJobs}, intentKey(id)...))
		w.count(1, 16)
	}
	if err := s.eng.dropPrefixes(prefixes); err != nil {
		return err
	}
	w.planDigests()
	m := mark{epoch: e, xor: w.xor, uuid: s.uuid}
	if err := s.eng.apply(batch{epoch: e, n: w.n, bytes: w.bytes, writes: w.writes, marker: m.encode()}); err != nil {
		return err
	}
	if err := s.pins.advance(e); err != nil {
		return err
	}
	s.finish(w)
	if s.ratchet != nil {
		return s.ratchet.write(m)
	}
	return nil
}

// dropInIdle deletes dropped rows at the committed epoch, without making a new
// one: nothing but their intents knows of them any more, and those stay until a commit finds no row left.
func (s *Store) dropInIdle() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.broken != nil || len(s.drops) == 0 {
		return s.broken
	}
	p := s.pins.latest()
	defer p.release()
	if s.pins.count() > 1 {
		return nil // a reader may stand at this very epoch
	}
	d := s.drops[0]
	keys, err := d.next(p, dropIdle)
	d.done = false
	if err != nil || len(keys) == 0 {
		return err
	}
	err = s.eng.apply(batch{epoch: p.epoch, n: len(keys), bytes: int64(64 * len(keys)), writes: func(yield func(write) bool) {
		for _, k := range keys {
			if !yield(write{key: k}) {
				return
			}
		}
	}})
	if err != nil {
		s.broken = err
	}
	return err
}
