package planner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
)

// TestInvariants checks, for every query in every mode, what executors rely on.
func TestInvariants(t *testing.T) {
	w := newWorld()
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		for _, mode := range []string{"off", "auto", "always"} {
			for _, index := range []bool{false, true} {
				s := Settings{LocalityEnabled: true, LocalityMode: mode, CacheBudget: 1 << 20, IndexSelection: index, JoinOrdering: true}
				q := queries[name](w).query()
				rel := &catalog.Relation{ID: 20000, Name: "v", Kind: catalog.MaterializedView}
				root, err := StreamPlan(q, rel, w.snapshot(), s, w)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if err := validate(root); err != nil {
					t.Errorf("%s, mode %s: %v\n%s", name, mode, err, plan.Explain(root, true))
				}
				g, v, err := PlanView(q, rel, w.snapshot(), s, w)
				if err != nil {
					t.Fatal(err)
				}
				if err := validateGraph(g, v); err != nil {
					t.Errorf("%s, mode %s: %v\n%s", name, mode, err, plan.ExplainGraph(g))
				}
				again, _, err := PlanView(q, rel, w.snapshot(), s, w)
				if err != nil || plan.ExplainGraph(g) != plan.ExplainGraph(again) {
					t.Errorf("%s: planning twice gives two plans", name)
				}
			}
		}
	}
}

// validate checks an operator and those below it.
func validate(n plan.Stream) error {
	p := n.Props()
	in := func(cols []int, of int) bool {
		return !slices.ContainsFunc(cols, func(c int) bool { return c < 0 || c >= of })
	}
	width := len(p.Schema)
	switch {
	case !in(p.Key, width), !in(p.Dist.Cols, width), !in(p.Order, width):
		return fmt.Errorf("%T: key %v, distribution %v or order %v out of %d columns", n, p.Key, p.Dist, p.Order, width)
	case !subset(p.Dist.Cols, p.Key):
		return fmt.Errorf("%T: distribution %v not in key %v", n, p.Dist, p.Key)
	case hashed(p.Dist) && len(p.Dist.Cols) == 0:
		return fmt.Errorf("%T: hashed by nothing", n)
	case len(union(p.Key)) != len(p.Key):
		return fmt.Errorf("%T: repeated key column in %v", n, p.Key)
	}
	for _, t := range plan.StateTables(n) {
		switch {
		case len(t.From) != len(t.Schema):
			return fmt.Errorf("%T: table %s: %d columns from %d", n, t.Name, len(t.Schema), len(t.From))
		case !in(t.Key, len(t.Schema)) || !subset(t.Dist, t.Key):
			return fmt.Errorf("%T: table %s: key %v, distribution %v", n, t.Name, t.Key, t.Dist)
		case len(union(t.Key)) != len(t.Key):
			return fmt.Errorf("%T: table %s: repeated key column in %v", n, t.Name, t.Key)
		case t.Desc != nil && len(t.Desc) != len(t.Key):
			return fmt.Errorf("%T: table %s: %d directions for %d key columns", n, t.Name, len(t.Desc), len(t.Key))
		case p.Dist.Kind == plan.Single && len(t.Dist) > 0 && !isProgress(t):
			return fmt.Errorf("%T: table %s is distributed in one actor", n, t.Name)
		}
		for i, f := range t.From {
			ins := n.Inputs()
			if f >= 0 && len(ins) == 1 && !ins[0].Props().Schema[f].Type.Equal(t.Schema[i].Type) {
				return fmt.Errorf("%T: table %s: column %d has the wrong type", n, t.Name, i)
			}
		}
	}
	ins := n.Inputs()
	_, provider := n.(*plan.StreamLocalityProvider)
	_, exchange := n.(*plan.StreamExchange)
	for _, i := range ins {
		x, is := i.(*plan.StreamExchange)
		if (len(ins) > 1 || provider) && !is {
			return fmt.Errorf("%T: input %T is no exchange", n, i)
		}
		if is && x.NoShuffle && x.Dist.Kind != x.In[0].Props().Dist.Kind {
			return fmt.Errorf("%T: no-shuffle changes the distribution", n)
		}
		if exchange && is {
			return fmt.Errorf("exchange over exchange")
		}
		if err := validate(i); err != nil {
			return err
		}
	}
	switch n := n.(type) {
	case *plan.StreamHashJoin:
		l, r := ins[0].Props(), ins[1].Props()
		if len(n.LeftKeys) > 0 {
			if l.Dist.Kind != plan.HashShard || r.Dist.Kind != plan.HashShard || !slices.Equal(l.Dist.Cols, n.LeftKeys) || !slices.Equal(r.Dist.Cols, n.RightKeys) {
				return fmt.Errorf("join by %v, %v over %v, %v", n.LeftKeys, n.RightKeys, l.Dist, r.Dist)
			}
		} else if l.Dist.Kind != plan.Single || r.Dist.Kind != plan.Single {
			return fmt.Errorf("join without keys is distributed")
		}
		both := len(l.Schema) + len(r.Schema)
		if n.Kind == plan.Semi || n.Kind == plan.Anti {
			both = len(l.Schema)
		}
		if !in(n.Output, both) {
			return fmt.Errorf("join output %v of %d", n.Output, both)
		}
	case *plan.StreamHashAgg:
		d := ins[0].Props().Dist
		if !(d.Kind == plan.Single || hashed(d) && subset(d.Cols, n.GroupBy)) {
			return fmt.Errorf("aggregate by %v over %v", n.GroupBy, d)
		}
	case *plan.StreamTopN:
		d := ins[0].Props().Dist
		if !(d.Kind == plan.Single || hashed(d) && len(n.GroupBy) > 0 && subset(d.Cols, n.GroupBy)) {
			return fmt.Errorf("top-n by %v over %v", n.GroupBy, d)
		}
	}
	return nil
}

func isProgress(t *plan.TableDesc) bool { return t.Schema[0].Name == "vnode" }

// validateGraph checks fragments, edges and the relation.
func validateGraph(g *plan.Graph, v *catalog.Relation) error {
	ports := map[plan.FragmentID]int{}
	for i, f := range g.Fragments {
		if f.ID != plan.FragmentID(i+1) {
			return fmt.Errorf("fragment %d is number %d", f.ID, i+1)
		}
	}
	for _, e := range g.Edges {
		if e.From >= e.To {
			return fmt.Errorf("edge %d → %d is against the order", e.From, e.To)
		}
		if e.Port != ports[e.To] {
			return fmt.Errorf("edge %d → %d has port %d, not %d", e.From, e.To, e.Port, ports[e.To])
		}
		ports[e.To]++
		if to := g.Fragment(e.To); (e.Dist.Kind == plan.Single) != to.Single {
			return fmt.Errorf("edge %d → %d: %v into single %t", e.From, e.To, e.Dist, to.Single)
		}
	}
	for _, u := range g.Upstreams {
		if u.Port != ports[u.To] {
			return fmt.Errorf("upstream of %d has port %d", u.To, u.Port)
		}
		ports[u.To]++
	}
	for _, f := range g.Fragments {
		if ports[f.ID] != f.Ports {
			return fmt.Errorf("fragment %d has %d ports, %d are used", f.ID, f.Ports, ports[f.ID])
		}
	}
	last := g.Fragments[len(g.Fragments)-1].Root
	if _, ok := last.(*plan.StreamMaterialize); !ok {
		return fmt.Errorf("the last fragment ends in %T", last)
	}
	if !subset(v.Dist, v.KeyCols()) || len(v.Columns) != len(last.Props().Schema) {
		return fmt.Errorf("relation: columns %v, key %v, distribution %v", v.Columns, v.Key, v.Dist)
	}
	return nil
}

func BenchmarkPlanView(b *testing.B) {
	w := newWorld()
	q := queries["busiest"](w).query()
	s := Settings{LocalityEnabled: true, LocalityMode: "always", IndexSelection: true, JoinOrdering: true}
	for b.Loop() {
		if _, _, err := PlanView(q, &catalog.Relation{ID: 20000, Name: "v"}, w.snapshot(), s, w); err != nil {
			b.Fatal(err)
		}
	}
}
