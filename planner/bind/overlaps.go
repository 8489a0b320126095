package bind

import (
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// overlaps binds (s1, e1) OVERLAPS (s2, e2), where an end may be a length: what the
// standard says, a period of one known end being a point of unknown length.
func (b *binder) overlaps(args []expr.Expr, pos int) (expr.Expr, error) {
	noSuch := sqlerr.New(sqlerr.UndefinedFunction, "function pg_catalog.overlaps(%s) does not exist", typeList(typesOf(args))).At(pos).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
	if len(args) != 4 {
		return nil, noSuch
	}
	// What is no length is of one type: a time, or a timestamp with or without a zone.
	var points []types.Type
	for i, a := range args {
		if t := a.Type(); i%2 == 0 || t.OID != types.OIDInterval {
			if t.OID == types.OIDDate {
				t = types.Timestamp
			}
			points = append(points, t)
		}
	}
	t, err := expr.CommonType(points)
	if err != nil {
		return nil, noSuch
	}
	switch t = t.Base(); t.OID {
	case types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz:
	default:
		return nil, noSuch
	}
	ends := make([]expr.Expr, 4)
	for i, a := range args {
		if i%2 == 1 && a.Type().OID == types.OIDInterval {
			if ends[i], err = b.call("+", true, []expr.Expr{ends[i-1], a}, pos); err != nil {
				return nil, err
			}
			continue
		}
		if ends[i], err = b.coerce(a, t, implicit, pos); err != nil {
			return nil, err
		}
	}
	// Of each period the known start and, if both ends are known, the end.
	var start, end [2]expr.Expr
	for i := range start {
		both := ends[2*i : 2*i+2]
		if start[i], err = b.call("least", false, both, pos); err != nil {
			return nil, err
		}
		last, err := b.call("greatest", false, both, pos)
		if err != nil {
			return nil, err
		}
		end[i] = &expr.Case{Typ: t, Else: last, Whens: []expr.When{{
			Cond: or([]expr.Expr{&expr.IsNull{Arg: both[0]}, &expr.IsNull{Arg: both[1]}}), Then: &expr.Const{Typ: t}}}}
	}
	unknown := or([]expr.Expr{&expr.IsNull{Arg: end[0]}, &expr.IsNull{Arg: end[1]}})
	null := &expr.Const{Typ: types.Bool}
	out := &expr.Case{Typ: types.Bool}
	for _, c := range []struct {
		op   string
		l, r expr.Expr // overlapping if l < r, with op true
	}{{">", start[0], end[1]}, {"<", start[1], end[0]}, {"=", nil, nil}} {
		cond, err := b.call(c.op, true, start[:], pos)
		if err != nil {
			return nil, err
		}
		inner := &expr.Case{Typ: types.Bool, Else: boolConst(c.l == nil)}
		if c.l != nil {
			less, err := b.call("<", true, []expr.Expr{c.l, c.r}, pos)
			if err != nil {
				return nil, err
			}
			inner.Whens = append(inner.Whens, expr.When{Cond: less, Then: boolConst(true)})
		}
		inner.Whens = append(inner.Whens, expr.When{Cond: unknown, Then: null})
		out.Whens = append(out.Whens, expr.When{Cond: cond, Then: inner})
	}
	return out, nil
}
