package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"streamdb/sql/sqlerr"
)

// Files of a data directory: the engine's directory, and beside it the ratchet,
// a lock, a ballast that is given up when the disk is nearly full, and a
// directory of files that a restart drops.
const (
	engineDir   = "state"
	lockFile    = "lock"
	ballastFile = "ballast"
	spillDir    = "spill"
)

const (
	ballastBytes = 64 << 20
	minInodes    = 1000
)

func freeSpace(dir string) (bytes, inodes uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	inodes = uint64(s.Ffree)
	if s.Files == 0 { // a file system that does not count them
		inodes = ^uint64(0)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), inodes, nil
}

// lockDir keeps a second server out of dir. The lock goes with the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, sqlerr.New(sqlerr.ObjectInUse, "data directory %q is in use by another server", dir).
				WithHint("Stop the other server, or start this one with another data directory.")
		}
		return nil, fmt.Errorf("lock data directory %q: %w", dir, err)
	}
	return f, nil
}

// preflight looks at the engine's directory before the engine does, and refuses
// or repairs what the engine would take silently for an empty or shorter database.
func preflight(dir string, o Options) error {
	files, err := os.ReadDir(filepath.Join(dir, engineDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	manifest, tables := false, 0
	for _, f := range files {
		name := f.Name()
		switch filepath.Ext(name) {
		case ".sst":
			tables++
		case ".mem", ".vlog":
			// A kill between creating and sizing such a file leaves it empty, and Badger cannot open it.
			if info, err := f.Info(); err == nil && info.Size() == 0 {
				if err := os.Remove(filepath.Join(dir, engineDir, name)); err != nil {
					return err
				}
			}
		}
		manifest = manifest || name == "MANIFEST"
	}
	if tables > 0 && !manifest {
		return sqlerr.New(sqlerr.DataCorrupted, "data directory %q has %d table files but no MANIFEST", dir, tables).
			WithHint("Restore the directory from a backup.")
	}
	need := startBytes(o)
	free, _, err := o.FreeSpace(dir)
	if err != nil {
		return fmt.Errorf("free space of %q: %w", dir, err)
	}
	if free < need && os.Remove(filepath.Join(dir, ballastFile)) == nil {
		if free, _, err = o.FreeSpace(dir); err != nil {
			return fmt.Errorf("free space of %q: %w", dir, err)
		}
	}
	if free < need {
		return sqlerr.New(sqlerr.DiskFull, "data directory %q has %s free, and %s are needed to start", dir, megabytes(free), megabytes(need)).
			WithHint("Free some space on the disk.")
	}
	return nil
}

func megabytes(n uint64) string { return fmt.Sprintf("%d MB", n>>20) }

// A guard refuses writes before the disk is full: a full disk reaches Badger as
// a fault in a mapped file, which nothing can catch.
type guard struct {
	dir     string
	o       Options
	m       *metrics
	data    func() int64 // bytes the engine has on disk
	mu      sync.Mutex
	at      time.Time // of the last look
	err     error     // what it found
	ballast bool
	near    bool // little was free when last looked at
}

const guardInterval = 200 * time.Millisecond

// check is cheap: it looks at the disk at most every guardInterval, or always where
// little is left, since a fast writer fills much within one.
func (g *guard) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.o.Clock.Now()
	if !g.at.IsZero() && !g.near && now.Sub(g.at) < guardInterval {
		return g.err
	}
	g.at = now
	g.err = g.look()
	return g.err
}

func (g *guard) look() error {
	free, inodes, err := g.o.FreeSpace(g.dir)
	if err != nil {
		return fmt.Errorf("free space of %q: %w", g.dir, err)
	}
	g.m.free.Set(float64(free))
	reserve := uint64(g.o.Reserve)
	if reserve == 0 {
		reserve = uint64(max(1<<30, 2*g.o.memtables(), g.data()/10))
	} else {
		// Whatever was asked for: what is on its way when writes are first refused (full
		// memtables, a compaction's copy) must still leave the room that the next start needs.
		reserve = max(reserve, startBytes(g.o)+uint64(g.o.memtables()+min(g.data(), 1<<30)/2))
	}
	g.near = free < 4*reserve
	if free < reserve/4 && g.ballast {
		// The engine must still get through what it has begun.
		if os.Remove(filepath.Join(g.dir, ballastFile)) == nil {
			g.o.Logger.Warn("disk nearly full: ballast file given up", "dir", g.dir, "free", free)
			g.ballast = false
		}
	}
	if free < reserve {
		return sqlerr.New(sqlerr.DiskFull, "could not write: %s free on the disk of %q, below the reserve of %s", megabytes(free), g.dir, megabytes(reserve)).
			WithHint("Free some space on the disk, or lower the reserve. Reads go on, and writes resume by themselves.")
	}
	if inodes < minInodes {
		return sqlerr.New(sqlerr.DiskFull, "could not write: %d inodes free on the disk of %q, below the reserve of %d", inodes, g.dir, minInodes).
			WithHint("Delete some files on the disk. Reads go on, and writes resume by themselves.")
	}
	return nil
}

// smallDiskBytes of free space or less make a store keep small memtables.
const smallDiskBytes = 1 << 30

// startBytes is the free disk space without which Badger is not started: for the
// memtable that it begins, and some for those it finds.
func startBytes(o Options) uint64 { return uint64(o.memtables()/2 + 8<<20) }

// fillBallast makes the ballast file where there is room for it.
func (g *guard) fillBallast() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ballast {
		return
	}
	path := filepath.Join(g.dir, ballastFile)
	if info, err := os.Stat(path); err == nil && info.Size() == ballastBytes {
		g.ballast = true
		return
	}
	if free, _, err := g.o.FreeSpace(g.dir); err != nil || free < 4*ballastBytes+uint64(g.o.Reserve) {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if err := allocate(f, ballastBytes); err != nil {
		os.Remove(path)
		return
	}
	g.ballast = true
}

// removeSpills drops what replicas of an earlier run spilled.
func removeSpills(dir string) error {
	files, err := os.ReadDir(filepath.Join(dir, spillDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "layer") {
			if err := os.Remove(filepath.Join(dir, spillDir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
