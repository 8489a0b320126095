package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream/batch"
)

// A written is the outcome of a DML statement.
type written struct {
	rows  int64
	ret   []*chunk.Chunk // of RETURNING
	epoch storage.Epoch  // 0: nothing was sent, or it is held back by a transaction
}

// dml runs a bound INSERT, UPDATE or DELETE and waits until it is durable and
// visible, unless a transaction holds it back or implicit_flush is off.
func (s *Session) dml(ctx context.Context, st plan.Statement, ectx *expr.Ctx) (*written, error) {
	db := s.db
	if s.tx.isReadOnly() {
		return nil, sqlerr.New(sqlerr.ReadOnlyTransaction, "cannot execute %s in a read-only transaction", dmlName(st))
	}
	if err := db.store.CheckSpace(); err != nil {
		return nil, err
	}
	rel := dmlTable(st)
	if err := db.usable(rel); err != nil {
		return nil, err
	}
	var out *written
	var err error
	if s.tx.explicit() {
		out, err = s.dmlInBlock(ctx, st, rel, ectx)
	} else {
		out, err = s.dmlNow(ctx, st, rel, ectx)
	}
	if err != nil || out.epoch == 0 {
		return out, err
	}
	s.last = max(s.last, out.epoch)
	if s.set.on("implicit_flush") {
		err = db.waitEpoch(ctx, out.epoch, rel)
	}
	return out, err
}

func dmlName(st plan.Statement) string {
	switch st.(type) {
	case *plan.Insert:
		return "INSERT"
	case *plan.Update:
		return "UPDATE"
	default:
		return "DELETE"
	}
}

func dmlTable(st plan.Statement) *catalog.Relation {
	switch st := st.(type) {
	case *plan.Insert:
		return st.Table
	case *plan.Update:
		return st.Table
	case *plan.Delete:
		return st.Table
	}
	panic(fmt.Sprintf("engine: %T writes no table", st))
}

// dmlNow runs a statement that is its own transaction.
func (s *Session) dmlNow(ctx context.Context, st plan.Statement, rel *catalog.Relation, ectx *expr.Ctx) (*written, error) {
	db := s.db
	w := db.writer(rel)
	var rows []*chunk.Chunk
	ins, isInsert := st.(*plan.Insert)
	if isInsert {
		// An INSERT's rows do not depend on its table being held still.
		var err error
		if rows, err = s.collect(ctx, ins.Source, ectx, nil); err != nil {
			return nil, err
		}
		if rows, err = db.prepareRows(rel, rows, ins.Checks, ectx); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return &written{}, nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if (hasUserKey(rel) || !isInsert) && w.blind > db.store.Committed() {
		// Rows that were just sent without being entered in pending are known to their actors only.
		if err := db.coord.Wait(ctx, w.blind); err != nil {
			return nil, err
		}
	}
	if n := len(w.sent); n > 0 && !isInsert && readsIndex(sourceOf(st), rel.ID) {
		// An index shows what is committed only.
		if err := db.coord.Wait(ctx, w.sent[n-1].epoch); err != nil {
			return nil, err
		}
	}
	snap, err := db.store.Latest()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	w.prune(snap.Epoch())
	v := &tableView{snap: snap, w: w, fresh: true}
	c, out, err := s.changes(ctx, st, rel, rows, v, ectx)
	if err != nil || c.empty() {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	out.epoch, err = db.commitChanges([]*changeSet{c}, []*tableWriter{w})
	return out, err
}

// dmlInBlock runs a statement inside BEGIN … COMMIT: its changes stay with the transaction.
func (s *Session) dmlInBlock(ctx context.Context, st plan.Statement, rel *catalog.Relation, ectx *expr.Ctx) (*written, error) {
	db := s.db
	tt := s.tx.table(db, rel)
	var rows []*chunk.Chunk
	if ins, ok := st.(*plan.Insert); ok {
		var err error
		if rows, err = s.collect(ctx, ins.Source, ectx, nil); err != nil {
			return nil, err
		}
		if rows, err = db.prepareRows(rel, rows, ins.Checks, ectx); err != nil {
			return nil, err
		}
	}
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	v := &tableView{snap: snap, w: tt.w, over: tt.over.Overlay}
	c, out, err := s.changes(ctx, st, rel, rows, v, ectx)
	if err != nil {
		return nil, err
	}
	if c.delKeys == nil {
		c.delKeys = encodeKeys(tt.w.codec, c.dels)
	}
	if c.insKeys == nil {
		c.insKeys = encodeKeys(tt.w.codec, c.ins)
		c.insVals = encodeVals(tt.w.codec, c.ins)
	}
	s.tx.wrote = s.tx.wrote || !c.empty()
	return out, tt.add(c)
}

// changes computes what a statement does, given the table as v shows it. rows are an INSERT's.
func (s *Session) changes(ctx context.Context, st plan.Statement, rel *catalog.Relation, rows []*chunk.Chunk, v *tableView, ectx *expr.Ctx) (*changeSet, *written, error) {
	switch st := st.(type) {
	case *plan.Insert:
		return s.insert(st, rows, v, ectx)
	case *plan.Update:
		return s.update(ctx, st, v, ectx)
	case *plan.Delete:
		return s.delete(ctx, st, v, ectx)
	}
	return nil, nil, fmt.Errorf("engine: %T writes no table", st)
}

// prepareRows fills in row ids and checks constraints that need no other row.
func (db *DB) prepareRows(rel *catalog.Relation, rows []*chunk.Chunk, checks []expr.Expr, ectx *expr.Ctx) ([]*chunk.Chunk, error) {
	out := make([]*chunk.Chunk, 0, len(rows))
	for _, c := range rows {
		if c.Len() == 0 {
			continue
		}
		c = db.fillRowIDs(rel, c)
		if err := checkRows(rel, c, checks, ectx); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// checkRows enforces NOT NULL and CHECK.
func checkRows(rel *catalog.Relation, c *chunk.Chunk, checks []expr.Expr, ectx *expr.Ctx) error {
	for i, col := range rel.Columns {
		if !col.NotNull || !c.Cols[i].HasNulls() {
			continue
		}
		for r := range c.Len() {
			if c.Cols[i].Null(r) {
				err := sqlerr.New(sqlerr.NotNullViolation, "null value in column %q of relation %q violates not-null constraint", col.Name, rel.Name).
					WithDetail("Failing row contains %s.", rowText(rel, c, r))
				err.Schema, err.Table, err.Column = rel.Schema, rel.Name, col.Name
				return err
			}
		}
	}
	for i, e := range checks {
		res, err := expr.Eval(ectx, e, c)
		if err != nil {
			return err
		}
		ok := chunk.Of[bool](res)
		for r := range c.Len() {
			if !ok.Null(r) && !ok.Data[r] {
				name := rel.Checks[i].Name
				err := sqlerr.New(sqlerr.CheckViolation, "new row for relation %q violates check constraint %q", rel.Name, name).
					WithDetail("Failing row contains %s.", rowText(rel, c, r))
				err.Schema, err.Table, err.Constraint = rel.Schema, rel.Name, name
				return err
			}
		}
	}
	return nil
}

// rowText is a row as PostgreSQL shows it in error details: (1, abc, null).
func rowText(rel *catalog.Relation, c *chunk.Chunk, r int) string {
	var parts []string
	for i, col := range rel.Columns {
		switch {
		case col.Hidden:
		case c.Cols[i].Null(r):
			parts = append(parts, "null")
		default:
			text := string(types.AppendText(nil, col.Type, c.Cols[i].Datum(r), nil))
			if len(text) > 64 {
				text = text[:64] + "..."
			}
			parts = append(parts, text)
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// uniqueViolation is PostgreSQL's 23505 for an encoded row.
func uniqueViolation(rel *catalog.Relation, codec *storage.Codec, key string, val []byte) error {
	err := sqlerr.New(sqlerr.UniqueViolation, "duplicate key value violates unique constraint %q", rel.PrimaryKeyName)
	err.Schema, err.Table, err.Constraint = rel.Schema, rel.Name, rel.PrimaryKeyName
	if row, bad := decodeRows(codec, rel, []string{key}, [][]byte{val}); bad == nil {
		var names, vals []string
		for _, k := range rel.Key[:rel.PrimaryKey] {
			names = append(names, rel.Columns[k.Col].Name)
			vals = append(vals, string(types.AppendText(nil, rel.Columns[k.Col].Type, row.Cols[k.Col].Datum(0), nil)))
		}
		err.WithDetail("Key (%s)=(%s) already exists.", strings.Join(names, ", "), strings.Join(vals, ", "))
	}
	return err
}

// insert resolves an INSERT's conflicts with existing rows and among its own.
func (s *Session) insert(st *plan.Insert, rows []*chunk.Chunk, v *tableView, ectx *expr.Ctx) (*changeSet, *written, error) {
	rel := st.Table
	c := &changeSet{rel: rel, ins: rows}
	out := &written{}
	if !hasUserKey(rel) {
		for _, r := range rows {
			out.rows += int64(r.Len())
		}
		return c, out, returning(st.Returning, rows, ectx, out)
	}
	keys := encodeKeys(v.w.codec, rows)
	old := make([][]byte, len(keys))
	if err := v.get(keys, func(i int, val []byte) { old[i] = slices.Clone(val) }); err != nil {
		return nil, nil, err
	}
	if st.Conflict == catalog.ConflictError && st.UpdateExprs == nil {
		c.insKeys, c.insVals = keys, encodeVals(v.w.codec, rows)
		seen := make(map[string]bool, len(keys))
		for i, k := range keys {
			if old[i] != nil || seen[k] {
				return nil, nil, uniqueViolation(rel, v.w.codec, k, c.insVals[i])
			}
			seen[k] = true
		}
		out.rows = int64(len(keys))
		return c, out, returning(st.Returning, rows, ectx, out)
	}
	all := concat(rel, rows)
	return s.upsert(st, all, keys, old, v, ectx)
}

// upsert handles an INSERT whose conflicts are not errors. The statement's rows
// are taken one after another; the last state of each key counts.
func (s *Session) upsert(st *plan.Insert, rows *chunk.Chunk, keys []string, old [][]byte, v *tableView, ectx *expr.Ctx) (*changeSet, *written, error) {
	rel := st.Table
	type state struct {
		before []byte       // encoded row in the table; nil: none
		row    *chunk.Chunk // one row: the state after the statement; nil: as before
	}
	states := map[string]*state{}
	var order []string
	out := &written{}
	var affected []*chunk.Chunk
	for i, k := range keys {
		stt := states[k]
		if stt == nil {
			stt = &state{before: old[i]}
			states[k] = stt
			order = append(order, k)
		}
		row := rows.Slice(i, i+1)
		exists := stt.before != nil || stt.row != nil
		switch {
		case !exists:
			stt.row = row
		case st.UpdateExprs != nil:
			if stt.row != nil {
				return nil, nil, sqlerr.New(sqlerr.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
					WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
			}
			cur, err := decodeRows(v.w.codec, rel, []string{k}, [][]byte{stt.before})
			if err != nil {
				return nil, nil, err
			}
			both := chunk.Make(append(slices.Clone(cur.Cols), row.Cols...)...)
			if st.UpdateWhere != nil {
				sel, err := expr.Filter(ectx, st.UpdateWhere, both)
				if err != nil {
					return nil, nil, err
				}
				if len(sel) == 0 {
					continue
				}
			}
			cols := make([]chunk.Column, len(st.UpdateExprs))
			for j, e := range st.UpdateExprs {
				if cols[j], err = expr.Eval(ectx, e, both); err != nil {
					return nil, nil, err
				}
			}
			stt.row = chunk.Make(cols...)
			if err := checkRows(rel, stt.row, st.Checks, ectx); err != nil {
				return nil, nil, err
			}
		case st.Conflict == catalog.ConflictIgnore:
			continue
		case st.Conflict == catalog.ConflictUpdateIfNotNull:
			cur := stt.row
			if cur == nil {
				var err error
				if cur, err = decodeRows(v.w.codec, rel, []string{k}, [][]byte{stt.before}); err != nil {
					return nil, nil, err
				}
			}
			cols := slices.Clone(row.Cols)
			for j := range cols {
				if cols[j].Null(0) {
					cols[j] = cur.Cols[j]
				}
			}
			stt.row = chunk.Make(cols...)
		default: // overwrite
			stt.row = row
		}
		out.rows++
		if st.Returning != nil {
			affected = append(affected, stt.row)
		}
	}
	c := &changeSet{rel: rel, settles: true}
	var oldVals [][]byte
	var ins []*chunk.Chunk
	for _, k := range order {
		stt := states[k]
		if stt.row == nil {
			continue
		}
		if stt.before != nil {
			c.delKeys, oldVals = append(c.delKeys, k), append(oldVals, stt.before)
		}
		ins = append(ins, stt.row)
	}
	if len(c.delKeys) > 0 {
		dels, err := decodeRows(v.w.codec, rel, c.delKeys, oldVals)
		if err != nil {
			return nil, nil, err
		}
		c.dels = []*chunk.Chunk{dels}
	}
	if len(ins) > 0 {
		c.ins = []*chunk.Chunk{concat(rel, ins)}
		// An update may have changed the key.
		c.insKeys, c.insVals = encodeKeys(v.w.codec, c.ins), encodeVals(v.w.codec, c.ins)
		if err := checkCollisions(c, v); err != nil {
			return nil, nil, err
		}
	}
	return c, out, returning(st.Returning, affected, ectx, out)
}

// update computes the new rows of an UPDATE. Each row changes once, however
// often a join finds it.
func (s *Session) update(ctx context.Context, st *plan.Update, v *tableView, ectx *expr.Ctx) (*changeSet, *written, error) {
	rel := st.Table
	found, err := s.collect(ctx, st.Source, ectx, func(r *catalog.Relation) *batch.Overlay {
		if r.ID == rel.ID {
			return v.overlay()
		}
		return s.overlay(r)
	})
	if err != nil {
		return nil, nil, err
	}
	n := len(rel.Columns)
	c := &changeSet{rel: rel}
	out := &written{}
	seen := map[string]bool{}
	for _, f := range found {
		f = firstOfKey(v.w.codec, f, seen)
		if f.Len() == 0 {
			continue
		}
		before := chunk.Make(f.Cols[:n]...)
		after := chunk.Make(f.Cols[n : 2*n]...)
		if err := checkRows(rel, after, st.Checks, ectx); err != nil {
			return nil, nil, err
		}
		c.dels, c.ins = append(c.dels, before), append(c.ins, after)
		out.rows += int64(f.Len())
	}
	if out.rows == 0 {
		return c, out, returning(st.Returning, nil, ectx, out)
	}
	c.delKeys = encodeKeys(v.w.codec, c.dels)
	c.insKeys, c.insVals = encodeKeys(v.w.codec, c.ins), encodeVals(v.w.codec, c.ins)
	if err := checkCollisions(c, v); err != nil {
		return nil, nil, err
	}
	return c, out, returning(st.Returning, c.ins, ectx, out)
}

// checkCollisions refuses new rows whose key another row has, or has after the statement.
func checkCollisions(c *changeSet, v *tableView) error {
	gone := make(map[string]bool, len(c.delKeys))
	for _, k := range c.delKeys {
		gone[k] = true
	}
	seen := make(map[string]bool, len(c.insKeys))
	var ask []string
	for i, k := range c.insKeys {
		if seen[k] {
			return uniqueViolation(c.rel, v.w.codec, k, c.insVals[i])
		}
		seen[k] = true
		if !gone[k] {
			ask = append(ask, k)
		}
	}
	var dup error
	err := v.get(ask, func(i int, val []byte) {
		if val != nil && dup == nil {
			dup = uniqueViolation(c.rel, v.w.codec, ask[i], val)
		}
	})
	if err == nil {
		err = dup
	}
	return err
}

// delete computes the rows that leave.
func (s *Session) delete(ctx context.Context, st *plan.Delete, v *tableView, ectx *expr.Ctx) (*changeSet, *written, error) {
	rel := st.Table
	found, err := s.collect(ctx, st.Source, ectx, func(r *catalog.Relation) *batch.Overlay {
		if r.ID == rel.ID {
			return v.overlay()
		}
		return s.overlay(r)
	})
	if err != nil {
		return nil, nil, err
	}
	c := &changeSet{rel: rel}
	out := &written{}
	seen := map[string]bool{}
	for _, f := range found {
		f = firstOfKey(v.w.codec, f, seen)
		if f.Len() > 0 {
			c.dels = append(c.dels, chunk.Make(f.Cols[:len(rel.Columns)]...))
			out.rows += int64(f.Len())
		}
	}
	if out.rows > 0 {
		c.delKeys = encodeKeys(v.w.codec, c.dels)
	}
	return c, out, returning(st.Returning, c.dels, ectx, out)
}

// firstOfKey keeps the rows whose key was not seen before.
func firstOfKey(codec *storage.Codec, c *chunk.Chunk, seen map[string]bool) *chunk.Chunk {
	var buf []byte
	sel := make([]int, 0, c.Len())
	for i := range c.Len() {
		buf = codec.AppendKey(buf[:0], c.Cols, i)
		if !seen[string(buf)] {
			seen[string(buf)] = true
			sel = append(sel, i)
		}
	}
	if len(sel) == c.Len() {
		return c
	}
	return c.Gather(sel)
}

// returning evaluates RETURNING over the affected rows.
func returning(r *plan.Returning, rows []*chunk.Chunk, ectx *expr.Ctx, out *written) error {
	if r == nil {
		return nil
	}
	for _, c := range rows {
		cols := make([]chunk.Column, len(r.Exprs))
		for i, e := range r.Exprs {
			var err error
			if cols[i], err = expr.Eval(ectx, e, c); err != nil {
				return err
			}
		}
		out.ret = append(out.ret, &chunk.Chunk{Cols: cols, N: c.Len()})
	}
	return nil
}

// concat joins chunks of rows of rel into one.
func concat(rel *catalog.Relation, rows []*chunk.Chunk) *chunk.Chunk {
	if len(rows) == 1 {
		return rows[0]
	}
	n := 0
	for _, r := range rows {
		n += r.Len()
	}
	cols := make([]chunk.Column, len(rel.Columns))
	for i, col := range rel.Columns {
		cols[i] = chunk.New(col.Type, n)
		for _, r := range rows {
			for j := range r.Len() {
				cols[i].AppendFrom(r.Cols[i], j)
			}
		}
	}
	return &chunk.Chunk{Cols: cols, N: n}
}

// collect runs a plan to its end.
func (s *Session) collect(ctx context.Context, n plan.Node, ectx *expr.Ctx, overlay func(*catalog.Relation) *batch.Overlay) ([]*chunk.Chunk, error) {
	if overlay == nil {
		overlay = s.overlay
	}
	rows, err := s.run(ctx, n, ectx, overlay)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*chunk.Chunk
	for {
		c, err := rows.Next(ctx)
		if err != nil || c == nil {
			return out, err
		}
		out = append(out, c)
	}
}
