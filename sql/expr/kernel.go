package expr

import (
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A maker makes the kernel of an overload once its signature is known. The
// makers here lift a Go function over values to one over columns; what is hot
// (integer and float arithmetic, comparisons) has loops of its own instead.
type maker func(f *Func) Kernel

// unionNulls marks the rows where some argument is NULL; nil: none.
func unionNulls(n int, args ...chunk.Column) []bool {
	var out []bool
	owned := false
	for _, a := range args {
		if !a.HasNulls() {
			continue
		}
		if a.Len() == 1 && n != 1 {
			all := make([]bool, n)
			for i := range all {
				all[i] = true
			}
			return all
		}
		nulls := nullSlice(a)
		switch {
		case out == nil:
			out = nulls
		default:
			if !owned {
				out, owned = append([]bool(nil), out...), true
			}
			for i, null := range nulls {
				if null {
					out[i] = true
				}
			}
		}
	}
	return out
}

// nullSlice is the Nulls of whatever Vec c is.
func nullSlice(c chunk.Column) []bool {
	switch v := c.(type) {
	case *chunk.Vec[bool]:
		return v.Nulls
	case *chunk.Vec[int64]:
		return v.Nulls
	case *chunk.Vec[float64]:
		return v.Nulls
	case *chunk.Vec[string]:
		return v.Nulls
	case *chunk.Vec[types.Decimal]:
		return v.Nulls
	case *chunk.Vec[types.Interval]:
		return v.Nulls
	case *chunk.Vec[*types.List]:
		return v.Nulls
	}
	return nil
}

// A result is the column under construction by one of the lifted kernels.
type result[R any] struct {
	data  []R
	nulls []bool
	own   bool // nulls is not shared with an argument
}

func newResult[R any](n int, args ...chunk.Column) result[R] {
	return result[R]{data: make([]R, n), nulls: unionNulls(n, args...)}
}

func (r *result[R]) null(i int) bool { return r.nulls != nil && r.nulls[i] }

func (r *result[R]) setNull(i int) {
	if !r.own {
		nulls := make([]bool, len(r.data))
		copy(nulls, r.nulls)
		r.nulls, r.own = nulls, true
	}
	var zero R
	r.data[i], r.nulls[i] = zero, true
}

func (r *result[R]) column(t types.Type) chunk.Column { return chunk.NewVec(t, r.data, r.nulls) }

// lift1 … lift4 make strict kernels of functions that may fail.
func lift1[A, R any](f func(ctx *Ctx, a A) (R, error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a := chunk.Of[A](args[0])
			am := mask(len(a.Data), n)
			out := newResult[R](n, args...)
			for i := range out.data {
				if out.null(i) {
					continue
				}
				v, err := f(ctx, a.Data[i&am])
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

func lift2[A, B, R any](f func(ctx *Ctx, a A, b B) (R, error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[A](args[0]), chunk.Of[B](args[1])
			am, bm := mask(len(a.Data), n), mask(len(b.Data), n)
			out := newResult[R](n, args...)
			for i := range out.data {
				if out.null(i) {
					continue
				}
				v, err := f(ctx, a.Data[i&am], b.Data[i&bm])
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

// maybe2 is lift2 of a function that may also give NULL (ok false).
func maybe2[A, B, R any](f func(a A, b B) (v R, ok bool, err error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[A](args[0]), chunk.Of[B](args[1])
			am, bm := mask(len(a.Data), n), mask(len(b.Data), n)
			out := newResult[R](n, args...)
			for i := range out.data {
				if out.null(i) {
					continue
				}
				v, ok, err := f(a.Data[i&am], b.Data[i&bm])
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
				}
				if !ok || err != nil {
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

func lift3[A, B, C, R any](f func(ctx *Ctx, a A, b B, c C) (R, error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b, c := chunk.Of[A](args[0]), chunk.Of[B](args[1]), chunk.Of[C](args[2])
			am, bm, cm := mask(len(a.Data), n), mask(len(b.Data), n), mask(len(c.Data), n)
			out := newResult[R](n, args...)
			for i := range out.data {
				if out.null(i) {
					continue
				}
				v, err := f(ctx, a.Data[i&am], b.Data[i&bm], c.Data[i&cm])
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

func lift4[A, B, C, D, R any](f func(ctx *Ctx, a A, b B, c C, d D) (R, error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b, c, d := chunk.Of[A](args[0]), chunk.Of[B](args[1]), chunk.Of[C](args[2]), chunk.Of[D](args[3])
			am, bm, cm, dm := mask(len(a.Data), n), mask(len(b.Data), n), mask(len(c.Data), n), mask(len(d.Data), n)
			out := newResult[R](n, args...)
			for i := range out.data {
				if out.null(i) {
					continue
				}
				v, err := f(ctx, a.Data[i&am], b.Data[i&bm], c.Data[i&cm], d.Data[i&dm])
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

// f1 … f3 are lift1 … lift3 of functions that cannot fail; e1 … e3 of those that need no context.
func f1[A, R any](f func(A) R) maker {
	return lift1(func(_ *Ctx, a A) (R, error) { return f(a), nil })
}

func e1[A, R any](f func(A) (R, error)) maker {
	return lift1(func(_ *Ctx, a A) (R, error) { return f(a) })
}

func f2[A, B, R any](f func(A, B) R) maker {
	return lift2(func(_ *Ctx, a A, b B) (R, error) { return f(a, b), nil })
}

func e2[A, B, R any](f func(A, B) (R, error)) maker {
	return lift2(func(_ *Ctx, a A, b B) (R, error) { return f(a, b) })
}

func f3[A, B, C, R any](f func(A, B, C) R) maker {
	return lift3(func(_ *Ctx, a A, b B, c C) (R, error) { return f(a, b, c), nil })
}

func e3[A, B, C, R any](f func(A, B, C) (R, error)) maker {
	return lift3(func(_ *Ctx, a A, b B, c C) (R, error) { return f(a, b, c) })
}

// boxed makes a kernel that calls f with one row's values: for functions that
// are polymorphic, variadic or rarely called. A strict function does not see NULLs.
func boxed(f func(ctx *Ctx, args []types.Datum) (types.Datum, error)) maker {
	return typed(func(ctx *Ctx, _ []types.Type, args []types.Datum) (types.Datum, error) { return f(ctx, args) })
}

// typed is boxed for functions that look at the types of their arguments.
func typed(f func(ctx *Ctx, ts []types.Type, args []types.Datum) (types.Datum, error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			ts := make([]types.Type, len(args))
			for j, a := range args {
				ts[j] = a.Type()
			}
			ret := fn.Ret
			if fn.RetType != nil {
				ret = fn.RetType(ts)
			}
			out := chunk.New(ret, n)
			row := make([]types.Datum, len(args))
		rows:
			for i := range n {
				for j, a := range args {
					row[j] = a.Datum(i & mask(a.Len(), n))
					if fn.Strict && row[j].IsNull() {
						out.AppendNull()
						continue rows
					}
				}
				d, err := f(ctx, ts, row)
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					d = types.Datum{}
				}
				out.Append(d)
			}
			return out, nil
		}
	}
}

// chain makes the kernel that computes first, to a value of type mid, and then second of it.
func chain(first maker, mid types.Type, second maker) maker {
	return func(fn *Func) Kernel {
		a := first(&Func{Name: fn.Name, Args: fn.Args, Ret: mid, Strict: true})
		b := second(&Func{Name: fn.Name, Args: []types.Type{mid}, Ret: fn.Ret, Strict: true})
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			col, err := a(ctx, args, n)
			if err != nil {
				return nil, err
			}
			return b(ctx, []chunk.Column{col}, n)
		}
	}
}

// sys makes the kernel of a function that the session answers.
func sys(f *Func) Kernel {
	return boxed(func(ctx *Ctx, args []types.Datum) (types.Datum, error) {
		// The session may keep the arguments.
		return ctx.system(f.Name, append([]types.Datum(nil), args...), f.Ret)
	})(f)
}

// value makes the kernel of a function that is a constant.
func value(d types.Datum) maker {
	return func(f *Func) Kernel {
		return func(_ *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			if !f.Strict {
				return chunk.Repeat(f.Ret, d, n), nil
			}
			nulls := unionNulls(n, args...)
			out := chunk.New(f.Ret, n)
			for i := range n {
				if nulls != nil && nulls[i] {
					out.AppendNull()
				} else {
					out.Append(d)
				}
			}
			return out, nil
		}
	}
}

func sortDatums(d []types.Datum) { slices.SortStableFunc(d, types.Compare) }
