package exec

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A distinct counts how often each argument of a DISTINCT aggregate occurs in each
// group; calls with the same arguments share it, each with a counter of its own, for
// their filters may differ. A call sees only the first of equal arguments come and
// the last one go.
type distinct struct {
	groupBy, args []int
	desc          *plan.TableDesc
	key           types.Schema
	calls         int
	table         *storage.StateTable
	cache         *keyCache
	counts        [][]int64 // by call, by slot
	slots         []int32   // of the chunk's rows
	loaded        []chunk.Column
	width         int
}

func newDistinct(env *Env, n *plan.StreamHashAgg, args []int, t *plan.TableDesc, in types.Schema) *distinct {
	d := &distinct{groupBy: n.GroupBy, args: args, desc: t, width: len(in)}
	for _, c := range n.GroupBy {
		d.key = append(d.key, in[c])
	}
	for _, c := range args {
		d.key = append(d.key, in[c])
	}
	return d
}

// open makes the table when all calls have come.
func (d *distinct) open(env *Env) {
	schema := append(types.Schema{}, d.key...)
	for range d.calls {
		schema = append(schema, types.Field{Name: "count", Type: types.Int8})
	}
	d.table = env.Store.Table(stateDesc(d.desc, env.vnodeCount(), schema, append(slices.Clone(d.groupBy), d.args...), len(d.key), nil), env.Vnodes)
	d.cache = newKeyCache(env, d.table, d.key.Types(), int64(8*d.calls))
	d.counts = make([][]int64, d.calls)
	d.loaded = newColumns(schema, 1)
}

func (d *distinct) grow() {
	for k := range d.counts {
		for len(d.counts[k]) < d.cache.slots() {
			d.counts[k] = append(d.counts[k], 0)
		}
	}
}

// resolve finds the counters of a chunk's rows.
func (d *distinct) resolve(c *chunk.Chunk) error {
	cols := append(project(c.Cols, d.groupBy), project(c.Cols, d.args)...)
	slots, err := d.cache.resolve(cols, c.Len(), func(slot int32, key, val []byte) error {
		d.grow()
		truncate(d.loaded)
		if err := d.cache.codec.Decode(key, val, d.loaded); err != nil {
			return err
		}
		d.cache.replace(slot, d.loaded[:len(d.key)], 0)
		for k := range d.counts {
			d.counts[k][slot] = chunk.Of[int64](d.loaded[len(d.key)+k]).Data[0]
		}
		return nil
	})
	d.grow()
	d.slots = slots
	return err
}

// changes counts the chunk's rows for one call and returns those at which an
// argument appears or disappears, with their groups. groups are the groups of all rows.
func (d *distinct) changes(call int, c *chunk.Chunk, groups []int32, filter int) (*chunk.Chunk, []int32, error) {
	counts := d.counts[call]
	var pass *chunk.Vec[bool]
	if filter >= 0 {
		pass = chunk.Of[bool](c.Cols[filter])
	}
	var ops []chunk.Op
	var at []int
	var gs []int32
	for i, s := range d.slots {
		if pass != nil && (!pass.Data[i] || pass.Null(i)) {
			continue
		}
		d.cache.touch(s)
		op := c.Op(i)
		counts[s] += op.Sign()
		switch {
		case counts[s] < 0:
			return nil, nil, inconsistent(d.table, "%s is deleted and was not there", describe(d.cache.columns(), int(s)))
		case op == chunk.Insert && counts[s] == 1, op == chunk.Delete && counts[s] == 0:
			ops, at, gs = append(ops, op), append(at, int(s)), append(gs, groups[i])
		}
	}
	// The values come from the counters' keys, so that 1.0 that came is not 1.00 that goes.
	out := &chunk.Chunk{Ops: ops, N: len(at), Cols: make([]chunk.Column, d.width)}
	if len(at) > 0 {
		for k, col := range d.cache.columns() {
			if k < len(d.groupBy) {
				out.Cols[d.groupBy[k]] = col.Gather(at)
			} else {
				out.Cols[d.args[k-len(d.groupBy)]] = col.Gather(at)
			}
		}
	}
	return out, gs, nil
}

// flush writes the counters that changed.
func (d *distinct) flush() error {
	dirty := d.cache.dirty
	at := ints(dirty)
	cols := make([]chunk.Column, 0, len(d.loaded))
	for _, key := range d.cache.columns() {
		cols = append(cols, key.Gather(at))
	}
	gone := make([]bool, len(dirty))
	for i := range gone {
		gone[i] = true
	}
	for _, counts := range d.counts {
		data := make([]int64, len(dirty))
		for i, s := range dirty {
			data[i] = counts[s]
			gone[i] = gone[i] && counts[s] == 0
		}
		cols = append(cols, chunk.NewVec(types.Int8, data, nil))
	}
	codec := d.cache.codec
	vnodes := codec.Vnodes(cols, len(dirty))
	var key, val []byte
	for i := range dirty {
		key = codec.AppendKeyVnode(key[:0], vnodeAt(vnodes, i), cols, i)
		var err error
		if gone[i] {
			err = d.table.Delete(key)
		} else {
			val = codec.AppendValue(val[:0], cols, i)
			err = d.table.Put(key, val)
		}
		if err != nil {
			return err
		}
	}
	var empty []int32
	for i, s := range dirty {
		if gone[i] {
			empty = append(empty, s)
		}
	}
	d.cache.written()
	for _, s := range empty {
		d.cache.drop(s)
	}
	d.cache.evict(0, func(s int32) {
		for k := range d.counts {
			d.counts[k][s] = 0
		}
	})
	return nil
}
