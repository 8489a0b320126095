package sqlgen

import (
	"fmt"
	"strings"
)

// View invents a materialized view over the tables and Views. It is not added to Views.
func (g *Gen) View(name string) *View {
	q, cols := g.query(2)
	return &View{Rel: Rel{Name: name, Cols: cols}, Query: q}
}

// query makes a SELECT and the columns it gives.
func (g *Gen) query(depth int) (string, []Col) {
	if depth <= 0 {
		return g.plain(0)
	}
	switch g.r.IntN(10) {
	case 0, 1:
		return g.plain(depth)
	case 2, 3, 4, 5:
		return g.group(depth)
	case 6:
		return g.distinct(depth)
	case 7:
		return g.union(depth)
	case 8:
		return g.top(depth)
	default:
		return g.with(depth)
	}
}

// plain is SELECT expressions FROM … [WHERE …].
func (g *Gen) plain(depth int) (string, []Col) {
	from, scope := g.from(depth)
	var list []Col
	for range 1 + g.r.IntN(5) {
		list = append(list, g.any(scope, 2))
	}
	sql, cols := selectList(list)
	return "SELECT " + sql + " FROM " + from + g.where(scope), cols
}

func (g *Gen) where(scope []Col) string {
	if g.Chance(0.5) {
		return ""
	}
	return " WHERE " + g.pred(scope, 2)
}

// group is SELECT keys, aggregates … GROUP BY keys [HAVING …].
func (g *Gen) group(depth int) (string, []Col) {
	from, scope := g.from(depth)
	plain := where(scope, func(c Col) bool { return !c.Ragged })
	var list []Col
	var keys []string
	for range g.r.IntN(3) {
		if len(plain) == 0 {
			break
		}
		k := pick(g, plain...)
		if g.Chance(0.2) {
			if e := g.expr(plain, k.Kind, 1); !e.Ragged && isExpression(e.Name) {
				k = e
			}
		}
		list = append(list, k)
		keys = append(keys, k.Name)
	}
	nkeys := len(list)
	for range 1 + g.r.IntN(4) {
		list = append(list, g.agg(scope))
	}
	sql, cols := selectList(list)
	q := "SELECT " + sql + " FROM " + from + g.where(scope)
	if nkeys > 0 {
		q += " GROUP BY " + strings.Join(keys, ", ")
		if g.Chance(0.25) {
			a := g.agg(scope)
			q += " HAVING " + g.pred([]Col{a}, 0)
		}
	}
	return q, cols
}

// isExpression tells expressions that mention a column from constants, which
// GROUP BY would take for positions or refuse.
func isExpression(sql string) bool {
	return strings.Contains(sql, ".") && strings.ContainsAny(sql, "(")
}

// distinct is SELECT DISTINCT.
func (g *Gen) distinct(depth int) (string, []Col) {
	from, scope := g.from(depth)
	plain := where(scope, func(c Col) bool { return !c.Ragged })
	if len(plain) == 0 {
		return g.plain(depth)
	}
	var list []Col
	for range 1 + g.r.IntN(3) {
		list = append(list, pick(g, plain...))
	}
	sql, cols := selectList(list)
	return "SELECT DISTINCT " + sql + " FROM " + from + g.where(scope), cols
}

// union is two or three SELECTs of the same types under UNION ALL.
func (g *Gen) union(depth int) (string, []Col) {
	from, scope := g.from(depth - 1)
	var list []Col
	for range 1 + g.r.IntN(3) {
		list = append(list, pick(g, scope...))
	}
	sql, cols := selectList(list)
	arms := []string{"SELECT " + sql + " FROM " + from + g.where(scope)}
	for range 1 + g.r.IntN(2) {
		from, scope := g.from(depth - 1)
		arm := make([]Col, len(cols))
		for i := range cols {
			arm[i] = g.expr(scope, cols[i].Kind, 1)
			cols[i].Tame = cols[i].Tame && arm[i].Tame
			cols[i].Ragged = cols[i].Ragged || arm[i].Ragged || cols[i].Kind == Numeric
		}
		sql, _ := selectList(arm)
		arms = append(arms, "SELECT "+sql+" FROM "+from+g.where(scope))
	}
	return strings.Join(arms, " UNION ALL "), cols
}

// top is ORDER BY all columns LIMIT: ties are equal rows.
func (g *Gen) top(depth int) (string, []Col) {
	from, scope := g.from(depth - 1)
	plain := where(scope, func(c Col) bool { return !c.Ragged })
	if len(plain) == 0 {
		return g.plain(depth)
	}
	var list []Col
	for range 1 + g.r.IntN(3) {
		list = append(list, pick(g, plain...))
	}
	sql, cols := selectList(list)
	var order []string
	for _, c := range cols {
		order = append(order, c.Name+pick(g, "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
	}
	q := "SELECT " + sql + " FROM " + from + g.where(scope) + " ORDER BY " + strings.Join(order, ", ") + fmt.Sprintf(" LIMIT %d", 1+g.r.IntN(8))
	if g.Chance(0.3) {
		q += fmt.Sprintf(" OFFSET %d", 1+g.r.IntN(4))
	}
	return q, cols
}

// with is a query over a CTE, which may be read twice.
func (g *Gen) with(depth int) (string, []Col) {
	inner, cols := g.query(depth - 1)
	name := g.name("w")
	a := g.name("a")
	from, scope := name+" AS "+a, qualify(a, cols)
	if g.Chance(0.4) {
		b := g.name("a")
		right := qualify(b, cols)
		if on := g.on(scope, right); on != "" {
			from += pick(g, " JOIN ", " LEFT JOIN ") + name + " AS " + b + " ON " + on
			scope = append(scope, right...)
		}
	}
	var list []Col
	for range 1 + g.r.IntN(3) {
		list = append(list, g.any(scope, 1))
	}
	sql, out := selectList(list)
	return "WITH " + name + " AS (" + inner + ") SELECT " + sql + " FROM " + from + g.where(scope), out
}

func (g *Gen) name(prefix string) string {
	g.alias++
	return fmt.Sprintf("%s%d", prefix, g.alias)
}

func qualify(alias string, cols []Col) []Col {
	out := make([]Col, len(cols))
	for i, c := range cols {
		out[i] = c
		out[i].Name = alias + "." + c.Name
	}
	return out
}

// from makes a FROM clause: a source, or up to three joined.
func (g *Gen) from(depth int) (string, []Col) {
	sql, scope := g.source(depth)
	for joined := 0; joined < 2 && g.Chance(0.4); joined++ {
		right, rscope := g.source(depth - 1)
		on := g.on(scope, rscope)
		if on == "" {
			break
		}
		kind := pick(g, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ")
		scope = append(scope, rscope...)
		if kind != " FULL JOIN " && g.Chance(0.2) {
			on += " AND " + g.pred(scope, 0)
		}
		sql += kind + right + " ON " + on
	}
	return sql, scope
}

// on makes an equality between two scopes; empty: they have no kind in common.
func (g *Gen) on(left, right []Col) string {
	for range 8 {
		l := pick(g, left...)
		same := of(right, l.Kind)
		if len(same) == 0 || l.Kind == Bool {
			continue
		}
		on := l.Name + " = " + pick(g, same...).Name
		if g.Chance(0.2) {
			if more := g.on(left, right); more != "" {
				return on + " AND " + more
			}
		}
		return on
	}
	return ""
}

// source makes one item of a FROM clause.
func (g *Gen) source(depth int) (string, []Col) {
	alias := g.name("a")
	switch {
	case depth > 0 && g.Chance(0.25):
		sql, cols := g.query(depth - 1)
		return "(" + sql + ") AS " + alias, qualify(alias, cols)
	case len(g.Views) > 0 && g.Chance(0.35):
		v := pick(g, g.Views...)
		return v.Name + " AS " + alias, qualify(alias, v.Cols)
	}
	t := pick(g, g.Tables...)
	return t.Name + " AS " + alias, qualify(alias, t.Cols)
}
