package chunk

import (
	"testing"

	"streamdb/sql/types"
)

func TestVnodesMatchRows(t *testing.T) {
	typs := []types.Type{types.Int8, types.Text, types.Numeric, types.Float8, types.Bool, types.IntervalT}
	b := NewBuilder(typs, 1000)
	for i := range 500 {
		r := types.Row{
			types.NewInt(int64(i)), types.NewString(string(rune('a' + i%26))), types.NewDecimal(types.NewDecimalParts(int64(i), i%4)),
			types.NewFloat(float64(i) / 3), types.NewBool(i%2 == 0), types.NewInterval(types.Interval{Days: int32(i)}),
		}
		if i%7 == 0 {
			r[i%len(r)] = types.Datum{}
		}
		b.AppendRow(Insert, r)
	}
	c := b.Take()
	for _, dist := range [][]int{{0}, {1}, {2, 3}, {0, 1, 2, 3, 4, 5}, {}} {
		got := Vnodes(c.Cols, dist, c.N, 64)
		seen := map[uint16]int{}
		for i, v := range got {
			if want := VnodeOf(c.Row(i), dist, 64); v != want || v >= 64 {
				t.Fatalf("row %d by %v: vnode %d, alone %d", i, dist, v, want)
			}
			seen[v]++
		}
		if len(dist) > 0 && dist[0] != 1 && len(seen) < 60 {
			t.Errorf("by %v only %d of 64 vnodes are used", dist, len(seen))
		}
		if len(dist) == 0 && len(seen) != 1 {
			t.Errorf("no distribution, %d vnodes", len(seen))
		}
	}
}

func BenchmarkVnodesInt(b *testing.B) {
	data := make([]int64, 1024)
	for i := range data {
		data[i] = int64(i)
	}
	cols := []Column{NewVec(types.Int8, data, nil)}
	for b.Loop() {
		Vnodes(cols, []int{0}, len(data), 64)
	}
}
