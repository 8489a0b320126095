package exec

import "sync/atomic"

// A Budget is the memory that the caches of all operators of a process may use
// together. Each operator registers a cache and drops what it used least lately when the
// budget is exceeded and its own share is, too: a small cache never pays for a large one.
type Budget struct {
	limit  int64
	used   atomic.Int64
	caches atomic.Int64
}

// NewBudget makes a budget of limit bytes; 0 or less: none, nothing is ever dropped.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Limit and Used are in bytes.
func (b *Budget) Limit() int64 { return b.limit }
func (b *Budget) Used() int64  { return b.used.Load() }

// register adds a cache. A nil budget is without limit.
func (b *Budget) register() *quota {
	if b != nil {
		b.caches.Add(1)
	}
	return &quota{b: b}
}

// A quota is one cache's part of a budget. It belongs to one actor.
type quota struct {
	b    *Budget
	used int64
}

// set says how many bytes the cache holds and returns how many of them it should
// give back: 0 while there is room.
func (q *quota) set(bytes int64) int64 {
	if q.b == nil {
		return 0
	}
	used := q.b.used.Add(bytes - q.used)
	q.used = bytes
	if q.b.limit <= 0 || used <= q.b.limit {
		return 0
	}
	// A little more than needed, so that it is not needed again at once.
	share := q.b.limit / max(1, q.b.caches.Load())
	if bytes <= share {
		return 0
	}
	return min(bytes-share*9/10, used-q.b.limit*9/10)
}

// close gives everything back.
func (q *quota) close() {
	if q.b != nil {
		q.b.used.Add(-q.used)
		q.b.caches.Add(-1)
		q.b = nil
	}
}
