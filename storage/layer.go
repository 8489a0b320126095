package storage

import (
	"bytes"
	"slices"
)

// A layer is a table's changes of one epoch: the last value written to each key.
// It is written by one goroutine until seal, and immutable after it. Entries
// hold offsets, not pointers, so that the collector has nothing to walk.
type layer struct {
	epoch  Epoch
	ents   []entry
	slots  []uint64 // open addressing by the hash's high half: high half ‖ index+1; 0: free. Its length is a power of two
	blocks [][]byte // keys and values
	order  *order   // of the open layer; nil until a scan needs it
	sorted []uint32 // entries in key order, once sealed
	bytes  int64    // memory held
	data   int64    // bytes of keys and of all values ever put
	pieces int      // pieces of large values
	writes int      // writes that committing the layer takes, once sealed
	delta  digest

	// Of the keys in the order they came, for the sort:
	common    int  // bytes that all begin with
	ascending bool // each was above the one before
}

// An entry is a key and what became of it.
type entry struct {
	key, val   ref
	klen, vlen uint32
	flags      uint8
}

const (
	entDeleted uint8 = 1 << iota
	entBorn          // no row had the key before this epoch: deleting it leaves nothing to write
)

// A ref is where bytes are: block ‖ offset.
type ref uint64

const (
	firstBlock = 1 << 10
	lastBlock  = 1 << 20
	entryBytes = 40 + 16 // with its share of the slots
)

func newLayer(room int) *layer {
	n := 16
	for n < room*2 {
		n *= 2
	}
	return &layer{slots: make([]uint64, n), ents: make([]entry, 0, room), ascending: true}
}

func (l *layer) store(b []byte) ref {
	last := len(l.blocks) - 1
	if last < 0 || cap(l.blocks[last])-len(l.blocks[last]) < len(b) {
		size := firstBlock
		if last >= 0 {
			size = min(lastBlock, 2*cap(l.blocks[last]))
		}
		size = max(size, len(b))
		l.blocks = append(l.blocks, make([]byte, 0, size))
		l.bytes += int64(size)
		last++
	}
	off := len(l.blocks[last])
	l.blocks[last] = append(l.blocks[last], b...)
	return ref(last)<<32 | ref(off)
}

func (l *layer) load(r ref, n uint32) []byte {
	b := l.blocks[r>>32]
	off := uint32(r)
	return b[off : off+n : off+n]
}

func (l *layer) key(i uint32) []byte { return l.load(l.ents[i].key, l.ents[i].klen) }

// val is nil where the key was deleted.
func (l *layer) val(i uint32) []byte {
	e := &l.ents[i]
	if e.flags&entDeleted != 0 {
		return nil
	}
	return l.load(e.val, e.vlen)
}

// find returns the entry of key and true, or the slot where it belongs and false.
func (l *layer) find(key []byte, hash uint64) (uint32, bool) {
	mask := uint64(len(l.slots) - 1)
	for s := hash >> 32 & mask; ; s = (s + 1) & mask {
		x := l.slots[s]
		if x == 0 {
			return uint32(s), false
		}
		if x>>32 == hash>>32 {
			if i := uint32(x) - 1; bytes.Equal(l.key(i), key) {
				return i, true
			}
		}
	}
}

// put sets key, or deletes it where val is nil. i and found are what find
// returned. born says that no older row has the key.
func (l *layer) put(i uint32, found bool, key []byte, hash uint64, val []byte, born bool) {
	if !found {
		if len(l.ents)*4 >= len(l.slots)*3 {
			l.grow()
			i, _ = l.find(key, hash)
		}
		l.slots[i] = hash>>32<<32 | uint64(len(l.ents)+1)
		e := entry{key: l.store(key), klen: uint32(len(key))}
		if born {
			e.flags = entBorn
		}
		i = uint32(len(l.ents))
		if i == 0 {
			l.common = len(key)
		} else {
			last := l.key(i - 1)
			l.common = sharedPrefix(last[:l.common], key)
			l.ascending = l.ascending && bytes.Compare(last, key) < 0
		}
		l.ents = append(l.ents, e)
		l.bytes += entryBytes
		l.data += int64(len(key))
		if l.order != nil {
			l.order.insert(l, i)
		}
	}
	e := &l.ents[i]
	if val == nil {
		e.flags |= entDeleted
		return
	}
	e.flags &^= entDeleted
	e.val, e.vlen = l.store(val), uint32(len(val))
	l.data += int64(len(val))
	if n := pieceCount(len(val)); n > 0 {
		l.pieces += n
		l.delta.big = true
	}
}

// grow needs no key: a slot holds the part of the hash that places it.
func (l *layer) grow() {
	old := l.slots
	l.slots = make([]uint64, 2*len(old))
	mask := uint64(len(l.slots) - 1)
	for _, x := range old {
		if x == 0 {
			continue
		}
		s := x >> 32 & mask
		for l.slots[s] != 0 {
			s = (s + 1) & mask
		}
		l.slots[s] = x
	}
}

// warm touches the keys of entries that are read next in key order, which is no
// order in memory: so many loads at once cost little more than one. The result only keeps them.
func (l *layer) warm(ents []uint32) (touched byte) {
	for _, i := range ents {
		if e := &l.ents[i]; e.klen > 0 {
			touched ^= l.blocks[e.key>>32][uint32(e.key)]
		}
	}
	return touched
}

// seal ends the layer: its entries get their order.
func (l *layer) seal(e Epoch) {
	l.epoch = e
	l.writes = l.pieces
	for i := range l.ents {
		if l.ents[i].flags != entDeleted|entBorn {
			l.writes++
		}
	}
	if l.order != nil {
		l.sorted = l.order.all(len(l.ents))
		l.order = nil
		return
	}
	l.sorted = l.sort()
}

// An order keeps the entries of an open layer sorted while they come: a list of
// short sorted runs.
type order struct {
	runs [][]uint32 // none is empty
	gen  int        // counts insertions
}

const runLen = 512

func newOrder(l *layer) *order {
	o := &order{}
	s := l.sort()
	for len(s) > 0 {
		n := min(len(s), runLen/2)
		o.runs = append(o.runs, append(make([]uint32, 0, runLen), s[:n]...))
		s = s[n:]
	}
	return o
}

// seek returns where the first key at or above key is.
func (o *order) seek(l *layer, key []byte) (run, i int) {
	run, ok := slices.BinarySearchFunc(o.runs, key, func(r []uint32, k []byte) int { return bytes.Compare(l.key(r[0]), k) })
	if ok || run == 0 {
		return run, 0
	}
	r := o.runs[run-1]
	i, _ = slices.BinarySearchFunc(r, key, func(e uint32, k []byte) int { return bytes.Compare(l.key(e), k) })
	if i == len(r) {
		return run, 0
	}
	return run - 1, i
}

func (o *order) insert(l *layer, e uint32) {
	o.gen++
	if len(o.runs) == 0 {
		o.runs = append(o.runs, append(make([]uint32, 0, runLen), e))
		return
	}
	key := l.key(e)
	run, _ := slices.BinarySearchFunc(o.runs, key, func(r []uint32, k []byte) int { return bytes.Compare(l.key(r[0]), k) })
	run = max(run-1, 0)
	r := o.runs[run]
	i, _ := slices.BinarySearchFunc(r, key, func(e uint32, k []byte) int { return bytes.Compare(l.key(e), k) })
	r = slices.Insert(r, i, e)
	o.runs[run] = r
	if len(r) >= runLen {
		h := runLen / 2
		right := append(make([]uint32, 0, runLen), r[h:]...)
		o.runs[run] = r[:h]
		o.runs = slices.Insert(o.runs, run+1, right)
	}
}

func (o *order) all(n int) []uint32 {
	out := make([]uint32, 0, n)
	for _, r := range o.runs {
		out = append(out, r...)
	}
	return out
}
