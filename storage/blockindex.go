package storage

import (
	"bytes"
	"maps"
	"slices"

	"streamdb/sql/sqlerr"
)

// A blockIndex is the blocks of every object, in memory: a reader finds the block of a
// key without a seek. Lists are replaced, never changed, and serve readers of every
// epoch that may still be read: a block says from when to when it lived.
type blockIndex map[uint32]*objectBlocks

type objectBlocks struct {
	tag    byte
	vnodes []blockList
	gone   Epoch // the epoch in which the last row of the object was dropped; 0: it is there
}

// A blockList is a vnode's blocks by last key.
type blockList []*block

// seek returns the index of the first block live at e whose last key is at or above key; len(l): none.
func (l blockList) seek(key []byte, e Epoch) int {
	i, _ := slices.BinarySearchFunc(l, key, func(b *block, k []byte) int { return bytes.Compare(b.last, k) })
	return l.live(i, e)
}

// live returns the first index from i on whose block is live at e.
func (l blockList) live(i int, e Epoch) int {
	for i < len(l) && !l[i].at(e) {
		i++
	}
	return i
}

func (o *objectBlocks) list(vnode int) blockList {
	if o == nil || vnode >= len(o.vnodes) {
		return nil
	}
	return o.vnodes[vnode]
}

// blocks returns the blocks of an object; nil: it has none.
func (p *pin) blocks(tag byte, id uint32) *objectBlocks {
	x := p.ps.index.Load()
	if x == nil {
		return nil
	}
	if o := (*x)[id]; o != nil && o.tag == tag && (o.gone == 0 || o.gone > p.epoch) {
		return o
	}
	return nil
}

// loadBlocks reads the index of all blocks, when the store is opened.
func (s *Store) loadBlocks() error {
	p := s.pins.latest()
	defer p.release()
	x := blockIndex{}
	for kv, err := range p.scanTag(tagBlockKeys, nil) {
		if err != nil {
			return err
		}
		var b *block
		err := errCorrupt
		if len(kv.Key) > prefixLen {
			b, err = readBlock(kv.Key[prefixLen:], kv.Val)
		}
		if err != nil {
			return sqlerr.New(sqlerr.DataCorrupted, "index of blocks at %x: %w", kv.Key, err)
		}
		id := objectID(kv.Key[1:])
		o := x[id]
		if o == nil {
			o = &objectBlocks{tag: kv.Key[0]}
			x[id] = o
		}
		v := int(VnodeOf(b.last))
		o.grow(v)
		o.vnodes[v] = append(o.vnodes[v], b)
	}
	for _, o := range x {
		for _, l := range o.vnodes {
			slices.SortFunc(l, func(a, b *block) int { return bytes.Compare(a.last, b.last) })
		}
	}
	if len(x) > 0 {
		s.pins.index.Store(&x)
	}
	return nil
}

func (o *objectBlocks) grow(vnode int) {
	if n := vnode + 1 - len(o.vnodes); n > 0 {
		o.vnodes = append(o.vnodes, make([]blockList, n)...)
	}
}

// A blockChange is what a commit does to the blocks of one vnode.
type blockChange struct {
	added   []*block
	removed []*block
}

// publish makes the epoch's blocks known, before any reader stands at the epoch.
func (ps *pins) publish(e Epoch, changes map[uint32]*objectChange, gone []uint32) {
	old := ps.index.Load()
	if len(changes) == 0 && (old == nil || len(gone) == 0) {
		return
	}
	ps.mu.Lock()
	floor := ps.floor
	ps.mu.Unlock()
	next := blockIndex{}
	if old != nil {
		maps.Copy(next, *old)
		maps.DeleteFunc(next, func(_ uint32, o *objectBlocks) bool { return o.gone != 0 && o.gone <= floor })
	}
	for _, id := range gone {
		if o := next[id]; o != nil {
			next[id] = &objectBlocks{tag: o.tag, vnodes: o.vnodes, gone: e}
		}
	}
	for id, c := range changes {
		o := &objectBlocks{tag: c.tag}
		if was := next[id]; was != nil {
			o.vnodes = slices.Clone(was.vnodes)
		}
		for v, c := range c.vnodes {
			o.grow(v)
			o.vnodes[v] = o.vnodes[v].change(e, floor, c)
		}
		next[id] = o
		for _, c := range c.vnodes {
			for _, b := range c.removed {
				ps.cache.forget(b)
			}
		}
	}
	ps.index.Store(&next)
}

// change returns the list after the change. Blocks that died before floor are forgotten.
func (l blockList) change(e, floor Epoch, c *blockChange) blockList {
	slices.SortFunc(c.added, func(a, b *block) int { return bytes.Compare(a.last, b.last) })
	if len(c.removed) == 0 && len(c.added) > 0 && (len(l) == 0 || bytes.Compare(l[len(l)-1].last, c.added[0].last) < 0) {
		return append(l, c.added...) // readers have shorter slices of the same memory
	}
	out := make(blockList, 0, len(l)+len(c.added))
	for _, b := range l {
		if b.removed != 0 && b.removed <= floor {
			continue
		}
		if slices.Contains(c.removed, b) {
			dead := *b
			dead.removed = e
			b = &dead
		}
		out = append(out, b)
	}
	out = append(out, c.added...)
	slices.SortStableFunc(out, func(a, b *block) int { return bytes.Compare(a.last, b.last) })
	return out
}
