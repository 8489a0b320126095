package types

import (
	"strings"
	"time"

	"streamdb/sql/sqlerr"
)

// A Unit is what extract, date_part and date_trunc take out of a date or time.
type Unit uint8

const (
	UnitMicroseconds Unit = iota + 1
	UnitMilliseconds
	UnitSecond
	UnitMinute
	UnitHour
	UnitDay
	UnitWeek
	UnitMonth
	UnitQuarter
	UnitYear
	UnitDecade
	UnitCentury
	UnitMillennium
	UnitJulian
	UnitISOYear
	UnitDow
	UnitISODow
	UnitDoy
	UnitEpoch
	UnitTimezone
	UnitTimezoneHour
	UnitTimezoneMinute
)

// moreUnits are the units that intervals do not have, and other meanings of words they do.
var moreUnits = map[string]Unit{
	"quarter": UnitQuarter, "qtr": UnitQuarter, "julian": UnitJulian, "jd": UnitJulian, "j": UnitJulian, "isoyear": UnitISOYear, "dow": UnitDow,
	"isodow": UnitISODow, "doy": UnitDoy, "epoch": UnitEpoch, "timezone": UnitTimezone, "timezone_h": UnitTimezoneHour,
	"timezone_hour": UnitTimezoneHour, "timezone_m": UnitTimezoneMinute, "timezone_minute": UnitTimezoneMinute,
}

var unitOf = map[intervalUnit]Unit{
	unitMicro: UnitMicroseconds, unitMilli: UnitMilliseconds, unitSecond: UnitSecond, unitMinute: UnitMinute, unitHour: UnitHour, unitDay: UnitDay,
	unitWeek: UnitWeek, unitMonth: UnitMonth, unitYear: UnitYear, unitDecade: UnitDecade, unitCentury: UnitCentury, unitMillennium: UnitMillennium,
}

func unitNamed(name string) (Unit, bool) {
	name = strings.ToLower(name)
	if u, ok := moreUnits[name]; ok {
		return u, true
	}
	u, ok := unitOf[intervalUnits[name]]
	return u, ok
}

func errUnitUnknown(name string, t Type) error {
	return sqlerr.New(sqlerr.InvalidParameter, "unit \"%s\" not recognized for type %s", strings.ToLower(name), FormatType(t.Base()))
}

func errUnitUnsupported(name string, t Type) error {
	return sqlerr.New(sqlerr.NotSupported, "unit \"%s\" not supported for type %s", strings.ToLower(name), FormatType(t.Base()))
}

// ExtractUnit finds the unit that extract takes from values of type t. Errors 22023, 0A000.
func ExtractUnit(name string, t Type) (Unit, error) {
	u, ok := unitNamed(name)
	if !ok {
		return 0, errUnitUnknown(name, t)
	}
	switch t.OID {
	case OIDTimestamp:
		ok = u < UnitTimezone
	case OIDDate:
		ok = u >= UnitDay && u < UnitTimezone
	case OIDTime:
		ok = u < UnitDay || u == UnitEpoch
	case OIDInterval:
		ok = u <= UnitMillennium && u != UnitWeek || u == UnitEpoch
	}
	if !ok {
		return 0, errUnitUnsupported(name, t)
	}
	return u, nil
}

// infinite is u of ±infinity: itself where u grows with time, else NULL (not ok).
func (u Unit) infinite(negative bool) (Decimal, bool) {
	switch u {
	case UnitYear, UnitDecade, UnitCentury, UnitMillennium, UnitJulian, UnitISOYear, UnitEpoch:
		if negative {
			return DecimalNegInf, true
		}
		return DecimalInf, true
	}
	return Decimal{}, false
}

// OfTimestamp extracts u from a timestamp without time zone; ok is false for NULL.
func (u Unit) OfTimestamp(ts int64) (v Decimal, ok bool) { return u.of(ts, ts, 0) }

// OfTimestamptz extracts u from the time that clocks in loc show.
func (u Unit) OfTimestamptz(ts int64, loc *time.Location) (v Decimal, ok bool) {
	if InfiniteTimestamp(ts) {
		return u.infinite(ts < 0)
	}
	off := zoneOffset(loc, floorSeconds(ts))
	return u.of(ts+off*microsPerSecond, ts, off)
}

func (u Unit) of(local, ts, off int64) (Decimal, bool) {
	if InfiniteTimestamp(ts) {
		return u.infinite(ts < 0)
	}
	day, micros := SplitTimestamp(local)
	switch u {
	case UnitEpoch:
		return epochDecimal(ts)
	case UnitJulian:
		part, err := NewDecimalInt(micros).Div(NewDecimalInt(microsPerDay))
		if err != nil {
			return Decimal{}, false
		}
		return NewDecimalInt(day + epochJulian).Add(part), true
	case UnitTimezone:
		return NewDecimalInt(off), true
	case UnitTimezoneHour:
		return NewDecimalInt(off / 3600), true
	case UnitTimezoneMinute:
		return NewDecimalInt(off % 3600 / 60), true
	case UnitMicroseconds, UnitMilliseconds, UnitSecond, UnitMinute, UnitHour:
		return u.OfTime(micros), true
	}
	return u.OfDate(day)
}

// epochDecimal is seconds since 1970 with six digits; near the end of time the microseconds do not fit an int64.
func epochDecimal(ts int64) (Decimal, bool) {
	return NewDecimalParts(ts, 6).Add(NewDecimalInt(unixEpoch)), true
}

// OfTime extracts u from a time of day.
func (u Unit) OfTime(micros int64) Decimal {
	switch u {
	case UnitMicroseconds:
		return NewDecimalInt(micros % microsPerMinute)
	case UnitMilliseconds:
		return NewDecimalParts(micros%microsPerMinute, 3)
	case UnitSecond:
		return NewDecimalParts(micros%microsPerMinute, 6)
	case UnitMinute:
		return NewDecimalInt(micros / microsPerMinute % 60)
	case UnitHour:
		return NewDecimalInt(micros / microsPerHour)
	}
	return NewDecimalParts(micros, 6) // epoch
}

// OfDate extracts u from a date; ok is false for NULL.
func (u Unit) OfDate(day int64) (v Decimal, ok bool) {
	if InfiniteDate(day) {
		return u.infinite(day < 0)
	}
	return NewDecimalInt(u.dateUnit(day)), true
}

func (u Unit) dateUnit(day int64) int64 {
	switch u {
	case UnitEpoch:
		return day*86400 + unixEpoch
	case UnitJulian:
		return day + epochJulian
	case UnitDow:
		return int64(weekday(day))
	case UnitISODow:
		return (day+5)%7 + 1 + 7*b2i((day+5)%7 < 0)
	case UnitWeek:
		_, w := isoWeek(day)
		return int64(w)
	case UnitISOYear:
		y, _ := isoWeek(day)
		return int64(noYearZero(y))
	}
	y, m, d := CivilFromDays(int(day))
	switch u {
	case UnitDay:
		return int64(d)
	case UnitMonth:
		return int64(m)
	case UnitQuarter:
		return int64(m-1)/3 + 1
	case UnitDoy:
		return day - int64(DaysFromCivil(y, 1, 1)) + 1
	case UnitDecade:
		return int64(floorDiv(y, 10))
	case UnitCentury:
		return int64(yearGroup(y, 100))
	case UnitMillennium:
		return int64(yearGroup(y, 1000))
	}
	return int64(noYearZero(y))
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func noYearZero(y int) int {
	if y <= 0 {
		return y - 1
	}
	return y
}

// yearGroup numbers the centuries (n 100) or millennia: 1 is years 1 … n, -1 the n years before.
func yearGroup(y, n int) int {
	if y > 0 {
		return (y + n - 1) / n
	}
	return -((n - 1 - (y - 1)) / n)
}

// isoWeek is the ISO 8601 year and week of a day: that of the week's Thursday.
func isoWeek(day int64) (year, week int) {
	monday := day - int64((weekday(day)+6)%7)
	thursday := int(monday) + 3
	y, _, _ := CivilFromDays(thursday)
	return y, (thursday-DaysFromCivil(y, 1, 1))/7 + 1
}

// OfInterval extracts u from an interval. A year has 365.25 days and a month 30 for the epoch.
func (u Unit) OfInterval(iv Interval) Decimal {
	months, years := int64(iv.Months%12), int64(iv.Months/12)
	switch u {
	case UnitDay:
		return NewDecimalInt(int64(iv.Days))
	case UnitMonth:
		return NewDecimalInt(months)
	case UnitQuarter:
		return NewDecimalInt(months/3 + 1)
	case UnitYear:
		return NewDecimalInt(years)
	case UnitDecade:
		return NewDecimalInt(years / 10)
	case UnitCentury:
		return NewDecimalInt(years / 100)
	case UnitMillennium:
		return NewDecimalInt(years / 1000)
	case UnitEpoch:
		secs := (1461*years + 120*months + 4*int64(iv.Days)) * (86400 / 4)
		return NewDecimalParts(iv.Micros, 6).Add(NewDecimalInt(secs))
	}
	return u.OfTime(iv.Micros)
}
