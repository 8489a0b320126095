package expr

import (
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A frame is where the rows of the chunk being evaluated come from. Lazily
// evaluated branches run on gathered rows; errors must still find the row of
// the outermost chunk.
type frame struct {
	n    int   // rows of the current chunk
	rows []int // row of the outermost chunk of each row of the current one; nil: the same
	all  bool  // one row is computed that stands for all
}

// RowError reports that row i of the current evaluation failed with err. It
// returns err where errors end the evaluation; otherwise it notes that the
// row's whole expression becomes NULL, tells OnError (once a row), and returns nil.
func (ctx *Ctx) RowError(i int, err error) error {
	if ctx == nil || ctx.OnError == nil {
		return err
	}
	if !ctx.frame.all {
		ctx.fail(i, err)
		return nil
	}
	for k := range ctx.frame.n {
		ctx.fail(k, err)
	}
	return nil
}

func (ctx *Ctx) fail(i int, err error) {
	if ctx.frame.rows != nil {
		i = ctx.frame.rows[i]
	}
	if ctx.failed[i] {
		return
	}
	if ctx.failed == nil {
		ctx.failed = map[int]bool{}
	}
	ctx.failed[i] = true
	ctx.OnError(err)
}

// enter makes a context for one evaluation of a chunk of n rows. The copy keeps
// evaluations that run inside others, or beside them, apart.
func (ctx *Ctx) enter(n int) *Ctx {
	var in Ctx
	if ctx != nil {
		in = *ctx
	}
	in.failed = nil
	in.frame = frame{n: n}
	return &in
}

// sub evaluates with the frame narrowed to the rows sel of the current one.
func (ctx *Ctx) sub(sel []int, f func() error) error {
	outer := ctx.frame
	rows := sel
	if outer.rows != nil {
		rows = make([]int, len(sel))
		for k, i := range sel {
			rows[k] = outer.rows[i]
		}
	}
	ctx.frame = frame{n: len(sel), rows: rows}
	err := f()
	ctx.frame = outer
	return err
}

// zone is the session's time zone, nil for UTC.
func (ctx *Ctx) zone() *time.Location {
	if ctx == nil || ctx.Style == nil {
		return nil
	}
	return ctx.Style.Zone
}

func (ctx *Ctx) style() *types.Style {
	if ctx == nil {
		return nil
	}
	return ctx.Style
}

// system asks the session.
func (ctx *Ctx) system(name string, args []types.Datum, ret types.Type) (types.Datum, error) {
	if ctx == nil || ctx.Sys == nil {
		return types.Datum{}, sqlerr.Unsupported("function %s() outside a session", name)
	}
	return ctx.Sys.CallSystem(name, args, ret)
}

func (ctx *Ctx) random() (uint64, error) {
	if ctx == nil || ctx.Seed == nil {
		return 0, sqlerr.Unsupported("a random function in this place")
	}
	return ctx.Seed(), nil
}

// constant makes the column of one row that stands for any number of equal ones.
func constant(t types.Type, d types.Datum) chunk.Column {
	c := chunk.New(t, 1)
	c.Append(d)
	return c
}

// mask is the index mask of a column in a loop over n rows: all ones for a
// full column, and zero for one row that stands for all.
func mask(length, n int) int {
	if length == 1 && n != 1 {
		return 0
	}
	return -1
}

// expand makes c a column of n rows where it is one row that stands for all.
func expand(c chunk.Column, n int) chunk.Column {
	if c.Len() == n {
		return c
	}
	if n == 0 {
		return c.Slice(0, 0)
	}
	switch v := c.(type) {
	case *chunk.Vec[bool]:
		return expandVec(v, n)
	case *chunk.Vec[int64]:
		return expandVec(v, n)
	case *chunk.Vec[float64]:
		return expandVec(v, n)
	case *chunk.Vec[string]:
		return expandVec(v, n)
	case *chunk.Vec[types.Decimal]:
		return expandVec(v, n)
	case *chunk.Vec[types.Interval]:
		return expandVec(v, n)
	case *chunk.Vec[*types.List]:
		return expandVec(v, n)
	}
	return c.Gather(make([]int, n))
}

func expandVec[T any](v *chunk.Vec[T], n int) chunk.Column {
	data := make([]T, n)
	var nulls []bool
	if v.Null(0) {
		nulls = make([]bool, n)
		for i := range nulls {
			nulls[i] = true
		}
	} else {
		for i := range data {
			data[i] = v.Data[0]
		}
	}
	return chunk.NewVec(v.Type(), data, nulls)
}

// withNulls is c (n full rows) with further rows NULL.
func withNulls(c chunk.Column, failed map[int]bool) chunk.Column {
	switch v := c.(type) {
	case *chunk.Vec[bool]:
		return nullVec(v, failed)
	case *chunk.Vec[int64]:
		return nullVec(v, failed)
	case *chunk.Vec[float64]:
		return nullVec(v, failed)
	case *chunk.Vec[string]:
		return nullVec(v, failed)
	case *chunk.Vec[types.Decimal]:
		return nullVec(v, failed)
	case *chunk.Vec[types.Interval]:
		return nullVec(v, failed)
	case *chunk.Vec[*types.List]:
		return nullVec(v, failed)
	}
	return c
}

func nullVec[T any](v *chunk.Vec[T], failed map[int]bool) chunk.Column {
	data, nulls := make([]T, len(v.Data)), make([]bool, len(v.Data))
	copy(data, v.Data)
	copy(nulls, v.Nulls)
	var zero T
	for i := range data {
		if failed[i] {
			data[i], nulls[i] = zero, true
		}
	}
	return chunk.NewVec(v.Type(), data, nulls)
}
