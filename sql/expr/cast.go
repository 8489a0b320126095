package expr

import (
	"math"
	"strings"

	"streamdb/sql/chunk"
	"streamdb/sql/jsonpath"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// MakeCast converts e to a type, modifier included: explicitly as CAST does, or
// as an assignment does. Untyped literals are read at once (22P02 for bad text),
// unless their meaning depends on the session; those are read when evaluated.
// Error 42846 if there is no such conversion.
func MakeCast(e Expr, to types.Type, explicit bool) (Expr, error) {
	return (*Ctx)(nil).MakeCast(e, to, explicit)
}

// MakeCast is the function MakeCast that reads literals in ctx's style: its time zone, its 'now'.
func (ctx *Ctx) MakeCast(e Expr, to types.Type, explicit bool) (Expr, error) {
	from := e.Type()
	if from.OID == types.OIDUnknown {
		switch k := e.(type) {
		case *Const:
			return ctx.readLiteral(k, to, explicit)
		case *Param:
			p := &Param{Index: k.Index, Typ: to.Base()}
			if to.Mod == 0 {
				return p, nil
			}
			e, from = p, p.Typ
		}
	}
	if from.Equal(to) && (to.Mod == 0 || to.Mod == from.Mod) {
		return e, nil
	}
	level := Assignment
	if explicit {
		level = Explicit
	}
	if !CanCast(from, to, level) {
		return nil, sqlerr.New(sqlerr.CannotCoerce, "cannot cast type %s to %s", label(from), label(to))
	}
	cast := &Cast{Arg: e, Typ: to, Explicit: explicit}
	if _, ok := e.(*Const); ok && castVolatility(from, to) == Immutable {
		if d, err := EvalConst(ctx, cast); err == nil {
			return &Const{Val: d, Typ: to}, nil
		}
	}
	return cast, nil
}

// readLiteral gives an untyped literal its type.
func (ctx *Ctx) readLiteral(k *Const, to types.Type, explicit bool) (Expr, error) {
	if k.Val.IsNull() || to.OID == types.OIDUnknown {
		return &Const{Val: k.Val, Typ: to}, nil
	}
	text := k.Val.Str()
	later := &Cast{Arg: k, Typ: to, Explicit: explicit}
	switch {
	case to.IsReg() && !isNumber(text):
		return later, nil
	case ctx == nil && baseOID(to) == types.OIDTimestamptz:
		return later, nil
	}
	d, err := fromText(ctx, to.Base(), text)
	if err != nil {
		if ctx == nil || ctx.Style == nil || ctx.Style.Now == nil {
			switch strings.ToLower(strings.TrimSpace(text)) {
			case "now", "today", "tomorrow", "yesterday":
				return later, nil
			}
		}
		return nil, err
	}
	if to.Mod != 0 {
		if d, err = types.ApplyTypmod(to, d, explicit); err != nil {
			return nil, err
		}
	}
	return &Const{Val: d, Typ: to}, nil
}

func baseOID(t types.Type) uint32 {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t.OID
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// castVolatility: what reads or shows the session's zone or catalog is stable.
func castVolatility(from, to types.Type) Volatility {
	f, t := baseOID(from), baseOID(to)
	zonal := func(o uint32) bool { return o == types.OIDTimestamptz }
	switch {
	case f == t:
		return Immutable
	case zonal(f) || zonal(t), from.IsReg() && to.Kind() == types.KindString, to.IsReg() && from.Kind() == types.KindString:
		return Stable
	}
	c, _ := category(types.Type{OID: f})
	if (c == 'S' || c == 'X') && (t == types.OIDDate || t == types.OIDTimestamp || t == types.OIDTime) {
		return Stable // 'now'
	}
	if d, _ := category(types.Type{OID: t}); d == 'S' && (f == types.OIDDate || f == types.OIDTimestamp || f == types.OIDInterval) {
		return Stable // the output style is the session's
	}
	return Immutable
}

// castColumn converts a column of n rows.
func castColumn(ctx *Ctx, c chunk.Column, from, to types.Type, explicit bool, n int) (chunk.Column, error) {
	if !from.Equal(to) {
		mk := caster(from, to)
		if mk == nil {
			return nil, sqlerr.New(sqlerr.CannotCoerce, "cannot cast type %s to %s", label(from), label(to))
		}
		var err error
		if c, err = mk(&Func{Name: "cast", Args: []types.Type{from}, Ret: to.Base(), Strict: true})(ctx, []chunk.Column{c}, n); err != nil {
			return nil, err
		}
	}
	if to.Mod == 0 || from.Equal(to) && from.Mod == to.Mod {
		return c.As(to), nil
	}
	fit := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) { return types.ApplyTypmod(to, a[0], explicit) })
	return fit(&Func{Name: "cast", Args: []types.Type{to}, Ret: to, Strict: true})(ctx, []chunk.Column{c}, n)
}

// same takes the column as it is.
func same(f *Func) Kernel {
	return func(_ *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
		return expand(args[0], n).As(f.Ret), nil
	}
}

func isFloat(t types.Type) bool { return t.Kind() == types.KindFloat }

// caster finds the conversion between two different types; nil: none.
func caster(from, to types.Type) maker {
	if from.Elem != nil && to.Elem != nil {
		return castArray(*from.Elem, *to.Elem)
	}
	if mk := castNumber(from, to); mk != nil {
		return mk
	}
	if mk := castTime(from, to); mk != nil {
		return mk
	}
	if mk := castJSON(from, to); mk != nil {
		return mk
	}
	fs, ts := from.Kind() == types.KindString && stringlike(from), to.Kind() == types.KindString && stringlike(to)
	switch {
	case fs && ts:
		switch to.OID {
		case types.OIDName:
			return f1(truncName)
		case types.OIDChar:
			return f1(func(s string) string { return s[:min(len(s), 1)] })
		case types.OIDBpchar:
			return f1(func(s string) string { return strings.TrimRight(s, " ") })
		}
		return same
	case ts:
		return boxed1(func(ctx *Ctx, d types.Datum) (types.Datum, error) {
			s, err := textOf(ctx, from, d)
			return types.NewString(s), err
		})
	case fs:
		return boxed1(func(ctx *Ctx, d types.Datum) (types.Datum, error) { return fromText(ctx, to, d.Str()) })
	}
	// What is left goes through text: json to jsonb.
	if from.OID == types.OIDVoid || to.OID == types.OIDVoid {
		return nil
	}
	if castsThroughText(from) && castsThroughText(to) {
		return boxed1(func(ctx *Ctx, d types.Datum) (types.Datum, error) {
			return types.ParseText(to.Base(), string(types.AppendText(nil, from, d, ctx.style())), ctx.style())
		})
	}
	return nil
}

func castsThroughText(t types.Type) bool { return t.OID == types.OIDJSON || t.OID == types.OIDJSONB }

// stringlike types are held as the text they are.
func stringlike(t types.Type) bool {
	switch t.OID {
	case types.OIDText, types.OIDVarchar, types.OIDBpchar, types.OIDName, types.OIDChar, types.OIDUnknown, types.OIDNodeTree:
		return true
	}
	return false
}

// boxed1 is boxed for one argument.
func boxed1(f func(ctx *Ctx, d types.Datum) (types.Datum, error)) maker {
	return boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) { return f(ctx, a[0]) })
}

func truncName(s string) string {
	if len(s) > 63 {
		n := 63
		for n > 0 && s[n]&0xc0 == 0x80 {
			n--
		}
		s = s[:n]
	}
	return s
}

// textOf is d cast to text: its output form, except that booleans are written out and reg* types by name.
func textOf(ctx *Ctx, t types.Type, d types.Datum) (string, error) {
	if t.OID == types.OIDBool {
		if d.Bool() {
			return "true", nil
		}
		return "false", nil
	}
	return output(ctx, t, d)
}

// output is d's output form; reg* types by name where the session knows it.
func output(ctx *Ctx, t types.Type, d types.Datum) (string, error) {
	switch {
	case t.OID == types.OIDRegtype:
		if rt, ok := types.ByOID(uint32(d.Int())); ok {
			return label(rt), nil
		}
	case t.IsReg():
		return regOut(ctx, typname(t)+"out", t, d)
	}
	return string(types.AppendText(nil, t, d, ctx.style())), nil
}

func regOut(ctx *Ctx, name string, t types.Type, d types.Datum) (string, error) {
	if ctx == nil || ctx.Sys == nil || d.Int() == 0 {
		return string(types.AppendText(nil, t, d, nil)), nil
	}
	s, err := ctx.Sys.CallSystem(name, []types.Datum{d}, types.Text)
	if err != nil {
		return "", err
	}
	return s.Str(), nil
}

// fromText reads a value from its input form; reg* types by name.
func fromText(ctx *Ctx, to types.Type, s string) (types.Datum, error) {
	if to.IsReg() && !isNumber(s) && s != "-" {
		if to.OID == types.OIDRegtype {
			t, ok := types.ByName(s)
			if !ok {
				return types.Datum{}, sqlerr.New(sqlerr.UndefinedObject, "type \"%s\" does not exist", s)
			}
			return types.NewInt(int64(t.OID)), nil
		}
		return ctx.system(typname(to)+"in", []types.Datum{types.NewString(s)}, to)
	}
	if to.OID == types.OIDJSONPath {
		p, err := jsonpath.Parse(s)
		if err != nil {
			return types.Datum{}, err
		}
		return types.NewString(p.String()), nil
	}
	return types.ParseText(to.Base(), s, ctx.style())
}

func castArray(from, to types.Type) maker {
	return boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
		l, err := mapList(a[0].List(), to, func(items []types.Datum) ([]types.Datum, error) {
			col := chunk.New(from, len(items))
			for _, d := range items {
				col.Append(d)
			}
			in := &Ctx{Style: ctx.Style, Sys: ctx.Sys} // an item's error is the row's
			out, err := castColumn(in, col, from, to.Base(), true, len(items))
			if err != nil {
				return nil, err
			}
			res := make([]types.Datum, len(items))
			for i := range res {
				res[i] = out.Datum(i)
			}
			return res, nil
		})
		if err != nil {
			return types.Datum{}, err
		}
		return types.NewList(l), nil
	})
}

// mapList rebuilds a list of any number of dimensions with each run of scalar items mapped.
func mapList(l *types.List, elem types.Type, f func([]types.Datum) ([]types.Datum, error)) (*types.List, error) {
	out := &types.List{Elem: elem, Lower: l.Lower}
	if len(l.Items) > 0 && l.Items[0].Kind() == types.KindList {
		for _, d := range l.Items {
			sub, err := mapList(d.List(), elem, f)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, types.NewList(sub))
		}
		return out, nil
	}
	var err error
	out.Items, err = f(l.Items)
	return out, err
}

func intBits(t types.Type) uint {
	switch t.OID {
	case types.OIDInt2:
		return 16
	case types.OIDInt4:
		return 32
	case types.OIDInt8:
		return 64
	}
	return 0
}

// isOid reports whether t is held as an unsigned 32-bit number.
func isOid(t types.Type) bool { return t.OID == types.OIDOid || t.IsReg() }

// castNumber converts among numbers, booleans and object identifiers; nil: not its business.
func castNumber(from, to types.Type) maker {
	fb, tb := intBits(from), intBits(to)
	switch {
	case fb > 0 && tb > 0:
		if tb >= fb {
			return same
		}
		return e1(func(v int64) (int64, error) {
			if !inRange(v, tb) {
				return 0, errIntRange(tb)
			}
			return v, nil
		})
	case fb > 0 && isOid(to):
		return e1(func(v int64) (int64, error) {
			if fb == 64 && (v < 0 || v > math.MaxUint32) {
				return 0, sqlerr.New(sqlerr.OutOfRange, "OID out of range")
			}
			return int64(uint32(v)), nil
		})
	case isOid(from) && isOid(to):
		return same
	case isOid(from) && tb > 0:
		return f1(func(v int64) int64 {
			if tb == 32 {
				return int64(int32(v))
			}
			return v
		})
	case fb > 0 && isFloat(to):
		if to.OID == types.OIDFloat4 {
			return f1(func(v int64) float64 { return float64(float32(v)) })
		}
		return f1(func(v int64) float64 { return float64(v) })
	case fb > 0 && to.OID == types.OIDNumeric:
		return f1(types.NewDecimalInt)
	case from.OID == types.OIDInt4 && to.OID == types.OIDBool:
		return f1(func(v int64) bool { return v != 0 })
	case from.OID == types.OIDBool && to.OID == types.OIDInt4:
		return f1(func(v bool) int64 {
			if v {
				return 1
			}
			return 0
		})
	case from.OID == types.OIDInt4 && to.OID == types.OIDChar:
		return e1(func(v int64) (string, error) {
			if v < -128 || v > 127 {
				return "", sqlerr.New(sqlerr.OutOfRange, "\"char\" out of range")
			}
			return string([]byte{byte(v)}), nil
		})
	case from.OID == types.OIDChar && to.OID == types.OIDInt4:
		return f1(func(s string) int64 {
			if s == "" {
				return 0
			}
			return int64(int8(s[0]))
		})
	case isFloat(from) && tb > 0:
		return e1(func(v float64) (int64, error) { return floatToInt(v, tb) })
	case isFloat(from) && isFloat(to):
		if to.OID == types.OIDFloat8 {
			return same
		}
		return e1(toSingle)
	case isFloat(from) && to.OID == types.OIDNumeric:
		if from.OID == types.OIDFloat4 {
			return f1(types.DecimalFromFloat4)
		}
		return f1(types.DecimalFromFloat8)
	case from.OID == types.OIDNumeric && tb > 0:
		name := types.FormatType(to)
		return e1(func(d types.Decimal) (int64, error) {
			v, err := d.Int64(name)
			if err == nil && !inRange(v, tb) {
				err = errIntRange(tb)
			}
			return v, err
		})
	case from.OID == types.OIDNumeric && isFloat(to):
		return e1(func(d types.Decimal) (float64, error) {
			v := d.Float64()
			over := math.IsInf(v, 0) && d.IsFinite()
			if to.OID == types.OIDFloat4 && !over {
				s := float64(float32(v))
				over, v = math.IsInf(s, 0) && !math.IsInf(v, 0) || s == 0 && v != 0, s
			}
			if over || v == 0 && d.Sign() != 0 {
				return 0, sqlerr.New(sqlerr.OutOfRange, "\"%s\" is out of range for type %s", d.String(), types.FormatType(to))
			}
			return v, nil
		})
	}
	return nil
}

// floatToInt rounds half to even; error 22003 out of range.
func floatToInt(v float64, bits uint) (int64, error) {
	v = math.RoundToEven(v)
	limit := math.Ldexp(1, int(bits-1))
	if !(v >= -limit && v < limit) {
		return 0, errIntRange(bits)
	}
	return int64(v), nil
}

// castTime converts among dates, times, timestamps and intervals; nil: not its business.
func castTime(from, to types.Type) maker {
	switch from.OID {
	case types.OIDDate:
		switch to.OID {
		case types.OIDTimestamp:
			return e1(types.DateToTimestamp)
		case types.OIDTimestamptz:
			return lift1(func(ctx *Ctx, day int64) (int64, error) {
				ts, err := types.DateToTimestamp(day)
				if err != nil {
					return 0, err
				}
				return types.FromZone(ts, ctx.zone())
			})
		}
	case types.OIDTime:
		if to.OID == types.OIDInterval {
			return f1(func(us int64) types.Interval { return types.Interval{Micros: us} })
		}
	case types.OIDTimestamp:
		switch to.OID {
		case types.OIDDate:
			return f1(types.TimestampToDate)
		case types.OIDTime:
			return timeOfDay(func(_ *Ctx, ts int64) int64 { return ts })
		case types.OIDTimestamptz:
			return lift1(func(ctx *Ctx, ts int64) (int64, error) { return types.FromZone(ts, ctx.zone()) })
		}
	case types.OIDTimestamptz:
		switch to.OID {
		case types.OIDDate:
			return lift1(func(ctx *Ctx, ts int64) (int64, error) {
				return types.TimestampToDate(types.InZone(ts, ctx.zone())), nil
			})
		case types.OIDTime:
			return timeOfDay(func(ctx *Ctx, ts int64) int64 { return types.InZone(ts, ctx.zone()) })
		case types.OIDTimestamp:
			return lift1(func(ctx *Ctx, ts int64) (int64, error) { return types.InZone(ts, ctx.zone()), nil })
		}
	case types.OIDInterval:
		if to.OID == types.OIDTime {
			return f1(func(iv types.Interval) int64 { return types.AddIntervalTime(0, iv) })
		}
	}
	return nil
}

// timeOfDay is the time of a timestamp; of an infinite one, NULL.
func timeOfDay(local func(ctx *Ctx, ts int64) int64) maker {
	return boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
		ts := a[0].Int()
		if types.InfiniteTimestamp(ts) {
			return types.Datum{}, nil
		}
		return types.NewInt(types.TimestampToTime(local(ctx, ts))), nil
	})
}

// castFuncs adds the functions that are named like the type they convert to: int4(x), date(x), text(x).
func castFuncs(r *registry) {
	for line := range strings.Lines(casts) {
		from, targets, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(targets) {
			to, _, _ := strings.Cut(f, "/")
			mk := caster(sigType(from), sigType(to))
			if mk == nil || strings.HasPrefix(to, "reg") || r.has(to, sigType(from)) {
				continue
			}
			word := ""
			if castVolatility(sigType(from), sigType(to)) == Stable {
				word = " stable"
			}
			r.def(to+"("+from+") "+to+word, mk)
		}
	}
}

func (r *registry) has(name string, arg types.Type) bool {
	for _, f := range r.funcs[name] {
		if exact(f.Args, []types.Type{arg}) {
			return true
		}
	}
	return false
}
