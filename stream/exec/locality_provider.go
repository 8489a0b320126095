package exec

import (
	"bytes"
	"errors"
	"iter"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/storage"
	"streamdb/stream"
)

// newLocalityProvider makes the backfill that delivers its own input sorted, so that
// the state of the operators above is read and written in order:
//
//   - buffer: what comes goes into a log, nothing is emitted, until the input is
//     backfilled, which StartBackfill says;
//   - drain: vnode by vnode the log is sorted and delivered. It takes no more; changes that the
//     drain has not come to are kept by key, beside it, and merged;
//   - forward: changes pass; those of an epoch that has very many are sorted, too.
//
// All of it lies under the vnode it speaks of, the phase included, so that another actor
// may go on with the vnode. That any vnode has begun means that the input was
// complete; a restart then drains on.
func newLocalityProvider(env *Env, n *plan.StreamLocalityProvider) (*backfill, error) {
	in := n.In[0].Props().Schema
	cols := make([]int, len(in))
	for i := range cols {
		cols[i] = i
	}
	d := Desc(n.Buffer, env.vnodeCount())
	d.Schema, d.Exact = in, true
	x := newBackfill(env, n.Progress, d, cols, in.Types())
	x.own = &providedRows{env: env, log: newChangeLog(env, n.Log), late: env.Store.Table(d, env.Vnodes), codec: x.codec}
	x.waiting, x.phase = true, stream.PhaseDrain
	x.table, x.place = x.own, place(n)
	return x, nil
}

// A providedRows is what a locality provider has put aside: a log of the changes until the
// input was complete, and of later changes what they come to, by key.
//
// A value of late is a byte with bits lateWas and lateNow, and the row where it has lateNow.
type providedRows struct {
	env   *Env
	log   *changeLog
	late  *storage.StateTable
	codec *storage.Codec

	vnode  int         // whose log is or is being sorted
	sort   *changeSort // nil: none
	loaded []byte      // key of the last block that is in it; nil: none
	ready  bool        // all blocks are
	head   folded      // next of the log; a nil key: there is none

	at   []byte // next goes on after it; nil: from the start
	stop func()
	pull func() (storage.KV, error, bool) // of late; nil: not open
	kept storage.KV                       // what it stands at; a nil key: nothing
	val  []byte

	kbuf, vbuf []byte
}

const (
	lateWas byte = 1 << iota // the log has a row of the key
	lateNow                  // the key has a row
)

// append adds changes to the log.
func (x *providedRows) append(c *chunk.Chunk, vnodes []uint16) error {
	for i := range c.Len() {
		v := vnodeAt(vnodes, i)
		x.kbuf = x.codec.AppendKeyVnode(x.kbuf[:0], v, c.Cols, i)
		x.vbuf = x.codec.AppendValue(x.vbuf[:0], c.Cols, i)
		if err := x.log.append(v, c.Op(i), x.kbuf, x.vbuf); err != nil {
			return err
		}
	}
	return nil
}

// write keeps changes that the drain has not come to: those of c at ahead, row i being of
// vnodes[i] (nil: 0).
func (x *providedRows) write(c *chunk.Chunk, vnodes []uint16, ahead []int) error {
	for _, i := range ahead {
		x.kbuf = x.codec.AppendKeyVnode(x.kbuf[:0], vnodeAt(vnodes, i), c.Cols, i)
		old, err := x.late.Get(x.kbuf)
		if err != nil {
			return err
		}
		op := c.Op(i)
		was := byte(0) // what the log has
		switch {
		case old == nil:
			if op == chunk.Delete {
				was = lateWas
			}
		case old[0]&lateNow != 0 == (op == chunk.Insert):
			return inconsistent(x.late, "row %s is %s twice", describe(c.Cols, i), [...]string{"inserted", "deleted"}[op])
		default:
			was = old[0] & lateWas
		}
		if op == chunk.Insert {
			x.vbuf = x.codec.AppendValue(append(x.vbuf[:0], was|lateNow), c.Cols, i)
		} else {
			x.vbuf = append(x.vbuf[:0], was)
		}
		x.val = append(x.val[:0], old...)
		if old != nil {
			old = x.val
		}
		if err := x.late.Replace(x.kbuf, old, x.vbuf); err != nil {
			return err
		}
	}
	return nil
}

// seek sorts the vnode's log, a run at a time.
func (x *providedRows) seek(vnode uint16, after []byte) (bool, error) {
	if x.sort == nil || x.vnode != int(vnode) {
		x.sort.close()
		x.closeLate()
		x.vnode, x.sort, x.loaded, x.ready = int(vnode), newChangeSort(x.env), nil, false
		x.at = bytes.Clone(after)
	}
	if !x.ready {
		last, end, err := x.log.load(vnode, x.loaded, func(b []byte) (bool, error) {
			more := true
			for len(b) > 0 {
				op, key, val, rest, err := cutChange(b)
				if err != nil {
					return false, inconsistent(x.log.table, "%v", err)
				}
				b = rest
				if after != nil && bytes.Compare(key, after) <= 0 {
					continue
				}
				full, err := x.sort.add(op, key, val)
				if err != nil {
					return false, err
				}
				more = more && !full
			}
			return more, nil
		})
		if err != nil {
			return false, err
		}
		if x.loaded = last; !end {
			return false, nil
		}
		x.ready = true
		if err := x.sort.start(); err != nil {
			return false, err
		}
		if err := x.nextOfLog(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// nextOfLog moves head on.
func (x *providedRows) nextOfLog() error {
	f, ok, err := x.sort.next()
	if d := (*errDouble)(nil); errors.As(err, &d) {
		return inconsistent(x.log.table, "row %s is %s twice", x.show(d.key, d.val), [...]string{"inserted", "deleted"}[d.op])
	}
	if err != nil {
		return err
	}
	if !ok {
		f = folded{}
	} else if f.was != nil {
		return inconsistent(x.log.table, "row %s is deleted and was not there", x.show(f.key, f.was))
	}
	x.head = f
	return nil
}

// show is the row of a key and a value, for messages.
func (x *providedRows) show(key, val []byte) string {
	cols := newColumns(x.codec.Desc().Schema, 1)
	if err := x.codec.Decode(key, val, cols); err != nil {
		return err.Error()
	}
	return describe(cols, 0)
}

func (x *providedRows) next() (storage.KV, bool, error) {
	if x.pull == nil {
		if err := x.openLate(); err != nil {
			return storage.KV{}, false, err
		}
	}
	c := 0
	switch {
	case x.head.key == nil && x.kept.Key == nil:
		return storage.KV{}, false, nil
	case x.head.key == nil:
		c = 1
	case x.kept.Key == nil:
		c = -1
	default:
		c = bytes.Compare(x.head.key, x.kept.Key)
	}
	if c < 0 {
		x.at = append(x.at[:0], x.head.key...)
		out := storage.KV{Key: x.at}
		if x.head.now != nil {
			x.val = append(x.val[:0], x.head.now...)
			out.Val = x.val
		}
		return out, true, x.nextOfLog()
	}
	logged := c == 0 && x.head.now != nil
	x.at, x.val = append(x.at[:0], x.kept.Key...), append(x.val[:0], x.kept.Val...)
	if logged != (x.val[0]&lateWas != 0) {
		what := "deleted and was not there"
		if logged {
			what = "inserted and was there"
		}
		return storage.KV{}, false, inconsistent(x.late, "the row of key %x is %s", x.at, what)
	}
	// It is delivered with this epoch and not looked at again.
	if err := x.late.Replace(x.at, x.val, nil); err != nil {
		return storage.KV{}, false, err
	}
	out := storage.KV{Key: x.at}
	if x.val[0]&lateNow != 0 {
		out.Val = x.val[1:]
	}
	if c == 0 {
		if err := x.nextOfLog(); err != nil {
			return storage.KV{}, false, err
		}
	}
	return out, true, x.nextOfLate()
}

// openLate stands at the first late change after the last key.
func (x *providedRows) openLate() error {
	from := storage.VnodePrefix(uint16(x.vnode))
	to := storage.NextPrefix(from)
	if x.at != nil {
		from = append(append(from[:0], x.at...), 0) // no key is the prefix of another one
	}
	x.pull, x.stop = iter.Pull2(x.late.Scan(from, to))
	return x.nextOfLate()
}

func (x *providedRows) nextOfLate() error {
	kv, err, ok := x.pull()
	if !ok {
		kv = storage.KV{}
	}
	x.kept = kv
	return err
}

func (x *providedRows) closeLate() {
	if x.pull != nil {
		x.stop()
		x.pull, x.stop, x.kept = nil, nil, storage.KV{}
	}
}

// finish drops a vnode's log.
func (x *providedRows) finish(vnode uint16) error {
	x.sort.close()
	x.sort = nil
	return x.log.drop(vnode)
}

func (x *providedRows) seal(e storage.Epoch) error {
	x.closeLate()
	if err := x.late.Commit(e); err != nil {
		return err
	}
	return x.log.seal(e)
}

func (x *providedRows) close() {
	x.closeLate()
	x.sort.close()
	x.sort = nil
	x.log.free()
}
