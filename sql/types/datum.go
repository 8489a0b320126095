package types

import "math"

// An Interval is PostgreSQL's: three parts that do not mix.
type Interval struct {
	Months, Days int32
	Micros       int64
}

// A List is the value of an array. Multi-dimensional arrays nest.
type List struct {
	Elem  Type
	Items []Datum
	Lower int // PostgreSQL's lower bound of the subscripts: 1, and 0 for int2vector and oidvector
}

// A Datum is one value; for edges (wire, planner constants, tests), never for
// inner loops. The zero Datum is NULL.
//
// Dates are days, times and timestamps microseconds, counted from 2000-01-01
// (UTC for timestamptz), as on PostgreSQL's binary wire; ±infinity are the
// extreme int64 (timestamps) and int32 (dates) values.
type Datum struct {
	kind Kind
	n    int64 // KindBool, KindInt; bits of KindFloat
	s    string
	x    any // Decimal, Interval or *List
}

// Constructors of Datums, one a kind.
func NewBool(v bool) Datum {
	if v {
		return Datum{kind: KindBool, n: 1}
	}
	return Datum{kind: KindBool}
}
func NewInt(v int64) Datum         { return Datum{kind: KindInt, n: v} }
func NewFloat(v float64) Datum     { return Datum{kind: KindFloat, n: int64(math.Float64bits(v))} }
func NewString(v string) Datum     { return Datum{kind: KindString, s: v} }
func NewDecimal(v Decimal) Datum   { return Datum{kind: KindDecimal, x: v} }
func NewInterval(v Interval) Datum { return Datum{kind: KindInterval, x: v} }
func NewList(v *List) Datum        { return Datum{kind: KindList, x: v} }

// IsNull reports whether d is NULL.
func (d Datum) IsNull() bool { return d.kind == KindNull }

// Kind says which of the accessors below is valid; the others panic or give zero.
func (d Datum) Kind() Kind         { return d.kind }
func (d Datum) Bool() bool         { return d.n != 0 }
func (d Datum) Int() int64         { return d.n }
func (d Datum) Float() float64     { return math.Float64frombits(uint64(d.n)) }
func (d Datum) Str() string        { return d.s }
func (d Datum) Decimal() Decimal   { return d.x.(Decimal) }
func (d Datum) Interval() Interval { return d.x.(Interval) }
func (d Datum) List() *List        { return d.x.(*List) }

// A Row is one tuple; for edges and tests.
type Row []Datum
