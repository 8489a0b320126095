package storage

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

var wide = Desc{ID: 5, Name: "wide", Tag: TagRows, Vnodes: 64, Key: []int{0}, Dist: []int{0},
	Schema: types.Schema{{Type: types.Int8}, {Type: types.Int8}, {Type: types.Text}, {Type: types.Timestamp}, {Type: types.Int8}}}

func wideChunks(n, size int, random bool) []*chunk.Chunk {
	var out []*chunk.Chunk
	perm := rand.New(rand.NewPCG(1, 1)).Perm(n)
	for at := 0; at < n; at += size {
		m := min(size, n-at)
		a, b, s, ts, x := make([]int64, m), make([]int64, m), make([]string, m), make([]int64, m), make([]int64, m)
		for i := range m {
			k := int64(at + i)
			if random {
				k = int64(perm[at+i])
			}
			a[i], b[i], s[i], ts[i], x[i] = k, k%10, fmt.Sprint("customer name number ", k), 8e14+k, k*3
		}
		out = append(out, chunk.Make(chunk.NewVec(types.Int8, a, nil), chunk.NewVec(types.Int8, b, nil), chunk.NewVec(types.Text, s, nil),
			chunk.NewVec(types.Timestamp, ts, nil), chunk.NewVec(types.Int8, x, nil)))
	}
	return out
}

var benchPackBytes = flag.Int("packbytes", 0, "size of blocks")

// Both ways are to be measured in turn: the machine is not ours alone.
var benchPack = flag.Int("pack", 0, "new keys of a vnode that benchmarks pack into blocks; -1: none")

func benchStore(b *testing.B, engine string) *Store {
	o := Options{Reserve: 1, packRows: *benchPack, packBytes: *benchPackBytes}
	if engine == "badger" {
		o.Dir = b.TempDir()
	}
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func load(b *testing.B, s *Store, chunks []*chunk.Chunk) *StateTable {
	tab := s.Table(wide, Full(64))
	e := s.Committed()
	for i, c := range chunks {
		if err := tab.WriteChunk(c); err != nil {
			b.Fatal(err)
		}
		if i%20 == 19 || i == len(chunks)-1 {
			e++
			if err := tab.Commit(e); err != nil {
				b.Fatal(err)
			}
			if err := s.Commit(e); err != nil {
				b.Fatal(err)
			}
		}
	}
	return tab
}

// One iteration is a row: encoded, sealed in epochs of 20,000 rows, committed.
func BenchmarkWrite(b *testing.B) {
	for _, engine := range []string{"memory", "badger"} {
		for _, random := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/random=%v", engine, random), func(b *testing.B) {
				chunks := wideChunks(b.N, 1000, random)
				s := benchStore(b, engine)
				b.ReportAllocs()
				b.ResetTimer()
				load(b, s, chunks)
			})
		}
	}
}

// The part of writing that actors do: encode, hash, sort.
func BenchmarkSeal(b *testing.B) {
	chunks := wideChunks(b.N, 1000, true)
	s := benchStore(b, "memory")
	tab := s.Table(wide, Full(64))
	b.ReportAllocs()
	b.ResetTimer()
	for i, c := range chunks {
		if err := tab.WriteChunk(c); err != nil {
			b.Fatal(err)
		}
		if i%20 == 19 {
			tab.open.seal(1)
			tab.open = newLayer(10_000)
			tab.accounted = 0
		}
	}
}

func BenchmarkScanChunks(b *testing.B) {
	for _, engine := range []string{"memory", "badger"} {
		b.Run(engine, func(b *testing.B) {
			const n = 500_000
			s := benchStore(b, engine)
			load(b, s, wideChunks(n, 1000, true))
			b.ResetTimer()
			for done := 0; done < b.N; {
				snap, _ := s.Latest()
				for c, err := range snap.ScanChunks(wide, []int{0, 1, 2, 3, 4}, nil, nil, 1024) {
					if err != nil {
						b.Fatal(err)
					}
					if done += c.Len(); done >= b.N {
						break
					}
				}
				snap.Close()
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, engine := range []string{"memory", "badger"} {
		const n = 500_000
		s := benchStore(b, engine)
		tab := load(b, s, wideChunks(n, 1000, true))
		keys := make([][]byte, 10_000)
		r := rand.New(rand.NewPCG(2, 2))
		for i := range keys {
			cols := []chunk.Column{chunk.Repeat(types.Int8, types.NewInt(r.Int64N(n)), 1)}
			keys[i] = tab.Codec().AppendKey(nil, cols, 0)
		}
		b.Run(engine, func(b *testing.B) {
			for i := range b.N {
				if v, err := tab.Get(keys[i%len(keys)]); err != nil || v == nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(engine+"/many", func(b *testing.B) {
			for i := 0; i < b.N; i += len(keys) {
				if err := tab.GetMany(keys, func(i int, val []byte) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(engine+"/short scan", func(b *testing.B) {
			for i := range b.N {
				k := keys[i%len(keys)]
				for _, err := range tab.Scan(k, NextPrefix(k)) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// One row an epoch: what an INSERT waits for at least.
func BenchmarkCommitOne(b *testing.B) {
	s := benchStore(b, "badger")
	tab := s.Table(wide, Full(64))
	for i, c := range wideChunks(b.N, 1, false) {
		if err := tab.WriteChunk(c); err != nil {
			b.Fatal(err)
		}
		e := Epoch(i + 1)
		if err := tab.Commit(e); err != nil {
			b.Fatal(err)
		}
		if err := s.Commit(e); err != nil {
			b.Fatal(err)
		}
	}
}
