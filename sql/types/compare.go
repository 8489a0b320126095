package types

import "cmp"

// Compare orders two values of one kind as ORDER BY … ASC does: NULL last, NaN
// above all numbers and equal to itself, text by its bytes, arrays item by item.
func Compare(a, b Datum) int {
	if a.kind == KindNull || b.kind == KindNull {
		switch {
		case a.kind == b.kind:
			return 0
		case a.kind == KindNull:
			return 1
		}
		return -1
	}
	switch a.kind {
	case KindBool, KindInt:
		return cmpInt64(a.n, b.n)
	case KindFloat:
		return CompareFloat(a.Float(), b.Float())
	case KindString:
		return cmp.Compare(a.s, b.s)
	case KindDecimal:
		return a.Decimal().Cmp(b.Decimal())
	case KindInterval:
		return a.Interval().Cmp(b.Interval())
	case KindList:
		return a.List().Cmp(b.List())
	}
	panic("types: compare of unknown kind")
}

// Equal reports whether a and b are not distinct: NULL equals NULL.
func Equal(a, b Datum) bool { return Compare(a, b) == 0 }

func cmpInt64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// CompareFloat orders as PostgreSQL: -0 equals 0, NaN equals NaN and is above ∞.
func CompareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	switch an, bn := a != a, b != b; {
	case an && bn:
		return 0
	case an:
		return 1
	}
	return -1
}

// Cmp orders intervals by their Span.
func (iv Interval) Cmp(o Interval) int {
	d1, m1 := iv.Span()
	d2, m2 := o.Span()
	if d1 != d2 {
		return cmpInt64(d1, d2)
	}
	return cmpInt64(m1, m2)
}

// Cmp orders item by item (NULL items last), then the shorter first.
func (l *List) Cmp(o *List) int {
	for i := range min(len(l.Items), len(o.Items)) {
		if c := Compare(l.Items[i], o.Items[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(l.Items), len(o.Items))
}

// Compare orders rows column by column, as Compare does.
func (r Row) Compare(o Row) int {
	for i := range min(len(r), len(o)) {
		if c := Compare(r[i], o[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(r), len(o))
}

// Equal reports whether no column of r is distinct from o's.
func (r Row) Equal(o Row) bool { return len(r) == len(o) && r.Compare(o) == 0 }

// Project returns the given columns of r.
func (r Row) Project(cols []int) Row {
	out := make(Row, len(cols))
	for i, c := range cols {
		out[i] = r[c]
	}
	return out
}
