package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// agg plans a grouped aggregate, or one over all rows, which runs in one actor.
func (b *builder) agg(n *plan.Agg) (plan.Stream, error) {
	in, note, err := b.ask(n.Input, n.GroupBy, b.groupState(n.Input, n.GroupBy, n.Aggs))
	if err != nil {
		return nil, err
	}
	return b.hashAgg(byKey(in, n.GroupBy), n.GroupBy, n.Aggs, note), nil
}

// hashAgg aggregates in, which is distributed by group.
func (b *builder) hashAgg(in plan.Stream, group []int, aggs []expr.Agg, note asked) plan.Stream {
	from := in.Props()
	a := &plan.StreamHashAgg{GroupBy: group, Aggs: slices.Clone(aggs)}
	pos := positions(group)
	width := len(group)
	// The distribution may name fewer columns than the group.
	dist := through(from.Dist.Cols, pos)

	a.State = table("HashAggState", from.Schema, group, upTo(width), dist)
	also(a.State, "row_count", types.Int8)
	a.Operator = plan.Props{Schema: from.Schema.Project(group), Key: upTo(width), Dist: mapDist(from.Dist, pos),
		In: []plan.Stream{in}}
	note.tell(&a.Operator)
	a.Values = make([]*plan.TableDesc, len(aggs))
	a.DistinctState = make([]*plan.TableDesc, len(aggs))
	filters := map[*plan.TableDesc][]int{} // of the calls that share a table
	for i := range a.Aggs {
		g := &a.Aggs[i]
		if g.Distinct && ignoresRepeats(g.Fn) {
			g.Distinct = false
		}
		also(a.State, fmt.Sprintf("state_%d", i), types.Bytea)
		a.Schema = append(a.Schema, types.Field{Name: expr.AggString(*g, from.Schema), Type: g.Typ})
		if !g.Fn.Retractable && !from.AppendOnly || len(g.Order) > 0 {
			a.Values[i] = valuesTable(i, from, group, *g, dist)
		}
		if !g.Distinct {
			continue
		}
		t := sameDistinct(a, i)
		if t == nil {
			cols := appendNew(slices.Clone(group), g.Args...)
			t = table(fmt.Sprintf("HashAggDistinct%d", i), from.Schema, cols, upTo(len(cols)), dist)
		}
		if !slices.Contains(filters[t], g.Filter) {
			also(t, fmt.Sprintf("count_%d", len(filters[t])), types.Int8)
			filters[t] = append(filters[t], g.Filter)
		}
		a.DistinctState[i] = t
	}
	return a
}

// sameDistinct finds the table of an earlier DISTINCT call with the same arguments.
func sameDistinct(a *plan.StreamHashAgg, i int) *plan.TableDesc {
	for j := range i {
		if a.DistinctState[j] != nil && slices.Equal(a.Aggs[j].Args, a.Aggs[i].Args) {
			return a.DistinctState[j]
		}
	}
	return nil
}

// ignoresRepeats tells the aggregates for which DISTINCT changes nothing.
func ignoresRepeats(f *expr.AggFunc) bool {
	switch f.Name {
	case "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or":
		return true
	}
	return false
}

// valuesTable keeps the sorted inputs of an aggregate that cannot take a value back:
// by the call's own order where it has one, the greatest first for max. Where repeats
// make no difference each value is there once, with the number of rows that have it;
// of a DISTINCT call each value is there once, whichever row it came from.
func valuesTable(i int, in *plan.Props, group []int, g expr.Agg, dist []int) *plan.TableDesc {
	cols := slices.Clone(group)
	desc := make([]bool, len(cols))
	add := func(c int, d bool) {
		if !slices.Contains(cols, c) {
			cols, desc = append(cols, c), append(desc, d)
		}
	}
	counted := ignoresRepeats(g.Fn)
	if !counted {
		for _, o := range g.Order {
			add(o.Col, o.Desc)
		}
	}
	for _, c := range g.Args {
		add(c, g.Fn.Name == "max")
	}
	if !g.Distinct && !counted {
		for _, c := range in.Key {
			add(c, false)
		}
	}
	t := table(fmt.Sprintf("HashAggValues%d", i), in.Schema, cols, upTo(len(cols)), dist)
	if counted {
		also(t, "count", types.Int8)
	}
	if slices.Contains(desc, true) {
		t.Desc = desc
	}
	return t
}

// distinct keeps one row of equals. SELECT DISTINCT is an aggregate without
// aggregates; DISTINCT ON is the first row of each group. Where nothing is ever
// deleted, and any row will do, the first one to come is kept.
func (b *builder) distinct(n *plan.Distinct) (plan.Stream, error) {
	width := len(n.Schema())
	cols := n.On
	if cols == nil {
		cols = upTo(width)
	}
	in, note, err := b.ask(n.Input, cols, b.groupState(n.Input, cols, nil))
	if err != nil {
		return nil, err
	}
	in = byKey(in, cols)
	switch {
	case in.Props().AppendOnly && len(n.Order) == 0 && len(cols) > 0:
		d := &plan.StreamDedup{Operator: passProps(in), Cols: cols}
		d.Key, d.Order = cols, nil
		note.tell(&d.Operator)
		d.State = table("AppendOnlyDedup", d.Schema, cols, upTo(len(cols)), through(d.Dist.Cols, positions(cols)))
		return b.narrow(d, width), nil
	case n.On == nil:
		return b.hashAgg(in, cols, nil, note), nil
	}
	return b.narrow(b.topN(in, &plan.StreamTopN{GroupBy: cols, Order: n.Order, Limit: 1}, note), width), nil
}
