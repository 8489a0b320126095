package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func (ctx *Ctx) evalQuantified(e *Quantified, c *chunk.Chunk) (chunk.Column, error) {
	left, err := ctx.eval(e.Left, c)
	if err != nil {
		return nil, err
	}
	col, err := ctx.eval(e.Array, c)
	if err != nil {
		return nil, err
	}
	array := chunk.Of[*types.List](col)
	if len(array.Data) == 1 && !array.Null(0) && !e.All {
		if s := newMemberSet(e.Op, left.Type()); s != nil {
			for _, d := range flatten(array.Data[0]) {
				s.add(d)
			}
			if len(s.ints)+len(s.strs) > 0 || s.null {
				return s.probe(left), nil
			}
		}
	}
	n := c.N
	if len(array.Data) == 1 && left.Len() == 1 {
		n = 1
	}
	out, nulls := make([]bool, n), make([]bool, n)
	lm, am := mask(left.Len(), n), mask(len(array.Data), n)
	for i := range out {
		if array.Null(i & am) {
			nulls[i] = true
			continue
		}
		items := flatten(array.Data[i&am])
		right := chunk.New(e.Op.Args[1], len(items))
		if e.Op.Args[1].OID == oidAnyElement || e.Op.Args[1].OID == types.OIDAny {
			right = chunk.New(*e.Array.Type().Elem, len(items))
		}
		for _, d := range items {
			right.Append(d)
		}
		out[i], nulls[i], err = ctx.quantify([]*Func{e.Op}, []chunk.Column{left.Slice(i&lm, i&lm+1)}, []chunk.Column{right}, len(items), i, n, c.N, e.All)
		if err != nil {
			return nil, err
		}
	}
	return chunk.NewVec(types.Bool, out, nulls), nil
}

// flatten gives the scalar items of a list of any number of dimensions.
func flatten(l *types.List) []types.Datum {
	nested := false
	for _, d := range l.Items {
		nested = nested || d.Kind() == types.KindList
	}
	if !nested {
		return l.Items
	}
	var out []types.Datum
	for _, d := range l.Items {
		if d.Kind() == types.KindList {
			out = append(out, flatten(d.List())...)
		} else {
			out = append(out, d)
		}
	}
	return out
}

// quantify compares one row (left, columns of one row each) with the m rows of
// right: ANY or ALL of three-valued conjunctions. Row i of rows is the frame's row for errors.
func (ctx *Ctx) quantify(ops []*Func, left, right []chunk.Column, m, i, rows, frameRows int, all bool) (val, null bool, err error) {
	if m == 0 {
		return all, false, nil
	}
	acc := make([]bool, m)
	unknown := make([]bool, m)
	for k := range acc {
		acc[k] = true
	}
	sel := make([]int, m)
	for k := range sel {
		sel[k] = i
	}
	run := func() error {
		for j, op := range ops {
			if op.Strict && left[j].Null(0) {
				for k := range unknown {
					unknown[k] = unknown[k] || acc[k]
				}
				continue
			}
			col, err := op.Kernel(ctx, []chunk.Column{left[j], right[j]}, m)
			if err != nil {
				return err
			}
			v := chunk.Of[bool](col)
			for k := range acc {
				switch {
				case v.Null(k):
					unknown[k] = true
				case !v.Data[k]:
					acc[k] = false
				}
			}
		}
		return nil
	}
	if rows == frameRows {
		err = ctx.sub(sel, run)
	} else {
		saved := ctx.frame.all
		ctx.frame.all = true
		err = run()
		ctx.frame.all = saved
	}
	if err != nil {
		return false, false, err
	}
	for k, ok := range acc {
		switch {
		case !ok:
			if all {
				return false, false, nil
			}
		case unknown[k]:
			null = true
		case !all:
			return true, false, nil
		}
	}
	return all && !null, null, nil
}

func (ctx *Ctx) evalSubquery(e *Subquery, c *chunk.Chunk) (chunk.Column, error) {
	if ctx.Subquery == nil {
		return nil, sqlerr.Unsupported("a subquery in this place")
	}
	left, one, err := ctx.evalAll(e.Left, c)
	if err != nil {
		return nil, err
	}
	if !e.Correlated {
		// Once for the chunk; whoever sets ctx.Subquery may keep the rows for longer.
		res, err := ctx.Subquery(e, append([]types.Row{nil}, ctx.Outer...))
		if err != nil {
			return nil, err
		}
		if e.Kind == SubqueryAny && len(e.Ops) == 1 && res.N > 0 {
			if s := newMemberSet(e.Ops[0], left[0].Type()); s != nil && s.takes(res.Cols[0]) {
				return s.probe(left[0]), nil
			}
		}
		n := c.N
		if one {
			n = 1
		}
		return ctx.subqueryRows(e, c, left, n, func(int) (*chunk.Chunk, error) { return res, nil })
	}
	return ctx.subqueryRows(e, c, left, c.N, func(i int) (*chunk.Chunk, error) {
		return ctx.Subquery(e, append([]types.Row{c.Row(i)}, ctx.Outer...))
	})
}

// takes adds a column's values if they are of the set's kind.
func (s *memberSet) takes(col chunk.Column) bool {
	if (s.ints != nil) != (col.Type().Kind() == types.KindInt) || (s.strs != nil) != (col.Type().Kind() == types.KindString) {
		return false
	}
	for i := range col.Len() {
		s.add(col.Datum(i))
	}
	return true
}

func (ctx *Ctx) subqueryRows(e *Subquery, c *chunk.Chunk, left []chunk.Column, n int, rows func(i int) (*chunk.Chunk, error)) (chunk.Column, error) {
	out := chunk.New(e.Typ, n)
	for i := range n {
		res, err := rows(i)
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case SubqueryExists:
			out.Append(types.NewBool(res.N > 0))
		case SubqueryScalar:
			switch {
			case res.N > 1:
				err := sqlerr.New(sqlerr.CardinalityViolation, "more than one row returned by a subquery used as an expression")
				if err := ctx.RowError(i, err); err != nil {
					return nil, err
				}
				out.AppendNull()
			case res.N == 0:
				out.AppendNull()
			default:
				out.Append(res.Cols[0].Datum(0))
			}
		case SubqueryArray:
			l := &types.List{Elem: *e.Typ.Elem, Lower: 1}
			for k := range res.N {
				l.Items = append(l.Items, res.Cols[0].Datum(k))
			}
			out.Append(types.NewList(l))
		case SubqueryAny, SubqueryAll:
			row := make([]chunk.Column, len(left))
			for j, col := range left {
				k := i & mask(col.Len(), c.N)
				row[j] = col.Slice(k, k+1)
			}
			val, null, err := ctx.quantify(e.Ops, row, res.Cols, res.N, i, n, c.N, e.Kind == SubqueryAll)
			if err != nil {
				return nil, err
			}
			if null {
				out.AppendNull()
			} else {
				out.Append(types.NewBool(val))
			}
		default:
			return nil, sqlerr.Unsupported("subquery kind %d", e.Kind)
		}
	}
	return out, nil
}
