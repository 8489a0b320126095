package expr

import (
	"math"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// jsonBuilders adds the functions that make json and jsonb of SQL values, and the casts between jsonb and scalars.
func jsonBuilders(r *registry) {
	toJSON := typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		out, err := appendJSON(ctx, nil, ts[0], a[0], false)
		return types.NewString(string(out)), err
	})
	r.defs(toJSON, "to_json(anyelement) json stable", "array_to_json(anyarray) json stable", "row_to_json(record) json stable")
	pretty := typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		out, err := appendJSON(ctx, nil, ts[0], a[0], a[1].Bool())
		return types.NewString(string(out)), err
	})
	r.defs(pretty, "array_to_json(anyarray,bool) json stable", "row_to_json(record,bool) json stable")
	r.def("to_jsonb(anyelement) jsonb stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		v, err := jsonOf(ctx, ts[0], a[0])
		return types.NewString(v.Text()), err
	}))
	r.defs(typed(buildArray), "json_build_array(variadic any) json stable lax", "json_build_array() json stable")
	r.defs(typed(buildObject), "json_build_object(variadic any) json stable lax", "json_build_object() json stable")
	r.defs(typed(buildArrayB), "jsonb_build_array(variadic any) jsonb stable lax", "jsonb_build_array() jsonb stable")
	r.defs(typed(buildObjectB), "jsonb_build_object(variadic any) jsonb stable lax", "jsonb_build_object() jsonb stable")
	for _, t := range []string{"json", "jsonb"} {
		object := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			keys, values, err := jsonPairs(a)
			if err != nil {
				return types.Datum{}, err
			}
			if t == "jsonb" {
				return types.NewString(types.NewJSONObject(keys, values).Text()), nil
			}
			out := []byte{'{'}
			for i, k := range keys {
				if i > 0 {
					out = append(out, ", "...)
				}
				out = append(types.AppendJSONString(out, k), " : "...)
				out = values[i].Append(out)
			}
			return types.NewString(string(append(out, '}'))), nil
		})
		r.def(t+"_object(text[]) "+t, object)
		r.def(t+"_object(text[],text[]) "+t, object)
	}
}

// isoStyle is the style of dates and times in JSON, in ctx's time zone.
func isoStyle(ctx *Ctx) *types.Style {
	st := types.Style{}
	if s := ctx.style(); s != nil {
		st = *s
	}
	st.SetDateStyle("ISO")
	return &st
}

// jsonText is the text of a value that JSON has in quotes; number: one it has as it is.
func jsonText(ctx *Ctx, t types.Type, d types.Datum) (text string, number bool, err error) {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		number = true
	case types.OIDFloat4, types.OIDFloat8:
		f := d.Float()
		number = !math.IsInf(f, 0) && f == f
	case types.OIDNumeric:
		number = d.Decimal().IsFinite()
	case types.OIDDate, types.OIDTimestamp, types.OIDTimestamptz:
		s := string(types.AppendText(nil, t, d, isoStyle(ctx)))
		if t.OID == types.OIDDate {
			return s, false, nil
		}
		day, clock, ok := strings.Cut(s, " ")
		if !ok {
			return s, false, nil // infinity
		}
		if i := strings.LastIndexAny(clock, "+-"); i > 0 && t.OID == types.OIDTimestamptz {
			end := clock[i:]
			zone, era, _ := strings.Cut(end, " ")
			if len(zone) == 3 {
				zone += ":00"
			}
			if clock = clock[:i] + zone; era != "" {
				clock += " " + era
			}
		}
		return day + "T" + clock, false, nil
	}
	text, err = output(ctx, t, d)
	return text, number, err
}

// jsonOf makes a jsonb value of any value: NULL is null, arrays nest, structs are objects.
func jsonOf(ctx *Ctx, t types.Type, d types.Datum) (types.JSONValue, error) {
	switch {
	case d.IsNull():
		return types.JSONValue{}, nil
	case t.OID == types.OIDBool:
		return types.NewJSONBool(d.Bool()), nil
	case t.OID == types.OIDJSONB:
		return types.MustJSON(d.Str()), nil
	case t.OID == types.OIDJSON:
		return types.ReadJSON(d.Str())
	case t.Elem != nil:
		l := d.List()
		v := types.NewJSONArray(make([]types.JSONValue, len(l.Items)))
		for i, item := range l.Items {
			it := *t.Elem
			if item.Kind() == types.KindList && it.Kind() != types.KindList {
				it = t // a further dimension
			}
			var err error
			if v.Items[i], err = jsonOf(ctx, it, item); err != nil {
				return v, err
			}
		}
		return v, nil
	}
	text, number, err := jsonText(ctx, t, d)
	if err != nil || !number {
		return types.NewJSONString(text), err
	}
	n, err := types.ParseDecimal(text)
	return types.NewJSONNumber(n), err
}

// appendJSON is jsonOf for json: the text of values stays theirs. With lines, each item of the
// outermost array or struct is on a line of its own.
func appendJSON(ctx *Ctx, dst []byte, t types.Type, d types.Datum, lines bool) ([]byte, error) {
	switch {
	case d.IsNull():
		return append(dst, "null"...), nil
	case t.OID == types.OIDBool:
		if d.Bool() {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case t.OID == types.OIDJSONB, t.OID == types.OIDJSON:
		return append(dst, d.Str()...), nil
	case t.Elem != nil:
		dst = append(dst, '[')
		for i, item := range d.List().Items {
			if i > 0 {
				dst = append(dst, ',')
				if lines {
					dst = append(dst, "\n "...)
				}
			}
			it := *t.Elem
			if item.Kind() == types.KindList && it.Kind() != types.KindList {
				it = t
			}
			var err error
			if dst, err = appendJSON(ctx, dst, it, item, false); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	text, number, err := jsonText(ctx, t, d)
	if number {
		return append(dst, text...), err
	}
	return types.AppendJSONString(dst, text), err
}

func buildArray(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	out := []byte{'['}
	for i, d := range a {
		if i > 0 {
			out = append(out, ", "...)
		}
		var err error
		if out, err = appendJSON(ctx, out, ts[i], d, false); err != nil {
			return types.Datum{}, err
		}
	}
	return types.NewString(string(append(out, ']'))), nil
}

func buildArrayB(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	v := types.NewJSONArray(make([]types.JSONValue, len(a)))
	for i, d := range a {
		var err error
		if v.Items[i], err = jsonOf(ctx, ts[i], d); err != nil {
			return types.Datum{}, err
		}
	}
	return types.NewString(v.Text()), nil
}

func errOddPairs(name string) error {
	return sqlerr.New(sqlerr.InvalidParameter, "argument list must have even number of elements").
		WithHint("The arguments of %s() must consist of alternating keys and values.", name)
}

// jsonKey is the text of a value that is to be a key.
func jsonKey(ctx *Ctx, t types.Type, d types.Datum) (string, error) {
	if t.Elem != nil || t.OID == types.OIDJSON || t.OID == types.OIDJSONB || t.OID == types.OIDRecord {
		return "", sqlerr.New(sqlerr.InvalidParameter, "key value must be scalar, not array, composite, or json")
	}
	if t.OID == types.OIDBool {
		return textOf(ctx, t, d)
	}
	text, _, err := jsonText(ctx, t, d)
	return text, err
}

func buildObject(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	if len(a)%2 != 0 {
		return types.Datum{}, errOddPairs("json_build_object")
	}
	out := []byte{'{'}
	for i := 0; i < len(a); i += 2 {
		if i > 0 {
			out = append(out, ", "...)
		}
		if a[i].IsNull() {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "argument %d cannot be null", i+1).
				WithHint("Object keys should be text.")
		}
		key, err := jsonKey(ctx, ts[i], a[i])
		if err != nil {
			return types.Datum{}, err
		}
		out = append(types.AppendJSONString(out, key), " : "...)
		if out, err = appendJSON(ctx, out, ts[i+1], a[i+1], false); err != nil {
			return types.Datum{}, err
		}
	}
	return types.NewString(string(append(out, '}'))), nil
}

func buildObjectB(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	if len(a)%2 != 0 {
		return types.Datum{}, errOddPairs("jsonb_build_object")
	}
	var keys []string
	var items []types.JSONValue
	for i := 0; i < len(a); i += 2 {
		if a[i].IsNull() {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "argument %d: key must not be null", i+1)
		}
		key, err := jsonKey(ctx, ts[i], a[i])
		if err != nil {
			return types.Datum{}, err
		}
		v, err := jsonOf(ctx, ts[i+1], a[i+1])
		if err != nil {
			return types.Datum{}, err
		}
		keys, items = append(keys, key), append(items, v)
	}
	return types.NewString(types.NewJSONObject(keys, items).Text()), nil
}

// jsonPairs reads the arguments of json_object: one array of keys and values in
// turn, one of pairs, or two arrays.
func jsonPairs(a []types.Datum) (keys []string, values []types.JSONValue, err error) {
	add := func(k, v types.Datum) error {
		if k.IsNull() {
			return sqlerr.New("22004", "null value not allowed for object key")
		}
		keys = append(keys, k.Str())
		item := types.JSONValue{}
		if !v.IsNull() {
			item = types.NewJSONString(v.Str())
		}
		values = append(values, item)
		return nil
	}
	l := a[0].List().Items
	nested := func(items []types.Datum) bool { return len(items) > 0 && items[0].Kind() == types.KindList }
	deep := func(items []types.Datum) bool { return nested(items) && nested(items[0].List().Items) }
	wrong := sqlerr.New("2202E", "wrong number of array subscripts")
	if len(a) > 1 {
		vals := a[1].List().Items
		if nested(l) || nested(vals) {
			return nil, nil, wrong
		}
		if len(l) != len(vals) {
			return nil, nil, sqlerr.New("2202E", "mismatched array dimensions")
		}
		for i := range l {
			if err := add(l[i], vals[i]); err != nil {
				return nil, nil, err
			}
		}
		return keys, values, nil
	}
	switch {
	case deep(l):
		return nil, nil, wrong
	case nested(l):
		for _, pair := range l {
			items := pair.List().Items
			if len(items) != 2 {
				return nil, nil, sqlerr.New("2202E", "array must have two columns")
			}
			if err := add(items[0], items[1]); err != nil {
				return nil, nil, err
			}
		}
		return keys, values, nil
	case len(l)%2 != 0:
		return nil, nil, sqlerr.New("2202E", "array must have even number of elements")
	}
	for i := 0; i < len(l); i += 2 {
		if err := add(l[i], l[i+1]); err != nil {
			return nil, nil, err
		}
	}
	return keys, values, nil
}

// castJSON converts jsonb scalars to numbers and booleans; nil: not its business.
func castJSON(from, to types.Type) maker {
	if from.OID != types.OIDJSONB {
		return nil
	}
	refuse := func(k types.JSONKind) error {
		what := map[types.JSONKind]string{types.JSONNull: "null", types.JSONString: "string", types.JSONNumber: "numeric", types.JSONBool: "boolean",
			types.JSONArray: "array", types.JSONObject: "object"}[k]
		return sqlerr.New(sqlerr.InvalidParameter, "cannot cast jsonb %s to type %s", what, types.FormatType(to))
	}
	if to.OID == types.OIDBool {
		return e1(func(j string) (bool, error) {
			if k := types.JSONKindOf(j); k != types.JSONBool {
				return false, refuse(k)
			}
			return j == "true", nil
		})
	}
	if to.OID != types.OIDNumeric && intBits(to) == 0 && !isFloat(to) {
		return nil
	}
	number := boxed1(func(_ *Ctx, d types.Datum) (types.Datum, error) {
		if k := types.JSONKindOf(d.Str()); k != types.JSONNumber {
			return types.Datum{}, refuse(k)
		}
		n, err := types.ParseDecimal(d.Str())
		return types.NewDecimal(n), err
	})
	if to.OID == types.OIDNumeric {
		return number
	}
	return chain(number, types.Numeric, castNumber(types.Numeric, to))
}
