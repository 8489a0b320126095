package types

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
)

// AppendBinary appends d in PostgreSQL's binary wire format for t. A NULL d appends nothing: the length -1 that
// stands for it is the caller's.
func AppendBinary(dst []byte, t Type, d Datum) []byte {
	switch d.kind {
	case KindBool:
		if d.n != 0 {
			return append(dst, 1)
		}
		return append(dst, 0)
	case KindInt:
		return AppendBinaryInt(dst, t, d.n)
	case KindFloat:
		return AppendBinaryFloat(dst, t, d.Float())
	case KindString:
		return AppendBinaryString(dst, t, d.s)
	case KindDecimal:
		return d.Decimal().AppendWire(dst)
	case KindInterval:
		iv := d.Interval()
		dst = binary.BigEndian.AppendUint64(dst, uint64(iv.Micros))
		dst = binary.BigEndian.AppendUint32(dst, uint32(iv.Days))
		return binary.BigEndian.AppendUint32(dst, uint32(iv.Months))
	case KindList:
		return d.List().appendBinary(dst, t)
	}
	return dst
}

// AppendBinaryInt appends a value of a type held as int64.
func AppendBinaryInt(dst []byte, t Type, v int64) []byte {
	switch t.OID {
	case OIDInt2:
		return binary.BigEndian.AppendUint16(dst, uint16(v))
	case OIDInt8, OIDTime, OIDTimestamp, OIDTimestamptz:
		return binary.BigEndian.AppendUint64(dst, uint64(v))
	case OIDTid:
		dst = binary.BigEndian.AppendUint32(dst, uint32(v>>16))
		return binary.BigEndian.AppendUint16(dst, uint16(v))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(v)) // int4, date, oid and its like
}

// AppendBinaryFloat appends a real or double precision.
func AppendBinaryFloat(dst []byte, t Type, v float64) []byte {
	if v != v { // Go's NaN has other bits than C's
		if t.OID == OIDFloat4 {
			return binary.BigEndian.AppendUint32(dst, 0x7fc00000)
		}
		return binary.BigEndian.AppendUint64(dst, 0x7ff8<<48)
	}
	if t.OID == OIDFloat4 {
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
}

// AppendBinaryString appends a value of a type held as string.
func AppendBinaryString(dst []byte, t Type, v string) []byte {
	switch t.OID {
	case OIDBpchar:
		return appendBpchar(dst, t, v)
	case OIDJSONB:
		dst = append(dst, 1) // the format's version
	}
	return append(dst, v...)
}

func errBinary(typ string) error {
	return sqlerr.New("22P03", "incorrect binary data format in %s", typ)
}

// errShort is PostgreSQL's error for a value that ends too soon.
func errShort() error {
	return sqlerr.New(sqlerr.ProtocolViolation, "insufficient data left in message")
}

// ParseBinary reads a value of type t from PostgreSQL's binary wire format and applies t's modifier as ParseText
// does. Errors 22P03, 08P01, 22021 for text that is not UTF-8, and those of the type.
func ParseBinary(t Type, b []byte) (Datum, error) {
	d, err := parseBinary(t, b)
	if err != nil || t.Mod == 0 {
		return d, err
	}
	return ApplyTypmod(t, d, false)
}

// binaryWidth is the number of bytes of the types whose number is fixed; 0: another.
func binaryWidth(t Type) int {
	switch t.OID {
	case OIDBool:
		return 1
	case OIDInt2:
		return 2
	case OIDInt4, OIDOid, OIDXid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDDate, OIDFloat4:
		return 4
	case OIDTid:
		return 6
	case OIDInt8, OIDTime, OIDTimestamp, OIDTimestamptz, OIDFloat8:
		return 8
	case OIDInterval, OIDUUID:
		return 16
	}
	return 0
}

func parseBinary(t Type, b []byte) (Datum, error) {
	if t.Elem != nil {
		return parseBinaryArray(t, b)
	}
	if w := binaryWidth(t); w > 0 && len(b) != w {
		if len(b) < w {
			return Datum{}, errShort()
		}
		return Datum{}, sqlerr.New("22P03", "incorrect binary data format")
	}
	switch t.OID {
	case OIDBool:
		return NewBool(b[0] != 0), nil
	case OIDInt2:
		return NewInt(int64(int16(binary.BigEndian.Uint16(b)))), nil
	case OIDInt4:
		return NewInt(int64(int32(binary.BigEndian.Uint32(b)))), nil
	case OIDDate:
		v := int64(int32(binary.BigEndian.Uint32(b)))
		if !InfiniteDate(v) && !ValidDate(v) {
			return Datum{}, sqlerr.New(sqlerr.DatetimeOverflow, "date out of range")
		}
		return NewInt(v), nil
	case OIDOid, OIDXid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace:
		return NewInt(int64(binary.BigEndian.Uint32(b))), nil
	case OIDTid:
		return NewInt(int64(binary.BigEndian.Uint32(b))<<16 | int64(binary.BigEndian.Uint16(b[4:]))), nil
	case OIDInt8:
		return NewInt(int64(binary.BigEndian.Uint64(b))), nil
	case OIDTime:
		v := int64(binary.BigEndian.Uint64(b))
		if v < 0 || v > microsPerDay {
			return Datum{}, sqlerr.New(sqlerr.DatetimeOverflow, "time out of range")
		}
		return NewInt(v), nil
	case OIDTimestamp, OIDTimestamptz:
		v := int64(binary.BigEndian.Uint64(b))
		if !InfiniteTimestamp(v) && !ValidTimestamp(v) {
			return Datum{}, errTimestampRange()
		}
		return NewInt(v), nil
	case OIDFloat4:
		return NewFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b)))), nil
	case OIDFloat8:
		return NewFloat(math.Float64frombits(binary.BigEndian.Uint64(b))), nil
	case OIDInterval:
		return NewInterval(Interval{
			Micros: int64(binary.BigEndian.Uint64(b)), Days: int32(binary.BigEndian.Uint32(b[8:])), Months: int32(binary.BigEndian.Uint32(b[12:])),
		}), nil
	case OIDNumeric:
		v, err := DecimalFromWire(b)
		if err != nil {
			return Datum{}, err
		}
		return NewDecimal(v), nil
	case OIDBytea, OIDUUID:
		return NewString(string(b)), nil
	case OIDChar:
		if len(b) != 1 {
			return Datum{}, errBinary("\"char\"")
		}
		return NewString(string(b)), nil
	case OIDJSONB:
		if len(b) == 0 || b[0] != 1 {
			return Datum{}, sqlerr.New("22P03", "unsupported jsonb version number")
		}
		s, err := utf8Text(b[1:])
		if err != nil {
			return Datum{}, err
		}
		return parseText(t, s, defaultStyle)
	case OIDText, OIDVarchar, OIDBpchar, OIDName, OIDUnknown, OIDJSON, OIDNodeTree, OIDAclitem:
		s, err := utf8Text(b)
		if err != nil {
			return Datum{}, err
		}
		return parseText(t, s, defaultStyle)
	case OIDVoid:
		return NewString(""), nil
	}
	return Datum{}, sqlerr.New(sqlerr.NotSupported, "no binary input function available for type %s", FormatType(t))
}

// utf8Text checks that b is text a database of encoding UTF8 can hold.
func utf8Text(b []byte) (string, error) {
	s := string(b)
	return s, CheckUTF8(s)
}

// CheckUTF8 is PostgreSQL's error 22021 where s is not UTF-8 or holds a zero byte.
func CheckUTF8(s string) error {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return nil
	}
	for i, r := range s {
		if r != utf8.RuneError && r != 0 {
			continue
		}
		if _, n := utf8.DecodeRuneInString(s[i:]); n > 1 {
			continue // the replacement character itself
		}
		const digits = "0123456789abcdef"
		n := 1
		switch {
		case s[i] >= 0xf0:
			n = 4
		case s[i] >= 0xe0:
			n = 3
		case s[i] >= 0xc0:
			n = 2
		}
		var seq []byte
		for j := i; j < min(i+n, len(s)); j++ {
			if j > i {
				seq = append(seq, ' ')
			}
			seq = append(seq, '0', 'x', digits[s[j]>>4], digits[s[j]&15])
		}
		return sqlerr.New("22021", "invalid byte sequence for encoding \"UTF8\": %s", seq)
	}
	return nil
}

// Signs of numeric on the wire.
const (
	wirePositive = 0x0000
	wireNegative = 0x4000
	wireNaN      = 0xC000
	wireInf      = 0xD000
	wireNegInf   = 0xF000
)

// AppendWire appends d as PostgreSQL's binary numeric: digits in base 10000.
func (d Decimal) AppendWire(dst []byte) []byte {
	head := func(n, weight int, sign uint16, scale int) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
		dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
	}
	switch d.rank() {
	case 2:
		head(0, 0, wireNaN, 0)
		return dst
	case 1:
		head(0, 0, wireInf, 0x20)
		return dst
	case -1:
		head(0, 0, wireNegInf, 0x20)
		return dst
	}
	sign := uint16(wirePositive)
	if d.Sign() < 0 {
		sign = wireNegative
	}
	scale := d.Scale()
	var buf [24]byte
	text := buf[:0]
	if d.big == nil {
		text = NewDecimalInt(d.coef).AppendText(text)
	} else {
		text = d.big.Coeff.Append(text, 10)
	}
	if text[0] == '-' {
		text = text[1:]
	}
	// Groups of four digits, counted from the point.
	point := len(text) - scale         // digits before the point; ≤ 0: zeros follow it
	weight := floorDiv(point+3, 4) - 1 // of the first group
	lead := point - 4*weight           // digits of text in the first group, 1 … 4
	var groups []uint16
	for i := lead - 4; i < len(text); i += 4 {
		g := uint16(0)
		for j := i; j < i+4; j++ {
			g *= 10
			if j >= 0 && j < len(text) {
				g += uint16(text[j] - '0')
			}
		}
		groups = append(groups, g)
	}
	for len(groups) > 0 && groups[0] == 0 {
		groups = groups[1:]
		weight--
	}
	for len(groups) > 0 && groups[len(groups)-1] == 0 {
		groups = groups[:len(groups)-1]
	}
	if len(groups) == 0 {
		weight = 0
	}
	head(len(groups), weight, sign, scale)
	for _, g := range groups {
		dst = binary.BigEndian.AppendUint16(dst, g)
	}
	return dst
}

// DecimalFromWire reads PostgreSQL's binary numeric; errors 22P03, 08P01.
func DecimalFromWire(b []byte) (Decimal, error) {
	if len(b) < 8 {
		return Decimal{}, errShort()
	}
	n := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	if len(b) < 8+2*n {
		return Decimal{}, errShort()
	}
	if len(b) > 8+2*n {
		return Decimal{}, sqlerr.New("22P03", "incorrect binary data format")
	}
	switch sign {
	case wireNaN:
		return DecimalNaN, nil
	case wireInf:
		return DecimalInf, nil
	case wireNegInf:
		return DecimalNegInf, nil
	case wirePositive, wireNegative:
	default:
		return Decimal{}, sqlerr.New("22P03", "invalid sign in external \"numeric\" value")
	}
	if scale > maxDecimalScale {
		return Decimal{}, sqlerr.New("22P03", "invalid scale in external \"numeric\" value")
	}
	var small int64
	var wide *big.Int
	for i := range n {
		g := int64(binary.BigEndian.Uint16(b[8+2*i:]))
		if g >= 10000 {
			return Decimal{}, sqlerr.New("22P03", "invalid digit in external \"numeric\" value")
		}
		if wide == nil && small < math.MaxInt64/10000-1 {
			small = small*10000 + g
			continue
		}
		if wide == nil {
			wide = big.NewInt(small)
		}
		wide.Mul(wide, big.NewInt(10000))
		wide.Add(wide, big.NewInt(g))
	}
	if wide == nil {
		wide = big.NewInt(small)
	}
	if sign == wireNegative {
		wide.Neg(wide)
	}
	// The digits are at 10000^(weight-n+1); PostgreSQL cuts what the scale does not show.
	exp := 4 * (weight - n + 1)
	if n == 0 {
		exp = 0
	}
	if exp >= 0 {
		wide.Mul(wide, bigPow10(exp))
		exp = 0
	}
	if scale >= -exp {
		wide.Mul(wide, bigPow10(scale+exp))
	} else {
		wide.Quo(wide, bigPow10(-exp-scale))
	}
	d := NewDecimalBig(wide, scale)
	return d, d.Check()
}

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
