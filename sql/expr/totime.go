package expr

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A parsedTime is what a template found in a text; -1: not there.
type parsedTime struct {
	year, month, day, doy, julian  int64
	hour, minute, sec, micro, half int64
	century                        int64
	isoYear, isoWeek, isoDay       int64
	week, monthWeek                int64
	bc, hour12, zoned, yearSet     bool
	offset                         int
}

func errParse(format string, args ...any) error {
	return sqlerr.New(sqlerr.InvalidDatetime, format, args...)
}

// digitsOf is how many digits a pattern reads at most.
func digitsOf(name string) int {
	switch name {
	case "YYYY", "IYYY":
		return 4
	case "YYY", "IYY", "DDD", "IDDD", "MS", "FF3":
		return 3
	case "Y", "I", "D", "ID", "W", "Q", "FF1":
		return 1
	case "US", "FF6":
		return 6
	case "FF4":
		return 4
	case "FF5", "SSSSS", "SSSS":
		return 5
	case "J":
		return 7
	}
	return 2
}

func isDigitPattern(name string) bool {
	switch name {
	case "MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "RM", "TZ", "TZH", "OF", "":
		return false
	}
	return true
}

func isSeparator(c byte) bool {
	return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}

// parseByTemplate reads s by a date template, as to_date does: blanks and
// separators match one another, and a field followed by no other digits may be longer than its pattern.
func parseByTemplate(s string, tokens []timeToken) (*parsedTime, error) {
	p := &parsedTime{year: -1, month: -1, day: -1, doy: -1, julian: -1, hour: -1, minute: -1, sec: -1, half: -1, century: -1,
		isoYear: -1, isoWeek: -1, isoDay: -1, week: -1, monthWeek: -1}
	i := 0
	blanks := func() {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
			i++
		}
	}
	for k, t := range tokens {
		if t.name == "" {
			c := t.lit
			switch {
			case len(c) == 1 && c[0] == ' ', len(c) == 1 && isSeparator(c[0]):
				blanks()
				if i < len(s) && isSeparator(s[i]) && !(s[i] == '-' || s[i] == '+') || i < len(s) && c[0] != ' ' && isSeparator(s[i]) {
					i++
				}
				blanks()
			default:
				i = min(i+len(c), len(s))
			}
			continue
		}
		blanks()
		if i >= len(s) {
			break
		}
		if !isDigitPattern(t.name) {
			n, err := p.word(t, s[i:])
			if err != nil {
				return nil, err
			}
			i += n
			continue
		}
		width := digitsOf(t.name)
		if t.fill || k+1 == len(tokens) || !isDigitPattern(tokens[k+1].name) {
			switch t.name {
			case "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
			default:
				width = 10
			}
		}
		j := i
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		start := j
		for j < len(s) && j-start < width && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		if j == start {
			e := errParse("invalid value \"%s\" for \"%s\"", s[i:min(len(s), i+digitsOf(t.name))], t.text)
			e.(*sqlerr.Error).Detail = "Value must be an integer."
			return nil, e
		}
		v, err := strconv.ParseInt(s[i:j], 10, 64)
		if err != nil || v > 1<<31-1 {
			return nil, sqlerr.New(sqlerr.DatetimeOverflow, "value for \"%s\" in source string is out of range", t.text)
		}
		p.number(t.name, v, j-start)
		i = j
		if t.name == "Y,YYY" && i < len(s) && s[i] == ',' {
			j = i + 1
			for j < len(s) && j-i <= 3 && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			low, _ := strconv.ParseInt(s[i+1:j], 10, 64)
			p.year = v*1000 + low
			i = j
		}
		if t.th != "" {
			i = min(i+2, len(s))
		}
	}
	return p, nil
}

// nearYear completes a year of less than four digits to the one nearest to 2020.
func nearYear(v int64, digits int) int64 {
	switch {
	case digits <= 2 && v < 70:
		return v + 2000
	case digits <= 2:
		return v + 1900
	case digits == 3 && v >= 520:
		return v + 1000
	case digits == 3:
		return v + 2000
	}
	return v
}

func (p *parsedTime) number(name string, v int64, digits int) {
	switch name {
	case "YYYY", "Y,YYY":
		p.year, p.yearSet = v, true
	case "YYY", "YY", "Y":
		p.year, p.yearSet = v, true
		if digits < 4 {
			p.year = nearYear(v, digits)
		}
	case "IYYY", "IYY", "IY", "I":
		p.isoYear = v
		if digits < 4 {
			p.isoYear = nearYear(v, digits)
		}
	case "MM":
		p.month = v
	case "DD":
		p.day = v
	case "DDD":
		p.doy = v
	case "IDDD":
		p.isoWeek, p.isoDay = (v-1)/7+1, (v-1)%7+1
	case "ID":
		p.isoDay = v
	case "IW":
		p.isoWeek = v
	case "WW":
		p.week = v
	case "W":
		p.monthWeek = v
	case "J":
		p.julian = v
	case "CC":
		p.century = v
	case "HH24":
		p.hour = v
	case "HH", "HH12":
		p.hour, p.hour12 = v, true
	case "MI":
		p.minute = v
	case "SS":
		p.sec = v
	case "SSSS", "SSSSS":
		p.hour, p.minute, p.sec = v/3600, v/60%60, v%60
	case "MS", "FF3", "US", "FF6", "FF1", "FF2", "FF4", "FF5":
		for ; digits < 6; digits++ {
			v *= 10
		}
		p.micro = v
	case "TZM":
		if p.offset < 0 {
			v = -v
		}
		p.offset += int(v) * 60
	}
}

// word reads a pattern that is not a number and returns its length in s.
func (p *parsedTime) word(t timeToken, s string) (int, error) {
	upper := strings.ToUpper(s)
	find := func(names []string, short int) (int, int) {
		for k, n := range names {
			if len(upper) >= len(n) && strings.EqualFold(s[:len(n)], n) {
				return k, len(n)
			}
		}
		for k, n := range names {
			if short > 0 && len(upper) >= short && strings.EqualFold(s[:short], n[:short]) {
				return k, short
			}
		}
		return -1, 0
	}
	bad := func() error {
		w := s
		if i := strings.IndexByte(w, ' '); i > 0 {
			w = w[:i]
		}
		e := sqlerr.New(sqlerr.InvalidDatetime, "invalid value \"%s\" for \"%s\"", w, t.text)
		return e.WithDetail("The given value did not match any of the allowed values for this field.")
	}
	switch t.name {
	case "MONTH", "MON":
		k, n := find(monthNames, 3)
		if t.name == "MON" && k >= 0 {
			n = 3
		}
		if k < 0 {
			return 0, bad()
		}
		p.month = int64(k) + 1
		return n, nil
	case "RM":
		for k := 11; k >= 0; k-- {
			if strings.HasPrefix(upper, romanNames[k]) && (len(upper) == len(romanNames[k]) || !strings.ContainsRune("IVX", rune(upper[len(romanNames[k])]))) {
				p.month = int64(k) + 1
				return len(romanNames[k]), nil
			}
		}
		return 0, bad()
	case "DAY", "DY":
		k, n := find(dayNames, 3)
		if t.name == "DY" && k >= 0 {
			n = 3
		}
		if k < 0 {
			return 0, bad()
		}
		return n, nil
	case "AM", "PM", "A.M.", "P.M.":
		for _, w := range []string{"A.M.", "P.M.", "AM", "PM"} {
			if strings.HasPrefix(upper, w) {
				p.hour12 = true
				p.half = 0
				if w[0] == 'P' {
					p.half = 1
				}
				return len(w), nil
			}
		}
		return 0, bad()
	case "AD", "BC", "A.D.", "B.C.":
		for _, w := range []string{"A.D.", "B.C.", "AD", "BC"} {
			if strings.HasPrefix(upper, w) {
				p.bc = w[0] == 'B'
				return len(w), nil
			}
		}
		return 0, bad()
	case "TZH", "OF":
		sign, i := 1, 0
		if s[0] == '-' || s[0] == '+' {
			if s[0] == '-' {
				sign = -1
			}
			i++
		}
		j := i
		for j < len(s) && j-i < 2 && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		h, err := strconv.Atoi(s[i:j])
		if err != nil {
			return 0, bad()
		}
		p.zoned, p.offset = true, sign*h*3600
		if t.name == "OF" && j < len(s) && s[j] == ':' && j+3 <= len(s) {
			if m, err := strconv.Atoi(s[j+1 : j+3]); err == nil {
				p.offset += sign * m * 60
				j += 3
			}
		}
		return j, nil
	}
	return 0, sqlerr.Unsupported("formatting field \"%s\" in to_date", t.name)
}

func (p *parsedTime) date(text string) (int64, error) {
	if p.julian >= 0 {
		return p.julian - 2451545, nil
	}
	outOfRange := sqlerr.New(sqlerr.DatetimeOverflow, "date/time field value out of range: \"%s\"", text)
	year := p.year
	if p.isoYear >= 0 {
		week, day := max(p.isoWeek, 1), max(p.isoDay, 1)
		jan4 := int64(types.DaysFromCivil(int(p.isoYear), 1, 4))
		monday := jan4 - ((jan4+5)%7+7)%7
		return monday + (week-1)*7 + day - 1, nil
	}
	switch {
	case p.century >= 0 && p.yearSet:
		year = (p.century-1)*100 + p.year%100
		if p.year%100 == 0 {
			year += 100
		}
	case p.century >= 0:
		year = (p.century-1)*100 + 1
	case !p.yearSet:
		year = 0 // PostgreSQL's 1 BC
		if !p.bc {
			year = 0
		}
	}
	if p.bc && year > 0 {
		year = 1 - year
	}
	if p.doy >= 0 {
		if p.doy < 1 || p.doy > 366 {
			return 0, outOfRange
		}
		return int64(types.DaysFromCivil(int(year), 1, 1)) + p.doy - 1, nil
	}
	if p.week >= 0 {
		return int64(types.DaysFromCivil(int(year), 1, 1)) + (p.week-1)*7, nil
	}
	month, day := p.month, p.day
	if month < 0 {
		month = 1
	}
	if p.monthWeek >= 0 && day < 0 {
		day = (p.monthWeek-1)*7 + 1
	}
	if day < 0 {
		day = 1
	}
	if month < 1 || month > 12 || day < 1 || day > int64(types.DaysInMonth(int(year), int(month))) {
		return 0, outOfRange
	}
	d := int64(types.DaysFromCivil(int(year), int(month), int(day)))
	if !types.ValidDate(d) {
		return 0, outOfRange
	}
	return d, nil
}

func (p *parsedTime) timestamp(text string) (int64, error) {
	d, err := p.date(text)
	if err != nil {
		return 0, err
	}
	hour := max(p.hour, 0)
	if p.hour12 {
		if hour < 1 || hour > 12 {
			return 0, sqlerr.New(sqlerr.InvalidDatetime, "hour \"%d\" is invalid for the 12-hour clock", hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		switch {
		case p.half == 1 && hour < 12:
			hour += 12
		case p.half == 0 && hour == 12:
			hour = 0
		}
	}
	minute, sec := max(p.minute, 0), max(p.sec, 0)
	if hour > 24 || minute > 59 || sec > 60 {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date/time field value out of range: \"%s\"", text)
	}
	ts, err := types.DateToTimestamp(d)
	if err != nil {
		return 0, err
	}
	return ts + ((hour*60+minute)*60+sec)*1_000_000 + p.micro, nil
}
