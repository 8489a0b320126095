package storage

import (
	"sync"
	"sync/atomic"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// Readers at any epoch see that epoch whole, while actors seal, the store
// commits, and the engine flushes and compacts.
func TestConcurrentReaders(t *testing.T) {
	epochs := Epoch(60)
	if testing.Short() {
		epochs = 30
	}
	for _, dir := range []string{"", t.TempDir()} {
		s := mustOpen(t, Options{Dir: dir, Reserve: 1})
		const rows, actors = 4000, 2
		d := Desc{ID: 8, Name: "c", Tag: TagRows, Vnodes: 4, Key: []int{0}, Dist: []int{0}, Schema: types.Schema{{Type: types.Int8}, {Type: types.Int8}, {Type: types.Text}}}
		var tabs []*StateTable
		for a := range actors {
			v := NewVnodeSet(4)
			v.Add(uint16(a))
			v.Add(uint16(a + 2))
			tabs = append(tabs, s.Table(d, v))
		}
		ids := make([]int64, rows)
		for i := range ids {
			ids[i] = int64(i)
		}
		key := chunk.NewVec(types.Int8, ids, nil)
		vn := tabs[0].Codec().Vnodes([]chunk.Column{key}, rows)
		part := make([]chunk.Column, actors)
		for a := range actors {
			var sel []int
			for i, v := range vn {
				if int(v)%actors == a {
					sel = append(sel, i)
				}
			}
			part[a] = key.Gather(sel)
		}
		version := func(a int, e Epoch) *chunk.Chunk {
			n := part[a].Len()
			return chunk.Make(part[a], chunk.Repeat(types.Int8, types.NewInt(int64(e)), n), chunk.Repeat(types.Text, types.NewString("some text to give rows a size"), n))
		}
		var stop atomic.Bool
		var wg, readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for !stop.Load() {
					snap, err := s.Latest()
					if err != nil {
						t.Error(err)
						return
					}
					for range 2 {
						n := 0
						for c, err := range snap.ScanChunks(d, []int{1}, nil, nil, 512) {
							if err != nil {
								t.Error(err)
								break
							}
							for _, v := range chunk.Of[int64](c.Cols[0]).Data {
								if Epoch(v) != snap.Epoch() {
									t.Errorf("row of epoch %d at epoch %d", v, snap.Epoch())
									stop.Store(true)
									break
								}
							}
							n += c.Len()
						}
						if n != rows && snap.Epoch() > 0 {
							t.Errorf("%d rows at epoch %d", n, snap.Epoch())
							stop.Store(true)
						}
					}
					snap.Close()
				}
			})
		}
		for e := Epoch(1); e <= epochs; e++ {
			for a, tab := range tabs {
				wg.Go(func() {
					if e > 1 {
						old := version(a, e-1)
						old.Ops = make([]chunk.Op, old.N)
						for i := range old.Ops {
							old.Ops[i] = chunk.Delete
						}
						if err := tab.WriteChunk(old); err != nil {
							t.Error(err)
						}
					}
					if err := tab.WriteChunk(version(a, e)); err != nil {
						t.Error(err)
					}
					n := 0
					for kv, err := range tab.Scan(nil, nil) {
						if err != nil || len(kv.Val) == 0 {
							t.Error(err)
						}
						n++
					}
					if n != part[a].Len() {
						t.Errorf("actor %d scans %d of %d rows", a, n, part[a].Len())
					}
					if err := tab.Commit(e); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if e%3 == 0 { // the actors are an epoch ahead now and then
				continue
			}
			if err := s.Commit(e); err != nil {
				t.Fatal(err)
			}
		}
		stop.Store(true)
		readers.Wait()
		if err := s.Commit(epochs + 1); err != nil {
			t.Fatal(err)
		}
		if n := s.Rows(d.ID); n != rows {
			t.Errorf("%d rows by digest", n)
		}
		if s.DirtyBytes() != 0 {
			t.Errorf("%d dirty bytes at rest", s.DirtyBytes())
		}
		if err := s.Scrub(t.Context()); err != nil {
			t.Error(err)
		}
		t.Logf("engine %T: %d views, %d MB", s.eng, s.pins.count(), s.Size()>>20)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
