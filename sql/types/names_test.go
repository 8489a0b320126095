package types

import (
	"fmt"
	"strconv"
	"testing"
)

func TestPgTypeGolden(t *testing.T) {
	seen := map[uint32]bool{}
	tf := map[bool]string{true: "t", false: "f"}
	golden(t, "pg_type.tsv", func(line int, f []string) {
		oid, _ := strconv.Atoi(f[0])
		i, ok := InfoOf(uint32(oid))
		if !ok {
			t.Errorf("line %d: no type %s", line, f[1])
			return
		}
		seen[i.OID] = true
		got := fmt.Sprint(i.OID, i.Name, i.Len, tf[i.ByVal], string(i.Category), tf[i.Preferred], i.Array, string(i.Align), string(i.Storage), i.Elem, string(i.Kind), i.SQLName)
		want := fmt.Sprint(uint32(oid), f[1], int16(atoi(f[2])), f[3], f[4], f[5], uint32(atoi(f[6])), f[7], f[8], uint32(atoi(f[9])), f[10], f[11])
		if got != want {
			t.Errorf("line %d:\n got %s\nwant %s", line, got, want)
		}
	})
	for _, i := range All() {
		if !seen[i.OID] && i.OID != OIDMap && i.OID != oidMapArray {
			t.Errorf("%s (%d) is not in PostgreSQL", i.Name, i.OID)
		}
	}
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func TestNamesGolden(t *testing.T) {
	golden(t, "names.tsv", func(line int, f []string) {
		tp, ok := ByName(f[0])
		if !ok {
			t.Errorf("line %d: no type %q", line, f[0])
			return
		}
		if got := fmt.Sprint(tp.OID, tp.Typmod(), FormatType(tp)); got != fmt.Sprint(uint32(atoi(f[1])), int32(atoi(f[2])), f[3]) {
			t.Errorf("line %d: %s: got %s, want %s", line, f[0], got, f[1:])
		}
		if (tp.Elem != nil) != (tp.Kind() == KindList) {
			t.Errorf("%s: kind %d", f[0], tp.Kind())
		}
	})
	for _, bad := range []string{"", "foo", "int[", "varchar()", "varchar(x)", "numeric(0)", "text]", "varchar(0)", "int4(3)"} {
		if tp, ok := ByName(bad); ok {
			t.Errorf("%q is %s", bad, tp)
		}
	}
}

func TestArrayOf(t *testing.T) {
	a := ArrayOf(Int4)
	if a.OID != 1007 || a.Elem.OID != OIDInt4 || ArrayOf(a).OID != 1007 || ArrayOf(Null).OID != 0 || ArrayOf(Int2Vector).OID != 1006 {
		t.Error(a)
	}
	b, ok := ByOID(1007)
	if !ok || !b.Equal(a) {
		t.Error(b)
	}
}
