package batch

import (
	"context"
	"errors"
	"os"
	"syscall"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A tempFile holds rows that do not fit memory. It has no name, so that it goes
// with its last user or with the process.
type tempFile struct {
	f    *os.File
	at   int64
	buf  []byte
	refs int
}

func (e *Env) tempFile() (*tempFile, error) {
	f, err := os.CreateTemp(e.TempDir, "streamdb-query-*")
	if err != nil {
		return nil, errSpill("create", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, errSpill("unlink", err)
	}
	return &tempFile{f: f}, nil
}

func (t *tempFile) release() {
	if t.refs--; t.refs == 0 {
		t.f.Close()
	}
}

func errSpill(what string, err error) error {
	code := "58030" // io_error
	if errors.Is(err, syscall.ENOSPC) {
		code = sqlerr.DiskFull
	}
	return sqlerr.New(code, "could not %s temporary file: %w", what, err)
}

// A rowList is rows in a tempFile, in the order they were written.
type rowList struct {
	file   *tempFile
	typs   []types.Type
	blocks []block
	rows   int64
	bytes  int64 // as chunkBytes counts them
}

// A block is some rows of a list.
type block struct {
	at   int64
	size int32
	rows int32
}

// A block has at most blockRows rows and, unless one row is larger, about blockBytes bytes.
const (
	blockRows  = 1024
	blockBytes = 256 << 10
)

func (t *tempFile) list(typs []types.Type) *rowList {
	t.refs++
	return &rowList{file: t, typs: typs}
}

func (l *rowList) close() {
	if l.file != nil {
		l.file.release()
		l.file = nil
	}
}

// write appends the rows of c.
func (l *rowList) write(c *chunk.Chunk) error {
	bytes := chunkBytes(c)
	per := blockRows
	if bytes > blockBytes {
		per = int(max(1, min(blockRows, blockBytes*int64(c.Len())/bytes)))
	}
	for from := 0; from < c.Len(); from += per {
		to := min(from+per, c.Len())
		part := c
		if to-from < c.Len() {
			part = c.Slice(from, to)
		}
		t := l.file
		t.buf = appendRows(t.buf[:0], part)
		if _, err := t.f.WriteAt(t.buf, t.at); err != nil {
			return errSpill("write", err)
		}
		l.blocks = append(l.blocks, block{t.at, int32(len(t.buf)), int32(part.Len())})
		t.at += int64(len(t.buf))
		if cap(t.buf) > 4*blockBytes {
			t.buf = nil
		}
	}
	l.rows += int64(c.Len())
	l.bytes += bytes
	return nil
}

// A rowReader reads a list from its start.
type rowReader struct {
	list *rowList
	next int
	buf  []byte
}

func (l *rowList) reader() *rowReader { return &rowReader{list: l} }

func (r *rowReader) Next(ctx context.Context) (*chunk.Chunk, error) {
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	if r.next == len(r.list.blocks) {
		return nil, nil
	}
	b := r.list.blocks[r.next]
	r.next++
	if cap(r.buf) < int(b.size) {
		r.buf = make([]byte, b.size)
	}
	r.buf = r.buf[:b.size]
	if _, err := r.list.file.f.ReadAt(r.buf, b.at); err != nil {
		return nil, errSpill("read", err)
	}
	c, err := readRows(r.buf, r.list.typs, int(b.rows))
	if err != nil {
		return nil, errSpill("read", err)
	}
	return c, nil
}

// fanOut is how many parts rows are split into by hash.
const fanOut = 16

// partitions splits rows by hash into lists of one file.
type partitions struct {
	level int // splits of one level split rows of a part of the one before
	file  *tempFile
	parts [fanOut]*rowList
	bufs  [fanOut]*grower
	sels  [fanOut][]int
}

func (e *Env) partitions(typs []types.Type, level int) (*partitions, error) {
	f, err := e.tempFile()
	if err != nil {
		return nil, err
	}
	p := &partitions{level: level, file: f}
	for i := range p.parts {
		p.parts[i] = f.list(typs)
		p.bufs[i] = newGrower(typs, 0)
	}
	return p, nil
}

// add puts rows of c, whose hashes are given, into their parts; a nil sel is all.
func (p *partitions) add(c *chunk.Chunk, hash []uint64, sel []int) error {
	for i := range p.sels {
		p.sels[i] = p.sels[i][:0]
	}
	// The table of a part uses the hash as it is: what all rows of a part share must not be what the table goes by.
	part := func(i int) int { return int(types.Mix(hash[i], uint64(p.level+1)) >> 60) }
	if sel == nil {
		for i := range c.Len() {
			k := part(i)
			p.sels[k] = append(p.sels[k], i)
		}
	}
	for _, i := range sel {
		k := part(i)
		p.sels[k] = append(p.sels[k], i)
	}
	per := chunkBytes(c) / int64(c.Len())
	for k, sel := range p.sels {
		if len(sel) == 0 {
			continue
		}
		b := p.bufs[k]
		b.addSel(c, sel)
		if b.bytes += per * int64(len(sel)); b.n >= blockRows || b.bytes >= blockBytes/4 {
			if err := p.flush(k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *partitions) flush(k int) error {
	b := p.bufs[k]
	if b.n == 0 {
		return nil
	}
	if err := p.parts[k].write(b.chunk()); err != nil {
		return err
	}
	p.bufs[k] = newGrower(p.parts[k].typs, 0)
	return nil
}

// A spilled part of an operator's input, split level times.
type spilled struct {
	rows  *rowList
	level int
}

// lists writes what is left and hands over all lists, empty ones too.
func (p *partitions) lists() ([]*rowList, error) {
	for k := range p.bufs {
		if err := p.flush(k); err != nil {
			return nil, err
		}
	}
	p.file = nil
	return p.parts[:], nil
}

// finish appends the parts that have rows to those that are still to be done.
func (p *partitions) finish(todo []spilled) ([]spilled, error) {
	lists, err := p.lists()
	if err != nil {
		return todo, err
	}
	for _, l := range lists {
		if l.rows == 0 {
			l.close()
			continue
		}
		todo = append(todo, spilled{l, p.level + 1})
	}
	return todo, nil
}

// close lets go of the lists unless finish handed them over; nil is allowed.
func (p *partitions) close() {
	if p == nil || p.file == nil {
		return
	}
	for _, l := range p.parts {
		l.close()
	}
	p.file = nil
}
