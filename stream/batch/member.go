package batch

import (
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// ready is e as it is evaluated: x IN (SELECT …) whose rows do not depend on the
// row at hand becomes a look into a hash table that is made once.
func (e *Env) ready(x expr.Expr) expr.Expr {
	if x == nil || !expr.HasSubquery(x) {
		return x
	}
	if r, ok := e.conds[x]; ok {
		return r
	}
	r := expr.Transform(x, func(x expr.Expr) expr.Expr {
		if s, ok := x.(*expr.Subquery); ok {
			return e.member(s)
		}
		return x
	})
	if e.conds == nil {
		e.conds = map[expr.Expr]expr.Expr{}
	}
	e.conds[x] = r
	return r
}

func (e *Env) member(s *expr.Subquery) expr.Expr {
	if s.Kind != expr.SubqueryAny || len(s.Ops) != 1 || s.Correlated || !hashable(s.Ops[0]) {
		return s
	}
	q, err := e.subqueryOf(s)
	if err != nil || len(q.refs) > 0 || q.typs[0].Kind() != s.Left[0].Type().Kind() ||
		q.typs[0].OID == types.OIDBpchar || s.Left[0].Type().OID == types.OIDBpchar {
		return s
	}
	return &expr.Call{Typ: types.Bool, Args: s.Left, Fn: &expr.Func{
		Name: "=", Args: s.Ops[0].Args[:1], Ret: types.Bool, Volatile: expr.Stable,
		Kernel: func(ctx *expr.Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			if q.table == nil {
				rows, err := e.subquery(s, []types.Row{nil})
				if err != nil {
					return nil, err
				}
				q.table = newRowTable(rows.Cols[:1], rows.N)
				q.table.putRows(0, chunk.Hash(rows.Cols[:1], rows.N), make([]int32, rows.N), nil)
				e.remember(int64(rows.N) * tableBytes)
			}
			return q.among(args[0], n), nil
		},
	}}
}

// hashable reports whether values are equal by op if and only if the hash table finds them equal.
func hashable(op *expr.Func) bool {
	if !op.Operator || op.Name != "=" || len(op.Args) != 2 {
		return false
	}
	integer := func(t types.Type) bool {
		return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
	}
	a, b := op.Args[0], op.Args[1]
	return a.Equal(b) || integer(a) && integer(b)
}

// among says for each value whether it is in the rows: unknown for a NULL, and for what
// is not found while there is a NULL among the rows; false where there are no rows.
func (q *subquery) among(col chunk.Column, n int) chunk.Column {
	out := make([]bool, n)
	if q.rows.N == 0 {
		return chunk.NewVec(types.Bool, out, nil)
	}
	num := make([]int32, col.Len())
	q.table.find([]chunk.Column{col}, chunk.Hash([]chunk.Column{col}, col.Len()), num)
	null := q.rows.Cols[0].HasNulls()
	nulls := make([]bool, n)
	step := 1
	if col.Len() == 1 {
		step = 0
	}
	for i := range out {
		switch k := i * step; {
		case col.Null(k):
			nulls[i] = true
		case num[k] >= 0:
			out[i] = true
		default:
			nulls[i] = null
		}
	}
	return chunk.NewVec(types.Bool, out, nulls)
}
