package sqlgen

import (
	"fmt"
	"math"
	"strings"
)

// Change makes one INSERT, UPDATE or DELETE of a random table. rows is how many
// rows the table with that name has: large tables shrink, empty ones grow.
func (g *Gen) Change(rows map[string]int) string {
	t := pick(g, g.Tables...)
	n := rows[t.Name]
	switch x := g.r.IntN(100); {
	case n == 0 || x < 45 && n < 60:
		return g.insert(t)
	case x < 75:
		return g.update(t)
	case x < 78:
		return "DELETE FROM " + t.Name
	case n > 60:
		return fmt.Sprintf("DELETE FROM %s WHERE %s", t.Name, g.pred(t.Cols, 0))
	default:
		return fmt.Sprintf("DELETE FROM %s WHERE %s%s", t.Name, g.pred(t.Cols, 1), g.returning(t))
	}
}

// insert adds up to a dozen rows. A table without key gets duplicates.
func (g *Gen) insert(t *Table) string {
	if t.counter < 0 && g.Chance(0.1) {
		return fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s", t.Name, t.Name, g.pred(t.Cols, 0))
	}
	if t.counter >= 0 && t.next > 1 && g.Chance(0.25) {
		return g.upsert(t)
	}
	var rows []string
	for range 1 + g.r.IntN(12) {
		row := "(" + strings.Join(g.row(t), ", ") + ")"
		rows = append(rows, row)
		if t.counter < 0 && g.Chance(0.3) {
			rows = append(rows, row)
		}
	}
	return fmt.Sprintf("INSERT INTO %s VALUES %s%s", t.Name, strings.Join(rows, ", "), g.returning(t))
}

// upsert adds rows of which some are likely to be there; no two have one key.
func (g *Gen) upsert(t *Table) string {
	var rows []string
	used := map[int64]bool{}
	for range 1 + g.r.IntN(8) {
		values := g.row(t)
		if g.Chance(0.7) {
			k := g.r.Int64N(t.next)
			if used[k] {
				continue
			}
			used[k] = true
			values[t.counter] = fmt.Sprint(k)
		} else {
			used[t.next-1] = true
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	var key, sets []string
	for i, c := range t.Cols {
		switch {
		case t.isKey(i):
			key = append(key, c.Name)
		case g.Chance(0.6):
			sets = append(sets, fmt.Sprintf("%[1]s = %[2]s", c.Name, pick(g, "EXCLUDED."+c.Name, "EXCLUDED."+c.Name, t.Name+"."+c.Name, g.literal(c))))
		}
	}
	do := "NOTHING"
	if len(sets) > 0 && g.Chance(0.75) {
		do = "UPDATE SET " + strings.Join(sets, ", ")
		if g.Chance(0.3) {
			do += fmt.Sprintf(" WHERE %s.%s IS NOT NULL", t.Name, pick(g, t.Cols...).Name)
		}
	}
	return fmt.Sprintf("INSERT INTO %s VALUES %s ON CONFLICT (%s) DO %s%s", t.Name, strings.Join(rows, ", "), strings.Join(key, ", "), do, g.returning(t))
}

func (g *Gen) row(t *Table) []string {
	var values []string
	for i, c := range t.Cols {
		switch {
		case i == t.counter:
			values = append(values, fmt.Sprint(t.next))
			t.next++
		case !t.isKey(i) && g.Chance(0.15):
			values = append(values, "NULL")
		default:
			values = append(values, g.literal(c))
		}
	}
	return values
}

// update changes plain columns, or keys in a way that never meets another row.
func (g *Gen) update(t *Table) string {
	if t.counter >= 0 && g.Chance(0.2) {
		k := t.Cols[t.counter].Name
		if t.next < math.MaxInt32/4 && g.Chance(0.5) {
			shift := t.next
			t.next *= 2
			return fmt.Sprintf("UPDATE %s SET %s = %s + %d WHERE %s", t.Name, k, k, shift, g.pred(t.Cols, 1))
		}
		t.next++
		return fmt.Sprintf("UPDATE %s SET %s = %d WHERE %s = %d", t.Name, k, t.next-1, k, g.r.Int64N(t.next))
	}
	var sets []string
	for i, c := range t.Cols {
		if t.isKey(i) || len(sets) > 0 && g.Chance(0.6) || g.Chance(0.3) {
			continue
		}
		value := g.literal(c)
		switch {
		case g.Chance(0.1):
			value = "NULL"
		case c.Kind == Bool && g.Chance(0.3):
			value = "NOT " + c.Name
		case g.Chance(0.2):
			// Another column's values, where they keep what is known of this one.
			others := where(t.Cols, func(o Col) bool { return o.Kind == c.Kind && (o.Tame || !c.Tame) && (c.Ragged || !o.Ragged) })
			value = pick(g, others...).Name
		}
		sets = append(sets, c.Name+" = "+value)
	}
	if len(sets) == 0 {
		sets = []string{"s = " + g.literal(Col{Kind: Text, Tame: true})}
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s%s", t.Name, strings.Join(sets, ", "), g.pred(t.Cols, 1), g.returning(t))
}

func (g *Gen) returning(t *Table) string {
	switch {
	case g.Chance(0.85):
		return ""
	case g.Chance(0.5):
		return " RETURNING *"
	}
	return " RETURNING " + g.any(t.Cols, 1).Name
}

// Index makes a CREATE INDEX.
func (g *Gen) Index(name string) string {
	t := pick(g, g.Tables...)
	cols := []string{pick(g, t.Cols...).Name + pick(g, "", " DESC")}
	if c := pick(g, t.Cols...).Name; g.Chance(0.4) && !strings.HasPrefix(cols[0], c) {
		cols = append(cols, c)
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s (%s)", name, t.Name, strings.Join(cols, ", "))
}
