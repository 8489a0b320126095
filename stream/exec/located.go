package exec

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/stream"
)

// A located executor says where its actor is: with the executor above while that handles a
// message, and back here after it.
type located struct {
	stream.Executor
	spot     *stream.Spot
	at, next *stream.Place
}

// dispatching is where an actor is while it hands its output on, or waits for room there.
var dispatching = &stream.Place{Executor: "Dispatch"}

func (x *located) Run(ctx context.Context, emit stream.Emit) error {
	x.spot.Enter(x.at, -1)
	return x.Executor.Run(ctx, func(m stream.Message) error {
		x.spot.Enter(x.next, -1)
		err := emit(m)
		x.spot.Enter(x.at, -1)
		return err
	})
}

// place names a node's executor, and the table that it works on.
func place(n plan.Stream) *stream.Place {
	p := &stream.Place{Executor: operator(n)}
	state := func(t *plan.TableDesc) {
		if t != nil {
			p.Table = t.Name
		}
	}
	switch n := n.(type) {
	case *plan.StreamTableScan:
		p.Table = n.Table.Name
	case *plan.StreamMaterialize:
		p.Table = n.Rel.Name
	case *plan.StreamSink:
		p.Table = n.Rel.Name
	case *plan.StreamSource:
		p.Table = n.Rel.Name
	case *plan.StreamLocalityProvider:
		state(n.Log)
	case *plan.StreamValues:
		state(n.Progress)
	case *plan.StreamHashJoin:
		state(n.LeftState)
	case *plan.StreamHashAgg:
		state(n.State)
	case *plan.StreamTopN:
		state(n.State)
	case *plan.StreamDedup:
		state(n.State)
	}
	return p
}
