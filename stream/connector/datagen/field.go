package datagen

import (
	"math"
	"strconv"
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A generator makes values of one column.
type generator interface {
	// generate appends the values of rows from … from+n-1 of a split.
	generate(col chunk.Column, split, from, n int64, now time.Time)
}

// A limited generator comes to an end: left is how many rows of a split it has from a row on.
type limited interface {
	left(split, from int64) int64
}

// mix is the finalizer of splitmix64 over two words.
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// fieldOptions are a column's options, by name.
type fieldOptions struct {
	name   string
	typ    types.Type
	opts   map[string]string
	elems  map[string]string // of an array's elements
	splits int64
	seed   uint64
}

func (f *fieldOptions) invalid(opt string, hint string) error {
	return sqlerr.New(sqlerr.InvalidParameter, "invalid value for option \"fields.%s.%s\": %q", f.name, opt, f.opts[opt]).WithHint("%s", hint)
}

func (f *fieldOptions) int(opt string, def int64) (int64, error) {
	v, ok := f.opts[opt]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, f.invalid(opt, "It must be an integer.")
	}
	return n, nil
}

func (f *fieldOptions) float(opt string, def float64) (float64, error) {
	v, ok := f.opts[opt]
	if !ok {
		return def, nil
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, f.invalid(opt, "It must be a number.")
	}
	return x, nil
}

// names lists the options that each kind of field has.
var names = map[string][]string{
	"sequence": {"kind", "start", "end"},
	"random":   {"kind", "min", "max", "seed", "length", "max_past", "max_past_mode", "basetime"},
}

func (f *fieldOptions) generator() (generator, error) {
	kind := f.opts["kind"]
	if kind == "" {
		kind = "random"
	}
	allowed, ok := names[kind]
	if !ok {
		return nil, f.invalid("kind", "Kinds are sequence and random.")
	}
	for opt := range f.opts {
		known := false
		for _, a := range allowed {
			known = known || a == opt
		}
		if !known {
			return nil, sqlerr.New(sqlerr.InvalidParameter, "option \"fields.%s.%s\" does not apply to a %s field", f.name, opt, kind)
		}
	}
	seed, err := f.int("seed", 0)
	if err != nil {
		return nil, err
	}
	if _, ok := f.opts["seed"]; ok {
		f.seed = mix(uint64(seed), 1)
	}
	if kind == "sequence" {
		return f.sequence()
	}
	return f.random()
}

func (f *fieldOptions) sequence() (generator, error) {
	start, err := f.int("start", 0)
	if err != nil {
		return nil, err
	}
	end, err := f.int("end", math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if end < start {
		return nil, f.invalid("end", "The end must not be before the start.")
	}
	switch f.typ.Kind() {
	case types.KindInt:
		if err := integers(f.typ); err {
			break
		}
		return &sequence{start: start, end: end, step: f.splits, put: func(c chunk.Column, v int64) { chunk.Of[int64](c).AppendValue(v) }}, nil
	case types.KindFloat:
		return &sequence{start: start, end: end, step: f.splits, put: func(c chunk.Column, v int64) { chunk.Of[float64](c).AppendValue(float64(v)) }}, nil
	case types.KindDecimal:
		return &sequence{start: start, end: end, step: f.splits, put: func(c chunk.Column, v int64) { chunk.Of[types.Decimal](c).AppendValue(types.NewDecimalInt(v)) }}, nil
	case types.KindString:
		return &sequence{start: start, end: end, step: f.splits, put: func(c chunk.Column, v int64) { chunk.Of[string](c).AppendValue(strconv.FormatInt(v, 10)) }}, nil
	}
	return nil, sqlerr.Unsupported("datagen sequence of type %s (column %q)", types.FormatType(f.typ), f.name)
}

// integers reports whether t is held as an integer but is none.
func integers(t types.Type) (other bool) {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return false
	}
	return true
}

// A sequence deals the numbers from start to end out to the splits in turn.
type sequence struct {
	start, end, step int64
	put              func(chunk.Column, int64)
}

func (g *sequence) generate(col chunk.Column, split, from, n int64, _ time.Time) {
	for i := range n {
		g.put(col, g.start+split+(from+i)*g.step)
	}
}

func (g *sequence) left(split, from int64) int64 {
	next := g.start + split + from*g.step
	if next > g.end {
		return 0
	}
	return (g.end-next)/g.step + 1
}
