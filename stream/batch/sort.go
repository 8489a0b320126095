package batch

import (
	"context"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// sorter reads all its input and gives it in order.
type sorter struct {
	in   Iterator
	env  *Env
	by   []expr.Order
	typs []types.Type
	rows *chunk.Chunk
	idx  []int
	at   int
}

func (s *sorter) Close() {
	s.in.Close()
	s.rows, s.idx = nil, nil
}

func (s *sorter) Next(ctx context.Context) (*chunk.Chunk, error) {
	if s.rows == nil && s.at == 0 {
		rows, err := all(ctx, s.in, s.typs, s.env.Memory)
		if err != nil {
			return nil, err
		}
		s.in.Close()
		s.rows = rows
		s.idx = sortIndex(rows, s.by)
	}
	if s.at >= len(s.idx) {
		return nil, stopped(ctx)
	}
	to := min(s.at+s.env.ChunkSize, len(s.idx))
	c := s.rows.Gather(s.idx[s.at:to])
	s.at = to
	return c, stopped(ctx)
}

// buildTopN is Limit over Sort: no more rows are held than come out.
func buildTopN(l *plan.Limit, s *plan.Sort, env *Env) (Iterator, error) {
	in, err := build(s.Input, env)
	if err != nil {
		return nil, err
	}
	return &topN{in: in, env: env, plan: l, by: s.By, typs: s.Schema().Types()}, nil
}

// topN keeps the first skip+count rows in order while it reads its input.
type topN struct {
	in   Iterator
	env  *Env
	plan *plan.Limit
	by   []expr.Order
	typs []types.Type
	rows *chunk.Chunk
	at   int
	end  int
	done bool
}

func (t *topN) Close() { t.in.Close(); t.rows = nil; t.at, t.end, t.done = 0, 0, true }

func (t *topN) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !t.done {
		t.done = true
		if err := t.run(ctx); err != nil {
			return nil, err
		}
	}
	if t.at >= t.end {
		return nil, nil
	}
	to := min(t.at+t.env.ChunkSize, t.end)
	c := t.rows.Slice(t.at, to)
	t.at = to
	return c, nil
}

func (t *topN) run(ctx context.Context) error {
	skip, count, err := bounds(t.env, t.plan)
	if err != nil || count == 0 {
		return err
	}
	keep := int64(-1)
	if count > 0 {
		keep = skip + count
	}
	best := newGrower(t.typs)
	for {
		c, err := t.in.Next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		best.add(c)
		if keep >= 0 && int64(best.n) > 2*keep+4096 {
			best = t.trim(best, keep)
		}
		if best.bytes > t.env.Memory {
			return errSortMemory(t.env.Memory)
		}
	}
	t.in.Close()
	t.rows = best.chunk().Gather(sortIndex(best.chunk(), t.by))
	t.end = t.rows.Len()
	if keep >= 0 {
		t.end = min(t.end, int(keep))
		for t.plan.WithTies && t.end > 0 && t.end < t.rows.Len() && compareBy(t.rows, t.end-1, t.rows, t.end, t.by) == 0 {
			t.end++
		}
	}
	t.at = int(min(skip, int64(t.end)))
	return nil
}

// trim drops the rows that cannot come out.
func (t *topN) trim(g *grower, keep int64) *grower {
	c := g.chunk()
	idx := sortIndex(c, t.by)
	n := int(keep)
	for t.plan.WithTies && n > 0 && n < len(idx) && compareBy(c, idx[n-1], c, idx[n], t.by) == 0 {
		n++
	}
	idx = slices.Clone(idx[:n])
	slices.Sort(idx) // equal rows keep their order of arrival
	out := newGrower(t.typs)
	out.add(c.Gather(idx))
	return out
}
