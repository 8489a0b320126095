package types

import (
	"cmp"
	"slices"
	"strings"
)

// A JSONKind is what a JSON value is. The order is jsonb's sort order.
type JSONKind uint8

const (
	JSONNull JSONKind = iota
	JSONString
	JSONNumber
	JSONBool
	JSONArray
	JSONObject
)

// A JSONValue is a jsonb value taken apart, for functions that look into it.
// Columns hold the text; ReadJSON takes it apart and Text puts it together again.
type JSONValue struct {
	Kind  JSONKind
	Bool  bool
	Str   string
	Num   Decimal
	Items []JSONValue // of an array; of an object the values
	Keys  []string    // of an object: by length and then bytes, each once
}

// ReadJSON takes apart text that is valid JSON. Errors 22P05 and 22P02 for
// escapes that text cannot hold, 22003 for numbers out of range.
func ReadJSON(s string) (JSONValue, error) {
	p := jsonReader{s: s}
	return p.read()
}

// MustJSON takes apart the text of a jsonb value, in which nothing can be wrong.
func MustJSON(s string) JSONValue {
	v, err := ReadJSON(s)
	if err != nil {
		panic(err)
	}
	return v
}

func (p *jsonReader) read() (JSONValue, error) {
	p.skip()
	switch c := p.s[p.i]; c {
	case '{':
		v := JSONValue{Kind: JSONObject}
		sorted := true
		err := p.fields(func(key string) (bool, error) {
			item, err := p.read()
			if n := len(v.Keys); n > 0 && compareKeys(v.Keys[n-1], key) >= 0 {
				sorted = false
			}
			v.Keys, v.Items = append(v.Keys, key), append(v.Items, item)
			return true, err
		})
		if err == nil && !sorted {
			v = NewJSONObject(v.Keys, v.Items)
		}
		return v, err
	case '[':
		v := JSONValue{Kind: JSONArray}
		err := p.items(func() (bool, error) {
			item, err := p.read()
			v.Items = append(v.Items, item)
			return true, err
		})
		return v, err
	case '"':
		text, err := p.str()
		return JSONValue{Kind: JSONString, Str: text}, err
	case 't':
		p.i += 4
		return JSONValue{Kind: JSONBool, Bool: true}, nil
	case 'f':
		p.i += 5
		return JSONValue{Kind: JSONBool}, nil
	case 'n':
		p.i += 4
		return JSONValue{}, nil
	}
	d, err := ParseDecimal(p.number())
	return JSONValue{Kind: JSONNumber, Num: d}, err
}

// compareKeys orders an object's keys: the shorter first.
func compareKeys(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// NewJSONObject makes an object of keys and values in any order; of equal keys the last one counts.
func NewJSONObject(keys []string, items []JSONValue) JSONValue {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareKeys(keys[a], keys[b]) })
	v := JSONValue{Kind: JSONObject, Keys: make([]string, 0, len(keys)), Items: make([]JSONValue, 0, len(keys))}
	for n, i := range order {
		if n+1 < len(order) && keys[order[n+1]] == keys[i] {
			continue
		}
		v.Keys, v.Items = append(v.Keys, keys[i]), append(v.Items, items[i])
	}
	return v
}

// NewJSONString makes a string value.
func NewJSONString(s string) JSONValue { return JSONValue{Kind: JSONString, Str: s} }

// NewJSONNumber makes a number; it must be finite.
func NewJSONNumber(d Decimal) JSONValue { return JSONValue{Kind: JSONNumber, Num: d} }

// NewJSONBool makes true or false.
func NewJSONBool(b bool) JSONValue { return JSONValue{Kind: JSONBool, Bool: b} }

// NewJSONArray makes an array.
func NewJSONArray(items []JSONValue) JSONValue { return JSONValue{Kind: JSONArray, Items: items} }

// IsScalar reports whether v is neither an array nor an object.
func (v JSONValue) IsScalar() bool { return v.Kind < JSONArray }

// Field is the value of an object's key.
func (v JSONValue) Field(key string) (JSONValue, bool) {
	if i, ok := v.find(key); ok {
		return v.Items[i], true
	}
	return JSONValue{}, false
}

func (v JSONValue) find(key string) (int, bool) {
	if v.Kind != JSONObject {
		return 0, false
	}
	return slices.BinarySearchFunc(v.Keys, key, compareKeys)
}

// WithField is the object v with one key set.
func (v JSONValue) WithField(key string, item JSONValue) JSONValue {
	i, ok := v.find(key)
	if ok {
		v.Items = slices.Clone(v.Items)
		v.Items[i] = item
		return v
	}
	v.Keys = slices.Insert(slices.Clone(v.Keys), i, key)
	v.Items = slices.Insert(slices.Clone(v.Items), i, item)
	return v
}

// WithoutField is the object v without a key.
func (v JSONValue) WithoutField(key string) JSONValue {
	if i, ok := v.find(key); ok {
		v.Keys = slices.Delete(slices.Clone(v.Keys), i, i+1)
		v.Items = slices.Delete(slices.Clone(v.Items), i, i+1)
	}
	return v
}

// Item is an array's item; negative numbers count from the end.
func (v JSONValue) Item(i int) (JSONValue, bool) {
	if v.Kind != JSONArray {
		return JSONValue{}, false
	}
	if i < 0 {
		i += len(v.Items)
	}
	if i < 0 || i >= len(v.Items) {
		return JSONValue{}, false
	}
	return v.Items[i], true
}

// Append appends the text of v as jsonb: parseJSON's one form.
func (v JSONValue) Append(dst []byte) []byte {
	switch v.Kind {
	case JSONNull:
		return append(dst, "null"...)
	case JSONBool:
		if v.Bool {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case JSONString:
		return AppendJSONString(dst, v.Str)
	case JSONNumber:
		return v.Num.AppendText(dst)
	case JSONArray:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = item.Append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, item := range v.Items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(AppendJSONString(dst, v.Keys[i]), ": "...)
		dst = item.Append(dst)
	}
	return append(dst, '}')
}

// Text is v as jsonb text.
func (v JSONValue) Text() string { return string(v.Append(nil)) }

// Cmp orders as PostgreSQL's jsonb: null, strings, numbers, booleans, arrays,
// objects; of arrays and objects the smaller first, objects then by key and value in
// turn. An empty array at the top comes before everything but itself.
func (v JSONValue) Cmp(o JSONValue) int {
	if v.IsScalar() != o.IsScalar() && (v.Kind == JSONArray || o.Kind == JSONArray) {
		// A value that stands alone counts as an array of one, below true ones.
		scalarFirst := 1
		if v.IsScalar() {
			scalarFirst = -1
		}
		if n := len(v.Items) + len(o.Items); n == 0 {
			return -scalarFirst
		}
		return scalarFirst
	}
	return v.compare(o)
}

func (v JSONValue) compare(o JSONValue) int {
	if v.Kind != o.Kind {
		return cmp.Compare(v.Kind, o.Kind)
	}
	switch v.Kind {
	case JSONString:
		return cmp.Compare(v.Str, o.Str)
	case JSONNumber:
		return v.Num.Cmp(o.Num)
	case JSONBool:
		switch {
		case v.Bool == o.Bool:
			return 0
		case o.Bool:
			return -1
		}
		return 1
	case JSONArray, JSONObject:
		if c := cmp.Compare(len(v.Items), len(o.Items)); c != 0 {
			return c
		}
		for i := range v.Items {
			if v.Kind == JSONObject {
				if c := cmp.Compare(v.Keys[i], o.Keys[i]); c != 0 {
					return c
				}
			}
			if c := v.Items[i].compare(o.Items[i]); c != 0 {
				return c
			}
		}
	}
	return 0
}

// CompareJSON orders the texts of two jsonb values as Cmp does the values.
func CompareJSON(a, b string) int {
	if a == b {
		return 0
	}
	return MustJSON(a).Cmp(MustJSON(b))
}

// Contains is jsonb's @>: every key and item of o is found in v, at every level.
func (v JSONValue) Contains(o JSONValue) bool {
	switch {
	case (v.Kind == JSONObject) != (o.Kind == JSONObject):
		return false
	case v.Kind == JSONArray && o.IsScalar(): // an array contains a value that stands alone
		return v.containsItem(o)
	}
	return v.contains(o)
}

func (v JSONValue) contains(o JSONValue) bool {
	if v.Kind != o.Kind {
		return false
	}
	switch v.Kind {
	case JSONObject:
		for i, key := range o.Keys {
			item, ok := v.Field(key)
			if !ok || !item.contains(o.Items[i]) {
				return false
			}
		}
		return true
	case JSONArray:
		for _, item := range o.Items {
			if !v.containsItem(item) {
				return false
			}
		}
		return true
	}
	return v.compare(o) == 0
}

func (v JSONValue) containsItem(o JSONValue) bool {
	return slices.ContainsFunc(v.Items, func(item JSONValue) bool { return item.contains(o) })
}

// The functions below find a part of JSON text without taking it apart. They want valid text.

// JSONKindOf is the kind of the value that s holds.
func JSONKindOf(s string) JSONKind {
	p := jsonReader{s: s}
	p.skip()
	switch p.s[p.i] {
	case '{':
		return JSONObject
	case '[':
		return JSONArray
	case '"':
		return JSONString
	case 't', 'f':
		return JSONBool
	case 'n':
		return JSONNull
	}
	return JSONNumber
}

// skipValue passes over one value and returns its text.
func (p *jsonReader) skipValue() string {
	p.skip()
	start := p.i
	switch p.s[p.i] {
	case '{', '[':
		for depth := 0; ; {
			switch p.s[p.i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					p.i++
					return p.s[start:p.i]
				}
			case '"':
				p.skipString()
				continue
			}
			p.i++
		}
	case '"':
		p.skipString()
	case 't', 'n':
		p.i += 4
	case 'f':
		p.i += 5
	default:
		p.number()
	}
	return p.s[start:p.i]
}

// skipString passes over a string and returns its text with the quotes.
func (p *jsonReader) skipString() string {
	start := p.i
	p.i++
	for {
		n := strings.IndexByte(p.s[p.i:], '"')
		// An odd number of backslashes before the quote escapes it.
		back := 0
		for back < n && p.s[p.i+n-1-back] == '\\' {
			back++
		}
		p.i += n + 1
		if back%2 == 0 {
			return p.s[start:p.i]
		}
	}
}

// number passes over a number.
func (p *jsonReader) number() string {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte("+-.0123456789eE", p.s[p.i]) >= 0 {
		p.i++
	}
	return p.s[start:p.i]
}

// JSONFields calls f with the keys and the texts of the values of an object, in
// the order of the text, until f returns false.
func JSONFields(s string, f func(key, value string) (bool, error)) error {
	p := jsonReader{s: s}
	p.skip()
	return p.fields(func(key string) (bool, error) { return f(key, p.skipValue()) })
}

// JSONItems calls f with the texts of the items of an array, until f returns false.
func JSONItems(s string, f func(value string) (bool, error)) error {
	p := jsonReader{s: s}
	p.skip()
	return p.items(func() (bool, error) { return f(p.skipValue()) })
}

// JSONField is the text of the value of an object's key; of equal keys the last.
func JSONField(s, key string) (value string, ok bool) {
	p := jsonReader{s: s}
	p.skip()
	if p.s[p.i] != '{' {
		return "", false
	}
	p.i++
	for {
		p.skip()
		switch p.s[p.i] {
		case '}':
			return value, ok
		case ',':
			p.i++
			p.skip()
		}
		raw := p.skipString()
		p.skip()
		p.i++
		v := p.skipValue()
		if keyIs(raw, key) {
			value, ok = v, true
		}
	}
}

// keyIs reports whether a string as it stands in JSON, quotes and all, is key.
func keyIs(raw, key string) bool {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1:len(raw)-1] == key
	}
	p := jsonReader{s: raw}
	s, err := p.str()
	return err == nil && s == key
}

// JSONItem is the text of an array's item; negative numbers count from the end.
func JSONItem(s string, n int) (value string, ok bool) {
	if JSONKindOf(s) != JSONArray {
		return "", false
	}
	if n < 0 {
		n += JSONLen(s)
		if n < 0 {
			return "", false
		}
	}
	JSONItems(s, func(v string) (bool, error) {
		if n == 0 {
			value, ok = v, true
		}
		n--
		return !ok, nil
	})
	return value, ok
}

// JSONLen is the number of items of an array.
func JSONLen(s string) int {
	n := 0
	JSONItems(s, func(string) (bool, error) { n++; return true, nil })
	return n
}

// JSONText is a value as ->> gives it: the text of a string, NULL (ok false) for
// null, and the value's own text else.
func JSONText(value string) (text string, ok bool, err error) {
	switch value[0] {
	case '"':
		p := jsonReader{s: value}
		text, err = p.str()
		return text, err == nil, err
	case 'n':
		return "", false, nil
	}
	return value, true, nil
}
