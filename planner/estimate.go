package planner

import (
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// Sizes are guessed from row counts alone: there are no histograms. The guesses
// decide only where a backfill sorts first, never what a view contains.
const (
	equalitySelectivity = 0.1
	otherSelectivity    = 1.0 / 3
	groupShare          = 0.1 // groups per row where nothing better is known
	rowOverhead         = 48  // bytes of a cached row or group besides its columns
)

// rows guesses how many rows n has.
func rows(n plan.Node, st Stats) float64 {
	switch n := n.(type) {
	case *plan.Scan:
		return scanRows(n, st)
	case *plan.Values:
		return float64(len(n.Rows))
	case *plan.Filter:
		out := rows(n.Input, st)
		for _, c := range conjuncts(n.Cond) {
			if op, _, _, ok := comparison(c); ok && op == "=" {
				out *= equalitySelectivity
			} else {
				out *= otherSelectivity
			}
		}
		return out
	case *plan.Join:
		l, r := rows(n.Left, st), rows(n.Right, st)
		switch {
		case n.Kind == plan.Semi || n.Kind == plan.Anti:
			return l
		case len(n.LeftKeys) == 0:
			return l * r
		}
		return max(l, r) // most joins follow a reference to a key
	case *plan.Agg:
		return groups(n.Input, n.GroupBy, st)
	case *plan.Distinct:
		if n.On != nil {
			return groups(n.Input, n.On, st)
		}
		return groups(n.Input, upTo(len(n.Schema())), st)
	case *plan.Limit:
		in := rows(n.Input, st)
		if c, ok := n.Count.(*expr.Const); ok && !c.Val.IsNull() {
			return min(in, float64(c.Val.Int()))
		}
		return in
	case *plan.SetOp:
		out := 0.0
		for _, in := range n.Ins {
			out += rows(in, st)
		}
		return out
	}
	out := 0.0
	for _, in := range n.Inputs() {
		out = max(out, rows(in, st))
	}
	return out
}

// scanRows is rows for a scan, of key ranges where it has some.
func scanRows(n *plan.Scan, st Stats) float64 {
	total := float64(st.Rows(n.Rel.ID))
	if n.Ranges == nil {
		return total
	}
	out := 0.0
	for _, r := range n.Ranges {
		switch {
		case len(r.Eq) == len(n.Rel.Key):
			out++
		default:
			share := 1.0
			for range r.Eq {
				share *= equalitySelectivity
			}
			if r.Lo != nil || r.Hi != nil {
				share *= otherSelectivity
			}
			out += max(1, total*share)
		}
	}
	return min(out, total)
}

// groups guesses how many different values the given columns of n have.
func groups(n plan.Node, cols []int, st Stats) float64 {
	total := rows(n, st)
	out := 1.0
	for _, c := range cols {
		out *= max(1, distinctValues(n, c, st))
	}
	return min(out, total)
}

// distinctValues guesses how many different values a column has: as many as a
// relation has rows where the column is, or equals, its whole key, or where it
// depends on such a key.
func distinctValues(n plan.Node, c int, st Stats) float64 {
	switch n := n.(type) {
	case *plan.Scan:
		total := float64(st.Rows(n.Rel.ID))
		if len(n.Rel.Key) == 1 && n.Rel.Key[0].Col == n.Cols[c] {
			return total
		}
		return max(1, total*groupShare)
	case *plan.Filter:
		return min(distinctValues(n.Input, c, st), rows(n, st))
	case *plan.Project:
		if r, ok := n.Exprs[c].(*expr.ColRef); ok {
			return distinctValues(n.Input, r.Index, st)
		}
	case *plan.Join:
		width := len(n.Left.Schema())
		side, own := n.Left, c
		if c >= width {
			side, own = n.Right, c-width
		}
		out := distinctValues(side, own, st)
		for i := range n.LeftKeys { // a key column has only values that the other side has, too
			if n.LeftKeys[i] == c || n.RightKeys[i] == c-width {
				out = min(out, distinctValues(n.Left, n.LeftKeys[i], st), distinctValues(n.Right, n.RightKeys[i], st))
			}
		}
		return out
	case *plan.Agg:
		if c < len(n.GroupBy) {
			return distinctValues(n.Input, n.GroupBy[c], st)
		}
	}
	return max(1, rows(n, st)*groupShare)
}

// width guesses the bytes of a row's columns in memory.
func width(s types.Schema) float64 {
	out := 0.0
	for _, f := range s {
		switch f.Type.Kind() {
		case types.KindBool:
			out++
		case types.KindInt, types.KindFloat:
			out += 8
		case types.KindDecimal, types.KindInterval:
			out += 16
		default:
			out += 24
		}
	}
	return out
}

// A stateSize is the guess of what an operator has to keep.
type stateSize struct {
	what        string // "groups", "rows"
	rows, width float64
}

func (s stateSize) bytes() float64 { return s.rows * s.width }

func (b *builder) groupState(in plan.Node, cols []int, aggs int) stateSize {
	return stateSize{"groups", groups(in, cols, b.st), width(in.Schema().Project(cols)) + float64(16*aggs) + rowOverhead}
}

// joinState is the side of a join that rows of the other side look up.
func (b *builder) joinState(side plan.Node) stateSize {
	return stateSize{"rows", rows(side, b.st), width(side.Schema()) + rowOverhead}
}

// byteSize prints a number of bytes.
func byteSize(n float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			return fmt.Sprintf("%.3g %s", n, u)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.4g TB", n)
}
