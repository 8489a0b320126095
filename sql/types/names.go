package types

import (
	"strconv"
	"strings"
)

// More of PostgreSQL's object identifiers of types.
const (
	OIDJSON  = 114
	OIDUUID  = 2950
	OIDJSONB = 3802

	OIDJSONPath = 4072
)

// UUID values are held as their 16 bytes, JSON as written, JSONB as its canonical text, paths as
// PostgreSQL writes them (package jsonpath reads them).
var (
	UUID         = Type{OID: OIDUUID}
	JSON         = Type{OID: OIDJSON}
	JSONB        = Type{OID: OIDJSONB}
	JSONPath     = Type{OID: OIDJSONPath}
	Tid          = Type{OID: OIDTid}
	Aclitem      = Type{OID: OIDAclitem}
	Any          = Type{OID: OIDAny}
	AnyArray     = Type{OID: OIDAnyArray}
	AnyElement   = Type{OID: OIDAnyElement}
	Regnamespace = Type{OID: OIDRegnamespace}
)

// An Info is what pg_type says of a type.
type Info struct {
	OID       uint32
	Name      string // typname
	SQLName   string // format_type without a modifier
	Len       int16  // typlen: -1 varying, -2 a C string
	ByVal     bool
	Category  byte // typcategory
	Preferred bool
	Align     byte   // typalign: c, s, i, d
	Storage   byte   // typstorage: p, x, m
	Kind      byte   // typtype: b base, p pseudo
	Elem      uint32 // typelem; 0: none
	Array     uint32 // OID of the array over it; 0: none
}

// scalarInfos has a row for every type that is not an array, by OID.
var scalarInfos = []Info{
	{OIDBool, "bool", "boolean", 1, true, 'B', true, 'c', 'p', 'b', 0, 1000},
	{OIDBytea, "bytea", "bytea", -1, false, 'U', false, 'i', 'x', 'b', 0, 1001},
	{OIDChar, "char", "\"char\"", 1, true, 'Z', false, 'c', 'p', 'b', 0, 1002},
	{OIDName, "name", "name", 64, false, 'S', false, 'c', 'p', 'b', OIDChar, 1003},
	{OIDInt8, "int8", "bigint", 8, true, 'N', false, 'd', 'p', 'b', 0, 1016},
	{OIDInt2, "int2", "smallint", 2, true, 'N', false, 's', 'p', 'b', 0, 1005},
	{OIDInt2Vector, "int2vector", "int2vector", -1, false, 'A', false, 'i', 'p', 'b', OIDInt2, 1006},
	{OIDInt4, "int4", "integer", 4, true, 'N', false, 'i', 'p', 'b', 0, 1007},
	{OIDRegproc, "regproc", "regproc", 4, true, 'N', false, 'i', 'p', 'b', 0, 1008},
	{OIDText, "text", "text", -1, false, 'S', true, 'i', 'x', 'b', 0, 1009},
	{OIDOid, "oid", "oid", 4, true, 'N', true, 'i', 'p', 'b', 0, 1028},
	{OIDTid, "tid", "tid", 6, false, 'U', false, 's', 'p', 'b', 0, 1010},
	{OIDXid, "xid", "xid", 4, true, 'U', false, 'i', 'p', 'b', 0, 1011},
	{OIDOidVector, "oidvector", "oidvector", -1, false, 'A', false, 'i', 'p', 'b', OIDOid, 1013},
	{OIDJSON, "json", "json", -1, false, 'U', false, 'i', 'x', 'b', 0, 199},
	{OIDNodeTree, "pg_node_tree", "pg_node_tree", -1, false, 'Z', false, 'i', 'x', 'b', 0, 0},
	{OIDFloat4, "float4", "real", 4, true, 'N', false, 'i', 'p', 'b', 0, 1021},
	{OIDFloat8, "float8", "double precision", 8, true, 'N', true, 'd', 'p', 'b', 0, 1022},
	{OIDUnknown, "unknown", "unknown", -2, false, 'X', false, 'c', 'p', 'p', 0, 0},
	{OIDAclitem, "aclitem", "aclitem", 12, false, 'U', false, 'i', 'p', 'b', 0, 1034},
	{OIDBpchar, "bpchar", "character", -1, false, 'S', false, 'i', 'x', 'b', 0, 1014},
	{OIDVarchar, "varchar", "character varying", -1, false, 'S', false, 'i', 'x', 'b', 0, 1015},
	{OIDDate, "date", "date", 4, true, 'D', false, 'i', 'p', 'b', 0, 1182},
	{OIDTime, "time", "time without time zone", 8, true, 'D', false, 'd', 'p', 'b', 0, 1183},
	{OIDTimestamp, "timestamp", "timestamp without time zone", 8, true, 'D', false, 'd', 'p', 'b', 0, 1115},
	{OIDTimestamptz, "timestamptz", "timestamp with time zone", 8, true, 'D', true, 'd', 'p', 'b', 0, 1185},
	{OIDInterval, "interval", "interval", 16, false, 'T', true, 'd', 'p', 'b', 0, 1187},
	{OIDNumeric, "numeric", "numeric", -1, false, 'N', false, 'i', 'm', 'b', 0, 1231},
	{OIDRegprocedure, "regprocedure", "regprocedure", 4, true, 'N', false, 'i', 'p', 'b', 0, 2207},
	{OIDRegoper, "regoper", "regoper", 4, true, 'N', false, 'i', 'p', 'b', 0, 2208},
	{OIDRegoperator, "regoperator", "regoperator", 4, true, 'N', false, 'i', 'p', 'b', 0, 2209},
	{OIDRegclass, "regclass", "regclass", 4, true, 'N', false, 'i', 'p', 'b', 0, 2210},
	{OIDRegtype, "regtype", "regtype", 4, true, 'N', false, 'i', 'p', 'b', 0, 2211},
	{OIDRecord, "record", "record", -1, false, 'P', false, 'd', 'x', 'p', 0, 2287},
	{OIDAny, "any", "\"any\"", 4, true, 'P', false, 'i', 'p', 'p', 0, 0},
	{OIDAnyArray, "anyarray", "anyarray", -1, false, 'P', false, 'd', 'x', 'p', 0, 0},
	{OIDVoid, "void", "void", 4, true, 'P', false, 'i', 'p', 'p', 0, 0},
	{OIDAnyElement, "anyelement", "anyelement", 4, true, 'P', false, 'i', 'p', 'p', 0, 0},
	{OIDUUID, "uuid", "uuid", 16, false, 'U', false, 'c', 'p', 'b', 0, 2951},
	{OIDJSONB, "jsonb", "jsonb", -1, false, 'U', false, 'i', 'x', 'b', 0, 3807},
	{OIDJSONPath, "jsonpath", "jsonpath", -1, false, 'U', false, 'i', 'x', 'b', 0, 4073},
	{OIDRegnamespace, "regnamespace", "regnamespace", 4, true, 'N', false, 'i', 'p', 'b', 0, 4090},
	{OIDRegrole, "regrole", "regrole", 4, true, 'N', false, 'i', 'p', 'b', 0, 4097},
}

// allInfos is scalarInfos and their arrays.
var allInfos = func() []Info {
	out := append([]Info(nil), scalarInfos...)
	for _, s := range scalarInfos {
		if s.Array == 0 {
			continue
		}
		align := byte('i')
		if s.Align == 'd' {
			align = 'd'
		}
		kind, category := byte('b'), byte('A')
		if s.OID == OIDRecord {
			kind, category = 'p', 'P'
		}
		out = append(out, Info{
			OID: s.Array, Name: "_" + s.Name, SQLName: s.SQLName + "[]", Len: -1, Category: category, Align: align,
			Storage: 'x', Kind: kind, Elem: s.OID,
		})
	}
	return out
}()

var infoByOID = func() map[uint32]int {
	m := make(map[uint32]int, len(allInfos))
	for i, info := range allInfos {
		m[info.OID] = i
	}
	return m
}()

// All is every type we know, arrays after scalars; callers must not change it.
func All() []Info { return allInfos }

// InfoOf is what pg_type says of the type with that OID.
func InfoOf(oid uint32) (Info, bool) {
	i, ok := infoByOID[oid]
	if !ok {
		return Info{}, false
	}
	return allInfos[i], true
}

// ByOID is the type with that OID and no modifier; arrays have their Elem.
func ByOID(oid uint32) (Type, bool) {
	info, ok := InfoOf(oid)
	if !ok {
		return Type{}, false
	}
	t := Type{OID: oid}
	if info.Category == 'A' || oid == 2287 {
		t.Elem = &Type{OID: info.Elem}
	}
	return t, true
}

// ArrayOf is the type of arrays over t, which keeps its modifier in Elem; OID 0
// where there is none. An array of arrays is the array itself: dimensions are not part of the type.
func ArrayOf(t Type) Type {
	if t.Elem != nil && t.OID != OIDInt2Vector && t.OID != OIDOidVector {
		return t
	}
	info, ok := InfoOf(t.OID)
	if !ok {
		return Type{}
	}
	elem := t
	return Type{OID: info.Array, Mod: t.Mod, Elem: &elem}
}

// sqlNames are names of types beside those in pg_type.
var sqlNames = map[string]Type{
	"boolean": Bool, "smallint": Int2, "int": Int4, "integer": Int4, "bigint": Int8, "real": Float4, "float": Float8,
	"double precision": Float8, "double": Float8, "decimal": Numeric, "dec": Numeric, "character varying": Varchar, "string": Varchar,
	"character": WithLength(Bpchar, 1), "time without time zone": Time, "timestamp without time zone": Timestamp,
	"timestamp with time zone": Timestamptz, "smallserial": Int2, "serial2": Int2, "serial": Int4, "serial4": Int4, "bigserial": Int8, "serial8": Int8,
	"\"char\"": Char, "char": WithLength(Bpchar, 1), "\"any\"": Any,
}

// ByName finds a type by any of its names: int, int4, integer, timestamptz,
// text[], _text, pg_catalog.int4, "char" with its quotes, varchar(10). The name is taken in lower case.
func ByName(name string) (Type, bool) {
	name = strings.TrimPrefix(strings.TrimSpace(strings.ToLower(name)), "pg_catalog.")
	if elem, ok := strings.CutSuffix(name, "]"); ok {
		i := strings.LastIndexByte(elem, '[')
		if i < 0 || strings.Trim(elem[i+1:], "0123456789 ") != "" {
			return Type{}, false
		}
		t, ok := ByName(elem[:i])
		if !ok {
			return Type{}, false
		}
		if t = ArrayOf(t); t.OID == 0 {
			return Type{}, false
		}
		return t, true
	}
	if i := strings.IndexByte(name, '('); i > 0 {
		j := strings.IndexByte(name, ')')
		if j < i {
			return Type{}, false
		}
		t, ok := ByName(name[:i] + name[j+1:])
		if !ok {
			return Type{}, false
		}
		return withArgs(t, strings.Split(name[i+1:j], ","))
	}
	if t, ok := sqlNames[name]; ok {
		return t, true
	}
	for _, info := range allInfos {
		if info.Name == name {
			return ByOID(info.OID)
		}
	}
	return Type{}, false
}

// withArgs is t with the modifier that was written in parentheses.
func withArgs(t Type, args []string) (Type, bool) {
	var n [2]int
	if len(args) > 2 {
		return Type{}, false
	}
	for i, a := range args {
		v, err := strconv.Atoi(strings.TrimSpace(a))
		if err != nil {
			return Type{}, false
		}
		n[i] = v
	}
	switch t.OID {
	case OIDVarchar, OIDBpchar:
		return WithLength(t, n[0]), len(args) == 1 && n[0] > 0
	case OIDNumeric:
		return WithNumeric(n[0], n[1]), n[0] >= 1 && n[0] <= 1000 && n[1] >= -1000 && n[1] <= 1000
	case OIDTime, OIDTimestamp, OIDTimestamptz:
		return WithPrecision(t, min(n[0], 6)), len(args) == 1 && n[0] >= 0
	case OIDInterval:
		return WithInterval(rangeFull, min(n[0], 6)), len(args) == 1 && n[0] >= 0
	case OIDFloat8: // float(n)
		if n[0] >= 1 && n[0] <= 24 {
			return Float4, true
		}
		return Float8, n[0] >= 25 && n[0] <= 53
	}
	return Type{}, false
}

// WithInterval is the interval type of some fields (PostgreSQL's mask; 0x7fff: all) and digits after the second (-1: all).
func WithInterval(fields, digits int) Type {
	if digits < 0 {
		digits = 0xffff
	}
	return Type{OID: OIDInterval, Mod: int32(fields<<16|digits) + 1}
}

// FormatType names t as PostgreSQL's format_type does: character varying(10), timestamp with time zone, integer[].
func FormatType(t Type) string {
	if t.Elem != nil && t.OID != OIDInt2Vector && t.OID != OIDOidVector {
		elem := *t.Elem
		if elem.Mod == 0 {
			elem.Mod = t.Mod
		}
		return FormatType(elem) + "[]"
	}
	info, ok := InfoOf(t.OID)
	if !ok {
		return "???"
	}
	if t.Mod == 0 {
		if t.OID == OIDBpchar {
			return "bpchar"
		}
		return info.SQLName
	}
	m := t.Typmod()
	switch t.OID {
	case OIDVarchar, OIDBpchar:
		return info.SQLName + "(" + strconv.Itoa(charLimit(t)) + ")"
	case OIDNumeric:
		p, s, _ := NumericTypmod(t)
		return "numeric(" + strconv.Itoa(p) + "," + strconv.Itoa(s) + ")"
	case OIDTime, OIDTimestamp, OIDTimestamptz:
		head, tail, _ := strings.Cut(info.SQLName, " ")
		return head + "(" + strconv.Itoa(int(m)) + ") " + tail
	case OIDInterval:
		fields, digits := intervalTypmod(t)
		name := "interval" + intervalFieldNames(fields)
		if digits >= 0 {
			name += "(" + strconv.Itoa(digits) + ")"
		}
		return name
	}
	return info.SQLName
}

// intervalFieldNames is " day to second" and so on; empty for all fields.
func intervalFieldNames(fields int) string {
	if fields == rangeFull {
		return ""
	}
	first, last := "", ""
	for _, f := range []struct {
		bit  int
		name string
	}{{rangeYear, "year"}, {rangeMonth, "month"}, {rangeDay, "day"}, {rangeHour, "hour"}, {rangeMinute, "minute"}, {rangeSecond, "second"}} {
		if fields&f.bit == 0 {
			continue
		}
		if first == "" {
			first = f.name
		}
		last = f.name
	}
	if first == last {
		return " " + first
	}
	return " " + first + " to " + last
}

// String is FormatType, for messages.
func (t Type) String() string { return FormatType(t) }
