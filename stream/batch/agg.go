package batch

import (
	"cmp"
	"context"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// agg groups its input by hash and gives one row a group.
type agg struct {
	in   Iterator
	env  *Env
	plan *plan.Agg
	out  *grower
	at   int
}

// A call is one aggregate at work. DISTINCT calls see each argument once a group;
// ordered ones see their rows at the end, sorted.
type call struct {
	fn       expr.Agg
	acc      expr.Accumulator
	distinct *hashTable // of group number ++ arguments; nil: not DISTINCT
	kept     *grower    // of group number ++ arguments ++ sort columns; nil: not ordered
	argTypes []types.Type
}

func (a *agg) Close() { a.in.Close() }

func (a *agg) Next(ctx context.Context) (*chunk.Chunk, error) {
	if a.out == nil {
		if err := a.run(ctx); err != nil {
			return nil, err
		}
	}
	if a.at >= a.out.n {
		return nil, nil
	}
	to := min(a.at+a.env.ChunkSize, a.out.n)
	c := a.out.chunk().Slice(a.at, to)
	a.at = to
	return c, nil
}

func (a *agg) run(ctx context.Context) error {
	in := a.plan.Input.Schema()
	keyTypes := in.Project(a.plan.GroupBy).Types()
	groups := newHashTable(keyTypes)
	calls := make([]*call, len(a.plan.Aggs))
	for i, g := range a.plan.Aggs {
		c := &call{fn: g}
		for _, arg := range g.Args {
			c.argTypes = append(c.argTypes, in[arg].Type)
		}
		c.acc = g.Fn.New(c.argTypes, g.Typ)
		if g.Distinct {
			c.distinct = newHashTable(append([]types.Type{types.Int8}, c.argTypes...))
		}
		if g.Order != nil {
			typs := append([]types.Type{types.Int8}, c.argTypes...)
			for _, o := range g.Order {
				typs = append(typs, in[o.Col].Type)
			}
			c.kept = newGrower(typs)
		}
		calls[i] = c
	}
	if len(a.plan.GroupBy) == 0 {
		groups.put(nil, 0, 0)
	}
	var held int64
	for {
		c, err := a.in.Next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		nums := make([]int32, c.Len())
		if len(a.plan.GroupBy) > 0 {
			keys := pick(c.Cols, a.plan.GroupBy)
			before := groups.n
			for i, h := range chunk.Hash(keys, c.Len()) {
				k, _ := groups.put(keys, i, h)
				nums[i] = int32(k)
			}
			held += int64(groups.n-before) * int64(64+32*(len(keys)+len(calls)))
		}
		for _, cl := range calls {
			n, err := cl.update(nums, groups.n, c)
			if err != nil {
				return err
			}
			held += n
		}
		if held > a.env.Memory {
			return sqlerr.New(sqlerr.OutOfMemory, "the query's grouping needs more than %d MB of memory", a.env.Memory>>20).
				WithHint("A materialized view can keep such a result without holding it in memory.")
		}
		if err := stopped(ctx); err != nil {
			return err
		}
	}
	a.in.Close()
	a.out = newGrower(a.plan.Schema().Types())
	for i := range a.plan.GroupBy {
		a.out.cols[i] = groups.keys[i]
	}
	a.out.n = groups.n
	for i, cl := range calls {
		if err := cl.finish(groups.n); err != nil {
			return err
		}
		col := a.out.cols[len(a.plan.GroupBy)+i]
		for g := range groups.n {
			if err := cl.acc.Output(int32(g), col); err != nil {
				return err
			}
		}
	}
	return nil
}

// update takes a chunk's rows; nums are their groups. It returns an estimate of the bytes it now holds more.
func (c *call) update(nums []int32, groups int, in *chunk.Chunk) (held int64, err error) {
	c.acc.Grow(groups)
	args := pick(in.Cols, c.fn.Args)
	var sel []int
	if c.fn.Filter >= 0 {
		f := chunk.Of[bool](in.Cols[c.fn.Filter])
		sel = make([]int, 0, in.Len())
		for i, ok := range f.Data {
			if ok && !f.Null(i) {
				sel = append(sel, i)
			}
		}
		nums = gatherNums(nums, sel)
	}
	if c.distinct != nil {
		if sel == nil {
			sel = make([]int, in.Len())
			for i := range sel {
				sel[i] = i
			}
		}
		wide := make([]int64, in.Len())
		for k, i := range sel {
			wide[i] = int64(nums[k])
		}
		cols := append([]chunk.Column{chunk.NewVec(types.Int8, wide, nil)}, args...)
		hash := chunk.Hash(cols, in.Len())
		var keptSel []int
		var keptNums []int32
		for k, i := range sel {
			if _, added := c.distinct.put(cols, i, hash[i]); added {
				keptSel, keptNums = append(keptSel, i), append(keptNums, nums[k])
			}
		}
		sel, nums = keptSel, keptNums
		held += int64(len(sel)) * int64(32+16*len(cols))
		if len(sel) == 0 {
			return held, nil
		}
	}
	if c.kept != nil {
		n := len(nums)
		wide := make([]int64, n)
		for k, g := range nums {
			wide[k] = int64(g)
		}
		part := &chunk.Chunk{N: n, Cols: []chunk.Column{chunk.NewVec(types.Int8, wide, nil)}}
		add := func(col chunk.Column) {
			if sel != nil {
				col = col.Gather(sel)
			}
			part.Cols = append(part.Cols, col)
		}
		for _, col := range args {
			add(col)
		}
		for _, o := range c.fn.Order {
			add(in.Cols[o.Col])
		}
		before := c.kept.bytes
		c.kept.add(part)
		return held + c.kept.bytes - before, nil
	}
	return held, c.acc.Update(nums, sel, nil, args)
}

func gatherNums(nums []int32, sel []int) []int32 {
	out := make([]int32, len(sel))
	for i, s := range sel {
		out[i] = nums[s]
	}
	return out
}

// finish feeds an ordered call its rows, sorted.
func (c *call) finish(groups int) error {
	c.acc.Grow(groups)
	if c.kept == nil || c.kept.n == 0 {
		return nil
	}
	all := c.kept.chunk()
	by := make([]expr.Order, len(c.fn.Order))
	for i, o := range c.fn.Order {
		by[i] = expr.Order{Col: 1 + len(c.fn.Args) + i, Desc: o.Desc, NullsFirst: o.NullsFirst}
	}
	idx := sortIndex(all, by)
	sorted := all.Gather(idx)
	nums := make([]int32, all.N)
	for i, g := range chunk.Of[int64](sorted.Cols[0]).Data {
		nums[i] = int32(g)
	}
	return c.acc.Update(nums, nil, nil, sorted.Cols[1:1+len(c.fn.Args)])
}

// sortIndex returns the order of c's rows by sort keys; equal rows keep their order.
func sortIndex(c *chunk.Chunk, by []expr.Order) []int {
	idx := make([]int, c.N)
	for i := range idx {
		idx[i] = i
	}
	slices.SortFunc(idx, func(a, b int) int {
		if d := compareBy(c, a, c, b, by); d != 0 {
			return d
		}
		return cmp.Compare(a, b)
	})
	return idx
}

// compareBy orders row i of a and row j of b by sort keys.
func compareBy(a *chunk.Chunk, i int, b *chunk.Chunk, j int, by []expr.Order) int {
	for _, o := range by {
		x, y := a.Cols[o.Col], b.Cols[o.Col]
		xn, yn := x.Null(i), y.Null(j)
		if xn || yn {
			if xn == yn {
				continue
			}
			if xn == o.NullsFirst {
				return -1
			}
			return 1
		}
		d := compareValue(x, i, y, j)
		if d == 0 {
			continue
		}
		if o.Desc {
			return -d
		}
		return d
	}
	return 0
}
