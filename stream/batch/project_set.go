package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// projectSet evaluates the set-returning functions of a select list.
type projectSet struct {
	in   Iterator
	env  *Env
	plan *plan.ProjectSet
	typs []types.Type

	cur  *chunk.Chunk     // whose rows are being expanded; nil: none
	args [][]chunk.Column // of each function, over cur
	row  int
	sets []*chunk.Chunk // of each function, for row; nil: not called yet
	at   int            // how many rows of sets came out
}

func (p *projectSet) Next(ctx context.Context) (*chunk.Chunk, error) {
	out := newGrower(p.typs, 0)
	for out.n < p.env.ChunkSize {
		if p.cur == nil {
			c, err := p.in.Next(ctx)
			if err != nil {
				return nil, err
			}
			if c == nil {
				break
			}
			if err := p.begin(c); err != nil {
				return nil, err
			}
		}
		if err := p.expand(out); err != nil {
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

func (p *projectSet) begin(c *chunk.Chunk) error {
	p.cur, p.row, p.sets, p.at = c, 0, nil, 0
	p.args = make([][]chunk.Column, len(p.plan.Fns))
	for i, as := range p.plan.Args {
		for _, a := range as {
			col, err := expr.Eval(p.env.Ctx, p.env.ready(a), c)
			if err != nil {
				return err
			}
			p.args[i] = append(p.args[i], col)
		}
	}
	return nil
}

// expand appends rows of the current row's sets, as many as there is room for.
func (p *projectSet) expand(out *grower) error {
	if p.sets == nil {
		p.sets = make([]*chunk.Chunk, len(p.plan.Fns))
		for i, fn := range p.plan.Fns {
			row := make([]types.Datum, len(p.args[i]))
			for j, col := range p.args[i] {
				row[j] = col.Datum(p.row)
			}
			var err error
			if p.sets[i], err = fn.Rows(p.env.Ctx, row); err != nil {
				return err
			}
		}
	}
	most := 0
	for _, s := range p.sets {
		if s != nil {
			most = max(most, s.Len())
		}
	}
	to := min(most, p.at+p.env.ChunkSize-out.n)
	for j, col := range p.cur.Cols {
		for range to - p.at {
			out.cols[j].AppendFrom(col, p.row)
		}
	}
	for i, s := range p.sets {
		col := out.cols[len(p.cur.Cols)+i]
		for k := p.at; k < to; k++ {
			if s == nil || k >= s.Len() {
				col.AppendNull()
			} else {
				col.AppendFrom(s.Cols[0], k)
			}
		}
	}
	out.n += to - p.at
	if p.at = to; to == most {
		p.sets, p.at = nil, 0
		if p.row++; p.row == p.cur.Len() {
			p.cur = nil
		}
	}
	return nil
}

func (p *projectSet) Close() {
	p.in.Close()
	p.cur, p.sets, p.args = nil, nil, nil
}
