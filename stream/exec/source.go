package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/connector"
)

// A source draws rows from a connector. The offsets of its splits commit in the
// epoch of the rows that were read up to them.
type source struct {
	in      *stream.Inbox // barriers only
	env     *Env
	name    string
	schema  types.Schema
	offsets *storage.StateTable
	splits  map[string]string // offsets that moved in this epoch
	order   []string          // of those, by first move
}

// offsetsDesc is the layout of a source's offsets. Splits move between actors, so
// all of them lie in one vnode; each actor writes only its own.
func offsetsDesc(t *plan.TableDesc) storage.Desc {
	return storage.Desc{
		ID: uint32(t.ID), Name: t.Name, Tag: storage.TagState, Key: []int{0}, Vnodes: 1,
		Schema: types.Schema{{Name: "split", Type: types.Text}, {Name: "offset", Type: types.Text}},
	}
}

func offsetRow(split, offset string) []chunk.Column {
	return []chunk.Column{chunk.NewVec(types.Text, []string{split}, nil), chunk.NewVec(types.Text, []string{offset}, nil)}
}

func newSource(env *Env, n *plan.StreamSource) (*source, error) {
	if env.Source == nil {
		return nil, fmt.Errorf("source %q has no reader", n.Rel.Name)
	}
	return &source{
		in: env.In, env: env, name: n.Rel.Name, schema: n.Schema,
		offsets: env.Store.Table(offsetsDesc(n.Offsets), storage.Full(1)), splits: map[string]string{},
	}, nil
}

func (x *source) Run(ctx context.Context, emit stream.Emit) (err error) {
	defer closeOnDone(ctx, x.in)()
	if c, ok := x.env.Source.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	_, first, err := x.in.Recv()
	if err != nil {
		return err
	}
	if err := emit(first); err != nil {
		return err
	}
	if err := x.open(ctx); err != nil {
		return fmt.Errorf("source %q: %w", x.name, err)
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, m, ok, err := x.in.TryRecv()
		switch {
		case err != nil:
			return err
		case !ok:
			err = x.read(ctx, emit)
		case m.Barrier != nil:
			if err := x.commit(m.Barrier.Epoch); err != nil {
				return err
			}
			err = emit(m)
		default:
			err = emit(m)
		}
		if err != nil {
			return err
		}
	}
}

// open starts the reader where the last committed epoch ended.
func (x *source) open(ctx context.Context) error {
	at := make([]connector.Split, len(x.env.Splits))
	codec := x.offsets.Codec()
	for i, s := range x.env.Splits {
		at[i].ID = s
		key := codec.AppendKeyVnode(nil, 0, offsetRow(s, ""), 0)
		val, err := x.offsets.Get(key)
		if err != nil {
			return err
		}
		if val == nil {
			continue
		}
		row := newColumns(x.offsets.Desc().Schema, 1)
		if err := codec.Decode(key, val, row); err != nil {
			return err
		}
		at[i].Offset = chunk.Of[string](row[1]).Data[0]
	}
	return x.env.Source.Open(ctx, at, x.in.Wake)
}

// read emits what the reader has ready, as much as the rate limit lets it, or waits for more or for a barrier.
func (x *source) read(ctx context.Context, emit stream.Emit) error {
	clock := x.env.clock()
	if len(x.env.Splits) == 0 {
		waitUntil(ctx, x.in, clock, time.Time{})
		return nil
	}
	n := x.env.chunkSize()
	l := x.env.Limiter
	if l != nil {
		if n = l.Allow(n); n == 0 {
			waitUntil(ctx, x.in, clock, l.NextAt())
			return nil
		}
	}
	b, err := x.env.Source.Read(clock.Now(), n)
	if err != nil {
		return fmt.Errorf("source %q: %w", x.name, err)
	}
	got := 0
	if b.Chunk != nil {
		got = b.Chunk.Len()
	}
	if l != nil {
		l.Return(n - got)
	}
	for _, s := range b.Splits {
		if _, ok := x.splits[s.ID]; !ok {
			x.order = append(x.order, s.ID)
		}
		x.splits[s.ID] = s.Offset
	}
	if got == 0 {
		x.idle(ctx, b.Next)
		return nil
	}
	return emit(stream.Message{Chunk: x.shape(b.Chunk)})
}

// idle waits for a barrier, for the reader's time, or for the reader to wake it.
func (x *source) idle(ctx context.Context, next time.Time) {
	clock := x.env.clock()
	if next.IsZero() {
		// A reader that will wake us may have done so already: look again soon.
		next = clock.Now().Add(idleRead)
	}
	waitUntil(ctx, x.in, clock, next)
}

// idleRead is when a reader is asked again that names no time.
const idleRead = 50 * time.Millisecond

// shape gives the reader's columns the source's types; columns that it does not have are NULL.
func (x *source) shape(c *chunk.Chunk) *chunk.Chunk {
	out := &chunk.Chunk{Ops: c.Ops, N: c.N, Cols: make([]chunk.Column, len(x.schema))}
	for i, f := range x.schema {
		if i < len(c.Cols) && c.Cols[i] != nil {
			out.Cols[i] = c.Cols[i].As(f.Type)
			continue
		}
		out.Cols[i] = chunk.Nulls(f.Type, c.N)
	}
	return out
}

func (x *source) commit(e storage.Epoch) error {
	codec := x.offsets.Codec()
	for _, s := range x.order {
		row := offsetRow(s, x.splits[s])
		if err := x.offsets.Put(codec.AppendKeyVnode(nil, 0, row, 0), codec.AppendValue(nil, row, 0)); err != nil {
			return err
		}
	}
	clear(x.splits)
	x.order = x.order[:0]
	return x.offsets.Commit(e)
}
