package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream/batch"
)

// A Session is one client's conversation. Its methods are called by one
// goroutine; Cancel and what SHOW PROCESSLIST reads may come from others.
type Session struct {
	db       *DB
	id       uint32
	secret   uint32
	user     string
	database string
	o        SessionOptions
	set      *settings
	style    *types.Style // of set; nil: to be made anew
	tx       txState
	last     storage.Epoch // newest epoch that holds a write of this session
	prepared map[string]*Prepared
	cursors  map[string]*cursor
	started  time.Time

	mu      sync.Mutex
	running string // statement, "" when idle
	since   time.Time
	app     string
	cancel  context.CancelCauseFunc // of the running statement; nil: idle
	ctx     context.Context         // of the running statement

	statement uint64      // number of the newest statement
	idle      *time.Timer // ends the session if it stays idle inside a transaction block; nil: nothing does
}

// A txState is where a session is with respect to transactions.
type txState struct {
	*txn          // nil: no transaction block
	implicit int  // depth of implicit blocks (several statements in one message)
	failed   bool // an error has made the block useless
	base     txnBase
}

// A txnBase is what every statement has, inside a block or not.
type txnBase struct{ now int64 }

// explicit reports whether writes are held back until a COMMIT.
func (t *txState) explicit() bool { return t.txn != nil }

// readOnly reports whether writes are refused.
func (t *txState) isReadOnly() bool { return t.txn != nil && t.txn.readOnly }

// Session opens a session.
func (db *DB) Session(o SessionOptions) (*Session, error) {
	if o.User == "" {
		return nil, sqlerr.New("28000", "no PostgreSQL user name specified in startup packet")
	}
	if o.Database == "" {
		o.Database = o.User
	}
	if o.Database != DefaultDatabase {
		return nil, sqlerr.New(sqlerr.InvalidDatabase, "database %q does not exist", o.Database).WithHint("This server has one database, %q.", DefaultDatabase)
	}
	s := &Session{db: db, user: o.User, database: o.Database, o: o, set: newSettings(db), prepared: map[string]*Prepared{}, cursors: map[string]*cursor{}, started: db.clock.Now()}
	s.set.start["session_authorization"] = o.User
	for name, v := range o.Params {
		d, err := findSetting(name)
		if err != nil {
			return nil, err
		}
		if d.readOnly {
			return nil, sqlerr.New("55P02", "parameter %q cannot be changed", d.name)
		}
		if v, err = d.normalize(v); err != nil {
			return nil, err
		}
		s.set.start[strings.ToLower(d.name)] = v
	}
	s.app = s.set.get("application_name")
	db.mu.Lock()
	db.nextSess++
	s.id, s.secret = db.nextSess, uint32(db.rng.Uint64())
	db.sessions[s.id] = s
	db.mu.Unlock()
	return s, nil
}

// DefaultDatabase is the one database of a server.
const DefaultDatabase = "dev"

// Close rolls back what is open and forgets the session.
func (s *Session) Close() {
	s.mu.Lock()
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.mu.Unlock()
	s.tx = txState{}
	for _, c := range s.cursors {
		c.close()
	}
	s.db.mu.Lock()
	delete(s.db.sessions, s.id)
	s.db.mu.Unlock()
}

// ID and Secret identify the session in a CancelRequest.
func (s *Session) ID() uint32     { return s.id }
func (s *Session) Secret() uint32 { return s.secret }

// Cancel ends what a session is running, with 57014. A wrong secret is ignored.
func (db *DB) Cancel(id, secret uint32) {
	db.mu.Lock()
	s := db.sessions[id]
	db.mu.Unlock()
	if s != nil && s.secret == secret {
		s.interrupt(errCanceled)
	}
}

var errCanceled = sqlerr.New(sqlerr.QueryCanceled, "canceling statement due to user request")

func (s *Session) interrupt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(cause)
	}
}

// Status is the transaction status of ReadyForQuery: 'I', 'T' or 'E'.
func (s *Session) Status() byte {
	switch {
	case s.tx.failed:
		return 'E'
	case s.tx.explicit():
		return 'T'
	}
	return 'I'
}

// ParameterStatus returns the parameters that clients are told of at the start, in PostgreSQL's order.
func (s *Session) ParameterStatus() [][2]string {
	out := make([][2]string, len(reportOrder))
	for i, n := range reportOrder {
		out[i] = [2]string{n, s.set.get(n)}
	}
	return out
}

// Style is how values are written for this session.
func (s *Session) Style() *types.Style {
	if s.style == nil {
		s.style = s.set.style(func() int64 { return s.tx.base.now })
	}
	return s.style
}

// setTo changes a setting; local: until the end of the transaction.
func (s *Session) setTo(name, value string, local bool) error {
	d, err := findSetting(name)
	if err != nil {
		return err
	}
	if d.readOnly {
		return sqlerr.New("55P02", "parameter %q cannot be changed", d.name)
	}
	v, err := d.normalize(value)
	if err != nil {
		return err
	}
	key := strings.ToLower(d.name)
	if d.system {
		return s.setSystem(s.db.ctx, key, v)
	}
	if local {
		if !s.tx.explicit() {
			s.notice("WARNING", sqlerr.New(sqlerr.NoActiveTransaction, "SET LOCAL can only be used in transaction blocks"))
			return nil
		}
		if _, ok := s.tx.local[key]; !ok {
			s.tx.local[key] = s.set.get(key)
		}
	}
	if s.tx.explicit() {
		if !local {
			delete(s.tx.local, key) // SET after SET LOCAL stays after the block
		}
		if key == "transaction_read_only" {
			s.tx.readOnly = v == "on"
		}
	}
	s.assign(key, v)
	return nil
}

// assign stores a checked value and tells who must know.
func (s *Session) assign(key, v string) {
	old := s.set.get(key)
	s.set.vals[key] = v
	s.settingChanged(key, old)
}

func (s *Session) settingChanged(key, old string) {
	now := s.set.get(key)
	if old == now {
		return
	}
	s.style = nil
	if key == "application_name" {
		s.mu.Lock()
		s.app = now
		s.mu.Unlock()
	}
	if d := settingDefs[key]; d.report && s.o.Changed != nil {
		s.o.Changed(d.name, now)
	}
}

// restoreSettings goes back to earlier values.
func (s *Session) restoreSettings(vals map[string]string) {
	was := s.set.vals
	s.set.vals = maps.Clone(vals)
	for key := range settingDefs {
		old, ok := was[key]
		if !ok {
			if _, has := vals[key]; !has {
				continue
			}
			old = (&settings{vals: was, start: s.set.start}).get(key)
		}
		s.settingChanged(key, old)
	}
}

// notice sends a message to the client if it asked for its level.
func (s *Session) notice(severity string, e *sqlerr.Error) {
	if s.o.Notice == nil {
		return
	}
	rank := map[string]int{"debug5": 0, "debug4": 0, "debug3": 0, "debug2": 0, "debug1": 1, "log": 2, "notice": 3, "info": 9, "warning": 4, "error": 5}
	if rank[strings.ToLower(severity)] < rank[s.set.get("client_min_messages")] {
		return
	}
	s.o.Notice(&Notice{Severity: severity, Error: *e})
}

func (s *Session) noticef(format string, args ...any) {
	s.notice("NOTICE", sqlerr.New("00000", format, args...))
}

// Parse splits a text into statements.
func (s *Session) Parse(text string) ([]parser.Statement, error) { return parser.Parse(text) }

// begin opens a transaction block.
func (s *Session) begin(readOnly bool) {
	s.tx.txn = &txn{now: s.tx.base.now, readOnly: readOnly, settings: maps.Clone(s.set.vals), local: map[string]string{}, tables: map[catalog.ID]*txnTable{}}
}

// commit ends the transaction block; a failed one is rolled back. It returns the command tag.
func (s *Session) commit(ctx context.Context) (string, error) {
	if s.tx.failed || !s.tx.explicit() {
		s.rollback()
		return "ROLLBACK", nil
	}
	t := s.tx.txn
	e, err := t.commit(ctx, s.db)
	if err != nil {
		s.rollback()
		return "", err
	}
	s.endBlock(t)
	if e > 0 {
		s.last = max(s.last, e)
		if s.set.on("implicit_flush") {
			var tables []*catalog.Relation
			for _, tt := range t.order() {
				tables = append(tables, tt.rel)
			}
			if err := s.db.waitEpoch(ctx, e, tables...); err != nil {
				return "", err
			}
		}
	}
	return "COMMIT", nil
}

// endBlock leaves the block after a commit: SET LOCAL goes back.
func (s *Session) endBlock(t *txn) {
	for key, v := range t.local {
		s.assign(key, v)
	}
	for _, key := range []string{"transaction_isolation", "transaction_read_only"} {
		old := s.set.get(key)
		delete(s.set.vals, key)
		s.settingChanged(key, old)
	}
	s.closeCursors(false)
	s.tx.txn, s.tx.failed = nil, false
}

// rollback leaves the block and forgets what it did.
func (s *Session) rollback() {
	if t := s.tx.txn; t != nil {
		s.restoreSettings(t.settings)
		for name, c := range s.cursors {
			if c.born == t { // one WITH HOLD is held by a commit only
				c.close()
				delete(s.cursors, name)
			}
		}
	}
	s.closeCursors(false)
	s.tx.txn, s.tx.failed = nil, false
}

// BeginImplicit opens the implicit transaction of several statements that a client
// sends at once: if one fails, none has happened. A single statement needs none.
func (s *Session) BeginImplicit() {
	if !s.tx.explicit() {
		s.tx.base.now = s.db.now()
		s.begin(false)
		s.tx.implicit++
	}
}

// EndImplicit ends what BeginImplicit has opened, unless a BEGIN has made it explicit.
func (s *Session) EndImplicit(ctx context.Context, ok bool) error {
	if s.tx.implicit == 0 {
		return nil
	}
	s.tx.implicit = 0
	if !s.tx.explicit() {
		return nil
	}
	if !ok {
		s.rollback()
		return nil
	}
	_, err := s.commit(ctx)
	return err
}

// Fail records that a statement ended with an error: an open block is now of no use.
func (s *Session) Fail() {
	if s.tx.explicit() && s.tx.implicit == 0 {
		s.tx.failed = true
	}
}

// exprCtx is what the session's expressions may depend on.
func (s *Session) exprCtx(params []types.Datum) *expr.Ctx {
	return &expr.Ctx{Style: s.Style(), Params: params, Now: s.tx.base.now, Sys: &system{s}, Seed: s.db.seed}
}

// snapshot pins the newest committed epoch, no older than the session's own last
// write. With implicit_flush off it may be older, but not for a transaction block:
// what that finds missing it would at COMMIT take for the write of somebody else.
func (s *Session) snapshot(ctx context.Context) (*storage.Snapshot, error) {
	if s.last > s.db.store.Committed() && (s.set.on("implicit_flush") || s.tx.explicit()) {
		if err := s.db.coord.Wait(ctx, s.last); err != nil {
			return nil, err
		}
	}
	return s.db.store.Latest()
}

// overlay is what the session's transaction has done to a table; nil: nothing.
func (s *Session) overlay(r *catalog.Relation) *batch.Overlay {
	if !s.tx.explicit() {
		return nil
	}
	if tt := s.tx.tables[r.ID]; tt != nil && tt.over.Len() > 0 {
		return tt.over.Overlay
	}
	return nil
}

// guard runs a statement with its time limit, cancellation and bookkeeping. done must be called at its end.
func (s *Session) guard(ctx context.Context, text string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	if d := s.set.duration("statement_timeout"); d > 0 {
		timer = time.AfterFunc(d, func() {
			cancel(sqlerr.New(sqlerr.QueryCanceled, "canceling statement due to statement timeout"))
		})
	}
	begin := s.db.clock.Now()
	s.mu.Lock()
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.statement++
	id := s.statement
	s.running, s.since, s.cancel, s.ctx = text, begin, cancel, ctx
	s.mu.Unlock()
	return ctx, func() {
		if timer != nil {
			timer.Stop()
		}
		s.mu.Lock()
		if s.statement == id { // an earlier one's result may be closed later
			s.running, s.cancel = "", nil
			s.watchIdle(id)
		}
		s.mu.Unlock()
		cancel(nil)
		s.db.metrics.QuerySeconds.Observe(s.db.clock.Now().Sub(begin).Seconds())
	}
}

// watchIdle ends the session if no statement follows the newest one, with number
// id, inside a transaction block for as long as the setting allows. The caller holds mu.
func (s *Session) watchIdle(id uint64) {
	d := s.set.duration("idle_in_transaction_session_timeout")
	if d == 0 || s.o.Terminate == nil || !s.tx.explicit() || s.tx.implicit > 0 {
		return
	}
	s.idle = time.AfterFunc(d, func() {
		s.mu.Lock()
		still := s.statement == id && s.running == "" && s.idle != nil
		s.mu.Unlock()
		if still {
			s.o.Terminate(sqlerr.New("25P03", "terminating connection due to idle-in-transaction timeout"))
		}
	})
}

// cause turns the error of an interrupted statement into the reason it was interrupted for.
func cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if c := context.Cause(ctx); c != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		if errors.Is(c, context.Canceled) {
			return errCanceled
		}
		return c
	}
	return err
}

// run starts a plan at the session's snapshot.
func (s *Session) run(ctx context.Context, n planNode, ectx *expr.Ctx, overlay func(*catalog.Relation) *batch.Overlay) (batch.Iterator, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	// After the snapshot was taken: of a relation that is still there then, the snapshot has all rows.
	if err := s.readable(n); err != nil {
		snap.Close()
		return nil, err
	}
	p := &pinned{snap: snap}
	if s.tx.explicit() {
		overlay = p.holdOverlays(s.tx.txn, overlay)
	}
	p.Iterator, err = batch.Run(n, &batch.Env{Snap: snap, Ctx: ectx, Desc: relationDesc, System: s.systemRows, Overlay: overlay, Memory: s.db.queryBytes(), ChunkSize: s.db.o.ChunkSize, TempDir: s.db.tempDir()})
	if err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

// queryBytes is what one query may hold before it spills; 0: batch's default.
func (db *DB) queryBytes() int64 {
	if db.o.MemoryLimit > 0 {
		return max(db.o.MemoryLimit/4, 16<<20)
	}
	return 0
}

// A pinned iterator keeps its snapshot open, and what its transaction had written
// when it began as it was, until it is closed.
type pinned struct {
	batch.Iterator
	snap *storage.Snapshot
	held []*txnOverlay
}

// holdOverlays makes an overlay function that goes on giving what overlay gives now.
func (p *pinned) holdOverlays(t *txn, overlay func(*catalog.Relation) *batch.Overlay) func(*catalog.Relation) *batch.Overlay {
	now := map[catalog.ID]*batch.Overlay{}
	for id, tt := range t.tables {
		o := overlay(tt.rel)
		if o == tt.over.Overlay {
			tt.over.readers++
			p.held = append(p.held, tt.over)
		}
		now[id] = o
	}
	return func(r *catalog.Relation) *batch.Overlay {
		if o, ok := now[r.ID]; ok {
			return o
		}
		return overlay(r)
	}
}

func (p *pinned) Close() {
	p.Iterator.Close()
	p.free()
}

func (p *pinned) free() {
	if p.snap != nil {
		p.snap.Close()
		p.snap = nil
	}
	for _, o := range p.held {
		o.readers--
	}
	p.held = nil
}

// usable says whether a relation may be read or written: its job must run.
func (db *DB) usable(r *catalog.Relation) error {
	if r.Kind == catalog.System {
		return nil
	}
	cur := db.Catalog().ByID(r.ID)
	if cur == nil {
		return sqlerr.New(sqlerr.UndefinedTable, "relation %q does not exist", r.Name)
	}
	if r = cur; r.Failed == "" {
		return nil
	}
	return sqlerr.New(sqlerr.NotPrepared, "%s %q has stopped: %s", kindName(r.Kind), r.Name, r.Failed).
		WithHint("Drop it and create it again; SELECT * FROM rw_catalog.rw_job_errors shows all that have stopped.")
}

func kindName(k catalog.Kind) string {
	switch k {
	case catalog.Table, catalog.System:
		return "table"
	case catalog.View:
		return "view"
	case catalog.MaterializedView:
		return "materialized view"
	case catalog.Index:
		return "index"
	case catalog.Source:
		return "source"
	case catalog.Sink:
		return "sink"
	}
	return fmt.Sprintf("relation of kind %d", k)
}

// tag makes the function that gives a fixed command tag.
func tag(t string) func(int64) string { return func(int64) string { return t } }

// done is the result of a statement without rows.
func done(t string) *Result { return &Result{tag: tag(t)} }

// rowsResult is a result whose rows are there already.
func rowsResult(t string, cols []ResultColumn, rows ...*chunk.Chunk) *Result {
	i := 0
	return &Result{Columns: cols, tag: func(n int64) string {
		if strings.HasSuffix(t, " ") {
			return fmt.Sprint(t, n)
		}
		return t
	}, next: func(context.Context) (*chunk.Chunk, error) {
		if i == len(rows) {
			return nil, nil
		}
		i++
		return rows[i-1], nil
	}}
}
