package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

var errRows = errors.New("its rows are damaged")

// appendRows encodes a chunk column by column: a byte that says whether there are
// NULLs, a byte a row for them, and the values, which are zero where NULL.
func appendRows(dst []byte, c *chunk.Chunk) []byte {
	for _, col := range c.Cols {
		switch v := col.(type) {
		case *chunk.Vec[int64]:
			dst = appendNulls(dst, v.Nulls)
			for _, x := range v.Data {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
			}
		case *chunk.Vec[float64]:
			dst = appendNulls(dst, v.Nulls)
			for _, x := range v.Data {
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
			}
		case *chunk.Vec[bool]:
			dst = appendNulls(dst, v.Nulls)
			dst = appendBools(dst, v.Data)
		case *chunk.Vec[string]:
			dst = appendNulls(dst, v.Nulls)
			for _, s := range v.Data {
				dst = binary.AppendUvarint(dst, uint64(len(s)))
			}
			for _, s := range v.Data {
				dst = append(dst, s...)
			}
		case *chunk.Vec[types.Decimal]:
			dst = appendNulls(dst, v.Nulls)
			for _, d := range v.Data {
				dst = d.AppendBinary(dst)
			}
		case *chunk.Vec[types.Interval]:
			dst = appendNulls(dst, v.Nulls)
			for _, iv := range v.Data {
				dst = appendInterval(dst, iv)
			}
		case *chunk.Vec[*types.List]:
			dst = appendNulls(dst, v.Nulls)
			for i, l := range v.Data {
				if !v.Null(i) {
					dst = appendList(dst, l)
				}
			}
		default:
			panic(fmt.Sprintf("batch: spill of %T", col))
		}
	}
	return dst
}

func appendNulls(dst []byte, nulls []bool) []byte {
	if nulls == nil {
		return append(dst, 0)
	}
	return appendBools(append(dst, 1), nulls)
}

func appendBools(dst []byte, v []bool) []byte {
	for _, b := range v {
		x := byte(0)
		if b {
			x = 1
		}
		dst = append(dst, x)
	}
	return dst
}

func appendInterval(dst []byte, iv types.Interval) []byte {
	dst = binary.AppendVarint(dst, int64(iv.Months))
	dst = binary.AppendVarint(dst, int64(iv.Days))
	return binary.AppendVarint(dst, iv.Micros)
}

// appendList encodes an array with its bounds and element type.
func appendList(dst []byte, l *types.List) []byte {
	dst = binary.AppendVarint(dst, int64(l.Lower))
	dst = binary.AppendUvarint(dst, uint64(len(l.Items)))
	dst = binary.AppendUvarint(dst, uint64(l.Elem.OID))
	dst = binary.AppendVarint(dst, int64(l.Elem.Mod))
	for _, d := range l.Items {
		dst = appendDatum(dst, d)
	}
	return dst
}

// appendDatum encodes a value so that values that are the same in every way, and only these, have the same bytes.
func appendDatum(dst []byte, d types.Datum) []byte {
	dst = append(dst, byte(d.Kind()))
	switch d.Kind() {
	case types.KindBool:
		dst = appendBools(dst, []bool{d.Bool()})
	case types.KindInt:
		dst = binary.AppendVarint(dst, d.Int())
	case types.KindFloat:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.Float()))
	case types.KindString:
		dst = append(binary.AppendUvarint(dst, uint64(len(d.Str()))), d.Str()...)
	case types.KindDecimal:
		dst = d.Decimal().AppendBinary(dst)
	case types.KindInterval:
		dst = appendInterval(dst, d.Interval())
	case types.KindList:
		dst = appendList(dst, d.List())
	}
	return dst
}

// readRows decodes n rows of what appendRows wrote.
func readRows(b []byte, typs []types.Type, n int) (*chunk.Chunk, error) {
	r := &rowDecoder{b: b}
	out := &chunk.Chunk{Cols: make([]chunk.Column, len(typs)), N: n}
	for j, t := range typs {
		var nulls []bool
		if r.byte() == 1 {
			nulls = r.bools(n)
		}
		switch t.Kind() {
		case types.KindInt:
			data := make([]int64, n)
			if raw := r.take(8 * n); raw != nil {
				for i := range data {
					data[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
				}
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		case types.KindFloat:
			data := make([]float64, n)
			if raw := r.take(8 * n); raw != nil {
				for i := range data {
					data[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
				}
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		case types.KindBool:
			out.Cols[j] = chunk.NewVec(t, r.bools(n), nulls)
		case types.KindString:
			data := make([]string, n)
			ends := make([]int, n)
			total := 0
			for i := range ends {
				total += int(r.uvarint())
				ends[i] = total
			}
			all := string(r.take(total)) // one block of memory for all of them
			if len(all) < total {
				return nil, errRows
			}
			from := 0
			for i, to := range ends {
				data[i], from = all[from:to], to
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		case types.KindDecimal:
			data := make([]types.Decimal, n)
			for i := range data {
				data[i] = r.decimal()
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		case types.KindInterval:
			data := make([]types.Interval, n)
			for i := range data {
				data[i] = r.interval()
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		case types.KindList:
			data := make([]*types.List, n)
			for i := range data {
				if nulls == nil || !nulls[i] {
					data[i] = r.list(0)
				}
			}
			out.Cols[j] = chunk.NewVec(t, data, nulls)
		default:
			return nil, errRows
		}
		if r.bad {
			return nil, errRows
		}
	}
	if len(r.b) > 0 {
		return nil, errRows
	}
	return out, nil
}

// A rowDecoder takes values off b; once bad it gives zeros.
type rowDecoder struct {
	b   []byte
	bad bool
}

func (r *rowDecoder) fail() { r.bad, r.b = true, nil }

func (r *rowDecoder) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *rowDecoder) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *rowDecoder) bools(n int) []bool {
	out := make([]bool, n)
	for i, b := range r.take(n) {
		out[i] = b != 0
	}
	return out
}

func (r *rowDecoder) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowDecoder) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowDecoder) decimal() types.Decimal {
	d, rest, err := types.ReadBinary(r.b)
	if err != nil {
		r.fail()
		return types.Decimal{}
	}
	r.b = rest
	return d
}

func (r *rowDecoder) interval() types.Interval {
	return types.Interval{Months: int32(r.varint()), Days: int32(r.varint()), Micros: r.varint()}
}

func (r *rowDecoder) list(depth int) *types.List {
	l := &types.List{Lower: int(r.varint())}
	n := int(r.uvarint())
	l.Elem = types.Type{OID: uint32(r.uvarint()), Mod: int32(r.varint())}
	if n > len(r.b) || depth > 16 {
		r.fail()
		return l
	}
	l.Items = make([]types.Datum, n)
	for i := range l.Items {
		l.Items[i] = r.datum(depth)
	}
	return l
}

func (r *rowDecoder) datum(depth int) types.Datum {
	switch types.Kind(r.byte()) {
	case types.KindBool:
		return types.NewBool(r.byte() == 1)
	case types.KindInt:
		return types.NewInt(r.varint())
	case types.KindFloat:
		if raw := r.take(8); raw != nil {
			return types.NewFloat(math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
	case types.KindString:
		return types.NewString(string(r.take(int(r.uvarint()))))
	case types.KindDecimal:
		return types.NewDecimal(r.decimal())
	case types.KindInterval:
		return types.NewInterval(r.interval())
	case types.KindList:
		return types.NewList(r.list(depth + 1))
	case types.KindNull:
	default:
		r.fail()
	}
	return types.Datum{}
}
