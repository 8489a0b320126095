package planner

import (
	"slices"

	"streamdb/planner/plan"
)

// cut divides a plan into fragments at its exchanges; it consumes root. Every
// input of an operator with several inputs, and of a locality provider, is an exchange, so a
// fragment is a chain of operators over one head: a scan, a source, a locality
// provider, or what merges its ports.
func cut(root plan.Stream, order BackfillOrder) (*plan.Graph, error) {
	c := &cutter{g: &plan.Graph{}}
	c.fragment(root)
	c.alike()
	if err := orderBackfill(c.g, order); err != nil {
		return nil, err
	}
	return c.g, nil
}

type cutter struct {
	g    *plan.Graph
	next plan.FragmentID
}

// fragment adds the fragment of which root is the last operator, after those it reads.
func (c *cutter) fragment(root plan.Stream) plan.FragmentID {
	f := &plan.Fragment{Root: root, Single: root.Props().Dist.Kind == plan.Single}
	var edges []plan.Edge
	var upstreams []plan.Upstream
	var walk func(s plan.Stream)
	walk = func(s plan.Stream) {
		in := s.Inputs()
		for i, child := range in {
			x, ok := child.(*plan.StreamExchange)
			if !ok {
				walk(child)
				continue
			}
			from := c.fragment(x.In[0])
			p := x.Operator
			p.In = nil
			in[i] = &plan.StreamMerge{Operator: p, Port: f.Ports, From: from}
			edges = append(edges, plan.Edge{From: from, Port: f.Ports, Dist: x.Dist, NoShuffle: x.NoShuffle})
			f.Ports++
		}
		if scan, ok := s.(*plan.StreamTableScan); ok {
			upstreams = append(upstreams, plan.Upstream{Rel: scan.Table.ID, Port: f.Ports, Cols: scan.Cols, Dist: scan.Dist})
			f.Ports++
		}
		f.Tables = append(f.Tables, plan.StateTables(s)...)
	}
	walk(root)
	c.next++
	f.ID = c.next
	for i := range edges {
		edges[i].To = f.ID
	}
	for i := range upstreams {
		upstreams[i].To = f.ID
	}
	c.g.Fragments = append(c.g.Fragments, f)
	c.g.Edges = append(c.g.Edges, edges...)
	c.g.Upstreams = append(c.g.Upstreams, upstreams...)
	return f.ID
}

// alike marks the fragments that no-shuffle edges connect: all run on the
// vnode mapping of the first of them.
func (c *cutter) alike() {
	first := map[plan.FragmentID]plan.FragmentID{}
	find := func(id plan.FragmentID) plan.FragmentID {
		for first[id] != 0 {
			id = first[id]
		}
		return id
	}
	for _, e := range c.g.Edges {
		if !e.NoShuffle {
			continue
		}
		if a, b := find(e.From), find(e.To); a != b {
			first[max(a, b)] = min(a, b)
		}
	}
	for _, f := range c.g.Fragments {
		if to := find(f.ID); to != f.ID {
			f.SameAs = to
		}
	}
	slices.SortFunc(c.g.Edges, func(a, b plan.Edge) int {
		if a.To != b.To {
			return int(a.To) - int(b.To)
		}
		return a.Port - b.Port
	})
}
