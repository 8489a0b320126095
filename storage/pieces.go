package storage

import (
	"encoding/binary"
	"fmt"

	"streamdb/sql/sqlerr"
)

// A value too large for one entry is stored in pieces under tagPieces, and a
// head under its key that says how many there are. Pieces have the version of their head.
const (
	pieceBytes  = 256 << 10
	maxKeyBytes = 8 << 10
)

func errKeyTooLong(n int) error {
	return sqlerr.New(sqlerr.ProgramLimit, "key of %d bytes exceeds the maximum of %d", n, maxKeyBytes).
		WithHint("Use shorter values in key, grouping and join columns.")
}

func pieceCount(n int) int {
	if n <= pieceBytes {
		return 0
	}
	return (n + pieceBytes - 1) / pieceBytes
}

func pieceKey(key []byte, i int) []byte {
	b := make([]byte, 0, 1+len(key)+4)
	b = append(b, tagPieces)
	b = append(b, key...)
	return binary.BigEndian.AppendUint32(b, uint32(i))
}

// split yields w, in pieces if it is large.
func (w write) split(yield func(write) bool) bool {
	n := pieceCount(len(w.val))
	if n == 0 {
		return yield(w)
	}
	for i := range n {
		part := w.val[i*pieceBytes : min((i+1)*pieceBytes, len(w.val))]
		if !yield(write{key: pieceKey(w.key, i), val: part}) {
			return false
		}
	}
	return yield(write{key: w.key, val: binary.AppendUvarint(nil, uint64(len(w.val))), meta: metaBig})
}

// join reads the pieces of a head.
func (p *pin) join(key, head []byte) ([]byte, error) {
	size, n := binary.Uvarint(head)
	if n <= 0 || size > 1<<31 {
		return nil, errCorrupt
	}
	out := make([]byte, 0, size)
	for i := range pieceCount(int(size)) {
		part, _, err := p.v.get(pieceKey(key, i))
		if err != nil {
			return nil, err
		}
		if part == nil {
			return nil, sqlerr.New(sqlerr.DataCorrupted, "piece %d of a large value is missing", i).WithDetail("key %x", key)
		}
		out = append(out, part...)
	}
	if len(out) != int(size) {
		return nil, sqlerr.New(sqlerr.DataCorrupted, "pieces of a large value are %d bytes, not %d", len(out), size).WithDetail("key %x", key)
	}
	return out, nil
}

// stalePieces yields deletions of the pieces that key has now and will not have under a value of size bytes.
func (p *pin) stalePieces(key []byte, size int, yield func(write) bool) (bool, error) {
	head, meta, err := p.v.get(key)
	if err != nil || meta != metaBig {
		return true, err
	}
	old, n := binary.Uvarint(head)
	if n <= 0 {
		return false, fmt.Errorf("head of a large value: %w", errCorrupt)
	}
	for i := pieceCount(size); i < pieceCount(int(old)); i++ {
		if !yield(write{key: pieceKey(key, i)}) {
			return false, nil
		}
	}
	return true, nil
}
