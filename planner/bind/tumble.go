package bind

import (
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// TUMBLE(relation, column, size [, offset]) and HOP(relation, column, hop, size [, offset])
// in FROM give the relation's rows with the window of time that they fall into, as
// window_start and window_end: one row each for TUMBLE, one for every overlapping window
// for HOP. Windows count from 1970; the offset moves them, or is the name of a time zone
// whose local time they are aligned to. A row without a time is in no window.

// isWindowing reports whether a FROM item is TUMBLE(…) or HOP(…).
func isWindowing(n *ast.RangeFunction) bool {
	if len(n.Functions) != 1 {
		return false
	}
	call := n.Functions[0].GetList().GetItems()[0].GetFuncCall()
	if call == nil || len(call.Funcname) != 1 {
		return false
	}
	name := funcName(call.Funcname)
	return name == "tumble" || name == "hop"
}

func (b *binder) windowing(n *ast.RangeFunction, in names) (*from, error) {
	call := n.Functions[0].GetList().GetItems()[0].GetFuncCall()
	name := funcName(call.Funcname)
	pos := int(call.Location)
	sizes := 1
	if name == "hop" {
		sizes = 2
	}
	if len(call.Args) < 2+sizes || len(call.Args) > 3+sizes || n.Ordinality || len(n.Coldeflist) > 0 {
		return nil, sqlerr.New(sqlerr.Syntax, "%s takes a relation, a column of it, %s and perhaps an offset", strings.ToUpper(name),
			[...]string{"", "the size of the window", "the hop, the size of the window"}[sizes]).At(pos)
	}
	f, err := b.windowedRelation(call.Args[0], name, in)
	if err != nil {
		return nil, err
	}
	e := &env{b: b, scope: &scope{from: f, parent: in.blind()}, ctes: in.ctes, clause: "functions in FROM"}
	ref := call.Args[1].GetColumnRef()
	if ref == nil {
		return nil, sqlerr.New(sqlerr.Syntax, "the second argument of %s must be a column", strings.ToUpper(name)).At(location(call.Args[1]))
	}
	ts, err := e.columnRef(ref)
	if err != nil {
		return nil, err
	}
	col := ts
	switch ts.Type().OID {
	case types.OIDTimestamp, types.OIDTimestamptz:
	case types.OIDDate:
		if ts, err = b.coerce(ts, types.Timestamp, implicit, pos); err != nil {
			return nil, err
		}
	default:
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "%s needs a column of type date, timestamp or timestamptz, not %s", strings.ToUpper(name),
			types.FormatType(ts.Type())).At(location(call.Args[1]))
	}
	w := &timeWindows{b: b, pos: pos, local: ts, typ: ts.Type().Base()}
	for i, a := range call.Args[2 : 2+sizes] {
		x, err := e.constantInterval(a, name)
		if err != nil {
			return nil, err
		}
		if w.size = x; i == 0 {
			w.hop = x
		}
	}
	if len(call.Args) > 2+sizes {
		if err := w.offset(e, call.Args[2+sizes], name); err != nil {
			return nil, err
		}
	}
	if w.zone == nil && w.typ.OID == types.OIDTimestamptz { // whatever the session's time zone
		if err := w.in(&expr.Const{Val: types.NewString("UTC"), Typ: types.Text}); err != nil {
			return nil, err
		}
	}
	return w.over(f, n.Alias, col, name == "hop")
}

// windowedRelation binds the first argument: the name of a relation or of a WITH query.
func (b *binder) windowedRelation(n *ast.Node, name string, in names) (*from, error) {
	ref := n.GetColumnRef()
	parts := []string{}
	if ref != nil {
		parts = strs(ref.Fields)
	}
	if ref == nil || len(parts) != len(ref.Fields) || len(parts) > 2 {
		return nil, sqlerr.New(sqlerr.Syntax, "the first argument of %s must be the name of a relation", strings.ToUpper(name)).At(location(n))
	}
	rv := &ast.RangeVar{Relname: parts[len(parts)-1], Location: ref.Location, Inh: true}
	if len(parts) == 2 {
		rv.Schemaname = parts[0]
	}
	return b.rangeVar(rv, in)
}

// constantInterval binds the size of a window: an interval without columns, above zero if it is known.
func (e *env) constantInterval(n *ast.Node, name string) (expr.Expr, error) {
	x, err := e.expr(n)
	if err != nil {
		return nil, err
	}
	if x, err = e.b.coerce(x, types.IntervalT, implicit, location(n)); err != nil {
		return nil, err
	}
	if firstColumn(x) != nil || expr.HasSubquery(x) {
		return nil, sqlerr.New(sqlerr.InvalidParameter, "the size of a window of %s must be a constant", strings.ToUpper(name)).At(location(n))
	}
	if c, ok := x.(*expr.Const); ok {
		v := c.Val.Interval()
		switch {
		case c.Val.IsNull() || v.Months == 0 && int64(v.Days)*86_400_000_000+v.Micros <= 0:
			return nil, sqlerr.New(sqlerr.InvalidParameter, "the size of a window of %s must be above zero", strings.ToUpper(name)).At(location(n))
		case v.Months != 0:
			return nil, sqlerr.New(sqlerr.NotSupported, "windows of months or years are not supported").At(location(n)).
				WithHint("Group by date_trunc('month', …) instead.")
		}
	}
	return x, nil
}

// timeWindows computes windows of time.
type timeWindows struct {
	b         *binder
	pos       int
	typ       types.Type // of the windows' ends
	local     expr.Expr  // the time that windows are counted in
	hop, size expr.Expr
	shift     expr.Expr // an interval; nil: none
	zone      expr.Expr // nil: none
}

func (w *timeWindows) call(name string, operator bool, args ...expr.Expr) (expr.Expr, error) {
	return w.b.call(name, operator, args, w.pos)
}

// offset binds the last argument: an interval, or a time zone for a timestamptz.
func (w *timeWindows) offset(e *env, n *ast.Node, name string) error {
	x, err := e.expr(n)
	if err != nil {
		return err
	}
	if y, err := w.b.coerce(x, types.IntervalT, implicit, location(n)); err == nil {
		w.shift = y
		return nil
	} else if x.Type().OID != types.OIDUnknown && x.Type().OID != types.OIDText || w.typ.OID != types.OIDTimestamptz {
		return err
	}
	if x, err = w.b.known(x); err != nil {
		return err
	}
	return w.in(x)
}

// in counts windows in the local time of a zone.
func (w *timeWindows) in(zone expr.Expr) (err error) {
	w.zone = zone
	w.local, err = w.call("timezone", false, zone, w.local)
	return err
}

// bin is where the window of a hop's length begins that the time is in.
func (w *timeWindows) bin() (expr.Expr, error) {
	const epoch = -946_684_800_000_000 // 1970 as microseconds from 2000
	var origin expr.Expr = &expr.Const{Val: types.NewInt(epoch), Typ: w.local.Type().Base()}
	if w.shift != nil {
		var err error
		if origin, err = w.call("+", true, origin, w.shift); err != nil {
			return nil, err
		}
	}
	return w.call("date_bin", false, w.hop, w.local, origin)
}

// over puts the windows over the rows of f, whose time is col.
func (w *timeWindows) over(f *from, alias *ast.Alias, col expr.Expr, hops bool) (*from, error) {
	// A row of no time would have NULL windows.
	var node plan.Node = &plan.Filter{Input: f.node, Cond: &expr.IsNull{Arg: col, Negate: true}}
	width := f.width()
	start, err := w.bin()
	if err != nil {
		return nil, err
	}
	if hops {
		first, err := w.call("-", true, start, w.size)
		if err != nil {
			return nil, err
		}
		if first, err = w.call("+", true, first, w.hop); err != nil {
			return nil, err
		}
		args := []expr.Expr{first, start, w.hop}
		fn, want, err := expr.ResolveTableFunc("generate_series", typesOf(args))
		if err != nil {
			return nil, at(err, w.pos)
		}
		for i := range args {
			if args[i], err = w.b.coerce(args[i], want[i], implicit, w.pos); err != nil {
				return nil, err
			}
		}
		node = &plan.ProjectSet{Input: node, Fns: []*expr.TableFunc{fn}, Args: [][]expr.Expr{args}, Names: []string{"window_start"}}
		start = &expr.ColRef{Index: width, Typ: w.local.Type().Base(), Name: "window_start"}
	}
	end, err := w.call("+", true, start, w.size)
	if err != nil {
		return nil, err
	}
	if w.zone != nil { // back from local time
		if start, err = w.call("timezone", false, w.zone, start); err != nil {
			return nil, err
		}
		if end, err = w.call("timezone", false, w.zone, end); err != nil {
			return nil, err
		}
	}
	p := identity(node)
	p.Exprs, p.Names = append(p.Exprs[:width:width], start, end), append(p.Names[:width:width], "window_start", "window_end")
	src := f.tables[0]
	t := &table{alias: src.alias, schema: src.schema, work: src.work}
	if alias != nil {
		t.alias, t.schema = alias.Aliasname, ""
	}
	for _, c := range src.cols {
		if !c.sys {
			m := *c
			m.table = t
			t.cols = append(t.cols, &m)
		}
	}
	for i, name := range []string{"window_start", "window_end"} {
		if slices.ContainsFunc(t.cols, func(c *column) bool { return c.name == name }) {
			return nil, sqlerr.New(sqlerr.DuplicateColumn, `relation "%s" has a column "%s" already`, src.alias, name).At(w.pos)
		}
		t.cols = append(t.cols, &column{name: name, typ: w.typ, index: width + i, table: t})
	}
	if err := t.rename(alias); err != nil {
		return nil, err
	}
	return &from{node: p, tables: []*table{t}, cols: t.cols}, nil
}
