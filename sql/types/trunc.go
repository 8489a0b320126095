package types

import (
	"time"

	"streamdb/sql/sqlerr"
)

// TruncUnit finds the unit that date_trunc cuts values of type t to. Errors 22023, 0A000.
func TruncUnit(name string, t Type) (Unit, error) {
	u, ok := unitNamed(name)
	if !ok {
		return 0, errUnitUnknown(name, t)
	}
	switch {
	case u >= UnitTimezone:
		return 0, errUnitUnsupported(name, t)
	case u > UnitMillennium:
		return 0, errUnitUnknown(name, t)
	}
	if u == UnitWeek && t.OID == OIDInterval {
		err := errUnitUnsupported(name, t).(*sqlerr.Error)
		return 0, err.WithDetail("Months usually have fractional weeks.")
	}
	return u, nil
}

// microsIn is the length of units up to a day; 0 for longer ones.
func (u Unit) microsIn() int64 {
	switch u {
	case UnitMicroseconds:
		return 1
	case UnitMilliseconds:
		return 1000
	case UnitSecond:
		return microsPerSecond
	case UnitMinute:
		return microsPerMinute
	case UnitHour:
		return microsPerHour
	case UnitDay:
		return microsPerDay
	}
	return 0
}

// Trunc is date_trunc of a timestamp without time zone; error 22008.
func (u Unit) Trunc(ts int64) (int64, error) {
	if InfiniteTimestamp(ts) {
		return ts, nil
	}
	if unit := u.microsIn(); unit > 0 {
		day, micros := SplitTimestamp(ts)
		return day*microsPerDay + micros/unit*unit, nil
	}
	day, _ := SplitTimestamp(ts)
	if u == UnitWeek {
		day -= int64((weekday(day) + 6) % 7)
	} else {
		y, m, _ := CivilFromDays(int(day))
		switch u {
		case UnitMonth:
		case UnitQuarter:
			m = (m-1)/3*3 + 1
		case UnitYear:
			m = 1
		case UnitDecade:
			y, m = 10*floorDiv(y, 10), 1
		case UnitCentury:
			y, m = firstOfGroup(y, 100), 1
		case UnitMillennium:
			y, m = firstOfGroup(y, 1000), 1
		}
		day = int64(DaysFromCivil(y, m, 1))
	}
	out, ok := joinTimestamp(int(day), 0)
	if !ok {
		return 0, errTimestampRange()
	}
	return out, nil
}

// firstOfGroup is the first year of y's century or millennium: 2001 and, before our era, -99 (100 BC).
func firstOfGroup(y, n int) int {
	if y > 0 {
		return (y+n-1)/n*n - (n - 1)
	}
	return -((n-1-(y-1))/n)*n + 1
}

// TruncZone is date_trunc of a timestamptz by the clocks of loc; error 22008. Units below a day keep the
// offset of the moment, so that the hour that clocks show twice stays two hours.
func (u Unit) TruncZone(ts int64, loc *time.Location) (int64, error) {
	if loc == nil || loc == time.UTC || InfiniteTimestamp(ts) {
		return u.Trunc(ts)
	}
	off := zoneOffset(loc, floorSeconds(ts)) * microsPerSecond
	local, err := u.Trunc(ts + off)
	if err != nil {
		return 0, err
	}
	if u < UnitDay {
		return local - off, nil
	}
	return FromZone(local, loc)
}

// TruncInterval is date_trunc of an interval.
func (u Unit) TruncInterval(iv Interval) Interval {
	years, months := iv.Months/12, iv.Months%12
	cut := func(n int32) Interval { return Interval{Months: years / n * n * 12} }
	switch u {
	case UnitMillennium:
		return cut(1000)
	case UnitCentury:
		return cut(100)
	case UnitDecade:
		return cut(10)
	case UnitYear:
		return cut(1)
	case UnitQuarter:
		return Interval{Months: years*12 + months/3*3}
	case UnitMonth:
		return Interval{Months: iv.Months}
	case UnitDay:
		return Interval{Months: iv.Months, Days: iv.Days}
	}
	unit := u.microsIn()
	return Interval{iv.Months, iv.Days, iv.Micros / unit * unit}
}

// DateBin is the start of the bin, stride long and counted from origin, that ts is in. Errors 22008, 0A000.
func DateBin(stride Interval, ts, origin int64) (int64, error) {
	if InfiniteTimestamp(ts) {
		return ts, nil
	}
	if InfiniteTimestamp(origin) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "origin out of range")
	}
	if stride.Months != 0 {
		return 0, sqlerr.New(sqlerr.NotSupported, "timestamps cannot be binned into intervals containing months or years")
	}
	days, micros := stride.Span()
	if days < 0 || days|micros == 0 {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "stride must be greater than zero")
	}
	if days > 106751990 {
		return 0, errIntervalRange()
	}
	unit := days*microsPerDay + micros
	diff := ts - origin
	if (diff < ts) != (origin > 0) && origin != 0 {
		return 0, errIntervalRange()
	}
	rem := diff % unit
	out := ts - rem
	if rem < 0 {
		out -= unit
	}
	if !ValidTimestamp(out) {
		return 0, errTimestampRange()
	}
	return out, nil
}
