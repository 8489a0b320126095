package exec

import (
	"context"

	"streamdb/stream"
	"streamdb/stream/connector"
)

// A sinker hands changes to a connector, epoch by epoch.
type sinker struct {
	in  stream.Executor
	out connector.Writer
}

func (x *sinker) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			return x.out.Write(m.Chunk)
		case m.Barrier != nil:
			if err := x.out.Seal(m.Barrier.Epoch); err != nil {
				return err
			}
		}
		return emit(m)
	})
}
