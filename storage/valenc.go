package storage

import (
	"encoding/binary"
	"errors"
	"math"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A row's value is: format byte, number of columns (uvarint), with rowNulls a
// bitmap of NULLs, then the columns that are not NULL. A row written when its
// table had fewer columns reads as NULL in the later ones.
const (
	rowPlain byte = 0x01 // no column is NULL
	rowNulls byte = 0x02
)

var errCorrupt = errors.New("row bytes are damaged")

// A valCol is one column held in the value.
type valCol struct {
	col    int // in the schema
	kind   types.Kind
	float4 bool
	typ    types.Type
}

func (v *valCol) append(dst []byte, c chunk.Column, i int) []byte {
	switch v.kind {
	case types.KindInt:
		return binary.AppendVarint(dst, c.(*chunk.Vec[int64]).Data[i])
	case types.KindString:
		s := c.(*chunk.Vec[string]).Data[i]
		return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	case types.KindBool:
		if c.(*chunk.Vec[bool]).Data[i] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case types.KindFloat:
		f := c.(*chunk.Vec[float64]).Data[i]
		if v.float4 {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f)))
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	case types.KindDecimal:
		return c.(*chunk.Vec[types.Decimal]).Data[i].AppendBinary(dst)
	case types.KindInterval:
		return appendInterval(dst, c.(*chunk.Vec[types.Interval]).Data[i])
	case types.KindList:
		return appendList(dst, c.(*chunk.Vec[*types.List]).Data[i])
	}
	return dst
}

func appendInterval(dst []byte, v types.Interval) []byte {
	dst = binary.AppendVarint(dst, int64(v.Months))
	dst = binary.AppendVarint(dst, int64(v.Days))
	return binary.AppendVarint(dst, v.Micros)
}

func appendList(dst []byte, l *types.List) []byte {
	dst = binary.AppendVarint(dst, int64(l.Lower))
	dst = binary.AppendUvarint(dst, uint64(len(l.Items)))
	for _, d := range l.Items {
		dst = append(dst, byte(d.Kind()))
		switch d.Kind() {
		case types.KindBool:
			b := byte(0)
			if d.Bool() {
				b = 1
			}
			dst = append(dst, b)
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
	}
	return dst
}

func readVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errCorrupt
	}
	return v, b[n:], nil
}

func readBytes(b []byte) (s, rest []byte, err error) {
	if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) { // short strings
		n := 1 + int(b[0])
		return b[1:n], b[n:], nil
	}
	l, n := binary.Uvarint(b)
	if n <= 0 || l > uint64(len(b)-n) {
		return nil, nil, errCorrupt
	}
	return b[n : n+int(l)], b[n+int(l):], nil
}

func readInterval(b []byte) (v types.Interval, rest []byte, err error) {
	var part [3]int64
	for i := range part {
		if part[i], b, err = readVarint(b); err != nil {
			return v, nil, err
		}
	}
	return types.Interval{Months: int32(part[0]), Days: int32(part[1]), Micros: part[2]}, b, nil
}

// readList reads a list of elem; a nested list is of the same elem, as PostgreSQL's dimensions are.
func readList(b []byte, elem types.Type, depth int) (*types.List, []byte, error) {
	lower, b, err := readVarint(b)
	if err != nil {
		return nil, nil, err
	}
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) || depth > 16 {
		return nil, nil, errCorrupt
	}
	b = b[w:]
	l := &types.List{Elem: elem, Lower: int(lower), Items: make([]types.Datum, n)}
	for i := range l.Items {
		if len(b) == 0 {
			return nil, nil, errCorrupt
		}
		kind := types.Kind(b[0])
		b = b[1:]
		switch kind {
		case types.KindNull:
		case types.KindBool:
			if len(b) == 0 {
				return nil, nil, errCorrupt
			}
			l.Items[i], b = types.NewBool(b[0] != 0), b[1:]
		case types.KindInt:
			var v int64
			v, b, err = readVarint(b)
			l.Items[i] = types.NewInt(v)
		case types.KindFloat:
			if len(b) < 8 {
				return nil, nil, errCorrupt
			}
			l.Items[i], b = types.NewFloat(math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:]
		case types.KindString:
			var s []byte
			s, b, err = readBytes(b)
			l.Items[i] = types.NewString(string(s))
		case types.KindDecimal:
			var d types.Decimal
			d, b, err = types.ReadBinary(b)
			l.Items[i] = types.NewDecimal(d)
		case types.KindInterval:
			var v types.Interval
			v, b, err = readInterval(b)
			l.Items[i] = types.NewInterval(v)
		case types.KindList:
			var v *types.List
			v, b, err = readList(b, elem, depth+1)
			l.Items[i] = types.NewList(v)
		default:
			err = errCorrupt
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return l, b, nil
}
