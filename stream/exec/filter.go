package exec

import (
	"context"

	"streamdb/sql/expr"
	"streamdb/stream"
)

// A filter passes the rows for which its condition is true. A condition that fails
// for a row is not true.
type filter struct {
	in   stream.Executor
	cond expr.Expr
	ctx  *expr.Ctx
}

func (x *filter) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		if m.Chunk == nil {
			return emit(m)
		}
		sel, err := expr.Filter(x.ctx, x.cond, m.Chunk)
		if err != nil || len(sel) == 0 {
			return err
		}
		if len(sel) < m.Chunk.Len() {
			m.Chunk = m.Chunk.Gather(sel)
		}
		return emit(m)
	})
}
