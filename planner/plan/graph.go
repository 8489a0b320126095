package plan

// Tables lists the state tables of all fragments, fragment by fragment, each
// table once. The order depends on the plan alone; the job layer gives identifiers in it.
func (g *Graph) Tables() []*TableDesc {
	var out []*TableDesc
	for _, f := range g.Fragments {
		out = append(out, f.Tables...)
	}
	return out
}

// StateTables lists the state tables of one operator, those of its inputs not included.
func StateTables(s Stream) []*TableDesc {
	var out []*TableDesc
	add := func(ts ...*TableDesc) {
		for _, t := range ts {
			if t == nil {
				continue
			}
			seen := false
			for _, o := range out {
				seen = seen || o == t
			}
			if !seen {
				out = append(out, t)
			}
		}
	}
	switch s := s.(type) {
	case *StreamTableScan:
		add(s.Progress)
	case *StreamSource:
		add(s.Offsets)
	case *StreamValues:
		add(s.Progress)
	case *StreamHashJoin:
		add(s.LeftState, s.LeftDegree, s.RightState, s.RightDegree)
	case *StreamHashAgg:
		add(s.State)
		add(s.Values...)
		add(s.DistinctState...)
	case *StreamTopN:
		add(s.State)
	case *StreamDedup:
		add(s.State)
	case *StreamLocalityProvider:
		add(s.Log, s.Buffer, s.Progress)
	}
	return out
}

// Fragment finds a fragment by its ID; nil: there is none.
func (g *Graph) Fragment(id FragmentID) *Fragment {
	for _, f := range g.Fragments {
		if f.ID == id {
			return f
		}
	}
	return nil
}
