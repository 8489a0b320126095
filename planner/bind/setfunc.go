package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A setCall is a set-returning function of the select list.
type setCall struct {
	fn   *expr.TableFunc
	name string
	args []expr.Expr
	typ  types.Type
	rank int // 0, or one more than the greatest rank of a set-returning function in its arguments
	pos  int
}

func isTableFunc(call *ast.FuncCall) bool {
	return expr.IsTableFunc(funcName(call.Funcname))
}

// tableFunc resolves a set-returning function and binds its arguments.
func (e *env) tableFunc(x *ast.FuncCall) (*expr.TableFunc, []expr.Expr, error) {
	pos := int(x.Location)
	if err := e.checkSchema(x); err != nil {
		return nil, nil, err
	}
	if x.FuncVariadic {
		return nil, nil, sqlerr.Unsupported("VARIADIC in a call of a set-returning function").At(pos)
	}
	args, err := e.exprs(x.Args)
	if err != nil {
		return nil, nil, err
	}
	fn, want, err := expr.ResolveTableFunc(funcName(x.Funcname), typesOf(args))
	if err != nil {
		return nil, nil, at(err, pos)
	}
	for i, a := range args {
		if args[i], err = e.b.coerce(a, want[i], implicit, pos); err != nil {
			return nil, nil, err
		}
	}
	return fn, args, nil
}

// setFunction binds a set-returning function of a select list; field is the
// column of its rows that is wanted, -1: its only one.
func (e *env) setFunction(x *ast.FuncCall, field int) (expr.Expr, error) {
	pos := int(x.Location)
	switch {
	case e.inAgg:
		return nil, sqlerr.New(sqlerr.NotSupported, "aggregate function calls cannot contain set-returning function calls").At(pos).WithHint(lateralHint)
	case e.inWin:
		return nil, sqlerr.New(sqlerr.NotSupported, "window function calls cannot contain set-returning function calls").At(pos).WithHint(lateralHint)
	case e.noSets == "CASE/WHEN":
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "argument of CASE/WHEN must not return a set").At(pos)
	case e.noSets == "CASE" || e.noSets == "COALESCE":
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.noSets).At(pos).WithHint(lateralHint)
	case e.noSets != "":
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.noSets).At(pos)
	case e.calls == nil:
		return nil, sqlerr.New(sqlerr.NotSupported, "set-returning functions are not allowed in %s", e.clause).At(pos)
	}
	fn, args, err := e.tableFunc(x)
	if err != nil {
		return nil, err
	}
	out := fn.Columns(typesOf(args))
	if field < 0 {
		if len(out) != 1 {
			return nil, sqlerr.Unsupported("the row of function %s as one value", fn.Name).At(pos).
				WithHint("Call it in FROM, or take its columns one by one: (%s(…)).%s.", fn.Name, out[0].Name)
		}
		field = 0
	}
	if len(out) > 1 {
		fn = fieldOf(fn, field)
	}
	c := setCall{fn: fn, name: out[field].Name, args: args, typ: out[field].Type, pos: pos}
	if len(out) == 1 {
		c.name = fn.Name
	}
	for _, a := range args {
		visitExpr(a, func(x expr.Expr) {
			if r, ok := x.(*expr.ColRef); ok && r.Index >= setMark {
				c.rank = max(c.rank, e.calls.sets[r.Index-setMark].rank+1)
			}
		})
	}
	// Equal calls give equal rows side by side: one is enough.
	for i, o := range e.calls.sets {
		if o.fn.OID == c.fn.OID && o.fn.Name == c.fn.Name && o.name == c.name && slices.EqualFunc(o.args, c.args, expr.Equal) {
			return &expr.ColRef{Index: setMark + i, Typ: c.typ, Name: c.name}, nil
		}
	}
	e.calls.sets = append(e.calls.sets, c)
	return &expr.ColRef{Index: setMark + len(e.calls.sets) - 1, Typ: c.typ, Name: c.name}, nil
}

// unsetSets makes the plan that evaluates set-returning functions over node, and returns where each one's column is.
func unsetSets(node plan.Node, sets []setCall, lower func(expr.Expr) (expr.Expr, error)) (plan.Node, []int, error) {
	where := make([]int, len(sets))
	for rank, left := 0, len(sets); left > 0; rank++ {
		p := &plan.ProjectSet{Input: node}
		width := len(node.Schema())
		for i, s := range sets {
			if s.rank != rank {
				continue
			}
			args := make([]expr.Expr, len(s.args))
			for j, a := range s.args {
				x, err := lower(a)
				if err != nil {
					return nil, nil, err
				}
				args[j] = mapCols(x, func(c *expr.ColRef) expr.Expr {
					if c.Index >= setMark {
						return &expr.ColRef{Index: where[c.Index-setMark], Typ: c.Typ, Name: c.Name}
					}
					return c
				})
			}
			where[i] = width + len(p.Fns)
			p.Fns = append(p.Fns, s.fn)
			p.Args = append(p.Args, args)
			p.Names = append(p.Names, s.name)
			left--
		}
		if len(p.Fns) > 0 {
			node = p
		}
	}
	return node, where, nil
}
