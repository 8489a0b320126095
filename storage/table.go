package storage

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
)

// A KV is a key with its value. Both are valid until the next iteration step only.
type KV struct{ Key, Val []byte }

// A StateTable is one actor's rows of one object: those of its vnodes. Its reads
// see its own writes at once; everyone else sees them when their epoch is
// committed. It belongs to one goroutine. Keys are raw, as its Codec makes them.
//
// The changes of the open epoch are in open, those of ended epochs that the store
// has not committed yet in sealed; below both lies the committed view. Old rows
// are found through whichever of them is newest.
type StateTable struct {
	s      *Store
	d      Desc
	codec  *Codec
	vnodes VnodeSet
	scoped bool // some vnodes of the object are not ours: scans skip them
	prefix []byte

	open   *layer
	sealed []*layer // oldest first
	last   Epoch    // of the newest sealed layer

	kbuf, vbuf   []byte
	fbuf         []byte
	accounted    int64 // of open.bytes in the store's count
	hits, misses int

	// A cursor is dear to make and cheap to seek, so one is kept for the scans of
	// an epoch. It is used only while spare's view is the newest one, which its
	// user holds meanwhile; by itself it holds no version of the state.
	cursor cursor // nil: none, or in use
	spare  *pin
}

// Table opens an actor's share of the object d.
func (s *Store) Table(d Desc, vnodes VnodeSet) *StateTable {
	t := &StateTable{s: s, d: d, codec: NewCodec(d), vnodes: vnodes, prefix: objectPrefix(d.Tag, d.ID), open: newLayer(0)}
	t.scoped = vnodes.Len() < max(1, d.Vnodes)
	return t
}

// Codec returns the codec of the table's keys and rows.
func (t *StateTable) Codec() *Codec { return t.codec }

// Desc returns what the table was opened with.
func (t *StateTable) Desc() Desc { return t.d }

// Vnodes returns the vnodes that the table owns.
func (t *StateTable) Vnodes() VnodeSet { return t.vnodes }

// DirtyBytes is the memory that changes of the open epoch take.
func (t *StateTable) DirtyBytes() int { return int(t.open.bytes) }

// WriteChunk applies c's changes in order; its columns are the whole schema. An
// insert must be of a key that no row has, a delete of a row that is there. What
// contradicts the open epoch's own changes is an error, and the chunk is then
// applied in part: the job must stop.
func (t *StateTable) WriteChunk(c *chunk.Chunk) error {
	vn := t.codec.Vnodes(c.Cols, c.Len())
	l := t.open
	for i := range c.Len() {
		v := uint16(0)
		if vn != nil {
			v = vn[i]
		}
		if !t.vnodes.Has(v) {
			return sqlerr.New(sqlerr.Internal, "row of vnode %d came to a part of %s that does not own it", v, t.d.label())
		}
		t.kbuf = t.codec.AppendKeyVnode(t.kbuf[:0], v, c.Cols, i)
		if len(t.kbuf) > maxKeyBytes {
			return fmt.Errorf("write %s: %w", t.d.label(), errKeyTooLong(len(t.kbuf)))
		}
		t.vbuf = t.codec.AppendValue(t.vbuf[:0], c.Cols, i)
		h := xxh3.Hash(t.kbuf)
		at, found := l.find(t.kbuf, h)
		if c.Op(i) == chunk.Insert {
			if found && l.ents[at].flags&entDeleted == 0 {
				return t.contradiction("insert of a key that is there", t.kbuf)
			}
			l.delta.row(1, t.kbuf, h, t.vbuf)
			l.put(at, found, t.kbuf, h, t.vbuf, true)
			continue
		}
		if found && l.ents[at].flags&entDeleted != 0 {
			return t.contradiction("delete of a row that is not there", t.kbuf)
		}
		l.delta.row(-1, t.kbuf, h, t.vbuf)
		l.put(at, found, t.kbuf, h, nil, false)
	}
	t.account()
	return nil
}

func (t *StateTable) contradiction(what string, key []byte) error {
	return sqlerr.New(sqlerr.Internal, "change to %s contradicts its state: %s", t.d.label(), what).WithDetail("key %x", key)
}

// Put sets key. On an exact object it looks up what it replaces unless the open
// or a sealed epoch knows; Replace spares that.
func (t *StateTable) Put(key, val []byte) error { return t.blind(key, val) }

// PutNew sets a key that has no row now; the caller must know. It spares a look at
// what is there, and lets large epochs be written in blocks.
func (t *StateTable) PutNew(key, val []byte) error { return t.Replace(key, nil, val) }

// Delete deletes key, which need not be there. See Put.
func (t *StateTable) Delete(key []byte) error { return t.blind(key, nil) }

// Replace sets key to val, or deletes it where val is nil. old is what it has
// now, nil where it has nothing; the caller must know. val may be empty, not nil.
func (t *StateTable) Replace(key, old, val []byte) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("write %s: %w", t.d.label(), errKeyTooLong(len(key)))
	}
	h := xxh3.Hash(key)
	at, found := t.open.find(key, h)
	t.replace(at, found, key, h, old, val)
	return nil
}

func (t *StateTable) replace(at uint32, found bool, key []byte, h uint64, old, val []byte) {
	l := t.open
	if old != nil {
		l.delta.row(-1, key, h, old)
	}
	if val != nil {
		l.delta.row(1, key, h, val)
	} else if old == nil && !found {
		return
	}
	l.put(at, found, key, h, val, old == nil)
	t.account()
}

func (t *StateTable) blind(key, val []byte) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("write %s: %w", t.d.label(), errKeyTooLong(len(key)))
	}
	h := xxh3.Hash(key)
	at, found := t.open.find(key, h)
	if found {
		t.replace(at, found, key, h, t.open.val(at), val)
		return nil
	}
	if t.d.exact() {
		old, err := t.Get(key)
		if err != nil {
			return err
		}
		t.replace(at, found, key, h, old, val)
		return nil
	}
	t.open.delta.loose = true
	t.open.put(at, found, key, h, val, false)
	t.account()
	return nil
}

// account tells the store how much the open epoch has grown.
func (t *StateTable) account() {
	if d := t.open.bytes - t.accounted; d != 0 {
		t.accounted += d
		t.s.dirty.Add(d)
	}
}

// prune forgets the sealed layers that the view at e shows.
func prune(sealed []*layer, e Epoch) []*layer {
	n := 0
	for n < len(sealed) && sealed[n].epoch <= e {
		n++
	}
	if n > 0 {
		sealed = slices.Delete(sealed, 0, n)
	}
	return sealed
}

// own looks key up among the table's uncommitted changes.
func (t *StateTable) own(key []byte, h uint64) (val []byte, found bool) {
	if i, ok := t.open.find(key, h); ok {
		return t.open.val(i), true
	}
	for _, l := range slices.Backward(t.sealed) {
		if i, ok := l.find(key, h); ok {
			return l.val(i), true
		}
	}
	return nil, false
}

// Get returns key's value, own writes included; nil: absent. The result is valid until the next call.
func (t *StateTable) Get(key []byte) ([]byte, error) {
	if i, ok := t.open.find(key, xxh3.Hash(key)); ok {
		t.hits++
		return t.open.val(i), nil
	}
	p := t.s.pins.latest()
	defer p.release()
	t.sealed = prune(t.sealed, p.epoch)
	return t.get(p, key)
}

func (t *StateTable) get(p *pin, key []byte) ([]byte, error) {
	if val, ok := t.own(key, xxh3.Hash(key)); ok {
		t.hits++
		return val, nil
	}
	t.misses++
	t.fbuf = append(append(t.fbuf[:0], t.prefix...), key...)
	return p.row(t.fbuf)
}

// GetMany looks all keys up and calls each once a key with its index and value
// (nil: absent), in key order. val is valid during the call.
func (t *StateTable) GetMany(keys [][]byte, each func(i int, val []byte)) error {
	p := t.s.pins.latest()
	defer p.release()
	t.sealed = prune(t.sealed, p.epoch)
	for _, i := range keyOrder(keys) {
		val, err := t.get(p, keys[i])
		if err != nil {
			return err
		}
		each(i, val)
	}
	return nil
}

// keyOrder is the indexes of keys in key order.
func keyOrder(keys [][]byte) []int {
	out := make([]int, len(keys))
	for i := range out {
		out[i] = i
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		slices.SortStableFunc(out, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	}
	return out
}

// Scan ranges over the rows of [from, to) in key order, own writes included,
// and over no other actor's; to nil: to the end of the table. The table may be
// written meanwhile: rows after the current key show it. It must not be committed meanwhile.
func (t *StateTable) Scan(from, to []byte) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		p := t.s.pins.latest()
		t.sealed = prune(t.sealed, p.epoch)
		m := &merge{pin: p, prefix: t.prefix, to: to, base: t.takeCursor(p)}
		defer t.giveBack(m)
		if t.scoped {
			m.vnodes = &t.vnodes
		}
		// An empty open layer needs no order yet, but a writer during the scan would.
		if t.open.order == nil {
			t.open.order = newOrder(t.open)
		}
		m.open = &openSource{l: t.open}
		m.layers = append(m.layers, m.open)
		for _, l := range slices.Backward(t.sealed) {
			m.layers = append(m.layers, &sealedSource{l: l})
		}
		m.seek(from)
		m.each(yield)
	}
}

// takeCursor returns a cursor on the table's rows in p.
func (t *StateTable) takeCursor(p *pin) cursor {
	c := t.cursor
	t.cursor = nil
	if c != nil && t.spare == p {
		return c
	}
	if c != nil {
		c.close()
	}
	return p.cursor(t.prefix)
}

// giveBack ends a scan and keeps its cursor for the next one.
func (t *StateTable) giveBack(m *merge) {
	if t.cursor == nil && m.base.err() == nil {
		t.cursor, t.spare = m.base, m.pin
		m.pin.release()
		m.base = nil
		return
	}
	m.close()
}

// Close lets go of what the table holds. Its uncommitted changes stay sealed or
// are forgotten. A table whose Commit has returned may also just be dropped.
func (t *StateTable) Close() {
	if t.cursor != nil {
		t.cursor.close()
		t.cursor, t.spare = nil, nil
	}
	t.s.dirty.Add(-t.accounted)
	t.open, t.accounted = newLayer(0), 0
}

func (m *merge) each(yield func(KV, error) bool) {
	for {
		ok, err := m.next()
		if err != nil {
			yield(KV{}, fmt.Errorf("scan state: %w", err))
			return
		}
		if !ok || !yield(KV{m.k, m.v}, nil) {
			return
		}
	}
}

// Commit ends epoch e: its changes are sealed into the store, which makes them
// durable when it commits e. Epochs only grow.
func (t *StateTable) Commit(e Epoch) error {
	t.s.m.hits.Add(float64(t.hits))
	t.s.m.misses.Add(float64(t.misses))
	t.hits, t.misses = 0, 0
	if t.cursor != nil {
		t.cursor.close()
		t.cursor, t.spare = nil, nil
	}
	t.sealed = prune(t.sealed, t.s.Committed())
	if len(t.open.ents) == 0 {
		return nil
	}
	if e <= t.last {
		return fmt.Errorf("epoch %d of %s ended after epoch %d", e, t.d.label(), t.last)
	}
	t.last = e
	l := t.open
	l.seal(e)
	t.sealed = append(t.sealed, l)
	t.s.seal(t.d, l, t.accounted)
	t.open, t.accounted = newLayer(min(len(l.ents)/2, 1<<16)), 0
	return nil
}
