package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/parser"
)

// A database is a catalog that scripts fill, with sizes.
type database struct {
	cat  *catalog.Snapshot
	rows map[catalog.ID]int64
	next catalog.ID
}

func newDatabase() *database {
	return &database{cat: catalog.NewSnapshot([]string{"public", "pg_catalog"}, nil), rows: map[catalog.ID]int64{}, next: catalog.FirstUserID}
}

func (db *database) Rows(id catalog.ID) int64  { return db.rows[id] }
func (db *database) Bytes(id catalog.ID) int64 { return 50 * db.rows[id] }

func (db *database) options() bind.Options {
	return bind.Options{Cat: db.cat, SearchPath: []string{"public"}, User: "root"}
}

func (db *database) add(r *catalog.Relation) {
	r.ID = db.next
	db.next++
	db.cat = db.cat.With([]*catalog.Relation{r}, nil)
}

// run executes DDL statements and plans a last query or CREATE MATERIALIZED VIEW.
func (db *database) run(cmd, text string, s planner.Settings) (string, error) {
	stmts, err := parser.Parse(text)
	if err != nil {
		return "", err
	}
	for _, st := range stmts {
		out, done, err := db.statement(cmd, st, s)
		if done || err != nil {
			return out, err
		}
	}
	return "ok", nil
}

func (db *database) statement(cmd string, st parser.Statement, s planner.Settings) (out string, done bool, err error) {
	view := func() (string, bool, error) {
		r, q, err := bind.View(st, db.options())
		if err != nil {
			return "", false, err
		}
		if r.Kind == catalog.View {
			db.add(r)
			return "", false, nil
		}
		if ext, ok := st.Ext.(*parser.CreateMaterializedView); ok && ext.BackfillOrder != nil {
			s.BackfillOrder.Auto = ext.BackfillOrder.Kind == "auto"
			for _, a := range ext.BackfillOrder.Arcs {
				s.BackfillOrder.Pairs = append(s.BackfillOrder.Pairs, [2]string{a.First.Name, a.Then.Name})
			}
		}
		g, full, err := planner.PlanView(q, r, db.cat, s, db)
		if err != nil {
			return "", false, err
		}
		switch cmd {
		case "ddl":
			db.add(full)
			return "", false, nil
		case "distsql":
			return plan.ExplainGraph(g), true, nil
		case "backfill":
			return plan.ExplainBackfill(g, db.Rows, 500_000, true), true, nil
		}
		n, err := planner.StreamPlan(q, r, db.cat, s, db)
		if err != nil {
			return "", false, err
		}
		for _, n := range g.Notices {
			out += "notice: " + n + "\n"
		}
		return out + plan.Explain(n, cmd == "verbose"), true, nil
	}
	table := func() (string, bool, error) {
		r, err := bind.CreateTable(st, db.options())
		if err == nil {
			if _, err = planner.PlanTable(r); err == nil {
				db.add(r)
			}
		}
		return "", false, err
	}
	index := func() (string, bool, error) {
		r, n, err := bind.CreateIndex(st, db.options())
		if err != nil {
			return "", false, err
		}
		root, err := planner.IndexStream(n, r, db.cat, s, db)
		if err != nil {
			return "", false, err
		}
		db.add(r)
		return plan.Explain(root, true), cmd != "ddl", nil
	}
	switch st.Ext.(type) {
	case *parser.CreateMaterializedView:
		return view()
	case *parser.CreateTable:
		return table()
	case *parser.CreateIndex:
		return index()
	case *parser.CreateSource:
		r, err := bind.CreateSource(st, db.options())
		if err == nil {
			db.add(r)
		}
		return "", false, err
	case *parser.CreateSink:
		r, q, err := bind.Sink(st, db.options())
		if err != nil {
			return "", false, err
		}
		n, err := planner.SinkStream(q, r, db.cat, s, db)
		if err != nil {
			return "", false, err
		}
		return plan.Explain(n, true), true, nil
	}
	switch {
	case st.Node.GetCreateStmt() != nil:
		return table()
	case st.Node.GetIndexStmt() != nil:
		return index()
	case st.Node.GetViewStmt() != nil || st.Node.GetCreateTableAsStmt() != nil:
		return view()
	}
	bound, _, err := bind.Bind(st, db.options())
	if err != nil {
		return "", false, err
	}
	var n plan.Node
	switch b := bound.(type) {
	case *plan.Query:
		n = b.Root
	case *plan.Update:
		n = b.Source
	case *plan.Delete:
		n = b.Source
	case *plan.Insert:
		n = b.Source
	}
	if cmd == "logical" {
		n, err = planner.Optimize(n, s, db)
		if err != nil {
			return "", false, err
		}
		return plan.ExplainLogical(n), true, nil
	}
	n, err = planner.PlanNode(n, db.cat, s, db)
	if err != nil {
		return "", false, err
	}
	return plan.ExplainNode(n), true, nil
}

// TestSQL runs scripts: ddl fills the catalog, stream, verbose, distsql, batch and
// logical print the plan of a statement, rows sets the size of a relation.
func TestSQL(t *testing.T) {
	datadriven.Walk(t, "testdata/sql", func(t *testing.T, path string) {
		db := newDatabase()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "rows" {
				for _, l := range strings.Split(d.Input, "\n") {
					var name string
					var n int64
					fmt.Sscan(l, &name, &n)
					db.rows[db.cat.Relation("public", name).ID] = n
				}
				return ""
			}
			s := planner.Settings{LocalityEnabled: true, LocalityMode: "off", CacheBudget: 64 << 20, IndexSelection: true, JoinOrdering: true}
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "mode":
					s.LocalityMode = a.Vals[0]
				case "no-index":
					s.IndexSelection = false
				}
			}
			out, err := db.run(d.Cmd, d.Input, s)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out + "\n"
		})
	})
}
