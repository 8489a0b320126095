package exec

import (
	"errors"
	"slices"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A sortBuffer sorts an epoch's changes by key where they are so many that the operators
// above would read their state in no order: from the change that goes past the
// threshold on they are held until the barrier, and what they come to is replayed
// before it. What went before keeps its place before them, so that each key's changes
// stay in order. It holds one epoch, in memory or in files without a name: nothing of it outlives a
// crash, after which the epoch comes again.
type sortBuffer struct {
	env   *Env
	codec *storage.Codec
	read  *storage.Decoder
	types []types.Type
	log   *storage.StateTable // named in messages
	rows  int64               // of the epoch
	sort  *changeSort         // nil: changes pass
	marks []stream.Watermark  // held with the changes: the newest of each column

	key, val []byte
}

func (x *sortBuffer) pass(m stream.Message, emit stream.Emit) error {
	switch {
	case m.Chunk != nil:
		t := x.env.tuning()
		if x.rows += int64(m.Chunk.Len()); x.sort == nil && (!t.SortBuffer.Load() || x.rows <= t.SortThreshold.Load()) {
			return emit(m)
		}
		return x.hold(m.Chunk)
	case m.Watermark != nil && x.sort != nil:
		i := slices.IndexFunc(x.marks, func(w stream.Watermark) bool { return w.Col == m.Watermark.Col })
		if i < 0 {
			x.marks = append(x.marks, *m.Watermark)
		} else {
			x.marks[i] = *m.Watermark
		}
		return nil
	case m.Barrier != nil:
		if err := x.replay(emit); err != nil {
			return err
		}
		x.rows = 0
	}
	return emit(m)
}

func (x *sortBuffer) hold(c *chunk.Chunk) error {
	if x.sort == nil {
		x.sort = newChangeSort(x.env)
	}
	vnodes := x.codec.Vnodes(c.Cols, c.Len())
	for i := range c.Len() {
		x.key = x.codec.AppendKeyVnode(x.key[:0], vnodeAt(vnodes, i), c.Cols, i)
		x.val = x.codec.AppendValue(x.val[:0], c.Cols, i)
		if _, err := x.sort.add(c.Op(i), x.key, x.val); err != nil {
			return err
		}
	}
	return nil
}

// replay emits what is held.
func (x *sortBuffer) replay(emit stream.Emit) error {
	if x.sort == nil {
		return nil
	}
	defer x.close()
	if err := x.sort.start(); err != nil {
		return err
	}
	size := x.env.chunkSize()
	var c *chunk.Chunk
	send := func() error {
		if c == nil {
			return nil
		}
		out := c
		c = nil
		return emit(stream.Message{Chunk: out})
	}
	row := func(op chunk.Op, key, val []byte) error {
		if c == nil {
			c = &chunk.Chunk{Cols: make([]chunk.Column, len(x.types)), Ops: make([]chunk.Op, 0, size)}
			for j, t := range x.types {
				c.Cols[j] = chunk.New(t, size)
			}
		}
		c.N++
		c.Ops = append(c.Ops, op)
		return x.read.Decode(key, val, c.Cols)
	}
	for {
		f, ok, err := x.sort.next()
		if d := (*errDouble)(nil); errors.As(err, &d) {
			return inconsistent(x.log, "%v", d)
		}
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if string(f.was) == string(f.now) {
			continue // as it was, or not there before and after
		}
		if f.was != nil {
			if err := row(chunk.Delete, f.key, f.was); err != nil {
				return err
			}
		}
		if f.now != nil {
			if err := row(chunk.Insert, f.key, f.now); err != nil {
				return err
			}
		}
		if c != nil && c.N >= size-1 {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if err := send(); err != nil {
		return err
	}
	for i := range x.marks {
		w := x.marks[i]
		if err := emit(stream.Message{Watermark: &w}); err != nil {
			return err
		}
	}
	x.marks = x.marks[:0]
	return nil
}

func (x *sortBuffer) close() {
	x.sort.close()
	x.sort = nil
}
