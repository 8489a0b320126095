package types

import (
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// The hashes below place rows on disk (vnodes), so they never change: not
// between processes, not between versions. TestHashStable guards them.

// HashNull is what a NULL contributes to a hash.
const HashNull = 0x9ae16a3b2f90404f

const (
	hashMul1 = 0x9e3779b97f4a7c15
	hashMul2 = 0xd6e8feb86659fd93
)

// Mix combines the hash v of one more value into the running hash h. The order
// of values matters.
func Mix(h, v uint64) uint64 {
	x := (h ^ v) * hashMul1
	x = (x ^ x>>32) * hashMul2
	return x ^ x>>29
}

// HashBool, HashFloat, HashString: the hash of one value; an integer hashes as itself.
func HashBool(v bool) uint64 {
	if v {
		return 1
	}
	return 2
}

// HashFloat gives -0 and 0, and all NaNs, one hash.
func HashFloat(v float64) uint64 {
	if v == 0 {
		return 0
	}
	if v != v {
		return 0x7ff8000000000001
	}
	return math.Float64bits(v)
}

// HashString is the xxh3 of the bytes.
func HashString(v string) uint64 { return xxh3.HashString(v) }

// Hash is the hash of the value: 1.0 and 1.00 have the same.
func (d Decimal) Hash() uint64 {
	n := d.Normalise()
	if n.big == nil {
		return Mix(uint64(n.coef), uint64(n.scale))
	}
	switch {
	case n.IsNaN():
		return 0x4e614e
	case n.IsInf(1):
		return 0x496e66
	case n.IsInf(-1):
		return 0x2d496e66
	}
	return Mix(xxh3.Hash(n.big.Coeff.Bytes()), uint64(n.scaleOf())<<1|uint64(n.Sign()>>1&1))
}

// Span is the length of iv that comparison goes by, as whole days of 24 hours
// (months have 30) and the microseconds left over, 0 ≤ micros < one day.
func (iv Interval) Span() (days, micros int64) {
	days = int64(iv.Months)*30 + int64(iv.Days) + iv.Micros/microsPerDay
	micros = iv.Micros % microsPerDay
	if micros < 0 {
		days--
		micros += microsPerDay
	}
	return days, micros
}

// Hash is the hash of iv's Span: 24 hours and 1 day have the same.
func (iv Interval) Hash() uint64 {
	days, micros := iv.Span()
	return Mix(uint64(days), uint64(micros))
}

// Hash is the hash of the items, in order; the bounds and the element type do not count.
func (l *List) Hash() uint64 {
	h := uint64(len(l.Items))
	for _, d := range l.Items {
		h = Mix(h, d.Hash())
	}
	return h
}

// Hash is what d contributes to the hash of a row; values that are equal in SQL have the same.
func (d Datum) Hash() uint64 {
	switch d.kind {
	case KindNull:
		return HashNull
	case KindBool:
		return HashBool(d.n != 0)
	case KindInt:
		return uint64(d.n)
	case KindFloat:
		return HashFloat(d.Float())
	case KindString:
		return HashString(d.s)
	case KindDecimal:
		return d.Decimal().Hash()
	case KindInterval:
		return d.Interval().Hash()
	case KindList:
		return d.List().Hash()
	}
	panic("types: unknown kind")
}

// Reduce maps a hash evenly to 0 ≤ n < count by its high bits, so that tables
// indexed by the low bits stay well spread within one n.
func Reduce(h uint64, count int) int {
	hi, _ := bits.Mul64(h, uint64(count))
	return int(hi)
}
