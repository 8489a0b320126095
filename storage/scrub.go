package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"streamdb/sql/sqlerr"
)

// Scrub compares the rows of every object with its digest at one committed
// epoch, at full speed. The error joins one a damaged object.
func (s *Store) Scrub(ctx context.Context) error {
	var errs []error
	for _, id := range s.objects() {
		if err := s.scrub(ctx, id, func() error { return ctx.Err() }); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Store) objects() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.digests))
}

// scrubRows is how many rows are read between two calls of pause.
const scrubRows = 2000

// scrub checks one object. An object that goes meanwhile is no error; neither is
// a snapshot that grew too old before the end, which leaves the object unchecked this time.
func (s *Store) scrub(ctx context.Context, id uint32, pause func() error) error {
	p := s.pins.latest()
	defer p.release()
	raw, err := p.get(objectPrefix(TagDigest, id))
	if raw == nil || err != nil {
		return err
	}
	want, err := decodeDigest(raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	gone := s.dropped[id]
	s.mu.Unlock()
	if gone {
		return nil
	}
	var got digest
	snap := Snapshot{p, s}
	for _, tag := range []byte{TagState, TagRows, TagIndex} {
		x := snap.scan(Desc{Tag: tag, ID: id}, nil, nil)
		for n := 1; x.next(); n++ {
			got.row(1, x.key, xxh3.Hash(x.key), x.val)
			if n%scrubRows == 0 {
				s.m.scrubbed.Add(scrubRows)
				if err := pause(); err != nil {
					x.close()
					return err
				}
			}
		}
		x.close()
		if x.err != nil {
			if sqlerr.Code(x.err) == sqlerr.SnapshotTooOld {
				return nil
			}
			return s.corrupt(id, x.err)
		}
	}
	if want.loose {
		return nil
	}
	if got.rows == want.rows && got.bytes == want.bytes && got.sum == want.sum {
		s.vouch(id)
		return nil
	}
	return s.corrupt(id, sqlerr.New(sqlerr.DataCorrupted, "object %d has %d rows (hash %016x) at epoch %d, its digest says %d (hash %016x)",
		id, got.rows, got.sum, p.epoch, want.rows, want.sum))
}

func (s *Store) corrupt(id uint32, err error) error {
	s.m.corrupt.Inc()
	s.mu.Lock()
	s.unseen[id] = true
	s.mu.Unlock()
	s.o.Logger.Error("rows do not match their digest", "object", id, "err", err)
	if s.o.OnCorrupt != nil {
		s.o.OnCorrupt(id, err)
	}
	return err
}

// The background work's rhythm.
const (
	tick       = time.Second
	idleAfter  = 2 * time.Second // since the last commit
	scrubFirst = 30 * time.Second
	scrubEvery = 6 * time.Hour
	scrubShare = 20 // the scrub sleeps this many times what it works: 5 % of a core
	pruneEvery = 10 * time.Minute
)

// background does what nobody waits for: deletes dropped rows while idle, gives
// back the space of old versions, keeps the ballast, and scrubs.
func (s *Store) background(ctx context.Context) {
	s.guard.fillBallast()
	s.done.Go(func() { s.scrubs(ctx) })
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	compacted := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.idleFor() < idleAfter {
			continue
		}
		if err := s.Idle(ctx); err != nil {
			s.o.Logger.Error("background work of the state store failed", "err", err)
		}
		if time.Since(compacted) > pruneEvery && s.wasteful() {
			if err := s.eng.compact(); err != nil {
				s.o.Logger.Error("compaction of the state store failed", "err", err)
			}
			compacted = time.Now()
		}
		if s.CheckSpace() == nil {
			s.guard.fillBallast()
		}
	}
}

// Idle does a slice of the work that waits for an idle moment: it deletes rows of dropped objects.
func (s *Store) Idle(context.Context) error { return s.dropInIdle() }

// wasteful reports whether old versions take most of the space.
func (s *Store) wasteful() bool {
	s.mu.Lock()
	var live int64
	for _, d := range s.digests {
		live += d.bytes
	}
	s.mu.Unlock()
	size := s.eng.size()
	return size > 64<<20 && size > 3*live
}

func (s *Store) scrubs(ctx context.Context) {
	wait := scrubFirst
	for {
		if !sleep(ctx, wait) {
			return
		}
		wait = scrubEvery
		for _, id := range s.objects() {
			start := time.Now()
			s.scrub(ctx, id, func() error {
				if !sleep(ctx, scrubShare*time.Since(start)) {
					return ctx.Err()
				}
				start = time.Now()
				return nil
			})
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
