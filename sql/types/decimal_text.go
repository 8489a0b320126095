package types

import (
	"math/big"
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

func errDecimalSyntax(s string) error {
	return sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type numeric: \"%s\"", s)
}

// ParseDecimal reads PostgreSQL's numeric literals: digits, a point, an exponent, NaN, Infinity and inf with a
// sign, any case, blanks around. Errors: 22P02 for other text, 22003 beyond what numeric can hold.
func ParseDecimal(s string) (Decimal, error) {
	t := trimSpace(s)
	i, neg := 0, false
	if i < len(t) && (t[i] == '-' || t[i] == '+') {
		neg = t[i] == '-'
		i++
	}
	start := i
	var coef uint64
	digits, frac, point, wide := 0, 0, false, false
loop:
	for ; i < len(t); i++ {
		switch c := t[i]; {
		case c >= '0' && c <= '9':
			if coef >= 1<<59 { // ten times this and nine more fits an int64
				wide = true
			} else {
				coef = coef*10 + uint64(c-'0')
			}
			digits++
			if point {
				frac++
			}
		case c == '.' && !point:
			point = true
		default:
			break loop
		}
	}
	if digits == 0 {
		return parseDecimalWord(t, s)
	}
	mantissa := t[start:i]
	exp := 0
	if i < len(t) && (t[i] == 'e' || t[i] == 'E') {
		e, err := strconv.ParseInt(t[i+1:], 10, 64)
		if err != nil || e > 1<<30-1 || e < -(1<<30-1) {
			return Decimal{}, errDecimalSyntax(s)
		}
		exp, i = int(e), len(t)
	}
	if i != len(t) {
		return Decimal{}, errDecimalSyntax(s)
	}
	scale := frac - exp
	if !wide && scale >= 0 && scale <= maxDecimalScale {
		v := int64(coef)
		if neg {
			v = -v
		}
		return Decimal{coef: v, scale: int32(scale)}, nil
	}
	text := strings.Replace(mantissa, ".", "", 1)
	trimmed := strings.TrimLeft(text, "0")
	if trimmed != "" && len(trimmed)-scale > maxDecimalDigits {
		return Decimal{}, errNumericOverflow()
	}
	if trimmed == "" {
		return Decimal{scale: int32(min(max(scale, 0), maxDecimalScale))}, nil
	}
	if scale > maxDecimalScale { // PostgreSQL rounds what it cannot store
		cut := scale - maxDecimalScale
		if cut > len(trimmed) {
			return Decimal{scale: maxDecimalScale}, nil
		}
		b, _ := new(big.Int).SetString("0"+trimmed[:len(trimmed)-cut], 10)
		if trimmed[len(trimmed)-cut] >= '5' {
			b.Add(b, big.NewInt(1))
		}
		if neg {
			b.Neg(b)
		}
		return NewDecimalBig(b, maxDecimalScale), nil
	}
	b, _ := new(big.Int).SetString(trimmed, 10)
	if scale < 0 {
		b.Mul(b, bigPow10(-scale))
		scale = 0
	}
	if neg {
		b.Neg(b)
	}
	return NewDecimalBig(b, scale), nil
}

func parseDecimalWord(t, s string) (Decimal, error) {
	switch strings.ToLower(t) {
	case "nan":
		return DecimalNaN, nil
	case "infinity", "inf", "+infinity", "+inf":
		return DecimalInf, nil
	case "-infinity", "-inf":
		return DecimalNegInf, nil
	}
	return Decimal{}, errDecimalSyntax(s)
}

// String is PostgreSQL's text of d.
func (d Decimal) String() string { return string(d.AppendText(nil)) }

// AppendText appends PostgreSQL's text of d.
func (d Decimal) AppendText(dst []byte) []byte {
	if d.big == nil {
		if d.scale == 0 {
			return strconv.AppendInt(dst, d.coef, 10)
		}
		if d.coef < 0 {
			dst = append(dst, '-')
		}
		var buf [20]byte
		return appendPoint(dst, strconv.AppendUint(buf[:0], absU(d.coef), 10), int(d.scale))
	}
	switch d.rank() {
	case -1:
		return append(dst, "-Infinity"...)
	case 1:
		return append(dst, "Infinity"...)
	case 2:
		return append(dst, "NaN"...)
	}
	if d.big.Negative {
		dst = append(dst, '-')
	}
	return appendPoint(dst, d.big.Coeff.Append(nil, 10), d.Scale())
}

// appendPoint appends digits with a point scale digits from the end.
func appendPoint(dst, digits []byte, scale int) []byte {
	if scale == 0 {
		return append(dst, digits...)
	}
	if n := len(digits) - scale; n > 0 {
		dst = append(append(dst, digits[:n]...), '.')
		return append(dst, digits[n:]...)
	}
	dst = append(dst, '0', '.')
	for range scale - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// trimSpace drops the blanks that PostgreSQL's input functions skip.
func trimSpace(s string) string {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
