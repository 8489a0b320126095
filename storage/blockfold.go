package storage

import "bytes"

// fold takes a block apart: what it holds, the entries above it and the epoch's
// changes are walked together, and each row that is left is written once.
func (x *objectWriter) fold(g segment) bool {
	b, p := g.b, x.w.p
	rows, err := p.data(x.prefix, b)
	if err != nil {
		return x.fail(err)
	}
	x.check, x.old, x.same, x.mixed = false, b, false, false
	refs := x.o.refs[g.from:g.to]
	entry, err := x.seek(b.first)
	if err != nil {
		return x.fail(err)
	}
	var packed, packedVal []byte // the block's next row
	read := func(i int) bool {
		packed = nil
		if i < rows.n {
			rest, val, ok := rows.row(i)
			if !ok {
				return x.fail(errCorrupt)
			}
			packed, packedVal = append(append(packed, rows.prefix...), rest...), val
		}
		return true
	}
	if !read(0) {
		return false
	}
	for i := 0; ; {
		if entry != nil && bytes.Compare(entry, b.last) > 0 {
			entry = nil
		}
		var key []byte
		for _, k := range [][]byte{packed, entry} {
			if k != nil && (key == nil || bytes.Compare(k, key) < 0) {
				key = k
			}
		}
		changed := false
		if len(refs) > 0 {
			k := x.o.key(refs[0])
			c := -1
			if key != nil {
				c = bytes.Compare(k, key)
			}
			if c < 0 {
				key = k
			}
			changed = c <= 0
		}
		if key == nil {
			break
		}
		inBlock := packed != nil && bytes.Equal(packed, key)
		hasEntry := entry != nil && bytes.Equal(entry, key)
		ok := true
		switch {
		case changed:
			ok = x.left(g, key, x.o.val(refs[0]), hasEntry)
			refs = refs[1:]
		case hasEntry:
			val, meta := x.entries.val()
			if err := x.entries.err(); err != nil {
				return x.fail(err)
			}
			if meta == metaDead {
				ok = x.entry(key, nil)
			} else if g.dense && meta == metaPlain && fits(key, val, x.w.s.o.packBytes) {
				ok = x.pack(key, val, true)
			} else {
				x.mixed = true
			}
		default:
			ok = x.left(g, key, packedVal, false)
		}
		if !ok {
			return false
		}
		if inBlock {
			if i++; !read(i) {
				return false
			}
		}
		if hasEntry {
			entry = nil
			if x.entries.next() {
				entry = x.entries.key()[prefixLen:]
			}
			if err := x.entries.err(); err != nil {
				return x.fail(err)
			}
		}
	}
	if !x.flush() {
		return false
	}
	c := x.w.change(x.d, b)
	c.removed = append(c.removed, b)
	return x.same || x.yield(write{key: b.dataKey(x.prefix)}) && x.yield(write{key: b.indexKey(x.prefix)})
}

// left writes a row that a fold leaves, or none where val is nil; hasEntry: it has an entry now.
func (x *objectWriter) left(g segment, key, val []byte, hasEntry bool) bool {
	switch {
	case val == nil && !hasEntry:
		return true
	case val != nil && g.dense && fits(key, val, x.w.s.o.packBytes):
		return x.pack(key, val, hasEntry)
	}
	x.mixed = x.mixed || val != nil
	return x.entry(key, val)
}
