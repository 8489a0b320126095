package expr

import "streamdb/sql/types"

// texts adds || over text and bytea. With an operand of another type, that is
// written as its cast to text.
func texts(r *registry) {
	join := func(a, b string) string { return a + b }
	r.def("||(text,text) text total", f2(join))
	r.def("||(bytea,bytea) bytea total", f2(join))
	for i, name := range []string{"~<~", "~<=~", "~>~", "~>=~"} {
		r.def(name+"(text,text) bool total", nativeKernel[string](opLt+cmpOp(i)))
	}
	r.def("||(text,anynonarray) text stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		s, err := textOf(ctx, ts[1], a[1])
		return types.NewString(a[0].Str() + s), err
	}))
	r.def("||(anynonarray,text) text stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		s, err := textOf(ctx, ts[0], a[0])
		return types.NewString(s + a[1].Str()), err
	}))
}
