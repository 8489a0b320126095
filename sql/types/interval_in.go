package types

import (
	"math"
	"strconv"
	"strings"
)

type intervalUnit uint8

const (
	unitNone intervalUnit = iota
	unitMicro
	unitMilli
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitAgo
	unitIgnore
)

var intervalUnits = map[string]intervalUnit{
	"us": unitMicro, "usec": unitMicro, "usecs": unitMicro, "microsecond": unitMicro, "microseconds": unitMicro, "microsecon": unitMicro, "useconds": unitMicro, "usecond": unitMicro,
	"ms": unitMilli, "msec": unitMilli, "msecs": unitMilli, "millisecond": unitMilli, "milliseconds": unitMilli, "millisecon": unitMilli, "mseconds": unitMilli, "msecond": unitMilli,
	"s": unitSecond, "sec": unitSecond, "secs": unitSecond, "second": unitSecond, "seconds": unitSecond,
	"m": unitMinute, "min": unitMinute, "mins": unitMinute, "minute": unitMinute, "minutes": unitMinute,
	"h": unitHour, "hr": unitHour, "hrs": unitHour, "hour": unitHour, "hours": unitHour,
	"d": unitDay, "day": unitDay, "days": unitDay,
	"w": unitWeek, "week": unitWeek, "weeks": unitWeek,
	"mon": unitMonth, "mons": unitMonth, "month": unitMonth, "months": unitMonth,
	"y": unitYear, "yr": unitYear, "yrs": unitYear, "year": unitYear, "years": unitYear,
	"dec": unitDecade, "decs": unitDecade, "decade": unitDecade, "decades": unitDecade,
	"c": unitCentury, "cent": unitCentury, "century": unitCentury, "centuries": unitCentury,
	"mil": unitMillennium, "mils": unitMillennium, "millennia": unitMillennium, "millennium": unitMillennium,
	"ago": unitAgo, "at": unitIgnore, "on": unitIgnore,
}

// The fields of an interval type such as interval day to second: bits 16 and up of its modifier.
const (
	rangeMonth  = 1 << 1
	rangeYear   = 1 << 2
	rangeDay    = 1 << 3
	rangeHour   = 1 << 10
	rangeMinute = 1 << 11
	rangeSecond = 1 << 12
	rangeFull   = 0x7fff
)

// intervalTypmod takes an interval type's modifier apart: the fields it keeps
// and the digits of its seconds, -1 for all.
func intervalTypmod(t Type) (fields int, digits int) {
	if t.Mod == 0 {
		return rangeFull, -1
	}
	m := t.Typmod()
	digits = int(m & 0xffff)
	if digits == 0xffff {
		digits = -1
	}
	return int(m>>16) & rangeFull, digits
}

// lastUnit is the unit of a bare number at the end of an interval literal.
func lastUnit(fields int) intervalUnit {
	switch {
	case fields == rangeFull || fields&rangeSecond != 0:
		return unitSecond
	case fields&rangeMinute != 0:
		return unitMinute
	case fields&rangeHour != 0:
		return unitHour
	case fields&rangeDay != 0:
		return unitDay
	case fields&rangeMonth != 0:
		return unitMonth
	case fields&rangeYear != 0:
		return unitYear
	}
	return unitSecond
}

// ParseInterval reads PostgreSQL's interval literals: quantities with units in any order, hh:mm:ss, years-months,
// "ago", and ISO 8601's P… forms. Errors 22007, 22015.
func ParseInterval(s string, st *Style) (Interval, error) { return parseInterval(s, rangeFull, st) }

func parseInterval(s string, fields int, st *Style) (Interval, error) {
	var sum intervalSum
	e := sum.read(s, fields, st.orDefault())
	if e == dtSyntax {
		var iso intervalSum
		if len(s) > 1 && s[0] == 'P' {
			e = iso.readISO(s[1:])
			sum = iso
		}
	}
	if e == dtOK {
		var iv Interval
		if iv, e = sum.interval(); e == dtOK {
			return iv, nil
		}
	}
	if e == dtRange {
		e = dtInterval
	}
	return Interval{}, e.err("interval", s, "")
}

// An intervalSum adds up the parts of a literal.
type intervalSum struct {
	years, months, days, micros int64
	seen                        uint32 // units met
	overflow                    bool
}

func (a *intervalSum) addTo(to *int64, v, times int64) {
	p := v * times
	if v != 0 && (p/v != times || v == math.MinInt64 && times == -1) {
		a.overflow = true
		return
	}
	s := *to + p
	if (s > *to) != (p > 0) && p != 0 {
		a.overflow = true
		return
	}
	*to = s
}

// addFraction adds frac × unit microseconds, rounded.
func (a *intervalSum) addFraction(frac float64, unit int64) {
	if frac == 0 {
		return
	}
	frac *= float64(unit)
	us := int64(frac)
	frac -= float64(us)
	if frac > 0.5 {
		us++
	} else if frac < -0.5 {
		us--
	}
	a.addTo(&a.micros, us, 1)
}

func (a *intervalSum) addDayFraction(frac float64, days int64) {
	if frac == 0 {
		return
	}
	frac *= float64(days)
	whole := int64(frac)
	a.addTo(&a.days, whole, 1)
	a.addFraction(frac-float64(whole), microsPerDay)
}

// add adds v + frac of a unit. PostgreSQL turns parts of a month into days of a
// month of 30, parts of a day into time, parts of a year into whole months.
func (a *intervalSum) add(u intervalUnit, v int64, frac float64) dtError {
	if a.seen&(1<<u) != 0 {
		return dtSyntax
	}
	a.seen |= 1 << u
	micros := func(unit int64) {
		a.addTo(&a.micros, v, unit)
		a.addFraction(frac, unit)
	}
	years := func(n int64) {
		a.addTo(&a.years, v, n)
		a.addTo(&a.months, int64(math.RoundToEven(frac*float64(n)*12)), 1)
	}
	switch u {
	case unitMicro:
		micros(1)
	case unitMilli:
		micros(1000)
	case unitSecond:
		micros(microsPerSecond)
	case unitMinute:
		micros(microsPerMinute)
	case unitHour:
		micros(microsPerHour)
	case unitDay:
		a.addTo(&a.days, v, 1)
		a.addFraction(frac, microsPerDay)
	case unitWeek:
		a.addTo(&a.days, v, 7)
		a.addDayFraction(frac, 7)
	case unitMonth:
		a.addTo(&a.months, v, 1)
		a.addDayFraction(frac, 30)
	case unitYear:
		years(1)
	case unitDecade:
		years(10)
	case unitCentury:
		years(100)
	case unitMillennium:
		years(1000)
	default:
		return dtSyntax
	}
	return dtOK
}

// addClock adds hh:mm:ss as hours, minutes and seconds.
func (a *intervalSum) addClock(c Clock, hours int64, neg bool) dtError {
	const units = 1<<unitHour | 1<<unitMinute | 1<<unitSecond
	if a.seen&units != 0 {
		return dtSyntax
	}
	a.seen |= units
	sign := int64(1)
	if neg {
		sign = -1
	}
	a.addTo(&a.micros, hours*sign, microsPerHour)
	a.addTo(&a.micros, c.Micros()*sign, 1)
	return dtOK
}

func (a *intervalSum) interval() (Interval, dtError) {
	if a.overflow || a.years != int64(int32(a.years)) || a.months != int64(int32(a.months)) || a.days != int64(int32(a.days)) {
		return Interval{}, dtRange
	}
	months := a.years*12 + a.months
	if months != int64(int32(months)) {
		return Interval{}, dtTotal
	}
	return Interval{int32(months), int32(a.days), a.micros}, dtOK
}

// scanQuantity reads [sign]digits[.digits] at the start of s.
func scanQuantity(s string) (v int64, frac float64, rest string, e dtError) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - start
	if digits > 0 {
		var err error
		if v, err = strconv.ParseInt(s[:i], 10, 64); err != nil {
			return 0, 0, "", dtRange
		}
	}
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		if digits == 0 && j == i+1 {
			return 0, 0, "", dtSyntax
		}
		if j > i+1 {
			frac, _ = strconv.ParseFloat("0"+s[i:j], 64)
		}
		if s[0] == '-' {
			frac = -frac
		}
		i = j
	} else if digits == 0 {
		return 0, 0, "", dtSyntax
	}
	return v, frac, s[i:], dtOK
}

// read goes through the fields from the right, so that a unit is known before its quantity.
func (a *intervalSum) read(s string, fields int, st *Style) dtError {
	list, ok := scanDatetime(s)
	if !ok {
		return dtSyntax
	}
	// In SQL's standard a sign in front of the whole counts for all of it.
	allNeg := st.IntervalStyle == IntervalSQLStandard && list[0].text[0] == '-'
	for _, f := range list[1:] {
		allNeg = allNeg && f.text[0] != '-' && f.text[0] != '+'
	}
	unit, ago := unitNone, false
	for i := len(list) - 1; i >= 0; i-- {
		text := list[i].text
		e := dtOK
		switch list[i].kind {
		case dtTime:
			c, hours, err := scanClock(text)
			if fields == rangeMinute|rangeSecond && strings.Count(text, ":") == 1 && strings.IndexByte(text, '.') < 0 {
				c, hours = Clock{Min: int(hours), Sec: c.Min}, 0
			}
			if e = err; e == dtOK {
				e = a.addClock(c, hours, allNeg)
			}
			unit = unitDay
		case dtZone, dtDate, dtNumber:
			if list[i].kind == dtZone && strings.IndexByte(text, ':') > 0 {
				c, hours, err := scanClock(text[1:])
				if e = err; e == dtOK {
					e = a.addClock(c, hours, text[0] == '-')
				}
				unit = unitDay
				break
			}
			if unit == unitNone {
				unit = lastUnit(fields)
			}
			v, frac, rest, err := scanQuantity(text)
			if err != dtOK {
				return err
			}
			if rest != "" { // years-months
				m, err := strconv.ParseUint(strings.TrimPrefix(rest, "-"), 10, 32)
				if rest[0] != '-' || err != nil || frac != 0 {
					return dtSyntax
				}
				if m >= 12 {
					return dtRange
				}
				n := int64(m)
				if text[0] == '-' {
					n = -n
				}
				unit = unitMonth
				if v > math.MaxInt32 || v < math.MinInt32 {
					return dtRange
				}
				v = v*12 + n
			}
			if allNeg && i > 0 {
				v, frac = -v, -frac
			}
			e = a.add(unit, v, frac)
		default:
			u, ok := intervalUnits[text]
			switch {
			case !ok:
				if w, known := dtWords[text]; known && w.what == wordIgnore {
					continue
				}
				return dtSyntax
			case u == unitIgnore:
				continue
			case u == unitAgo:
				ago = true
				unit = unitNone
				continue
			}
			unit = u
		}
		if e != dtOK {
			return e
		}
	}
	if a.seen == 0 {
		return dtSyntax
	}
	if ago {
		if a.months == math.MinInt64 || a.days == math.MinInt64 || a.micros == math.MinInt64 {
			return dtRange
		}
		a.years, a.months, a.days, a.micros = -a.years, -a.months, -a.days, -a.micros
	}
	return dtOK
}

// readISO reads what follows the P: 1Y2M3W4DT5H6M7.8S, or 0001-02-03T04:05:06, or 00010203T040506.
func (a *intervalSum) readISO(s string) dtError {
	inTime := false
	for s != "" {
		if s[0] == 'T' {
			if inTime {
				return dtSyntax
			}
			inTime = true
			s = s[1:]
			continue
		}
		v, frac, rest, e := scanQuantity(s)
		if e != dtOK {
			return e
		}
		if rest == "" || rest[0] == '-' || rest[0] == ':' || rest[0] == 'T' {
			return a.readISOFields(s, inTime)
		}
		u := unitNone
		switch c := rest[0]; {
		case c == 'Y' && !inTime:
			u = unitYear
		case c == 'M' && !inTime:
			u = unitMonth
		case c == 'W' && !inTime:
			u = unitWeek
		case c == 'D' && !inTime:
			u = unitDay
		case c == 'H' && inTime:
			u = unitHour
		case c == 'M' && inTime:
			u = unitMinute
		case c == 'S' && inTime:
			u = unitSecond
		default:
			return dtSyntax
		}
		a.seen = 0 // ISO literals may repeat a unit
		if e := a.add(u, v, frac); e != dtOK {
			return e
		}
		s = rest[1:]
	}
	return dtOK
}

// readISOFields reads the alternative format, fields by position.
func (a *intervalSum) readISOFields(s string, inTime bool) dtError {
	date, clock, timed := s, "", false
	if inTime {
		date, clock, timed = "", s, true
	} else if i := strings.IndexByte(s, 'T'); i >= 0 {
		date, clock, timed = s[:i], s[i+1:], true
	}
	fields := func(text, sep string, widths []int, units []intervalUnit) dtError {
		if text == "" {
			return dtOK
		}
		whole, frac, point := strings.Cut(text, ".")
		var parts []string
		if strings.Contains(strings.TrimPrefix(whole, "-"), sep) {
			for rest := whole; ; {
				i := strings.Index(rest[1:]+sep, sep) + 1
				if i >= len(rest) {
					parts = append(parts, rest)
					break
				}
				parts = append(parts, rest[:i])
				if rest = rest[i+1:]; rest == "" {
					return dtSyntax
				}
			}
		} else {
			for i, w := range widths {
				n := min(w, len(whole))
				if i == len(widths)-1 || n == 0 {
					n = len(whole)
				}
				if n > 0 {
					parts = append(parts, whole[:n])
				}
				whole = whole[n:]
			}
		}
		if len(parts) > len(units) {
			return dtSyntax
		}
		for i, p := range parts {
			if point && i == len(parts)-1 {
				p += "." + frac
			}
			v, f, rest, e := scanQuantity(p)
			if e != dtOK || rest != "" {
				return dtSyntax
			}
			if e := a.add(units[i], v, f); e != dtOK {
				return e
			}
		}
		return dtOK
	}
	if e := fields(date, "-", []int{4, 2, 2}, []intervalUnit{unitYear, unitMonth, unitDay}); e != dtOK {
		return e
	}
	if timed && clock == "" {
		return dtSyntax
	}
	return fields(clock, ":", []int{2, 2, 2}, []intervalUnit{unitHour, unitMinute, unitSecond})
}
