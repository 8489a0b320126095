package types

import (
	"encoding/binary"
	"strings"

	"streamdb/sql/sqlerr"
)

// appendStruct appends a struct as PostgreSQL writes a row: (1,"a b",).
func appendStruct(dst []byte, t Type, v string, st *Style) []byte {
	vals, err := ReadStruct(t, v)
	if err != nil {
		return append(dst, "???"...)
	}
	dst = append(dst, '(')
	for i, d := range vals {
		if i > 0 {
			dst = append(dst, ',')
		}
		if d.IsNull() {
			continue
		}
		start := len(dst)
		dst = AppendText(dst, (*t.Fields)[i].Type, d, st)
		dst = quoteField(dst, start)
	}
	return append(dst, ')')
}

// quoteField puts dst[start:] in quotes where a row needs them.
func quoteField(dst []byte, start int) []byte {
	text := string(dst[start:])
	if text != "" && !strings.ContainsAny(text, "\"\\(), \t\n\r\v\f") {
		return dst
	}
	dst = append(dst[:start], '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			dst = append(dst, text[i])
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

// parseStruct reads a row of the struct type t.
func parseStruct(t Type, s string, st *Style) (Datum, error) {
	bad := func(detail string) (Datum, error) {
		return Datum{}, sqlerr.New(sqlerr.InvalidText, "malformed record literal: \"%s\"", s).WithDetail("%s", detail)
	}
	if t.Fields == nil {
		return Datum{}, sqlerr.New(sqlerr.NotSupported, "input of anonymous composite types is not implemented")
	}
	rest := strings.TrimLeft(s, " \t\n\r\v\f")
	if !strings.HasPrefix(rest, "(") {
		return bad("Missing left parenthesis.")
	}
	rest = rest[1:]
	vals := make([]Datum, len(*t.Fields))
	for i, f := range *t.Fields {
		if i > 0 {
			if !strings.HasPrefix(rest, ",") {
				return bad("Too few columns.")
			}
			rest = rest[1:]
		}
		if rest != "" && (rest[0] == ',' || rest[0] == ')') {
			continue
		}
		var b strings.Builder
		for quoted := false; ; {
			if rest == "" {
				return bad("Unexpected end of input.")
			}
			c := rest[0]
			if !quoted && (c == ',' || c == ')') {
				break
			}
			rest = rest[1:]
			switch {
			case c == '\\':
				if rest == "" {
					return bad("Unexpected end of input.")
				}
				b.WriteByte(rest[0])
				rest = rest[1:]
			case c == '"' && !quoted:
				quoted = true
			case c == '"' && strings.HasPrefix(rest, `"`):
				b.WriteByte('"')
				rest = rest[1:]
			case c == '"':
				quoted = false
			default:
				b.WriteByte(c)
			}
		}
		var err error
		if vals[i], err = ParseText(f.Type, b.String(), st); err != nil {
			return Datum{}, err
		}
	}
	switch {
	case strings.HasPrefix(rest, ","):
		return bad("Too many columns.")
	case !strings.HasPrefix(rest, ")"):
		return bad("Too few columns.")
	case strings.TrimLeft(rest[1:], " \t\n\r\v\f") != "":
		return bad("Junk after right parenthesis.")
	}
	return NewStruct(vals), nil
}

// appendMap appends a map as {key:value,…}, quoted as elements of arrays are.
func appendMap(dst []byte, t Type, v string, st *Style) []byte {
	keys, vals, err := ReadMap(t, v)
	if err != nil {
		return append(dst, "???"...)
	}
	kt, vt := t.MapTypes()
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMapPart(dst, kt, k, st)
		dst = appendMapPart(append(dst, ':'), vt, vals[i], st)
	}
	return append(dst, '}')
}

func appendMapPart(dst []byte, t Type, d Datum, st *Style) []byte {
	if d.IsNull() {
		return append(dst, "NULL"...)
	}
	start := len(dst)
	dst = AppendText(dst, t, d, st)
	text := string(dst[start:])
	if text != "" && !strings.EqualFold(text, "null") && !strings.ContainsAny(text, "\"\\{}:, \t\n\r\v\f") {
		return dst
	}
	return append(append(append(dst[:start], '"'), strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)...), '"')
}

// parseMap reads what appendMap writes.
func parseMap(t Type, s string, st *Style) (Datum, error) {
	bad := func() (Datum, error) {
		return Datum{}, sqlerr.New(sqlerr.InvalidText, "malformed map literal: \"%s\"", s)
	}
	rest := strings.TrimSpace(s)
	if len(rest) < 2 || rest[0] != '{' || rest[len(rest)-1] != '}' || t.Fields == nil {
		return bad()
	}
	rest = strings.TrimSpace(rest[1 : len(rest)-1])
	part := func() (text string, quoted, ok bool) {
		rest = strings.TrimLeft(rest, " \t\n\r")
		var b strings.Builder
		if strings.HasPrefix(rest, `"`) {
			for i := 1; i < len(rest); i++ {
				switch {
				case rest[i] == '"':
					rest = strings.TrimLeft(rest[i+1:], " \t\n\r")
					return b.String(), true, true
				case rest[i] == '\\' && i+1 < len(rest):
					i++
				}
				b.WriteByte(rest[i])
			}
			return "", false, false
		}
		n := strings.IndexAny(rest, ":,")
		if n < 0 {
			n = len(rest)
		}
		text, rest = strings.TrimSpace(rest[:n]), rest[n:]
		return text, false, text != ""
	}
	kt, vt := t.MapTypes()
	var keys, vals []Datum
	for rest != "" {
		k, _, ok := part()
		if !ok || !strings.HasPrefix(rest, ":") {
			return bad()
		}
		rest = rest[1:]
		v, quoted, ok := part()
		if !ok {
			return bad()
		}
		key, err := ParseText(kt, k, st)
		if err != nil {
			return Datum{}, err
		}
		val := Datum{}
		if quoted || !strings.EqualFold(v, "null") {
			if val, err = ParseText(vt, v, st); err != nil {
				return Datum{}, err
			}
		}
		keys, vals = append(keys, key), append(vals, val)
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return bad()
		}
		if rest = rest[1:]; strings.TrimSpace(rest) == "" {
			return bad()
		}
	}
	return NewMap(keys, vals)
}

// appendStructBinary appends a struct as record_send does: the number of fields,
// and of each its type's OID, length and value.
func appendStructBinary(dst []byte, t Type, v string) []byte {
	vals, err := ReadStruct(t, v)
	if err != nil {
		return dst
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(vals)))
	for i, d := range vals {
		ft := (*t.Fields)[i].Type
		dst = binary.BigEndian.AppendUint32(dst, ft.OID)
		if d.IsNull() {
			dst = binary.BigEndian.AppendUint32(dst, 0xffffffff)
			continue
		}
		at := len(dst)
		dst = AppendBinary(append(dst, 0, 0, 0, 0), ft, d)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// parseStructBinary reads what record_send writes, for a struct type.
func parseStructBinary(t Type, b []byte) (Datum, error) {
	if t.Fields == nil {
		return Datum{}, sqlerr.New(sqlerr.NotSupported, "input of anonymous composite types is not implemented")
	}
	if len(b) < 4 {
		return Datum{}, errShort()
	}
	n := binary.BigEndian.Uint32(b)
	b = b[4:]
	if int(n) != len(*t.Fields) {
		return Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "wrong number of columns: %d, expected %d", n, len(*t.Fields))
	}
	vals := make([]Datum, n)
	for i, f := range *t.Fields {
		if len(b) < 8 {
			return Datum{}, errShort()
		}
		if oid := binary.BigEndian.Uint32(b); oid != f.Type.OID {
			return Datum{}, sqlerr.New(sqlerr.DatatypeMismatch, "binary data has type %d instead of expected %d in record column %d", oid, f.Type.OID, i+1)
		}
		size := int32(binary.BigEndian.Uint32(b[4:]))
		b = b[8:]
		if size < 0 {
			continue
		}
		if int(size) > len(b) {
			return Datum{}, errShort()
		}
		var err error
		if vals[i], err = ParseBinary(f.Type, b[:size]); err != nil {
			return Datum{}, err
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return Datum{}, errBinary("record")
	}
	return NewStruct(vals), nil
}
