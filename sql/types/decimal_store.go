package types

import (
	"encoding/binary"
	"math/big"

	"streamdb/sql/sqlerr"
)

// The stored form is one uvarint, scale×4 + form, and what the form asks for.
const (
	storedInline   = iota // varint coefficient
	storedPositive        // uvarint length, big-endian coefficient
	storedNegative        // the same of the absolute value
	storedSpecial         // nothing: the scale is 0 for NaN, 1 for ∞, 2 for -∞
)

// AppendBinary appends d's compact form for storage; ReadBinary gets it back, scale and all.
func (d Decimal) AppendBinary(dst []byte) []byte {
	if d.big == nil {
		dst = binary.AppendUvarint(dst, uint64(d.scale)<<2+storedInline)
		return binary.AppendVarint(dst, d.coef)
	}
	switch d.rank() {
	case 2:
		return append(dst, 0<<2|storedSpecial)
	case 1:
		return append(dst, 1<<2|storedSpecial)
	case -1:
		return append(dst, 2<<2|storedSpecial)
	}
	form := uint64(storedPositive)
	if d.big.Negative {
		form = storedNegative
	}
	b := d.big.Coeff.Bytes()
	dst = binary.AppendUvarint(dst, uint64(d.scaleOf())<<2|form)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// ReadBinary reads what AppendBinary wrote at the start of b and returns what follows it.
func ReadBinary(b []byte) (Decimal, []byte, error) {
	bad := func() (Decimal, []byte, error) {
		return Decimal{}, nil, sqlerr.New(sqlerr.DataCorrupted, "invalid stored numeric")
	}
	head, n := binary.Uvarint(b)
	if n <= 0 || head>>2 > maxDecimalScale {
		return bad()
	}
	b = b[n:]
	scale := int32(head >> 2)
	switch head & 3 {
	case storedInline:
		c, n := binary.Varint(b)
		if n <= 0 {
			return bad()
		}
		return Decimal{coef: c, scale: scale}, b[n:], nil
	case storedSpecial:
		switch scale {
		case 0:
			return DecimalNaN, b, nil
		case 1:
			return DecimalInf, b, nil
		case 2:
			return DecimalNegInf, b, nil
		}
		return bad()
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return bad()
	}
	c := new(big.Int).SetBytes(b[n : n+int(size)])
	if head&3 == storedNegative {
		c.Neg(c)
	}
	return NewDecimalBig(c, int(scale)), b[n+int(size):], nil
}

// The first byte of the ordered form; their order is PostgreSQL's.
const (
	orderedNegInf   = 0x08
	orderedNegative = 0x10
	orderedZero     = 0x18
	orderedPositive = 0x20
	orderedInf      = 0x28
	orderedNaN      = 0x30
)

// AppendOrdered appends a form whose byte order is Cmp's order. Equal values have equal forms, so the scale is
// lost. A positive number is the exponent of its first digit (four bytes, biased), then its digits in pairs,
// each plus one, and a zero byte; a negative number has all of those inverted.
func (d Decimal) AppendOrdered(dst []byte) []byte {
	switch d.rank() {
	case -1:
		return append(dst, orderedNegInf)
	case 1:
		return append(dst, orderedInf)
	case 2:
		return append(dst, orderedNaN)
	}
	n := d.Normalise()
	sign := n.Sign()
	switch sign {
	case 0:
		return append(dst, orderedZero)
	case 1:
		dst = append(dst, orderedPositive)
	default:
		dst = append(dst, orderedNegative)
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(n.weight10()))^1<<31)
	var buf [24]byte
	text := buf[:0]
	if n.big == nil {
		text = NewDecimalInt(n.coef).AppendText(text)
	} else {
		text = n.big.Coeff.Append(text, 10)
	}
	if text[0] == '-' {
		text = text[1:]
	}
	for len(text) > 0 && text[len(text)-1] == '0' { // 1e20 and what is beside it differ in digits, not in length
		text = text[:len(text)-1]
	}
	for i := 0; i < len(text); i += 2 {
		pair := (text[i] - '0') * 10
		if i+1 < len(text) {
			pair += text[i+1] - '0'
		}
		dst = append(dst, pair+1)
	}
	dst = append(dst, 0)
	if sign < 0 {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// ReadOrdered reads what AppendOrdered wrote at the start of b, with the smallest scale, and returns what follows it.
func ReadOrdered(b []byte) (Decimal, []byte, error) {
	bad := func() (Decimal, []byte, error) {
		return Decimal{}, nil, sqlerr.New(sqlerr.DataCorrupted, "invalid numeric key")
	}
	if len(b) == 0 {
		return bad()
	}
	var flip byte
	switch b[0] {
	case orderedNegInf:
		return DecimalNegInf, b[1:], nil
	case orderedInf:
		return DecimalInf, b[1:], nil
	case orderedNaN:
		return DecimalNaN, b[1:], nil
	case orderedZero:
		return Decimal{}, b[1:], nil
	case orderedNegative:
		flip = 0xff
	case orderedPositive:
	default:
		return bad()
	}
	b = b[1:]
	if len(b) < 5 {
		return bad()
	}
	var raw [4]byte
	for i := range raw {
		raw[i] = b[i] ^ flip
	}
	exp := int(int32(binary.BigEndian.Uint32(raw[:]) ^ 1<<31))
	if exp < -maxDecimalScale || exp > 2*maxDecimalDigits {
		return bad()
	}
	var digits []byte
	for i := 4; i < len(b); i++ {
		p := b[i] ^ flip
		if p == 0 {
			c, ok := new(big.Int).SetString(string(digits), 10)
			if !ok {
				return bad()
			}
			scale := len(digits) - 1 - exp
			if scale < 0 {
				c.Mul(c, bigPow10(-scale))
				scale = 0
			}
			if flip != 0 {
				c.Neg(c)
			}
			return NewDecimalBig(c, scale).Normalise(), b[i+1:], nil
		}
		if p > 100 {
			return bad()
		}
		digits = append(digits, '0'+(p-1)/10, '0'+(p-1)%10)
	}
	return bad()
}
