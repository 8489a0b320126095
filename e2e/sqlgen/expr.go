package sqlgen

import (
	"fmt"
	"strings"
)

// of returns the columns of a scope that have a kind.
func of(scope []Col, k Kind) []Col {
	var out []Col
	for _, c := range scope {
		if c.Kind == k {
			out = append(out, c)
		}
	}
	return out
}

func where(scope []Col, keep func(Col) bool) []Col {
	var out []Col
	for _, c := range scope {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// any makes an expression of whatever kind over a scope.
func (g *Gen) any(scope []Col, depth int) Col {
	if g.Chance(0.6) {
		return pick(g, scope...)
	}
	return g.expr(scope, pick(g, scope...).Kind, depth)
}

// expr makes an expression of a kind. It never fails on any row.
func (g *Gen) expr(scope []Col, k Kind, depth int) Col {
	cols := of(scope, k)
	if depth <= 0 || g.Chance(0.4) {
		if len(cols) > 0 && g.Chance(0.85) {
			return pick(g, cols...)
		}
		c := Col{Kind: k, Tame: true}
		c.Name = g.literal(c)
		return c
	}
	switch g.r.IntN(7) {
	case 0:
		a, b := g.expr(scope, k, depth-1), g.expr(scope, k, depth-1)
		return derived(k, fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", g.pred(scope, depth-1), a.Name, b.Name), a, b)
	case 1:
		a, b := g.expr(scope, k, depth-1), g.expr(scope, k, 0)
		return derived(k, fmt.Sprintf("coalesce(%s, %s)", a.Name, b.Name), a, b)
	case 2:
		a, b := g.expr(scope, k, depth-1), g.expr(scope, k, 0)
		return derived(k, fmt.Sprintf("nullif(%s, %s)", a.Name, b.Name), a)
	case 3:
		if k.ordered() {
			a, b := g.expr(scope, k, depth-1), g.expr(scope, k, depth-1)
			return derived(k, fmt.Sprintf("%s(%s, %s)", pick(g, "greatest", "least"), a.Name, b.Name), a, b)
		}
	case 4:
		return Col{Name: fmt.Sprintf("NULL::%s", k), Kind: k, Tame: true}
	}
	return g.special(scope, k, depth)
}

// derived is an expression whose values are some of from's values.
func derived(k Kind, sql string, from ...Col) Col {
	c := Col{Name: sql, Kind: k, Tame: true}
	for _, f := range from {
		c.Tame = c.Tame && f.Tame
		c.Ragged = c.Ragged || f.Ragged
	}
	return c
}

// special makes an expression only its kind has.
func (g *Gen) special(scope []Col, k Kind, depth int) Col {
	tame := where(of(scope, k), func(c Col) bool { return c.Tame })
	out := Col{Kind: k}
	set := func(format string, args ...any) Col {
		out.Name = fmt.Sprintf(format, args...)
		return out
	}
	switch {
	case k == Bool:
		return set("(%s)", g.pred(scope, depth-1))
	case k == Text:
		other := where(scope, func(c Col) bool { return !c.Ragged && c.Kind != Bytea })
		switch g.r.IntN(3) {
		case 0:
			return set("%s(%s)", pick(g, "upper", "lower"), g.expr(scope, Text, depth-1).Name)
		case 1:
			return set("(%s || %s)", g.expr(scope, Text, depth-1).Name, g.expr(scope, Text, 0).Name)
		default:
			if len(other) > 0 {
				return set("%s::text", pick(g, other...).Name)
			}
		}
	case k == Int4 && g.Chance(0.2) && len(of(scope, IntArray)) > 0:
		a := pick(g, of(scope, IntArray)...).Name
		return set("%s", pick(g, "cardinality("+a+")", "array_length("+a+", 1)", "("+a+")[1]"))
	case k == IntArray:
		return set("(%s || %s)", g.expr(scope, Int4, 0).Name, pick(g, "'{}'::integer[]", "'{5,6}'::integer[]"))
	case k == TextArray:
		return set("array_append('{x,NULL}'::text[], %s)", g.expr(scope, Text, 0).Name)
	case k == Int4 && g.Chance(0.3):
		return set("length(%s)", g.expr(scope, Text, depth-1).Name)
	case k == Int8 && g.Chance(0.4):
		return set("%s::bigint", g.expr(scope, Int4, depth-1).Name)
	case (k.integer() || k.float()) && len(tame) > 0:
		a, b := pick(g, tame...).Name, pick(g, tame...).Name
		if g.Chance(0.2) {
			return set("abs(%s)", a)
		}
		return set("(%s %s %s)", a, pick(g, "+", "-", "*"), b)
	case k == Numeric && len(tame) > 0:
		out.Ragged = true
		return set("(%s %s %s)", pick(g, tame...).Name, pick(g, "+", "-", "*"), pick(g, tame...).Name)
	case k == Date && len(tame) > 0:
		return set("(%s %s %d)", pick(g, tame...).Name, pick(g, "+", "-"), 1+g.r.IntN(3))
	case k == Timestamp:
		if dates := of(scope, Date); len(dates) > 0 && g.Chance(0.5) {
			return set("%s::timestamp", pick(g, dates...).Name)
		}
		if len(tame) > 0 {
			return set("(%s %s interval '%d hours')", pick(g, tame...).Name, pick(g, "+", "-"), 1+g.r.IntN(30))
		}
	}
	return g.expr(scope, k, 0)
}

// pred makes a condition. It never fails on any row.
func (g *Gen) pred(scope []Col, depth int) string {
	if depth > 0 && g.Chance(0.35) {
		switch g.r.IntN(3) {
		case 0:
			return fmt.Sprintf("(%s AND %s)", g.pred(scope, depth-1), g.pred(scope, depth-1))
		case 1:
			return fmt.Sprintf("(%s OR %s)", g.pred(scope, depth-1), g.pred(scope, depth-1))
		default:
			return fmt.Sprintf("NOT (%s)", g.pred(scope, depth-1))
		}
	}
	a := pick(g, scope...)
	if depth > 0 && g.Chance(0.2) {
		a = g.expr(scope, a.Kind, depth-1)
	}
	literal := func() string { return g.literal(Col{Kind: a.Kind, Tame: a.Tame}) }
	switch g.r.IntN(8) {
	case 0:
		return fmt.Sprintf("%s IS %s", a.Name, pick(g, "NULL", "NOT NULL"))
	case 1:
		return fmt.Sprintf("%s %sIN (%s, %s)", a.Name, pick(g, "", "NOT "), literal(), literal())
	case 2:
		return fmt.Sprintf("%s BETWEEN %s AND %s", a.Name, literal(), literal())
	case 3:
		return fmt.Sprintf("%s IS %sDISTINCT FROM %s", a.Name, pick(g, "", "NOT "), literal())
	case 4:
		if a.Kind == Text {
			return fmt.Sprintf("%s %s %s", a.Name, pick(g, "LIKE", "NOT LIKE"), pick(g, "'a%'", "'%b%'", "'_'", "'%\\%'", "''"))
		}
		if a.Kind == Bool {
			return a.Name
		}
	}
	b := literal()
	if same := of(scope, a.Kind); g.Chance(0.3) {
		b = pick(g, same...).Name
	}
	return fmt.Sprintf("%s %s %s", a.Name, pick(g, "=", "<>", "<", "<=", ">", ">="), b)
}

// agg makes an aggregate call over a scope.
func (g *Gen) agg(scope []Col) Col {
	out := g.plainAgg(scope)
	if g.Chance(0.25) {
		out.Name += fmt.Sprintf(" FILTER (WHERE %s)", g.pred(scope, 1))
	}
	return out
}

func (g *Gen) plainAgg(scope []Col) Col {
	distinct := ""
	if g.Chance(0.25) {
		distinct = "DISTINCT "
	}
	a := g.any(scope, 1)
	call := func(f string) string { return fmt.Sprintf("%s(%s%s)", f, distinct, a.Name) }
	switch f := g.r.IntN(6); {
	case f == 0:
		return Col{Name: "count(*)", Kind: Int8}
	case (f == 1 || f == 2) && a.Kind.ordered() && !a.Ragged:
		out := Col{Name: fmt.Sprintf("%s(%s)", pick(g, "min", "max"), a.Name), Kind: a.Kind, Tame: a.Tame}
		return out
	case f == 3 || f == 4:
		if distinct != "" && a.Ragged {
			distinct = "" // which of two equal values would be added?
		}
		switch {
		case a.Kind == Int2 || a.Kind == Int4:
			return Col{Name: call("sum"), Kind: Int8}
		case a.Kind == Int8:
			return Col{Name: call("sum"), Kind: Numeric}
		case a.Kind == Numeric:
			return Col{Name: call("sum"), Kind: Numeric, Ragged: true}
		case a.Kind.float() && a.Tame:
			return Col{Name: call("sum"), Kind: a.Kind}
		case a.Kind == Interval && a.Tame && !a.Ragged:
			return Col{Name: call("sum"), Kind: Interval, Ragged: true}
		}
	case f == 5:
		if distinct != "" && a.Ragged {
			distinct = ""
		}
		switch {
		case a.Kind.integer() || a.Kind == Numeric:
			return Col{Name: call("avg"), Kind: Numeric, Ragged: true}
		case a.Kind.float() && a.Tame:
			return Col{Name: call("avg"), Kind: Float}
		}
	}
	return Col{Name: call("count"), Kind: Int8}
}

// selectList names columns c0, c1, … and returns them as seen from outside.
func selectList(cols []Col) (string, []Col) {
	var parts []string
	out := make([]Col, len(cols))
	for i, c := range cols {
		out[i] = c
		out[i].Name = fmt.Sprintf("c%d", i)
		parts = append(parts, fmt.Sprintf("%s AS c%d", c.Name, i))
	}
	return strings.Join(parts, ", "), out
}
