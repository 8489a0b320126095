package planner

import (
	"errors"
	"strings"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func TestTable(t *testing.T) {
	w := newWorld()
	for name, want := range map[string]string{
		"t":       "StreamMaterialize\n└─StreamDML",
		"flights": "StreamMaterialize\n└─StreamRowIDGen\n  └─StreamDML",
	} {
		g, err := PlanTable(w.rel(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := operators(plan.Explain(g.Fragments[0].Root, false)); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
		if f := g.Fragments[0]; len(g.Fragments) != 1 || f.Ports != 0 || f.Single || len(f.Tables) != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	g, err := PlanTable(w.rel("one"))
	if err != nil || !g.Fragments[0].Single {
		t.Errorf("a table in one vnode is not single: %v", err)
	}
}

func TestTableWithConnector(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		w := newWorld()
		r := *w.rel("flights")
		if keyed {
			r = *w.rel("t")
		}
		r.With = []catalog.Option{{Name: "connector", Value: "datagen"}}
		g, err := PlanTable(&r)
		if err != nil {
			t.Fatal(err)
		}
		last := g.Fragments[len(g.Fragments)-1]
		if len(g.Fragments) != 3 || last.Ports != 2 || last.SameAs == 0 {
			t.Errorf("keyed %t:\n%s", keyed, plan.ExplainGraph(g))
		}
		if err := validateGraph(g, &r); err != nil {
			t.Errorf("keyed %t: %v", keyed, err)
		}
	}
}

func TestIndex(t *testing.T) {
	w := newWorld()
	idx := w.rel("t_a")
	n := w.scan("t", "").project("a", "id", "b", "c").n
	g, err := PlanIndex(n, idx, w.snapshot(), Settings{}, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := validateGraph(g, idx); err != nil {
		t.Error(err)
	}
	root := g.Fragments[len(g.Fragments)-1].Root
	if got := operators(plan.Explain(root, false)); got != "StreamMaterialize\n└─StreamExchange Hash([0]) from 1" {
		t.Error(got)
	}
	if _, err := PlanIndex(w.scan("t", "").project("a", "b").n, idx, w.snapshot(), Settings{}, w); err == nil {
		t.Error("an index without its relation's key was planned")
	}
}

func TestSink(t *testing.T) {
	w := newWorld()
	rel := &catalog.Relation{Name: "s", Kind: catalog.Sink, With: []catalog.Option{{Name: "connector", Value: "blackhole"}, {Name: "snapshot", Value: "false"}}}
	g, rel, err := PlanSink(w.scan("t", "").project("b").query(), rel, w.snapshot(), Settings{}, w)
	if err != nil {
		t.Fatal(err)
	}
	sink, ok := g.Fragments[0].Root.(*plan.StreamSink)
	if !ok || len(g.Tables()) != 0 || sink.In[0].(*plan.StreamTableScan).Kind != plan.UpstreamOnly {
		t.Errorf("%s", plan.ExplainGraph(g))
	}
	if len(rel.Columns) != 2 || !rel.Columns[1].Hidden || len(rel.DependsOn) != 1 {
		t.Errorf("%+v", rel)
	}
}

func TestSource(t *testing.T) {
	w := newWorld()
	src := w.add(catalog.Source, "s", "a int4, b text")
	g, rel, err := PlanView(w.scan("s", "").agg([]string{"a"}, "count()").query(), &catalog.Relation{Name: "v"}, w.snapshot(), Settings{LocalityEnabled: true, LocalityMode: "always"}, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := validateGraph(g, rel); err != nil {
		t.Error(err)
	}
	if s, ok := head(g.Fragments[0].Root).(*plan.StreamSource); !ok || s.Rel != src || s.Offsets == nil {
		t.Errorf("%s", plan.ExplainGraph(g))
	}
}

func TestView(t *testing.T) {
	w := newWorld()
	rel := &catalog.Relation{ID: 20000, Name: "v", Kind: catalog.MaterializedView}
	g, v, err := PlanView(w.scan("events", "").sort("v").project("v", "one", num(1)).query(), rel, w.snapshot(), Settings{}, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Notices) != 1 || !strings.Contains(g.Notices[0], "ORDER BY") {
		t.Errorf("notices %q", g.Notices)
	}
	if !v.AppendOnly || v.Conflict != catalog.ConflictNone || v.Vnodes != 64 || len(v.Columns) != 3 || !v.Columns[2].Hidden || len(rel.Columns) != 0 {
		t.Errorf("%+v", v)
	}
	for i, tab := range g.Tables() {
		if tab.ID != 0 {
			t.Errorf("table %d has an identifier", i)
		}
	}
}

func TestUnsupported(t *testing.T) {
	w := newWorld()
	view := func(r rowset) error {
		_, _, err := PlanView(r.query(), &catalog.Relation{Name: "v"}, w.snapshot(), Settings{}, w)
		return err
	}
	s := w.scan("t", "")
	call := func(f *expr.Func) expr.Expr { return &expr.Call{Fn: f, Typ: f.Ret} }
	lateral := s.join(plan.Inner, w.scan("u", ""), nil)
	lateral.n.(*plan.Join).Lateral = true
	limit := s
	limit.n = &plan.Limit{Input: s.n, Count: &expr.Param{Index: 1, Typ: types.Int8}}
	for what, r := range map[string]rowset{
		"function now()":                   s.project("x", call(&expr.Func{Name: "now", Volatile: expr.Stable, Ret: types.Timestamptz})),
		"function random()":                s.where(op("=", s.col("a"), num(1))).project("x", call(&expr.Func{Name: "random", Volatile: expr.Volatile, Ret: types.Float8})),
		"scalar subquery":                  s.project("x", &expr.Subquery{Plan: s.project("a").n, Typ: types.Int4}),
		"correlated EXISTS subquery":       s.where(&expr.Subquery{Kind: expr.SubqueryExists, Correlated: true, Plan: s.n, Typ: types.Bool}),
		"LATERAL join":                     lateral,
		"table function generate_series()": {w: w, n: &plan.FuncScan{Fn: &expr.TableFunc{Name: "generate_series"}, Out: types.Schema{{Name: "g", Type: types.Int4}}}, names: []string{"g"}},
		"EXCEPT ALL":                       setOp(plan.Except, true, s.project("a"), s.project("c")),
	} {
		err := view(r)
		var e *sqlerr.Error
		if !errors.As(err, &e) || e.Code != sqlerr.NotSupported || !strings.Contains(e.Message, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := view(limit); err == nil {
		t.Error("LIMIT $1 in a view")
	}
	q := s.project("a", "b").query()
	q.Names[1] = "a"
	if _, _, err := PlanView(q, &catalog.Relation{Name: "v"}, w.snapshot(), Settings{}, w); err == nil || !strings.Contains(err.Error(), "specified more than once") {
		t.Errorf("repeated name: %v", err)
	}
}

// operators is a printed plan without the fields.
func operators(text string) string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		l, _, _ = strings.Cut(l, " {")
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

func TestParseBackfillOrder(t *testing.T) {
	for text, want := range map[string]int{"": 0, "none": 0, "AUTO": 0, "FIXED(a -> b)": 1, "fixed( a->b , b -> c->d )": 3, "FIXED": -1, "FIXED(a)": -1, "FIXED(a -> )": -1, "x": -1} {
		o, err := ParseBackfillOrder(text)
		if (err != nil) != (want < 0) || err == nil && len(o.Pairs) != want {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
}
