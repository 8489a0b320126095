package types

import (
	"math"
	"testing"
	"time"

	"streamdb/sql/sqlerr"
)

func TestCompareOrder(t *testing.T) {
	list := func(n ...int64) Datum {
		l := &List{Elem: Int4}
		for _, v := range n {
			l.Items = append(l.Items, NewInt(v))
		}
		return NewList(l)
	}
	null := Datum{}
	for _, rising := range [][]Datum{
		{NewInt(-1), NewInt(0), NewInt(5), null},
		{NewBool(false), NewBool(true), null},
		{NewFloat(math.Inf(-1)), NewFloat(-1), NewFloat(0), NewFloat(1), NewFloat(math.Inf(1)), NewFloat(math.NaN()), null},
		{NewString(""), NewString("A"), NewString("a"), NewString("aa"), NewString("é"), null},
		{NewInterval(Interval{Days: -1}), NewInterval(Interval{}), NewInterval(Interval{Micros: 1}), NewInterval(Interval{Days: 29}),
			NewInterval(Interval{Months: 1}), NewInterval(Interval{Days: 31}), NewInterval(Interval{Months: math.MaxInt32, Micros: math.MaxInt64}), null},
		{list(), list(1), list(1, 2), list(2), null},
	} {
		for i, a := range rising {
			for j, b := range rising {
				if got := cmpInt(Compare(a, b), 0); got != cmpInt(i, j) {
					t.Errorf("Compare(%v, %v) = %d", a, b, got)
				}
			}
		}
	}
	for _, e := range [][2]Datum{
		{NewFloat(0), NewFloat(math.Copysign(0, -1))}, {NewFloat(math.NaN()), NewFloat(math.NaN())}, {null, null},
		{NewInterval(Interval{Months: 1}), NewInterval(Interval{Days: 30})}, {NewInterval(Interval{Days: 1}), NewInterval(Interval{Micros: microsPerDay})},
	} {
		if !Equal(e[0], e[1]) || e[0].Hash() != e[1].Hash() {
			t.Errorf("%v and %v differ", e[0], e[1])
		}
	}
	if !(Row{NewInt(1), null}).Equal(Row{NewInt(1), null}) || (Row{NewInt(1)}).Equal(Row{NewInt(1), null}) {
		t.Error("Row.Equal")
	}
}

func TestCivil(t *testing.T) {
	for day := -3_000_000; day < 3_000_000; day += 61 {
		y, m, d := CivilFromDays(day)
		if DaysFromCivil(y, m, d) != day || d < 1 || d > DaysInMonth(y, m) {
			t.Fatalf("day %d is %d-%d-%d", day, y, m, d)
		}
		if y >= 1 && y <= 9999 {
			if want := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix()/86400 - unixEpoch/86400; want != int64(day) {
				t.Fatalf("%d-%d-%d is %d, time has %d", y, m, d, day, want)
			}
		}
	}
}

func TestWordsOfNow(t *testing.T) {
	loc := time.FixedZone("", 2*3600)
	now, _ := ParseTimestamp("2026-11-30 23:30:00", nil)
	st := &Style{Zone: loc, Now: func() int64 { return now }}
	for _, c := range []struct {
		t        Type
		in, want string
	}{
		{Timestamp, "now", "2026-12-01 01:30:00"}, {Timestamptz, "now", "2026-12-01 01:30:00+02"}, {Date, "now", "2026-12-01"},
		{Date, "today", "2026-12-01"}, {Date, "tomorrow", "2026-12-02"}, {Timestamp, "yesterday", "2026-11-30 00:00:00"},
		{Timestamptz, "today", "2026-12-01 00:00:00+02"}, {Timestamp, "today 10:00", "2026-12-01 10:00:00"}, {Time, "now", "01:30:00"},
		{Timestamptz, "epoch", "1970-01-01 02:00:00+02"},
	} {
		d, err := ParseText(c.t, c.in, st)
		if err != nil {
			t.Errorf("%s %q: %v", c.t, c.in, err)
			continue
		}
		if got := string(AppendText(nil, c.t, d, st)); got != c.want {
			t.Errorf("%s %q is %s, want %s", c.t, c.in, got, c.want)
		}
	}
	if _, err := ParseTimestamp("now", nil); err == nil {
		t.Error("now without a clock")
	}
}

func TestSessionZone(t *testing.T) {
	for _, c := range [][3]string{ // setting, what SHOW shows, 2001-01-01 00:00 UTC in the style SQL
		{"3", "<+03>-03", "01/01/2001 03:00:00 +03"}, {"-5.5", "<-05:30>+05:30", "12/31/2000 18:30:00 -05:30"}, {"UTC+3", "UTC+3", "12/31/2000 21:00:00 UTC"},
		{"<+03>-03", "<+03>-03", "01/01/2001 03:00:00 +03"}, {"europe/berlin", "Europe/Berlin", "01/01/2001 01:00:00 CET"}, {"utc", "UTC", "01/01/2001 00:00:00 UTC"},
		{"America/port-au-prince", "America/Port-au-Prince", "12/31/2000 19:00:00 EST"}, {"-7", "<-07>+07", "12/31/2000 17:00:00 -07"},
	} {
		loc, err := SessionZone(c[0])
		if err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		ts, _ := ParseTimestamp("2001-01-01", nil)
		got := string(AppendText(nil, Timestamptz, NewInt(ts), &Style{Zone: loc, DateStyle: DateSQL}))
		if loc.String() != c[1] || got != c[2] {
			t.Errorf("%s: shows %s, %s; want %s, %s", c[0], loc, got, c[1], c[2])
		}
	}
	for _, bad := range []string{"", "foo", "PDT", "Europe/Nowhere", "../etc/passwd", "Local", "1000"} {
		if loc, err := SessionZone(bad); sqlerr.Code(err) != sqlerr.InvalidParameter {
			t.Errorf("%q: %v, %v", bad, loc, err)
		}
	}
}

func TestApplyTypmodExplicit(t *testing.T) {
	for _, c := range []struct {
		t        Type
		in       string
		explicit bool
		want     string
	}{
		{WithLength(Varchar, 2), "abc", true, "ab"}, {WithLength(Varchar, 2), "abc", false, sqlerr.StringTruncation},
		{WithLength(Varchar, 2), "éü!", true, "éü"}, {WithLength(Bpchar, 4), "ab  ", true, "ab  "}, {WithLength(Bpchar, 2), "abc", true, "ab"},
		{WithLength(Bpchar, 2), "a   ", false, "a "}, {WithNumeric(3, 1), "12.35", true, "12.4"}, {WithNumeric(3, 1), "99.95", true, sqlerr.OutOfRange},
		{WithPrecision(Timestamp, 1), "2001-01-01 00:00:00.25", true, "2001-01-01 00:00:00.3"},
		{WithInterval(rangeHour, -1), "1 day 02:03:04", true, "1 day 02:00:00"}, {ArrayOf(WithLength(Varchar, 1)), "{ab,c}", true, "{a,c}"},
		{ArrayOf(WithLength(Varchar, 1)), "{ab,c}", false, sqlerr.StringTruncation},
	} {
		base := c.t.Base()
		if base.Elem != nil {
			base = ArrayOf(base.Elem.Base())
		}
		d, err := ParseText(base, c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if d, err = ApplyTypmod(c.t, d, c.explicit); err != nil {
			got = sqlerr.Code(err)
		} else {
			got = string(AppendText(nil, c.t, d, nil))
		}
		if got != c.want {
			t.Errorf("%s of %q (explicit %v): %q, want %q", c.t, c.in, c.explicit, got, c.want)
		}
	}
}

func BenchmarkText(b *testing.B) {
	ts, _ := ParseTimestamp("2026-11-30 23:30:00.123456", nil)
	loc, _ := LoadZone("Europe/Berlin")
	d, _ := ParseDecimal("12345.67")
	buf := make([]byte, 0, 64)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"AppendTimestamp", func() { buf = AppendTimestamp(buf[:0], ts) }},
		{"AppendTimestamptzBerlin", func() { buf = AppendTimestamptz(buf[:0], ts, loc) }},
		{"AppendFloat8", func() { buf = AppendFloat8(buf[:0], 123.456) }},
		{"AppendDecimal", func() { buf = d.AppendText(buf[:0]) }},
		{"ParseInt", func() { _, _ = ParseInt("123456", 64) }},
		{"ParseTimestamp", func() { _, _ = ParseTimestamp("2026-11-30 23:30:00.123456", nil) }},
		{"ParseTimestampMonthName", func() { _, _ = ParseTimestamp("Nov 30 2026 23:30:00", nil) }},
		{"ParseDecimal", func() { _, _ = ParseDecimal("12345.67") }},
		{"DecimalAdd", func() { d.Add(d) }},
		{"DecimalMul", func() { d.Mul(d) }},
		{"DecimalDiv", func() { _, _ = d.Div(NewDecimalInt(7)) }},
		{"DecimalHash", func() { d.Hash() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
}
