package bind

import (
	"slices"

	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// indirection binds subscripts, slices and (f(x)).column.
func (e *env) indirection(x *ast.A_Indirection) (expr.Expr, error) {
	pos := location(x.Arg)
	rest := x.Indirection
	var base expr.Expr
	var err error
	if name := rest[0].GetString_(); name != nil {
		if base, err = e.fieldOf(x.Arg, name.Sval); err != nil {
			return nil, err
		}
		rest = rest[1:]
	} else if base, err = e.expr(x.Arg); err != nil {
		return nil, err
	}
	for len(rest) > 0 {
		n := 0
		for n < len(rest) && rest[n].GetAIndices() != nil {
			n++
		}
		if n == 0 {
			return nil, notComposite(rest[0].GetString_().GetSval(), base.Type(), pos)
		}
		if base, err = e.subscript(base, rest[:n], pos); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return base, nil
}

// fieldOf binds (x).name: of a row, or of what a set-returning function returns.
func (e *env) fieldOf(x *ast.Node, name string) (expr.Expr, error) {
	if call := x.GetFuncCall(); call != nil && isTableFunc(call) {
		field, err := e.fieldIndex(call, name)
		if err != nil {
			return nil, err
		}
		return e.setFunction(call, field)
	}
	r, err := e.row(x)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return e.field(r, name)
	}
	y, err := e.expr(x)
	if err != nil {
		return nil, err
	}
	return nil, notComposite(name, y.Type(), location(x))
}

// fieldIndex finds a column of a set-returning function's rows.
func (e *env) fieldIndex(call *ast.FuncCall, field string) (int, error) {
	probe := *e
	probe.calls = &collector{} // what is collected while looking is not kept
	probe.noSets = ""
	fn, args, err := probe.tableFunc(call)
	if err != nil {
		return 0, err
	}
	out := fn.Columns(typesOf(args))
	i := slices.IndexFunc(out, func(f types.Field) bool { return f.Name == field })
	if i < 0 {
		return 0, sqlerr.New(sqlerr.UndefinedColumn, `column "%s" not found in data type record`, field).At(int(call.Location))
	}
	return i, nil
}

// subscript binds a[i] and a[i][j], or a[i:j] where any of them is a slice.
func (e *env) subscript(base expr.Expr, idx []*ast.Node, pos int) (expr.Expr, error) {
	t := base.Type()
	if t.OID == oidJSONB {
		return e.jsonbSubscript(base, idx)
	}
	if t.Elem == nil {
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", types.FormatType(t)).At(pos)
	}
	slice := slices.ContainsFunc(idx, func(n *ast.Node) bool { return n.GetAIndices().IsSlice })
	if slice && len(idx) > 1 {
		return nil, sqlerr.Unsupported("a slice of several dimensions").At(pos)
	}
	bound := func(n *ast.Node, missing expr.Expr) (expr.Expr, error) {
		if n == nil {
			return missing, nil
		}
		x, err := e.expr(n)
		if err != nil {
			return nil, err
		}
		y, err := e.b.coerce(x, types.Int4, assignment, location(n))
		if err != nil && sqlerr.Code(err) == sqlerr.DatatypeMismatch {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "array subscript must have type integer").At(location(n))
		}
		return y, err
	}
	args := []expr.Expr{base}
	for _, n := range idx {
		ind := n.GetAIndices()
		if !slice {
			u, err := bound(ind.Uidx, nil)
			if err != nil {
				return nil, err
			}
			args = append(args, u)
			continue
		}
		// A plain subscript among slices is the slice from 1 to it; a bound left out is NULL.
		lo, err := bound(ind.Lidx, &expr.Const{Typ: types.Int4})
		if err != nil {
			return nil, err
		}
		if !ind.IsSlice {
			lo = intConst(1, types.Int4)
		}
		hi, err := bound(ind.Uidx, &expr.Const{Typ: types.Int4})
		if err != nil {
			return nil, err
		}
		args = append(args, lo, hi)
	}
	if slice {
		return e.b.call(fnSlice, false, args, pos)
	}
	return e.b.call(fnSubscript, false, args, pos)
}

// oidJSONB is PostgreSQL's identifier of jsonb.
const oidJSONB = 3802

// jsonbSubscript binds j['a'][0]: text is a key, what is an integer an index.
func (e *env) jsonbSubscript(base expr.Expr, idx []*ast.Node) (expr.Expr, error) {
	for _, n := range idx {
		ind := n.GetAIndices()
		pos := location(ind.Uidx)
		if ind.IsSlice {
			if ind.Lidx != nil {
				pos = location(ind.Lidx)
			}
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "jsonb subscript does not support slices").At(pos)
		}
		x, err := e.expr(ind.Uidx)
		if err != nil {
			return nil, err
		}
		switch x.Type().OID {
		case types.OIDInt2, types.OIDInt4:
			x, err = e.b.coerce(x, types.Int4, implicit, pos)
		case types.OIDUnknown, types.OIDText, types.OIDVarchar, types.OIDBpchar, types.OIDName:
			x, err = e.b.coerce(x, types.Text, implicit, pos)
		default:
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "subscript type %s is not supported", types.FormatType(x.Type())).At(pos).
				WithHint("jsonb subscript must be coercible to either integer or text.")
		}
		if err != nil {
			return nil, err
		}
		if base, err = e.b.call("->", true, []expr.Expr{base, x}, pos); err != nil {
			return nil, err
		}
	}
	return base, nil
}
