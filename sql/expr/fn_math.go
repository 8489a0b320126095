package expr

import (
	"math"
	"math/big"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func errDomain() error { return sqlerr.New(sqlerr.OutOfRange, "input is out of range") }

// maths adds the functions over numbers.
func maths(r *registry) {
	for _, t := range []struct {
		name string
		bits uint
	}{{"int2", 16}, {"int4", 32}, {"int8", 64}} {
		r.def("abs("+t.name+") "+t.name, e1(func(x int64) (int64, error) { return absInt(x, t.bits) }))
		r.def("mod("+t.name+","+t.name+") "+t.name, e2(modInt))
	}
	for _, t := range []struct {
		name string
		bits uint
	}{{"int4", 32}, {"int8", 64}} {
		r.def("gcd("+t.name+","+t.name+") "+t.name, e2(func(a, b int64) (int64, error) { return absInt(gcd(a, b), t.bits) }))
		r.def("lcm("+t.name+","+t.name+") "+t.name, e2(func(a, b int64) (int64, error) {
			if a == 0 || b == 0 {
				return 0, nil
			}
			p, err := mulInt(a/gcd(a, b), b, t.bits)
			if err != nil {
				return 0, err
			}
			return absInt(p, t.bits)
		}))
		r.def("to_hex("+t.name+") text", f1(func(v int64) string { return toHex(v, t.bits) }))
	}
	r.defs(f1(math.Abs), "abs(float4) float4", "abs(float8) float8")
	r.def("abs(numeric) numeric", f1(types.Decimal.Abs))

	float := func(names []string, f func(float64) float64) {
		for _, n := range names {
			r.def(n+"(float8) float8", f1(f))
		}
	}
	float([]string{"ceil", "ceiling"}, math.Ceil)
	float([]string{"floor"}, math.Floor)
	float([]string{"round"}, math.RoundToEven)
	float([]string{"trunc"}, math.Trunc)
	float([]string{"cbrt"}, cbrt)
	float([]string{"radians"}, func(x float64) float64 { return x * (math.Pi / 180) })
	float([]string{"atan"}, exactAtan)
	float([]string{"tanh"}, math.Tanh)
	float([]string{"asinh"}, math.Asinh)
	float([]string{"sign"}, func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	})
	fails := func(name string, f func(float64) (float64, error)) { r.def(name+"(float8) float8", e1(f)) }
	fails("degrees", func(x float64) (float64, error) { return finite(x/(math.Pi/180), x) })
	fails("sqrt", sqrtFloat)
	fails("exp", func(x float64) (float64, error) {
		v := exactExp(x)
		if v == 0 && !math.IsInf(x, -1) {
			return 0, errUnderflow()
		}
		return finite(v, x)
	})
	log := func(f func(float64) float64) func(float64) (float64, error) {
		return func(x float64) (float64, error) {
			switch {
			case x == 0:
				return 0, sqlerr.New("2201E", "cannot take logarithm of zero")
			case x < 0:
				return 0, sqlerr.New("2201E", "cannot take logarithm of a negative number")
			}
			return f(x), nil
		}
	}
	fails("ln", log(exactLog))
	fails("log", log(exactLog10))
	fails("log10", log(exactLog10))
	bounded := func(ok func(float64) bool, f func(float64) float64) func(float64) (float64, error) {
		return func(x float64) (float64, error) {
			if x == x && !ok(x) {
				return 0, errDomain()
			}
			return finite(f(x), x)
		}
	}
	unit := func(x float64) bool { return x >= -1 && x <= 1 }
	noInf := func(x float64) bool { return !math.IsInf(x, 0) }
	fails("acos", bounded(unit, exactAcos))
	fails("asin", bounded(unit, exactAsin))
	fails("sin", bounded(noInf, exactSin))
	fails("cos", bounded(noInf, exactCos))
	fails("tan", bounded(noInf, exactTangent))
	unbounded := func(f func(float64) float64) func(float64) (float64, error) {
		return func(x float64) (float64, error) {
			if math.IsInf(x, 0) {
				return 0, errDomain()
			}
			return f(x), nil
		}
	}
	fails("cot", unbounded(func(x float64) float64 { return 1 / exactTangent(x) }))
	float([]string{"sinh"}, math.Sinh)
	float([]string{"cosh"}, math.Cosh)
	fails("acosh", bounded(func(x float64) bool { return x >= 1 }, math.Acosh))
	fails("atanh", func(x float64) (float64, error) {
		if x < -1 || x > 1 {
			return 0, errDomain()
		}
		return math.Atanh(x), nil
	})
	fails("sind", bounded(noInf, sinDegrees))
	fails("cosd", bounded(noInf, func(x float64) float64 { return sinDegrees(math.Mod(x, 360) + 90) }))
	fails("tand", unbounded(func(x float64) float64 {
		return exactTan(sinDegrees(x), sinDegrees(math.Mod(x, 360)+90))
	}))
	fails("cotd", unbounded(func(x float64) float64 {
		if x == 0 {
			return 1 / x
		}
		return exactTan(sinDegrees(math.Mod(x, 360)+90), sinDegrees(x))
	}))
	fails("asind", bounded(unit, func(x float64) float64 { return roundDegrees(exactAsin(x) * (180 / math.Pi)) }))
	fails("acosd", bounded(unit, func(x float64) float64 { return roundDegrees(exactAcos(x) * (180 / math.Pi)) }))
	float([]string{"atand"}, func(x float64) float64 { return roundDegrees(exactAtan(x) * (180 / math.Pi)) })
	r.def("atan2d(float8,float8) float8", f2(func(y, x float64) float64 { return roundDegrees(math.Atan2(y, x) * (180 / math.Pi)) }))
	r.def("atan2(float8,float8) float8", f2(math.Atan2))
	r.defs(e2(powFloat), "power(float8,float8) float8", "pow(float8,float8) float8")
	r.def("pi() float8", value(types.NewFloat(math.Pi)))
	r.def("random() float8 volatile", boxed(func(ctx *Ctx, _ []types.Datum) (types.Datum, error) {
		v, err := ctx.random()
		return types.NewFloat(float64(v>>11) / (1 << 53)), err
	}))
	r.def("setseed(float8) void volatile", boxed(func(*Ctx, []types.Datum) (types.Datum, error) { return types.NewString(""), nil }))

	dec := func(names []string, f func(types.Decimal) types.Decimal) {
		for _, n := range names {
			r.def(n+"(numeric) numeric", f1(f))
		}
	}
	dec([]string{"ceil", "ceiling"}, types.Decimal.Ceil)
	dec([]string{"floor"}, types.Decimal.Floor)
	dec([]string{"round"}, func(d types.Decimal) types.Decimal { return d.Round(0) })
	dec([]string{"trunc"}, func(d types.Decimal) types.Decimal { return d.Trunc(0) })
	dec([]string{"sign"}, func(d types.Decimal) types.Decimal {
		if d.IsNaN() {
			return d
		}
		return types.NewDecimalInt(int64(d.Sign()))
	})
	dec([]string{"trim_scale"}, func(d types.Decimal) types.Decimal {
		if !d.IsFinite() {
			return d
		}
		return d.Round(d.MinScale())
	})
	r.def("round(numeric,int4) numeric", f2(func(d types.Decimal, n int64) types.Decimal { return d.Round(int(n)) }))
	r.def("trunc(numeric,int4) numeric", f2(func(d types.Decimal, n int64) types.Decimal { return d.Trunc(int(n)) }))
	r.def("sqrt(numeric) numeric", e1(types.Decimal.Sqrt))
	r.def("exp(numeric) numeric", e1(types.Decimal.Exp))
	r.def("ln(numeric) numeric", e1(types.Decimal.Ln))
	r.defs(e1(types.Decimal.Log10), "log(numeric) numeric", "log10(numeric) numeric")
	r.def("log(numeric,numeric) numeric", e2(func(base, x types.Decimal) (types.Decimal, error) { return x.Log(base) }))
	r.defs(e2(types.Decimal.Power), "power(numeric,numeric) numeric", "pow(numeric,numeric) numeric")
	r.def("mod(numeric,numeric) numeric", e2(types.Decimal.Mod))
	r.def("div(numeric,numeric) numeric", e2(types.Decimal.DivTrunc))
	r.def("gcd(numeric,numeric) numeric", e2(gcdDecimal))
	r.def("lcm(numeric,numeric) numeric", e2(func(a, b types.Decimal) (types.Decimal, error) {
		if !a.IsFinite() || !b.IsFinite() {
			return types.DecimalNaN, nil
		}
		scale := max(a.Scale(), b.Scale())
		if a.Sign() == 0 || b.Sign() == 0 {
			return types.NewDecimalInt(0).Round(scale), nil
		}
		g, err := gcdDecimal(a, b)
		if err != nil {
			return g, err
		}
		q, err := a.DivTrunc(g)
		if err != nil {
			return q, err
		}
		return q.Mul(b).Abs().Round(scale), nil
	}))
	special := func(f func(types.Decimal) int) maker {
		return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			d := a[0].Decimal()
			if !d.IsFinite() {
				return types.Datum{}, nil
			}
			return types.NewInt(int64(f(d))), nil
		})
	}
	r.def("scale(numeric) int4", special(types.Decimal.Scale))
	r.def("min_scale(numeric) int4", special(types.Decimal.MinScale))
	r.def("factorial(int8) numeric", e1(func(n int64) (types.Decimal, error) {
		if n < 0 {
			return types.Decimal{}, sqlerr.New(sqlerr.OutOfRange, "factorial of a negative number is undefined")
		}
		if n > 32177 {
			return types.Decimal{}, sqlerr.New(sqlerr.OutOfRange, "value overflows numeric format")
		}
		return types.NewDecimalBig(new(big.Int).MulRange(1, max(n, 1)), 0), nil
	}))

	r.def("width_bucket(float8,float8,float8,int4) int4", lift4(func(_ *Ctx, x, lo, hi float64, n int64) (int64, error) {
		return widthBucket(x, lo, hi, n)
	}))
	r.def("width_bucket(numeric,numeric,numeric,int4) int4", lift4(func(_ *Ctx, x, lo, hi types.Decimal, n int64) (int64, error) {
		return widthBucketDecimal(x, lo, hi, n)
	}))
	r.def("width_bucket(anycompatible,anycompatiblearray) int4", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if nested(a[1].List()) {
			return types.Datum{}, sqlerr.New("2202E", "thresholds must be one-dimensional array")
		}
		n := 0
		for _, b := range a[1].List().Items {
			if b.IsNull() {
				return types.Datum{}, sqlerr.New("22004", "thresholds array must not contain NULLs")
			}
			if types.Compare(a[0], b) < 0 {
				break
			}
			n++
		}
		return types.NewInt(int64(n)), nil
	}))

	pick := func(want int) maker {
		return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			var best types.Datum
			for _, d := range a {
				if !d.IsNull() && (best.IsNull() || types.Compare(d, best) == want) {
					best = d
				}
			}
			return best, nil
		})
	}
	r.def("greatest(variadic anycompatible) anycompatible lax", pick(1))
	r.def("least(variadic anycompatible) anycompatible lax", pick(-1))
	count := func(null bool) maker {
		return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			n := 0
			for _, d := range a {
				if d.IsNull() == null {
					n++
				}
			}
			return types.NewInt(int64(n)), nil
		})
	}
	r.def("num_nulls(variadic any) int4 lax", count(true))
	r.def("num_nonnulls(variadic any) int4 lax", count(false))
}

// cbrt is math.Cbrt, one step of Newton's in higher precision nearer.
func cbrt(x float64) float64 {
	if math.Abs(x) > 1e290 && !math.IsInf(x, 0) {
		return 1024 * 1024 * cbrt(x/(1<<60))
	}
	r := math.Cbrt(x)
	if r == 0 || r-r != 0 || math.Abs(x) < 1e-290 {
		return r
	}
	sq := r * r
	cube := sq * r
	rest := math.FMA(sq, r, -cube) + math.FMA(r, r, -sq)*r // cube + rest is r³
	return r - ((cube-x)+rest)/(3*sq)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		if b == -1 { // the smallest integer does not divide by -1
			return 1
		}
		a, b = b, a%b
	}
	return a
}

func gcdDecimal(a, b types.Decimal) (types.Decimal, error) {
	if !a.IsFinite() || !b.IsFinite() {
		return types.DecimalNaN, nil
	}
	scale := max(a.Scale(), b.Scale())
	x, y := a.Round(scale).Big(), b.Round(scale).Big()
	return types.NewDecimalBig(new(big.Int).GCD(nil, nil, x.Abs(x), y.Abs(y)), scale), nil
}

func toHex(v int64, bits uint) string {
	u := uint64(v)
	if bits == 32 {
		u = uint64(uint32(v))
	}
	return string(appendHex(nil, u))
}

func appendHex(dst []byte, u uint64) []byte {
	return new(big.Int).SetUint64(u).Append(dst, 16)
}

// sinDegrees is the sine of an angle in degrees, exact where it is rational.
func sinDegrees(x float64) float64 {
	x = math.Mod(x, 360)
	sign := 1.0
	if x < 0 {
		x, sign = -x, -1
	}
	if x > 180 {
		x, sign = 360-x, -sign
	}
	if x > 90 {
		x = 180 - x
	}
	switch x {
	case 0:
		return 0
	case 30:
		return sign * 0.5
	case 90:
		return sign
	}
	if x > 60 {
		return sign * math.Cos((90-x)*(math.Pi/180))
	}
	return sign * math.Sin(x*(math.Pi/180))
}

func exactTan(sin, cos float64) float64 {
	if math.Abs(sin) == math.Abs(cos) {
		return math.Copysign(1, sin*cos)
	}
	v := sin / cos
	if v == 0 {
		return 0
	}
	return v
}

// roundDegrees takes away the last bits' noise at whole degrees.
func roundDegrees(x float64) float64 {
	if r := math.Round(x); r != 0 && math.Abs(x-r) < 1e-13*math.Max(1, math.Abs(r)) {
		return r
	}
	return x
}

func errBucket(text string) error { return sqlerr.New("2201G", "%s", text) }

func widthBucket(x, lo, hi float64, n int64) (int64, error) {
	switch {
	case n <= 0:
		return 0, errBucket("count must be greater than zero")
	case x != x || lo != lo || hi != hi:
		return 0, errBucket("operand, lower bound, and upper bound cannot be NaN")
	case math.IsInf(lo, 0) || math.IsInf(hi, 0):
		return 0, errBucket("lower and upper bounds must be finite")
	case lo == hi:
		return 0, errBucket("lower bound cannot equal upper bound")
	}
	down := lo > hi
	switch {
	case !down && x < lo || down && x > lo:
		return 0, nil
	case !down && x >= hi || down && x <= hi:
		if n == math.MaxInt32 {
			return 0, errIntRange(32)
		}
		return n + 1, nil
	}
	// Halves keep the difference of huge bounds finite.
	part := (x/2 - lo/2) / (hi/2 - lo/2)
	if d := hi - lo; !math.IsInf(d, 0) {
		part = (x - lo) / d
	}
	if part >= 1 { // by rounding
		return n + 1, nil
	}
	return int64(float64(n)*part) + 1, nil
}

func widthBucketDecimal(x, lo, hi types.Decimal, n int64) (int64, error) {
	switch {
	case n <= 0:
		return 0, errBucket("count must be greater than zero")
	case x.IsNaN() || lo.IsNaN() || hi.IsNaN():
		return 0, errBucket("operand, lower bound, and upper bound cannot be NaN")
	case !lo.IsFinite() || !hi.IsFinite():
		return 0, errBucket("lower and upper bounds must be finite")
	}
	c := lo.Cmp(hi)
	switch {
	case c == 0:
		return 0, errBucket("lower bound cannot equal upper bound")
	case x.Cmp(lo)*c > 0:
		return 0, nil
	case x.Cmp(hi)*c <= 0:
		if n == math.MaxInt32 {
			return 0, errIntRange(32)
		}
		return n + 1, nil
	}
	q, err := x.Sub(lo).Mul(types.NewDecimalInt(n)).DivTrunc(hi.Sub(lo))
	if err != nil {
		return 0, err
	}
	v, err := q.Int64("integer")
	return v + 1, err
}
