package storage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
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
		shared bool // rows are as of the last seal
	}{{"memory", 0, false}, {"badger", 0, false}, {"badger", 1, false}, {"memory", 0, true}, {"badger", 0, true}} {
		t.Run(fmt.Sprint(c.engine, c.budget, c.shared), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 3))
			o := Options{Reserve: 1, packRows: 3, packBytes: 300}
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
			// The upstream's actors own other vnodes than the replica is for as one.
			ups := []*StateTable{up}
			rep := s.Replica(d, Full(3), []int{2, 1})
			rows := map[int64]int64{} // key → value of column 2
			seen := rows              // what the replica shows
			if c.shared {
				rep.Close()
				a, b := NewVnodeSet(3), NewVnodeSet(3)
				a.Add(0)
				a.Add(2)
				b.Add(1)
				ups = []*StateTable{s.Table(d, a), s.Table(d, b)}
				rep = s.SharedRows(d, Full(3), []int{2, 1})
				seen = map[int64]int64{}
			}
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
				for _, up := range ups {
					part := ch
					if c.shared {
						var sel []int
						for i, v := range up.Codec().Vnodes(ch.Cols, ch.Len()) {
							if up.Vnodes().Has(v) {
								sel = append(sel, i)
							}
						}
						part = &chunk.Chunk{N: len(sel), Ops: make([]chunk.Op, len(sel))}
						for j, i := range sel {
							part.Ops[j] = ch.Op(i)
						}
						for _, col := range ch.Cols {
							part.Cols = append(part.Cols, col.Gather(sel))
						}
					}
					if err := up.WriteChunk(part); err != nil {
						t.Fatal(err)
					}
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
				for k, val := range seen {
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
					for _, up := range ups {
						if err := up.Commit(e); err != nil {
							t.Fatal(err)
						}
					}
					if c.shared {
						if r.IntN(8) == 0 { // opened in the middle, with layers under way
							for i := range cur {
								if cur[i] != nil {
									cur[i].Close()
									cur[i] = nil
								}
							}
							rep.Close()
							rep = s.SharedRows(d, Full(3), []int{2, 1})
						}
						seen = maps.Clone(rows)
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
			if len(s.follows) != 0 {
				t.Error("a closed replica is still told of layers")
			}
		})
	}
}

// A burst far above the budget, all of it above the cursor's position and within few
// epochs, takes no more memory than the budget and what one chunk needs.
func TestReplicaBurst(t *testing.T) {
	n := 2_000_000
	if testing.Short() {
		n = 400_000
	}
	dir := t.TempDir()
	s := mustOpen(t, Options{Dir: dir, Reserve: 1})
	defer s.Close()
	rep := s.Replica(flights, Full(64), []int{0, 1, 4})
	cur := rep.OpenScan(0, nil)
	e, most := Epoch(0), int64(0)
	const size = 4000
	for at := 0; at < n; at += size {
		if err := rep.WriteChunk(flightChunk(at, size, false).Project([]int{0, 1, 4})); err != nil {
			t.Fatal(err)
		}
		most = max(most, int64(rep.DirtyBytes()))
		if s.DirtyBytes() != int64(rep.DirtyBytes()) {
			t.Fatalf("%d dirty bytes, the replica has %d", s.DirtyBytes(), rep.DirtyBytes())
		}
		if at%(n/4) == 0 {
			e++
			if err := rep.Seal(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	e++
	if err := rep.Seal(e); err != nil {
		t.Fatal(err)
	}
	if budget := s.o.replicaBudget(); most > budget+2<<20 {
		t.Errorf("%d bytes held, the budget is %d", most, budget)
	}
	rows, spilled := 0, 0
	for _, x := range rep.sealed {
		if x.f != nil {
			spilled++
		}
	}
	if spilled == 0 {
		t.Error("nothing spilled")
	}
	last := int64(-1)
	into := []chunk.Column{chunk.New(types.Int8, 0), chunk.New(types.Timestamp, 0), chunk.New(types.Int4, 0)}
	for v := range 64 {
		cur.Seek(uint16(v), nil)
		last = -1
		for {
			kv, ok, err := cur.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if rows%1000 == 0 {
				if err := rep.Decode(kv.Key, kv.Val, into); err != nil {
					t.Fatal(err)
				}
				ids := chunk.Of[int64](into[0]).Data
				if id := ids[len(ids)-1]; id <= last {
					t.Fatalf("row %d after %d", id, last)
				} else {
					last = id
				}
			}
			rows++
		}
	}
	if rows != n {
		t.Errorf("%d rows of %d", rows, n)
	}
	t.Logf("%d bytes held at most, %d layers spilled", most, spilled)
	// The layers go as their epochs commit.
	s.Stage(e, TagOffsets, []byte("x"), []byte("y"))
	if err := s.Commit(e); err != nil {
		t.Fatal(err)
	}
	cur.Refresh()
	if err := rep.Seal(e + 1); err != nil {
		t.Fatal(err)
	}
	if len(rep.sealed) != 0 || rep.DirtyBytes() > 1<<10 {
		t.Errorf("%d layers and %d bytes are left after their epochs committed", len(rep.sealed), rep.DirtyBytes())
	}
	cur.Close()
	rep.Close()
	if s.DirtyBytes() != 0 {
		t.Errorf("%d dirty bytes at the end", s.DirtyBytes())
	}
	// A file whose name a kill left behind goes at the next start.
	s.Close()
	left := filepath.Join(dir, spillDir, "layer1")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, Options{Dir: dir, Reserve: 1})
	defer s.Close()
	if files, err := os.ReadDir(filepath.Join(dir, spillDir)); err != nil || len(files) > 0 {
		t.Errorf("%d files are left: %v", len(files), err)
	}
}
