package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A headed is an entry of a layer with the eight bytes of its key that are looked at now.
type headed struct {
	head uint64
	i    uint32
}

// Fewer entries than this are compared, more are distributed.
const radixFrom = 256

// sort returns the entries in key order.
func (l *layer) sort() []uint32 {
	out := make([]uint32, len(l.ents))
	if l.ascending {
		for i := range out {
			out[i] = uint32(i)
		}
		return out
	}
	items := make([]headed, len(out))
	for i := range items {
		items[i].i = uint32(i)
	}
	l.sortFrom(items, make([]headed, len(out)), l.common)
	for i, it := range items {
		out[i] = it.i
	}
	return out
}

// sortFrom sorts items, whose keys all have the same first depth bytes: by the
// eight bytes after them, then what is equal in those by the eight after the
// prefix it shares, and so on. tmp is as long as items.
func (l *layer) sortFrom(items, tmp []headed, depth int) {
	for j := range items {
		items[j].head = head8(l.key(items[j].i)[depth:])
	}
	if len(items) < radixFrom {
		slices.SortFunc(items, func(a, b headed) int {
			if c := cmp.Compare(a.head, b.head); c != 0 {
				return c
			}
			return bytes.Compare(l.key(a.i)[depth:], l.key(b.i)[depth:])
		})
		return
	}
	radix(items, tmp)
	for at := 0; at < len(items); {
		end := at + 1
		for end < len(items) && items[end].head == items[at].head {
			end++
		}
		if run := items[at:end]; len(run) > 1 {
			// Heads are padded with zeros. Only where no key ends in one are they all shared.
			first := l.key(run[0].i)
			common, least := len(first), len(first)
			for _, it := range run[1:] {
				k := l.key(it.i)
				common, least = sharedPrefix(first[:common], k), min(least, len(k))
			}
			if least >= depth+8 {
				l.sortFrom(run, tmp[:len(run)], common)
			} else {
				slices.SortFunc(run, func(a, b headed) int { return bytes.Compare(l.key(a.i)[depth:], l.key(b.i)[depth:]) })
			}
		}
		at = end
	}
}

// radix sorts by head, least significant byte first. Bytes that are the same in all heads cost nothing.
func radix(items, tmp []headed) {
	var counts [8][256]uint32
	for _, it := range items {
		h := it.head
		for d := range counts {
			counts[d][byte(h>>(8*d))]++
		}
	}
	src, dst := items, tmp
	for d := range counts {
		shift := 8 * d
		c := &counts[d]
		if c[byte(src[0].head>>shift)] == uint32(len(src)) {
			continue
		}
		at := uint32(0)
		for b, n := range c {
			c[b] = at
			at += n
		}
		for _, it := range src {
			b := byte(it.head >> shift)
			dst[c[b]] = it
			c[b]++
		}
		src, dst = dst, src
	}
	if &src[0] != &items[0] {
		copy(items, src)
	}
}

func head8(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var x [8]byte
	copy(x[:], b)
	return binary.BigEndian.Uint64(x[:])
}

func sharedPrefix(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
