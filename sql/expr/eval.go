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
		return chunk.Repeat(e.Typ, e.Val, c.N), nil
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

func (ctx *Ctx) evalInList(e *InList, c *chunk.Chunk) (chunk.Column, error) {
	left, err := ctx.eval(e.Arg, c)
	if err != nil {
		return nil, err
	}
	if set := constList(e, left); set != nil {
		return negate(set.probe(left), e.Negate), nil
	}
	n := c.N
	found, unknown := make([]bool, n), make([]bool, n)
	for _, item := range e.List {
		col, err := ctx.eval(item, c)
		if err != nil {
			return nil, err
		}
		one := left.Len() == 1 && col.Len() == 1
		eq, err := ctx.call(e.Eq, []chunk.Column{left, col}, types.Bool, n, one)
		if err != nil {
			return nil, err
		}
		v := chunk.Of[bool](eq)
		m := mask(len(v.Data), n)
		for i := range found {
			if v.Null(i & m) {
				unknown[i] = true
			} else if v.Data[i&m] {
				found[i] = true
			}
		}
	}
	for i, f := range found {
		unknown[i] = unknown[i] && !f
	}
	return negate(chunk.NewVec(types.Bool, found, unknown), e.Negate), nil
}

func negate(v *chunk.Vec[bool], not bool) chunk.Column {
	if not {
		for i, b := range v.Data {
			v.Data[i] = !b
		}
		clearNulls(v.Data, v.Nulls)
	}
	return v
}

// A memberSet answers membership in a fixed list of integers or texts.
type memberSet struct {
	ints map[int64]struct{}
	strs map[string]struct{}
	null bool // the list has a NULL: not found is unknown
}

// constList makes the set of a long enough list of literals whose equality is that of the Go values.
func constList(e *InList, left chunk.Column) *memberSet {
	if len(e.List) < 4 || e.Eq.Name != "=" {
		return nil
	}
	s := newMemberSet(e.Eq, left.Type())
	if s == nil {
		return nil
	}
	for _, item := range e.List {
		k, ok := item.(*Const)
		if !ok {
			return nil
		}
		s.add(k.Val)
	}
	return s
}

// newMemberSet is nil where eq needs more than comparing Go values of left's kind.
func newMemberSet(eq *Func, left types.Type) *memberSet {
	a, b := eq.Args[0], eq.Args[1]
	if eq.Name != "=" || !a.Equal(b) && !(isInteger(a) && isInteger(b)) || a.Kind() != left.Kind() {
		return nil
	}
	switch {
	case a.Kind() == types.KindInt:
		return &memberSet{ints: map[int64]struct{}{}}
	case a.Kind() == types.KindString && a.OID != types.OIDBpchar && left.OID != types.OIDBpchar:
		return &memberSet{strs: map[string]struct{}{}}
	}
	return nil
}

func isInteger(t types.Type) bool {
	return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
}

func (s *memberSet) add(d types.Datum) {
	switch {
	case d.IsNull():
		s.null = true
	case s.ints != nil:
		s.ints[d.Int()] = struct{}{}
	default:
		s.strs[d.Str()] = struct{}{}
	}
}

func (s *memberSet) probe(col chunk.Column) *chunk.Vec[bool] {
	n := col.Len()
	out := make([]bool, n)
	if s.ints != nil {
		for i, x := range chunk.Of[int64](col).Data {
			_, out[i] = s.ints[x]
		}
	} else {
		for i, x := range chunk.Of[string](col).Data {
			_, out[i] = s.strs[x]
		}
	}
	if !s.null && !col.HasNulls() {
		return chunk.NewVec(types.Bool, out, nil)
	}
	nulls := make([]bool, n)
	for i := range out {
		if col.Null(i) || s.null && !out[i] {
			out[i], nulls[i] = false, true
		}
	}
	return chunk.NewVec(types.Bool, out, nulls)
}

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
