package storage

import (
	"bytes"
	"fmt"
	"iter"

	"streamdb/sql/chunk"
)

// A Snapshot reads the state at one committed epoch. It may be used from several
// goroutines, and must be closed. Held too long after a newer epoch was
// committed (Options.MaxPinAge), its reads fail with SQLSTATE 72000.
type Snapshot struct {
	p *pin
	s *Store
}

// At opens a snapshot of epoch e. Epochs above Committed are an error, as are
// those that nobody held while newer ones were committed (72000).
func (s *Store) At(e Epoch) (*Snapshot, error) {
	p, err := s.pins.at(e)
	if err != nil {
		return nil, err
	}
	return &Snapshot{p, s}, nil
}

// Latest opens a snapshot of the newest committed epoch.
func (s *Store) Latest() (*Snapshot, error) { return &Snapshot{s.pins.latest(), s}, nil }

// Epoch is the epoch that the snapshot shows.
func (s *Snapshot) Epoch() Epoch { return s.p.epoch }

// Close lets go of the epoch. The snapshot must not be used afterwards.
func (s *Snapshot) Close() { s.p.release() }

// Get returns the value of a raw key; nil: absent.
func (s *Snapshot) Get(d Desc, key []byte) ([]byte, error) {
	return s.p.row(append(objectPrefix(d.Tag, d.ID), key...))
}

// GetMany looks raw keys up in key order and calls each once a key with its index and value; nil: absent.
func (s *Snapshot) GetMany(d Desc, keys [][]byte, each func(i int, val []byte)) error {
	buf := objectPrefix(d.Tag, d.ID)
	for _, i := range keyOrder(keys) {
		buf = append(buf[:prefixLen], keys[i]...)
		val, err := s.p.row(buf)
		if err != nil {
			return err
		}
		each(i, val)
	}
	return nil
}

// Scan ranges over the raw keys of [from, to) in key order; to nil: to the end of the object.
func (s *Snapshot) Scan(d Desc, from, to []byte) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		c := s.scan(d, from, to)
		defer c.close()
		for c.next() {
			if !yield(KV{c.key, c.val}, nil) {
				return
			}
		}
		if c.err != nil {
			yield(KV{}, fmt.Errorf("scan %s: %w", d.label(), c.err))
		}
	}
}

// ScanChunks reads the given columns of the rows of [from, to) in key order, up
// to size rows a chunk. Without columns the rows are only counted, and those of a
// whole object looked up in its digest where that may be trusted.
func (s *Snapshot) ScanChunks(d Desc, cols []int, from, to []byte, size int) iter.Seq2[*chunk.Chunk, error] {
	if len(cols) == 0 {
		return s.count(d, from, to, size)
	}
	return func(yield func(*chunk.Chunk, error) bool) {
		codec := NewCodec(d)
		dec := codec.NewDecoder(cols)
		c := s.scan(d, from, to)
		defer c.close()
		c.keysOnly = len(dec.p.val) == 0
		room := min(size, 16) // point reads are as common as long scans
		fresh := func() []chunk.Column {
			into := make([]chunk.Column, len(cols))
			for j, col := range cols {
				into[j] = chunk.New(d.Schema[col].Type, room)
			}
			room = size
			return into
		}
		into, n := fresh(), 0
		for c.next() {
			if err := dec.Decode(c.key, c.val, into); err != nil {
				yield(nil, err)
				return
			}
			n++
			if c.blocks != nil && n < size {
				k := c.blocks.run(size-n, c.end)
				if err := dec.decodeRun(&c.blocks.data, c.blocks.at+1, k, into); err != nil {
					yield(nil, err)
					return
				}
				c.blocks.pass(k)
				n += k
			}
			if n == size {
				if c.err = c.p.check(); c.err != nil {
					break
				}
				if !yield(&chunk.Chunk{Cols: into, N: n}, nil) {
					return
				}
				into, n = fresh(), 0
			}
		}
		if c.err != nil {
			yield(nil, fmt.Errorf("scan %s: %w", d.label(), c.err))
			return
		}
		if n > 0 {
			yield(&chunk.Chunk{Cols: into, N: n}, nil)
		}
	}
}

// count yields chunks that have rows and no columns.
func (s *Snapshot) count(d Desc, from, to []byte, size int) iter.Seq2[*chunk.Chunk, error] {
	return func(yield func(*chunk.Chunk, error) bool) {
		var known digest
		exact := false
		if len(from) == 0 && to == nil && d.exact() {
			var trusted bool
			var err error
			known, exact, trusted, err = s.digest(d.ID)
			if err != nil {
				yield(nil, fmt.Errorf("scan %s: %w", d.label(), err))
				return
			}
			if trusted {
				for left := known.rows; left > 0; left -= int64(size) {
					if !yield(&chunk.Chunk{N: int(min(left, int64(size)))}, nil) {
						return
					}
				}
				return
			}
		}
		c := s.scan(d, from, to)
		defer c.close()
		c.keysOnly = true
		n, rows := 0, int64(0)
		for c.next() {
			rows++
			n++
			if c.blocks != nil && n < size {
				k := c.blocks.run(size-n, c.end)
				c.blocks.pass(k)
				n, rows = n+k, rows+int64(k)
			}
			if n == size {
				if !yield(&chunk.Chunk{N: n}, nil) {
					return
				}
				n = 0
			}
		}
		if c.err != nil {
			yield(nil, fmt.Errorf("scan %s: %w", d.label(), c.err))
			return
		}
		if exact && rows == known.rows {
			s.s.vouch(d.ID)
		}
		if n > 0 {
			yield(&chunk.Chunk{N: n}, nil)
		}
	}
}

// digest reads an object's digest at the snapshot's epoch. exact: its rows are to
// be those of a scan. trusted: nothing found at open speaks for itself only.
func (s *Snapshot) digest(id uint32) (d digest, exact, trusted bool, err error) {
	raw, err := s.p.get(objectPrefix(TagDigest, id))
	if raw == nil || err != nil {
		return d, false, false, err
	}
	if d, err = decodeDigest(raw); err != nil {
		return d, false, false, err
	}
	exact = !d.loose
	return d, exact, exact && s.s.trusts(id), nil
}

// A plainScan walks an object's rows in one committed view: a merge without layers.
type plainScan struct {
	p        *pin
	c        cursor
	blocks   *blockCursor // c, where the object has blocks; nil: it has none
	full     []byte       // where it starts
	end      []byte       // full key, exclusive; nil: none
	started  bool
	keysOnly bool // values are not read
	key, val []byte
	err      error
}

func (s *Snapshot) scan(d Desc, from, to []byte) *plainScan {
	x := &plainScan{p: s.p, full: append(objectPrefix(d.Tag, d.ID), from...)}
	n := 0
	if to != nil {
		x.end = append(objectPrefix(d.Tag, d.ID), to...)
		n = sharedPrefix(from, to)
	}
	x.c = s.p.cursor(x.full[:prefixLen+n])
	x.blocks, _ = x.c.(*blockCursor)
	return x
}

func (x *plainScan) next() bool {
	ok := false
	if x.started {
		ok = x.c.next()
	} else {
		x.started = true
		ok = x.c.seek(x.full)
	}
	if x.err = x.c.err(); x.err != nil {
		return false
	}
	if !ok {
		x.err = x.p.check()
		return false
	}
	k := x.c.key()
	if x.end != nil && bytes.Compare(k, x.end) >= 0 {
		x.err = x.p.check()
		return false
	}
	if x.keysOnly {
		x.key, x.err = k[prefixLen:], x.p.check()
		return x.err == nil
	}
	val, meta := x.c.val()
	if meta == metaBig {
		if val, x.err = x.p.join(k, val); x.err != nil {
			return false
		}
	}
	if x.err = x.c.err(); x.err == nil {
		x.err = x.p.check()
	}
	x.key, x.val = k[prefixLen:], val
	return x.err == nil
}

func (x *plainScan) close() { x.c.close() }
