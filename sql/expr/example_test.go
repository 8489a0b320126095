package expr_test

import (
	"fmt"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// An expression is data: resolve a function for the types at hand, cast its
// arguments, and evaluate the call a chunk at a time.
func Example() {
	price := &expr.ColRef{Index: 0, Typ: types.Int4, Name: "price"}
	fn, want, err := expr.Resolve(">", true, []types.Type{types.Int4, types.Null})
	if err != nil {
		panic(err)
	}
	ten, err := expr.MakeCast(&expr.Const{Val: types.NewString("10"), Typ: types.Null}, want[1], false)
	if err != nil {
		panic(err)
	}
	cond := &expr.Call{Fn: fn, Args: []expr.Expr{price, ten}, Typ: fn.Ret}
	c := chunk.Make(chunk.NewVec(types.Int4, []int64{5, 12, 30}, nil))
	rows, err := expr.Filter(nil, cond, c)
	fmt.Println(expr.String(cond), rows, err)
	// Output: (price > 10:Int32) [1 2] <nil>
}
