package expr

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func errCode(err error) string { return sqlerr.Code(err) }

var testSchema = types.Schema{
	{Name: "a", Type: types.Int4}, {Name: "b", Type: types.Int4}, {Name: "c", Type: types.Int8}, {Name: "f", Type: types.Float8},
	{Name: "s", Type: types.Text}, {Name: "n", Type: types.Numeric}, {Name: "p", Type: types.Bool}, {Name: "ts", Type: types.Timestamp},
}

func testChunk(r *rand.Rand, rows int) *chunk.Chunk {
	b := chunk.NewBuilder(testSchema.Types(), rows+1)
	for range rows {
		row := types.Row{
			types.NewInt(int64(r.IntN(7) - 3)), types.NewInt(int64(r.IntN(5) - 2)), types.NewInt(int64(r.IntN(100))),
			types.NewFloat(float64(r.IntN(9)-4) / 2), types.NewString([]string{"", "a", "ab", "abc", "b%", "xyz"}[r.IntN(6)]),
			types.NewDecimal(types.NewDecimalParts(int64(r.IntN(2000)-1000), r.IntN(3))), types.NewBool(r.IntN(2) == 0),
			types.NewInt(int64(r.IntN(1000)) * 3600_000_000),
		}
		for i := range row {
			if r.IntN(6) == 0 {
				row[i] = types.Datum{}
			}
		}
		b.AppendRow(chunk.Insert, row)
	}
	return b.Take()
}

var testExprs = []string{
	"a + b", "a * 2", "2 - a", "a / b", "a % b", "c + a", "f * 1.5::float8", "f / f", "n + 1.5", "n / n", "-a", "s || 'x'", "s || a",
	"a = b", "a < 1", "1 > a", "f >= 0.5::float8", "n <> 1", "s like 'a%'", "s = 'ab'", "p", "not p", "p and a > 0", "p or a / b > 0",
	"b <> 0 and a / b > 0", "b = 0 or a / b > 0", "a is null", "a is distinct from b", "p is not true",
	"case when b = 0 then 0 else a / b end", "case a when 1 then 'one' when 2 then s else null end", "case when a > 0 then a when p then b end",
	"case when true then a else b end", "coalesce(a, b, 0)", "coalesce(a, 1 / b)", "coalesce(null::int, a)", "a in (1, 2, b)", "a in (1, 2, 3, -1, null)",
	"s in ('a', 'b', 'c', 'abc', 'd')", "a not in (0, 1, 2, 5)", "array[a, b]", "a = any(array[b, 1])", "a > all(array[b, 0])", "greatest(a, b, 1)",
	"upper(s)", "substring(s, a, 2)", "repeat(s, b)", "date_trunc('day', ts)", "ts + interval '1 day'", "ts > timestamp '2000-01-10'",
	"extract(hour from ts)", "a::text", "n::int", "f::int", "(a / b)::text || s", "1 / b + 1 / a", "sqrt(a)", "concat(a, s, n)", "length(s) > 1 and p",
	"a between b and 2", "p and p or not p", "(a > 0) = p", "1 = 1", "1 / 0", "null::int + a",
}

// TestRowwise checks that a chunk's rows come out as each row does alone, with
// and without OnError: broadcasting, gathering and NULL handling change nothing.
func TestRowwise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := testChunk(r, 200)
	for _, text := range testExprs {
		e := mustRead(t, text, testSchema)
		want := make([]types.Datum, c.N)
		failures := 0
		var first error
		for i := range c.N {
			col, err := Eval(nil, e, c.Slice(i, i+1))
			if err != nil {
				failures++
				if first == nil {
					first = err
				}
				continue
			}
			want[i] = col.Datum(0)
		}
		told := 0
		got, err := Eval(&Ctx{OnError: func(error) { told++ }}, e, c)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if told != failures {
			t.Errorf("%s: OnError was told of %d failures, want %d", text, told, failures)
		}
		if !got.Type().Equal(e.Type()) || got.Len() != c.N {
			t.Errorf("%s: a column of type %v and %d rows, want %v, %d", text, got.Type(), got.Len(), e.Type(), c.N)
		}
		for i := range c.N {
			if g := got.Datum(i); !types.Equal(g, want[i]) {
				t.Errorf("%s: row %d %v: %s, want %s", text, i, c.Row(i), g.Text(e.Type()), want[i].Text(e.Type()))
				break
			}
		}
		plain, err := Eval(nil, e, c)
		if (err != nil) != (failures > 0) {
			t.Errorf("%s: error %v, but %d rows fail", text, err, failures)
		}
		if err == nil {
			for i := range c.N {
				if !types.Equal(plain.Datum(i), want[i]) {
					t.Errorf("%s: row %d differs without OnError", text, i)
					break
				}
			}
		}
		folded := Fold(nil, e)
		fc, err := Eval(&Ctx{OnError: func(error) {}}, folded, c)
		if err != nil {
			t.Errorf("%s folded: %v", text, err)
			continue
		}
		for i := range c.N {
			if !types.Equal(fc.Datum(i), want[i]) {
				t.Errorf("%s folded to %s: row %d differs", text, String(folded), i)
				break
			}
		}
		if e.Type().OID != types.OIDBool {
			continue
		}
		sel, err := Filter(&Ctx{OnError: func(error) {}}, e, c)
		if err != nil {
			t.Errorf("filter %s: %v", text, err)
			continue
		}
		var rows []int
		for i, d := range want {
			if !d.IsNull() && d.Bool() {
				rows = append(rows, i)
			}
		}
		if fmt.Sprint(sel) != fmt.Sprint(rows) {
			t.Errorf("filter %s:\n got %v\nwant %v", text, sel, rows)
		}
	}
}

func TestEmptyChunk(t *testing.T) {
	c := testChunk(rand.New(rand.NewPCG(1, 2)), 3).Slice(0, 0)
	for _, text := range testExprs {
		e := mustRead(t, text, testSchema)
		col, err := Eval(nil, e, c)
		if err != nil || col.Len() != 0 {
			t.Errorf("%s over no rows: %v, %v", text, col, err)
		}
	}
}

// likeRegex is the meaning of LIKE by another route.
func likeRegex(p string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	esc := false
	for _, c := range p {
		switch {
		case esc:
			b.WriteString(regexp.QuoteMeta(string(c)))
			esc = false
		case c == '\\':
			esc = true
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return regexp.MustCompile(b.String() + `\z`)
}

func FuzzLike(f *testing.F) {
	for _, s := range []string{"", "%", "a%b", "_é%", `a\%`, "%a_%b%", "__"} {
		f.Add("abé%x", s)
	}
	f.Fuzz(func(t *testing.T, s, p string) {
		s, p = strings.ToValidUTF8(s, "?"), strings.ToValidUTF8(p, "?")
		c := compileLike(p)
		if c.bad || len(p) > 50 {
			return
		}
		if got, want := c.match(s), likeRegex(p).MatchString(s); got != want {
			t.Errorf("%q like %q: %v, want %v", s, p, got, want)
		}
	})
}

func TestString(t *testing.T) {
	cols := types.Schema{{Name: "a", Type: types.Int4}, {Name: "s", Type: types.Text}}
	for _, c := range []struct{ text, explain, sql string }{
		{"a > 5", "(a > 5:Int32)", "(a > 5)"},
		{"a + 1 = 2 and s like 'x%'", "(((a + 1:Int32) = 2:Int32) AND (s ~~ 'x%':Varchar))", "(((a + 1) = 2) AND (s ~~ 'x%'::text))"},
		{"split_part(s, ',', a)", "SplitPart(s, ',':Varchar, a)", "split_part(s, ','::text, a)"},
		{"a::bigint", "a::Int64", "(a)::bigint"},
		{"not a is null", "Not(IsNull(a))", "(NOT (a IS NULL))"},
		{"case when a = 1 then 'it''s' end", "Case((a = 1:Int32), 'it''s':Varchar)", "CASE WHEN (a = 1) THEN 'it''s'::text END"},
		{"coalesce(s, null)", "Coalesce(s, null:Varchar)", "COALESCE(s, NULL::text)"},
		{"a in (1, 2)", "In(a, 1:Int32, 2:Int32)", "(a IN (1, 2))"},
		{"date '2001-01-01' < timestamp '2001-01-02'", "('2001-01-01':Date < '2001-01-02 00:00:00':Timestamp)",
			"('2001-01-01'::date < '2001-01-02 00:00:00'::timestamp without time zone)"},
		{"a = any(array[1])", "(a = Some(ARRAY(1:Int32)))", "(a = ANY (ARRAY[1]))"},
		{"-a", "(-a)", "(- a)"},
		{"true is not true", "IsNotTrue(true:Boolean)", "(true IS NOT TRUE)"},
	} {
		e := mustRead(t, c.text, cols)
		if got := String(e); got != c.explain {
			t.Errorf("%s: explain %s, want %s", c.text, got, c.explain)
		}
		if got := SQL(e); got != c.sql {
			t.Errorf("%s: sql %s, want %s", c.text, got, c.sql)
		}
		if !Equal(e, mustRead(t, c.text, cols)) {
			t.Errorf("%s is not equal to itself read again", c.text)
		}
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1 + 2", "3:Int32"}, {"1 / 0", "(1:Int32 / 0:Int32)"}, {"a > 1 + 1", "(a > 2:Int32)"}, {"a > 1 and true", "(a > 1:Int32)"},
		{"a > 1 and false", "false:Boolean"}, {"a > 1 or true", "true:Boolean"}, {"a > 1 or false", "(a > 1:Int32)"},
		{"case when false then a else 2 end", "2:Int32"}, {"case when true then a end", "a"}, {"coalesce(null, a, 1)", "Coalesce(a, 1:Int32)"},
		{"coalesce(1, a)", "1:Int32"}, {"a + null", "null:Int32"}, {"now() > '2001-01-01'", "(Now() > '2001-01-01 00:00:00+00':Timestamptz)"},
		{"upper('x') || s", "('X':Varchar || s)"}, {"random() > 1", "(Random() > 1:Float64)"}, {"a in (1, 1 + 1)", "In(a, 1:Int32, 2:Int32)"},
		{"date '2001-01-01' + 1", "'2001-01-02':Date"},
	} {
		e := mustRead(t, c.text, types.Schema{{Name: "a", Type: types.Int4}, {Name: "s", Type: types.Text}})
		if got := String(Fold(nil, e)); got != c.want {
			t.Errorf("%s folds to %s, want %s", c.text, got, c.want)
		}
	}
}

func TestRewrite(t *testing.T) {
	e := mustRead(t, "a + c > 3 and s like 'x' or b is null", testSchema)
	if got := fmt.Sprint(Columns(e)); got != "[0 1 2 4]" {
		t.Errorf("columns %s", got)
	}
	m := Remap(e, func(i int) int { return i + 10 })
	if got := fmt.Sprint(Columns(m)); got != "[10 11 12 14]" {
		t.Errorf("remapped columns %s", got)
	}
	if Remap(e, func(i int) int { return i }) != e {
		t.Error("a remap that changes nothing makes a new expression")
	}
	for text, want := range map[string]Volatility{"a + 1": Immutable, "now()": Stable, "random()": Volatile, "ts::timestamptz": Stable, "s::int": Immutable} {
		if got := VolatilityOf(mustRead(t, text, testSchema)); got != want {
			t.Errorf("%s has volatility %d, want %d", text, got, want)
		}
	}
}

func TestSubquery(t *testing.T) {
	ints := func(vs ...any) *chunk.Chunk {
		c := chunk.New(types.Int4, 0)
		for _, v := range vs {
			if v == nil {
				c.AppendNull()
			} else {
				c.Append(types.NewInt(int64(v.(int))))
			}
		}
		return chunk.Make(c)
	}
	in := ints(1, 2, nil)
	eq, _, err := Resolve("=", true, []types.Type{types.Int4, types.Int4})
	if err != nil {
		t.Fatal(err)
	}
	lt, _, _ := Resolve("<", true, []types.Type{types.Int4, types.Int4})
	a := &ColRef{Typ: types.Int4}
	for _, c := range []struct {
		e    *Subquery
		res  *chunk.Chunk
		want string
	}{
		{&Subquery{Kind: SubqueryScalar, Typ: types.Int4}, ints(7), "7 7 7"},
		{&Subquery{Kind: SubqueryScalar, Typ: types.Int4}, ints(), "NULL NULL NULL"},
		{&Subquery{Kind: SubqueryScalar, Typ: types.Int4}, ints(1, 2), "21000"},
		{&Subquery{Kind: SubqueryExists, Typ: types.Bool}, ints(1, 2), "t t t"},
		{&Subquery{Kind: SubqueryAny, Typ: types.Bool, Left: []Expr{a}, Ops: []*Func{eq}}, ints(1, 3), "t f NULL"},
		{&Subquery{Kind: SubqueryAny, Typ: types.Bool, Left: []Expr{a}, Ops: []*Func{eq}}, ints(1, nil), "t NULL NULL"},
		{&Subquery{Kind: SubqueryAny, Typ: types.Bool, Left: []Expr{a}, Ops: []*Func{eq}}, ints(), "f f f"},
		{&Subquery{Kind: SubqueryAll, Typ: types.Bool, Left: []Expr{a}, Ops: []*Func{lt}}, ints(2, 3), "t f NULL"},
		{&Subquery{Kind: SubqueryAll, Typ: types.Bool, Left: []Expr{a}, Ops: []*Func{lt}, Correlated: true}, ints(3, nil), "NULL NULL NULL"},
		{&Subquery{Kind: SubqueryArray, Typ: types.ArrayOf(types.Int4)}, ints(1, nil), "{1,NULL} {1,NULL} {1,NULL}"},
	} {
		ctx := &Ctx{Subquery: func(*Subquery, []types.Row) (*chunk.Chunk, error) { return c.res, nil }}
		col, err := Eval(ctx, c.e, in)
		got := errCode(err)
		if err == nil {
			var parts []string
			for i := range col.Len() {
				parts = append(parts, col.Datum(i).Text(col.Type()))
			}
			got = strings.Join(parts, " ")
		}
		if got != c.want {
			t.Errorf("subquery kind %d: %s, want %s", c.e.Kind, got, c.want)
		}
	}
}

func benchChunk() *chunk.Chunk {
	r := rand.New(rand.NewPCG(1, 2))
	n := 1024
	a, b, f := make([]int64, n), make([]int64, n), make([]float64, n)
	for i := range n {
		a[i], b[i], f[i] = int64(r.IntN(1000)), int64(r.IntN(1000)+1), r.Float64()
	}
	return chunk.Make(chunk.NewVec(types.Int4, a, nil), chunk.NewVec(types.Int4, b, nil), chunk.NewVec(types.Float8, f, nil))
}

func BenchmarkEval(b *testing.B) {
	c := benchChunk()
	cols := types.Schema{{Name: "a", Type: types.Int4}, {Name: "b", Type: types.Int4}, {Name: "f", Type: types.Float8}}
	for _, text := range []string{"a + b", "a + 1", "a < b", "a > 500", "f * f", "a > 500 and b < 100", "a / b", "case when a > 500 then a else b end"} {
		e := mustRead(b, text, cols)
		b.Run(strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
			for b.Loop() {
				if _, err := Eval(nil, e, c); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.N), "ns/row")
		})
	}
	e := mustRead(b, "a > 500 and b < 100", cols)
	b.Run("filter", func(b *testing.B) {
		for b.Loop() {
			if _, err := Filter(nil, e, c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.N), "ns/row")
	})
}
