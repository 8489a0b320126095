package expr

import (
	"strings"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// jsonTables adds the set-returning functions over json and jsonb.
func jsonTables(r *registry) {
	columns := func(fields ...types.Field) func([]types.Type) types.Schema {
		return func([]types.Type) types.Schema { return fields }
	}
	for _, t := range []types.Type{types.JSON, types.JSONB} {
		name := typname(t)
		binary := t.OID == types.OIDJSONB
		for _, text := range []bool{false, true} {
			suffix, ret := "", t
			if text {
				suffix, ret = "_text", types.Text
			}
			items := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
				j := strings.TrimSpace(a[0].Str())
				switch k := types.JSONKindOf(j); {
				case k == types.JSONArray:
				case k == types.JSONObject && binary:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot extract elements from an object")
				case k == types.JSONObject:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot call json_array_elements%s on a non-array", suffix)
				case binary:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot extract elements from a scalar")
				default:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot call json_array_elements%s on a scalar", suffix)
				}
				return types.JSONItems(j, func(v string) (bool, error) {
					err := appendJSONPart(out[0], v, text)
					return err == nil, err
				})
			}
			r.table(name+"_array_elements"+suffix+"("+name+") "+typname(ret), columns(types.Field{Name: "value", Type: ret}), true, items)
			each := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
				j := strings.TrimSpace(a[0].Str())
				switch k := types.JSONKindOf(j); {
				case k == types.JSONObject:
				case binary:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot call jsonb_each%s on a non-object", suffix)
				case k == types.JSONArray:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot deconstruct an array as an object")
				default:
					return sqlerr.New(sqlerr.InvalidParameter, "cannot deconstruct a scalar")
				}
				return types.JSONFields(j, func(key, v string) (bool, error) {
					out[0].Append(types.NewString(key))
					err := appendJSONPart(out[1], v, text)
					return err == nil, err
				})
			}
			r.table(name+"_each"+suffix+"("+name+") record", columns(types.Field{Name: "key", Type: types.Text}, types.Field{Name: "value", Type: ret}), true, each)
		}
		keys := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
			j := strings.TrimSpace(a[0].Str())
			switch types.JSONKindOf(j) {
			case types.JSONObject:
			case types.JSONArray:
				return sqlerr.New(sqlerr.InvalidParameter, "cannot call %s_object_keys on an array", name)
			default:
				return sqlerr.New(sqlerr.InvalidParameter, "cannot call %s_object_keys on a scalar", name)
			}
			return types.JSONFields(j, func(key, _ string) (bool, error) {
				out[0].Append(types.NewString(key))
				return true, nil
			})
		}
		r.table(name+"_object_keys("+name+") text", nil, true, keys)
	}
}

// appendJSONPart appends a part of a json value, as text as ->> gives it.
func appendJSONPart(col chunk.Column, v string, text bool) error {
	if !text {
		col.Append(types.NewString(v))
		return nil
	}
	s, ok, err := types.JSONText(v)
	if !ok {
		col.AppendNull()
		return err
	}
	col.Append(types.NewString(s))
	return nil
}
