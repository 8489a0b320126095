package expr

import (
	"encoding/binary"
	"math"
	"math/big"
)

// An exactSum adds finite doubles without rounding. It is a fixed-point number
// in limbs of 32 bits held in int64s, so that many values are added before
// carries must move (a small superaccumulator after R. Neal, "Fast exact
// summation using small and large superaccumulators", 2015); only the limbs
// that values have touched exist, three or four for values of one magnitude.
type exactSum struct {
	low   int32   // limb limbs[0] has weight 2^(32·low - 1088)
	limbs []int64 // least first
	adds  int32   // since carries moved last
}

const (
	limbBits = 32
	limbBias = 1088 // a multiple of 32 below the exponent of the smallest double
	maxAdds  = 1 << 29
)

func (s *exactSum) add(x float64, neg bool) {
	b := math.Float64bits(x)
	exp, mant := int(b>>52&0x7ff), b&(1<<52-1)
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << 52
	}
	if mant == 0 {
		return
	}
	pos := exp - 1075 + limbBias // of the lowest bit
	at, shift := int32(pos/limbBits), uint(pos%limbBits)
	if len(s.limbs) == 0 || at < s.low || int(at-s.low)+3 > len(s.limbs) {
		s.reach(at)
	}
	l := s.limbs[at-s.low : at-s.low+3]
	lo := mant << shift
	hi := uint64(0)
	if shift > 0 {
		hi = mant >> (64 - shift)
	}
	if (b>>63 != 0) != neg {
		l[0] -= int64(lo & (1<<32 - 1))
		l[1] -= int64(lo >> 32)
		l[2] -= int64(hi)
	} else {
		l[0] += int64(lo & (1<<32 - 1))
		l[1] += int64(lo >> 32)
		l[2] += int64(hi)
	}
	if s.adds++; s.adds >= maxAdds {
		s.carry()
	}
}

// reach makes room for the limbs at … at+2.
func (s *exactSum) reach(at int32) {
	if len(s.limbs) == 0 {
		s.low, s.limbs = at, make([]int64, 3)
		return
	}
	low, high := min(at, s.low), max(at+3, s.low+int32(len(s.limbs)))
	limbs := make([]int64, high-low)
	copy(limbs[s.low-low:], s.limbs)
	s.low, s.limbs = low, limbs
}

// carry moves carries up, so that every limb but the topmost is in [0, 2^32),
// and drops limbs that say nothing: equal sums then have equal limbs.
func (s *exactSum) carry() {
	s.adds = 0
	carry := int64(0)
	for i := range s.limbs {
		v := s.limbs[i] + carry
		if i == len(s.limbs)-1 {
			s.limbs[i] = v
			break
		}
		s.limbs[i] = v & (1<<32 - 1)
		carry = v >> 32
	}
	for n := len(s.limbs); n > 0; n = len(s.limbs) {
		top := s.limbs[n-1]
		if top >= 1<<32 || top < -1<<32 { // the top limb overflows into a new one
			s.limbs[n-1] = top & (1<<32 - 1)
			s.limbs = append(s.limbs, top>>32)
			continue
		}
		if top == 0 {
			s.limbs = s.limbs[:n-1]
			continue
		}
		if top == -1 && n > 1 { // -2^32 + what is below
			s.limbs[n-2] -= 1 << 32
			s.limbs = s.limbs[:n-1]
			continue
		}
		break
	}
	for len(s.limbs) > 0 && s.limbs[0] == 0 {
		s.limbs = s.limbs[1:]
		s.low++
	}
	if len(s.limbs) == 0 {
		*s = exactSum{}
	}
}

// int is the sum as v × 2^exp.
func (s *exactSum) int() (v *big.Int, exp int) {
	v = new(big.Int)
	for i := len(s.limbs) - 1; i >= 0; i-- {
		v.Lsh(v, limbBits)
		v.Add(v, big.NewInt(s.limbs[i]))
	}
	return v, int(s.low)*limbBits - limbBias
}

// float is the sum as an exact big.Float.
func (s *exactSum) float() *big.Float {
	v, exp := s.int()
	prec := uint(max(v.BitLen(), 64))
	f := new(big.Float).SetPrec(prec).SetInt(v)
	return f.SetMantExp(f, exp)
}

// A floatTotal is an exact sum of doubles of every sort, with their number.
type floatTotal struct {
	sum           exactSum
	n             int64 // values
	nan, pos, neg int64 // of which NaN, ∞, -∞
}

func (t *floatTotal) add(x float64) {
	t.n++
	if x-x != 0 {
		t.special(x, 1)
		return
	}
	t.sum.add(x, false)
}

func (t *floatTotal) sub(x float64) {
	t.n--
	if x-x != 0 {
		t.special(x, -1)
		return
	}
	t.sum.add(x, true)
}

func (t *floatTotal) special(x float64, sign int64) {
	switch {
	case x != x:
		t.nan += sign
	case x > 0:
		t.pos += sign
	default:
		t.neg += sign
	}
}

// infinite is the sum where some value is not finite.
func (t *floatTotal) infinite() (v float64, ok bool) {
	switch {
	case t.nan > 0 || t.pos > 0 && t.neg > 0:
		return math.NaN(), true
	case t.pos > 0:
		return math.Inf(1), true
	case t.neg > 0:
		return math.Inf(-1), true
	}
	return 0, false
}

// value is the sum rounded to a double; error 22003 where it is beyond doubles.
func (t *floatTotal) value() (float64, error) {
	if v, ok := t.infinite(); ok {
		return v, nil
	}
	t.sum.carry()
	v, _ := t.sum.float().Float64()
	if math.IsInf(v, 0) {
		return 0, errOverflow()
	}
	return v, nil
}

// mean is the sum divided by the number of values, rounded once more.
func (t *floatTotal) mean() float64 {
	v, err := t.value()
	if err == nil {
		return v / float64(t.n)
	}
	f := t.sum.float()
	f.Quo(f.SetPrec(f.Prec()+64), new(big.Float).SetInt64(t.n))
	v, _ = f.Float64()
	return v
}

func (t *floatTotal) append(dst []byte) []byte {
	t.sum.carry()
	for _, v := range []int64{t.n, t.nan, t.pos, t.neg, int64(t.sum.low), int64(len(t.sum.limbs))} {
		dst = binary.AppendVarint(dst, v)
	}
	for _, l := range t.sum.limbs {
		dst = binary.AppendVarint(dst, l)
	}
	return dst
}

func (t *floatTotal) load(b []byte) ([]byte, error) {
	*t = floatTotal{}
	var low, limbs int64
	var err error
	for _, v := range []*int64{&t.n, &t.nan, &t.pos, &t.neg, &low, &limbs} {
		if *v, b, err = readVarint(b); err != nil {
			return nil, err
		}
	}
	if limbs < 0 || limbs > int64(len(b)) {
		return nil, errState()
	}
	t.sum.low = int32(low)
	for range limbs {
		var l int64
		if l, b, err = readVarint(b); err != nil {
			return nil, err
		}
		t.sum.limbs = append(t.sum.limbs, l)
	}
	return b, nil
}
