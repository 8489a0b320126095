package exec

import (
	"context"

	"streamdb/stream"
)

// A merge passes on what arrives at all ports of the actor's inbox: the head of
// fragments whose rows come from exchanges, unions among them.
type merge struct{ in *stream.Inbox }

func (x *merge) Run(ctx context.Context, emit stream.Emit) error {
	defer closeOnDone(ctx, x.in)()
	return x.in.Run(ctx, emit)
}

// closeOnDone fails an actor's inbox when its context ends, so that its head,
// which waits there, returns at once. The result undoes it.
func closeOnDone(ctx context.Context, in *stream.Inbox) (undo func()) {
	stop := context.AfterFunc(ctx, func() { in.Close(context.Cause(ctx)) })
	return func() { stop() }
}
