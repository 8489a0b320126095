package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

func buildJoin(n *plan.Join, env *Env) (Iterator, error) {
	left, err := build(n.Left, env)
	if err != nil {
		return nil, err
	}
	j := &join{env: env, plan: n, left: left, lt: n.Left.Schema().Types(), rt: n.Right.Schema().Types()}
	if n.Lateral {
		return &lateral{join: j}, nil
	}
	if j.right, err = build(n.Right, env); err != nil {
		left.Close()
		return nil, err
	}
	return j, nil
}

// A join holds its right input and probes it with the left one: by hash where
// there are equality keys, else by trying every pair.
type join struct {
	env         *Env
	plan        *plan.Join
	left, right Iterator
	lt, rt      []types.Type

	built   bool
	rows    *chunk.Chunk // all right rows
	table   *hashTable   // of right keys; nil: no keys
	head    []int32      // key number → first row + 1
	link    []int32      // row → next row of the same key + 1
	matched []bool       // right rows that found a partner; Right and Full only
	tail    int          // right rows looked at for the unmatched ones at the end; -1: not there yet
	pending []*chunk.Chunk
	cur     *chunk.Chunk // left chunk being probed
	curRow  int
	curAt   int32 // where in the chain (or list) of right rows the probe stands
	hit     int   // the left row of cur that had a match last; -1: none
	hash    []uint64
	lsel    []int
	rsel    []int
}

const joinChunk = 1024

func (j *join) Close() {
	j.left.Close()
	if j.right != nil {
		j.right.Close()
	}
	j.rows, j.table = nil, nil
	j.cur, j.pending = nil, nil
	j.tail = 1 << 60
	j.built = true
}

func (j *join) build(ctx context.Context) error {
	j.built = true
	j.tail = -1
	var err error
	if j.rows, err = all(ctx, j.right, j.rt, j.env.Memory); err != nil {
		return err
	}
	j.right.Close()
	if j.plan.Kind == plan.Right || j.plan.Kind == plan.Full {
		j.matched = make([]bool, j.rows.Len())
	}
	if len(j.plan.RightKeys) == 0 {
		return nil
	}
	keys := pick(j.rows.Cols, j.plan.RightKeys)
	typs := make([]types.Type, len(keys))
	for i, k := range j.plan.RightKeys {
		typs[i] = j.rt[k]
	}
	j.table = newHashTable(typs)
	j.link = make([]int32, j.rows.Len())
	var last []int32
	for i, h := range chunk.Hash(keys, j.rows.Len()) {
		if j.nullKey(keys, i) {
			continue
		}
		k, added := j.table.put(keys, i, h)
		if added {
			j.head = append(j.head, int32(i+1))
			last = append(last, int32(i))
			continue
		}
		j.link[last[k]] = int32(i + 1)
		last[k] = int32(i)
	}
	return nil
}

// nullKey reports whether a key has a NULL that equals nothing.
func (j *join) nullKey(keys []chunk.Column, i int) bool {
	for c, k := range keys {
		if k.Null(i) && !(j.plan.NullSafe != nil && j.plan.NullSafe[c]) {
			return true
		}
	}
	return false
}

func (j *join) Next(ctx context.Context) (*chunk.Chunk, error) {
	if !j.built {
		if err := j.build(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if len(j.pending) > 0 {
			c := j.pending[0]
			j.pending = j.pending[1:]
			return c, nil
		}
		if err := stopped(ctx); err != nil {
			return nil, err
		}
		if j.cur == nil && j.tail < 0 {
			c, err := j.left.Next(ctx)
			if err != nil {
				return nil, err
			}
			if c == nil {
				j.tail = 0
			} else {
				j.cur, j.curRow, j.hit = c, 0, -1
				if j.table != nil {
					j.hash = chunk.Hash(pick(c.Cols, j.plan.LeftKeys), c.Len())
				}
				j.curAt = j.first(0)
			}
		}
		if j.cur != nil {
			if err := j.probe(); err != nil {
				return nil, err
			}
			continue
		}
		c := j.unmatched()
		if c == nil {
			return nil, nil
		}
		return c, nil
	}
}

// first is the first right row (+1) to try for left row i; 0: none.
func (j *join) first(i int) int32 {
	if j.table == nil {
		if j.rows.Len() == 0 {
			return 0
		}
		return 1
	}
	keys := pick(j.cur.Cols, j.plan.LeftKeys)
	if j.nullKey(keys, i) {
		return 0
	}
	k := j.table.find(keys, i, j.hash[i])
	if k < 0 {
		return 0
	}
	return j.head[k]
}

func (j *join) following(at int32) int32 {
	if j.table != nil {
		return j.link[at-1]
	}
	if int(at) == j.rows.Len() {
		return 0
	}
	return at + 1
}

// probe tries a batch of pairs and queues what comes of it. Left rows whose last
// pair has been tried without a match come out at their end, as their kind says.
func (j *join) probe() error {
	j.lsel, j.rsel = j.lsel[:0], j.rsel[:0]
	type end struct{ row, pair int } // left row, and how many pairs of this batch precede its end
	var ends []end
	for j.curRow < j.cur.Len() && len(j.lsel) < joinChunk {
		if j.curAt == 0 {
			ends = append(ends, end{j.curRow, len(j.lsel)})
			if j.curRow++; j.curRow < j.cur.Len() {
				j.curAt = j.first(j.curRow)
			}
			continue
		}
		j.lsel = append(j.lsel, j.curRow)
		j.rsel = append(j.rsel, int(j.curAt-1))
		j.curAt = j.following(j.curAt)
	}
	cur := j.cur
	if j.curRow == j.cur.Len() {
		j.cur = nil
	}
	lsel, rsel := j.lsel, j.rsel
	hits := make([]bool, len(lsel))
	if len(lsel) > 0 && j.plan.On != nil {
		pairs := j.pair(cur, lsel, rsel)
		sel, err := expr.Filter(j.env.Ctx, j.plan.On, pairs)
		if err != nil {
			return err
		}
		for _, s := range sel {
			hits[s] = true
		}
	} else {
		for i := range hits {
			hits[i] = true
		}
	}
	var lout, rout []int // pairs that come out; rout -1: padded
	emit := func(l, r int) { lout, rout = append(lout, l), append(rout, r) }
	p := 0
	kind := j.plan.Kind
	upTo := func(n int) {
		for ; p < n; p++ {
			if !hits[p] {
				continue
			}
			first := j.hit != lsel[p] // rows are tried in order: one memory is enough
			j.hit = lsel[p]
			switch kind {
			case plan.Semi:
				if first {
					emit(lsel[p], -1)
				}
			case plan.Anti:
			default:
				emit(lsel[p], rsel[p])
				if j.matched != nil {
					j.matched[rsel[p]] = true
				}
			}
		}
	}
	for _, e := range ends {
		upTo(e.pair)
		if j.hit != e.row && (kind == plan.Left || kind == plan.Full || kind == plan.Anti) {
			emit(e.row, -1)
		}
	}
	upTo(len(hits))
	if len(lout) > 0 {
		j.pending = append(j.pending, j.output(cur, lout, rout))
	}
	return nil
}

// pair makes the columns left ++ right of pairs of rows.
func (j *join) pair(left *chunk.Chunk, lsel, rsel []int) *chunk.Chunk {
	out := &chunk.Chunk{N: len(lsel)}
	for _, c := range left.Cols {
		out.Cols = append(out.Cols, c.Gather(lsel))
	}
	for _, c := range j.rows.Cols {
		out.Cols = append(out.Cols, c.Gather(rsel))
	}
	return out
}

// output makes the join's rows; rsel -1 pads with NULLs.
func (j *join) output(left *chunk.Chunk, lsel, rsel []int) *chunk.Chunk {
	out := &chunk.Chunk{N: len(lsel)}
	for _, c := range left.Cols {
		out.Cols = append(out.Cols, c.Gather(lsel))
	}
	if j.plan.Kind == plan.Semi || j.plan.Kind == plan.Anti {
		return out
	}
	for i, c := range j.rows.Cols {
		out.Cols = append(out.Cols, gatherPadded(c, rsel, j.rt[i]))
	}
	return out
}

// gatherPadded is Gather where -1 gives NULL.
func gatherPadded(c chunk.Column, sel []int, t types.Type) chunk.Column {
	padded := false
	for _, s := range sel {
		if s < 0 {
			padded = true
			break
		}
	}
	if !padded {
		return c.Gather(sel)
	}
	out := chunk.New(t, len(sel))
	for _, s := range sel {
		if s < 0 {
			out.AppendNull()
		} else {
			out.AppendFrom(c, s)
		}
	}
	return out
}

// unmatched gives the right rows without partner, padded on the left.
func (j *join) unmatched() *chunk.Chunk {
	if j.matched == nil || j.rows == nil {
		return nil
	}
	var sel []int
	for j.tail < len(j.matched) && len(sel) < joinChunk {
		if !j.matched[j.tail] {
			sel = append(sel, j.tail)
		}
		j.tail++
	}
	if len(sel) == 0 {
		return nil
	}
	out := &chunk.Chunk{N: len(sel)}
	for _, t := range j.lt {
		out.Cols = append(out.Cols, chunk.Nulls(t, len(sel)))
	}
	for _, c := range j.rows.Cols {
		out.Cols = append(out.Cols, c.Gather(sel))
	}
	return out
}

// lateral runs its right side once for each left row.
type lateral struct{ join *join }

func (l *lateral) Close() { l.join.left.Close() }

func (l *lateral) Next(ctx context.Context) (*chunk.Chunk, error) {
	j := l.join
	kind := j.plan.Kind
	for {
		c, err := j.left.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		out := newGrower(j.plan.Schema().Types())
		for r := range c.Len() {
			if err := stopped(ctx); err != nil {
				return nil, err
			}
			rows, err := j.env.runSub(j.plan.Right, append([]types.Row{c.Row(r)}, j.env.Ctx.Outer...))
			if err != nil {
				return nil, err
			}
			j.rows = rows
			lsel, rsel := make([]int, 0, rows.Len()), make([]int, 0, rows.Len())
			for i := range rows.Len() {
				lsel, rsel = append(lsel, r), append(rsel, i)
			}
			if j.plan.On != nil && len(lsel) > 0 {
				sel, err := expr.Filter(j.env.Ctx, j.plan.On, j.pair(c, lsel, rsel))
				if err != nil {
					return nil, err
				}
				for i, s := range sel {
					rsel[i] = rsel[s]
				}
				lsel, rsel = lsel[:len(sel)], rsel[:len(sel)]
			}
			switch {
			case kind == plan.Semi && len(lsel) > 0, kind == plan.Anti && len(lsel) == 0, kind == plan.Left && len(lsel) == 0:
				lsel, rsel = []int{r}, []int{-1}
			case kind == plan.Semi, kind == plan.Anti:
				lsel = nil
			}
			if len(lsel) > 0 {
				out.add(j.output(c, lsel, rsel))
			}
		}
		if out.n > 0 {
			return out.chunk(), nil
		}
	}
}
