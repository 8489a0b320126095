package stream

import "sync/atomic"

// A Progress is what one scan or locality provider of a job tells of its
// backfill. The actors of the fragment add to it; anyone may read it.
type Progress struct {
	Done  atomic.Int64 // rows delivered, counted over restarts
	Total atomic.Int64 // rows there are to deliver, as counted by the store when last looked at
	// Through are the actors that have nothing left to deliver. An actor counts here
	// before it counts as Finished, which it does when that is committed.
	Through atomic.Int32
	// Finished actors of the fragment; Actors is set before they start.
	Finished atomic.Int32
	Actors   int32
	Phase    atomic.Int32 // a Phase: the least advanced actor's
	// LastMove is when a row was last delivered or seen, in µs of the clock; for the watchdog.
	LastMove atomic.Int64
}

// A Phase of a backfill.
type Phase int32

const (
	PhaseWait    Phase = iota // for other fragments
	PhaseBuffer               // a locality provider fills its buffer
	PhaseScan                 // an arrangement backfill reads its upstream
	PhaseDrain                // a locality provider delivers its buffer
	PhaseCatchUp              // all is delivered, and the end not yet committed
	PhaseDone
)

func (p Phase) String() string {
	return [...]string{"wait", "buffer", "scan", "drain", "catch up", "done"}[p]
}
