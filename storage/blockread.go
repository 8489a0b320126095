package storage

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"streamdb/sql/sqlerr"
)

// data reads a block's rows.
func (p *pin) data(object []byte, b *block) (blockRows, error) {
	val, _, err := p.v.get(b.dataKey(object))
	if err != nil {
		return blockRows{}, err
	}
	return p.rowsOf(b, val)
}

func (p *pin) rowsOf(b *block, val []byte) (blockRows, error) {
	if val == nil {
		if err := p.check(); err != nil { // the engine may have forgotten it by right
			return blockRows{}, err
		}
		return blockRows{}, sqlerr.New(sqlerr.DataCorrupted, "a block of rows is missing").WithDetail("last key %x", b.last)
	}
	r, err := readRows(val)
	if err == nil && r.n != b.n {
		err = errCorrupt
	}
	if err != nil {
		return blockRows{}, sqlerr.New(sqlerr.DataCorrupted, "block of rows: %w", err).WithDetail("last key %x", b.last)
	}
	return r, nil
}

// row reads an object's row by its full key; nil: absent.
func (p *pin) row(key []byte) ([]byte, error) {
	val, err := p.find(key)
	if err != nil {
		return nil, readError(err)
	}
	return val, p.check()
}

func (p *pin) find(key []byte) ([]byte, error) {
	var b *block // in whose range the key is; nil: none
	if o := p.blocks(key[0], objectID(key[1:])); o != nil && len(key) >= prefixLen+2 {
		raw := key[prefixLen:]
		l := o.list(int(VnodeOf(raw)))
		if i := l.seek(raw, p.epoch); i < len(l) && bytes.Compare(l[i].first, raw) <= 0 {
			b = l[i]
		}
	}
	if b != nil && b.alone.Load() {
		return p.inBlock(b, key)
	}
	val, meta, err := p.v.get(key)
	switch {
	case err != nil || meta == metaDead:
		return nil, err
	case meta == metaBig:
		return p.join(key, val)
	case val == nil && b != nil:
		return p.inBlock(b, key)
	}
	return val, nil
}

// inBlock looks a full key up in the block that has it if any has.
func (p *pin) inBlock(b *block, key []byte) ([]byte, error) {
	raw := key[prefixLen:]
	f := b.filter.Load()
	if f != nil && !f.may(xxh3.Hash(raw)) {
		return nil, nil
	}
	rows := b.rows.Load()
	if rows == nil {
		read, err := p.data(key[:prefixLen], b)
		if err != nil {
			return nil, err
		}
		rows = &read
		c := &p.ps.cache
		if f == nil {
			if err := c.filter(b, rows); err != nil {
				return nil, err
			}
		}
		c.keep(b, rows)
	}
	return rows.get(raw)
}

// cursor walks the rows of an object whose full keys start with prefix, be they in blocks or entries.
func (p *pin) cursor(prefix []byte) cursor {
	rows := p.v.cursor(prefix)
	o := p.blocks(prefix[0], objectID(prefix[1:]))
	if o == nil {
		return rows
	}
	return &blockCursor{rows: rows, p: p, o: o, prefix: bytes.Clone(prefix)}
}

// A blockCursor merges an object's blocks with the entries above them.
type blockCursor struct {
	rows   cursor
	rowOK  bool
	p      *pin
	o      *objectBlocks
	prefix []byte // of full keys

	list  blockList
	vnode int
	i     int  // the block in list
	blkOK bool // the blocks stand at a row
	read  bool // its rows are read; otherwise it stands at the first one
	data  blockRows
	have  *block // whose rows data are; nil: none
	at    int
	bkey  []byte // full key of the row of blocks
	bval  []byte

	ahead cursor // over the blocks' entries, once it is worth it; nil: none yet
	runs  int    // blocks read one after the other

	onBlk bool // the current row is a block's
	bad   error
}

// readAhead is how many blocks are looked up one by one before an iterator is made.
const readAhead = 2

func (c *blockCursor) seek(key []byte) bool {
	if bytes.Compare(key, c.prefix) < 0 {
		key = c.prefix
	}
	c.rowOK = c.rows.seek(key)
	raw := key[prefixLen:]
	c.runs, c.vnode = 0, 0
	switch len(raw) {
	case 0:
	case 1:
		c.vnode = int(raw[0]) << 8
	default:
		c.vnode = int(VnodeOf(raw))
	}
	c.list = c.o.list(c.vnode)
	c.i = c.list.seek(raw, c.p.epoch)
	if c.i < len(c.list) && bytes.Compare(c.list[c.i].first, raw) < 0 {
		if !c.load(c.list[c.i]) {
			return false
		}
		var err error
		if c.at, err = c.data.seek(raw); err != nil {
			return c.fail(err)
		}
		c.blkOK = true
		if !c.stand() {
			return false
		}
	} else {
		c.find()
	}
	return c.settle()
}

// find stands the blocks before the block at i, or the first one of a vnode after.
func (c *blockCursor) find() {
	for c.i == len(c.list) {
		c.vnode++
		if c.vnode >= len(c.o.vnodes) {
			c.blkOK = false
			return
		}
		c.list = c.o.vnodes[c.vnode]
		c.i = c.list.live(0, c.p.epoch)
	}
	c.read, c.at, c.blkOK = false, 0, true
	c.bkey = append(append(c.bkey[:0], c.prefix[:prefixLen]...), c.list[c.i].first...)
	c.bound()
}

// bound ends the blocks where their keys leave the prefix.
func (c *blockCursor) bound() { c.blkOK = c.blkOK && bytes.HasPrefix(c.bkey, c.prefix) }

func (c *blockCursor) load(b *block) bool {
	if c.have == b {
		c.read = true
		return true
	}
	var err error
	c.have = nil
	if c.runs++; c.runs <= readAhead {
		c.data, err = c.p.data(c.prefix[:prefixLen], b)
	} else {
		key := b.dataKey(c.prefix[:prefixLen])
		ok := false
		if c.ahead == nil {
			c.ahead = c.p.v.cursor(key[:1+prefixLen])
			ok = c.ahead.seek(key)
		} else if c.runs == readAhead+1 {
			ok = c.ahead.seek(key)
		} else if ok = c.ahead.next(); ok && !bytes.Equal(c.ahead.key(), key) {
			ok = c.ahead.seek(key)
		}
		var val []byte
		if ok && bytes.Equal(c.ahead.key(), key) {
			val, _ = c.ahead.val()
		}
		if err = c.ahead.err(); err == nil {
			c.data, err = c.p.rowsOf(b, val)
		}
	}
	if err != nil {
		return c.fail(err)
	}
	c.read, c.have = true, b
	return true
}

func (c *blockCursor) fail(err error) bool {
	c.bad, c.blkOK, c.rowOK, c.read = err, false, false, false
	return false
}

// stand takes key and value of the row at, or goes on to the next block.
func (c *blockCursor) stand() bool {
	if c.at >= c.data.n {
		c.i = c.list.live(c.i+1, c.p.epoch)
		c.find()
		return true
	}
	rest, val, ok := c.data.row(c.at)
	if !ok {
		return c.fail(errCorrupt)
	}
	c.bkey = append(append(append(c.bkey[:0], c.prefix[:prefixLen]...), c.data.prefix...), rest...)
	c.bval = val
	c.bound()
	return true
}

// step moves the blocks on by a row.
func (c *blockCursor) step() bool {
	if !c.read && !c.load(c.list[c.i]) {
		return false
	}
	c.at++
	return c.stand()
}

// settle chooses the lesser of the two rows, the entry where both have the key.
func (c *blockCursor) settle() bool {
	for {
		if !c.rowOK {
			if err := c.rows.err(); err != nil {
				return c.fail(err)
			}
			if !c.blkOK {
				return false
			}
			return c.take()
		}
		if c.blkOK {
			d := bytes.Compare(c.rows.key(), c.bkey)
			if d > 0 {
				return c.take()
			}
			if d == 0 && !c.step() {
				return false
			}
		}
		if _, meta := c.rows.val(); meta != metaDead {
			c.onBlk = false
			return true
		}
		c.rowOK = c.rows.next()
	}
}

// take makes the block's row the current one.
func (c *blockCursor) take() bool {
	c.onBlk = true
	if !c.read {
		return c.load(c.list[c.i]) && c.stand()
	}
	return true
}

func (c *blockCursor) next() bool {
	if c.onBlk {
		if !c.blkOK || !c.step() {
			return false
		}
	} else {
		if !c.rowOK {
			return false
		}
		c.rowOK = c.rows.next()
	}
	return c.settle()
}

// run returns how many rows follow the current one in its block that no entry lies
// before and that are below end (a full key; nil: none), of at most n. They are at+1 on in data.
func (c *blockCursor) run(n int, end []byte) int {
	if !c.onBlk || !c.read || !c.blkOK || c.at+1 >= c.data.n {
		return 0
	}
	last := c.list[c.i].last
	if c.rowOK && bytes.Compare(c.rows.key()[prefixLen:], last) <= 0 {
		return 0
	}
	if !bytes.HasPrefix(last, c.prefix[prefixLen:]) || end != nil && bytes.Compare(last, end[prefixLen:]) >= 0 {
		return 0
	}
	return min(n, c.data.n-c.at-1)
}

// pass moves on by n rows of a run; the current row is not to be looked at before next.
func (c *blockCursor) pass(n int) { c.at += n }

func (c *blockCursor) key() []byte {
	if c.onBlk {
		return c.bkey
	}
	return c.rows.key()
}

func (c *blockCursor) val() ([]byte, byte) {
	if c.onBlk {
		return c.bval, metaPlain
	}
	return c.rows.val()
}

func (c *blockCursor) err() error {
	if c.bad != nil {
		return c.bad
	}
	return c.rows.err()
}

func (c *blockCursor) close() {
	c.rows.close()
	if c.ahead != nil {
		c.ahead.close()
	}
}
