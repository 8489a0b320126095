package exec

import (
	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/stream"
)

// A DMLSource is where sessions hand the changes of a table to its actors, whose
// heads are plain inboxes. Rows go to the actor that owns their vnode; rows whose
// key is still to be given (a NULL _row_id) are dealt out chunk by chunk.
//
// It is not safe for concurrent use: the lock that keeps a statement's rows in one
// epoch is the caller's, who knows when barriers are sent.
type DMLSource struct {
	out   stream.Dispatcher
	rowID int // column of the row id; -1: none
	next  int
}

// NewDMLSource makes a source for a table whose rows are distributed by columns
// dist; owner says which port has a vnode. rowID is the column that StreamRowIDGen fills, or -1.
func NewDMLSource(ports []stream.Port, owner []uint16, dist []int, rowID int) *DMLSource {
	d := plan.Dist{Kind: plan.HashShard, Cols: dist}
	return &DMLSource{out: stream.Dispatcher{Dist: d, Owner: owner, To: ports}, rowID: rowID}
}

// Write sends a chunk of full table rows. It blocks while an actor is behind.
func (s *DMLSource) Write(c *chunk.Chunk) error {
	if s.rowID < 0 || !c.Cols[s.rowID].HasNulls() {
		return s.out.Send(stream.Message{Chunk: c})
	}
	var known, fresh []int
	for i := range c.Len() {
		if c.Cols[s.rowID].Null(i) {
			fresh = append(fresh, i)
		} else {
			known = append(known, i)
		}
	}
	if len(known) > 0 {
		if err := s.out.Send(stream.Message{Chunk: c.Gather(known)}); err != nil {
			return err
		}
		c = c.Gather(fresh)
	}
	p := s.out.To[s.next%len(s.out.To)]
	s.next++
	return p.In.Send(p.Channel, stream.Message{Chunk: c})
}
