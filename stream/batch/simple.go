package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// values gives literal rows.
type values struct {
	env  *Env
	plan *plan.Values
	at   int
}

func (v *values) Next(ctx context.Context) (*chunk.Chunk, error) {
	if v.at == len(v.plan.Rows) {
		return nil, nil
	}
	rows := v.plan.Rows[v.at:]
	rows = rows[:min(len(rows), v.env.ChunkSize)]
	v.at += len(rows)
	out := &chunk.Chunk{N: len(rows)}
	for j, f := range v.plan.Out {
		col := chunk.New(f.Type, len(rows))
		for _, r := range rows {
			d, err := expr.EvalConst(v.env.Ctx, r[j])
			if err != nil {
				return nil, err
			}
			col.Append(d)
		}
		out.Cols = append(out.Cols, col)
	}
	return out, stopped(ctx)
}

func (v *values) Close() { v.at = len(v.plan.Rows) }

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

// project computes columns.
type project struct {
	in    Iterator
	env   *Env
	exprs []expr.Expr
}

func (p *project) Next(ctx context.Context) (*chunk.Chunk, error) {
	c, err := p.in.Next(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	out := &chunk.Chunk{Cols: make([]chunk.Column, len(p.exprs)), N: c.Len()}
	for i, e := range p.exprs {
		if r, ok := e.(*expr.ColRef); ok {
			out.Cols[i] = c.Cols[r.Index].As(r.Typ)
			continue
		}
		if out.Cols[i], err = expr.Eval(p.env.Ctx, e, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *project) Close() { p.in.Close() }

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
	if count, err = get(n.Count, -1, "LIMIT", "2201W"); err != nil {
		return 0, 0, err
	}
	skip, err = get(n.Offset, 0, "OFFSET", "2201X")
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
		from := l.skip
		l.skip = 0
		to := n
		if l.left >= 0 {
			to = min(to, from+l.left)
			l.left -= to - from
		}
		if l.left == 0 {
			l.in.Close()
		}
		return c.Slice(int(from), int(to)), nil
	}
	return nil, nil
}

func (l *limit) Close() { l.in.Close() }

// funcScan calls a set-returning function once.
type funcScan struct {
	env  *Env
	plan *plan.FuncScan
	done bool
}

func (f *funcScan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if f.done {
		return nil, nil
	}
	f.done = true
	args := make([]types.Datum, len(f.plan.Args))
	for i, a := range f.plan.Args {
		var err error
		if args[i], err = expr.EvalConst(f.env.Ctx, a); err != nil {
			return nil, err
		}
	}
	c, err := f.plan.Fn.Rows(f.env.Ctx, args)
	if err != nil || c == nil || c.Len() == 0 {
		return nil, err
	}
	if f.plan.Ordinality {
		ord := make([]int64, c.Len())
		for i := range ord {
			ord[i] = int64(i + 1)
		}
		c = &chunk.Chunk{Cols: append(c.Cols[:len(c.Cols):len(c.Cols)], chunk.NewVec(types.Int8, ord, nil)), N: c.Len()}
	}
	return c, nil
}

func (f *funcScan) Close() { f.done = true }

// projectSet evaluates the set-returning functions of a select list.
type projectSet struct {
	in   Iterator
	env  *Env
	plan *plan.ProjectSet
}

func (p *projectSet) Next(ctx context.Context) (*chunk.Chunk, error) {
	typs := p.plan.Schema().Types()
	for {
		c, err := p.in.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		args := make([][]chunk.Column, len(p.plan.Fns))
		for i, as := range p.plan.Args {
			for _, a := range as {
				col, err := expr.Eval(p.env.Ctx, a, c)
				if err != nil {
					return nil, err
				}
				args[i] = append(args[i], col)
			}
		}
		out := newGrower(typs)
		for r := range c.Len() {
			sets := make([]*chunk.Chunk, len(p.plan.Fns))
			most := 0
			for i, fn := range p.plan.Fns {
				row := make([]types.Datum, len(args[i]))
				for j, col := range args[i] {
					row[j] = col.Datum(r)
				}
				if sets[i], err = fn.Rows(p.env.Ctx, row); err != nil {
					return nil, err
				}
				if sets[i] != nil {
					most = max(most, sets[i].Len())
				}
			}
			for k := range most {
				for j, col := range c.Cols {
					out.cols[j].AppendFrom(col, r)
				}
				for i, s := range sets {
					if s == nil || k >= s.Len() {
						out.cols[len(c.Cols)+i].AppendNull()
						continue
					}
					out.cols[len(c.Cols)+i].AppendFrom(s.Cols[0], k)
				}
			}
			out.n += most
			if err := stopped(ctx); err != nil {
				return nil, err
			}
		}
		if out.n > 0 {
			return out.chunk(), nil
		}
	}
}

func (p *projectSet) Close() { p.in.Close() }
