package types

import (
	"strings"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
)

const maxNameBytes = 63

// truncateName cuts s to what a name can hold, between characters.
func truncateName(s string) string {
	if len(s) <= maxNameBytes {
		return s
	}
	n := maxNameBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// charCount is the number of characters in s.
func charCount(s string) int { return utf8.RuneCountInString(s) }

// charLimit is the n of varchar(n) and char(n), -1 for none.
func charLimit(t Type) int {
	if t.Mod == 0 {
		return -1
	}
	return int(t.Typmod()) - 4
}

// NumericTypmod is the precision and scale of numeric(p,s); ok is false for a plain numeric.
func NumericTypmod(t Type) (precision, scale int, ok bool) {
	if t.Mod == 0 {
		return 0, 0, false
	}
	m := int(t.Typmod()) - 4
	scale = m & 0x7ff
	if scale >= 1024 { // a scale of 11 bits with a sign
		scale -= 2048
	}
	return m >> 16 & 0xffff, scale, true
}

// WithNumeric is numeric(precision, scale).
func WithNumeric(precision, scale int) Type {
	return Type{OID: OIDNumeric, Mod: int32(precision<<16|scale&0x7ff) + 4 + 1}
}

// WithLength is t, a varchar or bpchar, of n characters.
func WithLength(t Type, n int) Type {
	t.Mod = int32(n) + 4 + 1
	return t
}

// WithPrecision is t, a time or timestamp type, with so many digits after the second.
func WithPrecision(t Type, digits int) Type {
	t.Mod = int32(digits) + 1
	return t
}

// ApplyTypmod fits d to t's modifier: numeric and times are rounded, a text too
// long is cut by an explicit cast and refused else (22001), unless only blanks go. Error 22003 for numeric.
func ApplyTypmod(t Type, d Datum, explicit bool) (Datum, error) {
	if d.IsNull() {
		return d, nil
	}
	if t.Elem != nil {
		if t.Elem.Mod == 0 && t.Mod == 0 {
			return d, nil
		}
		elem := *t.Elem
		if elem.Mod == 0 {
			elem.Mod = t.Mod
		}
		in := d.List()
		out := &List{Elem: in.Elem, Items: make([]Datum, len(in.Items)), Lower: in.Lower}
		for i, item := range in.Items {
			at := elem
			if item.kind == KindList {
				at = t
			}
			var err error
			if out.Items[i], err = ApplyTypmod(at, item, explicit); err != nil {
				return Datum{}, err
			}
		}
		return NewList(out), nil
	}
	switch t.OID {
	case OIDVarchar, OIDBpchar:
		s, err := fitText(t, d.s, explicit)
		return NewString(s), err
	}
	if t.Mod == 0 {
		return d, nil
	}
	switch t.OID {
	case OIDNumeric:
		p, s, _ := NumericTypmod(t)
		v, err := d.Decimal().ApplyTypmod(p, s)
		if err != nil {
			return Datum{}, err
		}
		return NewDecimal(v), nil
	case OIDTime, OIDTimestamp, OIDTimestamptz:
		return NewInt(RoundMicros(d.n, int(t.Typmod()))), nil
	case OIDInterval:
		v, err := d.Interval().fit(t)
		if err != nil {
			return Datum{}, err
		}
		return NewInterval(v), nil
	}
	return d, nil
}

// FitText applies the length of a varchar or char type to s; char(n) loses its
// trailing blanks, which are put back on output.
func FitText(t Type, s string, explicit bool) (string, error) { return fitText(t, s, explicit) }

func fitText(t Type, s string, explicit bool) (string, error) {
	n := charLimit(t)
	if n >= 0 && len(s) > n && charCount(s) > n {
		end := 0
		for range n {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
		if !explicit && strings.TrimRight(s[end:], " ") != "" {
			return "", sqlerr.New(sqlerr.StringTruncation, "value too long for type %s", FormatType(t))
		}
		s = s[:end]
	}
	if t.OID == OIDBpchar {
		s = strings.TrimRight(s, " ")
	}
	return s, nil
}

// RoundMicros rounds a time or timestamp in microseconds to so many digits after the second, half away from zero.
func RoundMicros(v int64, digits int) int64 {
	if digits >= 6 || digits < 0 || InfiniteTimestamp(v) {
		return v
	}
	unit := pow10Table[6-digits]
	if v >= 0 {
		return (v + unit/2) / unit * unit
	}
	return -((-v + unit/2) / unit * unit)
}

// fit drops the fields that interval types such as interval year to month do not have, and rounds the seconds.
func (iv Interval) fit(t Type) (Interval, error) {
	fields, digits := intervalTypmod(t)
	switch {
	case fields == rangeFull:
	case fields&(rangeSecond) != 0:
	case fields&rangeMinute != 0:
		iv.Micros = iv.Micros / microsPerMinute * microsPerMinute
	case fields&rangeHour != 0:
		iv.Micros = iv.Micros / microsPerHour * microsPerHour
	case fields&rangeDay != 0:
		iv.Micros = 0
	case fields&rangeMonth != 0:
		iv.Days, iv.Micros = 0, 0
	case fields&rangeYear != 0:
		iv.Months, iv.Days, iv.Micros = iv.Months/12*12, 0, 0
	}
	iv.Micros = RoundMicros(iv.Micros, digits)
	return iv, nil
}
