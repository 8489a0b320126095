package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

func errSortMemory(limit int64) error {
	return sqlerr.New(sqlerr.OutOfMemory, "sorting the query's rows needs more than %d MB of memory", limit>>20)
}

// buildDistinct keeps one row of equals: without ON, the first met; with ON, the first by order.
func buildDistinct(n *plan.Distinct, in Iterator, env *Env) (Iterator, error) {
	typs := n.Input.Schema().Types()
	on := n.On
	if on == nil {
		for i := range typs {
			on = append(on, i)
		}
	} else if n.Order != nil {
		in = &sorter{in: in, env: env, by: n.Order, typs: typs}
	}
	keyTypes := make([]types.Type, len(on))
	for i, c := range on {
		keyTypes[i] = typs[c]
	}
	return &distinct{in: in, env: env, on: on, seen: newHashTable(keyTypes)}, nil
}

type distinct struct {
	in   Iterator
	env  *Env
	on   []int
	seen *hashTable
	held int64
}

func (d *distinct) Close() { d.in.Close() }

func (d *distinct) Next(ctx context.Context) (*chunk.Chunk, error) {
	for {
		c, err := d.in.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		keys := pick(c.Cols, d.on)
		var sel []int
		for i, h := range chunk.Hash(keys, c.Len()) {
			if _, added := d.seen.put(keys, i, h); added {
				sel = append(sel, i)
			}
		}
		if len(sel) == 0 {
			continue
		}
		out := c.Gather(sel)
		if d.held += chunkBytes(out); d.held > d.env.Memory {
			return nil, sqlerr.New(sqlerr.OutOfMemory, "the query's distinct rows need more than %d MB of memory", d.env.Memory>>20)
		}
		return out, nil
	}
}

func buildSetOp(n *plan.SetOp, env *Env) (Iterator, error) {
	ins := make([]Iterator, 0, len(n.Ins))
	for _, i := range n.Ins {
		it, err := build(i, env)
		if err != nil {
			for _, o := range ins {
				o.Close()
			}
			return nil, err
		}
		ins = append(ins, it)
	}
	typs := n.Out.Types()
	if n.Op == plan.Union {
		u := &union{ins: ins, typs: typs}
		if n.All {
			return u, nil
		}
		return buildDistinct(&plan.Distinct{Input: n}, u, env)
	}
	return &counted{ins: ins, env: env, op: n.Op, all: n.All, typs: typs}, nil
}

// union gives its inputs' rows one input after the other.
type union struct {
	ins  []Iterator
	typs []types.Type
	at   int
}

func (u *union) Next(ctx context.Context) (*chunk.Chunk, error) {
	for u.at < len(u.ins) {
		c, err := u.ins[u.at].Next(ctx)
		if err != nil {
			return nil, err
		}
		if c != nil {
			out := &chunk.Chunk{N: c.N}
			for i, col := range c.Cols {
				out.Cols = append(out.Cols, col.As(u.typs[i]))
			}
			return out, nil
		}
		u.ins[u.at].Close()
		u.at++
	}
	return nil, nil
}

func (u *union) Close() {
	for _, in := range u.ins {
		in.Close()
	}
}

// counted is INTERSECT and EXCEPT: it counts equal rows in both inputs.
type counted struct {
	ins  []Iterator
	env  *Env
	op   plan.SetOpKind
	all  bool
	typs []types.Type
	out  *chunk.Chunk
	at   int
	done bool
}

func (s *counted) Close() {
	for _, in := range s.ins {
		in.Close()
	}
}

func (s *counted) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !s.done {
		s.done = true
		if err := s.run(ctx); err != nil {
			return nil, err
		}
	}
	if s.out == nil || s.at >= s.out.Len() {
		return nil, nil
	}
	to := min(s.at+s.env.ChunkSize, s.out.Len())
	c := s.out.Slice(s.at, to)
	s.at = to
	return c, nil
}

func (s *counted) run(ctx context.Context) error {
	table := newHashTable(s.typs)
	counts := make([][]int, len(s.ins))
	for k, in := range s.ins {
		for {
			c, err := in.Next(ctx)
			if err != nil {
				return err
			}
			if c == nil {
				break
			}
			for i, h := range chunk.Hash(c.Cols, c.Len()) {
				n, _ := table.put(c.Cols, i, h)
				for len(counts[k]) <= n {
					counts[k] = append(counts[k], 0)
				}
				counts[k][n]++
			}
			if int64(table.n)*64 > s.env.Memory {
				return errSortMemory(s.env.Memory)
			}
		}
		in.Close()
	}
	at := func(k, n int) int {
		if n < len(counts[k]) {
			return counts[k][n]
		}
		return 0
	}
	var sel []int
	for n := range table.n {
		times := at(0, n)
		for k := 1; k < len(s.ins); k++ {
			if s.op == plan.Intersect {
				times = min(times, at(k, n))
			} else if s.all {
				times = max(0, times-at(k, n))
			} else if at(k, n) > 0 {
				times = 0
			}
		}
		if !s.all {
			times = min(times, 1)
		}
		for range times {
			sel = append(sel, n)
		}
	}
	if len(sel) > 0 {
		s.out = (&chunk.Chunk{Cols: table.keys, N: table.n}).Gather(sel)
	}
	return nil
}
