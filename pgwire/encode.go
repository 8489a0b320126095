package pgwire

import (
	"encoding/binary"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

const (
	textFormat   = 0
	binaryFormat = 1
)

// A form is how the cells of a column are written; one switch a cell decides.
type form uint8

const (
	textInt    form = iota // plain decimal
	textIntAs              // a date, a time, a timestamp, … in int64
	textString             // the bytes as they are
	textStringAs
	textFloat
	textBool
	textDecimal
	textInterval
	textAny // by Datum
	binInt4
	binInt8
	binIntAs
	binString
	binStringAs
	binFloat
	binBool
	binDecimal
	binAny
)

// A cell is a column of the chunk being written, with its typed data.
type cell struct {
	form   form
	binary bool
	typ    types.Type
	nulls  []bool
	ints   []int64
	floats []float64
	strs   []string
	bools  []bool
	decs   []types.Decimal
	ivs    []types.Interval
	col    chunk.Column
}

// A rowWriter writes rows of chunks as DataRow messages.
type rowWriter struct {
	cells []cell
	style *types.Style
}

// newRowWriter makes a writer of n columns; formats is empty (all text), one for all or one each.
func newRowWriter(n int, formats []int16, st *types.Style) *rowWriter {
	w := &rowWriter{cells: make([]cell, n), style: st}
	for i := range w.cells {
		w.cells[i].binary = formatOf(formats, i) == binaryFormat
	}
	return w
}

func formatOf(formats []int16, i int) int16 {
	switch len(formats) {
	case 0:
		return textFormat
	case 1:
		return formats[0]
	}
	return formats[i]
}

// load makes c the chunk that row reads.
func (w *rowWriter) load(c *chunk.Chunk) {
	for i := range w.cells {
		x := &w.cells[i]
		col := c.Cols[i]
		*x = cell{binary: x.binary, typ: col.Type(), col: col}
		switch v := col.(type) {
		case *chunk.Vec[int64]:
			x.ints, x.nulls = v.Data, v.Nulls
			x.form = intForm(x.typ.OID, x.binary)
		case *chunk.Vec[float64]:
			x.floats, x.nulls = v.Data, v.Nulls
			x.form = pick(x.binary, binFloat, textFloat)
		case *chunk.Vec[string]:
			x.strs, x.nulls = v.Data, v.Nulls
			x.form = stringForm(x.typ.OID, x.binary)
		case *chunk.Vec[bool]:
			x.bools, x.nulls = v.Data, v.Nulls
			x.form = pick(x.binary, binBool, textBool)
		case *chunk.Vec[types.Decimal]:
			x.decs, x.nulls = v.Data, v.Nulls
			x.form = pick(x.binary, binDecimal, textDecimal)
		case *chunk.Vec[types.Interval]:
			x.ivs, x.nulls = v.Data, v.Nulls
			x.form = pick(x.binary, binAny, textInterval)
		default:
			x.form = pick(x.binary, binAny, textAny)
		}
	}
}

func pick(binary bool, b, t form) form {
	if binary {
		return b
	}
	return t
}

func intForm(oid uint32, binary bool) form {
	switch oid {
	case types.OIDInt4:
		return pick(binary, binInt4, textInt)
	case types.OIDInt8:
		return pick(binary, binInt8, textInt)
	case types.OIDInt2, types.OIDOid:
		return pick(binary, binIntAs, textInt)
	}
	return pick(binary, binIntAs, textIntAs)
}

func stringForm(oid uint32, binary bool) form {
	switch oid {
	case types.OIDText, types.OIDVarchar, types.OIDName:
		return pick(binary, binString, textString)
	case types.OIDBytea:
		return pick(binary, binString, textStringAs)
	}
	return pick(binary, binStringAs, textStringAs)
}

// row appends row i of the loaded chunk as a DataRow.
func (w *rowWriter) row(dst []byte, i int) []byte {
	start := len(dst)
	n := len(w.cells)
	dst = append(dst, 'D', 0, 0, 0, 0, byte(n>>8), byte(n))
	for k := range w.cells {
		x := &w.cells[k]
		if x.nulls != nil && x.nulls[i] || x.form == textAny && x.col.Null(i) || x.form == binAny && x.col.Null(i) {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		switch x.form {
		case textInt:
			dst = strconv.AppendInt(dst, x.ints[i], 10)
		case textIntAs:
			dst = types.AppendIntAs(dst, x.typ, x.ints[i], w.style)
		case textString, binString:
			dst = append(dst, x.strs[i]...)
		case textStringAs:
			dst = types.AppendStringAs(dst, x.typ, x.strs[i], w.style)
		case textFloat:
			dst = types.AppendFloatAs(dst, x.typ, x.floats[i], w.style)
		case textBool:
			dst = types.AppendBool(dst, x.bools[i])
		case textDecimal:
			dst = x.decs[i].AppendText(dst)
		case textInterval:
			dst = x.ivs[i].AppendText(dst, w.style.IntervalStyle)
		case textAny:
			dst = types.AppendText(dst, x.typ, x.col.Datum(i), w.style)
		case binInt4:
			dst = binary.BigEndian.AppendUint32(dst, uint32(x.ints[i]))
		case binInt8:
			dst = binary.BigEndian.AppendUint64(dst, uint64(x.ints[i]))
		case binIntAs:
			dst = types.AppendBinaryInt(dst, x.typ, x.ints[i])
		case binStringAs:
			dst = types.AppendBinaryString(dst, x.typ, x.strs[i])
		case binFloat:
			dst = types.AppendBinaryFloat(dst, x.typ, x.floats[i])
		case binBool:
			dst = append(dst, 0)
			if x.bools[i] {
				dst[len(dst)-1] = 1
			}
		case binDecimal:
			dst = x.decs[i].AppendWire(dst)
		case binAny:
			dst = types.AppendBinary(dst, x.typ, x.col.Datum(i))
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// rowDescription describes result columns.
func rowDescription(cols []engine.ResultColumn, formats []int16) *pgproto3.RowDescription {
	out := &pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, len(cols))}
	for i, c := range cols {
		out.Fields[i] = pgproto3.FieldDescription{Name: []byte(c.Name), TableOID: uint32(c.Rel), TableAttributeNumber: uint16(c.Att),
			DataTypeOID: wireOID(c.Type), DataTypeSize: typeSize(c.Type.OID), TypeModifier: c.Type.Typmod(), Format: formatOf(formats, i)}
	}
	return out
}

// wireOID is the type that clients are told of: an untyped literal is text.
func wireOID(t types.Type) uint32 {
	if t.OID == 0 || t.OID == types.OIDUnknown {
		return types.OIDText
	}
	return t.OID
}

// typeSize is pg_type.typlen: bytes, -1 for what varies.
func typeSize(oid uint32) int16 {
	switch oid {
	case types.OIDBool, types.OIDChar:
		return 1
	case types.OIDInt2:
		return 2
	case types.OIDInt4, types.OIDFloat4, types.OIDDate, types.OIDOid, types.OIDXid, types.OIDRegclass, types.OIDRegtype, types.OIDRegproc, types.OIDRegnamespace, types.OIDVoid:
		return 4
	case types.OIDTid:
		return 6
	case types.OIDInt8, types.OIDFloat8, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz:
		return 8
	case types.OIDAclitem:
		return 12
	case types.OIDInterval, types.OIDUUID:
		return 16
	case types.OIDName:
		return 64
	}
	return -1
}
