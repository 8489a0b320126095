package expr

import (
	"encoding/binary"
	"math"
	"math/big"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A regrKind is one of the aggregates over pairs (y, x).
type regrKind uint8

const (
	regrCount regrKind = iota
	regrAvgX
	regrAvgY
	regrSxx
	regrSyy
	regrSxy
	regrSlope
	regrIntercept
	regrR2
	corr
	covarPop
	covarSamp
)

var regrNames = [...]string{"regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2",
	"corr", "covar_pop", "covar_samp"}

func regrAggs(r *registry) {
	for kind, name := range regrNames {
		ret := "float8"
		if regrKind(kind) == regrCount {
			ret = "int8"
		}
		r.agg(name+"(float8,float8) "+ret, true, func([]types.Type, types.Type) Accumulator { return &regr{kind: regrKind(kind)} })
	}
}

// regr is the aggregates over pairs, from exact sums of both values, of their
// squares and of their product; each answer is rounded once or twice.
type regr struct {
	kind regrKind
	s    []regrState
}

type regrState struct {
	x, y       floatTotal // over the pairs without a NULL
	xx, yy, xy exactSum
	huge       int64 // finite pairs with a product that is not: an error while there are any
}

func (a *regr) Grow(n int) { a.s = grown(a.s, n) }

func (a *regr) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	ys, xs := chunk.Of[float64](args[0]), chunk.Of[float64](args[1])
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if ys.Null(i) || xs.Null(i) {
			continue
		}
		a.s[g].add(ys.Data[i], xs.Data[i], ops != nil && ops[i] == chunk.Delete)
	}
	return nil
}

func (s *regrState) add(y, x float64, del bool) {
	if del {
		s.x.sub(x)
		s.y.sub(y)
	} else {
		s.x.add(x)
		s.y.add(y)
	}
	if xx, yy := x*x, y*y; xx-xx != 0 || yy-yy != 0 || x*y-x*y != 0 {
		if x-x == 0 && y-y == 0 {
			if del {
				s.huge--
			} else {
				s.huge++
			}
		}
		return
	}
	product := func(sum *exactSum, a, b float64) {
		p := a * b
		sum.add(p, del)
		sum.add(math.FMA(a, b, -p), del)
	}
	product(&s.xx, x, x)
	product(&s.yy, y, y)
	product(&s.xy, x, y)
}

// regrPrec is enough for any difference of exact products.
const regrPrec = 4400

// spread is n·Σab - Σa·Σb, exactly.
func (s *regrState) spread(ab *exactSum, a, b *big.Float) *big.Float {
	ab.carry()
	n := new(big.Float).SetInt64(s.x.n)
	v := new(big.Float).SetPrec(regrPrec).Mul(ab.float(), n)
	return v.Sub(v, new(big.Float).SetPrec(regrPrec).Mul(a, b))
}

func (a *regr) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	n := s.x.n
	switch {
	case a.kind == regrCount:
		col.(*chunk.Vec[int64]).AppendValue(n)
		return nil
	case n == 0 || a.kind == covarSamp && n == 1:
		col.AppendNull()
		return nil
	}
	out := col.(*chunk.Vec[float64])
	switch a.kind {
	case regrAvgX:
		out.AppendValue(s.x.mean())
		return nil
	case regrAvgY:
		out.AppendValue(s.y.mean())
		return nil
	}
	_, special := s.x.infinite()
	if _, ok := s.y.infinite(); ok || special {
		out.AppendValue(math.NaN())
		return nil
	}
	if s.huge > 0 {
		return errOverflow()
	}
	s.x.sum.carry()
	s.y.sum.carry()
	x, y := s.x.sum.float(), s.y.sum.float()
	quo := func(num, den *big.Float) float64 {
		v, _ := new(big.Float).SetPrec(128).Quo(num, den).Float64()
		return v
	}
	count := new(big.Float).SetInt64(n)
	square := new(big.Float).SetPrec(128).Mul(count, count)
	switch a.kind {
	case regrSxx:
		out.AppendValue(quo(s.spread(&s.xx, x, x), count))
		return nil
	case regrSyy:
		out.AppendValue(quo(s.spread(&s.yy, y, y), count))
		return nil
	case regrSxy:
		out.AppendValue(quo(s.spread(&s.xy, x, y), count))
		return nil
	case covarPop:
		out.AppendValue(quo(s.spread(&s.xy, x, y), square))
		return nil
	case covarSamp:
		out.AppendValue(quo(s.spread(&s.xy, x, y), new(big.Float).SetPrec(128).Mul(count, new(big.Float).SetInt64(n-1))))
		return nil
	}
	sxx, syy, sxy := s.spread(&s.xx, x, x), s.spread(&s.yy, y, y), s.spread(&s.xy, x, y)
	if sxx.Sign() == 0 || a.kind == corr && syy.Sign() == 0 {
		col.AppendNull()
		return nil
	}
	switch a.kind {
	case regrSlope:
		out.AppendValue(quo(sxy, sxx))
	case regrIntercept: // (Σy - slope·Σx) / n
		v := new(big.Float).SetPrec(regrPrec).Mul(y, sxx)
		v.Sub(v, new(big.Float).SetPrec(regrPrec).Mul(x, sxy))
		out.AppendValue(quo(v, new(big.Float).SetPrec(regrPrec).Mul(sxx, count)))
	case regrR2:
		if syy.Sign() == 0 {
			out.AppendValue(1)
			return nil
		}
		out.AppendValue(quo(new(big.Float).SetPrec(regrPrec).Mul(sxy, sxy), new(big.Float).SetPrec(regrPrec).Mul(sxx, syy)))
	default: // corr
		den := new(big.Float).SetPrec(regrPrec).Mul(sxx, syy)
		out.AppendValue(quo(sxy, den.SetPrec(200).Sqrt(den.SetPrec(200))))
	}
	return nil
}

func (a *regr) AppendState(dst []byte, g int32) []byte {
	s := &a.s[g]
	dst = s.y.append(s.x.append(dst))
	for _, sum := range []exactSum{s.xx, s.yy, s.xy} {
		dst = (&floatTotal{sum: sum}).append(dst)
	}
	return binary.AppendVarint(dst, s.huge)
}

func (a *regr) LoadState(g int32, b []byte) (rest []byte, err error) {
	s := &a.s[g]
	if b, err = s.x.load(b); err != nil {
		return nil, err
	}
	if b, err = s.y.load(b); err != nil {
		return nil, err
	}
	for _, sum := range []*exactSum{&s.xx, &s.yy, &s.xy} {
		var t floatTotal
		if b, err = t.load(b); err != nil {
			return nil, err
		}
		*sum = t.sum
	}
	s.huge, b, err = readVarint(b)
	return b, err
}

func (a *regr) Reset(g int32) { a.s[g] = regrState{} }
