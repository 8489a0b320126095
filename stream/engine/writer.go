package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/batch"
	"streamdb/stream/exec"
)

// writeChunk bounds the rows of a chunk that is handed to a table's actors.
const writeChunk = 4096

// A tableWriter orders what sessions write into one table. Who holds mu sees the
// table as it will be once everything that was sent is committed, so that a
// uniqueness check or an UPDATE reads what it must, and still needs not wait for
// the commits of others.
//
// Invariants:
//  1. pending has the newest value of every key that was sent in an epoch not yet
//     known to be committed; only for tables whose keys users choose.
//  2. Of a table without a primary key, blind is the newest epoch that holds rows
//     sent without being entered in pending.
type tableWriter struct {
	mu      sync.Mutex
	codec   *storage.Codec
	desc    storage.Desc
	pending map[string]pendingRow
	sent    []sentKeys // by epoch
	blind   storage.Epoch
}

type pendingRow struct {
	val   []byte // nil: deleted
	epoch storage.Epoch
}

type sentKeys struct {
	epoch storage.Epoch
	keys  []string
}

func (db *DB) writer(r *catalog.Relation) *tableWriter {
	db.mu.Lock()
	defer db.mu.Unlock()
	w := db.writers[r.ID]
	if w == nil {
		d := exec.RelationDesc(r)
		w = &tableWriter{codec: storage.NewCodec(d), desc: d, pending: map[string]pendingRow{}}
		db.writers[r.ID] = w
	}
	return w
}

// prune forgets what a snapshot at epoch e shows by itself. The caller holds mu.
func (w *tableWriter) prune(e storage.Epoch) {
	n := 0
	for n < len(w.sent) && w.sent[n].epoch <= e {
		for _, k := range w.sent[n].keys {
			if p, ok := w.pending[k]; ok && p.epoch <= e {
				delete(w.pending, k)
			}
		}
		n++
	}
	w.sent = slices.Delete(w.sent, 0, n)
}

// A tableView is a table at a snapshot under rows that the snapshot does not have yet.
type tableView struct {
	snap  *storage.Snapshot
	w     *tableWriter
	over  *batch.Overlay // a transaction's own rows; nil: none
	fresh bool           // pending rows of others are seen; the writer's mu is held
}

// get looks up encoded keys and calls each with the encoded row, nil where there is none.
func (v *tableView) get(keys []string, each func(i int, val []byte)) error {
	var miss [][]byte
	var at []int
	for i, k := range keys {
		if v.over != nil {
			if val, ok := v.over.Get([]byte(k)); ok {
				each(i, val)
				continue
			}
		}
		if v.fresh {
			if p, ok := v.w.pending[k]; ok {
				each(i, p.val)
				continue
			}
		}
		miss = append(miss, []byte(k))
		at = append(at, i)
	}
	if len(miss) == 0 {
		return nil
	}
	return v.snap.GetMany(v.w.desc, miss, func(i int, val []byte) { each(at[i], val) })
}

// overlay is what a plan must see over the snapshot; nil: nothing.
func (v *tableView) overlay() *batch.Overlay {
	if v.over != nil || !v.fresh || len(v.w.pending) == 0 {
		return v.over
	}
	o := batch.NewOverlay()
	for k, p := range v.w.pending {
		o.Put(k, p.val)
	}
	return o
}

// A changeSet is what a statement does to a table: each key at most once in dels and once in ins.
type changeSet struct {
	rel  *catalog.Relation
	dels []*chunk.Chunk // full rows that leave
	ins  []*chunk.Chunk // full rows that arrive
	// Encoded keys and values of the rows above, in their order; nil where the
	// table has no user key and nobody needs to see the rows before they commit.
	delKeys, insKeys []string
	insVals          [][]byte
	// settles: the statement says what becomes of a row that is there already.
	settles bool
}

func (c *changeSet) empty() bool { return len(c.dels) == 0 && len(c.ins) == 0 }

// send hands a change set to the table's actors in the open epoch e. The caller
// holds the coordinator's write side and the writer's mu.
func (db *DB) send(c *changeSet, w *tableWriter, e storage.Epoch) error {
	db.reserveRowIDs(e)
	ports, owner, err := db.ports(c.rel)
	if err != nil {
		return err
	}
	for _, d := range c.dels {
		d = &chunk.Chunk{Ops: slices.Repeat([]chunk.Op{chunk.Delete}, d.Len()), Cols: d.Cols, N: d.N}
		if err := route(d, c.rel, ports, owner); err != nil {
			return err
		}
	}
	for _, i := range c.ins {
		if err := route(i, c.rel, ports, owner); err != nil {
			return err
		}
	}
	if c.delKeys == nil && c.insKeys == nil {
		w.blind = e
		return nil
	}
	keys := make([]string, 0, len(c.delKeys)+len(c.insKeys))
	for _, k := range c.delKeys {
		w.pending[k] = pendingRow{nil, e}
		keys = append(keys, k)
	}
	for i, k := range c.insKeys {
		w.pending[k] = pendingRow{c.insVals[i], e}
		keys = append(keys, k)
	}
	w.sent = append(w.sent, sentKeys{e, keys})
	return nil
}

// route sends each row to the actor that owns its vnode.
func route(c *chunk.Chunk, rel *catalog.Relation, ports []stream.Port, owner []uint16) error {
	for from := 0; from < c.Len(); from += writeChunk {
		part := c.Slice(from, min(from+writeChunk, c.Len()))
		if len(ports) == 1 {
			if err := ports[0].In.Send(ports[0].Channel, stream.Message{Chunk: part}); err != nil {
				return err
			}
			continue
		}
		sel := make([][]int, len(ports))
		for i, v := range chunk.Vnodes(part.Cols, rel.Dist, part.Len(), len(owner)) {
			sel[owner[v]] = append(sel[owner[v]], i)
		}
		for p, s := range sel {
			if len(s) == 0 {
				continue
			}
			if err := ports[p].In.Send(ports[p].Channel, stream.Message{Chunk: part.Gather(s)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasUserKey reports whether users choose the keys of a table's rows, so that they may collide.
func hasUserKey(r *catalog.Relation) bool { return r.PrimaryKey > 0 }

// rowIDBlock is how many row ids are reserved at a time.
const rowIDBlock = 1 << 20

// fillRowIDs gives rows of a table without primary key their ids. They count on
// over restarts: reserveRowIDs makes a bound durable before ids below it are.
func (db *DB) fillRowIDs(r *catalog.Relation, c *chunk.Chunk) *chunk.Chunk {
	if hasUserKey(r) || len(r.Key) == 0 {
		return c
	}
	at := r.Key[0].Col
	n := c.Len()
	first := int64(db.rowSeq.Add(uint64(n))) - int64(n)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = first + int64(i)
	}
	out := &chunk.Chunk{Ops: c.Ops, Cols: slices.Clone(c.Cols), N: n}
	out.Cols[at] = chunk.NewVec(types.Int8, ids, nil)
	return out
}

// reserveRowIDs raises the durable bound of row ids above all that were handed
// out, in the epoch of the rows that carry the newest.
func (db *DB) reserveRowIDs(e storage.Epoch) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if n := db.rowSeq.Load(); n >= db.rowReserved {
		db.rowReserved = n + rowIDBlock
		db.store.Stage(e, storage.TagCatalog, []byte{keyRowIDs}, binary.BigEndian.AppendUint64(nil, db.rowReserved))
	}
}

// encodeKeys encodes the keys of rows.
func encodeKeys(c *storage.Codec, rows []*chunk.Chunk) []string {
	var out []string
	var buf []byte
	for _, r := range rows {
		buf = buf[:0]
		ends := make([]int, r.Len())
		vnodes := c.Vnodes(r.Cols, r.Len())
		for i := range ends {
			var v uint16
			if vnodes != nil {
				v = vnodes[i]
			}
			buf = c.AppendKeyVnode(buf, v, r.Cols, i)
			ends[i] = len(buf)
		}
		all, from := string(buf), 0
		for _, end := range ends {
			out = append(out, all[from:end])
			from = end
		}
	}
	return out
}

// encodeVals encodes the values of rows into few allocations.
func encodeVals(c *storage.Codec, rows []*chunk.Chunk) [][]byte {
	var out [][]byte
	var buf []byte
	for _, r := range rows {
		for i := range r.Len() {
			from := len(buf)
			buf = c.AppendValue(buf, r.Cols, i)
			out = append(out, buf[from:len(buf):len(buf)])
			if len(buf) > 64<<10 {
				buf = make([]byte, 0, 64<<10)
			}
		}
	}
	return out
}

// commitChanges sends change sets in one epoch, in which they become durable and
// visible everywhere, all or none. The writers are locked by the caller, in table order.
func (db *DB) commitChanges(sets []*changeSet, ws []*tableWriter) (storage.Epoch, error) {
	return db.coord.Write(true, func(e storage.Epoch) error {
		for _, c := range sets {
			if _, _, err := db.ports(c.rel); err != nil {
				return err
			}
		}
		for i, c := range sets {
			if err := db.send(c, ws[i], e); err != nil {
				return err
			}
		}
		return nil
	})
}

// ports is where rows of a table go.
func (db *DB) ports(r *catalog.Relation) ([]stream.Port, []uint16, error) {
	ports, owner, err := db.jobs.Ports(r.ID)
	if err != nil {
		err = sqlerr.New(sqlerr.NotPrepared, "table %q does not take rows: %w", r.Name, err)
	}
	return ports, owner, err
}

// waitEpoch waits for a commit as the outcome of a statement that wrote into
// tables. The rows are on their way already: a cancelled wait says so. A table
// that has stopped meanwhile may not have taken them.
func (db *DB) waitEpoch(ctx context.Context, e storage.Epoch, tables ...*catalog.Relation) error {
	err := db.coord.Wait(ctx, e)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		why := errCanceled
		if errors.As(err, &why) && why.Code != sqlerr.QueryCanceled {
			return why
		}
		return sqlerr.New(sqlerr.QueryCanceled, "%s", why.Message).
			WithDetail("The change has already been handed over and will become visible unless the server stops first.")
	}
	if err != nil {
		return err
	}
	for _, t := range tables {
		if j := db.jobs.Job(t.ID); j != nil {
			if err := j.Err(); err != nil {
				return sqlerr.New(sqlerr.NotPrepared, "table %q has stopped: %w", t.Name, err).WithDetail("The change may not have been made.")
			}
		}
	}
	return nil
}

// decodeRows turns encoded rows back into a chunk of full rows of r.
func decodeRows(c *storage.Codec, r *catalog.Relation, keys []string, vals [][]byte) (*chunk.Chunk, error) {
	typs := r.Fields().Types()
	cols := make([]chunk.Column, len(typs))
	for i, t := range typs {
		cols[i] = chunk.New(t, len(keys))
	}
	for i, k := range keys {
		if err := c.Decode([]byte(k), vals[i], cols); err != nil {
			return nil, fmt.Errorf("row of %q: %w", r.Name, err)
		}
	}
	return chunk.Make(cols...), nil
}
