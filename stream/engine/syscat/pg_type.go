package syscat

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"streamdb/sql/types"
)

//go:embed data/types.txt
var typeText string

// typeFuncs are PostgreSQL's functions behind a type, by OID.
type typeFuncs struct {
	input, output, receive, send, modIn, modOut, analyze, subscript, collation int64
}

var typeFuncsByOID = sync.OnceValue(func() map[uint32]typeFuncs {
	m := map[uint32]typeFuncs{}
	for line := range dataLines(typeText) {
		f := numbers(line)
		m[uint32(f[0])] = typeFuncs{f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9]}
	}
	return m
})

// numbers are the blank-separated numbers of a line of data.
func numbers(line string) []int64 {
	fields := strings.Fields(line)
	out := make([]int64, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			panic("syscat: " + line)
		}
		out[i] = n
	}
	return out
}

// pseudoTypes are types of PostgreSQL's that only signatures of functions have.
var pseudoTypes = [...]types.Info{
	{OID: 269, Name: "table_am_handler", SQLName: "table_am_handler", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 325, Name: "index_am_handler", SQLName: "index_am_handler", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 1263, Name: "_cstring", SQLName: "cstring[]", Len: -1, Category: 'A', Align: 'i', Storage: 'x', Kind: 'b', Elem: 2275},
	{OID: 2275, Name: "cstring", SQLName: "cstring", Len: -2, Category: 'P', Align: 'c', Storage: 'p', Kind: 'p', Array: 1263},
	{OID: 2281, Name: "internal", SQLName: "internal", Len: 8, ByVal: true, Category: 'P', Align: 'd', Storage: 'p', Kind: 'p'},
	{OID: 2776, Name: "anynonarray", SQLName: "anynonarray", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 5077, Name: "anycompatible", SQLName: "anycompatible", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 5078, Name: "anycompatiblearray", SQLName: "anycompatiblearray", Len: -1, Category: 'P', Align: 'd', Storage: 'x', Kind: 'p'},
	{OID: 5079, Name: "anycompatiblenonarray", SQLName: "anycompatiblenonarray", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	// Of functions over maps: any map, a row that makes an entry, and what follows from a map.
	{OID: 9003, Name: "anymap", SQLName: "anymap", Len: -1, Category: 'P', Align: 'd', Storage: 'x', Kind: 'p'},
	{OID: 9004, Name: "anymapkey", SQLName: "anymapkey", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 9005, Name: "anymapvalue", SQLName: "anymapvalue", Len: 4, ByVal: true, Category: 'P', Align: 'i', Storage: 'p', Kind: 'p'},
	{OID: 9006, Name: "anymapkeyarray", SQLName: "anymapkeyarray", Len: -1, Category: 'P', Align: 'd', Storage: 'x', Kind: 'p'},
	{OID: 9007, Name: "anymapvaluearray", SQLName: "anymapvaluearray", Len: -1, Category: 'P', Align: 'd', Storage: 'x', Kind: 'p'},
	{OID: 9008, Name: "anymapentries", SQLName: "anymapentries", Len: -1, Category: 'P', Align: 'd', Storage: 'x', Kind: 'p'},
}

// allTypes are the types there are values of, and those of signatures.
var allTypes = sync.OnceValue(func() []types.Info {
	return append(append([]types.Info(nil), types.All()...), pseudoTypes[:]...)
})

// typeName is the SQL name of a type; "": unknown.
func typeName(oid int64) string {
	if oid == 0 {
		return "-"
	}
	if oid == types.OIDBpchar {
		return "character"
	}
	for i := range pseudoTypes {
		if int64(pseudoTypes[i].OID) == oid {
			return pseudoTypes[i].SQLName
		}
	}
	info, _ := types.InfoOf(uint32(oid))
	return info.SQLName
}

// typeFunc makes a column of one of a type's functions.
func typeFunc(which func(typeFuncs) int64) column[types.Info] {
	return num(func(t *types.Info) int64 { return which(typeFuncsByOID()[t.OID]) })
}

func typeSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_type": &table[types.Info]{
			rows: func(*world, Info) []types.Info { return allTypes() },
			cols: map[string]column[types.Info]{
				"oid":            num(func(t *types.Info) int64 { return int64(t.OID) }),
				"typname":        str(func(t *types.Info) string { return t.Name }),
				"typlen":         num(func(t *types.Info) int64 { return int64(t.Len) }),
				"typbyval":       boolean(func(t *types.Info) bool { return t.ByVal }),
				"typtype":        str(func(t *types.Info) string { return string(t.Kind) }),
				"typcategory":    str(func(t *types.Info) string { return string(t.Category) }),
				"typispreferred": boolean(func(t *types.Info) bool { return t.Preferred }),
				"typelem":        num(func(t *types.Info) int64 { return int64(t.Elem) }),
				"typarray":       num(func(t *types.Info) int64 { return int64(t.Array) }),
				"typalign":       str(func(t *types.Info) string { return string(t.Align) }),
				"typstorage":     str(func(t *types.Info) string { return string(t.Storage) }),
				"typinput":       typeFunc(func(f typeFuncs) int64 { return f.input }),
				"typoutput":      typeFunc(func(f typeFuncs) int64 { return f.output }),
				"typreceive":     typeFunc(func(f typeFuncs) int64 { return f.receive }),
				"typsend":        typeFunc(func(f typeFuncs) int64 { return f.send }),
				"typmodin":       typeFunc(func(f typeFuncs) int64 { return f.modIn }),
				"typmodout":      typeFunc(func(f typeFuncs) int64 { return f.modOut }),
				"typanalyze":     typeFunc(func(f typeFuncs) int64 { return f.analyze }),
				"typsubscript":   typeFunc(func(f typeFuncs) int64 { return f.subscript }),
				"typcollation":   typeFunc(func(f typeFuncs) int64 { return f.collation }),
			},
			fixed: map[string]any{"typnamespace": catalogSchema, "typowner": rootRole, "typisdefined": true, "typdelim": ",", "typtypmod": -1},
		},
	}
}
