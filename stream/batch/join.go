package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
)

func buildJoin(n *plan.Join, env *Env) (Iterator, error) {
	if n.Lateral && (n.Kind == plan.Right || n.Kind == plan.Full) {
		return nil, sqlerr.Unsupported("RIGHT or FULL JOIN LATERAL")
	}
	l, err := build(n.Left, env)
	if err != nil {
		return nil, err
	}
	if n.Lateral {
		if s, ok := lookupOf(n, env); ok {
			return newLookup(n, s, l, env), nil
		}
		return newLateral(n, l, env), nil
	}
	r, err := build(n.Right, env)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &join{env: env, in: [2]Iterator{l, r}, p: newProber(n, env)}, nil
}

const (
	left  = 0
	right = 1
)

// A join holds one input and probes it with the other: by hash where there are
// equality keys, else by trying every pair. It reads both inputs in turn and holds
// the one that ends first, except that Semi and Anti hold the right one.
//
// Where neither fits memory both are split by hash, and their parts joined pair by
// pair. What cannot be split (there is no key, or too many rows share one) is held a
// block at a time, and the other input is read from disk once a block.
type join struct {
	env   *Env
	in    [2]Iterator
	p     *prober
	share *share

	begun  bool
	passes []pass // still to be made
	cur    *pass  // nil: none
	closed bool
}

// A pass joins what is held with what is probed, or a part of both.
type pass struct {
	held  int // the side that is held: left or right
	level int
	src   [2]source
	lists [2]*rowList // what src read from; nil: an input
	block bool        // the held side comes block by block
	more  bool        // further blocks follow
	ready bool
	probe source // of this block
	seen  []bool // by number of probed row: it found a partner in an earlier block
	at    int    // number of the next probed row
}

const maxSplits = 6

func (j *join) Close() {
	j.in[left].Close()
	j.in[right].Close()
	j.share.close()
	for _, p := range j.passes {
		p.close()
	}
	if j.cur != nil {
		j.cur.close()
	}
	j.p.reset()
	j.passes, j.cur, j.closed, j.begun = nil, nil, true, true
}

func (p *pass) close() {
	for _, l := range p.lists {
		if l != nil {
			l.close()
		}
	}
}

func (j *join) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !j.begun {
		j.begun = true
		j.share = j.env.mem.open()
		if err := j.begin(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if err := stopped(ctx); err != nil || j.closed {
			return nil, err
		}
		if j.cur == nil {
			if len(j.passes) == 0 {
				j.Close()
				return nil, nil
			}
			p := j.passes[len(j.passes)-1]
			j.passes = j.passes[:len(j.passes)-1]
			j.cur = &p
		}
		if !j.cur.ready {
			ok, err := j.load(ctx, j.cur)
			if err != nil {
				return nil, err
			}
			if !ok { // it was split
				j.cur.close()
				j.cur = nil
				continue
			}
		}
		c, err := j.probeNext(ctx)
		if c != nil || err != nil {
			return c, err
		}
	}
}

// probeNext gives the next rows of the current pass; nil: none yet, or it is over.
func (j *join) probeNext(ctx context.Context) (*chunk.Chunk, error) {
	p := j.cur
	if j.p.probed == nil {
		c, err := p.probe.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c == nil {
			if c := j.p.unmatched(); c != nil {
				return c, nil
			}
			p.ready = false
			if p.more {
				return nil, nil
			}
			p.close()
			j.cur = nil
			j.p.reset()
			j.share.set(0)
			return nil, nil
		}
		seen := []bool(nil)
		if p.block && j.p.asks() {
			if p.at+c.Len() > len(p.seen) {
				p.seen = append(p.seen, make([]bool, c.Len())...)
				j.share.add(int64(c.Len())) // little beside the row in the file
			}
			seen = p.seen[p.at : p.at+c.Len()]
			p.at += c.Len()
		}
		j.p.begin(c, seen, !p.more)
	}
	return j.p.next()
}

// begin reads the inputs until one has ended and is the one to hold, or until they are over memory.
func (j *join) begin(ctx context.Context) error {
	n := j.p.plan
	var rest [2][]*chunk.Chunk // chunks read of a side, in order
	var ended [2]bool
	read := func(side int) error {
		c, err := j.in[side].Next(ctx)
		if err != nil {
			return err
		}
		if ended[side] = c == nil; !ended[side] {
			rest[side] = append(rest[side], c)
		}
		return nil
	}
	either := n.Kind != plan.Semi && n.Kind != plan.Anti && len(n.LeftKeys) > 0
	over := false
	bytes := [2]int64{}
	side := right
	for {
		k := len(rest[side])
		if err := read(side); err != nil {
			return err
		}
		if ended[side] {
			break
		}
		bytes[side] += chunkBytes(rest[side][k])
		if over = j.share.set(bytes[left] + bytes[right]); over {
			break
		}
		if either && bytes[1-side] < bytes[side] {
			side = 1 - side
		}
		if err := stopped(ctx); err != nil {
			return err
		}
	}
	p := pass{held: right}
	if !over {
		p.held = side
		j.in[side].Close()
		if empty := len(rest[side]) == 0; empty && !j.p.keeps(1-side) {
			j.Close() // nothing can come out
			return nil
		}
	}
	for s := range p.src {
		p.src[s] = &chained{rest[s], j.in[s]}
	}
	j.passes = append(j.passes, p)
	return nil
}

// chained gives chunks and then those of an input.
type chained struct {
	first []*chunk.Chunk
	then  source
}

func (c *chained) Next(ctx context.Context) (*chunk.Chunk, error) {
	if len(c.first) > 0 {
		out := c.first[0]
		c.first[0] = nil
		c.first = c.first[1:]
		return out, nil
	}
	return c.then.Next(ctx)
}

// load reads the side to hold, or its next block. It returns false if the pass was split into others.
func (j *join) load(ctx context.Context, p *pass) (bool, error) {
	j.share.set(0)
	base := int64(len(p.seen))
	g := newGrower(j.p.typs[p.held], 0)
	p.more = false
	for {
		c, err := p.src[p.held].Next(ctx)
		if err != nil {
			return false, err
		}
		if c == nil {
			break
		}
		if err := stopped(ctx); err != nil {
			return false, err
		}
		g.add(c)
		if !j.share.set(base + g.bytes + int64(g.n)*joinBytes) {
			continue
		}
		if !p.block && len(j.p.plan.LeftKeys) > 0 && p.level < maxSplits {
			return false, j.split(ctx, p, g.chunk())
		}
		if !p.block {
			if err := j.spool(ctx, p); err != nil {
				return false, err
			}
		}
		p.more = true
		break
	}
	p.probe = p.src[1-p.held]
	if p.block {
		p.at = 0
		p.probe = p.lists[1-p.held].reader()
	}
	p.ready = true
	return true, j.p.hold(ctx, p.held, g.chunk())
}

// joinBytes is what a held row takes besides its columns.
const joinBytes = tableBytes + 16

// spool makes the probed side one that can be read again.
func (j *join) spool(ctx context.Context, p *pass) error {
	p.block = true
	side := 1 - p.held
	if p.lists[side] != nil {
		return nil
	}
	f, err := j.env.tempFile()
	if err != nil {
		return err
	}
	p.lists[side] = f.list(j.p.typs[side])
	for {
		c, err := p.src[side].Next(ctx)
		if err != nil || c == nil {
			return err
		}
		if err := p.lists[side].write(c); err != nil {
			return err
		}
		if err := stopped(ctx); err != nil {
			return err
		}
	}
}

// split writes both sides of a pass to parts; first is what was read of the held side.
func (j *join) split(ctx context.Context, p *pass, first *chunk.Chunk) error {
	var lists [2][]*rowList
	for _, side := range []int{p.held, 1 - p.held} {
		src := p.src[side]
		if side == p.held {
			src = &chained{[]*chunk.Chunk{first}, src}
		}
		parts, err := j.env.partitions(j.p.typs[side], p.level)
		if err == nil {
			if err = j.splitSide(ctx, src, side, parts); err == nil {
				lists[side], err = parts.lists()
			}
			if err != nil {
				parts.close()
			}
		}
		if err != nil {
			for _, l := range lists[p.held] {
				l.close()
			}
			return err
		}
	}
	total := int64(0)
	for _, l := range lists[p.held] {
		total += l.rows
	}
	n := j.p.plan
	for k := range lists[left] {
		part := pass{held: p.held, level: p.level + 1}
		for s := range part.lists {
			part.lists[s] = lists[s][k]
			part.src[s] = lists[s][k].reader()
		}
		l, r := lists[left][k], lists[right][k]
		if n.Kind != plan.Semi && n.Kind != plan.Anti {
			part.held = right
			if l.bytes < r.bytes {
				part.held = left
			}
		}
		if lists[part.held][k].rows == total && total > 0 {
			part.level = maxSplits // one hash: splitting does not help
		}
		if l.rows == 0 && (r.rows == 0 || !j.p.keeps(right)) || r.rows == 0 && !j.p.keeps(left) {
			part.close()
			continue
		}
		j.passes = append(j.passes, part)
	}
	return nil
}

func (j *join) splitSide(ctx context.Context, src source, side int, parts *partitions) error {
	var hash []uint64
	for {
		c, err := src.Next(ctx)
		if err != nil || c == nil {
			return err
		}
		hash = hashRows(hash, pickKeys(c.Cols, j.p.keys[side]), c.Len())
		if err := parts.add(c, hash, nil); err != nil {
			return err
		}
		if err := stopped(ctx); err != nil {
			return err
		}
	}
}
