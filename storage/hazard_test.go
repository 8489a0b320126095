package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

var pair = Desc{ID: 3, Name: "pair", Tag: TagRows, Schema: types.Schema{{Name: "k", Type: types.Int8}, {Name: "v", Type: types.Int8}}, Key: []int{0}}

func mustOpen(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fillRows inserts rows [from, to) with value v and commits them at e.
func fillRows(t *testing.T, s *Store, e Epoch, from, to, v int64) {
	t.Helper()
	tab := s.Table(pair, Full(1))
	b := chunk.NewBuilder(pair.Schema.Types(), int(to-from))
	var c *chunk.Chunk
	for k := from; k < to; k++ {
		c = b.AppendRow(chunk.Insert, types.Row{types.NewInt(k), types.NewInt(v)})
	}
	if err := tab.WriteChunk(c); err != nil {
		t.Fatal(err)
	}
	if err := tab.Commit(e); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(e); err != nil {
		t.Fatal(err)
	}
}

func countRows(t *testing.T, s *Store) (n int) {
	t.Helper()
	snap, err := s.Latest()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for c, err := range snap.ScanChunks(pair, []int{0, 1}, nil, nil, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		n += c.Len()
	}
	if got := s.Rows(pair.ID); got != int64(n) {
		t.Fatalf("digest says %d rows, scan finds %d", got, n)
	}
	return n
}

// An epoch too large for one transaction commits whole, and survives.
func TestLargeEpoch(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	fillRows(t, s, 1, 0, 120_000, 1)
	if n := countRows(t, s); n != 120_000 {
		t.Fatal(n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Close()
	if n := countRows(t, s); n != 120_000 || s.Committed() != 1 {
		t.Fatal(n, s.Committed())
	}
}

// A torn epoch is undone, and its numbers are not used again.
func TestTornEpoch(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	fillRows(t, s, 5, 0, 1000, 1)
	b := s.eng.(*badgerEngine)
	err := b.load(batch{epoch: 7, writes: func(yield func(write) bool) {
		for k := range int64(2000) {
			key := s.Table(pair, Full(1)).Codec().AppendKey(nil, []chunk.Column{chunk.Repeat(types.Int8, types.NewInt(k), 1), nil}, 0)
			w := write{key: append(objectPrefix(TagRows, pair.ID), key...), val: []byte("torn")}
			if k%3 == 0 {
				w.val = nil
			}
			if !yield(w) {
				return
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 2 {
		s = mustOpen(t, o)
		if n := countRows(t, s); n != 1000 {
			t.Fatal(n)
		}
		if s.Committed() != 8 {
			t.Fatalf("committed %d, want 8", s.Committed())
		}
		if err := s.Scrub(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestRatchetAheadIsRefused(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	fillRows(t, s, 1, 0, 10, 1)
	s.Close()
	m := mark{epoch: 4, xor: 1, uuid: s.uuid}
	r, _, _, err := openRatchet(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(m); err != nil {
		t.Fatal(err)
	}
	r.close()
	_, err = Open(o)
	if sqlerr.Code(err) != sqlerr.DataCorrupted || !strings.Contains(err.Error(), "3 epochs") {
		t.Fatal(err)
	}
	o.AcceptLoss = true
	s = mustOpen(t, o)
	if s.Committed() != 5 || countRows(t, s) != 10 {
		t.Fatal(s.Committed())
	}
	s.Close()
	o.AcceptLoss = false
	mustOpen(t, o).Close()
}

// One flipped byte in the ratchet costs one slot; in both, the start is refused.
func TestRatchetFlips(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	for e := range Epoch(4) {
		fillRows(t, s, e+1, int64(e)*10, int64(e)*10+10, 1)
	}
	s.Close()
	path := filepath.Join(o.Dir, "ratchet")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at ...int) error {
		b := bytes.Clone(good)
		for _, i := range at {
			b[i] ^= 0x10
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(o)
		if err == nil {
			if countRows(t, s) != 40 {
				t.Fatal("rows are missing")
			}
			s.Close()
		}
		return err
	}
	for _, at := range []int{0, 5, 9, 17, 30, markLen - 1} {
		for _, slot := range []int{0, ratchetSlot} {
			if err := flip(slot + at); err != nil {
				t.Errorf("byte %d of slot %d: %v", at, slot, err)
			}
		}
	}
	if err := flip(7, ratchetSlot+7); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Error(err)
	}
}

// A damaged marker, and a digest that does not belong to it, are refused.
func TestMarkerFlip(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	fillRows(t, s, 1, 0, 10, 1)
	m := mark{epoch: 1, xor: s.xor, uuid: s.uuid}.encode()
	m[12] ^= 1
	put := func(s *Store, key, val []byte) {
		t.Helper()
		err := s.eng.apply(batch{epoch: s.Committed(), n: 1, writes: func(yield func(write) bool) { yield(write{key: key, val: val}) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	good := mark{epoch: 1, xor: s.xor, uuid: s.uuid}.encode()
	put(s, markerKey, m)
	s.Close()
	if _, err := Open(o); sqlerr.Code(err) != sqlerr.DataCorrupted || !strings.Contains(err.Error(), "marker") {
		t.Fatal(err)
	}
	e, err := openBadger(filepath.Join(o.Dir, engineDir), o.withDefaults(), newBadgerLog(o.withDefaults().Logger, newMetrics()))
	if err != nil {
		t.Fatal(err)
	}
	s = &Store{eng: e, pins: pins{}}
	p := &pin{epoch: 1}
	s.pins.cur.Store(p)
	put(s, markerKey, good)
	put(s, objectPrefix(TagDigest, pair.ID), digest{rows: 11}.encode())
	e.close()
	if _, err := Open(o); sqlerr.Code(err) != sqlerr.DataCorrupted || !strings.Contains(err.Error(), "digests") {
		t.Fatal(err)
	}
}

// A row changed behind the store's back is found by the scrub.
func TestScrubFindsChange(t *testing.T) {
	var told uint32
	o := Options{OnCorrupt: func(id uint32, err error) { told = id }}
	s := mustOpen(t, o)
	defer s.Close()
	fillRows(t, s, 1, 0, 10, 1)
	if err := s.Scrub(context.Background()); err != nil {
		t.Fatal(err)
	}
	key := s.Table(pair, Full(1)).Codec().AppendKey(nil, []chunk.Column{chunk.Repeat(types.Int8, types.NewInt(3), 1), nil}, 0)
	err := s.eng.apply(batch{epoch: 1, writes: func(yield func(write) bool) {
		yield(write{key: append(objectPrefix(TagRows, pair.ID), key...), val: []byte("other")})
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.pins.advance(2)
	if err := s.Scrub(context.Background()); sqlerr.Code(err) != sqlerr.DataCorrupted || told != pair.ID {
		t.Fatal(err, told)
	}
}

func TestPreflight(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1}
	s := mustOpen(t, o)
	fillRows(t, s, 1, 0, 10, 1)
	if _, err := Open(o); sqlerr.Code(err) != sqlerr.ObjectInUse {
		t.Fatal(err)
	}
	s.Close()
	state := filepath.Join(o.Dir, engineDir)
	for _, f := range []string{"00099.mem", "000099.vlog"} {
		if err := os.WriteFile(filepath.Join(state, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, o)
	if countRows(t, s) != 10 {
		t.Fatal("rows are missing")
	}
	s.Close()
	full := o
	full.FreeSpace = func(string) (uint64, uint64, error) { return 1 << 20, 1 << 20, nil }
	if _, err := Open(full); sqlerr.Code(err) != sqlerr.DiskFull {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(state, "MANIFEST"), filepath.Join(o.Dir, "M")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); sqlerr.Code(err) != sqlerr.DataCorrupted {
		t.Fatal(err)
	}
}

// A testClock moves when it is told to.
type testClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestDiskGuard(t *testing.T) {
	var free atomic.Uint64 // the store looks from a goroutine of its own, too
	free.Store(10 << 30)
	clock := &testClock{t: time.Unix(1e9, 0)}
	o := Options{Dir: t.TempDir(), Clock: clock, FreeSpace: func(string) (uint64, uint64, error) { return free.Load(), 1 << 20, nil }}
	s := mustOpen(t, o)
	defer s.Close()
	if err := s.CheckSpace(); err != nil {
		t.Fatal(err)
	}
	free.Store(1 << 20)
	if err := s.CheckSpace(); err != nil {
		t.Fatal("looked too soon")
	}
	clock.add(time.Second)
	err := s.CheckSpace()
	if sqlerr.Code(err) != sqlerr.DiskFull || sqlerr.From(err).Hint == "" {
		t.Fatal(err)
	}
	free.Store(10 << 30)
	clock.add(time.Second)
	if err := s.CheckSpace(); err != nil {
		t.Fatal(err)
	}
}

// A view held too long is cancelled, and the reader is told rather than misled.
func TestOldViewIsCancelled(t *testing.T) {
	clock := &testClock{t: time.Unix(1e9, 0)}
	s := mustOpen(t, Options{Clock: clock, MaxPinAge: time.Minute})
	defer s.Close()
	fillRows(t, s, 1, 0, 10, 1)
	snap, err := s.At(1)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for e := Epoch(2); e < 10; e++ {
		fillRows(t, s, e, int64(e)*10, int64(e)*10+10, 1)
	}
	n := 0
	for _, err := range snap.Scan(pair, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 10 {
		t.Fatalf("%d rows", n)
	}
	again, err := s.At(1)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	clock.add(2 * time.Minute)
	fillRows(t, s, 10, 1000, 1010, 1)
	for _, err := range snap.Scan(pair, nil, nil) {
		if sqlerr.Code(err) != sqlerr.SnapshotTooOld {
			t.Fatalf("read of a cancelled view: %v", err)
		}
	}
	if _, err := s.At(1); sqlerr.Code(err) != sqlerr.SnapshotTooOld {
		t.Fatal(err)
	}
}

func TestDrop(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		o := Options{Dir: dir, Reserve: 1}
		if dir == "" {
			o.Disk = NewMemDisk()
		}
		s := mustOpen(t, o)
		fillRows(t, s, 1, 0, 25_000, 1)
		snap, _ := s.Latest()
		s.Drop(2, pair.ID)
		for e := Epoch(2); e < 7; e++ {
			if err := s.Commit(e); err != nil {
				t.Fatal(err)
			}
		}
		if s.Rows(pair.ID) != 0 || len(s.drops) != 0 {
			t.Fatalf("%d rows, %d drops left", s.Rows(pair.ID), len(s.drops))
		}
		n := 0
		for _, err := range snap.Scan(pair, nil, nil) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 25_000 {
			t.Fatalf("an older reader sees %d rows", n)
		}
		snap.Close()
		if n := countRows(t, s); n != 0 {
			t.Fatal(n)
		}
		// A drop that a restart finds.
		other := pair
		other.ID = 4
		tab := s.Table(other, Full(1))
		if err := tab.WriteChunk(chunk.Make(chunk.Repeat(types.Int8, types.NewInt(1), 1), chunk.Repeat(types.Int8, types.NewInt(1), 1))); err != nil {
			t.Fatal(err)
		}
		if err := tab.Commit(7); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(7); err != nil {
			t.Fatal(err)
		}
		s.Drop(8, other.ID)
		if err := s.Commit(8); err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = mustOpen(t, o)
		if s.Rows(other.ID) != 0 {
			t.Fatal("rows are left")
		}
		for kv := range s.Meta(TagJobs, nil) {
			t.Fatalf("intent %q is left or shown", kv.Key)
		}
		s.Close()
		mustOpen(t, o).Close()
	}
}

// One flipped byte anywhere: refused, found by the scrub, or harmless; never another row in silence.
func TestRot(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: filepath.Join(dir, "good"), Reserve: 1}
	s := mustOpen(t, o)
	for e := range Epoch(3) {
		fillRows(t, s, e+1, int64(e)*2000, int64(e)*2000+2000, 7)
	}
	s.Close() // rows go to a table file
	s = mustOpen(t, o)
	for e := range Epoch(3) {
		fillRows(t, s, e+4, int64(e+3)*2000, int64(e+3)*2000+2000, 7) // these are in the log only
	}
	// A copy of the live directory is what a kill leaves.
	copyDir := func(to string) {
		t.Helper()
		for _, sub := range []string{"", engineDir} {
			if err := os.MkdirAll(filepath.Join(to, sub), 0o700); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(filepath.Join(o.Dir, sub))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if f.IsDir() || f.Name() == ballastFile {
					continue
				}
				src, err := os.ReadFile(filepath.Join(o.Dir, sub, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				src = src[:len(bytes.TrimRight(src, "\x00"))] // logs are sized ahead
				out := filepath.Join(to, sub, f.Name())
				if err := os.WriteFile(out, src, 0o600); err != nil {
					t.Fatal(err)
				}
				if filepath.Ext(f.Name()) == ".mem" || filepath.Ext(f.Name()) == ".vlog" {
					if err := os.Truncate(out, 32<<20); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	time.Sleep(20 * time.Millisecond) // the last ratchet write may lag
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 9))
	outcome := map[string]int{}
	for i := range 3 * *metaRuns {
		to := filepath.Join(dir, fmt.Sprint("rot", i))
		copyDir(to)
		files, _ := filepath.Glob(filepath.Join(to, engineDir, "*"))
		files = append(files, filepath.Join(to, "ratchet"))
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := len(bytes.TrimRight(b, "\x00"))
		if n == 0 || i == 0 {
			n = 0
		} else {
			at := r.IntN(n)
			b[at] ^= byte(1) << r.IntN(8)
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		what := "harmless"
		o := Options{Dir: to, Reserve: 1}
		s, err := Open(o)
		if err != nil {
			what = "refused"
		} else {
			if err := s.Scrub(context.Background()); err != nil {
				what = "found"
			} else {
				snap, _ := s.Latest()
				k := int64(0)
				for c, err := range snap.ScanChunks(pair, []int{0, 1}, nil, nil, 1000) {
					if err != nil {
						what = "error"
						break
					}
					for i, v := range chunk.Of[int64](c.Cols[0]).Data {
						if v != k || chunk.Of[int64](c.Cols[1]).Data[i] != 7 {
							t.Fatalf("%s: row %d is %d", filepath.Base(file), k, v)
						}
						k++
					}
				}
				snap.Close()
				if what == "harmless" && k != 12_000 {
					t.Errorf("byte flipped in %s: %d rows are left of 12000, and nobody noticed", filepath.Base(file), k)
				}
			}
			s.Close()
		}
		if i == 0 && what != "harmless" {
			t.Fatalf("the copy itself is %s: %v", what, err)
		}
		outcome[what]++
		os.RemoveAll(to)
	}
	t.Log(outcome)
	s.Close()
}

// TestKill kills a process that commits without pause, and looks at what is left:
// every acknowledged epoch whole, none in part.
func TestKill(t *testing.T) {
	if dir := os.Getenv("STORAGE_KILL_DIR"); dir != "" {
		killChild(dir)
	}
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	o := Options{Dir: t.TempDir(), Reserve: 1}
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKill$")
		cmd.Env = append(os.Environ(), "STORAGE_KILL_DIR="+o.Dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(150+round*70)*time.Millisecond, func() { cmd.Process.Kill() })
		var acked Epoch
		var b [8]byte
		for {
			if _, err := out.Read(b[:]); err != nil {
				break
			}
			acked = Epoch(binary.LittleEndian.Uint64(b[:]))
		}
		cmd.Wait()
		s := mustOpen(t, o)
		if s.Committed() < acked {
			t.Fatalf("epoch %d was acknowledged, %d is there", acked, s.Committed())
		}
		// Every epoch wrote its number into each row it touched, and counted itself.
		snap, _ := s.Latest()
		sum := 0
		for c, err := range snap.ScanChunks(pair, []int{1}, nil, nil, 1000) {
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range chunk.Of[int64](c.Cols[0]).Data {
				if v != chunk.Of[int64](c.Cols[0]).Data[0] {
					t.Fatalf("row %d is of epoch %d, the first of %d", i, v, chunk.Of[int64](c.Cols[0]).Data[0])
				}
			}
			sum += c.Len()
		}
		snap.Close()
		if err := s.Scrub(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: acknowledged %d, committed %d, %d rows", round, acked, s.Committed(), sum)
		s.Close()
	}
}

// killChild rewrites all rows in each epoch; every fifth does not fit one transaction.
func killChild(dir string) {
	err := func() error {
		s, err := Open(Options{Dir: dir, Reserve: 1})
		if err != nil {
			return err
		}
		tab := s.Table(pair, Full(1))
		codec := tab.Codec()
		for e := s.Committed() + 1; ; e++ {
			n := int64(500)
			if s.Rows(pair.ID) > 0 {
				n = s.Rows(pair.ID)
			}
			if e%5 == 0 {
				n = 40_000
			}
			old := map[string][]byte{}
			for kv, err := range tab.Scan(nil, nil) {
				if err != nil {
					return err
				}
				old[string(kv.Key)] = bytes.Clone(kv.Val)
			}
			for k := range n {
				cols := []chunk.Column{chunk.Repeat(types.Int8, types.NewInt(k), 1), chunk.Repeat(types.Int8, types.NewInt(int64(e)), 1)}
				key := codec.AppendKey(nil, cols, 0)
				if err := tab.Replace(key, old[string(key)], codec.AppendValue(nil, cols, 0)); err != nil {
					return err
				}
				delete(old, string(key))
			}
			for k, v := range old {
				if err := tab.Replace([]byte(k), v, nil); err != nil {
					return err
				}
			}
			if err := tab.Commit(e); err != nil {
				return err
			}
			if err := s.Commit(e); err != nil {
				return err
			}
			os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(e)))
		}
	}()
	if errors.Is(err, os.ErrClosed) {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(70)
}

func TestOpenIsFast(t *testing.T) {
	start := time.Now()
	s := mustOpen(t, Options{Dir: t.TempDir()})
	took := time.Since(start)
	defer s.Close()
	t.Logf("opened in %v", took)
	if took > 500*time.Millisecond {
		t.Errorf("open of an empty directory took %v", took)
	}
}

// A count from the digest is what a scan finds, at old epochs too; after a restart the first one scans.
func TestCountOfWholeObject(t *testing.T) {
	o := Options{Dir: t.TempDir(), Reserve: 1, packRows: -1}
	s := mustOpen(t, o)
	count := func(s *Snapshot, from []byte, size int) (n int) {
		for c, err := range s.ScanChunks(pair, nil, from, nil, size) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Len() > size || len(c.Cols) > 0 {
				t.Fatal(c.Len(), len(c.Cols))
			}
			n += c.Len()
		}
		return n
	}
	check := func(want int) {
		t.Helper()
		snap, _ := s.Latest()
		defer snap.Close()
		for _, from := range [][]byte{nil, VnodePrefix(0)} {
			if n := count(snap, from, 100); n != want {
				t.Fatalf("from %x: %d rows, want %d", from, n, want)
			}
		}
	}
	check(0)
	fillRows(t, s, 1, 0, 250, 1)
	old, _ := s.Latest()
	check(250)
	fillRows(t, s, 2, 250, 300, 1)
	check(300)
	if n := count(old, nil, 100); n != 250 {
		t.Fatal(n)
	}
	old.Close()
	s.Close()
	s = mustOpen(t, o)
	if s.trusts(pair.ID) {
		t.Fatal("a digest found at open is trusted")
	}
	check(300)
	if !s.trusts(pair.ID) {
		t.Fatal("a digest that a scan confirmed is not trusted")
	}
	check(300)
	// Rows that go behind the store's back: where its digest is not yet confirmed, the count is of what is there.
	s.Close()
	s = mustOpen(t, o)
	defer s.Close()
	var key []byte
	snap, _ := s.Latest()
	for kv, err := range snap.Scan(pair, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		key = append(objectPrefix(pair.Tag, pair.ID), kv.Key...)
		break
	}
	snap.Close()
	err := s.eng.apply(batch{epoch: s.Committed(), n: 1, writes: func(yield func(write) bool) { yield(write{key: key}) }})
	if err != nil {
		t.Fatal(err)
	}
	check(299)
	check(299)
}
