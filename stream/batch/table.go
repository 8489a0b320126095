package batch

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A hashTable numbers distinct keys from 0: rows of key columns, hashed with open
// addressing, compared column by column. NULLs are equal to each other.
type hashTable struct {
	keys  []chunk.Column // of each number
	hash  []uint64       // of each number
	slots []int32        // number + 1; 0: free
	n     int
}

func newHashTable(typs []types.Type) *hashTable {
	t := &hashTable{keys: make([]chunk.Column, len(typs)), slots: make([]int32, 64)}
	for i, ty := range typs {
		t.keys[i] = chunk.New(ty, 0)
	}
	return t
}

// find returns the number of row i of cols, -1 if it is not there.
func (t *hashTable) find(cols []chunk.Column, i int, h uint64) int {
	mask := uint64(len(t.slots) - 1)
	for s := h & mask; ; s = (s + 1) & mask {
		k := t.slots[s]
		if k == 0 {
			return -1
		}
		if t.hash[k-1] == h && equalRows(t.keys, int(k-1), cols, i) {
			return int(k - 1)
		}
	}
}

// put returns the number of row i of cols, adding it if it is new.
func (t *hashTable) put(cols []chunk.Column, i int, h uint64) (num int, added bool) {
	if k := t.find(cols, i, h); k >= 0 {
		return k, false
	}
	if t.n*2 >= len(t.slots) {
		t.grow()
	}
	for j, c := range t.keys {
		c.AppendFrom(cols[j], i)
	}
	t.hash = append(t.hash, h)
	t.place(t.n, h)
	t.n++
	return t.n - 1, true
}

func (t *hashTable) place(num int, h uint64) {
	mask := uint64(len(t.slots) - 1)
	s := h & mask
	for t.slots[s] != 0 {
		s = (s + 1) & mask
	}
	t.slots[s] = int32(num + 1)
}

func (t *hashTable) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	for k, h := range t.hash {
		t.place(k, h)
	}
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
		return x.Data[i] == chunk.Of[int64](b).Data[j]
	case *chunk.Vec[string]:
		return x.Data[i] == chunk.Of[string](b).Data[j]
	case *chunk.Vec[bool]:
		return x.Data[i] == chunk.Of[bool](b).Data[j]
	}
	return types.Compare(a.Datum(i), b.Datum(j)) == 0
}

// compareRows orders rows by sort keys.
func compareValue(a chunk.Column, i int, b chunk.Column, j int) int {
	switch x := a.(type) {
	case *chunk.Vec[int64]:
		y := chunk.Of[int64](b).Data[j]
		switch {
		case x.Data[i] < y:
			return -1
		case x.Data[i] > y:
			return 1
		}
		return 0
	case *chunk.Vec[string]:
		y := chunk.Of[string](b).Data[j]
		switch {
		case x.Data[i] < y:
			return -1
		case x.Data[i] > y:
			return 1
		}
		return 0
	}
	return types.Compare(a.Datum(i), b.Datum(j))
}

// pick returns some columns.
func pick(cols []chunk.Column, at []int) []chunk.Column {
	out := make([]chunk.Column, len(at))
	for i, c := range at {
		out[i] = cols[c]
	}
	return out
}
