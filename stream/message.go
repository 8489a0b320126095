// Package stream is what a running dataflow is made of: messages, executors
// that transform them, and the inboxes and dispatchers that carry them between
// actors. What the executors compute is in stream/exec.
//
// The one idea: inside an actor a message moves by a function call; between
// actors it moves through an Inbox, the only place where an actor waits.
package stream

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A Message is one thing that flows along a stream: exactly one field is set.
type Message struct {
	Chunk     *chunk.Chunk
	Barrier   *Barrier
	Watermark *Watermark
}

// A Barrier ends an epoch. Everything before it in the stream belongs to Epoch.
// An executor that keeps state commits it before it passes the barrier on.
type Barrier struct {
	Epoch    storage.Epoch
	Mutation *Mutation // what changes in the dataflow from here on; nil: nothing
}

// ActorID numbers the actors of a process; never reused within it.
type ActorID uint32

// A FragmentKey names a fragment of a job.
type FragmentKey struct {
	Job      catalog.ID
	Fragment plan.FragmentID
}

// Rate limits of a backfill, in rows per second for a whole fragment.
const (
	Unlimited int64 = -1
	Paused    int64 = 0
)

// A Mutation rides on a barrier so that every actor applies it at the same
// point. Zero fields change nothing. It is immutable once sent.
type Mutation struct {
	Stop          map[ActorID]bool          // these actors end after this barrier
	Add           map[ActorID][]*Dispatcher // these actors send to new receivers, beginning with this very barrier
	Remove        map[*Dispatcher]bool      // these get this barrier as their last message
	Switch        map[*Inbox]Switch         // these inboxes have other senders from here on
	StartBackfill map[FragmentKey]bool      // these locality providers and waiting scans may deliver now
	Pause, Resume bool                      // all backfills of the database
}

// A Switch is how an inbox changes its senders with a barrier: Close have it as
// their last message, Open, which were reserved, are listened to after it.
type Switch struct{ Open, Close []int }

// A Watermark promises that no later row has a smaller value in column Col.
type Watermark struct {
	Col int
	Val types.Datum
}

// Emit passes a message downstream. It blocks while the receiver is full.
type Emit func(Message) error

// An Executor produces a stream. Run emits until its input ends, ctx is done or
// something fails; it calls emit from one goroutine only, and emits every barrier
// of its input exactly once and in order.
type Executor interface {
	Run(ctx context.Context, emit Emit) error
}
