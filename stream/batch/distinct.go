package batch

import (
	"context"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// buildDistinct keeps one row of equals: without ON, the first met; with ON, the first by order.
func buildDistinct(n *plan.Distinct, env *Env) (Iterator, error) {
	in, err := build(n.Input, env)
	if err != nil {
		return nil, err
	}
	typs := env.typesOf(n.Input)
	if n.On == nil {
		return &distinct{in: in, env: env, typs: typs, on: upTo(len(typs))}, nil
	}
	if n.Order == nil {
		return &distinct{in: in, env: env, typs: typs, on: n.On}, nil
	}
	by, whole := distinctOrder(n)
	in = &orderBy{in: in, s: newSorter(env, by, typs)}
	if !whole {
		return &distinct{in: in, env: env, typs: typs, on: n.On}, nil
	}
	return &unique{in: in, on: n.On}, nil
}

// distinctOrder is the order in which the rows of a DISTINCT ON are looked at. whole:
// in it, rows with equal On columns are neighbours.
func distinctOrder(n *plan.Distinct) (by []expr.Order, whole bool) {
	by = slices.Clone(n.Order)
	var lead []int // leading columns of the order that are of On
	for _, o := range by {
		if !slices.Contains(n.On, o.Col) {
			break
		}
		lead = append(lead, o.Col)
	}
	for _, c := range n.On {
		if slices.Contains(lead, c) {
			continue
		}
		if len(lead) < len(by) && by[len(lead)].Col != c {
			return n.Order, false
		}
		by = append(by, expr.Order{Col: c})
		lead = append(lead, c)
	}
	return by, true
}

// unique keeps the first of neighbours that are equal in some columns.
type unique struct {
	in   Iterator
	on   []int
	last []chunk.Column // of one row; nil: none yet
}

func (u *unique) Close() { u.in.Close() }

func (u *unique) Next(ctx context.Context) (*chunk.Chunk, error) {
	for {
		c, err := u.in.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		sel := uniqueRows(pickKeys(c.Cols, u.on), c.Len(), &u.last)
		switch len(sel) {
		case 0:
		case c.Len():
			return c, nil
		default:
			return c.Gather(sel), nil
		}
	}
}

// uniqueRows selects the rows whose keys differ from those of the row before; last is that row across chunks.
func uniqueRows(keys []chunk.Column, n int, last *[]chunk.Column) []int {
	var sel []int
	for i := range n {
		same := false
		if i > 0 {
			same = equalRows(keys, i-1, keys, i)
		} else if *last != nil {
			same = equalRows(*last, 0, keys, 0)
		}
		if !same {
			sel = append(sel, i)
		}
	}
	*last = rowOf(keys, n-1)
	return sel
}

// distinct keeps the first of the rows that are equal in some columns, by hash. Over
// memory, rows with keys not met before go to parts on disk that are looked through
// one after the other.
type distinct struct {
	in    Iterator
	env   *Env
	typs  []types.Type
	on    []int
	src   source // in, or a part
	level int
	seen  *hashTable
	share *share
	parts *partitions // nil: all fits
	todo  []spilled
	open  *rowList // the part being read
	done  bool
	hash  []uint64
	nums  []int32
}

func (d *distinct) Close() {
	d.in.Close()
	d.share.close()
	d.parts.close()
	for _, p := range d.todo {
		p.rows.close()
	}
	if d.open != nil {
		d.open.close()
	}
	d.seen, d.parts, d.todo, d.open = nil, nil, nil, nil
	d.done = true
}

func (d *distinct) Next(ctx context.Context) (*chunk.Chunk, error) {
	if d.src == nil {
		d.src = d.in
		d.share = d.env.mem.open()
	}
	for !d.done {
		if d.seen == nil {
			d.seen = newHashTable(pickTypes(d.typs, d.on))
		}
		c, err := d.src.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c == nil {
			more, err := d.nextPart()
			if err != nil || !more {
				return nil, err
			}
			continue
		}
		out, err := d.look(c)
		if out != nil || err != nil {
			return out, err
		}
		if err := stopped(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// look gives the rows of c that were not met before.
func (d *distinct) look(c *chunk.Chunk) (*chunk.Chunk, error) {
	keys := pickKeys(c.Cols, d.on)
	d.hash = hashRows(d.hash, keys, c.Len())
	d.nums = slices.Grow(d.nums[:0], c.Len())[:c.Len()]
	var sel []int
	if d.parts != nil {
		d.seen.find(keys, d.hash, d.nums)
		for i, k := range d.nums {
			if k < 0 {
				sel = append(sel, i)
			}
		}
		if len(sel) == 0 {
			return nil, nil
		}
		return nil, d.parts.add(c, d.hash, sel)
	}
	n := int32(d.seen.n)
	d.seen.put(keys, d.hash, d.nums)
	for i, k := range d.nums {
		if k == n { // numbers are given in order
			sel = append(sel, i)
			n++
		}
	}
	if len(sel) == 0 {
		return nil, nil
	}
	out := c
	if len(sel) < c.Len() {
		out = c.Gather(sel)
	}
	kept := int64(tableBytes * len(sel))
	for _, i := range d.on {
		kept += columnBytes(out.Cols[i])
	}
	if d.share.add(kept) {
		var err error
		if d.parts, err = d.env.partitions(d.typs, d.level); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nextPart goes on with a part on disk.
func (d *distinct) nextPart() (more bool, err error) {
	if d.open != nil {
		d.open.close()
		d.open = nil
	} else {
		d.in.Close()
	}
	d.seen = nil
	d.share.set(0)
	if d.parts != nil {
		if d.todo, err = d.parts.finish(d.todo); err != nil {
			return false, err
		}
		d.parts = nil
	}
	if len(d.todo) == 0 {
		d.done = true
		return false, nil
	}
	p := d.todo[len(d.todo)-1]
	d.todo = d.todo[:len(d.todo)-1]
	d.open, d.level, d.src = p.rows, p.level, p.rows.reader()
	return true, nil
}
