package plan

import (
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A Stream is an operator of a streaming plan, with what it promises of its output.
type Stream interface {
	Props() *Props
	Inputs() []Stream
}

// Props are an operator's promises.
type Props struct {
	Schema     types.Schema
	Key        []int // stream key: identifies a row of the changing relation at any time
	Dist       Dist
	AppendOnly bool // no Delete ever comes out
	// Order: columns that a backfill delivers together (locality); nil: none.
	Order []int
	In    []Stream
	// Locality is what the planner estimated when it decided whether the operator's inputs
	// need locality, for EXPLAIN (VERBOSE); "": it did not ask.
	Locality string
	// StateRows and StateBytes are what the planner expects the operator to keep; 0: it did not ask.
	StateRows, StateBytes float64
}

// An Operator is embedded in every Stream: its Props under another name, since a
// field called Props would hide the method.
type Operator = Props

func (p *Props) Props() *Props    { return p }
func (p *Props) Inputs() []Stream { return p.In }

// A DistKind says where rows of a stream are.
type DistKind uint8

const (
	Single            DistKind = iota // one actor
	HashShard                         // by the vnode of columns Cols
	UpstreamHashShard                 // by the vnode mapping of relation Table, which hashes Cols
	SomeShard                         // anywhere
	Broadcast                         // every actor has all
)

// A Dist is a distribution.
type Dist struct {
	Kind  DistKind
	Cols  []int
	Table catalog.ID // UpstreamHashShard
}

// A TableDesc is a state table of an operator, as storage will hold it. ID 0
// until the job's catalog entry gives it one.
type TableDesc struct {
	ID     catalog.ID
	Name   string // role: "HashAggState", "HashJoinLeft", "LocalityProviderState"
	Schema types.Schema
	Key    []int
	Desc   []bool // per Key column; nil: all ascending
	Dist   []int  // subset of Key
	// From[i]: the column of the operator's input that Schema[i] holds; -1: a computed one.
	From []int
}

// A ScanKind says how a streaming scan reads what its upstream held before.
type ScanKind uint8

const (
	ArrangementBackfill ScanKind = iota
	UpstreamOnly
)

type (
	// A StreamTableScan reads another relation: its rows so far, then its changes. It is
	// a fragment's head, fed by the upstream job through a hash dispatcher on Table.Dist.
	StreamTableScan struct {
		Operator
		Table *catalog.Relation
		// Base is the relation that Table, an index, was chosen for; nil: Table itself was named.
		Base *catalog.Relation
		Cols []int // Table's columns that come out; includes its key
		Kind ScanKind
		// Progress: vnode → position and row count. ArrangementBackfill only.
		Progress *TableDesc
		Alias    string
	}

	// StreamSource reads an external connector (its own fragment's head).
	StreamSource struct {
		Operator
		Rel     *catalog.Relation
		Offsets *TableDesc
	}

	// StreamDML takes what sessions write into a table; fragment head of a table's job.
	StreamDML struct {
		Operator
		Rel *catalog.Relation
	}

	// StreamRowIDGen fills NULLs of column Col with new row ids.
	StreamRowIDGen struct {
		Operator
		Col int
	}

	// StreamValues emits literal rows once.
	StreamValues struct {
		Operator
		Rows     [][]expr.Expr
		Progress *TableDesc // whether they were emitted
	}

	StreamProject struct {
		Operator
		Exprs []expr.Expr
	}

	StreamFilter struct {
		Operator
		Cond expr.Expr
	}

	// StreamExchange moves rows to where Dist says; the fragmenter cuts here
	// and leaves a StreamMerge in its place.
	StreamExchange struct {
		Operator
		NoShuffle bool // same actors on both sides, only a fragment boundary
	}

	// StreamMerge is a fragment's head: it receives port Port of the actor's inbox.
	StreamMerge struct {
		Operator
		Port int
		From FragmentID
	}

	// StreamHashJoin: output is Output columns of left ++ right.
	StreamHashJoin struct {
		Operator
		Kind                  JoinKind
		LeftKeys, RightKeys   []int
		NullSafe              []bool
		Cond                  expr.Expr // over left ++ right; nil: none
		Output                []int
		LeftState, RightState *TableDesc // key: join key ++ stream key of the input. Many rows of a key may be packed into one entry
		// Degree tables count matches of each row; nil where the join kind or a join without Cond needs none.
		LeftDegree, RightDegree *TableDesc
	}

	// StreamHashAgg: output is GroupBy columns, then aggregates. GroupBy empty: one row always (StreamSimpleAgg).
	StreamHashAgg struct {
		Operator
		GroupBy []int
		Aggs    []expr.Agg
		State   *TableDesc // group → row count and accumulator states
		// Values[i]: sorted inputs of aggregate i where it is not retractable and the
		// input is not append-only; nil else. Distinct: see DistinctOf.
		Values []*TableDesc
		// DistinctState[i]: counts of distinct argument values for aggregate i; nil if not DISTINCT.
		// Calls with equal arguments share one table (same pointer).
		DistinctState []*TableDesc
	}

	// StreamTopN keeps rows [Offset, Offset+Limit) by Order (then stream key), per group.
	StreamTopN struct {
		Operator
		GroupBy       []int
		Order         []expr.Order
		Limit, Offset int64
		WithTies      bool
		State         *TableDesc // key: group ++ order columns ++ stream key
	}

	// StreamDedup passes the first row of each key; append-only input.
	StreamDedup struct {
		Operator
		Cols  []int
		State *TableDesc
	}

	// StreamUnion merges inputs of equal schemas whose stream keys cannot collide.
	StreamUnion struct{ Operator }

	// StreamLocalityProvider holds rows back until its input is backfilled, then delivers
	// them ordered by Cols so that state downstream is read in order.
	StreamLocalityProvider struct {
		Operator
		Cols []int
		// Log holds the changes of the input as they came, packed into blocks, to be sorted;
		// Buffer, by key, those that come while what was sorted is delivered.
		Log, Buffer, Progress *TableDesc
		// Estimate of the planner's decision, for EXPLAIN (VERBOSE); "": forced.
		Estimate string
	}

	// StreamMaterialize keeps Rel's rows. Rel has its ID before the job is built.
	StreamMaterialize struct {
		Operator
		Rel *catalog.Relation
	}

	// StreamSink hands changes to a connector.
	StreamSink struct {
		Operator
		Rel *catalog.Relation
	}
)

// A FragmentID numbers the fragments of one graph from 1.
type FragmentID uint32

// A Fragment is the part of a plan between exchanges. It runs as Parallelism
// actors; every actor runs the same nodes on other vnodes.
type Fragment struct {
	ID     FragmentID
	Root   Stream
	Single bool // one actor
	// Tables are all state tables of the fragment's nodes, the relation it materializes aside.
	Tables []*TableDesc
	Ports  int // edges that end here, upstream relations included
	// SameAs: vnode mapping and parallelism of that fragment (a no-shuffle edge); 0: its own.
	SameAs FragmentID
}

// An Edge carries From's output to input port Port of To.
type Edge struct {
	From, To  FragmentID
	Port      int
	Dist      Dist // Single: Simple dispatch; HashShard, UpstreamHashShard: Hash; Broadcast
	NoShuffle bool
}

// An Upstream is an edge from another job: the changes of relation Rel.
type Upstream struct {
	Rel  catalog.ID
	To   FragmentID
	Port int
	Cols []int // Rel's columns that are sent
	Dist Dist  // over the sent columns
}

// A Graph is a job's fragments in topological order, sources first; the last one materializes (or sinks).
type Graph struct {
	Fragments []*Fragment
	Edges     []Edge
	Upstreams []Upstream
	// BackfillOrder: a fragment starts its backfill when those it maps to are done. nil: no order.
	BackfillOrder map[FragmentID][]FragmentID
	Notices       []string // for the user who creates the job
}
