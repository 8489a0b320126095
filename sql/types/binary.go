package types

import (
	"encoding/binary"
	"math"
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
	case OIDJSONB, OIDJSONPath:
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
	case OIDInt4, OIDOid, OIDXid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole,
		OIDDate, OIDFloat4:
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
	case OIDOid, OIDXid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole:
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
	case OIDJSONB, OIDJSONPath:
		if len(b) == 0 || b[0] != 1 {
			return Datum{}, sqlerr.New("22P03", "unsupported %s version number", FormatType(t))
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
