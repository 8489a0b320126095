package storage

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// Key columns are encoded so that comparing bytes compares values. Invariants:
//
//  1. The encoding of a column is never a prefix of another one's of the same type,
//     so concatenation keeps the order column by column.
//  2. The first byte of a NULL is 0xFF and above every value's first byte. A
//     descending column is the complement of the ascending one, which puts NULLs
//     first, as PostgreSQL does.
//  3. Equal values have equal encodings (-0 and 0, every NaN, 1.5 and 1.50).
const (
	keyNull  = 0xFF
	keyValue = 0x01 // leads values whose own first byte may be anything
	keyZero  = 0x80 // an integer's lead byte: 0x80 + length, or 0x7F - length when negative
)

// appendKeyInt writes a lead byte that holds sign and length, then the significant bytes.
func appendKeyInt(dst []byte, v int64) []byte {
	n := (bits.Len64(uint64(v^v>>63)) + 7) / 8
	lead := byte(keyZero + n)
	if v < 0 {
		lead = byte(keyZero - 1 - n)
	}
	dst = append(dst, lead)
	dst = binary.BigEndian.AppendUint64(dst, uint64(v)<<(64-8*n))
	return dst[:len(dst)-(8-n)]
}

// keyInt reads what appendKeyInt wrote; mask is 0xFF for a descending column. It
// returns the number of bytes read, 0 where b is not an integer.
func keyInt(b []byte, mask byte) (int64, int) {
	if len(b) == 0 {
		return 0, 0
	}
	lead := int(b[0] ^ mask)
	n, neg := lead-keyZero, false
	if n < 0 {
		n, neg = keyZero-1-lead, true
	}
	if n > 8 || len(b) < 1+n {
		return 0, 0
	}
	var x uint64
	if len(b) >= 9 {
		x = (binary.BigEndian.Uint64(b[1:]) ^ -uint64(mask&1)) >> (64 - 8*n)
	} else {
		for _, c := range b[1 : 1+n] {
			x = x<<8 | uint64(c^mask)
		}
	}
	if neg {
		x |= ^uint64(0) << (8 * n)
	}
	return int64(x), 1 + n
}

// appendKeyString writes the bytes with 0x00 as 0x00 0xFF, ended by 0x00 0x01.
func appendKeyString(dst []byte, s string) []byte {
	dst = append(dst, keyValue)
	for {
		i := indexZero(s)
		if i < 0 {
			break
		}
		dst = append(dst, s[:i]...)
		dst = append(dst, 0x00, 0xFF)
		s = s[i+1:]
	}
	dst = append(dst, s...)
	return append(dst, 0x00, 0x01)
}

func indexZero(s string) int {
	for i := range len(s) {
		if s[i] == 0 {
			return i
		}
	}
	return -1
}

// keyString reads what appendKeyString wrote, after its lead byte. The result
// shares b where nothing is escaped and the column ascends; scratch is used otherwise.
func keyString(b []byte, mask byte, scratch []byte) (s []byte, n int) {
	i := bytes.IndexByte(b, mask)
	if i < 0 || i+1 >= len(b) {
		return nil, 0
	}
	if mask == 0 && b[i+1] == 0x01 {
		return b[:i], i + 2
	}
	out, at := scratch[:0], 0
	for {
		for _, c := range b[at : at+i] {
			out = append(out, c^mask)
		}
		at += i
		if at+1 >= len(b) {
			return nil, 0
		}
		switch b[at+1] ^ mask {
		case 0x01:
			return out, at + 2
		case 0xFF:
			out = append(out, 0)
		default:
			return nil, 0
		}
		at += 2
		if i = bytes.IndexByte(b[at:], mask); i < 0 {
			return nil, 0
		}
	}
}

func appendKeyFloat(dst []byte, v float64) []byte {
	var u uint64
	switch {
	case v != v:
		u = math.MaxUint64
	case v == 0:
		u = 1 << 63
	default:
		u = math.Float64bits(v)
		if u>>63 != 0 {
			u = ^u
		} else {
			u |= 1 << 63
		}
	}
	return binary.BigEndian.AppendUint64(append(dst, keyValue), u)
}

// appendKeyInterval orders by PostgreSQL's rule: a month is 30 days, a day 24 hours.
// The span in microseconds needs more than 64 bits.
func appendKeyInterval(dst []byte, v types.Interval) []byte {
	days := int64(v.Months)*30 + int64(v.Days)
	neg := days < 0
	if neg {
		days = -days
	}
	hi, lo := bits.Mul64(uint64(days), 86_400_000_000)
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	var carry uint64
	lo, carry = bits.Add64(lo, uint64(v.Micros), 0)
	hi, _ = bits.Add64(hi, uint64(v.Micros>>63), carry)
	dst = binary.BigEndian.AppendUint64(append(dst, keyValue), hi^1<<63)
	return binary.BigEndian.AppendUint64(dst, lo)
}

// appendKeyList orders as types.List.Cmp does: by the items of all dimensions, NULL
// last, an array before the longer one that it begins; then by the number of dimensions, by
// how long they are, and by where they are counted from.
func appendKeyList(dst []byte, l *types.List) []byte {
	dst = appendKeyItems(append(dst, keyValue), l, l.Elem.OID == types.OIDBpchar)
	dims := l.Dims()
	dst = append(dst, 0x00, byte(len(dims)))
	if len(dims) > 1 {
		for _, n := range dims {
			dst = binary.BigEndian.AppendUint32(dst, uint32(n))
		}
	}
	for i := range dims {
		if i > 0 {
			l = l.Items[0].List()
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(l.Lower)^1<<31)
	}
	return dst
}

func appendKeyItems(dst []byte, l *types.List, bpchar bool) []byte {
	for _, d := range l.Items {
		if d.Kind() == types.KindList {
			dst = appendKeyItems(dst, d.List(), bpchar)
		} else {
			dst = appendKeyDatum(append(dst, 0x01), d, bpchar)
		}
	}
	return dst
}

// appendKeyDatum is for list elements; columns go through appendKeyCol.
func appendKeyDatum(dst []byte, d types.Datum, bpchar bool) []byte {
	switch d.Kind() {
	case types.KindBool:
		return appendKeyBool(dst, d.Bool())
	case types.KindInt:
		return appendKeyInt(dst, d.Int())
	case types.KindFloat:
		return appendKeyFloat(dst, d.Float())
	case types.KindString:
		if bpchar {
			return appendKeyString(dst, trimSpaces(d.Str()))
		}
		return appendKeyString(dst, d.Str())
	case types.KindDecimal:
		return d.Decimal().AppendOrdered(dst)
	case types.KindInterval:
		return appendKeyInterval(dst, d.Interval())
	default:
		return append(dst, keyNull)
	}
}

func appendKeyBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0x02)
	}
	return append(dst, 0x01)
}

// trimSpaces drops the trailing blanks, which char(n) ignores in comparisons.
func trimSpaces(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// A keyCol is one key column of a Codec.
type keyCol struct {
	col    int // in the schema
	kind   types.Kind
	bpchar bool
	desc   bool
}

// append encodes value i of c.
func (k *keyCol) append(dst []byte, c chunk.Column, i int) []byte {
	start := len(dst)
	switch k.kind {
	case types.KindInt:
		v := c.(*chunk.Vec[int64])
		if v.Nulls != nil && v.Nulls[i] {
			dst = append(dst, keyNull)
		} else {
			dst = appendKeyInt(dst, v.Data[i])
		}
	case types.KindString:
		v := c.(*chunk.Vec[string])
		switch {
		case v.Nulls != nil && v.Nulls[i]:
			dst = append(dst, keyNull)
		case k.bpchar:
			dst = appendKeyString(dst, trimSpaces(v.Data[i]))
		default:
			dst = appendKeyString(dst, v.Data[i])
		}
	default:
		if c.Null(i) {
			dst = append(dst, keyNull)
			break
		}
		switch k.kind {
		case types.KindBool:
			dst = appendKeyBool(dst, c.(*chunk.Vec[bool]).Data[i])
		case types.KindFloat:
			dst = appendKeyFloat(dst, c.(*chunk.Vec[float64]).Data[i])
		case types.KindDecimal:
			dst = c.(*chunk.Vec[types.Decimal]).Data[i].AppendOrdered(dst)
		case types.KindInterval:
			dst = appendKeyInterval(dst, c.(*chunk.Vec[types.Interval]).Data[i])
		case types.KindList:
			dst = appendKeyList(dst, c.(*chunk.Vec[*types.List]).Data[i])
		}
	}
	if k.desc {
		for j := start; j < len(dst); j++ {
			dst[j] ^= 0xFF
		}
	}
	return dst
}

// inKey reports whether the column's value can be read back from the key alone.
func (k *keyCol) inKey() bool {
	switch k.kind {
	case types.KindBool, types.KindInt:
		return true
	case types.KindString:
		return !k.bpchar
	}
	return false
}

// sized reports whether the end of the column's encoding can be found, so that columns after it can be read.
func (k *keyCol) sized() bool { return k.kind != types.KindDecimal && k.kind != types.KindList }
