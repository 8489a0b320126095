// Package batch runs relational plans over one snapshot: SELECT, the rows of DML
// statements and catalog queries.
//
// The one idea: a relational node becomes an iterator of chunks. Operators that
// need all their input (sort, aggregation, a join's build side) read it before
// their first chunk; everything else streams, so that a plain SELECT of any size
// takes constant memory.
package batch

import (
	"context"
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
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
	Memory    int64  // bytes an operator may hold before it spills or fails; 0: 256 MiB
	TempDir   string // where operators spill; "": the system's
	ChunkSize int    // rows of a chunk; 0: 1024

	goCtx context.Context // of the running statement, for subqueries inside expressions
	subs  *subqueries
}

const defaultMemory = 256 << 20

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
	if e.Memory == 0 {
		e.Memory = defaultMemory
	}
	if e.ChunkSize == 0 {
		e.ChunkSize = 1024
	}
	e.goCtx = context.Background()
	e.subs = &subqueries{}
	ctx := expr.Ctx{}
	if env.Ctx != nil {
		ctx = *env.Ctx
	}
	e.Ctx = &ctx
	ctx.Subquery = e.subquery
	it, err := build(n, &e)
	if err != nil {
		return nil, err
	}
	return &top{it, &e}, nil
}

// top remembers the statement's context for subqueries.
type top struct {
	Iterator
	env *Env
}

func (t *top) Next(ctx context.Context) (*chunk.Chunk, error) {
	t.env.goCtx = ctx
	return t.Iterator.Next(ctx)
}

// build is the list of operators.
func build(n plan.Node, env *Env) (Iterator, error) {
	switch n := n.(type) {
	case *plan.Scan:
		if n.Rel.Kind == catalog.System {
			return &systemScan{env: env, scan: n}, nil
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
	}
	if len(n.Inputs()) != 1 {
		return nil, fmt.Errorf("batch: no operator for %T", n)
	}
	if l, ok := n.(*plan.Limit); ok {
		if s, ok := l.Input.(*plan.Sort); ok {
			return buildTopN(l, s, env)
		}
	}
	in, err := build(n.Inputs()[0], env)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *plan.Filter:
		return &filter{in: in, env: env, cond: n.Cond}, nil
	case *plan.Project:
		return &project{in: in, env: env, exprs: n.Exprs}, nil
	case *plan.ProjectSet:
		return &projectSet{in: in, env: env, plan: n}, nil
	case *plan.Agg:
		return &agg{in: in, env: env, plan: n}, nil
	case *plan.Distinct:
		return buildDistinct(n, in, env)
	case *plan.Sort:
		return &sorter{in: in, env: env, by: n.By, typs: n.Schema().Types()}, nil
	case *plan.Limit:
		return &limit{in: in, env: env, plan: n}, nil
	}
	in.Close()
	return nil, fmt.Errorf("batch: no operator for %T", n)
}

// all reads an iterator to its end into one chunk; typs are its columns' types.
func all(ctx context.Context, in Iterator, typs []types.Type, memory int64) (*chunk.Chunk, error) {
	b := newGrower(typs)
	for {
		c, err := in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return b.chunk(), nil
		}
		b.add(c)
		if b.bytes > memory {
			return nil, sqlerr.New(sqlerr.OutOfMemory, "the query needs more than %d MB of memory", memory>>20).
				WithHint("A materialized view or an index can keep such a result without holding it in memory.")
		}
	}
}

// A grower appends chunks to one.
type grower struct {
	cols  []chunk.Column
	n     int
	bytes int64
}

func newGrower(typs []types.Type) *grower {
	g := &grower{cols: make([]chunk.Column, len(typs))}
	for i, t := range typs {
		g.cols[i] = chunk.New(t, 0)
	}
	return g
}

func (g *grower) add(c *chunk.Chunk) {
	for i, col := range g.cols {
		appendAll(col, c.Cols[i])
	}
	g.n += c.Len()
	g.bytes += chunkBytes(c)
}

func (g *grower) chunk() *chunk.Chunk { return &chunk.Chunk{Cols: g.cols, N: g.n} }

// appendAll appends all of src to dst.
func appendAll(dst, src chunk.Column) {
	switch d := dst.(type) {
	case *chunk.Vec[int64]:
		appendVec(d, src)
	case *chunk.Vec[string]:
		appendVec(d, src)
	case *chunk.Vec[float64]:
		appendVec(d, src)
	case *chunk.Vec[bool]:
		appendVec(d, src)
	case *chunk.Vec[types.Decimal]:
		appendVec(d, src)
	case *chunk.Vec[types.Interval]:
		appendVec(d, src)
	case *chunk.Vec[*types.List]:
		appendVec(d, src)
	default:
		panic(fmt.Sprintf("batch: append to %T", dst))
	}
}

func appendVec[T any](d *chunk.Vec[T], src chunk.Column) {
	s := chunk.Of[T](src)
	if s.Nulls != nil && d.Nulls == nil {
		d.Nulls = make([]bool, len(d.Data), len(d.Data)+len(s.Data))
	}
	d.Data = append(d.Data, s.Data...)
	if d.Nulls == nil {
		return
	}
	if s.Nulls != nil {
		d.Nulls = append(d.Nulls, s.Nulls...)
		return
	}
	for range s.Data {
		d.Nulls = append(d.Nulls, false)
	}
}

// chunkBytes estimates the memory of a chunk.
func chunkBytes(c *chunk.Chunk) int64 {
	var n int64
	for _, col := range c.Cols {
		switch v := col.(type) {
		case *chunk.Vec[string]:
			n += int64(16 * len(v.Data))
			for _, s := range v.Data {
				n += int64(len(s))
			}
		case *chunk.Vec[bool]:
			n += int64(len(v.Data))
		case *chunk.Vec[types.Decimal]:
			n += int64(24 * len(v.Data))
		case *chunk.Vec[*types.List]:
			n += int64(64 * len(v.Data))
		default:
			n += int64(16 * col.Len())
		}
	}
	return n
}

// stopped gives the reason a statement was ended for.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
