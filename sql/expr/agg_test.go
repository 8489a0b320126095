package expr

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func aggFor(t testing.TB, name string, args ...types.Type) (*AggFunc, types.Type) {
	t.Helper()
	f, want, err := ResolveAgg(name, args, len(args) == 0)
	if sets := orderedSets(reg().aggs[name]); len(sets) > 0 {
		f, want, err = ResolveOrderedSet(name, args[:sets[0].Direct], args[sets[0].Direct:])
	}
	if err != nil {
		t.Fatalf("%s(%v): %v", name, args, err)
	}
	if f.RetType != nil {
		return f, f.RetType(want)
	}
	return f, f.Ret
}

func column(t types.Type, items []types.Datum) chunk.Column {
	c := chunk.New(t, len(items))
	for _, d := range items {
		c.Append(d)
	}
	return c
}

func output1(acc Accumulator, g int32, ret types.Type) string {
	out := chunk.New(ret, 1)
	if err := acc.Output(g, out); err != nil {
		e := sqlerr.From(err)
		return fmt.Sprintf("ERROR %s: %s", e.Code, e.Message)
	}
	return out.Datum(0).Text(ret)
}

// TestAggregates checks against PostgreSQL 15's answers: aggregate, the values of each argument, answer.
// The values of an ordered-set aggregate are in order.
func TestAggregates(t *testing.T) {
	data, err := os.ReadFile("testdata/aggregates.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		s := parseSignature(f[0] + " any")
		fn, ret := aggFor(t, s.name, s.args...)
		var cols []chunk.Column
		for j, a := range s.args {
			list, err := types.ParseText(types.ArrayOf(a), f[1+j], nil)
			if err != nil {
				t.Fatal(err)
			}
			cols = append(cols, column(a, list.List().Items))
		}
		acc := fn.New(s.args, ret)
		acc.Grow(1)
		got := ""
		if err := acc.Update(make([]int32, cols[0].Len()), nil, nil, cols); err != nil {
			got = answer("", nil, err)
		} else {
			got = output1(acc, 0, ret)
		}
		if want := f[len(f)-1]; got != want {
			t.Errorf("%s of %s: %s, want %s", f[0], f[1:len(f)-1], got, want)
		}
	}
}

// randomDatum makes values that are hard to add: large and small, special ones.
func randomDatum(r *rand.Rand, t types.Type) types.Datum {
	if r.IntN(8) == 0 {
		return types.Datum{}
	}
	switch t.Kind() {
	case types.KindBool:
		return types.NewBool(r.IntN(2) == 0)
	case types.KindInt:
		switch t.OID {
		case types.OIDInt2:
			return types.NewInt(int64(int16(r.Uint64())))
		case types.OIDInt8:
			return types.NewInt(int64(r.Uint64()) >> r.IntN(60))
		}
		return types.NewInt(int64(int32(r.Uint64())) >> r.IntN(30))
	case types.KindFloat:
		k := r.IntN(20)
		if t.OID == types.OIDFloat4 && k > 1 {
			k = 20
		}
		switch k {
		case 0:
			return types.NewFloat(math.NaN())
		case 1:
			return types.NewFloat(math.Inf(1 - 2*r.IntN(2)))
		case 2:
			return types.NewFloat(math.MaxFloat64)
		case 3:
			return types.NewFloat(5e-324)
		}
		v := math.Ldexp(r.Float64()-0.5, r.IntN(300)-150)
		if t.OID == types.OIDFloat4 {
			v = float64(float32(r.Float64() * 100))
		}
		return types.NewFloat(v)
	case types.KindDecimal:
		switch r.IntN(20) {
		case 0:
			return types.NewDecimal(types.DecimalNaN)
		case 1:
			return types.NewDecimal(types.DecimalInf)
		}
		return types.NewDecimal(types.NewDecimalParts(int64(r.Uint64())>>r.IntN(60), r.IntN(6)))
	case types.KindInterval:
		return types.NewInterval(types.Interval{Months: int32(r.IntN(20)), Days: int32(r.IntN(100) - 50), Micros: int64(r.IntN(1e9))})
	case types.KindList:
		return types.NewList(&types.List{Elem: types.Int4, Items: []types.Datum{types.NewInt(int64(r.IntN(5)))}, Lower: 1})
	}
	return types.NewString(fmt.Sprint(r.IntN(50)))
}

// TestRetraction inserts and deletes at random in several groups and compares
// every group with a fresh accumulator over the rows that are left; states go
// through bytes on the way and must be equal where the values are.
func TestRetraction(t *testing.T) {
	for _, fn := range Aggs() {
		if fn.OrderedSet {
			continue // its values must come in order
		}
		clone := *fn
		clone.Args = slices.Clone(fn.Args)
		for j, a := range clone.Args {
			switch {
			case a.OID == oidAnyArray || a.OID == oidAnyCompatibleArray:
				clone.Args[j] = types.ArrayOf(types.Int4)
			case a.OID == types.OIDAny || polymorphic(a):
				clone.Args[j] = types.Int4
			}
		}
		clone.Ret = fn.Type(clone.Args)
		fn = &clone
		name := fn.Name
		if len(fn.Args) > 0 {
			name += "(" + fn.Args[0].String() + ")"
		}
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(fn.OID)))
			if fn.Name == "array_agg" && fn.Args[0].Elem != nil {
				t.Skip("NULL arrays are an error")
			}
			const groups = 4
			acc := fn.New(fn.Args, fn.Ret)
			acc.Grow(groups)
			live := make([][]types.Row, groups)
			for step := range 60 {
				var gs []int32
				var ops []chunk.Op
				rows := make([][]types.Datum, len(fn.Args))
				n := 1 + r.IntN(20)
				drain := step%10 == 9
				for range n {
					g := int32(r.IntN(groups))
					if fn.Retractable && len(live[g]) > 0 && (drain || r.IntN(2) == 0) {
						k := r.IntN(len(live[g]))
						for j, d := range live[g][k] {
							rows[j] = append(rows[j], d)
						}
						live[g] = slices.Delete(live[g], k, k+1)
						ops = append(ops, chunk.Delete)
					} else {
						row := types.Row{}
						for j, a := range fn.Args {
							d := randomDatum(r, a)
							for d.IsNull() && strings.HasSuffix(fn.Name, "object_agg") {
								d = randomDatum(r, a) // NULL keys are an error
							}
							row = append(row, d)
							rows[j] = append(rows[j], d)
						}
						live[g] = append(live[g], row)
						ops = append(ops, chunk.Insert)
					}
					gs = append(gs, g)
				}
				cols := make([]chunk.Column, len(fn.Args))
				for j, a := range fn.Args {
					cols[j] = column(a, rows[j])
				}
				if !slices.Contains(ops, chunk.Delete) && r.IntN(2) == 0 {
					ops = nil
				}
				if err := acc.Update(gs, nil, ops, cols); err != nil {
					t.Fatal(err)
				}
				for g := range int32(groups) {
					fresh := fn.New(fn.Args, fn.Ret)
					fresh.Grow(1)
					for j, a := range fn.Args {
						var items []types.Datum
						for _, row := range live[g] {
							items = append(items, row[j])
						}
						cols[j] = column(a, items)
					}
					if err := fresh.Update(make([]int32, len(live[g])), nil, nil, cols); err != nil {
						t.Fatal(err)
					}
					got, want := output1(acc, g, fn.Ret), output1(fresh, 0, fn.Ret)
					if got != want {
						t.Fatalf("step %d group %d of %v: %s, want %s", step, g, live[g], got, want)
					}
					state := acc.AppendState(nil, g)
					if s := fresh.AppendState(nil, 0); fn.Retractable && !bytes.Equal(s, state) {
						t.Fatalf("step %d group %d: state %x, want %x", step, g, state, s)
					}
					acc.Reset(g)
					rest, err := acc.LoadState(g, append(state, 9, 9))
					if err != nil || len(rest) != 2 {
						t.Fatalf("load: %v, %d bytes left", err, len(rest))
					}
					if again := output1(acc, g, fn.Ret); again != want {
						t.Fatalf("after load: %s, want %s", again, want)
					}
				}
			}
		})
	}
}

func TestSelectedRows(t *testing.T) {
	fn, ret := aggFor(t, "sum", types.Int4)
	acc := fn.New(fn.Args, ret)
	acc.Grow(2)
	col := column(types.Int4, []types.Datum{types.NewInt(1), types.NewInt(10), {}, types.NewInt(100)})
	ops := []chunk.Op{chunk.Insert, chunk.Insert, chunk.Insert, chunk.Delete}
	if err := acc.Update([]int32{1, 0, 1}, []int{3, 0, 2}, ops, []chunk.Column{col}); err != nil {
		t.Fatal(err)
	}
	if a, b := output1(acc, 0, ret), output1(acc, 1, ret); a != "1" || b != "-100" {
		t.Errorf("groups %s, %s", a, b)
	}
}

func BenchmarkAggregate(b *testing.B) {
	c := benchChunk()
	groups := make([]int32, c.N)
	for i := range groups {
		groups[i] = int32(i * 7 % 64)
	}
	num := chunk.New(types.Numeric, c.N)
	for i := range c.N {
		num.Append(types.NewDecimal(types.NewDecimalParts(int64(i), 2)))
	}
	for _, a := range []struct {
		name string
		col  chunk.Column
	}{{"count", c.Cols[0]}, {"sum", c.Cols[0]}, {"avg", c.Cols[0]}, {"max", c.Cols[0]}, {"sum", c.Cols[2]}, {"sum", num}, {"stddev", c.Cols[0]}} {
		fn, ret := aggFor(b, a.name, a.col.Type())
		b.Run(a.name+"_"+typname(a.col.Type()), func(b *testing.B) {
			acc := fn.New(fn.Args, ret)
			acc.Grow(64)
			for b.Loop() {
				if err := acc.Update(groups, nil, nil, []chunk.Column{a.col}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.N), "ns/row")
		})
	}
}

func TestApproxCountDistinct(t *testing.T) {
	fn, ret := aggFor(t, "approx_count_distinct", types.Int8)
	for _, n := range []int{0, 1, 1000, 5000, 200000} {
		acc := fn.New(fn.Args, ret)
		acc.Grow(1)
		data := make([]int64, 2*n)
		for i := range data {
			data[i] = int64(i / 2)
		}
		if err := acc.Update(make([]int32, len(data)), nil, nil, []chunk.Column{chunk.NewVec(types.Int8, data, nil)}); err != nil {
			t.Fatal(err)
		}
		out := chunk.New(ret, 1)
		if err := acc.Output(0, out); err != nil {
			t.Fatal(err)
		}
		if got := out.Datum(0).Int(); math.Abs(float64(got)-float64(n)) > 0.03*float64(n) || n <= 1000 && got != int64(n) {
			t.Errorf("%d different values: %d", n, got)
		}
	}
}
