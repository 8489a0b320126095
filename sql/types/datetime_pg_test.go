package types

import (
	"strconv"
	"strings"
	"testing"
)

func TestDatetimeGolden(t *testing.T) {
	zone, err := LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	g := datetimeGolden{t: t, st: &Style{Zone: zone}}
	bad := 0
	golden(t, "datetime.tsv", func(line int, f []string) {
		got := g.eval(f)
		if got != f[4] && got != "" {
			if bad++; bad < 80 {
				t.Errorf("line %d: %s\n got %s\nwant %s", line, strings.Join(f[:4], " | "), got, f[4])
			}
		}
	})
	if bad > 0 {
		t.Errorf("%d differences", bad)
	}
}

type datetimeGolden struct {
	t  *testing.T
	st *Style
}

func (g *datetimeGolden) show(typ Type, d Datum, err error) string {
	if err != nil {
		return errText(err)
	}
	return string(AppendText(nil, typ, d, g.st))
}

func (g *datetimeGolden) ts(typ Type, v int64, err error) string { return g.show(typ, NewInt(v), err) }
func (g *datetimeGolden) iv(v Interval, err error) string {
	return g.show(IntervalT, NewInterval(v), err)
}

// eval is the answer to one line, "" where the input is itself refused.
func (g *datetimeGolden) eval(f []string) string {
	interval := func(s string) Interval {
		v, err := ParseInterval(s, nil)
		if err != nil {
			g.t.Fatalf("%q: %v", s, err)
		}
		return v
	}
	numbers := func(s string) (n []int64, last float64) {
		for w := range strings.FieldsSeq(s) {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				g.t.Fatal(err)
			}
			n, last = append(n, int64(v)), v
		}
		return n, last
	}
	neg := func(iv Interval) Interval { n, _ := iv.Neg(); return n }
	switch f[0] {
	case "extract", "trunc":
		return g.unit(f)
	case "bin":
		ts, _ := ParseTimestamp(f[2], nil)
		origin, _ := ParseTimestamp(f[3], nil)
		v, err := DateBin(interval(f[1]), ts, origin)
		return g.ts(Timestamp, v, err)
	case "add", "subi":
		iv := interval(f[3])
		if f[0] == "subi" {
			iv = neg(iv)
		}
		switch f[1] {
		case "time":
			v, _ := ParseTime(f[2], nil)
			return g.ts(Time, AddIntervalTime(v, iv), nil)
		case "timestamp":
			v, _ := ParseTimestamp(f[2], nil)
			v, err := AddInterval(v, iv)
			return g.ts(Timestamp, v, err)
		}
		v, err := ParseTimestamptz(f[2], g.st)
		if err == nil {
			v, err = AddIntervalZone(v, iv, g.st.Zone)
		}
		return g.ts(Timestamptz, v, err)
	case "sub", "age":
		a, _ := ParseTimestamp(f[2], nil)
		b, _ := ParseTimestamp(f[3], nil)
		if f[0] == "age" {
			return g.iv(Age(a, b))
		}
		return g.iv(SubTimestamps(a, b))
	case "iadd":
		return g.iv(interval(f[2]).Add(interval(f[3])))
	case "isub":
		return g.iv(interval(f[2]).Sub(interval(f[3])))
	case "icmp":
		return strconv.Itoa(interval(f[2]).Cmp(interval(f[3])))
	case "ineg":
		return g.iv(interval(f[2]).Neg())
	case "imul", "idiv":
		by, _ := ParseFloat8(f[3])
		if f[0] == "imul" {
			return g.iv(interval(f[2]).Mul(by))
		}
		return g.iv(interval(f[2]).Div(by))
	case "justify_hours":
		return g.iv(interval(f[2]).JustifyHours())
	case "justify_days":
		return g.iv(interval(f[2]).JustifyDays())
	case "justify_interval":
		return g.iv(interval(f[2]).Justify())
	case "inzone", "fromzone":
		loc, err := LoadZone(f[1])
		if f[0] == "inzone" {
			v, perr := ParseTimestamptz(f[2], g.st)
			if perr != nil {
				return errText(perr)
			}
			if err != nil {
				return errText(err)
			}
			return g.ts(Timestamp, InZone(v, loc), nil)
		}
		if err != nil {
			return errText(err)
		}
		v, _ := ParseTimestamp(f[2], nil)
		v, err = FromZone(v, loc)
		return g.ts(Timestamptz, v, err)
	case "make_date":
		n, _ := numbers(f[1])
		v, err := MakeDate(n[0], n[1], n[2])
		return g.ts(Date, v, err)
	case "make_time":
		n, sec := numbers(f[1])
		v, err := MakeTime(n[0], n[1], sec)
		return g.ts(Time, v, err)
	case "make_timestamp":
		n, sec := numbers(f[1])
		v, err := MakeTimestamp(n[0], n[1], n[2], n[3], n[4], sec)
		return g.ts(Timestamp, v, err)
	case "make_interval":
		n, sec := numbers(f[1])
		return g.iv(MakeInterval(n[0], n[1], n[2], n[3], n[4], n[5], sec))
	case "to_timestamp":
		sec, _ := ParseFloat8(f[1])
		v, err := TimestampFromEpoch(sec)
		return g.ts(Timestamptz, v, err)
	}
	g.t.Fatalf("no operation %q", f[0])
	return ""
}

func (g *datetimeGolden) unit(f []string) string {
	typ, _ := ByName(f[1])
	var d Datum
	if f[0] == "trunc" || typ.OID != OIDInterval {
		var err error
		if d, err = ParseText(typ, f[3], g.st); err != nil {
			return errText(err)
		}
	} else {
		d, _ = ParseText(typ, f[3], g.st)
	}
	if f[0] == "extract" {
		u, err := ExtractUnit(f[2], typ)
		if err != nil {
			return errText(err)
		}
		var v Decimal
		ok := true
		switch typ.OID {
		case OIDTimestamp:
			v, ok = u.OfTimestamp(d.Int())
		case OIDTimestamptz:
			v, ok = u.OfTimestamptz(d.Int(), g.st.Zone)
		case OIDDate:
			v, ok = u.OfDate(d.Int())
		case OIDTime:
			v = u.OfTime(d.Int())
		case OIDInterval:
			v = u.OfInterval(d.Interval())
		}
		if !ok {
			return "NULL"
		}
		return v.String()
	}
	if typ.OID != OIDInterval && InfiniteTimestamp(d.Int()) {
		return "" // PostgreSQL does not look at the unit then
	}
	u, err := TruncUnit(f[2], typ)
	if err != nil {
		return errText(err)
	}
	switch typ.OID {
	case OIDInterval:
		return g.iv(u.TruncInterval(d.Interval()), nil)
	case OIDTimestamptz:
		v, err := u.TruncZone(d.Int(), g.st.Zone)
		return g.ts(typ, v, err)
	}
	v, err := u.Trunc(d.Int())
	return g.ts(typ, v, err)
}
