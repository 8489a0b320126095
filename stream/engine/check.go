package engine

import (
	"context"
	"strings"

	"streamdb/planner"
	"streamdb/planner/bind"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/batch"
)

// checkColumns are those of CHECK MATERIALIZED VIEW: the sign, and then the view's.
func checkColumns(v *catalog.Relation) []ResultColumn {
	out := textCols("diff")
	for _, c := range v.Columns {
		if !c.Hidden {
			out = append(out, ResultColumn{Name: c.Name, Type: c.Type})
		}
	}
	return out
}

// checkedView resolves the view that a CHECK names.
func (s *Session) checkedView(x *parser.Check) (*catalog.Relation, error) {
	v, err := s.find(x.Name)
	if err != nil {
		return nil, err
	}
	if v.Kind != catalog.MaterializedView {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not a materialized view", v.Name).At(x.Name.Pos)
	}
	if v.Building {
		return nil, sqlerr.New("55006", "%s %q is being created", kindName(v.Kind), v.Name).At(x.Name.Pos).WithHint("WAIT MATERIALIZED VIEW %s waits until it is complete.", v.Name)
	}
	return v, nil
}

// checkView is CHECK MATERIALIZED VIEW: it computes the view's query at one epoch
// and compares the rows with those that the view holds at that epoch. The result
// has the difference between the two: '-' is a row of the view that the query does
// not give, '+' a row of the query that the view lacks. It has no rows when the view is right.
//
// Rows count as often as they occur. What the view holds is NULL where an
// expression failed; the query raises that error.
func (s *Session) checkView(ctx context.Context, x *parser.Check) (*Result, error) {
	v, err := s.checkedView(x)
	if err != nil {
		return nil, err
	}
	cat := s.db.Catalog()
	zone := "UTC"
	if v.Plan != nil {
		zone = (&recordedPlan{v.Plan}).get("timezone")
	}
	text, err := checkQuery(v)
	if err != nil {
		return nil, err
	}
	stmt, err := parser.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	ectx := jobExprCtx(zone)
	o := jobBindOptions(v, cat, ectx)
	o.Streaming, o.Clauses = false, stmt.Clauses
	q, err := bind.Query(stmt.Node, o)
	if err != nil {
		return nil, err
	}
	// Both sides must read the rows as they are: an index of the view is not what is checked.
	set := s.plannerSettings()
	set.IndexSelection = false
	if q, err = planner.PlanBatch(q, cat, set, s.db); err != nil {
		return nil, err
	}
	run := *s.exprCtx(nil)
	run.Style = ectx.Style
	it, err := s.run(ctx, q.Root, &run, func(*catalog.Relation) *batch.Overlay { return nil })
	if err != nil {
		return nil, err
	}
	return &Result{Columns: checkColumns(v), next: func(ctx context.Context) (*chunk.Chunk, error) { return it.Next(ctx) }, stop: it.Close, tag: tag("CHECK MATERIALIZED VIEW")}, nil
}

// checkQuery is the SQL that compares a view with its query.
func checkQuery(v *catalog.Relation) (string, error) {
	var names, compared, back []string
	for _, c := range v.Columns {
		if c.Hidden {
			continue
		}
		n := parser.QuoteIdent(c.Name)
		names = append(names, n)
		if c.Type.OID == types.OIDJSON { // has no equality: its text is compared
			compared, back = append(compared, n+"::text AS "+n), append(back, n+"::json AS "+n)
			continue
		}
		compared, back = append(compared, n), append(back, n)
	}
	if len(names) == 0 {
		return "", sqlerr.Unsupported("CHECK MATERIALIZED VIEW of a view without columns")
	}
	cols := strings.Join(compared, ", ")
	// The text may end in a comment.
	want := "SELECT " + cols + " FROM (" + v.Definition + "\n) AS _q(" + strings.Join(names, ", ") + ")"
	have := "SELECT " + cols + " FROM " + qualified(&parser.Name{Schema: v.Schema, Name: v.Name})
	side := func(sign, a, b string) string {
		return "SELECT '" + sign + "' AS diff, " + strings.Join(back, ", ") + " FROM ((" + a + ") EXCEPT ALL (" + b + ")) AS _d"
	}
	return side("-", have, want) + " UNION ALL " + side("+", want, have), nil
}
