package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/storage"
	"streamdb/stream/job"
)

// A creation is what the statements that create a relation have in common.
type creation struct {
	pos         int // of the name, for errors
	schema      string
	name        string
	ifNotExists bool
}

// place resolves where a new relation goes and whether the name is free; exists is
// true where IF NOT EXISTS lets the statement pass.
func (s *Session) place(c *creation) (exists bool, err error) {
	cat := s.db.Catalog()
	if c.schema == "" {
		for _, p := range s.searchPath() {
			if cat.HasSchema(p) {
				c.schema = p
				break
			}
		}
		if c.schema == "" {
			return false, sqlerr.New(sqlerr.InvalidSchema, "no schema has been selected to create in").At(c.pos)
		}
	}
	if !cat.HasSchema(c.schema) {
		return false, sqlerr.New(sqlerr.InvalidSchema, "schema %q does not exist", c.schema).At(c.pos)
	}
	if slices.Contains(systemSchemas, c.schema) && c.schema != "public" {
		return false, sqlerr.New("42501", "permission denied to create %q", c.schema+"."+c.name).WithDetail("System catalog modifications are currently disallowed.").At(c.pos)
	}
	old := cat.Any(c.schema, c.name)
	if old == nil {
		return false, nil
	}
	if c.ifNotExists {
		s.notice("NOTICE", sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists, skipping", c.name))
		return true, nil
	}
	e := sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists", c.name).At(c.pos)
	if old.Building {
		e.WithHint("It is being created; SHOW JOBS shows how far it is.")
	}
	return false, e
}

func rangeVarCreation(rv *ast.RangeVar, ifNotExists bool) creation {
	return creation{pos: int(rv.Location), schema: rv.Schemaname, name: rv.Relname, ifNotExists: ifNotExists}
}

// jobSettings are the settings that shape a job's plan, recorded with it.
var jobSettings = []string{"enable_locality_backfill", "locality_backfill_mode", "auto_locality_backfill_min_size", "enable_index_selection", "enable_join_ordering", "enable_two_phase_agg", "streaming_max_parallelism", "timezone"}

// takeOptions reads the WITH options that every job has; the others stay with the relation.
func (s *Session) takeOptions(rel *catalog.Relation, with []parser.Option) error {
	if rate := s.set.rate("backfill_rate_limit"); rate >= 0 {
		rel.RateLimit = &rate
	}
	for _, o := range with {
		if strings.EqualFold(o.Name, "backfill_rate_limit") {
			v, err := checkRate(o.Value)
			if err != nil {
				return sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter %q: %q", o.Name, o.Value).At(o.ValuePos)
			}
			rel.RateLimit = nil
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				rel.RateLimit = &n
			}
			continue
		}
		rel.With = append(rel.With, catalog.Option{Name: o.Name, Value: o.Value})
	}
	if n, err := strconv.Atoi(s.set.get("streaming_parallelism")); err == nil {
		rel.Parallelism = n
	}
	if n, err := strconv.Atoi(s.set.get("streaming_parallelism_for_backfill")); err == nil {
		rel.BuildParallelism = n
	}
	rel.Vnodes = int(s.set.int("streaming_max_parallelism"))
	rel.Background = s.set.on("background_ddl")
	rel.Owner, rel.SearchPath = s.user, s.searchPath()
	return nil
}

// A jobPlan is a relation ready to be created.
type jobPlan struct {
	rel   *catalog.Relation
	graph *plan.Graph
}

// recordedStats are statistics as they were when a plan was made.
type recordedStats struct {
	live *DB // nil: only what is recorded
	seen map[catalog.ID]*catalog.TableStats
}

// liveStats looks at the relations as they are, once each.
func (db *DB) liveStats() *recordedStats {
	return &recordedStats{live: db, seen: map[catalog.ID]*catalog.TableStats{}}
}

func (r *recordedStats) of(id catalog.ID) *catalog.TableStats {
	t := r.seen[id]
	if t == nil {
		t = &catalog.TableStats{Rel: id}
		if r.live != nil {
			t.Rows, t.Bytes = r.live.Rows(id), r.live.Bytes(id)
		}
		r.seen[id] = t
	}
	return t
}
func (r *recordedStats) Rows(id catalog.ID) int64  { return r.of(id).Rows }
func (r *recordedStats) Bytes(id catalog.ID) int64 { return r.of(id).Bytes }

// Distinct implements planner.DistinctStats.
func (r *recordedStats) Distinct(id catalog.ID, cols []int) (int64, bool) {
	t := r.of(id)
	for _, d := range t.Distinct {
		if slices.Equal(d.Cols, cols) {
			return d.Values, true
		}
	}
	if r.live == nil {
		return 0, false
	}
	n, ok := r.live.sampleDistinct(id, cols)
	if ok {
		t.Distinct = append(t.Distinct, catalog.ColumnStats{Cols: slices.Clone(cols), Values: n})
	}
	return n, ok
}

// planJob plans the job of a relation from its definition. It is the same
// function of its arguments at creation and at every restart.
func (db *DB) planJob(rel *catalog.Relation, cat *catalog.Snapshot, set planner.Settings, st planner.Stats, ectx *expr.Ctx) (*plan.Graph, *catalog.Relation, error) {
	set.Vnodes = rel.Vnodes
	switch rel.Kind {
	case catalog.Table:
		g, err := planner.PlanTable(rel)
		return g, rel, err
	case catalog.Index:
		n, err := bindIndex(rel, cat, ectx)
		if err != nil {
			return nil, nil, err
		}
		g, err := planner.PlanIndex(n, rel, cat, set, st)
		return g, rel, err
	case catalog.MaterializedView, catalog.Sink:
		q, err := bindDefinition(rel, cat, ectx)
		if err != nil {
			return nil, nil, err
		}
		if rel.Kind == catalog.Sink {
			return planner.PlanSink(q, rel, cat, set, st)
		}
		return planner.PlanView(q, rel, cat, set, st)
	}
	return nil, nil, fmt.Errorf("a %s has no job", kindName(rel.Kind))
}

// planStream is planJob before the plan is cut into fragments, for EXPLAIN.
func (db *DB) planStream(rel *catalog.Relation, cat *catalog.Snapshot, set planner.Settings, st planner.Stats, ectx *expr.Ctx) (plan.Stream, error) {
	set.Vnodes = rel.Vnodes
	if rel.Kind == catalog.Index {
		n, err := bindIndex(rel, cat, ectx)
		if err != nil {
			return nil, err
		}
		return planner.IndexStream(n, rel, cat, set, st)
	}
	q, err := bindDefinition(rel, cat, ectx)
	if err != nil {
		return nil, err
	}
	if rel.Kind == catalog.Sink {
		return planner.SinkStream(q, rel, cat, set, st)
	}
	return planner.StreamPlan(q, rel, cat, set, st)
}

func jobBindOptions(rel *catalog.Relation, cat *catalog.Snapshot, ectx *expr.Ctx) bind.Options {
	return bind.Options{Cat: cat, SearchPath: rel.SearchPath, Streaming: true, User: rel.Owner, Ctx: ectx}
}

func bindDefinition(rel *catalog.Relation, cat *catalog.Snapshot, ectx *expr.Ctx) (*plan.Query, error) {
	stmt, err := parser.ParseQuery(rel.Definition)
	if err != nil {
		return nil, err
	}
	return bind.Query(stmt.Node, jobBindOptions(rel, cat, ectx))
}

func bindIndex(rel *catalog.Relation, cat *catalog.Snapshot, ectx *expr.Ctx) (plan.Node, error) {
	stmt, err := parser.ParseOne(rel.Definition)
	if err != nil {
		return nil, err
	}
	_, n, err := bind.CreateIndex(stmt, jobBindOptions(rel, cat, ectx))
	return n, err
}

func fingerprint(g *plan.Graph) string {
	h := fnv.New128a()
	h.Write([]byte(plan.ExplainGraph(g)))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// A recordedPlan gives the planner what it had when the plan was made.
type recordedPlan struct{ *catalog.PlanInput }

func (p *recordedPlan) get(n string) string {
	if v, ok := p.Settings[n]; ok {
		return v
	}
	return settingDefs[n].def
}

func (p *recordedPlan) stats() *recordedStats {
	st := &recordedStats{seen: map[catalog.ID]*catalog.TableStats{}}
	for _, t := range p.Stats {
		st.seen[t.Rel] = &t
	}
	return st
}

// replan makes the plan of a relation that exists, as it was made when it was created.
func (db *DB) replan(rel *catalog.Relation) (*plan.Graph, error) {
	in := &recordedPlan{rel.Plan}
	if rel.Plan == nil {
		in.PlanInput = &catalog.PlanInput{}
	}
	set := db.plannerSettings(in.get)
	var err error
	if set.BackfillOrder, err = planner.ParseBackfillOrder(in.Settings["backfill_order"]); err != nil {
		return nil, err
	}
	g, _, err := db.planJob(rel, db.before(rel), set, in.stats(), jobExprCtx(in.get("timezone")))
	if err != nil {
		return nil, err
	}
	tables := g.Tables()
	if len(tables) != len(rel.State) {
		return nil, fmt.Errorf("its plan has %d state tables, it was created with %d: this version plans it in another way", len(tables), len(rel.State))
	}
	for i, t := range tables {
		t.ID = rel.State[i]
	}
	if in.Fingerprint != "" && fingerprint(g) != in.Fingerprint {
		return nil, fmt.Errorf("this version plans it in another way than the one that created it")
	}
	return g, nil
}

// before is the catalog as the planner of rel saw it: without what came after, or was not ready.
func (db *DB) before(rel *catalog.Relation) *catalog.Snapshot { return before(db.Catalog(), rel) }

func before(cat *catalog.Snapshot, rel *catalog.Relation) *catalog.Snapshot {
	var later []catalog.ID
	for _, r := range cat.Relations() {
		if r.ID > rel.ID && r.Kind != catalog.System {
			later = append(later, r.ID)
		}
	}
	if rel.Plan != nil {
		later = append(later, rel.Plan.Unseen...)
	}
	return cat.With(nil, later)
}

// startJob gives a relation its identifiers, plans it, and starts its job. The
// relation is reserved (Building) from here on. The caller does not hold ddl.
func (s *Session) startJob(ctx context.Context, rel *catalog.Relation, order *parser.BackfillOrder) (*jobPlan, error) {
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if db.Catalog().Any(rel.Schema, rel.Name) != nil {
		return nil, sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists", rel.Name)
	}
	rel.ID = db.newIDs(1)
	in := &catalog.PlanInput{Settings: map[string]string{}}
	for _, n := range jobSettings {
		in.Settings[n] = s.set.get(n)
	}
	set := s.plannerSettings()
	if order != nil {
		text := backfillOrderText(order)
		var err error
		if set.BackfillOrder, err = planner.ParseBackfillOrder(text); err != nil {
			return nil, err
		}
		in.Settings["backfill_order"] = text
	}
	st := db.liveStats()
	g, planned, err := db.planJob(rel, db.Catalog(), set, st, jobExprCtx(s.set.get("timezone")))
	if err != nil {
		return nil, err
	}
	for _, n := range g.Notices {
		s.noticef("%s", n)
	}
	tables := g.Tables()
	first := db.newIDs(len(tables))
	for i, t := range tables {
		t.ID = first + catalog.ID(i)
		planned.State = append(planned.State, t.ID)
	}
	in.Fingerprint = fingerprint(g)
	in.Unseen = unseen(db.Catalog())
	for _, t := range st.seen {
		in.Stats = append(in.Stats, *t)
	}
	slices.SortFunc(in.Stats, func(a, b catalog.TableStats) int { return int(a.Rel) - int(b.Rel) })
	planned.Plan = in
	planned.Building = planned.Kind != catalog.Table
	j := &jobPlan{planned, g}
	db.cat.Store(db.Catalog().With([]*catalog.Relation{planned}, nil))
	_, err = db.jobs.Start(ctx, db.spec(planned, g), func(e storage.Epoch) { db.stage(e, []*catalog.Relation{planned}, nil) })
	if err != nil {
		db.abandon(planned, err)
		return nil, cause(ctx, err)
	}
	return j, nil
}

// unseen are the relations that queries, and so the planner, do not see yet.
func unseen(cat *catalog.Snapshot) []catalog.ID {
	var out []catalog.ID
	for _, r := range cat.Relations() {
		if r.Building {
			out = append(out, r.ID)
		}
	}
	return out
}

// abandon takes down a job that was being created and leaves nothing of it. The caller holds ddl.
func (db *DB) abandon(rel *catalog.Relation, why error) {
	if err := db.remove([]*catalog.Relation{rel}, why); err != nil {
		db.log.Error("a cancelled job could not be removed", "job", rel.Name, "err", err)
	}
}

// remove takes relations, their jobs and their rows away. why is what those who
// wait for them are told; nil: that they were dropped. The caller holds ddl.
func (db *DB) remove(rels []*catalog.Relation, why error) error {
	var ids, rows []catalog.ID
	var jobs []job.Removal
	for _, r := range rels {
		cause := why
		if cause == nil {
			cause = sqlerr.New(sqlerr.QueryCanceled, "%s %q was dropped", kindName(r.Kind), r.Name)
		}
		ids = append(ids, r.ID)
		rows = append(append(rows, r.ID), r.State...)
		jobs = append(jobs, job.Removal{ID: r.ID, Cause: cause})
	}
	// Nobody looks for rows that are going.
	db.cat.Store(db.Catalog().With(nil, ids))
	db.jobs.Remove(jobs, func(e storage.Epoch) {
		db.stage(e, nil, ids)
		db.store.Drop(e, ids32(rows)...)
	})
	db.mu.Lock()
	for _, id := range ids {
		delete(db.writers, id)
	}
	db.mu.Unlock()
	e, err := db.coord.Flush()
	if err == nil {
		err = db.coord.Wait(context.Background(), e)
	}
	return err
}

// build waits for a started job's backfill and makes the relation visible. In the
// background it returns at once.
func (s *Session) build(ctx context.Context, j *jobPlan) error {
	if j.rel.Background {
		s.db.background(j.rel)
		return nil
	}
	stop := s.progressNotices(j.rel)
	err := s.db.await(ctx, j.rel)
	stop(err == nil)
	return err
}

// background finishes a job without a session.
func (db *DB) background(rel *catalog.Relation) {
	db.bg.Add(1)
	go func() {
		defer db.bg.Done()
		if err := db.await(db.ctx, rel); err != nil && db.ctx.Err() == nil {
			db.log.Warn("background creation ended", "name", rel.Name, "err", err)
		}
	}()
}

// await waits until rel is built and installs it. If it is cancelled it removes
// all traces; if the job fails, likewise, with the job's error.
func (db *DB) await(ctx context.Context, rel *catalog.Relation) error {
	j := db.jobs.Job(rel.ID)
	if j == nil {
		return errCreationCanceled(rel)
	}
	select {
	case <-j.Built():
	case <-ctx.Done():
		if db.ctx.Err() != nil {
			return db.ctx.Err() // shutting down: a background job goes on at the next start
		}
		db.ddl.Lock()
		defer db.ddl.Unlock()
		if db.Catalog().ByID(rel.ID) != nil {
			db.abandon(rel, errCanceled)
		}
		return cause(ctx, ctx.Err())
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	cur := db.Catalog().ByID(rel.ID)
	if cur == nil {
		return errCreationCanceled(rel)
	}
	if err := j.Err(); err != nil {
		if db.ctx.Err() != nil {
			return err
		}
		db.abandon(rel, err)
		return fmt.Errorf("create %s %q: %w", kindName(rel.Kind), rel.Name, err)
	}
	if r := db.jobs.Report(j); r.Done >= 10_000 {
		db.speed.Store(int64(float64(r.Done) / max(0.001, db.clock.Now().Sub(r.Started).Seconds())))
	}
	n := *cur
	n.Building = false
	return db.change([]*catalog.Relation{&n}, nil, nil)
}

func errCreationCanceled(rel *catalog.Relation) error {
	return sqlerr.New(sqlerr.QueryCanceled, "creation of %q was cancelled", rel.Name)
}

// atOnce tells, inside a transaction block, that a statement is not a part of it.
func (s *Session) atOnce(what string) {
	if s.tx.explicit() && s.tx.implicit == 0 {
		s.notice("WARNING", sqlerr.New("01000", "%s takes effect at once; ROLLBACK does not undo it", what))
	}
}

// createTable is CREATE TABLE.
func (s *Session) createTable(ctx context.Context, stmt parser.Statement, c creation) (*Result, error) {
	s.atOnce("CREATE TABLE")
	if skip, err := s.place(&c); err != nil || skip {
		return done("CREATE TABLE"), err
	}
	rel, err := bind.CreateTable(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	rel.Schema, rel.Name = c.schema, c.name
	with := rel.With
	if err := s.takeOptions(rel, nil); err != nil {
		return nil, err
	}
	rel.With, rel.Background, rel.RateLimit = with, false, nil
	rel.Definition = stmt.Text
	if withOption(rel, "connector") != "" {
		if err := checkConnector(rel); err != nil {
			return nil, err
		}
	}
	_, err = s.startJob(ctx, rel, nil)
	if err != nil {
		return nil, err
	}
	return done("CREATE TABLE"), nil
}

// createView is CREATE [OR REPLACE] VIEW.
func (s *Session) createView(ctx context.Context, stmt parser.Statement, v *ast.ViewStmt) (*Result, error) {
	s.atOnce("CREATE VIEW")
	c := rangeVarCreation(v.View, false)
	db := s.db
	if v.Replace && c.schema == "" {
		if old := db.Catalog().Resolve(s.searchPath(), c.name); old != nil {
			c.schema = old.Schema
		}
	}
	var old *catalog.Relation
	if v.Replace {
		if old = db.Catalog().Any(c.schema, c.name); old != nil && old.Kind != catalog.View {
			return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not a view", c.name).At(c.pos)
		}
	}
	if old == nil {
		if _, err := s.place(&c); err != nil {
			return nil, err
		}
	}
	text, _ := parser.DefiningQuery(&stmt)
	rel := &catalog.Relation{Schema: c.schema, Name: c.name, Kind: catalog.View, Definition: text, Owner: s.user, SearchPath: s.searchPath()}
	var err error
	if rel.Columns, rel.DependsOn, err = s.viewColumns(v.Query, v.Aliases, false); err != nil {
		return nil, err
	}
	if old != nil {
		for i, col := range old.Columns {
			if i >= len(rel.Columns) {
				return nil, sqlerr.New("42P16", "cannot drop columns from view")
			}
			n := rel.Columns[i]
			if n.Name != col.Name {
				return nil, sqlerr.New("42P16", "cannot change name of view column %q to %q", col.Name, n.Name).WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
			}
			if !n.Type.Equal(col.Type) {
				return nil, sqlerr.New("42P16", "cannot change data type of view column %q", col.Name)
			}
		}
		if slices.Contains(rel.DependsOn, old.ID) {
			return nil, sqlerr.New("42P17", "infinite recursion detected in rules for relation %q", c.name)
		}
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if cur := db.Catalog().Any(c.schema, c.name); cur != old {
		return nil, sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists", c.name).At(c.pos)
	}
	if old != nil {
		if by := db.readByJob(old); by != nil && rel.Definition != old.Definition {
			return nil, sqlerr.Unsupported("CREATE OR REPLACE VIEW of %q, which the %s %q reads,", c.name, kindName(by.Kind), by.Name).At(c.pos).
				WithHint("Drop that first and create it again afterwards.")
		}
		rel.ID = old.ID
	} else {
		rel.ID = db.newIDs(1)
	}
	if err := db.change([]*catalog.Relation{rel}, nil, nil); err != nil {
		return nil, err
	}
	return done("CREATE VIEW"), nil
}

// readByJob finds a relation with a job that reads a view, directly or through other views; nil: there is none.
func (db *DB) readByJob(v *catalog.Relation) *catalog.Relation {
	for _, d := range db.Catalog().Dependents(v.ID) {
		if d.Kind != catalog.View {
			return d
		}
		if by := db.readByJob(d); by != nil {
			return by
		}
	}
	return nil
}

// viewColumns binds a view's query for its columns and what it reads.
func (s *Session) viewColumns(query *ast.Node, aliases []*ast.Node, streaming bool) ([]catalog.Column, []catalog.ID, error) {
	var deps []catalog.ID
	o := s.bindOptions(nil)
	o.Streaming = streaming
	o.OnRelation = func(r *catalog.Relation) {
		if r.Kind != catalog.System && !slices.Contains(deps, r.ID) {
			deps = append(deps, r.ID)
		}
	}
	q, err := bind.Query(query, o)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(deps)
	names, err := aliasNames(q.Names, aliases)
	if err != nil {
		return nil, nil, err
	}
	var cols []catalog.Column
	typs := q.Root.Schema().Types()
	for i, n := range names {
		if slices.ContainsFunc(cols, func(c catalog.Column) bool { return c.Name == n }) {
			return nil, nil, sqlerr.New(sqlerr.DuplicateColumn, "column %q specified more than once", n)
		}
		cols = append(cols, catalog.Column{Name: n, Type: typs[i]})
	}
	return cols, deps, nil
}

// aliasNames puts a view's column list over its query's names.
func aliasNames(names []string, aliases []*ast.Node) ([]string, error) {
	out := slices.Clone(names)
	if len(aliases) > len(out) {
		return nil, sqlerr.New(sqlerr.Syntax, "CREATE VIEW specifies more column names than columns")
	}
	for i, a := range aliases {
		out[i] = a.GetString_().GetSval()
	}
	return out, nil
}

// createMaterializedView is CREATE MATERIALIZED VIEW.
func (s *Session) createMaterializedView(ctx context.Context, stmt parser.Statement, v *ast.CreateTableAsStmt, with []parser.Option, order *parser.BackfillOrder) (*Result, error) {
	const ok = "CREATE MATERIALIZED VIEW"
	if err := s.notInBlock(ok); err != nil {
		return nil, err
	}
	c := rangeVarCreation(v.Into.Rel, v.IfNotExists)
	if skip, err := s.place(&c); err != nil || skip {
		return done(ok), err
	}
	if stmt.Clauses.EmitOnWindowClose != nil {
		return nil, sqlerr.Unsupported("EMIT ON WINDOW CLOSE").At(stmt.Clauses.EmitOnWindowClose.Pos)
	}
	text, offset := parser.DefiningQuery(&stmt)
	cols, deps, err := s.viewColumns(v.Query, v.Into.ColNames, true)
	if err != nil {
		return nil, err
	}
	if len(v.Into.ColNames) > 0 {
		text = "SELECT * FROM (" + text + ") AS _v(" + quotedNames(cols) + ")"
	}
	rel := &catalog.Relation{Schema: c.schema, Name: c.name, Kind: catalog.MaterializedView, Definition: text, DependsOn: deps, Conflict: catalog.ConflictNone}
	if err := s.takeOptions(rel, with); err != nil {
		return nil, err
	}
	j, err := s.startJob(ctx, rel, order)
	if err != nil {
		return nil, shift(err, offset)
	}
	if err := s.build(ctx, j); err != nil {
		return nil, err
	}
	return done(ok), nil
}

func quotedNames(cols []catalog.Column) string {
	var out []string
	for _, c := range cols {
		out = append(out, parser.QuoteIdent(c.Name))
	}
	return strings.Join(out, ", ")
}

// shift moves an error's position from an embedded query's text to the statement's.
func shift(err error, offset int) error {
	if e, ok := err.(*sqlerr.Error); ok && e.Pos > 0 {
		n := *e
		n.Pos += offset
		return &n
	}
	return err
}

// createIndex is CREATE INDEX: a copy of the relation in another order, kept like a view.
func (s *Session) createIndex(ctx context.Context, stmt parser.Statement, v *ast.IndexStmt, with []parser.Option) (*Result, error) {
	if err := s.notInBlock("CREATE INDEX"); err != nil {
		return nil, err
	}
	rel, _, err := bind.CreateIndex(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	c := creation{schema: rel.Schema, name: rel.Name, ifNotExists: v.IfNotExists, pos: int(v.Relation.Location)}
	if c.name == "" {
		of := s.db.Catalog().ByID(rel.Of)
		base := of.Name + "_" + rel.Columns[0].Name + "_idx"
		c.name = base
		for n := 1; s.db.Catalog().Any(c.schema, c.name) != nil; n++ {
			c.name = base + strconv.Itoa(n)
		}
	}
	if skip, err := s.place(&c); err != nil || skip {
		return done("CREATE INDEX"), err
	}
	rel.Schema, rel.Name, rel.Definition = c.schema, c.name, stmt.Text
	if err := s.takeOptions(rel, with); err != nil {
		return nil, err
	}
	j, err := s.startJob(ctx, rel, nil)
	if err != nil {
		return nil, err
	}
	if err := s.build(ctx, j); err != nil {
		return nil, err
	}
	return done("CREATE INDEX"), nil
}

// createSource is CREATE SOURCE. A source keeps no rows and has no job: each view over it reads the connector itself.
func (s *Session) createSource(ctx context.Context, stmt parser.Statement, x *parser.CreateSource) (*Result, error) {
	c := creation{pos: x.Name.Pos, schema: x.Name.Schema, name: x.Name.Name, ifNotExists: x.IfNotExists}
	if skip, err := s.place(&c); err != nil || skip {
		return done("CREATE SOURCE"), err
	}
	rel, err := bind.CreateSource(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	rel.Schema, rel.Name, rel.Definition = c.schema, c.name, stmt.Text
	rel.Owner, rel.SearchPath = s.user, s.searchPath()
	if err := checkConnector(rel); err != nil {
		return nil, err
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if db.Catalog().Any(c.schema, c.name) != nil {
		return nil, sqlerr.New(sqlerr.DuplicateTable, "relation %q already exists", c.name).At(c.pos)
	}
	rel.ID = db.newIDs(1)
	if err := db.change([]*catalog.Relation{rel}, nil, nil); err != nil {
		return nil, err
	}
	return done("CREATE SOURCE"), nil
}

// createSink is CREATE SINK.
func (s *Session) createSink(ctx context.Context, stmt parser.Statement, x *parser.CreateSink) (*Result, error) {
	if err := s.notInBlock("CREATE SINK"); err != nil {
		return nil, err
	}
	if x.Into != nil {
		return nil, sqlerr.Unsupported("CREATE SINK INTO a table").At(x.Into.Pos)
	}
	c := creation{pos: x.Name.Pos, schema: x.Name.Schema, name: x.Name.Name, ifNotExists: x.IfNotExists}
	if skip, err := s.place(&c); err != nil || skip {
		return done("CREATE SINK"), err
	}
	text := x.QueryText
	if x.From != nil {
		text = "SELECT * FROM " + qualified(x.From)
	}
	q, err := parser.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	_, deps, err := s.viewColumns(q.Node, nil, true)
	if err != nil {
		return nil, err
	}
	rel := &catalog.Relation{Schema: c.schema, Name: c.name, Kind: catalog.Sink, Definition: text, DependsOn: deps, Conflict: catalog.ConflictNone}
	if err := s.takeOptions(rel, x.With); err != nil {
		return nil, err
	}
	switch name := withOption(rel, "connector"); name {
	case "blackhole":
	case "":
		return nil, sqlerr.New(sqlerr.InvalidParameter, "a sink needs the option %q", "connector").WithHint("CREATE SINK … WITH (connector = 'blackhole').")
	default:
		return nil, sqlerr.Unsupported("the sink connector %q", name).WithHint("Sink connectors: blackhole.")
	}
	j, err := s.startJob(ctx, rel, nil)
	if err != nil {
		return nil, err
	}
	if err := s.build(ctx, j); err != nil {
		return nil, err
	}
	return done("CREATE SINK"), nil
}

func qualified(n *parser.Name) string {
	if n.Schema == "" {
		return parser.QuoteIdent(n.Name)
	}
	return parser.QuoteIdent(n.Schema) + "." + parser.QuoteIdent(n.Name)
}

func withOption(r *catalog.Relation, name string) string {
	for _, o := range r.With {
		if strings.EqualFold(o.Name, name) {
			return o.Value
		}
	}
	return ""
}

// checkConnector refuses a connector that is not there, and options that it does not take.
func checkConnector(r *catalog.Relation) error {
	name := withOption(r, "connector")
	var names []string
	for _, d := range drivers {
		if d.Name == name {
			_, err := d.Splits(r)
			return err
		}
		names = append(names, d.Name)
	}
	return sqlerr.Unsupported("the source connector %q", name).WithHint("Source connectors: %s.", strings.Join(names, ", "))
}

// notInBlock refuses what cannot be taken back inside a transaction block.
func (s *Session) notInBlock(what string) error {
	if s.tx.explicit() && s.tx.implicit == 0 {
		return sqlerr.New(sqlerr.ActiveTransaction, "%s cannot run inside a transaction block", what)
	}
	return nil
}
