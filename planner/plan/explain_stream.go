package plan

import (
	"fmt"
	"math"
	"strings"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// Explain prints a streaming plan as EXPLAIN does. verbose adds stream keys,
// distributions and what the planner estimated.
func Explain(n Stream, verbose bool) string { return printStream(n, verbose).Text() }

// ExplainJSON is Explain with FORMAT JSON, ExplainDOT with FORMAT DOT.
func ExplainJSON(n Stream, verbose bool) string { return printStream(n, verbose).JSON() }
func ExplainDOT(n Stream, verbose bool) string  { return printStream(n, verbose).DOT() }

func printStream(n Stream, verbose bool) *printed {
	p := streamLine(n, verbose)
	for _, in := range n.Inputs() {
		p.in = append(p.in, *printStream(in, verbose))
	}
	return p
}

// streamLine prints an operator without its inputs.
func streamLine(n Stream, verbose bool) *printed {
	p := &printed{name: strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan.")}
	s := n.Props().Schema
	key := func() string { return list(names(s, n.Props().Key)) }
	in := func(i int) types.Schema { return n.Inputs()[i].Props().Schema }
	output := func() {
		if verbose {
			p.add("output", "%s", list(allNames(s)))
			p.add("stream_key", "%s", key())
		}
	}
	switch n := n.(type) {
	case *StreamTableScan:
		p.add("table", "%s", n.Table.Name)
		p.add("columns", "%s", list(allNames(s)))
		if verbose {
			p.add("stream_scan_type", "%s", n.Kind)
			p.add("stream_key", "%s", key())
			p.add("pk", "%s", list(relColumns(n.Table, n.Table.KeyCols())))
			p.add("dist", "%s", distText(n.Dist, s))
		}
	case *StreamSource:
		p.add("source", "%s", n.Rel.Name)
		p.add("columns", "%s", list(allNames(s)))
	case *StreamDML:
		p.add("table", "%s", n.Rel.Name)
		p.add("columns", "%s", list(allNames(s)))
	case *StreamRowIDGen:
		p.add("row_id_index", "%d", n.Col)
	case *StreamValues:
		rows := make([]string, len(n.Rows))
		for i, r := range n.Rows {
			rows[i] = list(exprTexts(r, nil))
		}
		p.add("rows", "%s", list(rows))
	case *StreamProject:
		texts := exprTexts(n.Exprs, in(0))
		for i := range texts {
			if strings.HasPrefix(s[i].Name, "$") && texts[i] != s[i].Name {
				texts[i] += " as " + s[i].Name
			}
		}
		p.add("exprs", "%s", list(texts))
		output()
	case *StreamFilter:
		p.add("predicate", "%s", exprText(n.Cond, in(0)))
		output()
	case *StreamExchange:
		if n.NoShuffle {
			p.name += " [no_shuffle]"
		}
		p.add("dist", "%s", distText(n.Dist, s))
	case *StreamMerge:
		p.name = "StreamExchange " + distKind(n.Dist) + fmt.Sprintf(" from %d", n.From)
	case *StreamHashJoin:
		l, r := in(0), types.Schema(nil)
		if len(n.In) > 1 {
			r = in(1)
		}
		both := append(l[:len(l):len(l)], r...)
		p.add("type", "%s", n.Kind)
		p.add("predicate", "%s", joinPredicate(n.LeftKeys, n.RightKeys, n.NullSafe, l, r))
		if n.Cond != nil {
			p.add("condition", "%s", exprText(n.Cond, both))
		}
		if verbose {
			p.add("output", "%s", list(names(both, n.Output)))
			p.add("stream_key", "%s", key())
		}
	case *StreamHashAgg:
		aggs := aggTexts(in(0), n.Aggs)
		counted := false
		for _, a := range n.Aggs {
			counted = counted || len(a.Args) == 0 && a.Filter < 0
		}
		if !counted { // a group's rows are always counted
			aggs = append(aggs, "count")
		}
		if len(n.GroupBy) == 0 {
			p.name = "StreamSimpleAgg"
		} else {
			p.add("group_key", "%s", list(names(in(0), n.GroupBy)))
		}
		p.add("aggs", "%s", list(aggs))
		output()
	case *StreamTopN:
		if len(n.GroupBy) > 0 {
			p.name = "StreamGroupTopN"
		}
		p.add("order", "%s", list(orders(n.Order, s)))
		if n.Limit != math.MaxInt64 {
			p.add("limit", "%d", n.Limit)
		}
		p.add("offset", "%d", n.Offset)
		if n.WithTies {
			p.add("with_ties", "true")
		}
		if len(n.GroupBy) > 0 {
			p.add("group_key", "%s", list(names(s, n.GroupBy)))
		}
		output()
	case *StreamDedup:
		p.name = "StreamAppendOnlyDedup"
		p.add("dedup_cols", "%s", list(names(s, n.Cols)))
		output()
	case *StreamUnion:
		p.add("all", "true")
		output()
	case *StreamLocalityProvider:
		p.add("locality_columns", "%s", list(names(s, n.Cols)))
	case *StreamMaterialize:
		visible := []string{}
		for _, c := range n.Rel.Columns {
			if c.Hidden {
				c.Name += "(hidden)"
			}
			visible = append(visible, c.Name)
		}
		p.add("columns", "%s", list(visible))
		p.add("stream_key", "%s", list(relColumns(n.Rel, n.Key)))
		p.add("pk_columns", "%s", list(relColumns(n.Rel, n.Rel.KeyCols())))
		p.add("pk_conflict", "%s", conflictText(n.Rel.Conflict))
		if verbose {
			p.add("dist", "%s", distText(n.Dist, relSchema(n.Rel)))
		}
	case *StreamSink:
		visible := []string{}
		for _, c := range n.Rel.Columns {
			if !c.Hidden {
				visible = append(visible, c.Name)
			}
		}
		p.add("name", "%s", n.Rel.Name)
		p.add("columns", "%s", list(visible))
		p.add("pk", "%s", list(relColumns(n.Rel, n.Key)))
	}
	if verbose && n.Props().Locality != "" {
		p.add("locality", "%q", n.Props().Locality)
	}
	if lp, ok := n.(*StreamLocalityProvider); ok && verbose && lp.Estimate != "" {
		p.add("estimate", "%q", lp.Estimate)
	}
	return p
}

func relSchema(r *catalog.Relation) types.Schema { return r.Fields() }

// relColumns gives the names of a relation's columns.
func relColumns(r *catalog.Relation, cols []int) []string { return names(r.Fields(), cols) }

func conflictText(c catalog.Conflict) string {
	switch c {
	case catalog.ConflictOverwrite:
		return "Overwrite"
	case catalog.ConflictIgnore:
		return "IgnoreConflict"
	case catalog.ConflictUpdateIfNotNull:
		return "DoUpdateIfNotNull"
	case catalog.ConflictError:
		return "Error"
	default:
		return "NoCheck"
	}
}

func (k ScanKind) String() string {
	return [...]string{"ArrangementBackfill", "UpstreamOnly"}[k]
}

func (k JoinKind) String() string {
	return [...]string{"Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti"}[k]
}

// distText prints a distribution with column names.
func distText(d Dist, s types.Schema) string {
	switch d.Kind {
	case Single:
		return "Single"
	case HashShard:
		return "HashShard(" + strings.Join(names(s, d.Cols), ", ") + ")"
	case UpstreamHashShard:
		return "UpstreamHashShard(" + strings.Join(names(s, d.Cols), ", ") + ")"
	case Broadcast:
		return "Broadcast"
	default:
		return "SomeShard"
	}
}

// distKind prints a distribution with column numbers, as dispatchers are shown.
func distKind(d Dist) string {
	switch d.Kind {
	case Single:
		return "Single"
	case Broadcast:
		return "Broadcast"
	case SomeShard:
		return "NoShuffle"
	default:
		return "Hash(" + ints(d.Cols) + ")"
	}
}

// joinPredicate prints equality keys.
func joinPredicate(l, r []int, nullSafe []bool, ls, rs types.Schema) string {
	if len(l) == 0 {
		return "true"
	}
	parts := make([]string, len(l))
	for i := range l {
		op := "="
		if i < len(nullSafe) && nullSafe[i] {
			op = "IS NOT DISTINCT FROM"
		}
		right := fmt.Sprintf("$%d", r[i])
		if r[i] < len(rs) {
			right = rs[r[i]].Name
		}
		parts[i] = ls[l[i]].Name + " " + op + " " + right
	}
	return strings.Join(parts, " AND ")
}
