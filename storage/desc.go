package storage

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"streamdb/sql/types"
)

// Tags are the first byte of every key in the store. The first five hold what the
// store keeps about itself and for its users, the others hold objects' rows.
const (
	TagMarker  byte = 0x01 // the commit marker
	TagCatalog byte = 0x02 // catalog journal
	TagOffsets byte = 0x03 // source offsets and sink state
	TagDigest  byte = 0x04 // row count and hash sum of each object
	TagJobs    byte = 0x05 // jobs, backfill progress, drop intents
	TagState   byte = 0x10 // operator state
	TagRows    byte = 0x11 // table and view rows
	TagIndex   byte = 0x12 // index rows
	tagPieces  byte = 0x13 // pieces of values too large for one entry

	tagBlocks    byte = 0x14 // many rows in one entry; see block
	tagBlockKeys byte = 0x15 // first keys and row counts of blocks
)

// A Desc says how an object's rows are keyed and held.
type Desc struct {
	ID     uint32 // never reused
	Name   string // for messages; the user's name where there is one
	Tag    byte   // TagState, TagRows or TagIndex
	Schema types.Schema
	Key    []int  // columns that order and identify rows
	Desc   []bool // per Key column: descending; nil: all ascending
	Dist   []int  // columns whose hash is the vnode, a subset of Key; empty: vnode 0
	Vnodes int    // number of vnodes rows are hashed into; 0 counts as 1

	// Exact makes Put and Delete on operator state look up what they replace when
	// the caller did not say, so that the digest stays exact. Rows and indexes
	// (TagRows, TagIndex) are always exact. See the invariants at digest.
	Exact bool
}

func (d Desc) exact() bool { return d.Exact || d.Tag != TagState }

// objectPrefix is what every key of the object starts with in the store.
func objectPrefix(tag byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{tag}, id)
}

const prefixLen = 5

// VnodeOf returns the vnode of a raw key (a key as Codec makes it).
func VnodeOf(key []byte) uint16 { return binary.BigEndian.Uint16(key) }

// VnodePrefix returns the raw key prefix that all keys of a vnode share.
func VnodePrefix(vnode uint16) []byte { return binary.BigEndian.AppendUint16(nil, vnode) }

// NextPrefix returns the smallest key above all keys that start with p, or nil
// if there is none. p is left as it is.
func NextPrefix(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0xFF {
			out := append([]byte(nil), p[:i+1]...)
			out[i]++
			return out
		}
	}
	return nil
}

// A VnodeSet is the vnodes that an actor owns. The zero value is the empty set.
type VnodeSet struct {
	words []uint64
}

// NewVnodeSet returns an empty set with room for vnodes 0 to n-1.
func NewVnodeSet(n int) VnodeSet { return VnodeSet{words: make([]uint64, (n+63)/64)} }

// Full returns the set of vnodes 0 to n-1.
func Full(n int) VnodeSet {
	s := NewVnodeSet(n)
	for v := range n {
		s.words[v/64] |= 1 << (v % 64)
	}
	return s
}

// Add puts v into the set. Sets share memory when assigned: Add belongs before the set is handed out.
func (s *VnodeSet) Add(v uint16) {
	for int(v)/64 >= len(s.words) {
		s.words = append(s.words, 0)
	}
	s.words[v/64] |= 1 << (v % 64)
}

// Has reports whether v is in the set.
func (s VnodeSet) Has(v uint16) bool {
	return int(v)/64 < len(s.words) && s.words[v/64]>>(v%64)&1 != 0
}

// Len is the number of vnodes in the set.
func (s VnodeSet) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// All ranges over the set in ascending order.
func (s VnodeSet) All() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(uint16(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// next returns the first vnode of the set that is at least v.
func (s VnodeSet) next(v int) (uint16, bool) {
	for i := v / 64; i < len(s.words); i++ {
		w := s.words[i]
		if i == v/64 {
			w = w >> (v % 64) << (v % 64)
		}
		if w != 0 {
			return uint16(i*64 + bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}
