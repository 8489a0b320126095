package batch

import (
	"context"
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

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
	typs := env.typesOf(n)
	all := &union{ins: ins, typs: typs}
	switch n.Op {
	case plan.Union:
		if n.All {
			return all, nil
		}
		return &distinct{in: all, env: env, typs: typs, on: upTo(len(typs))}, nil
	case plan.Intersect, plan.Except:
		return &counted{in: all, env: env, op: n.Op, all: n.All, typs: typs}, nil
	}
	all.Close()
	return nil, fmt.Errorf("batch: no set operation %d", n.Op)
}

// union gives its inputs' rows one input after the other.
type union struct {
	ins  []Iterator
	typs []types.Type
	at   int // the input that the rows given last are of
}

func (u *union) Next(ctx context.Context) (*chunk.Chunk, error) {
	for u.at < len(u.ins) {
		c, err := u.ins[u.at].Next(ctx)
		if err != nil {
			return nil, err
		}
		if c != nil {
			out := &chunk.Chunk{N: c.N, Cols: make([]chunk.Column, len(u.typs))}
			for i, t := range u.typs {
				out.Cols[i] = c.Cols[i].As(t)
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
	u.at = len(u.ins)
}

// counted is INTERSECT and EXCEPT: it counts equal rows in each input. Over
// memory, rows not met before go to parts on disk, with their input's number.
type counted struct {
	in    *union
	env   *Env
	op    plan.SetOpKind
	all   bool
	typs  []types.Type
	share *share
	level int
	table *hashTable
	count [][]int64 // of each input, of each number
	parts *partitions
	todo  []spilled
	ready bool  // table and count are complete and come out
	at    int   // the number that comes out
	left  int64 // how often yet
	hash  []uint64
	nums  []int32
}

func (s *counted) Close() {
	s.in.Close()
	s.share.close()
	s.parts.close()
	for _, p := range s.todo {
		p.rows.close()
	}
	s.table, s.count, s.parts, s.todo = newHashTable(nil), nil, nil, nil
	s.ready, s.at = true, 0
}

func (s *counted) Next(ctx context.Context) (*chunk.Chunk, error) {
	if s.share == nil {
		s.share = s.env.mem.open()
	}
	for {
		if !s.ready {
			if err := s.run(ctx); err != nil {
				return nil, err
			}
		}
		if c := s.output(); c != nil {
			return c, stopped(ctx)
		}
		if len(s.todo) == 0 {
			return nil, stopped(ctx)
		}
		s.ready = false
	}
}

// run counts the rows of the inputs, or of the next part.
func (s *counted) run(ctx context.Context) error {
	s.table = newHashTable(s.typs)
	s.count = make([][]int64, len(s.in.ins))
	s.share.set(0)
	if s.level == 0 && s.todo == nil {
		for {
			c, err := s.in.Next(ctx)
			if err != nil {
				return err
			}
			if c == nil {
				break
			}
			if err := s.add(ctx, c, s.in.at); err != nil {
				return err
			}
		}
	} else {
		p := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		s.level = p.level
		defer p.rows.close()
		src := p.rows.reader()
		for {
			c, err := src.Next(ctx)
			if err != nil {
				return err
			}
			if c == nil {
				break
			}
			// Rows of an input are not in one chunk with those of another only by chance.
			from := chunk.Of[int64](c.Cols[len(s.typs)]).Data
			for a := 0; a < len(from); {
				b := a + 1
				for b < len(from) && from[b] == from[a] {
					b++
				}
				part := (&chunk.Chunk{Cols: c.Cols[:len(s.typs)], N: c.N}).Slice(a, b)
				if err := s.add(ctx, part, int(from[a])); err != nil {
					return err
				}
				a = b
			}
		}
	}
	if s.parts != nil {
		var err error
		if s.todo, err = s.parts.finish(s.todo); err != nil {
			return err
		}
		s.parts = nil
	}
	s.ready, s.at, s.left = true, -1, 0
	return nil
}

// add counts rows of an input.
func (s *counted) add(ctx context.Context, c *chunk.Chunk, input int) error {
	keys := pickKeys(c.Cols, upTo(len(s.typs)))
	s.hash = hashRows(s.hash, keys, c.Len())
	s.nums = slices.Grow(s.nums[:0], c.Len())[:c.Len()]
	before := s.table.n
	switch {
	case s.parts == nil && input == 0:
		s.table.put(keys, s.hash, s.nums)
		if n := s.table.n - before; n > 0 {
			per := chunkBytes(c)/int64(c.Len()) + tableBytes + 8*int64(len(s.count))
			if s.share.add(per * int64(n)) {
				typs := append(slices.Clip(s.typs), types.Int8)
				var err error
				if s.parts, err = s.env.partitions(typs, s.level); err != nil {
					return err
				}
			}
		}
	default: // what is not in the first input never comes out
		s.table.find(keys, s.hash, s.nums)
	}
	n := &s.count[input]
	if len(*n) < s.table.n {
		*n = append(*n, make([]int64, s.table.n-len(*n))...)
	}
	var rest []int
	for i, k := range s.nums {
		if k >= 0 {
			(*n)[k]++
		} else {
			rest = append(rest, i)
		}
	}
	if s.parts != nil && len(rest) > 0 {
		from := make([]int64, c.Len())
		for i := range from {
			from[i] = int64(input)
		}
		wide := &chunk.Chunk{N: c.N, Cols: append(slices.Clip(c.Cols), chunk.NewVec(types.Int8, from, nil))}
		if err := s.parts.add(wide, s.hash, rest); err != nil {
			return err
		}
	}
	return stopped(ctx)
}

// output gives the next rows, nil at the end of the table.
func (s *counted) output() *chunk.Chunk {
	var sel []int
	for len(sel) < s.env.ChunkSize {
		if s.left == 0 {
			if s.at++; s.at >= s.table.n {
				s.at = s.table.n
				break
			}
			s.left = s.times(s.at)
			continue
		}
		sel = append(sel, s.at)
		s.left--
	}
	if len(sel) == 0 {
		return nil
	}
	return (&chunk.Chunk{Cols: s.table.keys, N: s.table.n}).Gather(sel)
}

// times is how often a row comes out.
func (s *counted) times(n int) int64 {
	at := func(k int) int64 {
		if n < len(s.count[k]) {
			return s.count[k][n]
		}
		return 0
	}
	times := at(0)
	for k := 1; k < len(s.count); k++ {
		switch {
		case s.op == plan.Intersect:
			times = min(times, at(k))
		case s.all:
			times = max(0, times-at(k))
		case at(k) > 0:
			times = 0
		}
	}
	if !s.all {
		times = min(times, 1)
	}
	return times
}
