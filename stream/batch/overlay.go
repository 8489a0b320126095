package batch

import (
	"iter"
	"slices"
	"sync"
)

// An Overlay has encoded rows that a scan sees over its snapshot: keys and values
// as storage.Codec writes them. Several may read it while nobody changes it.
type Overlay struct {
	m     map[string][]byte // nil value: deleted
	bytes int64

	mu     sync.Mutex
	sorted []string // keys of m and, if stale, keys that were removed; in order
	fresh  []string // keys of m that are not in sorted
	stale  bool
}

// NewOverlay makes an empty overlay.
func NewOverlay() *Overlay { return &Overlay{m: map[string][]byte{}} }

// Put sets a row, or with a nil value deletes it.
func (o *Overlay) Put(key string, val []byte) {
	old, ok := o.m[key]
	if ok {
		o.bytes += int64(len(val) - len(old))
	} else {
		o.bytes += entryBytes(key, val)
		o.fresh = append(o.fresh, key)
	}
	o.m[key] = val
}

// Remove forgets a key: the snapshot's row shows again.
func (o *Overlay) Remove(key string) {
	if val, ok := o.m[key]; ok {
		o.bytes -= entryBytes(key, val)
		o.stale = true
		delete(o.m, key)
	}
}

func entryBytes(key string, val []byte) int64 { return int64(2*len(key)+len(val)) + 64 }

// Get looks a key up; ok is false where the snapshot decides.
func (o *Overlay) Get(key []byte) (val []byte, ok bool) {
	val, ok = o.m[string(key)]
	return val, ok
}

// Len is the number of keys.
func (o *Overlay) Len() int { return len(o.m) }

// Bytes estimates the memory that the overlay takes.
func (o *Overlay) Bytes() int64 { return o.bytes }

// Scan iterates over keys in [from, to) in order; a nil to is the end.
func (o *Overlay) Scan(from, to []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		keys := o.order()
		i, _ := slices.BinarySearch(keys, string(from))
		for _, k := range keys[i:] {
			if to != nil && k >= string(to) || !yield(k, o.m[k]) {
				return
			}
		}
	}
}

// order brings sorted up to date. What it gave before is left as it is.
func (o *Overlay) order() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.fresh) == 0 && !o.stale {
		return o.sorted
	}
	slices.Sort(o.fresh)
	out := make([]string, 0, len(o.m))
	old, fresh := o.sorted, o.fresh
	for len(old)+len(fresh) > 0 {
		var k string
		if len(fresh) == 0 || len(old) > 0 && old[0] <= fresh[0] {
			k, old = old[0], old[1:]
		} else {
			k, fresh = fresh[0], fresh[1:]
		}
		if _, ok := o.m[k]; ok && (len(out) == 0 || out[len(out)-1] != k) {
			out = append(out, k)
		}
	}
	o.sorted, o.fresh, o.stale = out, nil, false
	return out
}
