package types

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"streamdb/sql/sqlerr"
)

// A Decimal is PostgreSQL's numeric: coefficient × 10^-scale, with the scale
// kept as stored (1.50 stays 1.50). A coefficient that fits an int64 is held
// inline; a longer one, NaN and the infinities are held by apd.
//
// The zero Decimal is 0. Decimals are values: no method changes its receiver.
// Use Cmp, not ==, to compare.
type Decimal struct {
	coef  int64
	scale int32        // digits after the point, ≥ 0
	big   *apd.Decimal // nil: coef and scale hold the value; immutable once set
}

// PostgreSQL's limits on numeric.
const (
	maxDecimalScale  = 16383  // digits after the point, stored
	maxDecimalDigits = 131072 // digits before the point
	maxDisplayScale  = 1000   // digits after the point that division and functions choose
	minSigDigits     = 16     // significant digits that they aim at
)

// The values that are not numbers.
var (
	DecimalNaN    = Decimal{big: &apd.Decimal{Form: apd.NaN}}
	DecimalInf    = Decimal{big: &apd.Decimal{Form: apd.Infinite}}
	DecimalNegInf = Decimal{big: &apd.Decimal{Form: apd.Infinite, Negative: true}}
)

var pow10Table = [19]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

func bigPow10(n int) *big.Int {
	if n < len(pow10Table) {
		return big.NewInt(pow10Table[n])
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// NewDecimalInt is v with scale 0.
func NewDecimalInt(v int64) Decimal { return Decimal{coef: v} }

// NewDecimalParts is coef × 10^-scale; scale ≥ 0.
func NewDecimalParts(coef int64, scale int) Decimal {
	return Decimal{coef: coef, scale: int32(scale)}
}

// NewDecimalBig is coef × 10^-scale; scale ≥ 0. It keeps no reference to coef.
func NewDecimalBig(coef *big.Int, scale int) Decimal {
	if coef.IsInt64() {
		return Decimal{coef: coef.Int64(), scale: int32(scale)}
	}
	d := &apd.Decimal{Negative: coef.Sign() < 0, Exponent: int32(-scale)}
	d.Coeff.SetMathBigInt(new(big.Int).Abs(coef))
	return Decimal{big: d}
}

// IsNaN reports whether d is NaN.
func (d Decimal) IsNaN() bool { return d.big != nil && d.big.Form == apd.NaN }

// IsInf reports whether d is infinite: with sign > 0 positively, < 0 negatively, 0 either way.
func (d Decimal) IsInf(sign int) bool {
	return d.big != nil && d.big.Form == apd.Infinite && (sign == 0 || sign < 0 == d.big.Negative)
}

// IsFinite reports whether d is a number: neither NaN nor infinite.
func (d Decimal) IsFinite() bool { return d.big == nil || d.big.Form == apd.Finite }

// Scale is the number of digits after the point, stored zeros included; 0 for what is not finite.
func (d Decimal) Scale() int { return int(d.scaleOf()) }

func (d Decimal) scaleOf() int32 {
	if d.big != nil {
		if d.big.Form != apd.Finite {
			return 0
		}
		return -d.big.Exponent
	}
	return d.scale
}

// Parts gives the inline coefficient and scale; ok is false where d does not fit them.
func (d Decimal) Parts() (coef int64, scale int, ok bool) {
	return d.coef, int(d.scale), d.big == nil
}

// Big is the coefficient as a new big.Int; d must be finite.
func (d Decimal) Big() *big.Int {
	if d.big == nil {
		return big.NewInt(d.coef)
	}
	b := new(big.Int).Set(d.big.Coeff.MathBigInt())
	if d.big.Negative {
		b.Neg(b)
	}
	return b
}

// Sign is -1, 0 or +1; +1 for NaN, which is above all numbers.
func (d Decimal) Sign() int {
	if d.big != nil {
		switch {
		case d.big.Form == apd.NaN:
			return 1
		case d.big.Negative:
			return -1
		}
		return 1
	}
	switch {
	case d.coef > 0:
		return 1
	case d.coef < 0:
		return -1
	}
	return 0
}

// Check is an error when d has more digits than PostgreSQL's numeric can hold (22003).
func (d Decimal) Check() error {
	if d.big == nil || d.big.Form != apd.Finite {
		return nil
	}
	if d.big.Coeff.BitLen() < 4*maxDecimalDigits/2 && d.scaleOf() <= maxDecimalScale {
		return nil
	}
	if d.weight10() >= maxDecimalDigits || d.scaleOf() > maxDecimalScale {
		return errNumericOverflow()
	}
	return nil
}

func errNumericOverflow() error {
	return sqlerr.New(sqlerr.OutOfRange, "value overflows numeric format")
}

// weight10 is the power of ten of the leading digit of a finite d; 0 for zero.
func (d Decimal) weight10() int {
	if d.big == nil {
		if d.coef == 0 {
			return 0
		}
		return digits64(absU(d.coef)) - 1 - int(d.scale)
	}
	return int(d.big.NumDigits()) - 1 + int(d.big.Exponent)
}

func absU(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

// digits64 is the number of decimal digits of v; 1 for 0.
func digits64(v uint64) int {
	if v == 0 {
		return 1
	}
	n := bits.Len64(v) * 1233 >> 12 // log10(2)
	if n < len(pow10Table) && v < uint64(pow10Table[n]) || n == 19 && v < 1e19 {
		return n
	}
	return n + 1
}

// Normalise is the same value with the smallest scale.
func (d Decimal) Normalise() Decimal {
	if d.big == nil {
		if d.coef == 0 {
			return Decimal{}
		}
		for d.scale > 0 && d.coef%10 == 0 {
			d.coef /= 10
			d.scale--
		}
		return d
	}
	if d.big.Form != apd.Finite || d.big.Exponent == 0 {
		return d
	}
	c, scale := d.Big(), d.Scale()
	q, r, ten := new(big.Int), new(big.Int), big.NewInt(10)
	for scale > 0 {
		if q.QuoRem(c, ten, r); r.Sign() != 0 {
			break
		}
		c, q = q, c
		scale--
	}
	return NewDecimalBig(c, scale)
}

// Cmp orders as PostgreSQL: -∞, numbers by value, ∞, NaN, which equals itself.
func (d Decimal) Cmp(o Decimal) int {
	if d.big == nil && o.big == nil {
		a, b := d.coef, o.coef
		if d.scale != o.scale && a != 0 && b != 0 && (a < 0) == (b < 0) {
			var ok bool
			if d.scale < o.scale {
				a, ok = scaleUp(a, o.scale-d.scale)
				if !ok { // |a| is beyond any int64
					return d.Sign()
				}
			} else {
				b, ok = scaleUp(b, d.scale-o.scale)
				if !ok {
					return -o.Sign()
				}
			}
		}
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	if ra, rb := d.rank(), o.rank(); ra != rb || ra != 0 {
		return ra - rb
	}
	if a, b := d.Sign(), o.Sign(); a != b {
		return cmpInt(a, b)
	}
	a, b := d.Big(), o.Big()
	if ds, os := d.Scale(), o.Scale(); ds < os {
		a.Mul(a, bigPow10(os-ds))
	} else if os < ds {
		b.Mul(b, bigPow10(ds-os))
	}
	return a.Cmp(b)
}

func cmpInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// rank is -1 for -∞, 0 for numbers, 1 for ∞, 2 for NaN.
func (d Decimal) rank() int {
	switch {
	case d.big == nil || d.big.Form == apd.Finite:
		return 0
	case d.big.Form == apd.NaN:
		return 2
	case d.big.Negative:
		return -1
	}
	return 1
}

// scaleUp is v × 10^n, or not ok.
func scaleUp(v int64, n int32) (int64, bool) {
	if v == 0 || n == 0 {
		return v, true
	}
	if n >= int32(len(pow10Table)) {
		return 0, false
	}
	p := pow10Table[n]
	r := v * p
	if hi, lo := bits.Mul64(absU(v), uint64(p)); hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	return r, true
}

// Int64 is d rounded half away from zero to an integer, or the error 22003 for the named SQL type ("bigint").
func (d Decimal) Int64(typ string) (int64, error) {
	if !d.IsFinite() {
		what := "infinity"
		if d.IsNaN() {
			what = "NaN"
		}
		return 0, sqlerr.New(sqlerr.NotSupported, "cannot convert %s to %s", what, typ)
	}
	r := d.Round(0)
	if r.big != nil {
		return 0, sqlerr.New(sqlerr.OutOfRange, "%s out of range", typ)
	}
	return r.coef, nil
}

// IntOf is d rounded to a smallint, integer or bigint (bits 16, 32, 64), as a cast does; errors 22003, 0A000.
func (d Decimal) IntOf(bits int) (int64, error) {
	v, err := d.Int64(intName(bits))
	if err == nil && v<<(64-bits)>>(64-bits) != v {
		return 0, sqlerr.New(sqlerr.OutOfRange, "%s out of range", intName(bits))
	}
	return v, err
}

// Float64 is the nearest double; ±Inf where d is beyond all doubles.
func (d Decimal) Float64() float64 {
	if d.big == nil {
		if d.scale <= 22 && d.coef>>53 == d.coef>>63 && absU(d.coef) <= 1<<53 {
			return float64(d.coef) / exactPow10[d.scale] // both exact: one rounding
		}
	} else if d.big.Form != apd.Finite {
		switch d.rank() {
		case -1:
			return math.Inf(-1)
		case 1:
			return math.Inf(1)
		}
		return math.NaN()
	}
	f, _ := strconv.ParseFloat(d.String(), 64)
	return f
}

var exactPow10 = [23]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// DecimalFromFloat8 is PostgreSQL's cast of a double to numeric: 15 significant digits.
func DecimalFromFloat8(f float64) Decimal { return decimalFromFloat(f, 15) }

// DecimalFromFloat4 is PostgreSQL's cast of a real to numeric: 6 significant digits.
func DecimalFromFloat4(f float64) Decimal { return decimalFromFloat(f, 6) }

func decimalFromFloat(f float64, digits int) Decimal {
	switch {
	case f != f:
		return DecimalNaN
	case math.IsInf(f, 1):
		return DecimalInf
	case math.IsInf(f, -1):
		return DecimalNegInf
	}
	d, err := ParseDecimal(strconv.FormatFloat(f, 'g', digits, 64))
	if err != nil {
		panic(err) // FormatFloat's text is always a number
	}
	// C's %.15g, which PostgreSQL goes through, drops trailing zeros after the point.
	return d.Normalise()
}
