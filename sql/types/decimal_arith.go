package types

import (
	"math"
	"math/big"
	"math/bits"

	"streamdb/sql/sqlerr"
)

// Neg is -d.
func (d Decimal) Neg() Decimal {
	if d.big == nil && d.coef != math.MinInt64 {
		d.coef = -d.coef
		return d
	}
	switch d.rank() {
	case -1:
		return DecimalInf
	case 1:
		return DecimalNegInf
	case 2:
		return d
	}
	b := d.Big()
	return NewDecimalBig(b.Neg(b), d.Scale())
}

// Abs is |d|.
func (d Decimal) Abs() Decimal {
	if d.Sign() < 0 {
		return d.Neg()
	}
	return d
}

// Add is d + o, at the larger scale. ∞ + -∞ is NaN.
func (d Decimal) Add(o Decimal) Decimal {
	if d.big == nil && o.big == nil {
		a, b, scale, ok := d.coef, o.coef, d.scale, true
		if d.scale < o.scale {
			a, ok = scaleUp(a, o.scale-d.scale)
			scale = o.scale
		} else if d.scale > o.scale {
			b, ok = scaleUp(b, d.scale-o.scale)
		}
		if s := a + b; ok && (s > a) == (b > 0) {
			return Decimal{coef: s, scale: scale}
		}
	}
	if ra, rb := d.rank(), o.rank(); ra|rb != 0 {
		switch {
		case ra == 2 || rb == 2 || ra*rb < 0:
			return DecimalNaN
		case ra != 0:
			return d
		}
		return o
	}
	a, b, scale := sameScale(d, o)
	return NewDecimalBig(a.Add(a, b), scale)
}

// sameScale gives two finite coefficients at the larger of the two scales.
func sameScale(d, o Decimal) (a, b *big.Int, scale int) {
	a, b = d.Big(), o.Big()
	ds, os := d.Scale(), o.Scale()
	if ds < os {
		a.Mul(a, bigPow10(os-ds))
	} else if os < ds {
		b.Mul(b, bigPow10(ds-os))
	}
	return a, b, max(ds, os)
}

// Sub is d - o, at the larger scale.
func (d Decimal) Sub(o Decimal) Decimal { return d.Add(o.Neg()) }

// Mul is d × o, at the sum of the scales. Callers that may multiply without
// bound use Check on the result.
func (d Decimal) Mul(o Decimal) Decimal {
	if d.big == nil && o.big == nil {
		hi, lo := bits.Mul64(absU(d.coef), absU(o.coef))
		if hi == 0 && lo <= math.MaxInt64 && d.scale+o.scale <= maxDecimalScale {
			r := int64(lo)
			if (d.coef < 0) != (o.coef < 0) {
				r = -r
			}
			return Decimal{coef: r, scale: d.scale + o.scale}
		}
	}
	if !d.IsFinite() || !o.IsFinite() {
		switch s := d.Sign() * o.Sign(); {
		case d.IsNaN() || o.IsNaN() || s == 0:
			return DecimalNaN
		case s > 0:
			return DecimalInf
		}
		return DecimalNegInf
	}
	r := d.Big()
	out := NewDecimalBig(r.Mul(r, o.Big()), d.Scale()+o.Scale())
	if out.Scale() > maxDecimalScale {
		return out.Round(maxDecimalScale)
	}
	return out
}

func errDivisionByZero() error { return sqlerr.New(sqlerr.DivisionByZero, "division by zero") }

// group4 is the place and the value of the leading digit of a finite d != 0 in PostgreSQL's base 10000:
// d = digit.… × 10000^weight. Zero has weight 0 and digit 0.
func (d Decimal) group4() (weight, digit int) {
	if d.Sign() == 0 {
		return 0, 0
	}
	e := d.weight10()
	weight = floorDiv(e, 4)
	n := e - 4*weight + 1 // decimal digits in the leading group, 1 … 4
	if d.big == nil {
		a := absU(d.coef)
		drop := digits64(a) - n
		for ; drop > 0; drop-- {
			a /= 10
		}
		for ; drop < 0; drop++ {
			a *= 10
		}
		return weight, int(a)
	}
	text := d.big.Coeff.Append(nil, 10)
	for i := range n {
		digit *= 10
		if i < len(text) {
			digit += int(text[i] - '0')
		}
	}
	return weight, digit
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// divScale is the scale PostgreSQL's division chooses (select_div_scale): at
// least 16 significant digits, and no less than either operand's scale.
func divScale(d, o Decimal) int {
	w1, f1 := d.group4()
	w2, f2 := o.group4()
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return min(max(minSigDigits-4*q, d.Scale(), o.Scale(), 0), maxDisplayScale)
}

// Div is d / o, rounded half away from zero at divScale; error 22012 for a zero divisor.
func (d Decimal) Div(o Decimal) (Decimal, error) {
	if !d.IsFinite() || !o.IsFinite() {
		switch {
		case d.IsNaN() || o.IsNaN() || !d.IsFinite() && !o.IsFinite():
			return DecimalNaN, nil
		case d.IsFinite():
			return Decimal{}, nil // PostgreSQL gives a plain 0
		case o.Sign() == 0:
			return Decimal{}, errDivisionByZero()
		case d.Sign()*o.Sign() > 0:
			return DecimalInf, nil
		}
		return DecimalNegInf, nil
	}
	if o.Sign() == 0 {
		return Decimal{}, errDivisionByZero()
	}
	return divTo(d, o, divScale(d, o)), nil
}

// divTo is d / o rounded half away from zero to the given scale; o is not 0, both are finite.
func divTo(d, o Decimal, scale int) Decimal {
	shift := scale + o.Scale() - d.Scale()
	if d.big == nil && o.big == nil && shift >= 0 && shift < len(pow10Table) {
		hi, lo := bits.Mul64(absU(d.coef), uint64(pow10Table[shift]))
		b := absU(o.coef)
		q1, r := hi/b, hi%b
		q0, r := bits.Div64(r, lo, b)
		if r >= b-r { // half or more
			var carry uint64
			q0, carry = bits.Add64(q0, 1, 0)
			q1 += carry
		}
		return decimal128(q1, q0, (d.coef < 0) != (o.coef < 0), scale)
	}
	a, b := d.Big(), o.Big()
	if shift >= 0 {
		a.Mul(a, bigPow10(shift))
	} else {
		b.Mul(b, bigPow10(-shift))
	}
	return NewDecimalBig(quoHalfAway(a, b), scale)
}

// decimal128 is ±(hi·2^64 + lo) × 10^-scale.
func decimal128(hi, lo uint64, neg bool, scale int) Decimal {
	if hi == 0 && lo <= math.MaxInt64 {
		v := int64(lo)
		if neg {
			v = -v
		}
		return Decimal{coef: v, scale: int32(scale)}
	}
	c := new(big.Int).SetUint64(hi)
	c.Lsh(c, 64)
	c.Or(c, new(big.Int).SetUint64(lo))
	if neg {
		c.Neg(c)
	}
	return NewDecimalBig(c, scale)
}

// quoHalfAway is a / b rounded half away from zero; it overwrites a.
func quoHalfAway(a, b *big.Int) *big.Int {
	sign := a.Sign() * b.Sign()
	r := new(big.Int)
	a.QuoRem(a, b, r)
	r.Lsh(r.Abs(r), 1)
	if r.CmpAbs(b) >= 0 {
		a.Add(a, big.NewInt(int64(sign)))
	}
	return a
}

// DivTrunc is PostgreSQL's div(): d / o cut to an integer; error 22012.
func (d Decimal) DivTrunc(o Decimal) (Decimal, error) {
	if !d.IsFinite() || !o.IsFinite() {
		return d.Div(o)
	}
	if o.Sign() == 0 {
		return Decimal{}, errDivisionByZero()
	}
	a, b, _ := sameScale(d, o)
	return NewDecimalBig(a.Quo(a, b), 0), nil
}

// Mod is the remainder of d / o with the sign of d, at the larger scale; error 22012.
func (d Decimal) Mod(o Decimal) (Decimal, error) {
	if !d.IsFinite() || !o.IsFinite() {
		switch {
		case d.IsNaN() || o.IsNaN():
			return DecimalNaN, nil
		case !d.IsFinite() && o.Sign() == 0:
			return Decimal{}, errDivisionByZero()
		case !d.IsFinite():
			return DecimalNaN, nil
		}
		return d, nil
	}
	if o.Sign() == 0 {
		return Decimal{}, errDivisionByZero()
	}
	if d.big == nil && o.big == nil && d.scale == o.scale {
		return Decimal{coef: d.coef % o.coef, scale: d.scale}, nil
	}
	a, b, scale := sameScale(d, o)
	return NewDecimalBig(a.Rem(a, b), scale), nil
}

// Round is d rounded half away from zero to scale digits after the point, with
// that scale; a negative scale rounds before the point and gives scale 0.
func (d Decimal) Round(scale int) Decimal { return d.toScale(scale, quoHalfAway) }

// Trunc is d cut towards zero, else as Round.
func (d Decimal) Trunc(scale int) Decimal {
	return d.toScale(scale, func(a, b *big.Int) *big.Int { return a.Quo(a, b) })
}

func (d Decimal) toScale(scale int, quo func(a, b *big.Int) *big.Int) Decimal {
	if !d.IsFinite() {
		return d
	}
	scale = max(min(scale, maxDecimalScale), -maxDecimalDigits)
	ds := d.Scale()
	if d.big == nil && scale >= ds {
		if c, ok := scaleUp(d.coef, int32(scale-ds)); ok {
			return Decimal{coef: c, scale: int32(scale)}
		}
	}
	a := d.Big()
	if scale >= ds {
		return NewDecimalBig(a.Mul(a, bigPow10(scale-ds)), scale)
	}
	a = quo(a, bigPow10(ds-scale))
	if scale < 0 {
		a.Mul(a, bigPow10(-scale))
		scale = 0
	}
	return NewDecimalBig(a, scale)
}

// Floor is the largest integer ≤ d.
func (d Decimal) Floor() Decimal {
	t := d.Trunc(0)
	if d.Sign() < 0 && t.Cmp(d) != 0 {
		return t.Sub(NewDecimalInt(1))
	}
	return t
}

// Ceil is the smallest integer ≥ d.
func (d Decimal) Ceil() Decimal {
	t := d.Trunc(0)
	if d.Sign() > 0 && t.Cmp(d) != 0 {
		return t.Add(NewDecimalInt(1))
	}
	return t
}

// MinScale is the smallest scale that holds d.
func (d Decimal) MinScale() int { return d.Normalise().Scale() }

// ApplyTypmod rounds d to numeric(precision, scale); error 22003 when it does not fit.
func (d Decimal) ApplyTypmod(precision, scale int) (Decimal, error) {
	if d.IsNaN() {
		return d, nil
	}
	if d.IsInf(0) {
		return Decimal{}, sqlerr.New(sqlerr.OutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	r := d.Round(scale)
	if r.Sign() != 0 && r.weight10() >= precision-scale {
		bound := "10^" + NewDecimalInt(int64(precision-scale)).String()
		if precision == scale {
			bound = "1"
		}
		return Decimal{}, sqlerr.New(sqlerr.OutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, bound)
	}
	return r, nil
}
