package types

import (
	"math"

	"streamdb/sql/sqlerr"
)

// Infinite dates and timestamps.
const (
	DateInfinity         = math.MaxInt32
	DateNegInfinity      = math.MinInt32
	TimestampInfinity    = math.MaxInt64
	TimestampNegInfinity = math.MinInt64
)

// PostgreSQL's ranges: from 4714-11-24 BC (Julian day 0) to the end of 5874897
// for dates, of 294276 for timestamps.
const (
	epochJulian  = 2451545 // Julian day of 2000-01-01
	minDate      = -epochJulian
	maxDate      = 2147483493 - epochJulian
	minTimestamp = -211813488000000000
	endTimestamp = 9223371331200000000 // the first beyond
	unixEpoch    = 946684800           // seconds from 1970 to 2000
)

// DaysFromCivil is the day number (0: 2000-01-01) of a date of the Gregorian calendar extended backwards; the year
// before 1 is 0. Month and day need not be in range: day 0 is the last of the month before.
func DaysFromCivil(year, month, day int) int {
	// Shift the year to start in March, so that the leap day comes last.
	month -= 3
	year += floorDiv(month, 12)
	month -= 12 * floorDiv(month, 12)
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*month+2)/5 + day - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 730425
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(days int) (year, month, day int) {
	days += 730425
	era := floorDiv(days, 146097)
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month = mp + 3
	year = yoe + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// DaysInMonth is 28 … 31.
func DaysInMonth(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// Clock is a time of day.
type Clock struct{ Hour, Min, Sec, Micro int }

// Civil is a timestamp taken apart, in whatever zone it was taken apart for.
type Civil struct {
	Year, Month, Day int // Year 0 is 1 BC
	Clock
}

// ClockOf takes apart a time of day in microseconds.
func ClockOf(micros int64) Clock {
	return Clock{
		Hour:  int(micros / microsPerHour),
		Min:   int(micros / microsPerMinute % 60),
		Sec:   int(micros / microsPerSecond % 60),
		Micro: int(micros % microsPerSecond),
	}
}

// Micros is the time of day in microseconds.
func (c Clock) Micros() int64 {
	return int64(c.Hour)*microsPerHour + int64(c.Min)*microsPerMinute + int64(c.Sec)*microsPerSecond + int64(c.Micro)
}

// SplitTimestamp gives the day and the microseconds within it.
func SplitTimestamp(ts int64) (day, micros int64) {
	day = ts / microsPerDay
	micros = ts % microsPerDay
	if micros < 0 {
		day--
		micros += microsPerDay
	}
	return day, micros
}

// CivilOf takes apart a finite timestamp.
func CivilOf(ts int64) Civil {
	day, micros := SplitTimestamp(ts)
	y, m, d := CivilFromDays(int(day))
	return Civil{y, m, d, ClockOf(micros)}
}

// Timestamp puts c together; ok is false beyond the range of timestamps.
func (c Civil) Timestamp() (ts int64, ok bool) {
	return joinTimestamp(DaysFromCivil(c.Year, c.Month, c.Day), c.Clock.Micros())
}

func joinTimestamp(day int, micros int64) (int64, bool) {
	if day < minDate || day > endTimestamp/microsPerDay { // so that the product cannot overflow
		return 0, false
	}
	ts := int64(day)*microsPerDay + micros
	return ts, ValidTimestamp(ts)
}

// ValidTimestamp reports whether a finite ts is in PostgreSQL's range.
func ValidTimestamp(ts int64) bool { return ts >= minTimestamp && ts < endTimestamp }

// ValidDate reports whether a finite day number is in PostgreSQL's range.
func ValidDate(day int64) bool { return day >= minDate && day <= maxDate }

// InfiniteTimestamp reports whether ts is ±infinity.
func InfiniteTimestamp(ts int64) bool { return ts == TimestampInfinity || ts == TimestampNegInfinity }

// InfiniteDate reports whether day is ±infinity.
func InfiniteDate(day int64) bool { return day == DateInfinity || day == DateNegInfinity }

func errTimestampRange() error {
	return sqlerr.New(sqlerr.DatetimeOverflow, "timestamp out of range")
}

func errIntervalRange() error { return sqlerr.New(sqlerr.DatetimeOverflow, "interval out of range") }

func errFieldRange(text string) error {
	return sqlerr.New(sqlerr.DatetimeOverflow, "date/time field value out of range: \"%s\"", text)
}

// DateToTimestamp is midnight of the day; error 22008 where timestamps do not reach.
func DateToTimestamp(day int64) (int64, error) {
	switch day {
	case DateInfinity:
		return TimestampInfinity, nil
	case DateNegInfinity:
		return TimestampNegInfinity, nil
	}
	ts, ok := joinTimestamp(int(day), 0)
	if !ok {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date out of range for timestamp")
	}
	return ts, nil
}

// TimestampToDate is the day that ts is in.
func TimestampToDate(ts int64) int64 {
	switch ts {
	case TimestampInfinity:
		return DateInfinity
	case TimestampNegInfinity:
		return DateNegInfinity
	}
	day, _ := SplitTimestamp(ts)
	return day
}

// TimestampToTime is the time of day of a finite ts.
func TimestampToTime(ts int64) int64 {
	_, micros := SplitTimestamp(ts)
	return micros
}

// UnixMicros turns microseconds since 1970 into a timestamp, and UnixOf one back.
func UnixMicros(us int64) int64 { return us - unixEpoch*microsPerSecond }

// UnixOf is ts in microseconds since 1970.
func UnixOf(ts int64) int64 { return ts + unixEpoch*microsPerSecond }
