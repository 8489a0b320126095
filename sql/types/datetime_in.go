package types

import (
	"strconv"
	"strings"
	"time"

	"streamdb/sql/sqlerr"
)

// A dtInput collects what the fields of a date/time literal say.
type dtInput struct {
	st       *Style
	typ      string // for errors
	text     string // for errors
	timeOnly bool

	year, mon, day             int
	haveYear, haveMon, haveDay bool
	textMonth, shortYear       bool // month by name; year of one or two digits
	dayOfYear                  int
	clock                      Clock
	haveTime                   bool
	half                       dtMeaning // wordAM, wordPM
	era                        dtMeaning // wordBC, wordAD
	off                        int
	haveOff                    bool
	loc                        *time.Location
	badZone                    string
	special                    string // now, epoch, infinity, -infinity
}

func (in *dtInput) fail(e dtError) error { return e.err(in.typ, in.text, in.badZone) }

func (in *dtInput) haveDate() bool { return in.haveYear && in.haveMon && in.haveDay }

// now is the present local time of the session.
func (in *dtInput) now() (int64, bool) {
	if in.st.Now == nil {
		return 0, false
	}
	return InZone(in.st.Now(), in.st.Zone), true
}

// read decodes all fields.
func (in *dtInput) read() dtError {
	fields, ok := scanDatetime(in.text)
	if !ok {
		return dtSyntax
	}
	expect := wordIgnore // what the word before said of this field: wordISOTime, wordJulian
	for _, f := range fields {
		e := dtOK
		was := expect
		expect = wordIgnore
		switch f.kind {
		case dtTime:
			e = in.readTime(f.text)
		case dtNumber:
			switch {
			case was == wordJulian:
				e = in.readJulian(f.text)
			case was == wordISOTime:
				e = in.readRun(f.text, true)
			default:
				e = in.readNumber(f.text)
			}
		case dtDate:
			switch {
			case was == wordJulian:
				e = in.readJulian(f.text)
			case was == wordISOTime || in.haveMon && in.haveDay:
				if !isDigit(f.text[0]) {
					e = in.readZoneName(f.text)
					break
				}
				i := strings.IndexByte(f.text, '-')
				if i < 0 {
					return dtSyntax
				}
				if e = in.readOffset(f.text[i:]); e == dtOK {
					e = in.readRun(f.text[:i], true)
				}
			case in.timeOnly && !in.haveTime && isDigit(f.text[0]) && strings.Count(f.text, "-") == 1 && strings.IndexByte(f.text, '-') >= 4:
				i := strings.IndexByte(f.text, '-')
				if e = in.readRun(f.text[:i], true); e == dtOK {
					e = in.readOffset(f.text[i:])
				}
			default:
				e = in.readDate(f.text)
			}
		case dtZone:
			e = in.readOffset(f.text)
		case dtSpecial:
			if _, ok := dtWords[f.text]; !ok || in.special != "" {
				return dtSyntax
			}
			in.special = strings.TrimPrefix(f.text, "+")
		case dtString:
			var w dtWord
			if w, e = in.readWord(f.text); e == dtOK {
				expect = w.what
			}
		}
		if e != dtOK {
			return e
		}
	}
	if expect == wordISOTime || expect == wordJulian {
		return dtSyntax
	}
	return in.finish()
}

func (in *dtInput) readTime(s string) dtError {
	if in.haveTime {
		return dtSyntax
	}
	c, hours, e := scanClock(s)
	if e != dtOK {
		return e
	}
	if hours > 24 || hours == 24 && c != (Clock{}) {
		return dtRange
	}
	c.Hour = int(hours)
	in.clock, in.haveTime = c, true
	return dtOK
}

func (in *dtInput) readJulian(s string) dtError {
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 32)
	if err != nil {
		return dtRange
	}
	in.setDay(n - epochJulian)
	if frac != "" {
		f, err := strconv.ParseFloat("0."+frac, 64)
		if err != nil {
			return dtSyntax
		}
		in.clock, in.haveTime = ClockOf(int64(f*microsPerDay)), true
	}
	return dtOK
}

func (in *dtInput) setDay(day int64) {
	in.year, in.mon, in.day = CivilFromDays(int(day))
	in.haveYear, in.haveMon, in.haveDay = true, true, true
	if in.year <= 0 {
		in.year, in.era = 1-in.year, wordBC
	}
}

// readNumber decodes a field of digits with or without a point.
func (in *dtInput) readNumber(s string) dtError {
	anyDate := in.haveYear || in.haveMon || in.haveDay
	point := strings.IndexByte(s, '.')
	switch {
	case in.timeOnly && !anyDate:
		return in.readRun(s, true)
	case point >= 0 && !anyDate:
		return in.readDate(s)
	case point > 2:
		return in.readRun(s, in.haveDate())
	case point < 0 && len(s) >= 6 && (!anyDate || !in.haveTime):
		return in.readRun(s, in.haveDate())
	}
	return in.readDatePart(s)
}

// readRun decodes run-together fields: yyyymmdd, yymmdd, and hhmmss[.f], hhmm once there is a date.
func (in *dtInput) readRun(s string, date bool) dtError {
	whole, frac, point := strings.Cut(s, ".")
	if !date && !point && len(s) >= 6 && !in.haveDate() {
		n := len(s)
		y, err := strconv.Atoi(s[:n-4])
		if err != nil {
			return dtSyntax
		}
		in.year, in.mon, in.day = y, twoDigits(s, n-4), twoDigits(s, n-2)
		in.haveYear, in.haveMon, in.haveDay = true, true, true
		in.shortYear = n-4 == 2
		return dtOK
	}
	if in.haveTime {
		return dtSyntax
	}
	us, ok := scanMicros(frac)
	if !ok {
		return dtSyntax
	}
	c := Clock{Micro: us}
	switch {
	case len(whole) == 6:
		c.Hour, c.Min, c.Sec = twoDigits(whole, 0), twoDigits(whole, 2), twoDigits(whole, 4)
	case len(whole) == 4 && !point:
		c.Hour, c.Min = twoDigits(whole, 0), twoDigits(whole, 2)
	default:
		return dtSyntax
	}
	if c.Hour < 0 || c.Min < 0 || c.Sec < 0 {
		return dtSyntax
	}
	if c.Hour > 24 || c.Min > 59 || c.Sec > 60 || c.Hour == 24 && (c.Min|c.Sec|c.Micro) != 0 {
		return dtRange
	}
	in.clock, in.haveTime = c, true
	return dtOK
}

// readDate decodes fields with separators; a month may be a name.
func (in *dtInput) readDate(s string) dtError {
	if in.haveDate() || in.haveTime { // PostgreSQL wants such a date first
		return dtSyntax
	}
	var parts []string
	for i := 0; i < len(s); {
		j := i
		switch {
		case isDigit(s[i]):
			for j < len(s) && isDigit(s[j]) {
				j++
			}
		case isAlpha(s[i]):
			for j < len(s) && isAlpha(s[j]) {
				j++
			}
		default:
			i++
			continue
		}
		parts = append(parts, s[i:j])
		i = j
	}
	if len(parts) > 3 {
		return dtSyntax
	}
	for i, p := range parts {
		if isAlpha(p[0]) {
			w, ok := dtWords[p]
			if !ok || w.what != wordMonth || in.haveMon {
				if ok && w.what == wordIgnore {
					continue
				}
				return dtSyntax
			}
			in.mon, in.haveMon, in.textMonth = w.n, true, true
			parts[i] = ""
		}
	}
	for _, p := range parts {
		if p == "" || !isDigit(p[0]) {
			continue
		}
		if e := in.readDatePart(p); e != dtOK {
			return e
		}
	}
	if !in.haveDate() && in.dayOfYear == 0 {
		return dtSyntax
	}
	return dtOK
}

// readDatePart takes a number for the year, month or day that is due.
func (in *dtInput) readDatePart(s string) dtError {
	if strings.IndexByte(s, '.') >= 0 {
		return dtSyntax
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return dtRange
	}
	n := int(v)
	year := func() { in.year, in.haveYear, in.shortYear = n, true, len(s) <= 2 }
	month := func() { in.mon, in.haveMon = n, true }
	day := func() { in.day, in.haveDay = n, true }
	if len(s) == 3 && in.haveYear && !in.haveMon && !in.haveDay && n >= 1 && n <= 366 {
		in.dayOfYear = n
		in.mon, in.day, in.haveMon, in.haveDay = 1, 1, true, true
		return dtOK
	}
	order := in.st.DateOrder
	switch y, m, d := in.haveYear, in.haveMon, in.haveDay; {
	case !y && !m && !d:
		switch {
		case len(s) >= 3 || order == OrderYMD:
			year()
		case order == OrderDMY:
			day()
		default:
			month()
		}
	case y && !m && !d:
		month()
	case !y && m && !d:
		if in.textMonth && (len(s) >= 3 || order == OrderYMD) {
			year()
		} else {
			day()
		}
	case y && m && !d:
		if in.textMonth && len(s) >= 3 && in.shortYear { // the first number was the day
			in.day, in.haveDay = in.year, true
			year()
		} else {
			day()
		}
	case !y && !m && d:
		month()
	case !y && m && d:
		year()
	default:
		return in.readRun(s, true)
	}
	return dtOK
}

func (in *dtInput) readOffset(s string) dtError {
	if in.haveOff || in.loc != nil {
		return dtSyntax
	}
	off, ok := parseOffset(s)
	if !ok {
		for i := 1; i < len(s); i++ {
			if !isDigit(s[i]) && s[i] != ':' {
				return dtSyntax
			}
		}
		return dtZoneRange
	}
	in.off, in.haveOff = off, true
	return dtOK
}

func (in *dtInput) readZoneName(s string) dtError {
	if in.haveOff || in.loc != nil {
		return dtSyntax
	}
	loc, err := LoadZone(s)
	if err != nil {
		in.badZone = s
		return dtBadZone
	}
	in.loc = loc
	return dtOK
}

func (in *dtInput) readWord(s string) (dtWord, dtError) {
	w, ok := dtWords[s]
	if !ok {
		if in.haveOff || in.loc != nil {
			if s == "dst" {
				in.off += 3600
				return w, dtOK
			}
			return w, dtSyntax
		}
		if off, ok := zoneAbbrevs[s]; ok {
			in.off, in.haveOff = off, true
			return w, dtOK
		}
		if in.readZoneName(s) != dtOK {
			return w, dtSyntax
		}
		return w, dtOK
	}
	switch w.what {
	case wordMonth:
		// "mon dd" after "dd": the number before it was the day.
		if in.haveMon && !in.textMonth && !in.haveDay && in.mon >= 1 && in.mon <= 31 {
			in.day, in.haveDay = in.mon, true
		} else if in.haveMon {
			return w, dtSyntax
		}
		in.mon, in.haveMon, in.textMonth = w.n, true, true
	case wordAM, wordPM:
		in.half = w.what
	case wordBC, wordAD:
		in.era = w.what
	case wordISOTime:
		if !in.haveDate() && !in.timeOnly {
			return w, dtSyntax
		}
	case wordSpecial:
		return w, in.readSpecial(s)
	}
	return w, dtOK
}

func (in *dtInput) readSpecial(s string) dtError {
	if in.special != "" || in.haveDate() {
		return dtSyntax
	}
	switch s {
	case "allballs":
		in.clock, in.haveTime, in.haveOff = Clock{}, true, true
		return dtOK
	case "today", "tomorrow", "yesterday":
		now, ok := in.now()
		if !ok {
			return dtSyntax
		}
		day, _ := SplitTimestamp(now)
		switch s {
		case "tomorrow":
			day++
		case "yesterday":
			day--
		}
		in.setDay(day)
		return dtOK
	}
	in.special = s
	return dtOK
}

// finish checks the whole and completes the year.
func (in *dtInput) finish() dtError {
	if in.half != wordIgnore {
		if !in.haveTime || in.clock.Hour > 12 {
			return dtRange
		}
		if in.clock.Hour == 12 {
			in.clock.Hour = 0
		}
		if in.half == wordPM {
			in.clock.Hour += 12
		}
	}
	if in.special != "" {
		return dtOK
	}
	if in.haveYear {
		switch {
		case in.era == wordBC:
			if in.year <= 0 {
				return dtRange
			}
			in.year = 1 - in.year
		case in.shortYear && in.year < 70:
			in.year += 2000
		case in.shortYear && in.year < 100:
			in.year += 1900
		case in.year <= 0:
			return dtRange
		}
	}
	if in.dayOfYear > 0 {
		y, m, d := CivilFromDays(DaysFromCivil(in.year, 1, in.dayOfYear))
		if y != in.year {
			return dtRange
		}
		in.mon, in.day = m, d
	}
	if in.haveMon && (in.mon < 1 || in.mon > 12) || in.haveDay && (in.day < 1 || in.day > 31) {
		return dtMonthDay
	}
	if in.haveDate() {
		if in.day > DaysInMonth(in.year, in.mon) {
			return dtRange
		}
		return dtOK
	}
	if in.timeOnly {
		if !in.haveTime || in.haveYear || in.haveMon || in.haveDay {
			return dtSyntax
		}
		return dtOK
	}
	return dtSyntax
}

// moment resolves special words; ok is false where there is none. 'now' and 'epoch' are moments, the infinities infinite.
func (in *dtInput) moment() (ts int64, ok bool, err error) {
	switch in.special {
	case "":
		return 0, false, nil
	case "infinity":
		return TimestampInfinity, true, nil
	case "-infinity":
		return TimestampNegInfinity, true, nil
	case "epoch":
		return UnixMicros(0), true, nil
	}
	if in.st.Now == nil {
		return 0, false, in.fail(dtSyntax)
	}
	return in.st.Now(), true, nil
}

func (in *dtInput) timestamp(zoned bool) (int64, error) {
	if e := in.read(); e != dtOK {
		return 0, in.fail(e)
	}
	if ts, ok, err := in.moment(); ok || err != nil {
		if !zoned && in.special == "now" {
			ts = InZone(ts, in.st.Zone)
		}
		return ts, err
	}
	ts, ok := Civil{in.year, in.mon, in.day, in.clock}.Timestamp()
	if ok && zoned {
		switch {
		case in.haveOff:
			ts -= int64(in.off) * microsPerSecond
			ok = ValidTimestamp(ts)
		default:
			loc := in.loc
			if loc == nil {
				loc = in.st.Zone
			}
			var err error
			if ts, err = FromZone(ts, loc); err != nil {
				ok = false
			}
		}
	}
	if !ok {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "timestamp out of range: \"%s\"", in.text)
	}
	return ts, nil
}

func (in *dtInput) date() (int64, error) {
	if e := in.read(); e != dtOK {
		return 0, in.fail(e)
	}
	if ts, ok, err := in.moment(); ok || err != nil {
		if in.special == "now" {
			ts = InZone(ts, in.st.Zone)
		}
		return TimestampToDate(ts), err
	}
	day := int64(DaysFromCivil(in.year, in.mon, in.day))
	if !ValidDate(day) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date out of range: \"%s\"", in.text)
	}
	return day, nil
}

func (in *dtInput) timeOfDay() (int64, error) {
	if e := in.read(); e != dtOK {
		return 0, in.fail(e)
	}
	if in.special == "now" && in.st.Now != nil {
		return TimestampToTime(InZone(in.st.Now(), in.st.Zone)), nil
	}
	if in.special != "" || !in.haveTime {
		return 0, in.fail(dtSyntax)
	}
	return in.clock.Micros(), nil
}
