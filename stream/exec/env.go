// Package exec has the executors: one file an operator, and Build, which turns a
// fragment of a plan into a chain of them.
//
// The one idea: an executor is a loop over its input that emits; rows move in
// columns, what an operator remembers lies in dense typed arrays under a budget, and
// each changed key is written once an epoch.
package exec

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/connector"
)

// Env is what the executors of one actor share.
type Env struct {
	Store      *storage.Store
	In         *stream.Inbox
	Vnodes     storage.VnodeSet // of this actor
	VnodeCount int              // 0: 1
	Job        catalog.ID
	Fragment   plan.FragmentID
	Actor      stream.ActorID
	Single     bool // the fragment has one actor
	ChunkSize  int  // rows a chunk; 0: 1024
	Cache      *Budget
	Logger     *slog.Logger  // nil: none
	Clock      storage.Clock // nil: the system's
	Metrics    *Metrics      // nil: none

	// Upstream gives the storage layout of a relation that a scan reads.
	Upstream func(id catalog.ID) storage.Desc
	// WaitCommitted blocks until the store has committed e.
	WaitCommitted func(ctx context.Context, e storage.Epoch) error

	// Progress of this fragment's scan or locality provider; nil: nobody wants to know.
	Progress *stream.Progress
	// Limiter of the scan, locality provider or source, shared by the fragment's actors; nil: no limit.
	Limiter *Limiter
	// Waiting: the backfill starts when a Mutation.StartBackfill names this fragment.
	// A locality provider always waits so.
	Waiting     bool
	GlobalPause bool           // backfills of the database are paused as the actor starts
	Pace        *stream.Pace   // of all backfills; nil: none
	Tuning      *stream.Tuning // nil: the defaults
	Spot        *stream.Spot   // where the actor is; nil: nobody wants to know
	SpillDir    string         // where what is sorted goes past its memory; "": the system's

	// ExprCtx makes the context in which expressions are evaluated; nil: an empty one.
	ExprCtx func() *expr.Ctx
	// ExprError is told of each row's failed expression, which has become NULL; nil: nobody is.
	ExprError func(operator string, err error)

	Source connector.Reader // for StreamSource
	Splits []string         // of the source, those of this actor
	Sink   connector.Writer // for StreamSink; nil: rows are counted and dropped
	Seed   uint64

	quotas []*quota
	dirty  int      // groups that may be dirty before they are flushed; 0: dirtyGroups
	pack   *packing // nil: defaultPacking

	sortBudget int64 // bytes that a sort holds in memory; 0: a part of Cache
}

// defaultChunk is the rows of a chunk where Env does not say.
const defaultChunk = 1024

func (env *Env) chunkSize() int {
	if env.ChunkSize > 0 {
		return env.ChunkSize
	}
	return defaultChunk
}

func (env *Env) dirtyGroups() int {
	if env.dirty > 0 {
		return env.dirty
	}
	return dirtyGroups
}

func (env *Env) packing() packing {
	if env.pack != nil {
		return *env.pack
	}
	return defaultPacking()
}

// defaultTuning is that of an Env without one; it is never changed.
var defaultTuning = stream.NewTuning()

func (env *Env) tuning() *stream.Tuning {
	if env.Tuning != nil {
		return env.Tuning
	}
	return defaultTuning
}

func (env *Env) vnodeCount() int { return max(1, env.VnodeCount) }

func (env *Env) clock() storage.Clock {
	if env.Clock == nil {
		return systemClock{}
	}
	return env.Clock
}

func (env *Env) logger() *slog.Logger {
	if env.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return env.Logger
}

// now is the clock in microseconds, as Progress.LastMove has it.
func (env *Env) now() int64 { return env.clock().Now().UnixMicro() }

// exprCtx makes the context of one operator's expressions: an error gives NULL and is reported.
func (env *Env) exprCtx(operator string) *expr.Ctx {
	ctx := &expr.Ctx{}
	if env.ExprCtx != nil {
		ctx = env.ExprCtx()
	}
	ctx.OnError = func(err error) {
		if env.ExprError != nil {
			env.ExprError(operator, err)
		}
	}
	return ctx
}

// quota registers a cache that Close gives back.
func (env *Env) quota() *quota {
	q := env.Cache.register()
	env.quotas = append(env.quotas, q)
	return q
}

// Close gives the actor's memory back to the budget, when its executors have ended.
func (env *Env) Close() {
	for _, q := range env.quotas {
		q.close()
	}
	env.quotas = nil
}

// inconsistent is what stops a job whose input contradicts its state.
func inconsistent(t *storage.StateTable, format string, args ...any) error {
	d := t.Desc()
	return sqlerr.New(sqlerr.DataCorrupted, "state table %d (%s): %s", d.ID, d.Name, fmt.Sprintf(format, args...)).
		WithHint("The change contradicts what the job has seen before. Drop and create the view again, and report the case.")
}

// describe shows row i of some columns, for messages.
func describe(cols []chunk.Column, i int) string {
	var b strings.Builder
	b.WriteByte('(')
	for j, c := range cols {
		if j > 0 {
			b.WriteString(", ")
		}
		if c == nil {
			b.WriteString("…")
			continue
		}
		switch d := c.Datum(i); {
		case d.IsNull():
			b.WriteString("NULL")
		default:
			b.Write(types.AppendText(nil, c.Type(), d, nil))
		}
	}
	b.WriteByte(')')
	return b.String()
}
