package storage

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

var (
	metaSeed  = flag.Uint64("seed", 0, "seed of the metamorphic test; 0: random")
	metaSteps = flag.Int("steps", 600, "steps of the metamorphic test")
	metaRuns  = flag.Int("runs", 4, "runs of the metamorphic test")
)

// A model is what the store should hold: per object, rows by raw key.
type model map[uint32]map[string]string

func (m model) clone() model {
	out := model{}
	for id, rows := range m {
		out[id] = maps.Clone(rows)
	}
	return out
}

// metaTest drives a store and the model of it with the same random operations.
type metaTest struct {
	t       *testing.T
	r       *rand.Rand
	o       Options
	s       *Store
	epoch   Epoch
	tables  map[uint32][]*StateTable // two actors each
	descs   map[uint32]Desc
	nextID  uint32
	now     model           // open epoch included
	sealed  map[Epoch]model // not committed
	done    model           // at Committed
	meta    map[string]string
	metaNow map[Epoch]map[string]string
	snaps   []metaSnap
	drops   map[uint32]bool
	blocks  map[*block]bool // all that were ever seen
	folded  int             // of these that were taken apart
	log     []string
}

type metaSnap struct {
	s *Snapshot
	m model
}

func (m *metaTest) fatal(format string, args ...any) {
	m.t.Helper()
	n := max(0, len(m.log)-40)
	m.t.Fatalf("%s\nlast steps:\n%s", fmt.Sprintf(format, args...), strings.Join(m.log[n:], "\n"))
}

func (m *metaTest) open() {
	m.o.packRows, m.o.packBytes = []int{-1, 2, 2, 4, 4, 20, 0}[m.r.IntN(7)], []int{100, 1000, 0}[m.r.IntN(3)]
	s, err := Open(m.o)
	if err != nil {
		m.fatal("open: %v", err)
	}
	m.s = s
	if c := s.Committed(); c < m.epoch && len(m.sealed) == 0 {
		// Empty epochs leave no trace.
		m.log = append(m.log, fmt.Sprintf("committed %d after %d", c, m.epoch))
	}
	m.epoch = max(m.epoch, s.Committed())
	m.tables = map[uint32][]*StateTable{}
	for id, d := range m.descs {
		m.openTable(id, d)
	}
}

func (m *metaTest) openTable(id uint32, d Desc) {
	a, b := NewVnodeSet(d.Vnodes), NewVnodeSet(d.Vnodes)
	for v := range d.Vnodes {
		if m.r.IntN(2) == 0 {
			a.Add(uint16(v))
		} else {
			b.Add(uint16(v))
		}
	}
	m.tables[id] = []*StateTable{m.s.Table(d, a), m.s.Table(d, b)}
}

func (m *metaTest) create() {
	m.nextID++
	id := m.nextID
	d := Desc{ID: id, Name: fmt.Sprint("t", id), Tag: []byte{TagState, TagRows, TagIndex}[m.r.IntN(3)], Vnodes: 4,
		Schema: types.Schema{{Type: types.Int8}, {Type: types.Text}, {Type: types.Text}}, Key: []int{0, 1}, Dist: []int{0}}
	d.Exact = m.r.IntN(2) == 0
	m.descs[id] = d
	m.now[id] = map[string]string{}
	m.openTable(id, d)
}

func (m *metaTest) anyID() uint32 {
	ids := slices.Sorted(maps.Keys(m.descs))
	return ids[m.r.IntN(len(ids))]
}

func (m *metaTest) row() types.Row {
	v := types.NewString(fmt.Sprint(m.r.IntN(1000)))
	if m.r.IntN(60) == 0 {
		v = types.NewString(strings.Repeat("v", m.r.IntN(700<<10)))
	}
	text := types.NewString(strings.Repeat("k", m.r.IntN(3)))
	if m.r.IntN(10) == 0 {
		text = types.Datum{}
	}
	return types.Row{types.NewInt(m.r.Int64N(40)), text, v}
}

// rowKV makes key and value of a row and the actor it belongs to.
func (m *metaTest) rowKV(id uint32, row types.Row) (t *StateTable, key, val []byte) {
	cols := make([]chunk.Column, len(row))
	for j, f := range m.descs[id].Schema {
		cols[j] = chunk.Repeat(f.Type, row[j], 1)
	}
	c := m.tables[id][0].Codec()
	key, val = c.AppendKey(nil, cols, 0), c.AppendValue(nil, cols, 0)
	t = m.tables[id][0]
	if !t.vnodes.Has(VnodeOf(key)) {
		t = m.tables[id][1]
	}
	return t, key, val
}

func (m *metaTest) step() {
	r := m.r
	switch n := r.IntN(105); {
	case n >= 100: // many keys, as a load or a bulk update brings them
		id := m.anyID()
		ins, del := []float64{1, 0.5, 0}[r.IntN(3)], []float64{0, 0.2, 1}[r.IntN(3)]
		m.log = append(m.log, fmt.Sprint("bulk ", id, ins, del))
		from := r.Int64N(40)
		for k := range min(40-from, 1+r.Int64N(40)) {
			for j := range 4 {
				row := m.row()
				row[0], row[1] = types.NewInt(from+k), types.NewString(strings.Repeat("k", j))
				t, key, val := m.rowKV(id, row)
				var prev []byte
				if old, ok := m.now[id][string(key)]; ok {
					prev = []byte(old)
					if r.Float64() < del {
						val = nil
					}
				} else if r.Float64() >= ins {
					continue
				}
				if err := t.Replace(key, prev, val); err != nil {
					m.fatal("bulk: %v", err)
				}
				if val == nil {
					delete(m.now[id], string(key))
				} else {
					m.now[id][string(key)] = string(val)
				}
			}
		}
	case n < 30: // a chunk through both actors
		id := m.anyID()
		m.log = append(m.log, fmt.Sprint("chunk ", id))
		d := m.descs[id]
		b := []*chunk.Builder{chunk.NewBuilder(d.Schema.Types(), 1000), chunk.NewBuilder(d.Schema.Types(), 1000)}
		for range 1 + r.IntN(20) {
			row := m.row()
			t, key, val := m.rowKV(id, row)
			side := slices.Index(m.tables[id], t)
			if old, ok := m.now[id][string(key)]; ok {
				into := m.decode(t, key, []byte(old))
				b[side].AppendRow(chunk.Delete, into)
				delete(m.now[id], string(key))
				if r.IntN(2) == 0 {
					continue
				}
			}
			b[side].AppendRow(chunk.Insert, row)
			m.now[id][string(key)] = string(val)
		}
		for i, t := range m.tables[id] {
			if c := b[i].Take(); c != nil {
				if err := t.WriteChunk(c); err != nil {
					m.fatal("write chunk: %v", err)
				}
			}
		}
	case n < 45: // single keys
		id := m.anyID()
		t, key, val := m.rowKV(id, m.row())
		old, ok := m.now[id][string(key)]
		var err error
		switch k := r.IntN(4); {
		case k == 0:
			m.log = append(m.log, fmt.Sprintf("delete %d %x", id, key))
			err = t.Delete(key)
			delete(m.now[id], string(key))
		case k == 1:
			m.log = append(m.log, fmt.Sprintf("put %d %x %d", id, key, len(val)))
			err = t.Put(key, val)
			m.now[id][string(key)] = string(val)
		default:
			var prev []byte
			if ok {
				prev = []byte(old)
			}
			if r.IntN(3) == 0 {
				val = nil
			}
			m.log = append(m.log, fmt.Sprintf("replace %d %x %d", id, key, len(val)))
			err = t.Replace(key, prev, val)
			if val == nil {
				delete(m.now[id], string(key))
			} else {
				m.now[id][string(key)] = string(val)
			}
		}
		if err != nil {
			m.fatal("write: %v", err)
		}
	case n < 55: // point reads
		id := m.anyID()
		for range 5 {
			t, key, _ := m.rowKV(id, m.row())
			got, err := t.Get(key)
			want, ok := m.now[id][string(key)]
			if err != nil || (got != nil) != ok || string(got) != want {
				m.fatal("get %d %x: %d bytes, %v; want %d bytes %v", id, key, len(got), err, len(want), ok)
			}
		}
		t := m.tables[id][r.IntN(2)]
		var keys [][]byte
		for range r.IntN(20) {
			if o, key, _ := m.rowKV(id, m.row()); o == t {
				keys = append(keys, key)
			}
		}
		seen := 0
		err := t.GetMany(keys, func(i int, val []byte) {
			seen++
			want, ok := m.now[id][string(keys[i])]
			if (val != nil) != ok || string(val) != want {
				m.fatal("get many %d %x: %d bytes, want %d", id, keys[i], len(val), len(want))
			}
		})
		if err != nil || seen != len(keys) {
			m.fatal("get many: %v, %d of %d", err, seen, len(keys))
		}
	case n < 65: // scan, with writes meanwhile
		id := m.anyID()
		t := m.tables[id][r.IntN(2)]
		from, to := m.bounds(id)
		m.log = append(m.log, fmt.Sprintf("scan %d %x %x", id, from, to))
		write := r.IntN(2) == 0
		var last []byte
		n := 0
		for kv, err := range t.Scan(from, to) {
			if err != nil {
				m.fatal("scan: %v", err)
			}
			if want, ok := m.now[id][string(kv.Key)]; !ok || want != string(kv.Val) {
				m.fatal("scan %d %x: got %d bytes, want %d %v", id, kv.Key, len(kv.Val), len(want), ok)
			}
			if bytes.Compare(kv.Key, last) <= 0 || bytes.Compare(kv.Key, from) < 0 || to != nil && bytes.Compare(kv.Key, to) >= 0 {
				m.fatal("scan %d: %x after %x", id, kv.Key, last)
			}
			// Everything between two results must be absent.
			for k := range m.now[id] {
				if k > string(last) && k < string(kv.Key) && k >= string(from) && t.vnodes.Has(VnodeOf([]byte(k))) {
					m.fatal("scan %d: missed %x", id, k)
				}
			}
			last = append(last[:0], kv.Key...)
			n++
			if write {
				o, key, val := m.rowKV(id, m.row())
				if old, ok := m.now[id][string(key)]; ok && o == t {
					if err := t.Replace(key, []byte(old), nil); err != nil {
						m.fatal("%v", err)
					}
					delete(m.now[id], string(key))
				} else if o == t {
					if err := t.Replace(key, nil, val); err != nil {
						m.fatal("%v", err)
					}
					m.now[id][string(key)] = string(val)
				}
			}
			if r.IntN(30) == 0 {
				return
			}
		}
		for k := range m.now[id] {
			if k > string(last) && k >= string(from) && (to == nil || k < string(to)) && t.vnodes.Has(VnodeOf([]byte(k))) {
				m.fatal("scan %d: missed %x at the end", id, k)
			}
		}
	case n < 80: // barrier
		m.epoch++
		m.log = append(m.log, fmt.Sprint("seal ", m.epoch))
		for _, id := range slices.Sorted(maps.Keys(m.tables)) {
			for _, t := range m.tables[id] {
				if err := t.Commit(m.epoch); err != nil {
					m.fatal("seal: %v", err)
				}
			}
		}
		m.sealed[m.epoch] = m.now.clone()
		meta := maps.Clone(m.meta)
		if len(m.metaNow) > 0 {
			meta = maps.Clone(m.metaNow[slices.Max(slices.Collect(maps.Keys(m.metaNow)))])
		}
		for range r.IntN(3) {
			k, v := fmt.Sprint("key", r.IntN(5)), fmt.Sprint(r.IntN(100))
			if r.IntN(20) == 0 {
				v = strings.Repeat("v", 300<<10)
			}
			if r.IntN(4) == 0 {
				m.s.Stage(m.epoch, TagOffsets, []byte(k), nil)
				delete(meta, k)
			} else {
				m.s.Stage(m.epoch, TagOffsets, []byte(k), []byte(v))
				meta[k] = v
			}
		}
		m.metaNow[m.epoch] = meta
		if r.IntN(3) > 0 || len(m.sealed) > 3 {
			m.commit()
		}
	case n < 86: // snapshots
		if len(m.snaps) > 4 {
			i := r.IntN(len(m.snaps))
			m.snaps[i].s.Close()
			m.snaps = slices.Delete(m.snaps, i, i+1)
		}
		s, err := m.s.At(m.s.Committed())
		if err != nil {
			m.fatal("at: %v", err)
		}
		m.log = append(m.log, fmt.Sprint("snapshot ", s.Epoch()))
		m.snaps = append(m.snaps, metaSnap{s, m.done.clone()})
	case n < 92:
		for _, s := range m.snaps {
			m.checkSnap(s)
		}
	case n < 94:
		m.checkCommitted()
	case n < 96: // drop, create
		m.create()
		if len(m.descs) < 5 {
			return
		}
		id := m.anyID()
		m.log = append(m.log, fmt.Sprint("drop ", id))
		delete(m.descs, id)
		delete(m.now, id)
		delete(m.tables, id)
		m.drops[id] = true
		m.epoch++
		m.s.Drop(m.epoch, id)
		for _, id := range slices.Sorted(maps.Keys(m.tables)) {
			for _, t := range m.tables[id] {
				if err := t.Commit(m.epoch); err != nil {
					m.fatal("seal: %v", err)
				}
			}
		}
		m.sealed[m.epoch] = m.now.clone()
		if len(m.metaNow) > 0 {
			m.metaNow[m.epoch] = m.metaNow[slices.Max(slices.Collect(maps.Keys(m.metaNow)))]
		} else {
			m.metaNow[m.epoch] = m.meta
		}
		m.commit()
	case n < 98:
		m.restart()
	}
}

func (m *metaTest) bounds(id uint32) (from, to []byte) {
	if m.r.IntN(3) > 0 {
		_, from, _ = m.rowKV(id, m.row())
		from = from[:m.r.IntN(len(from)+1)]
	}
	if m.r.IntN(3) > 0 {
		_, to, _ = m.rowKV(id, m.row())
		if bytes.Compare(to, from) < 0 {
			from, to = to, from
		}
	}
	return from, to
}

func (m *metaTest) decode(t *StateTable, key, val []byte) types.Row {
	into := make([]chunk.Column, 3)
	for j, f := range t.d.Schema {
		into[j] = chunk.New(f.Type, 1)
	}
	if err := t.Codec().Decode(key, val, into); err != nil {
		m.fatal("decode: %v", err)
	}
	return chunk.Make(into...).Row(0)
}

func (m *metaTest) commit() {
	m.log = append(m.log, fmt.Sprint("commit ", m.epoch))
	if err := m.s.Commit(m.epoch); err != nil {
		m.fatal("commit: %v", err)
	}
	m.committed()
}

func (m *metaTest) committed() {
	if x := m.s.pins.index.Load(); x != nil {
		for _, o := range *x {
			for _, l := range o.vnodes {
				for _, b := range l {
					if b.removed == 0 {
						m.blocks[b] = true
					} else if b.removed == m.epoch {
						m.folded++
					}
				}
			}
		}
	}
	m.done, m.meta = m.sealed[m.epoch], m.metaNow[m.epoch]
	m.sealed, m.metaNow = map[Epoch]model{}, map[Epoch]map[string]string{}
}

// restart loses what is not committed.
func (m *metaTest) restart() {
	for _, s := range m.snaps {
		m.checkSnap(s)
		s.s.Close()
	}
	m.snaps = nil
	if b, ok := m.s.eng.(*badgerEngine); ok {
		if m.r.IntN(2) == 0 { // an epoch that got half way
			m.log = append(m.log, "torn epoch")
			n := 0
			err := b.load(batch{epoch: m.s.Committed() + 1, writes: func(yield func(write) bool) {
				for _, id := range slices.Sorted(maps.Keys(m.descs)) {
					for k := range m.done[id] {
						d := m.descs[id]
						w := write{key: append(objectPrefix(d.Tag, id), k...), val: []byte("torn")}
						if n++; n%2 == 0 {
							w.val = nil
						}
						if !yield(w) {
							return
						}
					}
				}
				yield(write{key: append(objectPrefix(TagRows, 1), "zz"...), val: []byte("torn")})
			}})
			if err != nil {
				m.fatal("%v", err)
			}
		}
		if err := m.s.Close(); err != nil {
			m.fatal("close: %v", err)
		}
	} else {
		switch m.r.IntN(3) {
		case 0:
			m.s.Close()
		case 1:
			m.o.Disk.Crash()
		case 2:
			survives := m.r.IntN(2) == 0
			m.o.Disk.CrashAt(1, survives)
			m.epoch++
			for _, id := range slices.Sorted(maps.Keys(m.tables)) {
				for _, t := range m.tables[id] {
					if err := t.Commit(m.epoch); err != nil {
						m.fatal("seal: %v", err)
					}
				}
			}
			meta := m.meta
			if len(m.metaNow) > 0 {
				meta = m.metaNow[slices.Max(slices.Collect(maps.Keys(m.metaNow)))]
			}
			m.sealed[m.epoch], m.metaNow[m.epoch] = m.now.clone(), meta
			m.s.Stage(m.epoch, TagCatalog, []byte("x"), []byte("y"))
			if err := m.s.Commit(m.epoch); err == nil {
				m.fatal("commit did not meet the crash")
			}
			if survives {
				m.committed()
			}
			if err := m.s.Commit(m.epoch + 1); err == nil {
				m.fatal("commit after a failure")
			}
		}
	}
	m.log = append(m.log, fmt.Sprint("restart at ", m.s.Committed()))
	m.sealed, m.metaNow = map[Epoch]model{}, map[Epoch]map[string]string{}
	m.now = m.done.clone()
	for id := range m.descs { // a table created after the last commit is empty again
		if m.now[id] == nil {
			m.now[id] = map[string]string{}
		}
	}
	for id := range m.now {
		if _, ok := m.descs[id]; !ok {
			delete(m.now, id)
		}
	}
	m.open()
	m.checkCommitted()
}

func (m *metaTest) checkSnap(s metaSnap) {
	for id, d := range m.descs {
		rows := s.m[id]
		from, to := m.bounds(id)
		want := slices.Sorted(func() iter.Seq[string] {
			return func(yield func(string) bool) {
				for k := range rows {
					if k >= string(from) && (to == nil || k < string(to)) && !yield(k) {
						return
					}
				}
			}
		}())
		i := 0
		for kv, err := range s.s.Scan(d, from, to) {
			if err != nil {
				m.fatal("snapshot %d: %v", s.s.Epoch(), err)
			}
			if i >= len(want) || want[i] != string(kv.Key) || rows[want[i]] != string(kv.Val) {
				m.fatal("snapshot %d of %d: row %d is %x", s.s.Epoch(), id, i, kv.Key)
			}
			i++
		}
		if i != len(want) {
			m.fatal("snapshot %d of %d: %d rows, want %d", s.s.Epoch(), id, i, len(want))
		}
		n := 0
		t := m.tables[id][0]
		for c, err := range s.s.ScanChunks(d, []int{2, 0}, from, to, 7) {
			if err != nil {
				m.fatal("%v", err)
			}
			for i := range c.Len() {
				if n >= len(want) {
					m.fatal("snapshot %d of %d: more than %d rows in chunks", s.s.Epoch(), id, n)
				}
				row := m.decode(t, []byte(want[n]), []byte(rows[want[n]]))
				if got := c.Row(i); got[0].Str() != row[2].Str() || got[1].Int() != row[0].Int() {
					m.fatal("snapshot %d of %d: row %d in chunks is of key %d, want %d", s.s.Epoch(), id, n, got[1].Int(), row[0].Int())
				}
				n++
			}
		}
		if n != len(want) {
			m.fatal("snapshot %d of %d: %d rows in chunks, want %d", s.s.Epoch(), id, n, len(want))
		}
		n = 0
		for c, err := range s.s.ScanChunks(d, nil, from, to, 7) {
			if err != nil {
				m.fatal("%v", err)
			}
			n += c.Len()
		}
		if n != len(want) && (d.exact() || from != nil || to != nil) {
			m.fatal("snapshot %d of %d: %d rows counted, want %d", s.s.Epoch(), id, n, len(want))
		}
		_, key, _ := m.rowKV(id, m.row())
		got, err := s.s.Get(d, key)
		if want, ok := rows[string(key)]; err != nil || (got != nil) != ok || string(got) != want {
			m.fatal("snapshot %d get: %v", s.s.Epoch(), err)
		}
	}
}

func (m *metaTest) checkCommitted() {
	m.log = append(m.log, "check")
	s, _ := m.s.Latest()
	defer s.Close()
	m.checkSnap(metaSnap{s, m.done})
	for id, d := range m.descs {
		if !d.exact() {
			continue
		}
		if got := m.s.Rows(id); got != int64(len(m.done[id])) {
			m.fatal("object %d: %d rows by digest, %d are there", id, got, len(m.done[id]))
		}
		size := 0
		for k, v := range m.done[id] {
			size += len(k) + len(v)
		}
		if got := m.s.Bytes(id); got != int64(size) {
			m.fatal("object %d: %d bytes by digest, %d are there", id, got, size)
		}
	}
	if err := m.s.Scrub(context.Background()); err != nil {
		m.fatal("scrub: %v", err)
	}
	got := map[string]string{}
	for kv, err := range m.s.Meta(TagOffsets, []byte("key")) {
		if err != nil {
			m.fatal("%v", err)
		}
		got[string(kv.Key)] = string(kv.Val)
	}
	if !maps.Equal(got, m.meta) {
		m.fatal("metadata is %d keys, want %d", len(got), len(m.meta))
	}
}

func TestMetamorphic(t *testing.T) {
	for _, engine := range []string{"memory", "badger"} {
		t.Run(engine, func(t *testing.T) {
			for range *metaRuns {
				seed := *metaSeed
				if seed == 0 {
					seed = rand.Uint64()
				}
				t.Logf("seed %d", seed)
				m := &metaTest{t: t, r: rand.New(rand.NewPCG(seed, 7)), now: model{}, done: model{}, meta: map[string]string{},
					sealed: map[Epoch]model{}, metaNow: map[Epoch]map[string]string{}, descs: map[uint32]Desc{}, drops: map[uint32]bool{}, blocks: map[*block]bool{}}
				if engine == "memory" {
					m.o = Options{Disk: NewMemDisk()}
				} else {
					m.o = Options{Dir: filepath.Join(t.TempDir(), "data"), Reserve: 1}
				}
				m.open()
				m.create()
				m.create()
				for range *metaSteps {
					m.step()
				}
				m.restart()
				if err := m.s.Close(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d blocks, %d taken apart", len(m.blocks), m.folded)
				if m.s.DirtyBytes() < 0 {
					t.Fatalf("dirty bytes %d", m.s.DirtyBytes())
				}
			}
		})
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.At(5); sqlerr.Code(err) != sqlerr.NotPrepared {
		t.Error(err)
	}
	d := Desc{ID: 1, Tag: TagRows, Schema: types.Schema{{Type: types.Text}}, Key: []int{0}}
	tab := s.Table(d, Full(1))
	long := chunk.Make(chunk.Repeat(types.Text, types.NewString(strings.Repeat("x", 9000)), 1))
	if err := tab.WriteChunk(long); sqlerr.Code(err) != sqlerr.ProgramLimit {
		t.Error(err)
	}
	twice := chunk.Make(chunk.Repeat(types.Text, types.NewString("x"), 2))
	if err := tab.WriteChunk(twice); err == nil || !strings.Contains(err.Error(), "contradicts") {
		t.Error(err)
	}
}
