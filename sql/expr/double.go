package expr

import "math"

// The elementary functions of package math err by a unit or two in the last
// place, where the C library that PostgreSQL calls rounds nearly always
// correctly. To give the same digits, results are refined in twice the
// precision: a dd is the unevaluated sum of two doubles (T. J. Dekker, 1971).
type dd struct{ hi, lo float64 }

func twoSum(a, b float64) dd {
	s := a + b
	t := s - a
	return dd{s, (a - (s - t)) + (b - t)}
}

func (a dd) add(b dd) dd {
	s := twoSum(a.hi, b.hi)
	t := s.lo + a.lo + b.lo
	hi := s.hi + t
	return dd{hi, t - (hi - s.hi)}
}

func (a dd) neg() dd { return dd{-a.hi, -a.lo} }

func (a dd) mul(b dd) dd {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p) + (a.hi*b.lo + a.lo*b.hi)
	hi := p + e
	return dd{hi, e - (hi - p)}
}

func (a dd) div(b dd) dd {
	q := a.hi / b.hi
	r := a.add(b.mul(dd{q, 0}).neg())
	return twoSum(q, r.hi/b.hi)
}

func (a dd) scale(k int) dd { return dd{math.Ldexp(a.hi, k), math.Ldexp(a.lo, k)} }

var (
	ddLn2    = dd{0.6931471805599453, 2.3190468138462996e-17}
	ddLn10   = dd{2.302585092994046, -2.1707562233822494e-16}
	ddHalfPi = dd{1.5707963267948966, 6.123233995736766e-17}
	// what ddHalfPi leaves of π/2
	restHalfPi = -1.4973849048591833e-33
)

// exp is e^a without its factor 2^k: a = r + k ln 2, |r| ≤ ln 2 / 2.
func (a dd) exp() (m dd, k int) {
	k = int(math.RoundToEven(a.hi / ddLn2.hi))
	r := a.add(ddLn2.mul(dd{float64(k), 0}).neg()).scale(-8)
	// e^r - 1 by its series, then (1+x)² - 1 eight times.
	term, sum := r, r
	for n := 2.0; n <= 9; n++ {
		term = term.mul(r).div(dd{n, 0})
		sum = sum.add(term)
	}
	for range 8 {
		sum = sum.scale(1).add(sum.mul(sum))
	}
	return sum.add(dd{1, 0}), k
}

// log is ln x of a positive normal x: Newton's step on e^y = x.
func (a dd) log() dd {
	frac, k := math.Frexp(a.hi)
	x := dd{frac, math.Ldexp(a.lo, -k)}
	y := dd{math.Log(frac), 0}
	m, e := y.neg().exp()
	y = y.add(x.mul(m.scale(e)).add(dd{-1, 0}))
	return y.add(ddLn2.mul(dd{float64(k), 0}))
}

func normal(x float64) bool { a := math.Abs(x); return a >= 0x1p-1022 && a <= math.MaxFloat64 }

// result rounds m × 2^k, or gives plain where that leaves the normal doubles.
func (m dd) result(k int, plain float64) float64 {
	if !normal(plain) {
		return plain
	}
	return math.Ldexp(m.hi+m.lo, k)
}

func exactExp(x float64) float64 {
	plain := math.Exp(x)
	if !normal(plain) {
		return plain
	}
	m, k := dd{x, 0}.exp()
	return m.result(k, plain)
}

func exactLog(x float64) float64 {
	if !(x > 0) || !normal(x) || x == 1 {
		return math.Log(x)
	}
	l := dd{x, 0}.log()
	return l.hi + l.lo
}

func exactLog10(x float64) float64 {
	if !(x > 0) || !normal(x) || x == 1 {
		return math.Log10(x)
	}
	l := dd{x, 0}.log().div(ddLn10)
	return l.hi + l.lo
}

func exactPow(x, y float64) float64 {
	plain := math.Pow(x, y)
	if !normal(plain) || !normal(x) || y-y != 0 || math.Abs(x) == 1 || y == 0 {
		return plain
	}
	m, k := dd{math.Abs(x), 0}.log().mul(dd{y, 0}).exp()
	return math.Copysign(m.result(k, plain), plain)
}

// sinCos are the sine and cosine of x, |x| < 2^30.
func sinCos(x float64) (sin, cos dd) {
	k := math.RoundToEven(x / ddHalfPi.hi)
	r := dd{x, 0}.add(ddHalfPi.mul(dd{k, 0}).neg()).add(dd{-k * restHalfPi, 0})
	sq := r.mul(r).neg()
	sin, cos = r, dd{1, 0}
	st, ct := r, dd{1, 0}
	for n := 1.0; n <= 13; n++ {
		ct = ct.mul(sq).div(dd{(2*n - 1) * (2 * n), 0})
		st = st.mul(sq).div(dd{2 * n * (2*n + 1), 0})
		cos, sin = cos.add(ct), sin.add(st)
	}
	switch int64(k) & 3 {
	case 1:
		sin, cos = cos, sin.neg()
	case 2:
		sin, cos = sin.neg(), cos.neg()
	case 3:
		sin, cos = cos.neg(), sin
	}
	return sin, cos
}

func refinable(x float64) bool { a := math.Abs(x); return a > 1e-8 && a < 1<<30 }

func exactSin(x float64) float64 {
	if !refinable(x) {
		return math.Sin(x)
	}
	s, _ := sinCos(x)
	return s.hi + s.lo
}

func exactCos(x float64) float64 {
	if !refinable(x) {
		return math.Cos(x)
	}
	_, c := sinCos(x)
	return c.hi + c.lo
}

func exactTangent(x float64) float64 {
	if !refinable(x) {
		return math.Tan(x)
	}
	s, c := sinCos(x)
	t := s.div(c)
	return t.hi + t.lo
}

func exactAtan(x float64) float64 {
	y := math.Atan(x)
	if math.Abs(x) >= 1<<30 && x-x == 0 {
		return math.Copysign(ddHalfPi.hi+(ddHalfPi.lo-1/math.Abs(x)), x)
	}
	if !refinable(x) {
		return y
	}
	// Newton's step on tan y = x: y + (x cos y - sin y) cos y, the derivative's rest being of second order.
	s, c := sinCos(y)
	d := dd{x, 0}.mul(c).add(s.neg()).mul(c)
	r := dd{y, 0}.add(d)
	return r.hi + r.lo
}

func exactAsin(x float64) float64 {
	y := math.Asin(x)
	if !refinable(x) || math.Abs(x) >= 1 {
		return y
	}
	s, c := sinCos(y)
	r := dd{y, 0}.add(dd{x, 0}.add(s.neg()).div(c))
	return r.hi + r.lo
}

func exactAcos(x float64) float64 {
	y := 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x))
	if !refinable(x) || math.Abs(x) >= 1 {
		return y
	}
	s, c := sinCos(y)
	r := dd{y, 0}.add(c.add(dd{-x, 0}).div(s))
	return r.hi + r.lo
}
