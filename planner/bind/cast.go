package bind

import (
	"strconv"
	"strings"

	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// How a coercion was asked for; each allows what those before it do, and more.
const (
	implicit   = expr.Implicit
	assignment = expr.Assignment
	explicit   = expr.Explicit
)

// coerce converts x to a type, if such a conversion may be made this way. An
// untyped literal is read as the type, an untyped parameter takes it. A
// conversion there is not is 42804, or 42846 where it was asked for explicitly.
func (b *binder) coerce(x expr.Expr, to types.Type, how expr.CastContext, pos int) (expr.Expr, error) {
	from := x.Type()
	if polymorphic(to) {
		return b.known(x)
	}
	if from.Equal(to) && (to.Mod == 0 || to.Mod == from.Mod) {
		return x, nil
	}
	at0 := pos
	if p, ok := b.pos[x]; ok {
		at0 = p
	}
	if from.OID == types.OIDUnknown {
		if p, ok := x.(*expr.Param); ok {
			y, err := b.setParam(p, to)
			if err != nil || to.Mod == 0 {
				return y, err
			}
			return b.makeCast(y, to, how, pos)
		}
		return b.makeCast(x, to, how, at0)
	}
	if !from.Equal(to) && !expr.CanCast(from, to, how) {
		if how == explicit {
			return nil, sqlerr.New(sqlerr.CannotCoerce, "cannot cast type %s to %s", types.FormatType(from.Base()), types.FormatType(to.Base())).At(pos)
		}
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "cannot convert type %s to %s", types.FormatType(from), types.FormatType(to)).At(pos)
	}
	return b.makeCast(x, to, how, at0)
}

// operand is coerce for an argument of a function or operator: a varchar stays
// one where text is wanted, as the values are the same. So conditions on varchar
// columns stay conditions on columns.
func (b *binder) operand(x expr.Expr, want types.Type, pos int) (expr.Expr, error) {
	if have := x.Type(); have.OID == types.OIDVarchar && want.OID == types.OIDText && have.Elem == nil {
		return x, nil
	}
	return b.coerce(x, want, implicit, pos)
}

func (b *binder) makeCast(x expr.Expr, to types.Type, how expr.CastContext, pos int) (expr.Expr, error) {
	y, err := b.o.Ctx.MakeCast(x, to, how == explicit)
	if err != nil {
		return nil, at(err, pos)
	}
	if p, ok := b.pos[x]; ok && y != x {
		b.pos[y] = p
	}
	return y, nil
}

// polymorphic types stand for whatever comes.
func polymorphic(t types.Type) bool {
	switch t.OID {
	case types.OIDAny, types.OIDAnyArray, types.OIDAnyElement:
		return true
	}
	return false
}

func (e *env) typeCast(x *ast.TypeCast) (expr.Expr, error) {
	to, err := e.b.typeName(x.TypeName)
	if err != nil {
		return nil, err
	}
	pos := int(x.Location)
	if pos < 0 {
		pos = int(x.TypeName.Location)
	}
	if a := x.Arg.GetAArrayExpr(); a != nil && to.Elem != nil {
		return e.array(a.Elements, &to, int(a.Location))
	}
	y, err := e.expr(x.Arg)
	if err != nil {
		return nil, err
	}
	if c, ok := y.(*expr.Const); ok && to.OID == types.OIDInterval && to.Mod != 0 && c.Typ.OID == types.OIDUnknown && !c.Val.IsNull() {
		if unit := intervalUnit(to, c.Val.Str()); unit != "" {
			y = &expr.Const{Val: types.NewString(c.Val.Str() + " " + unit), Typ: types.Null}
			e.b.pos[y] = e.b.posOf(c)
		}
	}
	return e.b.coerce(y, to, explicit, pos)
}

// intervalUnit is the unit that INTERVAL '2' HOUR gives a bare number: the last
// of the type's fields. "": text is no bare number, or the type has all fields.
func intervalUnit(t types.Type, text string) string {
	if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
		return ""
	}
	fields := t.Typmod() >> 16 & 0x7fff
	if fields == 0x7fff {
		return ""
	}
	for _, f := range []struct {
		bit  int
		unit string
	}{{12, "second"}, {11, "minute"}, {10, "hour"}, {3, "day"}, {1, "month"}, {2, "year"}} {
		if fields>>f.bit&1 != 0 {
			return f.unit
		}
	}
	return ""
}

// TypeName resolves a type as written: a name, perhaps with modifiers and [].
func TypeName(n *ast.TypeName) (types.Type, error) { return new(binder).typeName(n) }

func (b *binder) typeName(n *ast.TypeName) (types.Type, error) {
	pos := int(n.Location)
	names := strs(n.Names)
	if n.Setof {
		return types.Type{}, sqlerr.Unsupported("SETOF").At(pos)
	}
	if n.PctType {
		return types.Type{}, sqlerr.Unsupported("%s", "%TYPE").At(pos)
	}
	if len(names) == 0 {
		return types.Type{}, sqlerr.New(sqlerr.UndefinedObject, "a type is missing").At(pos)
	}
	name := names[len(names)-1]
	t, ok := types.ByName(name)
	if len(names) > 1 && names[len(names)-2] != "pg_catalog" {
		ok = false
	}
	if name == "char" {
		t = types.Char // the grammar writes character as bpchar
	}
	if !ok {
		full := strings.Join(names, ".")
		err := sqlerr.New(sqlerr.UndefinedObject, `type "%s" does not exist`, full).At(pos)
		switch name {
		case "json", "jsonb", "uuid", "xml", "inet", "cidr", "money", "bit", "varbit", "timetz", "point", "box", "tsvector", "tsquery":
			return t, sqlerr.Unsupported("type %s", name).At(pos)
		}
		return t, err
	}
	if len(n.Typmods) > 0 {
		mods := make([]int, len(n.Typmods))
		for i, m := range n.Typmods {
			v, ok := constInt(m)
			if !ok {
				return t, sqlerr.New(sqlerr.Syntax, "type modifiers must be simple constants or identifiers").At(pos)
			}
			mods[i] = v
		}
		mod, err := typmod(t, mods, pos)
		if err != nil {
			return t, err
		}
		t.Mod = mod + 1
	}
	for range min(len(n.ArrayBounds), 1) { // all dimensions are one type
		a, ok := arrayOf(t)
		if !ok {
			return t, sqlerr.New(sqlerr.UndefinedObject, `type "%s[]" does not exist`, types.FormatType(t)).At(pos)
		}
		t = a
	}
	return t, nil
}

// typmod packs a type's modifiers as PostgreSQL does.
func typmod(t types.Type, m []int, pos int) (int32, error) {
	one := func(lo, hi int, code, format string, args ...any) error {
		if len(m) != 1 {
			return sqlerr.New(sqlerr.InvalidParameter, "invalid type modifier").At(pos)
		}
		if m[0] < lo || m[0] > hi {
			return sqlerr.New(code, format, args...).At(pos)
		}
		return nil
	}
	switch t.OID {
	case types.OIDVarchar, types.OIDBpchar:
		name := "varchar"
		if t.OID == types.OIDBpchar {
			name = "char"
		}
		if len(m) == 1 && m[0] < 1 {
			return 0, sqlerr.New(sqlerr.InvalidParameter, "length for type %s must be at least 1", name).At(pos)
		}
		if err := one(1, 10485760, sqlerr.InvalidParameter, "length for type %s cannot exceed 10485760", name); err != nil {
			return 0, err
		}
		return int32(m[0]) + 4, nil
	case types.OIDNumeric:
		scale := 0
		switch len(m) {
		case 1:
		case 2:
			scale = m[1]
		default:
			return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid NUMERIC type modifier").At(pos)
		}
		if m[0] < 1 || m[0] > 1000 {
			return 0, sqlerr.New(sqlerr.InvalidParameter, "NUMERIC precision %d must be between 1 and 1000", m[0]).At(pos)
		}
		if scale < -1000 || scale > 1000 {
			return 0, sqlerr.New(sqlerr.InvalidParameter, "NUMERIC scale %d must be between -1000 and 1000", scale).At(pos)
		}
		return int32(m[0]<<16|scale&0x7ff) + 4, nil
	case types.OIDTimestamp, types.OIDTimestamptz, types.OIDTime:
		if err := one(0, 1<<30, sqlerr.InvalidParameter, "invalid precision"); err != nil {
			return 0, err
		}
		return int32(min(m[0], 6)), nil
	case types.OIDInterval:
		const full = 0x7fff
		switch {
		case len(m) == 1:
			return int32(m[0]&full<<16 | 0xffff), nil
		case len(m) == 2:
			return int32(m[0]&full<<16 | min(m[1], 6)), nil
		}
	}
	return 0, sqlerr.New(sqlerr.Syntax, `type modifier is not allowed for type "%s"`, types.FormatType(t)).At(pos)
}

// arrayOf is the array type over t, its elements keeping t's modifier.
func arrayOf(t types.Type) (types.Type, bool) {
	a := types.ArrayOf(t)
	return a, a.OID != 0
}
