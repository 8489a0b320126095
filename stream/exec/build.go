package exec

import (
	"context"
	"fmt"

	"streamdb/planner/plan"
	"streamdb/sql/sqlerr"
	"streamdb/stream"
	"streamdb/stream/connector/blackhole"
)

// Build makes the executors of one actor of a fragment. The actor's inbox is the
// head of every chain.
func Build(env *Env, root plan.Stream) (stream.Executor, error) {
	x, err := chain(env, root, dispatching)
	if err != nil {
		env.Close()
		return nil, err
	}
	return &whole{x, env}, nil
}

// A whole chain gives its memory back to the budget when it ends.
type whole struct {
	stream.Executor
	env *Env
}

func (x *whole) Run(ctx context.Context, emit stream.Emit) error {
	defer x.env.Close()
	return x.Executor.Run(ctx, emit)
}

// chain makes the executor of a node over those of its inputs, counting what it emits
// to the executor at above.
func chain(env *Env, n plan.Stream, above *stream.Place) (stream.Executor, error) {
	at := place(n)
	x, err := build(env, n, at)
	if err != nil {
		return nil, err
	}
	if env.Spot != nil {
		x = &located{x, env.Spot, at, above}
	}
	if env.Metrics != nil {
		x = &counted{x, env, at.Executor}
	}
	return x, nil
}

// build is the list of operators.
func build(env *Env, n plan.Stream, at *stream.Place) (stream.Executor, error) {
	switch n := n.(type) {
	case *plan.StreamMerge, *plan.StreamDML:
		return &merge{env.In}, nil
	case *plan.StreamUnion:
		if err := merges(n, n.In); err != nil {
			return nil, err
		}
		return &merge{env.In}, nil
	case *plan.StreamTableScan:
		if n.Kind == plan.UpstreamOnly {
			return &merge{env.In}, nil
		}
		return newArrangementBackfill(env, n)
	case *plan.StreamLocalityProvider:
		if err := merges(n, n.In); err != nil {
			return nil, err
		}
		return newLocalityProvider(env, n)
	case *plan.StreamSource:
		return newSource(env, n)
	case *plan.StreamValues:
		t := env.Store.Table(progressDesc(n.Progress, env.vnodeCount()), env.Vnodes)
		return &values{in: env.In, env: env, rows: n.Rows, schema: n.Schema, progress: t}, nil
	case *plan.StreamHashJoin:
		return newHashJoin(env, n)
	}
	if len(n.Inputs()) != 1 {
		return nil, unsupported(n)
	}
	in, err := chain(env, n.Inputs()[0], at)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *plan.StreamProject:
		return &projector{in: in, exprs: n.Exprs, ctx: env.exprCtx("StreamProject")}, nil
	case *plan.StreamFilter:
		return &filter{in: in, cond: n.Cond, ctx: env.exprCtx("StreamFilter")}, nil
	case *plan.StreamRowIDGen:
		return &rowIDGen{in: in, env: env, col: n.Col}, nil
	case *plan.StreamHashAgg:
		return newHashAgg(env, n, in)
	case *plan.StreamTopN:
		return newTopN(env, n, in)
	case *plan.StreamDedup:
		return newDedup(env, n, in), nil
	case *plan.StreamMaterialize:
		return newMaterialize(env, n, in), nil
	case *plan.StreamSink:
		out := env.Sink
		if out == nil {
			out = &blackhole.Writer{}
		}
		return &sinker{in: in, out: out}, nil
	}
	return nil, unsupported(n)
}

func unsupported(n plan.Stream) error {
	return sqlerr.Unsupported("%s in a streaming job", operator(n))
}

// operator is a node's name, as EXPLAIN and metrics print it.
func operator(n plan.Stream) string {
	name := fmt.Sprintf("%T", n)
	return name[len("*plan."):]
}

// merges checks that a node's inputs come through the inbox.
func merges(n plan.Stream, ins []plan.Stream) error {
	for _, in := range ins {
		if _, ok := in.(*plan.StreamMerge); !ok {
			return fmt.Errorf("%s: its input is %s and not a fragment boundary", operator(n), operator(in))
		}
	}
	return nil
}
