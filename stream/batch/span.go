package batch

import (
	"bytes"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/storage"
)

// A span is an interval [from, to) of encoded keys; point: it can hold one row, whose key is from.
type span struct {
	from, to []byte
	point    bool
}

// spans turns key ranges into spans, in key order and without overlaps: k IN (1, 1)
// or k = 1 OR k < 5 give each row once. Nil ranges are the whole relation.
func (e *Env) spans(a *access, ranges []plan.KeyRange) ([]span, error) {
	if ranges == nil {
		return []span{{}}, nil
	}
	var all []span
	for _, r := range ranges {
		var err error
		if all, err = e.addSpans(all, a, r); err != nil {
			return nil, err
		}
	}
	if len(all) < 2 {
		return all, nil
	}
	slices.SortFunc(all, func(x, y span) int { return bytes.Compare(x.from, y.from) })
	out := all[:1]
	for _, r := range all[1:] {
		last := &out[len(out)-1]
		switch {
		case last.point && bytes.Equal(last.from, r.from):
			if !r.point {
				*last = r
			}
		case last.point || last.to != nil && bytes.Compare(r.from, last.to) >= 0:
			out = append(out, r)
		case !r.point && last.to != nil && (r.to == nil || bytes.Compare(r.to, last.to) > 0):
			last.to = r.to
		}
	}
	return out, nil
}

// addSpans adds the spans of one key range: one for each vnode that can hold its rows.
func (e *Env) addSpans(out []span, a *access, r plan.KeyRange) ([]span, error) {
	eq := make([]chunk.Column, 0, len(r.Eq)+1)
	for i, x := range r.Eq {
		d, err := expr.EvalConst(e.Ctx, x)
		if err != nil || d.IsNull() {
			return out, err
		}
		eq = append(eq, chunk.Repeat(a.keys[i], d, 1))
	}
	ranged := r.Lo != nil || r.Hi != nil
	if !ranged && len(eq) == len(a.keys) {
		// All of Dist is in the key: there is one vnode.
		return append(out, span{from: a.codec.AppendPrefix(nil, a.vnodes(eq)[0], eq, 0), point: true}), nil
	}
	bound := func(x expr.Expr) (cols []chunk.Column, ok bool, err error) {
		if x == nil {
			return nil, true, nil
		}
		d, err := expr.EvalConst(e.Ctx, x)
		if err != nil || d.IsNull() {
			return nil, false, err
		}
		return append(slices.Clip(eq), chunk.Repeat(a.keys[len(eq)], d, 1)), true, nil
	}
	lo, ok, err := bound(r.Lo)
	if err != nil || !ok {
		return out, err
	}
	hi, ok, err := bound(r.Hi)
	if err != nil || !ok {
		return out, err
	}
	loInc, hiInc := r.LoInc, r.HiInc
	desc := ranged && a.desc.Desc != nil && a.desc.Desc[len(eq)]
	if desc {
		lo, hi, loInc, hiInc = hi, lo, hiInc, loInc
	}
	var null []chunk.Column
	if ranged {
		null = append(slices.Clip(eq), chunk.Nulls(a.keys[len(eq)], 1))
	}
	for _, v := range a.vnodes(eq) {
		prefix := a.codec.AppendPrefix(nil, v, eq, 0)
		sp := span{from: prefix, to: storage.NextPrefix(prefix)}
		switch {
		case lo != nil:
			sp.from = a.codec.AppendPrefix(nil, v, lo, 0)
			if !loInc {
				sp.from = storage.NextPrefix(sp.from)
			}
		case desc: // NULLs come first and are in no range
			sp.from = storage.NextPrefix(a.codec.AppendPrefix(nil, v, null, 0))
		}
		switch {
		case hi != nil:
			sp.to = a.codec.AppendPrefix(nil, v, hi, 0)
			if hiInc {
				sp.to = storage.NextPrefix(sp.to)
			}
		case ranged && !desc: // NULLs come last
			sp.to = a.codec.AppendPrefix(nil, v, null, 0)
		}
		if bytes.Compare(sp.from, sp.to) < 0 {
			out = append(out, sp)
		}
	}
	return out, nil
}

// vnodes lists the vnodes that can hold rows with the given values of the leading key columns.
func (a *access) vnodes(eq []chunk.Column) []uint16 {
	if len(a.desc.Dist) == 0 || a.desc.Vnodes <= 1 {
		return []uint16{0}
	}
	if dist, ok := a.dist(eq); ok {
		return chunk.Vnodes(dist, upTo(len(dist)), 1, a.desc.Vnodes)
	}
	out := make([]uint16, a.desc.Vnodes)
	for v := range out {
		out[v] = uint16(v)
	}
	return out
}

// dist picks the distribution columns from the leading key columns, if they are all there.
func (a *access) dist(eq []chunk.Column) ([]chunk.Column, bool) {
	out := make([]chunk.Column, len(a.desc.Dist))
	for j, d := range a.desc.Dist {
		i := slices.Index(a.desc.Key, d)
		if i < 0 || i >= len(eq) {
			return nil, false
		}
		out[j] = eq[i]
	}
	return out, true
}
