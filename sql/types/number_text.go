package types

import (
	"bytes"
	"math"
	"math/big"
	mathbits "math/bits"
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

func errSyntax(typ, s string) error {
	return sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type %s: \"%s\"", typ, s)
}

// intName is what PostgreSQL calls the integer type of so many bits in errors.
func intName(bits int) string {
	switch bits {
	case 16:
		return "smallint"
	case 32:
		return "integer"
	}
	return "bigint"
}

// ParseInt reads a smallint, integer or bigint (bits 16, 32, 64). Errors 22P02, 22003.
func ParseInt(s string, bits int) (int64, error) {
	// The common case in one pass: digits only, too few to overflow.
	if n := len(s); n > 0 && n < 19 {
		i, neg := 0, s[0] == '-'
		if neg {
			i = 1
		}
		var v int64
		for ; i < n && isDigit(s[i]); i++ {
			v = v*10 + int64(s[i]-'0')
		}
		if i == n && (n > 1 || !neg) {
			if neg {
				v = -v
			}
			if v<<(64-bits)>>(64-bits) != v {
				return 0, errIntRange(s, bits)
			}
			return v, nil
		}
	}
	v, err := strconv.ParseInt(trimSpace(s), 10, bits)
	if err != nil {
		if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
			return 0, errIntRange(s, bits)
		}
		return 0, errSyntax(intName(bits), s)
	}
	return v, nil
}

func errIntRange(s string, bits int) error {
	return sqlerr.New(sqlerr.OutOfRange, "value \"%s\" is out of range for type %s", s, intName(bits))
}

// ParseOid reads an object identifier, 0 … 2³²-1; as in PostgreSQL a negative number counts from 2³².
func ParseOid(s, typ string) (int64, error) {
	v, err := strconv.ParseInt(trimSpace(s), 10, 64)
	if err != nil {
		if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
			return 0, sqlerr.New(sqlerr.OutOfRange, "value \"%s\" is out of range for type %s", s, typ)
		}
		return 0, errSyntax(typ, s)
	}
	if v > math.MaxUint32 || v < math.MinInt32 {
		return 0, sqlerr.New(sqlerr.OutOfRange, "value \"%s\" is out of range for type %s", s, typ)
	}
	return int64(uint32(v)), nil
}

// ParseFloat8 reads a double precision; ParseFloat4 a real. Errors 22P02, 22003.
func ParseFloat8(s string) (float64, error) { return parseFloat(s, 64, "double precision") }

// ParseFloat4 reads a real, rounded to float32.
func ParseFloat4(s string) (float64, error) { return parseFloat(s, 32, "real") }

func parseFloat(s string, bits int, typ string) (float64, error) {
	t := trimSpace(s)
	if strings.IndexByte(t, '_') >= 0 {
		return 0, errSyntax(typ, s)
	}
	v, err := strconv.ParseFloat(t, bits)
	if err != nil {
		if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
			return 0, errFloatRange(t, typ)
		}
		return 0, errSyntax(typ, s)
	}
	if v == 0 {
		// Too small to be told from zero is out of range too.
		mantissa, _, _ := strings.Cut(strings.ToLower(t), "e")
		if strings.ContainsAny(mantissa, "123456789") && !strings.HasPrefix(strings.TrimLeft(mantissa, "+-"), "0x") {
			return 0, errFloatRange(t, typ)
		}
	}
	return v, nil
}

func errFloatRange(s, typ string) error {
	return sqlerr.New(sqlerr.OutOfRange, "\"%s\" is out of range for type %s", s, typ)
}

// AppendInt appends v in decimal.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendFloat8 appends the shortest text that reads back as v, in PostgreSQL's
// form: an exponent below -4 and from 15 up.
func AppendFloat8(dst []byte, v float64) []byte { return appendFloat(dst, v, 64, 15) }

// AppendFloat4 is the same for a real held as float64: an exponent from 6 up.
func AppendFloat4(dst []byte, v float64) []byte { return appendFloat(dst, v, 32, 6) }

func appendFloat(dst []byte, v float64, bits, limit int) []byte {
	if out, ok := appendSpecialFloat(dst, v); ok {
		return out
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e6 { // small integers are many and need no search
		if v == 0 && math.Signbit(v) {
			return append(dst, "-0"...)
		}
		return strconv.AppendInt(dst, int64(v), 10)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, bits)
	e := len(dst) - 1
	exp := 0
	for p := 1; dst[e] != 'e'; e-- {
		switch c := dst[e]; c {
		case '-':
			exp = -exp
		case '+':
		default:
			exp += p * int(c-'0')
			p *= 10
		}
	}
	evenDigit(v, dst[start:e], exp, bits)
	if math.Abs(v) >= 1<<24 && onBound(v, dst[start:e], exp, bits) {
		return offBound(dst[:start], v, e-start, bits)
	}
	if exp >= -4 && exp < limit {
		return unfoldExponent(dst, start, e, exp)
	}
	return dst
}

// unfoldExponent turns d.ddde±xx at dst[start:], its e at e, into plain digits.
func unfoldExponent(dst []byte, start, e, exp int) []byte {
	var buf [24]byte
	digits := buf[:0]
	neg := dst[start] == '-'
	for _, c := range dst[start:e] {
		if c >= '0' {
			digits = append(digits, c)
		}
	}
	dst = dst[:start]
	if neg {
		dst = append(dst, '-')
	}
	if exp < 0 {
		return appendPoint(dst, digits, len(digits)-1-exp)
	}
	for len(digits) <= exp {
		digits = append(digits, '0')
	}
	return appendPoint(dst, digits, len(digits)-1-exp)
}

func appendSpecialFloat(dst []byte, v float64) ([]byte, bool) {
	switch {
	case v != v:
		return append(dst, "NaN"...), true
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...), true
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...), true
	}
	return dst, false
}

// appendRoundedFloat appends v with a number of significant digits, as C's %.*g does.
func appendRoundedFloat(dst []byte, v float64, digits int) []byte {
	if out, ok := appendSpecialFloat(dst, v); ok {
		return out
	}
	return strconv.AppendFloat(dst, v, 'g', max(digits, 1), 64)
}

// evenDigit makes the last of the shortest digits of v even where the odd one is just as near, as PostgreSQL does
// and strconv does not.
func evenDigit(v float64, digits []byte, exp, bits int) {
	last := len(digits) - 1
	if (digits[last]-'0')&1 == 0 {
		return
	}
	n := len(digits) // significant ones
	if digits[0] == '-' {
		n--
	}
	if n > 1 {
		n-- // the point
	}
	a := math.Abs(v)
	if a < 1<<53 && a != math.Trunc(a) {
		// v is odd × 2^-k, so it has k digits after the point, the last of them a 5: half way if the shortest has k-1.
		frac, e := math.Frexp(a)
		k := 53 - e - mathbits.TrailingZeros64(uint64(frac*(1<<53)))
		if k != n-exp {
			return
		}
	} else {
		cut := exp + 1 - n // whole digits that the shortest leaves out
		if cut <= 0 || cut >= len(pow10Table) || a >= 1<<63 || int64(a)%pow10Table[cut] != 5*pow10Table[cut-1] {
			return
		}
	}
	was := digits[last]
	if near, _ := strconv.ParseFloat(string(digits)+"e"+strconv.Itoa(exp), 64); math.Abs(near) > a {
		digits[last]--
	} else if digits[last]++; digits[last] > '9' {
		digits[last] = was
		return
	}
	if back, _ := strconv.ParseFloat(string(digits)+"e"+strconv.Itoa(exp), bits); back != v {
		digits[last] = was
	}
}

// onBound reports whether the shortest digits of v, an integer, are exactly half way to the next float.
// They read back as v only by rounding to even, and PostgreSQL does not rely on that.
func onBound(v float64, digits []byte, exp, bits int) bool {
	ulp := 52
	if bits == 32 {
		ulp = 23
	}
	frac, e := math.Frexp(math.Abs(v))
	if e-1 < ulp { // neighbours are less than 1 apart: half way needs more digits than the shortest has
		return false
	}
	n, _ := new(big.Int).SetString(strings.NewReplacer(".", "", "-", "").Replace(string(digits)), 10)
	shift := exp + 1 - len(strings.NewReplacer(".", "", "-", "").Replace(string(digits)))
	if shift < 0 {
		return false
	}
	n.Mul(n, bigPow10(shift))
	whole, _ := new(big.Float).SetFloat64(math.Abs(v)).Int(nil)
	diff := n.Sub(n, whole)
	gap := new(big.Int).Lsh(big.NewInt(1), uint(e-1-ulp)) // to the next float
	diff.Lsh(diff, 1)
	if frac == 0.5 && diff.Sign() < 0 { // below a power of two they are twice as close
		diff.Lsh(diff, 1)
	}
	return diff.CmpAbs(gap) == 0
}

// offBound appends the shortest form of v that is not half way to a neighbour, given the shortest of all, which
// took width bytes before its exponent.
func offBound(dst []byte, v float64, width, bits int) []byte {
	start := len(dst)
	for prec := max(width-2, 0); ; prec++ {
		dst = strconv.AppendFloat(dst[:start], v, 'e', prec, bits)
		e := bytes.IndexByte(dst[start:], 'e') + start
		exp, _ := strconv.Atoi(string(dst[e+1:]))
		back, _ := strconv.ParseFloat(string(dst[start:]), bits)
		if back == v && !onBound(v, dst[start:e], exp, bits) || prec > 17 {
			return dst
		}
	}
}
