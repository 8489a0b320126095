package exec

import (
	"bytes"
	"iter"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A key with more rows than a good part of the budget is never held in memory: its
// rows are read from the state table, block by block, whenever the other side asks for them.

// A joinBlock is some rows of a large key.
type joinBlock struct {
	cols    []chunk.Column // of the input
	n       int
	degree  []int64
	changed []bool // by row: the degree
}

// blockRows is how many rows of a large key are in memory at once.
const blockRows = 1024

// largeKey is how many bytes a key's rows may take in memory; 0: no limit.
func largeKey(b *Budget) int64 {
	if b == nil || b.limit <= 0 {
		return 0
	}
	return max(b.limit/8, 1)
}

// prefix is what the state keys of slot start with.
func (s *joinSide) prefix(slot int32) []byte {
	keys := make([]chunk.Column, len(s.keys))
	full := make([]chunk.Column, len(s.column))
	for i, c := range s.index.columns() {
		keys[i] = c.Slice(int(slot), int(slot)+1)
		full[s.keys[i]] = keys[i]
	}
	return s.codec.AppendPrefix(nil, vnodeAt(s.codec.Vnodes(full, 1), 0), keys, 0)
}

// blocks ranges over the rows of a large key. Degrees that changed are written
// before the next block is read.
func (s *joinSide) blocks(slot int32) iter.Seq2[*joinBlock, error] {
	return func(yield func(*joinBlock, error) bool) {
		prefix := s.prefix(slot)
		rows, err := s.scan(prefix, slot)
		if err != nil {
			yield(nil, err)
			return
		}
		degree, stop := s.degreesFrom(prefix, storage.NextPrefix(prefix))
		defer stop()
		b := &joinBlock{}
		flush := func() bool {
			if b.n == 0 {
				return true
			}
			if !yield(b, nil) {
				return false
			}
			if err := s.writeBlock(b); err != nil {
				yield(nil, err)
				return false
			}
			b = &joinBlock{}
			return true
		}
		for kv, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if b.n == 0 {
				b.cols = make([]chunk.Column, len(s.column))
				for i, c := range s.column {
					b.cols[i] = chunk.New(c.col().Type(), 64)
				}
			}
			err = s.codec.Decode(kv.Key, kv.Val, b.cols)
			d := int64(0)
			if err == nil {
				d, err = degree(kv.Key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			b.degree, b.changed = append(b.degree, d), append(b.changed, false)
			if b.n++; b.n == blockRows && !flush() {
				return
			}
		}
		flush()
	}
}

// degreesFrom returns a function that gives the degree of each of the keys it is
// asked for, which must ascend.
func (s *joinSide) degreesFrom(from, to []byte) (degree func(key []byte) (int64, error), stop func()) {
	if s.degrees == nil {
		return func([]byte) (int64, error) { return 0, nil }, func() {}
	}
	next, stop := iter.Pull2(s.degrees.Scan(from, to))
	read := s.degrees.Codec().NewDecoder([]int{len(s.pk)})
	col := []chunk.Column{chunk.New(types.Int8, 1)}
	var at []byte // key of the degree in col
	more := true
	return func(key []byte) (int64, error) {
		for more && (at == nil || bytes.Compare(at, key) < 0) {
			kv, err, ok := next()
			if more = ok; !ok {
				break
			}
			if err != nil {
				return 0, err
			}
			truncate(col)
			if err := read.Decode(kv.Key, kv.Val, col); err != nil {
				return 0, err
			}
			at = append(at[:0], kv.Key...)
		}
		if at != nil && bytes.Equal(at, key) {
			return chunk.Of[int64](col[0]).Data[0], nil
		}
		return 0, nil
	}, stop
}

func (s *joinSide) writeBlock(b *joinBlock) error {
	var at []int
	for i, c := range b.changed {
		if c {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil
	}
	cols := make([]chunk.Column, 0, len(s.pk)+1)
	for _, c := range s.pk {
		cols = append(cols, b.cols[c].Gather(at))
	}
	return s.putDegreesOf(cols, at, b.degree)
}

// large joins the rows of the chunk whose key is the large one of slot.
func (m *meeting) large(slot int32, rows []int32) error {
	other := m.x.side[1-m.side]
	if err := m.send(); err != nil { // what is collected refers to rows in memory
		return err
	}
	defer func() { m.block = nil }()
	for b, err := range other.blocks(slot) {
		if err != nil {
			return err
		}
		m.block = b
		for _, i := range rows {
			m.row, m.rid = m.row[:0], m.rid[:0]
			for r := range b.n {
				m.row, m.rid = append(m.row, i), append(m.rid, int32(r))
			}
			row, rid := m.row, m.rid
			if m.x.cond != nil {
				if row, rid, err = m.filter(); err != nil {
					return err
				}
			}
			for k := range row {
				if err := m.match(row[k], rid[k]); err != nil {
					return err
				}
			}
		}
		if err := m.send(); err != nil {
			return err
		}
	}
	m.block, m.row, m.rid = nil, m.row[:0], m.rid[:0]
	for _, i := range rows {
		if err := m.finish(i); err != nil {
			return err
		}
	}
	return nil
}

// addDegree changes the degree of a row of the other side, in memory or in the block at hand.
func (m *meeting) addDegree(r int32, sign int64) (before int64, err error) {
	other := m.x.side[1-m.side]
	if m.block == nil {
		return other.addDegree(r, sign)
	}
	before = m.block.degree[r]
	m.block.degree[r] += sign
	m.block.changed[r] = true
	if before+sign < 0 {
		return 0, inconsistent(other.table, "row %s loses a match that it did not have", describe(m.block.cols, int(r)))
	}
	return before, nil
}
