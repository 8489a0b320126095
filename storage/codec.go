package storage

import (
	"encoding/binary"
	"fmt"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A Codec turns rows of one Desc into keys and values and back. Keys are raw:
// vnode, then the key columns, without tag and object id. It is immutable and
// may be shared between goroutines.
type Codec struct {
	desc Desc
	key  []keyCol
	val  []valCol
	dist []int
	// read is the decoding of all columns, which Decode uses.
	read plan
}

// NewCodec makes the codec of d.
func NewCodec(d Desc) *Codec {
	c := &Codec{desc: d, dist: d.Dist}
	fromKey := make([]bool, len(d.Schema))
	sized := true
	for i, col := range d.Key {
		t := d.Schema[col].Type
		k := keyCol{col: col, kind: t.Kind(), bpchar: t.OID == types.OIDBpchar, desc: d.Desc != nil && d.Desc[i]}
		c.key = append(c.key, k)
		fromKey[col] = fromKey[col] || sized && k.inKey()
		sized = sized && k.sized()
	}
	for col, f := range d.Schema {
		if !fromKey[col] {
			c.val = append(c.val, valCol{col: col, kind: f.Type.Kind(), float4: f.Type.OID == types.OIDFloat4, typ: f.Type})
		}
	}
	all := make([]int, len(d.Schema))
	for i := range all {
		all[i] = i
	}
	c.read = c.plan(all)
	return c
}

// Desc returns what the codec was made of.
func (c *Codec) Desc() Desc { return c.desc }

// AppendKey appends row i's key; cols are all columns of the schema. Where many
// rows are encoded, chunk.Vnodes once and AppendKeyVnode are faster.
func (c *Codec) AppendKey(dst []byte, cols []chunk.Column, i int) []byte {
	return c.AppendKeyVnode(dst, c.vnode(cols, i), cols, i)
}

func (c *Codec) vnode(cols []chunk.Column, i int) uint16 {
	if len(c.dist) == 0 || c.desc.Vnodes <= 1 {
		return 0
	}
	one := make([]chunk.Column, len(c.dist))
	at := make([]int, len(c.dist))
	for j, d := range c.dist {
		one[j], at[j] = cols[d].Slice(i, i+1), j
	}
	return chunk.Vnodes(one, at, 1, c.desc.Vnodes)[0]
}

// Vnodes returns the vnode of each of the first n rows; nil: all are in vnode 0.
func (c *Codec) Vnodes(cols []chunk.Column, n int) []uint16 {
	if len(c.dist) == 0 || c.desc.Vnodes <= 1 {
		return nil
	}
	return chunk.Vnodes(cols, c.dist, n, c.desc.Vnodes)
}

// AppendKeyVnode appends row i's key, which the caller knows to be in vnode.
func (c *Codec) AppendKeyVnode(dst []byte, vnode uint16, cols []chunk.Column, i int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, vnode)
	for j := range c.key {
		k := &c.key[j]
		dst = k.append(dst, cols[k.col], i)
	}
	return dst
}

// AppendPrefix appends what the keys of vnode start with when their first key
// columns have the values at i of keyCols (the first k key columns alone, in key order).
func (c *Codec) AppendPrefix(dst []byte, vnode uint16, keyCols []chunk.Column, i int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, vnode)
	for j, col := range keyCols {
		dst = c.key[j].append(dst, col, i)
	}
	return dst
}

// AppendValue appends row i's value: the columns that the key does not give
// back. A nil column counts as NULL.
func (c *Codec) AppendValue(dst []byte, cols []chunk.Column, i int) []byte {
	format := len(dst)
	dst = append(dst, rowPlain)
	dst = binary.AppendUvarint(dst, uint64(len(c.val)))
	nulls := false
	for j := range c.val {
		if col := cols[c.val[j].col]; col == nil || col.Null(i) {
			nulls = true
			break
		}
	}
	if !nulls {
		for j := range c.val {
			v := &c.val[j]
			dst = v.append(dst, cols[v.col], i)
		}
		return dst
	}
	dst[format] = rowNulls
	bitmap := len(dst)
	for range (len(c.val) + 7) / 8 {
		dst = append(dst, 0)
	}
	for j := range c.val {
		v := &c.val[j]
		if col := cols[v.col]; col == nil || col.Null(i) {
			dst[bitmap+j/8] |= 1 << (j % 8)
			continue
		}
		dst = v.append(dst, cols[v.col], i)
	}
	return dst
}

// Decode appends the row of key and val to into: one column a schema column.
// After an error, into may hold part of a row.
func (c *Codec) Decode(key, val []byte, into []chunk.Column) error {
	return c.decoded(key, c.read.decode(key, val, into, nil))
}

// DecodeCols appends only the given columns: into[j] gets column cols[j]. Where
// many rows are read, a Decoder is faster.
func (c *Codec) DecodeCols(key, val []byte, cols []int, into []chunk.Column) error {
	p := c.plan(cols)
	return c.decoded(key, p.decode(key, val, into, nil))
}

func (c *Codec) decoded(key []byte, err error) error {
	if err == nil {
		return nil
	}
	return sqlerr.New(sqlerr.DataCorrupted, "read %s: %w", c.desc.label(), err).WithDetail("key %x", key)
}

func (d Desc) label() string {
	if d.Name == "" {
		return fmt.Sprintf("object %d", d.ID)
	}
	return fmt.Sprintf("%q", d.Name)
}

// A Decoder reads chosen columns of many rows. Its strings share blocks of
// memory, which spares an allocation a string. It is not safe for concurrent use.
type Decoder struct {
	c *Codec
	p plan
	a stringArena

	key []byte // of a block's row
}

// NewDecoder makes a decoder of the given schema columns.
func (c *Codec) NewDecoder(cols []int) *Decoder {
	d := &Decoder{c: c, p: c.plan(cols)}
	return d
}

// decodeRun appends rows from to from+n-1 of a block.
func (d *Decoder) decodeRun(rows *blockRows, from, n int, into []chunk.Column) error {
	d.key = append(d.key[:0], rows.prefix...)
	for i := range n {
		rest, val, ok := rows.row(from + i)
		if !ok {
			return d.c.decoded(d.key, errCorrupt)
		}
		if len(d.p.key) > 0 {
			d.key = append(d.key[:len(rows.prefix)], rest...)
		}
		if err := d.p.decode(d.key, val, into, &d.a); err != nil {
			return d.c.decoded(d.key, err)
		}
	}
	return nil
}

// Decode appends the decoder's columns of a row: into[j] gets column cols[j].
func (d *Decoder) Decode(key, val []byte, into []chunk.Column) error {
	if err := d.p.decode(key, val, into, &d.a); err != nil {
		return d.c.decoded(key, err)
	}
	return nil
}
