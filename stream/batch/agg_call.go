package batch

import (
	"context"
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A call is one aggregate at work. DISTINCT calls see each argument once a group:
// they remember what they saw, and over memory put aside what they have not seen.
// Ordered ones see their rows at the end, sorted. Those whose state grows with every
// value put aside what comes over memory.
type call struct {
	fn    expr.Agg
	env   *Env
	acc   expr.Accumulator
	grows bool // its state grows with every value
	full  bool // over memory

	seen   *hashTable // of group number ++ arguments; nil: not such a call
	later  *sorter    // of group number ++ arguments ++ sort columns; nil: nothing is for later
	typs   []types.Type
	by     []expr.Order
	unique bool // rows of later that are equal in group and arguments count once

	next *chunk.Chunk   // of later: to be fed
	last []chunk.Column // of later: the row before, if unique
	hash []uint64
	nums []int32
}

func newCall(env *Env, g expr.Agg, in []types.Type) *call {
	c := &call{fn: g, env: env}
	args := pickTypes(in, g.Args)
	c.acc = g.Fn.New(args, g.Typ)
	c.typs = append([]types.Type{types.Int8}, args...)
	distinct := g.Distinct
	switch g.Fn.Name {
	case "min", "max", "bit_and", "bit_or", "bool_and", "bool_or", "every":
		distinct, g.Order = false, nil // neither changes their result
	case "array_agg", "string_agg":
		c.grows = true
	}
	c.by = []expr.Order{{Col: 0}}
	if !distinct && g.Order == nil {
		return c
	}
	sorted := map[int]bool{}
	for _, o := range g.Order {
		col := len(c.typs)
		if i := slices.Index(g.Args, o.Col); i >= 0 {
			col = 1 + i
		} else {
			c.typs = append(c.typs, in[o.Col])
		}
		sorted[col] = true
		c.by = append(c.by, expr.Order{Col: col, Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	c.unique = distinct
	if !distinct {
		c.later = newSorter(env, c.by, c.typs)
		return c
	}
	// Equal rows must be neighbours; and where the order of values shows, it is theirs, as PostgreSQL has it.
	for i := range g.Args {
		if !sorted[1+i] {
			c.by = append(c.by, expr.Order{Col: 1 + i})
		}
	}
	if g.Order != nil || !g.Fn.Retractable {
		c.later = newSorter(env, c.by, c.typs)
		return c
	}
	c.seen = newHashTable(c.typs)
	return c
}

func (c *call) close() {
	if c.later != nil {
		c.later.close()
	}
}

// update takes the rows sel of in (nil: all), whose groups are nums. It returns an
// estimate of the bytes it now holds more.
func (c *call) update(ctx context.Context, nums []int32, sel []int, groups int, in *chunk.Chunk) (held int64, err error) {
	c.acc.Grow(groups)
	if c.fn.Filter >= 0 {
		nums, sel = where(chunk.Of[bool](in.Cols[c.fn.Filter]), nums, sel)
		if len(nums) == 0 {
			return 0, nil
		}
	}
	args := pick(in.Cols, c.fn.Args)
	if c.grows && c.full && c.later == nil {
		c.later = newSorter(c.env, c.by, c.typs)
	}
	if c.seen == nil && c.later == nil {
		if c.grows {
			for _, a := range args {
				held += columnBytes(a) / int64(in.N) * int64(len(nums))
			}
			held += valueBytes * int64(len(nums))
		}
		return held, c.acc.Update(nums, sel, nil, args)
	}
	if c.seen == nil {
		return 0, c.later.add(ctx, c.rows(nums, sel, in))
	}
	rows := c.rows(nums, sel, in)
	keys := pickKeys(rows.Cols, upTo(len(rows.Cols)))
	c.hash = hashRows(c.hash, keys, rows.N)
	c.nums = slices.Grow(c.nums[:0], rows.N)[:rows.N]
	var fresh []int
	if c.full {
		c.seen.find(keys, c.hash, c.nums)
		for i, k := range c.nums {
			if k < 0 {
				fresh = append(fresh, i)
			}
		}
		if len(fresh) == 0 {
			return 0, nil
		}
		if c.later == nil {
			c.later = newSorter(c.env, c.by, c.typs)
		}
		return 0, c.later.add(ctx, rows.Gather(fresh))
	}
	n := int32(c.seen.n)
	c.seen.put(keys, c.hash, c.nums)
	for i, k := range c.nums {
		if k == n {
			fresh = append(fresh, i)
			n++
		}
	}
	if len(fresh) == 0 {
		return 0, nil
	}
	groupOf := make([]int32, len(fresh))
	for k, i := range fresh {
		groupOf[k] = int32(rows.Cols[0].(*chunk.Vec[int64]).Data[i])
	}
	held = int64(len(fresh)) * (tableBytes + chunkBytes(rows)/int64(rows.N))
	return held, c.acc.Update(groupOf, fresh, nil, rows.Cols[1:1+len(args)])
}

// where narrows rows to those for which f is true.
func where(f *chunk.Vec[bool], nums []int32, sel []int) ([]int32, []int) {
	var outNums []int32
	outSel := []int{}
	for k, g := range nums {
		i := k
		if sel != nil {
			i = sel[k]
		}
		if f.Data[i] && !f.Null(i) {
			outNums, outSel = append(outNums, g), append(outSel, i)
		}
	}
	return outNums, outSel
}

// rows makes the chunk of c.typs.
func (c *call) rows(nums []int32, sel []int, in *chunk.Chunk) *chunk.Chunk {
	wide := make([]int64, len(nums))
	for k, g := range nums {
		wide[k] = int64(g)
	}
	out := &chunk.Chunk{N: len(nums), Cols: []chunk.Column{chunk.NewVec(types.Int8, wide, nil)}}
	add := func(col chunk.Column) {
		if sel != nil {
			col = col.Gather(sel)
		}
		out.Cols = append(out.Cols, col)
	}
	for _, a := range c.fn.Args {
		add(in.Cols[a])
	}
	for _, o := range c.fn.Order {
		if len(out.Cols) == len(c.typs) {
			break
		}
		if !slices.Contains(c.fn.Args, o.Col) {
			add(in.Cols[o.Col])
		}
	}
	return out
}

// valueBytes is what a value that an aggregate keeps takes besides its own bytes.
const valueBytes = 48

// listBound is how large a list may become however little memory there is: it cannot be in parts.
const listBound = 256 << 20

// end tells that all rows have come.
func (c *call) end(ctx context.Context, groups int) error {
	c.acc.Grow(groups)
	if c.later == nil {
		return nil
	}
	return c.later.done(ctx)
}

// feed gives the accumulator what was put aside of the groups below to, and returns how many bytes that was.
func (c *call) feed(ctx context.Context, to int32) (bytes int64, err error) {
	if c.later == nil {
		return 0, nil
	}
	args := 1 + len(c.fn.Args)
	for {
		if c.next == nil {
			rows, err := c.later.Next(ctx)
			if err != nil || rows == nil {
				return bytes, err
			}
			if c.unique {
				rows = rows.Gather(uniqueRows(pickKeys(rows.Cols, upTo(args)), rows.N, &c.last))
			}
			c.next = rows
		}
		var nums []int32
		for _, g := range c.next.Cols[0].(*chunk.Vec[int64]).Data {
			if g >= int64(to) {
				break
			}
			nums = append(nums, int32(g))
		}
		part := c.next
		if len(nums) < c.next.N {
			part = c.next.Slice(0, len(nums))
			c.next = c.next.Slice(len(nums), c.next.N)
		} else {
			c.next = nil
		}
		if len(nums) > 0 {
			if err := c.acc.Update(nums, nil, nil, part.Cols[1:args]); err != nil {
				return bytes, err
			}
			if bytes += chunkBytes(part) + valueBytes*int64(len(nums)); c.grows && bytes > max(4*c.env.Memory, listBound) {
				return bytes, c.env.errMemory("a list that the query makes")
			}
		}
		if c.next != nil {
			return bytes, nil
		}
	}
}
