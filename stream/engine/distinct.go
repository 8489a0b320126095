package engine

import (
	"math/big"
	"slices"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/storage"
)

// A relation's columns are sampled at spots spread over the keys of some vnodes, which
// are random parts of its rows; a small relation is read whole.
const (
	sampleSpots = 20  // of a vnode
	sampleRows  = 100 // at a spot, at most
	sampleWhole = 16_000
	sampleLeast = 1000                   // rows that tell anything
	sampleTime  = 100 * time.Millisecond // where reading is slow, fewer rows must do
	spotBytes   = 16                     // of a key, that are looked at
	spotBits    = 8                      // of the span of keys
)

// sampleDistinct guesses how many different values some columns have together, some
// milliseconds' work whatever the relation's size: for plans of jobs, which are made
// once (see recordedStats), not for those of queries.
func (db *DB) sampleDistinct(id catalog.ID, cols []int) (int64, bool) {
	rel := db.Catalog().ByID(id)
	total := db.Rows(id)
	if rel == nil || total == 0 || !rel.HasRows() {
		return 0, false
	}
	snap, err := db.store.Latest()
	if err != nil {
		return 0, false
	}
	defer snap.Close()
	d := relationDesc(rel)
	seen := map[uint64]int64{}
	n := int64(0)
	take := func(from, to []byte, most int) bool {
		for c, err := range snap.ScanChunks(d, cols, from, to, min(most, 1024)) {
			if err != nil {
				return false
			}
			for _, h := range chunk.Hash(c.Cols, c.N) {
				seen[h]++
			}
			n += int64(c.N)
			if most -= c.N; most <= 0 {
				return true
			}
		}
		return true
	}
	if total <= sampleWhole {
		ok := take(nil, nil, 2*sampleWhole)
		return int64(len(seen)), ok && n > 0
	}
	vnodes := max(1, d.Vnodes)
	each := int(min(sampleRows, max(1, total/int64(vnodes)/(2*sampleSpots)))) // no row twice
	count := min(vnodes, sampleWhole/each/sampleSpots)
	until := db.clock.Now().Add(sampleTime)
	late := func() bool { return db.clock.Now().After(until) }
	at, steps := spots(snap, d, late), sampleSpots
	if at == nil { // keys that cannot be told apart by how they begin
		at, steps, each = func(int, int) []byte { return nil }, 1, steps*each
	}
	for i := range count {
		prefix := storage.VnodePrefix(uint16(i * vnodes / count))
		end := storage.NextPrefix(prefix)
		for j := range steps {
			if late() {
				return chao(seen, n, total), n >= sampleLeast
			}
			// No two vnodes are read at the same spots: columns may go with the key.
			if !take(append(prefix[:len(prefix):len(prefix)], at(j*count+i, steps*count)...), end, each) {
				return 0, false
			}
		}
	}
	return chao(seen, n, total), n > 0
}

// spots tells what keys begin with, at i of n even steps from the first to about the last
// key of a vnode, as numbers. The vnodes are alike: the keys of one that has rows tell of
// all. nil: they tell nothing, or late was true before they did.
func spots(snap *storage.Snapshot, d storage.Desc, late func() bool) func(i, n int) []byte {
	var prefix, end, begin []byte
	first := func(from []byte) (key []byte) {
		for kv, err := range snap.Scan(d, append(slices.Clone(prefix), from...), end) {
			if err == nil {
				key = kv.Key[len(prefix):]
			}
			break
		}
		return slices.Clone(key)
	}
	for v := 0; begin == nil && v < max(1, d.Vnodes) && !late(); v++ {
		prefix = storage.VnodePrefix(uint16(v))
		end = storage.NextPrefix(prefix)
		begin = first(nil)
	}
	low := new(big.Int).SetBytes(append(begin, make([]byte, spotBytes)...)[:spotBytes])
	at := func(span *big.Int) []byte {
		sum := new(big.Int).Add(low, span)
		if sum.BitLen() > 8*spotBytes {
			return nil
		}
		return sum.FillBytes(make([]byte, spotBytes))
	}
	// The highest bits of how far the last key is from the first.
	span := new(big.Int)
	for bit, more := 8*spotBytes-1, spotBits; bit >= 0 && more > 0 && !late(); bit-- {
		next := new(big.Int).SetBit(span, bit, 1)
		if key := at(next); key != nil && first(key) != nil {
			span = next
		}
		if span.Sign() > 0 {
			more--
		}
	}
	if span.Sign() == 0 {
		return nil
	}
	return func(i, n int) []byte {
		part := new(big.Int).Mul(span, big.NewInt(int64(i)))
		return at(part.Quo(part, big.NewInt(int64(n))))
	}
}

// chao estimates how many different values there are among total rows from how often those
// of a sample of n were seen: Chao's lower bound (1984), bias-corrected; where nearly all were
// seen once, as many as there are rows.
func chao(seen map[uint64]int64, n, total int64) int64 {
	var once, twice float64
	for _, c := range seen {
		switch c {
		case 1:
			once++
		case 2:
			twice++
		}
	}
	if once >= 0.95*float64(n) {
		return int64(once / float64(n) * float64(total))
	}
	return min(total, int64(float64(len(seen))+once*(once-1)/(2*(twice+1))))
}
