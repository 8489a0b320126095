package types

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"

	"streamdb/sql/sqlerr"
)

// The functions below give PostgreSQL 15's digits: they choose the scale as its
// numeric.c does and round a value computed to more digits half away from zero.

// Sqrt is the square root; error 2201F for a negative d.
func (d Decimal) Sqrt() (Decimal, error) {
	if !d.IsFinite() && !d.IsInf(-1) {
		return d, nil
	}
	if d.Sign() < 0 {
		return Decimal{}, sqlerr.New("2201F", "cannot take square root of a negative number")
	}
	w, _ := d.group4()
	scale := displayScale(minSigDigits-((w+1)*4/2-1), d)
	// √(c·10^-s) at 2 guard digits: the integer root of c·10^(2(scale+2)-s).
	shift := 2*(scale+2) - d.Scale()
	c := d.Big()
	if shift >= 0 {
		c.Mul(c, bigPow10(shift))
	} else {
		c.Quo(c, bigPow10(-shift))
	}
	c.Sqrt(c)
	return NewDecimalBig(quoHalfAway(c, big.NewInt(100)), scale), nil
}

// displayScale bounds a scale chosen for its significant digits: no less than the arguments', no more than 1000.
func displayScale(scale int, args ...Decimal) int {
	for _, a := range args {
		scale = max(scale, a.Scale())
	}
	return min(max(scale, 0), maxDisplayScale)
}

// lnWeight estimates the power of ten of the leading digit of ln(d), d > 0.
func (d Decimal) lnWeight() int {
	if d.Sign() <= 0 {
		return 0
	}
	if d.Cmp(NewDecimalParts(9, 1)) >= 0 && d.Cmp(NewDecimalParts(11, 1)) <= 0 {
		x := d.Sub(NewDecimalInt(1))
		if x.Sign() == 0 {
			return 0
		}
		return x.weight10()
	}
	return int(math.Log10(math.Abs(d.approxLn())))
}

// approxLn is ln(d) to a few digits, for any size of d > 0.
func (d Decimal) approxLn() float64 {
	w := d.weight10()
	lead, _ := new(big.Float).SetInt(d.Big()).Float64()
	if math.IsInf(lead, 0) {
		text := d.big.Coeff.Append(nil, 10)
		lead = 0
		for _, c := range text[:17] {
			lead = lead*10 + float64(c-'0')
		}
		return math.Log(lead/1e16) + float64(w)*math.Ln10
	}
	return math.Log(lead) - float64(d.Scale())*math.Ln10
}

// apdOf is a finite d for apd's functions.
func (d Decimal) apdOf() *apd.Decimal {
	if d.big != nil {
		return d.big
	}
	return apd.New(d.coef, -d.scale)
}

// fromAPD rounds a finite x half away from zero to scale.
func fromAPD(x *apd.Decimal, scale int) Decimal {
	c := new(big.Int).Set(x.Coeff.MathBigInt())
	if x.Negative {
		c.Neg(c)
	}
	if n := int(x.Exponent) + scale; n >= 0 {
		c.Mul(c, bigPow10(n))
	} else if -n > int(x.NumDigits())+1 {
		c.SetInt64(0)
	} else {
		c = quoHalfAway(c, bigPow10(-n))
	}
	return NewDecimalBig(c, scale)
}

func mathContext(digits int) *apd.Context {
	c := apd.BaseContext.WithPrecision(uint32(max(digits, 20)))
	c.Traps = 0
	return c
}

// lnAPD is ln(d) with some digits after the point to spare beyond scale.
func (d Decimal) lnAPD(scale int) (*apd.Decimal, error) {
	out := new(apd.Decimal)
	// ln of a number of w digits has about log10(2.3 w) digits before the point; of one near 1 many zeros after it.
	_, err := mathContext(scale+16).Ln(out, d.apdOf())
	return out, err
}

func errLog(d Decimal) error {
	if d.Sign() == 0 {
		return sqlerr.New("2201E", "cannot take logarithm of zero")
	}
	return sqlerr.New("2201E", "cannot take logarithm of a negative number")
}

// Ln is the natural logarithm; error 2201E unless d > 0.
func (d Decimal) Ln() (Decimal, error) {
	if d.IsNaN() || d.IsInf(1) {
		return d, nil
	}
	if d.Sign() <= 0 {
		return Decimal{}, errLog(d)
	}
	scale := displayScale(minSigDigits-d.lnWeight(), d)
	x, err := d.lnAPD(scale)
	if err != nil {
		return Decimal{}, err
	}
	return fromAPD(x, scale), nil
}

// Log is the logarithm of d to a base; error 2201E unless both are > 0, 22012 for the base 1.
func (d Decimal) Log(base Decimal) (Decimal, error) {
	if d.IsNaN() || base.IsNaN() {
		return DecimalNaN, nil
	}
	if !base.IsFinite() || !d.IsFinite() { // PostgreSQL looks for a negative one first
		if base.Sign() < 0 {
			return Decimal{}, errLog(base)
		}
		if d.Sign() < 0 {
			return Decimal{}, errLog(d)
		}
	}
	for _, x := range []Decimal{base, d} {
		if x.Sign() <= 0 {
			return Decimal{}, errLog(x)
		}
	}
	switch bi, di := base.IsInf(1), d.IsInf(1); {
	case bi && di:
		return DecimalNaN, nil
	case bi:
		return Decimal{}, nil
	case di: // PostgreSQL says so for bases below 1 too
		return DecimalInf, nil
	}
	if base.Cmp(NewDecimalInt(1)) == 0 {
		return Decimal{}, errDivisionByZero()
	}
	bw, dw := base.lnWeight(), d.lnWeight()
	scale := displayScale(minSigDigits-(dw-bw), base, d)
	guard := scale + abs(dw) + abs(bw) + 8
	num, err := d.lnAPD(guard)
	if err != nil {
		return Decimal{}, err
	}
	den, err := base.lnAPD(guard)
	if err != nil {
		return Decimal{}, err
	}
	// Round both as PostgreSQL does before it divides.
	a := fromAPD(num, max(scale+(dw-bw)-dw+8, 0))
	b := fromAPD(den, max(scale+(dw-bw)-bw+8, 0))
	if b.Sign() == 0 {
		return Decimal{}, errDivisionByZero()
	}
	return divTo(a, b, scale), nil
}

func abs(v int) int {
	if v < 0 {
		return -v
	}
	return v
}

// Log10 is the logarithm to base 10.
func (d Decimal) Log10() (Decimal, error) { return d.Log(NewDecimalInt(10)) }

const (
	maxResultScale = 2000
	log10e         = 0.434294481903252
)

// Exp is e^d; error 22003 for what numeric cannot hold.
func (d Decimal) Exp() (Decimal, error) {
	switch d.rank() {
	case 2, 1:
		return d, nil
	case -1:
		return Decimal{}, nil
	}
	f := d.Float64()
	weight := int(max(min(f*log10e, maxResultScale), -maxResultScale))
	scale := displayScale(minSigDigits-weight, d)
	if math.Abs(f) >= maxResultScale*3 {
		if f > 0 {
			return Decimal{}, errNumericOverflow()
		}
		return Decimal{scale: int32(scale)}, nil
	}
	return expTo(d.apdOf(), scale, int(f*log10e))
}

// expTo is e^x at a scale; weight is about the power of ten of the result.
func expTo(x *apd.Decimal, scale, weight int) (Decimal, error) {
	out := new(apd.Decimal)
	ctx := mathContext(scale + max(weight, 0) + 16)
	if _, err := ctx.Exp(out, x); err != nil {
		return Decimal{}, err
	}
	return fromAPD(out, scale), nil
}

// Power is d^e. Errors 2201F for 0 to a negative power and for a negative d to a
// fraction, 22003 for what numeric cannot hold.
func (d Decimal) Power(e Decimal) (Decimal, error) {
	one := NewDecimalInt(1)
	if d.IsNaN() || e.IsNaN() {
		// 1 to anything and anything to 0 are 1, even NaN.
		if d.Cmp(one) == 0 || e.Sign() == 0 {
			return one, nil
		}
		return DecimalNaN, nil
	}
	if d.Sign() == 0 && e.Sign() < 0 {
		return Decimal{}, sqlerr.New("2201F", "zero raised to a negative power is undefined")
	}
	if !d.IsFinite() || !e.IsFinite() {
		return d.powerInfinite(e)
	}
	whole := e.Trunc(0).Cmp(e) == 0
	if d.Sign() < 0 && !whole {
		return Decimal{}, sqlerr.New("2201F", "a negative number raised to a non-integer power yields a complex result")
	}
	if whole {
		if n := e.Trunc(0); n.big == nil && n.coef == int64(int32(n.coef)) {
			return d.powerInt(n.coef)
		}
	}
	if d.Sign() == 0 {
		return Decimal{scale: minSigDigits}, nil
	}
	base, neg := d, false
	if d.Sign() < 0 {
		base = d.Neg()
		half, _ := e.Mod(NewDecimalInt(2))
		neg = half.Sign() != 0
	}
	// The weight of the result from ln(base) to some 8 digits: PostgreSQL's choice of scale hangs on this very number.
	low := max(8-base.lnWeight(), 0)
	approx, err := base.lnAPD(low)
	if err != nil {
		return Decimal{}, err
	}
	f := fromAPD(approx, low).Mul(e).Round(low).Float64()
	if math.Abs(f) > maxResultScale*3.01 {
		if f > 0 {
			return Decimal{}, errNumericOverflow()
		}
		return Decimal{scale: maxDisplayScale}, nil
	}
	weight := int(f * log10e)
	scale := displayScale(minSigDigits-weight, base, e)
	ln, err := base.lnAPD(scale + abs(weight) + 16 + max(e.weight10(), 0))
	if err != nil {
		return Decimal{}, err
	}
	x := new(apd.Decimal)
	if _, err := mathContext(scale+abs(weight)+40).Mul(x, ln, e.apdOf()); err != nil {
		return Decimal{}, err
	}
	out, err := expTo(x, scale, weight)
	if neg {
		out = out.Neg()
	}
	return out, err
}

// powerInt is d^n at the scale PostgreSQL chooses for whole exponents: 16 or more.
func (d Decimal) powerInt(n int64) (Decimal, error) {
	scale := displayScale(minSigDigits, d)
	switch {
	case n == 0:
		return NewDecimalInt(1).Round(scale), nil
	case n == 1:
		return d.Round(scale), nil
	case n == -1:
		return divTo(NewDecimalInt(1), d, scale), nil
	case n == 2:
		return d.Mul(d).Round(scale), nil
	case d.Sign() == 0:
		return Decimal{scale: int32(scale)}, nil
	}
	f := d.Abs().approxLn() * log10e * float64(n) // power of ten of the result
	if f > maxDecimalDigits {
		return Decimal{}, errNumericOverflow()
	}
	if f < -float64(scale)-1 {
		return Decimal{scale: int32(scale)}, nil
	}
	digits := scale + int(math.Abs(f)) + 16
	base, out := d.apdOf(), apd.New(1, 0)
	ctx := mathContext(digits + 8)
	sq := new(apd.Decimal).Set(base)
	for m := abs64(n); m > 0; m >>= 1 {
		if m&1 == 1 {
			if _, err := ctx.Mul(out, out, sq); err != nil {
				return Decimal{}, err
			}
		}
		if m > 1 {
			if _, err := ctx.Mul(sq, sq, sq); err != nil {
				return Decimal{}, err
			}
		}
	}
	if n < 0 {
		if _, err := ctx.Quo(out, apd.New(1, 0), out); err != nil {
			return Decimal{}, err
		}
	}
	r := fromAPD(out, scale)
	return r, r.Check()
}

// powerInfinite is d^e where one is infinite and neither NaN.
func (d Decimal) powerInfinite(e Decimal) (Decimal, error) {
	one := NewDecimalInt(1)
	if d.Cmp(one) == 0 || e.Sign() == 0 {
		return one, nil
	}
	if d.Sign() == 0 {
		return Decimal{}, nil // to +∞
	}
	if !e.IsFinite() {
		switch c := d.Abs().Cmp(one); {
		case c == 0:
			return one, nil
		case (c > 0) == (e.Sign() > 0):
			return DecimalInf, nil
		}
		return Decimal{}, nil
	}
	if d.IsInf(1) {
		if e.Sign() > 0 {
			return DecimalInf, nil
		}
		return Decimal{}, nil
	}
	if e.Trunc(0).Cmp(e) != 0 {
		return Decimal{}, sqlerr.New("2201F", "a negative number raised to a non-integer power yields a complex result")
	}
	if e.Sign() < 0 {
		return Decimal{}, nil
	}
	if m, _ := e.Mod(NewDecimalInt(2)); m.Sign() != 0 {
		return DecimalNegInf, nil
	}
	return DecimalInf, nil
}
