package syscat

import (
	_ "embed"
	"strings"
	"sync"

	"streamdb/sql/expr"
	"streamdb/sql/types"
)

//go:embed data/procs.txt
var procText string

//go:embed data/operators.txt
var operatorText string

//go:embed data/casts.txt
var castText string

// A proc is a row of pg_proc.
type proc struct {
	oid        int64
	name       string
	kind       byte // prokind: f, a
	args       []int64
	ret        int64
	set        bool
	strict     bool
	volatility byte
	variadic   int64 // element type of a last argument that repeats
	outs       types.Schema
}

// procs are all functions: those of the expression language, and PostgreSQL's
// behind types, operators and casts, which can be named but not called.
type procs struct {
	all    []proc
	byOID  map[int64]*proc
	byName map[string][]*proc
}

var allProcs = sync.OnceValue(func() *procs {
	p := &procs{byOID: map[int64]*proc{}, byName: map[string][]*proc{}}
	seen := map[int64]bool{}
	add := func(x proc) {
		if !seen[x.oid] {
			seen[x.oid] = true
			p.all = append(p.all, x)
		}
	}
	for _, f := range expr.Funcs() {
		if f.Operator {
			continue
		}
		x := proc{oid: int64(f.OID), name: f.Name, kind: 'f', args: oidsOf(f.Args), ret: int64(f.Ret.OID), strict: f.Strict, volatility: volatility(f.Volatile)}
		if f.Variadic && len(f.Args) > 0 {
			last := f.Args[len(f.Args)-1]
			x.variadic = int64(last.OID)
			if a := types.ArrayOf(last); a.OID != 0 {
				x.args[len(x.args)-1] = int64(a.OID)
			}
		}
		add(x)
	}
	for _, f := range expr.Aggs() {
		add(proc{oid: int64(f.OID), name: f.Name, kind: 'a', args: oidsOf(f.Args), ret: int64(f.Ret.OID), volatility: 'i'})
	}
	for _, f := range expr.TableFuncs() {
		x := proc{oid: int64(f.OID), name: f.Name, kind: 'f', args: oidsOf(f.Args), set: true, strict: true, volatility: 'i', outs: f.Columns(f.Args)}
		x.ret = types.OIDRecord
		if len(x.outs) == 1 {
			x.ret, x.outs = int64(x.outs[0].Type.OID), nil
		}
		add(x)
	}
	for line := range dataLines(procText) {
		f := strings.Fields(line)
		x := proc{oid: atoi(f[0]), name: f[1], kind: 'f', ret: atoi(f[2]), volatility: f[len(f)-2][0], strict: f[len(f)-1] == "t"}
		if args := f[3 : len(f)-2]; args[0] != "-" {
			x.args = numbers(strings.Join(args, " "))
		}
		add(x)
	}
	for i := range p.all {
		x := &p.all[i]
		p.byOID[x.oid] = x
		p.byName[x.name] = append(p.byName[x.name], x)
	}
	return p
})

func oidsOf(ts []types.Type) []int64 {
	out := make([]int64, len(ts))
	for i, t := range ts {
		out[i] = int64(t.OID)
	}
	return out
}

func volatility(v expr.Volatility) byte {
	switch v {
	case expr.Volatile:
		return 'v'
	case expr.Stable:
		return 's'
	}
	return 'i'
}

// arguments writes a function's arguments as pg_get_function_arguments does.
func (p *proc) arguments(outs bool) string {
	var out []string
	for i, a := range p.args {
		s := typeName(a)
		if p.variadic != 0 && i == len(p.args)-1 {
			s = "VARIADIC " + s
		}
		out = append(out, s)
	}
	if outs {
		for _, f := range p.outs {
			out = append(out, "OUT "+f.Name+" "+typeName(int64(f.Type.OID)))
		}
	}
	return strings.Join(out, ", ")
}

func (p *proc) result() string {
	if p.set {
		return "SETOF " + typeName(p.ret)
	}
	return typeName(p.ret)
}

// An operator is a row of pg_operator: PostgreSQL's, where the expression language has it.
type operator struct {
	oid, left, right, result, code, commutator, negator, restrict, join int64
	name                                                                string
	merges, hashes                                                      bool
}

var operators = sync.OnceValue(func() []operator {
	known := map[int64]bool{}
	for _, f := range expr.Funcs() {
		if f.Operator {
			known[int64(f.OID)] = true
		}
	}
	var out []operator
	for line := range dataLines(operatorText) {
		f := strings.Fields(line)
		if !known[atoi(f[0])] {
			continue
		}
		n := numbers(strings.Join(f[2:10], " "))
		out = append(out, operator{
			oid: atoi(f[0]), name: f[1], left: n[0], right: n[1], result: n[2], code: n[3], commutator: n[4], negator: n[5],
			restrict: n[6], join: n[7], merges: f[10] == "t", hashes: f[11] == "t",
		})
	}
	return out
})

func procSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_proc": &table[proc]{
			rows: func(*world, Info) []proc { return allProcs().all },
			cols: map[string]column[proc]{
				"oid":         num(func(p *proc) int64 { return p.oid }),
				"proname":     str(func(p *proc) string { return p.name }),
				"prokind":     str(func(p *proc) string { return string(p.kind) }),
				"proisstrict": boolean(func(p *proc) bool { return p.strict }),
				"proretset":   boolean(func(p *proc) bool { return p.set }),
				"provolatile": str(func(p *proc) string { return string(p.volatility) }),
				"pronargs":    num(func(p *proc) int64 { return int64(len(p.args)) }),
				"prorettype":  num(func(p *proc) int64 { return p.ret }),
				"proargtypes": datum(func(p *proc) types.Datum { return vector(types.Oid, p.args) }),
				"provariadic": num(func(p *proc) int64 { return p.variadic }),
				"prorows": datum(func(p *proc) types.Datum {
					if p.set {
						return types.NewFloat(1000)
					}
					return types.NewFloat(0)
				}),
				"proallargtypes": datum(func(p *proc) types.Datum {
					if p.outs == nil {
						return types.Datum{}
					}
					return ints(types.Oid, append(append([]int64{}, p.args...), oidsOf(p.outs.Types())...))
				}),
				"proargmodes": datum(func(p *proc) types.Datum {
					if p.outs == nil {
						return types.Datum{}
					}
					return texts(types.Char, strings.Split(strings.Repeat("i", len(p.args))+strings.Repeat("o", len(p.outs)), ""))
				}),
				"proargnames": datum(func(p *proc) types.Datum {
					if p.outs == nil {
						return types.Datum{}
					}
					names := make([]string, len(p.args))
					for _, f := range p.outs {
						names = append(names, f.Name)
					}
					return texts(types.Text, names)
				}),
				"prosrc": str(func(p *proc) string { return p.name }),
			},
			fixed: map[string]any{"pronamespace": catalogSchema, "proowner": rootRole, "prolang": internalLanguage, "procost": 1.0, "proparallel": "s"},
		},
		"pg_catalog.pg_aggregate": &table[proc]{
			rows: func(*world, Info) (out []proc) {
				for _, p := range allProcs().all {
					if p.kind == 'a' {
						out = append(out, p)
					}
				}
				return out
			},
			cols: map[string]column[proc]{
				"aggfnoid":     num(func(p *proc) int64 { return p.oid }),
				"aggtranstype": num(func(p *proc) int64 { return p.ret }),
			},
			fixed: map[string]any{"aggkind": "n", "aggfinalmodify": "r", "aggmfinalmodify": "r"},
		},
		"pg_catalog.pg_operator": &table[operator]{
			rows: func(*world, Info) []operator { return operators() },
			cols: map[string]column[operator]{
				"oid":     num(func(o *operator) int64 { return o.oid }),
				"oprname": str(func(o *operator) string { return o.name }),
				"oprkind": str(func(o *operator) string {
					if o.left == 0 {
						return "l"
					}
					return "b"
				}),
				"oprcanmerge": boolean(func(o *operator) bool { return o.merges }),
				"oprcanhash":  boolean(func(o *operator) bool { return o.hashes }),
				"oprleft":     num(func(o *operator) int64 { return o.left }),
				"oprright":    num(func(o *operator) int64 { return o.right }),
				"oprresult":   num(func(o *operator) int64 { return o.result }),
				"oprcode":     num(func(o *operator) int64 { return o.code }),
				"oprcom":      num(func(o *operator) int64 { return o.commutator }),
				"oprnegate":   num(func(o *operator) int64 { return o.negator }),
				"oprrest":     num(func(o *operator) int64 { return o.restrict }),
				"oprjoin":     num(func(o *operator) int64 { return o.join }),
			},
			fixed: map[string]any{"oprnamespace": catalogSchema, "oprowner": rootRole},
		},
		"pg_catalog.pg_cast": &list{
			cols: []string{"oid", "castsource", "casttarget", "castfunc", "castcontext", "castmethod"},
			rows: func(*world, Info) (out [][]any) {
				for line := range dataLines(castText) {
					f := strings.Fields(line)
					from, _ := types.ByOID(uint32(atoi(f[1])))
					to, _ := types.ByOID(uint32(atoi(f[2])))
					if from.OID == to.OID || expr.CanCast(from, to, expr.Explicit) {
						out = append(out, []any{atoi(f[0]), atoi(f[1]), atoi(f[2]), atoi(f[3]), f[4], f[5]})
					}
				}
				return out
			},
		},
	}
}
