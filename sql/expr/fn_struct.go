package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// structs adds row constructors, comparisons of rows and what turns json into rows.
func structs(r *registry) {
	r.def("row(variadic any) record lax", typed(func(_ *Ctx, _ []types.Type, a []types.Datum) (types.Datum, error) {
		return types.NewStruct(a), nil
	}))
	row := r.allFuncs[len(r.allFuncs)-1]
	row.RetType = func(args []types.Type) types.Type { return types.RowOf(args) }
	r.def("row() record", value(types.NewStruct(nil)))
	r.allFuncs[len(r.allFuncs)-1].RetType = row.RetType
	r.def("struct_field(record,int4) any total", fieldKernel)
	for op := opEq; op <= opGe; op++ {
		r.def(cmpNames[op]+"(record,record) bool", typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
			return compareStructs(op, ts, a)
		}))
		r.def(cmpNames[op]+"(anymap,anymap) bool total", f2(func(a, b string) bool { return op.holds(types.Compare(types.NewString(a), types.NewString(b))) }))
	}
	for _, t := range []string{"json", "jsonb"} {
		populate := typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
			if a[1].IsNull() {
				return a[0], nil
			}
			v, err := types.ReadJSON(a[1].Str())
			if err != nil {
				return types.Datum{}, err
			}
			return populateStruct(ctx, ts[0], a[0], v, t+"_populate_record")
		})
		r.def(t+"_populate_record(anyelement,"+t+") anyelement stable lax", populate)
	}
}

// NewRow is ROW(args…); its fields are f1, f2, ….
func NewRow(args []Expr) Expr {
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	for _, f := range reg().funcs["row"] {
		if f.Variadic == (len(args) > 0) {
			return &Call{Fn: f, Args: args, Typ: types.RowOf(ts)}
		}
	}
	panic("expr: no row()")
}

// NewField is (x).name for a struct x. Error 42703 if it has no such field, 42809 if x is no struct.
func NewField(x Expr, name string) (Expr, error) {
	t := x.Type()
	if !t.IsStruct() {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "column notation .%s applied to type %s, which is not a composite type", name, label(t))
	}
	i := t.FieldIndex(name)
	if i < 0 {
		return nil, sqlerr.New(sqlerr.UndefinedColumn, "could not identify column \"%s\" in record data type", name)
	}
	at := &Const{Val: types.NewInt(int64(i)), Typ: types.Int4}
	return &Call{Fn: reg().funcs["struct_field"][0], Args: []Expr{x, at}, Typ: (*t.Fields)[i].Type}, nil
}

// fieldKernel is struct_field(x, i): field i, from 0, of a struct. NewField makes its calls.
func fieldKernel(*Func) Kernel {
	return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
		t := args[0].Type()
		at := int(args[1].Datum(0).Int())
		if !t.IsStruct() || at < 0 || at >= len(*t.Fields) {
			return nil, sqlerr.New(sqlerr.WrongObjectType, "struct_field of type %s", label(t))
		}
		v := chunk.Of[string](args[0])
		m := mask(len(v.Data), n)
		out := chunk.New((*t.Fields)[at].Type, n)
		for i := range n {
			if v.Null(i & m) {
				out.AppendNull()
				continue
			}
			vals, err := types.ReadStruct(t, v.Data[i&m])
			if err != nil {
				return nil, err
			}
			out.Append(vals[at])
		}
		return out, nil
	}
}

// compareStructs compares field by field; NULL fields are equal to each other and last.
func compareStructs(op cmpOp, ts []types.Type, a []types.Datum) (types.Datum, error) {
	if !ts[0].IsStruct() || !ts[1].IsStruct() {
		return types.Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "cannot compare records whose columns are not known")
	}
	fx, fy := *ts[0].Fields, *ts[1].Fields
	for i := range min(len(fx), len(fy)) {
		if x, y := fx[i].Type, fy[i].Type; !x.Equal(y) && !(stringlike(x) && stringlike(y)) {
			return types.Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "cannot compare dissimilar column types %s and %s at record column %d", label(x), label(y), i+1)
		}
	}
	if len(fx) != len(fy) {
		return types.Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "cannot compare record types with different numbers of columns")
	}
	x, err := types.ReadStruct(ts[0], a[0].Str())
	if err != nil {
		return types.Datum{}, err
	}
	y, err := types.ReadStruct(ts[1], a[1].Str())
	if err != nil {
		return types.Datum{}, err
	}
	return types.NewBool(op.holds(types.Row(x).Compare(y))), nil
}

// populateStruct is the struct base with the fields that a json object has.
func populateStruct(ctx *Ctx, t types.Type, base types.Datum, v types.JSONValue, name string) (types.Datum, error) {
	if !t.IsStruct() {
		return types.Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "first argument of %s must be a row type", name)
	}
	if v.Kind != types.JSONObject {
		kind := "a scalar"
		if v.Kind == types.JSONArray {
			kind = "an array"
		}
		return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "cannot call %s on %s", name, kind)
	}
	vals := make([]types.Datum, len(*t.Fields))
	if !base.IsNull() {
		var err error
		if vals, err = types.ReadStruct(t, base.Str()); err != nil {
			return types.Datum{}, err
		}
	}
	for i, f := range *t.Fields {
		x, ok := v.Field(f.Name)
		if !ok {
			continue
		}
		var err error
		if vals[i], err = fromJSON(ctx, f.Type, x); err != nil {
			return types.Datum{}, err
		}
	}
	return types.NewStruct(vals), nil
}

// fromJSON makes a value of any type of a json one: arrays of arrays, structs and
// maps of objects, all else from the text that ->> gives.
func fromJSON(ctx *Ctx, t types.Type, v types.JSONValue) (types.Datum, error) {
	switch {
	case t.OID == types.OIDJSON || t.OID == types.OIDJSONB:
		return types.NewString(v.Text()), nil
	case v.Kind == types.JSONNull:
		return types.Datum{}, nil
	case t.Elem != nil && v.Kind == types.JSONArray:
		l := &types.List{Elem: *t.Elem, Lower: 1}
		for _, x := range v.Items {
			it := *t.Elem
			if x.Kind == types.JSONArray && it.OID != types.OIDJSON && it.OID != types.OIDJSONB {
				it = t
			}
			d, err := fromJSON(ctx, it, x)
			if err != nil {
				return types.Datum{}, err
			}
			l.Items = append(l.Items, d)
		}
		return types.NewList(l), nil
	case t.Elem != nil && v.Kind != types.JSONString:
		return types.Datum{}, sqlerr.New(sqlerr.InvalidText, "expected JSON array")
	case t.IsStruct() && v.Kind == types.JSONObject:
		return populateStruct(ctx, t, types.Datum{}, v, "populate_composite")
	case t.IsMap() && v.Kind == types.JSONObject:
		return populateMap(ctx, t, types.Datum{}, v)
	}
	text := v.Str
	if v.Kind != types.JSONString {
		text = v.Text()
	}
	d, err := fromText(ctx, t, text)
	if err == nil && t.Mod != 0 {
		d, err = types.ApplyTypmod(t, d, false)
	}
	return d, err
}

// castStruct converts a struct field by field, in order.
func castStruct(from, to types.Type) maker {
	if len(*from.Fields) != len(*to.Fields) {
		return nil
	}
	for i, f := range *from.Fields {
		if !CanCast(f.Type, (*to.Fields)[i].Type, Explicit) {
			return nil
		}
	}
	return boxed1(func(ctx *Ctx, d types.Datum) (types.Datum, error) {
		vals, err := types.ReadStruct(from, d.Str())
		if err != nil {
			return types.Datum{}, err
		}
		in := &Ctx{Style: ctx.style(), Sys: ctx.Sys}
		for i, v := range vals {
			f, t := (*from.Fields)[i].Type, (*to.Fields)[i].Type
			col := chunk.New(f, 1)
			col.Append(v)
			out, err := castColumn(in, col, f, t, true, 1)
			if err != nil {
				return types.Datum{}, err
			}
			vals[i] = out.Datum(0)
		}
		return types.NewStruct(vals), nil
	})
}

// compositeFields are the names, types and values of what becomes a json object: a struct, or a map.
func compositeFields(t types.Type, d types.Datum) (keys []string, ts []types.Type, vals []types.Datum, err error) {
	if t.IsMap() {
		kt, vt := t.MapTypes()
		ks, vals, err := types.ReadMap(t, d.Str())
		for _, k := range ks {
			keys, ts = append(keys, k.Text(kt)), append(ts, vt)
		}
		return keys, ts, vals, err
	}
	vals, err = types.ReadStruct(t, d.Str())
	for _, f := range *t.Fields {
		keys, ts = append(keys, f.Name), append(ts, f.Type)
	}
	return keys, ts, vals, err
}

// RecordFunc is a set-returning function whose columns the query names: json_to_record(x) AS t(a int), its set
// form, and json_populate_recordset, for which schema is the row type's fields. ok false: name is none of them.
func RecordFunc(name string, args []types.Type, schema types.Schema) (fn *TableFunc, ok bool) {
	var j types.Type
	set := false
	switch name {
	case "json_to_record", "json_to_recordset", "json_populate_recordset":
		j = types.JSON
	case "jsonb_to_record", "jsonb_to_recordset", "jsonb_populate_recordset":
		j = types.JSONB
	default:
		return nil, false
	}
	set = name[len(name)-3:] == "set"
	decl := []types.Type{j}
	if len(args) == 2 {
		decl = []types.Type{args[0], j}
	}
	t := types.StructOf(schema)
	fn = &TableFunc{Name: name, Args: decl, Columns: func([]types.Type) types.Schema { return schema }}
	fn.Rows = func(ctx *Ctx, a []types.Datum) (*chunk.Chunk, error) {
		out := make([]chunk.Column, len(schema))
		for i, f := range schema {
			out[i] = chunk.New(f.Type, 0)
		}
		rows := &chunk.Chunk{Cols: out}
		doc := a[len(a)-1]
		if doc.IsNull() {
			return rows, nil
		}
		v, err := types.ReadJSON(doc.Str())
		if err != nil {
			return nil, err
		}
		items := []types.JSONValue{v}
		if set {
			if items = v.Items; v.Kind != types.JSONArray {
				kind := "a non-array"
				if v.Kind == types.JSONObject {
					kind = "an object"
				}
				return nil, sqlerr.New(sqlerr.InvalidParameter, "cannot call %s on %s", name, kind)
			}
		}
		for _, x := range items {
			if set && x.Kind != types.JSONObject {
				return nil, sqlerr.New(sqlerr.InvalidParameter, "argument of %s must be an array of objects", name)
			}
			d, err := populateStruct(ctx, t, types.Datum{}, x, name)
			if err != nil {
				return nil, err
			}
			vals, err := types.ReadStruct(t, d.Str())
			if err != nil {
				return nil, err
			}
			for i, d := range vals {
				out[i].Append(d)
			}
			rows.N++
		}
		return rows, nil
	}
	return fn, true
}
