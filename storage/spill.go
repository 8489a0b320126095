package storage

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sort"
)

// A spill is a sealed layer in a file that has no name any more, so that it goes
// with the process. Entries stand in key order as: key length, value length + 1
// (0: deleted), key, value; lengths are uvarints. Every stretch of spillBlock
// bytes begins at an entry, whose key is kept.
type spill struct {
	f      *os.File
	firsts [][]byte
	starts []int64 // of the stretches, and the file's end
}

const spillBlock = 32 << 10

func newSpill(dir string, l *layer) (*spill, error) {
	f, err := os.CreateTemp(filepath.Join(dir, spillDir), "layer*")
	if err != nil {
		return nil, err
	}
	s := &spill{f: f}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	var at int64
	var head []byte
	for _, i := range l.sorted {
		key, val := l.key(i), l.val(i)
		if len(s.starts) == 0 || at-s.starts[len(s.starts)-1] >= spillBlock {
			s.starts = append(s.starts, at)
			s.firsts = append(s.firsts, bytes.Clone(key))
		}
		head = binary.AppendUvarint(head[:0], uint64(len(key)))
		n := uint64(0)
		if val != nil {
			n = uint64(len(val)) + 1
		}
		head = binary.AppendUvarint(head, n)
		for _, b := range [][]byte{head, key, val} {
			if _, err := w.Write(b); err != nil {
				f.Close()
				return nil, err
			}
			at += int64(len(b))
		}
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return nil, err
	}
	s.starts = append(s.starts, at)
	return s, nil
}

func (s *spill) close() {
	if s != nil {
		s.f.Close()
	}
}

// spillSource walks a spill. An error ends it and is returned by val.
type spillSource struct {
	f     *spill
	block int
	buf   []byte // of the stretch; nil: none read
	rest  []byte // entries after the current one
	k, v  []byte
	ok    bool
	bad   error
}

func (s *spillSource) seek(key []byte) {
	i := sort.Search(len(s.f.firsts), func(i int) bool { return bytes.Compare(s.f.firsts[i], key) > 0 })
	s.read(max(i-1, 0))
	for s.ok && s.bad == nil && bytes.Compare(s.k, key) < 0 {
		s.next()
	}
}

func (s *spillSource) read(block int) {
	s.ok = false
	if block >= len(s.f.firsts) {
		return
	}
	n := s.f.starts[block+1] - s.f.starts[block]
	if int64(cap(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	s.block, s.buf = block, s.buf[:n]
	if _, err := s.f.f.ReadAt(s.buf, s.f.starts[block]); err != nil {
		s.fail(err)
		return
	}
	s.rest = s.buf
	s.next()
}

// fail makes the source stand at the least key, so that its reader meets the error.
func (s *spillSource) fail(err error) { s.bad, s.ok, s.k = err, true, []byte{} }

func (s *spillSource) next() {
	if s.bad != nil {
		return
	}
	if len(s.rest) == 0 {
		s.read(s.block + 1)
		return
	}
	kn, a := binary.Uvarint(s.rest)
	if a <= 0 {
		s.fail(errCorrupt)
		return
	}
	vn, b := binary.Uvarint(s.rest[a:])
	if b <= 0 || uint64(len(s.rest)-a-b) < kn+max(vn, 1)-1 {
		s.fail(errCorrupt)
		return
	}
	body := s.rest[a+b:]
	s.k, s.v = body[:kn], nil
	if vn > 0 {
		s.v = body[kn : kn+vn-1 : kn+vn-1]
	}
	s.rest = body[kn+max(vn, 1)-1:]
	s.ok = true
}

func (s *spillSource) valid() bool          { return s.ok }
func (s *spillSource) key() []byte          { return s.k }
func (s *spillSource) val() ([]byte, error) { return s.v, s.bad }
