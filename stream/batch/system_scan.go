package batch

import (
	"context"
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
)

// A systemKey names some columns of a system relation.
type systemKey struct {
	rel  *catalog.Relation
	cols string
}

// A systemScan reads a system relation, computed when it is first read: all parts
// of a statement see the same rows.
type systemScan struct {
	env  *Env
	plan *plan.Scan
	rows *chunk.Chunk // nil: not read yet
	at   int
}

func (s *systemScan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	if s.rows == nil {
		rows, err := s.env.systemRows(ctx, s.plan)
		if err != nil {
			return nil, err
		}
		s.rows = rows
	}
	if s.at >= s.rows.Len() {
		return nil, nil
	}
	to := min(s.at+s.env.ChunkSize, s.rows.Len())
	c := s.rows
	if to-s.at < c.Len() {
		c = c.Slice(s.at, to)
	}
	s.at = to
	return c, nil
}

func (s *systemScan) Close() { s.rows = &chunk.Chunk{} }

func (e *Env) systemRows(ctx context.Context, n *plan.Scan) (*chunk.Chunk, error) {
	key := systemKey{n.Rel, fmt.Sprint(n.Cols)}
	if c := e.system[key]; c != nil {
		return c, nil
	}
	c, err := e.System(ctx, n.Rel, n.Cols)
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = &chunk.Chunk{}
	}
	if e.system == nil {
		e.system = map[systemKey]*chunk.Chunk{}
	}
	e.system[key] = c
	e.remember(chunkBytes(c))
	return c, nil
}
