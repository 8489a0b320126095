package expr

import (
	_ "embed"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"streamdb/sql/types"
)

// A registry holds every function, operator and aggregate. It is built once and
// never changes.
type registry struct {
	funcs   map[string][]*Func
	ops     map[string][]*Func
	aggs    map[string][]*AggFunc
	tables  map[string][]*TableFunc
	windows map[string][]*WindowFunc

	allFuncs   []*Func
	allAggs    []*AggFunc
	allTables  []*TableFunc
	allWindows []*WindowFunc
	oids       map[string]uint32
}

// oidText has PostgreSQL's object identifiers, one "oid name(args)" a line;
// operators are those whose name is no identifier.
//
//go:embed oids.txt
var oidText string

var reg = sync.OnceValue(func() *registry {
	r := &registry{
		funcs:   map[string][]*Func{},
		ops:     map[string][]*Func{},
		aggs:    map[string][]*AggFunc{},
		tables:  map[string][]*TableFunc{},
		windows: map[string][]*WindowFunc{},
		oids:    map[string]uint32{},
	}
	for line := range strings.Lines(oidText) {
		oid, sig, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseUint(oid, 10, 32)
		r.oids[sig] = uint32(n)
	}
	comparisons(r)
	arithmetic(r)
	bitwise(r)
	booleans(r)
	texts(r)
	patterns(r)
	datetimeOps(r)
	arrays(r)
	maths(r)
	strs(r)
	formats(r)
	datetimes(r)
	systems(r)
	jsons(r)
	jsonBuilders(r)
	jsonPaths(r)
	castFuncs(r)
	tableFuncs(r)
	jsonTables(r)
	aggregates(r)
	regrAggs(r)
	jsonAggs(r)
	pickAggs(r)
	orderedSetAggs(r)
	windowFuncs(r)
	r.oids = nil
	return r
})

// A signature is "name(types) result [words]"; the words are lax (called with
// NULL arguments too), stable, volatile, and total (never fails). A last
// argument "variadic t" repeats.
type signature struct {
	name           string
	args           []types.Type
	variadic       bool
	ret            types.Type
	lax, total     bool
	volatility     Volatility
	operator       bool
	argumentString string
}

func parseSignature(sig string) signature {
	open := strings.IndexByte(sig, '(')
	end := strings.LastIndexByte(sig, ')')
	s := signature{name: sig[:open], argumentString: sig[open+1 : end]}
	s.operator = !(s.name[0] >= 'a' && s.name[0] <= 'z' || s.name[0] == '_')
	if s.argumentString != "" {
		for arg := range strings.SplitSeq(s.argumentString, ",") {
			arg = strings.TrimSpace(arg)
			if rest, ok := strings.CutPrefix(arg, "variadic "); ok {
				s.variadic, arg = true, rest
			}
			s.args = append(s.args, sigType(arg))
		}
	}
	words := strings.Fields(sig[end+1:])
	s.ret = sigType(words[0])
	for _, w := range words[1:] {
		switch w {
		case "lax":
			s.lax = true
		case "stable":
			s.volatility = Stable
		case "volatile":
			s.volatility = Volatile
		case "total":
			s.total = true
		default:
			panic("expr: unknown word in signature " + sig)
		}
	}
	return s
}

// sigType is the type of a name in a signature.
func sigType(name string) types.Type {
	if elem, ok := strings.CutSuffix(name, "[]"); ok {
		return types.ArrayOf(sigType(elem))
	}
	switch name {
	case "bool":
		return types.Bool
	case "int2":
		return types.Int2
	case "int4":
		return types.Int4
	case "int8":
		return types.Int8
	case "float4":
		return types.Float4
	case "float8":
		return types.Float8
	case "numeric":
		return types.Numeric
	case "text":
		return types.Text
	case "varchar":
		return types.Varchar
	case "bpchar":
		return types.Bpchar
	case "name":
		return types.Name
	case "char":
		return types.Char
	case "bytea":
		return types.Bytea
	case "date":
		return types.Date
	case "time":
		return types.Time
	case "timestamp":
		return types.Timestamp
	case "timestamptz":
		return types.Timestamptz
	case "interval":
		return types.IntervalT
	case "oid":
		return types.Oid
	case "xid":
		return types.Xid
	case "regclass":
		return types.Regclass
	case "regtype":
		return types.Regtype
	case "regproc":
		return types.Regproc
	case "regnamespace":
		return types.Type{OID: types.OIDRegnamespace}
	case "regprocedure":
		return types.Type{OID: types.OIDRegprocedure}
	case "regoper":
		return types.Type{OID: types.OIDRegoper}
	case "regoperator":
		return types.Type{OID: types.OIDRegoperator}
	case "regrole":
		return types.Type{OID: types.OIDRegrole}
	case "uuid":
		return types.UUID
	case "json":
		return types.JSON
	case "jsonb":
		return types.JSONB
	case "jsonpath":
		return types.JSONPath
	case "aclitem":
		return types.Type{OID: types.OIDAclitem}
	case "pg_node_tree":
		return types.NodeTree
	case "void":
		return types.Void
	case "record":
		return types.Record
	case "unknown":
		return types.Null
	case "any":
		return types.Type{OID: types.OIDAny}
	case "anyelement":
		return types.Type{OID: oidAnyElement}
	case "anyarray":
		return types.Type{OID: oidAnyArray}
	case "anynonarray":
		return types.Type{OID: oidAnyNonArray}
	case "anycompatible":
		return types.Type{OID: oidAnyCompatible}
	case "anycompatiblearray":
		return types.Type{OID: oidAnyCompatibleArray}
	case "int2vector":
		return types.Int2Vector
	case "oidvector":
		return types.OidVector
	}
	panic("expr: unknown type in signature: " + name)
}

// oid is PostgreSQL's where it has the function, else made from the signature.
func (r *registry) oid(name, args string) uint32 {
	key := name + "(" + strings.ReplaceAll(args, ", ", ",") + ")"
	if oid, ok := r.oids[key]; ok {
		return oid
	}
	if i := strings.Index(key, "variadic "); i >= 0 {
		elem := strings.TrimSuffix(key[i+len("variadic "):], ")")
		for _, alt := range []string{elem, elem + "[]", elem + "array"} {
			if oid, ok := r.oids[key[:i]+alt+")"]; ok {
				return oid
			}
		}
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return 1<<30 | h.Sum32()>>2 // far above what a catalog assigns
}

// def adds a function or operator with a signature.
func (r *registry) def(sig string, mk maker) {
	s := parseSignature(sig)
	f := &Func{
		OID: r.oid(s.name, s.argumentString), Name: s.name, Operator: s.operator, Args: s.args, Variadic: s.variadic,
		Ret: s.ret, Strict: !s.lax, Volatile: s.volatility, total: s.total,
	}
	if polymorphic(s.ret) {
		f.RetType = func(args []types.Type) types.Type { return solveRet(s.args, args, s.ret) }
	}
	f.Kernel = mk(f)
	r.add(f)
}

func (r *registry) add(f *Func) {
	if f.Operator {
		r.ops[f.Name] = append(r.ops[f.Name], f)
	} else {
		r.funcs[f.Name] = append(r.funcs[f.Name], f)
	}
	r.allFuncs = append(r.allFuncs, f)
}

// defs adds functions that share a maker.
func (r *registry) defs(mk maker, sigs ...string) {
	for _, sig := range sigs {
		r.def(sig, mk)
	}
}

// Funcs returns all functions and operators, in order of definition. Callers must not change the slice.
func Funcs() []*Func { return reg().allFuncs }

// Aggs returns all aggregate functions.
func Aggs() []*AggFunc { return reg().allAggs }

// TableFuncs returns all set-returning functions.
func TableFuncs() []*TableFunc { return reg().allTables }

// IsAgg reports whether name is an aggregate function's.
func IsAgg(name string) bool { return len(reg().aggs[name]) > 0 }

// IsTableFunc reports whether name is a set-returning function's.
func IsTableFunc(name string) bool { return len(reg().tables[name]) > 0 }

// IsFunc reports whether name is a scalar function's.
func IsFunc(name string) bool { return len(reg().funcs[name]) > 0 }

// names lists what a misspelt function may have meant, sorted.
func (r *registry) names() []string {
	var out []string
	for n := range r.funcs {
		out = append(out, n)
	}
	for n := range r.aggs {
		out = append(out, n)
	}
	for n := range r.tables {
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
