package expr

import (
	"math"
	"math/bits"
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

func pickAggs(r *registry) {
	pick := func(how pickHow) func([]types.Type, types.Type) Accumulator {
		return func([]types.Type, types.Type) Accumulator { return &pickAgg{how: how} }
	}
	r.agg("first_value(anyelement) anyelement", false, pick(pickFirst))
	r.agg("last_value(anyelement) anyelement", false, pick(pickLast))
	r.agg("any_value(anyelement) anyelement", false, pick(pickAny))
	r.agg("arg_min(anyelement,any) anyelement", false, pick(pickMin))
	r.agg("arg_max(anyelement,any) anyelement", false, pick(pickMax))
	r.agg("approx_count_distinct(any) int8", false, func([]types.Type, types.Type) Accumulator { return &approxDistinct{} })
}

type pickHow uint8

const (
	pickFirst pickHow = iota // of all rows, NULLs too
	pickLast
	pickAny // the first that is not NULL
	pickMin // where the second argument is least; the first of equal ones
	pickMax
)

// pickAgg is the aggregates that give the value of one of the rows.
type pickAgg struct {
	how pickHow
	s   []picked
}

type picked struct {
	val, by types.Datum
	has     bool
}

func (a *pickAgg) Grow(n int) { a.s = grown(a.s, n) }

func (a *pickAgg) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("an aggregate that picks a row", sel, len(groups), ops); err != nil {
		return err
	}
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		s := &a.s[g]
		by := types.Datum{}
		switch a.how {
		case pickFirst:
			if s.has {
				continue
			}
		case pickAny:
			if s.has || args[0].Null(i) {
				continue
			}
		case pickMin, pickMax:
			if by = args[1].Datum(i); by.IsNull() {
				continue
			}
			if c := types.Compare(by, s.by); s.has && (c == 0 || (c > 0) == (a.how == pickMin)) {
				continue
			}
		}
		*s = picked{val: args[0].Datum(i), by: by, has: true}
	}
	return nil
}

func (a *pickAgg) Output(g int32, col chunk.Column) error {
	col.Append(a.s[g].val)
	return nil
}

func (a *pickAgg) AppendState(dst []byte, g int32) []byte {
	s := &a.s[g]
	return appendDatum(appendDatum(appendDatum(dst, types.NewBool(s.has)), s.val), s.by)
}

func (a *pickAgg) LoadState(g int32, b []byte) (rest []byte, err error) {
	var has types.Datum
	s := &a.s[g]
	for _, to := range []*types.Datum{&has, &s.val, &s.by} {
		if *to, b, err = readDatum(b, types.Type{}); err != nil {
			return nil, err
		}
	}
	s.has = has.Bool()
	return b, nil
}

func (a *pickAgg) Reset(g int32) { a.s[g] = picked{} }

// approxDistinct is approx_count_distinct: the number of different values, exact as long
// as they are few, and then HyperLogLog's estimate (Flajolet et al., 2007), whose
// standard error with 2^14 registers is 0.8 %.
type approxDistinct struct{ s []sketch }

const (
	sketchBits  = 14
	sketchExact = 1024
)

type sketch struct {
	few  []uint64 // sorted hashes, until there are more than sketchExact
	regs []uint8  // nil: few holds them all
}

func (a *approxDistinct) Grow(n int) { a.s = grown(a.s, n) }

func (a *approxDistinct) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("approx_count_distinct", sel, len(groups), ops); err != nil {
		return err
	}
	h := chunk.Hash(args, args[0].Len())
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if !args[0].Null(i) {
			a.s[g].add(types.Mix(0x5bd1e995, h[i]))
		}
	}
	return nil
}

func (s *sketch) add(h uint64) {
	if s.regs == nil {
		at, ok := slices.BinarySearch(s.few, h)
		if ok {
			return
		}
		if len(s.few) < sketchExact {
			s.few = slices.Insert(s.few, at, h)
			return
		}
		s.regs = make([]uint8, 1<<sketchBits)
		for _, x := range s.few {
			s.add(x)
		}
		s.few = nil
	}
	r := h >> (64 - sketchBits)
	rank := uint8(bits.LeadingZeros64(h<<sketchBits|1<<(sketchBits-1))) + 1
	s.regs[r] = max(s.regs[r], rank)
}

func (s *sketch) count() int64 {
	if s.regs == nil {
		return int64(len(s.few))
	}
	const m = 1 << sketchBits
	sum, zeros := 0.0, 0
	for _, r := range s.regs {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zeros++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zeros > 0 {
		e = m * math.Log(m/float64(zeros))
	}
	return int64(math.Round(e))
}

func (a *approxDistinct) Output(g int32, col chunk.Column) error {
	col.(*chunk.Vec[int64]).AppendValue(a.s[g].count())
	return nil
}

func (a *approxDistinct) AppendState(dst []byte, g int32) []byte {
	s := &a.s[g]
	l := &types.List{}
	for _, h := range s.few {
		l.Items = append(l.Items, types.NewInt(int64(h)))
	}
	return appendDatum(appendDatum(dst, types.NewList(l)), types.NewString(string(s.regs)))
}

func (a *approxDistinct) LoadState(g int32, b []byte) (rest []byte, err error) {
	few, b, err := readDatum(b, types.Int8)
	if err != nil {
		return nil, err
	}
	regs, b, err := readDatum(b, types.Type{})
	if err != nil {
		return nil, err
	}
	if few.Kind() != types.KindList || regs.Kind() != types.KindString || len(regs.Str()) != 0 && len(regs.Str()) != 1<<sketchBits {
		return nil, errState()
	}
	s := sketch{}
	for _, d := range few.List().Items {
		s.few = append(s.few, uint64(d.Int()))
	}
	if regs.Str() != "" {
		s.regs = []uint8(regs.Str())
	}
	a.s[g] = s
	return b, nil
}

func (a *approxDistinct) Reset(g int32) { a.s[g] = sketch{} }
