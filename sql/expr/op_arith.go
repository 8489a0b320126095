package expr

import (
	"math"
	"math/bits"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func errDivZero() error { return sqlerr.New(sqlerr.DivisionByZero, "division by zero") }

func errIntRange(bits uint) error {
	name := "integer"
	switch bits {
	case 16:
		name = "smallint"
	case 64:
		name = "bigint"
	}
	return sqlerr.New(sqlerr.OutOfRange, "%s out of range", name)
}

func errOverflow() error  { return sqlerr.New(sqlerr.OutOfRange, "value out of range: overflow") }
func errUnderflow() error { return sqlerr.New(sqlerr.OutOfRange, "value out of range: underflow") }

// inRange reports whether v fits a signed integer of the given bits.
func inRange(v int64, bits uint) bool {
	return bits == 64 || uint64(v+1<<(bits-1))>>bits == 0
}

// arithmetic adds + - * / % ^ and the signs over numbers.
func arithmetic(r *registry) {
	widths := []struct {
		name string
		bits uint
	}{{"int2", 16}, {"int4", 32}, {"int8", 64}}
	for _, a := range widths {
		for _, b := range widths {
			w := a
			if b.bits > a.bits {
				w = b
			}
			args := "(" + a.name + "," + b.name + ") " + w.name
			r.def("+"+args, intKernel(w.bits, addInts))
			r.def("-"+args, intKernel(w.bits, subInts))
			r.def("*"+args, intKernel(w.bits, mulInts))
			r.def("/"+args, e2(func(x, y int64) (int64, error) { return divInt(x, y, w.bits) }))
			if a == b {
				r.def("%"+args, e2(modInt))
			}
		}
		r.def("+("+a.name+") "+a.name, f1(func(x int64) int64 { return x }))
		r.def("-("+a.name+") "+a.name, e1(func(x int64) (int64, error) { return subInt(0, x, a.bits) }))
		r.def("@("+a.name+") "+a.name, e1(func(x int64) (int64, error) { return absInt(x, a.bits) }))
	}
	for _, p := range [][3]string{{"float4", "float4", "float4"}, {"float4", "float8", "float8"}, {"float8", "float4", "float8"}, {"float8", "float8", "float8"}} {
		single := p[2] == "float4"
		args := "(" + p[0] + "," + p[1] + ") " + p[2]
		r.def("+"+args, floatArith(single, addFloats))
		r.def("-"+args, floatArith(single, subFloats))
		r.def("*"+args, floatArith(single, mulFloats))
		r.def("/"+args, floatArith(single, divFloats))
	}
	for _, t := range []string{"float4", "float8"} {
		r.def("+("+t+") "+t, f1(func(x float64) float64 { return x }))
		r.def("-("+t+") "+t+" total", f1(func(x float64) float64 { return -x }))
		r.def("@("+t+") "+t+" total", f1(math.Abs))
	}
	r.def("^(float8,float8) float8", e2(powFloat))
	r.def("|/(float8) float8", e1(sqrtFloat))
	r.def("||/(float8) float8", f1(cbrt))

	r.def("+(numeric,numeric) numeric", e2(func(a, b types.Decimal) (types.Decimal, error) { return checked(a.Add(b)) }))
	r.def("-(numeric,numeric) numeric", e2(func(a, b types.Decimal) (types.Decimal, error) { return checked(a.Sub(b)) }))
	r.def("*(numeric,numeric) numeric", e2(func(a, b types.Decimal) (types.Decimal, error) { return checked(a.Mul(b)) }))
	r.def("/(numeric,numeric) numeric", e2(func(a, b types.Decimal) (types.Decimal, error) {
		q, err := a.Div(b)
		if err != nil {
			return q, err
		}
		return checked(q)
	}))
	r.def("%(numeric,numeric) numeric", e2(types.Decimal.Mod))
	r.def("^(numeric,numeric) numeric", e2(types.Decimal.Power))
	r.def("+(numeric) numeric", f1(func(a types.Decimal) types.Decimal { return a }))
	r.def("-(numeric) numeric total", f1(types.Decimal.Neg))
	r.def("@(numeric) numeric total", f1(types.Decimal.Abs))
}

func checked(d types.Decimal) (types.Decimal, error) {
	if err := d.Check(); err != nil {
		return types.Decimal{}, err
	}
	return d, nil
}

// An intLoop computes into out and reports whether some row overflowed (maybe
// one that is NULL); it computes a single row with its check where one is given.
type intLoop struct {
	cols func(a, b, out []int64, bits uint) bool
	one  func(a, b int64, bits uint) (int64, error)
}

var (
	addInts = intLoop{
		cols: func(a, b, out []int64, bits uint) bool {
			if bits < 64 && len(a) == len(out) {
				return addNarrow(a, b, out, bits)
			}
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			var bad uint64
			for i := range out {
				x, y := a[i&am], b[i&bm]
				r := x + y
				out[i] = r
				bad |= uint64((x^r)&(y^r))>>63 | outside(r, bits)
			}
			return bad != 0
		},
		one: addInt,
	}
	subInts = intLoop{
		cols: func(a, b, out []int64, bits uint) bool {
			if bits < 64 && len(a) == len(out) {
				if len(b) == 1 {
					return addNarrow(a, []int64{-b[0]}, out, bits)
				}
				b = b[:len(out)]
				bad, half := uint64(0), int64(1)<<(bits-1)
				for i, x := range a {
					r := x - b[i]
					out[i] = r
					bad |= uint64(r + half)
				}
				return bad>>bits != 0
			}
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			var bad uint64
			for i := range out {
				x, y := a[i&am], b[i&bm]
				r := x - y
				out[i] = r
				bad |= uint64((x^y)&(x^r))>>63 | outside(r, bits)
			}
			return bad != 0
		},
		one: subInt,
	}
	mulInts = intLoop{
		cols: func(a, b, out []int64, bits uint) bool {
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			var bad uint64
			if bits == 64 {
				for i := range out {
					x, y := a[i&am], b[i&bm]
					out[i] = x * y
					if !inRange(x, 32) || !inRange(y, 32) {
						if _, err := mulInt(x, y, 64); err != nil {
							bad = 1
						}
					}
				}
				return bad != 0
			}
			half := int64(1) << (bits - 1)
			for i := range out {
				r := a[i&am] * b[i&bm]
				out[i] = r
				bad |= uint64(r + half)
			}
			return bad>>bits != 0
		},
		one: mulInt,
	}
)

// outside is not zero where r does not fit the bits.
func outside(r int64, bits uint) uint64 {
	if bits == 64 {
		return 0
	}
	return uint64(r+1<<(bits-1)) >> bits
}

// addNarrow adds b, a column or one value, to the column a where no sum can overflow an int64.
func addNarrow(a, b, out []int64, bits uint) bool {
	a = a[:len(out)]
	bad, half := uint64(0), int64(1)<<(bits-1)
	if len(b) == 1 {
		y := b[0]
		for i, x := range a {
			r := x + y
			out[i] = r
			bad |= uint64(r + half)
		}
		return bad>>bits != 0
	}
	b = b[:len(out)]
	for i, x := range a {
		r := x + b[i]
		out[i] = r
		bad |= uint64(r + half)
	}
	return bad>>bits != 0
}

func addInt(a, b int64, bits uint) (int64, error) {
	r := a + b
	if (a^r)&(b^r) < 0 || !inRange(r, bits) {
		return 0, errIntRange(bits)
	}
	return r, nil
}

func subInt(a, b int64, bits uint) (int64, error) {
	r := a - b
	if (a^b)&(a^r) < 0 || !inRange(r, bits) {
		return 0, errIntRange(bits)
	}
	return r, nil
}

func mulInt(a, b int64, width uint) (int64, error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// The signed high word, from the unsigned one.
	h := int64(hi) - (a>>63)&b - (b>>63)&a
	if r := int64(lo); h == r>>63 && inRange(r, width) {
		return r, nil
	}
	return 0, errIntRange(width)
}

func divInt(a, b int64, bits uint) (int64, error) {
	switch b {
	case 0:
		return 0, errDivZero()
	case -1:
		return subInt(0, a, bits)
	}
	return a / b, nil
}

func modInt(a, b int64) (int64, error) {
	switch b {
	case 0:
		return 0, errDivZero()
	case -1:
		return 0, nil
	}
	return a % b, nil
}

func absInt(a int64, bits uint) (int64, error) {
	if a < 0 {
		return subInt(0, a, bits)
	}
	return a, nil
}

// intKernel runs the loop over all rows; only if a row overflowed it looks for which.
func intKernel(bits uint, loop intLoop) maker {
	return func(f *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[int64](args[0]), chunk.Of[int64](args[1])
			out := newResult[int64](n, args...)
			if !loop.cols(a.Data, b.Data, out.data, bits) {
				if out.nulls != nil {
					for i, null := range out.nulls {
						if null {
							out.data[i] = 0
						}
					}
				}
				return out.column(f.Ret), nil
			}
			am, bm := mask(len(a.Data), n), mask(len(b.Data), n)
			for i := range out.data {
				if out.null(i) {
					out.data[i] = 0
					continue
				}
				v, err := loop.one(a.Data[i&am], b.Data[i&bm], bits)
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(f.Ret), nil
		}
	}
}

// A floatLoop computes into out; rows it calls suspect (infinite or zero
// results) are checked one by one.
type floatLoop struct {
	cols func(a, b, out []float64) (suspect bool)
	one  func(a, b float64) (float64, error)
}

var (
	addFloats = floatLoop{
		cols: func(a, b, out []float64) bool {
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			bad := false
			for i := range out {
				r := a[i&am] + b[i&bm]
				out[i] = r
				bad = bad || r-r != 0
			}
			return bad
		},
		one: func(a, b float64) (float64, error) { return finite(a+b, a, b) },
	}
	subFloats = floatLoop{
		cols: func(a, b, out []float64) bool {
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			bad := false
			for i := range out {
				r := a[i&am] - b[i&bm]
				out[i] = r
				bad = bad || r-r != 0
			}
			return bad
		},
		one: func(a, b float64) (float64, error) { return finite(a-b, a, b) },
	}
	mulFloats = floatLoop{
		cols: func(a, b, out []float64) bool {
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			bad := false
			for i := range out {
				r := a[i&am] * b[i&bm]
				out[i] = r
				bad = bad || r-r != 0 || r == 0
			}
			return bad
		},
		one: mulFloat,
	}
	divFloats = floatLoop{
		cols: func(a, b, out []float64) bool {
			am, bm := mask(len(a), len(out)), mask(len(b), len(out))
			bad := false
			for i := range out {
				r := a[i&am] / b[i&bm]
				out[i] = r
				bad = bad || r-r != 0 || r == 0
			}
			return bad
		},
		one: divFloat,
	}
)

// finite is r, unless it is infinite though no operand is.
func finite(r float64, operands ...float64) (float64, error) {
	if math.IsInf(r, 0) {
		for _, o := range operands {
			if math.IsInf(o, 0) {
				return r, nil
			}
		}
		return 0, errOverflow()
	}
	return r, nil
}

func mulFloat(a, b float64) (float64, error) {
	r := a * b
	if r == 0 && a != 0 && b != 0 {
		return 0, errUnderflow()
	}
	return finite(r, a, b)
}

func divFloat(a, b float64) (float64, error) {
	if b == 0 && a == a {
		return 0, errDivZero()
	}
	r := a / b
	if r == 0 && a != 0 && !math.IsInf(b, 0) {
		return 0, errUnderflow()
	}
	return finite(r, a)
}

// floatArith runs a loop; single rounds results to real, in which they may overflow too.
func floatArith(single bool, loop floatLoop) maker {
	return func(f *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			a, b := chunk.Of[float64](args[0]), chunk.Of[float64](args[1])
			out := newResult[float64](n, args...)
			if !loop.cols(a.Data, b.Data, out.data) && out.nulls == nil && !single {
				return out.column(f.Ret), nil
			}
			am, bm := mask(len(a.Data), n), mask(len(b.Data), n)
			for i := range out.data {
				if out.null(i) {
					out.data[i] = 0
					continue
				}
				x, y := a.Data[i&am], b.Data[i&bm]
				v, err := loop.one(x, y)
				if err == nil && single {
					v, err = toSingle(v)
				}
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(f.Ret), nil
		}
	}
}

// toSingle rounds a double to real; error 22003 where it does not fit.
func toSingle(v float64) (float64, error) {
	r := float64(float32(v))
	if math.IsInf(r, 0) && !math.IsInf(v, 0) {
		return 0, errOverflow()
	}
	if r == 0 && v != 0 {
		return 0, errUnderflow()
	}
	return r, nil
}

func sqrtFloat(x float64) (float64, error) {
	if x < 0 {
		return 0, sqlerr.New("2201F", "cannot take square root of a negative number")
	}
	return math.Sqrt(x), nil
}

func powFloat(x, y float64) (float64, error) {
	switch {
	case x == 0 && y < 0:
		return 0, sqlerr.New("2201F", "zero raised to a negative power is undefined")
	case x < 0 && y == y && y != math.Floor(y) && !math.IsInf(y, 0):
		return 0, sqlerr.New("2201F", "a negative number raised to a non-integer power yields a complex result")
	}
	r := exactPow(x, y)
	if r == 0 && x != 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return 0, errUnderflow()
	}
	return finite(r, x, y)
}
