package storage

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"

	"github.com/dgraph-io/badger/v4"
	bopt "github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
)

// badgerEngine is the engine over Badger in managed mode: the timestamp of a key is the epoch that wrote it.
type badgerEngine struct {
	db  *badger.DB
	log *badgerLog
}

// badgerOptions are the ones found right and fast by measurement; DESIGN.md has the reasons.
func badgerOptions(dir string, o Options, l *badgerLog) badger.Options {
	// A memtable that is not written to takes no memory, however large.
	memtable, count := int64(32<<20), 2
	switch memory := o.MemoryLimit; {
	case o.smallDisk:
		memtable = 16 << 20 // their logs must fit beside the data
	case memory >= 1<<30:
		memtable, count = 64<<20, 3
	case memory >= 512<<20:
		count = 3
	case memory > 0 && memory < 256<<20:
		memtable = 16 << 20
	}
	return badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithMemTableSize(memtable).
		WithNumMemtables(count).
		WithNumLevelZeroTables(6).
		WithNumLevelZeroTablesStall(16).
		WithBaseLevelSize(2 * memtable). // a level less to rewrite rows in
		WithBaseTableSize(4 << 20).
		WithValueLogFileSize(16 << 20).
		WithCompression(bopt.None).
		WithBlockCacheSize(0). // blocks are read from mapped files
		WithIndexCacheSize(0).
		WithChecksumVerificationMode(bopt.OnTableRead).
		WithNumCompactors(2).
		WithNumGoroutines(1).
		WithLogger(l)
}

func openBadger(dir string, o Options, l *badgerLog) (*badgerEngine, error) {
	db, err := badger.OpenManaged(badgerOptions(dir, o, l))
	if err != nil {
		return nil, err
	}
	return &badgerEngine{db: db, log: l}, nil
}

// loadInFlight is how many chunks of a large batch are under way at once.
const loadInFlight = 3

func (b *badgerEngine) apply(x batch) error {
	maxRows, maxBytes := b.db.MaxBatchCount(), b.db.MaxBatchSize()
	if int64(x.n)+1 < maxRows*8/10 && x.bytes+32*int64(x.n+1) < maxBytes*8/10 {
		txn := b.db.NewTransactionAt(math.MaxUint64, true)
		defer txn.Discard()
		if err := fill(txn, x.writes); err != nil {
			return err
		}
		if x.marker != nil {
			if err := txn.Set(markerKey, x.marker); err != nil {
				return err
			}
		}
		return txn.CommitAt(uint64(x.epoch), nil)
	}
	if err := b.load(x); err != nil {
		return err
	}
	if x.marker == nil {
		return nil
	}
	txn := b.db.NewTransactionAt(math.MaxUint64, true)
	defer txn.Discard()
	if err := txn.Set(markerKey, x.marker); err != nil {
		return err
	}
	return txn.CommitAt(uint64(x.epoch), nil)
}

func fill(txn *badger.Txn, writes iter.Seq[write]) error {
	var keys []byte // of writes that the transaction holds
	for w := range writes {
		if cap(keys)-len(keys) < len(w.key) {
			keys = make([]byte, 0, max(len(w.key), min(64<<10, 512+2*cap(keys))))
		}
		n := len(keys)
		keys = append(keys, w.key...)
		w.key = keys[n:len(keys):len(keys)]
		if err := put(txn, w); err != nil {
			return err
		}
	}
	return nil
}

func put(txn *badger.Txn, w write) error {
	if w.val == nil {
		return txn.Delete(w.key)
	}
	e := badger.NewEntry(w.key, w.val)
	e.UserMeta = w.meta
	return txn.SetEntry(e)
}

// load writes x in chunks, each as large as Badger takes, and waits for all of
// them. They are not whole as one: the marker, written after them, makes them so.
// Unlike a transaction the loader keeps the order of the keys, which the memtable
// likes, and no map of them.
func (b *badgerEngine) load(x batch) error {
	l := b.db.NewKVLoader(loadInFlight)
	kv := pb.KV{Version: uint64(x.epoch)} // the loader copies what it holds, the value excepted
	for w := range x.writes {
		kv.Key, kv.Value, kv.Meta, kv.UserMeta = w.key, w.val, nil, nil
		if w.val == nil {
			kv.Meta = metaDeleted
		}
		if w.meta != metaPlain {
			kv.UserMeta = metas[w.meta : w.meta+1]
		}
		if err := l.Set(&kv); err != nil {
			return err // not waited for what is under way: the loader may have lost count
		}
	}
	return l.Finish()
}

// Badger's mark of a deletion, as its backups hold it, and ours of an entry's kind.
var metaDeleted, metas = []byte{1}, []byte{metaPlain, metaBig, metaDead}

func (b *badgerEngine) view(e Epoch) (view, error) {
	return badgerView{b.db.NewTransactionAt(uint64(e), false)}, nil
}

func (b *badgerEngine) discard(below Epoch)                  { b.db.SetDiscardTs(uint64(below)) }
func (b *badgerEngine) dropPrefixes(prefixes [][]byte) error { return b.db.DropPrefix(prefixes...) }
func (b *badgerEngine) compact() error                       { return b.db.Flatten(1) }
func (b *badgerEngine) failure() error                       { return b.log.failure() }
func (b *badgerEngine) close() error                         { return b.db.Close() }

func (b *badgerEngine) size() int64 {
	var n int64
	for _, t := range b.db.Tables() {
		n += int64(t.OnDiskSize)
	}
	return n
}

// last reads the newest marker and looks for versions above it.
func (b *badgerEngine) last() (lastState, error) {
	s := lastState{newest: Epoch(b.db.MaxVersion())}
	txn := b.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	item, err := txn.Get(markerKey)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
	case err != nil:
		return s, err
	default:
		if s.marker, err = item.ValueCopy(nil); err != nil {
			return s, err
		}
		s.version = Epoch(item.Version())
	}
	it := txn.NewIterator(above(s.version))
	defer it.Close()
	it.Rewind()
	s.orphans = it.Valid()
	return s, nil
}

// above iterates over all versions after e.
func above(e Epoch) badger.IteratorOptions {
	return badger.IteratorOptions{AllVersions: true, SinceTs: uint64(e)}
}

// repair gives each key that has a version above from the value it had at from,
// at the new version to. A tombstone at the orphan's own version would hide the
// older value as well. It may be broken off and run again with a higher to.
func (b *badgerEngine) repair(from, to Epoch, marker []byte) (int, error) {
	all := b.db.NewTransactionAt(math.MaxUint64, false)
	defer all.Discard()
	old := b.db.NewTransactionAt(uint64(from), false)
	defer old.Discard()
	it := all.NewIterator(above(from))
	defer it.Close()
	var failed error
	n := 0
	err := b.apply(batch{epoch: to, n: math.MaxInt32, writes: func(yield func(write) bool) {
		var last []byte
		for it.Rewind(); it.Valid(); it.Next() {
			k := it.Item().Key()
			if bytes.Equal(k, last) || bytes.Equal(k, markerKey) {
				continue
			}
			last = append(last[:0], k...)
			w := write{key: bytes.Clone(k)}
			item, err := old.Get(k)
			if err == nil {
				w.meta = item.UserMeta()
				if w.val, err = item.ValueCopy(nil); w.val == nil {
					w.val = []byte{}
				}
			}
			if err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
				failed = err
				return
			}
			n++
			if !yield(w) {
				return
			}
		}
	}})
	if err := errors.Join(failed, err); err != nil {
		return n, err
	}
	return n, b.apply(batch{epoch: to, writes: func(func(write) bool) {}, marker: marker})
}

type badgerView struct{ txn *badger.Txn }

func (v badgerView) get(key []byte) ([]byte, byte, error) {
	item, err := v.txn.Get(key)
	if err != nil {
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil, 0, nil
		}
		return nil, 0, err
	}
	val, err := value(item)
	return val, item.UserMeta(), err
}

// value returns the item's own copy of its value.
func value(item *badger.Item) (val []byte, err error) {
	err = item.Value(func(b []byte) error { val = b; return nil })
	if val == nil {
		val = []byte{}
	}
	return val, err
}

func (v badgerView) cursor(prefix []byte) cursor {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	return &badgerCursor{it: it}
}

// close leaves the transaction be: it holds nothing, and a cursor may outlive it
// (StateTable keeps one to seek again).
func (v badgerView) close() {}

type badgerCursor struct {
	it  *badger.Iterator
	bad error
}

func (c *badgerCursor) seek(key []byte) bool { c.it.Seek(key); return c.it.Valid() }
func (c *badgerCursor) next() bool           { c.it.Next(); return c.it.Valid() }
func (c *badgerCursor) key() []byte          { return c.it.Item().Key() }
func (c *badgerCursor) val() ([]byte, byte) {
	item := c.it.Item()
	v, err := value(item)
	if err != nil && c.bad == nil {
		c.bad = err
	}
	return v, item.UserMeta()
}
func (c *badgerCursor) err() error { return c.bad }
func (c *badgerCursor) close()     { c.it.Close() }

// badgerLog hands Badger's log on, counts its warnings, and remembers what Badger
// would otherwise only write down and try again.
type badgerLog struct {
	log  *slog.Logger
	m    *metrics
	fail chan error // room for the first failure
}

func newBadgerLog(l *slog.Logger, m *metrics) *badgerLog {
	return &badgerLog{log: l, m: m, fail: make(chan error, 1)}
}

func (l *badgerLog) failure() error {
	select {
	case err := <-l.fail:
		l.fail <- err
		return err
	default:
		return nil
	}
}

// forget makes what was met so far count no more.
func (l *badgerLog) forget() {
	select {
	case <-l.fail:
	default:
	}
}

func (l *badgerLog) Errorf(format string, args ...any) {
	msg := string(bytes.TrimSpace(fmt.Appendf(nil, format, args...)))
	l.log.Error("badger: " + msg)
	l.m.warnings.Inc()
	select {
	case l.fail <- errors.New(msg):
	default:
	}
}

func (l *badgerLog) Warningf(format string, args ...any) {
	l.log.Warn("badger: " + string(bytes.TrimSpace(fmt.Appendf(nil, format, args...))))
	l.m.warnings.Inc()
}

func (l *badgerLog) Infof(format string, args ...any) {
	l.log.Debug("badger: " + string(bytes.TrimSpace(fmt.Appendf(nil, format, args...))))
}

func (l *badgerLog) Debugf(string, ...any) {}
