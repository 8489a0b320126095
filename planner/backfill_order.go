package planner

import (
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
)

// A BackfillOrder says which relations of a job are read first.
type BackfillOrder struct {
	Auto  bool        // what stands right of a join before what stands left
	Pairs [][2]string // FIXED: [1] waits for [0]
}

// ParseBackfillOrder reads NONE, DEFAULT, AUTO or FIXED(a -> b, …), as WITH (backfill_order = …) has it.
func ParseBackfillOrder(text string) (BackfillOrder, error) {
	t := strings.TrimSpace(text)
	switch strings.ToUpper(t) {
	case "", "NONE", "DEFAULT":
		return BackfillOrder{}, nil
	case "AUTO":
		return BackfillOrder{Auto: true}, nil
	}
	bad := sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter %q: %q", "backfill_order", text).
		WithHint("Available values: NONE, AUTO, FIXED(a -> b, ...).")
	if len(t) < 7 || !strings.EqualFold(t[:5], "FIXED") {
		return BackfillOrder{}, bad
	}
	body := strings.TrimSpace(t[5:])
	if !strings.HasPrefix(body, "(") || !strings.HasSuffix(body, ")") {
		return BackfillOrder{}, bad
	}
	var out BackfillOrder
	for _, chain := range strings.Split(body[1:len(body)-1], ",") {
		names := strings.Split(chain, "->")
		if len(names) < 2 {
			return BackfillOrder{}, bad
		}
		for i, name := range names {
			if names[i] = strings.TrimSpace(name); names[i] == "" {
				return BackfillOrder{}, bad
			}
			if i > 0 {
				out.Pairs = append(out.Pairs, [2]string{names[i-1], names[i]})
			}
		}
	}
	return out, nil
}

// backfillOrder is that of a relation's WITH clause, or else the session's.
func backfillOrder(rel *catalog.Relation, s Settings) (BackfillOrder, error) {
	for _, o := range rel.With {
		if o.Name == "backfill_order" {
			return ParseBackfillOrder(o.Value)
		}
	}
	return s.BackfillOrder, nil
}

// orderBackfill fills in which fragments wait for which: by the chosen order
// among scans; locality providers always for all scans and for the providers below them.
func orderBackfill(g *plan.Graph, o BackfillOrder) error {
	scans := map[plan.FragmentID]*plan.StreamTableScan{}
	providers := map[plan.FragmentID]bool{}
	for _, f := range g.Fragments {
		switch h := head(f.Root).(type) {
		case *plan.StreamTableScan:
			if h.Kind == plan.ArrangementBackfill {
				scans[f.ID] = h
			}
		case *plan.StreamLocalityProvider:
			providers[f.ID] = true
		}
	}
	waits := map[plan.FragmentID][]plan.FragmentID{}
	if o.Auto {
		autoOrder(g, scans, waits)
		if cyclic(g, waits) {
			g.Notices = append(g.Notices, "backfill order AUTO found no order: it is cyclic")
			clear(waits)
		}
	}
	for _, p := range o.Pairs {
		first, err := scansOf(g, scans, p[0])
		if err != nil {
			return err
		}
		then, err := scansOf(g, scans, p[1])
		if err != nil {
			return err
		}
		for _, t := range then {
			waits[t] = appendIDs(waits[t], first...)
		}
	}
	if cyclic(g, waits) {
		return sqlerr.New(sqlerr.InvalidParameter, "backfill order is cyclic")
	}
	for _, f := range g.Fragments {
		if !providers[f.ID] {
			continue
		}
		for _, s := range g.Fragments {
			if scans[s.ID] != nil || providers[s.ID] && s.ID != f.ID && below(g, s.ID, f.ID) {
				waits[f.ID] = appendIDs(waits[f.ID], s.ID)
			}
		}
	}
	if len(waits) > 0 {
		g.BackfillOrder = waits
	}
	return nil
}

func appendIDs(ids []plan.FragmentID, more ...plan.FragmentID) []plan.FragmentID {
	for _, m := range more {
		if !slices.Contains(ids, m) {
			ids = append(ids, m)
		}
	}
	return ids
}

// head is the operator a fragment's rows enter by; of several inputs, the operator that merges them.
func head(s plan.Stream) plan.Stream {
	for len(s.Inputs()) == 1 {
		if _, ok := s.(*plan.StreamLocalityProvider); ok {
			return s
		}
		s = s.Inputs()[0]
	}
	return s
}

// inputs of a fragment by port.
func fragmentInputs(g *plan.Graph, id plan.FragmentID) []plan.FragmentID {
	var edges []plan.Edge
	for _, e := range g.Edges {
		if e.To == id {
			edges = append(edges, e)
		}
	}
	slices.SortFunc(edges, func(a, b plan.Edge) int { return a.Port - b.Port })
	out := make([]plan.FragmentID, len(edges))
	for i, e := range edges {
		out[i] = e.From
	}
	return out
}

// below reports whether rows of fragment a reach fragment b.
func below(g *plan.Graph, a, b plan.FragmentID) bool {
	return slices.ContainsFunc(fragmentInputs(g, b), func(in plan.FragmentID) bool { return in == a || below(g, a, in) })
}

// autoOrder makes the leftmost scan of every join wait for all scans to its right.
func autoOrder(g *plan.Graph, scans map[plan.FragmentID]*plan.StreamTableScan, waits map[plan.FragmentID][]plan.FragmentID) {
	var leaves func(id plan.FragmentID) []plan.FragmentID
	leaves = func(id plan.FragmentID) []plan.FragmentID {
		if scans[id] != nil {
			return []plan.FragmentID{id}
		}
		var out []plan.FragmentID
		for _, in := range fragmentInputs(g, id) {
			out = append(out, leaves(in)...)
		}
		return out
	}
	for _, f := range g.Fragments {
		if _, ok := head(f.Root).(*plan.StreamHashJoin); !ok {
			continue
		}
		in := fragmentInputs(g, f.ID)
		if l := leaves(in[0]); len(l) > 0 {
			waits[l[0]] = appendIDs(waits[l[0]], slices.Concat(l[1:], leaves(in[1]))...)
		}
	}
}

// scansOf finds the scans of a relation by its name, alone or with its schema; a base
// table also names an index chosen in its place.
func scansOf(g *plan.Graph, scans map[plan.FragmentID]*plan.StreamTableScan, name string) ([]plan.FragmentID, error) {
	schema, rel, dotted := strings.Cut(name, ".")
	if !dotted {
		schema, rel = "", name
	}
	var out []plan.FragmentID
	for _, f := range g.Fragments {
		s := scans[f.ID]
		if s == nil {
			continue
		}
		if s.Table.Name == rel && (schema == "" || s.Table.Schema == schema) || s.Base != nil && s.Base.Name == rel && (schema == "" || s.Base.Schema == schema) {
			out = append(out, f.ID)
		}
	}
	if len(out) == 0 {
		return nil, sqlerr.New(sqlerr.InvalidParameter, "backfill order names relation %q, which the query does not read", name)
	}
	return out, nil
}

// cyclic reports whether some fragment waits for itself.
func cyclic(g *plan.Graph, waits map[plan.FragmentID][]plan.FragmentID) bool {
	const visiting, done = 1, 2
	state := map[plan.FragmentID]int{}
	var walk func(id plan.FragmentID) bool
	walk = func(id plan.FragmentID) bool {
		switch state[id] {
		case visiting:
			return true
		case done:
			return false
		}
		state[id] = visiting
		for _, w := range waits[id] {
			if walk(w) {
				return true
			}
		}
		state[id] = done
		return false
	}
	return slices.ContainsFunc(g.Fragments, func(f *plan.Fragment) bool { return walk(f.ID) })
}
