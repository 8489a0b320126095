package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// A prober joins held rows with chunks.
type prober struct {
	env  *Env
	plan *plan.Join
	on   expr.Expr
	cols []int // the columns that on reads; nil: all
	typs [2][]types.Type
	keys [2][]int

	held    int
	rows    *chunk.Chunk
	table   *hashTable // of the held keys; nil: no keys
	head    []int32    // key number → first row + 1
	link    []int32    // row → next row of the same key + 1; nil: keys are unique
	matched []bool     // held rows that found a partner; nil: nobody asks
	tail    int        // held rows looked at for the unmatched ones

	probed *chunk.Chunk // nil: to be set
	last   bool         // no further block is held after this one
	first  []int32      // of each probed row: the first held row + 1 to try; 0: none. nil: all, from the first
	row    int
	at     int32 // the held row + 1 that comes next for row; 0: none
	seen   []bool
	hash   []uint64
	nums   []int32
	psel   []int // pairs: probed rows,
	hsel   []int // held rows
}

func newProber(n *plan.Join, env *Env) *prober {
	p := &prober{env: env, plan: n, on: env.ready(n.On), typs: [2][]types.Type{env.typesOf(n.Left), env.typesOf(n.Right)},
		keys: [2][]int{n.LeftKeys, n.RightKeys}}
	if p.on != nil && !expr.HasSubquery(p.on) {
		p.cols = expr.Columns(p.on)
		if p.cols == nil {
			p.cols = []int{}
		}
	}
	return p
}

func (p *prober) reset() {
	p.rows, p.table, p.head, p.link, p.matched, p.probed = nil, nil, nil, nil, nil, nil
}

// keeps reports whether rows of a side come out without a partner.
func (p *prober) keeps(side int) bool {
	switch p.plan.Kind {
	case plan.Left, plan.Anti:
		return side == left
	case plan.Right:
		return side == right
	case plan.Full:
		return true
	}
	return false
}

// asks reports whether it matters that a probed row found a partner.
func (p *prober) asks() bool { return p.plan.Kind == plan.Semi || p.keeps(1-p.held) }

// hold sets the held rows.
func (p *prober) hold(ctx context.Context, side int, rows *chunk.Chunk) error {
	p.reset()
	p.held, p.rows, p.tail = side, rows, 0
	if p.keeps(side) {
		p.matched = make([]bool, rows.N)
	}
	if len(p.keys[side]) == 0 {
		return nil
	}
	keys := pickKeys(rows.Cols, p.keys[side])
	p.table = newRowTable(keys, rows.N)
	null := p.mayBeNull(keys)
	nums := make([]int32, holdStep)
	var last []int32
	for from := 0; from < rows.N; from += holdStep {
		if err := stopped(ctx); err != nil {
			return err
		}
		to := min(from+holdStep, rows.N)
		part := make([]chunk.Column, len(keys))
		for i, k := range keys {
			part[i] = k.Slice(from, to)
		}
		p.hash = hashRows(p.hash, part, to-from)
		var skip func(int) bool
		if null {
			skip = func(i int) bool { return p.nullKey(keys, i) }
		}
		p.table.putRows(from, p.hash, nums[:to-from], skip)
		for i, k := range nums[:to-from] {
			row := int32(from + i)
			switch {
			case k < 0:
			case int(k) == len(p.head):
				p.head, last = append(p.head, row+1), append(last, row)
			default:
				if p.link == nil {
					p.link = make([]int32, rows.N)
				}
				p.link[last[k]] = row + 1
				last[k] = row
			}
		}
	}
	return nil
}

// holdStep is how many rows are put into the table between looks at the clock.
const holdStep = 1 << 14

// mayBeNull reports whether some key is NULL and equals nothing.
func (p *prober) mayBeNull(keys []chunk.Column) bool {
	for i, k := range keys {
		if k.HasNulls() && !(p.plan.NullSafe != nil && p.plan.NullSafe[i]) {
			return true
		}
	}
	return false
}

// nullKey reports whether a key has a NULL that equals nothing.
func (p *prober) nullKey(keys []chunk.Column, i int) bool {
	for c, k := range keys {
		if k.Null(i) && !(p.plan.NullSafe != nil && p.plan.NullSafe[c]) {
			return true
		}
	}
	return false
}

// begin sets the chunk to probe with; seen tells and notes which of its rows found
// a partner, nil: none did. last: no other block of held rows comes.
func (p *prober) begin(c *chunk.Chunk, seen []bool, last bool) {
	p.probed, p.last, p.row, p.seen, p.first = c, last, 0, seen, nil
	if seen == nil {
		p.seen = make([]bool, c.N)
	}
	if p.table != nil {
		keys := pickKeys(c.Cols, p.keys[1-p.held])
		p.hash = hashRows(p.hash, keys, c.N)
		if cap(p.nums) < c.N {
			p.nums = make([]int32, c.N)
		}
		p.nums = p.nums[:c.N]
		p.first = p.nums
		p.table.find(keys, p.hash, p.first)
		check := p.mayBeNull(keys)
		for i, k := range p.first {
			if k < 0 || check && p.nullKey(keys, i) {
				p.first[i] = 0
			} else {
				p.first[i] = p.head[k]
			}
		}
	}
	p.at = p.start(0)
}

// start is the first held row + 1 to try for probed row i; 0: none.
func (p *prober) start(i int) int32 {
	if (p.plan.Kind == plan.Semi || p.plan.Kind == plan.Anti) && p.seen[i] {
		return 0
	}
	switch {
	case p.first != nil:
		return p.first[i]
	case p.rows.N > 0:
		return 1
	}
	return 0
}

// next gives what comes of some pairs; nil: nothing yet. When the chunk is done, probed is nil.
func (p *prober) next() (*chunk.Chunk, error) {
	c := p.probed
	size := p.env.ChunkSize
	p.psel, p.hsel = p.psel[:0], p.hsel[:0]
	semi := p.plan.Kind == plan.Semi || p.plan.Kind == plan.Anti
	for p.row < c.N && len(p.psel) < size {
		if p.at == 0 {
			if p.row++; p.row < c.N {
				p.at = p.start(p.row)
			}
			continue
		}
		p.psel, p.hsel = append(p.psel, p.row), append(p.hsel, int(p.at-1))
		switch {
		case semi && p.on == nil:
			p.at = 0 // one partner is enough
		case p.first == nil:
			if p.at++; int(p.at) > p.rows.N {
				p.at = 0
			}
		case p.link == nil:
			p.at = 0
		default:
			p.at = p.link[p.at-1]
		}
	}
	psel, hsel := p.psel, p.hsel
	if len(psel) > 0 && p.on != nil {
		sel, err := expr.Filter(p.env.Ctx, p.on, p.pairs(psel, hsel))
		if err != nil {
			return nil, err
		}
		for k, s := range sel {
			psel[k], hsel[k] = psel[s], hsel[s]
		}
		psel, hsel = psel[:len(sel)], hsel[:len(sel)]
	}
	over := p.row == c.N
	switch {
	case semi:
		k := 0
		for _, r := range psel {
			if !p.seen[r] {
				p.seen[r] = true
				psel[k] = r
				k++
			}
		}
		if psel = psel[:k]; p.plan.Kind == plan.Anti {
			psel = psel[:0]
		}
		if p.row < c.N && p.seen[p.row] {
			p.at = 0
		}
	case p.keeps(1 - p.held):
		for _, r := range psel {
			p.seen[r] = true
		}
	}
	if p.matched != nil {
		for _, r := range hsel {
			p.matched[r] = true
		}
	}
	var out *chunk.Chunk
	padded := false
	if over && p.last && p.keeps(1-p.held) {
		hsel = hsel[:len(psel)]
		for i, seen := range p.seen {
			if !seen {
				psel, hsel = append(psel, i), append(hsel, -1)
				padded = true
			}
		}
		p.psel, p.hsel = psel[:0], hsel[:0]
	}
	if len(psel) > 0 {
		out = p.output(psel, hsel, padded)
	}
	if over {
		p.probed = nil
	}
	return out, nil
}

// pairs makes the columns left ++ right that the condition reads.
func (p *prober) pairs(psel, hsel []int) *chunk.Chunk {
	nl, nr := len(p.typs[left]), len(p.typs[right])
	out := &chunk.Chunk{N: len(psel), Cols: make([]chunk.Column, nl+nr)}
	put := func(i int) {
		side, col := left, i
		if i >= nl {
			side, col = right, i-nl
		}
		if side == p.held {
			out.Cols[i] = p.rows.Cols[col].Gather(hsel)
		} else {
			out.Cols[i] = p.probed.Cols[col].Gather(psel)
		}
	}
	if p.cols == nil {
		for i := range out.Cols {
			put(i)
		}
	}
	for _, i := range p.cols {
		put(i)
	}
	return out
}

// output makes the join's rows of pairs. padded: a held row -1 is NULLs.
func (p *prober) output(psel, hsel []int, padded bool) *chunk.Chunk {
	out := &chunk.Chunk{N: len(psel), Cols: make([]chunk.Column, 0, len(p.typs[left])+len(p.typs[right]))}
	probed := func() {
		for _, c := range p.probed.Cols {
			out.Cols = append(out.Cols, c.Gather(psel))
		}
	}
	if p.plan.Kind == plan.Semi || p.plan.Kind == plan.Anti {
		probed()
		return out
	}
	if p.held == right {
		probed()
	}
	for _, c := range p.rows.Cols {
		if padded {
			out.Cols = append(out.Cols, gatherPadded(c, hsel))
		} else {
			out.Cols = append(out.Cols, c.Gather(hsel))
		}
	}
	if p.held == left {
		probed()
	}
	return out
}

// unmatched gives the next held rows without partner, padded; nil: no more.
func (p *prober) unmatched() *chunk.Chunk {
	var sel []int
	for p.tail < len(p.matched) && len(sel) < p.env.ChunkSize {
		if !p.matched[p.tail] {
			sel = append(sel, p.tail)
		}
		p.tail++
	}
	if len(sel) == 0 {
		return nil
	}
	out := &chunk.Chunk{N: len(sel)}
	for side := range p.typs {
		for i, t := range p.typs[side] {
			if side == p.held {
				out.Cols = append(out.Cols, p.rows.Cols[i].Gather(sel))
			} else {
				out.Cols = append(out.Cols, chunk.Nulls(t, len(sel)))
			}
		}
	}
	return out
}
