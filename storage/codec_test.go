package storage

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// randDatum makes values that collide and sit at edges often.
func randDatum(r *rand.Rand, t types.Type) types.Datum {
	if r.IntN(6) == 0 {
		return types.Datum{}
	}
	switch t.Kind() {
	case types.KindBool:
		return types.NewBool(r.IntN(2) == 0)
	case types.KindInt:
		edge := []int64{0, 1, -1, 127, 128, 255, 256, -128, -255, -256, -257, 65535, 65536, math.MaxInt64, math.MinInt64, 1 << 40}
		if r.IntN(2) == 0 {
			return types.NewInt(edge[r.IntN(len(edge))])
		}
		return types.NewInt(int64(r.Uint64()) >> r.IntN(64))
	case types.KindFloat:
		edge := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.SmallestNonzeroFloat64}
		f := edge[r.IntN(len(edge))]
		if r.IntN(2) == 0 {
			f = r.NormFloat64() * 1000
		}
		if t.OID == types.OIDFloat4 {
			f = float64(float32(f))
		}
		return types.NewFloat(f)
	case types.KindString:
		edge := []string{"", "\x00", "\x00\x00", "\x00\xff", "a", "a\x00", "a\x00b", "\xff", "\xff\xff", "ab", "\x01", "a  ", "long" + strings.Repeat("g", 2000)}
		if r.IntN(3) > 0 {
			return types.NewString(edge[r.IntN(len(edge))])
		}
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = byte(r.IntN(4)) * 85
		}
		return types.NewString(string(b))
	case types.KindDecimal:
		edge := []string{"0", "0.00", "1.5", "1.50", "-1.5", "NaN", "Infinity", "-Infinity", "123456789012345678901234567890.5", "-99999999999999999999999"}
		d, err := types.ParseDecimal(edge[r.IntN(len(edge))])
		if err != nil {
			panic(err)
		}
		return types.NewDecimal(d)
	case types.KindInterval:
		return types.NewInterval(types.Interval{Months: int32(r.IntN(5) - 2), Days: int32(r.IntN(100) - 50), Micros: int64(r.Uint64()) >> r.IntN(64)})
	case types.KindList:
		return types.NewList(randList(r, *t.Elem, 1+r.IntN(3)/2))
	}
	panic("kind")
}

// randList makes an array of one or two dimensions, mostly counted from 1.
func randList(r *rand.Rand, elem types.Type, dims int) *types.List {
	l := &types.List{Elem: elem, Lower: []int{1, 1, 1, 0, -1, 7}[r.IntN(6)]}
	inner, lower := r.IntN(3)+1, []int{1, 1, 0}[r.IntN(3)]
	for range r.IntN(4) {
		if dims == 1 {
			l.Items = append(l.Items, randDatum(r, elem))
			continue
		}
		row := &types.List{Elem: elem, Lower: lower}
		for range inner {
			row.Items = append(row.Items, randDatum(r, elem))
		}
		l.Items = append(l.Items, types.NewList(row))
	}
	if len(l.Items) == 0 {
		l.Lower = 1 // an empty array has no bounds
	}
	return l
}

// cmpKey is the order that key bytes must have.
func cmpKey(a, b types.Datum, t types.Type) int {
	switch {
	case a.IsNull() && b.IsNull():
		return 0
	case a.IsNull():
		return 1
	case b.IsNull():
		return -1
	}
	switch t.Kind() {
	case types.KindBool, types.KindInt:
		x, y := a.Int(), b.Int()
		if t.Kind() == types.KindBool {
			x, y = 0, 0
			if a.Bool() {
				x = 1
			}
			if b.Bool() {
				y = 1
			}
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case types.KindFloat:
		x, y := a.Float(), b.Float()
		switch {
		case x == y || x != x && y != y:
			return 0
		case x != x:
			return 1
		case y != y || x < y:
			return -1
		}
		return 1
	case types.KindString:
		x, y := a.Str(), b.Str()
		if t.OID == types.OIDBpchar {
			x, y = strings.TrimRight(x, " "), strings.TrimRight(y, " ")
		}
		return strings.Compare(x, y)
	case types.KindDecimal:
		return a.Decimal().Cmp(b.Decimal())
	case types.KindInterval:
		return span(a.Interval()).Cmp(span(b.Interval()))
	case types.KindList:
		return types.Compare(a, b)
	}
	panic("kind")
}

// span is an interval's length in microseconds.
func span(v types.Interval) *big.Int {
	days := big.NewInt(int64(v.Months)*30 + int64(v.Days))
	return days.Mul(days, big.NewInt(86_400_000_000)).Add(days, big.NewInt(v.Micros))
}

func sign(n int) int { return min(1, max(-1, n)) }

func keyTypes() []types.Type {
	return []types.Type{types.Bool, types.Int4, types.Timestamp, types.Float4, types.Float8, types.Text, types.Bytea, types.Bpchar,
		types.Numeric, types.IntervalT, {OID: 1007, Elem: &types.Int4}, {OID: 1009, Elem: &types.Text}, {OID: 1231, Elem: &types.Numeric}}
}

// sameDatum is equality of what is stored, finer than SQL's.
func sameDatum(a, b types.Datum, t types.Type) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() == b.IsNull()
	}
	switch t.Kind() {
	case types.KindFloat:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case types.KindString:
		return a.Str() == b.Str()
	case types.KindDecimal:
		return a.Decimal().String() == b.Decimal().String()
	case types.KindInterval:
		return a.Interval() == b.Interval()
	case types.KindList:
		x, y := a.List(), b.List()
		if len(x.Items) != len(y.Items) || x.Lower != y.Lower {
			return false
		}
		for i := range x.Items {
			item := *t.Elem
			if x.Items[i].Kind() == types.KindList {
				item = t // a further dimension
			}
			if !sameDatum(x.Items[i], y.Items[i], item) {
				return false
			}
		}
		return true
	}
	return cmpKey(a, b, t) == 0
}

func TestCodecOrderAndRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	all := keyTypes()
	for range 400 {
		nc := 1 + r.IntN(5)
		d := Desc{ID: 7, Tag: TagRows, Vnodes: 16}
		for i := range nc {
			d.Schema = append(d.Schema, types.Field{Name: fmt.Sprint("c", i), Type: all[r.IntN(len(all))]})
		}
		for range 1 + r.IntN(nc) {
			d.Key = append(d.Key, r.IntN(nc))
			d.Desc = append(d.Desc, r.IntN(2) == 0)
		}
		if r.IntN(2) == 0 && d.Schema[d.Key[0]].Type.OID != types.OIDBpchar { // hashed with its blanks
			d.Dist = d.Key[:1]
		}
		c := NewCodec(d)
		const n = 12
		cols := make([]chunk.Column, nc)
		rows := make([]types.Row, n)
		for j, f := range d.Schema {
			cols[j] = chunk.New(f.Type, n)
		}
		for i := range rows {
			for j, f := range d.Schema {
				v := randDatum(r, f.Type)
				if i > 0 && r.IntN(3) == 0 {
					v = rows[i-1][j]
				}
				rows[i] = append(rows[i], v)
				cols[j].Append(v)
			}
		}
		keys := make([][]byte, n)
		pick := r.Perm(nc)[:1+r.IntN(nc)]
		pick = append(pick, pick[0])
		into, some := make([]chunk.Column, nc), make([]chunk.Column, len(pick))
		for j, f := range d.Schema {
			into[j] = chunk.New(f.Type, n)
		}
		for j, col := range pick {
			some[j] = chunk.New(d.Schema[col].Type, n)
		}
		dec := c.NewDecoder(pick)
		for i := range n {
			keys[i] = c.AppendKey(nil, cols, i)
			val := c.AppendValue(nil, cols, i)
			if err := c.Decode(keys[i], val, into); err != nil {
				t.Fatal(err)
			}
			if err := dec.Decode(keys[i], val, some); err != nil {
				t.Fatal(err)
			}
			for j, f := range d.Schema {
				if !sameDatum(into[j].Datum(i), rows[i][j], f.Type) {
					t.Fatalf("column %d (%v) of %+v: wrote %+v, read %+v", j, f.Type, d, rows[i][j], into[j].Datum(i))
				}
			}
			for j, col := range pick {
				if !sameDatum(some[j].Datum(i), rows[i][col], d.Schema[col].Type) {
					t.Fatalf("chosen column %d: wrote %+v, read %+v", col, rows[i][col], some[j].Datum(i))
				}
			}
		}
		for i := range n {
			for j := range n {
				want := 0
				for k, col := range d.Key {
					want = sign(cmpKey(rows[i][col], rows[j][col], d.Schema[col].Type))
					if d.Desc[k] {
						want = -want
					}
					if want != 0 {
						break
					}
				}
				if got := bytes.Compare(keys[i][2:], keys[j][2:]); got != want {
					t.Fatalf("%+v: key order of\n%+v %x and\n%+v %x is %d, want %d", d, rows[i], keys[i], rows[j], keys[j], got, want)
				}
				if want == 0 && !bytes.Equal(keys[i], keys[j]) {
					t.Fatalf("equal keys in vnodes %d and %d", VnodeOf(keys[i]), VnodeOf(keys[j]))
				}
				if i != j && want != 0 && bytes.HasPrefix(keys[j][2:], keys[i][2:]) {
					t.Fatalf("key %x is a prefix of %x", keys[i], keys[j])
				}
			}
			k := 1 + r.IntN(len(d.Key))
			var kc []chunk.Column
			for _, col := range d.Key[:k] {
				kc = append(kc, cols[col])
			}
			if p := c.AppendPrefix(nil, VnodeOf(keys[i]), kc, i); !bytes.HasPrefix(keys[i], p) {
				t.Fatalf("%x is no prefix of %x", p, keys[i])
			}
		}
	}
}

// A row written before its table got another column reads as NULL there.
func TestCodecAddedColumn(t *testing.T) {
	old := NewCodec(Desc{Schema: types.Schema{{Type: types.Int4}, {Type: types.Text}}, Key: []int{0}})
	now := NewCodec(Desc{Schema: types.Schema{{Type: types.Int4}, {Type: types.Text}, {Type: types.Float8}}, Key: []int{0}})
	cols := []chunk.Column{chunk.Repeat(types.Int4, types.NewInt(5), 1), chunk.Repeat(types.Text, types.NewString("x"), 1)}
	into := []chunk.Column{chunk.New(types.Int4, 1), chunk.New(types.Text, 1), chunk.New(types.Float8, 1)}
	if err := now.Decode(old.AppendKey(nil, cols, 0), old.AppendValue(nil, cols, 0), into); err != nil {
		t.Fatal(err)
	}
	if !into[2].Null(0) || into[1].Datum(0).Str() != "x" || into[0].Datum(0).Int() != 5 {
		t.Fatal("read back wrongly")
	}
}

func TestNextPrefix(t *testing.T) {
	for _, c := range []struct{ in, out string }{{"a", "b"}, {"a\xff", "b"}, {"\xff", ""}, {"a\xffb", "a\xffc"}, {"", ""}} {
		if got := NextPrefix([]byte(c.in)); string(got) != c.out {
			t.Errorf("NextPrefix(%q) = %q, want %q", c.in, got, c.out)
		}
	}
}

// Damaged bytes give an error or other values, never a panic.
func FuzzDecode(f *testing.F) {
	var schema types.Schema
	for _, t := range keyTypes() {
		schema = append(schema, types.Field{Type: t})
	}
	d := Desc{Schema: schema, Key: []int{1, 5, 0, 3, 9}, Desc: []bool{false, true, false, true, false}}
	c := NewCodec(d)
	r := rand.New(rand.NewPCG(1, 2))
	cols := make([]chunk.Column, len(schema))
	for j := range schema {
		cols[j] = chunk.New(schema[j].Type, 8)
		for range 8 {
			cols[j].Append(randDatum(r, schema[j].Type))
		}
	}
	for i := range 8 {
		f.Add(c.AppendKey(nil, cols, i), c.AppendValue(nil, cols, i))
	}
	f.Fuzz(func(t *testing.T, key, val []byte) {
		into := make([]chunk.Column, len(schema))
		for j := range schema {
			into[j] = chunk.New(schema[j].Type, 1)
		}
		_ = c.Decode(key, val, into)
	})
}

func benchCodec() (*Codec, []chunk.Column, int) {
	d := Desc{ID: 1, Tag: TagRows, Vnodes: 64, Key: []int{0}, Dist: []int{0},
		Schema: types.Schema{{Type: types.Int8}, {Type: types.Int8}, {Type: types.Text}, {Type: types.Timestamp}, {Type: types.Int8}}}
	const n = 1024
	cols := make([]chunk.Column, 5)
	for j, f := range d.Schema {
		cols[j] = chunk.New(f.Type, n)
	}
	for i := range n {
		cols[0].Append(types.NewInt(int64(i * 7)))
		cols[1].Append(types.NewInt(int64(i % 10)))
		cols[2].Append(types.NewString(fmt.Sprint("customer name ", i)))
		cols[3].Append(types.NewInt(int64(8e14) + int64(i)))
		cols[4].Append(types.NewInt(int64(i) << 20))
	}
	return NewCodec(d), cols, n
}

func BenchmarkEncode(b *testing.B) {
	c, cols, n := benchCodec()
	var buf []byte
	for i := 0; i < b.N; i += n {
		vn := c.Vnodes(cols, n)
		for i := range n {
			buf = c.AppendKeyVnode(buf[:0], vn[i], cols, i)
			buf = c.AppendValue(buf, cols, i)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	c, cols, n := benchCodec()
	keys, vals := make([][]byte, n), make([][]byte, n)
	for i := range n {
		keys[i], vals[i] = c.AppendKey(nil, cols, i), c.AppendValue(nil, cols, i)
	}
	dec := c.NewDecoder([]int{0, 1, 2, 3, 4})
	b.ResetTimer()
	for i := 0; i < b.N; i += n {
		into := make([]chunk.Column, 5)
		for j, f := range c.desc.Schema {
			into[j] = chunk.New(f.Type, n)
		}
		for i := range n {
			if err := dec.Decode(keys[i], vals[i], into); err != nil {
				b.Fatal(err)
			}
		}
	}
}
