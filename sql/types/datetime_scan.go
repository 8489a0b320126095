package types

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

// dtKind is what a field of a date, time or interval literal looks like.
type dtKind uint8

const (
	dtNumber  dtKind = iota // 12, 12.5
	dtDate                  // 2001-01-02, 1/2/3, jan-02-2001; also Europe/Berlin
	dtTime                  // 04:05:06.7
	dtZone                  // a sign and digits: +01:30, -5, -1.5, -1-2
	dtString                // letters
	dtSpecial               // a sign and letters: -infinity
)

type dtField struct {
	kind dtKind
	text string // in lower case
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' }

// scanDatetime cuts a literal into fields the way PostgreSQL's ParseDateTime does; ok is false for bytes it refuses.
func scanDatetime(s string) (fields []dtField, ok bool) {
	s = strings.ToLower(s)
	i := 0
	at := func(i int) byte {
		if i < len(s) {
			return s[i]
		}
		return 0
	}
	run := func(f func(c byte) bool) {
		for i < len(s) && f(s[i]) {
			i++
		}
	}
	sep := func(c byte) bool { return c == '-' || c == '/' || c == '.' }
	for i < len(s) {
		c := s[i]
		start := i
		kind := dtNumber
		switch {
		case isSpace(c):
			i++
			continue
		case isDigit(c) || c == '.' && isDigit(at(i+1)):
			run(isDigit)
			switch d := at(i); {
			case d == ':':
				kind = dtTime
				run(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
			case sep(d):
				i++
				if isDigit(at(i)) {
					if d != '.' {
						kind = dtDate
					}
					run(isDigit)
					if at(i) == d {
						kind = dtDate
						i++
						run(func(c byte) bool { return isDigit(c) || c == d })
					}
				} else if d != '.' || isAlpha(at(i)) {
					kind = dtDate
					run(func(c byte) bool { return isDigit(c) || isAlpha(c) || c == d })
				}
			}
		case isAlpha(c):
			kind = dtString
			run(isAlpha)
			d := at(i)
			known := knownWord(s[start:i])
			if sep(d) || (d == '+' || isDigit(d)) && !known {
				kind = dtDate
				run(func(c byte) bool { return isDigit(c) || isAlpha(c) || strings.IndexByte("+-/_.:", c) >= 0 })
			}
		case c == '+' || c == '-':
			i++
			run(isSpace)
			text := string(c)
			from := i
			switch {
			case isDigit(at(i)) || at(i) == '.' && isDigit(at(i+1)):
				kind = dtZone
				run(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' || c == '-' })
			case isAlpha(at(i)):
				kind = dtSpecial
				run(isAlpha)
			default:
				return nil, false
			}
			fields = append(fields, dtField{kind, text + s[from:i]})
			continue
		case c > ' ' && c < 0x7f:
			i++ // other punctuation only separates
			continue
		default:
			return nil, false
		}
		fields = append(fields, dtField{kind, s[start:i]})
	}
	return fields, len(fields) > 0 && len(fields) <= 25
}

// dtWord says what a word of a date or time literal means.
type dtWord struct {
	what dtMeaning
	n    int
}

type dtMeaning uint8

const (
	wordIgnore  dtMeaning = iota
	wordMonth             // n: 1 … 12
	wordAM                // am
	wordPM                // pm
	wordBC                // bc
	wordAD                // ad
	wordISOTime           // t: a time follows
	wordJulian            // j, jd, julian: a day number follows
	wordSpecial           // now, today, …
)

var dtWords = map[string]dtWord{
	"jan": {wordMonth, 1}, "january": {wordMonth, 1}, "feb": {wordMonth, 2}, "february": {wordMonth, 2}, "mar": {wordMonth, 3}, "march": {wordMonth, 3},
	"apr": {wordMonth, 4}, "april": {wordMonth, 4}, "may": {wordMonth, 5}, "jun": {wordMonth, 6}, "june": {wordMonth, 6}, "jul": {wordMonth, 7},
	"july": {wordMonth, 7}, "aug": {wordMonth, 8}, "august": {wordMonth, 8}, "sep": {wordMonth, 9}, "sept": {wordMonth, 9}, "september": {wordMonth, 9},
	"oct": {wordMonth, 10}, "october": {wordMonth, 10}, "nov": {wordMonth, 11}, "november": {wordMonth, 11}, "dec": {wordMonth, 12}, "december": {wordMonth, 12},
	"am": {what: wordAM}, "pm": {what: wordPM}, "bc": {what: wordBC}, "ad": {what: wordAD}, "t": {what: wordISOTime},
	"j": {what: wordJulian}, "jd": {what: wordJulian}, "julian": {what: wordJulian},
	"at": {}, "on": {}, "sun": {}, "sunday": {}, "mon": {}, "monday": {}, "tue": {}, "tues": {}, "tuesday": {}, "wed": {}, "weds": {}, "wednesday": {},
	"thu": {}, "thur": {}, "thurs": {}, "thursday": {}, "fri": {}, "friday": {}, "sat": {}, "saturday": {},
	"now": {what: wordSpecial}, "today": {what: wordSpecial}, "tomorrow": {what: wordSpecial}, "yesterday": {what: wordSpecial},
	"epoch": {what: wordSpecial}, "infinity": {what: wordSpecial}, "-infinity": {what: wordSpecial}, "allballs": {what: wordSpecial},
}

// knownWord reports whether a word may have digits right after it: Jan1, 3d4h.
func knownWord(w string) bool {
	switch w {
	case "d", "h", "m", "mm", "s", "y", "dow", "doy", "isodow", "isoyear":
		return true
	}
	_, ok := dtWords[w]
	return ok
}

// dtError is why a literal is refused.
type dtError uint8

const (
	dtOK       dtError = iota
	dtSyntax           // not a literal of the type
	dtRange            // a field is out of range
	dtMonthDay         // a month or day is out of range: perhaps the order was meant otherwise
	dtInterval         // a part of an interval is out of range
	dtTotal            // an interval is
	dtZoneRange
	dtBadZone // a zone nobody knows
)

func (e dtError) err(typ, text, zone string) error {
	switch e {
	case dtRange:
		return errFieldRange(text)
	case dtMonthDay:
		return sqlerr.New(sqlerr.DatetimeOverflow, "date/time field value out of range: \"%s\"", text).
			WithHint("Perhaps you need a different \"datestyle\" setting.")
	case dtInterval:
		return sqlerr.New("22015", "interval field value out of range: \"%s\"", text)
	case dtTotal:
		return errIntervalRange()
	case dtZoneRange:
		return sqlerr.New("22009", "time zone displacement out of range: \"%s\"", text)
	case dtBadZone:
		return sqlerr.New(sqlerr.InvalidParameter, "time zone \"%s\" not recognized", zone)
	}
	return sqlerr.New(sqlerr.InvalidDatetime, "invalid input syntax for type %s: \"%s\"", typ, text)
}

// scanClock reads hh:mm, hh:mm:ss and mm:ss.f; hours may be many.
func scanClock(s string) (c Clock, hours int64, e dtError) {
	var parts [3]int64
	n := 0
	var frac string
	for {
		j := 0
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		if j == 0 {
			if n == 2 && s == "" { // "04:05:"
				break
			}
			return c, 0, dtSyntax
		}
		v, err := strconv.ParseInt(s[:j], 10, 64)
		if err != nil || n > 0 && v > 1<<31-1 {
			return c, 0, dtRange
		}
		parts[n] = v
		n++
		s = s[j:]
		if s == "" {
			break
		}
		if s[0] == '.' && n >= 2 {
			frac = s[1:]
			if n == 2 {
				parts = [3]int64{0, parts[0], parts[1]}
			}
			break
		}
		if s[0] != ':' || n == 3 {
			return c, 0, dtSyntax
		}
		s = s[1:]
	}
	us, ok := scanMicros(frac)
	if !ok {
		return c, 0, dtSyntax
	}
	if parts[1] > 59 || parts[2] > 60 {
		return c, 0, dtRange
	}
	return Clock{Min: int(parts[1]), Sec: int(parts[2]), Micro: us}, parts[0], dtOK
}

// scanMicros reads the digits after a point as microseconds, rounded.
func scanMicros(s string) (int, bool) {
	us, half := 0, false
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		if i < 6 {
			us = us*10 + int(s[i]-'0')
		} else if i == 6 {
			half = s[i] >= '5'
			// exactly half rounds to even, as C's rint does
			if s[i] == '5' && strings.TrimRight(s[7:], "0") == "" {
				half = us%2 == 1
			}
		}
	}
	for i := len(s); i < 6; i++ {
		us *= 10
	}
	if half {
		us++
	}
	return us, true
}
