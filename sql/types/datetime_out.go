package types

import (
	"strconv"
	"time"
)

var monthNames = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
var dayNames = [...]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

func appendPadded(dst []byte, v, width int) []byte {
	for n := digits64(uint64(v)); n < width; n++ {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(v), 10)
}

// appendYear appends a year of four digits or more; years before 1 are counted as BC by appendEra.
func appendYear(dst []byte, y int) []byte {
	if y <= 0 {
		y = 1 - y
	}
	return appendPadded(dst, y, 4)
}

func appendEra(dst []byte, y int) []byte {
	if y <= 0 {
		return append(dst, " BC"...)
	}
	return dst
}

// AppendDate appends a date in ISO form.
func AppendDate(dst []byte, day int64) []byte { return appendDate(dst, day, defaultStyle) }

func appendDate(dst []byte, day int64, st *Style) []byte {
	switch day {
	case DateInfinity:
		return append(dst, "infinity"...)
	case DateNegInfinity:
		return append(dst, "-infinity"...)
	}
	y, m, d := CivilFromDays(int(day))
	return appendEra(appendYMD(dst, y, m, d, st), y)
}

func appendYMD(dst []byte, y, m, d int, st *Style) []byte {
	switch {
	case st.DateStyle == DateISO:
		dst = append(appendYear(dst, y), '-')
		dst = append(appendTwo(dst, m), '-')
		return appendTwo(dst, d)
	case st.DateStyle == DateGerman:
		dst = append(appendTwo(dst, d), '.')
		dst = append(appendTwo(dst, m), '.')
		return appendYear(dst, y)
	}
	sep := byte('/')
	if st.DateStyle == DatePostgres {
		sep = '-'
	}
	if st.DateOrder == OrderDMY {
		m, d = d, m
	}
	dst = append(appendTwo(dst, m), sep)
	dst = append(appendTwo(dst, d), sep)
	return appendYear(dst, y)
}

// AppendTime appends a time of day.
func AppendTime(dst []byte, micros int64) []byte { return appendClock(dst, ClockOf(micros)) }

func appendClock(dst []byte, c Clock) []byte {
	dst = append(appendTwo(dst, c.Hour), ':')
	dst = append(appendTwo(dst, c.Min), ':')
	return appendMicros(appendTwo(dst, c.Sec), c.Micro)
}

// appendMicros appends a fraction of a second without trailing zeros.
func appendMicros(dst []byte, us int) []byte {
	if us == 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := 100000; us > 0; p /= 10 {
		dst = append(dst, byte('0'+us/p))
		us %= p
	}
	return dst
}

// AppendTimestamp appends a timestamp without time zone in ISO form.
func AppendTimestamp(dst []byte, ts int64) []byte {
	return appendTimestamp(dst, ts, defaultStyle)
}

// AppendTimestamptz appends a timestamptz in ISO form as clocks in loc (nil: UTC) show it.
func AppendTimestamptz(dst []byte, ts int64, loc *time.Location) []byte {
	return appendTimestamptz(dst, ts, &Style{Zone: loc})
}

func appendTimestamp(dst []byte, ts int64, st *Style) []byte {
	if InfiniteTimestamp(ts) {
		return appendInfinite(dst, ts)
	}
	c := CivilOf(ts)
	return appendEra(appendCivil(dst, c, ts, st), c.Year)
}

func appendTimestamptz(dst []byte, ts int64, st *Style) []byte {
	if InfiniteTimestamp(ts) {
		return appendInfinite(dst, ts)
	}
	off, abbrev := int64(0), "UTC"
	if st.Zone != nil && st.Zone != time.UTC {
		name, o := time.Unix(floorSeconds(ts)+unixEpoch, 0).In(st.Zone).Zone()
		off, abbrev = int64(o), name
	}
	local := ts + off*microsPerSecond
	c := CivilOf(local)
	dst = appendCivil(dst, c, local, st)
	switch {
	case st.DateStyle == DateISO:
		dst = appendOffset(dst, int(off))
	default:
		dst = append(append(dst, ' '), zoneAbbrev(abbrev)...)
	}
	return appendEra(dst, c.Year)
}

func appendInfinite(dst []byte, ts int64) []byte {
	if ts < 0 {
		return append(dst, "-infinity"...)
	}
	return append(dst, "infinity"...)
}

func appendCivil(dst []byte, c Civil, ts int64, st *Style) []byte {
	if st.DateStyle != DatePostgres {
		dst = append(appendYMD(dst, c.Year, c.Month, c.Day, st), ' ')
		return appendClock(dst, c.Clock)
	}
	day, _ := SplitTimestamp(ts)
	dst = append(append(dst, dayNames[weekday(day)]...), ' ')
	if st.DateOrder == OrderDMY {
		dst = append(append(append(appendTwo(dst, c.Day), ' '), monthNames[c.Month-1]...), ' ')
	} else {
		dst = append(appendTwo(append(append(dst, monthNames[c.Month-1]...), ' '), c.Day), ' ')
	}
	dst = append(appendClock(dst, c.Clock), ' ')
	return appendYear(dst, c.Year)
}

// weekday is 0 for Sunday. 2000-01-01 was a Saturday.
func weekday(day int64) int {
	w := (day + 6) % 7
	if w < 0 {
		w += 7
	}
	return int(w)
}

// appendOffset appends +hh, +hh:mm or +hh:mm:ss.
func appendOffset(dst []byte, off int) []byte {
	if off < 0 {
		dst, off = append(dst, '-'), -off
	} else {
		dst = append(dst, '+')
	}
	dst = appendTwo(dst, off/3600)
	if off%3600 != 0 {
		dst = appendTwo(append(dst, ':'), off/60%60)
	}
	if off%60 != 0 {
		dst = appendTwo(append(dst, ':'), off%60)
	}
	return dst
}
