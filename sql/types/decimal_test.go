package types

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func dec(t testing.TB, s string) Decimal {
	t.Helper()
	d, err := ParseDecimal(s)
	if err != nil {
		t.Fatalf("ParseDecimal(%q): %v", s, err)
	}
	return d
}

func TestDecimalText(t *testing.T) {
	for _, c := range [][2]string{
		{"0", "0"}, {"1.50", "1.50"}, {"-0.00", "0.00"}, {" 12 ", "12"}, {"+7.", "7"}, {".5", "0.5"}, {"-.005", "-0.005"},
		{"1e3", "1000"}, {"1.5e-3", "0.0015"}, {"1.25E+1", "12.5"}, {"nan", "NaN"}, {"-inf", "-Infinity"}, {"+Infinity", "Infinity"},
		{"9223372036854775807", "9223372036854775807"}, {"-9223372036854775808", "-9223372036854775808"},
		{"9223372036854775808.10", "9223372036854775808.10"}, {"123456789012345678901234567890.5", "123456789012345678901234567890.5"},
		{"0.00000000000000000000000001", "0.00000000000000000000000001"}, {"1e20", "100000000000000000000"}, {"0e-20", "0.00000000000000000000"},
	} {
		if got := dec(t, c[0]).String(); got != c[1] {
			t.Errorf("%q prints %s, want %s", c[0], got, c[1])
		}
	}
	for _, s := range []string{"", " ", "x", "1x", "1e", "1e5x", "--1", "1 2", ".", "0x10", "1_000", "infinit"} {
		if d, err := ParseDecimal(s); err == nil {
			t.Errorf("ParseDecimal(%q) = %s, want an error", s, d)
		}
	}
}

// orderedDecimals is in strictly rising order.
var orderedDecimals = []string{
	"-Infinity", "-1e100", "-123456789012345678901234567890.5", "-9223372036854775809", "-9223372036854775808", "-100", "-99.9", "-12", "-1.23",
	"-1.2", "-1", "-0.5", "-0.0001", "-1e-30", "0", "1e-30", "0.0001", "0.00011", "0.5", "1", "1.2", "1.23", "2", "10", "12", "99.9", "100", "101", "110",
	"9223372036854775807", "9223372036854775808", "1e20", "100000000000000000001", "123456789012345678901234567890.5", "1e100", "Infinity", "NaN",
}

func TestDecimalOrder(t *testing.T) {
	for i, a := range orderedDecimals {
		for j, b := range orderedDecimals {
			x, y := dec(t, a), dec(t, b)
			want := cmpInt(i, j)
			if got := x.Cmp(y); cmpInt(got, 0) != want {
				t.Errorf("Cmp(%s, %s) = %d, want %d", a, b, got, want)
			}
			if got := bytes.Compare(x.AppendOrdered(nil), y.AppendOrdered(nil)); got != want {
				t.Errorf("order of keys of %s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func randomDecimal(r *rand.Rand) Decimal {
	switch r.IntN(20) {
	case 0:
		return DecimalNaN
	case 1:
		return []Decimal{DecimalInf, DecimalNegInf}[r.IntN(2)]
	case 2, 3, 4:
		b := new(big.Int).SetUint64(r.Uint64())
		b.Mul(b, new(big.Int).SetUint64(r.Uint64()))
		if r.IntN(2) == 0 {
			b.Neg(b)
		}
		return NewDecimalBig(b, r.IntN(30))
	}
	return NewDecimalParts(int64(r.Uint64())>>r.IntN(64), r.IntN(20))
}

// TestDecimalAgainstBig checks the inline forms against plain big integers.
func TestDecimalAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		a, b := randomDecimal(r), randomDecimal(r)
		got, rest, err := ReadBinary(append(a.AppendBinary(nil), 7))
		if err != nil || len(rest) != 1 || got.String() != a.String() {
			t.Fatalf("stored %s, read %s, %v", a, got, err)
		}
		got, rest, err = ReadOrdered(append(a.AppendOrdered(nil), 7))
		if err != nil || len(rest) != 1 || got.Cmp(a) != 0 {
			t.Fatalf("key of %s read as %s, %v", a, got, err)
		}
		if a.IsFinite() && dec(t, a.String()).String() != a.String() {
			t.Fatalf("text of %s does not round trip", a)
		}
		if a.Normalise().Cmp(a) != 0 || a.Normalise().Hash() != a.Hash() {
			t.Fatalf("Normalise changes %s to %s", a, a.Normalise())
		}
		if c := a.Cmp(b); cmpInt(c, 0) != bytes.Compare(a.AppendOrdered(nil), b.AppendOrdered(nil)) || cmpInt(b.Cmp(a), 0) != -cmpInt(c, 0) {
			t.Fatalf("order of %s and %s", a, b)
		}
		if !a.IsFinite() || !b.IsFinite() {
			continue
		}
		x, y, scale := sameScale(a, b)
		if got, want := a.Add(b), NewDecimalBig(new(big.Int).Add(x, y), scale); got.String() != want.String() {
			t.Fatalf("%s + %s = %s, want %s", a, b, got, want)
		}
		if got, want := a.Sub(b), NewDecimalBig(new(big.Int).Sub(x, y), scale); got.String() != want.String() {
			t.Fatalf("%s - %s = %s, want %s", a, b, got, want)
		}
		if got, want := a.Mul(b), NewDecimalBig(new(big.Int).Mul(a.Big(), b.Big()), a.Scale()+b.Scale()); got.String() != want.String() {
			t.Fatalf("%s * %s = %s, want %s", a, b, got, want)
		}
		if b.Sign() == 0 {
			continue
		}
		q, err := a.Div(b)
		if err != nil {
			t.Fatal(err)
		}
		// |a - q b| ≤ |b| / 2 × 10^-scale
		rest2 := a.Sub(q.Mul(b)).Abs().Mul(NewDecimalInt(2))
		if rest2.Cmp(b.Abs().Mul(NewDecimalParts(1, q.Scale()))) > 0 {
			t.Fatalf("%s / %s = %s", a, b, q)
		}
		m, err := a.Mod(b)
		if err != nil {
			t.Fatal(err)
		}
		d, err := a.DivTrunc(b)
		if err != nil || d.Mul(b).Add(m).Cmp(a) != 0 || m.Abs().Cmp(b.Abs()) >= 0 {
			t.Fatalf("%s = %s * %s + %s", a, b, d, m)
		}
	}
}

func TestDecimalFloat(t *testing.T) {
	for _, c := range []struct {
		f        float64
		f8, f4   string
		back     float64
		skipBack bool
	}{
		{1.1, "1.1", "1.1", 1.1, false}, {100, "100", "100", 100, false}, {0, "0", "0", 0, false},
		{1e20, "100000000000000000000", "100000000000000000000", 1e20, false}, {1.5e-7, "0.00000015", "0.00000015", 1.5e-7, false},
		{0.1 + 0.2, "0.3", "0.3", 0.3, false}, {123456.789, "123456.789", "123457", 123456.789, false},
		{math.Inf(1), "Infinity", "Infinity", math.Inf(1), false}, {math.NaN(), "NaN", "NaN", 0, true},
	} {
		if got := DecimalFromFloat8(c.f); got.String() != c.f8 || !c.skipBack && got.Float64() != c.back {
			t.Errorf("%g: %s, back %g", c.f, got, got.Float64())
		}
		if got := DecimalFromFloat4(c.f); got.String() != c.f4 {
			t.Errorf("%g as real: %s", c.f, got)
		}
	}
}

// TestHashStable: rows are placed on disk by these numbers; they must never change.
func TestHashStable(t *testing.T) {
	for _, c := range []struct {
		d    Datum
		want uint64
	}{
		{Datum{}, HashNull},
		{NewInt(42), 42},
		{NewFloat(math.Copysign(0, -1)), 0},
		{NewString("streamdb"), 0xb674db229ca22327},
		{NewDecimal(dec(t, "1.50")), 0x721adb47b9607407},
		{NewDecimal(dec(t, "123456789012345678901234567890")), 0xf20cdde6aa263263},
		{NewInterval(Interval{Days: 1, Micros: -3600000000}), 0xfcaca924e4bb417b},
		{NewList(&List{Elem: Int4, Items: []Datum{NewInt(1), {}}}), 0x5c5ce71615ee9923},
	} {
		if got := c.d.Hash(); got != c.want {
			t.Errorf("hash of %v is %#x, want %#x", c.d, got, c.want)
		}
	}
	if got := Mix(Mix(0, 1), 2); got != 0x42889bbba578a007 {
		t.Errorf("Mix: %#x", got)
	}
	equal := [][2]Datum{
		{NewDecimal(dec(t, "1.0")), NewDecimal(dec(t, "1.000"))},
		{NewDecimal(dec(t, "92233720368547758080.00")), NewDecimal(dec(t, "92233720368547758080"))},
		{NewInterval(Interval{Months: 1}), NewInterval(Interval{Days: 29, Micros: microsPerDay})},
		{NewFloat(math.NaN()), NewFloat(-math.NaN())},
	}
	for _, e := range equal {
		if e[0].Hash() != e[1].Hash() {
			t.Errorf("%v and %v are equal but hash differently", e[0], e[1])
		}
	}
	if slices.Equal([]uint64{Mix(Mix(0, 1), 2)}, []uint64{Mix(Mix(0, 2), 1)}) {
		t.Error("Mix does not see order")
	}
}
