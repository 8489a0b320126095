package exec

import (
	"bytes"
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/storage"
	"streamdb/stream"
)

// A materialize keeps the rows of a relation and passes its changes on. Where rows
// may come whose key is taken (a table that a source feeds, or one declared ON
// CONFLICT …), it settles that and emits what really changes.
type materialize struct {
	in       stream.Executor
	table    *storage.StateTable
	size     int // rows a chunk
	conflict catalog.Conflict
}

func newMaterialize(env *Env, n *plan.StreamMaterialize, in stream.Executor) *materialize {
	return &materialize{in: in, table: env.Store.Table(RelationDesc(n.Rel), env.Vnodes), size: env.chunkSize(), conflict: n.Rel.Conflict}
}

func (x *materialize) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			// ConflictError: who writes into the table has looked the keys up.
			if x.conflict == catalog.ConflictNone || x.conflict == catalog.ConflictError {
				if err := x.table.WriteChunk(m.Chunk); err != nil {
					return err
				}
				break
			}
			return x.settle(m.Chunk, emit)
		case m.Barrier != nil:
			if err := x.table.Commit(m.Barrier.Epoch); err != nil {
				return err
			}
		}
		return emit(m)
	})
}

// settle applies a chunk whose keys may be taken. The chunk's old rows are read in
// key order; changes within the chunk see each other.
func (x *materialize) settle(c *chunk.Chunk, emit stream.Emit) error {
	codec := x.table.Codec()
	schema := x.table.Desc().Schema
	vnodes := codec.Vnodes(c.Cols, c.Len())
	keys := make([][]byte, c.Len())
	for i := range keys {
		keys[i] = codec.AppendKeyVnode(nil, vnodeAt(vnodes, i), c.Cols, i)
	}
	// rows are the rows that were there and those that are made; now is the row of each key, -1: none.
	rows := &chunk.Chunk{Cols: newColumns(schema, c.Len())}
	now := make(map[string]int, len(keys))
	var failed error
	err := x.table.GetMany(keys, func(i int, val []byte) {
		if _, ok := now[string(keys[i])]; ok || failed != nil {
			return
		}
		now[string(keys[i])] = -1
		if val == nil {
			return
		}
		if failed = codec.Decode(keys[i], val, rows.Cols); failed == nil {
			now[string(keys[i])] = rows.N
			rows.N++
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	var val, was []byte
	out := chunk.NewBuilder(schema.Types(), x.size)
	send := func(c *chunk.Chunk) error {
		if c == nil {
			return nil
		}
		if err := x.table.WriteChunk(c); err != nil {
			return err
		}
		return emit(stream.Message{Chunk: c})
	}
	for i := range keys {
		old := now[string(keys[i])]
		if c.Op(i) == chunk.Delete {
			if old < 0 {
				continue // nothing to delete
			}
			now[string(keys[i])] = -1
			if err := send(out.AppendFrom(chunk.Delete, rows, old)); err != nil {
				return err
			}
			continue
		}
		if old >= 0 && x.conflict == catalog.ConflictIgnore {
			continue
		}
		for j, col := range c.Cols {
			if old >= 0 && x.conflict == catalog.ConflictUpdateIfNotNull && col.Null(i) {
				rows.Cols[j].AppendFrom(rows.Cols[j], old)
				continue
			}
			rows.Cols[j].AppendFrom(col, i)
		}
		row := rows.N
		rows.N++
		if old >= 0 {
			val, was = codec.AppendValue(val[:0], rows.Cols, row), codec.AppendValue(was[:0], rows.Cols, old)
			if bytes.Equal(val, was) {
				continue // the same row again
			}
			if err := send(out.AppendFrom(chunk.Delete, rows, old)); err != nil {
				return err
			}
		}
		now[string(keys[i])] = row
		if err := send(out.AppendFrom(chunk.Insert, rows, row)); err != nil {
			return err
		}
	}
	return send(out.Take())
}

// vnodeAt is row i's vnode in what Codec.Vnodes returned.
func vnodeAt(vnodes []uint16, i int) uint16 {
	if vnodes == nil {
		return 0
	}
	return vnodes[i]
}
