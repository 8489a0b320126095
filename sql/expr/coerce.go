package expr

import (
	"strings"
	"sync"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A CastContext says how willing a conversion is: every context allows what the
// ones before it allow.
type CastContext uint8

const (
	Implicit   CastContext = iota // anywhere in an expression
	Assignment                    // into a column of a table
	Explicit                      // CAST(x AS t), x::t
)

// The pseudo types of polymorphic signatures.
const (
	oidAnyElement         = types.OIDAnyElement
	oidAnyArray           = types.OIDAnyArray
	oidAnyNonArray        = 2776
	oidAnyCompatible      = 5077
	oidAnyCompatibleArray = 5078
)

func polymorphic(t types.Type) bool {
	switch t.OID {
	case oidAnyElement, oidAnyArray, oidAnyNonArray, oidAnyCompatible, oidAnyCompatibleArray:
		return true
	}
	return false
}

// casts lists PostgreSQL's conversions that are more than writing and reading
// text: source, then targets with i(mplicit), a(ssignment) or e(xplicit).
const casts = `
int2: int4/i int8/i float4/i float8/i numeric/i oid/i regclass/i regtype/i regproc/i regprocedure/i regoper/i regoperator/i regnamespace/i regrole/i
int4: int2/a int8/i float4/i float8/i numeric/i oid/i regclass/i regtype/i regproc/i regprocedure/i regoper/i regoperator/i regnamespace/i regrole/i bool/e char/e
int8: int2/a int4/a float4/i float8/i numeric/i oid/i regclass/i regtype/i regproc/i regprocedure/i regoper/i regoperator/i regnamespace/i regrole/i
float4: int2/a int4/a int8/a float8/i numeric/a
float8: int2/a int4/a int8/a float4/a numeric/a
numeric: int2/a int4/a int8/a float4/i float8/i
bool: int4/e text/a varchar/a bpchar/a
oid: int4/a int8/a regclass/i regtype/i regproc/i regprocedure/i regoper/i regoperator/i regnamespace/i regrole/i
regclass: oid/i int4/a int8/a
regtype: oid/i int4/a int8/a
regproc: oid/i int4/a int8/a regprocedure/i
regnamespace: oid/i int4/a int8/a
regprocedure: oid/i int4/a int8/a regproc/i
regoper: oid/i int4/a int8/a regoperator/i
regoperator: oid/i int4/a int8/a regoper/i
regrole: oid/i int4/a int8/a
text: bpchar/i varchar/i name/i char/a regclass/i jsonpath/i
varchar: text/i bpchar/i name/i char/a regclass/i jsonpath/i
bpchar: text/i varchar/i name/i char/a
name: text/i bpchar/a varchar/a
char: text/i varchar/a bpchar/a int4/e
pg_node_tree: text/i
date: timestamp/i timestamptz/i
time: interval/i
timestamp: date/a time/a timestamptz/i
timestamptz: date/a time/a timestamp/a
interval: time/a
json: jsonb/a
jsonb: json/a bool/e numeric/e int2/e int4/e int8/e float4/e float8/e
`

var castTable = sync.OnceValue(func() map[[2]uint32]CastContext {
	out := map[[2]uint32]CastContext{}
	for line := range strings.Lines(casts) {
		from, targets, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(targets) {
			to, c, _ := strings.Cut(f, "/")
			ctx := Implicit
			switch c {
			case "a":
				ctx = Assignment
			case "e":
				ctx = Explicit
			}
			out[[2]uint32{sigType(from).OID, sigType(to).OID}] = ctx
		}
	}
	return out
})

// category is PostgreSQL's typcategory, and whether the type is preferred in it.
func category(t types.Type) (c byte, preferred bool) {
	if t.Elem != nil || t.OID == types.OIDAnyArray {
		return 'A', false
	}
	switch t.OID {
	case types.OIDBool:
		return 'B', true
	case types.OIDText:
		return 'S', true
	case types.OIDVarchar, types.OIDBpchar, types.OIDName:
		return 'S', false
	case types.OIDChar, types.OIDNodeTree:
		return 'Z', false
	case types.OIDFloat8, types.OIDOid:
		return 'N', true
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDFloat4, types.OIDNumeric,
		types.OIDRegclass, types.OIDRegtype, types.OIDRegproc, types.OIDRegnamespace,
		types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator, types.OIDRegrole:
		return 'N', false
	case types.OIDTimestamptz:
		return 'D', true
	case types.OIDDate, types.OIDTime, types.OIDTimestamp:
		return 'D', false
	case types.OIDInterval:
		return 'T', true
	case types.OIDUnknown:
		return 'X', false
	case types.OIDAny, oidAnyElement, oidAnyNonArray, oidAnyCompatible, oidAnyCompatibleArray, types.OIDRecord, types.OIDVoid:
		return 'P', false
	}
	return 'U', false
}

// CanCast reports whether a value of type from may become one of type to, by
// PostgreSQL's rules. Unknown, the type of an untyped literal, becomes anything.
func CanCast(from, to types.Type, ctx CastContext) bool {
	if from.Equal(to) || from.OID == types.OIDUnknown {
		return true
	}
	if to.OID == types.OIDUnknown {
		return false
	}
	if c, ok := castTable()[[2]uint32{from.OID, to.OID}]; ok {
		return c <= ctx
	}
	if from.Elem != nil && to.Elem != nil && to.OID != types.OIDInt2Vector && to.OID != types.OIDOidVector {
		return CanCast(*from.Elem, *to.Elem, ctx)
	}
	if from.OID == types.OIDVoid || to.OID == types.OIDVoid {
		return false
	}
	// Through text: assignment to strings, explicit from them.
	if c, _ := category(to); c == 'S' && ctx >= Assignment {
		return true
	}
	if c, _ := category(from); c == 'S' && ctx >= Explicit {
		return true
	}
	return false
}

// CommonType is the type that UNION, CASE, COALESCE, VALUES and the like give
// their inputs; error 42804 or 42846 if there is none. All unknown: text.
func CommonType(ts []types.Type) (types.Type, error) { return CommonTypeFor("", ts) }

// CommonTypeFor is CommonType with the construct's name ("UNION", "CASE") for the message.
func CommonTypeFor(construct string, ts []types.Type) (types.Type, error) {
	var common types.Type
	for _, t := range ts {
		switch {
		case t.OID == types.OIDUnknown:
			continue
		case common.OID == 0:
			common = t
			continue
		case common.Equal(t):
			if common.Mod != t.Mod {
				common = common.Base()
			}
			continue
		}
		c1, pref := category(common)
		c2, _ := category(t)
		if c1 != c2 {
			return types.Type{}, noCommon(construct, common, t)
		}
		if !pref && CanCast(common, t, Implicit) && !CanCast(t, common, Implicit) {
			common = t
		}
		common = common.Base()
	}
	if common.OID == 0 {
		return types.Text, nil
	}
	for _, t := range ts {
		if !CanCast(t, common, Implicit) {
			return types.Type{}, sqlerr.New(sqlerr.CannotCoerce, "%scould not convert type %s to %s", spaced(construct), label(t), label(common))
		}
	}
	return common, nil
}

func noCommon(construct string, a, b types.Type) error {
	return sqlerr.New(sqlerr.DatatypeMismatch, "%stypes %s and %s cannot be matched", spaced(construct), label(a), label(b))
}

// label names a type in messages. Unlike format_type(oid, -1) it calls char without a length "character".
func label(t types.Type) string {
	t.Mod = 0
	if t.Elem != nil && t.Elem.OID == types.OIDBpchar {
		return "character[]"
	}
	if t.OID == types.OIDBpchar {
		return "character"
	}
	return types.FormatType(t)
}

func spaced(word string) string {
	if word == "" {
		return ""
	}
	return word + " "
}
