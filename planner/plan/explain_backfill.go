package plan

import (
	"fmt"
	"strings"

	"streamdb/sql/catalog"
)

// ExplainBackfill is what a build is expected to take, before it is begun: the rows of
// each scan in the order in which the scans run, what each operator will keep, the time at
// rate rows per second, which measured says was seen; then the order as a graph in DOT.
func ExplainBackfill(g *Graph, rows func(catalog.ID) int64, rate float64, measured bool) string {
	var out strings.Builder
	out.WriteString("Backfill\n")
	total := int64(0)
	done := map[FragmentID]bool{}
	for range g.Fragments { // a fragment after those that it waits for
		for _, f := range g.Fragments {
			if done[f.ID] || !all(g.BackfillOrder[f.ID], done) {
				continue
			}
			done[f.ID] = true
			eachScan(f.Root, func(s *StreamTableScan) {
				n := rows(s.Table.ID)
				total += n
				fmt.Fprintf(&out, "  scan of %s.%s: %d rows%s\n", s.Table.Schema, s.Table.Name, n, after(g, f.ID))
			})
		}
	}
	bytes := 0.0
	for _, f := range g.Fragments {
		eachState(f.Root, func(s Stream) {
			p := s.Props()
			bytes += p.StateBytes
			name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", s), "*plan."), " ")
			fmt.Fprintf(&out, "  state of %s in fragment %d: about %.0f rows, %.0f bytes\n", name, f.ID, p.StateRows, p.StateBytes)
		})
	}
	how := "measured when a job was last built"
	if !measured {
		how = "assumed: no job was built yet"
	}
	fmt.Fprintf(&out, "  in all: %d rows to read, about %.0f bytes of state, %.1f s at %.0f rows/s (%s)\n", total, bytes, float64(total)/rate, rate, how)
	out.WriteString(backfillOrder(g))
	return out.String()
}

func all(ids []FragmentID, done map[FragmentID]bool) bool {
	for _, id := range ids {
		if !done[id] {
			return false
		}
	}
	return true
}

// after names the scans that one waits for.
func after(g *Graph, id FragmentID) string {
	var names []string
	for _, d := range g.BackfillOrder[id] {
		if f := g.Fragment(d); f != nil {
			eachScan(f.Root, func(s *StreamTableScan) { names = append(names, s.Table.Schema+"."+s.Table.Name) })
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", after " + strings.Join(names, ", ")
}

// eachScan calls f for the scans of a fragment that read what was there before.
func eachScan(s Stream, f func(*StreamTableScan)) {
	if scan, ok := s.(*StreamTableScan); ok && scan.Kind == ArrangementBackfill {
		f(scan)
	}
	for _, in := range s.Inputs() {
		eachScan(in, f)
	}
}

// eachState calls f for the operators of a fragment whose state the planner has estimated.
func eachState(s Stream, f func(Stream)) {
	if s.Props().StateBytes > 0 {
		f(s)
	}
	for _, in := range s.Inputs() {
		eachState(in, f)
	}
}

// backfillOrder is the order of scans as a graph in DOT.
func backfillOrder(g *Graph) string {
	name := map[FragmentID]string{}
	for _, f := range g.Fragments {
		s := f.Root
		for len(s.Inputs()) > 0 {
			s = s.Inputs()[0]
		}
		if scan, ok := s.(*StreamTableScan); ok {
			name[f.ID] = scan.Table.Schema + "." + scan.Table.Name
		}
	}
	var out strings.Builder
	out.WriteString("digraph G {\n")
	for _, f := range g.Fragments {
		for _, after := range g.BackfillOrder[f.ID] {
			if name[after] != "" && name[f.ID] != "" {
				fmt.Fprintf(&out, "  %q -> %q;\n", name[after], name[f.ID])
			}
		}
	}
	out.WriteString("}")
	return out.String()
}
