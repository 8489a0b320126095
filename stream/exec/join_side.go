package exec

import (
	"bytes"
	"iter"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A joinSide is the rows of one input of a join: a state table, and in memory all
// rows of some join keys.
//
// Invariants:
//  1. A key that has a slot has all its rows in memory, linked from head, or is large or cold and has none there.
//  2. complete: all keys of the table have slots.
//  3. degree[r] is the number of rows of the other side that match row r; it is
//     kept only if degrees is there, whose absent rows mean 0.
type joinSide struct {
	table   *storage.StateTable
	codec   *storage.Codec      // of a row
	packed  *packedRows         // holds the table's rows; nil: the table has an entry for each
	degrees *storage.StateTable // nil: not kept
	keys    []int               // columns of the join key
	nulls   []bool              // per key column: NULL matches NULL
	keyType []types.Type

	index    *keyIndex // join key → slot
	head     []int32   // by slot: first row; -1: none
	used     []uint32  // by slot
	large    []bool    // by slot: the rows are not in memory; see join_large.go
	cold     []bool    // by slot: nobody has asked for the rows for long: they are not in memory
	count    []int32   // by slot: rows in memory
	seen     []int32   // by slot: as many were there when it was last asked for
	most     int64     // bytes that a key may take in memory; 0: no limit
	tick     uint32
	complete bool
	asked    bool
	quota    *quota

	rows   *keyIndex // state key → row
	pk     []int     // columns of the state key
	others []cells   // by row: the columns that are not in the state key
	at     []int     // which columns others are
	column []cells   // by row: every column of the input
	next   []int32   // by row
	prev   []int32   // by row; -1: first of its key
	slot   []int32   // by row: its join key
	degree []int64   // by row
	dirty  []int32   // rows whose degree is not written yet; may have rows that were deleted meanwhile
	stale  []bool    // by row: in dirty
	other  int64     // bytes of others

	hits, misses counter
	loaded       []chunk.Column
}

func newJoinSide(env *Env, in *plan.Props, keys []int, nulls []bool, state, degree *plan.TableDesc) *joinSide {
	s := &joinSide{keys: keys, nulls: nulls, pk: state.Key}
	if packs(in, keys, degree) {
		s.packed = newPackedRows(env, state, keys)
		s.table, s.codec = s.packed.table, s.packed.rows
	} else {
		s.table = env.Store.Table(Desc(state, env.vnodeCount()), env.Vnodes)
		s.codec = s.table.Codec()
	}
	s.quota, s.most = env.quota(), largeKey(env.Cache)
	s.hits, s.misses = env.Metrics.cache(env, state.Name)
	for _, k := range keys {
		s.keyType = append(s.keyType, in.Schema[k].Type)
	}
	if degree != nil {
		// Its key is the state table's, so that their keys are the same bytes.
		schema := append(in.Schema.Project(state.Key), types.Field{Name: "degree", Type: types.Int8})
		d := stateDesc(degree, env.vnodeCount(), schema, nil, len(state.Key), state.Desc)
		d.Dist = make([]int, len(state.Dist))
		for i, c := range state.Dist {
			d.Dist[i] = slices.Index(state.Key, c)
		}
		s.degrees = env.Store.Table(d, env.Vnodes)
	}
	s.loaded = newColumns(in.Schema, 64)
	s.forgetAll(in.Schema)
	return s
}

// forgetAll empties the memory.
func (s *joinSide) forgetAll(schema types.Schema) {
	s.index, s.rows = newKeyIndex(s.keyType), newKeyIndex(schema.Project(s.pk).Types())
	s.column, s.others, s.other = make([]cells, len(schema)), nil, 0
	s.at = nil
	for c, f := range schema {
		if at := slices.Index(s.pk, c); at >= 0 {
			s.column[c] = s.rows.cols[at]
			continue
		}
		s.column[c] = newCells(f.Type)
		s.others, s.at = append(s.others, s.column[c]), append(s.at, c)
	}
	s.head, s.used, s.large, s.cold, s.count, s.seen, s.next, s.prev, s.slot, s.degree, s.stale = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
}

// usable reports for each row whether its key may match; nil: all may.
func (s *joinSide) usable(c *chunk.Chunk) []bool {
	var out []bool
	for i, k := range s.keys {
		if s.nulls[i] || !c.Cols[k].HasNulls() {
			continue
		}
		if out == nil {
			out = make([]bool, c.Len())
			for r := range out {
				out[r] = true
			}
		}
		for r := range out {
			out[r] = out[r] && !c.Cols[k].Null(r)
		}
	}
	return out
}

// probe returns the slot of each key of n rows, -1 where there is no row. Keys that are
// not in memory are read, in key order. Rows that are not usable are left out.
func (s *joinSide) probe(keys []chunk.Column, n int, usable []bool) ([]int32, error) {
	for i, t := range s.keyType {
		keys[i] = keys[i].As(t)
	}
	if err := s.ask(); err != nil {
		return nil, err
	}
	h := chunk.Hash(keys, n)
	slots := make([]int32, n)
	s.index.lookup(keys, h, slots)
	var fresh []int32
	var row []int
	for i, slot := range slots {
		if usable != nil && !usable[i] {
			slots[i] = -1
			continue
		}
		if slot < 0 && !s.complete {
			if len(fresh) > 0 {
				slot = s.index.find(h[i], keys, i)
			}
			if slot < 0 {
				slot = s.newSlot(h[i], keys, i)
				fresh, row = append(fresh, slot), append(row, i)
			}
			slots[i] = slot
		}
		if slot >= 0 {
			s.used[slot] = s.tick
			if s.cold[slot] {
				s.cold[slot] = false
				fresh, row = append(fresh, slot), append(row, i)
			}
			s.seen[slot] = s.count[slot]
		}
	}
	s.hits.Add(float64(n - len(fresh)))
	if len(fresh) == 0 {
		return slots, nil
	}
	s.misses.Add(float64(len(fresh)))
	return slots, s.load(keys, n, fresh, row)
}

// ask finds out, before the first change, whether memory starts out complete: the table is empty.
func (s *joinSide) ask() error {
	if s.asked {
		return nil
	}
	empty, err := isEmpty(s.table)
	s.asked, s.complete = true, empty
	return err
}

func (s *joinSide) newSlot(h uint64, keys []chunk.Column, i int) int32 {
	slot := s.index.insert(h, keys, i)
	if int(slot) == len(s.head) {
		s.head, s.used, s.large, s.cold = append(s.head, -1), append(s.used, 0), append(s.large, false), append(s.cold, false)
		s.count, s.seen = append(s.count, 0), append(s.seen, 0)
	}
	s.head[slot], s.used[slot], s.large[slot], s.cold[slot] = -1, s.tick, false, false
	s.count[slot], s.seen[slot] = 0, 0
	return slot
}

// load reads the rows of new slots; row says where in keys each one's key is.
func (s *joinSide) load(keys []chunk.Column, n int, fresh []int32, row []int) error {
	// The distribution columns are among the key's.
	full := make([]chunk.Column, len(s.column))
	for i, k := range s.keys {
		full[k] = keys[i]
	}
	vnodes := s.codec.Vnodes(full, n)
	type want struct {
		prefix []byte
		slot   int32
	}
	wants := make([]want, len(fresh))
	for k, i := range row {
		wants[k] = want{s.codec.AppendPrefix(nil, vnodeAt(vnodes, i), keys, i), fresh[k]}
	}
	slices.SortFunc(wants, func(a, b want) int { return bytes.Compare(a.prefix, b.prefix) })
	for _, w := range wants {
		if err := s.loadKey(w.prefix, w.slot); err != nil {
			return err
		}
	}
	return nil
}

// loadRows is how many rows are read at once.
const loadRows = 256

func (s *joinSide) loadKey(prefix []byte, slot int32) error {
	rows, err := s.scan(prefix, slot)
	if err != nil {
		return err
	}
	degree, stop := s.degreesFrom(prefix, storage.NextPrefix(prefix))
	defer stop()
	before := s.size()
	truncate(s.loaded)
	var degrees []int64
	add := func() {
		n := len(degrees)
		pk, keys := project(s.loaded, s.pk), project(s.loaded, s.keys)
		for i, h := range chunk.Hash(pk, n) {
			if !s.index.equal(slot, keys, i) {
				continue // equal but for what its encoding leaves out, as spaces at the end
			}
			s.addRow(slot, h, pk, s.loaded, i, degrees[i])
		}
		truncate(s.loaded)
		degrees = degrees[:0]
	}
	for kv, err := range rows {
		if err == nil {
			err = s.codec.Decode(kv.Key, kv.Val, s.loaded)
		}
		if err != nil {
			return err
		}
		d, err := degree(kv.Key)
		if err != nil {
			return err
		}
		if degrees = append(degrees, d); len(degrees) < loadRows {
			continue
		}
		if add(); s.tooLarge(slot, before) {
			return nil
		}
	}
	add()
	if !s.tooLarge(slot, before) {
		s.seen[slot] = s.count[slot]
	}
	return nil
}

// tooLarge reports whether a key that is being loaded takes too much memory, which it then does no more.
func (s *joinSide) tooLarge(slot int32, before int64) bool {
	if s.most == 0 || s.size()-before <= s.most {
		return false
	}
	s.large[slot] = true
	s.clear(slot)
	return true
}

// scan ranges over the entries of a key's rows in the table; of rows that are packed, what would be their entries.
func (s *joinSide) scan(prefix []byte, slot int32) (iter.Seq2[storage.KV, error], error) {
	if s.packed == nil {
		return s.table.Scan(prefix, storage.NextPrefix(prefix)), nil
	}
	if err := s.packed.written(s.index.hash[slot], s.index.columns(), int(slot)); err != nil {
		return nil, err
	}
	return s.packed.scan(prefix), nil
}

// clear takes a key's rows out of memory.
func (s *joinSide) clear(slot int32) {
	for r := s.head[slot]; r >= 0; r = s.head[slot] {
		s.removeRow(r)
	}
}

// addRow puts row i of cols under a slot. pk are its state key columns, h their hash.
func (s *joinSide) addRow(slot int32, h uint64, pk, cols []chunk.Column, i int, degree int64) {
	r := s.rows.insert(h, pk, i)
	for k, cell := range s.others {
		cell.set(r, cols[s.at[k]], i)
		s.other += int64(cell.size(r))
	}
	if int(r) == len(s.next) {
		s.next, s.prev, s.slot = append(s.next, 0), append(s.prev, 0), append(s.slot, 0)
		s.degree, s.stale = append(s.degree, 0), append(s.stale, false)
	}
	first := s.head[slot]
	s.next[r], s.prev[r], s.slot[r], s.degree[r], s.stale[r] = first, -1, slot, degree, false
	if first >= 0 {
		s.prev[first] = r
	}
	s.head[slot] = r
	s.count[slot]++
}

func (s *joinSide) removeRow(r int32) {
	for _, cell := range s.others {
		s.other -= int64(cell.size(r))
		cell.clear(r)
	}
	if p := s.prev[r]; p >= 0 {
		s.next[p] = s.next[r]
	} else {
		s.head[s.slot[r]] = s.next[r]
	}
	if n := s.next[r]; n >= 0 {
		s.prev[n] = s.prev[r]
	}
	s.stale[r] = false
	s.count[s.slot[r]]--
	s.rows.remove(r)
}

// apply makes a chunk's changes. matches are the numbers of rows of the other side that its rows match.
func (s *joinSide) apply(c *chunk.Chunk, usable []bool, matches []int64) error {
	if usable != nil {
		var sel []int
		var m []int64
		for i, ok := range usable {
			if ok {
				sel, m = append(sel, i), append(m, matches[i])
			}
		}
		if len(sel) == 0 {
			return nil
		}
		c, matches = c.Gather(sel), m
	}
	if err := s.ask(); err != nil {
		return err
	}
	n := c.Len()
	keys := project(c.Cols, s.keys)
	slots := make([]int32, n)
	h := chunk.Hash(keys, n)
	s.index.lookup(keys, h, slots)
	if err := s.write(c, h, slots); err != nil {
		return err
	}
	if s.degrees != nil {
		if err := s.writeDegrees(c, matches); err != nil {
			return err
		}
	}
	// The rest is about what is in memory.
	if !slices.ContainsFunc(slots, s.inMemory) {
		return nil
	}
	pk := project(c.Cols, s.pk)
	hp := chunk.Hash(pk, n)
	var idle []int32 // keys that have lost their last row
	for i, slot := range slots {
		if slot < 0 {
			if slot = s.index.find(h[i], keys, i); slot < 0 && !s.complete {
				continue // nobody has asked for the key
			}
		}
		if slot >= 0 && !s.inMemory(slot) {
			continue
		}
		if c.Op(i) == chunk.Insert {
			if slot < 0 {
				slot = s.newSlot(h[i], keys, i)
			}
			if s.rows.find(hp[i], pk, i) >= 0 {
				return inconsistent(s.table, "row %s comes and is there already", describe(c.Cols, i))
			}
			s.addRow(slot, hp[i], pk, c.Cols, i, matches[i])
			if s.packed != nil && s.count[slot] > max(s.packed.size.cold, 4*s.seen[slot]) {
				s.cold[slot] = true
				s.clear(slot)
			}
			continue
		}
		r := int32(-1)
		if slot >= 0 {
			r = s.rows.find(hp[i], pk, i)
		}
		if r < 0 {
			return inconsistent(s.table, "row %s is deleted and was not there", describe(c.Cols, i))
		}
		s.removeRow(r)
		if s.complete && s.head[slot] < 0 {
			idle = append(idle, slot)
		}
	}
	for _, slot := range idle {
		if s.head[slot] == -1 && s.inMemory(slot) {
			s.head[slot] = -2    // it may be in idle twice
			s.index.remove(slot) // nothing to know about it
		}
	}
	return nil
}

// inMemory reports whether a key's rows are in memory, or would be if it had any.
func (s *joinSide) inMemory(slot int32) bool {
	return slot < 0 && s.complete || slot >= 0 && !s.large[slot] && !s.cold[slot]
}

// write makes a chunk's changes in the table. h are the hashes of its join keys, slots their slots.
func (s *joinSide) write(c *chunk.Chunk, h []uint64, slots []int32) error {
	if s.packed == nil {
		return s.table.WriteChunk(c)
	}
	return s.packed.write(c, h, func(i int) bool { return slots[i] < 0 && s.complete })
}

// writeDegrees writes the degrees of a chunk's rows.
func (s *joinSide) writeDegrees(c *chunk.Chunk, matches []int64) error {
	cols := append(project(c.Cols, s.pk), chunk.NewVec(types.Int8, matches, nil))
	return s.putDegrees(cols, matches, c.Ops)
}

// putDegrees writes rows of the degree table: a degree of 0, and that of a deleted row, is no row.
func (s *joinSide) putDegrees(cols []chunk.Column, degree []int64, ops []chunk.Op) error {
	codec := s.degrees.Codec()
	vnodes := codec.Vnodes(cols, len(degree))
	var key, val []byte
	for i, d := range degree {
		key = codec.AppendKeyVnode(key[:0], vnodeAt(vnodes, i), cols, i)
		var err error
		switch {
		case ops != nil && ops[i] == chunk.Delete:
			err = s.degrees.Delete(key)
		case d > 0:
			val = codec.AppendValue(val[:0], cols, i)
			err = s.degrees.Put(key, val)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addDegree changes a row's degree and returns what it was.
func (s *joinSide) addDegree(r int32, sign int64) (before int64, err error) {
	before = s.degree[r]
	s.degree[r] = before + sign
	if s.degree[r] < 0 {
		return 0, inconsistent(s.table, "row %s loses a match that it did not have", describe(s.row(), int(r)))
	}
	if !s.stale[r] {
		s.stale[r] = true
		s.dirty = append(s.dirty, r)
	}
	return before, nil
}

// row is all columns by row, for messages.
func (s *joinSide) row() []chunk.Column {
	out := make([]chunk.Column, len(s.column))
	for i, c := range s.column {
		out[i] = c.col()
	}
	return out
}

// flush writes the degrees that changed.
func (s *joinSide) flush() error {
	var at []int
	for _, r := range s.dirty {
		if s.stale[r] {
			s.stale[r] = false
			at = append(at, int(r))
		}
	}
	s.dirty = s.dirty[:0]
	if len(at) == 0 {
		return nil
	}
	cols := make([]chunk.Column, 0, len(s.pk)+1)
	for _, c := range s.rows.cols {
		cols = append(cols, c.col().Gather(at))
	}
	return s.putDegreesOf(cols, at, s.degree)
}

// putDegreesOf writes the degrees all[at[i]] of rows whose state keys are cols.
func (s *joinSide) putDegreesOf(cols []chunk.Column, at []int, all []int64) error {
	degree, ops := make([]int64, len(at)), make([]chunk.Op, len(at))
	for i, r := range at {
		if degree[i] = all[r]; degree[i] == 0 {
			ops[i] = chunk.Delete
		}
	}
	return s.putDegrees(append(cols, chunk.NewVec(types.Int8, degree, nil)), degree, ops)
}

func (s *joinSide) commit(e storage.Epoch) error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.degrees != nil {
		if err := s.degrees.Commit(e); err != nil {
			return err
		}
	}
	if s.packed != nil {
		return s.packed.commit(e)
	}
	return s.table.Commit(e)
}

// size is the memory the side takes, in bytes.
func (s *joinSide) size() int64 {
	return s.index.bytes + s.rows.bytes + s.other + 8*int64(s.index.live) + 25*int64(s.rows.live)
}

// evict makes room if the budget asks for it, by dropping the keys that were not used for longest.
func (s *joinSide) evict() error {
	s.tick++
	size := s.size()
	over := s.quota.set(size)
	if over == 0 || s.index.live == 0 {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.complete = false
	want := int(over * int64(s.index.live) / size)
	for _, slot := range oldest(s.used, s.index.liveSlots(), want+1) {
		s.clear(slot)
		s.index.remove(slot)
	}
	s.quota.set(s.size())
	return nil
}
