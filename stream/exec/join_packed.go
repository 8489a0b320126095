package exec

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// packedRows is a state table of rows of which many share a join key. It stores
// each key's rows as a log, cut into blocks, so that an entry of the store holds
// many rows and a change costs a few bytes, however many rows its key has.
//
// A key's entries are blocks 1, 2, … in the order they were written, then the tail:
// the log's end, which is rewritten with each epoch that changes the key until it
// is long enough to become a block. A key of few rows is its tail alone.
//
// The log has inserts, and deletes of rows that are in earlier blocks. A row may come and
// go several times; as it is there at most once at a time, the first n of its inserts are
// gone when the log has n deletes of it. When deletes are many, the log is rewritten
// without them (compact), so that the work is in proportion to the changes.
type packedRows struct {
	table *storage.StateTable
	rows  *storage.Codec // of one row; its key begins with the join key
	keys  []int          // columns of the join key
	size  packing
	open  *keyIndex // join keys with changes that are not in the table yet
	tails []tail    // by slot of open
	bytes int       // of tails

	slots      []int32
	kbuf, vbuf []byte
	number     []byte
}

// A tail is the end of a key's log, and what is known of all of it.
type tail struct {
	prefix  []byte // what the key's entries begin with
	log     []byte
	blocks  uint64 // written before
	live    int64  // rows
	dead    int64  // deletes in the log
	deletes bool   // the log has got deletes since it was read or cleaned
	stored  bool   // the table has the tail
}

const (
	openBytes  = 128 // what an open key costs, about
	tailNumber = math.MaxUint64
)

// packing is the sizes of packed rows.
type packing struct {
	tail    int   // a tail of more bytes becomes a block
	block   int   // bytes of a block, about
	pending int   // bytes of all open tails
	dead    int64 // so many deletes a log may always have
	gone    int64 // deletes that compact has in memory
	cold    int32 // rows that a key has in memory before it matters that nobody asks for them
}

func defaultPacking() packing {
	return packing{tail: 2 << 10, block: 32 << 10, pending: 8 << 20, dead: 256, gone: 1 << 18, cold: 128}
}

// maxDead is how many deletes the log of a key with live rows may have. While a large
// log is read its deletes are in memory, hence not simply a part of live.
func (p *packedRows) maxDead(live int64) int64 {
	return max(p.size.dead, min(live/2, max(1<<16, live/16)))
}

// packs reports whether a side's rows are packed: many may share a join key. Values of
// the key must be equal whenever their encodings are.
func packs(in *plan.Props, keys []int, degree *plan.TableDesc) bool {
	for _, k := range keys {
		if t := in.Schema[k].Type; t.OID == types.OIDBpchar || t.Kind() == types.KindList {
			return false
		}
	}
	return degree == nil && slices.ContainsFunc(in.Key, func(c int) bool { return !slices.Contains(keys, c) })
}

// newPackedRows makes the packed table whose rows state describes.
func newPackedRows(env *Env, state *plan.TableDesc, keys []int) *packedRows {
	d := Desc(state, env.vnodeCount())
	p := &packedRows{rows: storage.NewCodec(d), keys: keys, size: env.packing()}
	// The entries' keys have a number after what this describes.
	block := storage.Desc{ID: d.ID, Name: d.Name, Tag: d.Tag, Vnodes: d.Vnodes}
	block.Schema = append(d.Schema.Project(keys), types.Field{Name: "rows", Type: types.Bytea})
	for i := range keys {
		block.Key = append(block.Key, i)
	}
	for _, c := range d.Dist {
		block.Dist = append(block.Dist, slices.Index(keys, c))
	}
	if d.Desc != nil {
		block.Desc = d.Desc[:len(keys)]
	}
	p.table = env.Store.Table(block, env.Vnodes)
	p.reset()
	return p
}

func (p *packedRows) reset() {
	if len(p.tails) > 512 {
		p.tails = nil // their buffers are not worth keeping
	}
	p.open, p.tails, p.bytes = newKeyIndex(p.rows.Desc().Schema.Project(p.keys).Types()), p.tails[:0], 0
}

// write applies a chunk. h are the hashes of its join keys; isNew says which rows' keys
// surely have no row in the table.
func (p *packedRows) write(c *chunk.Chunk, h []uint64, isNew func(i int) bool) error {
	keys := project(c.Cols, p.keys)
	vnodes := p.rows.Vnodes(c.Cols, c.Len())
	p.slots = slices.Grow(p.slots[:0], len(h))[:len(h)]
	p.open.lookup(keys, h, p.slots)
	for i, slot := range p.slots {
		if slot < 0 {
			if slot = p.open.find(h[i], keys, i); slot < 0 {
				var err error
				if slot, err = p.openKey(h[i], keys, i, vnodeAt(vnodes, i), isNew(i)); err != nil {
					return err
				}
			}
		}
		t := &p.tails[slot]
		p.kbuf = p.rows.AppendKeyVnode(p.kbuf[:0], vnodeAt(vnodes, i), c.Cols, i)
		before := len(t.log)
		if c.Op(i) == chunk.Insert {
			p.vbuf = p.rows.AppendValue(p.vbuf[:0], c.Cols, i)
			t.log = appendEntry(t.log, p.kbuf[len(t.prefix):], p.vbuf)
			t.live++
		} else {
			t.log = appendEntry(t.log, p.kbuf[len(t.prefix):], nil)
			t.live--
			t.dead++
			t.deletes = true
		}
		p.bytes += len(t.log) - before
		if len(t.log) >= p.size.block {
			if err := p.put(slot); err != nil {
				return err
			}
		}
	}
	if p.bytes > p.size.pending {
		return p.flush()
	}
	return nil
}

// live is the number of rows of the key at i of keys. isNew: the table surely has none of it.
func (p *packedRows) live(h uint64, keys []chunk.Column, i int, vnode uint16, isNew bool) (int64, error) {
	slot := p.open.find(h, keys, i)
	if slot < 0 {
		var err error
		if slot, err = p.openKey(h, keys, i, vnode, isNew); err != nil {
			return 0, err
		}
	}
	return p.tails[slot].live, nil
}

// An entry of the log is a row's key without the join key, and its value; a delete has no value.
func appendEntry(log, key, val []byte) []byte {
	log = binary.AppendUvarint(log, uint64(len(key)))
	if val == nil {
		return append(append(log, 0), key...)
	}
	log = binary.AppendUvarint(log, uint64(len(val))+1)
	return append(append(log, key...), val...)
}

// An entry is one of a log. It shares the log's memory.
type entry struct {
	raw, key, val []byte // val is nil for a delete
}

// nextEntry splits the first entry off a log that is not empty.
func (p *packedRows) nextEntry(log []byte) (e entry, rest []byte, err error) {
	k, n := binary.Uvarint(log)
	if n > 0 {
		v, m := binary.Uvarint(log[n:])
		head := uint64(n + m)
		if m > 0 && k <= uint64(len(log)) && v <= uint64(len(log))+1 && head+k+max(v, 1)-1 <= uint64(len(log)) {
			end := head + k
			e.key = log[head:end]
			if v > 0 {
				e.val = log[end : end+v-1]
				end += v - 1
			}
			e.raw = log[:end]
			return e, log[end:], nil
		}
	}
	return e, nil, inconsistent(p.table, "a block of rows is cut off")
}

func (p *packedRows) entryKey(prefix []byte, number uint64) []byte {
	p.number = binary.BigEndian.AppendUint64(append(p.number[:0], prefix...), number)
	return p.number
}

// openKey reads the tail of the key at i of keys.
func (p *packedRows) openKey(h uint64, keys []chunk.Column, i int, vnode uint16, isNew bool) (int32, error) {
	slot := p.open.insert(h, keys, i)
	if int(slot) == len(p.tails) {
		if len(p.tails) < cap(p.tails) {
			p.tails = p.tails[:slot+1] // with the buffers it had
		} else {
			p.tails = append(p.tails, tail{})
		}
	}
	t := &p.tails[slot]
	*t = tail{prefix: p.rows.AppendPrefix(t.prefix[:0], vnode, keys, i), log: t.log[:0]}
	if !isNew {
		if err := p.readTail(t); err != nil {
			return 0, err
		}
	}
	p.bytes += openBytes + len(t.prefix) + len(t.log)
	return slot, nil
}

// readTail reads the tail of t.prefix.
func (p *packedRows) readTail(t *tail) error {
	b, err := p.table.Get(p.entryKey(t.prefix, tailNumber))
	if err != nil || b == nil {
		return err
	}
	t.stored = true
	log, err := p.head(t, b)
	t.log = append(t.log[:0], log...)
	return err
}

// head reads what a stored tail begins with and returns its log.
func (p *packedRows) head(t *tail, b []byte) ([]byte, error) {
	var x [3]uint64
	for i := range x {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, inconsistent(p.table, "the tail of a key's rows is cut off")
		}
		x[i], b = v, b[n:]
	}
	t.blocks, t.live, t.dead = x[0], int64(x[1]), int64(x[2])
	return b, nil
}

// put brings a key's changes into the table.
func (p *packedRows) put(slot int32) error {
	t := &p.tails[slot]
	before := len(t.log)
	defer func() { p.bytes += len(t.log) - before }()
	if t.deletes {
		if err := p.clean(t); err != nil {
			return err
		}
	}
	if t.live < 0 || t.dead > 0 && t.blocks == 0 {
		return inconsistent(p.table, "a row of %s is deleted and was not there", describe(p.open.columns(), int(slot)))
	}
	if t.live == 0 {
		return p.remove(t)
	}
	if t.dead > p.maxDead(t.live) {
		if err := p.compact(t); err != nil {
			return err
		}
	}
	if len(t.log) > p.size.tail {
		rest := t.log
		for len(rest) > p.size.tail {
			n, err := p.cut(rest)
			if err != nil {
				return err
			}
			t.blocks++
			if err := p.table.PutNew(p.entryKey(t.prefix, t.blocks), rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		t.log = append(t.log[:0], rest...)
	}
	p.vbuf = p.vbuf[:0]
	for _, x := range [...]uint64{t.blocks, uint64(t.live), uint64(t.dead)} {
		p.vbuf = binary.AppendUvarint(p.vbuf, x)
	}
	p.vbuf = append(p.vbuf, t.log...)
	if t.stored {
		return p.table.Put(p.entryKey(t.prefix, tailNumber), p.vbuf)
	}
	t.stored = true
	return p.table.PutNew(p.entryKey(t.prefix, tailNumber), p.vbuf)
}

// cut is the length of the entries that make a block.
func (p *packedRows) cut(log []byte) (int, error) {
	if len(log) <= p.size.block {
		return len(log), nil
	}
	rest := log
	for len(log)-len(rest) < p.size.block {
		var err error
		if _, rest, err = p.nextEntry(rest); err != nil {
			return 0, err
		}
	}
	return len(log) - len(rest), nil
}

// clean takes rows that come and go within the tail out of it.
func (p *packedRows) clean(t *tail) error {
	t.deletes = false
	here := map[string]int{} // position of a row's insert, in order of the log
	var at [][]byte          // entries; nil: gone
	for rest := t.log; len(rest) > 0; {
		var e entry
		var err error
		if e, rest, err = p.nextEntry(rest); err != nil {
			return err
		}
		if e.val != nil {
			here[string(e.key)] = len(at)
			at = append(at, e.raw)
			continue
		}
		if i, ok := here[string(e.key)]; ok {
			at[i] = nil
			delete(here, string(e.key))
			t.dead--
			continue
		}
		at = append(at, e.raw)
	}
	log := t.log[:0]
	for _, raw := range at {
		log = append(log, raw...) // never overtakes what it reads
	}
	t.log = log
	return nil
}

// remove deletes a key that has no row left.
func (p *packedRows) remove(t *tail) error {
	for n := uint64(1); n <= t.blocks; n++ {
		if err := p.table.Delete(p.entryKey(t.prefix, n)); err != nil {
			return err
		}
	}
	stored := t.stored
	t.blocks, t.dead, t.log, t.stored = 0, 0, t.log[:0], false
	if !stored {
		return nil
	}
	return p.table.Delete(p.entryKey(t.prefix, tailNumber))
}

// compact rewrites a key's log without deletes and what they delete. Of very many
// deletes, it takes the first ones.
func (p *packedRows) compact(t *tail) error {
	gone, total := map[string]int32{}, int64(0)
	err := p.logs(t, func(_ uint64, log []byte) error {
		n, err := p.deletes(log, gone, p.size.gone-total)
		total += n
		return err
	})
	if err != nil {
		return err
	}
	left := total // deletes that are still to be taken out
	var out []byte
	written := uint64(0)
	err = p.logs(t, func(number uint64, log []byte) error {
		for len(log) > 0 {
			e, rest, err := p.nextEntry(log)
			if err != nil {
				return err
			}
			log = rest
			switch {
			case e.val == nil && left > 0:
				left--
				continue
			case e.val != nil && gone[string(e.key)] > 0:
				gone[string(e.key)]--
				continue
			}
			out = append(out, e.raw...)
		}
		if number == tailNumber {
			return nil
		}
		if len(out) >= p.size.block {
			written++
			if err := p.table.Put(p.entryKey(t.prefix, written), out); err != nil {
				return err
			}
			out = out[:0]
		}
		if number > written {
			return p.table.Delete(p.entryKey(t.prefix, number))
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.log, t.blocks = append(t.log[:0], out...), written
	t.dead -= total
	return nil
}

// deletes counts the deletes of each row in a log, at most most of them.
func (p *packedRows) deletes(log []byte, gone map[string]int32, most int64) (n int64, err error) {
	for len(log) > 0 && n < most {
		e, rest, err := p.nextEntry(log)
		if err != nil {
			return n, err
		}
		if log = rest; e.val == nil {
			gone[string(e.key)]++
			n++
		}
	}
	return n, nil
}

// logs calls each for the blocks of an open key in order, and then for its tail. Each may
// write the block at hand and those before it.
func (p *packedRows) logs(t *tail, each func(number uint64, log []byte) error) error {
	to := slices.Clone(p.entryKey(t.prefix, tailNumber))
	for kv, err := range p.table.Scan(t.prefix, to) {
		if err != nil {
			return err
		}
		number := binary.BigEndian.Uint64(kv.Key[len(t.prefix):])
		if err := each(number, kv.Val); err != nil {
			return err
		}
	}
	return each(tailNumber, t.log)
}

// written puts the changes of the key at i of keys, whose hash is h, into the table.
func (p *packedRows) written(h uint64, keys []chunk.Column, i int) error {
	if slot := p.open.find(h, keys, i); slot >= 0 {
		return p.put(slot)
	}
	return nil
}

// scan ranges over the rows of the key of prefix, as a table with an entry for each row
// would, though not in order. What is pending of the key must have been written.
func (p *packedRows) scan(prefix []byte) iter.Seq2[storage.KV, error] {
	return func(yield func(storage.KV, error) bool) {
		t := &tail{prefix: prefix}
		if err := p.readTail(t); err != nil {
			yield(storage.KV{}, err)
			return
		}
		if t.live == 0 {
			return
		}
		gone := map[string]int32{}
		if t.dead > 0 {
			err := p.logs(t, func(_ uint64, log []byte) error {
				_, err := p.deletes(log, gone, math.MaxInt64)
				return err
			})
			if err != nil {
				yield(storage.KV{}, err)
				return
			}
		}
		key := slices.Clone(prefix)
		stopped := false
		err := p.logs(t, func(_ uint64, log []byte) error {
			for len(log) > 0 && !stopped {
				e, rest, err := p.nextEntry(log)
				if err != nil {
					return err
				}
				if log = rest; e.val == nil {
					continue
				}
				if t.dead > 0 && gone[string(e.key)] > 0 {
					gone[string(e.key)]--
					continue
				}
				t.live--
				key = append(key[:len(prefix)], e.key...)
				stopped = !yield(storage.KV{Key: key, Val: e.val}, nil)
			}
			return nil
		})
		switch {
		case stopped:
		case err != nil:
			yield(storage.KV{}, err)
		case t.live != 0:
			yield(storage.KV{}, inconsistent(p.table, "the rows of a key are %d fewer than their number", t.live))
		}
	}
}

// flush writes all that is pending, in order of the keys.
func (p *packedRows) flush() error {
	order := make([]int32, len(p.tails))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(p.tails[a].prefix, p.tails[b].prefix) })
	for _, slot := range order {
		if err := p.put(slot); err != nil {
			return err
		}
	}
	p.reset()
	return nil
}

func (p *packedRows) commit(e storage.Epoch) error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.table.Commit(e)
}
