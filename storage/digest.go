package storage

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// A digest sums up an object's rows: how many, how many bytes, and the sum of
// their hashes, so that it moves by differences. Invariants:
//
//  1. While loose is not set, rows, bytes and sum are exactly those of the rows
//     that a scan at the digest's epoch finds.
//  2. Loose is set, for good, by the first write to operator state that neither
//     says what it replaces nor finds it among the table's own recent writes.
//     Rows and bytes then follow only the writes that are known. Objects whose
//     Desc is exact (rows, indexes) never become loose: they look it up.
//  3. A WriteChunk insert is taken at its word that no row has its key, a delete
//     that its row is there as given. The scrub finds who lied.
type digest struct {
	rows, bytes int64
	sum         uint64
	loose       bool
	big         bool // some value was ever held in pieces
}

func rowHash(keyHash uint64, val []byte) uint64 { return xxh3.HashSeed(val, keyHash) }

func (d *digest) add(o digest) {
	d.rows += o.rows
	d.bytes += o.bytes
	d.sum += o.sum
	d.loose = d.loose || o.loose
	d.big = d.big || o.big
}

// row counts a row in (sign 1) or out (sign -1).
func (d *digest) row(sign int64, key []byte, keyHash uint64, val []byte) {
	d.rows += sign
	d.bytes += sign * int64(len(key)+len(val))
	d.sum += uint64(sign) * rowHash(keyHash, val)
}

const digestFormat = 1

func (d digest) encode() []byte {
	b := []byte{digestFormat, 0}
	if d.loose {
		b[1] |= 1
	}
	if d.big {
		b[1] |= 2
	}
	b = binary.AppendVarint(b, d.rows)
	b = binary.AppendVarint(b, d.bytes)
	return binary.BigEndian.AppendUint64(b, d.sum)
}

func decodeDigest(b []byte) (d digest, err error) {
	if len(b) < 2 || b[0] != digestFormat {
		return d, errCorrupt
	}
	d.loose, d.big = b[1]&1 != 0, b[1]&2 != 0
	b = b[2:]
	if d.rows, b, err = readVarint(b); err != nil {
		return d, err
	}
	if d.bytes, b, err = readVarint(b); err != nil {
		return d, err
	}
	if len(b) != 8 {
		return d, errCorrupt
	}
	d.sum = binary.BigEndian.Uint64(b)
	return d, nil
}

// mix is the digest's share in the xor that marker and ratchet hold.
func (d digest) mix(id uint32) uint64 {
	return xxh3.HashSeed(d.encode(), uint64(id)+1)
}
