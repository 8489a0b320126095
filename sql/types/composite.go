package types

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

// A struct or map value is held as one string, in an encoding of its own:
// strings order as the values do, equal values have equal strings (numerics that
// differ in trailing zeros aside), and the fields can be read back. So columns,
// hashes, keys and rows on disk need know nothing of them.

// OIDMap is the OID of map types, in a range that PostgreSQL leaves alone.
const (
	OIDMap      = 9001
	oidMapArray = 9002
	oidRecordOf = 2287 // record[]
)

// StructOf is the type of structs with the given fields.
func StructOf(fields Schema) Type { return Type{OID: OIDRecord, Fields: &fields} }

// RowOf is the type of ROW(…) over values of the given types: its fields are f1, f2, ….
func RowOf(ts []Type) Type {
	fields := make(Schema, len(ts))
	for i, t := range ts {
		fields[i] = Field{Name: "f" + strconv.Itoa(i+1), Type: t}
	}
	return StructOf(fields)
}

// MapOf is the type of maps from k to v. Error 42601 if k cannot be a key: keys are texts and integers.
func MapOf(k, v Type) (Type, error) {
	switch k.OID {
	case OIDText, OIDVarchar, OIDInt2, OIDInt4, OIDInt8:
		return Type{OID: OIDMap, Fields: &Schema{{Name: "key", Type: k}, {Name: "value", Type: v}}}, nil
	}
	return Type{}, sqlerr.New(sqlerr.Syntax, "invalid map key type: %s", FormatType(k)).
		WithHint("Keys are of type varchar, text, smallint, integer or bigint.")
}

// IsStruct and IsMap report whether t has fields that are known, and whether it is a map.
func (t Type) IsStruct() bool { return t.OID == OIDRecord && t.Fields != nil }
func (t Type) IsMap() bool    { return t.OID == OIDMap && t.Fields != nil }

// FieldIndex is the place of a struct's field, -1 if there is none of that name.
func (t Type) FieldIndex(name string) int {
	if !t.IsStruct() {
		return -1
	}
	return slices.IndexFunc(*t.Fields, func(f Field) bool { return f.Name == name })
}

// MapTypes are the types of a map's keys and values.
func (t Type) MapTypes() (key, value Type) { return (*t.Fields)[0].Type, (*t.Fields)[1].Type }

// Every value begins with one of these; NULL is last.
const (
	partEnd   = 0 // of a list
	partValue = 1
	partNull  = 2
)

// A partWriter writes values in order, and what the order does not tell of them
// (a numeric's scale, an interval's parts) into a tail behind all of them.
type partWriter struct{ order, tail []byte }

func (w *partWriter) string() string { return string(append(w.order, w.tail...)) }

func (w *partWriter) add(d Datum) { w.order = w.append(w.order, d) }

func (w *partWriter) append(dst []byte, d Datum) []byte {
	if d.IsNull() {
		return append(dst, partNull)
	}
	dst = append(dst, partValue, byte(d.kind))
	switch d.kind {
	case KindBool:
		return append(dst, byte(d.n))
	case KindInt:
		return appendOrderedInt(dst, d.n)
	case KindFloat:
		f := d.Float()
		if f == 0 {
			f = 0 // -0 is 0
		}
		b := math.Float64bits(f)
		switch {
		case f != f:
			b = math.MaxUint64
		case b>>63 != 0:
			b = ^b
		default:
			b |= 1 << 63
		}
		return binary.BigEndian.AppendUint64(dst, b)
	case KindString:
		return appendEscaped(dst, d.s)
	case KindDecimal:
		w.tail = d.Decimal().AppendBinary(w.tail)
		return appendEscaped(dst, string(d.Decimal().AppendOrdered(nil)))
	case KindInterval:
		iv := d.Interval()
		days, micros := iv.Span()
		w.tail = appendOrderedInt(appendOrderedInt(w.tail, int64(iv.Months)), int64(iv.Days))
		w.tail = appendOrderedInt(w.tail, iv.Micros)
		return appendOrderedInt(appendOrderedInt(dst, days), micros)
	}
	l := d.List()
	for _, item := range l.Items {
		dst = w.append(dst, item)
	}
	return appendOrderedInt(append(dst, partEnd), int64(l.Lower))
}

func appendOrderedInt(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63)
}

// appendEscaped ends s with 0 1; a zero inside is 0 2.
func appendEscaped(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			return append(append(dst, s...), 0, 1)
		}
		dst = append(append(dst, s[:i]...), 0, 2)
		s = s[i+1:]
	}
}

// A partReader reads what a partWriter wrote. A first pass, which has no tail, finds where the tail begins.
type partReader struct {
	s    string
	tail *partReader
	bad  bool
}

// more reports whether another value follows before the end of a list.
func (r *partReader) more() bool { return !r.bad && r.s != "" && r.s[0] != partEnd }

func (r *partReader) byte() byte {
	if r.s == "" {
		r.bad = true
		return 0
	}
	c := r.s[0]
	r.s = r.s[1:]
	return c
}

func (r *partReader) uint64() uint64 {
	if len(r.s) < 8 {
		r.bad, r.s = true, ""
		return 0
	}
	v := uint64(0)
	for i := range 8 {
		v = v<<8 | uint64(r.s[i])
	}
	r.s = r.s[8:]
	return v
}

func (r *partReader) int64() int64 { return int64(r.uint64() ^ 1<<63) }

func (r *partReader) escaped() string {
	i := strings.IndexByte(r.s, 0)
	if i >= 0 && i+1 < len(r.s) && r.s[i+1] == 1 {
		out := r.s[:i]
		r.s = r.s[i+2:]
		return out
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(r.s, 0)
		if i < 0 || i+1 >= len(r.s) {
			r.bad, r.s = true, ""
			return ""
		}
		b.WriteString(r.s[:i])
		end := r.s[i+1] == 1
		r.s = r.s[i+2:]
		if end {
			return b.String()
		}
		b.WriteByte(0)
	}
}

// datum reads one value; t gives lists their element type.
func (r *partReader) datum(t Type) Datum {
	switch r.byte() {
	case partNull:
		return Datum{}
	case partValue:
	default:
		r.bad = true
		return Datum{}
	}
	switch kind := Kind(r.byte()); kind {
	case KindBool:
		return NewBool(r.byte() == 1)
	case KindInt:
		return NewInt(r.int64())
	case KindFloat:
		b := r.uint64()
		switch {
		case b == math.MaxUint64:
			return NewFloat(math.NaN())
		case b>>63 != 0:
			b &^= 1 << 63
		default:
			b = ^b
		}
		return NewFloat(math.Float64frombits(b))
	case KindString:
		return NewString(r.escaped())
	case KindDecimal:
		r.escaped()
		if r.tail == nil {
			return NewBool(false)
		}
		d, rest, err := ReadBinary([]byte(r.tail.s))
		r.bad = r.bad || err != nil
		r.tail.s = r.tail.s[len(r.tail.s)-len(rest):]
		return NewDecimal(d)
	case KindInterval:
		r.int64() // the span, which is for the order
		r.int64()
		if r.tail == nil {
			return NewBool(false)
		}
		months, days := r.tail.int64(), r.tail.int64()
		return NewInterval(Interval{Months: int32(months), Days: int32(days), Micros: r.tail.int64()})
	case KindList:
		l := &List{}
		if t.Elem != nil {
			l.Elem = *t.Elem
		}
		for r.more() {
			item := t
			if len(r.s) < 2 || Kind(r.s[1]) != KindList {
				item = l.Elem
			}
			l.Items = append(l.Items, r.datum(item))
		}
		r.byte()
		l.Lower = int(r.int64())
		return NewList(l)
	}
	r.bad = true
	return Datum{}
}

func errComposite() error { return sqlerr.New(sqlerr.DataCorrupted, "a composite value is damaged") }

// NewStruct makes a struct value of its fields' values.
func NewStruct(vals []Datum) Datum {
	var w partWriter
	for _, d := range vals {
		w.add(d)
	}
	return NewString(w.string())
}

// ReadStruct takes a value of the struct type t apart.
func ReadStruct(t Type, s string) ([]Datum, error) {
	first := partReader{s: s}
	for _, f := range *t.Fields {
		first.datum(f.Type)
	}
	r := partReader{s: s, tail: &partReader{s: first.s}}
	out := make([]Datum, len(*t.Fields))
	for i, f := range *t.Fields {
		out[i] = r.datum(f.Type)
	}
	if first.bad || r.bad || r.tail.bad || r.tail.s != "" {
		return nil, errComposite()
	}
	return out, nil
}

// NewMap makes a map value; of equal keys the last counts. Error 22004 for a NULL key.
func NewMap(keys, vals []Datum) (Datum, error) {
	order := make([]int, len(keys))
	for i := range order {
		if keys[i].IsNull() {
			return Datum{}, sqlerr.New("22004", "map keys must not be NULL")
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return Compare(keys[a], keys[b]) })
	var w partWriter
	for n, i := range order {
		if n+1 < len(order) && Compare(keys[order[n+1]], keys[i]) == 0 {
			continue
		}
		w.add(keys[i])
		w.add(vals[i])
	}
	w.order = append(w.order, partEnd)
	return NewString(w.string()), nil
}

// ReadMap takes a value of the map type t apart, in order of the keys.
func ReadMap(t Type, s string) (keys, vals []Datum, err error) {
	kt, vt := t.MapTypes()
	first := partReader{s: s}
	for first.more() {
		first.datum(kt)
		first.datum(vt)
	}
	first.byte()
	r := partReader{s: s, tail: &partReader{s: first.s}}
	for r.more() {
		keys, vals = append(keys, r.datum(kt)), append(vals, r.datum(vt))
	}
	if first.bad || r.bad || r.tail.bad || r.tail.s != "" {
		return nil, nil, errComposite()
	}
	return keys, vals, nil
}
