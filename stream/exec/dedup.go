package exec

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/storage"
	"streamdb/stream"
)

// A dedup passes the first row of each key. Its input only grows, so that a key
// that was seen stays.
type dedup struct {
	in   stream.Executor
	cols []int
	keys *keyCache
	seen []bool // by slot: the key is in the table or will be at the barrier
}

func newDedup(env *Env, n *plan.StreamDedup, in stream.Executor) *dedup {
	schema := n.In[0].Props().Schema.Project(n.Cols)
	t := env.Store.Table(stateDesc(n.State, env.vnodeCount(), schema, n.Cols, len(n.Cols), nil), env.Vnodes)
	return &dedup{in: in, cols: n.Cols, keys: newKeyCache(env, t, schema.Types(), 1)}
}

func (x *dedup) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			return x.apply(m.Chunk, emit)
		case m.Barrier != nil:
			if err := x.commit(m.Barrier.Epoch); err != nil {
				return err
			}
		}
		return emit(m)
	})
}

func (x *dedup) grow() {
	for len(x.seen) < x.keys.slots() {
		x.seen = append(x.seen, false)
	}
}

func (x *dedup) apply(c *chunk.Chunk, emit stream.Emit) error {
	slots, err := x.keys.resolve(project(c.Cols, x.cols), c.Len(), func(slot int32, _, _ []byte) error {
		x.grow()
		x.seen[slot] = true
		return nil
	})
	if err != nil {
		return err
	}
	x.grow()
	var first []int
	for i, s := range slots {
		if c.Op(i) == chunk.Delete {
			return inconsistent(x.keys.table, "row %s is deleted from an input that only grows", describe(c.Cols, i))
		}
		if !x.seen[s] {
			x.seen[s] = true
			x.keys.touch(s)
			first = append(first, i)
		}
	}
	if len(first) == 0 {
		return nil
	}
	return emit(stream.Message{Chunk: c.Gather(first)})
}

func (x *dedup) commit(e storage.Epoch) error {
	at := ints(x.keys.dirty)
	cols := make([]chunk.Column, 0, len(x.cols))
	for _, key := range x.keys.columns() {
		cols = append(cols, key.Gather(at))
	}
	codec := x.keys.codec
	vnodes := codec.Vnodes(cols, len(at))
	var key, val []byte
	for i := range at {
		key = codec.AppendKeyVnode(key[:0], vnodeAt(vnodes, i), cols, i)
		val = codec.AppendValue(val[:0], cols, i)
		if err := x.keys.table.PutNew(key, val); err != nil {
			return err
		}
	}
	x.keys.written()
	x.keys.evict(0, func(s int32) { x.seen[s] = false })
	return x.keys.table.Commit(e)
}
