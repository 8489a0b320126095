package exec

import (
	"context"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A values executor emits literal rows once in the life of its job; a row in its
// progress table says that it has.
type values struct {
	in       *stream.Inbox // barriers only
	env      *Env
	rows     [][]expr.Expr
	schema   types.Schema
	progress *storage.StateTable
}

func (x *values) Run(ctx context.Context, emit stream.Emit) error {
	defer closeOnDone(ctx, x.in)()
	_, first, err := x.in.Recv()
	if err != nil {
		return err
	}
	if err := emit(first); err != nil {
		return err
	}
	key := x.progress.Codec().AppendKeyVnode(nil, 0, progressKey(0), 0)
	done, err := x.progress.Get(key)
	if err != nil {
		return err
	}
	if done == nil && x.env.Vnodes.Has(0) {
		if err := x.emitRows(emit); err != nil {
			return err
		}
		p := position{done: true, rows: int64(len(x.rows))}
		x.progress.Put(key, x.progress.Codec().AppendValue(nil, p.columns(0), 0))
	}
	for {
		_, m, err := x.in.Recv()
		if err != nil {
			return err
		}
		if m.Barrier != nil {
			if err := x.progress.Commit(m.Barrier.Epoch); err != nil {
				return err
			}
		}
		if err := emit(m); err != nil {
			return err
		}
	}
}

func (x *values) emitRows(emit stream.Emit) error {
	b := chunk.NewBuilder(x.schema.Types(), x.env.chunkSize())
	ctx := x.env.exprCtx("StreamValues")
	one := &chunk.Chunk{N: 1}
	send := func(c *chunk.Chunk) error {
		if c == nil {
			return nil
		}
		return emit(stream.Message{Chunk: c})
	}
	for _, row := range x.rows {
		for j, e := range row {
			col, err := expr.Eval(ctx, e, one)
			if err != nil {
				return err
			}
			b.Cols[j].AppendFrom(col, 0)
		}
		if err := send(b.Done(chunk.Insert)); err != nil {
			return err
		}
	}
	return send(b.Take())
}
