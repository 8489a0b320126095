package exec

import (
	"iter"
	"time"

	"streamdb/sql/chunk"
	"streamdb/storage"
)

// A snapshot is the table that a backfill delivers, and that it must keep up with
// the changes which the backfill has not got to yet.
type snapshot interface {
	// rows ranges over a vnode's rows after a raw key (nil: all), as of the newest seal.
	rows(vnode uint16, after []byte) iter.Seq2[storage.KV, error]
	// write applies changes to rows that rows has not passed.
	write(c *chunk.Chunk) error
	// seal ends an epoch.
	seal(e storage.Epoch) error
	close()
}

// An upstreamRows is another job's table, replicated.
type upstreamRows struct {
	table   *storage.ReplicatedStateTable
	clock   storage.Clock
	cursor  *storage.Cursor // kept between reads: opening one costs a seek in every file of the store
	vnode   uint16
	at      []byte // where the cursor stands
	renewed time.Time
}

// renewAfter is how long a cursor reads the same committed view under the replica's
// changes. The longer, the more changes must be kept in memory; moving costs a seek.
const renewAfter = 200 * time.Millisecond

func (x *upstreamRows) rows(vnode uint16, after []byte) iter.Seq2[storage.KV, error] {
	return func(yield func(storage.KV, error) bool) {
		switch {
		case x.cursor == nil:
			x.cursor, x.renewed = x.table.OpenScan(vnode, after), x.clock.Now()
		case x.vnode != vnode || string(x.at) != string(after):
			x.cursor.Seek(vnode, after)
		}
		x.vnode, x.at = vnode, append(x.at[:0], after...)
		for {
			kv, ok, err := x.cursor.Next()
			if err != nil {
				yield(storage.KV{}, err)
				return
			}
			if !ok {
				return
			}
			x.at = append(x.at[:0], kv.Key...)
			if !yield(kv, nil) {
				return
			}
		}
	}
}

func (x *upstreamRows) write(c *chunk.Chunk) error { return x.table.WriteChunk(c) }

func (x *upstreamRows) seal(e storage.Epoch) error {
	if err := x.table.Seal(e); err != nil {
		return err
	}
	if now := x.clock.Now(); x.cursor != nil && now.Sub(x.renewed) >= renewAfter {
		x.cursor.Refresh()
		x.renewed = now
	}
	return nil
}

func (x *upstreamRows) close() {
	if x.cursor != nil {
		x.cursor.Close()
		x.cursor = nil
	}
	x.table.Close()
}

// A bufferedRows is what a locality provider has itself put aside.
type bufferedRows struct{ table *storage.StateTable }

func (x *bufferedRows) rows(vnode uint16, after []byte) iter.Seq2[storage.KV, error] {
	from := storage.VnodePrefix(vnode)
	to := storage.NextPrefix(from)
	if after != nil {
		from = append(append(from[:0], after...), 0) // no key is the prefix of another one
	}
	return x.table.Scan(from, to)
}

func (x *bufferedRows) write(c *chunk.Chunk) error { return x.table.WriteChunk(c) }
func (x *bufferedRows) seal(e storage.Epoch) error { return x.table.Commit(e) }
func (x *bufferedRows) close()                     {}
