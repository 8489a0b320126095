package storage

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options say how a Store is opened. The zero value opens an empty one in memory.
type Options struct {
	Dir         string                // data directory, made if missing; "" or ":memory:": Engine is memory
	Engine      string                // "badger" (default with a Dir) or "memory"
	MemoryLimit int64                 // bytes for memtables and replicas' overlays; 0: as little as works well
	Reserve     int64                 // bytes of free disk below which CheckSpace refuses; 0: 1 GiB, twice the memtables and a tenth of the data, whichever is most
	AcceptLoss  bool                  // open although committed epochs are missing
	MaxPinAge   time.Duration         // age at which a superseded view is cancelled; 0: one hour
	Logger      *slog.Logger          // nil: discard
	Registerer  prometheus.Registerer // nil: no metrics
	Clock       Clock                 // nil: the system's

	// OnCorrupt is told of an object whose rows do not match their digest. It is
	// called from the scrub's goroutine. nil: only logged and counted.
	OnCorrupt func(id uint32, err error)

	// How rows are packed into blocks; 0: as blockplan.go has it. packRows below 0: not at all.
	packRows, packBytes int

	smallDisk bool // less than smallDiskBytes were free when the store was opened

	// For tests and simulation.
	Disk      *MemDisk                                           // the memory engine's disk; nil: a new one
	FreeSpace func(dir string) (bytes, inodes uint64, err error) // nil: ask the file system
}

// A Clock tells the time. Simulations pass their own.
type Clock interface{ Now() time.Time }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (o Options) withDefaults() Options {
	if o.Engine == "" {
		o.Engine = "badger"
	}
	if o.Dir == "" || o.Dir == ":memory:" || o.Disk != nil {
		o.Engine = "memory"
	}
	if o.packRows == 0 {
		o.packRows = packRows
	}
	if o.packBytes == 0 {
		o.packBytes = packBytes
	}
	if o.MaxPinAge == 0 {
		o.MaxPinAge = time.Hour
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.FreeSpace == nil {
		o.FreeSpace = freeSpace
	}
	return o
}

// memtables is how many bytes Badger's memtables may take.
func (o Options) memtables() int64 {
	b := badgerOptions("", o, nil)
	return b.MemTableSize * int64(b.NumMemtables)
}

// blockCache is how many bytes of blocks are held for point reads, and again of their filters.
func (o Options) blockCache() int64 { return max(8<<20, o.MemoryLimit/32) }

// replicaBudget is how many bytes of sealed changes a replica holds before they spill.
func (o Options) replicaBudget() int64 { return max(16<<20, o.MemoryLimit/16) }
