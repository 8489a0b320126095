package batch

import (
	"context"
	"iter"
	"runtime"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// An access is what scans of one plan node have in common: a node may be run many times.
type access struct {
	desc  storage.Desc
	codec *storage.Codec
	typs  []types.Type
	keys  []types.Type // of the key columns
}

func (e *Env) accessOf(n *plan.Scan) *access {
	if a := e.access[n]; a != nil {
		return a
	}
	a := &access{desc: e.Desc(n.Rel), typs: e.typesOf(n)}
	a.codec = storage.NewCodec(a.desc)
	for _, k := range a.desc.Key {
		a.keys = append(a.keys, a.desc.Schema[k].Type.Base())
	}
	if e.access == nil {
		e.access = map[*plan.Scan]*access{}
	}
	e.access[n] = a
	return a
}

func (e *Env) overlayOf(n *plan.Scan) *Overlay {
	if e.Overlay == nil {
		return nil
	}
	if o := e.Overlay(n.Rel); o != nil && o.Len() > 0 {
		return o
	}
	return nil
}

// A scan reads a relation's committed rows, all or those of key ranges, under the
// overlay where there is one.
type scan struct {
	*access
	env   *Env
	plan  *plan.Scan
	over  *Overlay // nil: none
	spans []span   // still to be read
	next  func() (*chunk.Chunk, error, bool)
	stop  func()
	ready bool
}

func newScan(n *plan.Scan, env *Env) (Iterator, error) {
	s := &scan{access: env.accessOf(n), env: env, plan: n, over: env.overlayOf(n)}
	if n.Ranges == nil && s.over == nil && s.desc.Vnodes > 1 && len(s.desc.Dist) > 0 && runtime.GOMAXPROCS(0) > 1 {
		return &parallelScan{access: s.access, snap: env.Snap, cols: n.Cols, size: env.ChunkSize}, nil
	}
	return s, nil
}

func (s *scan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !s.ready {
		s.ready = true
		var err error
		if s.spans, err = s.env.spans(s.access, s.plan.Ranges); err != nil {
			return nil, err
		}
	}
	for s.next == nil {
		if err := stopped(ctx); err != nil || len(s.spans) == 0 {
			return nil, err
		}
		if !s.spans[0].point {
			s.next, s.stop = iter.Pull2(s.rows(s.spans))
			s.spans = nil
			break
		}
		if c, err := s.points(); c != nil || err != nil {
			return c, err
		}
	}
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	c, err, ok := s.next()
	if err != nil || ok {
		return c, err
	}
	s.Close()
	return nil, nil
}

func (s *scan) Close() {
	if s.stop != nil {
		s.stop()
		s.next, s.stop = nil, nil
	}
	s.spans, s.ready = nil, true
}

// rows reads spans one after the other.
func (s *scan) rows(spans []span) iter.Seq2[*chunk.Chunk, error] {
	if len(spans) == 1 && s.over == nil {
		return s.env.Snap.ScanChunks(s.desc, s.plan.Cols, spans[0].from, spans[0].to, s.env.ChunkSize)
	}
	return func(yield func(*chunk.Chunk, error) bool) {
		m := &mergedScan{scan: s, yield: yield, rows: chunk.NewBuilder(s.typs, min(s.env.ChunkSize, 16)), dec: s.codec.NewDecoder(s.plan.Cols)}
		for _, sp := range spans {
			if sp.point {
				sp.to = append(append([]byte(nil), sp.from...), 0)
			}
			if !m.span(sp) {
				return
			}
		}
		if c := m.rows.Take(); c != nil {
			yield(c, nil)
		}
	}
}

// A mergedScan reads spans of the snapshot under the overlay into chunks. Its
// methods return false when the scan is over.
type mergedScan struct {
	*scan
	yield func(*chunk.Chunk, error) bool
	rows  *chunk.Builder
	dec   *storage.Decoder
	steps int
}

func (m *mergedScan) fail(err error) bool {
	m.yield(nil, err)
	return false
}

// live looks at the clock now and then: empty spans and deleted rows give nothing.
func (m *mergedScan) live() bool {
	if m.steps++; m.steps&63 == 0 {
		if err := stopped(m.env.goCtx); err != nil {
			return m.fail(err)
		}
	}
	return true
}

func (m *mergedScan) row(key, val []byte) bool {
	if err := m.dec.Decode(key, val, m.rows.Cols); err != nil {
		return m.fail(err)
	}
	c := m.rows.Done(chunk.Insert)
	if c == nil {
		return true
	}
	if c.N < m.env.ChunkSize { // few rows are as common as many: the first chunk is small
		m.rows = chunk.NewBuilder(m.typs, m.env.ChunkSize)
	}
	return m.yield(c, nil)
}

func (m *mergedScan) span(r span) bool {
	if !m.live() {
		return false
	}
	if m.over == nil {
		for kv, err := range m.env.Snap.Scan(m.desc, r.from, r.to) {
			if err != nil {
				return m.fail(err)
			}
			if !m.row(kv.Key, kv.Val) {
				return false
			}
		}
		return true
	}
	next, stop := iter.Pull2(m.over.Scan(r.from, r.to))
	defer stop()
	okey, oval, more := next()
	// below gives the overlay's rows up to key (nil: all). mine: it has the key, which then is not the snapshot's to give.
	below := func(key []byte) (mine, ok bool) {
		for more && (key == nil || okey <= string(key)) {
			mine = key != nil && okey == string(key)
			if !m.live() || oval != nil && !m.row([]byte(okey), oval) {
				return mine, false
			}
			okey, oval, more = next()
		}
		return mine, true
	}
	for kv, err := range m.env.Snap.Scan(m.desc, r.from, r.to) {
		if err != nil {
			return m.fail(err)
		}
		mine, ok := below(kv.Key)
		if !ok || !mine && !m.row(kv.Key, kv.Val) {
			return false
		}
	}
	_, ok := below(nil)
	return ok
}

// points reads the single-row spans that come next.
func (s *scan) points() (*chunk.Chunk, error) {
	var keys [][]byte
	for len(s.spans) > 0 && s.spans[0].point && len(keys) < s.env.ChunkSize {
		keys = append(keys, s.spans[0].from)
		s.spans = s.spans[1:]
	}
	cols, found, err := s.get(s.env, s.plan.Cols, s.over, keys)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &chunk.Chunk{Cols: cols, N: len(found)}, nil
}

// get reads rows by their keys: cols of those that are there, and which keys these are.
func (a *access) get(env *Env, cols []int, over *Overlay, keys [][]byte) (out []chunk.Column, found []int, err error) {
	out = make([]chunk.Column, len(cols))
	for i, t := range a.typs {
		out[i] = chunk.New(t, len(keys))
	}
	decode := a.codec.NewDecoder(cols).Decode
	if len(keys) == 1 { // without a block of memory for strings
		decode = func(key, val []byte, into []chunk.Column) error { return a.codec.DecodeCols(key, val, cols, into) }
	}
	var derr error
	add := func(i int, val []byte) {
		if val == nil || derr != nil {
			return
		}
		found = append(found, i)
		derr = decode(keys[i], val, out)
	}
	if over == nil {
		if err := env.Snap.GetMany(a.desc, keys, add); err != nil {
			return nil, nil, err
		}
		return out, found, derr
	}
	var ask [][]byte
	var at []int
	for i, k := range keys {
		if val, ok := over.Get(k); ok {
			add(i, val)
			continue
		}
		ask, at = append(ask, k), append(at, i)
	}
	if err := env.Snap.GetMany(a.desc, ask, func(i int, val []byte) { add(at[i], val) }); err != nil {
		return nil, nil, err
	}
	return out, found, derr
}
