package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// lateral runs its right side once for each left row.
type lateral struct {
	env  *Env
	sub  *Env // with the left row as innermost outer row
	plan *plan.Join
	on   expr.Expr
	left Iterator
	typs []types.Type

	cur   *chunk.Chunk // left rows; nil: none
	row   int
	right Iterator // of row; nil: not begun
	hit   bool     // row had a partner
}

func newLateral(n *plan.Join, left Iterator, env *Env) *lateral {
	outer := append([]types.Row{nil}, env.Ctx.Outer...)
	return &lateral{env: env, sub: env.under(outer), plan: n, on: env.ready(n.On), left: left, typs: env.typesOf(n)}
}

func (l *lateral) Close() {
	l.left.Close()
	if l.right != nil {
		l.right.Close()
		l.right = nil
	}
	l.cur = nil
}

func (l *lateral) Next(ctx context.Context) (*chunk.Chunk, error) {
	out := newGrower(l.typs, 0)
	for out.n < l.env.ChunkSize {
		if l.cur == nil {
			c, err := l.left.Next(ctx)
			if err != nil {
				return nil, err
			}
			if c == nil {
				break
			}
			l.cur, l.row = c, 0
		}
		if err := l.step(ctx, out); err != nil {
			return nil, err
		}
		if err := stopped(ctx); err != nil {
			return nil, err
		}
	}
	if out.n == 0 {
		return nil, nil
	}
	return out.chunk(), nil
}

// step appends what comes of the next right rows.
func (l *lateral) step(ctx context.Context, out *grower) error {
	if l.right == nil {
		l.hit = false
		l.sub.Ctx.Outer[0] = l.cur.Row(l.row)
		var err error
		if l.right, err = build(l.plan.Right, l.sub); err != nil {
			return err
		}
	}
	kind := l.plan.Kind
	c, err := l.right.Next(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		var sel []int
		n := c.N
		if l.on != nil {
			if sel, err = expr.Filter(l.env.Ctx, l.on, l.pairs(c)); err != nil {
				return err
			}
			n = len(sel)
		}
		l.hit = l.hit || n > 0
		if kind != plan.Semi && kind != plan.Anti {
			l.appendLeft(out, n)
			for i, col := range c.Cols {
				appendSel(out.cols[len(l.cur.Cols)+i], col, sel)
			}
			return nil
		}
		if !l.hit {
			return nil
		}
	}
	switch {
	case kind == plan.Semi && l.hit, kind == plan.Anti && !l.hit:
		l.appendLeft(out, 1)
	case kind == plan.Left && !l.hit:
		l.appendLeft(out, 1)
		for _, col := range out.cols[len(l.cur.Cols):] {
			col.AppendNull()
		}
	}
	l.right.Close()
	l.right = nil
	if l.row++; l.row == l.cur.N {
		l.cur = nil
	}
	return nil
}

func (l *lateral) appendLeft(out *grower, n int) {
	for i, col := range l.cur.Cols {
		for range n {
			out.cols[i].AppendFrom(col, l.row)
		}
	}
	out.n += n
}

// pairs makes the columns left ++ right of the current row and some right rows.
func (l *lateral) pairs(c *chunk.Chunk) *chunk.Chunk {
	out := &chunk.Chunk{N: c.N}
	same := make([]int, c.N)
	for i := range same {
		same[i] = l.row
	}
	for _, col := range l.cur.Cols {
		out.Cols = append(out.Cols, col.Gather(same))
	}
	out.Cols = append(out.Cols, c.Cols...)
	return out
}
