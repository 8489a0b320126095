package exec

import (
	"iter"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A valueTable holds the inputs of an aggregate that cannot undo a delete, sorted
// as it needs them: group, order, arguments, the input's stream key; or group, arguments, and their number.
type valueTable struct {
	table  *storage.StateTable
	codec  *storage.Codec
	source []int
	args   []int                 // position of each argument
	groups func() []chunk.Column // the groups' columns by slot
	read   *storage.Decoder
	counts *valueCounts // one row a value, not one an input row; nil: not so
	buf    []byte
}

func newValueTable(env *Env, n *plan.StreamHashAgg, a expr.Agg, t *plan.TableDesc, order []expr.Order, groups func() []chunk.Column) *valueTable {
	in := n.In[0].Props().Schema
	var l layout
	for _, g := range n.GroupBy {
		l.repeat(in, g, false)
	}
	for _, o := range order {
		if o.NullsFirst != o.Desc {
			l.addNull(in, o.Col, o.NullsFirst)
		}
		l.add(in, o.Col, o.Desc)
	}
	v := &valueTable{groups: groups}
	counted := countedValues(a)
	if a.Distinct || counted {
		// Equal arguments are one value, whichever rows they come from.
		for _, c := range a.Args {
			v.args = append(v.args, l.add(in, c, false))
		}
	}
	key := len(l.source)
	if !a.Distinct && !counted {
		for _, c := range n.In[0].Props().Key {
			l.add(in, c, false)
		}
		key = len(l.source)
		for _, c := range a.Args {
			v.args = append(v.args, l.add(in, c, false))
		}
	}
	v.source = l.source
	if counted {
		v.counts = newValueCounts(env, t, &l)
		v.table, v.codec = v.counts.table, v.counts.table.Codec()
		v.read = v.codec.NewDecoder(v.args)
		return v
	}
	v.table = env.Store.Table(stateDesc(t, env.vnodeCount(), l.schema, l.source, key, l.desc[:key]), env.Vnodes)
	v.codec = v.table.Codec()
	v.read = v.codec.NewDecoder(v.args)
	return v
}

// write applies rows of the aggregate's input.
func (v *valueTable) write(in *chunk.Chunk) error {
	if v.counts != nil {
		_, err := v.counts.update(in)
		return err
	}
	c := &chunk.Chunk{Ops: in.Ops, N: in.N, Cols: make([]chunk.Column, len(v.source))}
	for i, s := range v.source {
		if s < 0 {
			c.Cols[i] = isNull(in.Cols[-1-s])
			continue
		}
		c.Cols[i] = in.Cols[s]
	}
	return v.table.WriteChunk(c)
}

// scan ranges over the values of a group.
func (v *valueTable) scan(slot int32) (iter.Seq2[storage.KV, error], error) {
	if v.counts != nil {
		if err := v.counts.flush(); err != nil {
			return nil, err
		}
	}
	p := v.prefix(slot)
	return v.table.Scan(p, storage.NextPrefix(p)), nil
}

func (v *valueTable) commit(e storage.Epoch) error {
	if v.counts != nil {
		return v.counts.commit(e)
	}
	return v.table.Commit(e)
}

// prefix is what the keys of a group start with.
func (v *valueTable) prefix(slot int32) []byte {
	groups := v.groups()
	one := make([]chunk.Column, len(groups))
	for i, g := range groups {
		one[i] = g.Slice(int(slot), int(slot)+1)
	}
	v.buf = v.codec.AppendPrefix(v.buf[:0], vnodeAt(v.codec.Vnodes(one, 1), 0), one, 0)
	return v.buf
}

// A replayed aggregate is computed anew from all its values whenever its group has
// changed: string_agg, array_agg and the like, in order.
type replayed struct {
	*valueTable
	agg    expr.Agg
	types  []types.Type
	cached []chunk.Column // one row: the value as last computed, by slot; nil: not known
	stale  []bool
	size   int
}

func newReplayed(env *Env, n *plan.StreamHashAgg, a expr.Agg, args []types.Type, t *plan.TableDesc, groups func() []chunk.Column) *replayed {
	order := a.Order
	if countedValues(a) {
		order = nil // makes no difference to it
	}
	return &replayed{valueTable: newValueTable(env, n, a, t, order, groups), agg: a, types: args, size: env.chunkSize()}
}

func (x *replayed) grow(n int) {
	for len(x.cached) < n {
		x.cached, x.stale = append(x.cached, nil), append(x.stale, false)
	}
}

func (x *replayed) update(groups []int32, in *chunk.Chunk) error {
	for _, g := range groups {
		x.stale[g] = true
	}
	return x.write(in)
}

func (x *replayed) output(slot int32, col chunk.Column) error {
	if x.stale[slot] || x.cached[slot] == nil {
		v, err := x.compute(slot)
		if err != nil {
			return err
		}
		x.cached[slot], x.stale[slot] = v, false
	}
	col.AppendFrom(x.cached[slot], 0)
	return nil
}

func (x *replayed) compute(slot int32) (chunk.Column, error) {
	acc := x.agg.Fn.New(x.types, x.agg.Typ)
	acc.Grow(1)
	var args []chunk.Column
	n := 0
	fresh := func() {
		args, n = make([]chunk.Column, len(x.types)), 0
		for i, t := range x.types {
			args[i] = chunk.New(t, 16)
		}
	}
	add := func() error { return acc.Update(make([]int32, n), nil, nil, args) }
	fresh()
	values, err := x.scan(slot)
	if err != nil {
		return nil, err
	}
	for kv, err := range values {
		if err == nil {
			err = x.read.Decode(kv.Key, kv.Val, args)
		}
		if err != nil {
			return nil, err
		}
		if n++; n == x.size {
			if err := add(); err != nil {
				return nil, err
			}
			fresh()
		}
	}
	if err := add(); err != nil {
		return nil, err
	}
	out := chunk.New(x.agg.Typ, 1)
	return out, acc.Output(0, out)
}

func (x *replayed) save(dst []byte, _ int32) []byte { return dst }

func (x *replayed) load(slot int32, b []byte, value chunk.Column) ([]byte, error) {
	x.cached[slot], x.stale[slot] = value.Gather([]int{0}), false
	return b, nil
}

func (x *replayed) reset(slot int32) { x.cached[slot], x.stale[slot] = nil, false }
