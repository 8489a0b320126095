package expr

import (
	"cmp"
	"strings"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A cmpOp is a comparison operator.
type cmpOp uint8

const (
	opEq cmpOp = iota
	opNe
	opLt
	opLe
	opGt
	opGe
)

var cmpNames = [...]string{"=", "<>", "<", "<=", ">", ">="}

// flip is the operator with its operands exchanged.
func (op cmpOp) flip() cmpOp { return [...]cmpOp{opEq, opNe, opGt, opGe, opLt, opLe}[op] }

// holds says what op makes of a three-way comparison.
func (op cmpOp) holds(c int) bool {
	switch op {
	case opEq:
		return c == 0
	case opNe:
		return c != 0
	case opLt:
		return c < 0
	case opLe:
		return c <= 0
	case opGt:
		return c > 0
	}
	return c >= 0
}

// native says that a function compares the Go values of its arguments with op.
type native struct {
	op cmpOp
	ok bool
}

// comparisons adds = <> < <= > >= over all types, and IS [NOT] DISTINCT FROM made of =.
func comparisons(r *registry) {
	ints := [][2]string{
		{"int2", "int2"}, {"int2", "int4"}, {"int2", "int8"}, {"int4", "int2"}, {"int4", "int4"}, {"int4", "int8"},
		{"int8", "int2"}, {"int8", "int4"}, {"int8", "int8"}, {"oid", "oid"}, {"date", "date"}, {"time", "time"},
		{"timestamp", "timestamp"}, {"timestamptz", "timestamptz"},
	}
	strs := [][2]string{{"text", "text"}, {"name", "name"}, {"name", "text"}, {"text", "name"}, {"char", "char"}, {"bytea", "bytea"}, {"uuid", "uuid"}}
	floats := [][2]string{{"float4", "float4"}, {"float4", "float8"}, {"float8", "float4"}, {"float8", "float8"}}
	for op := opEq; op <= opGe; op++ {
		for _, p := range ints {
			r.compare(op, p, "", nativeKernel[int64](op), true)
		}
		for _, p := range strs {
			r.compare(op, p, "", nativeKernel[string](op), true)
		}
		for _, p := range floats {
			r.compare(op, p, "", floatKernel(op), false)
		}
		by := func(mk maker, a, b, words string) { r.compare(op, [2]string{a, b}, words, mk, false) }
		by(f2(func(a, b bool) bool { return op.holds(cmpBool(a, b)) }), "bool", "bool", "")
		by(f2(func(a, b types.Decimal) bool { return op.holds(a.Cmp(b)) }), "numeric", "numeric", "")
		by(f2(func(a, b types.Interval) bool { return op.holds(a.Cmp(b)) }), "interval", "interval", "")
		by(f2(func(a, b *types.List) bool { return op.holds(a.Cmp(b)) }), "anyarray", "anyarray", "")
		by(f2(func(a, b *types.List) bool { return op.holds(a.Cmp(b)) }), "oidvector", "oidvector", "")
		by(f2(func(a, b string) bool { return op.holds(cmp.Compare(trimPad(a), trimPad(b))) }), "bpchar", "bpchar", "")
		date := func(flip bool, zoned bool) maker {
			return lift2(func(ctx *Ctx, a, b int64) (bool, error) {
				op := op
				if flip {
					a, b, op = b, a, op.flip()
				}
				return op.holds(cmpDate(ctx, a, b, zoned)), nil
			})
		}
		by(date(false, false), "date", "timestamp", "")
		by(date(true, false), "timestamp", "date", "")
		by(date(false, true), "date", "timestamptz", "stable")
		by(date(true, true), "timestamptz", "date", "stable")
		by(lift2(func(ctx *Ctx, a, b int64) (bool, error) { return op.holds(cmp.Compare(zoned(ctx, a), b)), nil }),
			"timestamp", "timestamptz", "stable")
		by(lift2(func(ctx *Ctx, a, b int64) (bool, error) { return op.holds(cmp.Compare(a, zoned(ctx, b))), nil }),
			"timestamptz", "timestamp", "stable")
	}
	for _, op := range []cmpOp{opEq, opNe} {
		r.compare(op, [2]string{"xid", "xid"}, "", nativeKernel[int64](op), true)
		r.compare(op, [2]string{"xid", "int4"}, "", nativeKernel[int64](op), true)
	}
	for _, eq := range r.ops["="] {
		for _, not := range []bool{false, true} {
			f := *eq
			f.Name, f.Strict, f.native = "IS DISTINCT FROM", false, native{}
			if not {
				f.Name = "IS NOT DISTINCT FROM"
			}
			f.OID, f.Kernel = 0, distinct(eq, not)
			r.ops[f.Name] = append(r.ops[f.Name], &f) // no operator of the catalogs
		}
	}
}

func (r *registry) compare(op cmpOp, p [2]string, words string, mk maker, plain bool) {
	r.def(cmpNames[op]+"("+p[0]+","+p[1]+") bool total "+words, mk)
	if plain {
		r.allFuncs[len(r.allFuncs)-1].native = native{op, true}
	}
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// trimPad takes off the padding of char(n), which does not count.
func trimPad(s string) string { return strings.TrimRight(s, " ") }

// zoned reads a timestamp as one with time zone; out of range goes to infinity.
func zoned(ctx *Ctx, ts int64) int64 {
	out, err := types.FromZone(ts, ctx.zone())
	if err != nil {
		if ts < 0 {
			return types.TimestampNegInfinity
		}
		return types.TimestampInfinity
	}
	return out
}

// cmpDate compares a day with a timestamp.
func cmpDate(ctx *Ctx, day, ts int64, tz bool) int {
	t, err := types.DateToTimestamp(day)
	if err != nil { // beyond all finite timestamps
		if ts == types.TimestampInfinity {
			return -1
		}
		return 1
	}
	if tz {
		t = zoned(ctx, t)
	}
	return cmp.Compare(t, ts)
}

func distinct(eq *Func, not bool) Kernel {
	return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
		col, err := eq.Kernel(ctx, args, n)
		if err != nil {
			return nil, err
		}
		v := chunk.Of[bool](col)
		out := make([]bool, n)
		am, bm := mask(args[0].Len(), n), mask(args[1].Len(), n)
		for i := range out {
			same := v.Data[i]
			if v.Null(i) {
				same = args[0].Null(i&am) && args[1].Null(i&bm)
			}
			out[i] = same == not
		}
		return chunk.NewVec(types.Bool, out, nil), nil
	}
}

// nativeKernel compares with Go's operators; NULL rows compare zero values and are marked.
func nativeKernel[T cmp.Ordered](op cmpOp) maker {
	return func(*Func) Kernel {
		return func(_ *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[T](args[0]), chunk.Of[T](args[1])
			out := make([]bool, n)
			switch {
			case len(a.Data) == n && len(b.Data) == n:
				compareCols(op, a.Data, b.Data, out)
			case len(b.Data) == 1 && len(a.Data) == n:
				compareConst(op, a.Data, b.Data[0], out)
			case len(a.Data) == 1 && len(b.Data) == n:
				compareConst(op.flip(), b.Data, a.Data[0], out)
			default:
				compareConst(op, expandVec(a, n).(*chunk.Vec[T]).Data, b.Data[0], out)
			}
			nulls := unionNulls(n, args...)
			clearNulls(out, nulls)
			return chunk.NewVec(types.Bool, out, nulls), nil
		}
	}
}

func compareCols[T cmp.Ordered](op cmpOp, a, b []T, out []bool) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case opEq:
		for i := range out {
			out[i] = a[i] == b[i]
		}
	case opNe:
		for i := range out {
			out[i] = a[i] != b[i]
		}
	case opLt:
		for i := range out {
			out[i] = a[i] < b[i]
		}
	case opLe:
		for i := range out {
			out[i] = a[i] <= b[i]
		}
	case opGt:
		for i := range out {
			out[i] = a[i] > b[i]
		}
	case opGe:
		for i := range out {
			out[i] = a[i] >= b[i]
		}
	}
}

func compareConst[T cmp.Ordered](op cmpOp, a []T, b T, out []bool) {
	a = a[:len(out)]
	switch op {
	case opEq:
		for i := range out {
			out[i] = a[i] == b
		}
	case opNe:
		for i := range out {
			out[i] = a[i] != b
		}
	case opLt:
		for i := range out {
			out[i] = a[i] < b
		}
	case opLe:
		for i := range out {
			out[i] = a[i] <= b
		}
	case opGt:
		for i := range out {
			out[i] = a[i] > b
		}
	case opGe:
		for i := range out {
			out[i] = a[i] >= b
		}
	}
}

// floatKernel compares with NaN equal to itself and above all else.
func floatKernel(op cmpOp) maker {
	return func(*Func) Kernel {
		return func(_ *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[float64](args[0]), chunk.Of[float64](args[1])
			am, bm := mask(len(a.Data), n), mask(len(b.Data), n)
			out := make([]bool, n)
			switch op {
			case opEq, opNe:
				for i := range out {
					x, y := a.Data[i&am], b.Data[i&bm]
					out[i] = (x == y || x != x && y != y) == (op == opEq)
				}
			case opLt, opGe: // x < y, NaN aside: y is NaN and x is not
				for i := range out {
					x, y := a.Data[i&am], b.Data[i&bm]
					out[i] = (x < y || y != y && x == x) == (op == opLt)
				}
			case opGt, opLe:
				for i := range out {
					x, y := a.Data[i&am], b.Data[i&bm]
					out[i] = (x > y || x != x && y == y) == (op == opGt)
				}
			}
			nulls := unionNulls(n, args...)
			clearNulls(out, nulls)
			return chunk.NewVec(types.Bool, out, nulls), nil
		}
	}
}
