package batch

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A scan reads a relation's committed rows, all or those of key ranges, under the
// overlay where there is one.
type scan struct {
	env    *Env
	plan   *plan.Scan
	desc   storage.Desc
	codec  *storage.Codec
	over   *Overlay
	ranges []span
	at     int
	next   func() (*chunk.Chunk, error, bool)
	stop   func()
	ready  bool
}

// A span of encoded keys; point: it can hold one row.
type span struct {
	from, to []byte
	point    bool
}

func newScan(n *plan.Scan, env *Env) (Iterator, error) {
	s := &scan{env: env, plan: n, desc: env.Desc(n.Rel)}
	s.codec = storage.NewCodec(s.desc)
	if env.Overlay != nil {
		s.over = env.Overlay(n.Rel)
	}
	return s, nil
}

func (s *scan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !s.ready {
		s.ready = true
		if err := s.spans(); err != nil {
			return nil, err
		}
	}
	for {
		if err := stopped(ctx); err != nil {
			return nil, err
		}
		if s.next == nil {
			if s.at == len(s.ranges) {
				return nil, nil
			}
			r := s.ranges[s.at]
			s.at++
			if r.point {
				c, err := s.points(r)
				if err != nil || c != nil {
					return c, err
				}
				continue
			}
			seq := s.rows(r)
			s.next, s.stop = iter.Pull2(seq)
		}
		c, err, ok := s.next()
		if err != nil {
			return nil, err
		}
		if ok && c.Len() > 0 {
			return c, nil
		}
		if !ok {
			s.stop()
			s.next, s.stop = nil, nil
		}
	}
}

func (s *scan) Close() {
	if s.stop != nil {
		s.stop()
		s.next, s.stop = nil, nil
	}
	s.at = len(s.ranges)
	s.ready = true
}

// rows reads one span.
func (s *scan) rows(r span) iter.Seq2[*chunk.Chunk, error] {
	if s.over == nil || s.over.Len() == 0 {
		return s.env.Snap.ScanChunks(s.desc, s.plan.Cols, r.from, r.to, s.env.ChunkSize)
	}
	return func(yield func(*chunk.Chunk, error) bool) {
		typs := s.plan.Schema().Types()
		b := chunk.NewBuilder(typs, s.env.ChunkSize)
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
		ok2, oval, more := next()
		for kv, err := range s.env.Snap.Scan(s.desc, r.from, r.to) {
			if err != nil {
				yield(nil, err)
				return
			}
			for more && ok2 < string(kv.Key) {
				if oval != nil && !emit([]byte(ok2), oval) {
					return
				}
				ok2, oval, more = next()
			}
			if more && ok2 == string(kv.Key) {
				continue // the overlay's row comes next
			}
			if !emit(kv.Key, kv.Val) {
				return
			}
		}
		for more {
			if oval != nil && !emit([]byte(ok2), oval) {
				return
			}
			ok2, oval, more = next()
		}
		if c := b.Take(); c != nil {
			yield(c, nil)
		}
	}
}

// points reads this and the following single-row spans together.
func (s *scan) points(r span) (*chunk.Chunk, error) {
	keys := [][]byte{r.from}
	for s.at < len(s.ranges) && s.ranges[s.at].point && len(keys) < s.env.ChunkSize {
		keys = append(keys, s.ranges[s.at].from)
		s.at++
	}
	typs := s.plan.Schema().Types()
	cols := make([]chunk.Column, len(typs))
	for i, t := range typs {
		cols[i] = chunk.New(t, len(keys))
	}
	dec := s.codec.NewDecoder(s.plan.Cols)
	n := 0
	var derr error
	add := func(key, val []byte) {
		if val == nil || derr != nil {
			return
		}
		n++
		derr = dec.Decode(key, val, cols)
	}
	var miss [][]byte
	for _, k := range keys {
		if s.over != nil {
			if val, ok := s.over.Get(k); ok {
				add(k, val)
				continue
			}
		}
		miss = append(miss, k)
	}
	if err := s.env.Snap.GetMany(s.desc, miss, func(i int, val []byte) { add(miss[i], val) }); err != nil {
		return nil, err
	}
	if derr != nil || n == 0 {
		return nil, derr
	}
	return &chunk.Chunk{Cols: cols, N: n}, nil
}

// spans turns the plan's key ranges into spans of encoded keys, in key order and
// without duplicates.
func (s *scan) spans() error {
	if s.plan.Ranges == nil {
		s.ranges = []span{{}}
		return nil
	}
	for _, r := range s.plan.Ranges {
		if err := s.span(r); err != nil {
			return err
		}
	}
	slices.SortFunc(s.ranges, func(a, b span) int { return bytes.Compare(a.from, b.from) })
	// Overlapping ranges (k IN (1, 1), or k = 1 OR k < 5) must give each row once.
	out := s.ranges[:0]
	for _, r := range s.ranges {
		if len(out) > 0 {
			last := &out[len(out)-1]
			if last.point && r.point && bytes.Equal(last.from, r.from) {
				continue
			}
			if !last.point && (last.to == nil || bytes.Compare(r.from, last.to) < 0) {
				if last.to != nil && (r.to == nil || bytes.Compare(r.to, last.to) > 0) && !r.point {
					last.to = r.to
				}
				continue
			}
			if last.point && !r.point && bytes.Equal(last.from, r.from) {
				*last = r
				continue
			}
		}
		out = append(out, r)
	}
	s.ranges = out
	return nil
}

// span adds the spans of one key range: one for each vnode that can hold its rows.
func (s *scan) span(r plan.KeyRange) error {
	keyType := func(i int) types.Type { return s.desc.Schema[s.desc.Key[i]].Type }
	eq := make([]chunk.Column, len(r.Eq))
	for i, e := range r.Eq {
		d, err := expr.EvalConst(s.env.Ctx, e)
		if err != nil {
			return err
		}
		if d.IsNull() {
			return nil
		}
		eq[i] = chunk.Repeat(keyType(i).Base(), d, 1)
	}
	bound := func(e expr.Expr) ([]chunk.Column, bool, error) {
		if e == nil {
			return nil, true, nil
		}
		d, err := expr.EvalConst(s.env.Ctx, e)
		if err != nil || d.IsNull() {
			return nil, false, err
		}
		return append(slices.Clip(eq), chunk.Repeat(keyType(len(eq)).Base(), d, 1)), true, nil
	}
	lo, ok, err := bound(r.Lo)
	if err != nil || !ok {
		return err
	}
	hi, ok, err := bound(r.Hi)
	if err != nil || !ok {
		return err
	}
	loInc, hiInc := r.LoInc, r.HiInc
	ranged := r.Lo != nil || r.Hi != nil
	desc := ranged && len(s.desc.Desc) > len(eq) && s.desc.Desc[len(eq)]
	if desc {
		lo, hi, loInc, hiInc = hi, lo, hiInc, loInc
	}
	var null []chunk.Column
	if ranged {
		null = append(slices.Clip(eq), chunk.Nulls(keyType(len(eq)).Base(), 1))
	}
	for _, v := range s.vnodes(eq) {
		prefix := s.codec.AppendPrefix(nil, v, eq, 0)
		if !ranged {
			if len(eq) == len(s.desc.Key) {
				s.ranges = append(s.ranges, span{from: prefix, point: true})
			} else {
				s.ranges = append(s.ranges, span{from: prefix, to: storage.NextPrefix(prefix)})
			}
			continue
		}
		sp := span{from: prefix, to: storage.NextPrefix(prefix)}
		switch {
		case lo != nil:
			sp.from = s.codec.AppendPrefix(nil, v, lo, 0)
			if !loInc {
				sp.from = storage.NextPrefix(sp.from)
			}
		case desc: // NULLs come first and are not in any range
			sp.from = storage.NextPrefix(s.codec.AppendPrefix(nil, v, null, 0))
		}
		switch {
		case hi != nil:
			sp.to = s.codec.AppendPrefix(nil, v, hi, 0)
			if hiInc {
				sp.to = storage.NextPrefix(sp.to)
			}
		case !desc: // NULLs come last
			sp.to = s.codec.AppendPrefix(nil, v, null, 0)
		}
		if bytes.Compare(sp.from, sp.to) < 0 {
			s.ranges = append(s.ranges, sp)
		}
	}
	return nil
}

// vnodes lists the vnodes that can hold rows with the given leading key values.
func (s *scan) vnodes(eq []chunk.Column) []uint16 {
	if len(s.desc.Dist) == 0 || s.desc.Vnodes <= 1 {
		return []uint16{0}
	}
	cols := make([]chunk.Column, len(s.desc.Schema))
	known := true
	for _, d := range s.desc.Dist {
		i := slices.Index(s.desc.Key, d)
		if i < 0 || i >= len(eq) {
			known = false
			break
		}
		cols[d] = eq[i]
	}
	if known {
		return chunk.Vnodes(cols, s.desc.Dist, 1, s.desc.Vnodes)
	}
	out := make([]uint16, s.desc.Vnodes)
	for v := range out {
		out[v] = uint16(v)
	}
	return out
}

// A systemScan reads a system relation, computed when it is read.
type systemScan struct {
	env  *Env
	scan *plan.Scan
	done bool
}

func (s *systemScan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if s.done {
		return nil, nil
	}
	s.done = true
	c, err := s.env.System(ctx, s.scan.Rel, s.scan.Cols)
	if err != nil || c.Len() == 0 {
		return nil, err
	}
	return c, nil
}

func (s *systemScan) Close() { s.done = true }
