package engine

import (
	"encoding/binary"
	"math/bits"
	"slices"

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
)

// sampleDistinct guesses how many different values some columns have together, some
// twenty milliseconds' work whatever the relation's size: for plans of jobs, which are made
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
	for i := range count {
		v := uint16(i * vnodes / count)
		for _, from := range spots(snap, d, v) {
			if !take(from, storage.NextPrefix(storage.VnodePrefix(v)), each) {
				return 0, false
			}
		}
	}
	return chao(seen, n, total), n > 0
}

// spots are keys from which a vnode's rows are read, evenly spread between its first and
// its last key, as numbers.
func spots(snap *storage.Snapshot, d storage.Desc, vnode uint16) [][]byte {
	prefix := storage.VnodePrefix(vnode)
	end := storage.NextPrefix(prefix)
	at := func(hi, lo uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(slices.Clone(prefix), hi), lo)
	}
	first := func(from []byte) (key []byte) {
		for kv, err := range snap.Scan(d, from, end) {
			if err == nil {
				key = slices.Clone(kv.Key)
			}
			break
		}
		return key
	}
	begin := first(prefix)
	if begin == nil {
		return nil
	}
	b := append(begin[len(prefix):], make([]byte, 16)...)
	lowHi, lowLo := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	// The last key by halving: is there a row at or above the middle?
	var hi, lo uint64
	for bit := 127; bit >= 0; bit-- {
		h, l := hi, lo
		if bit >= 64 {
			h |= 1 << (bit - 64)
		} else {
			l |= 1 << bit
		}
		if first(at(h, l)) != nil {
			hi, lo = h, l
		}
	}
	spanLo, borrow := bits.Sub64(lo, lowLo, 0)
	spanHi, _ := bits.Sub64(hi, lowHi, borrow)
	out := [][]byte{prefix}
	for i := uint64(1); i < sampleSpots; i++ {
		// low + span × i / spots
		stepHi, r := bits.Div64(0, spanHi, sampleSpots)
		stepLo, _ := bits.Div64(r, spanLo, sampleSpots)
		overHi, addLo := bits.Mul64(stepLo, i)
		l, carry := bits.Add64(lowLo, addLo, 0)
		h, _ := bits.Add64(lowHi, stepHi*i+overHi, carry)
		out = append(out, at(h, l))
	}
	return out
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
