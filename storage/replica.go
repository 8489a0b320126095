package storage

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
)

// A ReplicatedStateTable shows another job's table to the moment: its committed
// rows under a private overlay, which is fed from the table's stream of changes.
// It has reads and WriteChunk and no way to persist anything. It belongs to one
// goroutine, its cursors included.
//
// It carries chosen columns, the key among them; in rows of the overlay the
// others are NULL, and they never leave it. Invariant: of a key's committed
// value and its values in the overlay's layers above that view, the newest is
// the row's. A layer is dropped when no cursor's view is below its epoch.
//
// A shared one (Store.SharedRows) keeps no overlay of its own: its layers are those
// that the upstream's own tables sealed.
type ReplicatedStateTable struct {
	s      *Store
	codec  *Codec
	dec    *Decoder
	cols   []int
	vnodes VnodeSet
	prefix []byte
	full   []chunk.Column // upstream's columns, nil where not carried

	open      *layer
	sealed    []run // oldest first
	cursors   []*Cursor
	gen       int     // counts changes of the set of layers
	accounted int64   // in the store's count of dirty bytes
	shared    *follow // nil: the overlay is fed by WriteChunk

	kbuf, vbuf []byte
}

// A run is a sealed layer, in memory or spilled.
type run struct {
	epoch Epoch  // unsealed: cut off from the open layer, before its epoch ended
	l     *layer // nil: spilled
	f     *spill
}

const unsealed Epoch = math.MaxUint64

func (r run) source() source {
	if r.l != nil {
		return &sealedSource{l: r.l}
	}
	return &spillSource{f: r.f}
}

// Replica opens a replica of the upstream object, for some of its vnodes. cols
// are the columns it carries; all key columns must be among them.
func (s *Store) Replica(upstream Desc, vnodes VnodeSet, cols []int) *ReplicatedStateTable {
	return s.replica(upstream, vnodes, cols)
}

func (s *Store) replica(upstream Desc, vnodes VnodeSet, cols []int) *ReplicatedStateTable {
	for _, k := range upstream.Key {
		if !slices.Contains(cols, k) {
			panic(fmt.Sprintf("storage: replica of %s does not carry key column %d", upstream.label(), k))
		}
	}
	codec := NewCodec(upstream)
	return &ReplicatedStateTable{s: s, codec: codec, dec: codec.NewDecoder(cols), cols: cols, vnodes: vnodes,
		prefix: objectPrefix(upstream.Tag, upstream.ID), full: make([]chunk.Column, len(upstream.Schema)), open: newLayer(0)}
}

// Codec returns the upstream's codec, which makes the raw keys.
func (r *ReplicatedStateTable) Codec() *Codec { return r.codec }

// Vnodes returns the vnodes that the replica is for.
func (r *ReplicatedStateTable) Vnodes() VnodeSet { return r.vnodes }

// WriteChunk applies changes of the upstream; c's columns are the carried ones, in
// their order. The error is of a row that is not for the replica, or of spilling to
// disk. A shared replica has the changes already.
func (r *ReplicatedStateTable) WriteChunk(c *chunk.Chunk) error {
	if r.shared != nil {
		return nil
	}
	for j, col := range r.cols {
		r.full[col] = c.Cols[j]
	}
	vn := r.codec.Vnodes(r.full, c.Len())
	for i := range c.Len() {
		v := uint16(0)
		if vn != nil {
			v = vn[i]
		}
		if !r.vnodes.Has(v) {
			return sqlerr.New(sqlerr.Internal, "row of vnode %d came to a replica of %s that is not for it", v, r.codec.desc.label())
		}
		r.kbuf = r.codec.AppendKeyVnode(r.kbuf[:0], v, r.full, i)
		h := xxh3.Hash(r.kbuf)
		at, found := r.open.find(r.kbuf, h)
		if c.Op(i) == chunk.Delete {
			r.open.put(at, found, r.kbuf, h, nil, false)
			continue
		}
		r.vbuf = r.codec.AppendValue(r.vbuf[:0], r.full, i)
		r.open.put(at, found, r.kbuf, h, r.vbuf, false)
	}
	var err error
	if budget := r.s.o.replicaBudget(); r.s.o.Engine == "badger" && (r.open.bytes > budget/2 || r.memory() > budget) {
		if r.open.bytes > budget/2 {
			r.cut(unsealed)
		}
		err = r.spill()
	}
	r.account()
	return err
}

// cut makes the open layer a sealed one.
func (r *ReplicatedStateTable) cut(e Epoch) {
	if len(r.open.ents) == 0 {
		return
	}
	r.open.seal(e)
	r.sealed = append(r.sealed, run{epoch: e, l: r.open})
	r.open = newLayer(min(len(r.open.ents)/2, 1<<16))
	r.gen++
}

// Seal ends epoch e of the overlay, and drops the layers that are not needed any
// more. A shared replica shows the upstream as it was at the end of e from here on:
// all of the upstream's tables must have ended it. The error is of spilling to disk.
func (r *ReplicatedStateTable) Seal(e Epoch) error {
	if r.shared != nil {
		r.takeShared(e)
		r.account()
		return nil
	}
	r.cut(e)
	for i := range r.sealed {
		if r.sealed[i].epoch == unsealed {
			r.sealed[i].epoch = e
		}
	}
	r.prune()
	err := r.spill()
	r.account()
	return err
}

// A follow is given the layers that an object's tables seal.
type follow struct {
	id  uint32
	got []*layer // guarded by Store.mu
}

// SharedRows opens a replica that reads the layers which the upstream's own tables
// sealed and the store has not committed, and copies nothing: WriteChunk does nothing,
// and rows are as of the last epoch that Seal was called for. It needs the upstream in
// this process, and barriers that reach the reader after all of the upstream's tables;
// the parts in which these own the vnodes do not matter. Close ends it.
func (s *Store) SharedRows(upstream Desc, vnodes VnodeSet, cols []int) *ReplicatedStateTable {
	r := s.replica(upstream, vnodes, cols)
	r.shared = &follow{id: upstream.ID}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, layers := range [][]sealedLayer{s.flying, s.sealed} {
		for _, l := range layers {
			if l.d.ID == upstream.ID {
				r.shared.got = append(r.shared.got, l.l)
			}
		}
	}
	s.follows = append(s.follows, r.shared)
	return r
}

// takeShared makes the upstream's layers up to e part of the overlay.
func (r *ReplicatedStateTable) takeShared(e Epoch) {
	r.s.mu.Lock()
	n := len(r.sealed)
	r.shared.got = slices.DeleteFunc(r.shared.got, func(l *layer) bool {
		if l.epoch > e {
			return false
		}
		r.sealed = append(r.sealed, run{epoch: l.epoch, l: l})
		return true
	})
	r.s.mu.Unlock()
	if len(r.sealed) > n {
		// Layers of one epoch have no key in common.
		slices.SortStableFunc(r.sealed, func(a, b run) int { return cmp.Compare(a.epoch, b.epoch) })
		r.gen++
	}
	r.prune()
	if r.memory() > r.s.o.replicaBudget() {
		for _, c := range r.cursors {
			c.Refresh()
		}
		r.prune()
	}
}

func (r *ReplicatedStateTable) prune() {
	low := r.s.Committed()
	for _, c := range r.cursors {
		low = min(low, c.m.pin.epoch)
	}
	n := 0
	for n < len(r.sealed) && r.sealed[n].epoch <= low {
		r.sealed[n].f.close()
		n++
	}
	if n > 0 {
		r.sealed = slices.Delete(r.sealed, 0, n)
		r.gen++
	}
}

// spill moves sealed layers to files, oldest first, until the rest fits the budget.
func (r *ReplicatedStateTable) spill() error {
	budget := r.s.o.replicaBudget()
	size := r.memory()
	if size <= budget || r.s.o.Engine != "badger" {
		return nil
	}
	// Cursors that stand at an old view make us keep what is committed since. They move on first.
	for _, c := range r.cursors {
		c.Refresh()
	}
	r.prune()
	size = r.memory()
	for i := range r.sealed {
		if size <= budget {
			break
		}
		if l := r.sealed[i].l; l != nil {
			f, err := newSpill(r.s.o.Dir, l)
			if err != nil {
				return fmt.Errorf("spill changes of %s: %w", r.codec.desc.label(), err)
			}
			r.sealed[i].l, r.sealed[i].f = nil, f
			size -= l.bytes
			r.gen++
		}
	}
	return nil
}

// memory is what the overlay holds and nobody else: an upstream's layers count
// from when the store itself has let them go.
func (r *ReplicatedStateTable) memory() int64 {
	n := r.open.bytes
	low := r.s.Committed()
	for _, x := range r.sealed {
		if x.l != nil && (r.shared == nil || x.epoch <= low) {
			n += x.l.bytes
		}
	}
	return n
}

func (r *ReplicatedStateTable) account() {
	n := r.memory()
	r.s.dirty.Add(n - r.accounted)
	r.accounted = n
}

// DirtyBytes is the memory that the overlay takes.
func (r *ReplicatedStateTable) DirtyBytes() int { return int(r.accounted) }

// Close lets the overlay and its files go. Its cursors must be closed before.
func (r *ReplicatedStateTable) Close() {
	for _, x := range r.sealed {
		x.f.close()
	}
	r.sealed, r.open = nil, newLayer(0)
	r.account()
	if r.shared != nil {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		if i := slices.Index(r.s.follows, r.shared); i >= 0 {
			r.s.follows = slices.Delete(r.s.follows, i, i+1)
		}
	}
}

// Decode appends a row's carried columns to into, in the order they were given.
func (r *ReplicatedStateTable) Decode(key, val []byte, into []chunk.Column) error {
	return r.dec.Decode(key, val, into)
}

// Scan ranges over a vnode's rows after a raw key (nil: from the start) in key
// order: the newest committed rows under the overlay.
func (r *ReplicatedStateTable) Scan(vnode uint16, after []byte) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		c := r.OpenScan(vnode, after)
		defer c.Close()
		for {
			kv, ok, err := c.Next()
			if err != nil {
				yield(KV{}, err)
				return
			}
			if !ok || !yield(kv, nil) {
				return
			}
		}
	}
}

// A Cursor walks one vnode of a replica at a time, and goes on rightly while the
// overlay changes: a row after its position is returned as it is when it is
// reached. It keeps the committed view it was opened at until Refresh.
type Cursor struct {
	r   *ReplicatedStateTable
	m   *merge
	gen int
}

// OpenScan opens a cursor on a vnode's rows after a raw key; nil: from the
// vnode's start. Seek takes the same cursor to another vnode.
func (r *ReplicatedStateTable) OpenScan(vnode uint16, after []byte) *Cursor {
	p := r.s.pins.latest()
	c := &Cursor{r: r, m: &merge{pin: p, base: p.cursor(r.prefix), prefix: r.prefix, track: true}}
	r.cursors = append(r.cursors, c)
	c.sources()
	c.Seek(vnode, after)
	return c
}

// sources collects the layers above the cursor's view.
func (c *Cursor) sources() {
	r, m := c.r, c.m
	if r.open.order == nil {
		r.open.order = newOrder(r.open)
	}
	m.open = &openSource{l: r.open}
	m.layers = append(m.layers[:0], m.open)
	for _, x := range slices.Backward(r.sealed) {
		if x.epoch > m.pin.epoch {
			m.layers = append(m.layers, x.source())
		}
	}
	c.gen = r.gen
}

// Seek stands the cursor before the first row of vnode after a raw key; nil: before the vnode's first.
func (c *Cursor) Seek(vnode uint16, after []byte) {
	c.refit()
	c.m.to = NextPrefix(VnodePrefix(vnode))
	if after == nil {
		c.m.seek(VnodePrefix(vnode))
		return
	}
	// No key is the prefix of another one, so that the least key above after is above after ‖ 0 too.
	c.m.seek(append(slices.Clone(after), 0))
}

// refit takes in layers that came or went since the last step.
func (c *Cursor) refit() bool {
	if c.gen == c.r.gen {
		return false
	}
	c.sources()
	return true
}

// Next moves to the next row; false: the vnode has no more. The row is valid until the next call.
func (c *Cursor) Next() (KV, bool, error) {
	if c.refit() {
		c.m.reseek()
	}
	ok, err := c.m.next()
	if err != nil {
		return KV{}, false, fmt.Errorf("scan replica of %s: %w", c.r.codec.desc.label(), err)
	}
	if !ok {
		return KV{}, false, nil
	}
	return KV{c.m.k, c.m.v}, true, nil
}

// Epoch is the committed epoch that the cursor reads under the overlay.
func (c *Cursor) Epoch() Epoch { return c.m.pin.epoch }

// Refresh moves the cursor to the newest committed view; it keeps its position.
// It does nothing where there is no newer one.
func (c *Cursor) Refresh() {
	r, m := c.r, c.m
	if r.s.Committed() == m.pin.epoch {
		return
	}
	m.base.close()
	m.pin.release()
	m.pin = r.s.pins.latest()
	m.base = m.pin.cursor(r.prefix)
	m.vnodeSeen, m.live = -1, false
	c.sources()
	m.reseek()
	m.seekBase(m.pos)
	if m.started && m.baseOK && string(m.base.key()[prefixLen:]) == string(m.pos) {
		m.stepBase()
	}
}

// Close lets the cursor's view go.
func (c *Cursor) Close() {
	if i := slices.Index(c.r.cursors, c); i >= 0 {
		c.r.cursors = slices.Delete(c.r.cursors, i, i+1)
	}
	c.m.close()
}
