package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
)

// project computes columns.
type project struct {
	in    Iterator
	env   *Env
	exprs []expr.Expr
}

func newProject(n *plan.Project, in Iterator, env *Env) *project {
	p := &project{in: in, env: env, exprs: n.Exprs}
	for i, e := range n.Exprs {
		r := env.ready(e)
		if r == e {
			continue
		}
		if &p.exprs[0] == &n.Exprs[0] {
			p.exprs = append([]expr.Expr(nil), n.Exprs...)
		}
		p.exprs[i] = r
	}
	return p
}

func (p *project) Next(ctx context.Context) (*chunk.Chunk, error) {
	c, err := p.in.Next(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	out := &chunk.Chunk{Cols: make([]chunk.Column, len(p.exprs)), N: c.Len()}
	for i, e := range p.exprs {
		if r, ok := e.(*expr.ColRef); ok {
			col := c.Cols[r.Index]
			if col.Type() != r.Typ {
				col = col.As(r.Typ)
			}
			out.Cols[i] = col
			continue
		}
		if out.Cols[i], err = expr.Eval(p.env.Ctx, e, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *project) Close() { p.in.Close() }
