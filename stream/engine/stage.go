package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"

	"github.com/zeebo/xxh3"
)

type epoch = storage.Epoch

// stageMemory is how many bytes of rows a stage holds before it goes on in a file.
const stageMemory = 64 << 20

// A stage keeps the rows of a COPY until all of them have been checked: in memory
// first, then in a temporary file that has no name, so that a crash leaves nothing.
type stage struct {
	codec *storage.Codec
	rel   *catalog.Relation
	dir   string
	rows  int64
	mem   []*chunk.Chunk
	bytes int
	file  *os.File
	w     *bufio.Writer
	buf   []byte
}

func newStage(codec *storage.Codec, rel *catalog.Relation, dir string) *stage {
	return &stage{codec: codec, rel: rel, dir: dir}
}

// rowBytes estimates what a chunk holds in memory.
func rowBytes(c *chunk.Chunk) int {
	n := 0
	for _, col := range c.Cols {
		switch v := col.(type) {
		case *chunk.Vec[string]:
			n += 16 * len(v.Data)
			for _, s := range v.Data {
				n += len(s)
			}
		case *chunk.Vec[types.Decimal]:
			n += 24 * len(v.Data)
		default:
			n += 8 * col.Len()
		}
	}
	return n
}

func (s *stage) add(c *chunk.Chunk) error {
	s.rows += int64(c.Len())
	if s.file == nil {
		if s.bytes += rowBytes(c); s.bytes <= stageMemory {
			s.mem = append(s.mem, c)
			return nil
		}
		f, err := os.CreateTemp(s.dir, "copy-*.tmp")
		if err != nil {
			return fmt.Errorf("stage COPY: %w", err)
		}
		if err := os.Remove(f.Name()); err != nil {
			return errors.Join(err, f.Close())
		}
		s.file, s.w = f, bufio.NewWriterSize(f, 256<<10)
	}
	for i := range c.Len() {
		s.buf = s.codec.AppendKey(s.buf[:0], c.Cols, i)
		k := len(s.buf)
		s.buf = s.codec.AppendValue(s.buf, c.Cols, i)
		var head [8]byte
		binary.LittleEndian.PutUint32(head[:], uint32(k))
		binary.LittleEndian.PutUint32(head[4:], uint32(len(s.buf)-k))
		if _, err := s.w.Write(head[:]); err != nil {
			return fmt.Errorf("stage COPY: %w", err)
		}
		if _, err := s.w.Write(s.buf); err != nil {
			return fmt.Errorf("stage COPY: %w", err)
		}
	}
	return nil
}

// all iterates over the staged rows, in the order they came.
func (s *stage) all() iter.Seq2[*chunk.Chunk, error] {
	return func(yield func(*chunk.Chunk, error) bool) {
		for _, c := range s.mem {
			if !yield(c, nil) {
				return
			}
		}
		if s.file == nil {
			return
		}
		if err := s.w.Flush(); err != nil {
			yield(nil, fmt.Errorf("stage COPY: %w", err))
			return
		}
		r := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, 1<<62), 256<<10)
		typs := s.rel.Fields().Types()
		b := chunk.NewBuilder(typs, writeChunk)
		var head [8]byte
		var buf []byte
		for {
			if _, err := io.ReadFull(r, head[:]); err == io.EOF {
				break
			} else if err != nil {
				yield(nil, fmt.Errorf("read staged COPY: %w", err))
				return
			}
			k, n := int(binary.LittleEndian.Uint32(head[:])), int(binary.LittleEndian.Uint32(head[4:]))
			if cap(buf) < k+n {
				buf = make([]byte, k+n)
			}
			buf = buf[:k+n]
			if _, err := io.ReadFull(r, buf); err != nil {
				yield(nil, fmt.Errorf("read staged COPY: %w", err))
				return
			}
			if err := s.codec.Decode(buf[:k], buf[k:], b.Cols); err != nil {
				yield(nil, err)
				return
			}
			if c := b.Done(chunk.Insert); c != nil && !yield(c, nil) {
				return
			}
		}
		if c := b.Take(); c != nil {
			yield(c, nil)
		}
	}
}

// drop frees what the stage holds.
func (s *stage) drop() {
	s.mem = nil
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// A keySet finds repeated keys among many by their 128-bit hashes, 16 bytes a key.
type keySet struct{ m map[xxh3.Uint128]struct{} }

func newKeySet(n int) *keySet { return &keySet{make(map[xxh3.Uint128]struct{}, n)} }

// add reports whether k is new.
func (s *keySet) add(k string) bool {
	h := xxh3.HashString128(k)
	if _, ok := s.m[h]; ok {
		return false
	}
	s.m[h] = struct{}{}
	return true
}
