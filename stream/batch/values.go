package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
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
	out := &chunk.Chunk{N: len(rows), Cols: make([]chunk.Column, len(v.plan.Out))}
	for j, f := range v.plan.Out {
		out.Cols[j] = chunk.New(f.Type, len(rows))
	}
	for i, r := range rows {
		for j, col := range out.Cols {
			d, err := expr.EvalConst(v.env.Ctx, r[j])
			if err != nil {
				return nil, err
			}
			col.Append(d)
		}
		if i&31 == 0 { // a subquery may have run
			if err := stopped(ctx); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (v *values) Close() { v.at = len(v.plan.Rows) }
