package expr

import (
	"slices"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// listOf is a one-dimensional array.
func listOf(elem types.Type, items []types.Datum) types.Datum {
	return types.NewList(&types.List{Elem: elem, Items: items, Lower: 1})
}

func elemOf(t types.Type) types.Type {
	if t.Elem != nil {
		return *t.Elem
	}
	return types.Type{}
}

// nested reports whether l has more than one dimension.
func nested(l *types.List) bool { return len(l.Items) > 0 && l.Items[0].Kind() == types.KindList }

// sameShape checks that another array can be put beside those there are.
func sameShape(items []types.Datum, d types.Datum) error {
	if d.IsNull() {
		return sqlerr.New("22004", "cannot accumulate null arrays")
	}
	if len(d.List().Items) == 0 {
		return sqlerr.New("2202E", "cannot accumulate empty arrays")
	}
	if len(items) > 0 && len(items[0].List().Items) != len(d.List().Items) {
		return sqlerr.New("2202E", "cannot accumulate arrays of different dimensionality")
	}
	return nil
}

// dimension gives the lower bound and length of dimension k (from 1) of l.
func dimension(l *types.List, k int64) (lower, length int, ok bool) {
	if k < 1 || len(l.Items) == 0 {
		return 0, 0, false
	}
	for ; k > 1; k-- {
		if !nested(l) {
			return 0, 0, false
		}
		l = l.Items[0].List()
	}
	return l.Lower, len(l.Items), true
}

// arrays adds the operators and functions over arrays.
func arrays(r *registry) {
	r.def("||(anycompatiblearray,anycompatiblearray) anycompatiblearray lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		return arrayCat(a[0], a[1])
	}))
	r.def("array_cat(anycompatiblearray,anycompatiblearray) anycompatiblearray lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		return arrayCat(a[0], a[1])
	}))
	appendItem := typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		return arrayPut(a[0], a[1], elemOf(ts[0]), false)
	})
	prependItem := typed(func(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		return arrayPut(a[1], a[0], elemOf(ts[1]), true)
	})
	r.def("||(anycompatiblearray,anycompatible) anycompatiblearray lax", appendItem)
	r.def("array_append(anycompatiblearray,anycompatible) anycompatiblearray lax", appendItem)
	r.def("||(anycompatible,anycompatiblearray) anycompatiblearray lax", prependItem)
	r.def("array_prepend(anycompatible,anycompatiblearray) anycompatiblearray lax", prependItem)

	set := func(f func(a, b []types.Datum) bool) maker {
		return f2(func(a, b *types.List) bool { return f(flatten(a), flatten(b)) })
	}
	contains := func(a, b []types.Datum) bool {
		for _, x := range b {
			if x.IsNull() || !hasItem(a, x) {
				return false
			}
		}
		return true
	}
	overlap := func(a, b []types.Datum) bool {
		for _, x := range a {
			if !x.IsNull() && hasItem(b, x) {
				return true
			}
		}
		return false
	}
	within := func(a, b []types.Datum) bool { return contains(b, a) }
	r.defs(set(contains), "@>(anyarray,anyarray) bool total", "arraycontains(anyarray,anyarray) bool total")
	r.defs(set(within), "<@(anyarray,anyarray) bool total", "arraycontained(anyarray,anyarray) bool total")
	r.defs(set(overlap), "&&(anyarray,anyarray) bool total", "arrayoverlap(anyarray,anyarray) bool total")

	bounds := func(f func(lower, length int) int) maker {
		return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			lower, length, ok := dimension(a[0].List(), a[1].Int())
			if !ok {
				return types.Datum{}, nil
			}
			return types.NewInt(int64(f(lower, length))), nil
		})
	}
	r.def("array_length(anyarray,int4) int4", bounds(func(_, n int) int { return n }))
	r.def("array_lower(anyarray,int4) int4", bounds(func(lo, _ int) int { return lo }))
	r.def("array_upper(anyarray,int4) int4", bounds(func(lo, n int) int { return lo + n - 1 }))
	r.def("array_ndims(anyarray) int4", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		n := len(a[0].List().Dims())
		if len(a[0].List().Items) == 0 {
			return types.Datum{}, nil
		}
		return types.NewInt(int64(n)), nil
	}))
	r.def("array_dims(anyarray) text", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		var b strings.Builder
		for k := int64(1); ; k++ {
			lower, n, ok := dimension(a[0].List(), k)
			if !ok {
				break
			}
			b.WriteString("[" + types.NewDecimalInt(int64(lower)).String() + ":" + types.NewDecimalInt(int64(lower+n-1)).String() + "]")
		}
		if b.Len() == 0 {
			return types.Datum{}, nil
		}
		return types.NewString(b.String()), nil
	}))
	r.def("cardinality(anyarray) int4", f1(func(l *types.List) int64 { return int64(len(flatten(l))) }))

	position := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		l := a[0].List()
		if nested(l) {
			return types.Datum{}, sqlerr.Unsupported("searching for elements in multidimensional arrays")
		}
		from := int64(l.Lower)
		if len(l.Items) == 0 {
			return types.Datum{}, nil
		}
		if len(a) > 2 {
			if a[2].IsNull() {
				return types.Datum{}, sqlerr.New("22004", "initial position must not be null")
			}
			from = a[2].Int()
		}
		for i, d := range l.Items {
			if p := int64(l.Lower + i); p >= from && types.Equal(d, a[1]) {
				return types.NewInt(p), nil
			}
		}
		return types.Datum{}, nil
	})
	r.def("array_position(anycompatiblearray,anycompatible) int4 lax", position)
	r.def("array_position(anycompatiblearray,anycompatible,int4) int4 lax", position)
	r.def("array_positions(anycompatiblearray,anycompatible) int4[] lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		l := a[0].List()
		if nested(l) {
			return types.Datum{}, sqlerr.Unsupported("searching for elements in multidimensional arrays")
		}
		var out []types.Datum
		for i, d := range l.Items {
			if types.Equal(d, a[1]) {
				out = append(out, types.NewInt(int64(l.Lower+i)))
			}
		}
		return listOf(types.Int4, out), nil
	}))
	r.def("array_remove(anycompatiblearray,anycompatible) anycompatiblearray lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		l := a[0].List()
		if nested(l) {
			return types.Datum{}, sqlerr.Unsupported("removing elements from multidimensional arrays")
		}
		out := &types.List{Elem: l.Elem, Lower: l.Lower}
		for _, d := range l.Items {
			if !types.Equal(d, a[1]) {
				out.Items = append(out.Items, d)
			}
		}
		return types.NewList(out), nil
	}))
	r.def("array_replace(anycompatiblearray,anycompatible,anycompatible) anycompatiblearray lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		l, err := mapList(a[0].List(), a[0].List().Elem, func(items []types.Datum) ([]types.Datum, error) {
			out := append([]types.Datum(nil), items...)
			for i, d := range out {
				if types.Equal(d, a[1]) {
					out[i] = a[2]
				}
			}
			return out, nil
		})
		if err != nil {
			return types.Datum{}, err
		}
		return types.NewList(l), nil
	}))
	r.def("trim_array(anyarray,int4) anyarray", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		l, n := a[0].List(), a[1].Int()
		if n < 0 || n > int64(len(l.Items)) {
			return types.Datum{}, sqlerr.New("2202E", "number of elements to trim must be between 0 and %d", len(l.Items))
		}
		return types.NewList(&types.List{Elem: l.Elem, Items: l.Items[:int64(len(l.Items))-n], Lower: l.Lower}), nil
	}))
	r.defs(typed(arrayFill), "array_fill(anyelement,int4[]) anyarray lax", "array_fill(anyelement,int4[],int4[]) anyarray lax")

	toString := typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() || a[1].IsNull() {
			return types.Datum{}, nil
		}
		var parts []string
		for _, d := range flatten(a[0].List()) {
			if d.IsNull() {
				if len(a) > 2 && !a[2].IsNull() {
					parts = append(parts, a[2].Str())
				}
				continue
			}
			s, err := output(ctx, elemOf(ts[0]), d)
			if err != nil {
				return types.Datum{}, err
			}
			parts = append(parts, s)
		}
		return types.NewString(strings.Join(parts, a[1].Str())), nil
	})
	r.defs(toString, "array_to_string(anyarray,text) text lax stable", "array_to_string(anyarray,text,text) text lax stable",
		"array_join(anyarray,text) text lax stable", "array_join(anyarray,text,text) text lax stable")
	toArray := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		return listOf(types.Text, splitText(a)), nil
	})
	r.defs(toArray, "string_to_array(text,text) text[] lax", "string_to_array(text,text,text) text[] lax")

	// Subscripts: a[i] is array_get(a, i) over any number of them, a[i:j] array_slice; NULL bounds are open.
	r.def("array_get(anyarray,variadic int4) anyelement lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		d := a[0]
		for k, sub := range a[1:] {
			if d.IsNull() || sub.IsNull() || d.Kind() != types.KindList {
				return types.Datum{}, nil
			}
			l := d.List()
			i := sub.Int() - int64(l.Lower)
			if i < 0 || i >= int64(len(l.Items)) {
				return types.Datum{}, nil
			}
			d = l.Items[i]
			if k == len(a)-2 && d.Kind() == types.KindList { // fewer subscripts than dimensions
				return types.Datum{}, nil
			}
		}
		return d, nil
	}))
	r.def("array_slice(anyarray,int4,int4) anyarray lax", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		l := a[0].List()
		lo, hi := int64(l.Lower), int64(l.Lower+len(l.Items)-1)
		if !a[1].IsNull() {
			lo = max(lo, a[1].Int())
		}
		if !a[2].IsNull() {
			hi = min(hi, a[2].Int())
		}
		if lo > hi {
			return listOf(l.Elem, nil), nil
		}
		return listOf(l.Elem, l.Items[lo-int64(l.Lower):hi-int64(l.Lower)+1]), nil
	}))

	// RisingWave's.
	r.def("array_distinct(anyarray) anyarray", onItems(func(in []types.Datum) []types.Datum {
		var out []types.Datum
		for _, d := range in {
			if !hasDistinct(out, d) {
				out = append(out, d)
			}
		}
		return out
	}))
	r.def("array_reverse(anyarray) anyarray", onItems(func(in []types.Datum) []types.Datum {
		out := make([]types.Datum, len(in))
		for i, d := range in {
			out[len(in)-1-i] = d
		}
		return out
	}))
	r.def("array_sort(anyarray) anyarray", onItems(func(in []types.Datum) []types.Datum {
		out := append([]types.Datum(nil), in...)
		sortDatums(out)
		return out
	}))
	extreme := func(want int) maker {
		return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
			var best types.Datum
			for _, d := range flatten(a[0].List()) {
				if !d.IsNull() && (best.IsNull() || types.Compare(d, best) == want) {
					best = d
				}
			}
			return best, nil
		})
	}
	r.def("array_max(anyarray) anyelement", extreme(1))
	r.def("array_min(anyarray) anyelement", extreme(-1))
}

// arrayFill is array_fill(value, dimensions, lower bounds).
func arrayFill(_ *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	for _, d := range a[1:] {
		if d.IsNull() {
			return types.Datum{}, sqlerr.New("22004", "dimension array or low bound array cannot be null")
		}
	}
	for i, d := range a[1:] {
		if nested(d.List()) {
			return types.Datum{}, sqlerr.New("2202E", "wrong number of array subscripts").
				WithDetail("Dimension array must be one dimensional.")
		}
		if slices.ContainsFunc(d.List().Items, types.Datum.IsNull) {
			what := [...]string{"dimension", "low bound"}[i]
			return types.Datum{}, sqlerr.New("22004", "%s values cannot be null", what)
		}
	}
	dims := a[1].List().Items
	var lowers []types.Datum
	if len(a) > 2 {
		if lowers = a[2].List().Items; len(lowers) != len(dims) {
			return types.Datum{}, sqlerr.New("2202E", "wrong number of array subscripts").
				WithDetail("Low bound array has different size than dimensions array.")
		}
	}
	if len(dims) > 6 {
		return types.Datum{}, sqlerr.New(sqlerr.ProgramLimit, "number of array dimensions (%d) exceeds the maximum allowed (6)", len(dims))
	}
	total := int64(1)
	for _, d := range dims {
		if total *= d.Int(); d.Int() < 0 || total > 1<<27-1 {
			return types.Datum{}, sqlerr.New(sqlerr.ProgramLimit, "array size exceeds the maximum allowed (%d)", 1<<27-1)
		}
	}
	if total == 0 || len(dims) == 0 {
		return listOf(ts[0], nil), nil
	}
	var fill func(k int) types.Datum
	fill = func(k int) types.Datum {
		l := &types.List{Elem: ts[0], Items: make([]types.Datum, dims[k].Int()), Lower: 1}
		if lowers != nil {
			l.Lower = int(lowers[k].Int())
		}
		for i := range l.Items {
			l.Items[i] = a[0]
			if k+1 < len(dims) {
				l.Items[i] = fill(k + 1)
			}
		}
		return types.NewList(l)
	}
	return fill(0), nil
}

func onItems(f func([]types.Datum) []types.Datum) maker {
	return boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		l := a[0].List()
		return types.NewList(&types.List{Elem: l.Elem, Items: f(l.Items), Lower: l.Lower}), nil
	})
}

func hasItem(items []types.Datum, x types.Datum) bool {
	for _, d := range items {
		if !d.IsNull() && types.Equal(d, x) {
			return true
		}
	}
	return false
}

func hasDistinct(items []types.Datum, x types.Datum) bool {
	for _, d := range items {
		if types.Equal(d, x) {
			return true
		}
	}
	return false
}

// arrayCat joins two arrays, of which one may be an element of the other's dimension.
func arrayCat(a, b types.Datum) (types.Datum, error) {
	switch {
	case a.IsNull():
		return b, nil
	case b.IsNull():
		return a, nil
	}
	x, y := a.List(), b.List()
	switch {
	case len(x.Items) == 0:
		return b, nil
	case len(y.Items) == 0:
		return a, nil
	}
	dx, dy := x.Dims(), y.Dims()
	out := &types.List{Elem: x.Elem, Lower: x.Lower}
	bad := func(detail string) error {
		return sqlerr.New("2202E", "cannot concatenate incompatible arrays").WithDetail("%s", detail)
	}
	switch {
	case len(dx) == len(dy):
		if len(dx) > 1 && dx[1] != dy[1] {
			return types.Datum{}, bad("Arrays with differing element dimensions are not compatible for concatenation.")
		}
		out.Items = append(append(out.Items, x.Items...), y.Items...)
	case len(dx) == len(dy)+1:
		if dx[1] != dy[0] {
			return types.Datum{}, bad("Arrays with differing dimensions are not compatible for concatenation.")
		}
		out.Items = append(append(out.Items, x.Items...), b)
	case len(dy) == len(dx)+1:
		if dy[1] != dx[0] {
			return types.Datum{}, bad("Arrays with differing dimensions are not compatible for concatenation.")
		}
		out.Lower = y.Lower
		out.Items = append(append(out.Items, a), y.Items...)
	default:
		return types.Datum{}, sqlerr.New("2202E", "cannot concatenate incompatible arrays").
			WithDetail("Arrays of %d and %d dimensions are not compatible for concatenation.", len(dx), len(dy))
	}
	return types.NewList(out), nil
}

func arrayPut(array, item types.Datum, elem types.Type, front bool) (types.Datum, error) {
	out := &types.List{Elem: elem, Lower: 1}
	if !array.IsNull() {
		l := array.List()
		if nested(l) {
			return types.Datum{}, sqlerr.New("22000", "argument must be empty or one-dimensional array")
		}
		if len(l.Items) > 0 {
			out.Lower = l.Lower
		}
		out.Items = l.Items
	}
	if front {
		out.Items = append([]types.Datum{item}, out.Items...)
	} else {
		out.Items = append(append([]types.Datum(nil), out.Items...), item)
	}
	return types.NewList(out), nil
}

// splitText is string_to_array(s, separator, null): a NULL separator splits into characters, an empty one not at all.
func splitText(a []types.Datum) []types.Datum {
	s := a[0].Str()
	if s == "" {
		return nil
	}
	var parts []string
	switch {
	case a[1].IsNull():
		for _, c := range s {
			parts = append(parts, string(c))
		}
	case a[1].Str() == "":
		parts = []string{s}
	default:
		parts = strings.Split(s, a[1].Str())
	}
	out := make([]types.Datum, len(parts))
	for i, p := range parts {
		if len(a) > 2 && !a[2].IsNull() && p == a[2].Str() {
			continue
		}
		out[i] = types.NewString(p)
	}
	return out
}
