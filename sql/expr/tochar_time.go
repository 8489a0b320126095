package expr

import (
	"strconv"
	"strings"
	"time"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A timeToken is one pattern of a date template; lit is text to copy.
type timeToken struct {
	name string // in upper case; "": lit
	text string // as written: MONTH, Month and month differ
	lit  string
	fill bool // FM: no padding
	th   string
}

// timePatterns in the order in which they are tried: longer ones first.
var timePatterns = []string{
	"Y,YYY", "SSSSS", "A.D.", "B.C.", "A.M.", "P.M.", "HH24", "HH12", "YYYY", "IYYY", "IDDD", "SSSS", "MONTH", "DAY",
	"YYY", "IYY", "MON", "DDD", "TZH", "TZM", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
	"HH", "MI", "SS", "MS", "US", "AM", "PM", "AD", "BC", "YY", "IY", "MM", "DD", "DY", "ID", "IW", "WW", "CC", "RM", "TZ", "OF",
	"Y", "I", "D", "W", "J", "Q",
}

func parseTimeFormat(s string) []timeToken {
	var out []timeToken
	fill := false
	for i := 0; i < len(s); {
		rest := s[i:]
		upper := strings.ToUpper(rest[:min(len(rest), 5)])
		switch {
		case strings.HasPrefix(upper, "FM"):
			fill = true
			i += 2
			continue
		case strings.HasPrefix(upper, "TM"), strings.HasPrefix(upper, "FX"):
			i += 2
			continue
		case rest[0] == '"':
			i++
			var lit strings.Builder
			for i < len(s) && s[i] != '"' {
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				lit.WriteByte(s[i])
				i++
			}
			i++
			out = append(out, timeToken{lit: lit.String()})
			continue
		case strings.HasPrefix(rest, `\"`):
			out = append(out, timeToken{lit: rest[1:2]})
			i += 2
			continue
		}
		name := ""
		for _, p := range timePatterns {
			if strings.HasPrefix(upper, p) {
				name = p
				break
			}
		}
		if name == "" {
			out = append(out, timeToken{lit: rest[:1]})
			i++
			continue
		}
		t := timeToken{name: name, text: rest[:len(name)], fill: fill}
		fill = false
		i += len(name)
		if i+2 <= len(s) && (s[i:i+2] == "TH" || s[i:i+2] == "th") {
			t.th = s[i : i+2]
			i += 2
		}
		out = append(out, t)
	}
	return out
}

// A moment is what a date template may show.
type moment struct {
	types.Civil
	day      int64 // days since 2000-01-01
	interval bool
	zone     string // abbreviation
	offset   int    // seconds east
	zoned    bool
}

var (
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	romanNames = []string{"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}
)

// cased writes a name in the case of its pattern: MONTH, Month or month.
func cased(name, pattern string) string {
	switch {
	case pattern[0] >= 'a':
		return strings.ToLower(name)
	case len(pattern) > 1 && pattern[1] >= 'a':
		return name
	}
	return strings.ToUpper(name)
}

func padNumber(v int64, width int, fill bool) string {
	neg := v < 0
	if neg {
		v = -v
		width--
	}
	s := strconv.FormatInt(v, 10)
	for !fill && len(s) < width {
		s = "0" + s
	}
	if neg {
		s = "-" + s
	}
	return s
}

func padName(s string, width int, fill bool) string {
	if fill || len(s) >= width {
		return s
	}
	return s + strings.Repeat(" ", width-len(s))
}

// write shows m by a template.
func (m *moment) write(tokens []timeToken) (string, error) {
	var b strings.Builder
	for _, t := range tokens {
		if t.name == "" {
			b.WriteString(t.lit)
			continue
		}
		s, err := m.field(t)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		if t.th != "" && s != "" {
			o := ordinal(s)
			if t.th == "TH" {
				o = strings.ToUpper(o)
			}
			b.WriteString(o)
		}
	}
	return b.String(), nil
}

func (m *moment) unit(name string) int64 {
	u, err := types.ExtractUnit(name, types.Timestamp)
	if err != nil {
		return 0
	}
	d, _ := u.OfDate(m.day)
	v, _ := d.Int64("bigint")
	return v
}

// field is what one pattern shows.
func (m *moment) field(t timeToken) (string, error) {
	num := func(v int64, width int) (string, error) {
		if v < 0 && t.name != "DD" && t.name != "DDD" {
			width++ // for the sign
		}
		return padNumber(v, width, t.fill), nil
	}
	dot := strings.Contains(t.name, ".")
	half := func(first, second string, isFirst bool) (string, error) {
		s := second
		if isFirst {
			s = first
		}
		if dot {
			s = s[:1] + "." + s[1:] + "."
		}
		if t.text[0] >= 'a' {
			s = strings.ToLower(s)
		}
		return s, nil
	}
	year := int64(m.Year)
	if year <= 0 && !m.interval {
		year = 1 - year
	}
	if m.interval {
		switch t.name {
		case "MONTH", "MON", "DAY", "DY", "BC", "AD", "B.C.", "A.D.", "RM", "TZ", "OF", "TZH", "TZM", "D", "ID", "IYYY", "IYY", "IY", "I", "IDDD", "WW", "IW", "J", "Q":
			if t.name == "RM" || t.name == "Q" {
				break
			}
			return "", sqlerr.New(sqlerr.InvalidDatetime, "invalid format specification for an interval value").
				WithHint("Intervals are not tied to specific calendar dates.")
		}
	}
	switch t.name {
	case "HH24":
		return num(int64(m.Hour), 2)
	case "HH", "HH12":
		h := m.Hour % 12
		if h == 0 {
			h = 12
		}
		return num(int64(h), 2)
	case "MI":
		return num(int64(m.Min), 2)
	case "SS":
		return num(int64(m.Sec), 2)
	case "MS", "FF3":
		return padNumber(int64(m.Micro)/1000, 3, false), nil
	case "US", "FF6":
		return padNumber(int64(m.Micro), 6, false), nil
	case "FF1", "FF2", "FF4", "FF5":
		s := padNumber(int64(m.Micro), 6, false)
		return s[:int(t.name[2]-'0')], nil
	case "SSSS", "SSSSS":
		return num(int64(m.Hour)*3600+int64(m.Min)*60+int64(m.Sec), 1)
	case "AM", "PM", "A.M.", "P.M.":
		return half("AM", "PM", m.Hour%24 < 12)
	case "AD", "BC", "A.D.", "B.C.":
		return half("BC", "AD", m.Year <= 0)
	case "Y,YYY":
		return padNumber(year/1000, 1, false) + "," + padNumber(year%1000, 3, false), nil
	case "YYYY":
		return num(year, 4)
	case "YYY":
		return num(year%1000, 3)
	case "YY":
		return num(year%100, 2)
	case "Y":
		return num(year%10, 1)
	case "IYYY":
		return num(abs64(m.unit("isoyear")), 4)
	case "IYY":
		return num(abs64(m.unit("isoyear"))%1000, 3)
	case "IY":
		return num(abs64(m.unit("isoyear"))%100, 2)
	case "I":
		return num(abs64(m.unit("isoyear"))%10, 1)
	case "MONTH":
		return padName(cased(monthNames[m.Month-1], t.text), 9, t.fill), nil
	case "MON":
		return cased(monthNames[m.Month-1][:3], t.text), nil
	case "MM":
		return num(int64(m.Month), 2)
	case "DAY":
		return padName(cased(dayNames[m.unit("dow")], t.text), 9, t.fill), nil
	case "DY":
		return cased(dayNames[m.unit("dow")][:3], t.text), nil
	case "DDD":
		if m.interval {
			return num((year*12+int64(m.Month))*30+int64(m.Day), 3)
		}
		return num(m.unit("doy"), 3)
	case "IDDD":
		return num((m.unit("week")-1)*7+m.unit("isodow"), 3)
	case "DD":
		return num(int64(m.Day), 2)
	case "D":
		return num(m.unit("dow")+1, 1)
	case "ID":
		return num(m.unit("isodow"), 1)
	case "W":
		return num(int64(m.Day-1)/7+1, 1)
	case "WW":
		return num((m.unit("doy")-1)/7+1, 2)
	case "IW":
		return num(m.unit("week"), 2)
	case "CC":
		if m.interval {
			return num(year/100, 2)
		}
		return num(m.unit("century"), 2)
	case "J":
		return num(m.unit("julian"), 1)
	case "Q":
		if m.Month == 0 {
			return "", nil
		}
		return num(int64(m.Month-1)/3+1, 1)
	case "RM":
		if m.Month == 0 && m.Year == 0 {
			return "", nil
		}
		s := romanNames[(m.Month+11)%12]
		if t.text[0] >= 'a' {
			s = strings.ToLower(s)
		}
		return padName(s, 4, t.fill), nil
	case "TZ":
		if !m.zoned {
			return "", nil
		}
		if t.text[0] >= 'a' {
			return strings.ToLower(m.zone), nil
		}
		return m.zone, nil
	case "TZH":
		sign := "+"
		if m.offset < 0 {
			sign = "-"
		}
		return sign + padNumber(abs64(int64(m.offset))/3600, 2, false), nil
	case "TZM":
		return padNumber(abs64(int64(m.offset))%3600/60, 2, false), nil
	case "OF":
		sign := "+"
		if m.offset < 0 {
			sign = "-"
		}
		o := abs64(int64(m.offset))
		s := sign + padNumber(o/3600, 2, false)
		if o%3600 != 0 {
			s += ":" + padNumber(o%3600/60, 2, false)
		}
		return s, nil
	}
	return "", sqlerr.Unsupported("template pattern \"%s\"", t.name)
}

func abs64(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func momentOf(ts int64) *moment {
	day, _ := types.SplitTimestamp(ts)
	return &moment{Civil: types.CivilOf(ts), day: day}
}

// timeFormats adds to_char of dates, to_date and to_timestamp.
func timeFormats(r *registry) {
	show := func(zoned bool) maker {
		return boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
			ts := a[0].Int()
			if types.InfiniteTimestamp(ts) || a[1].Str() == "" {
				return types.Datum{}, nil
			}
			local := ts
			if zoned {
				local = types.InZone(ts, ctx.zone())
			}
			m := momentOf(local)
			if zoned {
				m.zoned, m.zone, m.offset = true, "UTC", int((local-ts)/1_000_000)
				if z := ctx.zone(); z != nil {
					m.zone, _ = time.UnixMicro(types.UnixOf(ts)).In(z).Zone()
				}
			}
			s, err := m.write(parseTimeFormat(a[1].Str()))
			return types.NewString(s), err
		})
	}
	r.def("to_char(timestamp,text) text stable", show(false))
	r.def("to_char(timestamptz,text) text stable", show(true))
	r.def("to_char(interval,text) text stable", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[1].Str() == "" {
			return types.Datum{}, nil
		}
		iv := a[0].Interval()
		m := &moment{interval: true}
		m.Year, m.Month, m.Day = int(iv.Months/12), int(iv.Months%12), int(iv.Days)
		us := iv.Micros
		m.Hour = int(us / 3_600_000_000)
		m.Min = int(us / 60_000_000 % 60)
		m.Sec = int(us / 1_000_000 % 60)
		m.Micro = int(us % 1_000_000)
		s, err := m.write(parseTimeFormat(a[1].Str()))
		return types.NewString(s), err
	}))
	r.def("to_date(text,text) date", boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
		p, err := parseByTemplate(a[0].Str(), parseTimeFormat(a[1].Str()))
		if err != nil {
			return types.Datum{}, err
		}
		d, err := p.date(a[0].Str())
		return types.NewInt(d), err
	}))
	r.def("to_timestamp(text,text) timestamptz stable", boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
		p, err := parseByTemplate(a[0].Str(), parseTimeFormat(a[1].Str()))
		if err != nil {
			return types.Datum{}, err
		}
		ts, err := p.timestamp(a[0].Str())
		if err != nil {
			return types.Datum{}, err
		}
		if p.zoned {
			return types.NewInt(ts - int64(p.offset)*1_000_000), nil
		}
		ts, err = types.FromZone(ts, ctx.zone())
		return types.NewInt(ts), err
	}))
}
