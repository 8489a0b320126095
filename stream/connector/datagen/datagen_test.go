package datagen

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
	"streamdb/stream/connector"
)

func relation(with ...string) *catalog.Relation {
	r := &catalog.Relation{Name: "g", Columns: []catalog.Column{
		{Name: "n", Type: types.Int4}, {Name: "d", Type: types.Numeric}, {Name: "s", Type: types.Varchar}, {Name: "f", Type: types.Float8},
		{Name: "b", Type: types.Bool}, {Name: "ts", Type: types.Timestamp}, {Name: "day", Type: types.Date}, {Name: "a", Type: types.ArrayOf(types.Int8)},
	}}
	for i := 0; i < len(with); i += 2 {
		r.With = append(r.With, catalog.Option{Name: with[i], Value: with[i+1]})
	}
	return r
}

// rows reads what is due of some splits after a time, in text.
func rows(t *testing.T, r *catalog.Relation, seed uint64, after time.Duration, at ...connector.Split) []string {
	t.Helper()
	rd, err := Driver().Reader(r, seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := rd.Open(context.Background(), at, nil); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, err := rd.Read(now, 7); err != nil {
		t.Fatal(err)
	}
	now = now.Add(after)
	var out []string
	for {
		b, err := rd.Read(now, 7)
		if err != nil {
			t.Fatal(err)
		}
		if b.Chunk == nil {
			if !b.Next.After(now) {
				continue
			}
			return out
		}
		for i := range b.Chunk.Len() {
			var parts []string
			for j, c := range b.Chunk.Cols {
				parts = append(parts, string(types.AppendText(nil, r.Columns[j].Type, c.Datum(i), nil)))
			}
			out = append(out, strings.Join(parts, "|"))
		}
	}
}

// A row depends on the seed, the split and its number alone: a reader that goes on
// from an offset makes the rows that it would have made.
func TestOffsets(t *testing.T) {
	r := relation("fields.ts.max_past_mode", "absolute", "fields.ts.basetime", "2026-01-01 00:00:00", "fields.day.max_past_mode", "absolute", "fields.day.basetime", "2026-01-01",
		"fields.n.kind", "sequence", "fields.n.start", "10", "datagen.split.num", "2", "datagen.rows.per.second", "40", "fields.a.length", "2", "fields.a._.max", "5")
	all := rows(t, r, 1, time.Second, connector.Split{ID: "1"})
	if len(all) != 20 {
		t.Fatalf("%d rows in a second", len(all))
	}
	if got := rows(t, r, 1, time.Second/2, connector.Split{ID: "1", Offset: "10"}); fmt.Sprint(got) != fmt.Sprint(all[10:]) {
		t.Fatalf("from row 10: %v\nwant %v", got, all[10:])
	}
	for i, row := range all {
		if !strings.HasPrefix(row, fmt.Sprint(11+2*i, "|")) {
			t.Fatalf("row %d of split 1 of 2: %s", i, row)
		}
	}
	if other := rows(t, r, 2, time.Second, connector.Split{ID: "1"}); fmt.Sprint(other) == fmt.Sprint(all) {
		t.Fatal("another seed makes the same rows")
	}
}

// A sequence ends its splits.
func TestEnd(t *testing.T) {
	r := relation("fields.n.kind", "sequence", "fields.n.start", "1", "fields.n.end", "5", "datagen.split.num", "2", "datagen.rows.per.second", "1000")
	got := append(rows(t, r, 1, time.Second, connector.Split{ID: "0"}), rows(t, r, 1, time.Second, connector.Split{ID: "1"})...)
	if len(got) != 5 {
		t.Fatalf("%d rows", len(got))
	}
}

func TestInvalidOptions(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"fields.n.kind", "prime", `invalid value for option "fields.n.kind": "prime"`},
		{"fields.x.kind", "random", `column "x" of option "fields.x.kind" does not exist`},
		{"fields.n.start", "1", `option "fields.n.start" does not apply to a random field`},
		{"fields.n.min", "a", `invalid value for option "fields.n.min": "a"`},
		{"fields.n.max", "-1", `invalid value for option "fields.n.max": "-1"`},
		{"fields.b.kind", "sequence", `datagen sequence of type boolean (column "b") is not supported`},
		{"fields.ts.max_past", "soon", `invalid value for option "fields.ts.max_past": "soon"`},
		{"fields.ts.max_past_mode", "absolute", `option "fields.ts.basetime" is missing`},
		{"datagen.rows.per.second", "0", `invalid value for option "datagen.rows.per.second": "0"`},
		{"datagen.rows", "1", `unrecognized option "datagen.rows"`},
	} {
		if _, err := Driver().Reader(relation(tc.name, tc.value), 1); err == nil || err.Error() != tc.want {
			t.Errorf("%s = %s: %v", tc.name, tc.value, err)
		}
	}
}
