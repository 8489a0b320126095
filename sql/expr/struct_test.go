package expr

import (
	"testing"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// TestFields reads fields of structs, casts them, and makes them of json.
func TestFields(t *testing.T) {
	typ, ok := types.ByName("struct<a int, b varchar, c struct<d int[]>>")
	if !ok {
		t.Fatal("no type")
	}
	lit := func(typ types.Type, s string) Expr {
		e, err := (&Ctx{}).MakeCast(unknown(s), typ, true)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	x := lit(typ, `(1,"x y","(""{1,2}"")")`)
	c, err := NewField(x, "c")
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewField(c, "d")
	if err != nil {
		t.Fatal(err)
	}
	if got := answer("", d, nil); got != "{1,2}" {
		t.Errorf("c.d: %s", got)
	}
	if _, err := NewField(x, "z"); errCode(err) != "42703" {
		t.Errorf("x.z: %v", err)
	}
	if _, err := NewField(d, "z"); errCode(err) != "42809" {
		t.Errorf("a field of an array: %v", err)
	}
	wide, _ := types.ByName("struct<p bigint, q text, r struct<d numeric[]>>")
	if e, err := MakeCast(x, wide, true); err != nil {
		t.Error(err)
	} else if got := answer("", e, nil); got != `(1,"x y","(""{1,2}"")")` {
		t.Errorf("cast: %s", got)
	}
	r := NewRow([]Expr{lit(types.Int4, "5"), lit(types.Text, "t"), NewRow([]Expr{lit(types.ArrayOf(types.Int4), "{7}")})})
	if e, err := MakeCast(r, typ, false); err != nil {
		t.Error(err)
	} else if got := answer("", e, nil); got != `(5,t,"({7})")` {
		t.Errorf("row cast: %s", got)
	}
	j := call("jsonb_populate_record", false, &Const{Typ: typ}, lit(types.JSONB, `{"a": 3, "b": null, "c": {"d": [1, null]}, "e": 1}`))
	if got := answer("", j, nil); got != `(3,,"(""{1,NULL}"")")` {
		t.Errorf("jsonb_populate_record: %s", got)
	}
	schema := types.Schema{{Name: "a", Type: types.Int4}, {Name: "b", Type: types.Text}}
	fn, ok := RecordFunc("jsonb_to_recordset", []types.Type{types.JSONB}, schema)
	if !ok {
		t.Fatal("no jsonb_to_recordset")
	}
	rows, err := fn.Rows(&Ctx{}, []types.Datum{types.NewString(`[{"a": 1, "b": "x"}, {"b": [2]}]`)})
	if err != nil || rows.N != 2 || rows.Row(1)[1].Str() != "[2]" || !rows.Row(1)[0].IsNull() {
		t.Errorf("jsonb_to_recordset: %v, %v", rows, err)
	}
	// A column of structs, one row standing for all and some NULL.
	col := chunk.New(typ, 0)
	col.Append(x.(*Const).Val)
	col.AppendNull()
	a, err := NewField(&ColRef{Typ: typ}, "a")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Eval(nil, a, chunk.Make(col))
	if err != nil || out.Len() != 2 || out.Datum(0).Int() != 1 || !out.Null(1) {
		t.Errorf("field of a column: %v, %v", out, err)
	}
}
