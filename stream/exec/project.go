package exec

import (
	"context"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/stream"
)

// A projector computes columns from columns. An expression that fails for a row is
// NULL there, for the row's Insert as for its Delete.
type projector struct {
	in    stream.Executor
	exprs []expr.Expr
	ctx   *expr.Ctx
}

func (x *projector) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			c := m.Chunk
			out := &chunk.Chunk{Ops: c.Ops, N: c.N, Cols: make([]chunk.Column, len(x.exprs))}
			for i, e := range x.exprs {
				if ref, ok := e.(*expr.ColRef); ok {
					out.Cols[i] = c.Cols[ref.Index]
					continue
				}
				col, err := expr.Eval(x.ctx, e, c)
				if err != nil {
					return err
				}
				out.Cols[i] = col
			}
			return emit(stream.Message{Chunk: out})
		case m.Watermark != nil:
			return x.watermark(*m.Watermark, emit)
		}
		return emit(m)
	})
}

// watermark passes a watermark on for each output column that is its column.
func (x *projector) watermark(w stream.Watermark, emit stream.Emit) error {
	for i, e := range x.exprs {
		if ref, ok := e.(*expr.ColRef); ok && ref.Index == w.Col {
			if err := emit(stream.Message{Watermark: &stream.Watermark{Col: i, Val: w.Val}}); err != nil {
				return err
			}
		}
	}
	return nil
}
