// Package blackhole is a sink that counts rows and drops them. It measures what a
// query costs without what storing its result costs.
package blackhole

import (
	"sync/atomic"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/storage"
	"streamdb/stream/connector"
)

// Driver is the connector named blackhole.
func Driver() connector.Driver {
	return connector.Driver{
		Name:   "blackhole",
		Writer: func(*catalog.Relation) (connector.Writer, error) { return &Writer{}, nil },
	}
}

// A Writer counts.
type Writer struct {
	inserts, deletes atomic.Int64
	epoch            atomic.Uint64
}

// Write counts the rows of c.
func (w *Writer) Write(c *chunk.Chunk) error {
	n := int64(0)
	for _, op := range c.Ops {
		n += int64(op)
	}
	w.deletes.Add(n)
	w.inserts.Add(int64(c.Len()) - n)
	return nil
}

// Seal notes the epoch.
func (w *Writer) Seal(e storage.Epoch) error {
	w.epoch.Store(uint64(e))
	return nil
}

// Rows are the changes so far and the last epoch they are complete for.
func (w *Writer) Rows() (inserts, deletes int64, e storage.Epoch) {
	return w.inserts.Load(), w.deletes.Load(), storage.Epoch(w.epoch.Load())
}
