package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

func buildSort(n *plan.Sort, env *Env) (Iterator, error) {
	if d, ok := n.Input.(*plan.Distinct); ok && d.On != nil {
		if by, whole := distinctOrder(d); whole && startsWith(by, n.By) {
			return build(d, env) // DISTINCT ON comes out in its order
		}
	}
	in, err := build(n.Input, env)
	if err != nil {
		return nil, err
	}
	return &orderBy{in: in, s: newSorter(env, n.By, env.typesOf(n))}, nil
}

func startsWith(by, prefix []expr.Order) bool {
	if len(prefix) > len(by) {
		return false
	}
	for i, o := range prefix {
		if by[i] != o {
			return false
		}
	}
	return true
}

// orderBy is ORDER BY.
type orderBy struct {
	in     Iterator
	s      *sorter
	sorted bool
}

func (o *orderBy) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !o.sorted {
		o.sorted = true
		if err := o.s.fill(ctx, o.in); err != nil {
			return nil, err
		}
		o.in.Close()
	}
	return o.s.Next(ctx)
}

func (o *orderBy) Close() {
	o.in.Close()
	o.s.close()
	o.sorted = true
}

// A sorter orders rows by merging sorted runs: short ones, so that sorting one never
// takes long, in memory or on disk. Rows that are equal keep their order. Use: add,
// then done, then Next until it gives nil.
type sorter struct {
	env   *Env
	by    []expr.Order
	typs  []types.Type
	share *share // nil: nothing added yet, or closed
	cur   *grower
	runs  []*sortRun // in memory, of rows that came after those on disk
	bytes int64      // of runs
	file  *tempFile
	disk  []*rowList
	heap  []*mergeHead
}

const (
	runRows  = 32 << 10
	runBytes = 8 << 20
	// maxMerge bounds the runs that are merged at a time: each has a block in memory.
	maxMerge = 64
)

// A sortRun is rows and their order.
type sortRun struct {
	rows *chunk.Chunk
	keys []sortKey
}

func newSorter(env *Env, by []expr.Order, typs []types.Type) *sorter {
	return &sorter{env: env, by: by, typs: typs}
}

// fill adds all rows of in and is done.
func (s *sorter) fill(ctx context.Context, in source) error {
	for {
		c, err := in.Next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			return s.done(ctx)
		}
		if err := s.add(ctx, c); err != nil {
			return err
		}
	}
}

func (s *sorter) add(ctx context.Context, c *chunk.Chunk) error {
	if s.share == nil {
		s.share = s.env.mem.open()
	}
	// A run takes parts of a chunk that is longer than a run should be.
	for from := 0; from < c.Len(); from += runRows {
		part := c
		if c.Len() > runRows {
			part = c.Slice(from, min(from+runRows, c.Len()))
		}
		if s.cur == nil {
			s.cur = newGrower(s.typs, part.Len())
		}
		s.cur.add(part)
		if s.cur.n >= runRows || s.cur.bytes >= runBytes {
			s.endRun()
		}
		held := s.bytes
		if s.cur != nil {
			held += s.cur.bytes
		}
		if s.share.set(held) {
			s.endRun()
			if err := s.spill(ctx); err != nil {
				return err
			}
		}
	}
	return stopped(ctx)
}

// endRun sorts what was added last.
func (s *sorter) endRun() {
	if s.cur == nil {
		return
	}
	rows := s.cur.chunk()
	s.runs = append(s.runs, &sortRun{rows, sortRows(orderColumns(rows.Cols, s.by), rows.N, s.by)})
	s.bytes += s.cur.bytes + 16*int64(rows.N)
	s.cur = nil
}

// spill merges the runs in memory into one on disk.
func (s *sorter) spill(ctx context.Context) error {
	if len(s.runs) == 0 {
		return nil
	}
	if s.file == nil {
		f, err := s.env.tempFile()
		if err != nil {
			return err
		}
		f.refs++ // the sorter's own
		s.file = f
	}
	heads := make([]*mergeHead, len(s.runs))
	for i, r := range s.runs {
		heads[i] = &mergeHead{seq: i, cols: r.rows.Cols, cmp: orderColumns(r.rows.Cols, s.by), keys: r.keys}
	}
	out, err := s.mergeTo(ctx, heads)
	if err != nil {
		return err
	}
	s.disk = append(s.disk, out)
	s.runs, s.bytes = nil, 0
	s.share.set(0)
	return nil
}

// mergeTo merges runs into a list.
func (s *sorter) mergeTo(ctx context.Context, heads []*mergeHead) (*rowList, error) {
	out := s.file.list(s.typs)
	s.heap = nil
	for _, h := range heads {
		s.push(h)
	}
	for {
		c, err := s.merged(ctx, blockRows)
		if err != nil {
			out.close()
			return nil, err
		}
		if c == nil {
			return out, nil
		}
		if err := out.write(c); err != nil {
			out.close()
			return nil, err
		}
	}
}

// done ends adding.
func (s *sorter) done(ctx context.Context) error {
	s.endRun()
	for len(s.disk) > maxMerge {
		if err := s.mergeDisk(ctx); err != nil {
			return err
		}
	}
	heads, err := s.diskHeads(ctx, s.disk)
	if err != nil {
		return err
	}
	s.heap = nil
	for _, r := range s.runs {
		heads = append(heads, &mergeHead{seq: len(heads), cols: r.rows.Cols, cmp: orderColumns(r.rows.Cols, s.by), keys: r.keys})
	}
	for _, h := range heads {
		s.push(h)
	}
	return nil
}

// mergeDisk makes one run of each maxMerge neighbours.
func (s *sorter) mergeDisk(ctx context.Context) error {
	old := s.disk
	s.disk = nil
	for len(old) > 0 {
		group := old[:min(maxMerge, len(old))]
		heads, err := s.diskHeads(ctx, group)
		var out *rowList
		if err == nil {
			out, err = s.mergeTo(ctx, heads)
		}
		if err != nil {
			s.disk = append(s.disk, old...) // for close
			return err
		}
		s.disk = append(s.disk, out)
		for _, l := range group {
			l.close()
		}
		old = old[len(group):]
	}
	return nil
}

func (s *sorter) diskHeads(ctx context.Context, lists []*rowList) ([]*mergeHead, error) {
	var heads []*mergeHead
	for i, l := range lists {
		h := &mergeHead{seq: i, file: l.reader()}
		if err := h.refill(ctx, s.by); err != nil {
			return nil, err
		}
		if h.keys != nil {
			heads = append(heads, h)
		}
	}
	return heads, nil
}

// Next gives the next rows in order.
func (s *sorter) Next(ctx context.Context) (*chunk.Chunk, error) {
	return s.merged(ctx, s.env.ChunkSize)
}

func (s *sorter) close() {
	s.share.close()
	for _, l := range s.disk {
		l.close()
	}
	if s.file != nil {
		s.file.release()
	}
	*s = sorter{env: s.env, by: s.by, typs: s.typs}
}

// A mergeHead is a run being merged.
type mergeHead struct {
	seq  int // of the run: rows of earlier ones come first
	cols []chunk.Column
	cmp  []chunk.Column // cols, comparable
	keys []sortKey      // in order
	at   int
	file *rowReader // of a run on disk: where further rows are
	slot int        // of cols among the columns that rows are taken from now; -1: not there
}

// refill reads the next block of a run on disk; keys is nil at its end.
func (h *mergeHead) refill(ctx context.Context, by []expr.Order) error {
	h.keys, h.at = nil, 0
	if h.file == nil {
		return nil
	}
	c, err := h.file.Next(ctx)
	if err != nil || c == nil {
		return err
	}
	h.cols, h.cmp = c.Cols, orderColumns(c.Cols, by)
	h.keys, _ = sortKeys(h.cmp, c.N, by)
	return nil
}

func (s *sorter) less(a, b *mergeHead) bool {
	x, y := &a.keys[a.at], &b.keys[b.at]
	switch {
	case x.class != y.class:
		return x.class < y.class
	case x.word != y.word:
		return x.word < y.word
	}
	if d := compareBy(a.cmp, int(x.row), b.cmp, int(y.row), s.by); d != 0 {
		return d < 0
	}
	return a.seq < b.seq
}

func (s *sorter) push(h *mergeHead) {
	s.heap = append(s.heap, h)
	i := len(s.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !s.less(s.heap[i], s.heap[up]) {
			return
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

// down restores the heap after its first head moved on.
func (s *sorter) down() {
	i := 0
	for {
		c := 2*i + 1
		if c >= len(s.heap) {
			return
		}
		if c+1 < len(s.heap) && s.less(s.heap[c+1], s.heap[c]) {
			c++
		}
		if !s.less(s.heap[c], s.heap[i]) {
			return
		}
		s.heap[i], s.heap[c] = s.heap[c], s.heap[i]
		i = c
	}
}

// merged takes the next rows off the heap, nil at the end.
func (s *sorter) merged(ctx context.Context, size int) (*chunk.Chunk, error) {
	if len(s.heap) == 0 {
		return nil, stopped(ctx)
	}
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	if len(s.heap) == 1 { // no need to look at what comes next
		h := s.heap[0]
		to := min(h.at+size, len(h.keys))
		sel := make([]int, to-h.at)
		for i := range sel {
			sel[i] = int(h.keys[h.at+i].row)
		}
		out := (&chunk.Chunk{Cols: h.cols, N: len(h.keys)}).Gather(sel)
		if h.at = to; to == len(h.keys) {
			if err := h.refill(ctx, s.by); err != nil {
				return nil, err
			}
			if h.keys == nil {
				s.heap = nil
			}
		}
		return out, nil
	}
	var t taker
	for _, h := range s.heap {
		h.slot = -1
	}
	for n := 0; n < size && len(s.heap) > 0; n++ {
		h := s.heap[0]
		if h.slot < 0 {
			h.slot = t.source(h.cols)
		}
		t.take(h.slot, int(h.keys[h.at].row))
		if h.at++; h.at == len(h.keys) {
			if err := h.refill(ctx, s.by); err != nil {
				return nil, err
			}
			h.slot = -1
			if h.keys == nil {
				last := len(s.heap) - 1
				s.heap[0] = s.heap[last]
				s.heap = s.heap[:last]
			}
		}
		s.down()
	}
	return t.chunk(s.typs), nil
}

// A taker puts rows of several chunks together, in the order they are taken.
type taker struct {
	from [][]chunk.Column
	slot []int32
	row  []int32
}

func (t *taker) source(cols []chunk.Column) int {
	t.from = append(t.from, cols)
	return len(t.from) - 1
}

func (t *taker) take(slot, row int) {
	t.slot, t.row = append(t.slot, int32(slot)), append(t.row, int32(row))
}

func (t *taker) chunk(typs []types.Type) *chunk.Chunk {
	out := &chunk.Chunk{Cols: make([]chunk.Column, len(typs)), N: len(t.row)}
	for j, ty := range typs {
		switch ty.Kind() {
		case types.KindInt:
			out.Cols[j] = takeVec[int64](t, j, ty)
		case types.KindString:
			out.Cols[j] = takeVec[string](t, j, ty)
		case types.KindFloat:
			out.Cols[j] = takeVec[float64](t, j, ty)
		case types.KindBool:
			out.Cols[j] = takeVec[bool](t, j, ty)
		case types.KindDecimal:
			out.Cols[j] = takeVec[types.Decimal](t, j, ty)
		case types.KindInterval:
			out.Cols[j] = takeVec[types.Interval](t, j, ty)
		default:
			out.Cols[j] = takeVec[*types.List](t, j, ty)
		}
	}
	return out
}

func takeVec[T any](t *taker, j int, ty types.Type) chunk.Column {
	vecs := make([]*chunk.Vec[T], len(t.from))
	null := false
	for i, cols := range t.from {
		vecs[i] = chunk.Of[T](cols[j])
		null = null || vecs[i].Nulls != nil
	}
	data := make([]T, len(t.row))
	for i, r := range t.row {
		data[i] = vecs[t.slot[i]].Data[r]
	}
	var nulls []bool
	if null {
		nulls = make([]bool, len(t.row))
		for i, r := range t.row {
			v := vecs[t.slot[i]]
			nulls[i] = v.Nulls != nil && v.Nulls[r]
		}
	}
	return chunk.NewVec(ty, data, nulls)
}
