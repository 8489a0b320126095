package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// The pseudo types of signatures over maps: a map, and what it is made of.
const (
	oidAnyMap     = 9003
	oidMapKey     = 9004
	oidMapValue   = 9005
	oidMapKeys    = 9006 // the array of keys
	oidMapValues  = 9007
	oidMapEntries = 9008 // the array of struct<key, value>
)

// mapPart is what a pseudo type is for maps of type m; ok false: it is none of theirs.
func mapPart(oid uint32, m types.Type) (t types.Type, ok bool) {
	k, v := m.MapTypes()
	switch oid {
	case oidAnyMap:
		return m, true
	case oidMapKey:
		return k, true
	case oidMapValue:
		return v, true
	case oidMapKeys:
		return types.ArrayOf(k), true
	case oidMapValues:
		return types.ArrayOf(v), true
	case oidMapEntries:
		return types.ArrayOf(types.StructOf(*m.Fields)), true
	}
	return types.Type{}, false
}

func isMapPart(oid uint32) bool { return oid >= oidAnyMap && oid <= oidMapEntries }

// mapFuncs adds the functions over maps.
func mapFuncs(r *registry) {
	// onMap lifts a function over a map taken apart.
	onMap := func(f func(t types.Type, keys, vals []types.Datum, a []types.Datum) (types.Datum, error)) maker {
		return typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
			if a[0].IsNull() {
				return types.Datum{}, nil
			}
			keys, vals, err := types.ReadMap(ts[0], a[0].Str())
			if err != nil {
				return types.Datum{}, err
			}
			return f(ts[0], keys, vals, a[1:])
		})
	}
	find := func(keys []types.Datum, k types.Datum) int {
		for i, x := range keys {
			if !k.IsNull() && types.Equal(x, k) {
				return i
			}
		}
		return -1
	}
	r.def("map_access(anymap,mapkey) mapvalue", onMap(func(_ types.Type, keys, vals, a []types.Datum) (types.Datum, error) {
		if i := find(keys, a[0]); i >= 0 {
			return vals[i], nil
		}
		return types.Datum{}, nil
	}))
	r.def("map_contains(anymap,mapkey) bool", onMap(func(_ types.Type, keys, _, a []types.Datum) (types.Datum, error) {
		return types.NewBool(find(keys, a[0]) >= 0), nil
	}))
	r.def("map_length(anymap) int4", onMap(func(_ types.Type, keys, _, _ []types.Datum) (types.Datum, error) {
		return types.NewInt(int64(len(keys))), nil
	}))
	r.def("map_keys(anymap) mapkeys", onMap(func(t types.Type, keys, _, _ []types.Datum) (types.Datum, error) {
		k, _ := t.MapTypes()
		return listOf(k, keys), nil
	}))
	r.def("map_values(anymap) mapvalues", onMap(func(t types.Type, _, vals, _ []types.Datum) (types.Datum, error) {
		_, v := t.MapTypes()
		return listOf(v, vals), nil
	}))
	r.def("map_entries(anymap) mapentries", onMap(func(t types.Type, keys, vals, _ []types.Datum) (types.Datum, error) {
		items := make([]types.Datum, len(keys))
		for i := range keys {
			items[i] = types.NewStruct([]types.Datum{keys[i], vals[i]})
		}
		return listOf(types.StructOf(*t.Fields), items), nil
	}))
	r.def("map_insert(anymap,mapkey,mapvalue) anymap lax", onMap(func(_ types.Type, keys, vals, a []types.Datum) (types.Datum, error) {
		return types.NewMap(append(keys, a[0]), append(vals, a[1]))
	}))
	r.def("map_delete(anymap,mapkey) anymap lax", onMap(func(_ types.Type, keys, vals, a []types.Datum) (types.Datum, error) {
		if i := find(keys, a[0]); i >= 0 {
			keys, vals = append(keys[:i], keys[i+1:]...), append(vals[:i], vals[i+1:]...)
		}
		return types.NewMap(keys, vals)
	}))
	r.def("map_cat(anymap,anymap) anymap lax", typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		switch {
		case a[0].IsNull():
			return a[1], nil
		case a[1].IsNull():
			return a[0], nil
		}
		k1, v1, err := types.ReadMap(ts[0], a[0].Str())
		if err != nil {
			return types.Datum{}, err
		}
		k2, v2, err := types.ReadMap(ts[1], a[1].Str())
		if err != nil {
			return types.Datum{}, err
		}
		return types.NewMap(append(k1, k2...), append(v1, v2...))
	}))
	r.def("map_from_entries(anyarray) anymap", typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		entry := elemOf(ts[0])
		var keys, vals []types.Datum
		if !entry.IsStruct() || len(*entry.Fields) != 2 {
			return types.Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "map_from_entries takes an array of structs of a key and a value, not %s", label(ts[0]))
		}
		if _, err := types.MapOf((*entry.Fields)[0].Type, (*entry.Fields)[1].Type); err != nil {
			return types.Datum{}, err
		}
		for _, d := range a[0].List().Items {
			if d.IsNull() {
				return types.Datum{}, sqlerr.New("22004", "map entries must not be NULL")
			}
			kv, err := types.ReadStruct(entry, d.Str())
			if err != nil {
				return types.Datum{}, err
			}
			keys, vals = append(keys, kv[0]), append(vals, kv[1])
		}
		return uniqueMap(keys, vals)
	}))
	r.allFuncs[len(r.allFuncs)-1].RetType = func(args []types.Type) types.Type {
		if e := elemOf(args[0]); e.IsStruct() && len(*e.Fields) == 2 {
			if t, err := types.MapOf((*e.Fields)[0].Type, (*e.Fields)[1].Type); err == nil {
				return t
			}
		}
		return types.Text // the kernel says what is wrong
	}
	r.def("map_from_key_values(anyarray,anycompatiblearray) anymap", typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		if _, err := types.MapOf(elemOf(ts[0]), elemOf(ts[1])); err != nil {
			return types.Datum{}, err
		}
		keys, vals := a[0].List().Items, a[1].List().Items
		if len(keys) != len(vals) {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "map keys and values have different length")
		}
		return uniqueMap(keys, vals)
	}))
	r.allFuncs[len(r.allFuncs)-1].RetType = func(args []types.Type) types.Type {
		if t, err := types.MapOf(elemOf(args[0]), elemOf(args[1])); err == nil {
			return t
		}
		return types.Text
	}
	r.def("jsonb_populate_map(anymap,jsonb) anymap stable lax", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		if a[1].IsNull() {
			return a[0], nil
		}
		return populateMap(ctx, ts[0], a[0], types.MustJSON(a[1].Str()))
	}))
}

// uniqueMap is NewMap that refuses equal keys.
func uniqueMap(keys, vals []types.Datum) (types.Datum, error) {
	sorted := append([]types.Datum(nil), keys...)
	sortDatums(sorted)
	for i := 1; i < len(sorted); i++ {
		if !sorted[i].IsNull() && types.Equal(sorted[i-1], sorted[i]) {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "map keys must be unique")
		}
	}
	return types.NewMap(keys, vals)
}

// populateMap is the map base with the keys that a json object has.
func populateMap(ctx *Ctx, t types.Type, base types.Datum, v types.JSONValue) (types.Datum, error) {
	if v.Kind != types.JSONObject {
		return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "cannot convert a json value that is no object to a map")
	}
	var keys, vals []types.Datum
	if !base.IsNull() {
		var err error
		if keys, vals, err = types.ReadMap(t, base.Str()); err != nil {
			return types.Datum{}, err
		}
	}
	kt, vt := t.MapTypes()
	for i, key := range v.Keys {
		k, err := fromText(ctx, kt, key)
		if err != nil {
			return types.Datum{}, err
		}
		x, err := fromJSON(ctx, vt, v.Items[i])
		if err != nil {
			return types.Datum{}, err
		}
		keys, vals = append(keys, k), append(vals, x)
	}
	return types.NewMap(keys, vals)
}

// castMap converts the keys and values of a map.
func castMap(from, to types.Type) maker {
	fk, fv := from.MapTypes()
	tk, tv := to.MapTypes()
	if !CanCast(fk, tk, Explicit) || !CanCast(fv, tv, Explicit) {
		return nil
	}
	one := func(ctx *Ctx, d types.Datum, f, t types.Type) (types.Datum, error) {
		col := chunk.New(f, 1)
		col.Append(d)
		out, err := castColumn(&Ctx{Style: ctx.style(), Sys: ctx.Sys}, col, f, t, true, 1)
		if err != nil {
			return types.Datum{}, err
		}
		return out.Datum(0), nil
	}
	return boxed1(func(ctx *Ctx, d types.Datum) (types.Datum, error) {
		keys, vals, err := types.ReadMap(from, d.Str())
		if err != nil {
			return types.Datum{}, err
		}
		for i := range keys {
			if keys[i], err = one(ctx, keys[i], fk, tk); err != nil {
				return types.Datum{}, err
			}
			if vals[i], err = one(ctx, vals[i], fv, tv); err != nil {
				return types.Datum{}, err
			}
		}
		return types.NewMap(keys, vals)
	})
}
