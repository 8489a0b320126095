package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func jsonAggs(r *registry) {
	for _, binary := range []bool{false, true} {
		name := "json"
		if binary {
			name = "jsonb"
		}
		r.agg(name+"_agg(anyelement) "+name, false, func(args []types.Type, _ types.Type) Accumulator {
			return &jsonAgg{binary: binary, args: args}
		})
		r.agg(name+"_object_agg(any,any) "+name, false, func(args []types.Type, _ types.Type) Accumulator {
			return &jsonAgg{binary: binary, object: true, args: args}
		})
	}
}

// jsonAgg is json_agg, json_object_agg and their like for jsonb: the texts of the
// values, NULLs included, in the order they come.
type jsonAgg struct {
	binary, object bool
	args           []types.Type
	s              []jsonItems
}

type jsonItems struct {
	keys, values []types.Datum // strings; keys of objects only
}

func (a *jsonAgg) Grow(n int) { a.s = grown(a.s, n) }

func (a *jsonAgg) Update(groups []int32, sel []int, ops []chunk.Op, args []chunk.Column) error {
	if err := onlyInserts("a json aggregate", sel, len(groups), ops); err != nil {
		return err
	}
	last := len(args) - 1
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if a.object {
			if args[0].Null(i) {
				return sqlerr.New(sqlerr.InvalidParameter, "field name must not be null")
			}
			key, err := jsonKey(nil, a.args[0], args[0].Datum(i))
			if err != nil {
				return err
			}
			a.s[g].keys = append(a.s[g].keys, types.NewString(key))
		}
		text, err := a.text(a.args[last], args[last].Datum(i))
		if err != nil {
			return err
		}
		a.s[g].values = append(a.s[g].values, types.NewString(text))
	}
	return nil
}

func (a *jsonAgg) text(t types.Type, d types.Datum) (string, error) {
	if a.binary {
		v, err := jsonOf(nil, t, d)
		return v.Text(), err
	}
	out, err := appendJSON(nil, nil, t, d, false)
	return string(out), err
}

func (a *jsonAgg) Output(g int32, col chunk.Column) error {
	s := &a.s[g]
	if len(s.values) == 0 {
		col.AppendNull()
		return nil
	}
	var out []byte
	switch {
	case a.object && a.binary:
		keys, items := make([]string, len(s.keys)), make([]types.JSONValue, len(s.keys))
		for i, k := range s.keys {
			keys[i], items[i] = k.Str(), types.MustJSON(s.values[i].Str())
		}
		out = types.NewJSONObject(keys, items).Append(nil)
	case a.object:
		out = append(out, "{ "...)
		for i, k := range s.keys {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = append(append(types.AppendJSONString(out, k.Str()), " : "...), s.values[i].Str()...)
		}
		out = append(out, " }"...)
	default:
		out = append(out, '[')
		t := a.args[0]
		for i, v := range s.values {
			if i > 0 {
				out = append(out, ", "...)
				if !a.binary && (t.Elem != nil || t.OID == types.OIDRecord) {
					out = append(out, "\n "...) // a composite value has a line of its own
				}
			}
			out = append(out, v.Str()...)
		}
		out = append(out, ']')
	}
	col.(*chunk.Vec[string]).AppendValue(string(out))
	return nil
}

func (a *jsonAgg) AppendState(dst []byte, g int32) []byte {
	dst = appendDatum(dst, types.NewList(&types.List{Items: a.s[g].keys}))
	return appendDatum(dst, types.NewList(&types.List{Items: a.s[g].values}))
}

func (a *jsonAgg) LoadState(g int32, b []byte) (rest []byte, err error) {
	for _, to := range []*[]types.Datum{&a.s[g].keys, &a.s[g].values} {
		if *to, b, err = readItems(b, types.Text); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (a *jsonAgg) Reset(g int32) { a.s[g] = jsonItems{} }
