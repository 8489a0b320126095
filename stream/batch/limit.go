package batch

import (
	"context"
	"math"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// buildLimit builds LIMIT. Over a sort, with projections between them or not, it sorts no more than comes out.
func buildLimit(n *plan.Limit, env *Env) (Iterator, error) {
	var over []*plan.Project
	below := n.Input
	for {
		p, ok := below.(*plan.Project)
		if !ok {
			break
		}
		over, below = append(over, p), p.Input
	}
	if s, ok := below.(*plan.Sort); ok {
		in, err := build(s.Input, env)
		if err != nil {
			return nil, err
		}
		var it Iterator = &topN{in: in, env: env, plan: n, by: s.By, typs: env.typesOf(s)}
		for _, p := range slices.Backward(over) {
			it = newProject(p, it, env)
		}
		return it, nil
	}
	if n.WithTies {
		return nil, sqlerr.Unsupported("WITH TIES without ORDER BY")
	}
	in, err := build(n.Input, env)
	if err != nil {
		return nil, err
	}
	return &limit{in: in, env: env, plan: n}, nil
}

// limit passes some rows after skipping some.
type limit struct {
	in         Iterator
	env        *Env
	plan       *plan.Limit
	ready      bool
	skip, left int64 // left < 0: no limit
}

// bounds evaluates LIMIT and OFFSET; count < 0: no limit.
func bounds(env *Env, n *plan.Limit) (skip, count int64, err error) {
	get := func(e expr.Expr, none int64, what string, code string) (int64, error) {
		if e == nil {
			return none, nil
		}
		d, err := expr.EvalConst(env.Ctx, e)
		if err != nil || d.IsNull() {
			return none, err
		}
		if d.Int() < 0 {
			return 0, sqlerr.New(code, "%s must not be negative", what)
		}
		return d.Int(), nil
	}
	if skip, err = get(n.Offset, 0, "OFFSET", "2201X"); err != nil {
		return 0, 0, err
	}
	count, err = get(n.Count, -1, "LIMIT", "2201W")
	return skip, count, err
}

func (l *limit) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !l.ready {
		l.ready = true
		var err error
		if l.skip, l.left, err = bounds(l.env, l.plan); err != nil {
			return nil, err
		}
	}
	for l.left != 0 {
		c, err := l.in.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		n := int64(c.Len())
		if l.skip >= n {
			l.skip -= n
			continue
		}
		from, to := l.skip, n
		l.skip = 0
		if l.left >= 0 {
			to = min(to, from+min(l.left, n))
			l.left -= to - from
		}
		if l.left == 0 {
			l.in.Close()
		}
		if from == 0 && to == n {
			return c, nil
		}
		return c.Slice(int(from), int(to)), nil
	}
	return nil, nil
}

func (l *limit) Close() {
	l.in.Close()
	l.ready, l.left = true, 0
}

// topN keeps the first skip+count rows in order while it reads its input. Where
// these are too many to keep, it sorts all rows.
type topN struct {
	in    Iterator
	env   *Env
	plan  *plan.Limit
	by    []expr.Order
	typs  []types.Type
	share *share
	best  *grower
	bar   []chunk.Column // a row of one column each: no row after it can come out; nil: none yet
	all   *sorter        // where the first rows are too many to keep
	skip  int64
	left  int64          // rows still to come; < 0: no limit
	last  []chunk.Column // the last row that came, for ties
	rows  *chunk.Chunk   // the first rows, in order
	at    int
	begun bool
}

// slack is how many rows more than needed are kept before they are looked through.
const slack = 4096

func (t *topN) Close() {
	t.in.Close()
	t.share.close()
	if t.all != nil {
		t.all.close()
	}
	t.rows, t.best, t.bar, t.all, t.last = nil, nil, nil, nil, nil
	t.begun, t.left = true, 0
}

func (t *topN) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !t.begun {
		t.begun = true
		if err := t.run(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if t.left == 0 && (!t.plan.WithTies || t.last == nil) {
			return nil, stopped(ctx)
		}
		c, err := t.sorted(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		n := int64(c.Len())
		if t.skip >= n {
			t.skip -= n
			continue
		}
		from, to := t.skip, n
		t.skip = 0
		if t.left >= 0 {
			to = min(to, from+min(t.left, n))
			t.left -= to - from
		}
		if t.plan.WithTies && t.left == 0 {
			cmp := orderColumns(c.Cols, t.by)
			if to > from {
				t.last = rowOf(cmp, int(to-1))
			}
			for to < n && compareBy(cmp, int(to), t.last, 0, t.by) == 0 {
				to++
			}
			if to < n {
				t.last = nil // the ties are over
			}
		}
		if from == to {
			continue
		}
		return c.Slice(int(from), int(to)), nil
	}
}

// sorted gives rows in order.
func (t *topN) sorted(ctx context.Context) (*chunk.Chunk, error) {
	if t.all != nil {
		return t.all.Next(ctx)
	}
	if t.rows == nil || t.at >= t.rows.Len() {
		return nil, stopped(ctx)
	}
	to := min(t.at+t.env.ChunkSize, t.rows.Len())
	c := t.rows.Slice(t.at, to)
	t.at = to
	return c, stopped(ctx)
}

func (t *topN) run(ctx context.Context) error {
	var err error
	if t.skip, t.left, err = bounds(t.env, t.plan); err != nil || t.left == 0 {
		return err
	}
	keep := int64(math.MaxInt64)
	if t.left > 0 && t.left <= math.MaxInt64-t.skip {
		keep = t.skip + t.left
	}
	if keep > 16*slack {
		t.all = newSorter(t.env, t.by, t.typs)
		err := t.all.fill(ctx, t.in)
		t.in.Close()
		return err
	}
	t.share = t.env.mem.open()
	t.best = newGrower(t.typs, 0)
	for {
		c, err := t.in.Next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		if err := stopped(ctx); err != nil {
			return err
		}
		if c = t.below(c); c == nil {
			continue
		}
		t.best.add(c)
		over := t.share.set(t.best.bytes)
		if over || int64(t.best.n) > 2*keep+slack {
			t.trim(keep)
			over = t.share.set(t.best.bytes)
		}
		if over {
			// They are large: what came so far and what comes yet is sorted the usual way.
			t.all = newSorter(t.env, t.by, t.typs)
			if err := t.all.add(ctx, t.best.chunk()); err != nil {
				return err
			}
			t.best = nil
			t.share.close()
			err := t.all.fill(ctx, t.in)
			t.in.Close()
			return err
		}
	}
	t.in.Close()
	t.trim(keep)
	t.rows = t.best.chunk()
	t.rows = t.rows.Gather(sortIndex(orderColumns(t.rows.Cols, t.by), t.rows.N, t.by))
	t.best = nil
	return nil
}

// below keeps the rows that may come out, as far as is known.
func (t *topN) below(c *chunk.Chunk) *chunk.Chunk {
	if t.bar == nil {
		return c
	}
	cmp := orderColumns(c.Cols, t.by)
	most := -1 // rows equal to the bar come later than those kept
	if t.plan.WithTies {
		most = 0
	}
	var sel []int
	for i := range c.Len() {
		if compareBy(cmp, i, t.bar, 0, t.by) <= most {
			sel = append(sel, i)
		}
	}
	switch len(sel) {
	case 0:
		return nil
	case c.Len():
		return c
	}
	return c.Gather(sel)
}

// trim drops the rows that cannot come out.
func (t *topN) trim(keep int64) {
	c := t.best.chunk()
	if int64(c.N) <= keep {
		return
	}
	cmp := orderColumns(c.Cols, t.by)
	idx := sortIndex(cmp, c.N, t.by)
	n := int(keep)
	t.bar = rowOf(cmp, idx[n-1])
	for t.plan.WithTies && n < len(idx) && compareBy(cmp, idx[n-1], cmp, idx[n], t.by) == 0 {
		n++
	}
	idx = slices.Clone(idx[:n])
	slices.Sort(idx) // equal rows keep their order of arrival
	t.best = newGrower(t.typs, 2*n)
	t.best.add(c.Gather(idx))
}

func rowOf(cols []chunk.Column, i int) []chunk.Column {
	out := make([]chunk.Column, len(cols))
	for j, c := range cols {
		out[j] = c.Gather([]int{i})
	}
	return out
}
