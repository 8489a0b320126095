package types

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"streamdb/sql/sqlerr"
)

// golden reads a file of tab-separated answers that PostgreSQL 15 gave.
func golden(t *testing.T, name string, each func(line int, f []string)) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	n := 0
	for s.Scan() {
		n++
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		each(n, strings.Split(s.Text(), "\t"))
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// errText is an error as the golden files have it.
func errText(err error) string { return "ERROR " + sqlerr.Code(err) + " " + err.Error() }

func TestNumericGolden(t *testing.T) {
	bad := 0
	golden(t, "numeric.tsv", func(line int, f []string) {
		got := numericOp(t, f[0], f[1], f[2])
		if got != f[3] {
			if bad++; bad < 40 {
				t.Errorf("line %d: %s(%s, %s)\n got %s\nwant %s", line, f[0], f[1], f[2], got, f[3])
			}
		}
	})
	if bad > 0 {
		t.Errorf("%d differences", bad)
	}
}

func numericOp(t *testing.T, op, x, y string) string {
	show := func(d Decimal, err error) string {
		if err != nil {
			return errText(err)
		}
		return d.String()
	}
	if typ, ok := strings.CutPrefix(op, "from_"); ok {
		if typ == "float8" {
			f, _ := ParseFloat8(x)
			return DecimalFromFloat8(f).String()
		}
		f, _ := ParseFloat4(x)
		return DecimalFromFloat4(f).String()
	}
	a := dec(t, x)
	switch op {
	case "add":
		return a.Add(dec(t, y)).String()
	case "sub":
		return a.Sub(dec(t, y)).String()
	case "mul":
		return a.Mul(dec(t, y)).String()
	case "div":
		return show(a.Div(dec(t, y)))
	case "mod":
		return show(a.Mod(dec(t, y)))
	case "idiv":
		return show(a.DivTrunc(dec(t, y)))
	case "power":
		return show(a.Power(dec(t, y)))
	case "log":
		return show(dec(t, y).Log(a))
	case "sqrt":
		return show(a.Sqrt())
	case "ln":
		return show(a.Ln())
	case "exp":
		return show(a.Exp())
	case "log10":
		return show(a.Log10())
	case "floor":
		return a.Floor().String()
	case "ceil":
		return a.Ceil().String()
	case "neg":
		return a.Neg().String()
	case "abs":
		return a.Abs().String()
	case "round":
		n, _ := strconv.Atoi(y)
		return a.Round(n).String()
	case "trunc":
		n, _ := strconv.Atoi(y)
		return a.Trunc(n).String()
	case "int8":
		v, err := a.Int64("bigint")
		if err != nil {
			return errText(err)
		}
		return strconv.FormatInt(v, 10)
	case "float8":
		return string(AppendFloat8(nil, a.Float64()))
	case "float4":
		v, err := ParseFloat4(a.String())
		if err != nil {
			return errText(err)
		}
		return string(AppendFloat4(nil, v))
	case "min_scale":
		if !a.IsFinite() {
			return "NULL"
		}
		return strconv.Itoa(a.MinScale())
	case "trim_scale":
		return a.Normalise().String()
	case "typmod":
		p, s, _ := strings.Cut(y, ",")
		pn, _ := strconv.Atoi(p)
		sn, _ := strconv.Atoi(s)
		return show(a.ApplyTypmod(pn, sn))
	}
	t.Fatalf("no operation %q", op)
	return ""
}
