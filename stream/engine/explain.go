package engine

import (
	"context"
	"strings"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// An explainMode is what an EXPLAIN asks for.
type explainMode struct {
	verbose, logical, distsql, backfill bool
	format                              string // text, json or dot
}

func explainOptions(x *parser.Explain) (explainMode, error) {
	m := explainMode{verbose: x.Verbose, format: "text"}
	if x.Analyze {
		return m, sqlerr.Unsupported("EXPLAIN ANALYZE").At(x.Pos)
	}
	for _, o := range x.Options {
		on := o.Kind == parser.Flag || o.Value == "true" || o.Value == "on" || o.Value == "1"
		switch strings.ToLower(o.Name) {
		case "verbose":
			m.verbose = on
		case "logical":
			m.logical = on
		case "distsql":
			m.distsql = on
		case "physical", "trace", "costs", "buffers", "timing", "summary":
		case "format":
			m.format = strings.ToLower(o.Value)
		case "type":
			m.logical, m.distsql = strings.EqualFold(o.Value, "logical"), strings.EqualFold(o.Value, "distsql")
		case "backfill":
			m.backfill = on
		case "analyze":
			return m, sqlerr.Unsupported("EXPLAIN (%s)", strings.ToUpper(o.Name)).At(o.Pos)
		default:
			return m, sqlerr.New(sqlerr.Syntax, "unrecognized EXPLAIN option %q", o.Name).At(o.Pos).WithHint("Options: VERBOSE, LOGICAL, PHYSICAL, DISTSQL, BACKFILL, FORMAT TEXT | JSON | DOT.")
		}
	}
	switch m.format {
	case "text", "json", "dot":
	case "xml", "yaml":
		return m, sqlerr.Unsupported("EXPLAIN (FORMAT %s)", strings.ToUpper(m.format)).At(x.Pos)
	}
	return m, nil
}

// text writes a plan in the format asked for.
func (m *explainMode) text(text, json, dot func() string) string {
	switch m.format {
	case "json":
		return json()
	case "dot":
		return dot()
	}
	return text()
}

// explain is EXPLAIN of a statement, or of a relation that exists.
func (s *Session) explain(ctx context.Context, x *parser.Explain) (*Result, error) {
	m, err := explainOptions(x)
	if err != nil {
		return nil, err
	}
	if x.Stmt == nil {
		r, err := s.find(x.Name)
		if err != nil {
			return nil, err
		}
		in := &recordedPlan{r.Plan}
		if r.Plan == nil {
			in.PlanInput = &catalog.PlanInput{}
		}
		return s.explainJob(r, s.db.before(r), s.db.plannerSettings(in.get), in.stats(), in.get("timezone"), m)
	}
	stmt := *x.Stmt
	rel := &catalog.Relation{Schema: "public"}
	set := s.plannerSettings()
	switch {
	case isPlannable(stmt):
		return s.explainQuery(stmt, m)
	case stmt.Ext == nil:
		switch n := stmt.Node.GetNode().(type) {
		case *ast.Node_CreateTableAsStmt:
			rel.Kind, rel.Name = catalog.MaterializedView, n.CreateTableAsStmt.Into.Rel.Relname
			rel.Definition, _ = parser.DefiningQuery(&stmt)
		case *ast.Node_IndexStmt:
			r, _, err := bind.CreateIndex(stmt, s.bindOptions(nil))
			if err != nil {
				return nil, err
			}
			rel = r
			rel.Definition = stmt.Text
		case *ast.Node_CreateStmt:
			r, err := bind.CreateTable(stmt, s.bindOptions(nil))
			if err != nil {
				return nil, err
			}
			rel = r
		default:
			return nil, sqlerr.Unsupported("EXPLAIN of %s", parser.Tag(&stmt)).At(stmt.Offset)
		}
	default:
		switch e := stmt.Ext.(type) {
		case *parser.CreateMaterializedView:
			rel.Kind, rel.Name = catalog.MaterializedView, e.Create.Into.Rel.Relname
			rel.Definition, _ = parser.DefiningQuery(&stmt)
			err = s.takeOptions(rel, e.With)
			if err == nil && e.BackfillOrder != nil {
				set.BackfillOrder, err = planner.ParseBackfillOrder(backfillOrderText(e.BackfillOrder))
			}
		case *parser.CreateSink:
			rel.Kind, rel.Name, rel.Definition = catalog.Sink, e.Name.Name, e.QueryText
			if e.From != nil {
				rel.Definition = "SELECT * FROM " + qualified(e.From)
			}
			err = s.takeOptions(rel, e.With)
		case *parser.CreateTable:
			rel, err = bind.CreateTable(stmt, s.bindOptions(nil))
		case *parser.CreateIndex:
			rel, _, err = bind.CreateIndex(stmt, s.bindOptions(nil))
			if err == nil {
				rel.Definition = stmt.Text
			}
		default:
			return nil, sqlerr.Unsupported("EXPLAIN of %s", parser.Tag(&stmt)).At(stmt.Offset)
		}
		if err != nil {
			return nil, err
		}
	}
	rel.SearchPath, rel.Owner, rel.Vnodes = s.searchPath(), s.user, int(s.set.int("streaming_max_parallelism"))
	r, err := s.explainJob(rel, s.db.Catalog(), set, s.db.liveStats(), s.set.get("timezone"), m)
	if err != nil {
		_, offset := parser.DefiningQuery(&stmt)
		return nil, shift(err, offset)
	}
	return r, nil
}

// explainJob shows the plan of a job: as one tree, or cut into fragments.
func (s *Session) explainJob(rel *catalog.Relation, cat *catalog.Snapshot, set planner.Settings, st planner.Stats, zone string, m explainMode) (*Result, error) {
	set.Verbose = m.verbose
	backfill := ""
	if m.distsql || m.backfill || rel.Kind == catalog.Table {
		g, _, err := s.db.planJob(rel, cat, set, st, jobExprCtx(zone))
		if err != nil {
			return nil, err
		}
		if m.distsql || rel.Kind == catalog.Table {
			text := m.text(func() string { return plan.ExplainGraph(g) }, func() string { return plan.ExplainGraphJSON(g) }, func() string { return plan.ExplainGraphDOT(g) })
			if m.backfill {
				text = strings.TrimSuffix(text, "\n") + "\n" + s.db.explainBackfill(g, st)
			}
			return s.textResult("QUERY PLAN", text), nil
		}
		if m.backfill {
			backfill = s.db.explainBackfill(g, st)
		}
	}
	root, err := s.db.planStream(rel, cat, set, st, jobExprCtx(zone))
	if err != nil {
		return nil, err
	}
	text := m.text(func() string { return plan.Explain(root, m.verbose) }, func() string { return plan.ExplainJSON(root, m.verbose) }, func() string { return plan.ExplainDOT(root, m.verbose) })
	if backfill != "" {
		text = strings.TrimSuffix(text, "\n") + "\n" + backfill
	}
	return s.textResult("QUERY PLAN", text), nil
}

// assumedSpeed is how fast jobs are built, in rows per second, where none was yet.
const assumedSpeed = 300_000

// explainBackfill estimates what building a job takes.
func (db *DB) explainBackfill(g *plan.Graph, st planner.Stats) string {
	rate := float64(db.speed.Load())
	if rate > 0 {
		return plan.ExplainBackfill(g, st.Rows, rate, true)
	}
	return plan.ExplainBackfill(g, st.Rows, assumedSpeed, false)
}

// explainQuery shows the plan of a SELECT or of a DML statement's rows.
func (s *Session) explainQuery(stmt parser.Statement, m explainMode) (*Result, error) {
	st, _, err := bind.Bind(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	if m.logical {
		if q, ok := st.(*plan.Query); ok {
			return s.textResult("QUERY PLAN", plan.ExplainLogical(q.Root)), nil
		}
	}
	cat := s.db.Catalog()
	if st, err = s.plan(st, cat); err != nil {
		return nil, err
	}
	var root plan.Node
	head := ""
	switch st := st.(type) {
	case *plan.Query:
		root = st.Root
	case *plan.Insert:
		root, head = st.Source, "BatchInsert { table: "+st.Table.Name+" }\n"
	case *plan.Update:
		root, head = st.Source, "BatchUpdate { table: "+st.Table.Name+" }\n"
	case *plan.Delete:
		root, head = st.Source, "BatchDelete { table: "+st.Table.Name+" }\n"
	}
	if m.backfill {
		return nil, sqlerr.Unsupported("EXPLAIN (BACKFILL) of a statement that has no backfill").At(stmt.Offset)
	}
	if m.format != "text" {
		return s.textResult("QUERY PLAN", m.text(nil, func() string { return plan.ExplainNodeJSON(root) }, func() string { return plan.ExplainNodeDOT(root) })), nil
	}
	text := plan.ExplainNode(root)
	if head != "" {
		var b strings.Builder
		b.WriteString(head)
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if i == 0 {
				b.WriteString("└─" + line + "\n")
			} else {
				b.WriteString("  " + line + "\n")
			}
		}
		text = b.String()
	}
	return s.textResult("QUERY PLAN", text), nil
}
