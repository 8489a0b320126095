package exec

import (
	"time"

	"streamdb/storage"
)

// A snapshot is the table that a backfill delivers, with the changes that the
// backfill has not got to yet.
type snapshot interface {
	// seek stands before a vnode's first row after a raw key; nil: before its first. It is of
	// the newest seal. ready false: there is more to do first, and seek is to be called
	// again with the same arguments when the barriers that wait have been seen to.
	seek(vnode uint16, after []byte) (ready bool, err error)
	// next moves to the vnode's next key and returns it, with a nil value where there is no
	// row; false: there is none. It goes on rightly after seal.
	next() (storage.KV, bool, error)
	// finish is told that all of a vnode has been delivered.
	finish(vnode uint16) error
	// seal ends an epoch.
	seal(e storage.Epoch) error
	close()
}

// An upstreamRows is another job's table, as of the last barrier: what is committed under
// what the upstream's actors have sealed since.
type upstreamRows struct {
	table   *storage.ReplicatedStateTable
	clock   storage.Clock
	cursor  *storage.Cursor // one for all vnodes: opening one costs a seek in every file of the store
	renewed time.Time
}

// renewAfter is how long a cursor reads the same committed view under the later layers.
// The longer, the more of them must be kept in memory; moving costs a seek.
const renewAfter = 200 * time.Millisecond

func (x *upstreamRows) seek(vnode uint16, after []byte) (bool, error) {
	if x.cursor == nil {
		x.cursor, x.renewed = x.table.OpenScan(vnode, after), x.clock.Now()
	} else {
		x.cursor.Seek(vnode, after)
	}
	return true, nil
}

func (x *upstreamRows) next() (storage.KV, bool, error) { return x.cursor.Next() }

func (x *upstreamRows) finish(uint16) error { return nil }

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
