package batch

import (
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A budget is the memory that the operators of one query hold together.
type budget struct {
	limit, used int64
	shares      int64
}

// A share is one operator's part of a budget.
type share struct {
	b    *budget
	held int64
}

func (b *budget) open() *share {
	b.shares++
	return &share{b: b}
}

// set says how much is held now. It reports whether that is too much: the query is
// over its limit, and this operator over its fair part, so that one that came late
// can still hold something.
func (s *share) set(bytes int64) (over bool) {
	s.b.used += bytes - s.held
	s.held = bytes
	return s.b.used > s.b.limit && bytes > s.b.limit/(2*s.b.shares)
}

func (s *share) add(bytes int64) (over bool) { return s.set(s.held + bytes) }

// close gives all back; a nil share has nothing.
func (s *share) close() {
	if s == nil || s.b == nil {
		return
	}
	s.b.used -= s.held
	s.b.shares--
	s.b, s.held = nil, 0
}

// errMemory is for what cannot spill.
func (e *Env) errMemory(what string) error {
	return sqlerr.New(sqlerr.OutOfMemory, "%s needs more than the %d MB of memory that a query may use", what, max(1, e.Memory>>20)).
		WithHint("A materialized view or an index can keep such a result without holding it in memory.")
}

// chunkBytes estimates the memory of a chunk.
func chunkBytes(c *chunk.Chunk) int64 {
	n := int64(8 * c.Len()) // row numbers, and rows without columns
	for _, col := range c.Cols {
		n += columnBytes(col)
	}
	return n
}

func columnBytes(col chunk.Column) int64 {
	n := int64(col.Len())
	switch v := col.(type) {
	case *chunk.Vec[string]:
		n *= 16
		for _, s := range v.Data {
			n += int64(len(s))
		}
		return n
	case *chunk.Vec[bool]:
		return n
	case *chunk.Vec[int64], *chunk.Vec[float64]:
		return n * 8
	case *chunk.Vec[types.Decimal]:
		return n * 24
	case *chunk.Vec[*types.List]:
		n *= 8
		for _, l := range v.Data {
			n += listBytes(l)
		}
		return n
	}
	return n * 16
}

func listBytes(l *types.List) int64 {
	if l == nil {
		return 0
	}
	n := int64(64 + 56*len(l.Items))
	for _, d := range l.Items {
		switch d.Kind() {
		case types.KindString:
			n += int64(len(d.Str()))
		case types.KindList:
			n += listBytes(d.List())
		case types.KindDecimal:
			n += 24
		case types.KindInterval:
			n += 16
		}
	}
	return n
}
