package storage

import (
	"bytes"
	"math"
	"slices"
)

// Commit looks at each object's changes in key order, and where they fall:
//
//   - New keys between blocks become blocks of their own, where one vnode has enough
//     of them and no entry lies among them.
//   - Changes within a block's range become entries above it.
//   - A block that half of its rows have left is taken apart: into blocks again where
//     this epoch alone brings as many changes (a bulk update, which the next one may
//     follow), into entries where they came one by one (rows that change are cheaper so).
const (
	packRows   = 32      // new keys of one vnode that are worth a block
	packBytes  = 4 << 10 // keys and values in a block, about
	packLeast  = 4       // rows that are worth a block where others are made anyway
	foldAtOnce = 4096    // rows of blocks taken apart in one commit beside those of bulk updates
)

// An entryRef is a write: the layer (index), and the entry in it.
type entryRef struct {
	l    uint32
	i    uint32
	born bool // no committed row has the key
}

// A segment is a run of writes that fall alike.
type segment struct {
	from, to int
	b        *block // in whose range they are; nil: between blocks
	pack     bool   // between blocks: new keys are to become blocks
	fold     bool   // in b's range: b is taken apart
	dense    bool   // and made blocks again
	touched  int    // in b's range: how many change rows that are there
}

// An objectPlan is how an object's layers are written.
type objectPlan struct {
	layers []sealedLayer
	refs   []entryRef
	segs   []segment
}

func (o *objectPlan) key(r entryRef) []byte { return o.layers[r.l].l.key(r.i) }
func (o *objectPlan) val(r entryRef) []byte { return o.layers[r.l].l.val(r.i) }

// objectChange is what the commit does to an object's blocks.
type objectChange struct {
	tag    byte
	vnodes map[int]*blockChange
}

// plan decides for every object that has blocks or may get some. Others have no plan,
// and their layers are written as they are.
func (w *commitWriter) plan() {
	w.changes = map[uint32]*objectChange{}
	w.plans = map[uint32]*objectPlan{}
	least := w.s.o.packRows
	if least < 0 {
		least = math.MaxInt
	}
	for i := 0; i < len(w.layers); {
		j, n := i+1, len(w.layers[i].l.ents)
		for ; j < len(w.layers) && w.layers[j].d.ID == w.layers[i].d.ID && w.layers[j].d.Tag == w.layers[i].d.Tag; j++ {
			n += len(w.layers[j].l.ents)
		}
		d := w.layers[i].d
		w.s.mu.Lock()
		dropped := w.s.dropped[d.ID]
		w.s.mu.Unlock()
		blocks := w.p.blocks(d.Tag, d.ID)
		if !dropped && (n >= least || blocks != nil) {
			o := &objectPlan{layers: w.layers[i:j]}
			o.collect()
			if w.planObject(o, blocks) {
				w.plans[d.ID] = o
			}
		}
		i = j
	}
}

// collect puts the writes of all layers in order: in key order within a vnode.
func (o *objectPlan) collect() {
	n := 0
	for _, s := range o.layers {
		n += len(s.l.sorted)
	}
	o.refs = make([]entryRef, 0, n)
	if o.layers[0].l.epoch == o.layers[len(o.layers)-1].l.epoch { // of different vnodes
		for at, s := range o.layers {
			for _, i := range s.l.sorted {
				if f := s.l.ents[i].flags; f != entDeleted|entBorn {
					o.refs = append(o.refs, entryRef{uint32(at), i, f&entBorn != 0})
				}
			}
		}
		return
	}
	// Newest epoch first: of equal keys the first one's value counts, the last one knows what was before.
	at := make([]int, len(o.layers))
	for {
		least := -1
		var key []byte
		for j, s := range o.layers {
			if at[j] < len(s.l.sorted) {
				if k := s.l.key(s.l.sorted[at[j]]); least < 0 || bytes.Compare(k, key) < 0 {
					least, key = j, k
				}
			}
		}
		if least < 0 {
			return
		}
		r := entryRef{l: uint32(least), i: o.layers[least].l.sorted[at[least]]}
		for j := least; j < len(o.layers); j++ {
			l := o.layers[j].l
			if at[j] < len(l.sorted) {
				if i := l.sorted[at[j]]; j == least || bytes.Equal(l.key(i), key) {
					r.born = l.ents[i].flags&entBorn != 0
					at[j]++
				}
			}
		}
		if r.born && o.val(r) == nil {
			continue
		}
		o.refs = append(o.refs, r)
	}
}

// planObject cuts the writes into segments; false: all are plain entries.
func (w *commitWriter) planObject(o *objectPlan, blocks *objectBlocks) bool {
	changed := false
	for i := 0; i < len(o.refs); {
		v := VnodeOf(o.key(o.refs[i]))
		j := i + 1
		for j < len(o.refs) && o.refs[j].l == o.refs[i].l && VnodeOf(o.key(o.refs[j])) == v {
			j++
		}
		for ; j < len(o.refs) && VnodeOf(o.key(o.refs[j])) == v; j++ { // several epochs
		}
		changed = w.planVnode(o, i, j, blocks.list(int(v))) || changed
		i = j
	}
	return changed
}

func (w *commitWriter) planVnode(o *objectPlan, i, end int, l blockList) (changed bool) {
	now := Epoch(math.MaxUint64) // the committer sees the newest state
	for i < end {
		key := o.key(o.refs[i])
		at := l.seek(key, now)
		if at < len(l) && bytes.Compare(l[at].first, key) <= 0 {
			b := l[at]
			j := i + o.count(i, end, b.last, true)
			w.segment(o, i, j, b)
			i, changed = j, true
			continue
		}
		j := end
		if at < len(l) {
			j = i + o.count(i, end, l[at].first, false)
		}
		born := 0
		for _, r := range o.refs[i:j] {
			if r.born {
				born++
			}
		}
		pack := born >= w.s.o.packRows && w.s.o.packRows > 0
		o.segs = append(o.segs, segment{from: i, to: j, pack: pack})
		i, changed = j, changed || pack
	}
	return changed
}

// count is how many of the refs are below key, or at it where that is asked for.
func (o *objectPlan) count(i, end int, key []byte, at bool) int {
	n, _ := slices.BinarySearchFunc(o.refs[i:end], key, func(r entryRef, k []byte) int {
		if c := bytes.Compare(o.key(r), k); c != 0 || !at {
			return c
		}
		return -1
	})
	return n
}

// segment plans changes in the range of a block.
func (w *commitWriter) segment(o *objectPlan, i, j int, b *block) {
	g := segment{from: i, to: j, b: b}
	for _, r := range o.refs[i:j] {
		if !r.born { // a new row takes nothing from the block
			g.touched++
		}
	}
	switch {
	case g.touched*2 >= b.n:
		g.fold, g.dense = true, true
	case (b.stale+g.touched)*2 > b.n && w.folded < foldAtOnce:
		g.fold = true
		w.folded += b.n
	}
	if g.fold {
		w.unbounded = true
	}
	o.segs = append(o.segs, g)
}

// planned yields the writes of an object that has a plan.
func (w *commitWriter) planned(o *objectPlan, yield func(write) bool) bool {
	d := o.layers[0].d
	x := &objectWriter{w: w, o: o, d: d, prefix: objectPrefix(d.Tag, d.ID), yield: yield}
	w.s.mu.Lock()
	x.big = w.s.digests[d.ID].big
	w.s.mu.Unlock()
	defer func() {
		if x.entries != nil {
			x.entries.close()
		}
	}()
	for _, g := range o.segs {
		ok := false
		switch {
		case g.fold:
			ok = x.fold(g)
		case g.b != nil:
			ok = x.over(g)
		default:
			ok = x.between(g)
		}
		if !ok {
			return false
		}
	}
	return true
}

// An objectWriter carries out a plan. Its methods return false when the writing is to end.
type objectWriter struct {
	w       *commitWriter
	o       *objectPlan
	d       Desc
	prefix  []byte
	big     bool // an entry may be the head of a value in pieces
	yield   func(write) bool
	entries cursor // on the object's entries before the commit; nil: not needed yet
	full    []byte
	pk      packer
	mixed   bool   // entries lie between those that are packed, after the commit
	check   bool   // entries may lie between those that are packed
	old     *block // being taken apart; nil: none
	same    bool   // a new block has its last key

}

func (x *objectWriter) fail(err error) bool {
	x.w.err = err
	return false
}

// entry sets a row's own entry, or deletes it where val is nil.
func (x *objectWriter) entry(raw, val []byte) bool {
	key := x.w.key(x.prefix, raw)
	if x.big && !x.w.stale(key, len(val), x.yield) {
		return false
	}
	return (write{key: key, val: val}).split(x.yield)
}

var deadValue = []byte{0}

// dead hides a block's row.
func (x *objectWriter) dead(raw []byte) bool {
	key := x.w.key(x.prefix, raw)
	if x.big && !x.w.stale(key, 0, x.yield) {
		return false
	}
	return x.yield(write{key: key, val: deadValue, meta: metaDead})
}

// seek stands the cursor on entries at the first one at or above raw and returns its raw key; nil: none.
func (x *objectWriter) seek(raw []byte) ([]byte, error) {
	if x.entries == nil {
		x.entries = x.w.p.v.cursor(x.prefix)
	}
	x.full = append(append(x.full[:0], x.prefix...), raw...)
	if !x.entries.seek(x.full) {
		return nil, x.entries.err()
	}
	return x.entries.key()[prefixLen:], nil
}

// free reports whether no entry lies in [first, last].
func (x *objectWriter) free(first, last []byte) (bool, error) {
	k, err := x.seek(first)
	return k == nil || bytes.Compare(k, last) > 0, err
}

// over writes changes above a block.
func (x *objectWriter) over(g segment) bool {
	g.b.alone.Store(false) // before any reader may stand at the epoch
	for _, r := range x.o.refs[g.from:g.to] {
		key, val := x.o.key(r), x.o.val(r)
		if val == nil && !x.dead(key) || val != nil && !x.entry(key, val) {
			return false
		}
	}
	g.b.stale += g.touched
	return true
}

// between writes changes between blocks.
func (x *objectWriter) between(g segment) bool {
	refs := x.o.refs[g.from:g.to]
	if g.pack {
		free, err := x.free(x.o.key(refs[0]), x.o.key(refs[len(refs)-1]))
		if err != nil {
			return x.fail(err)
		}
		x.check, x.old, x.mixed = !free, nil, false
	}
	for _, r := range refs {
		key, val := x.o.key(r), x.o.val(r)
		ok := false
		if g.pack && r.born && fits(key, val, x.w.s.o.packBytes) {
			ok = x.pack(key, val, false)
		} else {
			x.mixed = x.mixed || len(x.pk.rows) > 0
			ok = x.entry(key, val)
		}
		if !ok {
			return false
		}
	}
	return x.flush()
}

func (x *objectWriter) pack(key, val []byte, entry bool) bool {
	x.pk.add(key, val, entry)
	if x.pk.full(x.w.s.o.packBytes) {
		return x.flush()
	}
	return true
}

// flush writes what is packed as a block, or as entries where it is not worth one or
// entries lie within.
func (x *objectWriter) flush() bool {
	n := len(x.pk.rows)
	if n == 0 {
		return true
	}
	defer func() {
		x.pk.reset()
		x.mixed = x.mixed && x.old != nil // entries that a fold leaves may lie anywhere
	}()
	first, last := x.pk.key(0), x.pk.key(n-1)
	worth := n >= packLeast
	if worth && x.check {
		free, err := x.free(first, last)
		if err != nil {
			return x.fail(err)
		}
		worth = free
	}
	if !worth {
		for i := range n {
			if !x.entry(x.pk.key(i), bytes.Clone(x.pk.val(i))) {
				return false
			}
		}
		return true
	}
	b, val := x.pk.pack(x.w.e)
	for i, r := range x.pk.rows {
		if r.entry && !x.entry(x.pk.key(i), nil) {
			return false
		}
	}
	b.alone.Store(!x.mixed)
	c := x.w.change(x.d, b)
	c.added = append(c.added, b)
	x.same = x.same || x.old != nil && bytes.Equal(b.last, x.old.last)
	return x.yield(write{key: b.dataKey(x.prefix), val: val}) && x.yield(write{key: b.indexKey(x.prefix), val: b.indexVal()})
}

func (w *commitWriter) change(d Desc, b *block) *blockChange {
	o := w.changes[d.ID]
	if o == nil {
		o = &objectChange{tag: d.Tag, vnodes: map[int]*blockChange{}}
		w.changes[d.ID] = o
	}
	v := int(VnodeOf(b.last))
	if o.vnodes[v] == nil {
		o.vnodes[v] = &blockChange{}
	}
	return o.vnodes[v]
}
