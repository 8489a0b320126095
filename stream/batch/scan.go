package batch

import (
	"context"
	"iter"

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
	return &scan{access: env.accessOf(n), env: env, plan: n, over: env.overlayOf(n)}, nil
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

// rows reads spans one after the other. Where there are many, which then tend to
// have few rows each, small chunks are put together.
func (s *scan) rows(spans []span) iter.Seq2[*chunk.Chunk, error] {
	if len(spans) == 1 {
		return s.span(spans[0])
	}
	return func(yield func(*chunk.Chunk, error) bool) {
		var held *grower
		for _, sp := range spans {
			if err := stopped(s.env.goCtx); err != nil {
				yield(nil, err)
				return
			}
			for c, err := range s.span(sp) {
				if err != nil {
					yield(nil, err)
					return
				}
				if c.Len() < s.env.ChunkSize/2 {
					if held == nil {
						held = newGrower(s.typs, s.env.ChunkSize/2)
					}
					if held.add(c); held.n < s.env.ChunkSize/2 {
						continue
					}
					c, held = held.chunk(), nil
				}
				if !yield(c, nil) {
					return
				}
			}
		}
		if held != nil {
			yield(held.chunk(), nil)
		}
	}
}

// span reads one span.
func (s *scan) span(r span) iter.Seq2[*chunk.Chunk, error] {
	if r.point {
		r.to = append(append([]byte(nil), r.from...), 0)
	}
	if s.over == nil {
		return s.env.Snap.ScanChunks(s.desc, s.plan.Cols, r.from, r.to, s.env.ChunkSize)
	}
	return s.merged(r)
}

// merged reads one span of the snapshot under the overlay.
func (s *scan) merged(r span) iter.Seq2[*chunk.Chunk, error] {
	return func(yield func(*chunk.Chunk, error) bool) {
		b := chunk.NewBuilder(s.typs, s.env.ChunkSize)
		dec := s.codec.NewDecoder(s.plan.Cols)
		emit := func(key, val []byte) bool {
			if err := dec.Decode(key, val, b.Cols); err != nil {
				yield(nil, err)
				return false
			}
			c := b.Done(chunk.Insert)
			return c == nil || yield(c, nil)
		}
		next, stop := iter.Pull2(s.over.Scan(r.from, r.to))
		defer stop()
		steps := 0
		// below gives the overlay's rows up to key (all: nil), which is not the snapshot's to give if they have it.
		okey, oval, more := next()
		below := func(key []byte) (mine, ok bool) {
			for more && (key == nil || okey <= string(key)) {
				if steps++; steps&1023 == 0 { // long runs of deleted rows give nothing
					if err := stopped(s.env.goCtx); err != nil {
						yield(nil, err)
						return false, false
					}
				}
				mine = key != nil && okey == string(key)
				if oval != nil && !emit([]byte(okey), oval) {
					return mine, false
				}
				okey, oval, more = next()
			}
			return mine, true
		}
		for kv, err := range s.env.Snap.Scan(s.desc, r.from, r.to) {
			if err != nil {
				yield(nil, err)
				return
			}
			mine, ok := below(kv.Key)
			if !ok || !mine && !emit(kv.Key, kv.Val) {
				return
			}
		}
		if _, ok := below(nil); !ok {
			return
		}
		if c := b.Take(); c != nil {
			yield(c, nil)
		}
	}
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
	dec := a.codec.NewDecoder(cols)
	var derr error
	add := func(i int, val []byte) {
		if val == nil || derr != nil {
			return
		}
		found = append(found, i)
		derr = dec.Decode(keys[i], val, out)
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
