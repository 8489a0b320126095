package plan

import (
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// exprText prints e with its columns named as in s.
func exprText(e expr.Expr, s types.Schema) string { return expr.String(named(e, s)) }

// named gives e's column references the names that EXPLAIN shows for the columns.
func named(e expr.Expr, s types.Schema) expr.Expr {
	return expr.Transform(e, func(e expr.Expr) expr.Expr {
		if c, ok := e.(*expr.ColRef); ok && c.Index < len(s) {
			return &expr.ColRef{Index: c.Index, Typ: c.Typ, Name: s[c.Index].Name}
		}
		return e
	})
}

func exprTexts(es []expr.Expr, s types.Schema) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = exprText(e, s)
	}
	return out
}

// names gives the names of columns of s.
func names(s types.Schema, cols []int) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = s[c].Name
	}
	return out
}

func allNames(s types.Schema) []string {
	out := make([]string, len(s))
	for i, f := range s {
		out[i] = f.Name
	}
	return out
}

func aggTexts(s types.Schema, aggs []expr.Agg) []string {
	out := make([]string, len(aggs))
	for i, a := range aggs {
		out[i] = expr.AggString(a, s)
	}
	return out
}

// orders prints sort keys; NULLS is shown where it is not PostgreSQL's default.
func orders(by []expr.Order, s types.Schema) []string {
	out := make([]string, len(by))
	for i, o := range by {
		out[i] = s[o.Col].Name + " ASC"
		if o.Desc {
			out[i] = s[o.Col].Name + " DESC"
		}
		if o.NullsFirst != o.Desc {
			out[i] += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[o.NullsFirst]
		}
	}
	return out
}
