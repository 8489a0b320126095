package types

// ParseDate reads a date as PostgreSQL does; st (nil: the defaults) gives the
// order of ambiguous fields, the zone and the time of 'now'. Errors 22007, 22008.
func ParseDate(s string, st *Style) (int64, error) {
	if day, n := isoDate(s); n == len(s) && n > 0 {
		return day, nil
	}
	in := dtInput{st: st.orDefault(), typ: "date", text: s}
	return in.date()
}

// ParseTime reads a time of day in microseconds; a date and a zone beside it are ignored.
func ParseTime(s string, st *Style) (int64, error) {
	in := dtInput{st: st.orDefault(), typ: "time", text: s, timeOnly: true}
	return in.timeOfDay()
}

// ParseTimestamp reads a timestamp without time zone; a zone in the text is ignored.
func ParseTimestamp(s string, st *Style) (int64, error) {
	if ts, _, _, ok := isoTimestamp(s); ok {
		return ts, nil
	}
	in := dtInput{st: st.orDefault(), typ: "timestamp", text: s}
	return in.timestamp(false)
}

// ParseTimestamptz reads a timestamp with time zone; without a zone in the text it is in st's.
func ParseTimestamptz(s string, st *Style) (int64, error) {
	st = st.orDefault()
	if ts, off, zoned, ok := isoTimestamp(s); ok {
		if !zoned {
			return FromZone(ts, st.Zone)
		}
		if ts -= int64(off) * microsPerSecond; ValidTimestamp(ts) {
			return ts, nil
		}
	}
	in := dtInput{st: st, typ: "timestamp with time zone", text: s}
	return in.timestamp(true)
}

func twoDigits(s string, i int) int {
	if i+1 >= len(s) || !isDigit(s[i]) || !isDigit(s[i+1]) {
		return -1
	}
	return int(s[i]-'0')*10 + int(s[i+1]-'0')
}

// isoDate reads YYYY-MM-DD at the start of s: the common case. n is 0 where it is something else.
func isoDate(s string) (day int64, n int) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, 0
	}
	hi, lo, m, d := twoDigits(s, 0), twoDigits(s, 2), twoDigits(s, 5), twoDigits(s, 8)
	if hi < 0 || lo < 0 || m < 1 || m > 12 || d < 1 {
		return 0, 0
	}
	y := hi*100 + lo
	if y == 0 || d > DaysInMonth(y, m) {
		return 0, 0
	}
	return int64(DaysFromCivil(y, m, d)), 10
}

// isoTimestamp reads YYYY-MM-DD[ T]HH:MM[:SS[.f]][Z|±HH[[:]MM]]; ok is false where it is something else.
func isoTimestamp(s string) (ts int64, off int, zoned, ok bool) {
	day, n := isoDate(s)
	if n == 0 {
		return 0, 0, false, false
	}
	if len(s) == n {
		return day * microsPerDay, 0, false, true
	}
	if s[10] != ' ' && s[10] != 'T' || len(s) < 16 || s[13] != ':' {
		return 0, 0, false, false
	}
	h, m, sec, us := twoDigits(s, 11), twoDigits(s, 14), 0, 0
	i := 16
	if i < len(s) && s[i] == ':' {
		sec = twoDigits(s, 17)
		i = 19
		if i < len(s) && s[i] == '.' {
			j := i + 1
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			us, _ = scanMicros(s[i+1 : j])
			i = j
		}
	}
	if h < 0 || m < 0 || sec < 0 || h > 23 || m > 59 || sec > 59 {
		return 0, 0, false, false
	}
	if rest := s[i:]; rest != "" {
		if rest != "Z" {
			if off, ok = parseOffset(rest); !ok {
				return 0, 0, false, false
			}
		}
		zoned = true
	}
	return day*microsPerDay + Clock{h, m, sec, us}.Micros(), off, zoned, true
}
