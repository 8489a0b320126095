package storage

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// flights is a table of short rows, as streams have them.
var flights = Desc{ID: 6, Name: "flights", Tag: TagRows, Vnodes: 64, Key: []int{0}, Dist: []int{0},
	Schema: types.Schema{{Type: types.Int8}, {Type: types.Timestamp}, {Type: types.Text}, {Type: types.Text}, {Type: types.Int4}, {Type: types.Int4}}}

// flightChunk makes rows at to at+n-1. Their ids ascend with them, or are a permutation of 42 bits.
func flightChunk(at, n int, random bool) *chunk.Chunk {
	ids, ts, from, to, delay, dist := make([]int64, n), make([]int64, n), make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	for i := range n {
		k := int64(at + i)
		ids[i], ts[i], delay[i], dist[i] = k, 31_536_000_000_000+60_000_000*k, k%97-20, 100+k%2711
		if random {
			ids[i] = k * 0x2545F4914F % (1 << 42)
		}
		from[i], to[i] = airport(k), airport(k*7+3)
	}
	return chunk.Make(chunk.NewVec(types.Int8, ids, nil), chunk.NewVec(types.Timestamp, ts, nil), chunk.NewVec(types.Text, from, nil),
		chunk.NewVec(types.Text, to, nil), chunk.NewVec(types.Int4, delay, nil), chunk.NewVec(types.Int4, dist, nil))
}

func airport(k int64) string {
	x := k % 400
	return string([]byte{byte('A' + x%26), byte('A' + x/26%26), byte('A' + x*7%26)})
}

// cpuTime is what the process has used, in nanoseconds: on a shared machine the clock says little.
func cpuTime(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

// diskBytes closes the store, which writes its memtables out, and returns what its tables take.
func diskBytes(b *testing.B, s *Store) int64 {
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var n int64
	files, _ := filepath.Glob(filepath.Join(s.o.Dir, engineDir, "*.sst"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}

const epochRows = 100_000

// writeEpoch writes, seals and commits rows of one epoch.
func writeEpoch(b *testing.B, s *Store, tab *StateTable, chunks []*chunk.Chunk) {
	for _, c := range chunks {
		if err := tab.WriteChunk(c); err != nil {
			b.Fatal(err)
		}
	}
	e := s.Committed() + 1
	if err := tab.Commit(e); err != nil {
		b.Fatal(err)
	}
	if err := s.Commit(e); err != nil {
		b.Fatal(err)
	}
}

func flightEpoch(at int, random bool) []*chunk.Chunk {
	var out []*chunk.Chunk
	for n := 0; n < epochRows; n += 1000 {
		out = append(out, flightChunk(at+n, 1000, random))
	}
	return out
}

// One iteration is an epoch of 100,000 rows: encoded, sealed and committed. The
// compaction that it brings counts as far as it happens meanwhile.
func BenchmarkEpoch(b *testing.B) {
	for _, random := range []bool{false, true} {
		name := "ascending"
		if random {
			name = "random"
		}
		b.Run(name, func(b *testing.B) {
			s := benchStore(b, "badger")
			tab := s.Table(flights, Full(64))
			var cpu float64
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				b.StopTimer()
				chunks := flightEpoch(i*epochRows, random)
				b.StartTimer()
				start := cpuTime(b)
				writeEpoch(b, s, tab, chunks)
				cpu += cpuTime(b) - start
			}
			b.StopTimer()
			b.ReportMetric(float64(diskBytes(b, s))/float64(b.N)/epochRows, "disk-B/row")
			b.ReportMetric(cpu/float64(b.N)/epochRows, "cpu-ns/row")
		})
	}
}

// One iteration reads a million rows, which were written in epochs.
func BenchmarkScanMillion(b *testing.B) {
	const n = 1_000_000
	s := benchStore(b, "badger")
	tab := s.Table(flights, Full(64))
	for at := 0; at < n; at += epochRows {
		writeEpoch(b, s, tab, flightEpoch(at, false))
	}
	for _, c := range []struct {
		name string
		cols []int
		from []byte
	}{
		{"count", nil, nil},
		{"count of a span", nil, VnodePrefix(0)},
		{"2 columns", []int{0, 4}, nil},
		{"all columns", []int{0, 1, 2, 3, 4, 5}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			for range b.N {
				snap, _ := s.Latest()
				rows := 0
				for c, err := range snap.ScanChunks(flights, c.cols, c.from, nil, 1024) {
					if err != nil {
						b.Fatal(err)
					}
					rows += c.Len()
				}
				snap.Close()
				if rows != n {
					b.Fatalf("%d rows", rows)
				}
			}
			b.ReportMetric((cpuTime(b)-start)/float64(b.N)/n, "cpu-ns/row")
		})
	}
}

// One iteration looks up one key of a million.
func BenchmarkPointGet(b *testing.B) {
	for _, random := range []bool{false, true} {
		name := "ascending"
		if random {
			name = "random"
		}
		b.Run(name, func(b *testing.B) { pointGets(b, random) })
	}
}

func pointGets(b *testing.B, random bool) {
	const n = 1_000_000
	s := benchStore(b, "badger")
	tab := s.Table(flights, Full(64))
	for at := 0; at < n; at += epochRows {
		writeEpoch(b, s, tab, flightEpoch(at, random))
	}
	keys := func(first int) [][]byte {
		out := make([][]byte, 10_000)
		r := rand.New(rand.NewPCG(3, 3))
		for i := range out {
			out[i] = tab.Codec().AppendKey(nil, flightChunk(first+r.IntN(n), 1, random).Cols, 0)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		first int
	}{{"there", 0}, {"absent", n}} {
		ks := keys(c.first)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			for i := range b.N {
				if v, err := tab.Get(ks[i%len(ks)]); err != nil || (v == nil) != (c.first > 0) {
					b.Fatal(v, err)
				}
			}
			b.ReportMetric((cpuTime(b)-start)/float64(b.N), "cpu-ns/get")
		})
		b.Run(c.name+"/many", func(b *testing.B) {
			start := cpuTime(b)
			for i := 0; i < b.N; i += len(ks) {
				if err := tab.GetMany(ks[:min(len(ks), b.N-i)], func(int, []byte) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime(b)-start)/float64(b.N), "cpu-ns/get")
		})
	}
}

// One iteration seals a layer of 100,000 rows.
func BenchmarkSealLayer(b *testing.B) {
	join := flights // as a join's state is keyed: by the join column, then the row's key
	join.Key, join.Dist = []int{2, 0}, []int{2}
	for _, c := range []struct {
		name   string
		d      Desc
		random bool
	}{{"ascending", flights, false}, {"random", flights, true}, {"join state", join, false}} {
		b.Run(c.name, func(b *testing.B) {
			s := benchStore(b, "memory")
			tab := s.Table(c.d, Full(64))
			for _, c := range flightEpoch(0, c.random) {
				if err := tab.WriteChunk(c); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			b.ResetTimer()
			for range b.N {
				tab.open.seal(1)
			}
		})
	}
}
