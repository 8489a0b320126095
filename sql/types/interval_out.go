package types

import "strconv"

// AppendText appends iv in the form that PostgreSQL's IntervalStyle names.
func (iv Interval) AppendText(dst []byte, f IntervalFormat) []byte {
	p := iv.parts()
	switch f {
	case IntervalISO8601:
		return p.appendISO(dst)
	case IntervalSQLStandard:
		return p.appendSQL(dst)
	case IntervalPostgresVerbose:
		return p.appendVerbose(dst)
	}
	return p.appendPostgres(dst)
}

// String is iv in PostgreSQL's default form.
func (iv Interval) String() string { return string(iv.AppendText(nil, IntervalPostgres)) }

// intervalParts is an interval as people write it; every part carries the sign of what it is cut from.
type intervalParts struct{ year, mon, day, hour, min, sec, usec int64 }

func (iv Interval) parts() intervalParts {
	return intervalParts{
		year: int64(iv.Months / 12), mon: int64(iv.Months % 12), day: int64(iv.Days),
		hour: iv.Micros / microsPerHour, min: iv.Micros / microsPerMinute % 60,
		sec: iv.Micros / microsPerSecond % 60, usec: iv.Micros % microsPerSecond,
	}
}

func abs64(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func (p *intervalParts) all() [7]int64 {
	return [7]int64{p.year, p.mon, p.day, p.hour, p.min, p.sec, p.usec}
}

func (p *intervalParts) hasTime() bool { return p.hour|p.min|p.sec|p.usec != 0 }

// appendSeconds appends |sec.usec|, the whole seconds with two digits where fill is set.
func (p *intervalParts) appendSeconds(dst []byte, fill bool) []byte {
	if fill {
		dst = appendTwo(dst, int(abs64(p.sec)))
	} else {
		dst = strconv.AppendInt(dst, abs64(p.sec), 10)
	}
	return appendMicros(dst, int(abs64(p.usec)))
}

func (p *intervalParts) appendHMS(dst []byte) []byte {
	dst = append(appendPadded(dst, int(abs64(p.hour)), 2), ':')
	dst = append(appendTwo(dst, int(abs64(p.min))), ':')
	return p.appendSeconds(dst, true)
}

func (p *intervalParts) negativeTime() bool {
	return p.hour < 0 || p.min < 0 || p.sec < 0 || p.usec < 0
}

func (p *intervalParts) appendPostgres(dst []byte) []byte {
	first, before := true, false // before: the last part written was negative
	for _, f := range []struct {
		v    int64
		unit string
	}{{p.year, "year"}, {p.mon, "mon"}, {p.day, "day"}} {
		if f.v == 0 {
			continue
		}
		if !first {
			dst = append(dst, ' ')
		}
		if before && f.v > 0 {
			dst = append(dst, '+')
		}
		dst = append(strconv.AppendInt(dst, f.v, 10), ' ')
		dst = append(dst, f.unit...)
		if f.v != 1 {
			dst = append(dst, 's')
		}
		first, before = false, f.v < 0
	}
	if !first && !p.hasTime() {
		return dst
	}
	if !first {
		dst = append(dst, ' ')
	}
	if p.negativeTime() {
		dst = append(dst, '-')
	} else if before {
		dst = append(dst, '+')
	}
	return p.appendHMS(dst)
}

func (p *intervalParts) appendVerbose(dst []byte) []byte {
	dst = append(dst, '@')
	first, before := true, false // before: the first part was negative, so signs are turned and "ago" ends it
	for _, f := range []struct {
		v    int64
		unit string
	}{{p.year, "year"}, {p.mon, "mon"}, {p.day, "day"}, {p.hour, "hour"}, {p.min, "min"}} {
		if f.v == 0 {
			continue
		}
		v := f.v
		if first {
			before = v < 0
			v = abs64(v)
		} else if before {
			v = -v
		}
		dst = strconv.AppendInt(append(dst, ' '), v, 10)
		dst = append(append(dst, ' '), f.unit...)
		if v != 1 {
			dst = append(dst, 's')
		}
		first = false
	}
	if p.sec|p.usec != 0 {
		dst = append(dst, ' ')
		if p.sec < 0 || p.usec < 0 {
			if first {
				before = true
			} else if !before {
				dst = append(dst, '-')
			}
		} else if before {
			dst = append(dst, '-')
		}
		dst = append(p.appendSeconds(dst, false), " sec"...)
		if abs64(p.sec) != 1 || p.usec != 0 {
			dst = append(dst, 's')
		}
		first = false
	}
	if first {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}

func (p *intervalParts) appendISO(dst []byte) []byte {
	if p.all() == [7]int64{} {
		return append(dst, "PT0S"...)
	}
	part := func(v int64, unit byte) {
		if v != 0 {
			dst = append(strconv.AppendInt(dst, v, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.year, 'Y')
	part(p.mon, 'M')
	part(p.day, 'D')
	if p.hasTime() {
		dst = append(dst, 'T')
	}
	part(p.hour, 'H')
	part(p.min, 'M')
	if p.sec|p.usec != 0 {
		if p.sec < 0 || p.usec < 0 {
			dst = append(dst, '-')
		}
		dst = append(p.appendSeconds(dst, false), 'S')
	}
	return dst
}

func (p *intervalParts) appendSQL(dst []byte) []byte {
	neg, pos := false, false
	for _, v := range p.all() {
		neg = neg || v < 0
		pos = pos || v > 0
	}
	yearMonth, dayTime := p.year|p.mon != 0, p.day != 0 || p.hasTime()
	if !neg && !pos {
		return append(dst, '0')
	}
	if neg && pos || yearMonth && dayTime { // the standard has no form for it
		sign := func(neg bool) {
			if neg {
				dst = append(dst, '-')
			} else {
				dst = append(dst, '+')
			}
		}
		sign(p.year < 0 || p.mon < 0)
		dst = append(strconv.AppendInt(dst, abs64(p.year), 10), '-')
		dst = append(strconv.AppendInt(dst, abs64(p.mon), 10), ' ')
		sign(p.day < 0)
		dst = append(strconv.AppendInt(dst, abs64(p.day), 10), ' ')
		sign(p.negativeTime())
	} else {
		if neg {
			dst = append(dst, '-')
		}
		if yearMonth {
			dst = append(strconv.AppendInt(dst, abs64(p.year), 10), '-')
			return strconv.AppendInt(dst, abs64(p.mon), 10)
		}
		if p.day != 0 {
			dst = append(strconv.AppendInt(dst, abs64(p.day), 10), ' ')
		}
	}
	dst = append(strconv.AppendInt(dst, abs64(p.hour), 10), ':')
	dst = append(appendTwo(dst, int(abs64(p.min))), ':')
	return p.appendSeconds(dst, true)
}
