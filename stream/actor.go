package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// An Actor runs a fragment's executors over its share of the rows, in one
// goroutine: a head that waits and a chain that is called.
type Actor struct {
	ID   ActorID
	Exec Executor
	Out  []*Dispatcher
	// Later are added to Out after the first barrier: an actor that takes over from
	// another one begins with the barrier that was the other's last, which its
	// receivers have from there. nil: none, and it takes over from nobody.
	Later []*Dispatcher
	// Collect is told of each barrier once all state before it is sealed and it has been passed on.
	Collect func(ActorID, *Barrier)
}

var errStop = errors.New("actor stopped")

// ErrGone closes the inboxes of a job that is taken down while its upstream
// jobs go on: their actors forget a receiver that answers so.
var ErrGone = errors.New("receiver is gone")

// A PanicError is a panic inside an actor: a bug of ours, which fails its job and not the process.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic in actor: %v", e.Value) }

// Run returns nil when a barrier stops the actor.
func (a *Actor) Run(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	err = a.Exec.Run(ctx, a.send)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// send dispatches a message. New receivers begin with the barrier that adds
// them; removed ones end with the barrier that removes them.
func (a *Actor) send(m Message) error {
	if m.Barrier != nil && m.Barrier.Mutation != nil {
		a.Out = append(a.Out, m.Barrier.Mutation.Add[a.ID]...)
	}
	if a.Later != nil && m.Chunk != nil {
		return fmt.Errorf("actor %d has rows before its first barrier", a.ID)
	}
	for i := 0; i < len(a.Out); {
		err := a.Out[i].Send(m)
		if errors.Is(err, ErrGone) {
			a.Out = slices.Delete(slices.Clone(a.Out), i, i+1)
			continue
		}
		if err != nil {
			return err
		}
		i++
	}
	b := m.Barrier
	if b == nil {
		return nil
	}
	if mu := b.Mutation; mu != nil && len(mu.Remove) > 0 {
		a.Out = slices.DeleteFunc(slices.Clone(a.Out), func(d *Dispatcher) bool { return mu.Remove[d] })
	}
	if a.Later != nil {
		a.Out, a.Later = slices.Concat(a.Out, a.Later), nil
	}
	a.Collect(a.ID, b)
	if b.Mutation != nil && b.Mutation.Stop[a.ID] {
		return errStop
	}
	return nil
}
