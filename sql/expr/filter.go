package expr

import (
	"cmp"

	"streamdb/sql/chunk"
)

// Filter returns the rows of c for which cond is true, in order. Comparisons of
// a column with a constant select rows without a column of booleans; the
// conjuncts of an AND each look only at what the ones before left.
func Filter(ctx *Ctx, cond Expr, c *chunk.Chunk) (sel []int, err error) {
	if c.N == 0 {
		return nil, nil
	}
	in := ctx.enter(c.N)
	sel, err = in.filter(cond, c, nil)
	if err != nil || len(in.failed) == 0 {
		return sel, err
	}
	kept := sel[:0]
	for _, i := range sel {
		if !in.failed[i] {
			kept = append(kept, i)
		}
	}
	return kept, nil
}

// filter narrows the rows sel of c; nil is all rows. The result is not nil.
func (ctx *Ctx) filter(cond Expr, c *chunk.Chunk, sel []int) ([]int, error) {
	switch e := cond.(type) {
	case *Logic:
		if !e.Or {
			var err error
			for _, a := range e.Args {
				if sel, err = ctx.filter(a, c, sel); err != nil || len(sel) == 0 {
					return sel, err
				}
			}
			return sel, nil
		}
	case *Call:
		if out, ok := selectConst(e, c, sel); ok {
			return out, nil
		}
	case *IsNull:
		if r, ok := e.Arg.(*ColRef); ok {
			col := c.Cols[r.Index]
			return pick(c.N, sel, func(i int) bool { return col.Null(i) != e.Negate }), nil
		}
	}
	col, err := ctx.on(cond, c, sel)
	if err != nil {
		return nil, err
	}
	yes, _ := trueRows(col, sel, c.N)
	return yes, nil
}

func pick(n int, sel []int, keep func(i int) bool) []int {
	if sel == nil {
		out := make([]int, 0, n)
		for i := range n {
			if keep(i) {
				out = append(out, i)
			}
		}
		return out
	}
	out := make([]int, 0, len(sel))
	for _, i := range sel {
		if keep(i) {
			out = append(out, i)
		}
	}
	return out
}

// selectConst is the fast path: column op literal over Go values.
func selectConst(e *Call, c *chunk.Chunk, sel []int) ([]int, bool) {
	if !e.Fn.native.ok || len(e.Args) != 2 {
		return nil, false
	}
	op := e.Fn.native.op
	ref, ok1 := e.Args[0].(*ColRef)
	lit, ok2 := e.Args[1].(*Const)
	if !ok1 || !ok2 {
		ref, ok1 = e.Args[1].(*ColRef)
		lit, ok2 = e.Args[0].(*Const)
		op = op.flip()
		if !ok1 || !ok2 {
			return nil, false
		}
	}
	if lit.Val.IsNull() {
		return []int{}, true
	}
	switch v := c.Cols[ref.Index].(type) {
	case *chunk.Vec[int64]:
		return selectOrdered(op, v, lit.Val.Int(), sel), true
	case *chunk.Vec[string]:
		return selectOrdered(op, v, lit.Val.Str(), sel), true
	}
	return nil, false
}

// selectOrdered keeps the rows of sel (nil: all) where v op k. It writes every
// index and steps on only if it holds: there is no branch to mispredict.
func selectOrdered[T cmp.Ordered](op cmpOp, v *chunk.Vec[T], k T, sel []int) []int {
	out := sel // narrowed in place: whoever made it needs it no more
	if sel == nil {
		out = make([]int, len(v.Data))
		for i := range out {
			out[i] = i
		}
	}
	data, n := v.Data, 0
	switch op {
	case opEq:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] == k)
		}
	case opNe:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] != k)
		}
	case opLt:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] < k)
		}
	case opLe:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] <= k)
		}
	case opGt:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] > k)
		}
	case opGe:
		for _, i := range out {
			out[n] = i
			n += b2i(data[i] >= k)
		}
	}
	out = out[:n]
	if v.Nulls == nil {
		return out
	}
	kept := out[:0]
	for _, i := range out {
		if !v.Nulls[i] {
			kept = append(kept, i)
		}
	}
	return kept
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
