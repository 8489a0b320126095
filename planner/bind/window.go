package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A window is a bound window definition: what OVER names or spells out.
type window struct {
	partition []expr.Expr
	order     []sortKey
	frame     plan.Frame
	framed    bool // the frame was written
}

// A winCall is a window function, or an aggregate used as one, over expressions of
// the FROM row.
type winCall struct {
	name   string
	agg    *expr.AggFunc // nil: a window function proper
	args   []expr.Expr
	filter expr.Expr // nil: none
	typ    types.Type
	win    int // of collector.windows
	pos    int
}

// The grammar's bits for frames, as PostgreSQL has them.
const (
	frameRows               = 0x4
	frameGroups             = 0x8
	frameStartCurrent       = 0x200
	frameEndCurrent         = 0x400
	frameStartPreceding     = 0x800
	frameEndPreceding       = 0x1000
	frameStartFollowing     = 0x2000
	frameEndFollowing       = 0x4000
	frameEndUnboundedFollow = 0x100
	frameExcludeCurrent     = 0x8000
	frameExcludeGroup       = 0x10000
	frameExcludeTies        = 0x20000
	frameDefaults           = 0x2 | 0x20 | frameEndCurrent
	frameStartOffset        = frameStartPreceding | frameStartFollowing
	frameEndOffset          = frameEndPreceding | frameEndFollowing
)

const (
	rangeOffset = "RANGE with offset PRECEDING/FOLLOWING"
	lateralHint = "You might be able to move the set-returning function into a LATERAL FROM item."
)

// windowCall binds a call with an OVER clause and collects it.
func (e *env) windowCall(name string, x *ast.FuncCall) (expr.Expr, error) {
	pos := int(x.Location)
	isAgg := expr.IsAgg(name) && !expr.IsWindowFunc(name) // first_value and last_value are both
	switch {
	case isHypothetical(name) && x.AggWithinGroup:
		return nil, sqlerr.New(sqlerr.NotSupported, "OVER is not supported for ordered-set aggregate %s", name).At(pos)
	case isHypothetical(name) && len(x.Args) > 0:
		return nil, sqlerr.New(sqlerr.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name).At(pos)
	case !isAgg && !expr.IsWindowFunc(name):
		return nil, sqlerr.New(sqlerr.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", name).At(pos)
	case x.AggWithinGroup && isAgg:
		return nil, sqlerr.New(sqlerr.NotSupported, "OVER is not supported for ordered-set aggregate %s", name).At(pos)
	case x.AggWithinGroup:
		return nil, sqlerr.New(sqlerr.WrongObjectType, "window function %s cannot have WITHIN GROUP", name).At(pos)
	case x.AggDistinct:
		return nil, sqlerr.New(sqlerr.NotSupported, "DISTINCT is not implemented for window functions").At(pos)
	case isAgg && len(x.Args) == 0 && !x.AggStar:
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", name).At(pos)
	case len(x.AggOrder) > 0:
		return nil, sqlerr.New(sqlerr.NotSupported, "aggregate ORDER BY is not implemented for window functions").At(pos)
	case !isAgg && x.AggFilter != nil:
		return nil, sqlerr.New(sqlerr.NotSupported, "FILTER is not implemented for non-aggregate window functions").At(pos)
	case x.FuncVariadic:
		return nil, sqlerr.Unsupported("VARIADIC in a call of %s", name).At(pos)
	case e.inAgg:
		return nil, sqlerr.New(sqlerr.GroupingError, "aggregate function calls cannot contain window function calls").At(pos)
	case e.inWin:
		return nil, sqlerr.New(sqlerr.WindowingError, "window function calls cannot be nested").At(pos)
	case e.calls == nil || !e.windows:
		return nil, sqlerr.New(sqlerr.WindowingError, "window functions are not allowed in %s", e.clause).At(pos)
	}
	in := *e
	in.inWin = true
	c := winCall{name: name, pos: pos}
	if isAgg {
		a, err := in.aggCall(name, x, &in)
		if err != nil {
			return nil, err
		}
		c.agg, c.args, c.filter, c.typ = a.fn, a.args, a.filter, a.typ
	} else {
		args, err := in.exprs(x.Args)
		if err != nil {
			return nil, err
		}
		fn, want, err := expr.ResolveWindow(name, typesOf(args))
		if err != nil {
			return nil, at(err, pos)
		}
		for i, a := range args {
			if a, err = e.b.coerce(a, want[i], implicit, pos); err != nil {
				return nil, err
			}
			c.args = append(c.args, a)
		}
		c.typ = fn.Type(typesOf(c.args))
	}
	var err error
	if c.win, err = e.over(x.Over); err != nil {
		return nil, err
	}
	for i, o := range e.calls.wins {
		if o.equal(c) {
			return &expr.ColRef{Index: winMark + i, Typ: c.typ, Name: name}, nil
		}
	}
	e.calls.wins = append(e.calls.wins, c)
	return &expr.ColRef{Index: winMark + len(e.calls.wins) - 1, Typ: c.typ, Name: name}, nil
}

// isHypothetical: rank and its like are aggregates with WITHIN GROUP, too.
func isHypothetical(name string) bool {
	switch name {
	case "rank", "dense_rank", "percent_rank", "cume_dist":
		return true
	}
	return false
}

func (c winCall) equal(o winCall) bool {
	same := c.name == o.name && c.agg == o.agg && c.win == o.win && slices.EqualFunc(c.args, o.args, expr.Equal)
	if !same || c.filter == nil || o.filter == nil {
		return same && c.filter == nil && o.filter == nil
	}
	return expr.Equal(c.filter, o.filter)
}

// A namedWindow is an entry of the WINDOW clause, bound when it is first needed.
type namedWindow struct {
	def *ast.WindowDef
	win int // -1: not bound yet
}

// windowClause takes the WINDOW clause; what no OVER names is bound for its errors.
func (q *selection) windowClause(list []*ast.Node) error {
	for _, n := range list {
		def := n.GetWindowDef()
		if slices.ContainsFunc(q.calls.named, func(o namedWindow) bool { return o.def.Name == def.Name }) {
			return sqlerr.New(sqlerr.WindowingError, `window "%s" is already defined`, def.Name).At(int(def.Location))
		}
		q.calls.named = append(q.calls.named, namedWindow{def, -1})
	}
	return nil
}

// over finds or binds the window that an OVER clause means and returns its number.
func (e *env) over(def *ast.WindowDef) (int, error) {
	if def.Name != "" {
		return e.namedWindow(def.Name, len(e.calls.named), int(def.Location))
	}
	w, err := e.window(def, len(e.calls.named))
	if err != nil {
		return 0, err
	}
	return e.calls.addWindow(w), nil
}

// namedWindow finds a window among the first n of the WINDOW clause.
func (e *env) namedWindow(name string, n, pos int) (int, error) {
	i := slices.IndexFunc(e.calls.named[:n], func(o namedWindow) bool { return o.def.Name == name })
	if i < 0 {
		return 0, sqlerr.New(sqlerr.UndefinedObject, `window "%s" does not exist`, name).At(pos)
	}
	o := &e.calls.named[i]
	if o.win < 0 {
		w, err := e.window(o.def, i)
		if err != nil {
			return 0, err
		}
		o.win = e.calls.addWindow(w)
	}
	return o.win, nil
}

// addWindow keeps a window, or finds one like it.
func (c *collector) addWindow(w *window) int {
	same := func(a, b sortKey) bool {
		return a.desc == b.desc && a.nullsFirst == b.nullsFirst && expr.Equal(a.x, b.x)
	}
	bound := func(a, b plan.Bound) bool {
		return a.Kind == b.Kind && (a.Offset == nil || expr.Equal(a.Offset, b.Offset))
	}
	i := slices.IndexFunc(c.windows, func(o *window) bool {
		return slices.EqualFunc(o.partition, w.partition, expr.Equal) && slices.EqualFunc(o.order, w.order, same) &&
			o.framed == w.framed && o.frame.Mode == w.frame.Mode && o.frame.Exclude == w.frame.Exclude &&
			bound(o.frame.Start, w.frame.Start) && bound(o.frame.End, w.frame.End)
	})
	if i < 0 {
		i = len(c.windows)
		c.windows = append(c.windows, w)
	}
	return i
}

// window binds a definition, which may copy one of the first n of the WINDOW clause.
func (e *env) window(def *ast.WindowDef, n int) (*window, error) {
	pos := int(def.Location)
	in := *e
	in.inWin, in.inAgg = false, false
	in.windows, in.clause, in.noSets = false, "window definitions", "window definitions"
	w := &window{}
	var base *window
	if def.Refname != "" {
		i, err := e.namedWindow(def.Refname, n, pos)
		if err != nil {
			return nil, err
		}
		base = e.calls.windows[i]
	}
	for _, k := range def.OrderClause {
		key, err := in.typedKey(k)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(w.order, func(o sortKey) bool { return expr.Equal(o.x, key.x) }) {
			w.order = append(w.order, key)
		}
	}
	for _, p := range def.PartitionClause {
		x, err := in.expr(p)
		if err != nil {
			return nil, err
		}
		if x, err = e.b.known(x); err != nil {
			return nil, err
		}
		if sortable(x.Type(), location(p)) != nil {
			return nil, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(x.Type())).At(location(p))
		}
		if !slices.ContainsFunc(w.partition, func(o expr.Expr) bool { return expr.Equal(o, x) }) {
			w.partition = append(w.partition, x)
		}
	}
	options := int(def.FrameOptions)
	if base != nil {
		switch {
		case len(w.partition) > 0:
			return nil, sqlerr.New(sqlerr.WindowingError, `cannot override PARTITION BY clause of window "%s"`, def.Refname).At(pos)
		case len(w.order) > 0 && len(base.order) > 0:
			return nil, sqlerr.New(sqlerr.WindowingError, `cannot override ORDER BY clause of window "%s"`, def.Refname).At(pos)
		case base.framed:
			err := sqlerr.New(sqlerr.WindowingError, `cannot copy window "%s" because it has a frame clause`, def.Refname).At(pos)
			if def.Name == "" && len(w.order) == 0 && options == frameDefaults {
				err = err.WithHint("Omit the parentheses in this OVER clause.")
			}
			return nil, err
		}
		w.partition = base.partition
		if len(w.order) == 0 {
			w.order = base.order
		}
	}
	return w, in.frame(w, def, options)
}

// frame binds a window's frame clause.
func (e *env) frame(w *window, def *ast.WindowDef, options int) error {
	pos := int(def.Location)
	f := &w.frame
	w.framed = options != frameDefaults
	what := "RANGE"
	switch {
	case options&frameRows != 0:
		f.Mode, what = plan.Rows, "ROWS"
	case options&frameGroups != 0:
		f.Mode, what = plan.Groups, "GROUPS"
		if len(w.order) == 0 {
			return sqlerr.New(sqlerr.WindowingError, "GROUPS mode requires an ORDER BY clause").At(pos)
		}
	case options&(frameStartOffset|frameEndOffset) != 0 && len(w.order) != 1:
		return sqlerr.New(sqlerr.WindowingError, "%s requires exactly one ORDER BY column", rangeOffset).At(pos)
	}
	switch {
	case options&frameExcludeCurrent != 0:
		f.Exclude = plan.ExcludeCurrentRow
	case options&frameExcludeGroup != 0:
		f.Exclude = plan.ExcludeGroup
	case options&frameExcludeTies != 0:
		f.Exclude = plan.ExcludeTies
	}
	f.Start, f.End = plan.Bound{Kind: plan.UnboundedPreceding}, plan.Bound{Kind: plan.CurrentRow}
	switch {
	case options&frameStartCurrent != 0:
		f.Start.Kind = plan.CurrentRow
	case options&frameStartPreceding != 0:
		f.Start.Kind = plan.Preceding
	case options&frameStartFollowing != 0:
		f.Start.Kind = plan.Following
	}
	switch {
	case options&frameEndUnboundedFollow != 0:
		f.End.Kind = plan.UnboundedFollowing
	case options&frameEndPreceding != 0:
		f.End.Kind = plan.Preceding
	case options&frameEndFollowing != 0:
		f.End.Kind = plan.Following
	}
	var err error
	if options&frameStartOffset != 0 {
		if f.Start.Offset, err = e.frameOffset(w, def.StartOffset, what); err != nil {
			return err
		}
	}
	if options&frameEndOffset != 0 {
		f.End.Offset, err = e.frameOffset(w, def.EndOffset, what)
	}
	return err
}

// frameOffset binds the offset of a frame's bound: a bigint for ROWS and GROUPS, what
// can be added to the order column for RANGE.
func (e *env) frameOffset(w *window, n *ast.Node, what string) (expr.Expr, error) {
	in := *e
	in.calls = nil
	in.clause = "window " + what
	x, err := in.expr(n)
	if err != nil {
		if sqlerr.Code(err) == sqlerr.WindowingError {
			err = sqlerr.New(sqlerr.WindowingError, "window functions are not allowed in window definitions").At(sqlerr.From(err).Pos - 1)
		}
		return nil, err
	}
	if v := firstColumn(x); v != nil {
		return nil, sqlerr.New("42P10", "argument of %s must not contain variables", what).At(e.b.posOf(v))
	}
	want := types.Int8
	if what == "RANGE" {
		col := w.order[0].x.Type().Base()
		have := x.Type().Base()
		var fits []types.Type
		switch col.OID {
		case types.OIDInt2, types.OIDInt4:
			fits = []types.Type{types.Int2, types.Int4, types.Int8}
		case types.OIDInt8:
			fits = []types.Type{types.Int8}
		case types.OIDFloat4, types.OIDFloat8:
			want, fits = types.Float8, []types.Type{types.Float8}
		case types.OIDNumeric:
			want, fits = types.Numeric, []types.Type{types.Numeric}
		case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz, types.OIDInterval:
			want, fits = types.IntervalT, []types.Type{types.IntervalT}
		default:
			return nil, sqlerr.New(sqlerr.NotSupported, "%s is not supported for column type %s", rangeOffset, types.FormatType(col)).At(location(n))
		}
		if have.OID != types.OIDUnknown && !slices.ContainsFunc(fits, func(t types.Type) bool { return expr.CanCast(have, t, expr.Implicit) }) {
			return nil, sqlerr.New(sqlerr.NotSupported, "%s is not supported for column type %s and offset type %s", rangeOffset,
				types.FormatType(col), types.FormatType(have)).At(location(n)).WithHint("Cast the offset value to an appropriate type.")
		}
		if have.OID == types.OIDUnknown && want.OID == types.OIDInt8 {
			if x, err = e.b.coerce(x, col, implicit, location(n)); err != nil { // read as PostgreSQL reads it
				return nil, err
			}
		}
		return e.b.coerce(x, want, implicit, location(n))
	}
	y, err := e.b.coerce(x, want, assignment, location(n))
	if err != nil && sqlerr.Code(err) == sqlerr.DatatypeMismatch {
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "argument of %s must be type bigint, not type %s", what, types.FormatType(x.Type())).At(location(n))
	}
	return y, err
}

// firstColumn is a reference to a column in x, nil if there is none.
func firstColumn(x expr.Expr) expr.Expr {
	var hit expr.Expr
	visitExpr(x, func(y expr.Expr) {
		if c, ok := y.(*expr.ColRef); ok && hit == nil {
			hit = c
		}
	})
	return hit
}

// A windowing computes the windows of a selection over its (perhaps grouped) rows.
type windowing struct {
	calls   []winCall
	windows []*window
}

// lowerTo is w with every expression replaced by f's.
func (w *windowing) lowerTo(f func(expr.Expr) (expr.Expr, error)) (*windowing, error) {
	var err error
	one := func(x expr.Expr) expr.Expr {
		if x == nil || err != nil {
			return x
		}
		var y expr.Expr
		if y, err = f(x); err != nil {
			return x
		}
		return y
	}
	out := &windowing{calls: slices.Clone(w.calls), windows: make([]*window, len(w.windows))}
	for i := range out.calls {
		c := &out.calls[i]
		c.args = slices.Clone(c.args)
		for j := range c.args {
			c.args[j] = one(c.args[j])
		}
		c.filter = one(c.filter)
	}
	for i, o := range w.windows {
		n := *o
		n.partition, n.order = slices.Clone(o.partition), slices.Clone(o.order)
		for j := range n.partition {
			n.partition[j] = one(n.partition[j])
		}
		for j := range n.order {
			n.order[j].x = one(n.order[j].x)
		}
		out.windows[i] = &n
	}
	return out, err
}

// over builds the Window nodes over node, one for each partition and order, and
// returns where each call's column is.
func (w *windowing) over(node plan.Node) (plan.Node, []int) {
	pre := identity(node)
	width := len(pre.Exprs)
	add := func(e expr.Expr) int {
		if c, ok := e.(*expr.ColRef); ok {
			return c.Index
		}
		for i, p := range pre.Exprs {
			if i >= width && expr.Equal(p, e) {
				return i
			}
		}
		pre.Exprs, pre.Names = append(pre.Exprs, e), append(pre.Names, "$expr")
		return len(pre.Exprs) - 1
	}
	var nodes []*plan.Window
	at := make([][2]int, len(w.calls)) // the node and the function of each call
	for i, c := range w.calls {
		win := w.windows[c.win]
		n := &plan.Window{}
		for _, x := range win.partition {
			n.PartitionBy = append(n.PartitionBy, add(x))
		}
		for _, k := range win.order {
			n.OrderBy = append(n.OrderBy, expr.Order{Col: add(k.x), Desc: k.desc, NullsFirst: k.nullsFirst})
		}
		k := slices.IndexFunc(nodes, func(o *plan.Window) bool {
			return slices.Equal(o.PartitionBy, n.PartitionBy) && slices.Equal(o.OrderBy, n.OrderBy)
		})
		if k < 0 {
			k = len(nodes)
			nodes = append(nodes, n)
		}
		n = nodes[k]
		f := plan.WindowFunc{Typ: c.typ, Frame: win.frame}
		if c.agg == nil {
			f.Name, f.Args = c.name, c.args
		} else {
			f.Agg = expr.Agg{Fn: c.agg, Typ: c.typ, Filter: -1}
			for _, x := range c.args {
				f.Agg.Args = append(f.Agg.Args, add(x))
			}
			if c.filter != nil {
				f.Agg.Filter = add(c.filter)
			}
		}
		at[i] = [2]int{k, len(n.Funcs)}
		n.Funcs, n.Names = append(n.Funcs, f), append(n.Names, c.name)
	}
	if len(pre.Exprs) > width {
		node = pre
	}
	base := make([]int, len(nodes))
	for i, n := range nodes {
		base[i] = len(node.Schema())
		n.Input = node
		node = n
	}
	where := make([]int, len(at))
	for i, p := range at {
		where[i] = base[p[0]] + p[1]
	}
	return node, where
}
