package sqlgen

import (
	"fmt"
	"strings"
)

// literal makes a constant of a column's kind that fits what is known of the column.
func (g *Gen) literal(c Col) string {
	if !c.Tame && g.Chance(0.15) {
		return g.extreme(c.Kind)
	}
	n := g.r.IntN(16) - 5
	switch c.Kind {
	case Bool:
		return pick(g, "true", "false")
	case Int4:
		return number(n)
	case Int2, Int8:
		return quoted(fmt.Sprint(n), c.Kind)
	case Real, Float:
		return quoted(fmt.Sprint(float64(n)/4), c.Kind)
	case Numeric:
		if c.Ragged {
			return quoted(pick(g, fmt.Sprint(n), fmt.Sprintf("%d.5", n), fmt.Sprintf("%d.50", n), fmt.Sprintf("%d.125", n)), c.Kind)
		}
		return quoted(fmt.Sprintf("%d.%02d", n, g.r.IntN(4)*25), c.Kind)
	case Text:
		return pick(g, "'a'", "'b'", "'ab'", "'B'", "''", "'ünï'", "'a_b%'", "'zz'", "'it''s'")
	case Bytea:
		return quoted(pick(g, `\x`, `\x00`, `\x0aff`, `\x61`), c.Kind)
	case Date:
		return quoted(fmt.Sprintf("2024-02-%02d", 25+g.r.IntN(5)), c.Kind)
	case Time:
		return quoted(fmt.Sprintf("%02d:%02d:00", g.r.IntN(4)*6, g.r.IntN(2)*30), c.Kind)
	case Timestamp:
		return quoted(fmt.Sprintf("2024-02-%02d %02d:00:00", 26+g.r.IntN(4), g.r.IntN(3)*8), c.Kind)
	case Timestamptz:
		return quoted(fmt.Sprintf("2024-02-%02d %02d:00:00+00", 26+g.r.IntN(4), g.r.IntN(3)*8), c.Kind)
	case Interval:
		return quoted(fmt.Sprintf("%d minutes", g.r.IntN(8)*17), c.Kind)
	case UUID:
		return quoted(fmt.Sprintf("a0eebc99-9c0b-4ef8-bb6d-%012d", g.r.IntN(6)), c.Kind)
	case IntArray:
		return quoted(pick(g, "{}", "{1}", "{1,2}", "{2,1}", "{NULL,1}", "{3,-1,4}", "{{1,2},{3,4}}"), c.Kind)
	case TextArray:
		return quoted(pick(g, "{}", "{a}", "{a,b}", "{NULL}", `{"NULL","x y"}`, `{"",ü}`), c.Kind)
	}
	panic(fmt.Sprintf("no literal of kind %v", c.Kind))
}

// extreme is a value at an end of a type's range. Those of numeric have the scale of literal's.
func (g *Gen) extreme(k Kind) string {
	switch k {
	case Int2:
		return pick(g, "(-32768)::smallint", "32767::smallint")
	case Int4:
		return pick(g, "(-2147483648)", "2147483647")
	case Int8:
		return pick(g, "(-9223372036854775808)", "9223372036854775807")
	case Real:
		return quoted(pick(g, "NaN", "Infinity", "-Infinity", "3.4028235e+38", "1e-30"), k)
	case Float:
		return quoted(pick(g, "NaN", "Infinity", "-Infinity", "1.7976931348623157e+308", "1e-300", "0.1"), k)
	case Numeric:
		return quoted(pick(g, "NaN", "99999999999999999999999999.99", "-99999999999999999999999999.99"), k)
	case Text:
		return quoted(pick(g, strings.Repeat("long ", 60), "\u00ff\u0100", " "), k)
	case Bytea:
		return quoted(`\x`+strings.Repeat("00ff", 100), k)
	case Date:
		return quoted(pick(g, "0001-01-01", "9999-12-31"), k)
	case Time:
		return quoted(pick(g, "00:00:00", "23:59:59.999999"), k)
	case Timestamp:
		return quoted(pick(g, "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"), k)
	case Timestamptz:
		return quoted(pick(g, "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"), k)
	case Interval:
		return quoted(pick(g, "-23:59:59.999999", "23:59:59.999999"), k)
	case UUID:
		return quoted(pick(g, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"), k)
	case IntArray:
		return quoted(pick(g, "[0:1]={7,8}", "{2147483647,-2147483648}", "{1"+strings.Repeat(",1", 50)+"}"), k)
	case TextArray:
		return quoted(pick(g, `{"{","}","\"","\\\\",","}`, "{"+strings.Repeat("long,", 30)+"end}"), k)
	}
	return "true"
}

func number(n int) string {
	if n < 0 {
		return fmt.Sprintf("(%d)", n)
	}
	return fmt.Sprint(n)
}

func quoted(s string, k Kind) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'::" + k.String()
}
