package planner

import (
	"fmt"
	"math"
	"slices"

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

// groups guesses how many different values the given columns of n have together:
// for each relation that they come from as many as its columns have, unless a join makes
// them depend on the columns of another one.
func groups(n plan.Node, cols []int, st Stats) float64 {
	total := rows(n, st)
	out := 1.0
	var from []*scanCols
	for _, c := range cols {
		s, col := source(n, c)
		if s == nil {
			out *= max(1, distinctValues(n, c, st))
			continue
		}
		from = withCol(from, s, col)
	}
	depends := dependents(n, from)
	for _, f := range from {
		if !slices.Contains(depends, f.scan) {
			each := 1.0
			for _, c := range f.cols {
				each *= min(distinctOf(f.scan, []int{c}, st), partners(n, f.scan, c, st))
			}
			out *= max(1, min(distinctOf(f.scan, f.cols, st), each, rows(f.scan, st)))
		}
	}
	return max(1, min(out, total))
}

// scanCols are some columns of the relation of a scan.
type scanCols struct {
	scan *plan.Scan
	cols []int
}

func withCol(all []*scanCols, s *plan.Scan, col int) []*scanCols {
	for _, f := range all {
		if f.scan == s {
			f.cols = appendNew(f.cols, col)
			return all
		}
	}
	return append(all, &scanCols{s, []int{col}})
}

// source finds the scan and the relation's column that column c of n is; nil: it is computed.
func source(n plan.Node, c int) (*plan.Scan, int) {
	switch n := n.(type) {
	case *plan.Scan:
		return n, n.Cols[c]
	case *plan.Filter:
		return source(n.Input, c)
	case *plan.Project:
		if r, ok := n.Exprs[c].(*expr.ColRef); ok {
			return source(n.Input, r.Index)
		}
	case *plan.Join:
		if width := len(n.Left.Schema()); c >= width {
			return source(n.Right, c-width)
		}
		return source(n.Left, c)
	case *plan.Agg:
		if c < len(n.GroupBy) {
			return source(n.Input, n.GroupBy[c])
		}
	}
	return nil, 0
}

// partners is how many different values the columns have that the given one is joined to:
// it has no others. Infinite: it is not joined.
func partners(n plan.Node, s *plan.Scan, col int, st Stats) float64 {
	out := math.Inf(1)
	if j, ok := n.(*plan.Join); ok && j.Kind == plan.Inner {
		for i := range j.LeftKeys {
			l, lc := source(j.Left, j.LeftKeys[i])
			r, rc := source(j.Right, j.RightKeys[i])
			switch {
			case l == nil || r == nil:
			case l == s && lc == col:
				out = min(out, distinctOf(r, []int{rc}, st))
			case r == s && rc == col:
				out = min(out, distinctOf(l, []int{lc}, st))
			}
		}
	}
	for _, in := range n.Inputs() {
		out = min(out, partners(in, s, col, st))
	}
	return out
}

// dependents are the scans whose row follows from the given columns of others: those that
// are joined by their whole key to columns that are given.
func dependents(n plan.Node, given []*scanCols) []*plan.Scan {
	var out []*plan.Scan
	has := func(s *plan.Scan, col int) bool {
		return slices.ContainsFunc(given, func(f *scanCols) bool { return f.scan == s && slices.Contains(f.cols, col) })
	}
	var walk func(plan.Node)
	walk = func(n plan.Node) {
		if j, ok := n.(*plan.Join); ok && len(j.LeftKeys) > 0 {
			follows := func(one plan.Node, keys []int, other plan.Node, otherKeys []int) {
				var key []*scanCols
				for i := range keys {
					s, col := source(one, keys[i])
					o, oc := source(other, otherKeys[i])
					if s == nil || o == nil || !has(o, oc) {
						return
					}
					key = withCol(key, s, col)
				}
				if len(key) == 1 && subset(key[0].scan.Rel.KeyCols(), key[0].cols) {
					out = append(out, key[0].scan)
				}
			}
			follows(j.Right, j.RightKeys, j.Left, j.LeftKeys)
			if j.Kind == plan.Inner {
				follows(j.Left, j.LeftKeys, j.Right, j.RightKeys)
			}
		}
		for _, in := range n.Inputs() {
			walk(in)
		}
	}
	walk(n)
	return out
}

// distinctOf guesses how many different values some columns of a relation have together.
func distinctOf(s *plan.Scan, cols []int, st Stats) float64 {
	total := float64(st.Rows(s.Rel.ID))
	if key := s.Rel.KeyCols(); len(key) > 0 && subset(key, cols) {
		return total
	}
	if d, ok := st.(DistinctStats); ok {
		if n, ok := d.Distinct(s.Rel.ID, cols); ok {
			return float64(n)
		}
	}
	out := 1.0
	for range cols {
		out *= max(1, total*groupShare)
	}
	return min(out, total)
}

// distinctValues guesses how many different values a column has: as many as a
// relation has rows where the column is, or equals, its whole key, or where it
// depends on such a key.
func distinctValues(n plan.Node, c int, st Stats) float64 {
	switch n := n.(type) {
	case *plan.Scan:
		return max(1, distinctOf(n, n.Cols[c:c+1], st))
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

// A stateSize is the guess of what an operator has to keep, and of what
// keeping it costs while its input comes in no order.
type stateSize struct {
	what        string // "groups", "rows"
	rows, width float64
	input       float64 // rows that come
	keys        float64 // different ones that they touch
	tables      float64 // entries a key has, those of what is kept of the result included
	other       float64 // bytes of the state that each row looks up besides
}

func (s stateSize) bytes() float64 { return s.rows * s.width }

func (b *builder) groupState(in plan.Node, cols []int, aggs []expr.Agg) stateSize {
	n := groups(in, cols, b.st)
	s := stateSize{what: "groups", rows: n, keys: n, input: rows(in, b.st), tables: 2,
		width: width(in.Schema().Project(cols)) + float64(16*len(aggs)) + rowOverhead}
	for _, a := range aggs {
		if !a.Fn.Retractable {
			s.tables++ // its values
		}
	}
	return s
}

// joinState is what rows of side, which come by keys, make of a join's state, and the state
// of the other side, which they look up.
func (b *builder) joinState(side plan.Node, keys []int, other plan.Node, otherKeys []int) stateSize {
	theirs := rows(other, b.st) * (width(other.Schema()) + rowOverhead)
	s := stateSize{what: "rows", rows: rows(side, b.st), width: width(side.Schema()) + rowOverhead, input: rows(side, b.st), tables: 1, other: theirs}
	if len(keys) > 0 {
		s.keys = min(groups(side, keys, b.st), max(1, groups(other, otherKeys, b.st)))
	}
	return s
}

// What backfills cost, in µs, on the machine that the figures of the README are from.
// Only their ratios matter.
const (
	entryCost  = 3.0    // to write an entry of state in no order
	runCost    = 0.6    // to write one in key order, into a block
	missCost   = 5.0    // to read one that is not in memory
	sortCost   = 1.6    // to put a row by, sort it and deliver it again
	epochRows  = 100000 // of an epoch; a key that is touched again in it is written once
	leastInput = 10000  // rows that are worth a provider
)

// costs guesses what the state costs, in µs, if the input comes as it is read, and if it
// is sorted first, with a cache of so many bytes.
func (s stateSize) costs(cache float64) (unsorted, sorted float64) {
	keys := max(1, s.keys)
	missing := func(bytes float64) float64 {
		if bytes <= cache {
			return 0
		}
		return 1 - cache/bytes
	}
	epochs := max(1, s.input/epochRows)
	touched := min(s.input, epochs*keys*(1-math.Exp(-s.input/epochs/keys)))
	unsorted = touched*s.tables*(entryCost+missing(s.bytes())*missCost) + s.input*missing(s.other)*missCost
	sorted = s.input*sortCost + min(keys, s.input)*s.tables*runCost
	return unsorted, sorted
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
