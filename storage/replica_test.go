package storage

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A replica read by cursors while its upstream changes shows, at each key, the
// row as it is when the key is reached.
func TestReplica(t *testing.T) {
	for _, c := range []struct {
		engine string
		budget int64
	}{{"memory", 0}, {"badger", 0}, {"badger", 1}} {
		t.Run(fmt.Sprint(c.engine, c.budget), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 3))
			o := Options{Reserve: 1}
			if c.engine == "badger" {
				o.Dir = filepath.Join(t.TempDir(), "d")
			}
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d := Desc{ID: 9, Name: "up", Tag: TagRows, Vnodes: 3, Key: []int{1}, Dist: []int{1},
				Schema: types.Schema{{Type: types.Text}, {Type: types.Int4}, {Type: types.Int8}}}
			up := s.Table(d, Full(3))
			rep := s.Replica(d, Full(3), []int{2, 1})
			rows := map[int64]int64{} // key → value of column 2
			e := s.Committed()
			var pending []Epoch
			cur := make([]*Cursor, 3)
			pos := make([][]byte, 3)
			change := func() {
				b := chunk.NewBuilder(d.Schema.Types(), 1000)
				for range 1 + r.IntN(30) {
					k := r.Int64N(200)
					row := func(v int64) types.Row {
						return types.Row{types.NewString("wide"), types.NewInt(k), types.NewInt(v)}
					}
					if v, ok := rows[k]; ok {
						b.AppendRow(chunk.Delete, row(v))
						delete(rows, k)
						if r.IntN(2) == 0 {
							continue
						}
					}
					rows[k] = r.Int64N(1000)
					b.AppendRow(chunk.Insert, row(rows[k]))
				}
				ch := b.Take()
				if err := up.WriteChunk(ch); err != nil {
					t.Fatal(err)
				}
				if err := rep.WriteChunk(ch.Project([]int{2, 1})); err != nil {
					t.Fatal(err)
				}
			}
			read := func(v int) {
				if cur[v] == nil {
					cur[v] = rep.OpenScan(uint16(v), nil)
					pos[v] = nil
				}
				if r.IntN(4) == 0 {
					cur[v].Refresh()
				}
				if r.IntN(6) == 0 {
					cur[v].Close()
					cur[v] = rep.OpenScan(uint16(v), pos[v])
				}
				kv, ok, err := cur[v].Next()
				if err != nil {
					t.Fatal(err)
				}
				codec := rep.Codec()
				// The next key by the model.
				var want []byte
				var wantVal int64
				for k, val := range rows {
					cols := []chunk.Column{nil, chunk.Repeat(types.Int4, types.NewInt(k), 1), chunk.Repeat(types.Int8, types.NewInt(val), 1)}
					key := codec.AppendKey(nil, cols, 0)
					if int(VnodeOf(key)) == v && (pos[v] == nil || string(key) > string(pos[v])) && (want == nil || string(key) < string(want)) {
						want, wantVal = key, val
					}
				}
				if !ok {
					if want != nil {
						t.Fatalf("vnode %d ended, %x is left", v, want)
					}
					cur[v].Close()
					cur[v] = nil
					return
				}
				if string(kv.Key) != string(want) {
					t.Fatalf("vnode %d: %x, want %x", v, kv.Key, want)
				}
				into := []chunk.Column{chunk.New(types.Int8, 1), chunk.New(types.Int4, 1)}
				if err := rep.Decode(kv.Key, kv.Val, into); err != nil {
					t.Fatal(err)
				}
				if got := into[0].Datum(0).Int(); got != wantVal {
					t.Fatalf("%x has %d, want %d", kv.Key, got, wantVal)
				}
				pos[v] = append([]byte(nil), kv.Key...)
			}
			spilled := false
			for range 3000 {
				switch n := r.IntN(10); {
				case n < 2:
					change()
				case n < 3:
					e++
					if err := up.Commit(e); err != nil {
						t.Fatal(err)
					}
					if c.budget > 0 { // nothing fits
						for _, x := range rep.sealed {
							spilled = spilled || x.f != nil
						}
					}
					if err := rep.Seal(e); err != nil {
						t.Fatal(err)
					}
					if c.budget > 0 {
						for i := range rep.sealed {
							if l := rep.sealed[i].l; l != nil {
								f, err := newSpill(o.Dir, l)
								if err != nil {
									t.Fatal(err)
								}
								rep.sealed[i].l, rep.sealed[i].f = nil, f
								rep.gen++
							}
						}
					}
					if pending = append(pending, e); len(pending) > 3 {
						if err := s.Commit(pending[0]); err != nil {
							t.Fatal(err)
						}
						pending = pending[1:]
					}
				default:
					read(r.IntN(3))
				}
			}
			if c.budget > 0 && !spilled {
				t.Error("nothing spilled")
			}
			for _, c := range cur {
				if c != nil {
					c.Close()
				}
			}
			if n := s.pins.count(); n != 1 {
				t.Errorf("%d views pinned at the end", n)
			}
			rep.Close()
		})
	}
}
