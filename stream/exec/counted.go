package exec

import (
	"context"

	"streamdb/stream"
)

// A counted executor counts the rows that another emits.
type counted struct {
	stream.Executor
	env  *Env
	name string
}

func (x *counted) Run(ctx context.Context, emit stream.Emit) error {
	return x.Executor.Run(ctx, x.env.Metrics.emitted(x.env, x.name, emit))
}
