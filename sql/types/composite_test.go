package types

import (
	"math/rand/v2"
	"strings"
	"testing"

	"streamdb/sql/sqlerr"
)

func TestCompositeText(t *testing.T) {
	m, _ := MapOf(Text, Int4)
	for _, c := range []struct {
		typ           Type
		in, out, fail string
	}{
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(1,"a b")`, `(1,"a b")`, ""},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), ` ( 1 ,a"b"\,c) `, `(1,"ab,c")`, ""},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(,"")`, `(,"")`, ""},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(1,"say ""x"" \\")`, `(1,"say ""x"" \\")`, ""},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(1)`, "", "22P02"},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(1,2,3)`, "", "22P02"},
		{StructOf(Schema{{"a", Int4}, {"b", Text}}), `(x,y)`, "", "22P02"},
		{StructOf(Schema{{"a", ArrayOf(Int4)}, {"b", StructOf(Schema{{"c", Numeric}})}}), `("{1,2}","(1.50)")`, `("{1,2}","(1.50)")`, ""},
		{m, `{a:1,"b c":NULL, a:3}`, `{a:3,"b c":NULL}`, ""},
		{m, `{}`, `{}`, ""},
		{m, `{a}`, "", "22P02"},
		{ArrayOf(StructOf(Schema{{"a", Int4}})), `{(1),NULL,(2)}`, `{(1),NULL,(2)}`, ""},
	} {
		d, err := ParseText(c.typ, c.in, nil)
		if err != nil {
			if c.fail == "" || !strings.HasPrefix(sqlerr.Code(err), c.fail) {
				t.Errorf("%s as %v: %v", c.in, c.typ, err)
			}
			continue
		}
		if got := d.Text(c.typ); got != c.out {
			t.Errorf("%s as %v: %s, want %s", c.in, c.typ, got, c.out)
		}
		back, err := ParseBinary(c.typ, AppendBinary(nil, c.typ, d))
		if err != nil || back.Text(c.typ) != c.out {
			t.Errorf("%s as %v: binary gives %v, %v", c.in, c.typ, back, err)
		}
		if again, ok := ByName(FormatType(c.typ)); !ok || !again.Equal(c.typ) {
			t.Errorf("%v: by name %v", c.typ, again)
		}
	}
}

// TestStructOrder checks that the encodings order as the rows do, and can be read.
func TestStructOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	typ := StructOf(Schema{{"a", Int8}, {"b", Text}, {"c", Float8}, {"d", Numeric}, {"e", IntervalT}, {"f", ArrayOf(Int4)}, {"g", Bool}})
	random := func() Row {
		row := Row{
			NewInt(int64(r.IntN(3) - 1)), NewString(strings.Repeat("\x00", r.IntN(2)) + strings.Repeat("a", r.IntN(2))),
			NewFloat([]float64{-1.5, 0, 2, 1e300}[r.IntN(4)]), NewDecimal(NewDecimalParts(int64(r.IntN(5)-2), r.IntN(2))),
			NewInterval(Interval{Months: int32(r.IntN(2)), Days: int32(r.IntN(40)), Micros: int64(r.IntN(3)) * 43200e6}),
			NewList(&List{Elem: Int4, Lower: 1, Items: []Datum{NewInt(1), NewInt(2), {}}[:r.IntN(4)]}), NewBool(r.IntN(2) == 0),
		}
		if r.IntN(3) == 0 {
			row[r.IntN(len(row))] = Datum{}
		}
		return row
	}
	for range 20000 {
		a, b := random(), random()
		for i := range a { // make long common beginnings
			if r.IntN(2) == 0 {
				b[i] = a[i]
			} else {
				break
			}
		}
		x, y := NewStruct(a), NewStruct(b)
		if c := a.Compare(b); c != 0 && c != Compare(x, y) {
			t.Fatalf("%v against %v: %d, encoded %d", a, b, c, Compare(x, y))
		}
		got, err := ReadStruct(typ, x.Str())
		if err != nil || !Row(got).Equal(a) {
			t.Fatalf("%v comes back as %v, %v", a, got, err)
		}
	}
}
