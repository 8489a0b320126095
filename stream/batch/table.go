package batch

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A hashTable numbers distinct keys from 0 in the order they come: rows of key
// columns, hashed with open addressing. NULLs are equal to each other.
type hashTable struct {
	keys  []chunk.Column
	rows  []int32  // of each number, where its key stands in keys; nil: at the number, put copied it there
	hash  []uint64 // of each number
	slots []slot
	n     int
	refer bool // rows is used
}

// A slot names a key; its tag spares most looks at keys that are others.
type slot struct {
	tag uint32
	num int32 // number + 1; 0: free
}

// newHashTable makes a table that copies the keys put into it.
func newHashTable(typs []types.Type) *hashTable {
	t := &hashTable{keys: make([]chunk.Column, len(typs)), slots: make([]slot, 64)}
	for i, ty := range typs {
		t.keys[i] = chunk.New(ty, 0)
	}
	return t
}

// newRowTable makes a table of n rows of columns that do not change: put must be of rows of these columns.
func newRowTable(keys []chunk.Column, n int) *hashTable {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return &hashTable{keys: keys, slots: make([]slot, size), refer: true}
}

// tableBytes estimates what a table holds for each key besides a copy of it.
const tableBytes = 8 + 4*8

// put gives, in a table of copies, the first len(nums) rows of cols their numbers, and new keys new ones.
func (t *hashTable) put(cols []chunk.Column, hash []uint64, nums []int32) {
	if len(cols) == 1 {
		switch v := cols[0].(type) {
		case *chunk.Vec[int64]:
			if k := t.keys[0].(*chunk.Vec[int64]); k.Nulls == nil && v.Nulls == nil {
				putPlain(t, k, v.Data, hash, nums)
				return
			}
		case *chunk.Vec[string]:
			if k := t.keys[0].(*chunk.Vec[string]); k.Nulls == nil && v.Nulls == nil {
				putPlain(t, k, v.Data, hash, nums)
				return
			}
		}
	}
	for i := range nums {
		nums[i] = t.putRow(cols, i, hash[i])
	}
}

// putPlain is put of one column without NULLs.
func putPlain[T comparable](t *hashTable, keys *chunk.Vec[T], data []T, hash []uint64, nums []int32) {
	mask := uint64(len(t.slots) - 1)
	for i := range nums {
		h, x := hash[i], data[i]
		tag := uint32(h >> 32)
		s := h & mask
		for {
			e := t.slots[s]
			if e.num == 0 {
				keys.Data = append(keys.Data, x)
				nums[i] = t.added(s, h)
				mask = uint64(len(t.slots) - 1)
				break
			}
			if e.tag == tag && keys.Data[e.num-1] == x {
				nums[i] = e.num - 1
				break
			}
			s = (s + 1) & mask
		}
	}
}

// putRow is put of one row.
func (t *hashTable) putRow(cols []chunk.Column, i int, h uint64) int32 {
	num, s := t.look(cols, i, h)
	if num >= 0 {
		return num
	}
	if t.refer {
		t.rows = append(t.rows, int32(i))
	} else {
		for j, c := range t.keys {
			c.AppendFrom(cols[j], i)
		}
	}
	return t.added(s, h)
}

// putRows is put for a table of rows: of the len(nums) rows after from; those to
// skip (nil: none) get -1. hash is of these rows alone.
func (t *hashTable) putRows(from int, hash []uint64, nums []int32, skip func(i int) bool) {
	if v, ok := t.keys[0].(*chunk.Vec[int64]); ok && len(t.keys) == 1 && skip == nil && !v.HasNulls() {
		for i := range nums {
			nums[i] = t.putInt(v.Data, from+i, hash[i])
		}
		return
	}
	for i := range nums {
		if skip != nil && skip(from+i) {
			nums[i] = -1
		} else {
			nums[i] = t.putRow(t.keys, from+i, hash[i])
		}
	}
}

func (t *hashTable) putInt(keys []int64, row int, h uint64) int32 {
	mask := uint64(len(t.slots) - 1)
	tag := uint32(h >> 32)
	s := h & mask
	for ; t.slots[s].num != 0; s = (s + 1) & mask {
		if e := t.slots[s]; e.tag == tag && keys[t.rows[e.num-1]] == keys[row] {
			return e.num - 1
		}
	}
	t.rows = append(t.rows, int32(row))
	return t.added(s, h)
}

// find gives the first len(nums) rows of cols their numbers; -1: not there.
func (t *hashTable) find(cols []chunk.Column, hash []uint64, nums []int32) {
	if len(cols) == 1 {
		switch v := cols[0].(type) {
		case *chunk.Vec[int64]:
			if k := t.keys[0].(*chunk.Vec[int64]); k.Nulls == nil && v.Nulls == nil {
				findPlain(t, k.Data, v.Data, hash, nums)
				return
			}
		case *chunk.Vec[string]:
			if k := t.keys[0].(*chunk.Vec[string]); k.Nulls == nil && v.Nulls == nil {
				findPlain(t, k.Data, v.Data, hash, nums)
				return
			}
		}
	}
	for i := range nums {
		nums[i], _ = t.look(cols, i, hash[i])
	}
}

func findPlain[T comparable](t *hashTable, keys, data []T, hash []uint64, nums []int32) {
	mask := uint64(len(t.slots) - 1)
	for i := range nums {
		h := hash[i]
		tag := uint32(h >> 32)
		num := int32(-1)
		for s := h & mask; ; s = (s + 1) & mask {
			e := t.slots[s]
			if e.num == 0 {
				break
			}
			if e.tag == tag {
				at := e.num - 1
				if t.refer {
					at = t.rows[at]
				}
				if keys[at] == data[i] {
					num = e.num - 1
					break
				}
			}
		}
		nums[i] = num
	}
}

// look returns a row's number, or -1 and the slot where it would be.
func (t *hashTable) look(cols []chunk.Column, i int, h uint64) (num int32, at uint64) {
	mask := uint64(len(t.slots) - 1)
	tag := uint32(h >> 32)
	for s := h & mask; ; s = (s + 1) & mask {
		e := t.slots[s]
		if e.num == 0 {
			return -1, s
		}
		if e.tag != tag {
			continue
		}
		k := e.num - 1
		if t.refer {
			k = t.rows[k]
		}
		if equalRows(t.keys, int(k), cols, i) {
			return e.num - 1, s
		}
	}
}

// added takes slot s for the key that was just put at the end of keys.
func (t *hashTable) added(s uint64, h uint64) int32 {
	t.hash = append(t.hash, h)
	t.slots[s] = slot{uint32(h >> 32), int32(t.n + 1)}
	t.n++
	if t.n*2 > len(t.slots) {
		t.slots = make([]slot, 2*len(t.slots))
		mask := uint64(len(t.slots) - 1)
		for k, h := range t.hash {
			s := h & mask
			for t.slots[s].num != 0 {
				s = (s + 1) & mask
			}
			t.slots[s] = slot{uint32(h >> 32), int32(k + 1)}
		}
	}
	return int32(t.n - 1)
}

// equalRows compares rows as SQL's grouping does: NULL equals NULL.
func equalRows(a []chunk.Column, i int, b []chunk.Column, j int) bool {
	for c := range a {
		an, bn := a[c].Null(i), b[c].Null(j)
		if an || bn {
			if an != bn {
				return false
			}
			continue
		}
		if !equalValue(a[c], i, b[c], j) {
			return false
		}
	}
	return true
}

func equalValue(a chunk.Column, i int, b chunk.Column, j int) bool {
	switch x := a.(type) {
	case *chunk.Vec[int64]:
		return x.Data[i] == b.(*chunk.Vec[int64]).Data[j]
	case *chunk.Vec[string]:
		return x.Data[i] == b.(*chunk.Vec[string]).Data[j]
	}
	return compareValue(a, i, b, j) == 0
}
