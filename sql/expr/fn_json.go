package expr

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// jsons adds the operators and functions that look into json and jsonb. A path
// into one of them is followed over its text; what changes a value takes it apart.
func jsons(r *registry) {
	for _, t := range []string{"json", "jsonb"} {
		field := maybe2(func(j, key string) (string, bool, error) {
			v, ok := types.JSONField(j, key)
			return v, ok, nil
		})
		fieldText := maybe2(func(j, key string) (string, bool, error) {
			v, ok := types.JSONField(j, key)
			if !ok {
				return "", false, nil
			}
			return types.JSONText(v)
		})
		item := maybe2(func(j string, n int64) (string, bool, error) {
			v, ok := jsonItem(j, n, t == "jsonb")
			return v, ok, nil
		})
		itemText := maybe2(func(j string, n int64) (string, bool, error) {
			v, ok := jsonItem(j, n, t == "jsonb")
			if !ok {
				return "", false, nil
			}
			return types.JSONText(v)
		})
		r.defs(field, "->("+t+",text) "+t+" total", t+"_object_field("+t+",text) "+t)
		r.defs(fieldText, "->>("+t+",text) text", t+"_object_field_text("+t+",text) text")
		r.defs(item, "->("+t+",int4) "+t+" total", t+"_array_element("+t+",int4) "+t)
		r.defs(itemText, "->>("+t+",int4) text", t+"_array_element_text("+t+",int4) text")
		path := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			return jsonPathText(a[0].Str(), a[1].List().Items, false)
		})
		pathText := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			return jsonPathText(a[0].Str(), a[1].List().Items, true)
		})
		r.def("#>("+t+",text[]) "+t, path)
		r.def("#>>("+t+",text[]) text", pathText)
		r.def(t+"_extract_path("+t+",variadic text) "+t, boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			return jsonPathText(a[0].Str(), a[1:], false)
		}))
		r.def(t+"_extract_path_text("+t+",variadic text) text", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			return jsonPathText(a[0].Str(), a[1:], true)
		}))
		r.def(t+"_typeof("+t+") text", f1(func(j string) string { return jsonTypeName(types.JSONKindOf(j)) }))
		r.def(t+"_array_length("+t+") int4", e1(func(j string) (int64, error) {
			switch types.JSONKindOf(j) {
			case types.JSONArray:
				return int64(types.JSONLen(j)), nil
			case types.JSONObject:
				return 0, sqlerr.New(sqlerr.InvalidParameter, "cannot get array length of a non-array")
			}
			return 0, sqlerr.New(sqlerr.InvalidParameter, "cannot get array length of a scalar")
		}))
	}
	r.def("json_strip_nulls(json) json", e1(func(j string) (string, error) {
		out, err := stripNullsText(nil, j)
		return string(out), err
	}))
	r.def("jsonb_strip_nulls(jsonb) jsonb", jsonChange1(func(v types.JSONValue) (types.JSONValue, error) { return stripNulls(v), nil }))
	r.def("jsonb_pretty(jsonb) text", f1(func(j string) string { return string(prettyJSON(nil, types.MustJSON(j), 0)) }))

	for op := opEq; op <= opGe; op++ {
		test := func(a, b string) bool { return op.holds(types.CompareJSON(a, b)) }
		if op == opEq || op == opNe {
			test = func(a, b string) bool { return (a == b || types.CompareJSON(a, b) == 0) == (op == opEq) }
		}
		r.defs(f2(test), cmpNames[op]+"(jsonb,jsonb) bool total", "jsonb_"+[...]string{"eq", "ne", "lt", "le", "gt", "ge"}[op]+"(jsonb,jsonb) bool total")
	}
	r.def("jsonb_cmp(jsonb,jsonb) int4", f2(func(a, b string) int64 { return int64(types.CompareJSON(a, b)) }))
	contains := func(a, b string) bool { return types.MustJSON(a).Contains(types.MustJSON(b)) }
	r.defs(f2(contains), "@>(jsonb,jsonb) bool total", "jsonb_contains(jsonb,jsonb) bool total")
	r.defs(f2(func(a, b string) bool { return contains(b, a) }), "<@(jsonb,jsonb) bool total", "jsonb_contained(jsonb,jsonb) bool total")
	r.defs(f2(jsonExists), "?(jsonb,text) bool total", "jsonb_exists(jsonb,text) bool total")
	any := f2(func(j string, l *types.List) bool { return jsonExistsOf(j, l, false) })
	all := f2(func(j string, l *types.List) bool { return jsonExistsOf(j, l, true) })
	r.defs(any, "?|(jsonb,text[]) bool total", "jsonb_exists_any(jsonb,text[]) bool total")
	r.defs(all, "?&(jsonb,text[]) bool total", "jsonb_exists_all(jsonb,text[]) bool total")
	r.defs(e2(func(a, b string) (string, error) { return concatJSON(types.MustJSON(a), types.MustJSON(b)).Text(), nil }),
		"||(jsonb,jsonb) jsonb", "jsonb_concat(jsonb,jsonb) jsonb")
	r.defs(e2(func(j, key string) (string, error) { return deleteKeys(j, func(s string) bool { return s == key }) }),
		"-(jsonb,text) jsonb", "jsonb_delete(jsonb,text) jsonb")
	r.defs(e2(func(j string, l *types.List) (string, error) {
		keys := map[string]bool{}
		for _, d := range flatten(l) {
			if !d.IsNull() {
				keys[d.Str()] = true
			}
		}
		return deleteKeys(j, func(s string) bool { return keys[s] })
	}), "-(jsonb,text[]) jsonb", "jsonb_delete(jsonb,text[]) jsonb")
	r.defs(e2(deleteItem), "-(jsonb,int4) jsonb", "jsonb_delete(jsonb,int4) jsonb")
	r.defs(e2(func(j string, l *types.List) (string, error) {
		v := types.MustJSON(j)
		if v.IsScalar() {
			return "", sqlerr.New(sqlerr.InvalidParameter, "cannot delete path in scalar")
		}
		v, err := setPath(v, l.Items, 0, types.JSONValue{}, pathDelete)
		return v.Text(), err
	}), "#-(jsonb,text[]) jsonb", "jsonb_delete_path(jsonb,text[]) jsonb")

	set := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		mode := pathCreate
		if len(a) > 3 && !a[3].Bool() {
			mode = pathReplace
		}
		return changePath(a, mode)
	})
	r.defs(set, "jsonb_set(jsonb,text[],jsonb) jsonb", "jsonb_set(jsonb,text[],jsonb,bool) jsonb")
	insert := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		mode := pathInsertBefore
		if len(a) > 3 && a[3].Bool() {
			mode = pathInsertAfter
		}
		return changePath(a, mode)
	})
	r.defs(insert, "jsonb_insert(jsonb,text[],jsonb) jsonb", "jsonb_insert(jsonb,text[],jsonb,bool) jsonb")
	r.defs(boxed(setLax), "jsonb_set_lax(jsonb,text[],jsonb) jsonb lax", "jsonb_set_lax(jsonb,text[],jsonb,bool) jsonb lax",
		"jsonb_set_lax(jsonb,text[],jsonb,bool,text) jsonb lax")
	r.def("is_json(text) bool total", f1(func(s string) bool { return isJSON(s, "VALUE") }))
	r.def("is_json(text,text) bool total", f2(isJSON))
}

// jsonItem is an array's item. A jsonb value that stands alone is an array of one to PostgreSQL here.
func jsonItem(j string, n int64, binary bool) (string, bool) {
	if binary && types.JSONKindOf(j) < types.JSONArray {
		return j, n == 0 || n == -1
	}
	return types.JSONItem(j, int(n))
}

func jsonTypeName(k types.JSONKind) string {
	return [...]string{"null", "string", "number", "boolean", "array", "object"}[k]
}

// jsonChange1 lifts a function over taken-apart values.
func jsonChange1(f func(types.JSONValue) (types.JSONValue, error)) maker {
	return e1(func(j string) (string, error) {
		v, err := f(types.MustJSON(j))
		if err != nil {
			return "", err
		}
		return v.Text(), nil
	})
}

// jsonPathText follows a path of keys and subscripts; asText gives the value as ->> does.
func jsonPathText(j string, path []types.Datum, asText bool) (types.Datum, error) {
	j = strings.TrimSpace(j)
	for _, step := range path {
		if step.IsNull() {
			return types.Datum{}, nil
		}
		ok := false
		switch types.JSONKindOf(j) {
		case types.JSONObject:
			j, ok = types.JSONField(j, step.Str())
		case types.JSONArray:
			n, err := strconv.ParseInt(strings.TrimLeft(step.Str(), " \t\n"), 10, 32)
			if err != nil {
				return types.Datum{}, nil
			}
			j, ok = types.JSONItem(j, int(n))
		}
		if !ok {
			return types.Datum{}, nil
		}
	}
	if !asText {
		return types.NewString(j), nil
	}
	text, ok, err := types.JSONText(j)
	if !ok {
		return types.Datum{}, err
	}
	return types.NewString(text), nil
}

// jsonExists is ?: a key of an object, a string of an array, or the string itself.
func jsonExists(j, key string) bool {
	switch types.JSONKindOf(j) {
	case types.JSONObject:
		_, ok := types.JSONField(j, key)
		return ok
	case types.JSONArray:
		for _, item := range types.MustJSON(j).Items {
			if item.Kind == types.JSONString && item.Str == key {
				return true
			}
		}
		return false
	}
	v := types.MustJSON(j)
	return v.Kind == types.JSONString && v.Str == key
}

// jsonExistsOf is ?| and ?&; NULL keys do not count.
func jsonExistsOf(j string, keys *types.List, all bool) bool {
	for _, d := range flatten(keys) {
		if !d.IsNull() && jsonExists(j, d.Str()) != all {
			return !all
		}
	}
	return all
}

// concatJSON is ||: objects merge; anything else becomes one array.
func concatJSON(a, b types.JSONValue) types.JSONValue {
	if a.Kind == types.JSONObject && b.Kind == types.JSONObject {
		return types.NewJSONObject(append(append([]string(nil), a.Keys...), b.Keys...),
			append(append([]types.JSONValue(nil), a.Items...), b.Items...))
	}
	items := func(v types.JSONValue) []types.JSONValue {
		if v.Kind == types.JSONArray {
			return v.Items
		}
		return []types.JSONValue{v}
	}
	return types.NewJSONArray(append(append([]types.JSONValue(nil), items(a)...), items(b)...))
}

// deleteKeys is - text: keys of an object, strings of an array.
func deleteKeys(j string, drop func(string) bool) (string, error) {
	v := types.MustJSON(j)
	if v.IsScalar() {
		return "", sqlerr.New(sqlerr.InvalidParameter, "cannot delete from scalar")
	}
	out := types.JSONValue{Kind: v.Kind}
	for i, item := range v.Items {
		if v.Kind == types.JSONObject {
			if drop(v.Keys[i]) {
				continue
			}
			out.Keys = append(out.Keys, v.Keys[i])
		} else if item.Kind == types.JSONString && drop(item.Str) {
			continue
		}
		out.Items = append(out.Items, item)
	}
	return out.Text(), nil
}

// deleteItem is - integer: an item of an array.
func deleteItem(j string, n int64) (string, error) {
	v := types.MustJSON(j)
	switch {
	case v.IsScalar():
		return "", sqlerr.New(sqlerr.InvalidParameter, "cannot delete from scalar")
	case v.Kind == types.JSONObject:
		return "", sqlerr.New(sqlerr.InvalidParameter, "cannot delete from object using integer index")
	}
	if n < 0 {
		n += int64(len(v.Items))
	}
	if n < 0 || n >= int64(len(v.Items)) {
		return j, nil
	}
	items := append([]types.JSONValue(nil), v.Items[:n]...)
	return types.NewJSONArray(append(items, v.Items[n+1:]...)).Text(), nil
}

// A pathMode says what setPath does at the end of its path.
type pathMode uint8

const (
	pathReplace pathMode = iota // only what is there
	pathCreate
	pathInsertBefore
	pathInsertAfter
	pathDelete
)

func changePath(a []types.Datum, mode pathMode) (types.Datum, error) {
	v := types.MustJSON(a[0].Str())
	if v.IsScalar() {
		return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "cannot set path in scalar")
	}
	v, err := setPath(v, a[1].List().Items, 0, types.MustJSON(a[2].Str()), mode)
	if err != nil {
		return types.Datum{}, err
	}
	return types.NewString(v.Text()), nil
}

// setPath changes what v has at the end of path[level:].
func setPath(v types.JSONValue, path []types.Datum, level int, to types.JSONValue, mode pathMode) (types.JSONValue, error) {
	if level >= len(path) || v.IsScalar() {
		return v, nil
	}
	if path[level].IsNull() {
		return v, sqlerr.New("22004", "path element at position %d is null", level+1)
	}
	step, last := path[level].Str(), level == len(path)-1
	if v.Kind == types.JSONObject {
		item, ok := v.Field(step)
		switch {
		case !last && ok:
			item, err := setPath(item, path, level+1, to, mode)
			return v.WithField(step, item), err
		case !last:
			return v, nil
		case mode == pathDelete:
			return v.WithoutField(step), nil
		case ok && (mode == pathInsertBefore || mode == pathInsertAfter):
			return v, sqlerr.New(sqlerr.InvalidParameter, "cannot replace existing key").
				WithHint("Try using the function jsonb_set to replace key value.")
		case !ok && mode == pathReplace:
			return v, nil
		}
		return v.WithField(step, to), nil
	}
	n, err := strconv.ParseInt(strings.TrimLeft(step, " \t\n"), 10, 32)
	if err != nil {
		return v, sqlerr.New(sqlerr.InvalidText, "path element at position %d is not an integer: \"%s\"", level+1, step)
	}
	at := int(n)
	if at < 0 {
		at += len(v.Items)
	}
	if at >= 0 && at < len(v.Items) {
		items := append([]types.JSONValue(nil), v.Items...)
		switch {
		case !last:
			items[at], err = setPath(items[at], path, level+1, to, mode)
		case mode == pathDelete:
			items = append(items[:at], items[at+1:]...)
		case mode == pathInsertBefore:
			items = insertAt(items, at, to)
		case mode == pathInsertAfter:
			items = insertAt(items, at+1, to)
		default:
			items[at] = to
		}
		return types.NewJSONArray(items), err
	}
	if !last || mode == pathDelete || mode == pathReplace {
		return v, nil
	}
	if at < 0 {
		return types.NewJSONArray(insertAt(v.Items, 0, to)), nil
	}
	return types.NewJSONArray(insertAt(v.Items, len(v.Items), to)), nil
}

func insertAt(items []types.JSONValue, at int, v types.JSONValue) []types.JSONValue {
	out := append(append([]types.JSONValue(nil), items[:at]...), v)
	return append(out, items[at:]...)
}

// setLax is jsonb_set_lax: jsonb_set with a say in what a NULL new value does.
func setLax(_ *Ctx, a []types.Datum) (types.Datum, error) {
	for i, d := range a {
		if d.IsNull() && i != 2 && i != 4 {
			return types.Datum{}, nil
		}
	}
	how := "use_json_null"
	if len(a) > 4 {
		if a[4].IsNull() {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter,
				"null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
		}
		how = a[4].Str()
	}
	mode := pathCreate
	if len(a) > 3 && !a[3].Bool() {
		mode = pathReplace
	}
	if !a[2].IsNull() {
		return changePath(a, mode)
	}
	args := []types.Datum{a[0], a[1], types.NewString("null")}
	switch how {
	case "raise_exception":
		return types.Datum{}, sqlerr.New("22004", "JSON value must not be null").
			WithDetail("Exception was raised because null_value_treatment is \"raise_exception\".").
			WithHint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
	case "use_json_null":
		return changePath(args, mode)
	case "return_target":
		return a[0], nil
	case "delete_key":
		v := types.MustJSON(a[0].Str())
		if v.IsScalar() {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "cannot delete path in scalar")
		}
		v, err := setPath(v, a[1].List().Items, 0, types.JSONValue{}, pathDelete)
		return types.NewString(v.Text()), err
	}
	return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter,
		"null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
}

// stripNulls drops the keys of objects whose value is null, at every level.
func stripNulls(v types.JSONValue) types.JSONValue {
	out := types.JSONValue{Kind: v.Kind, Bool: v.Bool, Str: v.Str, Num: v.Num}
	for i, item := range v.Items {
		if v.Kind == types.JSONObject {
			if item.Kind == types.JSONNull {
				continue
			}
			out.Keys = append(out.Keys, v.Keys[i])
		}
		out.Items = append(out.Items, stripNulls(item))
	}
	return out
}

// stripNullsText is stripNulls for json, whose order and duplicates stay.
func stripNullsText(dst []byte, j string) ([]byte, error) {
	j = strings.TrimSpace(j)
	first := true
	comma := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
	}
	var err error
	switch types.JSONKindOf(j) {
	case types.JSONObject:
		dst = append(dst, '{')
		err = types.JSONFields(j, func(key, value string) (bool, error) {
			if value == "null" {
				return true, nil
			}
			comma()
			dst = append(types.AppendJSONString(dst, key), ':')
			var err error
			dst, err = stripNullsText(dst, value)
			return err == nil, err
		})
		return append(dst, '}'), err
	case types.JSONArray:
		dst = append(dst, '[')
		err = types.JSONItems(j, func(value string) (bool, error) {
			comma()
			var err error
			dst, err = stripNullsText(dst, value)
			return err == nil, err
		})
		return append(dst, ']'), err
	case types.JSONString:
		s, _, err := types.JSONText(j)
		return types.AppendJSONString(dst, s), err
	}
	return append(dst, j...), nil
}

// prettyJSON writes an item a line, four blanks a level.
func prettyJSON(dst []byte, v types.JSONValue, level int) []byte {
	if v.IsScalar() {
		return v.Append(dst)
	}
	newline := func(level int) {
		dst = append(dst, '\n')
		for range level {
			dst = append(dst, "    "...)
		}
	}
	open, end := byte('['), byte(']')
	if v.Kind == types.JSONObject {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i, item := range v.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		newline(level + 1)
		if v.Kind == types.JSONObject {
			dst = append(types.AppendJSONString(dst, v.Keys[i]), ": "...)
		}
		dst = prettyJSON(dst, item, level+1)
	}
	newline(level)
	return append(dst, end)
}

// isJSON is IS JSON with a word: VALUE, ARRAY, OBJECT or SCALAR.
func isJSON(s, kind string) bool {
	if _, err := types.ParseText(types.JSON, s, nil); err != nil {
		return false
	}
	switch k := types.JSONKindOf(s); strings.ToUpper(kind) {
	case "ARRAY":
		return k == types.JSONArray
	case "OBJECT":
		return k == types.JSONObject
	case "SCALAR":
		return k < types.JSONArray
	}
	return true
}
