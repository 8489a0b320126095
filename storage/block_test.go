package storage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// entries counts an object's own entries, marks of dead rows among them, and its blocks.
func entries(s *Store, d Desc) (rows, dead, blocks int) {
	p := s.pins.latest()
	defer p.release()
	c := p.v.cursor(objectPrefix(d.Tag, d.ID))
	defer c.close()
	for ok := c.seek(objectPrefix(d.Tag, d.ID)); ok; ok = c.next() {
		if _, meta := c.val(); meta == metaDead {
			dead++
		} else {
			rows++
		}
	}
	for range p.scanTag(tagBlocks, objectPrefix(d.Tag, d.ID)) {
		blocks++
	}
	return rows, dead, blocks
}

// change writes and commits one epoch: keys 0, step, 2*step ... below to go from value old to val; -1: no row.
func change(t *testing.T, s *Store, from, to, step, old, val int64) {
	t.Helper()
	tab := s.Table(pair, Full(1))
	c := tab.Codec()
	row := func(k, v int64) (key, value []byte) {
		cols := []chunk.Column{chunk.Repeat(types.Int8, types.NewInt(k), 1), chunk.Repeat(types.Int8, types.NewInt(v), 1)}
		if v < 0 {
			return c.AppendKey(nil, cols, 0), nil
		}
		return c.AppendKey(nil, cols, 0), c.AppendValue(nil, cols, 0)
	}
	for k := from; k < to; k += step {
		key, val := row(k, val)
		_, was := row(k, old)
		if err := tab.Replace(key, was, val); err != nil {
			t.Fatal(err)
		}
	}
	e := s.Committed() + 1
	if err := tab.Commit(e); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(e); err != nil {
		t.Fatal(err)
	}
}

// The life of a block: written by a load, covered by changes, taken apart.
func TestBlockLife(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		o := Options{Dir: dir, Reserve: 1}
		if dir == "" {
			o.Disk = NewMemDisk()
		}
		s := mustOpen(t, o)
		check := func(what string, rows, dead int, blocks func(int) bool, want int) {
			t.Helper()
			r, d, b := entries(s, pair)
			if r != rows || d != dead || !blocks(b) {
				t.Errorf("%s: %d entries, %d dead, %d blocks; want %d, %d", what, r, d, b, rows, dead)
			}
			if n := countRows(t, s); n != want {
				t.Errorf("%s: %d rows, want %d", what, n, want)
			}
			if err := s.Scrub(t.Context()); err != nil {
				t.Error(err)
			}
		}
		some := func(n int) bool { return n > 5 }
		change(t, s, 0, 10_000, 1, -1, 1)
		check("load", 0, 0, some, 10_000)
		old, _ := s.Latest()
		change(t, s, 0, 10_000, 10, 1, 2)
		check("updates", 1000, 0, some, 10_000)
		change(t, s, 5, 10_000, 10, 1, -1)
		check("deletes", 1000, 1000, some, 9_000)
		// Some rows are already in their own entries; the bulk brings all into blocks again.
		change(t, s, 1, 10_000, 10, 1, 3)
		change(t, s, 10_000, 10_010, 1, -1, 1) // too few for a block
		check("more updates", 2010, 1000, some, 9_010)
		if dir != "" {
			old.Close()
			s.Close()
			s = mustOpen(t, o)
			old, _ = s.Latest()
			check("restart", 2010, 1000, some, 9_010)
		}
		for _, k := range []int64{2, 3, 4, 6, 7} {
			change(t, s, k, 10_000, 10, 1, 9) // past half, few at a time
		}
		if r, d, b := entries(s, pair); r < 5_000 || d > 900 || b > 40 {
			t.Errorf("blocks that changed bit by bit: %d entries, %d dead, %d blocks", r, d, b)
		}
		if n := countRows(t, s); n != 9_010 {
			t.Error(n)
		}
		n := 0
		for c, err := range old.ScanChunks(pair, []int{0}, nil, nil, 100) {
			if err != nil {
				t.Fatal(err)
			}
			n += c.Len()
		}
		if want := 10_000; dir == "" && n != want {
			t.Errorf("the old snapshot has %d rows, want %d", n, want)
		}
		old.Close()
		for k := range int64(10) {
			old := []int64{2, 3, 9, 9, 9, -1, 9, 9, 1, 1}[k]
			change(t, s, k, 10_000, 10, old, -1)
		}
		check("all gone", 10, 0, func(n int) bool { return n == 0 }, 10)
		// A bulk update keeps the blocks, and inserts between blocks' rows are entries.
		change(t, s, 20_000, 30_000, 2, -1, 1)
		change(t, s, 20_000, 30_000, 2, 1, 2)
		check("bulk update", 10, 0, some, 5_010)
		change(t, s, 20_001, 29_999, 2, -1, 1)
		check("inserts between", 10+4_999, 0, some, 10_009)
		change(t, s, 20_000, 30_000, 2, 2, -1)
		change(t, s, 20_001, 29_999, 2, 1, -1)
		if r, d, b := entries(s, pair); r != 10 || d != 0 || b != 0 {
			t.Errorf("after deleting all: %d entries, %d dead, %d blocks", r, d, b)
		}
		change(t, s, 0, 10_000, 1, -1, 1)
		s.Drop(s.Committed()+1, pair.ID)
		for range 3 {
			if err := s.Commit(s.Committed() + 1); err != nil {
				t.Fatal(err)
			}
		}
		if r, d, b := entries(s, pair); r+d+b != 0 {
			t.Errorf("after the drop: %d entries, %d dead, %d blocks", r, d, b)
		}
		for range recentEpochs + 1 {
			change(t, s, 0, 1, 1, -1, 1) // a dropped object's changes go nowhere
			s.Stage(s.Committed()+1, TagOffsets, []byte("k"), []byte("v"))
			if err := s.Commit(s.Committed() + 1); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
}

// A block that is lost, and an index of blocks that is damaged, are told.
func TestBlockLoss(t *testing.T) {
	o := Options{Disk: NewMemDisk(), packBytes: 500}
	s := mustOpen(t, o)
	change(t, s, 0, 1000, 1, -1, 1)
	b := s.pins.latest().blocks(pair.Tag, pair.ID).vnodes[0][3]
	object := objectPrefix(pair.Tag, pair.ID)
	apply := func(key, val []byte) {
		t.Helper()
		err := s.eng.apply(batch{epoch: s.Committed(), n: 1, writes: func(yield func(write) bool) { yield(write{key: key, val: val}) }, marker: mark{epoch: s.Committed(), xor: s.xor, uuid: s.uuid}.encode()})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = mustOpen(t, o)
	}
	apply(b.dataKey(object), nil)
	snap, _ := s.Latest()
	var err error
	for _, err = range snap.Scan(pair, nil, nil) {
		if err != nil {
			break
		}
	}
	if sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Errorf("scan: %v", err)
	}
	if _, err := snap.Get(pair, b.first); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Errorf("get: %v", err)
	}
	snap.Close()
	if err := s.Scrub(t.Context()); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Errorf("scrub: %v", err)
	}
	// Without its index entry a block's rows are not found: the scrub misses them.
	s.Close()
	o.Disk = NewMemDisk()
	s = mustOpen(t, o)
	change(t, s, 0, 1000, 1, -1, 1)
	apply(b.indexKey(object), nil)
	if err := s.Scrub(t.Context()); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Errorf("scrub: %v", err)
	}
	err = s.eng.apply(batch{epoch: s.Committed(), n: 1, writes: func(yield func(write) bool) {
		yield(write{key: b.indexKey(object), val: []byte{200}})
	}, marker: mark{epoch: s.Committed(), xor: s.xor, uuid: s.uuid}.encode()})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(o); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Errorf("open: %v", err)
	}
}

// What is packed is read back, and damaged bytes are an error or another row, never a fault.
func TestBlockFormat(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		keys := map[string]string{}
		for range 1 + r.IntN(60) {
			k := fmt.Sprintf("v%s%d\x01", strings.Repeat("p", r.IntN(200)*r.IntN(2)), r.IntN(1000))
			keys["\x00"+k] = strings.Repeat("x", r.IntN(300)*r.IntN(2))
		}
		var sorted []string
		for k := range keys {
			sorted = append(sorted, k)
		}
		slices.Sort(sorted)
		var p packer
		for _, k := range sorted {
			p.add([]byte(k), []byte(keys[k]), false)
		}
		b, val := p.pack(3)
		again, err := readBlock(b.last, b.indexVal())
		if err != nil || again.n != b.n || !bytes.Equal(again.first, b.first) || !bytes.Equal(again.last, b.last) {
			t.Fatal(err, again, b)
		}
		rows, err := readRows(val)
		if err != nil || rows.n != len(keys) {
			t.Fatal(err, rows.n)
		}
		for i, k := range sorted {
			got, err := rows.get([]byte(k))
			if err != nil || got == nil || string(got) != keys[k] {
				t.Fatalf("%q: %q, %v", k, got, err)
			}
			if at, err := rows.seek([]byte(k[:len(k)-1])); err != nil || at > i {
				t.Fatal(at, i, err)
			}
			if got, err := rows.get([]byte(k + "z")); err != nil || got != nil {
				t.Fatalf("%q: %v", got, err)
			}
		}
		var f blockCache
		f.limit = 1 << 20
		if err := f.filter(b, &rows); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			bad := bytes.Clone(val)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			bad = bad[:len(bad)-r.IntN(2)*r.IntN(len(bad))]
			rows, err := readRows(bad)
			if err != nil {
				continue
			}
			for i := range rows.n {
				rows.row(i)
			}
			rows.get([]byte(sorted[r.IntN(len(sorted))]))
		}
	}
}
