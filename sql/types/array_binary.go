package types

import (
	"encoding/binary"
	"math"

	"streamdb/sql/sqlerr"
)

// appendBinary appends an array: dimensions, whether NULLs occur, the element type, bounds, and the elements
// each with its length.
func (l *List) appendBinary(dst []byte, t Type) []byte {
	elem := l.Elem
	if t.Elem != nil {
		elem = *t.Elem
		if elem.Mod == 0 && t.Elem.OID != OIDOid && t.Elem.OID != OIDInt2 {
			elem.Mod = t.Mod
		}
	}
	u32 := func(v int) { dst = binary.BigEndian.AppendUint32(dst, uint32(v)) }
	dims := l.Dims()
	nulls := 0
	if l.anyNull() {
		nulls = 1
	}
	vector := t.OID == OIDInt2Vector || t.OID == OIDOidVector
	if vector && len(dims) == 0 {
		dims = []int{0} // PostgreSQL's vectors have their dimension even when empty
	}
	u32(len(dims))
	u32(nulls)
	u32(int(elem.OID))
	x := l
	for _, n := range dims {
		u32(n)
		u32(x.Lower)
		if len(x.Items) > 0 && x.Items[0].kind == KindList {
			x = x.Items[0].List()
		}
	}
	return l.appendItems(dst, elem)
}

func (l *List) anyNull() bool {
	for _, d := range l.Items {
		if d.IsNull() || d.kind == KindList && d.List().anyNull() {
			return true
		}
	}
	return false
}

func (l *List) appendItems(dst []byte, elem Type) []byte {
	for _, d := range l.Items {
		if d.kind == KindList {
			dst = d.List().appendItems(dst, elem)
			continue
		}
		at := len(dst)
		dst = binary.BigEndian.AppendUint32(dst, math.MaxUint32)
		if d.IsNull() {
			continue
		}
		dst = AppendBinary(dst, elem, d)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// maxArrayItems bounds what a message can make us allocate.
const maxArrayItems = 1 << 27

func parseBinaryArray(t Type, b []byte) (Datum, error) {
	if len(b) < 12 {
		return Datum{}, errShort()
	}
	ndim := int(int32(binary.BigEndian.Uint32(b)))
	flags := binary.BigEndian.Uint32(b[4:])
	oid := binary.BigEndian.Uint32(b[8:])
	b = b[12:]
	if ndim < 0 {
		return Datum{}, sqlerr.New("22P03", "invalid number of dimensions: %d", ndim)
	}
	if ndim > maxDims {
		return Datum{}, sqlerr.New(sqlerr.ProgramLimit, "number of array dimensions (%d) exceeds the maximum allowed (%d)", ndim, maxDims)
	}
	if flags > 1 {
		return Datum{}, sqlerr.New("22P03", "invalid array flags")
	}
	elem := *t.Elem
	if oid != elem.OID {
		from, _ := ByOID(oid)
		return Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			oid, FormatType(from), elem.OID, FormatType(elem))
	}
	if len(b) < 8*ndim {
		return Datum{}, errShort()
	}
	dims, lowers, total := make([]int, ndim), make([]int, ndim), 1
	for i := range ndim {
		dims[i] = int(int32(binary.BigEndian.Uint32(b[8*i:])))
		lowers[i] = int(int32(binary.BigEndian.Uint32(b[8*i+4:])))
		if dims[i] < 0 || dims[i] > maxArrayItems || total*dims[i] > maxArrayItems {
			return Datum{}, sqlerr.New(sqlerr.ProgramLimit, "array size exceeds the maximum allowed (%d)", maxArrayItems)
		}
		total *= dims[i]
	}
	b = b[8*ndim:]
	vector := t.OID == OIDInt2Vector || t.OID == OIDOidVector
	if ndim == 0 || total == 0 {
		lower := 1
		if vector {
			lower = 0
		}
		if len(b) > 0 {
			return Datum{}, sqlerr.New("22P03", "incorrect binary data format")
		}
		return NewList(&List{Elem: elem, Lower: lower}), nil
	}
	if total > len(b)/4 {
		return Datum{}, errShort()
	}
	list, rest, err := readItems(elem, b, dims, lowers)
	if err != nil {
		return Datum{}, err
	}
	if len(rest) > 0 {
		return Datum{}, sqlerr.New("22P03", "incorrect binary data format")
	}
	return NewList(list), nil
}

func readItems(elem Type, b []byte, dims, lowers []int) (*List, []byte, error) {
	out := &List{Elem: elem, Lower: lowers[0], Items: make([]Datum, dims[0])}
	for i := range out.Items {
		if len(dims) > 1 {
			sub, rest, err := readItems(elem, b, dims[1:], lowers[1:])
			if err != nil {
				return nil, nil, err
			}
			out.Items[i], b = NewList(sub), rest
			continue
		}
		if len(b) < 4 {
			return nil, nil, errShort()
		}
		n := int(int32(binary.BigEndian.Uint32(b)))
		b = b[4:]
		if n == -1 {
			continue
		}
		if n < 0 || n > len(b) {
			return nil, nil, errShort()
		}
		d, err := ParseBinary(elem, b[:n])
		if err != nil {
			return nil, nil, err
		}
		out.Items[i], b = d, b[n:]
	}
	return out, b, nil
}
