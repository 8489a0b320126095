package expr

import (
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A WindowFunc is one overload of a function that only a window can call: it has
// a signature here, and its rows where the partition is sorted. Aggregates are
// window functions too; those are AggFuncs.
type WindowFunc struct {
	OID  uint32
	Name string
	Args []types.Type
	Ret  types.Type
	// RetType computes the result type from the arguments' where Ret is polymorphic; nil: Ret.
	RetType func(args []types.Type) types.Type
}

// windowFuncs adds the pure window functions (prokind w).
func windowFuncs(r *registry) {
	for _, sig := range []string{
		"row_number() int8", "rank() int8", "dense_rank() int8", "percent_rank() float8", "cume_dist() float8", "ntile(int4) int4",
		"lag(anyelement) anyelement", "lag(anyelement,int4) anyelement", "lag(anycompatible,int4,anycompatible) anycompatible",
		"lead(anyelement) anyelement", "lead(anyelement,int4) anyelement", "lead(anycompatible,int4,anycompatible) anycompatible",
		"first_value(anyelement) anyelement", "last_value(anyelement) anyelement", "nth_value(anyelement,int4) anyelement",
	} {
		s := parseSignature(sig)
		f := &WindowFunc{OID: r.oid(s.name, s.argumentString), Name: s.name, Args: s.args, Ret: s.ret}
		if polymorphic(s.ret) {
			f.RetType = func(args []types.Type) types.Type { return solveRet(s.args, args, s.ret) }
		}
		r.windows[s.name] = append(r.windows[s.name], f)
		r.allWindows = append(r.allWindows, f)
	}
}

// WindowFuncs returns all pure window functions.
func WindowFuncs() []*WindowFunc { return reg().allWindows }

// IsWindowFunc reports whether name is a pure window function's. first_value and
// last_value are aggregates as well (IsAgg), for calls without OVER, and rank and its
// like are hypothetical-set aggregates in PostgreSQL.
func IsWindowFunc(name string) bool { return len(reg().windows[name]) > 0 }

// ResolveWindow picks the overload of a pure window function, as Resolve does of a
// scalar one. A type that comes out polymorphic is RetType of the argument types it returns.
func ResolveWindow(name string, args []types.Type) (*WindowFunc, []types.Type, error) {
	r := reg()
	c, err := choose(r.windows[name], func(f *WindowFunc) ([]types.Type, bool) { return f.Args, false }, args)
	if err != nil {
		return nil, nil, r.explain(err, name, false, args)
	}
	return c.fn, c.want, nil
}

// Type is f's result type for solved argument types.
func (f *WindowFunc) Type(args []types.Type) types.Type {
	if f.RetType != nil {
		return f.RetType(args)
	}
	return f.Ret
}

// Type is f's result type for solved argument types.
func (f *AggFunc) Type(args []types.Type) types.Type {
	if f.RetType != nil {
		return f.RetType(args)
	}
	return f.Ret
}

// ResolveOrderedSet picks an aggregate called as name(direct) WITHIN GROUP (ORDER BY
// ordered), and says which types the direct and then the ordered arguments must be
// cast to. Error 42809 if name is an ordinary aggregate.
func ResolveOrderedSet(name string, direct, ordered []types.Type) (*AggFunc, []types.Type, error) {
	r := reg()
	args := append(append([]types.Type(nil), direct...), ordered...)
	sets := orderedSets(r.aggs[name])
	if len(sets) == 0 && len(r.aggs[name]) > 0 {
		return nil, nil, sqlerr.New(sqlerr.WrongObjectType, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", name)
	}
	c, err := choose(sets, func(f *AggFunc) ([]types.Type, bool) { return f.Args, false }, args)
	if err != nil {
		return nil, nil, r.explain(err, name, false, args)
	}
	if c.fn.Direct != len(direct) {
		return nil, nil, r.explain(errNone, name, false, args)
	}
	return c.fn, c.want, nil
}

func orderedSets(fs []*AggFunc) []*AggFunc {
	var out []*AggFunc
	for _, f := range fs {
		if f.OrderedSet {
			out = append(out, f)
		}
	}
	return out
}
