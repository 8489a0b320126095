package expr

import (
	"encoding/binary"
	"math"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// aggregates adds the aggregate functions. Sums are exact: integers in 128
// bits, numerics as they are, floats as in floatsum.go; so a Delete undoes an
// Insert without a trace, and NULL comes back when the last value leaves.
func aggregates(r *registry) {
	r.agg("count() int8", true, func([]types.Type, types.Type) Accumulator { return &countAcc{} })
	r.agg("count(any) int8", true, func([]types.Type, types.Type) Accumulator { return &countAcc{column: true} })

	for _, t := range []string{"int2", "int4"} {
		r.agg("sum("+t+") int8", true, func([]types.Type, types.Type) Accumulator { return &intSum{final: sumInt8} })
	}
	r.agg("sum(int8) numeric", true, func([]types.Type, types.Type) Accumulator { return &intSum{final: sumNumeric} })
	r.agg("sum0(int8) int8", true, func([]types.Type, types.Type) Accumulator { return &intSum{final: sumZero} })
	for _, t := range []string{"int2", "int4", "int8"} {
		r.agg("avg("+t+") numeric", true, func([]types.Type, types.Type) Accumulator { return &intSum{final: avgInt} })
	}
	r.agg("sum(numeric) numeric", true, func([]types.Type, types.Type) Accumulator { return &decimalSum{} })
	r.agg("avg(numeric) numeric", true, func([]types.Type, types.Type) Accumulator { return &decimalSum{avg: true} })
	r.agg("sum(float4) float4", true, func([]types.Type, types.Type) Accumulator { return &floatSum{single: true} })
	r.agg("sum(float8) float8", true, func([]types.Type, types.Type) Accumulator { return &floatSum{} })
	r.agg("avg(float4) float8", true, func([]types.Type, types.Type) Accumulator { return &floatSum{avg: true} })
	r.agg("avg(float8) float8", true, func([]types.Type, types.Type) Accumulator { return &floatSum{avg: true} })
	r.agg("sum(interval) interval", true, func([]types.Type, types.Type) Accumulator { return &intervalSum{} })
	r.agg("avg(interval) interval", true, func([]types.Type, types.Type) Accumulator { return &intervalSum{avg: true} })

	for _, m := range []struct {
		name string
		max  bool
	}{{"min", false}, {"max", true}} {
		for _, t := range []string{"int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "bpchar", "bytea", "uuid", "date", "time",
			"timestamp", "timestamptz", "interval", "anyarray"} {
			r.agg(m.name+"("+t+") "+t, false, func(_ []types.Type, ret types.Type) Accumulator { return newExtreme(ret, m.max) })
		}
	}

	for _, name := range []string{"bool_and", "every", "bool_or"} {
		r.agg(name+"(bool) bool", true, func([]types.Type, types.Type) Accumulator { return &boolAcc{or: name == "bool_or"} })
	}
	for op, name := range []string{"bit_and", "bit_or", "bit_xor"} {
		for _, t := range []string{"int2", "int4", "int8"} {
			r.agg(name+"("+t+") "+t, false, func([]types.Type, types.Type) Accumulator { return &bitAcc{op: bitOp(op)} })
		}
	}
	r.agg("string_agg(text,text) text", false, func([]types.Type, types.Type) Accumulator { return &stringAgg{} })
	r.agg("string_agg(bytea,bytea) bytea", false, func([]types.Type, types.Type) Accumulator { return &stringAgg{} })
	r.agg("array_agg(anynonarray) anyarray", false, func(args []types.Type, _ types.Type) Accumulator { return &arrayAgg{elem: args[0]} })
	r.agg("array_agg(anyarray) anyarray", false, func(args []types.Type, _ types.Type) Accumulator {
		return &arrayAgg{elem: *args[0].Elem, nested: true}
	})

	for _, v := range []struct {
		name       string
		sample, sd bool
	}{{"var_pop", false, false}, {"var_samp", true, false}, {"variance", true, false}, {"stddev_pop", false, true}, {"stddev_samp", true, true}, {"stddev", true, true}} {
		for _, t := range []string{"int2", "int4", "int8"} {
			r.agg(v.name+"("+t+") numeric", true, func([]types.Type, types.Type) Accumulator { return &intVar{spread{v.sample, v.sd}, nil} })
		}
		r.agg(v.name+"(numeric) numeric", true, func([]types.Type, types.Type) Accumulator { return &decimalVar{spread{v.sample, v.sd}, nil} })
		for _, t := range []string{"float4", "float8"} {
			r.agg(v.name+"("+t+") float8", true, func([]types.Type, types.Type) Accumulator { return &floatVar{spread{v.sample, v.sd}, nil} })
		}
	}
}

func (r *registry) agg(sig string, retractable bool, mk func(args []types.Type, ret types.Type) Accumulator) *AggFunc {
	s := parseSignature(sig)
	f := &AggFunc{OID: r.oid(s.name, s.argumentString), Name: s.name, Args: s.args, Ret: s.ret, New: mk, Retractable: retractable}
	if polymorphic(s.ret) {
		f.RetType = func(args []types.Type) types.Type { return solveRet(s.args, args, s.ret) }
	}
	r.aggs[s.name] = append(r.aggs[s.name], f)
	r.allAggs = append(r.allAggs, f)
	return f
}

// grown is s with room for n elements.
func grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return append(s, make([]T, n-len(s))...)
}

// eachValue calls f for the values that are not NULL.
func eachValue[T any](groups []int32, sel []int, ops []chunk.Op, col chunk.Column, f func(g int32, x T, sign int64)) {
	v := chunk.Of[T](col)
	for k, g := range groups {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if v.Nulls != nil && v.Nulls[i] {
			continue
		}
		sign := int64(1)
		if ops != nil {
			sign = ops[i].Sign()
		}
		f(g, v.Data[i], sign)
	}
}

// onlyInserts is the error of aggregates that cannot take a value back.
func onlyInserts(name string, sel []int, n int, ops []chunk.Op) error {
	if ops == nil {
		return nil
	}
	for k := range n {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if ops[i] == chunk.Delete {
			return sqlerr.New(sqlerr.Internal, "%s cannot retract a row", name)
		}
	}
	return nil
}

func errState() error { return sqlerr.New(sqlerr.DataCorrupted, "aggregate state is damaged") }

func readVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errState()
	}
	return v, b[n:], nil
}

func readString(b []byte) (string, []byte, error) {
	n, b, err := readVarint(b)
	if err != nil || n < 0 || n > int64(len(b)) {
		return "", nil, errState()
	}
	return string(b[:n]), b[n:], nil
}

// appendDatum writes any value with its kind; the element type of a list is the reader's to know.
func appendDatum(dst []byte, d types.Datum) []byte {
	dst = append(dst, byte(d.Kind()))
	switch d.Kind() {
	case types.KindBool:
		if d.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case types.KindInt:
		return binary.AppendVarint(dst, d.Int())
	case types.KindFloat:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.Float()))
	case types.KindString:
		dst = binary.AppendVarint(dst, int64(len(d.Str())))
		return append(dst, d.Str()...)
	case types.KindDecimal:
		return d.Decimal().AppendBinary(dst)
	case types.KindInterval:
		iv := d.Interval()
		dst = binary.AppendVarint(dst, int64(iv.Months))
		dst = binary.AppendVarint(dst, int64(iv.Days))
		return binary.AppendVarint(dst, iv.Micros)
	case types.KindList:
		l := d.List()
		dst = binary.AppendVarint(dst, int64(l.Lower))
		dst = binary.AppendVarint(dst, int64(len(l.Items)))
		for _, item := range l.Items {
			dst = appendDatum(dst, item)
		}
	}
	return dst
}

func readDatum(b []byte, elem types.Type) (types.Datum, []byte, error) {
	if len(b) == 0 {
		return types.Datum{}, nil, errState()
	}
	kind := types.Kind(b[0])
	b = b[1:]
	switch kind {
	case types.KindNull:
		return types.Datum{}, b, nil
	case types.KindBool:
		if len(b) == 0 {
			return types.Datum{}, nil, errState()
		}
		return types.NewBool(b[0] == 1), b[1:], nil
	case types.KindInt:
		v, b, err := readVarint(b)
		return types.NewInt(v), b, err
	case types.KindFloat:
		if len(b) < 8 {
			return types.Datum{}, nil, errState()
		}
		return types.NewFloat(math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:], nil
	case types.KindString:
		s, b, err := readString(b)
		return types.NewString(s), b, err
	case types.KindDecimal:
		v, b, err := types.ReadBinary(b)
		return types.NewDecimal(v), b, err
	case types.KindInterval:
		m, b, err := readVarint(b)
		if err != nil {
			return types.Datum{}, nil, err
		}
		d, b, err := readVarint(b)
		if err != nil {
			return types.Datum{}, nil, err
		}
		us, b, err := readVarint(b)
		return types.NewInterval(types.Interval{Months: int32(m), Days: int32(d), Micros: us}), b, err
	case types.KindList:
		lower, b, err := readVarint(b)
		if err != nil {
			return types.Datum{}, nil, err
		}
		n, b, err := readVarint(b)
		if err != nil || n < 0 || n > int64(len(b)) {
			return types.Datum{}, nil, errState()
		}
		l := &types.List{Elem: elem, Lower: int(lower), Items: make([]types.Datum, n)}
		for i := range l.Items {
			if l.Items[i], b, err = readDatum(b, elem); err != nil {
				return types.Datum{}, nil, err
			}
		}
		return types.NewList(l), b, nil
	}
	return types.Datum{}, nil, errState()
}
