package exec

import (
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A keyCache is the part of a state table that an operator holds in memory: one
// slot a key, with whatever the operator keeps by slot. The table's key is its
// leading columns.
//
// Invariants:
//  1. A slot shows its row's newest value; a slot that is not dirty agrees with the table.
//  2. Only clean slots are evicted.
//  3. complete: every row of the table is in memory, so that a key without a slot has no
//     row. It is so from the first change on if the table is empty then, until something is evicted.
type keyCache struct {
	*keyIndex
	table    *storage.StateTable
	codec    *storage.Codec
	quota    *quota
	complete bool
	asked    bool     // complete is known
	used     []uint32 // by slot: the tick when it was last asked for
	tick     uint32
	dirty    []int32 // slots in the order they were first changed
	isDirty  []bool  // by slot
	extra    int64   // bytes a slot costs the operator

	hits, misses counter
	slotsBuf     []int32
}

// newKeyCache caches t, whose first columns, of the given types, are its key.
// extra is what a slot costs the operator in bytes.
func newKeyCache(env *Env, t *storage.StateTable, key []types.Type, extra int64) *keyCache {
	c := &keyCache{keyIndex: newKeyIndex(key), table: t, codec: t.Codec(), quota: env.quota(), extra: extra + 5}
	c.hits, c.misses = env.Metrics.cache(env, t.Desc().Name)
	return c
}

// isEmpty reports whether a table has no rows, as far as its actor is concerned.
func isEmpty(t *storage.StateTable) (bool, error) {
	for _, err := range t.Scan(nil, nil) {
		return false, err
	}
	return true, nil
}

// resolve returns the slot of each of n keys, making slots for new ones. load is
// called for those that the table has, with the slot and what the table holds. The
// result is valid until the next call.
func (c *keyCache) resolve(cols []chunk.Column, n int, load func(slot int32, key, val []byte) error) ([]int32, error) {
	h := chunk.Hash(cols, n)
	if cap(c.slotsBuf) < n {
		c.slotsBuf = make([]int32, n)
	}
	slots := c.slotsBuf[:n]
	c.lookup(cols, h, slots)
	var fresh []int32 // slots without a value yet
	var row []int     // a row that has each fresh slot's key
	for i, s := range slots {
		if s >= 0 {
			c.used[s] = c.tick
			continue
		}
		// A key that is new in this chunk may come more than once.
		if len(fresh) > 0 {
			s = c.find(h[i], cols, i)
		}
		if s < 0 {
			s = c.insert(h[i], cols, i)
			if int(s) == len(c.used) {
				c.used, c.isDirty = append(c.used, 0), append(c.isDirty, false)
			}
			c.used[s] = c.tick
			fresh, row = append(fresh, s), append(row, i)
		}
		slots[i] = s
	}
	if !c.asked {
		empty, err := isEmpty(c.table)
		if err != nil {
			return nil, err
		}
		c.asked, c.complete = true, empty
	}
	if c.complete || len(fresh) == 0 {
		c.hits.Add(float64(n))
		return slots, nil
	}
	c.hits.Add(float64(n - len(fresh)))
	c.misses.Add(float64(len(fresh)))
	vnodes := c.codec.Vnodes(cols, n)
	keys := make([][]byte, len(fresh))
	buf := make([]byte, 0, 32*len(fresh))
	for k, i := range row {
		from := len(buf)
		buf = c.codec.AppendKeyVnode(buf, vnodeAt(vnodes, i), cols, i)
		keys[k] = buf[from:len(buf):len(buf)]
	}
	var failed error
	err := c.table.GetMany(keys, func(k int, val []byte) {
		if val != nil && failed == nil {
			failed = load(fresh[k], keys[k], val)
		}
	})
	if err == nil {
		err = failed
	}
	return slots, err
}

// touch marks a slot dirty and reports whether it was clean.
func (c *keyCache) touch(slot int32) bool {
	if c.isDirty[slot] {
		return false
	}
	c.isDirty[slot] = true
	c.dirty = append(c.dirty, slot)
	return true
}

// written ends a flush: all slots are clean.
func (c *keyCache) written() {
	for _, s := range c.dirty {
		c.isDirty[s] = false
	}
	c.dirty = c.dirty[:0]
}

// drop forgets a slot: its key has no row any more, or it is evicted.
func (c *keyCache) drop(slot int32) {
	c.remove(slot)
	c.isDirty[slot] = false
}

// size is what the cache holds, in bytes.
func (c *keyCache) size() int64 { return c.bytes + int64(c.live)*c.extra }

// evict makes room if the budget asks for it: the slots that were not used for
// longest go, after onDrop. more is memory beyond size. It is called when all slots
// are clean, after each epoch.
func (c *keyCache) evict(more int64, onDrop func(slot int32)) {
	c.tick++
	size := c.size() + more
	over := c.quota.set(size)
	if over == 0 || c.live == 0 {
		return
	}
	want := int(over * int64(c.live) / size)
	for _, s := range oldest(c.used, c.liveSlots(), want+1) {
		onDrop(s)
		c.drop(s)
	}
	c.complete = false
	c.quota.set(c.size())
}

// liveSlots marks the slots in use.
func (c *keyIndex) liveSlots() []bool {
	alive := make([]bool, c.slots())
	for _, e := range c.table {
		if e != 0 {
			alive[int32(uint32(e))-1] = true
		}
	}
	return alive
}

// oldest returns about n of the live slots, those with the smallest ticks.
func oldest(used []uint32, live []bool, n int) []int32 {
	ticks := make([]uint32, 0, len(used))
	for s, ok := range live {
		if ok {
			ticks = append(ticks, used[s])
		}
	}
	if len(ticks) == 0 {
		return nil
	}
	slices.Sort(ticks)
	cut := ticks[min(n, len(ticks))-1]
	// Slots of the very tick of the cut go only as far as needed.
	at, _ := slices.BinarySearch(ticks, cut)
	rest := min(n, len(ticks)) - at
	var out []int32
	for s, ok := range live {
		switch {
		case !ok || used[s] > cut:
		case used[s] < cut:
			out = append(out, int32(s))
		case rest > 0:
			rest--
			out = append(out, int32(s))
		}
	}
	return out
}
