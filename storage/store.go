// Package storage keeps the state of every object: operators' state, rows of
// tables and views, offsets and the catalog's journal.
//
// The one idea: time is cut into epochs, and an epoch is one version of the
// whole state. A StateTable gathers an actor's changes, seals them when the
// barrier of epoch E passes, and the Store commits E when all have done so: it
// becomes durable and visible at once, or not at all. Readers stand at a
// committed epoch. Under a seam of two small interfaces lies Badger, or sorted
// memory; DESIGN.md says why it is built the way it is.
package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"streamdb/sql/sqlerr"
)

// A Store is one open database. Its methods may be called concurrently, except
// that Commit is for one coordinator. Invariants:
//
//  1. The state at an epoch never changes once Committed has reached it.
//  2. Nothing above Committed is ever read, except by the table that wrote it.
//  3. After an error in Commit the store commits nothing more.
//  4. The xor of digests in the marker is that of the digests at the marker's epoch.
type Store struct {
	o     Options
	m     *metrics
	eng   engine
	pins  pins
	guard *guard // nil: nothing to guard
	lock  *os.File
	uuid  [16]byte
	// What Close takes back from Options.Registerer.
	registered []prometheus.Collector
	dirty      atomic.Int64 // bytes of open and sealed layers that are not committed

	commitMu   sync.Mutex // held by Commit and by background writes
	broken     error      // guarded by commitMu
	ratchet    *ratchet
	ratchetRun chan error // result of the write under way; nil: none
	drops      []*drop    // committed intents, oldest first; guarded by commitMu
	lastCommit atomic.Int64

	mu      sync.Mutex
	sealed  []sealedLayer
	flying  []sealedLayer // those that the commit under way has taken
	follows []*follow     // who is given what is sealed
	staged  []staged
	digests map[uint32]digest
	dropped map[uint32]bool
	unseen  map[uint32]bool // objects whose digests were found at open, and no scan has confirmed yet
	xor     uint64

	stop context.CancelFunc
	done sync.WaitGroup
}

type sealedLayer struct {
	d     Desc
	l     *layer
	dirty int64
}

type staged struct {
	epoch    Epoch
	key, val []byte // key with its tag
	drop     uint32 // an intent to drop this object; 0: none
}

// Open opens the database in o.Dir and brings it to its newest whole epoch.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{o: o, m: newMetrics(), digests: map[uint32]digest{}, dropped: map[uint32]bool{}, unseen: map[uint32]bool{}}
	if err := s.open(); err != nil {
		s.release()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if o.Engine == "badger" {
		s.done.Go(func() { s.background(ctx) })
	}
	return s, nil
}

func (s *Store) open() error {
	var found mark
	switch s.o.Engine {
	case "memory":
		if s.o.Disk == nil {
			s.o.Disk = NewMemDisk()
		}
		s.eng = openMemory(s.o.Disk)
	case "badger":
		m, err := s.openDir()
		if err != nil {
			return err
		}
		found = m
	default:
		return sqlerr.New(sqlerr.InvalidParameter, "storage engine %q is not known", s.o.Engine).WithHint("Engines are badger and memory.")
	}
	s.pins.eng, s.pins.clock, s.pins.maxAge, s.pins.cache.limit = s.eng, s.o.Clock, s.o.MaxPinAge, s.o.blockCache()
	if err := s.recover(found); err != nil {
		return err
	}
	if s.o.Registerer != nil {
		return s.register(s.o.Registerer)
	}
	return nil
}

// openDir takes the data directory, looks it over and opens Badger in it. The
// result is what the ratchet says.
func (s *Store) openDir() (mark, error) {
	dir := s.o.Dir
	if err := os.MkdirAll(filepath.Join(dir, spillDir), 0o700); err != nil {
		return mark{}, fmt.Errorf("make data directory: %w", err)
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return mark{}, fmt.Errorf("make data directory: %w", err)
	}
	var err error
	if s.lock, err = lockDir(dir); err != nil {
		return mark{}, err
	}
	free, _, err := s.o.FreeSpace(dir)
	if err != nil {
		return mark{}, fmt.Errorf("free space of %q: %w", dir, err)
	}
	s.o.smallDisk = free < smallDiskBytes
	if err := preflight(dir, s.o); err != nil {
		return mark{}, err
	}
	if err := removeSpills(dir); err != nil {
		return mark{}, fmt.Errorf("drop spilled files: %w", err)
	}
	r, m, known, err := openRatchet(dir)
	s.ratchet = r
	if err != nil && !(known && s.o.AcceptLoss) {
		return mark{}, sqlerr.New(sqlerr.DataCorrupted, "%w", err).
			WithHint("Restore the directory from a backup, or accept a possible loss of the newest epochs with --accept-loss.")
	}
	eng, err := openBadger(filepath.Join(dir, engineDir), s.o, newBadgerLog(s.o.Logger, s.m))
	if err != nil {
		return mark{}, fmt.Errorf("open state store in %q: %w", dir, err)
	}
	s.eng = eng
	if err := eng.failure(); err != nil {
		// Badger leaves a damaged table out and goes on.
		if !s.o.AcceptLoss {
			return mark{}, sqlerr.New(sqlerr.DataCorrupted, "state store in %q is damaged: %w", dir, err).
				WithHint("Restore the directory from a backup, or accept the loss with --accept-loss.")
		}
		eng.log.forget()
	}
	s.guard = &guard{dir: dir, o: s.o, m: s.m, data: eng.size}
	return m, nil
}

// recover finds the newest whole epoch, undoes what lies above it, and reads the digests.
func (s *Store) recover(ratchet mark) error {
	last, err := s.eng.last()
	if err != nil {
		return fmt.Errorf("read commit marker: %w", err)
	}
	var m mark
	if last.marker != nil {
		if m, err = decodeMark(last.marker); err != nil {
			return sqlerr.New(sqlerr.DataCorrupted, "commit marker: %w", err).WithHint("Restore the directory from a backup.")
		}
		if m.epoch != last.version {
			return sqlerr.New(sqlerr.DataCorrupted, "commit marker of epoch %d was written at %d", m.epoch, last.version).
				WithHint("Restore the directory from a backup.")
		}
	}
	if err := s.compare(m, ratchet); err != nil {
		return err
	}
	s.uuid, s.xor = m.uuid, m.xor
	if last.marker == nil {
		s.uuid = ratchet.uuid
	}
	if s.uuid == [16]byte{} {
		rand.Read(s.uuid[:])
	}
	c := m.epoch
	if last.orphans || ratchet.epoch > c {
		from := c
		c = max(last.newest, c, ratchet.epoch) + 1
		n, err := s.eng.repair(from, c, mark{epoch: c, xor: s.xor, uuid: s.uuid}.encode())
		if err != nil {
			return fmt.Errorf("undo the unfinished epoch after %d: %w", from, err)
		}
		s.o.Logger.Info("undid an unfinished epoch", "committed", from, "keys", n, "now", c)
	}
	if s.o.Engine == "badger" {
		if s.ratchet == nil {
			if s.ratchet, err = createRatchet(s.o.Dir, mark{epoch: c, xor: s.xor, uuid: s.uuid}); err != nil {
				return err
			}
		} else if ratchet.epoch != c {
			if err := s.ratchet.write(mark{epoch: c, xor: s.xor, uuid: s.uuid}); err != nil {
				return err
			}
		}
	}
	if err := s.pins.advance(c); err != nil {
		return err
	}
	if err := s.loadDigests(); err != nil {
		return err
	}
	if err := s.finishDrops(); err != nil {
		return err
	}
	return s.loadBlocks()
}

// compare holds marker and ratchet against each other.
func (s *Store) compare(m, ratchet mark) error {
	if s.o.Engine != "badger" || s.ratchet == nil {
		return nil
	}
	hint := "Restore the directory from a backup, or accept the loss with --accept-loss."
	var err *sqlerr.Error
	switch {
	case ratchet.epoch > m.epoch:
		err = sqlerr.New(sqlerr.DataCorrupted, "committed epochs are missing: the state store ends at epoch %d, but epoch %d was committed (%d epochs)",
			m.epoch, ratchet.epoch, ratchet.epoch-m.epoch)
	case ratchet.epoch == m.epoch && m.epoch > 0 && ratchet.xor != m.xor:
		err = sqlerr.New(sqlerr.DataCorrupted, "marker and ratchet of epoch %d do not agree", m.epoch)
	case ratchet.uuid != m.uuid && m.epoch > 0 && ratchet != (mark{}):
		err = sqlerr.New(sqlerr.DataCorrupted, "ratchet file is of another database")
	default:
		return nil
	}
	if s.o.AcceptLoss {
		s.o.Logger.Error("accepted: " + err.Message)
		return nil
	}
	return err.WithHint("%s", hint)
}

func (s *Store) loadDigests() error {
	p := s.pins.latest()
	defer p.release()
	var xor uint64
	for kv, err := range p.scanTag(TagDigest, nil) {
		if err != nil {
			return err
		}
		d, err := decodeDigest(kv.Val)
		if err != nil || len(kv.Key) != 4 {
			return sqlerr.New(sqlerr.DataCorrupted, "digest %x: %w", kv.Key, errCorrupt)
		}
		id := objectID(kv.Key)
		s.digests[id] = d
		s.unseen[id] = true
		xor ^= d.mix(id)
	}
	if xor != s.xor {
		if !s.o.AcceptLoss {
			return sqlerr.New(sqlerr.DataCorrupted, "digests of epoch %d do not agree with its marker", p.epoch).
				WithHint("Restore the directory from a backup, or accept the loss with --accept-loss.")
		}
		s.o.Logger.Error("accepted: digests do not agree with their marker", "epoch", p.epoch)
		s.xor = xor
	}
	return nil
}

// Close stops the background work and closes the engine. What is not committed
// is lost. No reader may be left.
func (s *Store) Close() error {
	s.stop()
	s.done.Wait()
	return s.release()
}

func (s *Store) release() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.broken == nil {
		s.broken = errors.New("the state store is closed")
	}
	for _, c := range s.registered {
		s.o.Registerer.Unregister(c)
	}
	s.registered = nil
	err := s.waitRatchet()
	if s.eng != nil {
		err = errors.Join(err, s.eng.close())
	}
	if s.ratchet != nil {
		err = errors.Join(err, s.ratchet.close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// Committed is the newest epoch that is durable and visible.
func (s *Store) Committed() Epoch { return s.pins.committed() }

// DirtyBytes is the memory that uncommitted changes of all tables take, so that
// the coordinator can end an epoch early.
func (s *Store) DirtyBytes() int64 { return s.dirty.Load() }

// Rows is the committed number of rows of an object: exact for rows and indexes,
// and for operator state whose writers say what they replace.
func (s *Store) Rows(id uint32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.digests[id].rows
}

// trusts reports whether the digest of an object may stand for its rows.
func (s *Store) trusts(id uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unseen[id]
}

// vouch says that a scan has found the rows of an object as its digest has them.
func (s *Store) vouch(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unseen, id)
}

// Bytes is about how many bytes the keys and values of an object have.
func (s *Store) Bytes(id uint32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.digests[id].bytes
}

// Size is the number of bytes of the engine's table files.
func (s *Store) Size() int64 { return s.eng.size() }

// CheckSpace returns an error with SQLSTATE 53100 while the disk has less room
// than the reserve. It is cheap. Statements that write must ask it first.
func (s *Store) CheckSpace() error {
	if s.guard == nil {
		return nil
	}
	return s.guard.check()
}

// Stage sets a key of the store's small metadata (TagCatalog, TagOffsets or
// TagJobs) with epoch e; val nil deletes it. Keys under TagJobs must not start with a zero byte.
func (s *Store) Stage(e Epoch, tag byte, key, val []byte) {
	st := staged{epoch: e, key: append([]byte{tag}, key...)}
	if val != nil {
		st.val = append([]byte{}, val...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged = append(s.staged, st)
}

// Meta ranges over committed metadata under tag whose keys start with prefix, in key order, keys without the tag.
func (s *Store) Meta(tag byte, prefix []byte) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		p := s.pins.latest()
		defer p.release()
		for kv, err := range p.scanTag(tag, prefix) {
			if err == nil && tag == TagJobs && len(kv.Key) > 0 && kv.Key[0] == 0 {
				continue // the store's own
			}
			if !yield(kv, err) {
				return
			}
		}
	}
}

// scanTag ranges over the keys of a tag that start with prefix, without the tag.
func (p *pin) scanTag(tag byte, prefix []byte) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		from := append([]byte{tag}, prefix...)
		c := p.v.cursor(from)
		defer c.close()
		for ok := c.seek(from); ok; ok = c.next() {
			val, meta := c.val()
			err := c.err()
			if err == nil && meta == metaBig {
				val, err = p.join(c.key(), val)
			}
			if err == nil {
				err = p.check()
			}
			if err != nil {
				yield(KV{}, fmt.Errorf("read metadata: %w", err))
				return
			}
			if !yield(KV{c.key()[1:], val}, nil) {
				return
			}
		}
		if err := c.err(); err != nil {
			yield(KV{}, fmt.Errorf("read metadata: %w", err))
		}
	}
}

func (s *Store) seal(d Desc, l *layer, dirty int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = append(s.sealed, sealedLayer{d, l, dirty})
	for _, f := range s.follows {
		if f.id == d.ID {
			f.got = append(f.got, l)
		}
	}
}

// idleFor is how long ago the last commit was.
func (s *Store) idleFor() time.Duration {
	return time.Duration(s.o.Clock.Now().UnixNano() - s.lastCommit.Load())
}
