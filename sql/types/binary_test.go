package types

import (
	"encoding/hex"
	"testing"

	"streamdb/sql/sqlerr"
)

func TestBinaryGolden(t *testing.T) {
	golden(t, "binary.tsv", func(line int, f []string) {
		tp, ok := typeNamed(f[0])
		if !ok {
			t.Fatalf("no type %q", f[0])
		}
		text := unescape(f[1])
		d, err := ParseText(tp, text, nil)
		if err != nil {
			t.Fatalf("line %d: %v", line, err)
		}
		if got := hex.EncodeToString(AppendBinary(nil, tp, d)); got != f[2] {
			t.Errorf("line %d: %s %s\n got %s\nwant %s", line, f[0], f[1], got, f[2])
		}
		raw, _ := hex.DecodeString(f[2])
		back, err := ParseBinary(tp, raw)
		if err != nil {
			t.Errorf("line %d: %s %s: %v", line, f[0], f[1], err)
			return
		}
		if got, want := string(AppendText(nil, tp, back, nil)), string(AppendText(nil, tp, d, nil)); got != want {
			t.Errorf("line %d: %s reads back as %s", line, want, got)
		}
		for n := range raw { // every prefix is an error or another value, never a panic
			_, _ = ParseBinary(tp, raw[:n])
		}
	})
}

func TestBinaryErrors(t *testing.T) {
	for _, c := range []struct {
		t    Type
		hex  string
		code string
	}{
		{Int4, "0000", sqlerr.ProtocolViolation}, {Int4, "0000000000", "22P03"}, {Numeric, "00010000800000000001", "22P03"},
		{Numeric, "0001000000000000ffff", "22P03"}, {Text, "ff", "22021"}, {Text, "00", "22021"}, {JSONB, "027b7d", "22P03"},
		{Timestamp, "7fffffffffffff00", sqlerr.DatetimeOverflow}, {ArrayOf(Int4), "00000001000000000000001900000001", sqlerr.DatatypeMismatch},
		{ArrayOf(Int4), "00000001000000000000001777777777", sqlerr.ProtocolViolation},
		{ArrayOf(Int4), "0000000100000000000000177777777700000001", sqlerr.ProgramLimit},
		{ArrayOf(Int4), "0000000100000000000000170000000500000001", sqlerr.ProtocolViolation},
		{WithLength(Varchar, 2), "616263", sqlerr.StringTruncation},
	} {
		raw, _ := hex.DecodeString(c.hex)
		if _, err := ParseBinary(c.t, raw); sqlerr.Code(err) != c.code {
			t.Errorf("%s %s: %v, want %s", c.t, c.hex, err, c.code)
		}
	}
}
