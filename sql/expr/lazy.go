package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// safe reports whether evaluating e on a row that does not need it does no
// harm: it cannot fail, asks nobody, and costs little.
func safe(e Expr) bool {
	switch e := e.(type) {
	case *ColRef, *Const, *Param, *OuterRef:
		return true
	case *Call:
		return e.Fn.total && safeAll(e.Args)
	case *Logic:
		return safeAll(e.Args)
	case *Not:
		return safe(e.Arg)
	case *IsNull:
		return safe(e.Arg)
	}
	return false
}

func safeAll(es []Expr) bool {
	for _, e := range es {
		if !safe(e) {
			return false
		}
	}
	return true
}

// on evaluates e for the rows sel of c only; nil is all rows. The column has
// len(sel) rows, or one that stands for all.
func (ctx *Ctx) on(e Expr, c *chunk.Chunk, sel []int) (col chunk.Column, err error) {
	if sel == nil || len(sel) == c.N {
		return ctx.eval(e, c)
	}
	part := &chunk.Chunk{Cols: make([]chunk.Column, len(c.Cols)), N: len(sel)}
	if HasSubquery(e) {
		for j, src := range c.Cols { // a correlated subquery may look at any column
			if src != nil {
				part.Cols[j] = src.Gather(sel)
			}
		}
	} else {
		for _, j := range Columns(e) {
			part.Cols[j] = c.Cols[j].Gather(sel)
		}
	}
	err = ctx.sub(sel, func() error {
		col, err = ctx.eval(e, part)
		return err
	})
	return col, err
}

// evalLogic stops at the first argument that decides a row, as PostgreSQL does,
// so that b <> 0 AND a/b > 1 does not fail.
func (ctx *Ctx) evalLogic(e *Logic, c *chunk.Chunk) (chunk.Column, error) {
	var acc *chunk.Vec[bool]
	for k, arg := range e.Args {
		if k == 0 {
			col, err := ctx.eval(arg, c)
			if err != nil {
				return nil, err
			}
			v := chunk.Of[bool](col)
			acc = chunk.NewVec(types.Bool, append([]bool(nil), v.Data...), append([]bool(nil), v.Nulls...))
			continue
		}
		var sel []int
		if len(acc.Data) == 1 {
			if !acc.Null(0) && acc.Data[0] == e.Or {
				return acc, nil
			}
		} else if !safe(arg) {
			sel = undecided(acc, e.Or)
			if len(sel) == 0 {
				return acc, nil
			}
		}
		col, err := ctx.on(arg, c, sel)
		if err != nil {
			return nil, err
		}
		v := chunk.Of[bool](col)
		if len(acc.Data) == 1 && len(v.Data) > 1 {
			acc = expandVec(acc, c.N).(*chunk.Vec[bool])
		}
		combine(acc, v, sel, e.Or)
	}
	return acc, nil
}

func undecided(v *chunk.Vec[bool], or bool) []int {
	sel := make([]int, 0, len(v.Data))
	for i, b := range v.Data {
		if b != or || v.Null(i) {
			sel = append(sel, i)
		}
	}
	return sel
}

// combine folds the value of v at k into row sel[k] (nil: k) of acc by AND or OR.
func combine(acc, v *chunk.Vec[bool], sel []int, or bool) {
	n := len(acc.Data)
	if sel != nil && len(sel) < n {
		n = len(sel)
	} else {
		sel = nil
	}
	m := mask(len(v.Data), n)
	if acc.Nulls == nil && v.Nulls == nil && sel == nil {
		switch {
		case m == 0 && n > 1:
			if v.Data[0] == or {
				for i := range acc.Data {
					acc.Data[i] = or
				}
			}
		case or:
			for i, b := range v.Data {
				acc.Data[i] = acc.Data[i] || b
			}
		default:
			for i, b := range v.Data {
				acc.Data[i] = acc.Data[i] && b
			}
		}
		return
	}
	if acc.Nulls == nil {
		acc.Nulls = make([]bool, len(acc.Data))
	}
	for k := range n {
		i := k
		if sel != nil {
			i = sel[k]
		}
		switch {
		case !acc.Nulls[i] && acc.Data[i] == or: // decided
		case v.Null(k & m):
			acc.Data[i], acc.Nulls[i] = false, true
		case v.Data[k&m] == or:
			acc.Data[i], acc.Nulls[i] = or, false
		}
	}
}

// A part is the value of the rows at (nil: all) of a column that is put together from several.
type part struct {
	at  []int
	col chunk.Column
}

// trueRows splits rows sel (nil: n rows) by a condition that was evaluated on them.
func trueRows(cond chunk.Column, sel []int, n int) (yes, no []int) {
	v := chunk.Of[bool](cond)
	if sel != nil {
		n = len(sel)
	}
	m := mask(len(v.Data), n)
	yes, no = make([]int, 0, n), make([]int, 0, n)
	for k := range n {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Data[k&m] && !v.Null(k&m) {
			yes = append(yes, i)
		} else {
			no = append(no, i)
		}
	}
	return yes, no
}

func (ctx *Ctx) evalCase(e *Case, c *chunk.Chunk) (chunk.Column, error) {
	if len(e.Whens) < 255 && safeCase(e) {
		return ctx.evalCaseEagerly(e, c)
	}
	var parts []part
	var rest []int // nil: all rows
	done := false
	for _, w := range e.Whens {
		cond, err := ctx.on(w.Cond, c, rest)
		if err != nil {
			return nil, err
		}
		if cond.Len() == 1 && c.N > 1 && rest == nil {
			if !cond.Null(0) && chunk.Of[bool](cond).Data[0] {
				col, err := ctx.eval(w.Then, c)
				if err != nil || len(parts) == 0 {
					return col, err
				}
			}
			continue
		}
		yes, no := trueRows(cond, rest, c.N)
		if len(yes) > 0 {
			col, err := ctx.on(w.Then, c, yes)
			if err != nil {
				return nil, err
			}
			if len(yes) == c.N {
				return col, nil
			}
			parts = append(parts, part{yes, col})
		}
		if rest = no; len(rest) == 0 {
			done = true
			break
		}
	}
	if e.Else != nil && !done {
		col, err := ctx.on(e.Else, c, rest)
		if err != nil {
			return nil, err
		}
		if rest == nil || len(rest) == c.N {
			return col, nil
		}
		parts = append(parts, part{rest, col})
	}
	return assemble(e.Typ, c.N, parts), nil
}

// safeCase reports whether all of e but its first condition may be evaluated on every row.
func safeCase(e *Case) bool {
	for i, w := range e.Whens {
		if i > 0 && !safe(w.Cond) || !safe(w.Then) {
			return false
		}
	}
	return e.Else == nil || safe(e.Else)
}

// evalCaseEagerly evaluates every branch for every row and then chooses: nothing is gathered.
func (ctx *Ctx) evalCaseEagerly(e *Case, c *chunk.Chunk) (chunk.Column, error) {
	branch := make([]uint8, c.N) // 1 + the branch; 0: ELSE
	var vals []chunk.Column
	for k, w := range e.Whens {
		col, err := ctx.eval(w.Cond, c)
		if err != nil {
			return nil, err
		}
		cond := chunk.Of[bool](col)
		m := mask(len(cond.Data), c.N)
		for i := range branch {
			if branch[i] == 0 && cond.Data[i&m] && !cond.Null(i&m) {
				branch[i] = uint8(k + 1)
			}
		}
		val, err := ctx.eval(w.Then, c)
		if err != nil {
			return nil, err
		}
		vals = append(vals, val)
	}
	other := constant(e.Typ, types.Datum{})
	if e.Else != nil {
		var err error
		if other, err = ctx.eval(e.Else, c); err != nil {
			return nil, err
		}
	}
	return chooseRows(e.Typ, branch, append([]chunk.Column{other}, vals...)), nil
}

// chooseRows takes row i from the column that branch[i] says.
func chooseRows(t types.Type, branch []uint8, cols []chunk.Column) chunk.Column {
	switch t.Kind() {
	case types.KindBool:
		return chooseVec[bool](t, branch, cols)
	case types.KindInt:
		return chooseVec[int64](t, branch, cols)
	case types.KindFloat:
		return chooseVec[float64](t, branch, cols)
	case types.KindDecimal:
		return chooseVec[types.Decimal](t, branch, cols)
	case types.KindInterval:
		return chooseVec[types.Interval](t, branch, cols)
	case types.KindList:
		return chooseVec[*types.List](t, branch, cols)
	}
	return chooseVec[string](t, branch, cols)
}

func chooseVec[T any](t types.Type, branch []uint8, cols []chunk.Column) chunk.Column {
	vecs, masks, nullable := make([]*chunk.Vec[T], len(cols)), make([]int, len(cols)), false
	for k, c := range cols {
		vecs[k], masks[k] = chunk.Of[T](c), mask(c.Len(), len(branch))
		nullable = nullable || vecs[k].Nulls != nil
	}
	data := make([]T, len(branch))
	for i, k := range branch {
		data[i] = vecs[k].Data[i&masks[k]]
	}
	if !nullable {
		return chunk.NewVec(t, data, nil)
	}
	nulls, some := make([]bool, len(branch)), false
	for i, k := range branch {
		if vecs[k].Null(i & masks[k]) {
			nulls[i], some = true, true
		}
	}
	if !some {
		nulls = nil
	}
	return chunk.NewVec(t, data, nulls)
}

func (ctx *Ctx) evalCoalesce(e *Coalesce, c *chunk.Chunk) (chunk.Column, error) {
	var parts []part
	var rest []int
	for k, arg := range e.Args {
		col, err := ctx.on(arg, c, rest)
		if err != nil {
			return nil, err
		}
		if rest == nil && (!col.HasNulls() || k == len(e.Args)-1) {
			return col, nil
		}
		if rest == nil && col.Len() == 1 && c.N > 1 { // NULL for all
			continue
		}
		n := c.N
		if rest != nil {
			n = len(rest)
		}
		m := mask(col.Len(), n)
		var at, from, none []int
		for k := range n {
			i := k
			if rest != nil {
				i = rest[k]
			}
			if col.Null(k & m) {
				none = append(none, i)
			} else {
				at, from = append(at, i), append(from, k&m)
			}
		}
		if len(at) > 0 {
			parts = append(parts, part{at, col.Gather(from)})
		}
		if rest = none; len(rest) == 0 {
			break
		}
	}
	return assemble(e.Typ, c.N, parts), nil
}

// assemble puts parts together to n rows; rows in no part are NULL.
func assemble(t types.Type, n int, parts []part) chunk.Column {
	switch t.Kind() {
	case types.KindBool:
		return assembleVec[bool](t, n, parts)
	case types.KindInt:
		return assembleVec[int64](t, n, parts)
	case types.KindFloat:
		return assembleVec[float64](t, n, parts)
	case types.KindDecimal:
		return assembleVec[types.Decimal](t, n, parts)
	case types.KindInterval:
		return assembleVec[types.Interval](t, n, parts)
	case types.KindList:
		return assembleVec[*types.List](t, n, parts)
	}
	return assembleVec[string](t, n, parts)
}

func assembleVec[T any](t types.Type, n int, parts []part) chunk.Column {
	data, nulls := make([]T, n), make([]bool, n)
	covered := 0
	for _, p := range parts {
		covered += len(p.at)
	}
	anyNull := covered < n
	if anyNull {
		for i := range nulls {
			nulls[i] = true
		}
	}
	for _, p := range parts {
		v := chunk.Of[T](p.col)
		m := mask(len(v.Data), len(p.at))
		for k, i := range p.at {
			data[i], nulls[i] = v.Data[k&m], v.Null(k&m)
			anyNull = anyNull || nulls[i]
		}
	}
	if !anyNull {
		nulls = nil
	}
	return chunk.NewVec(t, data, nulls)
}
