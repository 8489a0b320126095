package types

import "time"

// A Style says how values are written and read as text. The zero Style and nil
// are PostgreSQL's defaults: UTC, ISO/MDY, postgres intervals, hex, shortest floats.
type Style struct {
	Zone          *time.Location // nil: UTC
	DateStyle     DateStyle
	IntervalStyle IntervalStyle
	ByteaEscape   bool         // bytea_output = escape
	FloatDigits   *int         // extra_float_digits; nil: 1, shortest exact
	Now           func() int64 // µs since 2000-01-01 UTC, for 'now' and 'today'; nil: those are errors
}

// A DateStyle is the output format and input field order of dates.
type DateStyle uint8

const (
	ISOMDY DateStyle = iota
	ISODMY
	ISOYMD
)

// An IntervalStyle is the output format of intervals.
type IntervalStyle uint8

const (
	IntervalPostgres IntervalStyle = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)
