package exec

import (
	"bytes"
	"strings"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A position is how far a backfill has come in one vnode.
//
// Invariant: every row whose raw key is at most key (all of them if done) has been
// delivered as of the newest barrier, whether or not there is a row at key itself.
type position struct {
	started bool
	done    bool
	key     []byte // raw key last seen; nil: before the first
	rows    int64  // of the vnode at or below the position
	held    int64  // of a locality provider: rows of the vnode
}

// progressDesc is the layout of a progress table: one row a vnode, stored under
// the very vnode it speaks of, so that it goes where the vnode goes.
func progressDesc(t *plan.TableDesc, vnodes int) storage.Desc {
	return storage.Desc{
		ID: uint32(t.ID), Name: t.Name, Tag: storage.TagState, Key: []int{0}, Vnodes: vnodes,
		Schema: types.Schema{{Name: "vnode", Type: types.Int2}, {Name: "position", Type: types.Bytea}, {Name: "rows", Type: types.Int8}, {Name: "finished", Type: types.Bool},
			{Name: "held", Type: types.Int8}, {Name: "started", Type: types.Bool}},
	}
}

// progressKey is the key column of vnode's row.
func progressKey(vnode uint16) []chunk.Column {
	return []chunk.Column{chunk.NewVec(types.Int2, []int64{int64(vnode)}, nil)}
}

// columns is the row of p in a progress table.
func (p *position) columns(vnode uint16) []chunk.Column {
	return append(progressKey(vnode),
		chunk.NewVec(types.Bytea, []string{string(p.key)}, []bool{p.key == nil}),
		chunk.NewVec(types.Int8, []int64{p.rows}, nil),
		chunk.NewVec(types.Bool, []bool{p.done}, nil),
		chunk.NewVec(types.Int8, []int64{p.held}, nil),
		chunk.NewVec(types.Bool, []bool{p.started}, nil))
}

// positions are those of an actor's vnodes, in order.
type positions struct {
	table  *storage.StateTable
	vnodes []uint16
	index  []int32 // by vnode; -1: not the actor's
	at     []position
	dirty  []bool
	cur    int // whose turn it is, or one that is done
	left   int // vnodes that are not done
}

func newPositions(env *Env, t *plan.TableDesc) *positions {
	p := &positions{table: env.Store.Table(progressDesc(t, env.vnodeCount()), env.Vnodes), index: make([]int32, env.vnodeCount())}
	for v := range p.index {
		p.index[v] = -1
	}
	for v := range env.Vnodes.All() {
		p.index[v] = int32(len(p.vnodes))
		p.vnodes = append(p.vnodes, v)
	}
	p.at, p.dirty = make([]position, len(p.vnodes)), make([]bool, len(p.vnodes))
	p.left = len(p.vnodes)
	return p
}

// load reads what was committed and returns the rows delivered so far, and those held.
func (p *positions) load() (rows, held int64, err error) {
	codec := p.table.Codec()
	keys := make([][]byte, len(p.vnodes))
	for i, v := range p.vnodes {
		keys[i] = codec.AppendKeyVnode(nil, v, progressKey(v), 0)
	}
	cols := newColumns(p.table.Desc().Schema, len(keys))
	var failed error
	err = p.table.GetMany(keys, func(i int, val []byte) {
		if val == nil || failed != nil {
			return
		}
		n := cols[0].Len()
		if failed = codec.Decode(keys[i], val, cols); failed != nil {
			return
		}
		at := position{
			rows: chunk.Of[int64](cols[2]).Data[n], done: chunk.Of[bool](cols[3]).Data[n],
			held: chunk.Of[int64](cols[4]).Data[n], started: chunk.Of[bool](cols[5]).Data[n],
		}
		if !cols[1].Null(n) {
			at.key = []byte(strings.Clone(chunk.Of[string](cols[1]).Data[n]))
		}
		p.at[i] = at
		rows, held = rows+at.rows, held+at.held
		if at.done {
			p.left--
		}
	})
	if err == nil {
		err = failed
	}
	return rows, held, err
}

// turn is the vnode whose turn it is; some must be left.
func (p *positions) turn() int {
	for p.at[p.cur].done {
		p.pass()
	}
	return p.cur
}

// pass gives the turn to the next vnode.
func (p *positions) pass() { p.cur = (p.cur + 1) % len(p.at) }

// finished reports whether all vnodes are done.
func (p *positions) finished() bool { return p.left == 0 }

// begun reports whether any vnode has started. All vnodes of a fragment start with
// the same barrier, so that for one that any actor had, this speaks for all.
func (p *positions) begun() bool {
	for i := range p.at {
		if p.at[i].started || p.at[i].done {
			return true
		}
	}
	return false
}

// begin marks all vnodes as started.
func (p *positions) begin() {
	for i := range p.at {
		if !p.at[i].started {
			p.at[i].started, p.dirty[i] = true, true
		}
	}
}

// saw moves a vnode's position to key.
func (p *positions) saw(i int, key []byte) {
	at := &p.at[i]
	at.key = append(at.key[:0], key...)
	at.started, p.dirty[i] = true, true
}

// finish marks a vnode as done.
func (p *positions) finish(i int) {
	if at := &p.at[i]; !at.done {
		at.started, at.done, p.dirty[i] = true, true, true
		p.left--
	}
}

// passed reports whether what lies at key of vnode i has been delivered.
func (p *positions) passed(i int, key []byte) bool {
	at := &p.at[i]
	return at.done || at.key != nil && bytes.Compare(key, at.key) <= 0
}

// commit writes the positions that moved.
func (p *positions) commit(e storage.Epoch) error {
	codec := p.table.Codec()
	for i := range p.at {
		if !p.dirty[i] {
			continue
		}
		p.dirty[i] = false
		cols := p.at[i].columns(p.vnodes[i])
		if err := p.table.Put(codec.AppendKeyVnode(nil, p.vnodes[i], cols, 0), codec.AppendValue(nil, cols, 0)); err != nil {
			return err
		}
	}
	return p.table.Commit(e)
}
