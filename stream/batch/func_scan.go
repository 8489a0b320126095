package batch

import (
	"context"
	"math"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// funcScan calls a set-returning function once.
type funcScan struct {
	env    *Env
	plan   *plan.FuncScan
	rows   *chunk.Chunk // nil: not called yet
	series *series      // instead of rows
	at     int
	given  int64
	done   bool
}

func (f *funcScan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if err := stopped(ctx); err != nil || f.done {
		return nil, err
	}
	if f.rows == nil && f.series == nil {
		if err := f.call(); err != nil {
			return nil, err
		}
	}
	var c *chunk.Chunk
	switch {
	case f.series != nil:
		c = f.series.next(f.plan.Out[0].Type, f.env.ChunkSize)
	case f.at < f.rows.Len():
		to := min(f.at+f.env.ChunkSize, f.rows.Len())
		c = f.rows.Slice(f.at, to)
		f.at = to
	}
	if c == nil {
		f.Close()
		return nil, nil
	}
	if f.plan.Ordinality {
		ord := make([]int64, c.Len())
		for i := range ord {
			ord[i] = f.given + int64(i+1)
		}
		f.given += int64(c.Len())
		c = &chunk.Chunk{Cols: append(c.Cols[:len(c.Cols):len(c.Cols)], chunk.NewVec(types.Int8, ord, nil)), N: c.Len()}
	}
	return c, nil
}

func (f *funcScan) call() error {
	args := make([]types.Datum, len(f.plan.Args))
	for i, a := range f.plan.Args {
		var err error
		if args[i], err = expr.EvalConst(f.env.Ctx, a); err != nil {
			return err
		}
	}
	if f.series = newSeries(f.plan.Fn, args); f.series != nil {
		return nil
	}
	var err error
	if f.rows, err = f.plan.Fn.Rows(f.env.Ctx, args); err == nil && f.rows == nil {
		f.done = true
		f.rows = &chunk.Chunk{}
	}
	return err
}

func (f *funcScan) Close() { f.done, f.rows, f.series = true, nil, nil }

// A series is generate_series over integers, which can be long and is made as it is read.
type series struct {
	from, last, step int64
	ended            bool
}

// newSeries is nil for what is not such a series, and for calls that the function itself shall refuse.
func newSeries(fn *expr.TableFunc, args []types.Datum) *series {
	if fn.Name != "generate_series" || len(args) < 2 {
		return nil
	}
	for _, a := range args {
		if a.Kind() != types.KindInt {
			return nil
		}
	}
	for _, t := range fn.Args {
		if t.OID != types.OIDInt4 && t.OID != types.OIDInt8 {
			return nil
		}
	}
	s := &series{args[0].Int(), args[1].Int(), 1, false}
	if len(args) > 2 {
		s.step = args[2].Int()
	}
	if s.step == 0 {
		return nil
	}
	return s
}

func (s *series) next(t types.Type, size int) *chunk.Chunk {
	var data []int64
	for len(data) < size && !s.ended {
		if s.step > 0 && s.from > s.last || s.step < 0 && s.from < s.last {
			s.ended = true
			break
		}
		if data == nil {
			data = make([]int64, 0, size)
		}
		data = append(data, s.from)
		if s.step > 0 && s.from > math.MaxInt64-s.step || s.step < 0 && s.from < math.MinInt64-s.step {
			s.ended = true
			break
		}
		s.from += s.step
	}
	if len(data) == 0 {
		return nil
	}
	return chunk.Make(chunk.NewVec(t, data, nil))
}
