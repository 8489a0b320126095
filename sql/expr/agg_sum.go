package expr

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// An int128 is a signed sum of integers.
type int128 struct {
	lo uint64
	hi int64
}

func (s *int128) add(x int64) {
	lo, carry := bits.Add64(s.lo, uint64(x), 0)
	s.lo, s.hi = lo, s.hi+x>>63+int64(carry)
}

func (s *int128) sub(x int64) {
	lo, borrow := bits.Sub64(s.lo, uint64(x), 0)
	s.lo, s.hi = lo, s.hi-x>>63-int64(borrow)
}

// int64 is s if it fits.
func (s int128) int64() (int64, bool) { return int64(s.lo), s.hi == int64(s.lo)>>63 }

func (s int128) big() *big.Int {
	v := new(big.Int).Lsh(big.NewInt(s.hi), 64)
	return v.Add(v, new(big.Int).SetUint64(s.lo))
}

func (s int128) decimal() types.Decimal {
	if v, ok := s.int64(); ok {
		return types.NewDecimalInt(v)
	}
	return types.NewDecimalBig(s.big(), 0)
}

// A sumFinal says what becomes of a sum of integers.
type sumFinal uint8

const (
	sumInt8    sumFinal = iota // bigint, NULL for no value
	sumZero                    // bigint, 0 for no value
	sumNumeric                 // numeric
	avgInt                     // numeric, divided by the count
)

// intSum is sum and avg over integers.
type intSum struct {
	final sumFinal
	s     []intSumState
}

type intSumState struct {
	sum int128
	n   int64 // values that are not NULL
}

func (a *intSum) Grow(n int) { a.s = grown(a.s, n) }

func (a *intSum) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	v := chunk.Of[int64](args[0])
	if sel == nil && v.Nulls == nil {
		data := v.Data[:len(groups)]
		if ops == nil {
			for k, g := range groups {
				s := &a.s[g]
				s.sum.add(data[k])
				s.n++
			}
			return nil
		}
		for k, g := range groups {
			s := &a.s[g]
			if ops[k] == chunk.Insert {
				s.sum.add(data[k])
				s.n++
			} else {
				s.sum.sub(data[k])
				s.n--
			}
		}
		return nil
	}
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Nulls != nil && v.Nulls[i] {
			continue
		}
		s := &a.s[g]
		if ops == nil || ops[i] == chunk.Insert {
			s.sum.add(v.Data[i])
			s.n++
		} else {
			s.sum.sub(v.Data[i])
			s.n--
		}
	}
	return nil
}

func (a *intSum) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	if s.n == 0 && a.final != sumZero {
		col.AppendNull()
		return nil
	}
	switch a.final {
	case sumInt8, sumZero:
		v, ok := s.sum.int64()
		if !ok {
			return errIntRange(64)
		}
		col.(*chunk.Vec[int64]).AppendValue(v)
	case sumNumeric:
		col.(*chunk.Vec[types.Decimal]).AppendValue(s.sum.decimal())
	case avgInt:
		d, err := s.sum.decimal().Div(types.NewDecimalInt(s.n))
		if err != nil {
			return err
		}
		col.(*chunk.Vec[types.Decimal]).AppendValue(d)
	}
	return nil
}

func (s int128) append(dst []byte) []byte {
	// Small sums, the usual ones, as one number and a zero.
	dst = binary.AppendVarint(dst, int64(s.lo))
	return binary.AppendVarint(dst, s.hi-int64(s.lo)>>63)
}

func readInt128(b []byte) (s int128, rest []byte, err error) {
	lo, b, err := readVarint(b)
	if err != nil {
		return s, nil, err
	}
	hi, b, err := readVarint(b)
	return int128{uint64(lo), hi + lo>>63}, b, err
}

func (a *intSum) AppendState(dst []byte, g int32) []byte {
	return binary.AppendVarint(a.s[g].sum.append(dst), a.s[g].n)
}

func (a *intSum) LoadState(g int32, b []byte) (rest []byte, err error) {
	if a.s[g].sum, b, err = readInt128(b); err != nil {
		return nil, err
	}
	a.s[g].n, b, err = readVarint(b)
	return b, err
}

func (a *intSum) Reset(g int32) { a.s[g] = intSumState{} }

// A decimalTotal is an exact sum of numerics that can lose values again, its
// display scale included: it counts how many values there are of each scale.
type decimalTotal struct {
	sum           types.Decimal // of the finite values
	n             int64         // values, the special ones too
	nan, pos, neg int64         // NaN, infinity, -infinity
	scale         int32         // the one scale of most sums …
	ofScale       int64         // … and its count
	more          map[int32]int64
}

func (t *decimalTotal) add(x types.Decimal, sign int64) {
	t.n += sign
	switch {
	case x.IsFinite():
		if sign > 0 {
			t.sum = t.sum.Add(x)
		} else {
			t.sum = t.sum.Sub(x)
		}
		t.count(int32(x.Scale()), sign)
	case x.IsNaN():
		t.nan += sign
	case x.Sign() > 0:
		t.pos += sign
	default:
		t.neg += sign
	}
}

func (t *decimalTotal) count(scale int32, sign int64) {
	if t.ofScale == 0 && t.more == nil {
		t.scale = scale
	}
	if scale == t.scale {
		t.ofScale += sign
		return
	}
	if t.more == nil {
		t.more = map[int32]int64{}
	}
	if t.more[scale] += sign; t.more[scale] == 0 {
		delete(t.more, scale)
	}
}

// value is the sum at the largest scale there is.
func (t *decimalTotal) value() types.Decimal {
	switch {
	case t.nan > 0 || t.pos > 0 && t.neg > 0:
		return types.DecimalNaN
	case t.pos > 0:
		return types.DecimalInf
	case t.neg > 0:
		return types.DecimalNegInf
	}
	scale := int32(0)
	if t.ofScale != 0 {
		scale = t.scale
	}
	for s := range t.more {
		scale = max(scale, s)
	}
	return t.sum.Round(int(scale))
}

func (t *decimalTotal) append(dst []byte) []byte {
	dst = t.sum.Normalise().AppendBinary(dst)
	for _, v := range []int64{t.n, t.nan, t.pos, t.neg} {
		dst = binary.AppendVarint(dst, v)
	}
	scales := make([]int32, 0, len(t.more)+1)
	if t.ofScale != 0 {
		scales = append(scales, t.scale)
	}
	for s := range t.more {
		scales = append(scales, s)
	}
	sortScales(scales)
	dst = binary.AppendVarint(dst, int64(len(scales)))
	for _, s := range scales {
		n := t.more[s]
		if s == t.scale && t.ofScale != 0 {
			n = t.ofScale
		}
		dst = binary.AppendVarint(dst, int64(s))
		dst = binary.AppendVarint(dst, n)
	}
	return dst
}

func sortScales(s []int32) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

func (t *decimalTotal) load(b []byte) ([]byte, error) {
	*t = decimalTotal{}
	var err error
	if t.sum, b, err = types.ReadBinary(b); err != nil {
		return nil, err
	}
	for _, v := range []*int64{&t.n, &t.nan, &t.pos, &t.neg} {
		if *v, b, err = readVarint(b); err != nil {
			return nil, err
		}
	}
	k, b, err := readVarint(b)
	if err != nil {
		return nil, err
	}
	for range k {
		var s, n int64
		if s, b, err = readVarint(b); err != nil {
			return nil, err
		}
		if n, b, err = readVarint(b); err != nil {
			return nil, err
		}
		t.count(int32(s), n)
	}
	return b, nil
}

// decimalSum is sum and avg over numeric.
type decimalSum struct {
	avg bool
	s   []decimalTotal
}

func (a *decimalSum) Grow(n int) { a.s = grown(a.s, n) }

func (a *decimalSum) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x types.Decimal, sign int64) { a.s[g].add(x, sign) })
	return nil
}

func (a *decimalSum) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	if s.n == 0 {
		col.AppendNull()
		return nil
	}
	v := s.value()
	if a.avg {
		var err error
		if v, err = v.Div(types.NewDecimalInt(s.n)); err != nil {
			return err
		}
	}
	if err := v.Check(); err != nil {
		return err
	}
	col.(*chunk.Vec[types.Decimal]).AppendValue(v)
	return nil
}

func (a *decimalSum) AppendState(dst []byte, g int32) []byte { return a.s[g].append(dst) }

func (a *decimalSum) LoadState(g int32, b []byte) ([]byte, error) { return a.s[g].load(b) }

func (a *decimalSum) Reset(g int32) { a.s[g] = decimalTotal{} }

// intervalSum is sum and avg over intervals, each of the three parts for itself.
type intervalSum struct {
	avg bool
	s   []intervalState
}

type intervalState struct {
	months, days int64
	micros       int128
	n            int64
}

func (a *intervalSum) Grow(n int) { a.s = grown(a.s, n) }

func (a *intervalSum) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	eachValue(groups, sel, ops, args[0], func(g int32, x types.Interval, sign int64) {
		s := &a.s[g]
		s.months += sign * int64(x.Months)
		s.days += sign * int64(x.Days)
		if sign > 0 {
			s.micros.add(x.Micros)
		} else {
			s.micros.sub(x.Micros)
		}
		s.n += sign
	})
	return nil
}

func (a *intervalSum) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	if s.n == 0 {
		col.AppendNull()
		return nil
	}
	us, ok := s.micros.int64()
	if !ok || s.months != int64(int32(s.months)) || s.days != int64(int32(s.days)) {
		return sqlerr.New(sqlerr.DatetimeOverflow, "interval out of range")
	}
	iv := types.Interval{Months: int32(s.months), Days: int32(s.days), Micros: us}
	if a.avg {
		var err error
		if iv, err = iv.Div(float64(s.n)); err != nil {
			return err
		}
	}
	col.(*chunk.Vec[types.Interval]).AppendValue(iv)
	return nil
}

func (a *intervalSum) AppendState(dst []byte, g int32) []byte {
	s := &a.s[g]
	dst = binary.AppendVarint(dst, s.months)
	dst = binary.AppendVarint(dst, s.days)
	return binary.AppendVarint(s.micros.append(dst), s.n)
}

func (a *intervalSum) LoadState(g int32, b []byte) (rest []byte, err error) {
	s := &a.s[g]
	if s.months, b, err = readVarint(b); err != nil {
		return nil, err
	}
	if s.days, b, err = readVarint(b); err != nil {
		return nil, err
	}
	if s.micros, b, err = readInt128(b); err != nil {
		return nil, err
	}
	s.n, b, err = readVarint(b)
	return b, err
}

func (a *intervalSum) Reset(g int32) { a.s[g] = intervalState{} }

// floatSum is sum and avg over floats. The sum is exact (see exactSum), so it
// does not depend on the order of values, and retraction leaves no drift; the
// result is the exact sum rounded once.
type floatSum struct {
	avg, single bool
	s           []floatTotal
}

func (a *floatSum) Grow(n int) { a.s = grown(a.s, n) }

func (a *floatSum) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	v := chunk.Of[float64](args[0])
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Nulls != nil && v.Nulls[i] {
			continue
		}
		if ops == nil || ops[i] == chunk.Insert {
			a.s[g].add(v.Data[i])
		} else {
			a.s[g].sub(v.Data[i])
		}
	}
	return nil
}

func (a *floatSum) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	if s.n == 0 {
		col.AppendNull()
		return nil
	}
	v, err := s.value()
	if err != nil && !a.avg {
		return err
	}
	if a.avg {
		v = s.mean()
	} else if a.single {
		single := float64(float32(v))
		if math.IsInf(single, 0) && !math.IsInf(v, 0) {
			return errOverflow()
		}
		v = single
	}
	col.(*chunk.Vec[float64]).AppendValue(v)
	return nil
}

func (a *floatSum) AppendState(dst []byte, g int32) []byte { return a.s[g].append(dst) }

func (a *floatSum) LoadState(g int32, b []byte) ([]byte, error) { return a.s[g].load(b) }

func (a *floatSum) Reset(g int32) { a.s[g] = floatTotal{} }
