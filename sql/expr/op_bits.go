package expr

import (
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// bitwise adds & | # ~ << >> over integers.
func bitwise(r *registry) {
	for _, t := range []string{"int2", "int4", "int8"} {
		args := "(" + t + "," + t + ") " + t + " total"
		r.def("&"+args, f2(func(a, b int64) int64 { return a & b }))
		r.def("|"+args, f2(func(a, b int64) int64 { return a | b }))
		r.def("#"+args, f2(func(a, b int64) int64 { return a ^ b }))
		r.def("~("+t+") "+t+" total", f1(func(a int64) int64 { return ^a }))
	}
	// The shift distance counts modulo the width, as on PostgreSQL's machines.
	shifts := func(t string, left, right func(a, b int64) int64) {
		r.def("<<("+t+",int4) "+t+" total", f2(left))
		r.def(">>("+t+",int4) "+t+" total", f2(right))
	}
	shifts("int2", func(a, b int64) int64 { return int64(int16(a << (b & 31))) }, func(a, b int64) int64 { return a >> (b & 31) })
	shifts("int4", func(a, b int64) int64 { return int64(int32(a << (b & 31))) }, func(a, b int64) int64 { return a >> (b & 31) })
	shifts("int8", func(a, b int64) int64 { return a << (b & 63) }, func(a, b int64) int64 { return a >> (b & 63) })
}

// booleans adds what IS [NOT] TRUE and FALSE are bound to.
func booleans(r *registry) {
	test := func(want, not bool) maker {
		return func(*Func) Kernel {
			return func(_ *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
				v := chunk.Of[bool](args[0])
				out := make([]bool, n)
				m := mask(len(v.Data), n)
				for i := range out {
					out[i] = (!v.Null(i&m) && v.Data[i&m] == want) != not
				}
				return chunk.NewVec(types.Bool, out, nil), nil
			}
		}
	}
	r.def("is_true(bool) bool lax total", test(true, false))
	r.def("is_not_true(bool) bool lax total", test(true, true))
	r.def("is_false(bool) bool lax total", test(false, false))
	r.def("is_not_false(bool) bool lax total", test(false, true))
	r.def("booland_statefunc(bool,bool) bool total", f2(func(a, b bool) bool { return a && b }))
	r.def("boolor_statefunc(bool,bool) bool total", f2(func(a, b bool) bool { return a || b }))
}
