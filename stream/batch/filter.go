package batch

import (
	"context"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
)

// filter keeps the rows for which its condition is true.
type filter struct {
	in   Iterator
	env  *Env
	cond expr.Expr
}

func (f *filter) Next(ctx context.Context) (*chunk.Chunk, error) {
	for {
		c, err := f.in.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		sel, err := expr.Filter(f.env.Ctx, f.cond, c)
		if err != nil {
			return nil, err
		}
		switch len(sel) {
		case 0:
		case c.Len():
			return c, nil
		default:
			return c.Gather(sel), nil
		}
		if err := stopped(ctx); err != nil {
			return nil, err
		}
	}
}

func (f *filter) Close() { f.in.Close() }
