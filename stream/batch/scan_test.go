package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// stored puts rows into a store of the memory engine and makes a relation of them.
func (r *rig) stored(rel *catalog.Relation, rows []types.Row) {
	r.t.Helper()
	s, err := storage.Open(storage.Options{Disk: storage.NewMemDisk()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	r.env.Desc = func(rel *catalog.Relation) storage.Desc {
		d := storage.Desc{ID: uint32(rel.ID), Name: rel.Name, Tag: storage.TagRows, Schema: rel.Fields(), Key: rel.KeyCols(), Dist: rel.Dist, Vnodes: rel.Vnodes}
		for _, k := range rel.Key {
			d.Desc = append(d.Desc, k.Desc)
		}
		return d
	}
	tab := s.Table(r.env.Desc(rel), storage.Full(max(1, rel.Vnodes)))
	if len(rows) > 0 {
		if err := tab.WriteChunk(r.chunk(rel, rows)); err != nil {
			r.t.Fatal(err)
		}
	}
	e := s.Committed() + 1
	if err := tab.Commit(e); err != nil {
		r.t.Fatal(err)
	}
	if err := s.Commit(e); err != nil {
		r.t.Fatal(err)
	}
	if r.env.Snap, err = s.Latest(); err != nil {
		r.t.Fatal(err)
	}
	snap := r.env.Snap
	r.t.Cleanup(snap.Close)
}

func (r *rig) chunk(rel *catalog.Relation, rows []types.Row) *chunk.Chunk {
	g := newGrower(rel.Fields().Types(), len(rows))
	for _, row := range rows {
		for i, d := range row {
			g.cols[i].Append(d)
		}
	}
	g.n = len(rows)
	return g.chunk()
}

// A scan of random key ranges gives what a filter of all rows gives, with and without an overlay.
func TestScan(t *testing.T) {
	seeds(t, 120, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		rel := &catalog.Relation{ID: 20000, Name: "t", Kind: catalog.Table, Vnodes: []int{1, 8}[rnd.IntN(2)]}
		for i, ty := range []types.Type{types.Text, types.Int8, types.Int4, types.Numeric} {
			rel.Columns = append(rel.Columns, catalog.Column{Name: string(rune('a' + i)), Type: ty})
		}
		rel.Key = []catalog.KeyColumn{{Col: 2, Desc: rnd.IntN(2) == 0}, {Col: 0, Desc: rnd.IntN(2) == 0}, {Col: 1}}
		rel.Dist = [][]int{nil, {2}, {0, 2}, {1}, {2, 0, 1}}[rnd.IntN(5)]
		key := rel.KeyCols()
		unique := func(rows []types.Row) []types.Row {
			var out []types.Row
			for _, row := range rows {
				if !slices.ContainsFunc(out, func(o types.Row) bool { return o.Project(key).Equal(row.Project(key)) }) {
					out = append(out, row)
				}
			}
			return out
		}
		rows := unique(randomRows(rnd, rel.Fields().Types(), randomLen(rnd)))
		r.stored(rel, rows)

		now := rows
		if rnd.IntN(2) == 0 {
			over := NewOverlay()
			codec := storage.NewCodec(r.env.Desc(rel))
			put := func(row types.Row, del bool) {
				c := r.chunk(rel, []types.Row{row})
				k := string(codec.AppendKey(nil, c.Cols, 0))
				now = slices.DeleteFunc(slices.Clone(now), func(o types.Row) bool { return o.Project(key).Equal(row.Project(key)) })
				if del {
					over.Put(k, nil)
					return
				}
				over.Put(k, codec.AppendValue(nil, c.Cols, 0))
				now = append(now, row)
			}
			for _, row := range randomRows(rnd, rel.Fields().Types(), rnd.IntN(60)) {
				put(row, rnd.IntN(4) == 0)
			}
			for _, row := range rows {
				switch rnd.IntN(4) {
				case 0:
					put(row, true)
				case 1:
					put(types.Row{row[0], row[1], row[2], value(rnd, types.Numeric)}, false)
				}
			}
			r.env.Overlay = func(*catalog.Relation) *Overlay { return over }
		}

		for range 6 {
			n := &plan.Scan{Rel: rel, Cols: [][]int{{0, 1, 2, 3}, {3}, {}, {2, 2, 0}, {1}}[rnd.IntN(5)]}
			fields := rel.Fields()
			constant := func(i int, near types.Row) expr.Expr {
				t := fields[key[i]].Type
				if near != nil && rnd.IntN(3) > 0 {
					return &expr.Const{Val: near[key[i]], Typ: t}
				}
				return &expr.Const{Val: value(rnd, t), Typ: t}
			}
			for range rnd.IntN(4) {
				var near types.Row
				if len(now) > 0 {
					near = now[rnd.IntN(len(now))]
				}
				var kr plan.KeyRange
				for i := range rnd.IntN(4) {
					kr.Eq = append(kr.Eq, constant(i, near))
				}
				if i := len(kr.Eq); i < 3 {
					if rnd.IntN(2) == 0 {
						kr.Lo, kr.LoInc = constant(i, near), rnd.IntN(2) == 0
					}
					if rnd.IntN(2) == 0 {
						kr.Hi, kr.HiInc = constant(i, near), rnd.IntN(2) == 0
					}
				}
				n.Ranges = append(n.Ranges, kr)
			}
			var want []types.Row
			for _, row := range now {
				if n.Ranges == nil || slices.ContainsFunc(n.Ranges, func(k plan.KeyRange) bool { return inRange(k, row.Project(key)) }) {
					want = append(want, row.Project(n.Cols))
				}
			}
			r.env.ChunkSize = []int{0, 1, 7}[rnd.IntN(3)]
			r.same(n, normal(nil, r.must(n)), normal(nil, want), false)
		}
	})
}

// inRange says whether a key lies in a range, as the planner means it.
func inRange(k plan.KeyRange, key types.Row) bool {
	test := func(x expr.Expr, i int, ok func(c int) bool) bool {
		d := x.(*expr.Const).Val
		return !d.IsNull() && !key[i].IsNull() && ok(types.Compare(key[i], d))
	}
	for i, x := range k.Eq {
		if !test(x, i, func(c int) bool { return c == 0 }) {
			return false
		}
	}
	i := len(k.Eq)
	return (k.Lo == nil || test(k.Lo, i, func(c int) bool { return c > 0 || c == 0 && k.LoInc })) &&
		(k.Hi == nil || test(k.Hi, i, func(c int) bool { return c < 0 || c == 0 && k.HiInc }))
}

// A lateral join that finds rows by their whole key is a lookup, and gives what any lateral join would.
func TestLookup(t *testing.T) {
	seeds(t, 30, func(t *testing.T, rnd *rand.Rand) {
		r := newRig(t)
		rel := &catalog.Relation{ID: 20000, Name: "t", Kind: catalog.Table, Vnodes: 8, Dist: []int{1}}
		for i, ty := range []types.Type{types.Text, types.Int8, types.Int4} {
			rel.Columns = append(rel.Columns, catalog.Column{Name: string(rune('a' + i)), Type: ty})
		}
		rel.Key = []catalog.KeyColumn{{Col: 1}, {Col: 0}}
		var rows []types.Row
		for _, row := range randomRows(rnd, rel.Fields().Types(), 100) {
			if !slices.ContainsFunc(rows, func(o types.Row) bool { return types.Equal(o[0], row[0]) && types.Equal(o[1], row[1]) }) {
				rows = append(rows, row)
			}
		}
		r.stored(rel, rows)
		lt := []types.Type{types.Int4, types.Int8, types.Text}
		left := randomRows(rnd, lt, randomLen(rnd))
		right := &plan.Scan{Rel: rel, Cols: []int{2, 0, 1}, Ranges: []plan.KeyRange{{Eq: []expr.Expr{outerCol(1, 1, types.Int8), outerCol(1, 2, types.Text)}}}}
		n := &plan.Join{Kind: []plan.JoinKind{plan.Inner, plan.Left}[rnd.IntN(2)], Left: r.table(lt, left), Right: right, Lateral: true}
		residual := rnd.IntN(2) == 0
		if residual {
			n.On = op(t, "<=", &expr.ColRef{Index: 0, Typ: types.Int4}, &expr.ColRef{Index: 3, Typ: types.Int4})
		}
		want := joinNaive(n.Kind, left, rows, 3, 3, func(l, r types.Row) bool {
			if l[1].IsNull() || l[2].IsNull() || r[0].IsNull() || r[1].IsNull() || l[1].Int() != r[1].Int() || l[2].Str() != r[0].Str() {
				return false
			}
			return !residual || !l[0].IsNull() && !r[2].IsNull() && l[0].Int() <= r[2].Int()
		})
		for _, w := range want {
			w[3], w[4], w[5] = w[5], w[3], w[4]
		}
		r.sizes(rnd, func() { r.same(n, r.must(n), want, false) })
	})
}

func TestOverlay(t *testing.T) {
	o := NewOverlay()
	all := func(from, to string) []string {
		var out []string
		var end []byte
		if to != "" {
			end = []byte(to)
		}
		for k, v := range o.Scan([]byte(from), end) {
			if v == nil {
				k = "-" + k
			}
			out = append(out, k)
		}
		return out
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, k := range []string{"d", "b", "a"} {
		o.Put(k, []byte(k))
	}
	check(all("", ""), "a", "b", "d")
	o.Put("c", nil)
	o.Remove("a")
	check(all("", ""), "b", "-c", "d")
	o.Put("a", []byte{})
	o.Put("c", []byte("x"))
	check(all("a", "c"), "a", "b")
	check(all("aa", ""), "b", "c", "d")
	o.Remove("b")
	o.Put("b", []byte("again"))
	check(all("", ""), "a", "b", "c", "d")
	if v, ok := o.Get([]byte("b")); !ok || string(v) != "again" || o.Len() != 4 || o.Bytes() <= 0 {
		t.Errorf("Get: %q %v, %d keys, %d bytes", v, ok, o.Len(), o.Bytes())
	}
	for _, k := range []string{"a", "b", "c", "d"} {
		o.Remove(k)
	}
	check(all("", ""))
	if o.Len() != 0 || o.Bytes() != 0 {
		t.Errorf("empty: %d keys, %d bytes", o.Len(), o.Bytes())
	}
}
