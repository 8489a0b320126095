package plan

import (
	"fmt"
	"slices"
	"strings"

	"streamdb/sql/catalog"
)

// ExplainGraph prints a job's fragments as EXPLAIN (DISTSQL) does: each fragment's
// operators with their state tables, then the tables. Tables without an
// identifier are numbered from 1.
func ExplainGraph(g *Graph) string {
	ids := g.numbers()
	var out strings.Builder
	for i, f := range g.Fragments {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "Fragment %d", f.ID)
		if f.Single {
			out.WriteString(" [single]")
		}
		if f.SameAs != 0 {
			fmt.Fprintf(&out, " [as fragment %d]", f.SameAs)
		}
		if after := g.BackfillOrder[f.ID]; len(after) > 0 {
			fmt.Fprintf(&out, " [backfill after %s]", strings.Trim(strings.ReplaceAll(fmt.Sprint(after), " ", ", "), "[]"))
		}
		out.WriteByte('\n')
		g.fragment(f.Root, ids).fragmentText(&out, "")
	}
	for _, t := range g.Tables() {
		out.WriteByte('\n')
		out.WriteString(tableText(t, ids[t]))
		out.WriteByte('\n')
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// numbers are the identifiers of g's tables as printed.
func (g *Graph) numbers() map[*TableDesc]catalog.ID {
	out := map[*TableDesc]catalog.ID{}
	next := catalog.ID(0)
	for _, t := range g.Tables() {
		next = max(next, t.ID)
	}
	for _, t := range g.Tables() {
		if out[t] = t.ID; t.ID == 0 {
			next++
			out[t] = next
		}
	}
	return out
}

// A fragmentLine is an operator with its tables and inputs.
type fragmentLine struct {
	line   string
	tables string
	in     []*fragmentLine
}

func (g *Graph) fragment(s Stream, ids map[*TableDesc]catalog.ID) *fragmentLine {
	l := &fragmentLine{line: streamLine(s, false).line()}
	var tables []string
	for _, t := range StateTables(s) {
		tables = append(tables, fmt.Sprintf("%s: %d", t.Name, ids[t]))
	}
	if m, ok := s.(*StreamMaterialize); ok && m.Rel.ID != 0 {
		tables = append(tables, fmt.Sprintf("Materialize: %d", m.Rel.ID))
	}
	if m, ok := s.(*StreamMerge); ok && g.noShuffle(m.From) {
		l.line = fmt.Sprintf("StreamExchange NoShuffle from %d", m.From)
	}
	if len(tables) > 0 {
		l.tables = "tables: [ " + strings.Join(tables, ", ") + " ]"
	}
	if scan, ok := s.(*StreamTableScan); ok {
		l.in = append(l.in, &fragmentLine{line: "Upstream " + scan.Table.Name + " " + distKind(scan.Dist)})
		if scan.Kind == ArrangementBackfill {
			l.in = append(l.in, &fragmentLine{line: "BatchPlanNode"})
		}
	}
	for _, in := range s.Inputs() {
		l.in = append(l.in, g.fragment(in, ids))
	}
	return l
}

func (g *Graph) noShuffle(from FragmentID) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.From == from && e.NoShuffle })
}

func (l *fragmentLine) fragmentText(out *strings.Builder, prefix string) {
	out.WriteString(l.line)
	out.WriteByte('\n')
	n := len(l.in)
	if l.tables != "" {
		branch := "├── "
		if n == 0 {
			branch = "└── "
		}
		out.WriteString(prefix + branch + l.tables + "\n")
	}
	for i, in := range l.in {
		branch, below := "├── ", "│   "
		if i == n-1 {
			branch, below = "└── ", "    "
		}
		out.WriteString(prefix + branch)
		in.fragmentText(out, prefix+below)
	}
}

func tableText(t *TableDesc, id catalog.ID) string {
	key := make([]string, len(t.Key))
	for i, k := range t.Key {
		dir := "ASC"
		if t.Desc != nil && t.Desc[i] {
			dir = "DESC"
		}
		key[i] = fmt.Sprintf("$%d %s", k, dir)
	}
	spaced := func(items []string) string {
		if len(items) == 0 {
			return "[]"
		}
		return "[ " + strings.Join(items, ", ") + " ]"
	}
	number := func(ns []int) []string {
		out := make([]string, len(ns))
		for i, n := range ns {
			out[i] = fmt.Sprint(n)
		}
		return out
	}
	return fmt.Sprintf("Table %d { columns: %s, primary key: %s, distribution key: %s }",
		id, spaced(allNames(t.Schema)), spaced(key), spaced(number(t.Dist)))
}

type jsonFragment struct {
	ID            FragmentID          `json:"id"`
	Single        bool                `json:"single"`
	SameAs        FragmentID          `json:"same_as,omitempty"`
	BackfillAfter []FragmentID        `json:"backfill_after,omitempty"`
	Plan          jsonNode            `json:"plan"`
	Tables        map[string][]string `json:"tables"` // name → columns
}

// ExplainGraphJSON is ExplainGraph with FORMAT JSON.
func ExplainGraphJSON(g *Graph) string {
	fragments := []jsonFragment{}
	for _, f := range g.Fragments {
		j := jsonFragment{ID: f.ID, Single: f.Single, SameAs: f.SameAs, BackfillAfter: g.BackfillOrder[f.ID],
			Plan: printStream(f.Root, false).json(), Tables: map[string][]string{}}
		for _, t := range f.Tables {
			j.Tables[t.Name] = allNames(t.Schema)
		}
		fragments = append(fragments, j)
	}
	return indented(map[string]any{"fragments": fragments})
}

// ExplainGraphDOT is ExplainGraph for Graphviz, a node for each fragment.
func ExplainGraphDOT(g *Graph) string {
	var out strings.Builder
	out.WriteString("digraph {\n")
	for _, f := range g.Fragments {
		fmt.Fprintf(&out, "  %d [ shape = box, label = %q ]\n", f.ID, fmt.Sprintf("Fragment %d\n", f.ID)+printStream(f.Root, false).Text())
	}
	for _, u := range g.Upstreams {
		fmt.Fprintf(&out, "  \"relation %d\" -> %d [ label = %q ]\n", u.Rel, u.To, distKind(u.Dist))
	}
	for _, e := range g.Edges {
		label := distKind(e.Dist)
		if e.NoShuffle {
			label = "NoShuffle"
		}
		fmt.Fprintf(&out, "  %d -> %d [ label = %q ]\n", e.From, e.To, label)
	}
	out.WriteString("}")
	return out.String()
}
