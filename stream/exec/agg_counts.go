package exec

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// countedValues tells the aggregates whose result depends only on which values
// there are, not on how often or in which order.
func countedValues(a expr.Agg) bool {
	switch a.Fn.Name {
	case "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or":
		return true
	}
	return false
}

// A valueCounts counts how often each value of an aggregate's arguments occurs in
// each group: one state row a value, however many input rows have it, written once an epoch.
type valueCounts struct {
	table  *storage.StateTable
	cache  *keyCache
	source []int   // input column of each key column
	counts []int64 // by slot
	stored []bool  // by slot: the table has a row
	loaded []chunk.Column
	limit  int // values that change before they are written

	changed []int32
}

// newValueCounts makes the counters of the values in the key columns of l.
func newValueCounts(env *Env, t *plan.TableDesc, l *layout) *valueCounts {
	key := len(l.source)
	schema := append(slices.Clone(l.schema), types.Field{Name: "count", Type: types.Int8})
	v := &valueCounts{source: l.source, limit: env.dirtyGroups(), loaded: newColumns(schema, 1)}
	v.table = env.Store.Table(stateDesc(t, env.vnodeCount(), schema, l.source, key, l.desc), env.Vnodes)
	v.cache = newKeyCache(env, v.table, l.schema.Types(), 8)
	return v
}

func (v *valueCounts) grow() {
	for len(v.counts) < v.cache.slots() {
		v.counts, v.stored = append(v.counts, 0), append(v.stored, false)
	}
}

// update counts a chunk's rows and returns, in order, those at which a value appears
// or disappears. The result is valid until the next call.
func (v *valueCounts) update(in *chunk.Chunk) ([]int32, error) {
	if len(v.cache.dirty) >= v.limit {
		if err := v.flush(); err != nil {
			return nil, err
		}
		v.evict()
	}
	slots, err := v.cache.resolve(project(in.Cols, v.source), in.Len(), func(slot int32, key, val []byte) error {
		v.grow()
		truncate(v.loaded)
		if err := v.cache.codec.Decode(key, val, v.loaded); err != nil {
			return err
		}
		v.cache.replace(slot, v.loaded[:len(v.source)], 0)
		v.counts[slot], v.stored[slot] = chunk.Of[int64](v.loaded[len(v.source)]).Data[0], true
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.grow()
	changed := v.changed[:0]
	for i, s := range slots {
		v.cache.touch(s)
		if in.Op(i) == chunk.Insert {
			if v.counts[s]++; v.counts[s] == 1 {
				changed = append(changed, int32(i))
			}
			continue
		}
		switch v.counts[s]--; {
		case v.counts[s] < 0:
			return nil, inconsistent(v.table, "%s is deleted and was not there", describe(v.cache.columns(), int(s)))
		case v.counts[s] == 0:
			changed = append(changed, int32(i))
		}
	}
	v.changed = changed
	return changed, nil
}

// flush writes the counters that changed. Whoever reads the table calls it first.
func (v *valueCounts) flush() error {
	dirty := v.cache.dirty
	if len(dirty) == 0 {
		return nil
	}
	at := ints(dirty)
	cols := make([]chunk.Column, 0, len(v.loaded))
	for _, key := range v.cache.columns() {
		cols = append(cols, key.Gather(at))
	}
	data := make([]int64, len(dirty))
	for i, s := range dirty {
		data[i] = v.counts[s]
	}
	cols = append(cols, chunk.NewVec(types.Int8, data, nil))
	codec := v.cache.codec
	vnodes := codec.Vnodes(cols, len(dirty))
	var key, val []byte
	var gone []int32
	for i, s := range dirty {
		key = codec.AppendKeyVnode(key[:0], vnodeAt(vnodes, i), cols, i)
		var err error
		if data[i] == 0 {
			gone = append(gone, s)
			if v.stored[s] {
				err = v.table.Delete(key)
			}
		} else if val = codec.AppendValue(val[:0], cols, i); v.stored[s] {
			err = v.table.Put(key, val)
		} else {
			err = v.table.PutNew(key, val)
		}
		v.stored[s] = data[i] > 0
		if err != nil {
			return err
		}
	}
	v.cache.written()
	for _, s := range gone {
		v.cache.drop(s)
	}
	return nil
}

func (v *valueCounts) evict() {
	v.cache.evict(0, func(s int32) { v.counts[s], v.stored[s] = 0, false })
}

func (v *valueCounts) commit(e storage.Epoch) error {
	if err := v.flush(); err != nil {
		return err
	}
	if err := v.table.Commit(e); err != nil {
		return err
	}
	v.evict()
	return nil
}
