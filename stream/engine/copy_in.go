package engine

import (
	"bytes"
	"context"
	"fmt"

	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// copyAtomic is how many rows a COPY outside a transaction block still hands over
// in one epoch. A larger one becomes visible in steps, so that the epochs of
// everybody else stay short; its rows are all checked before the first step.
const copyAtomic = 100_000

// copyStep is the rows of one step of a large COPY.
const copyStep = 32 << 10

// A copyIn is a running COPY FROM STDIN: bytes become rows, rows are checked and
// staged, and Finish hands them over.
type copyIn struct {
	s      *Session
	st     *bind.CopyStmt
	rel    *catalog.Relation
	ectx   *expr.Ctx
	w      *tableWriter
	parse  lineParser
	binary *binaryRows // instead of parse
	buf    []byte      // an unfinished line
	line   int
	eof    bool // \. was seen
	header bool // the next line is the header
	cols   []chunk.Column
	n      int
	stage  *stage
	style  *types.Style
	fields []field
	exprs  []expr.Expr // each table column, over the data's columns
}

// newCopyIn starts a COPY into a table.
func (s *Session) newCopyIn(ctx context.Context, st *bind.CopyStmt) (*CopyIn, error) {
	db := s.db
	if s.tx.isReadOnly() {
		return nil, sqlerr.New(sqlerr.ReadOnlyTransaction, "cannot execute COPY FROM in a read-only transaction")
	}
	if err := db.store.CheckSpace(); err != nil {
		return nil, err
	}
	if err := db.usable(st.Table); err != nil {
		return nil, err
	}
	c := &copyIn{s: s, st: st, w: db.writer(st.Table), rel: st.Table, ectx: s.exprCtx(nil), header: st.Header, stage: newStage(db.writer(st.Table).codec, st.Table, db.tempDir()), style: s.Style()}
	switch st.Format {
	case "csv":
		c.parse = &csvLines{st: st}
	case "binary":
		c.binary = &binaryRows{}
	default:
		c.parse = &textLines{st: st}
	}
	source, ok := st.Insert.Source.(*plan.Project)
	if !ok {
		return nil, fmt.Errorf("engine: COPY's rows come from a %T", st.Insert.Source)
	}
	c.exprs = source.Exprs
	c.reset()
	// All under the statement's own context: its time limit and KILL count, too.
	return &CopyIn{Columns: len(st.Cols), Binary: c.binary != nil, Write: func(_ context.Context, data []byte) error {
		return c.write(ctx, data)
	}, Finish: func(context.Context) (string, error) {
		return c.finish(ctx)
	}, Abort: func(reason string) error {
		c.stage.drop()
		return sqlerr.New(sqlerr.QueryCanceled, "COPY from stdin failed: %s", reason)
	}}, nil
}

func (c *copyIn) reset() {
	c.cols = make([]chunk.Column, len(c.st.Cols))
	for i, j := range c.st.Cols {
		c.cols[i] = chunk.New(c.rel.Columns[j].Type, writeChunk)
	}
	c.n = 0
}

// write takes more bytes. An error ends the COPY.
func (c *copyIn) write(ctx context.Context, data []byte) error {
	if ctx.Err() != nil {
		c.stage.drop()
		return cause(ctx, ctx.Err())
	}
	if len(c.buf) > 0 {
		c.buf = append(c.buf, data...)
		data = c.buf
	}
	take := c.lines
	if c.binary != nil {
		take = c.tuples
	}
	rest, err := take(data, false)
	if err != nil {
		c.stage.drop()
		return err
	}
	c.buf = append(c.buf[:0], rest...)
	return nil
}

// lines takes all whole lines of b and returns the rest.
func (c *copyIn) lines(b []byte, last bool) ([]byte, error) {
	for len(b) > 0 && !c.eof {
		n, err := c.parse.next(b, last)
		if err != nil {
			return nil, c.at(err, "")
		}
		if n == 0 {
			break
		}
		line := bytes.TrimSuffix(b[:n], []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		b = b[n:]
		c.line++
		if len(line) == 2 && line[0] == '\\' && line[1] == '.' {
			c.eof = true
			break
		}
		if c.header {
			c.header = false
			if err := c.checkHeader(line); err != nil {
				return nil, err
			}
			continue
		}
		if err := c.row(line); err != nil {
			return nil, err
		}
	}
	if c.eof {
		return nil, nil
	}
	return b, nil
}

// at adds where in the input an error was found, as PostgreSQL's CONTEXT does.
func (c *copyIn) at(err error, column string) error {
	e := *sqlerr.From(err)
	where := fmt.Sprintf("COPY %s, line %d", c.rel.Name, c.line)
	if column != "" {
		where += ", column " + column
	}
	e.Context = where
	return &e
}

// checkHeader compares the header with the columns' names, for HEADER MATCH.
func (c *copyIn) checkHeader(line []byte) error {
	if !c.st.Match {
		return nil
	}
	names, err := c.parse.split(line, nil)
	if err != nil {
		return c.at(err, "")
	}
	if len(names) != len(c.st.Cols) {
		return c.at(sqlerr.New(sqlerr.BadCopy, "wrong number of fields in header line: got %d, expected %d", len(names), len(c.st.Cols)), "")
	}
	for i, n := range names {
		if want := c.rel.Columns[c.st.Cols[i]].Name; string(n.text) != want {
			return c.at(sqlerr.New(sqlerr.BadCopy, "column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, n.text, want), "")
		}
	}
	return nil
}

// row adds one line's values.
func (c *copyIn) row(line []byte) error {
	var err error
	if c.fields, err = c.parse.split(line, c.fields[:0]); err != nil {
		return c.at(err, "")
	}
	return c.values()
}

// values adds the row of the fields at hand.
func (c *copyIn) values() error {
	want := len(c.cols)
	if len(c.fields) < want {
		name := c.rel.Columns[c.st.Cols[len(c.fields)]].Name
		return c.at(sqlerr.New(sqlerr.BadCopy, "missing data for column %q", name), "")
	}
	if len(c.fields) > want {
		return c.at(sqlerr.New(sqlerr.BadCopy, "extra data after last expected column"), "")
	}
	for i, f := range c.fields {
		if f.null && c.st.ForceNotNull != nil && c.st.ForceNotNull[i] {
			f.null = false
		}
		if c.binary != nil {
			if err := c.binary.append(c.cols[i], f); err != nil {
				return c.at(err, c.rel.Columns[c.st.Cols[i]].Name)
			}
			continue
		}
		if c.st.ForceNull != nil && c.st.ForceNull[i] && string(f.text) == c.st.Null {
			f.null = true
		}
		if f.null {
			c.cols[i].AppendNull()
			continue
		}
		if err := appendField(c.cols[i], f.text, c.style); err != nil {
			return c.at(err, c.rel.Columns[c.st.Cols[i]].Name)
		}
	}
	if c.n++; c.n == writeChunk {
		return c.flush()
	}
	return nil
}

// appendField reads a value as the column's type; the common types without a detour over Datum.
func appendField(col chunk.Column, text []byte, st *types.Style) error {
	t := col.Type()
	switch v := col.(type) {
	case *chunk.Vec[int64]:
		var n int64
		var err error
		switch t.OID {
		case types.OIDInt2:
			n, err = types.ParseInt(string(text), 16)
		case types.OIDInt4:
			n, err = types.ParseInt(string(text), 32)
		case types.OIDInt8:
			n, err = types.ParseInt(string(text), 64)
		case types.OIDDate:
			n, err = types.ParseDate(string(text), st)
		case types.OIDTimestamp:
			if t.Mod != 0 {
				return appendDatum(col, text, st)
			}
			n, err = types.ParseTimestamp(string(text), st)
		default:
			return appendDatum(col, text, st)
		}
		if err != nil {
			return err
		}
		v.AppendValue(n)
		return nil
	case *chunk.Vec[string]:
		if t.Mod != 0 || (t.OID != types.OIDText && t.OID != types.OIDVarchar) {
			return appendDatum(col, text, st)
		}
		s := string(text)
		if err := types.CheckUTF8(s); err != nil {
			return err
		}
		v.AppendValue(s)
		return nil
	}
	return appendDatum(col, text, st)
}

func appendDatum(col chunk.Column, text []byte, st *types.Style) error {
	d, err := types.ParseText(col.Type(), string(text), st)
	if err == nil && col.Type().Mod != 0 {
		d, err = types.ApplyTypmod(col.Type(), d, false)
	}
	if err != nil {
		return err
	}
	col.Append(d)
	return nil
}

// flush completes the rows read so far (defaults, row ids), checks and stages them.
func (c *copyIn) flush() error {
	if c.n == 0 {
		return nil
	}
	in := &chunk.Chunk{Cols: c.cols, N: c.n}
	full := &chunk.Chunk{Cols: make([]chunk.Column, len(c.rel.Columns)), N: c.n}
	for i, e := range c.exprs {
		col, err := expr.Eval(c.ectx, e, in)
		if err != nil {
			return c.at(err, c.rel.Columns[i].Name)
		}
		full.Cols[i] = col
	}
	rows, err := c.s.db.prepareRows(c.rel, []*chunk.Chunk{full}, c.st.Insert.Checks, c.ectx)
	if err != nil {
		return c.at(err, "")
	}
	c.reset()
	return c.stage.add(rows[0])
}

// finish hands the rows over and waits until they are durable and visible.
func (c *copyIn) finish(ctx context.Context) (string, error) {
	defer c.stage.drop()
	take := c.lines
	if c.binary != nil {
		take = c.tuples
	}
	if _, err := take(c.buf, true); err != nil {
		return "", err
	}
	if err := c.flush(); err != nil {
		return "", err
	}
	if err := c.hand(ctx); err != nil {
		return "", cause(ctx, err)
	}
	return fmt.Sprint("COPY ", c.stage.rows), nil
}

// hand gives the staged rows to the table, or to the transaction.
func (c *copyIn) hand(ctx context.Context) error {
	s, db := c.s, c.s.db
	if c.stage.rows == 0 {
		return nil
	}
	if s.tx.explicit() {
		tt := s.tx.table(db, c.rel)
		return c.check(ctx, &tableView{w: tt.w, over: tt.over.Overlay}, true, func(set *changeSet) error {
			s.tx.wrote = true
			if set.insKeys == nil {
				set.insKeys, set.insVals = encodeKeys(tt.w.codec, set.ins), encodeVals(tt.w.codec, set.ins)
			}
			return tt.add(set)
		})
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if hasUserKey(c.rel) && w.blind > db.store.Committed() {
		// Of a large COPY before that was given up while it waited.
		if err := db.coord.Wait(ctx, w.blind); err != nil {
			return err
		}
	}
	v := &tableView{w: w, fresh: true}
	if c.stage.rows <= copyAtomic {
		var sets []*changeSet
		var ws []*tableWriter
		err := c.check(ctx, v, true, func(set *changeSet) error {
			sets, ws = append(sets, set), append(ws, w)
			return nil
		})
		if err != nil {
			return err
		}
		e, err := db.commitChanges(sets, ws)
		if err != nil {
			return err
		}
		s.last = max(s.last, e)
		return db.waitEpoch(ctx, e, c.rel)
	}
	if hasUserKey(c.rel) {
		// All keys are looked at before the first row goes: a duplicate leaves nothing behind.
		if err := c.check(ctx, v, false, nil); err != nil {
			return err
		}
	}
	sent, err := c.steps(ctx, w)
	if err != nil {
		if undo := c.undo(w, sent); undo != nil {
			return sqlerr.New(sqlerr.From(err).Code, "%w", err).WithDetail("The first %d rows could not be taken back: %v.", sent, undo)
		}
		return err
	}
	e, err := db.coord.Flush()
	if err != nil {
		return err
	}
	s.last = max(s.last, e)
	return db.waitEpoch(ctx, e, c.rel)
}

// steps hands a large COPY over in many epochs and returns how many rows it came to.
func (c *copyIn) steps(ctx context.Context, w *tableWriter) (sent int64, err error) {
	db := c.s.db
	pos := 0
	for rows, err := range c.stage.all() {
		if err != nil {
			return sent, err
		}
		if err := ctx.Err(); err != nil {
			return sent, err
		}
		if pos += rows.Len(); pos >= copyStep {
			pos = 0
			if err := db.store.CheckSpace(); err != nil {
				return sent, err
			}
		}
		set := &changeSet{rel: c.rel, ins: []*chunk.Chunk{rows}}
		e, err := db.coord.Write(false, func(e epoch) error { return db.send(set, w, e) })
		if err != nil {
			return sent, err
		}
		sent += int64(rows.Len())
		c.s.last = max(c.s.last, e)
	}
	return sent, nil
}

// undo takes the first n rows back that steps has handed over, and waits until they are gone.
func (c *copyIn) undo(w *tableWriter, n int64) error {
	db := c.s.db
	if n == 0 {
		return nil
	}
	for rows, err := range c.stage.all() {
		if err != nil {
			return err
		}
		if int64(rows.Len()) > n {
			rows = rows.Slice(0, int(n))
		}
		set := &changeSet{rel: c.rel, dels: []*chunk.Chunk{rows}}
		if _, err := db.coord.Write(false, func(e epoch) error { return db.send(set, w, e) }); err != nil {
			return err
		}
		if n -= int64(rows.Len()); n == 0 {
			break
		}
	}
	e, err := db.coord.Flush()
	if err == nil {
		err = db.coord.Wait(context.Background(), e)
	}
	return err
}

// check looks for staged rows whose key is there already or comes twice. With keep it
// gives every staged chunk to each, with its keys and values.
func (c *copyIn) check(ctx context.Context, v *tableView, keep bool, each func(*changeSet) error) error {
	snap, err := c.s.db.store.Latest()
	if err != nil {
		return err
	}
	defer snap.Close()
	v.snap = snap
	if v.fresh {
		v.w.prune(snap.Epoch())
	}
	empty := c.s.db.Rows(c.rel.ID) == 0 && len(v.w.pending) == 0 && v.over == nil
	keyed := hasUserKey(c.rel)
	distinct := false // the rows are known not to collide with each other
	if keyed {
		if distinct, err = c.ascending(ctx, v.w.codec); err != nil {
			return err
		}
		if distinct && empty && !keep {
			return nil
		}
	}
	var seen *keySet
	for rows, err := range c.stage.all() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		set := &changeSet{rel: c.rel, ins: []*chunk.Chunk{rows}}
		if keyed {
			if seen == nil && !distinct {
				seen = newKeySet(int(c.stage.rows))
			}
			set.insKeys = encodeKeys(v.w.codec, set.ins)
			if keep {
				set.insVals = encodeVals(v.w.codec, set.ins)
			}
			dup := -1
			for i, k := range set.insKeys {
				if !distinct && !seen.add(k) {
					dup = i
					break
				}
			}
			if dup < 0 && !empty {
				if err := v.get(set.insKeys, func(i int, val []byte) {
					if val != nil && dup < 0 {
						dup = i
					}
				}); err != nil {
					return err
				}
			}
			if dup >= 0 {
				vals := encodeVals(v.w.codec, []*chunk.Chunk{rows.Slice(dup, dup+1)})
				return uniqueViolation(c.rel, v.w.codec, set.insKeys[dup], vals[0])
			}
		}
		if !keep {
			continue
		}
		if err := each(set); err != nil {
			return err
		}
	}
	return nil
}

// ascending reports whether the staged rows come in strictly ascending key order,
// as they do from a dump or a log: then no key repeats, and nothing has to be remembered to know it.
func (c *copyIn) ascending(ctx context.Context, codec *storage.Codec) (bool, error) {
	var last, key []byte
	for rows, err := range c.stage.all() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		for i := range rows.Len() {
			key = codec.AppendKeyVnode(key[:0], 0, rows.Cols, i)
			if last != nil && bytes.Compare(key, last) <= 0 {
				return false, nil
			}
			last, key = key, last
		}
	}
	return true, nil
}
