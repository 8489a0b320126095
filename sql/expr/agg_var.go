package expr

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A spread says which of the variance family is wanted.
type spread struct {
	sample bool // divide by n - 1
	sd     bool // the square root
}

// decimal is the result for n values with the exact sums x and x2 of values and
// squares, at the scale of PostgreSQL's numeric_stddev_internal.
func (v spread) decimal(n int64, x, x2 types.Decimal, col chunk.Column) error {
	if n == 0 || v.sample && n == 1 {
		col.AppendNull()
		return nil
	}
	out := col.(*chunk.Vec[types.Decimal])
	if x.IsNaN() || !x.IsFinite() || !x2.IsFinite() {
		out.AppendValue(types.DecimalNaN)
		return nil
	}
	count := types.NewDecimalInt(n)
	num := x2.Mul(count).Sub(x.Mul(x))
	if num.Sign() <= 0 {
		out.AppendValue(types.Decimal{})
		return nil
	}
	if v.sample {
		count = count.Mul(types.NewDecimalInt(n - 1))
	} else {
		count = count.Mul(count)
	}
	d, err := num.Div(count)
	if err != nil {
		return err
	}
	if v.sd {
		d = sqrtScale(d, d.Scale())
	}
	out.AppendValue(d)
	return nil
}

// sqrtScale is the square root of d ≥ 0 rounded half away from zero to a scale.
func sqrtScale(d types.Decimal, scale int) types.Decimal {
	// floor(√d · 10^(scale+1)); its last digit decides the rounding.
	shift := 2*(scale+1) - d.Scale()
	v := d.Big()
	ten := big.NewInt(10)
	if shift >= 0 {
		v.Mul(v, new(big.Int).Exp(ten, big.NewInt(int64(shift)), nil))
	} else {
		v.Quo(v, new(big.Int).Exp(ten, big.NewInt(int64(-shift)), nil))
	}
	v.Sqrt(v)
	return types.NewDecimalBig(v, scale+1).Round(scale)
}

// An int192 is a sum of squares of integers.
type int192 struct {
	lo, mid uint64
	hi      int64
}

func (s *int192) addSquare(x int64, sign int64) {
	a := uint64(x)
	if x < 0 {
		a = -a
	}
	hi, lo := bits.Mul64(a, a)
	var c uint64
	if sign > 0 {
		s.lo, c = bits.Add64(s.lo, lo, 0)
		s.mid, c = bits.Add64(s.mid, hi, c)
		s.hi += int64(c)
	} else {
		s.lo, c = bits.Sub64(s.lo, lo, 0)
		s.mid, c = bits.Sub64(s.mid, hi, c)
		s.hi -= int64(c)
	}
}

func (s int192) decimal() types.Decimal {
	if s.hi == 0 && s.mid == 0 && s.lo < 1<<63 {
		return types.NewDecimalInt(int64(s.lo))
	}
	v := big.NewInt(s.hi)
	v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(s.mid))
	v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(s.lo))
	return types.NewDecimalBig(v, 0)
}

// intVar is the variance family over integers.
type intVar struct {
	spread
	s []intVarState
}

type intVarState struct {
	n  int64
	x  int128
	x2 int192
}

func (a *intVar) Grow(n int) { a.s = grown(a.s, n) }

func (a *intVar) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x int64, sign int64) {
		s := &a.s[g]
		s.n += sign
		if sign > 0 {
			s.x.add(x)
		} else {
			s.x.sub(x)
		}
		s.x2.addSquare(x, sign)
	})
	return nil
}

func (a *intVar) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	return a.decimal(s.n, s.x.decimal(), s.x2.decimal(), col)
}

func (a *intVar) AppendState(dst []byte, g int32) []byte {
	s := &a.s[g]
	dst = s.x.append(binary.AppendVarint(dst, s.n))
	dst = binary.AppendUvarint(dst, s.x2.lo)
	dst = binary.AppendUvarint(dst, s.x2.mid)
	return binary.AppendVarint(dst, s.x2.hi)
}

func (a *intVar) LoadState(g int32, b []byte) (rest []byte, err error) {
	s := &a.s[g]
	if s.n, b, err = readVarint(b); err != nil {
		return nil, err
	}
	if s.x, b, err = readInt128(b); err != nil {
		return nil, err
	}
	for _, v := range []*uint64{&s.x2.lo, &s.x2.mid} {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errState()
		}
		*v, b = u, b[n:]
	}
	s.x2.hi, b, err = readVarint(b)
	return b, err
}

func (a *intVar) Reset(g int32) { a.s[g] = intVarState{} }

// decimalVar is the variance family over numeric.
type decimalVar struct {
	spread
	s []decimalVarState
}

type decimalVarState struct{ x, x2 decimalTotal }

func (a *decimalVar) Grow(n int) { a.s = grown(a.s, n) }

func (a *decimalVar) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x types.Decimal, sign int64) {
		a.s[g].x.add(x, sign)
		a.s[g].x2.add(x.Mul(x), sign)
	})
	return nil
}

func (a *decimalVar) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	return a.decimal(s.x.n, s.x.value(), s.x2.value(), col)
}

func (a *decimalVar) AppendState(dst []byte, g int32) []byte {
	return a.s[g].x2.append(a.s[g].x.append(dst))
}

func (a *decimalVar) LoadState(g int32, b []byte) ([]byte, error) {
	b, err := a.s[g].x.load(b)
	if err != nil {
		return nil, err
	}
	return a.s[g].x2.load(b)
}

func (a *decimalVar) Reset(g int32) { a.s[g] = decimalVarState{} }

// floatVar is the variance family over floats, from exact sums of values and
// of squares (each square is the sum of two doubles), rounded once.
type floatVar struct {
	spread
	s []floatVarState
}

type floatVarState struct {
	x    floatTotal
	x2   exactSum
	huge int64 // finite values whose square is not: an error while there are any
}

func (a *floatVar) Grow(n int) { a.s = grown(a.s, n) }

func (a *floatVar) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x float64, sign int64) {
		s := &a.s[g]
		if sign > 0 {
			s.x.add(x)
		} else {
			s.x.sub(x)
		}
		sq := x * x
		if sq-sq != 0 {
			if x-x == 0 {
				s.huge += sign
			}
			return
		}
		s.x2.add(sq, sign < 0)
		s.x2.add(math.FMA(x, x, -sq), sign < 0)
	})
	return nil
}

func (a *floatVar) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	out := col.(*chunk.Vec[float64])
	if s.x.n == 0 || a.sample && s.x.n == 1 {
		col.AppendNull()
		return nil
	}
	if _, special := s.x.infinite(); special {
		out.AppendValue(math.NaN())
		return nil
	}
	if s.huge > 0 {
		return errOverflow()
	}
	s.x.sum.carry()
	s.x2.carry()
	x, x2 := s.x.sum.float(), s.x2.float()
	n := new(big.Float).SetInt64(s.x.n)
	const prec = 4400 // enough for any difference of exact squares
	num := new(big.Float).SetPrec(prec).Mul(x2, n)
	num.Sub(num, new(big.Float).SetPrec(prec).Mul(x, x))
	if num.Sign() <= 0 {
		out.AppendValue(0)
		return nil
	}
	den := new(big.Float).SetPrec(128).Mul(n, n)
	if a.sample {
		den.Mul(n, new(big.Float).SetInt64(s.x.n-1))
	}
	v, _ := num.Quo(num.SetPrec(128), den).Float64()
	if a.sd {
		v = math.Sqrt(v)
	}
	out.AppendValue(v)
	return nil
}

func (a *floatVar) AppendState(dst []byte, g int32) []byte {
	return (&floatTotal{sum: a.s[g].x2, n: a.s[g].huge}).append(a.s[g].x.append(dst))
}

func (a *floatVar) LoadState(g int32, b []byte) ([]byte, error) {
	b, err := a.s[g].x.load(b)
	if err != nil {
		return nil, err
	}
	var t floatTotal
	b, err = t.load(b)
	a.s[g].x2, a.s[g].huge = t.sum, t.n
	return b, err
}

func (a *floatVar) Reset(g int32) { a.s[g] = floatVarState{} }
