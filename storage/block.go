package storage

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// A block is many rows of one object and vnode in one entry of the engine: what an
// epoch brings in key order costs the engine an entry a block, not an entry a row.
// Rows that change later are written as entries of their own. Invariants:
//
//  1. Blocks of an object that are live at one epoch have no key in common.
//  2. A row's own entry, whatever the epoch it was written in, is newer than the
//     block that holds its key; one marked metaDead says that the row is gone.
//  3. Entries marked metaDead lie only between the first and the last key of a live block.
//  4. A block goes, and its remaining rows become entries or other blocks, when about
//     half of them have changed; the marks within go with it.
//
// The block's entry, under tagBlocks, has its last key; an entry under tagBlockKeys
// says its first key and number of rows, so that opening a store reads no blocks.
type block struct {
	first, last []byte // raw keys
	n           int    // rows
	added       Epoch
	removed     Epoch // 0: live
	*blockState
}

// A blockState is what changes about a block while readers have it.
type blockState struct {
	stale  int                         // changes to its rows since the store was opened; the committer's
	alone  atomic.Bool                 // no entry lies in its range, at any epoch that it is live at
	filter atomic.Pointer[blockFilter] // of its keys; nil: none was made
	rows   atomic.Pointer[blockRows]   // while the cache holds them
}

// at reports whether the block is live at e.
func (b *block) at(e Epoch) bool { return b.added <= e && (b.removed == 0 || b.removed > e) }

func (b *block) dataKey(object []byte) []byte {
	return append(append([]byte{tagBlocks}, object...), b.last...)
}

func (b *block) indexKey(object []byte) []byte {
	return append(append([]byte{tagBlockKeys}, object...), b.last...)
}

func (b *block) indexVal() []byte {
	shared := sharedPrefix(b.first, b.last)
	v := binary.AppendUvarint(nil, uint64(b.n))
	v = binary.AppendUvarint(v, uint64(shared))
	return append(v, b.first[shared:]...)
}

// readBlock makes a block of its index entry; last and val are copied.
func readBlock(last, val []byte) (*block, error) {
	n, a := binary.Uvarint(val)
	if a <= 0 || n == 0 || n > maxBlockRows {
		return nil, errCorrupt
	}
	shared, c := binary.Uvarint(val[a:])
	if c <= 0 || shared > uint64(len(last)) || len(last) < 2 {
		return nil, errCorrupt
	}
	both := make([]byte, 0, len(last)+int(shared)+len(val)-a-c)
	both = append(both, last...)
	both = append(both, last[:shared]...)
	both = append(both, val[a+c:]...)
	b := &block{last: both[:len(last):len(last)], first: both[len(last):], n: int(n), blockState: &blockState{}}
	if len(b.first) < 2 || bytes.Compare(b.first, b.last) > 0 || VnodeOf(b.first) != VnodeOf(b.last) {
		return nil, errCorrupt
	}
	return b, nil
}

// A block's value is: format byte, rows (2 bytes), length of the prefix that all keys
// share (2), the prefix, the end of each row (2 bytes each, from the first row's
// start), then the rows: length of the key's rest (uvarint), the rest, the value.
const (
	blockFormat  byte = 1
	blockHead         = 5
	maxBlockRows      = 1 << 10
	maxBlockData      = 1<<16 - 1
	maxPackedKey      = 1 << 10
)

// blockRows reads the rows of a block's value.
type blockRows struct {
	n      int
	prefix []byte
	ends   []byte
	data   []byte
}

func readRows(b []byte) (blockRows, error) {
	if len(b) < blockHead || b[0] != blockFormat {
		return blockRows{}, errCorrupt
	}
	n, p := int(binary.LittleEndian.Uint16(b[1:])), int(binary.LittleEndian.Uint16(b[3:]))
	if n == 0 || len(b) < blockHead+p+2*n {
		return blockRows{}, errCorrupt
	}
	r := blockRows{n: n, prefix: b[blockHead : blockHead+p]}
	r.ends, r.data = b[blockHead+p:blockHead+p+2*n], b[blockHead+p+2*n:]
	return r, nil
}

// row returns the rest of row i's key, after the prefix, and its value; ok is false where the bytes are damaged.
func (r *blockRows) row(i int) (rest, val []byte, ok bool) {
	from := 0
	if i > 0 {
		from = int(binary.LittleEndian.Uint16(r.ends[2*i-2:]))
	}
	to := int(binary.LittleEndian.Uint16(r.ends[2*i:]))
	if from >= to || to > len(r.data) {
		return nil, nil, false
	}
	b := r.data[from:to:to]
	k, w := uint64(b[0]), 1
	if k >= 0x80 {
		k, w = binary.Uvarint(b)
	}
	if w <= 0 || k > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(k)], b[w+int(k):], true
}

// seek returns the first row at or above a raw key; r.n: none.
func (r *blockRows) seek(key []byte) (int, error) {
	if c := bytes.Compare(key[:min(len(key), len(r.prefix))], r.prefix); c != 0 {
		if c < 0 {
			return 0, nil
		}
		return r.n, nil
	}
	rest := key[len(r.prefix):]
	lo, hi := 0, r.n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		k, _, ok := r.row(m)
		if !ok {
			return 0, errCorrupt
		}
		if bytes.Compare(k, rest) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, nil
}

// get returns the value of a raw key; nil: no row has it.
func (r *blockRows) get(key []byte) ([]byte, error) {
	i, err := r.seek(key)
	if err != nil || i == r.n {
		return nil, err
	}
	k, val, ok := r.row(i)
	if !ok {
		return nil, errCorrupt
	}
	if len(k)+len(r.prefix) != len(key) || !bytes.Equal(k, key[len(r.prefix):]) {
		return nil, nil
	}
	return val, nil
}

// A packer gathers the rows of a block.
type packer struct {
	buf  []byte // keys and values
	rows []packed
}

type packed struct {
	key, val, end int  // offsets in buf
	entry         bool // the row has an entry of its own, which is to go
}

func (p *packer) add(key, val []byte, entry bool) {
	r := packed{key: len(p.buf), entry: entry}
	p.buf = append(p.buf, key...)
	r.val = len(p.buf)
	p.buf = append(p.buf, val...)
	r.end = len(p.buf)
	p.rows = append(p.rows, r)
}

func (p *packer) key(i int) []byte { return p.buf[p.rows[i].key:p.rows[i].val] }
func (p *packer) val(i int) []byte { return p.buf[p.rows[i].val:p.rows[i].end] }
func (p *packer) reset()           { p.buf, p.rows = p.buf[:0], p.rows[:0] }

// fits reports whether a row may be in a block at all.
func fits(key, val []byte, blockBytes int) bool {
	return len(key) <= maxPackedKey && len(val) <= blockBytes/4
}

// full reports whether the block has its size.
func (p *packer) full(blockBytes int) bool {
	return len(p.buf) >= blockBytes || len(p.rows) == maxBlockRows
}

// pack makes the gathered rows a block and its value, in memory of their own.
func (p *packer) pack(e Epoch) (*block, []byte) {
	n := len(p.rows)
	first, last := p.key(0), p.key(n-1)
	shared := sharedPrefix(first, last)
	out := make([]byte, 0, blockHead+shared+n*4+len(p.buf)-(n-1)*shared)
	out = append(out, blockFormat)
	out = binary.LittleEndian.AppendUint16(out, uint16(n))
	out = binary.LittleEndian.AppendUint16(out, uint16(shared))
	out = append(out, first[:shared]...)
	ends := len(out)
	out = out[:ends+2*n]
	start := len(out)
	for i, r := range p.rows {
		out = binary.AppendUvarint(out, uint64(r.val-r.key-shared))
		out = append(out, p.buf[r.key+shared:r.end]...)
		binary.LittleEndian.PutUint16(out[ends+2*i:], uint16(len(out)-start))
	}
	keys := make([]byte, 0, len(first)+len(last))
	keys = append(append(keys, first...), last...)
	return &block{first: keys[:len(first):len(first)], last: keys[len(first):], n: n, added: e, blockState: &blockState{}}, out
}
