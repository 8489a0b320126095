package types

import (
	"strings"
	"time"

	"streamdb/sql/sqlerr"
)

// DateFormat is the first word of the setting DateStyle.
type DateFormat uint8

const (
	DateISO DateFormat = iota
	DateSQL
	DatePostgres
	DateGerman
)

// DateOrder is the second word of DateStyle: how 01/02/03 is read.
type DateOrder uint8

const (
	OrderMDY DateOrder = iota
	OrderDMY
	OrderYMD
)

// IntervalFormat is the setting IntervalStyle.
type IntervalFormat uint8

const (
	IntervalPostgres IntervalFormat = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)

// A Style is a session's way of reading and writing values. The zero Style and
// a nil *Style are PostgreSQL's defaults, in UTC.
type Style struct {
	Zone          *time.Location // nil: UTC
	DateStyle     DateFormat
	DateOrder     DateOrder
	IntervalStyle IntervalFormat
	ByteaEscape   bool // bytea_output = escape; else hex
	// RoundFloats: extra_float_digits is 0 or less, and floats are written with 15 (real: 6) + ExtraFloatDigits
	// significant digits. Else with the fewest digits that read back as the same value.
	RoundFloats      bool
	ExtraFloatDigits int
	// Now is the time for 'now', 'today', 'tomorrow' and 'yesterday', in microseconds since 2000-01-01 UTC; nil: those words are errors.
	Now func() int64
}

var defaultStyle = &Style{}

func (st *Style) orDefault() *Style {
	if st == nil {
		return defaultStyle
	}
	return st
}

func errSetting(name, value string) error {
	return sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": \"%s\"", name, value)
}

// SetDateStyle reads a value of the setting DateStyle ("ISO, DMY", "german"); error 22023.
func (st *Style) SetDateStyle(value string) error {
	format, order, haveOrder := st.DateStyle, st.DateOrder, false
	for word := range strings.FieldsFuncSeq(strings.ToUpper(value), func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "ISO":
			format = DateISO
		case "SQL":
			format = DateSQL
		case "POSTGRES", "POSTGRESQL":
			format = DatePostgres
		case "GERMAN":
			format = DateGerman
			if !haveOrder {
				order = OrderDMY
			}
		case "YMD":
			order, haveOrder = OrderYMD, true
		case "DMY", "EURO", "EUROPEAN":
			order, haveOrder = OrderDMY, true
		case "MDY", "US", "NONEURO", "NONEUROPEAN":
			order, haveOrder = OrderMDY, true
		case "DEFAULT":
			format, order = DateISO, OrderMDY
		default:
			return errSetting("DateStyle", value)
		}
	}
	st.DateStyle, st.DateOrder = format, order
	return nil
}

// DateStyleText is what SHOW DateStyle shows.
func (st *Style) DateStyleText() string {
	st = st.orDefault()
	return [...]string{"ISO", "SQL", "Postgres", "German"}[st.DateStyle] + ", " + [...]string{"MDY", "DMY", "YMD"}[st.DateOrder]
}

var intervalStyles = [...]string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}

// SetIntervalStyle reads a value of the setting IntervalStyle; error 22023.
func (st *Style) SetIntervalStyle(value string) error {
	for i, s := range intervalStyles {
		if strings.EqualFold(s, value) {
			st.IntervalStyle = IntervalFormat(i)
			return nil
		}
	}
	return errSetting("IntervalStyle", value)
}

// IntervalStyleText is what SHOW IntervalStyle shows.
func (st *Style) IntervalStyleText() string { return intervalStyles[st.orDefault().IntervalStyle] }
