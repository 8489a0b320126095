// Package catalog knows what exists: schemas, relations and their columns.
//
// The one idea: a catalog is a sequence of immutable versions. A statement binds
// against one Snapshot; a change makes the next version and is journaled by the
// engine with the epoch in which it takes effect.
package catalog

import (
	"streamdb/sql/types"
)

// An ID names a relation for ever; it is also its OID for clients and, for
// relations with rows, its object id in storage. Never reused.
type ID uint32

// FirstUserID is where identifiers of user objects begin; below are system relations.
const FirstUserID ID = 16384

// A Kind says what a relation is.
type Kind uint8

const (
	Table Kind = iota + 1
	View
	MaterializedView
	Index
	Source
	Sink
	System // a relation of pg_catalog, information_schema or rw_catalog, computed when read
)

// A Conflict says what a table does with an inserted row whose key exists.
type Conflict uint8

const (
	ConflictError           Conflict = iota // 23505, as PostgreSQL; the default of a table with a primary key
	ConflictOverwrite                       // ON CONFLICT OVERWRITE
	ConflictIgnore                          // ON CONFLICT IGNORE
	ConflictUpdateIfNotNull                 // ON CONFLICT DO UPDATE IF NOT NULL
	ConflictNone                            // keys cannot collide: views, tables without a primary key
)

// A Column of a relation.
type Column struct {
	Name      string
	Type      types.Type
	NotNull   bool
	Hidden    bool   // not in SELECT *: _row_id, stream keys that the query did not name
	Default   string // SQL text; "": none
	Generated string // SQL text of GENERATED ALWAYS AS; "": none
	Comment   string
}

// A KeyColumn is a column of a relation's key with its direction.
type KeyColumn struct {
	Col  int
	Desc bool // NULLs come first where descending, last where ascending
}

// An Option is one of a WITH clause.
type Option struct{ Name, Value string }

// A Relation is anything a FROM clause can name, and sinks and indexes. It is
// immutable; a change makes a new one.
type Relation struct {
	ID             ID
	Schema         string // namespace: "public"
	Name           string
	Kind           Kind
	Columns        []Column
	Key            []KeyColumn // identifies a row, orders it at rest; empty for View, Source, Sink
	Dist           []int       // columns whose hash is the vnode, a subset of Key; empty: one vnode
	Vnodes         int
	PrimaryKey     int    // leading columns of Key that the user declared PRIMARY KEY; 0: none (a hidden _row_id)
	PrimaryKeyName string // constraint name, "flights_pkey"
	AppendOnly     bool
	Conflict       Conflict
	Definition     string // the query text of a view, the whole CREATE statement of the others
	Of             ID     // an Index: its relation
	Unique         bool   // an Index declared UNIQUE
	IndexKey       int    // an Index: how many leading Columns are its key, the rest are INCLUDEd or the relation's key
	IndexCols      []int  // an Index: for each of Columns, the relation's column it holds
	DependsOn      []ID   // relations its definition reads, sorted
	With           []Option
	Checks         []Check
	// Job: what runs it. Zero for View, System.
	Parallelism int  // 0: adaptive
	Building    bool // being created: visible to SHOW JOBS and CANCEL, not to queries
	// BuildParallelism is Parallelism while it is Building; 0: the same.
	BuildParallelism int
	State            []ID   // operator state tables of its job, for DROP
	Background       bool   // Building goes on without its session, also after a restart
	Failed           string // why its job has stopped for good; "": it runs
	RateLimit        *int64 // backfill rows per second; nil: unlimited, 0: paused
	Paused           bool   // its backfill is paused, whatever RateLimit says
	// FragmentRates are backfill rows per second of fragments that have a limit of their own.
	FragmentRates map[uint32]int64
	Plan          *PlanInput // what its plan was made from, so that a restart makes the same one; nil: its definition alone
	Owner         string
	Comment       string
	SearchPath    []string // in force when it was created; names in Definition resolve by it
}

// A PlanInput is everything besides its definition that shaped a job's plan.
type PlanInput struct {
	Settings    map[string]string
	Stats       []TableStats
	Unseen      []ID   // older relations that were being created then, which the planner did not see
	Fingerprint string // of the plan as printed; a restart that plans otherwise must not touch its state
}

// TableStats are a relation's size when a plan was made.
type TableStats struct {
	Rel         ID
	Rows, Bytes int64
	Distinct    []ColumnStats // of the columns that the planner asked for
}

// ColumnStats are how many different values some columns have together.
type ColumnStats struct {
	Cols   []int
	Values int64
}

// A Check is a CHECK constraint as SQL text.
type Check struct{ Name, Expr string }

// BackfillRate is the limit in force of a relation's backfills, in rows per second; -1: none.
func (r *Relation) BackfillRate() int64 {
	switch {
	case r.Paused:
		return 0
	case r.RateLimit == nil:
		return -1
	}
	return *r.RateLimit
}

// FragmentRate is BackfillRate of one fragment.
func (r *Relation) FragmentRate(fragment uint32) int64 {
	if rate, ok := r.FragmentRates[fragment]; ok && !r.Paused {
		return rate
	}
	return r.BackfillRate()
}

// Fields returns the schema of all columns, hidden ones included.
func (r *Relation) Fields() types.Schema {
	out := make(types.Schema, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = types.Field{Name: c.Name, Type: c.Type}
	}
	return out
}

// KeyCols returns the column numbers of the key.
func (r *Relation) KeyCols() []int {
	out := make([]int, len(r.Key))
	for i, k := range r.Key {
		out[i] = k.Col
	}
	return out
}

// HasRows reports whether storage holds rows of r.
func (r *Relation) HasRows() bool {
	return r.Kind == Table || r.Kind == MaterializedView || r.Kind == Index
}
