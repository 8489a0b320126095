package batch

import (
	"context"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// agg groups its input by hash and gives one row a group. Over memory, rows of
// groups not met before go to parts on disk, which are grouped one after the other:
// the groups in memory get all their rows.
type agg struct {
	in      Iterator
	env     *Env
	plan    *plan.Agg
	inTypes []types.Type

	src    source
	level  int
	share  *share
	groups *hashTable
	calls  []*call
	parts  *partitions
	todo   []spilled
	open   *rowList // the part that src reads
	at     int      // groups that came out; -1: not grouped yet
	done   bool
	hash   []uint64
	nums   []int32
	some   []int32 // of nums, those of groups in memory
	sel    []int   // and their rows
}

func (a *agg) Close() {
	a.in.Close()
	a.share.close()
	a.parts.close()
	a.free()
	for _, p := range a.todo {
		p.rows.close()
	}
	a.groups, a.parts, a.todo, a.done = nil, nil, nil, true
}

// free lets go of what one pass held.
func (a *agg) free() {
	for _, c := range a.calls {
		c.close()
	}
	a.calls = nil
	if a.open != nil {
		a.open.close()
		a.open = nil
	}
}

func (a *agg) Next(ctx context.Context) (*chunk.Chunk, error) {
	for !a.done {
		if a.groups == nil {
			if err := a.run(ctx); err != nil {
				return nil, err
			}
		}
		if a.at < a.groups.n {
			return a.output(ctx)
		}
		a.free()
		a.groups = nil
		if len(a.todo) == 0 {
			a.done = true
			break
		}
		p := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		a.open, a.level, a.src = p.rows, p.level, p.rows.reader()
	}
	return nil, nil
}

// output gives the next groups. Calls that get rows only now get them a few groups
// at a time, so that no more is in memory than comes out.
func (a *agg) output(ctx context.Context) (*chunk.Chunk, error) {
	end := min(a.at+a.env.ChunkSize, a.groups.n)
	cols := make([]chunk.Column, len(a.calls))
	step := end - a.at
	for i, c := range a.calls {
		cols[i] = chunk.New(c.fn.Typ, end-a.at)
		if c.later != nil {
			step = outputStep
		}
	}
	from, fed := a.at, int64(0)
	for a.at < end && fed < outputBytes {
		to := min(a.at+step, end)
		for i, c := range a.calls {
			n, err := c.feed(ctx, int32(to))
			if err != nil {
				return nil, err
			}
			if c.grows {
				fed += n
			}
			for g := a.at; g < to; g++ {
				if err := c.acc.Output(int32(g), cols[i]); err != nil {
					return nil, err
				}
				if c.grows {
					c.acc.Reset(int32(g))
				}
			}
		}
		a.at = to
	}
	out := &chunk.Chunk{N: a.at - from}
	for _, k := range a.groups.keys {
		out.Cols = append(out.Cols, k.Slice(from, a.at))
	}
	out.Cols = append(out.Cols, cols...)
	return out, stopped(ctx)
}

const (
	outputStep  = 16
	outputBytes = 8 << 20
)

// run groups the input, or the next part.
func (a *agg) run(ctx context.Context) error {
	if a.src == nil {
		a.src = a.in
		a.share = a.env.mem.open()
	}
	a.at = 0
	a.share.set(0)
	a.groups = newHashTable(pickTypes(a.inTypes, a.plan.GroupBy))
	for _, g := range a.plan.Aggs {
		a.calls = append(a.calls, newCall(a.env, g, a.inTypes))
	}
	if len(a.plan.GroupBy) == 0 {
		a.groups.putRow(nil, 0, 0)
	}
	for {
		c, err := a.src.Next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		if err := a.add(ctx, c); err != nil {
			return err
		}
		if err := stopped(ctx); err != nil {
			return err
		}
	}
	a.in.Close()
	for _, c := range a.calls {
		if err := c.end(ctx, a.groups.n); err != nil {
			return err
		}
	}
	if a.parts != nil {
		var err error
		if a.todo, err = a.parts.finish(a.todo); err != nil {
			return err
		}
		a.parts = nil
	}
	return nil
}

// add takes rows of the input.
func (a *agg) add(ctx context.Context, c *chunk.Chunk) error {
	a.nums = slices.Grow(a.nums[:0], c.Len())[:c.Len()]
	nums, sel := a.nums, []int(nil)
	var held int64
	switch {
	case len(a.plan.GroupBy) == 0:
		clear(nums)
	case a.parts == nil:
		keys := pickKeys(c.Cols, a.plan.GroupBy)
		a.hash = hashRows(a.hash, keys, c.Len())
		before := a.groups.n
		a.groups.put(keys, a.hash, nums)
		if n := int64(a.groups.n - before); n > 0 {
			per := int64(tableBytes + 40*len(a.calls))
			for _, k := range keys {
				per += columnBytes(k) / int64(c.Len())
			}
			held += n * per
		}
	default:
		keys := pickKeys(c.Cols, a.plan.GroupBy)
		a.hash = hashRows(a.hash, keys, c.Len())
		a.groups.find(keys, a.hash, nums)
		var rest []int
		a.some, a.sel = a.some[:0], a.sel[:0]
		for i, k := range nums {
			if k < 0 {
				rest = append(rest, i)
			} else {
				a.some, a.sel = append(a.some, k), append(a.sel, i)
			}
		}
		if len(rest) > 0 {
			nums, sel = a.some, a.sel
			if err := a.parts.add(c, a.hash, rest); err != nil {
				return err
			}
			if len(sel) == 0 {
				return nil
			}
		}
	}
	for _, cl := range a.calls {
		n, err := cl.update(ctx, nums, sel, a.groups.n, c)
		if err != nil {
			return err
		}
		held += n
	}
	if held > 0 && a.share.add(held) {
		return a.full()
	}
	return nil
}

// full stops taking new groups, new distinct values and lists of values into memory.
func (a *agg) full() error {
	for _, c := range a.calls {
		c.full = true
	}
	if len(a.plan.GroupBy) > 0 && a.parts == nil {
		var err error
		a.parts, err = a.env.partitions(a.inTypes, a.level)
		return err
	}
	return nil
}
