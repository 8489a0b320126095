package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
)

// ask plans n for an operator that looks up state by cols. During a backfill
// that goes well if rows with equal cols come together. Where that is cheaper by the
// estimate (mode auto), or always, n is answered by an order that there is
// already (a relation's key, a covering index, another operator's groups), or else a locality
// provider sorts it. note says what was estimated and decided.
func (b *builder) ask(n plan.Node, cols []int, state stateSize) (in plan.Stream, note asked, err error) {
	wanted, text := b.wants(n, cols, state)
	note = asked{text, state}
	if wanted {
		if better, ok := b.answer(n, cols); ok {
			if note.text != "" {
				note.text += ", given by the order of its input"
			}
			in, err := b.build(better)
			return in, note, err
		}
	}
	in, err = b.build(n)
	if err != nil || !wanted {
		return in, note, err
	}
	return provide(in, cols, note.text), note, nil
}

// An asked is what the planner found out about an operator's state.
type asked struct {
	text  string // for EXPLAIN (VERBOSE)
	state stateSize
}

// tell notes it with the operator.
func (a asked) tell(p *plan.Props) {
	p.Locality, p.StateRows, p.StateBytes = a.text, a.state.rows, a.state.bytes()
}

// wants decides whether an operator with that state over n needs locality.
func (b *builder) wants(n plan.Node, cols []int, state stateSize) (bool, string) {
	mode := b.s.LocalityMode
	if !b.s.LocalityEnabled || mode == "off" || len(cols) == 0 || b.upstreamOnly || !backfills(n) {
		return false, ""
	}
	if mode == "always" {
		return true, ""
	}
	if b.s.CacheBudget <= 0 || b.inputBytes(n) < b.s.LocalityMinSize {
		return false, ""
	}
	cache := float64(b.s.CacheBudget)
	unsorted, sorted := state.costs(cache)
	is, so := "fits", "not needed"
	if state.bytes() > cache {
		is = "exceeds"
	}
	wanted := state.input >= leastInput && sorted < unsorted
	if wanted {
		so = "needed"
	}
	return wanted, fmt.Sprintf("state of %.0f %s × %.0f bytes = %s %s cache %s; %s as it comes, %s sorted: locality %s",
		state.rows, state.what, state.width, byteSize(state.bytes()), is, byteSize(cache), seconds(unsorted), seconds(sorted), so)
}

// inputBytes is the size of the relations that n reads.
func (b *builder) inputBytes(n plan.Node) int64 {
	if s, ok := n.(*plan.Scan); ok {
		return b.st.Bytes(s.Rel.ID)
	}
	out := int64(0)
	for _, in := range n.Inputs() {
		out += b.inputBytes(in)
	}
	return out
}

// seconds writes µs.
func seconds(us float64) string { return fmt.Sprintf("%.3g s", us/1e6) }

// backfills reports whether n reads rows that exist already.
func backfills(n plan.Node) bool {
	if s, ok := n.(*plan.Scan); ok {
		return s.Rel.HasRows()
	}
	return slices.ContainsFunc(n.Inputs(), backfills)
}

// answer finds a plan equal to n whose backfill delivers rows with equal cols
// together, by the order of what it reads. The order of cols matters.
func (b *builder) answer(n plan.Node, cols []int) (plan.Node, bool) {
	switch n := n.(type) {
	case *plan.Scan:
		return b.answerScan(n, cols)
	case *plan.Filter:
		in, ok := b.answer(n.Input, cols)
		if !ok {
			return nil, false
		}
		return withInputs(n, []plan.Node{in}), true
	case *plan.Project:
		own := make([]int, len(cols))
		for i, c := range cols {
			r, ok := n.Exprs[c].(*expr.ColRef)
			if !ok {
				return nil, false
			}
			own[i] = r.Index
		}
		in, ok := b.answer(n.Input, own)
		if !ok {
			return nil, false
		}
		return withInputs(n, []plan.Node{in}), true
	case *plan.Agg:
		// It comes out in the order of its groups if it has asked for that order itself.
		wants, _ := b.wants(n.Input, n.GroupBy, b.groupState(n.Input, n.GroupBy, n.Aggs))
		return n, wants && len(cols) <= len(n.GroupBy) && slices.Equal(cols, upTo(len(cols)))
	case *plan.Distinct:
		if n.On == nil {
			return nil, false
		}
		wants, _ := b.wants(n.Input, n.On, b.groupState(n.Input, n.On, nil))
		return n, wants && len(cols) <= len(n.On) && slices.Equal(cols, n.On[:len(cols)])
	case *plan.SetOp:
		if n.Op != plan.Union || !n.All {
			return nil, false
		}
		ins := make([]plan.Node, len(n.Ins))
		for i, in := range n.Ins {
			var ok bool
			if ins[i], ok = b.answer(in, cols); !ok {
				return nil, false
			}
		}
		return withInputs(n, ins), true
	default: // joins and all else come out in no order
		return nil, false
	}
}

// answerScan is answer for a relation: its own key order, or that of a covering
// index, if its rows are hashed by some of cols, so that the changes of a row stay in order.
func (b *builder) answerScan(n *plan.Scan, cols []int) (plan.Node, bool) {
	if !n.Rel.HasRows() {
		return nil, false
	}
	if orderedBy(n.Rel, pick(n.Cols, cols)) {
		return n, true
	}
	if !b.s.IndexSelection || b.cat == nil {
		return nil, false
	}
	for _, idx := range b.cat.Indexes(n.Rel.ID) {
		if at, ok := covers(idx, n.Cols); ok && orderedBy(idx, pick(at, cols)) {
			return &plan.Scan{Rel: idx, Cols: at}, true
		}
	}
	return nil, false
}

// orderedBy reports whether a relation's key begins with cols, in that order, and
// no vnode divides rows with equal cols.
func orderedBy(rel *catalog.Relation, cols []int) bool {
	key := rel.KeyCols()
	return len(cols) <= len(key) && slices.Equal(key[:len(cols)], cols) && len(rel.Dist) > 0 && subset(rel.Dist, cols)
}

// covers maps columns of an index's relation to the index's own; false: one is missing.
func covers(idx *catalog.Relation, cols []int) ([]int, bool) {
	pos := positions(idx.IndexCols)
	at := through(cols, pos)
	return at, !slices.Contains(at, -1)
}

// provide puts a locality provider over in. It starts a fragment and holds rows by
// exactly cols. Who hashes by them can stay in its fragment, unless
// both sides of the operator must agree on the placement: the mapping is the provider's own.
func provide(in plan.Stream, cols []int, note string) plan.Stream {
	cols = appendNew(nil, cols...)
	from := port(in, plan.Dist{Kind: plan.HashShard, Cols: cols})
	p := passProps(from)
	p.Key = appendNew(slices.Clone(cols), from.Props().Key...)
	p.Dist = plan.Dist{Kind: plan.UpstreamHashShard, Cols: cols}
	p.Order = p.Key
	return &plan.StreamLocalityProvider{
		Operator: p, Cols: cols, Estimate: note,
		Buffer:   table("LocalityProviderState", p.Schema, upTo(len(p.Schema)), p.Key, slices.Clone(cols)),
		Log:      logTable("LocalityProviderLog"),
		Progress: progressTable("LocalityProviderProgress"),
	}
}
