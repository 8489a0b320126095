package storage

import (
	"bytes"
	"slices"
)

// A btree is a sorted map whose versions share structure: a root once published
// is never written again. A node is written in place only by the batch that made
// it, which its owner field tells.
type btree struct {
	root *bnode
	n    int
}

type bnode struct {
	owner *int     // the batch that made the node; compared by address
	keys  [][]byte // of entries, or the least key of each kid
	vals  []write  // leaves only
	kids  []*bnode // inner nodes only
}

const btreeWidth = 64

func (n *bnode) mine(owner *int) *bnode {
	if n.owner == owner {
		return n
	}
	return &bnode{owner: owner, keys: slices.Clone(n.keys), vals: slices.Clone(n.vals), kids: slices.Clone(n.kids)}
}

// find returns the first index whose key is at or above key, and whether it is equal.
func (n *bnode) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(n.keys, key, bytes.Compare)
}

// kid returns the index of the kid that holds key.
func (n *bnode) kid(key []byte) int {
	i, ok := n.find(key)
	if !ok && i > 0 {
		i--
	}
	return i
}

func (t btree) set(owner *int, w write) btree {
	if t.root == nil {
		t.root = &bnode{owner: owner}
	}
	root, right, grew := t.root.set(owner, w)
	if right != nil {
		root = &bnode{owner: owner, keys: [][]byte{root.keys[0], right.keys[0]}, kids: []*bnode{root, right}}
	}
	t.root = root
	if grew {
		t.n++
	}
	return t
}

func (n *bnode) set(owner *int, w write) (self, right *bnode, grew bool) {
	n = n.mine(owner)
	if n.kids == nil {
		i, ok := n.find(w.key)
		if ok {
			n.vals[i] = w
			return n, nil, false
		}
		n.keys = slices.Insert(n.keys, i, w.key)
		n.vals = slices.Insert(n.vals, i, w)
		return n, n.split(owner), true
	}
	i := n.kid(w.key)
	kid, more, grew := n.kids[i].set(owner, w)
	n.kids[i], n.keys[i] = kid, kid.keys[0]
	if more != nil {
		n.kids = slices.Insert(n.kids, i+1, more)
		n.keys = slices.Insert(n.keys, i+1, more.keys[0])
	}
	return n, n.split(owner), grew
}

func (n *bnode) split(owner *int) *bnode {
	if len(n.keys) <= btreeWidth {
		return nil
	}
	h := len(n.keys) / 2
	if n.kids == nil {
		r := &bnode{owner: owner, keys: slices.Clone(n.keys[h:]), vals: slices.Clone(n.vals[h:])}
		n.keys, n.vals = slices.Clone(n.keys[:h]), slices.Clone(n.vals[:h])
		return r
	}
	r := &bnode{owner: owner, keys: slices.Clone(n.keys[h:]), kids: slices.Clone(n.kids[h:])}
	n.keys, n.kids = slices.Clone(n.keys[:h]), slices.Clone(n.kids[:h])
	return r
}

func (t btree) delete(owner *int, key []byte) btree {
	if t.root == nil {
		return t
	}
	root, shrank := t.root.delete(owner, key)
	if shrank {
		t.n--
	}
	if len(root.keys) == 0 {
		root = nil
	}
	t.root = root
	return t
}

// delete lets nodes become small; an empty one goes.
func (n *bnode) delete(owner *int, key []byte) (*bnode, bool) {
	if n.kids == nil {
		i, ok := n.find(key)
		if !ok {
			return n, false
		}
		n = n.mine(owner)
		n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
		return n, true
	}
	i := n.kid(key)
	kid, shrank := n.kids[i].delete(owner, key)
	if !shrank {
		return n, false
	}
	n = n.mine(owner)
	if len(kid.keys) == 0 {
		n.keys, n.kids = slices.Delete(n.keys, i, i+1), slices.Delete(n.kids, i, i+1)
	} else {
		n.keys[i], n.kids[i] = kid.keys[0], kid
	}
	return n, true
}

func (t btree) get(key []byte) (write, bool) {
	n := t.root
	if n == nil {
		return write{}, false
	}
	for n.kids != nil {
		n = n.kids[n.kid(key)]
	}
	i, ok := n.find(key)
	if !ok {
		return write{}, false
	}
	return n.vals[i], true
}

// A treeCursor is a path from the root to an entry.
type treeCursor struct {
	root   *bnode
	prefix []byte
	path   []treeStep
	now    *write
}

type treeStep struct {
	n *bnode
	i int
}

func (c *treeCursor) seek(key []byte) bool {
	c.path, c.now = c.path[:0], nil
	if bytes.Compare(key, c.prefix) < 0 {
		key = c.prefix
	}
	n := c.root
	if n == nil {
		return false
	}
	for n.kids != nil {
		i := n.kid(key)
		c.path = append(c.path, treeStep{n, i})
		n = n.kids[i]
	}
	i, _ := n.find(key)
	c.path = append(c.path, treeStep{n, i})
	return c.settle()
}

func (c *treeCursor) next() bool {
	if c.now == nil {
		return false
	}
	c.path[len(c.path)-1].i++
	return c.settle()
}

// settle climbs from the end of a node and descends into the next one.
func (c *treeCursor) settle() bool {
	c.now = nil
	for {
		s := &c.path[len(c.path)-1]
		if s.i < len(s.n.keys) {
			if s.n.kids == nil {
				if bytes.HasPrefix(s.n.keys[s.i], c.prefix) {
					c.now = &s.n.vals[s.i]
				}
				return c.now != nil
			}
			c.path = append(c.path, treeStep{s.n.kids[s.i], 0})
			continue
		}
		c.path = c.path[:len(c.path)-1]
		if len(c.path) == 0 {
			return false
		}
		c.path[len(c.path)-1].i++
	}
}

func (c *treeCursor) key() []byte         { return c.now.key }
func (c *treeCursor) val() ([]byte, byte) { return c.now.val, c.now.meta }
func (c *treeCursor) err() error          { return nil }
func (c *treeCursor) close()              {}
