package bind

import (
	"fmt"
	"slices"

	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A row is a row value while it is bound: ROW(…) or a FROM item's whole row. There is
// no value of such a type: what may be done with a row is done with its columns.
type row struct {
	cols  []expr.Expr
	names []string
	table string // the name of the FROM item; "": ROW(…)
	pos   int
}

// whole: compared as composite values are, NULLs in it equal to each other, above all else.
func (r *row) whole() bool { return r.table != "" }

// row binds n if it is a row; nil: it is something else, or an error of its own.
func (e *env) row(n *ast.Node) (*row, error) {
	if x := n.GetRowExpr(); x != nil {
		cols, err := e.exprs(x.Args)
		if err != nil {
			return nil, err
		}
		r := &row{cols: cols, pos: int(x.Location)}
		for i := range cols {
			r.names = append(r.names, fmt.Sprintf("f%d", i+1))
		}
		return r, nil
	}
	ref := n.GetColumnRef()
	if ref == nil || e.scope == nil || e.noColumns != nil {
		return nil, nil
	}
	names := strs(ref.Fields)
	star := ref.Fields[len(ref.Fields)-1].GetAStar() != nil
	pos := int(ref.Location)
	schema := ""
	switch {
	case len(names) == 2 && star:
		schema, names = names[0], names[1:]
	case len(names) != 1:
		return nil, nil
	case !star:
		if f, err := e.scope.lookup(names[0], pos); err != nil || f.col != nil {
			return nil, nil
		}
	}
	t, level, s, err := e.scope.lookupTable(schema, names[0], pos)
	if err != nil || t == nil {
		return nil, err
	}
	r := &row{table: names[0], pos: pos}
	for _, c := range t.cols {
		if c.hidden || c.sys {
			continue
		}
		x, err := e.found(found{c, level, s}, pos)
		if err != nil {
			return nil, err
		}
		r.cols, r.names = append(r.cols, x), append(r.names, c.name)
	}
	return r, nil
}

// field binds (row).name.
func (e *env) field(r *row, name string) (expr.Expr, error) {
	if i := slices.Index(r.names, name); i >= 0 {
		return e.b.known(r.cols[i])
	}
	if r.whole() {
		return nil, sqlerr.New(sqlerr.UndefinedColumn, "column %s.%s does not exist", r.table, name).At(r.pos)
	}
	return nil, sqlerr.New(sqlerr.UndefinedColumn, `could not identify column "%s" in record data type`, name).At(r.pos)
}

// notComposite is the error for a field of what is no row.
func notComposite(field string, t types.Type, pos int) error {
	return sqlerr.New(sqlerr.WrongObjectType, "column notation .%s applied to type %s, which is not a composite type", field, types.FormatType(t)).At(pos)
}

// compareOp applies a binary operator; both sides may be rows.
func (e *env) compareOp(name string, l, r *ast.Node, pos int) (expr.Expr, error) {
	lrow, err := e.row(l)
	if err != nil {
		return nil, err
	}
	if sub := r.GetSubLink(); lrow != nil && sub != nil && sub.SubLinkType == ast.SubLinkType_EXPR_SUBLINK && !lrow.whole() {
		return e.rowSubquery(name, lrow, sub, pos)
	}
	rrow, err := e.row(r)
	if err != nil {
		return nil, err
	}
	if lrow != nil && rrow != nil {
		return e.b.rowOp(name, lrow, rrow, pos)
	}
	if lrow == nil && rrow == nil {
		args, err := e.exprs([]*ast.Node{l, r})
		if err != nil {
			return nil, err
		}
		return e.b.call(name, true, args, pos)
	}
	// A row and something else: there is no such operator, unless the other is NULL or a query.
	side := func(r *row, n *ast.Node) (types.Type, error) {
		if r != nil {
			return types.Record, nil
		}
		x, err := e.expr(n)
		if err != nil {
			return types.Type{}, err
		}
		return x.Type(), nil
	}
	lt, err := side(lrow, l)
	if err != nil {
		return nil, err
	}
	rt, err := side(rrow, r)
	if err != nil {
		return nil, err
	}
	if lt.OID == types.OIDUnknown || rt.OID == types.OIDUnknown {
		return nil, sqlerr.Unsupported("comparing a row with a value that is not a row").At(pos)
	}
	return nil, sqlerr.New(sqlerr.UndefinedFunction, "operator does not exist: %s %s %s", types.FormatType(lt), name, types.FormatType(rt)).At(pos).
		WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

// rowOp compares two rows.
func (b *binder) rowOp(name string, l, r *row, pos int) (expr.Expr, error) {
	if len(l.cols) != len(r.cols) {
		if l.whole() || r.whole() {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "cannot compare record types with different numbers of columns").At(pos)
		}
		return nil, sqlerr.New(sqlerr.Syntax, "unequal number of entries in row expressions").At(pos)
	}
	if len(l.cols) == 0 {
		return nil, sqlerr.New(sqlerr.NotSupported, "cannot compare rows of zero length").At(pos)
	}
	return b.compareRows(name, l.cols, r.cols, l.whole() || r.whole(), pos)
}

// compareRows compares rows column by column; order comparisons are lexicographic.
// whole: as composite values, by an order in which NULL is above all else.
func (b *binder) compareRows(name string, ls, rs []expr.Expr, whole bool, pos int) (expr.Expr, error) {
	each := func(op string) ([]expr.Expr, error) {
		out := make([]expr.Expr, len(ls))
		for i := range ls {
			x, err := b.call(op, true, []expr.Expr{ls[i], rs[i]}, pos)
			if err != nil {
				return nil, err
			}
			if x.Type().OID != types.OIDBool {
				return nil, sqlerr.New(sqlerr.DatatypeMismatch, "row comparison operator must yield type boolean, not type %s", types.FormatType(x.Type())).At(pos)
			}
			if out[i] = x; !whole {
				continue
			}
			// One side of the comparison as the other wants it has been settled by call.
			l, r := x.(*expr.Call).Args[0], x.(*expr.Call).Args[1]
			switch op {
			case "=", "<>":
				d, err := b.distinctFrom(l, r, pos)
				if err != nil {
					return nil, err
				}
				if out[i] = d; op == "=" {
					out[i] = not(d)
				}
			default:
				if op[0] == '>' {
					l, r = r, l
				}
				less := or([]expr.Expr{&expr.Coalesce{Args: []expr.Expr{x, boolConst(false)}, Typ: types.Bool},
					expr.And(&expr.IsNull{Arg: r}, &expr.IsNull{Arg: l, Negate: true})})
				if len(op) == 2 {
					less = or([]expr.Expr{less, expr.And(&expr.IsNull{Arg: l}, &expr.IsNull{Arg: r})})
				}
				out[i] = less
			}
		}
		return out, nil
	}
	given, err := each(name)
	if err != nil {
		return nil, err
	}
	switch name {
	case "=":
		return expr.And(given...), nil
	case "<>":
		return or(given), nil
	case "<", "<=", ">", ">=":
		strict, err := each(name[:1])
		if err != nil {
			return nil, err
		}
		eq, err := each("=")
		if err != nil {
			return nil, err
		}
		out := given[len(given)-1]
		for i := len(ls) - 2; i >= 0; i-- {
			out = or([]expr.Expr{strict[i], expr.And(eq[i], out)})
		}
		return out, nil
	}
	return nil, sqlerr.New(sqlerr.NotSupported, "could not determine interpretation of row comparison operator %s", name).At(pos).
		WithHint("Row comparison operators must be associated with btree operator families.")
}

// distinct is IS DISTINCT FROM, of rows too.
func (e *env) distinct(l, r *ast.Node, pos int) (expr.Expr, error) {
	lrow, err := e.row(l)
	if err != nil {
		return nil, err
	}
	rrow, err := e.row(r)
	if err != nil {
		return nil, err
	}
	var ls, rs []expr.Expr
	switch {
	case lrow != nil && rrow != nil:
		if len(lrow.cols) != len(rrow.cols) {
			return nil, sqlerr.New(sqlerr.Syntax, "unequal number of entries in row expressions").At(pos)
		}
		ls, rs = lrow.cols, rrow.cols
	case lrow != nil || rrow != nil:
		return nil, sqlerr.Unsupported("IS DISTINCT FROM of a row and what is not written as a row").At(pos)
	default:
		args, err := e.exprs([]*ast.Node{l, r})
		if err != nil {
			return nil, err
		}
		ls, rs = args[:1], args[1:]
	}
	var conds []expr.Expr
	for i := range ls {
		c, err := e.b.distinctFrom(ls[i], rs[i], pos)
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	if len(conds) == 0 {
		return boolConst(false), nil
	}
	return or(conds), nil
}

// rowNull is row IS [NOT] NULL: every column is.
func rowNull(r *row, negate bool) expr.Expr {
	var conds []expr.Expr
	for _, c := range r.cols {
		conds = append(conds, &expr.IsNull{Arg: c, Negate: negate})
	}
	if len(conds) == 0 {
		return boolConst(!negate)
	}
	return expr.And(conds...)
}
