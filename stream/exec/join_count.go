package exec

import "streamdb/sql/chunk"

// before returns for each row of a chunk how many rows of its join key the side has
// before that row is applied. Rows whose slot of the other side is negative meet nothing and are left out.
func (s *joinSide) before(c *chunk.Chunk, others []int32) ([]int64, error) {
	out := make([]int64, c.Len())
	var rows []int
	for i, slot := range others {
		if slot >= 0 {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return out, nil
	}
	keys := project(c.Cols, s.keys)
	if len(rows) < c.Len() {
		for i, k := range keys {
			keys[i] = k.Gather(rows)
		}
	}
	n := len(rows)
	h := chunk.Hash(keys, n)
	base, err := s.counter(keys, h, n)
	if err != nil {
		return nil, err
	}
	index := newKeyIndex(s.keyType)
	var counts []int64 // by slot of index
	for k, i := range rows {
		slot := index.find(h[k], keys, k)
		if slot < 0 {
			slot = index.insert(h[k], keys, k)
			b, err := base(k)
			if err != nil {
				return nil, err
			}
			counts = append(counts, b)
		}
		out[i] = counts[slot]
		counts[slot] += c.Op(i).Sign()
	}
	return out, nil
}

// counter returns a function that gives the number of rows of the key at i of n keys.
func (s *joinSide) counter(keys []chunk.Column, h []uint64, n int) (func(i int) (int64, error), error) {
	if s.packed != nil {
		if err := s.ask(); err != nil {
			return nil, err
		}
		full := make([]chunk.Column, len(s.column))
		for i, k := range s.keys {
			full[k] = keys[i]
		}
		vnodes := s.codec.Vnodes(full, n)
		return func(i int) (int64, error) {
			return s.packed.live(h[i], keys, i, vnodeAt(vnodes, i), s.complete && s.index.find(h[i], keys, i) < 0)
		}, nil
	}
	slots, err := s.probe(keys, n, nil)
	if err != nil {
		return nil, err
	}
	return func(i int) (int64, error) {
		switch slot := slots[i]; {
		case slot < 0:
			return 0, nil
		case s.large[slot]:
			count := int64(0)
			for b, err := range s.blocks(slot) {
				if err != nil {
					return 0, err
				}
				count += int64(b.n)
			}
			return count, nil
		default:
			return int64(s.count[slot]), nil
		}
	}, nil
}
