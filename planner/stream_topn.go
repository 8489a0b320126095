package planner

import (
	"math"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
)

// limit plans LIMIT and OFFSET, which with the order below them are one top-n in one actor.
func (b *builder) limit(n *plan.Limit) (plan.Stream, error) {
	t := &plan.StreamTopN{Limit: math.MaxInt64, WithTies: n.WithTies}
	if err := limitValue("LIMIT", n.Count, &t.Limit); err != nil {
		return nil, err
	}
	if err := limitValue("OFFSET", n.Offset, &t.Offset); err != nil {
		return nil, err
	}
	from := n.Input
	if s, ok := from.(*plan.Sort); ok {
		t.Order, from = s.By, s.Input
	}
	in, err := b.build(from)
	if err != nil {
		return nil, err
	}
	return b.narrow(b.topN(byKey(in, nil), t, asked{}), len(n.Schema())), nil
}

// limitValue reads a constant row count; nil and NULL leave *to as it is.
func limitValue(what string, e expr.Expr, to *int64) error {
	if e == nil {
		return nil
	}
	c, ok := e.(*expr.Const)
	if !ok {
		return sqlerr.Unsupported("%s that is not a constant in a streaming query", what)
	}
	if c.Val.IsNull() {
		return nil
	}
	if *to = c.Val.Int(); *to < 0 {
		code := map[string]string{"LIMIT": "2201W", "OFFSET": "2201X"}[what]
		return sqlerr.New(code, "%s must not be negative", what)
	}
	return nil
}

// topN completes t over in, which is distributed by t's group.
func (b *builder) topN(in plan.Stream, t *plan.StreamTopN, note asked) plan.Stream {
	t.Operator = passProps(in)
	t.Operator.AppendOnly, t.Operator.Order = false, nil
	note.tell(&t.Operator)
	t.Operator.Key = appendNew(slices.Clone(t.GroupBy), t.Operator.Key...)

	// Storage order: group, order columns, stream key.
	cols := slices.Clone(t.GroupBy)
	desc := make([]bool, len(cols))
	for _, o := range t.Order {
		if !slices.Contains(cols, o.Col) {
			cols, desc = append(cols, o.Col), append(desc, o.Desc)
		}
	}
	key := appendNew(cols, t.Operator.Key...)
	t.State = table("TopNState", t.Operator.Schema, upTo(len(t.Operator.Schema)), key, slices.Clone(t.Operator.Dist.Cols))
	if slices.Contains(desc, true) {
		t.State.Desc = append(desc, make([]bool, len(key)-len(desc))...)
	}
	return t
}
