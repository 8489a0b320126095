package types

import (
	"strconv"
	"strings"
	"testing"
)

func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
}

// throughText reads and writes a value as a client would see it go through a table.
func throughText(t *testing.T, typ, in string, st *Style) string {
	t.Helper()
	tp, ok := typeNamed(typ)
	if !ok {
		t.Fatalf("no type %q", typ)
	}
	d, err := ParseText(tp, in, st)
	if err != nil {
		return errText(err)
	}
	if tp.Kind() != d.Kind() {
		t.Fatalf("%s %q is of kind %d", typ, in, d.Kind())
	}
	return string(AppendText(nil, tp, d, st))
}

// typeNamed is ByName that knows interval fields too.
func typeNamed(name string) (Type, bool) {
	if fields, ok := strings.CutPrefix(name, "interval "); ok {
		for _, f := range []int{rangeYear, rangeMonth, rangeDay, rangeHour, rangeMinute, rangeSecond, rangeYear | rangeMonth,
			rangeDay | rangeHour, rangeDay | rangeHour | rangeMinute, rangeDay | rangeHour | rangeMinute | rangeSecond, rangeHour | rangeMinute, rangeMinute | rangeSecond} {
			for _, digits := range []int{-1, 1} {
				if t := WithInterval(f, digits); FormatType(t) == "interval "+fields {
					return t, true
				}
			}
		}
		return Type{}, false
	}
	return ByName(name)
}

func TestTextGolden(t *testing.T) { goldenText(t, "text.tsv") }

func TestFloatGolden(t *testing.T) { goldenText(t, "float.tsv") }

func goldenText(t *testing.T, file string) {
	bad := 0
	golden(t, file, func(line int, f []string) {
		got := throughText(t, f[0], unescape(f[1]), nil)
		if want := unescape(f[2]); got != want {
			if bad++; bad < 100 {
				t.Errorf("line %d: %s %q\n got %s\nwant %s", line, f[0], f[1], got, want)
			}
		}
	})
	if bad > 0 {
		t.Errorf("%d differences", bad)
	}
}

func styleOf(t *testing.T, settings string) *Style {
	st := &Style{}
	for _, s := range strings.Split(settings, ";") {
		name, value, _ := strings.Cut(s, "=")
		var err error
		switch name {
		case "DateStyle":
			err = st.SetDateStyle(value)
			if err == nil && value != "German" && st.DateStyleText() != value && !strings.HasPrefix(value, "German") {
				t.Errorf("DateStyle %q shows as %q", value, st.DateStyleText())
			}
		case "IntervalStyle":
			err = st.SetIntervalStyle(value)
		case "TimeZone":
			st.Zone, err = SessionZone(value)
		case "bytea_output":
			st.ByteaEscape = value == "escape"
		case "extra_float_digits":
			st.RoundFloats = true
			st.ExtraFloatDigits, err = strconv.Atoi(value)
		default:
			t.Fatalf("setting %q", name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func TestStyleGolden(t *testing.T) {
	bad := 0
	golden(t, "style.tsv", func(line int, f []string) {
		got := throughText(t, f[1], unescape(f[2]), styleOf(t, f[0]))
		if want := unescape(f[3]); got != want {
			if bad++; bad < 100 {
				t.Errorf("line %d: %s: %s %q\n got %s\nwant %s", line, f[0], f[1], f[2], got, want)
			}
		}
	})
	if bad > 0 {
		t.Errorf("%d differences", bad)
	}
}
