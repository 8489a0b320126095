package expr

import (
	"math"
	"strconv"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// orderedSetAggs adds percentile_cont, percentile_disc and mode. Their direct
// arguments are columns like the others, and the same in every row of a group.
func orderedSetAggs(r *registry) {
	set := func(sig string, direct int, mk func(args []types.Type, ret types.Type) Accumulator) {
		f := r.agg(sig, false, mk)
		f.OrderedSet, f.Direct = true, direct
	}
	for _, t := range []string{"float8", "interval"} {
		cont := func([]types.Type, types.Type) Accumulator { return &orderedSet{pick: percentileCont} }
		set("percentile_cont(float8,"+t+") "+t, 1, cont)
		set("percentile_cont(float8[],"+t+") "+t+"[]", 1, cont)
	}
	disc := func([]types.Type, types.Type) Accumulator { return &orderedSet{pick: percentileDisc} }
	set("percentile_disc(float8,anyelement) anyelement", 1, disc)
	set("percentile_disc(float8[],anyelement) anyarray", 1, disc)
	set("mode(anyelement) anyelement", 0, func([]types.Type, types.Type) Accumulator { return &orderedSet{pick: mode} })
}

// orderedSet keeps a group's values that are not NULL, in the order of the call's
// WITHIN GROUP, and picks the answer from them.
type orderedSet struct {
	pick   func(direct types.Datum, items []types.Datum) (types.Datum, error)
	direct []types.Datum
	items  [][]types.Datum
}

func (a *orderedSet) Grow(n int) {
	a.items, a.direct = grown(a.items, n), grown(a.direct, n)
}

func (a *orderedSet) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("an ordered-set aggregate", sel, len(groups), ops); err != nil {
		return err
	}
	values := args[len(args)-1]
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if len(args) > 1 && a.direct[g].IsNull() {
			a.direct[g] = args[0].Datum(i)
		}
		if !values.Null(i) {
			a.items[g] = append(a.items[g], values.Datum(i))
		}
	}
	return nil
}

func (a *orderedSet) Output(g int32, col chunk.Column) error {
	d, err := a.pick(a.direct[g], a.items[g])
	if err != nil {
		return err
	}
	if d.Kind() == types.KindList && col.Type().Elem != nil && d.List().Elem.OID == 0 {
		d = types.NewList(&types.List{Elem: *col.Type().Elem, Items: d.List().Items, Lower: 1})
	}
	col.Append(d)
	return nil
}

func (a *orderedSet) AppendState(dst []byte, g int32) []byte {
	dst = appendDatum(dst, a.direct[g])
	return appendDatum(dst, types.NewList(&types.List{Items: a.items[g], Lower: 1}))
}

func (a *orderedSet) LoadState(g int32, b []byte) (rest []byte, err error) {
	if a.direct[g], b, err = readDatum(b, types.Float8); err != nil {
		return nil, err
	}
	a.items[g], rest, err = readItems(b, types.Type{})
	return rest, err
}

func (a *orderedSet) Reset(g int32) { a.items[g], a.direct[g] = nil, types.Datum{} }

// perFraction calls pick for one fraction, or for each of an array of them.
func perFraction(direct types.Datum, n int, pick func(p float64) (types.Datum, error)) (types.Datum, error) {
	if direct.IsNull() {
		return types.Datum{}, nil
	}
	one := func(d types.Datum) (types.Datum, error) {
		if d.IsNull() {
			return types.Datum{}, nil
		}
		p := d.Float()
		if !(p >= 0 && p <= 1) {
			return types.Datum{}, sqlerr.New(sqlerr.OutOfRange, "percentile value %s is not between 0 and 1", strconv.FormatFloat(p, 'g', 6, 64))
		}
		if n == 0 {
			return types.Datum{}, nil
		}
		return pick(p)
	}
	if direct.Kind() != types.KindList {
		return one(direct)
	}
	out, err := mapList(direct.List(), types.Type{}, func(in []types.Datum) ([]types.Datum, error) {
		res := make([]types.Datum, len(in))
		for i, d := range in {
			var err error
			if res[i], err = one(d); err != nil {
				return nil, err
			}
		}
		return res, nil
	})
	if err != nil {
		return types.Datum{}, err
	}
	return types.NewList(out), nil
}

// percentileCont interpolates between the two values around the place p(n-1).
func percentileCont(direct types.Datum, items []types.Datum) (types.Datum, error) {
	return perFraction(direct, len(items), func(p float64) (types.Datum, error) {
		at := p * float64(len(items)-1)
		lo := int(math.Floor(at))
		a, b := items[lo], items[int(math.Ceil(at))]
		part := at - float64(lo)
		if part == 0 {
			return a, nil
		}
		if a.Kind() == types.KindInterval {
			diff, err := b.Interval().Sub(a.Interval())
			if err == nil {
				diff, err = diff.Mul(part)
			}
			if err == nil {
				diff, err = a.Interval().Add(diff)
			}
			if err != nil {
				return types.Datum{}, err
			}
			return types.NewInterval(diff), nil
		}
		return types.NewFloat(a.Float() + part*(b.Float()-a.Float())), nil
	})
}

// percentileDisc is the first value whose share of the rows up to it reaches p.
func percentileDisc(direct types.Datum, items []types.Datum) (types.Datum, error) {
	return perFraction(direct, len(items), func(p float64) (types.Datum, error) {
		return items[max(int(math.Ceil(p*float64(len(items))))-1, 0)], nil
	})
}

// mode is the most frequent value, the first of equally frequent ones.
func mode(_ types.Datum, items []types.Datum) (types.Datum, error) {
	if len(items) == 0 {
		return types.Datum{}, nil
	}
	best, count := 0, 0
	for i := 0; i < len(items); {
		end := i + 1
		for end < len(items) && types.Equal(items[i], items[end]) {
			end++
		}
		if end-i > count {
			best, count = i, end-i
		}
		i = end
	}
	return items[best], nil
}
