package exec

import (
	"streamdb/planner/plan"
	"streamdb/stream"
)

// newLocalityProvider makes the backfill that delivers its own input sorted, so that
// the state of the operators above is read and written in order:
//
//   - buffer: what comes goes into a table, nothing is emitted, until the input is
//     backfilled, which StartBackfill says;
//   - drain: the table is scanned as an arrangement backfill scans its upstream;
//   - forward: changes pass, and the table's rows are dropped once all actors are here.
//
// That any vnode has begun is persisted, and means that the input was complete; a
// restart then drains on.
func newLocalityProvider(env *Env, n *plan.StreamLocalityProvider) (*backfill, error) {
	in := n.In[0].Props().Schema
	cols := make([]int, len(in))
	for i := range cols {
		cols[i] = i
	}
	d := Desc(n.Buffer, env.vnodeCount())
	d.Schema = in
	x := newBackfill(env, n.Progress, d, cols, in.Types())
	x.buffer, x.ownRows, x.waiting, x.phase = true, true, true, stream.PhaseDrain
	x.table, x.place = &bufferedRows{table: env.Store.Table(d, env.Vnodes)}, place(n)
	return x, nil
}
