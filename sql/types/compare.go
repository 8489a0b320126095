package types

import (
	"cmp"
	"slices"
)

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

// Cmp orders item by item (NULL items last) over all dimensions, then the
// shorter first, then the one of fewer dimensions, of smaller ones, of lower bounds.
func (l *List) Cmp(o *List) int {
	a, b := l.Items, o.Items
	deep := len(a) > 0 && a[0].kind == KindList || len(b) > 0 && b[0].kind == KindList
	if deep {
		a, b = l.leaves(nil), o.leaves(nil)
	}
	for i := range min(len(a), len(b)) {
		if c := Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	c := cmp.Compare(len(a), len(b))
	if c == 0 && deep {
		c = slices.Compare(l.Dims(), o.Dims())
		if n := cmp.Compare(len(l.Dims()), len(o.Dims())); n != 0 {
			c = n
		}
	}
	for x, y := l, o; c == 0 && len(x.Items) > 0; {
		if c = cmp.Compare(x.Lower, y.Lower); x.Items[0].kind != KindList || y.Items[0].kind != KindList {
			break
		}
		x, y = x.Items[0].List(), y.Items[0].List()
	}
	return c
}

// leaves appends the items of all dimensions.
func (l *List) leaves(dst []Datum) []Datum {
	for _, d := range l.Items {
		if d.kind == KindList {
			dst = d.List().leaves(dst)
		} else {
			dst = append(dst, d)
		}
	}
	return dst
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
