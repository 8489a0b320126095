package exec

import (
	"context"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

// A rowIDGen gives ids to rows whose id is NULL. An id is unique for ever:
//
//	39 bits: the epoch that ended before the row came, which is never used again;
//	24 bits: a number within the epoch.
//
// Actors never collide although they count alike, for each uses only the ids that
// hash to a vnode of its own, which is also where the row has to lie.
type rowIDGen struct {
	in    stream.Executor
	env   *Env
	col   int
	epoch storage.Epoch
	seq   int64   // within the epoch, the next to try
	ready []int64 // found and not used yet
}

const (
	rowIDBits = 24
	rowIDTry  = 256 // candidates tried at once
)

func (x *rowIDGen) Run(ctx context.Context, emit stream.Emit) error {
	return x.in.Run(ctx, func(m stream.Message) error {
		switch {
		case m.Chunk != nil:
			c, err := x.fill(m.Chunk)
			if err != nil {
				return err
			}
			m.Chunk = c
		case m.Barrier != nil:
			x.epoch, x.seq, x.ready = m.Barrier.Epoch, 0, x.ready[:0]
		}
		return emit(m)
	})
}

func (x *rowIDGen) fill(c *chunk.Chunk) (*chunk.Chunk, error) {
	ids := chunk.Of[int64](c.Cols[x.col])
	if !ids.HasNulls() {
		return c, nil
	}
	data := append([]int64(nil), ids.Data...)
	for i := range data {
		if !ids.Nulls[i] {
			continue
		}
		if len(x.ready) == 0 {
			if err := x.find(); err != nil {
				return nil, err
			}
		}
		data[i], x.ready = x.ready[0], x.ready[1:]
	}
	out := *c
	out.Cols = append([]chunk.Column(nil), c.Cols...)
	out.Cols[x.col] = chunk.NewVec(ids.Type(), data, nil)
	return &out, nil
}

// find fills ready with the next ids of this actor's vnodes.
func (x *rowIDGen) find() error {
	if uint64(x.epoch) >= 1<<(63-rowIDBits) {
		return sqlerr.New(sqlerr.ProgramLimit, "epoch %d is too large for a row id", x.epoch)
	}
	x.ready = x.ready[:0]
	for len(x.ready) == 0 {
		if x.seq+rowIDTry > 1<<rowIDBits {
			return sqlerr.New(sqlerr.ProgramLimit, "more than %d rows without a key in one epoch", x.seq/int64(max(1, x.env.vnodeCount()/max(1, x.env.Vnodes.Len())))).
				WithHint("Insert them by smaller statements.")
		}
		try := make([]int64, rowIDTry)
		for i := range try {
			try[i] = int64(x.epoch)<<rowIDBits | (x.seq + int64(i))
		}
		x.seq += rowIDTry
		if x.env.Single && x.env.Vnodes.Len() >= x.env.vnodeCount() {
			x.ready = try
			return nil
		}
		vnodes := chunk.Vnodes([]chunk.Column{chunk.NewVec(types.Int8, try, nil)}, []int{0}, len(try), x.env.vnodeCount())
		for i, v := range vnodes {
			if x.env.Vnodes.Has(v) {
				x.ready = append(x.ready, try[i])
			}
		}
	}
	return nil
}
