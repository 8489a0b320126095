package engine

import (
	"context"
	"fmt"
	"strings"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream/exec"
)

type planNode = plan.Node

func relationDesc(r *catalog.Relation) storage.Desc { return exec.RelationDesc(r) }

// A planned is what preparing a statement leaves for executing it.
type planned struct {
	stmt    plan.Statement // a query or DML; nil: a utility statement
	version uint64         // of the catalog it was bound against
	path    string         // search_path it was bound with
	given   []types.Type   // parameter types that the client stated
	indexed bool           // it reads an index, which knows nothing of a transaction's own rows
}

// bindOptions are what a statement of this session binds against.
func (s *Session) bindOptions(params []types.Type) bind.Options {
	return bind.Options{Cat: s.db.Catalog(), SearchPath: s.searchPath(), ParamTypes: params, Ctx: s.exprCtx(nil), User: s.user}
}

func (s *Session) searchPath() []string { return s.set.searchPath(s.user) }

// plannerSettings are the session's settings that shape plans.
func (s *Session) plannerSettings() planner.Settings { return s.db.plannerSettings(s.set.get) }

func (db *DB) plannerSettings(get func(string) string) planner.Settings {
	on := func(n string) bool { return get(n) == "on" }
	mode := get("locality_backfill_mode")
	return planner.Settings{Parallelism: db.o.Parallelism, LocalityEnabled: on("enable_locality_backfill"), LocalityMode: mode, CacheBudget: db.cacheBytes(), LocalityMinSize: atoi(get("auto_locality_backfill_min_size")),
		IndexSelection: on("enable_index_selection"), JoinOrdering: on("enable_join_ordering"), TwoPhaseAgg: on("enable_two_phase_agg")}
}

// Prepare binds and plans a statement. params are the type OIDs the client states, 0 for unknown.
func (s *Session) Prepare(ctx context.Context, stmt parser.Statement, params []uint32) (*Prepared, error) {
	if s.tx.failed && !endsBlock(stmt) {
		return nil, errFailedBlock()
	}
	s.tick()
	p := &Prepared{Stmt: stmt, session: s}
	for _, oid := range params {
		t, ok := types.ByOID(oid)
		if oid != 0 && !ok {
			return nil, sqlerr.New(sqlerr.UndefinedObject, "type with OID %d does not exist", oid)
		}
		if oid == 0 {
			t = types.Type{}
		}
		p.plan.given = append(p.plan.given, t)
	}
	return p, s.prepare(p)
}

func errFailedBlock() error {
	return sqlerr.New(sqlerr.InFailedTransaction, "current transaction is aborted, commands ignored until end of transaction block")
}

// tick sets the statement's time, which inside a block is the block's.
func (s *Session) tick() {
	if s.tx.explicit() {
		s.tx.base.now = s.tx.now
	} else {
		s.tx.base.now = s.db.now()
	}
}

func (s *Session) prepare(p *Prepared) error {
	cat := s.db.Catalog()
	p.plan.version, p.plan.path = cat.Version, s.set.get("search_path")
	if !isPlannable(p.Stmt) {
		cols, err := s.utilityColumns(p.Stmt)
		p.Columns = cols
		p.Params = make([]types.Type, p.Stmt.Params)
		for i := range p.Params {
			p.Params[i] = types.Text
		}
		return err
	}
	st, params, err := bind.Bind(p.Stmt, s.bindOptions(p.plan.given))
	if err != nil {
		return err
	}
	p.Params = params
	if p.plan.stmt, err = s.plan(st, cat); err != nil {
		return err
	}
	p.plan.indexed = readsIndex(sourceOf(p.plan.stmt), 0)
	p.Columns = resultColumns(p.plan.stmt)
	return nil
}

// plan optimises a bound statement.
func (s *Session) plan(st plan.Statement, cat *catalog.Snapshot) (plan.Statement, error) {
	set := s.plannerSettings()
	if s.tx.explicit() && s.tx.wrote {
		set.IndexSelection = false
	}
	sub := func(n plan.Node) (plan.Node, error) {
		q, err := planner.PlanBatch(&plan.Query{Root: n}, cat, set, s.db)
		if err != nil {
			return nil, err
		}
		return q.Root, nil
	}
	var err error
	switch st := st.(type) {
	case *plan.Query:
		return planner.PlanBatch(st, cat, set, s.db)
	case *plan.Insert:
		n := *st
		n.Source, err = sub(st.Source)
		return &n, err
	case *plan.Update:
		n := *st
		n.Source, err = sub(st.Source)
		return &n, err
	case *plan.Delete:
		n := *st
		n.Source, err = sub(st.Source)
		return &n, err
	}
	return nil, fmt.Errorf("engine: cannot plan %T", st)
}

// sourceOf is the plan that a statement runs.
func sourceOf(st plan.Statement) plan.Node {
	switch st := st.(type) {
	case *plan.Query:
		return st.Root
	case *plan.Insert:
		return st.Source
	case *plan.Update:
		return st.Source
	case *plan.Delete:
		return st.Source
	}
	return nil
}

// readsIndex reports whether a plan reads an index, of a given relation if of is not 0.
func readsIndex(n plan.Node, of catalog.ID) bool {
	if sc, ok := n.(*plan.Scan); ok {
		return sc.Rel.Kind == catalog.Index && (of == 0 || sc.Rel.Of == of)
	}
	for _, in := range n.Inputs() {
		if readsIndex(in, of) {
			return true
		}
	}
	return false
}

func resultColumns(st plan.Statement) []ResultColumn {
	var names []string
	var origin []plan.Origin
	var typs []types.Type
	switch st := st.(type) {
	case *plan.Query:
		names, origin = st.Names, st.Origin
		typs = st.Root.Schema().Types()
	case *plan.Insert:
		if st.Returning == nil {
			return nil
		}
		names, origin, typs = returningColumns(st.Returning)
	case *plan.Update:
		if st.Returning == nil {
			return nil
		}
		names, origin, typs = returningColumns(st.Returning)
	case *plan.Delete:
		if st.Returning == nil {
			return nil
		}
		names, origin, typs = returningColumns(st.Returning)
	}
	out := make([]ResultColumn, len(names))
	for i, n := range names {
		out[i] = ResultColumn{Name: n, Type: typs[i]}
		if i < len(origin) {
			out[i].Rel, out[i].Att = origin[i].Rel, origin[i].Col
		}
	}
	return out
}

func returningColumns(r *plan.Returning) ([]string, []plan.Origin, []types.Type) {
	typs := make([]types.Type, len(r.Exprs))
	for i, e := range r.Exprs {
		typs[i] = e.Type()
	}
	return r.Names, r.Origin, typs
}

// isPlannable reports whether a statement is a query or DML, which the binder takes.
func isPlannable(stmt parser.Statement) bool {
	if stmt.Ext != nil {
		return false
	}
	switch n := stmt.Node.GetNode().(type) {
	case *ast.Node_SelectStmt:
		return n.SelectStmt.IntoClause == nil
	case *ast.Node_InsertStmt, *ast.Node_UpdateStmt, *ast.Node_DeleteStmt:
		return true
	}
	return false
}

// endsBlock reports whether a statement may run in a failed transaction block.
func endsBlock(stmt parser.Statement) bool {
	if stmt.Ext != nil {
		return false
	}
	if t, ok := stmt.Node.GetNode().(*ast.Node_TransactionStmt); ok {
		switch t.TransactionStmt.Kind {
		case ast.TransactionStmtKind_TRANS_STMT_COMMIT, ast.TransactionStmtKind_TRANS_STMT_ROLLBACK, ast.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
			return true
		}
	}
	return false
}

// Execute runs a prepared statement. The result must be closed; ctx ends it early.
func (s *Session) Execute(ctx context.Context, p *Prepared, args []types.Datum) (*Result, error) {
	if s.tx.failed && !endsBlock(p.Stmt) {
		return nil, errFailedBlock()
	}
	s.tick()
	if s.stale(p) {
		if err := s.prepare(p); err != nil {
			return nil, err
		}
	}
	ctx, end := s.guard(ctx, p.Stmt.Text)
	r, err := s.execute(ctx, p, args)
	if err != nil {
		end()
		return nil, cause(ctx, err)
	}
	next, stop := r.next, r.stop
	if next != nil {
		r.next = func(context.Context) (*chunk.Chunk, error) {
			c, err := next(ctx)
			return c, cause(ctx, err)
		}
	}
	r.stop = func() {
		if stop != nil {
			stop()
		}
		end()
	}
	return r, nil
}

// stale reports whether a statement must be planned anew before it runs.
func (s *Session) stale(p *Prepared) bool {
	if p.plan.stmt == nil {
		return false
	}
	changed := p.plan.version != s.db.Catalog().Version || p.plan.path != s.set.get("search_path")
	return changed || p.plan.indexed && s.tx.explicit() && s.tx.wrote
}

func (s *Session) execute(ctx context.Context, p *Prepared, args []types.Datum) (*Result, error) {
	if len(args) != len(p.Params) {
		return nil, sqlerr.New(sqlerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement requires %d", len(args), len(p.Params))
	}
	if p.plan.stmt == nil {
		return s.utility(ctx, p.Stmt, args)
	}
	ectx := s.exprCtx(args)
	q, ok := p.plan.stmt.(*plan.Query)
	if !ok {
		w, err := s.dml(ctx, p.plan.stmt, ectx)
		if err != nil {
			return nil, err
		}
		name := dmlName(p.plan.stmt) + " "
		if strings.HasPrefix(name, "INSERT") {
			name += "0 "
		}
		r := rowsResult("", p.Columns, w.ret...)
		r.tag = func(int64) string { return fmt.Sprint(name, w.rows) }
		return r, nil
	}
	it, err := s.run(ctx, q.Root, ectx, s.overlay)
	if err != nil {
		return nil, err
	}
	return &Result{Columns: p.Columns, next: it.Next, stop: it.Close, tag: func(n int64) string { return fmt.Sprint("SELECT ", n) }}, nil
}

// readable refuses plans over relations whose job has stopped, and over sources, which keep no rows.
func (s *Session) readable(n plan.Node) error {
	if sc, ok := n.(*plan.Scan); ok {
		if sc.Rel.Kind == catalog.Source {
			return sqlerr.Unsupported("SELECT from the source %q", sc.Rel.Name).WithHint("A source keeps no rows: CREATE MATERIALIZED VIEW … AS SELECT … FROM it.")
		}
		return s.db.usable(sc.Rel)
	}
	for _, in := range n.Inputs() {
		if err := s.readable(in); err != nil {
			return err
		}
	}
	return nil
}

// tempDir is where operators spill.
func (db *DB) tempDir() string {
	if db.o.Dir == "" || db.o.Dir == ":memory:" {
		return ""
	}
	return db.o.Dir
}
