package types

import (
	"testing"
	"time"
)

// fuzzTypes are the types that fuzzing goes over; the first byte of the input chooses.
var fuzzTypes = []Type{
	Bool, Int2, Int4, Int8, Oid, Float4, Float8, Numeric, Text, Name, Char, Bytea, UUID, JSON, JSONB, Date, Time, Timestamp, Timestamptz, IntervalT,
	ArrayOf(Int4), ArrayOf(Text), ArrayOf(Timestamp), ArrayOf(Numeric), Int2Vector, Tid, WithLength(Bpchar, 3), WithLength(Varchar, 3),
	WithNumeric(6, 2), WithPrecision(Timestamp, 3), WithInterval(rangeDay|rangeHour, -1), ArrayOf(Bytea), ArrayOf(IntervalT),
}

// FuzzParseText: what is read is written as text that reads as the same value, and so in binary.
func FuzzParseText(f *testing.F) {
	for i, s := range []string{"t", "1", "-2", "3", "4", "1.5", "1e300", "12.50", "a b", "x", "c", `\x01`, "a0eebc999c0b4ef8bb6d6bb9bd380a11", "[1]",
		`{"b":1,"a":[2.50,"é"]}`, "Jan 2 2001", "04:05 PM", "2001-01-02T03:04:05.6Z", "2001-01-02 03:04 Europe/Berlin", "1 day -02:03:04.5 ago",
		"[0:1]={1,NULL}", `{"a\"b",{}}`, "{infinity}", "{{1},{2}}", "1 2", "(1,2)", "ab ", "abc", "1234.565", "epoch", "P1DT2H", `{"\\x01"}`, `{"1 mon"}`} {
		f.Add(uint8(i), s)
	}
	st := &Style{Now: func() int64 { return 0 }, Zone: time.FixedZone("", 3600)}
	f.Fuzz(func(t *testing.T, which uint8, s string) {
		if CheckUTF8(s) != nil || len(s) > 2000 {
			return
		}
		tp := fuzzTypes[int(which)%len(fuzzTypes)]
		d, err := ParseText(tp, s, st)
		if err != nil {
			return
		}
		text := string(AppendText(nil, tp, d, st))
		if CheckUTF8(text) != nil {
			return // "char" is a byte
		}
		back, err := ParseText(tp, text, st)
		if err != nil || !Equal(d, back) || string(AppendText(nil, tp, back, st)) != text || d.Hash() != back.Hash() {
			t.Fatalf("%s %q is %q, which reads as %q, %v", tp, s, text, AppendText(nil, tp, back, st), err)
		}
		bin := AppendBinary(nil, tp, d)
		back, err = ParseBinary(tp, bin)
		if err != nil || string(AppendText(nil, tp, back, st)) != text {
			t.Fatalf("%s %q: binary %x reads as %q, %v", tp, text, bin, AppendText(nil, tp, back, st), err)
		}
	})
}

// FuzzParseBinary: no bytes make a panic, and what is read is written back the same.
func FuzzParseBinary(f *testing.F) {
	for i, tp := range fuzzTypes {
		for _, s := range []string{"1", "2001-01-01", "1 day", "{1}", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "12.5", "(1,2)", "{}"} {
			if d, err := ParseText(tp, s, nil); err == nil {
				f.Add(uint8(i), AppendBinary(nil, tp, d))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		tp := fuzzTypes[int(which)%len(fuzzTypes)]
		d, err := ParseBinary(tp, b)
		if err != nil || len(b) > 4000 {
			return
		}
		text := string(AppendText(nil, tp, d, nil))
		back, err := ParseBinary(tp, AppendBinary(nil, tp, d))
		if err != nil || !Equal(back, d) || string(AppendText(nil, tp, back, nil)) != text {
			t.Fatalf("%s %x is %q, and back %q, %v", tp, b, text, AppendText(nil, tp, back, nil), err)
		}
	})
}

// FuzzDecimal: the text, stored and ordered forms of a decimal give it back.
func FuzzDecimal(f *testing.F) {
	for _, s := range orderedDecimals {
		f.Add(s, "1.5")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 200 {
			return
		}
		x, err1 := ParseDecimal(a)
		y, err2 := ParseDecimal(b)
		if err1 != nil || err2 != nil || len(x.String()) > 3000 || len(y.String()) > 3000 {
			return
		}
		if back, err := ParseDecimal(x.String()); err != nil || back.String() != x.String() {
			t.Fatalf("%s: %v", x, err)
		}
		if back, rest, err := ReadBinary(x.AppendBinary(nil)); err != nil || len(rest) > 0 || back.String() != x.String() {
			t.Fatalf("%s stored: %s, %v", x, back, err)
		}
		if back, rest, err := ReadOrdered(x.AppendOrdered(nil)); err != nil || len(rest) > 0 || back.Cmp(x) != 0 {
			t.Fatalf("%s ordered: %s, %v", x, back, err)
		}
		if x.IsFinite() && y.IsFinite() {
			if sum := x.Add(y); sum.Sub(y).Cmp(x) != 0 {
				t.Fatalf("%s + %s = %s", x, y, sum)
			}
		}
	})
}

// FuzzReadStored: no stored bytes make a panic.
func FuzzReadStored(f *testing.F) {
	f.Add([]byte{4, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = ReadBinary(b)
		_, _, _ = ReadOrdered(b)
		_, _ = DecimalFromWire(b)
	})
}
