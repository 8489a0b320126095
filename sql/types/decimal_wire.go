package types

import (
	"encoding/binary"
	"math"
	"math/big"

	"streamdb/sql/sqlerr"
)

// Signs of numeric on the wire.
const (
	wirePositive = 0x0000
	wireNegative = 0x4000
	wireNaN      = 0xC000
	wireInf      = 0xD000
	wireNegInf   = 0xF000
)

// AppendWire appends d as PostgreSQL's binary numeric: digits in base 10000.
func (d Decimal) AppendWire(dst []byte) []byte {
	head := func(n, weight int, sign uint16, scale int) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
		dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
	}
	switch d.rank() {
	case 2:
		head(0, 0, wireNaN, 0)
		return dst
	case 1:
		head(0, 0, wireInf, 0x20)
		return dst
	case -1:
		head(0, 0, wireNegInf, 0x20)
		return dst
	}
	sign := uint16(wirePositive)
	if d.Sign() < 0 {
		sign = wireNegative
	}
	scale := d.Scale()
	var buf [24]byte
	text := buf[:0]
	if d.big == nil {
		text = NewDecimalInt(d.coef).AppendText(text)
	} else {
		text = d.big.Coeff.Append(text, 10)
	}
	if text[0] == '-' {
		text = text[1:]
	}
	// Groups of four digits, counted from the point.
	point := len(text) - scale         // digits before the point; ≤ 0: zeros follow it
	weight := floorDiv(point+3, 4) - 1 // of the first group
	lead := point - 4*weight           // digits of text in the first group, 1 … 4
	var groups []uint16
	for i := lead - 4; i < len(text); i += 4 {
		g := uint16(0)
		for j := i; j < i+4; j++ {
			g *= 10
			if j >= 0 && j < len(text) {
				g += uint16(text[j] - '0')
			}
		}
		groups = append(groups, g)
	}
	for len(groups) > 0 && groups[0] == 0 {
		groups = groups[1:]
		weight--
	}
	for len(groups) > 0 && groups[len(groups)-1] == 0 {
		groups = groups[:len(groups)-1]
	}
	if len(groups) == 0 {
		weight = 0
	}
	head(len(groups), weight, sign, scale)
	for _, g := range groups {
		dst = binary.BigEndian.AppendUint16(dst, g)
	}
	return dst
}

// DecimalFromWire reads PostgreSQL's binary numeric; errors 22P03, 08P01.
func DecimalFromWire(b []byte) (Decimal, error) {
	if len(b) < 8 {
		return Decimal{}, errShort()
	}
	n := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	if len(b) < 8+2*n {
		return Decimal{}, errShort()
	}
	if len(b) > 8+2*n {
		return Decimal{}, sqlerr.New("22P03", "incorrect binary data format")
	}
	switch sign {
	case wireNaN:
		return DecimalNaN, nil
	case wireInf:
		return DecimalInf, nil
	case wireNegInf:
		return DecimalNegInf, nil
	case wirePositive, wireNegative:
	default:
		return Decimal{}, sqlerr.New("22P03", "invalid sign in external \"numeric\" value")
	}
	if scale > maxDecimalScale {
		return Decimal{}, sqlerr.New("22P03", "invalid scale in external \"numeric\" value")
	}
	var small int64
	var wide *big.Int
	for i := range n {
		g := int64(binary.BigEndian.Uint16(b[8+2*i:]))
		if g >= 10000 {
			return Decimal{}, sqlerr.New("22P03", "invalid digit in external \"numeric\" value")
		}
		if wide == nil && small < math.MaxInt64/10000-1 {
			small = small*10000 + g
			continue
		}
		if wide == nil {
			wide = big.NewInt(small)
		}
		wide.Mul(wide, big.NewInt(10000))
		wide.Add(wide, big.NewInt(g))
	}
	if wide == nil {
		wide = big.NewInt(small)
	}
	if sign == wireNegative {
		wide.Neg(wide)
	}
	// The digits are at 10000^(weight-n+1); PostgreSQL cuts what the scale does not show.
	exp := 4 * (weight - n + 1)
	if n == 0 {
		exp = 0
	}
	if exp >= 0 {
		wide.Mul(wide, bigPow10(exp))
		exp = 0
	}
	if scale >= -exp {
		wide.Mul(wide, bigPow10(scale+exp))
	} else {
		wide.Quo(wide, bigPow10(-exp-scale))
	}
	d := NewDecimalBig(wide, scale)
	return d, d.Check()
}
