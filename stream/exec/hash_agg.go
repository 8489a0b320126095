package exec

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A hashAgg keeps the groups of its input and what each aggregate makes of them.
// A group that changed is emitted once an epoch: its old row leaves, its new one comes.
//
// State row of a group: the group's columns, the number of its input rows, the
// states of the accumulators, and the values of the aggregates that keep their input.
type hashAgg struct {
	in      stream.Executor
	env     *Env
	groupBy []int
	global  bool // one group, which is always there
	schema  types.Schema
	state   *storage.StateTable
	groups  *keyCache
	calls   []aggCall
	shared  []*distinct // tables of distinct arguments

	// By slot.
	rows    []int64
	emitted []bool // the group has an output row downstream

	// By position in groups.dirty: the aggregates' columns as last emitted, NULL where !wasOut.
	old    []chunk.Column
	wasOut []bool

	filters []int // distinct FILTER columns of the calls; filters[0] is -1
	loaded  []chunk.Column
	limit   int // dirty groups that are flushed before the barrier
}

// An aggCall is one aggregate.
type aggCall struct {
	expr.Agg
	calc   aggregate
	filter int       // index in filters
	dist   *distinct // nil: every row counts
	nth    int       // its counter in dist
	stored bool      // its value has a column of the state row, instead of a part of the accumulators' states
}

// An aggregate computes one call for all groups, by slot.
type aggregate interface {
	grow(n int)
	// update applies rows to their groups. in has the input's columns as far as the call uses them.
	update(groups []int32, in *chunk.Chunk) error
	// output appends the value of a group.
	output(slot int32, col chunk.Column) error
	// save and load are a group's state; load returns the rest of b. value is the stored column, if the call has one.
	save(dst []byte, slot int32) []byte
	load(slot int32, b []byte, value chunk.Column) ([]byte, error)
	reset(slot int32)
	commit(e storage.Epoch) error
}

// dirtyGroups bounds the groups that change before they are flushed.
const dirtyGroups = 1 << 16

func newHashAgg(env *Env, n *plan.StreamHashAgg, in stream.Executor) (*hashAgg, error) {
	x := &hashAgg{
		in: in, env: env, groupBy: n.GroupBy, global: len(n.GroupBy) == 0, schema: n.Schema,
		filters: []int{-1}, limit: env.dirtyGroups(),
	}
	inSchema := n.In[0].Props().Schema
	var key layout
	for _, g := range n.GroupBy {
		key.repeat(inSchema, g, false)
	}
	state := append(types.Schema{}, key.schema...)
	state = append(state, types.Field{Name: "rows", Type: types.Int8}, types.Field{Name: "states", Type: types.Bytea})
	perGroup := int64(24)
	dists := map[*plan.TableDesc]*distinct{}
	for i, a := range n.Aggs {
		call := aggCall{Agg: a, filter: x.filterOf(a.Filter)}
		var values *plan.TableDesc
		if i < len(n.Values) {
			values = n.Values[i]
		}
		var err error
		if call.calc, call.stored, err = newAggregate(env, n, a, values, func() []chunk.Column { return x.groups.columns() }); err != nil {
			return nil, err
		}
		if call.stored {
			state = append(state, types.Field{Name: n.Schema[len(n.GroupBy)+i].Name, Type: a.Typ})
		}
		if a.Distinct && i < len(n.DistinctState) && n.DistinctState[i] != nil {
			t := n.DistinctState[i]
			d := dists[t]
			if d == nil {
				d = newDistinct(env, n, a.Args, t, inSchema)
				dists[t] = d
				x.shared = append(x.shared, d)
			}
			call.dist, call.nth = d, d.calls
			d.calls++
		} else if a.Distinct && !idempotent(a) {
			return nil, unsupportedAgg(a, "without its distinct values")
		}
		x.calls = append(x.calls, call)
		if perGroup += 64; call.stored {
			perGroup += 192
		}
	}
	for _, d := range x.shared {
		d.open(env)
	}
	x.state = env.Store.Table(stateDesc(n.State, env.vnodeCount(), state, n.GroupBy, len(n.GroupBy), nil), env.Vnodes)
	x.groups = newKeyCache(env, x.state, key.schema.Types(), perGroup)
	x.loaded = newColumns(state, 1)
	x.resetOld()
	return x, nil
}

// idempotent reports whether duplicates make no difference to the call.
func idempotent(a expr.Agg) bool { return a.Fn.Name == "min" || a.Fn.Name == "max" }

func (x *hashAgg) filterOf(col int) int {
	for i, f := range x.filters {
		if f == col {
			return i
		}
	}
	x.filters = append(x.filters, col)
	return len(x.filters) - 1
}

func (x *hashAgg) resetOld() {
	x.old = newColumns(x.schema[len(x.groupBy):], 0)
	x.wasOut = x.wasOut[:0]
}

func (x *hashAgg) Run(ctx context.Context, emit stream.Emit) error {
	first := true
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			if err := x.apply(m.Chunk); err != nil {
				return err
			}
			if len(x.groups.dirty) < x.limit {
				return nil
			}
			if err := x.flush(emit); err != nil {
				return err
			}
			for _, d := range x.shared {
				if err := d.flush(); err != nil {
					return err
				}
			}
			x.evict()
			return nil
		case m.Barrier != nil:
			if first {
				first = false
				if err := emit(m); err != nil {
					return err
				}
				return x.begin()
			}
			if err := x.flush(emit); err != nil {
				return err
			}
			if err := x.commit(m.Barrier.Epoch); err != nil {
				return err
			}
			x.evict()
			return emit(m)
		case m.Watermark != nil:
			for i, g := range x.groupBy {
				if g == m.Watermark.Col {
					if err := x.flush(emit); err != nil { // nothing below it may follow
						return err
					}
					return emit(stream.Message{Watermark: &stream.Watermark{Col: i, Val: m.Watermark.Val}})
				}
			}
		}
		return nil
	})
}

// begin makes the one row that an aggregation without groups always has.
func (x *hashAgg) begin() error {
	if !x.global || !x.env.Vnodes.Has(0) {
		return nil
	}
	slots, err := x.resolve(nil, 1)
	if err != nil {
		return err
	}
	if !x.emitted[slots[0]] {
		return x.touch(slots)
	}
	return nil
}

func (x *hashAgg) resolve(key []chunk.Column, n int) ([]int32, error) {
	slots, err := x.groups.resolve(key, n, x.loadGroup)
	x.grow()
	return slots, err
}

func (x *hashAgg) grow() {
	n := x.groups.slots()
	if len(x.rows) >= n {
		return
	}
	for len(x.rows) < n {
		x.rows, x.emitted = append(x.rows, 0), append(x.emitted, false)
	}
	for _, c := range x.calls {
		c.calc.grow(n)
	}
}

func (x *hashAgg) loadGroup(slot int32, key, val []byte) error {
	x.grow()
	truncate(x.loaded)
	if err := x.groups.codec.Decode(key, val, x.loaded); err != nil {
		return err
	}
	k := len(x.groupBy)
	x.groups.replace(slot, x.loaded[:k], 0)
	x.rows[slot] = chunk.Of[int64](x.loaded[k]).Data[0]
	x.emitted[slot] = true
	b := []byte(chunk.Of[string](x.loaded[k+1]).Data[0])
	value := k + 2
	for _, c := range x.calls {
		var col chunk.Column
		if c.stored {
			col = x.loaded[value]
			value++
		}
		rest, err := c.calc.load(slot, b, col)
		if err != nil {
			return inconsistent(x.state, "group %s: %v", describe(x.loaded[:k], 0), err)
		}
		b = rest
	}
	return nil
}

// touch notes the last emitted row of each group that changes for the first time since the flush.
func (x *hashAgg) touch(slots []int32) error {
	for _, s := range slots {
		if !x.groups.touch(s) {
			continue
		}
		x.wasOut = append(x.wasOut, x.emitted[s])
		for i, c := range x.calls {
			if !x.emitted[s] {
				x.old[i].AppendNull()
				continue
			}
			if err := c.calc.output(s, x.old[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply finds the group of every row, then runs each aggregate over its columns.
func (x *hashAgg) apply(c *chunk.Chunk) error {
	slots, err := x.resolve(project(c.Cols, x.groupBy), c.Len())
	if err != nil {
		return err
	}
	if err := x.touch(slots); err != nil {
		return err
	}
	if c.Ops == nil {
		for _, s := range slots {
			x.rows[s]++
		}
	} else {
		for i, s := range slots {
			x.rows[s] += c.Ops[i].Sign()
		}
	}
	// The rows that pass each filter, once for all calls that have it.
	in, groups := make([]*chunk.Chunk, len(x.filters)), make([][]int32, len(x.filters))
	for f, col := range x.filters {
		in[f], groups[f] = c, slots
		if col >= 0 {
			in[f], groups[f] = passing(c, slots, col)
		}
	}
	for _, d := range x.shared {
		if err := d.resolve(c); err != nil {
			return err
		}
	}
	for i := range x.calls {
		call := &x.calls[i]
		rows, gs := in[call.filter], groups[call.filter]
		if call.dist != nil {
			if rows, gs, err = call.dist.changes(call.nth, c, slots, x.filters[call.filter]); err != nil {
				return err
			}
		}
		if rows.Len() == 0 {
			continue
		}
		if err := call.calc.update(gs, rows); err != nil {
			return err
		}
	}
	return nil
}

// passing selects the rows whose boolean column col is true.
func passing(c *chunk.Chunk, slots []int32, col int) (*chunk.Chunk, []int32) {
	v := chunk.Of[bool](c.Cols[col])
	var sel []int
	var out []int32
	for i, ok := range v.Data {
		if ok && !v.Null(i) {
			sel, out = append(sel, i), append(out, slots[i])
		}
	}
	if len(sel) == c.Len() {
		return c, slots
	}
	return c.Gather(sel), out
}

// flush emits the groups that changed and writes them to the state table.
func (x *hashAgg) flush(emit stream.Emit) error {
	dirty := x.groups.dirty
	n := len(dirty)
	if n == 0 {
		return nil
	}
	// The columns' second half is the new values, so that one gather makes an output column.
	for _, s := range dirty {
		if x.rows[s] < 0 {
			return inconsistent(x.state, "group %s has %d rows", describe(x.groups.columns(), int(s)), x.rows[s])
		}
		for i, c := range x.calls {
			if x.rows[s] == 0 && !x.global {
				x.old[i].AppendNull()
				continue
			}
			if err := c.calc.output(s, x.old[i]); err != nil {
				return err
			}
		}
	}
	if err := x.emit(dirty, emit); err != nil {
		return err
	}
	if err := x.write(dirty); err != nil {
		return err
	}
	var empty []int32
	for _, s := range dirty {
		x.emitted[s] = x.rows[s] > 0 || x.global
		if !x.emitted[s] {
			empty = append(empty, s)
		}
	}
	x.groups.written()
	for _, s := range empty {
		x.forget(s)
		x.groups.drop(s)
	}
	x.resetOld()
	return nil
}

// emit sends old and new rows of the dirty groups, those of a group together.
func (x *hashAgg) emit(dirty []int32, emit stream.Emit) error {
	n := len(dirty)
	size := max(2, x.env.chunkSize())
	var ops []chunk.Op
	var sel []int // rows of old: before n the old values, from n on the new ones
	var slots []int
	deletes := false
	send := func() error {
		if len(sel) == 0 {
			return nil
		}
		c := &chunk.Chunk{N: len(sel), Cols: make([]chunk.Column, 0, len(x.schema))}
		for i, key := range x.groups.columns() {
			c.Cols = append(c.Cols, key.Gather(slots).As(x.schema[i].Type))
		}
		for _, col := range x.old {
			c.Cols = append(c.Cols, col.Gather(sel))
		}
		if deletes {
			c.Ops = ops
		}
		ops, sel, slots, deletes = nil, sel[:0], slots[:0], false
		return emit(stream.Message{Chunk: c})
	}
	for i, s := range dirty {
		was, is := x.wasOut[i], x.rows[s] > 0 || x.global
		if was && is && x.unchanged(i, n) {
			continue
		}
		if len(sel)+2 > size {
			if err := send(); err != nil {
				return err
			}
		}
		if was {
			ops, sel, slots, deletes = append(ops, chunk.Delete), append(sel, i), append(slots, int(s)), true
		}
		if is {
			ops, sel, slots = append(ops, chunk.Insert), append(sel, n+i), append(slots, int(s))
		}
	}
	return send()
}

func (x *hashAgg) unchanged(i, n int) bool {
	for _, col := range x.old {
		if !identical(col, i, n+i) {
			return false
		}
	}
	return true
}

// write puts the dirty groups' rows into the state table.
func (x *hashAgg) write(dirty []int32) error {
	n := len(dirty)
	cols := make([]chunk.Column, 0, len(x.loaded))
	at := ints(dirty)
	for _, key := range x.groups.columns() {
		cols = append(cols, key.Gather(at))
	}
	counts, states := make([]int64, n), make([]string, n)
	var buf []byte
	for i, s := range dirty {
		counts[i] = x.rows[s]
		if counts[i] == 0 && !x.global {
			continue
		}
		buf = buf[:0]
		for _, c := range x.calls {
			if !c.stored {
				buf = c.calc.save(buf, s)
			}
		}
		states[i] = string(buf)
	}
	cols = append(cols, chunk.NewVec(types.Int8, counts, nil), chunk.NewVec(types.Bytea, states, nil))
	for i, c := range x.calls {
		if c.stored {
			cols = append(cols, x.old[i].Slice(n, 2*n))
		}
	}
	codec := x.groups.codec
	vnodes := codec.Vnodes(cols, n)
	var key, val []byte
	for i := range dirty {
		key = codec.AppendKeyVnode(key[:0], vnodeAt(vnodes, i), cols, i)
		var err error
		switch {
		case counts[i] > 0 || x.global:
			val = codec.AppendValue(val[:0], cols, i)
			if x.wasOut[i] || x.global {
				err = x.state.Put(key, val)
			} else {
				err = x.state.PutNew(key, val)
			}
		case x.wasOut[i]:
			err = x.state.Delete(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *hashAgg) commit(e storage.Epoch) error {
	if err := x.state.Commit(e); err != nil {
		return err
	}
	for _, d := range x.shared {
		if err := d.flush(); err != nil {
			return err
		}
		if err := d.table.Commit(e); err != nil {
			return err
		}
	}
	for _, c := range x.calls {
		if err := c.calc.commit(e); err != nil {
			return err
		}
	}
	return nil
}

// forget empties what is kept for a slot.
func (x *hashAgg) forget(s int32) {
	x.rows[s], x.emitted[s] = 0, false
	for _, c := range x.calls {
		c.calc.reset(s)
	}
}

func (x *hashAgg) evict() { x.groups.evict(0, x.forget) }

func unsupportedAgg(a expr.Agg, why string) error {
	return sqlerr.Unsupported("aggregate %s %s in a streaming job", a.Fn.Name, why)
}
