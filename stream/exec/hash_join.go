package exec

import (
	"context"
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream"
)

// A hashJoin matches the rows of two changing inputs. A chunk of one side meets all
// rows that the other has now, and is then added to its own side's rows, so that
// each pair meets once.
//
// For a side whose unmatched rows come out (or, in semi and anti joins, whose rows
// come out by whether they have a match) it needs each row's degree: the number of its
// matches. With a condition beside the keys degrees are kept; without one, a row's degree
// is the number of rows that the other side has under its key.
type hashJoin struct {
	in     *stream.Inbox
	env    *Env
	kind   plan.JoinKind
	port   [2]int // of left, right
	side   [2]*joinSide
	width  [2]int // columns
	output []int
	types  []types.Type // of output

	cond     expr.Expr // over condCols; nil: none
	condCols []int     // of left ++ right
	ctx      *expr.Ctx

	out pairs
}

// condPairs is how many candidate pairs the condition is evaluated for at once.
const condPairs = 4096

func newHashJoin(env *Env, n *plan.StreamHashJoin) (*hashJoin, error) {
	if err := merges(n, n.In); err != nil {
		return nil, err
	}
	x := &hashJoin{in: env.In, env: env, kind: n.Kind, output: n.Output, types: n.Schema.Types()}
	states := [2]*plan.TableDesc{n.LeftState, n.RightState}
	degrees := [2]*plan.TableDesc{n.LeftDegree, n.RightDegree}
	nulls := n.NullSafe
	if nulls == nil {
		nulls = make([]bool, len(n.LeftKeys))
	}
	for i, keys := range [2][]int{n.LeftKeys, n.RightKeys} {
		in := n.In[i].Props()
		x.port[i] = n.In[i].(*plan.StreamMerge).Port
		x.width[i] = len(in.Schema)
		if len(states[i].Key) < len(keys) || !slices.Equal(states[i].Key[:len(keys)], keys) {
			return nil, fmt.Errorf("%s: the key %v of state table %s does not begin with the join key %v", operator(n), states[i].Key, states[i].Name, keys)
		}
		for _, d := range states[i].Dist {
			if !slices.Contains(keys, d) {
				return nil, fmt.Errorf("%s: state table %s is distributed by column %d, which is not in the join key %v", operator(n), states[i].Name, d, keys)
			}
		}
		if !x.needsDegrees(i) || n.Cond == nil {
			degrees[i] = nil
		} else if degrees[i] == nil {
			return nil, fmt.Errorf("%s: state table %s has no table of degrees", operator(n), states[i].Name)
		}
		x.side[i] = newJoinSide(env, in, keys, nulls, states[i], degrees[i])
	}
	if x.output == nil {
		for i := range n.Schema {
			x.output = append(x.output, i)
		}
	}
	for i := range n.LeftKeys {
		if l, r := x.side[0].keyType[i], x.side[1].keyType[i]; l.Kind() != r.Kind() {
			return nil, sqlerr.Unsupported("join of types %d and %d", l.OID, r.OID)
		}
	}
	if n.Cond != nil {
		x.condCols = expr.Columns(n.Cond)
		x.cond = expr.Remap(n.Cond, func(c int) int { return slices.Index(x.condCols, c) })
		x.ctx = env.exprCtx("StreamHashJoin")
	}
	return x, nil
}

func (x *hashJoin) needsDegrees(side int) bool {
	switch x.kind {
	case plan.Full:
		return true
	case plan.Left, plan.Semi, plan.Anti:
		return side == 0
	case plan.Right:
		return side == 1
	}
	return false
}

// outer reports whether rows of a side come out padded with NULLs while they have no match.
func (x *hashJoin) outer(side int) bool {
	return x.needsDegrees(side) && x.kind != plan.Semi && x.kind != plan.Anti
}

func (x *hashJoin) Run(ctx context.Context, emit stream.Emit) error {
	defer closeOnDone(ctx, x.in)()
	for {
		port, m, err := x.in.Recv()
		if err != nil {
			return err
		}
		switch {
		case m.Chunk != nil:
			side := 0
			if port == x.port[1] {
				side = 1
			}
			if err := x.apply(side, m.Chunk, emit); err != nil {
				return err
			}
			// A chunk may load much: the budget is looked at more often than once an epoch.
			for _, s := range x.side {
				if err := s.evict(); err != nil {
					return err
				}
			}
		case m.Barrier != nil:
			for _, s := range x.side {
				if err := s.commit(m.Barrier.Epoch); err != nil {
					return err
				}
				if err := s.evict(); err != nil {
					return err
				}
			}
			if err := emit(m); err != nil {
				return err
			}
		}
		// A watermark of one side says nothing of the other's and ends here.
	}
}

// A meeting is the work on one chunk.
type meeting struct {
	x       *hashJoin
	side    int // the chunk's
	c       *chunk.Chunk
	matches []int64 // by row of the chunk
	before  []int64 // by row of the chunk: the rows of its key that its side had before it; nil: not needed
	row     []int32 // candidate pairs, in order of the chunk's rows
	rid     []int32
	ended   int        // rows of the chunk that are finished
	later   []bool     // by row of the chunk: its key is large on the other side; nil: none is
	block   *joinBlock // rows of a large key, which are those of the other side; nil: they are in memory
	emit    stream.Emit
}

// apply joins a chunk of one side with the rows of the other, then adds it to its own.
func (x *hashJoin) apply(side int, c *chunk.Chunk, emit stream.Emit) error {
	own, other := x.side[side], x.side[1-side]
	usable := own.usable(c)
	slots, err := other.probe(project(c.Cols, own.keys), c.Len(), usable)
	if err != nil {
		return err
	}
	m := &meeting{x: x, side: side, c: c, matches: make([]int64, c.Len()), emit: emit}
	if x.cond == nil && x.needsDegrees(1-side) {
		if m.before, err = own.before(c, slots); err != nil {
			return err
		}
	}
	var large []int32 // slots, by first row
	byLarge := map[int32][]int32{}
	for i, slot := range slots {
		if slot >= 0 && other.large[slot] {
			if m.later == nil {
				m.later = make([]bool, c.Len())
			}
			if m.later[i] = true; byLarge[slot] == nil {
				large = append(large, slot)
			}
			byLarge[slot] = append(byLarge[slot], int32(i))
			continue
		}
		if slot >= 0 {
			for r := other.head[slot]; r >= 0; r = other.next[r] {
				m.row, m.rid = append(m.row, int32(i)), append(m.rid, r)
				if len(m.row) >= condPairs {
					if err := m.drain(i); err != nil {
						return err
					}
				}
			}
		}
	}
	if err := m.drain(c.Len()); err != nil {
		return err
	}
	for _, slot := range large {
		if err := m.large(slot, byLarge[slot]); err != nil {
			return err
		}
	}
	if err := m.send(); err != nil {
		return err
	}
	return own.apply(c, usable, m.matches)
}

// drain handles the candidate pairs collected so far. All pairs of rows before upto are among them.
func (m *meeting) drain(upto int) error {
	row, rid := m.row, m.rid
	if m.x.cond != nil && len(row) > 0 {
		var err error
		if row, rid, err = m.filter(); err != nil {
			return err
		}
	}
	k := 0
	for i := m.ended; i < m.c.Len() && (i < upto || k < len(row)); i++ {
		for ; k < len(row) && int(row[k]) == i; k++ {
			if err := m.match(row[k], rid[k]); err != nil {
				return err
			}
		}
		if i == upto {
			break // it may have more
		}
		if m.ended = i + 1; m.later != nil && m.later[i] {
			continue
		}
		if err := m.finish(int32(i)); err != nil {
			return err
		}
	}
	m.row, m.rid = m.row[:0], m.rid[:0]
	return nil
}

// filter returns the candidate pairs for which the condition is true.
func (m *meeting) filter() (row, rid []int32, err error) {
	x := m.x
	c := &chunk.Chunk{N: len(m.row), Cols: make([]chunk.Column, len(x.condCols))}
	for i, col := range x.condCols {
		c.Cols[i] = m.column(col, m.row, m.rid)
	}
	sel, err := expr.Filter(x.ctx, x.cond, c)
	if err != nil {
		return nil, nil, err
	}
	row, rid = make([]int32, len(sel)), make([]int32, len(sel))
	for k, i := range sel {
		row[k], rid[k] = m.row[i], m.rid[i]
	}
	return row, rid, nil
}

// column gathers column col of left ++ right for pairs of the chunk's rows and the
// other side's; -1 is a row of NULLs.
func (m *meeting) column(col int, row, rid []int32) chunk.Column {
	side := 0
	if col >= m.x.width[0] {
		side, col = 1, col-m.x.width[0]
	}
	if side == m.side {
		return gather(m.c.Cols[col], row)
	}
	if m.block != nil {
		return gather(m.block.cols[col], rid)
	}
	return gather(m.x.side[side].column[col].col(), rid)
}

// match handles a pair that matches.
func (m *meeting) match(i, r int32) error {
	x := m.x
	m.matches[i]++
	op := m.c.Op(int(i))
	if !x.needsDegrees(1 - m.side) {
		if x.kind == plan.Semi || x.kind == plan.Anti {
			return nil // the left row is decided when it is finished
		}
		return m.add(op, i, r)
	}
	var before int64
	if m.before != nil {
		before = m.before[i]
	} else {
		var err error
		if before, err = m.addDegree(r, op.Sign()); err != nil {
			return err
		}
	}
	first, last := op == chunk.Insert && before == 0, op == chunk.Delete && before == 1
	switch x.kind {
	case plan.Semi:
		if first || last {
			return m.add(op, -1, r)
		}
		return nil
	case plan.Anti:
		if first || last {
			return m.add(1-op, -1, r)
		}
		return nil
	}
	if first {
		if err := m.add(chunk.Delete, -1, r); err != nil {
			return err
		}
	}
	if err := m.add(op, i, r); err != nil {
		return err
	}
	if last {
		return m.add(chunk.Insert, -1, r)
	}
	return nil
}

// finish handles a row of the chunk whose matches are all known.
func (m *meeting) finish(i int32) error {
	matched := m.matches[i] > 0
	switch {
	case m.x.outer(m.side) && !matched,
		m.side == 0 && m.x.kind == plan.Semi && matched,
		m.side == 0 && m.x.kind == plan.Anti && !matched:
		return m.add(m.c.Op(int(i)), i, -1)
	}
	return nil
}

// pairs are output rows to be: a row of the chunk and one of the other side; -1: NULLs.
type pairs struct {
	ops      []chunk.Op
	row, rid []int32
	deletes  bool
}

func (m *meeting) add(op chunk.Op, i, r int32) error {
	p := &m.x.out
	p.ops, p.row, p.rid = append(p.ops, op), append(p.row, i), append(p.rid, r)
	p.deletes = p.deletes || op == chunk.Delete
	if len(p.row) >= m.x.env.chunkSize() {
		return m.send()
	}
	return nil
}

// send emits the output rows collected so far.
func (m *meeting) send() error {
	p := &m.x.out
	if len(p.row) == 0 {
		return nil
	}
	c := &chunk.Chunk{N: len(p.row), Cols: make([]chunk.Column, len(m.x.output))}
	for i, col := range m.x.output {
		c.Cols[i] = m.column(col, p.row, p.rid).As(m.x.types[i])
	}
	if p.deletes {
		c.Ops = slices.Clone(p.ops)
	}
	p.ops, p.row, p.rid, p.deletes = p.ops[:0], p.row[:0], p.rid[:0], false
	return m.emit(stream.Message{Chunk: c})
}
