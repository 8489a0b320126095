package exec

import (
	"math"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A keyIndex gives each distinct key of some columns a small number, its slot, so
// that what belongs to a key lies in dense arrays. It is an open-addressing hash
// table with linear probing and backward-shift deletion (Knuth, vol. 3, 6.4, R).
// Slots of removed keys are used again.
type keyIndex struct {
	cols  []cells  // by slot
	hash  []uint64 // by slot
	table []uint64 // hash's upper half ‖ slot+1; 0: free. Its length is a power of two
	free  []int32
	live  int
	bytes int64
}

// slotBytes is what a slot costs beside its key's columns.
const slotBytes = 8 + 16

func newKeyIndex(ts []types.Type) *keyIndex {
	x := &keyIndex{table: make([]uint64, 16)}
	for _, t := range ts {
		x.cols = append(x.cols, newCells(t))
	}
	return x
}

// slots is one more than the largest slot there ever was.
func (x *keyIndex) slots() int { return len(x.hash) }

// columns are the key's columns by slot; they share memory with the index.
func (x *keyIndex) columns() []chunk.Column {
	out := make([]chunk.Column, len(x.cols))
	for i, c := range x.cols {
		out[i] = c.col()
	}
	return out
}

func (x *keyIndex) equal(slot int32, cols []chunk.Column, i int) bool {
	for j, c := range x.cols {
		if !c.equal(slot, cols[j], i) {
			return false
		}
	}
	return true
}

// find returns the slot of the key at i of cols, whose hash is h, or -1.
func (x *keyIndex) find(h uint64, cols []chunk.Column, i int) int32 {
	mask := uint64(len(x.table) - 1)
	for p := h & mask; ; p = (p + 1) & mask {
		e := x.table[p]
		if e == 0 {
			return -1
		}
		if e>>32 == h>>32 {
			if slot := int32(uint32(e)) - 1; x.equal(slot, cols, i) {
				return slot
			}
		}
	}
}

// lookup finds the slots of all keys of cols.
func (x *keyIndex) lookup(cols []chunk.Column, h []uint64, out []int32) {
	if len(x.cols) == 1 {
		if c, ok := x.cols[0].(*vecCells[int64]); ok {
			if v := cols[0].(*chunk.Vec[int64]); v.Nulls == nil {
				x.lookupInt(c.v, v.Data, h, out)
				return
			}
		}
	}
	for i := range h {
		out[i] = x.find(h[i], cols, i)
	}
}

func (x *keyIndex) lookupInt(keys *chunk.Vec[int64], data []int64, h []uint64, out []int32) {
	mask := uint64(len(x.table) - 1)
	for i, hash := range h {
		out[i] = -1
		for p := hash & mask; ; p = (p + 1) & mask {
			e := x.table[p]
			if e == 0 {
				break
			}
			if slot := int32(uint32(e)) - 1; e>>32 == hash>>32 && keys.Data[slot] == data[i] && !keys.Null(int(slot)) {
				out[i] = slot
				break
			}
		}
	}
}

// insert adds the key at i of cols, which is not there, and returns its slot.
func (x *keyIndex) insert(h uint64, cols []chunk.Column, i int) int32 {
	if (x.live+1)*4 > len(x.table)*3 {
		x.grow()
	}
	var slot int32
	if n := len(x.free); n > 0 {
		slot, x.free = x.free[n-1], x.free[:n-1]
		x.hash[slot] = h
	} else {
		if len(x.hash) == math.MaxInt32 {
			panic("exec: more than 2^31 keys in memory")
		}
		slot = int32(len(x.hash))
		x.hash = append(x.hash, h)
	}
	x.bytes += slotBytes
	for j, c := range x.cols {
		c.set(slot, cols[j], i)
		x.bytes += int64(c.size(slot))
	}
	x.place(h, slot)
	x.live++
	return slot
}

// replace gives slot another representation of its key (1.00 for 1.0).
func (x *keyIndex) replace(slot int32, cols []chunk.Column, i int) {
	for j, c := range x.cols {
		x.bytes -= int64(c.size(slot))
		c.set(slot, cols[j], i)
		x.bytes += int64(c.size(slot))
	}
}

func (x *keyIndex) place(h uint64, slot int32) {
	mask := uint64(len(x.table) - 1)
	p := h & mask
	for x.table[p] != 0 {
		p = (p + 1) & mask
	}
	x.table[p] = h>>32<<32 | uint64(slot+1)
}

func (x *keyIndex) grow() {
	old := x.table
	x.table = make([]uint64, 2*len(old))
	for _, e := range old {
		if e != 0 {
			slot := int32(uint32(e)) - 1
			x.place(x.hash[slot], slot)
		}
	}
}

// remove forgets a key; its slot may be given to another.
func (x *keyIndex) remove(slot int32) {
	mask := uint64(len(x.table) - 1)
	p := x.hash[slot] & mask
	for int32(uint32(x.table[p]))-1 != slot {
		p = (p + 1) & mask
	}
	for q := p; ; {
		q = (q + 1) & mask
		e := x.table[q]
		if e == 0 {
			break
		}
		// e may move to the hole at p unless its home lies after the hole, up to q.
		home := x.hash[int32(uint32(e))-1] & mask
		if (q-home)&mask >= (q-p)&mask {
			x.table[p] = e
			p = q
		}
	}
	x.table[p] = 0
	x.bytes -= slotBytes
	for _, c := range x.cols {
		x.bytes -= int64(c.size(slot))
		c.clear(slot)
	}
	x.free = append(x.free, slot)
	x.live--
}
