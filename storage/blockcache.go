package storage

import (
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// A blockCache keeps, for point reads, the blocks read last and filters of the keys of
// those that were ever read: most keys that are asked for in vain cost no read.
type blockCache struct {
	limit   int64 // bytes of blocks, and again of filters
	filters atomic.Int64

	mu   sync.Mutex
	ring []cached // those held are count from oldest on
	held int64

	oldest, count int
}

type cached struct {
	s     *blockState
	bytes int64
}

// ringLen bounds the number of blocks held, however small they are.
const ringLen = 4096

// keep holds a block's rows in memory, in place of those held longest.
func (c *blockCache) keep(b *block, rows *blockRows) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		c.ring = make([]cached, ringLen)
	}
	if b.rows.Load() != nil {
		return
	}
	n := int64(len(rows.ends) + len(rows.data) + len(rows.prefix))
	for c.count == ringLen || c.count > 0 && c.held+n > c.limit {
		o := &c.ring[c.oldest]
		o.s.rows.Store(nil)
		c.held -= o.bytes
		*o = cached{}
		c.oldest, c.count = (c.oldest+1)%ringLen, c.count-1
	}
	c.ring[(c.oldest+c.count)%ringLen] = cached{b.blockState, n}
	c.count++
	c.held += n
	b.rows.Store(rows)
}

// A blockFilter is a Bloom filter: ten bits a key, four of them set, wrong for one absent key in a hundred.
type blockFilter []uint64

const (
	filterBits = 10
	filterSet  = 4
)

func (f blockFilter) bit(h uint64, i int) (word int, mask uint64) {
	x := uint32(h) + uint32(i)*(uint32(h>>32)|1)
	at := uint64(x) * uint64(len(f)*64) >> 32
	return int(at / 64), 1 << (at % 64)
}

// may is false where the filter was made without the key of that hash.
func (f blockFilter) may(h uint64) bool {
	for i := range filterSet {
		if w, m := f.bit(h, i); f[w]&m == 0 {
			return false
		}
	}
	return true
}

// filter makes the filter of a block that was read, if there is room for it.
func (c *blockCache) filter(b *block, rows *blockRows) error {
	n := int64((rows.n*filterBits + 63) / 64)
	if c.filters.Add(8*n) > c.limit {
		c.filters.Add(-8 * n)
		return nil
	}
	f := make(blockFilter, n)
	key := append([]byte(nil), rows.prefix...)
	for i := range rows.n {
		rest, _, ok := rows.row(i)
		if !ok {
			return errCorrupt
		}
		key = append(key[:len(rows.prefix)], rest...)
		h := xxh3.Hash(key)
		for j := range filterSet {
			w, m := f.bit(h, j)
			f[w] |= m
		}
	}
	if !b.blockState.filter.CompareAndSwap(nil, &f) {
		c.filters.Add(-8 * n)
	}
	return nil
}

// forget takes back what the filter of a block that has gone took.
func (c *blockCache) forget(b *block) {
	if f := b.blockState.filter.Swap(nil); f != nil {
		c.filters.Add(-8 * int64(len(*f)))
	}
}
