package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// Eval computes e for every row of c. With ctx.OnError set, a row whose
// evaluation fails anywhere in e comes out NULL as a whole; without it the
// first error is returned. A nil ctx is the zero Ctx.
func Eval(ctx *Ctx, e Expr, c *chunk.Chunk) (chunk.Column, error) {
	switch e := e.(type) {
	case *ColRef:
		return c.Cols[e.Index], nil
	case *Const:
		return expand(constant(e.Typ, e.Val), c.N), nil
	}
	if c.N == 0 {
		return chunk.New(e.Type(), 0), nil
	}
	in := ctx.enter(c.N)
	col, err := in.eval(e, c)
	if err != nil {
		return nil, err
	}
	col = expand(col, c.N)
	if len(in.failed) > 0 {
		col = withNulls(col, in.failed)
	}
	return col, nil
}

// EvalConst computes an expression without column references.
func EvalConst(ctx *Ctx, e Expr) (types.Datum, error) {
	if k, ok := e.(*Const); ok {
		return k.Val, nil
	}
	col, err := Eval(ctx, e, &chunk.Chunk{N: 1})
	if err != nil {
		return types.Datum{}, err
	}
	return col.Datum(0), nil
}

// eval computes e over c, which has at least one row. The column has c.N rows,
// or one that stands for all.
func (ctx *Ctx) eval(e Expr, c *chunk.Chunk) (chunk.Column, error) {
	switch e := e.(type) {
	case *ColRef:
		return c.Cols[e.Index], nil
	case *Const:
		return constant(e.Typ, e.Val), nil
	case *Param:
		if e.Index < 1 || e.Index > len(ctx.Params) {
			return nil, sqlerr.New("42P02", "there is no parameter $%d", e.Index)
		}
		return constant(e.Typ, ctx.Params[e.Index-1]), nil
	case *OuterRef:
		if e.Level < 1 || e.Level > len(ctx.Outer) {
			return nil, sqlerr.Unsupported("a reference to column \"%s\" of an enclosing query in this place", e.Name)
		}
		return constant(e.Typ, ctx.Outer[e.Level-1][e.Index]), nil
	case *Call:
		return ctx.evalCall(e, c)
	case *Cast:
		return ctx.evalCast(e, c)
	case *Logic:
		return ctx.evalLogic(e, c)
	case *Not:
		col, err := ctx.eval(e.Arg, c)
		if err != nil {
			return nil, err
		}
		v := chunk.Of[bool](col)
		out := make([]bool, len(v.Data))
		for i, b := range v.Data {
			out[i] = !b
		}
		clearNulls(out, v.Nulls)
		return chunk.NewVec(types.Bool, out, v.Nulls), nil
	case *IsNull:
		col, err := ctx.eval(e.Arg, c)
		if err != nil {
			return nil, err
		}
		out := make([]bool, col.Len())
		for i := range out {
			out[i] = col.Null(i) != e.Negate
		}
		return chunk.NewVec(types.Bool, out, nil), nil
	case *Case:
		return ctx.evalCase(e, c)
	case *Coalesce:
		return ctx.evalCoalesce(e, c)
	case *InList:
		return ctx.evalInList(e, c)
	case *ArrayExpr:
		return ctx.evalArray(e, c)
	case *Quantified:
		return ctx.evalQuantified(e, c)
	case *Subquery:
		return ctx.evalSubquery(e, c)
	}
	return nil, sqlerr.Unsupported("evaluation of %T", e)
}

func clearNulls(data []bool, nulls []bool) {
	for i, null := range nulls {
		if null {
			data[i] = false
		}
	}
}

// evalAll computes several expressions; one says that every column is one row that stands for all.
func (ctx *Ctx) evalAll(es []Expr, c *chunk.Chunk) (cols []chunk.Column, one bool, err error) {
	cols, one = make([]chunk.Column, len(es)), true
	for i, e := range es {
		if cols[i], err = ctx.eval(e, c); err != nil {
			return nil, false, err
		}
		one = one && cols[i].Len() == 1
	}
	return cols, one, nil
}

func (ctx *Ctx) evalCall(e *Call, c *chunk.Chunk) (chunk.Column, error) {
	args, one, err := ctx.evalAll(e.Args, c)
	if err != nil {
		return nil, err
	}
	if e.Fn.Strict {
		for _, a := range args {
			if a.Len() == 1 && c.N != 1 && a.Null(0) {
				return constant(e.Typ, types.Datum{}), nil
			}
		}
	}
	return ctx.call(e.Fn, args, e.Typ, c.N, one && e.Fn.Volatile != Volatile)
}

// call runs a kernel over n rows, or over one if the arguments are the same for all.
func (ctx *Ctx) call(fn *Func, args []chunk.Column, typ types.Type, n int, one bool) (chunk.Column, error) {
	saved := ctx.frame.all
	if one && n != 1 {
		n, ctx.frame.all = 1, true
	}
	col, err := fn.Kernel(ctx, args, n)
	ctx.frame.all = saved
	if err != nil {
		return nil, err
	}
	if t := col.Type(); t != typ {
		col = col.As(typ)
	}
	return col, nil
}

func (ctx *Ctx) evalCast(e *Cast, c *chunk.Chunk) (chunk.Column, error) {
	col, err := ctx.eval(e.Arg, c)
	if err != nil {
		return nil, err
	}
	n, saved := c.N, ctx.frame.all
	if col.Len() == 1 && n != 1 {
		n, ctx.frame.all = 1, true
	}
	col, err = castColumn(ctx, col, e.Arg.Type(), e.Typ, e.Explicit, n)
	ctx.frame.all = saved
	return col, err
}

func (ctx *Ctx) evalArray(e *ArrayExpr, c *chunk.Chunk) (chunk.Column, error) {
	cols, one, err := ctx.evalAll(e.Elems, c)
	if err != nil {
		return nil, err
	}
	n := c.N
	if one {
		n = 1
	}
	nested := len(e.Elems) > 0 && e.Elems[0].Type().Elem != nil
	out := make([]*types.List, n)
	for i := range out {
		l := &types.List{Elem: *e.Typ.Elem, Lower: 1}
		if len(cols) > 0 {
			l.Items = make([]types.Datum, len(cols))
		}
		width := -1
		for j, col := range cols {
			l.Items[j] = col.Datum(i & mask(col.Len(), n))
			if !nested {
				continue
			}
			w := 0
			if !l.Items[j].IsNull() {
				w = len(l.Items[j].List().Items)
			}
			if width >= 0 && w != width {
				return nil, sqlerr.New("2202E", "multidimensional arrays must have array expressions with matching dimensions")
			}
			width = w
		}
		if nested && width == 0 {
			l.Items = nil // an array of empty arrays is an empty array
		}
		out[i] = l
	}
	return chunk.NewVec(e.Typ, out, nil), nil
}
