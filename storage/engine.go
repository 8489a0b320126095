package storage

import (
	"iter"
)

// An engine keeps sorted keys in versions, one a commit. One writer, many
// readers. Two stand behind it: Badger, and sorted memory for tests and simulation.
//
// apply makes a batch durable as one: after a crash either all of it is there
// or none. It is never retried: an error is fatal to the process.
type engine interface {
	apply(b batch) error
	view(e Epoch) (view, error) // the state as of e; pinned by the Store, which never asks below what it discarded
	discard(below Epoch)        // no view below it will be asked for again
	dropPrefixes(prefixes [][]byte) error
	size() int64              // bytes on disk
	compact() error           // gives back the space of old versions
	failure() error           // an error the engine met by itself, behind our back; nil: none
	last() (lastState, error) // what was found at open
	repair(from, to Epoch, marker []byte) (int, error)
	close() error
}

// lastState is what an engine finds when it is opened.
type lastState struct {
	marker  []byte // newest marker; nil: none
	version Epoch  // the version it was written at
	newest  Epoch  // highest version of any key
	orphans bool   // some key has a version above the marker's
}

// A batch is one commit. writes may be ranged over once; keys are distinct, and
// valid until the next one only, while values last until apply returns.
type batch struct {
	epoch  Epoch
	n      int   // number of writes, or more
	bytes  int64 // of keys and values, or more
	writes iter.Seq[write]
	marker []byte // the marker's new value; becomes visible last
}

// A write sets a key, or deletes it when val is nil.
type write struct {
	key, val []byte
	meta     byte
}

// What an entry's value is: meta is kept with it.
const (
	metaPlain byte = iota
	metaBig        // the head of a value in pieces
	metaDead       // nothing: it says that a row of a block is gone
)

// A view reads one version of the state. Reads may run concurrently.
type view interface {
	get(key []byte) (val []byte, meta byte, err error) // val nil: absent; it is the caller's, not to be written
	cursor(prefix []byte) cursor                       // over the keys that start with prefix; starts nowhere: seek first
	close()
}

// A cursor walks keys upwards. key and val are valid until it moves.
type cursor interface {
	seek(key []byte) bool // to the first key at or above key
	next() bool
	key() []byte
	val() (val []byte, meta byte)
	err() error
	close()
}

var markerKey = []byte{TagMarker, 'm'}
