package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A mark says how far the store has committed: in the marker key, written with
// the epoch's rows, and again in the ratchet, a file beside the engine. They are
// kept apart so that a loss in one is seen in the other.
type mark struct {
	epoch Epoch
	xor   uint64 // of all objects' digests
	uuid  [16]byte
}

const (
	formatVersion = 1
	markLen       = 4 + 2 + 8 + 8 + 16 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (m mark) encode() []byte {
	b := append(make([]byte, 0, markLen), "sdb!"...)
	b = binary.BigEndian.AppendUint16(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(m.epoch))
	b = binary.BigEndian.AppendUint64(b, m.xor)
	b = append(b, m.uuid[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var errMark = errors.New("checksum does not match")

func decodeMark(b []byte) (mark, error) {
	var m mark
	if len(b) != markLen || string(b[:4]) != "sdb!" {
		return m, errMark
	}
	if crc32.Checksum(b[:markLen-4], castagnoli) != binary.BigEndian.Uint32(b[markLen-4:]) {
		return m, errMark
	}
	if v := binary.BigEndian.Uint16(b[4:]); v != formatVersion {
		return m, fmt.Errorf("format version %d is not known to this server, which reads version %d", v, formatVersion)
	}
	m.epoch = Epoch(binary.BigEndian.Uint64(b[6:]))
	m.xor = binary.BigEndian.Uint64(b[14:])
	copy(m.uuid[:], b[22:])
	return m, nil
}

// A ratchet is a file of two slots, written in turn and synced, so that a torn
// write leaves the other one. It may lag the marker by one epoch and is never ahead of it.
type ratchet struct {
	f    *os.File
	slot int64 // the one to write next
}

const ratchetSlot = 4096 // one block each

// openRatchet opens the ratchet in dir. found is false where there was no file;
// a file without a valid slot is an error.
func openRatchet(dir string) (r *ratchet, m mark, found bool, err error) {
	path := filepath.Join(dir, "ratchet")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mark{}, false, nil
	}
	if err != nil {
		return nil, mark{}, false, err
	}
	r = &ratchet{f: f}
	var bad error
	for i := range int64(2) {
		b := make([]byte, markLen)
		if _, err := f.ReadAt(b, i*ratchetSlot); err != nil {
			if !errors.Is(err, io.EOF) {
				f.Close()
				return nil, mark{}, false, err
			}
			continue
		}
		s, err := decodeMark(b)
		if err != nil {
			if bad == nil || !errors.Is(err, errMark) {
				bad = err
			}
			continue
		}
		if !found || s.epoch > m.epoch {
			m, found, r.slot = s, true, 1-i
		}
	}
	if !found {
		if bad == nil {
			bad = errMark
		}
		return r, mark{}, true, fmt.Errorf("ratchet file %s: %w", path, bad)
	}
	return r, m, true, nil
}

// createRatchet makes the file, and makes its name last.
func createRatchet(dir string, m mark) (*ratchet, error) {
	f, err := os.OpenFile(filepath.Join(dir, "ratchet"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	r := &ratchet{f: f}
	if err := r.write(m); err != nil {
		f.Close()
		return nil, err
	}
	return r, syncDir(dir)
}

func (r *ratchet) write(m mark) error {
	if _, err := r.f.WriteAt(m.encode(), r.slot*ratchetSlot); err != nil {
		return fmt.Errorf("write ratchet: %w", err)
	}
	if err := r.f.Sync(); err != nil {
		return fmt.Errorf("sync ratchet: %w", err)
	}
	r.slot = 1 - r.slot
	return nil
}

func (r *ratchet) close() error { return r.f.Close() }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
