package sqlgen

import (
	"fmt"
	"strings"
)

// Wide invents a query of the wider surface: windows, grouping sets, set operations,
// subqueries, LATERAL, DISTINCT ON, rank filters, recursion. kind says which; the
// answer is one and the same whatever plan is taken.
func (g *Gen) Wide() (kind, sql string) {
	for range 20 {
		i := g.r.IntN(len(wide))
		if sql := wide[i].make(g); sql != "" {
			return wide[i].kind, sql
		}
	}
	q, _ := g.query(1)
	return "plain", q
}

// wide are the kinds of queries; one that does not come about is "".
var wide = []struct {
	kind string
	make func(*Gen) string
}{
	{"window rank", (*Gen).windowRank}, {"window value", (*Gen).windowValue}, {"window aggregate", (*Gen).windowAgg},
	{"grouping sets", (*Gen).groupingSets}, {"set operation", (*Gen).setOperation}, {"scalar subquery", (*Gen).scalarSubquery},
	{"in subquery", (*Gen).inSubquery}, {"exists", (*Gen).exists}, {"quantified", (*Gen).quantified}, {"lateral", (*Gen).lateral},
	{"distinct on", (*Gen).distinctOn}, {"rank filter", (*Gen).rankFilter}, {"row comparison", (*Gen).rowComparison},
	{"values", (*Gen).values}, {"series", (*Gen).series}, {"using", (*Gen).using}, {"ordered aggregate", (*Gen).orderedAgg},
	{"recursive", (*Gen).recursive}, {"cross", (*Gen).cross}, {"array subquery", (*Gen).arraySubquery}, {"nested exists", (*Gen).nestedExists},
}

func exact(scope []Col) []Col {
	return where(scope, func(c Col) bool { return !c.Ragged })
}

// some picks n columns, each at most once.
func (g *Gen) some(cols []Col, n int) []Col {
	out := append([]Col{}, cols...)
	g.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

func names(cols []Col) string {
	var out []string
	for _, c := range cols {
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

// ordered is an ORDER BY list over columns in random directions.
func (g *Gen) ordered(cols []Col) string {
	var out []string
	for _, c := range cols {
		out = append(out, c.Name+pick(g, "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
	}
	return strings.Join(out, ", ")
}

// columns are some columns of a FROM clause, those that equal rows agree on.
func (g *Gen) columns(n int) (from string, scope, cols []Col) {
	from, scope = g.from(0)
	cols = g.some(exact(scope), n)
	return from, scope, cols
}

func (g *Gen) partition(cols []Col) string {
	if g.Chance(0.3) || len(cols) < 2 {
		return ""
	}
	return "PARTITION BY " + names(g.some(cols, 1+g.r.IntN(2))) + " "
}

// windowRank numbers rows; ties are equal in all columns that are shown.
func (g *Gen) windowRank() string {
	from, scope, cols := g.columns(3)
	if len(cols) == 0 {
		return ""
	}
	f := pick(g, "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", fmt.Sprintf("ntile(%d)", 1+g.r.IntN(4)))
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT %s, %s OVER (%sORDER BY %s) AS w FROM %s%s", list, f, g.partition(cols), g.ordered(cols), from, g.where(scope))
}

func (g *Gen) windowValue() string {
	from, scope, cols := g.columns(3)
	if len(cols) == 0 {
		return ""
	}
	x := pick(g, cols...)
	n := 1 + g.r.IntN(3)
	f := pick(g, fmt.Sprintf("lag(%s)", x.Name), fmt.Sprintf("lead(%s, %d)", x.Name, n), fmt.Sprintf("lag(%s, %d, %s)", x.Name, n, g.literal(x)),
		fmt.Sprintf("first_value(%s)", x.Name), fmt.Sprintf("last_value(%s)", x.Name), fmt.Sprintf("nth_value(%s, %d)", x.Name, n))
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT %s, %s OVER (%sORDER BY %s%s) AS w FROM %s%s", list, f, g.partition(cols), g.ordered(cols), g.frame(), from, g.where(scope))
}

// frame is a frame clause that fits any order.
func (g *Gen) frame() string {
	if g.Chance(0.4) {
		return ""
	}
	start := pick(g, "UNBOUNDED PRECEDING", "1 PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING")
	end := pick(g, "UNBOUNDED FOLLOWING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING")
	mode := pick(g, "ROWS", "GROUPS", "RANGE")
	if mode == "RANGE" {
		start, end = pick(g, "UNBOUNDED PRECEDING", "CURRENT ROW"), pick(g, "CURRENT ROW", "UNBOUNDED FOLLOWING")
	}
	if start == "1 FOLLOWING" && end == "CURRENT ROW" {
		end = "2 FOLLOWING"
	}
	return fmt.Sprintf(" %s BETWEEN %s AND %s%s", mode, start, end, pick(g, "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP"))
}

func (g *Gen) windowAgg() string {
	from, scope, cols := g.columns(3)
	cols = where(cols, func(c Col) bool { return !c.Kind.float() })
	if len(cols) == 0 {
		return ""
	}
	a := g.agg(cols)
	if strings.Contains(a.Name, "DISTINCT") || strings.Contains(a.Name, "FILTER") {
		a.Name = "count(*)"
	}
	list, _ := selectList(cols)
	over := g.partition(cols)
	if g.Chance(0.8) {
		over += "ORDER BY " + g.ordered(cols) + g.frame()
	}
	if g.Chance(0.2) {
		return fmt.Sprintf("SELECT %s, %s OVER w AS w1, count(*) OVER w AS w2 FROM %s%s WINDOW w AS (%s)", list, a.Name, from, g.where(scope), over)
	}
	return fmt.Sprintf("SELECT %s, %s OVER (%s) AS w FROM %s%s", list, a.Name, over, from, g.where(scope))
}

func (g *Gen) groupingSets() string {
	from, scope, cols := g.columns(3)
	if len(cols) < 2 {
		return ""
	}
	by := pick(g, fmt.Sprintf("ROLLUP (%s)", names(cols)), fmt.Sprintf("CUBE (%s)", names(cols)), fmt.Sprintf("GROUPING SETS ((%s), (%s), ())", names(cols), cols[0].Name),
		fmt.Sprintf("%s, ROLLUP (%s)", cols[0].Name, names(cols[1:])), fmt.Sprintf("GROUPING SETS ((%s), ROLLUP (%s))", cols[0].Name, names(cols[1:])))
	list, _ := selectList(cols)
	q := fmt.Sprintf("SELECT %s, GROUPING(%s) AS gr, %s AS a FROM %s%s GROUP BY %s", list, names(cols), g.agg(scope).Name, from, g.where(scope), by)
	if g.Chance(0.2) {
		q += " HAVING count(*) > 1"
	}
	return q
}

func (g *Gen) setOperation() string {
	arm := func(kinds []Kind) (string, []Kind) {
		from, scope := g.from(0)
		var list []Col
		for i := range max(len(kinds), 1+g.r.IntN(2)) {
			if kinds == nil {
				c := pick(g, scope...)
				if c.Ragged {
					return "", nil
				}
				list = append(list, c)
				continue
			}
			if i == len(kinds) {
				break
			}
			e := g.expr(exact(scope), kinds[i], 1)
			if e.Ragged {
				e = Col{Name: fmt.Sprintf("NULL::%s", kinds[i]), Kind: kinds[i]}
			}
			list = append(list, e)
		}
		var ks []Kind
		for _, c := range list {
			ks = append(ks, c.Kind)
		}
		sql, _ := selectList(list)
		return "SELECT " + sql + " FROM " + from + g.where(scope), ks
	}
	a, kinds := arm(nil)
	if a == "" {
		return ""
	}
	for _, k := range kinds {
		if k == Numeric {
			return "" // which of 1.5 and 1.50 is kept?
		}
	}
	b, _ := arm(kinds)
	q := a + pick(g, " UNION ", " INTERSECT ", " EXCEPT ", " INTERSECT ALL ", " EXCEPT ALL ") + b
	if g.Chance(0.3) {
		c, _ := arm(kinds)
		q = "(" + q + ")" + pick(g, " UNION ", " INTERSECT ", " EXCEPT ", " UNION ALL ", " EXCEPT ALL ") + c
	}
	return q
}

// inner is a table under a new alias and, where there is one, an equality to an outer column.
func (g *Gen) inner(outer []Col) (from string, scope []Col, on string) {
	alias := g.name("a")
	t := pick(g, g.Tables...)
	scope = qualify(alias, t.Cols)
	return t.Name + " AS " + alias, scope, g.on(outer, scope)
}

func (g *Gen) scalarSubquery() string {
	from, scope, cols := g.columns(2)
	in, inner, on := g.inner(scope)
	if on == "" || len(cols) == 0 {
		return ""
	}
	a := g.agg(inner)
	list, _ := selectList(cols)
	sub := fmt.Sprintf("(SELECT %s FROM %s WHERE %s%s)", a.Name, in, on, pick(g, "", " AND "+g.pred(inner, 0)))
	if g.Chance(0.3) && a.Kind == Int8 {
		return fmt.Sprintf("SELECT %s FROM %s WHERE %s > %d", list, from, sub, g.r.IntN(3))
	}
	if g.Chance(0.3) { // not correlated
		sub = fmt.Sprintf("(SELECT %s FROM %s)", a.Name, in)
	}
	return fmt.Sprintf("SELECT %s, %s AS sub FROM %s%s", list, sub, from, g.where(scope))
}

func (g *Gen) inSubquery() string {
	from, scope, cols := g.columns(3)
	in, inner, on := g.inner(scope)
	if on == "" || len(cols) == 0 {
		return ""
	}
	x := pick(g, scope...)
	same := of(inner, x.Kind)
	if len(same) == 0 {
		return ""
	}
	list, _ := selectList(cols)
	sub := fmt.Sprintf("SELECT %s FROM %s", pick(g, same...).Name, in)
	if g.Chance(0.4) {
		sub += " WHERE " + on
	} else {
		sub += g.where(inner)
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s %sIN (%s)", list, from, x.Name, pick(g, "", "NOT "), sub)
}

func (g *Gen) exists() string {
	from, scope, cols := g.columns(3)
	in, inner, on := g.inner(scope)
	if on == "" || len(cols) == 0 {
		return ""
	}
	list, _ := selectList(cols)
	test := fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s WHERE %s AND %s)", pick(g, "", "NOT "), in, on, g.pred(inner, 0))
	if g.Chance(0.3) {
		return fmt.Sprintf("SELECT %s, %s AS e FROM %s", list, test, from)
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s%s", list, from, test, pick(g, "", " OR "+g.pred(scope, 0)))
}

func (g *Gen) nestedExists() string {
	from, scope, cols := g.columns(2)
	in, inner, on := g.inner(scope)
	if on == "" || len(cols) == 0 {
		return ""
	}
	in2, _, on2 := g.inner(append(append([]Col{}, scope...), inner...))
	if on2 == "" {
		return ""
	}
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT %s FROM %s WHERE %sEXISTS (SELECT 1 FROM %s WHERE %s AND %sEXISTS (SELECT 1 FROM %s WHERE %s))", list, from, pick(g, "", "NOT "), in, on, pick(g, "", "NOT "), in2, on2)
}

func (g *Gen) quantified() string {
	from, scope, cols := g.columns(3)
	in, inner, _ := g.inner(scope)
	x := pick(g, scope...)
	same := of(inner, x.Kind)
	if len(same) == 0 || len(cols) == 0 || !x.Kind.ordered() {
		return ""
	}
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s %s %s (SELECT %s FROM %s%s)", list, from, x.Name, pick(g, "<", ">=", "<>", "=", ">"), pick(g, "ANY", "ALL"), pick(g, same...).Name, in, g.where(inner))
}

func (g *Gen) lateral() string {
	from, scope, cols := g.columns(2)
	in, inner, on := g.inner(scope)
	plain := exact(inner)
	if on == "" || len(cols) == 0 || len(plain) == 0 {
		return ""
	}
	l := g.name("l")
	shown := g.some(plain, 2)
	sub, out := selectList(shown)
	list, _ := selectList(append(append([]Col{}, cols...), qualify(l, out)...))
	if g.Chance(0.5) {
		return fmt.Sprintf("SELECT %s FROM %s %s LATERAL (SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT %d) AS %s ON true", list, from, pick(g, "JOIN", "LEFT JOIN"), sub, in, on, g.ordered(shown), 1+g.r.IntN(3), l)
	}
	list, _ = selectList(append(append([]Col{}, cols...), Col{Name: l + ".a"}))
	return fmt.Sprintf("SELECT %s FROM %s CROSS JOIN LATERAL (SELECT %s AS a FROM %s WHERE %s) AS %s", list, from, g.agg(inner).Name, in, on, l)
}

func (g *Gen) distinctOn() string {
	from, scope, cols := g.columns(3)
	if len(cols) < 2 {
		return ""
	}
	list, out := selectList(cols)
	return fmt.Sprintf("SELECT DISTINCT ON (%s) %s FROM %s%s ORDER BY %s", cols[0].Name, list, from, g.where(scope), g.ordered(append([]Col{cols[0]}, out[1:]...)))
}

func (g *Gen) rankFilter() string {
	from, scope, cols := g.columns(3)
	if len(cols) < 2 {
		return ""
	}
	list, out := selectList(cols)
	part := ""
	if g.Chance(0.7) {
		part = "PARTITION BY " + cols[0].Name + " "
	}
	show := names(out)
	if g.Chance(0.5) {
		show += ", rn"
	}
	return fmt.Sprintf("SELECT %s FROM (SELECT %s, %s OVER (%sORDER BY %s) AS rn FROM %s%s) AS r WHERE rn %s %d", show, list, pick(g, "row_number()", "rank()", "dense_rank()"), part, g.ordered(cols), from, g.where(scope), pick(g, "<=", "<", "="), 1+g.r.IntN(3))
}

func (g *Gen) rowComparison() string {
	from, scope, cols := g.columns(3)
	two := g.some(where(scope, func(c Col) bool { return c.Kind.ordered() }), 2)
	if len(two) < 2 || len(cols) == 0 {
		return ""
	}
	list, _ := selectList(cols)
	if g.Chance(0.3) {
		return fmt.Sprintf("SELECT %s FROM %s WHERE (%s) %sIN ((%s, %s), (%s, %s))", list, from, names(two), pick(g, "", "NOT "), g.literal(two[0]), g.literal(two[1]), g.literal(two[0]), g.literal(two[1]))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE (%s) %s (%s, %s)", list, from, names(two), pick(g, "<", "<=", ">", ">=", "=", "<>", "IS DISTINCT FROM"), g.literal(two[0]), g.literal(two[1]))
}

func (g *Gen) values() string {
	from, scope, cols := g.columns(2)
	if len(cols) == 0 {
		return ""
	}
	x := pick(g, cols...)
	v := g.name("v")
	var rows []string
	for i := range 2 + g.r.IntN(3) {
		rows = append(rows, fmt.Sprintf("(%s, %d)", pick(g, g.literal(x), g.literal(x), "NULL::"+x.Kind.String()), i))
	}
	list, _ := selectList(append(append([]Col{}, cols...), Col{Name: v + ".n"}))
	return fmt.Sprintf("SELECT %s FROM %s %s (VALUES %s) AS %s (x, n) ON %s = %s.x%s", list, from, pick(g, "JOIN", "LEFT JOIN", "FULL JOIN"), strings.Join(rows, ", "), v, x.Name, v, g.where(scope))
}

func (g *Gen) series() string {
	from, scope, cols := g.columns(2)
	ints := where(of(scope, Int4), func(c Col) bool { return c.Tame })
	if len(ints) == 0 || len(cols) == 0 {
		return ""
	}
	s := g.name("s")
	x := pick(g, ints...).Name
	f := pick(g, fmt.Sprintf("generate_series(1, %s) AS %s (n)", x, s), fmt.Sprintf("generate_series(%s, %s + 4, 2) AS %s (n)", x, x, s), fmt.Sprintf("unnest(ARRAY[%s, NULL, 3]) AS %s (n)", x, s), fmt.Sprintf("generate_series(1, 3) WITH ORDINALITY AS %s (n, o)", s))
	list, _ := selectList(append(append([]Col{}, cols...), Col{Name: s + ".n"}))
	return fmt.Sprintf("SELECT %s FROM %s%s, LATERAL %s", list, strings.SplitN(from, " JOIN ", 1)[0], "", f) + g.where(scope)
}

func (g *Gen) using() string {
	a, b := pick(g, g.Tables...), pick(g, g.Tables...)
	x, y := g.name("a"), g.name("a")
	cols := g.some(exact(append(qualify(x, a.Cols), qualify(y, b.Cols)...)), 2)
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT j, s, %s FROM %s AS %s %s %s AS %s USING (j, s)", list, a.Name, x, pick(g, "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"), b.Name, y)
}

func (g *Gen) orderedAgg() string {
	from, scope, cols := g.columns(2)
	if len(cols) == 0 {
		return ""
	}
	x := pick(g, exact(scope)...)
	aggs := []string{fmt.Sprintf("array_agg(%[1]s ORDER BY %[1]s)", x.Name), fmt.Sprintf("string_agg(%[1]s::text, ',' ORDER BY %[1]s DESC NULLS LAST)", x.Name), fmt.Sprintf("count(DISTINCT %s)", x.Name)}
	if x.Kind.ordered() {
		aggs = append(aggs, fmt.Sprintf("percentile_disc(0.5) WITHIN GROUP (ORDER BY %s)", x.Name), fmt.Sprintf("percentile_disc(0.9) WITHIN GROUP (ORDER BY %s DESC)", x.Name))
	}
	if x.Kind == Bool {
		aggs = append(aggs, "bool_and("+x.Name+")", "bool_or("+x.Name+")", "every("+x.Name+")")
	}
	list, _ := selectList(cols[:1])
	return fmt.Sprintf("SELECT %s, %s AS a FROM %s%s GROUP BY %s", list, pick(g, aggs...), from, g.where(scope), cols[0].Name)
}

func (g *Gen) recursive() string {
	from, scope := g.from(0)
	ints := where(of(scope, Int4), func(c Col) bool { return c.Tame })
	if len(ints) == 0 {
		return ""
	}
	x := pick(g, ints...).Name
	return fmt.Sprintf("WITH RECURSIVE r (n, d) AS (SELECT %s, 1 FROM %s UNION%s SELECT n + 1, d + 1 FROM r WHERE n < 12 AND d < 5) SELECT n, d FROM r", x, from, pick(g, "", " ALL"))
}

func (g *Gen) cross() string {
	from, scope, cols := g.columns(2)
	in, inner, _ := g.inner(scope)
	if len(cols) == 0 {
		return ""
	}
	list, _ := selectList(append(append([]Col{}, cols...), g.some(exact(inner), 1)...))
	l, r := pick(g, scope...), pick(g, inner...)
	cond := ""
	if l.Kind == r.Kind && l.Kind.ordered() {
		cond = fmt.Sprintf(" WHERE %s %s %s", l.Name, pick(g, "<", ">=", "<>"), r.Name)
	}
	return fmt.Sprintf("SELECT %s FROM %s CROSS JOIN %s%s", list, from, in, cond)
}

func (g *Gen) arraySubquery() string {
	from, scope, cols := g.columns(2)
	in, inner, on := g.inner(scope)
	plain := exact(inner)
	if on == "" || len(cols) == 0 || len(plain) == 0 {
		return ""
	}
	x := pick(g, plain...)
	list, _ := selectList(cols)
	return fmt.Sprintf("SELECT %s, ARRAY(SELECT %s FROM %s WHERE %s ORDER BY %[2]s) AS arr FROM %[5]s", list, x.Name, in, on, from)
}
