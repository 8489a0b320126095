package pgwire

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

// Every form of cell gives what AppendText and AppendBinary give for its Datum.
func TestRowWriter(t *testing.T) {
	dec, err := types.ParseText(types.Numeric, "-12.50", nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := types.ParseText(types.ArrayOf(types.Int4), "{1,NULL,3}", nil)
	if err != nil {
		t.Fatal(err)
	}
	iv := types.NewInterval(types.Interval{Months: 1, Days: 2, Micros: 3})
	cases := []struct {
		typ types.Type
		val types.Datum
	}{
		{types.Bool, types.NewBool(true)}, {types.Int2, types.NewInt(-2)}, {types.Int4, types.NewInt(-4)}, {types.Int8, types.NewInt(-8)}, {types.Oid, types.NewInt(1 << 31)},
		{types.Float4, types.NewFloat(1.5)}, {types.Float8, types.NewFloat(0.1)}, {types.Numeric, dec}, {types.Text, types.NewString("é")}, {types.Varchar, types.NewString("v")},
		{types.Name, types.NewString("n")}, {types.Char, types.NewString("c")}, {types.Bytea, types.NewString("\x00\xff")}, {types.WithLength(types.Bpchar, 3), types.NewString("b")},
		{types.Date, types.NewInt(1)}, {types.Date, types.NewInt(types.DateInfinity)}, {types.Time, types.NewInt(1)}, {types.Timestamp, types.NewInt(1)}, {types.Timestamptz, types.NewInt(1)},
		{types.IntervalT, iv}, {types.ArrayOf(types.Int4), list}, {types.UUID, types.NewString("0123456789abcdef")}, {types.JSONB, types.NewString("{}")},
	}
	st := &types.Style{}
	var cols []chunk.Column
	for _, c := range cases {
		col := chunk.New(c.typ, 2)
		col.Append(c.val)
		col.AppendNull()
		cols = append(cols, col)
	}
	ch := chunk.Make(cols...)
	for _, format := range []int16{textFormat, binaryFormat} {
		w := newRowWriter(len(cols), []int16{format}, st)
		w.load(ch)
		for i := range 2 {
			var m pgproto3.DataRow
			b := w.row([]byte("before"), i)[len("before"):]
			if err := m.Decode(b[5:]); err != nil {
				t.Fatal(err)
			}
			if got := int(uint32(b[1])<<24|uint32(b[2])<<16|uint32(b[3])<<8|uint32(b[4])) + 1; got != len(b) {
				t.Fatalf("length %d of %d", got, len(b))
			}
			for k, c := range cases {
				want := types.AppendText(nil, c.typ, c.val, st)
				if format == binaryFormat {
					want = types.AppendBinary(nil, c.typ, c.val)
				}
				if i == 1 {
					if m.Values[k] != nil {
						t.Errorf("%v: %q for NULL", c.typ, m.Values[k])
					}
				} else if string(m.Values[k]) != string(want) {
					t.Errorf("%v, format %d: %q, want %q", c.typ, format, m.Values[k], want)
				}
			}
		}
	}
}

func TestRowDescription(t *testing.T) {
	d := rowDescription([]engine.ResultColumn{{Name: "a", Type: types.WithNumeric(10, 2), Rel: 7, Att: 3}, {Name: "b", Type: types.Null}}, []int16{0, 1})
	want := "[{a 7 3 1700 -1 655366 0} {b 0 0 25 -1 -1 1}]"
	var got []string
	for _, f := range d.Fields {
		got = append(got, fmt.Sprintf("{%s %d %d %d %d %d %d}", f.Name, f.TableOID, f.TableAttributeNumber, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format))
	}
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestRowEnds(t *testing.T) {
	for _, c := range []struct {
		r    rowEnds
		in   string
		want int
	}{
		{rowEnds{}, "a\nb\n", 2}, {rowEnds{}, "a", 1},
		{rowEnds{quote: '"'}, "\"a\nb\"\nc\n", 6}, {rowEnds{quote: '"'}, "\"a\"\"\n\"\n\n", 7}, {rowEnds{quote: '\''}, "\"a\nb", 3},
		{rowEnds{whole: true}, "a\nb\n", 4},
	} {
		if got := c.r.first([]byte(c.in)); got != c.want {
			t.Errorf("%+v, %q: %d, want %d", c.r, c.in, got, c.want)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	const n = 1024
	id, v, x := chunk.New(types.Int8, n), chunk.New(types.Text, n), chunk.New(types.Float8, n)
	for i := range n {
		id.Append(types.NewInt(int64(i)))
		v.Append(types.NewString("some text"))
		x.Append(types.NewFloat(float64(i) / 4))
	}
	ch := chunk.Make(id, v, x)
	for _, format := range []int16{textFormat, binaryFormat} {
		b.Run(fmt.Sprint("format=", format), func(b *testing.B) {
			w := newRowWriter(3, []int16{format}, &types.Style{})
			buf := make([]byte, 0, 1<<20)
			for b.Loop() {
				w.load(ch)
				buf = buf[:0]
				for i := range n {
					buf = w.row(buf, i)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
