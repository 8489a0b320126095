// Package planner turns bound queries into plans that run: relational plans for
// SELECT, graphs of streaming fragments for views, tables, indexes and sinks.
//
// The one idea: every step is a pass over plain data. Relational rewrites come first
// and are shared; then a batch query gets its access paths, and a streaming one its stream
// keys, distributions, exchanges and locality providers, and is cut into fragments.
package planner

import (
	"streamdb/planner/plan"
	"streamdb/sql/catalog"
)

// Settings are what a session can choose about plans. The zero value rewrites
// and plans without locality, join reordering or use of indexes.
type Settings struct {
	Parallelism int // streaming_parallelism; 0: adaptive
	Vnodes      int // streaming_max_parallelism; 0: 64
	// enable_locality_backfill and locality_backfill_mode: auto, always, off; "": auto.
	LocalityEnabled bool
	LocalityMode    string
	// CacheBudget is how many bytes of state the operators may hold in memory, for what
	// mode auto estimates; 0: unknown, it never adds locality.
	CacheBudget     int64
	LocalityMinSize int64 // bytes of what an operator reads below which auto inserts no provider
	IndexSelection  bool  // enable_index_selection
	JoinOrdering    bool  // enable_join_ordering
	TwoPhaseAgg     bool  // enable_two_phase_agg; an aggregate over all rows runs in one actor either way
	BackfillOrder   BackfillOrder
	Verbose         bool
}

const defaultVnodes = 64

// Stats are what is known of relations' sizes.
type Stats interface {
	Rows(id catalog.ID) int64
	Bytes(id catalog.ID) int64
}

// DistinctStats are Stats that know more.
type DistinctStats interface {
	Stats
	// Distinct guesses how many different values some columns have together; false: it cannot say.
	Distinct(id catalog.ID, cols []int) (int64, bool)
}

// noStats knows nothing: all relations are empty.
type noStats struct{}

func (noStats) Rows(catalog.ID) int64  { return 0 }
func (noStats) Bytes(catalog.ID) int64 { return 0 }

// Optimize applies the rewrites that batch and streaming plans share. The output
// columns of the result are n's. st may be nil.
func Optimize(n plan.Node, s Settings, st Stats) (plan.Node, error) {
	n, err := lower(n)
	if err != nil {
		return nil, err
	}
	return optimize(n, s), nil
}

// optimize is Optimize for plans that have been checked.
func optimize(n plan.Node, s Settings) plan.Node {
	n = merge(fold(n))
	n = merge(fold(pushdown(n, nil))) // a condition may have met constants
	if s.JoinOrdering {
		n = merge(orderJoins(n))
	}
	n = joinKeys(n)
	n = merge(pruneRoot(n))
	return mapSubqueries(n, func(sub plan.Node) plan.Node { return optimize(sub, s) })
}

// PlanBatch plans a query that reads committed rows once. st may be nil.
func PlanBatch(q *plan.Query, cat *catalog.Snapshot, s Settings, st Stats) (*plan.Query, error) {
	root, err := PlanNode(q.Root, cat, s, st)
	if err != nil {
		return nil, err
	}
	out := *q
	out.Root = root
	return &out, nil
}

// PlanNode is PlanBatch for a plan without result names, such as the rows of an UPDATE.
func PlanNode(n plan.Node, cat *catalog.Snapshot, s Settings, st Stats) (plan.Node, error) {
	if st == nil {
		st = noStats{}
	}
	n, err := Optimize(n, s, st)
	if err != nil {
		return nil, err
	}
	return (&paths{cat: cat, indexes: s.IndexSelection, st: st}).choose(n), nil
}

// StreamPlan plans a view's query as one tree of streaming operators, before it is cut into
// fragments. Its root is a StreamMaterialize; the relation there is a copy of rel with columns,
// key and distribution filled in. st may be nil.
func StreamPlan(q *plan.Query, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (plan.Stream, error) {
	b := newBuilder(cat, s, st)
	return b.view(q, rel)
}

// PlanView plans the job of a materialized view. The returned relation is a copy of rel with
// columns (hidden stream key columns last), key, distribution and dependencies filled in; the
// graph's Notices are for the user.
func PlanView(q *plan.Query, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (*plan.Graph, *catalog.Relation, error) {
	b := newBuilder(cat, s, st)
	root, err := b.view(q, rel)
	if err != nil {
		return nil, nil, err
	}
	g, err := b.graph(root, rel)
	return g, root.Rel, err
}

// graph cuts the plan of a view or sink into fragments.
func (b *builder) graph(root plan.Stream, rel *catalog.Relation) (*plan.Graph, error) {
	order, err := backfillOrder(rel, b.s)
	if err != nil {
		return nil, err
	}
	g, err := cut(root, order)
	if err != nil {
		return nil, err
	}
	g.Notices = append(b.notices, g.Notices...)
	return g, nil
}

// PlanTable plans the job of a table: what sessions and, if it has a connector,
// its source write into it.
func PlanTable(rel *catalog.Relation) (*plan.Graph, error) {
	root, err := tablePlan(rel)
	if err != nil {
		return nil, err
	}
	return cut(root, BackfillOrder{})
}

// PlanIndex plans the job of an index. n gives rel's columns in order (the binder's
// query of the index); rel has its key and distribution already.
func PlanIndex(n plan.Node, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (*plan.Graph, error) {
	root, err := IndexStream(n, rel, cat, s, st)
	if err != nil {
		return nil, err
	}
	return cut(root, BackfillOrder{})
}

// IndexStream is PlanIndex before the plan is cut into fragments.
func IndexStream(n plan.Node, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (plan.Stream, error) {
	s.LocalityEnabled = false
	b := newBuilder(cat, s, st)
	return b.index(n, rel)
}

// PlanSink plans the job of a sink: q's rows, hidden key columns last, go to rel's connector.
// WITH (snapshot = false) leaves out the rows there are already.
func PlanSink(q *plan.Query, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (*plan.Graph, *catalog.Relation, error) {
	b := newBuilder(cat, s, st)
	root, err := b.sink(q, rel)
	if err != nil {
		return nil, nil, err
	}
	g, err := b.graph(root, rel)
	return g, root.Rel, err
}

// SinkStream is PlanSink before the plan is cut into fragments.
func SinkStream(q *plan.Query, rel *catalog.Relation, cat *catalog.Snapshot, s Settings, st Stats) (plan.Stream, error) {
	return newBuilder(cat, s, st).sink(q, rel)
}
