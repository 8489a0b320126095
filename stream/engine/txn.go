package engine

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/storage"
	"streamdb/stream/batch"
)

// A txn is a transaction block: it holds its writes back until COMMIT hands them
// over in one epoch. Its reads of tables see them; views do not change before.
//
// Writers do not wait for each other: at COMMIT every row that the transaction
// changed must still be as it was, else it fails with 40001.
type txn struct {
	now      int64 // transaction timestamp
	readOnly bool
	settings map[string]string // as they were at BEGIN
	local    map[string]string // values to go back to at the end: SET LOCAL
	tables   map[catalog.ID]*txnTable
	saves    []savepoint
	wrote    bool
}

// A txnTable is what a transaction has done to one table.
type txnTable struct {
	rel  *catalog.Relation
	w    *tableWriter
	over *txnOverlay
	base map[string][]byte // key → row before the transaction first touched it; nil value: none
	// settled are keys of which a statement has said what becomes of a row that is there already.
	settled map[string]bool
	log     []txnWrite // all writes in order, so that savepoints can go back
}

// A txnOverlay is a table's rows as the transaction has them. Cursors and portals
// that are open go on reading it; who writes then takes a copy.
type txnOverlay struct {
	*batch.Overlay
	readers int
}

// alone makes over this table's own, unread by anybody.
func (tt *txnTable) alone() {
	if tt.over.readers == 0 {
		return
	}
	n := batch.NewOverlay()
	for k, val := range tt.over.Scan(nil, nil) {
		n.Put(k, val)
	}
	tt.over = &txnOverlay{Overlay: n}
}

type txnWrite struct {
	key      string
	val      []byte // nil: deleted
	prev     []byte
	prevSeen bool // over had an entry before: prev
}

type savepoint struct {
	name     string
	lens     map[catalog.ID]int
	settings map[string]string
	local    map[string]string
	readOnly bool
}

func (t *txn) table(db *DB, r *catalog.Relation) *txnTable {
	tt := t.tables[r.ID]
	if tt == nil {
		tt = &txnTable{rel: r, w: db.writer(r), over: &txnOverlay{Overlay: batch.NewOverlay()}, base: map[string][]byte{}, settled: map[string]bool{}}
		t.tables[r.ID] = tt
	}
	return tt
}

func (tt *txnTable) put(key string, val, base []byte, hadBase bool) {
	prev, seen := tt.over.Get([]byte(key))
	if !seen {
		if _, ok := tt.base[key]; !ok {
			if !hadBase {
				base = nil
			}
			tt.base[key] = base
		}
	}
	tt.log = append(tt.log, txnWrite{key, val, prev, seen})
	tt.over.Put(key, val)
}

// add takes a statement's changes into the transaction.
func (tt *txnTable) add(c *changeSet) error {
	tt.alone()
	delVals := encodeVals(tt.w.codec, c.dels)
	for i, k := range c.delKeys {
		tt.put(k, nil, delVals[i], true)
	}
	for i, k := range c.insKeys {
		if c.settles {
			tt.settled[k] = true
		}
		tt.put(k, c.insVals[i], nil, false)
	}
	return nil
}

// rollbackTo undoes the writes after the first n.
func (tt *txnTable) rollbackTo(n int) {
	if len(tt.log) > n {
		tt.alone()
	}
	for i := len(tt.log) - 1; i >= n; i-- {
		w := tt.log[i]
		if w.prevSeen {
			tt.over.Put(w.key, w.prev)
			continue
		}
		tt.over.Remove(w.key)
		delete(tt.base, w.key)
	}
	tt.log = tt.log[:n]
}

func (t *txn) save(name string, set *settings) {
	s := savepoint{name: name, lens: map[catalog.ID]int{}, settings: maps.Clone(set.vals), local: maps.Clone(t.local), readOnly: t.readOnly}
	for id, tt := range t.tables {
		s.lens[id] = len(tt.log)
	}
	t.saves = append(t.saves, s)
}

func (t *txn) find(name string) int {
	for i := len(t.saves) - 1; i >= 0; i-- {
		if t.saves[i].name == name {
			return i
		}
	}
	return -1
}

func noSavepoint(name string) error {
	return sqlerr.New("3B001", "savepoint %q does not exist", name)
}

// rollbackTo goes back to a savepoint, which stays; the caller does so with the settings it returns.
func (t *txn) rollbackTo(name string) (settings map[string]string, err error) {
	i := t.find(name)
	if i < 0 {
		return nil, noSavepoint(name)
	}
	s := t.saves[i]
	t.saves = t.saves[:i+1]
	for id, tt := range t.tables {
		tt.rollbackTo(s.lens[id])
	}
	t.local = maps.Clone(s.local)
	t.readOnly = s.readOnly
	return s.settings, nil
}

func (t *txn) release(name string) error {
	i := t.find(name)
	if i < 0 {
		return noSavepoint(name)
	}
	t.saves = t.saves[:i]
	return nil
}

// order returns the tables that the transaction has changed, in the order in which they are locked.
func (t *txn) order() []*txnTable {
	order := slices.SortedFunc(maps.Values(t.tables), func(a, b *txnTable) int { return cmp.Compare(a.rel.ID, b.rel.ID) })
	return slices.DeleteFunc(order, func(tt *txnTable) bool { return len(tt.base) == 0 })
}

// commit hands the transaction's changes over in one epoch. It returns that
// epoch, 0 if nothing was written.
func (t *txn) commit(ctx context.Context, db *DB) (storage.Epoch, error) {
	order := t.order()
	if len(order) == 0 {
		return 0, nil
	}
	for _, tt := range order {
		tt.w.mu.Lock()
		defer tt.w.mu.Unlock()
		if tt.w.blind > db.store.Committed() {
			if err := db.coord.Wait(ctx, tt.w.blind); err != nil {
				return 0, err
			}
		}
	}
	snap, err := db.store.Latest()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	var sets []*changeSet
	var ws []*tableWriter
	for _, tt := range order {
		tt.w.prune(snap.Epoch())
		c, err := tt.changes(db, snap)
		if err != nil {
			return 0, err
		}
		if !c.empty() {
			sets, ws = append(sets, c), append(ws, tt.w)
		}
	}
	if len(sets) == 0 {
		return 0, nil
	}
	if err := db.store.CheckSpace(); err != nil {
		return 0, err
	}
	return db.commitChanges(sets, ws)
}

// changes nets a table's writes against the rows as they are now and checks that nobody else changed them.
func (tt *txnTable) changes(db *DB, snap *storage.Snapshot) (*changeSet, error) {
	if db.Catalog().ByID(tt.rel.ID) == nil {
		return nil, sqlerr.New(sqlerr.UndefinedTable, "relation %q does not exist", tt.rel.Name)
	}
	keys := slices.Sorted(maps.Keys(tt.base))
	v := &tableView{snap: snap, w: tt.w, fresh: true}
	var conflict error
	err := v.get(keys, func(i int, val []byte) {
		base := tt.base[keys[i]]
		if bytes.Equal(val, base) && (val == nil) == (base == nil) {
			return
		}
		switch {
		case base == nil && !tt.settled[keys[i]]:
			conflict = uniqueViolation(tt.rel, tt.w.codec, keys[i], val)
		case conflict == nil:
			conflict = sqlerr.New(sqlerr.SerializationFailure, "could not serialize access due to concurrent update").
				WithDetail("A row of %q that this transaction changed was changed by another one.", tt.rel.Name).WithHint("The transaction might succeed if retried.")
		}
	})
	if err == nil {
		err = conflict
	}
	if err != nil {
		return nil, err
	}
	c := &changeSet{rel: tt.rel}
	var oldVals [][]byte
	for _, k := range keys {
		now, _ := tt.over.Get([]byte(k))
		base := tt.base[k]
		if bytes.Equal(now, base) && (now == nil) == (base == nil) {
			continue
		}
		if base != nil {
			c.delKeys, oldVals = append(c.delKeys, k), append(oldVals, base)
		}
		if now != nil {
			c.insKeys, c.insVals = append(c.insKeys, k), append(c.insVals, now)
		}
	}
	add := func(to *[]*chunk.Chunk, keys []string, vals [][]byte) error {
		if len(keys) == 0 {
			return nil
		}
		rows, err := decodeRows(tt.w.codec, tt.rel, keys, vals)
		*to = append(*to, rows)
		return err
	}
	if err := add(&c.dels, c.delKeys, oldVals); err != nil {
		return nil, err
	}
	return c, add(&c.ins, c.insKeys, c.insVals)
}
