package planner

import (
	"fmt"
	"slices"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A builder makes streaming operators from relational nodes.
//
// Invariants of what build returns:
//  1. Its columns begin with the node's columns, in order. Others follow; they are
//     there because the stream key needs them.
//  2. Its key identifies a row at any time, and the columns of its distribution are
//     part of it, so that all changes of one key come from one actor, in order.
//  3. It is no exchange: whoever needs another distribution adds the exchange.
type builder struct {
	cat          *catalog.Snapshot
	s            Settings
	st           Stats
	upstreamOnly bool // scans deliver changes only: a sink without snapshot
	computed     int  // numbers $expr names
	notices      []string
	reads        []catalog.ID
}

func newBuilder(cat *catalog.Snapshot, s Settings, st Stats) *builder {
	if st == nil {
		st = noStats{}
	}
	return &builder{cat: cat, s: s, st: st}
}

func (b *builder) vnodes() int {
	if b.s.Vnodes > 0 {
		return b.s.Vnodes
	}
	return defaultVnodes
}

// query plans a whole query.
func (b *builder) query(n plan.Node) (plan.Stream, error) {
	n, err := Optimize(n, b.s, b.st)
	if err != nil {
		return nil, err
	}
	return b.build(n)
}

func (b *builder) build(n plan.Node) (plan.Stream, error) {
	for _, e := range nodeExprs(n) {
		if err := checkView(e); err != nil {
			return nil, err
		}
	}
	switch n := n.(type) {
	case *plan.Scan:
		return b.scan(n)
	case *plan.Values:
		return b.values(n)
	case *plan.Filter:
		in, err := b.build(n.Input)
		if err != nil {
			return nil, err
		}
		return &plan.StreamFilter{Operator: passProps(in), Cond: n.Cond}, nil
	case *plan.Project:
		if j, ok := n.Input.(*plan.Join); ok && isPlain(n.Exprs) {
			return b.join(j, columnsOf(n.Exprs))
		}
		in, err := b.build(n.Input)
		if err != nil {
			return nil, err
		}
		return b.project(in, n.Exprs), nil
	case *plan.Join:
		return b.join(n, upTo(len(n.Schema())))
	case *plan.Agg:
		return b.agg(n)
	case *plan.Distinct:
		return b.distinct(n)
	case *plan.Limit:
		return b.limit(n)
	case *plan.Sort:
		if d, ok := n.Input.(*plan.Distinct); ok && d.On != nil { // the order was for DISTINCT ON
			return b.build(d)
		}
		b.notice("ORDER BY without LIMIT is ignored: the rows of a relation have no order")
		return b.build(n.Input)
	case *plan.SetOp:
		return b.setOp(n)
	case *plan.FuncScan:
		return nil, sqlerr.Unsupported("table function %s() in a streaming query", n.Fn.Name)
	case *plan.ProjectSet:
		return nil, sqlerr.Unsupported("set-returning function %s() in a streaming query", n.Fns[0].Name)
	default:
		return nil, fmt.Errorf("planner: unsupported in a stream: %T", n)
	}
}

func (b *builder) notice(text string) {
	if !slices.Contains(b.notices, text) {
		b.notices = append(b.notices, text)
	}
}

// isPlain reports whether es are different plain columns.
func isPlain(es []expr.Expr) bool {
	for _, e := range es {
		if _, ok := e.(*expr.ColRef); !ok {
			return false
		}
	}
	cols := columnsOf(es)
	return len(union(cols)) == len(cols)
}

// passProps are the properties of an operator that changes nothing but which rows come out.
func passProps(in plan.Stream) plan.Props {
	p := *in.Props()
	p.In, p.Locality, p.StateRows, p.StateBytes = []plan.Stream{in}, "", 0, 0
	return p
}

// project computes es, and passes on the key columns that they leave out.
func (b *builder) project(in plan.Stream, es []expr.Expr) plan.Stream {
	from := in.Props()
	p := plan.Props{AppendOnly: from.AppendOnly, In: []plan.Stream{in}}
	es = slices.Clone(es)
	at := map[int]int{} // input column → output column
	for i, e := range es {
		name := ""
		if c, ok := e.(*expr.ColRef); ok {
			name = from.Schema[c.Index].Name
			if _, dup := at[c.Index]; !dup {
				at[c.Index] = i
			}
		} else {
			b.computed++
			name = fmt.Sprintf("$expr%d", b.computed)
		}
		p.Schema = append(p.Schema, types.Field{Name: name, Type: e.Type()})
	}
	for _, k := range from.Key {
		if _, ok := at[k]; !ok {
			at[k] = len(es)
			es = append(es, colRef(from.Schema, k))
			p.Schema = append(p.Schema, from.Schema[k])
		}
	}
	pos := func(c int) int { return at[c] }
	p.Key = through(from.Key, pos)
	p.Dist = mapDist(from.Dist, pos)
	for _, c := range from.Order {
		i, ok := at[c]
		if !ok {
			break
		}
		p.Order = append(p.Order, i)
	}
	return &plan.StreamProject{Operator: p, Exprs: es}
}

// narrow drops all columns after the first width that the key does not need.
func (b *builder) narrow(in plan.Stream, width int) plan.Stream {
	s := in.Props().Schema
	if len(s) == len(union(upTo(width), in.Props().Key)) {
		return in
	}
	return b.project(in, colRefs(s, upTo(width)))
}

func mapDist(d plan.Dist, f func(int) int) plan.Dist {
	if d.Cols != nil {
		d.Cols = through(d.Cols, f)
	}
	return d
}

func hashed(d plan.Dist) bool { return d.Kind == plan.HashShard || d.Kind == plan.UpstreamHashShard }

// byKey gives in a distribution that brings rows with equal cols to one actor;
// fewer columns may do, and any mapping. No cols: all rows in one actor.
func byKey(in plan.Stream, cols []int) plan.Stream {
	d := in.Props().Dist
	switch {
	case d.Kind == plan.Single:
		return in
	case len(cols) == 0:
		return exchange(in, plan.Dist{Kind: plan.Single})
	case hashed(d) && len(d.Cols) > 0 && subset(d.Cols, cols):
		return in
	}
	return exchange(in, plan.Dist{Kind: plan.HashShard, Cols: cols})
}

// exchange moves rows to where d says. Rows of one key may come from several actors
// afterwards if the key lacks columns of d, so it gets them.
func exchange(in plan.Stream, d plan.Dist) plan.Stream {
	p := passProps(in)
	p.Order = nil // several senders are merged
	p.Dist = d
	p.Key = appendNew(slices.Clone(p.Key), d.Cols...)
	return &plan.StreamExchange{Operator: p}
}

// port makes in an input of an operator that starts a fragment: behind an
// exchange, and distributed by exactly d.
func port(in plan.Stream, d plan.Dist) plan.Stream {
	have := in.Props().Dist
	if have.Kind != d.Kind || !slices.Equal(have.Cols, d.Cols) || have.Table != d.Table {
		return exchange(in, d)
	}
	return &plan.StreamExchange{Operator: passProps(in), NoShuffle: true}
}

// table makes the description of a state table with the given columns of an input.
func table(name string, s types.Schema, cols, key, dist []int) *plan.TableDesc {
	out := make(types.Schema, len(cols))
	for i, c := range cols {
		out[i] = types.Field{Name: strings.ReplaceAll(s[c].Name, ".", "_"), Type: s[c].Type}
	}
	return &plan.TableDesc{Name: name, Schema: out, From: slices.Clone(cols), Key: key, Dist: dist}
}

// also adds a computed column.
func also(t *plan.TableDesc, name string, typ types.Type) {
	t.Schema = append(t.Schema, types.Field{Name: name, Type: typ})
	t.From = append(t.From, -1)
}

// progressTable is where a scan or a locality provider keeps how far each vnode has come.
func progressTable(name string) *plan.TableDesc {
	return &plan.TableDesc{Name: name, Schema: types.Schema{
		{Name: "vnode", Type: types.Int2}, {Name: "position", Type: types.Bytea},
		{Name: "rows", Type: types.Int8}, {Name: "finished", Type: types.Bool},
	}, From: []int{-1, -1, -1, -1}, Key: []int{0}, Dist: []int{0}}
}

// logTable is where a locality provider puts packed changes: by vnode, generation and
// number, a block of rows.
func logTable(name string) *plan.TableDesc {
	return &plan.TableDesc{Name: name, Schema: types.Schema{
		{Name: "vnode", Type: types.Int2}, {Name: "generation", Type: types.Int8},
		{Name: "number", Type: types.Int8}, {Name: "block", Type: types.Bytea},
	}, From: []int{-1, -1, -1, -1}, Key: []int{0, 1, 2}, Dist: []int{0}}
}

// checkView refuses expressions whose value is not a function of the row alone.
func checkView(e expr.Expr) error {
	var err error
	visit(e, func(e expr.Expr) {
		if err != nil {
			return
		}
		switch e := e.(type) {
		case *expr.Subquery:
			what := [...]string{"scalar subquery", "EXISTS subquery", "IN or ANY subquery", "ALL subquery", "ARRAY subquery"}[e.Kind]
			if e.Correlated {
				what = "correlated " + what
			}
			err = sqlerr.Unsupported("%s in a streaming query", what).
				WithHint("Write it as a join; EXISTS and IN are joins by themselves where they stand as a whole condition of WHERE.")
		case *expr.OuterRef:
			err = sqlerr.Unsupported("LATERAL or correlated reference to %q in a streaming query", e.Name)
		case *expr.Param:
			err = sqlerr.New(sqlerr.UndefinedObject, "there is no parameter $%d", e.Index)
		case *expr.Call:
			if e.Fn.Volatile == expr.Volatile || e.Fn.Volatile == expr.Stable && readsSession(e.Fn) {
				err = sqlerr.Unsupported("function %s() in a streaming query", e.Fn.Name)
			}
		}
	})
	return err
}

// readsSession tells the stable functions whose value changes with time or session
// apart from those that only depend on formats and the time zone.
func readsSession(f *expr.Func) bool {
	switch f.Name {
	case "current_setting", "current_schemas", "format_type", "timeofday":
		return true
	case "age":
		return len(f.Args) == 1
	}
	return len(f.Args) == 0 || strings.HasPrefix(f.Name, "pg_") || strings.HasPrefix(f.Name, "has_")
}
