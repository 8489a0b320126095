package batch

import (
	"iter"
	"slices"
	"sort"
)

// An Overlay has encoded rows that a scan sees over its snapshot: keys and values
// as storage.Codec writes them. It may be read by many only while nobody changes it.
type Overlay struct {
	m      map[string][]byte // nil value: deleted
	sorted []string          // keys in order; nil: to be made
}

// NewOverlay makes an empty overlay.
func NewOverlay() *Overlay { return &Overlay{m: map[string][]byte{}} }

// Put sets a row, or with a nil value deletes it.
func (o *Overlay) Put(key string, val []byte) {
	if _, ok := o.m[key]; !ok {
		o.sorted = nil
	}
	o.m[key] = val
}

// Remove forgets a key: the snapshot's row shows again.
func (o *Overlay) Remove(key string) {
	if _, ok := o.m[key]; ok {
		delete(o.m, key)
		o.sorted = nil
	}
}

// Get looks a key up; ok is false where the snapshot decides.
func (o *Overlay) Get(key []byte) (val []byte, ok bool) {
	val, ok = o.m[string(key)]
	return val, ok
}

// Len is the number of keys.
func (o *Overlay) Len() int { return len(o.m) }

// Scan iterates over keys in [from, to) in order; a nil to is the end.
func (o *Overlay) Scan(from, to []byte) iter.Seq2[string, []byte] {
	if o.sorted == nil {
		o.sorted = make([]string, 0, len(o.m))
		for k := range o.m {
			o.sorted = append(o.sorted, k)
		}
		slices.Sort(o.sorted)
	}
	return func(yield func(string, []byte) bool) {
		i := sort.SearchStrings(o.sorted, string(from))
		for ; i < len(o.sorted); i++ {
			k := o.sorted[i]
			if to != nil && k >= string(to) {
				return
			}
			if !yield(k, o.m[k]) {
				return
			}
		}
	}
}
