// Package types defines SQL types and single values: how they are held in
// memory, compared, hashed, and written as PostgreSQL's text and binary forms.
//
// The one idea: many SQL types share few physical kinds, so that columns and
// kernels are generic over six Go types.
package types

// A Kind is how a type's values are held in memory: the T of its chunk.Vec[T].
type Kind uint8

const (
	KindNull     Kind = iota // the zero Datum
	KindBool                 // bool
	KindInt                  // int64: smallint, integer, bigint, oid, reg*, date, time, timestamp, timestamptz
	KindFloat                // float64: real (rounded to float32), double precision
	KindString               // string: text, varchar, char(n), name, "char", bytea (its raw bytes), unknown
	KindDecimal              // Decimal: numeric
	KindInterval             // Interval
	KindList                 // List: arrays, int2vector, oidvector
)

// PostgreSQL's object identifiers of the types we know.
const (
	OIDBool         = 16
	OIDBytea        = 17
	OIDChar         = 18 // "char", one byte
	OIDName         = 19
	OIDInt8         = 20
	OIDInt2         = 21
	OIDInt2Vector   = 22
	OIDInt4         = 23
	OIDRegproc      = 24
	OIDText         = 25
	OIDOid          = 26
	OIDTid          = 27
	OIDXid          = 28
	OIDOidVector    = 30
	OIDNodeTree     = 194
	OIDFloat4       = 700
	OIDFloat8       = 701
	OIDUnknown      = 705
	OIDBpchar       = 1042
	OIDVarchar      = 1043
	OIDDate         = 1082
	OIDTime         = 1083
	OIDTimestamp    = 1114
	OIDTimestamptz  = 1184
	OIDInterval     = 1186
	OIDNumeric      = 1700
	OIDRegclass     = 2205
	OIDRegtype      = 2206
	OIDRecord       = 2249
	OIDAny          = 2276
	OIDAnyArray     = 2277
	OIDVoid         = 2278
	OIDAnyElement   = 2283
	OIDAclitem      = 1033
	OIDRegnamespace = 4089

	OIDRegprocedure = 2202
	OIDRegoper      = 2203
	OIDRegoperator  = 2204
	OIDRegrole      = 4096
)

// A Type is a SQL type as a PostgreSQL client sees it. Scalar Types may be
// compared with ==; use Equal where an array may occur.
type Type struct {
	OID  uint32
	Mod  int32 // PostgreSQL's typmod plus one; 0: none. numeric(p,s), varchar(n), timestamp(p) …
	Elem *Type // element type of an array; nil: not an array
}

// The types without a modifier.
var (
	Null        = Type{OID: OIDUnknown} // of an untyped literal or NULL
	Bool        = Type{OID: OIDBool}
	Bytea       = Type{OID: OIDBytea}
	Char        = Type{OID: OIDChar}
	Name        = Type{OID: OIDName}
	Int2        = Type{OID: OIDInt2}
	Int4        = Type{OID: OIDInt4}
	Int8        = Type{OID: OIDInt8}
	Oid         = Type{OID: OIDOid}
	Xid         = Type{OID: OIDXid}
	Regclass    = Type{OID: OIDRegclass}
	Regtype     = Type{OID: OIDRegtype}
	Regproc     = Type{OID: OIDRegproc}
	Text        = Type{OID: OIDText}
	Varchar     = Type{OID: OIDVarchar}
	Bpchar      = Type{OID: OIDBpchar}
	Float4      = Type{OID: OIDFloat4}
	Float8      = Type{OID: OIDFloat8}
	Numeric     = Type{OID: OIDNumeric}
	Date        = Type{OID: OIDDate}
	Time        = Type{OID: OIDTime}
	Timestamp   = Type{OID: OIDTimestamp}
	Timestamptz = Type{OID: OIDTimestamptz}
	IntervalT   = Type{OID: OIDInterval}
	Void        = Type{OID: OIDVoid}
	Record      = Type{OID: OIDRecord}
	NodeTree    = Type{OID: OIDNodeTree}
	Int2Vector  = Type{OID: OIDInt2Vector, Elem: &Int2}
	OidVector   = Type{OID: OIDOidVector, Elem: &Oid}
)

// Kind says how values of t are held.
func (t Type) Kind() Kind {
	if t.Elem != nil {
		return KindList
	}
	switch t.OID {
	case OIDBool:
		return KindBool
	case OIDInt2, OIDInt4, OIDInt8, OIDOid, OIDXid, OIDTid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace,
		OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole, OIDDate, OIDTime, OIDTimestamp, OIDTimestamptz:
		return KindInt
	case OIDFloat4, OIDFloat8:
		return KindFloat
	case OIDNumeric:
		return KindDecimal
	case OIDInterval:
		return KindInterval
	default:
		return KindString
	}
}

// IsReg reports whether t is one of the types that name an object of the catalogs: held as its OID, shown as its name.
func (t Type) IsReg() bool {
	switch t.OID {
	case OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole:
		return true
	}
	return false
}

// Typmod is PostgreSQL's type modifier of t, -1 for none.
func (t Type) Typmod() int32 { return t.Mod - 1 }

// Base is t without its modifier.
func (t Type) Base() Type { t.Mod = 0; return t }

// Equal reports whether t and o are the same type, modifiers aside.
func (t Type) Equal(o Type) bool {
	if t.OID != o.OID || (t.Elem == nil) != (o.Elem == nil) {
		return false
	}
	return t.Elem == nil || t.Elem.Equal(*o.Elem)
}

// A Field is a named column of a Schema.
type Field struct {
	Name string
	Type Type
}

// A Schema is the columns of a relation or of an operator's output, in order.
type Schema []Field

// Types returns the column types alone.
func (s Schema) Types() []Type {
	out := make([]Type, len(s))
	for i, f := range s {
		out[i] = f.Type
	}
	return out
}

// Project returns the given columns of s.
func (s Schema) Project(cols []int) Schema {
	out := make(Schema, len(cols))
	for i, c := range cols {
		out[i] = s[c]
	}
	return out
}
