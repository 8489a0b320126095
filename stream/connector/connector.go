// Package connector is the border to other systems: readers that sources draw
// rows from and writers that sinks hand changes to.
//
// The one idea: a reader says with every batch how far it has come, and the offsets
// commit in the same epoch as the rows, so that a restart repeats nothing and misses nothing.
package connector

import (
	"context"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/storage"
)

// A Split is a part of an external source that is read in order, and how far it
// has been read: Offset is the reader's own notation, "" the beginning.
type Split struct{ ID, Offset string }

// A Batch is what a reader has ready.
type Batch struct {
	Chunk *chunk.Chunk // one column for each column of the relation; nil: nothing is ready
	// Splits whose offsets have moved with these rows.
	Splits []Split
	// Next is when to look again if nothing was ready; zero: when woken.
	Next time.Time
}

// A Reader reads some splits of an external source for one actor. A Reader that is
// an io.Closer is closed when its actor ends.
type Reader interface {
	// Open begins at the given offsets. wake may be called from any goroutine,
	// when rows have become ready. ctx is the actor's.
	Open(ctx context.Context, at []Split, wake func()) error
	// Read returns at most max rows without waiting for any.
	Read(now time.Time, max int) (Batch, error)
}

// A Writer takes the changes of one actor of a sink.
type Writer interface {
	Write(c *chunk.Chunk) error
	// Seal ends an epoch: what was written before belongs to it. It is called for
	// every epoch, before the epoch commits.
	Seal(e storage.Epoch) error
}

// A Driver is a kind of connector, by the name that WITH (connector = …) gives it.
// A function that is nil is not supported by it.
type Driver struct {
	Name string
	// Splits lists the splits of a source, in a stable order.
	Splits func(r *catalog.Relation) ([]string, error)
	// Reader makes a reader for one actor. seed varies what is random unless the options say otherwise.
	Reader func(r *catalog.Relation, seed uint64) (Reader, error)
	// Writer makes a writer for one actor of a sink.
	Writer func(r *catalog.Relation) (Writer, error)
}

// Option returns the value of an option of a relation's WITH clause.
func Option(r *catalog.Relation, name string) (value string, ok bool) {
	for _, o := range r.With {
		if o.Name == name {
			return o.Value, true
		}
	}
	return "", false
}
