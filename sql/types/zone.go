package types

import (
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones by name on machines that have none

	"streamdb/sql/sqlerr"
)

// zoneOffset is the seconds east of UTC at a moment given in seconds since 2000 UTC.
func zoneOffset(loc *time.Location, sec int64) int64 {
	if loc == nil || loc == time.UTC {
		return 0
	}
	_, off := time.Unix(sec+unixEpoch, 0).In(loc).Zone()
	return int64(off)
}

func floorSeconds(ts int64) int64 {
	s := ts / microsPerSecond
	if ts%microsPerSecond < 0 {
		s--
	}
	return s
}

// InZone is timestamptz AT TIME ZONE loc: the local timestamp at that moment; nil is UTC.
func InZone(ts int64, loc *time.Location) int64 {
	if loc == nil || loc == time.UTC || InfiniteTimestamp(ts) {
		return ts
	}
	return ts + zoneOffset(loc, floorSeconds(ts))*microsPerSecond
}

// FromZone is timestamp AT TIME ZONE loc: the moment at which clocks there show
// ts. A time that clocks skip is read with the offset before the change, one
// they show twice with the offset after it, as PostgreSQL does. Error 22008 out of range.
func FromZone(ts int64, loc *time.Location) (int64, error) {
	if loc == nil || loc == time.UTC || InfiniteTimestamp(ts) {
		return ts, nil
	}
	out := ts - localOffset(loc, floorSeconds(ts))*microsPerSecond
	if !ValidTimestamp(out) {
		return 0, errTimestampRange()
	}
	return out, nil
}

func localOffset(loc *time.Location, sec int64) int64 {
	const day = 86400
	before, after := zoneOffset(loc, sec-day), zoneOffset(loc, sec+day)
	if before == after {
		return before
	}
	okBefore := zoneOffset(loc, sec-before) == before
	okAfter := zoneOffset(loc, sec-after) == after
	if okAfter || !okBefore && !okAfter && before > after {
		return after
	}
	return before
}

// zoneAbbrevs are PostgreSQL's default time zone abbreviations in wide use, in
// seconds east of UTC.
var zoneAbbrevs = map[string]int{
	"acdt": 37800, "acst": 34200, "adt": -10800, "aedt": 39600, "aest": 36000, "akdt": -28800, "akst": -32400, "ast": -14400,
	"awst": 28800, "bst": 3600, "cdt": -18000, "cest": 7200, "cet": 3600, "cst": -21600, "edt": -14400, "eest": 10800, "eet": 7200,
	"est": -18000, "gmt": 0, "hst": -36000, "ist": 7200, "jst": 32400, "kst": 32400, "mdt": -21600, "mest": 7200, "met": 3600,
	"msk": 10800, "mst": -25200, "ndt": -9000, "nst": -12600, "nzdt": 46800, "nzst": 43200, "pdt": -25200, "pht": 28800, "pkt": 18000,
	"pst": -28800, "sast": 7200, "sgt": 28800, "utc": 0, "ut": 0, "uct": 0, "west": 3600, "wet": 0, "z": 0, "zulu": 0, "hkt": 28800,
	"wib": 25200, "art": -10800, "brt": -10800, "clt": -14400, "cot": -18000, "pet": -18000, "vet": -14400,
}

// LoadZone finds a time zone as AT TIME ZONE takes it: an abbreviation (CET,
// always one hour east), a name in any case (Europe/Berlin), or an offset in
// hours. As POSIX has it, and unlike the offset of a timestamp, offsets in a
// name count west of UTC: UTC+3, <+03>-3, -05:30. Error 22023. It reads the
// zone's rules anew each time: look zones up once, not once a row.
func LoadZone(name string) (*time.Location, error) {
	if off, ok := zoneAbbrevs[strings.ToLower(name)]; ok && off != 0 {
		return time.FixedZone(strings.ToUpper(name), off), nil
	}
	if loc := findZone(name); loc != nil {
		return loc, nil
	}
	return nil, sqlerr.New(sqlerr.InvalidParameter, "time zone \"%s\" not recognized", name)
}

// SessionZone finds a time zone as SET TimeZone takes it: as LoadZone, but a name before an abbreviation, so that CET
// has its summer time, and no abbreviation that is not a name too, and a plain number
// is hours east of UTC. The location's String is what SHOW TimeZone shows. Error 22023.
func SessionZone(name string) (*time.Location, error) {
	if hours, err := strconv.ParseFloat(trimSpace(name), 64); err == nil { // a plain number counts east
		if math.Abs(hours) < 168 {
			return OffsetZone(int(math.RoundToEven(hours * 3600))), nil
		}
		return nil, errSetting("TimeZone", name)
	}
	if loc := findZone(name); loc != nil {
		return loc, nil
	}
	return nil, errSetting("TimeZone", name)
}

func findZone(name string) *time.Location {
	lower := strings.ToLower(name)
	switch lower {
	case "", "local", "posixrules":
		return nil
	case "utc", "z", "zulu", "gmt", "uct", "etc/utc", "ut":
		return time.UTC
	}
	if loc := zoneByName(name); loc != nil {
		return loc
	}
	// [abbreviation] ±hours[:minutes[:seconds]]
	i := 0
	if strings.HasPrefix(lower, "<") {
		i = strings.IndexByte(lower, '>') + 1
		if i == 0 {
			return nil
		}
	}
	for i < len(lower) && lower[i] >= 'a' && lower[i] <= 'z' {
		i++
	}
	rest := lower[i:]
	if rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		rest = "+" + rest
	}
	off, ok := parseOffset(rest)
	if !ok {
		return nil
	}
	return time.FixedZone(name, -off)
}

// OffsetZone is the zone that is always off seconds east of UTC. Its name is
// what SHOW TimeZone shows for it: <+03>-03, since offsets in names count west.
func OffsetZone(off int) *time.Location {
	if off == 0 {
		return time.UTC
	}
	east := appendOffset(nil, off)
	west := appendOffset(nil, -off)
	if west[0] == '+' && off > 0 {
		west[0] = '-'
	}
	return time.FixedZone("<"+string(east)+">"+string(west), off)
}

// zoneAbbrev is what follows a time in the styles that show abbreviations.
func zoneAbbrev(name string) string {
	if strings.HasPrefix(name, "<") {
		abbrev, _, _ := strings.Cut(name[1:], ">")
		return abbrev
	}
	i := 0
	for i < len(name) && isAlpha(name[i]|0x20) {
		i++
	}
	if i == 0 {
		i = len(name) // an abbreviation such as +03
	}
	return name[:i]
}

func zoneByName(name string) *time.Location {
	if loc, err := time.LoadLocation(name); err == nil {
		return loc
	}
	if loc, err := time.LoadLocation(strings.ToUpper(name)); err == nil {
		return loc
	}
	// Area/Some_Place, Area/Port_of_Place, Area/Port-au-Place
	b := []byte(strings.ToLower(name))
	start := 0
	for i := 0; i <= len(b); i++ {
		if i < len(b) && b[i] != '/' && b[i] != '_' && b[i] != '-' {
			continue
		}
		switch word := string(b[start:i]); word {
		case "of", "es", "au", "":
		default:
			b[start] = strings.ToUpper(word[:1])[0]
		}
		start = i + 1
	}
	if loc, err := time.LoadLocation(string(b)); err == nil {
		return loc
	}
	return nil
}

// parseOffset reads ±hh, ±hhmm, ±hh:mm or ±hh:mm:ss in seconds.
func parseOffset(s string) (int, bool) {
	if len(s) < 2 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	var parts [3]int
	p, digits := 0, 0
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			parts[p] = parts[p]*10 + int(c-'0')
			if digits++; digits > 6 {
				return 0, false
			}
		case c == ':' && p < 2 && digits > 0:
			p++
			digits = 0
		default:
			return 0, false
		}
	}
	if digits == 0 {
		return 0, false
	}
	if p == 0 && digits > 2 { // hhmm
		if digits > 4 {
			parts[2] = parts[0] % 100
			parts[0] /= 100
		}
		parts[0], parts[1] = parts[0]/100, parts[0]%100
	}
	if parts[0] > 15 || parts[1] > 59 || parts[2] > 59 {
		return 0, false
	}
	off := parts[0]*3600 + parts[1]*60 + parts[2]
	if s[0] == '-' {
		off = -off
	}
	return off, true
}

func appendTwo(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }
