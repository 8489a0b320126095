package stream

import (
	"streamdb/planner/plan"
	"streamdb/sql/chunk"
)

// A Port is the sending end of a channel into an inbox.
type Port struct {
	In      *Inbox
	Channel int
}

// A Dispatcher sends an actor's output to the actors of one downstream fragment.
type Dispatcher struct {
	Dist plan.Dist // HashShard and UpstreamHashShard: by vnode; Single: To has one port; Broadcast
	Cols []int     // columns that are sent; nil: all. Dist.Cols number the sent columns
	// Owner[v] is the receiver of vnode v; for hash distributions.
	Owner []uint16
	To    []Port

	sel [][]int // scratch: rows for each receiver
}

// Send passes barriers and watermarks to all receivers and each row to its own.
func (d *Dispatcher) Send(m Message) error {
	if m.Chunk == nil {
		return d.all(m)
	}
	c := m.Chunk
	if d.Cols != nil {
		c = c.Project(d.Cols)
	}
	hashed := d.Dist.Kind == plan.HashShard || d.Dist.Kind == plan.UpstreamHashShard
	if !hashed || len(d.To) == 1 {
		return d.all(Message{Chunk: c})
	}
	if d.sel == nil {
		d.sel = make([][]int, len(d.To))
	}
	for i := range d.sel {
		d.sel[i] = d.sel[i][:0]
	}
	for i, v := range chunk.Vnodes(c.Cols, d.Dist.Cols, c.Len(), len(d.Owner)) {
		to := d.Owner[v]
		d.sel[to] = append(d.sel[to], i)
	}
	for i, sel := range d.sel {
		if len(sel) == 0 {
			continue
		}
		part := c
		if len(sel) < c.Len() {
			part = c.Gather(sel)
		}
		if err := d.To[i].In.Send(d.To[i].Channel, Message{Chunk: part}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dispatcher) all(m Message) error {
	for _, p := range d.To {
		if err := p.In.Send(p.Channel, m); err != nil {
			return err
		}
	}
	return nil
}
