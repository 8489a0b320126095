package datagen

import (
	"math"
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// maxRandom is where random numbers end unless told otherwise, as in RisingWave.
const maxRandom = math.MaxInt16

// A random generator makes value v of a row from 64 random bits.
type random[T any] struct {
	seed uint64
	make func(bits uint64, now time.Time) T
}

func (g *random[T]) generate(col chunk.Column, split, from, n int64, now time.Time) {
	v := chunk.Of[T](col)
	seed := mix(g.seed, uint64(split))
	for i := range n {
		v.AppendValue(g.make(mix(seed, uint64(from+i)), now))
	}
}

// below is a number in [0, n) from random bits, n > 0.
func below(bits uint64, n uint64) int64 { return int64(bits % n) }

// unit is a number in [0, 1).
func unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

func (f *fieldOptions) random() (generator, error) {
	switch f.typ.OID {
	case types.OIDTimestamp, types.OIDTimestamptz, types.OIDDate:
		return f.times()
	}
	switch f.typ.Kind() {
	case types.KindBool:
		return &random[bool]{f.seed, func(b uint64, _ time.Time) bool { return b&1 != 0 }}, nil
	case types.KindInt:
		if integers(f.typ) {
			break
		}
		lo, err := f.int("min", 0)
		if err != nil {
			return nil, err
		}
		hi, err := f.int("max", max(maxRandom, lo))
		if err != nil {
			return nil, err
		}
		if hi < lo {
			return nil, f.invalid("max", "It must not be below the minimum.")
		}
		span := uint64(hi-lo) + 1 // 0: all there are
		return &random[int64]{f.seed, func(b uint64, _ time.Time) int64 {
			if span == 0 {
				return int64(b)
			}
			return lo + below(b, span)
		}}, nil
	case types.KindFloat, types.KindDecimal:
		lo, err := f.float("min", 0)
		if err != nil {
			return nil, err
		}
		hi, err := f.float("max", max(maxRandom, lo))
		if err != nil {
			return nil, err
		}
		if hi < lo {
			return nil, f.invalid("max", "It must not be below the minimum.")
		}
		at := func(b uint64) float64 { return lo + unit(b)*(hi-lo) }
		if f.typ.Kind() == types.KindDecimal {
			return &random[types.Decimal]{f.seed, func(b uint64, _ time.Time) types.Decimal {
				return types.NewDecimalParts(int64(math.Round(at(b)*100)), 2)
			}}, nil
		}
		if f.typ.OID == types.OIDFloat4 {
			return &random[float64]{f.seed, func(b uint64, _ time.Time) float64 { return float64(float32(at(b))) }}, nil
		}
		return &random[float64]{f.seed, func(b uint64, _ time.Time) float64 { return at(b) }}, nil
	case types.KindString:
		n, err := f.length(10)
		if err != nil {
			return nil, err
		}
		return &random[string]{f.seed, func(b uint64, _ time.Time) string { return letters(b, n) }}, nil
	case types.KindList:
		return f.list()
	}
	return nil, sqlerr.Unsupported("datagen field of type %s (column %q)", types.FormatType(f.typ), f.name)
}

func (f *fieldOptions) length(def int64) (int, error) {
	n, err := f.int("length", def)
	if err == nil && (n < 0 || n > 1<<20) {
		err = f.invalid("length", "It must be a number from 0 to 1048576.")
	}
	return int(n), err
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func letters(bits uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		if i%8 == 0 && i > 0 {
			bits = mix(bits, uint64(i))
		}
		b[i] = alphabet[(bits>>(8*(i%8)))&0xFF*uint64(len(alphabet))>>8]
	}
	return string(b)
}

// list makes arrays of a fixed length.
func (f *fieldOptions) list() (generator, error) {
	n, err := f.length(3)
	if err != nil {
		return nil, err
	}
	e := fieldOptions{name: f.name + "._", typ: *f.typ.Elem, opts: f.elems, splits: 1, seed: mix(f.seed, 7)}
	gen, err := e.generator()
	if err != nil {
		return nil, err
	}
	if _, ok := gen.(limited); ok {
		return nil, sqlerr.Unsupported("datagen sequence as an array's element (column %q)", f.name)
	}
	return &lists{elem: *f.typ.Elem, gen: gen, n: int64(n)}, nil
}

type lists struct {
	elem types.Type
	gen  generator
	n    int64
}

func (g *lists) generate(col chunk.Column, split, from, n int64, now time.Time) {
	v := chunk.Of[*types.List](col)
	items := chunk.New(g.elem, int(n*g.n))
	g.gen.generate(items, split, from*g.n, n*g.n, now)
	for i := range int(n) {
		l := &types.List{Elem: g.elem, Lower: 1, Items: make([]types.Datum, g.n)}
		for j := range l.Items {
			l.Items[j] = items.Datum(i*int(g.n) + j)
		}
		v.AppendValue(l)
	}
}

// epoch is where times count from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// times makes times within max_past before now, or before basetime.
func (f *fieldOptions) times() (generator, error) {
	past := 24 * time.Hour
	if s, ok := f.opts["max_past"]; ok {
		d, err := types.ParseText(types.IntervalT, s, nil)
		if err != nil {
			return nil, f.invalid("max_past", "It must be an interval.")
		}
		iv := d.Interval()
		past = time.Duration(iv.Micros)*time.Microsecond + time.Duration(int64(iv.Days)+30*int64(iv.Months))*24*time.Hour
		if past < 0 {
			return nil, f.invalid("max_past", "It must not be negative.")
		}
	}
	var base time.Time
	switch mode := f.opts["max_past_mode"]; mode {
	case "", "relative":
	case "absolute":
		base = epoch
		s, ok := f.opts["basetime"]
		if !ok {
			return nil, sqlerr.New(sqlerr.InvalidParameter, "option \"fields.%s.basetime\" is missing", f.name).WithHint("The mode absolute counts back from it.")
		}
		d, err := types.ParseText(types.Timestamptz, s, nil)
		if err != nil {
			return nil, f.invalid("basetime", "It must be a timestamp.")
		}
		base = epoch.Add(time.Duration(d.Int()) * time.Microsecond)
	default:
		return nil, f.invalid("max_past_mode", "Modes are relative and absolute.")
	}
	day := f.typ.OID == types.OIDDate
	return &random[int64]{f.seed, func(b uint64, now time.Time) int64 {
		if !base.IsZero() {
			now = base
		}
		us := now.Sub(epoch).Microseconds() - below(b, uint64(past.Microseconds())+1)
		if day {
			return (us - (us%86400e6+86400e6)%86400e6) / 86400e6
		}
		return us
	}}, nil
}
