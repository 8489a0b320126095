package planner

import (
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A world is a catalog with sizes, for tests. Relations are described in a line:
//
//	table flights _row_id* int8, origin text, delay int4 [dist=…] [rows=3000000] [append]
//	index flights_origin of=flights origin* … (columns of the relation)
//
// A star marks key columns, in order; ~ hides a column.
type world struct {
	rels []*catalog.Relation
	rows map[catalog.ID]int64
}

func (w *world) Rows(id catalog.ID) int64  { return w.rows[id] }
func (w *world) Bytes(id catalog.ID) int64 { return 50 * w.rows[id] }

func (w *world) snapshot() *catalog.Snapshot {
	return catalog.NewSnapshot([]string{"public"}, w.rels)
}

func (w *world) rel(name string) *catalog.Relation {
	for _, r := range w.rels {
		if r.Name == name {
			return r
		}
	}
	panic("no relation " + name)
}

var typesByName = map[string]types.Type{"int4": types.Int4, "int8": types.Int8, "text": types.Text, "numeric": types.Numeric,
	"bool": types.Bool, "date": types.Date, "float8": types.Float8, "timestamp": types.Timestamp}

// add defines a relation.
func (w *world) add(kind catalog.Kind, name, columns string, options ...string) *catalog.Relation {
	r := &catalog.Relation{ID: catalog.FirstUserID + catalog.ID(len(w.rels)), Schema: "public", Name: name, Kind: kind, Vnodes: 64}
	for i, c := range strings.Split(columns, ", ") {
		col, typ, _ := strings.Cut(c, " ")
		key := strings.HasSuffix(col, "*")
		col = strings.TrimSuffix(col, "*")
		hidden := strings.HasPrefix(col, "_")
		if key {
			r.Key = append(r.Key, catalog.KeyColumn{Col: i})
			r.Dist = append(r.Dist, i)
			r.PrimaryKey++
		}
		r.Columns = append(r.Columns, catalog.Column{Name: col, Type: typesByName[typ], Hidden: hidden})
	}
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		switch k {
		case "rows":
			var n int64
			fmt.Sscan(v, &n)
			w.rows[r.ID] = n
		case "dist":
			r.Dist = nil
			for _, d := range strings.Split(v, ",") {
				r.Dist = append(r.Dist, slices.IndexFunc(r.Columns, func(c catalog.Column) bool { return c.Name == d }))
			}
		case "single":
			r.Dist = nil
		case "append":
			r.AppendOnly = true
		case "of":
			base := w.rel(v)
			r.Of = base.ID
			for _, c := range r.Columns {
				r.IndexCols = append(r.IndexCols, slices.IndexFunc(base.Columns, func(b catalog.Column) bool { return b.Name == c.Name }))
			}
		}
	}
	w.rels = append(w.rels, r)
	return r
}

func newWorld() *world {
	w := &world{rows: map[catalog.ID]int64{}}
	w.add(catalog.Table, "flights", "_row_id* int8, day date, origin text, dest text, carrier text, delay int4", "rows=3000000")
	w.add(catalog.Table, "airports", "iata* text, name text, state text", "rows=350")
	w.add(catalog.Table, "t", "id* int4, a int4, b text, c int4", "rows=100000")
	w.add(catalog.Table, "u", "id* int4, a int4, b text", "rows=100000")
	w.add(catalog.Index, "t_a", "a* int4, id* int4, b text, c int4", "of=t", "dist=a")
	w.add(catalog.Index, "u_b", "b* text, id* int4", "of=u", "dist=b")
	w.add(catalog.Table, "events", "_row_id* int8, kind text, v int8", "append", "rows=1000")
	w.add(catalog.Table, "one", "id* int4, x int4", "single")
	return w
}

// A rowset builds a plan, with columns found by name.
type rowset struct {
	w *world
	n plan.Node
	// names of the columns: "alias.column"
	names []string
}

func (w *world) scan(name, alias string) rowset {
	r := w.rel(name)
	if alias == "" {
		alias = name
	}
	out := rowset{w: w, n: &plan.Scan{Rel: r, Cols: upTo(len(r.Columns)), Alias: alias}}
	for _, c := range r.Columns {
		out.names = append(out.names, alias+"."+c.Name)
	}
	return out
}

func (r rowset) at(name string) int {
	i := slices.IndexFunc(r.names, func(n string) bool { return n == name || strings.HasSuffix(n, "."+name) })
	if i < 0 {
		panic("no column " + name + " in " + strings.Join(r.names, " "))
	}
	return i
}

func (r rowset) cols(names ...string) []int {
	out := []int{}
	for _, n := range names {
		out = append(out, r.at(n))
	}
	return out
}

func (r rowset) col(name string) expr.Expr {
	i := r.at(name)
	return &expr.ColRef{Index: i, Typ: r.n.Schema()[i].Type, Name: r.names[i]}
}

// op makes an operator call.
func op(name string, l, r expr.Expr) expr.Expr {
	fn, _, err := expr.Resolve(name, true, []types.Type{l.Type(), r.Type()})
	if err != nil {
		panic(err)
	}
	return &expr.Call{Fn: fn, Args: []expr.Expr{l, r}, Typ: fn.Ret}
}

func num(n int64) expr.Expr    { return &expr.Const{Val: types.NewInt(n), Typ: types.Int4} }
func big(n int64) expr.Expr    { return &expr.Const{Val: types.NewInt(n), Typ: types.Int8} }
func str(s string) expr.Expr   { return &expr.Const{Val: types.NewString(s), Typ: types.Text} }
func boolean(b bool) expr.Expr { return &expr.Const{Val: types.NewBool(b), Typ: types.Bool} }

func (r rowset) where(conds ...expr.Expr) rowset {
	r.n = &plan.Filter{Input: r.n, Cond: and(conds)}
	return r
}

// join joins; on gets both sides' columns.
func (r rowset) join(kind plan.JoinKind, o rowset, on func(both rowset) expr.Expr) rowset {
	both := rowset{w: r.w, names: slices.Concat(r.names, o.names)}
	both.n = &plan.Join{Kind: plan.Inner, Left: r.n, Right: o.n}
	j := &plan.Join{Kind: kind, Left: r.n, Right: o.n}
	if on != nil {
		j.On = on(both)
	}
	out := rowset{w: r.w, n: j, names: both.names}
	if kind == plan.Semi || kind == plan.Anti {
		out.names = r.names
	}
	return out
}

func (r rowset) equal(a, b string) expr.Expr { return op("=", r.col(a), r.col(b)) }

// project takes "column", or "name" with an expression.
func (r rowset) project(what ...any) rowset {
	p := &plan.Project{Input: r.n}
	out := rowset{w: r.w, n: p}
	for i := 0; i < len(what); i++ {
		name := what[i].(string)
		if i+1 < len(what) {
			if e, ok := what[i+1].(expr.Expr); ok {
				p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, name)
				out.names = append(out.names, name)
				i++
				continue
			}
		}
		p.Exprs, p.Names = append(p.Exprs, r.col(name)), append(p.Names, name)
		out.names = append(out.names, name)
	}
	return out
}

var retractable = map[string]bool{"count": true, "sum": true, "avg": true}

// agg takes calls as "sum(a)", "count(distinct b)", "count()", each with its name.
func (r rowset) agg(by []string, calls ...string) rowset {
	a := &plan.Agg{Input: r.n, GroupBy: r.cols(by...)}
	if len(by) == 0 {
		a.GroupBy = nil
	}
	out := rowset{w: r.w, n: a, names: slices.Clone(by)}
	for _, c := range calls {
		fn, arg, _ := strings.Cut(strings.TrimSuffix(c, ")"), "(")
		g := expr.Agg{Fn: &expr.AggFunc{Name: fn, Retractable: retractable[fn]}, Typ: types.Int8, Filter: -1}
		if d, ok := strings.CutPrefix(arg, "distinct "); ok {
			g.Distinct, arg = true, d
		}
		if arg != "" {
			g.Args = r.cols(arg)
		}
		if fn == "max" || fn == "min" {
			g.Typ = r.n.Schema()[g.Args[0]].Type
		}
		a.Aggs, a.Names = append(a.Aggs, g), append(a.Names, c)
		out.names = append(out.names, c)
	}
	return out
}

func (r rowset) sort(by ...string) rowset {
	r.n = &plan.Sort{Input: r.n, By: r.order(by...)}
	return r
}

func (r rowset) order(by ...string) []expr.Order {
	var out []expr.Order
	for _, b := range by {
		name, desc := strings.CutPrefix(b, "-")
		out = append(out, expr.Order{Col: r.at(name), Desc: desc, NullsFirst: desc})
	}
	return out
}

func (r rowset) limit(n int64) rowset {
	r.n = &plan.Limit{Input: r.n, Count: big(n)}
	return r
}

func (r rowset) distinct(on ...string) rowset {
	d := &plan.Distinct{Input: r.n}
	if on != nil {
		d.On = r.cols(on...)
	}
	r.n = d
	return r
}

func setOp(op plan.SetOpKind, all bool, ins ...rowset) rowset {
	s := &plan.SetOp{Op: op, All: all, Out: ins[0].n.Schema()}
	for _, in := range ins {
		s.Ins = append(s.Ins, in.n)
	}
	return rowset{w: ins[0].w, n: s, names: ins[0].names}
}

func (r rowset) query() *plan.Query {
	q := &plan.Query{Root: r.n}
	for _, n := range r.names {
		if !strings.Contains(n, "(") {
			n = n[strings.LastIndex(n, ".")+1:]
		}
		if slices.Contains(q.Names, n) {
			n += "_2"
		}
		q.Names = append(q.Names, n)
	}
	return q
}
