package exec

import (
	"bytes"
	"context"
	"math"
	"sort"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A topN passes rows [offset, offset+limit) of each group by an order, then by
// stream key. The state table has all rows in that order; memory has the first of each
// group, encoded, so that comparing rows is comparing bytes. A group that changed is
// emitted once an epoch, as the difference of its windows.
//
// Of an input that only grows, rows behind the window are dropped for good.
type topN struct {
	in            stream.Executor
	env           *Env
	offset, need  int // need: offset + limit
	ties          bool
	grows         bool // no deletes come
	types         []types.Type
	source        []int // input column of each column of the table; see layout
	group, order  int   // leading columns of the table: those of the group, and with those of the order
	table         *storage.StateTable
	codec         *storage.Codec
	read          *storage.Decoder // of the input's columns
	readKey       *storage.Decoder // of the group's and order's columns
	groups        map[string]*topGroup
	newest, least *topGroup // ends of the list by use
	dirty         []*topGroup
	bytes         int64
	quota         *quota
	asked         bool
	complete      bool // every group of the table is in memory
	hits, misses  counter
	kbuf, vbuf    []byte
}

// A topGroup is one group's first rows.
type topGroup struct {
	prefix      string   // of its keys
	rows        []topRow // sorted, without gaps from the first row on
	all         bool     // rows are all there are
	dirty       bool
	old         []topRow // the window as last emitted, while dirty
	newer, less *topGroup
}

// A topRow is an encoded row. Keys that agree up to order tie.
type topRow struct {
	key, val string
	order    int
}

func (r topRow) size() int64 { return int64(len(r.key)+len(r.val)) + 56 }

// topSlack is how many rows beyond the window are remembered, at least.
const topSlack = 32

func newTopN(env *Env, n *plan.StreamTopN, in stream.Executor) (*topN, error) {
	p := n.In[0].Props()
	var l layout
	for _, g := range n.GroupBy {
		l.repeat(p.Schema, g, false)
	}
	for _, o := range n.Order {
		if o.NullsFirst != o.Desc {
			l.addNull(p.Schema, o.Col, o.NullsFirst)
		}
		l.add(p.Schema, o.Col, o.Desc)
	}
	x := &topN{
		in: in, env: env, ties: n.WithTies, grows: p.AppendOnly, types: p.Schema.Types(),
		group: len(n.GroupBy), order: len(l.source), groups: map[string]*topGroup{}, quota: env.quota(),
	}
	x.offset = int(min(n.Offset, math.MaxInt32))
	x.need = int(min(n.Offset, math.MaxInt32) + min(n.Limit, math.MaxInt32))
	for _, c := range p.Key {
		l.add(p.Schema, c, false)
	}
	key := len(l.source)
	at := make([]int, len(p.Schema))
	for c := range p.Schema {
		at[c] = l.add(p.Schema, c, false)
	}
	x.source = l.source
	x.table = env.Store.Table(stateDesc(n.State, env.vnodeCount(), l.schema, l.source, key, l.desc[:key]), env.Vnodes)
	x.codec = x.table.Codec()
	x.read = x.codec.NewDecoder(at)
	lead := make([]int, x.order)
	for i := range lead {
		lead[i] = i
	}
	x.readKey = x.codec.NewDecoder(lead)
	x.hits, x.misses = env.Metrics.cache(env, n.State.Name)
	return x, nil
}

func (x *topN) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			if err := x.apply(m.Chunk); err != nil {
				return err
			}
			if len(x.dirty) < x.env.dirtyGroups() {
				return nil
			}
			return x.flush(emit)
		case m.Barrier != nil:
			if err := x.flush(emit); err != nil {
				return err
			}
			if err := x.table.Commit(m.Barrier.Epoch); err != nil {
				return err
			}
			return emit(m)
		}
		return nil // a row may yet come up from behind the window: a watermark ends here
	})
}

func (x *topN) apply(c *chunk.Chunk) error {
	cols := make([]chunk.Column, len(x.source))
	for i, s := range x.source {
		if s < 0 {
			cols[i] = isNull(c.Cols[-1-s])
		} else {
			cols[i] = c.Cols[s]
		}
	}
	vnodes := x.codec.Vnodes(cols, c.Len())
	for i := range c.Len() {
		v := vnodeAt(vnodes, i)
		x.kbuf = x.codec.AppendPrefix(x.kbuf[:0], v, cols[:x.group], i)
		g, err := x.find(x.kbuf)
		if err != nil {
			return err
		}
		if err := x.touch(g); err != nil {
			return err
		}
		order := 0
		if x.ties {
			x.kbuf = x.codec.AppendPrefix(x.kbuf[:0], v, cols[:x.order], i)
			order = len(x.kbuf)
		}
		x.kbuf = x.codec.AppendKeyVnode(x.kbuf[:0], v, cols, i)
		if c.Op(i) == chunk.Delete {
			err = x.delete(g, c, i)
		} else {
			x.vbuf = x.codec.AppendValue(x.vbuf[:0], cols, i)
			err = x.insert(g, order)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the group with a key prefix, reading its first rows if need be.
func (x *topN) find(prefix []byte) (*topGroup, error) {
	if g := x.groups[string(prefix)]; g != nil {
		x.hits.Add(1)
		x.unlink(g)
		x.link(g)
		return g, nil
	}
	if !x.asked {
		empty, err := isEmpty(x.table)
		if err != nil {
			return nil, err
		}
		x.asked, x.complete = true, empty
	}
	g := &topGroup{prefix: string(prefix), all: x.complete}
	x.groups[g.prefix] = g
	x.link(g)
	x.bytes += int64(len(prefix)) + 160
	if g.all {
		x.hits.Add(1)
		return g, nil
	}
	x.misses.Add(1)
	return g, x.refill(g)
}

func (x *topN) link(g *topGroup) {
	g.less, g.newer = x.newest, nil
	if x.newest != nil {
		x.newest.newer = g
	} else {
		x.least = g
	}
	x.newest = g
}

func (x *topN) unlink(g *topGroup) {
	if g.newer != nil {
		g.newer.less = g.less
	} else {
		x.newest = g.less
	}
	if g.less != nil {
		g.less.newer = g.newer
	} else {
		x.least = g.newer
	}
	g.newer, g.less = nil, nil
}

// touch notes a group's window before its first change since the flush.
func (x *topN) touch(g *topGroup) error {
	if g.dirty {
		return nil
	}
	w, err := x.window(g)
	if err != nil {
		return err
	}
	g.old = append([]topRow(nil), w...)
	g.dirty = true
	x.dirty = append(x.dirty, g)
	return nil
}

// window returns the rows that the group shows, reading more of them where memory has too few.
func (x *topN) window(g *topGroup) ([]topRow, error) {
	for {
		end := min(len(g.rows), x.need)
		if x.ties && end > x.offset && end > 0 {
			for end < len(g.rows) && g.rows[end].tie(g.rows[end-1]) {
				end++
			}
		}
		known := g.all || end >= x.need && (!x.ties || end < len(g.rows))
		if known {
			return g.rows[min(x.offset, end):end], nil
		}
		if err := x.refill(g); err != nil {
			return nil, err
		}
	}
}

func (r topRow) tie(o topRow) bool {
	return r.order == o.order && r.key[:r.order] == o.key[:o.order]
}

// refill reads more rows behind those in memory: some beyond what the window needs.
func (x *topN) refill(g *topGroup) error {
	from := []byte(g.prefix)
	to := storage.NextPrefix(from)
	if n := len(g.rows); n > 0 {
		from = append([]byte(g.rows[n-1].key), 0) // no key is the prefix of another one
	}
	want := max(x.need, len(g.rows)) + topSlack
	for kv, err := range x.table.Scan(from, to) {
		if err != nil {
			return err
		}
		if len(g.rows) >= want {
			return nil
		}
		r := topRow{key: string(kv.Key), val: string(kv.Val)}
		if x.ties {
			if r.order, err = x.orderLen(kv); err != nil {
				return err
			}
		}
		g.rows = append(g.rows, r)
		x.bytes += r.size()
	}
	g.all = true
	return nil
}

// orderLen is how much of a key its group and order columns take.
func (x *topN) orderLen(kv storage.KV) (int, error) {
	cols := make([]chunk.Column, x.order)
	for i := range cols {
		cols[i] = chunk.New(x.table.Desc().Schema[i].Type, 1)
	}
	if err := x.readKey.Decode(kv.Key, kv.Val, cols); err != nil {
		return 0, err
	}
	return len(x.codec.AppendPrefix(nil, storage.VnodeOf(kv.Key), cols, 0)), nil
}

// search returns where key is or belongs in the group's rows.
func (g *topGroup) search(key []byte) (int, bool) {
	i := sort.Search(len(g.rows), func(i int) bool { return g.rows[i].key >= string(key) })
	return i, i < len(g.rows) && g.rows[i].key == string(key)
}

// insert adds the row encoded in kbuf and vbuf.
func (x *topN) insert(g *topGroup, order int) error {
	i, found := g.search(x.kbuf)
	if found {
		return inconsistent(x.table, "a row comes and is there already (key %x)", x.kbuf)
	}
	if x.grows && g.all && i >= x.need && !(x.ties && i > 0 && bytes.HasPrefix(x.kbuf, []byte(g.rows[i-1].key[:g.rows[i-1].order]))) {
		return nil // it will never be seen
	}
	if err := x.table.Put(x.kbuf, x.vbuf); err != nil {
		return err
	}
	if i == len(g.rows) && !g.all {
		return nil // behind what is known
	}
	r := topRow{key: string(x.kbuf), val: string(x.vbuf), order: order}
	g.rows = append(g.rows, topRow{})
	copy(g.rows[i+1:], g.rows[i:])
	g.rows[i] = r
	x.bytes += r.size()
	return nil
}

// delete removes the row encoded in kbuf.
func (x *topN) delete(g *topGroup, c *chunk.Chunk, row int) error {
	i, found := g.search(x.kbuf)
	if !found && (g.all || i < len(g.rows)) {
		return inconsistent(x.table, "row %s is deleted and was not there", describe(c.Cols, row))
	}
	if found {
		x.bytes -= g.rows[i].size()
		g.rows = append(g.rows[:i], g.rows[i+1:]...)
	}
	return x.table.Delete(x.kbuf)
}

// flush emits the differences of the windows that changed, then makes room.
func (x *topN) flush(emit stream.Emit) error {
	out := &topOut{x: x, emit: emit}
	for _, g := range x.dirty {
		w, err := x.window(g)
		if err != nil {
			return err
		}
		if err := out.difference(g.old, w); err != nil {
			return err
		}
		g.dirty, g.old = false, nil
		if err := x.trim(g); err != nil {
			return err
		}
		if len(g.rows) == 0 && g.all && x.complete {
			x.drop(g)
		}
	}
	clear(x.dirty)
	x.dirty = x.dirty[:0]
	if err := out.send(); err != nil {
		return err
	}
	for over := x.quota.set(x.bytes); over > 0 && x.least != nil; {
		before := x.bytes
		x.drop(x.least)
		x.complete = false
		over -= before - x.bytes
	}
	x.quota.set(x.bytes)
	return nil
}

func (x *topN) drop(g *topGroup) {
	for _, r := range g.rows {
		x.bytes -= r.size()
	}
	x.bytes -= int64(len(g.prefix)) + 160
	x.unlink(g)
	delete(x.groups, g.prefix)
}

// trim forgets rows far behind the window; of an input that only grows, all behind it, for good.
func (x *topN) trim(g *topGroup) error {
	keep := x.need + topSlack
	if !x.grows && len(g.rows) <= 2*keep {
		return nil
	}
	w, err := x.window(g)
	if err != nil {
		return err
	}
	end := min(x.offset, len(g.rows)) + len(w)
	if !x.grows || !g.all {
		end = max(end, keep)
	}
	if end >= len(g.rows) {
		return nil
	}
	for _, r := range g.rows[end:] {
		x.bytes -= r.size()
		if x.grows && g.all {
			if err := x.table.Delete([]byte(r.key)); err != nil {
				return err
			}
		}
	}
	clear(g.rows[end:])
	g.rows = g.rows[:end]
	g.all = g.all && x.grows
	return nil
}

// A topOut decodes rows into output chunks.
type topOut struct {
	x       *topN
	emit    stream.Emit
	c       *chunk.Chunk
	deletes bool
}

// difference emits what leads from one window to another, both in key order. All
// deletes come first: a row may leave one place of the order for another.
func (o *topOut) difference(old, now []topRow) error {
	if err := o.missing(chunk.Delete, old, now); err != nil {
		return err
	}
	return o.missing(chunk.Insert, now, old)
}

// missing emits the rows of a that are not in b.
func (o *topOut) missing(op chunk.Op, a, b []topRow) error {
	for _, r := range a {
		for len(b) > 0 && b[0].key < r.key {
			b = b[1:]
		}
		if len(b) > 0 && b[0].key == r.key && b[0].val == r.val {
			continue
		}
		if err := o.add(op, r); err != nil {
			return err
		}
	}
	return nil
}

func (o *topOut) add(op chunk.Op, r topRow) error {
	if o.c == nil {
		o.c = &chunk.Chunk{Cols: make([]chunk.Column, len(o.x.types))}
		for i, t := range o.x.types {
			o.c.Cols[i] = chunk.New(t, 16)
		}
	}
	if err := o.x.read.Decode([]byte(r.key), []byte(r.val), o.c.Cols); err != nil {
		return err
	}
	o.c.Ops = append(o.c.Ops, op)
	o.deletes = o.deletes || op == chunk.Delete
	if o.c.N++; o.c.N >= o.x.env.chunkSize() {
		return o.send()
	}
	return nil
}

func (o *topOut) send() error {
	c := o.c
	if c == nil {
		return nil
	}
	if !o.deletes {
		c.Ops = nil
	}
	o.c, o.deletes = nil, false
	return o.emit(stream.Message{Chunk: c})
}
