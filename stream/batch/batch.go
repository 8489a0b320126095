// Package batch runs relational plans over one snapshot: SELECT, the rows of DML
// statements and catalog queries.
//
// The one idea: a relational node becomes an iterator of chunks. Operators that
// need all their input (sort, aggregation, a join's build side) read it before
// their first chunk, and go to an unnamed file where it is more than memory may
// hold; everything else streams, so that a plain SELECT of any size takes
// constant memory.
package batch

import (
	"context"
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// An Env is what a plan runs in.
type Env struct {
	Snap *storage.Snapshot
	Ctx  *expr.Ctx // Params, Style, Now, Sys; its Subquery is set by Run on a copy
	Desc func(r *catalog.Relation) storage.Desc
	// System computes the rows of a system relation.
	System func(ctx context.Context, r *catalog.Relation, cols []int) (*chunk.Chunk, error)
	// Overlay gives the uncommitted rows to see over Snap; nil func or result: none.
	Overlay   func(r *catalog.Relation) *Overlay
	Memory    int64  // bytes that a query may hold before its operators spill; 0: 256 MiB
	TempDir   string // where operators spill; "": the system's
	ChunkSize int    // rows of a chunk; 0: 1024

	*execution // of this run; set by Run
}

const (
	defaultMemory    = 256 << 20
	defaultChunkSize = 1024
)

// An execution is what all parts of one run of a plan share: its subqueries, and
// a lateral join's right side, run many times. It belongs to one goroutine.
type execution struct {
	goCtx   context.Context // of the running Next, for subqueries inside expressions
	mem     budget
	access  map[*plan.Scan]*access
	types   map[plan.Node][]types.Type
	system  map[systemKey]*chunk.Chunk
	queries map[*expr.Subquery]*subquery
	conds   map[expr.Expr]expr.Expr // expressions made ready, see member.go
	memo    *share                  // of remembered rows of subqueries and system relations
}

// An Iterator gives rows. It is used by one goroutine.
type Iterator interface {
	// Next returns the next rows, never an empty chunk; nil at the end.
	Next(ctx context.Context) (*chunk.Chunk, error)
	// Close frees what the iterator holds; it may be called early and more than once.
	Close()
}

// Run makes the iterator of a plan. Nothing is read before the first Next.
func Run(n plan.Node, env *Env) (Iterator, error) {
	e := *env
	if e.Memory <= 0 {
		e.Memory = defaultMemory
	}
	if e.ChunkSize <= 0 {
		e.ChunkSize = defaultChunkSize
	}
	e.execution = &execution{goCtx: context.Background(), mem: budget{limit: e.Memory}}
	ctx := expr.Ctx{}
	if env.Ctx != nil {
		ctx = *env.Ctx
	}
	ctx.Subquery = e.subquery
	e.Ctx = &ctx
	it, err := build(n, &e)
	if err != nil {
		return nil, err
	}
	return &top{it, e.execution}, nil
}

// top remembers the statement's context for subqueries.
type top struct {
	Iterator
	run *execution
}

func (t *top) Next(ctx context.Context) (*chunk.Chunk, error) {
	t.run.goCtx = ctx
	return t.Iterator.Next(ctx)
}

func (t *top) Close() {
	t.Iterator.Close()
	t.run.memo.close()
	t.run.memo, t.run.queries, t.run.system = nil, nil, nil
}

// build is the list of operators.
func build(n plan.Node, env *Env) (Iterator, error) {
	switch n := n.(type) {
	case *plan.Scan:
		if n.Rel.Kind == catalog.System {
			return &systemScan{env: env, plan: n}, nil
		}
		return newScan(n, env)
	case *plan.Values:
		return &values{env: env, plan: n}, nil
	case *plan.FuncScan:
		return &funcScan{env: env, plan: n}, nil
	case *plan.SetOp:
		return buildSetOp(n, env)
	case *plan.Join:
		return buildJoin(n, env)
	case *plan.Limit:
		return buildLimit(n, env)
	case *plan.Distinct:
		return buildDistinct(n, env)
	case *plan.Sort:
		return buildSort(n, env)
	}
	if len(n.Inputs()) != 1 {
		return nil, fmt.Errorf("batch: no operator for %T", n)
	}
	in, err := build(n.Inputs()[0], env)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *plan.Filter:
		return &filter{in: in, env: env, cond: env.ready(n.Cond)}, nil
	case *plan.Project:
		return newProject(n, in, env), nil
	case *plan.ProjectSet:
		return &projectSet{in: in, env: env, plan: n, typs: env.typesOf(n)}, nil
	case *plan.Agg:
		return &agg{in: in, env: env, plan: n, inTypes: env.typesOf(n.Input)}, nil
	}
	in.Close()
	return nil, fmt.Errorf("batch: no operator for %T", n)
}

// typesOf is the column types of a node. A node that is built many times is asked once.
func (e *Env) typesOf(n plan.Node) []types.Type {
	if t, ok := e.types[n]; ok {
		return t
	}
	t := n.Schema().Types()
	if e.types == nil {
		e.types = map[plan.Node][]types.Type{}
	}
	e.types[n] = t
	return t
}

// A source gives chunks; nil at the end. Iterators are sources, and rows in files are.
type source interface {
	Next(ctx context.Context) (*chunk.Chunk, error)
}

// stopped gives the reason a statement was ended for.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
