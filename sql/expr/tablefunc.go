package expr

import (
	"strings"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// maxSeries bounds generate_series, whose rows are made at once.
const maxSeries = 1 << 26

// one says that a set-returning function has one column, named like it.
func one(name string, t types.Type) func([]types.Type) types.Schema {
	s := types.Schema{{Name: name, Type: t}}
	return func([]types.Type) types.Schema { return s }
}

// table adds a set-returning function; a strict one gives no rows for a NULL argument.
func (r *registry) table(sig string, columns func([]types.Type) types.Schema, strict bool, rows func(ctx *Ctx, args []types.Datum, out []chunk.Column) error) {
	s := parseSignature(sig)
	if columns == nil {
		columns = one(s.name, s.ret)
	}
	f := &TableFunc{OID: r.oid(s.name, s.argumentString), Name: s.name, Args: s.args, Columns: columns}
	f.Rows = func(ctx *Ctx, args []types.Datum) (*chunk.Chunk, error) {
		schema := columns(argTypes(s.args, args))
		out := make([]chunk.Column, len(schema))
		for i, c := range schema {
			out[i] = chunk.New(c.Type, 0)
		}
		skip := false
		for _, a := range args {
			skip = skip || strict && a.IsNull()
		}
		if !skip {
			if err := rows(ctx, args, out); err != nil {
				return nil, err
			}
		}
		return chunk.Make(out...), nil
	}
	r.tables[s.name] = append(r.tables[s.name], f)
	r.allTables = append(r.allTables, f)
}

// argTypes solves polymorphic arguments from the values: arrays know their element type.
func argTypes(decl []types.Type, args []types.Datum) []types.Type {
	out := append([]types.Type(nil), decl...)
	for i, d := range args {
		if i < len(out) && d.Kind() == types.KindList && out[i].OID == oidAnyArray {
			out[i] = types.ArrayOf(d.List().Elem)
		}
	}
	return out
}

// elementColumns is the schema of functions over anyarray with the element as first column.
func elementColumns(names ...string) func([]types.Type) types.Schema {
	return func(args []types.Type) types.Schema {
		elem := types.Text
		if len(args) > 0 && args[0].Elem != nil {
			elem = *args[0].Elem
		}
		s := types.Schema{{Name: names[0], Type: elem}}
		for _, n := range names[1:] {
			s = append(s, types.Field{Name: n, Type: types.Int4})
		}
		return s
	}
}

func tableFuncs(r *registry) {
	for _, name := range []string{"generate_series", "range"} {
		exclusive := name == "range"
		for _, t := range []string{"int4", "int8"} {
			series := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
				step := int64(1)
				if len(a) > 2 {
					step = a[2].Int()
				}
				return seriesInt(chunk.Of[int64](out[0]), a[0].Int(), a[1].Int(), step, exclusive)
			}
			r.table(name+"("+t+","+t+") "+t, nil, true, series)
			r.table(name+"("+t+","+t+","+t+") "+t, nil, true, series)
		}
		decimals := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
			step := types.NewDecimalInt(1)
			if len(a) > 2 {
				step = a[2].Decimal()
			}
			return seriesDecimal(chunk.Of[types.Decimal](out[0]), a[0].Decimal(), a[1].Decimal(), step, exclusive)
		}
		r.table(name+"(numeric,numeric) numeric", nil, true, decimals)
		r.table(name+"(numeric,numeric,numeric) numeric", nil, true, decimals)
		r.table(name+"(timestamp,timestamp,interval) timestamp", nil, true, func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
			return seriesTime(chunk.Of[int64](out[0]), a, exclusive, types.AddInterval)
		})
		r.table(name+"(timestamptz,timestamptz,interval) timestamptz", nil, true, func(ctx *Ctx, a []types.Datum, out []chunk.Column) error {
			return seriesTime(chunk.Of[int64](out[0]), a, exclusive, func(ts int64, iv types.Interval) (int64, error) {
				return types.AddIntervalZone(ts, iv, ctx.zone())
			})
		})
	}
	r.table("unnest(anyarray) anyelement", elementColumns("unnest"), true, func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		for _, d := range flatten(a[0].List()) {
			out[0].Append(d)
		}
		return nil
	})
	r.table("_pg_expandarray(anyarray) record", elementColumns("x", "n"), true, func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		for i, d := range a[0].List().Items {
			out[0].Append(d)
			out[1].Append(types.NewInt(int64(i + 1)))
		}
		return nil
	})
	subscripts := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		lower, n, ok := dimension(a[0].List(), a[1].Int())
		if !ok {
			return nil
		}
		v := chunk.Of[int64](out[0])
		for i := range n {
			k := lower + i
			if len(a) > 2 && a[2].Bool() {
				k = lower + n - 1 - i
			}
			v.AppendValue(int64(k))
		}
		return nil
	}
	r.table("generate_subscripts(anyarray,int4) int4", nil, true, subscripts)
	r.table("generate_subscripts(anyarray,int4,bool) int4", nil, true, subscripts)

	cache := &regexCache{}
	split := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		flags := ""
		if len(a) > 2 {
			flags = a[2].Str()
		}
		parts, err := regexpSplit(cache, a[0].Str(), a[1].Str(), flags)
		for _, p := range parts {
			out[0].Append(types.NewString(p))
		}
		return err
	}
	r.table("regexp_split_to_table(text,text) text", nil, true, split)
	r.table("regexp_split_to_table(text,text,text) text", nil, true, split)
	matches := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		flags, n := "", 1
		if len(a) > 2 {
			flags = a[2].Str()
		}
		if strings.Contains(flags, "g") {
			n = -1
		}
		re, err := cache.get(a[1].Str(), strings.ReplaceAll(flags, "g", ""))
		if err != nil {
			return err
		}
		for _, m := range re.FindAllStringSubmatchIndex(a[0].Str(), n) {
			out[0].Append(groups(a[0].Str(), m))
		}
		return nil
	}
	r.table("regexp_matches(text,text) text[]", nil, true, matches)
	r.table("regexp_matches(text,text,text) text[]", nil, true, matches)
	parts := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		if a[0].IsNull() {
			return nil
		}
		for _, d := range splitText(a) {
			out[0].Append(d)
		}
		return nil
	}
	r.table("string_to_table(text,text) text", nil, false, parts)
	r.table("string_to_table(text,text,text) text", nil, false, parts)
	r.table("pg_options_to_table(text[]) record", func([]types.Type) types.Schema {
		return types.Schema{{Name: "option_name", Type: types.Text}, {Name: "option_value", Type: types.Text}}
	}, true, func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		for _, d := range a[0].List().Items {
			if d.IsNull() {
				continue
			}
			name, val, ok := strings.Cut(d.Str(), "=")
			out[0].Append(types.NewString(name))
			if ok {
				out[1].Append(types.NewString(val))
			} else {
				out[1].AppendNull()
			}
		}
		return nil
	})
	r.table("pg_get_keywords() record", func([]types.Type) types.Schema {
		return types.Schema{{Name: "word", Type: types.Text}, {Name: "catcode", Type: types.Char}, {Name: "barelabel", Type: types.Bool},
			{Name: "catdesc", Type: types.Text}, {Name: "baredesc", Type: types.Text}}
	}, true, func(_ *Ctx, _ []types.Datum, out []chunk.Column) error {
		category := map[byte]string{'U': "unreserved", 'C': "unreserved (cannot be function or type name)",
			'T': "reserved (can be function or type name)", 'R': "reserved"}
		for _, k := range keywords() {
			bare := "requires AS"
			if k.bare {
				bare = "can be bare label"
			}
			for i, d := range []types.Datum{types.NewString(k.word), types.NewString(string(rune(k.category))), types.NewBool(k.bare),
				types.NewString(category[k.category]), types.NewString(bare)} {
				out[i].Append(d)
			}
		}
		return nil
	})
}

func errZeroStep() error { return sqlerr.New(sqlerr.InvalidParameter, "step size cannot equal zero") }

func errTooMany() error {
	return sqlerr.New(sqlerr.ProgramLimit, "a set-returning function gave more than %d rows", maxSeries)
}

func seriesInt(out *chunk.Vec[int64], from, to, step int64, exclusive bool) error {
	if step == 0 {
		return errZeroStep()
	}
	for v := from; ; {
		if step > 0 && v > to || step < 0 && v < to || exclusive && v == to {
			return nil
		}
		if len(out.Data) == maxSeries {
			return errTooMany()
		}
		out.AppendValue(v)
		next := v + step
		if (next > v) != (step > 0) { // overflow ends the series
			return nil
		}
		v = next
	}
}

func seriesDecimal(out *chunk.Vec[types.Decimal], from, to, step types.Decimal, exclusive bool) error {
	for _, v := range []struct {
		d    types.Decimal
		name string
	}{{from, "start value"}, {to, "stop value"}, {step, "step size"}} {
		if v.d.IsFinite() {
			continue
		}
		what := "infinity"
		if v.d.IsNaN() {
			what = "NaN"
		}
		return sqlerr.New(sqlerr.InvalidParameter, "%s cannot be %s", v.name, what)
	}
	sign := step.Sign()
	if sign == 0 {
		return errZeroStep()
	}
	for v := from; ; v = v.Add(step) {
		c := v.Cmp(to)
		if c*sign > 0 || exclusive && c == 0 {
			return nil
		}
		if len(out.Data) == maxSeries {
			return errTooMany()
		}
		out.AppendValue(v)
	}
}

func seriesTime(out *chunk.Vec[int64], a []types.Datum, exclusive bool, add func(int64, types.Interval) (int64, error)) error {
	v, to, step := a[0].Int(), a[1].Int(), a[2].Interval()
	sign := step.Sign()
	if sign == 0 {
		return errZeroStep()
	}
	for sign > 0 && v <= to || sign < 0 && v >= to {
		if exclusive && v == to {
			return nil
		}
		if len(out.Data) == maxSeries {
			return errTooMany()
		}
		out.AppendValue(v)
		next, err := add(v, step)
		if err != nil {
			return err
		}
		if next == v {
			return nil // infinity
		}
		v = next
	}
	return nil
}
