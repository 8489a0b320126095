package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

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
