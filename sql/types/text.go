package types

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

// ParseText reads a value of type t from PostgreSQL's text form and applies t's
// modifier as an assignment does: varchar(3) refuses a longer text (22001). For
// an explicit cast, parse t.Base() and use ApplyTypmod. regclass and its like
// are read as numbers; names are for those who know the catalog. st may be nil.
func ParseText(t Type, s string, st *Style) (Datum, error) {
	d, err := parseText(t, s, st.orDefault())
	if err != nil || t.Mod == 0 {
		return d, err
	}
	return ApplyTypmod(t, d, false)
}

func parseText(t Type, s string, st *Style) (Datum, error) {
	if t.Elem != nil {
		if t.OID == OIDInt2Vector || t.OID == OIDOidVector {
			return parseVector(t, s, st)
		}
		return parseArray(t, s, st)
	}
	switch t.OID {
	case OIDBool:
		v, err := ParseBool(s)
		return NewBool(v), err
	case OIDInt2:
		return intDatum(ParseInt(s, 16))
	case OIDInt4:
		return intDatum(ParseInt(s, 32))
	case OIDInt8:
		return intDatum(ParseInt(s, 64))
	case OIDOid, OIDXid, OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole:
		if s == "-" && t.OID != OIDOid && t.OID != OIDXid {
			return NewInt(0), nil
		}
		return intDatum(ParseOid(s, FormatType(t)))
	case OIDTid:
		return intDatum(parseTid(s))
	case OIDFloat4:
		v, err := ParseFloat4(s)
		return floatDatum(v, err)
	case OIDFloat8:
		v, err := ParseFloat8(s)
		return floatDatum(v, err)
	case OIDNumeric:
		v, err := ParseDecimal(s)
		if err != nil {
			return Datum{}, err
		}
		return NewDecimal(v), nil
	case OIDText, OIDVarchar, OIDUnknown, OIDNodeTree, OIDAclitem, OIDJSONPath:
		return NewString(s), nil
	case OIDBpchar:
		if t.Mod == 0 {
			s = strings.TrimRight(s, " ")
		}
		return NewString(s), nil
	case OIDName:
		return NewString(truncateName(s)), nil
	case OIDChar:
		return NewString(parseChar(s)), nil
	case OIDBytea:
		v, err := ParseBytea(s)
		if err != nil {
			return Datum{}, err
		}
		return NewString(v), nil
	case OIDUUID:
		v, err := parseUUID(s)
		if err != nil {
			return Datum{}, err
		}
		return NewString(v), nil
	case OIDJSON, OIDJSONB:
		v, err := parseJSON(s, t.OID == OIDJSONB)
		if err != nil {
			return Datum{}, err
		}
		return NewString(v), nil
	case OIDDate:
		return intDatum(ParseDate(s, st))
	case OIDTime:
		return intDatum(ParseTime(s, st))
	case OIDTimestamp:
		return intDatum(ParseTimestamp(s, st))
	case OIDTimestamptz:
		return intDatum(ParseTimestamptz(s, st))
	case OIDInterval:
		fields, _ := intervalTypmod(t)
		v, err := parseInterval(s, fields, st)
		if err != nil {
			return Datum{}, err
		}
		return NewInterval(v), nil
	case OIDVoid:
		return NewString(""), nil
	}
	return Datum{}, sqlerr.New(sqlerr.NotSupported, "cannot accept a value of type %s", FormatType(t))
}

func intDatum(v int64, err error) (Datum, error) {
	if err != nil {
		return Datum{}, err
	}
	return NewInt(v), nil
}

func floatDatum(v float64, err error) (Datum, error) {
	if err != nil {
		return Datum{}, err
	}
	return NewFloat(v), nil
}

// AppendText appends d's PostgreSQL text. A NULL d appends nothing: what stands
// for NULL is the caller's. st may be nil.
func AppendText(dst []byte, t Type, d Datum, st *Style) []byte {
	if d.IsNull() {
		return dst
	}
	st = st.orDefault()
	switch d.kind {
	case KindBool:
		return AppendBool(dst, d.n != 0)
	case KindInt:
		return AppendIntAs(dst, t, d.n, st)
	case KindFloat:
		return AppendFloatAs(dst, t, d.Float(), st)
	case KindString:
		return AppendStringAs(dst, t, d.s, st)
	case KindDecimal:
		return d.Decimal().AppendText(dst)
	case KindInterval:
		return d.Interval().AppendText(dst, st.IntervalStyle)
	case KindList:
		return d.List().appendText(dst, t, st)
	}
	panic(fmt.Sprintf("types: text of kind %d", d.kind))
}

// AppendBool appends t or f.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// AppendIntAs appends a value of a type held as int64.
func AppendIntAs(dst []byte, t Type, v int64, st *Style) []byte {
	st = st.orDefault()
	switch t.OID {
	case OIDDate:
		return appendDate(dst, v, st)
	case OIDTime:
		return AppendTime(dst, v)
	case OIDTimestamp:
		return appendTimestamp(dst, v, st)
	case OIDTimestamptz:
		return appendTimestamptz(dst, v, st)
	case OIDTid:
		dst = append(strconv.AppendInt(append(dst, '('), v>>16, 10), ',')
		return append(strconv.AppendInt(dst, v&0xffff, 10), ')')
	case OIDRegclass, OIDRegtype, OIDRegproc, OIDRegnamespace, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDRegrole:
		if v == 0 {
			return append(dst, '-')
		}
	}
	return strconv.AppendInt(dst, v, 10)
}

// AppendFloatAs appends a real or double precision.
func AppendFloatAs(dst []byte, t Type, v float64, st *Style) []byte {
	if st = st.orDefault(); st.RoundFloats {
		digits := 15
		if t.OID == OIDFloat4 {
			digits = 6
		}
		return appendRoundedFloat(dst, v, digits+st.ExtraFloatDigits)
	}
	if t.OID == OIDFloat4 {
		return AppendFloat4(dst, v)
	}
	return AppendFloat8(dst, v)
}

// AppendStringAs appends a value of a type held as string.
func AppendStringAs(dst []byte, t Type, v string, st *Style) []byte {
	switch t.OID {
	case OIDBytea:
		return AppendBytea(dst, v, st.orDefault().ByteaEscape)
	case OIDBpchar:
		return appendBpchar(dst, t, v)
	case OIDUUID:
		return appendUUID(dst, v)
	case OIDChar:
		if v == "\x00" {
			return dst
		}
	}
	return append(dst, v...)
}

// appendBpchar pads with blanks to the declared length: char(n) is held without its trailing blanks.
func appendBpchar(dst []byte, t Type, v string) []byte {
	dst = append(dst, v...)
	if n := charLimit(t); n >= 0 {
		for i := charCount(v); i < n; i++ {
			dst = append(dst, ' ')
		}
	}
	return dst
}

// Text is AppendText as a string with the default style, for messages and tests; NULL is "NULL".
func (d Datum) Text(t Type) string {
	if d.IsNull() {
		return "NULL"
	}
	return string(AppendText(nil, t, d, nil))
}

// ParseBool reads any beginning of true, false, yes, no, and on, off, 1, 0.
func ParseBool(s string) (bool, error) {
	t := strings.ToLower(trimSpace(s))
	for _, w := range []struct {
		word string
		min  int
		v    bool
	}{{"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false}, {"on", 2, true}, {"off", 2, false}, {"1", 1, true}, {"0", 1, false}} {
		if len(t) >= w.min && strings.HasPrefix(w.word, t) {
			return w.v, nil
		}
	}
	return false, errSyntax("boolean", s)
}

// ParseBytea reads \x hex or the escape form into raw bytes.
func ParseBytea(s string) (string, error) {
	if strings.HasPrefix(s, "\\x") {
		h := s[2:]
		if strings.ContainsAny(h, " \n\t\r") {
			h = strings.Map(func(r rune) rune {
				if r == ' ' || r == '\n' || r == '\t' || r == '\r' {
					return -1
				}
				return r
			}, h)
		}
		b, err := hex.DecodeString(h)
		if err != nil {
			if bad, ok := err.(hex.InvalidByteError); ok {
				return "", sqlerr.New(sqlerr.InvalidParameter, "invalid hexadecimal digit: \"%c\"", byte(bad))
			}
			return "", sqlerr.New(sqlerr.InvalidParameter, "invalid hexadecimal data: odd number of digits")
		}
		return string(b), nil
	}
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		if i+1 < len(s) && s[i+1] == '\\' {
			out = append(out, '\\')
			i += 2
			continue
		}
		if i+3 < len(s) && s[i+1] <= '3' && isOctal(s[i+1]) && isOctal(s[i+2]) && isOctal(s[i+3]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 4
			continue
		}
		return "", sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type bytea")
	}
	return string(out), nil
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// AppendBytea appends raw bytes as \x hex, or in the escape form.
func AppendBytea(dst []byte, v string, escape bool) []byte {
	if !escape {
		dst = append(dst, '\\', 'x')
		const digits = "0123456789abcdef"
		for i := range len(v) {
			dst = append(dst, digits[v[i]>>4], digits[v[i]&15])
		}
		return dst
	}
	for i := range len(v) {
		switch c := v[i]; {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// parseChar is the input of "char": one byte, also as \ooo.
func parseChar(s string) string {
	if len(s) == 4 && s[0] == '\\' && isOctal(s[1]) && isOctal(s[2]) && isOctal(s[3]) {
		return string([]byte{(s[1]-'0')<<6 | (s[2]-'0')<<3 | (s[3] - '0')})
	}
	if s == "" {
		return "\x00"
	}
	return s[:1]
}

// parseTid reads (block,offset).
func parseTid(s string) (int64, error) {
	t := trimSpace(s)
	if strings.HasPrefix(t, "(") && strings.HasSuffix(t, ")") {
		if a, b, ok := strings.Cut(t[1:len(t)-1], ","); ok {
			block, err1 := strconv.ParseUint(a, 10, 32)
			off, err2 := strconv.ParseUint(b, 10, 16)
			if err1 == nil && err2 == nil {
				return int64(block)<<16 | int64(off), nil
			}
		}
	}
	return 0, errSyntax("tid", s)
}
