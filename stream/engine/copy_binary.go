package engine

import (
	"bytes"
	"encoding/binary"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// binaryHeader begins COPY's binary format: signature, flags, length of the header's extension.
const binaryHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// binarySignature is the length of the signature in it.
const binarySignature = 11

// binaryRows reads COPY's binary format.
type binaryRows struct {
	header bool // it was read
	skip   int  // bytes of its extension yet to come
}

// start takes the header off b; ok is false where it is not complete.
func (p *binaryRows) start(b []byte) (rest []byte, ok bool, err error) {
	n := min(len(b), binarySignature)
	if string(b[:n]) != binaryHeader[:n] {
		return nil, false, sqlerr.New(sqlerr.BadCopy, "COPY file signature not recognized")
	}
	if len(b) < len(binaryHeader) {
		return b, false, nil
	}
	flags := binary.BigEndian.Uint32(b[binarySignature:])
	switch {
	case flags&(1<<16) != 0:
		return nil, false, sqlerr.New(sqlerr.BadCopy, "invalid COPY file header (WITH OIDS)")
	case flags>>16 != 0:
		return nil, false, sqlerr.New(sqlerr.BadCopy, "unrecognized critical flags in COPY file header")
	}
	ext := int32(binary.BigEndian.Uint32(b[binarySignature+4:]))
	if ext < 0 {
		return nil, false, sqlerr.New(sqlerr.BadCopy, "invalid COPY file header (wrong length)")
	}
	p.header, p.skip = true, int(ext)
	return b[len(binaryHeader):], true, nil
}

// tuples takes all whole rows of b and returns the rest.
func (c *copyIn) tuples(b []byte, last bool) ([]byte, error) {
	p := c.binary
	if !p.header && len(b) > 0 {
		rest, ok, err := p.start(b)
		switch {
		case err != nil:
			return nil, err
		case !ok && last:
			return nil, sqlerr.New(sqlerr.BadCopy, "invalid COPY file header (missing flags)")
		case !ok:
			return rest, nil
		}
		b = rest
	}
	if !p.header && last {
		return nil, sqlerr.New(sqlerr.BadCopy, "COPY file signature not recognized")
	}
	n := min(p.skip, len(b))
	b, p.skip = b[n:], p.skip-n
	for !c.eof && len(b) > 0 {
		c.line++
		n, err := p.tuple(b, len(c.cols), &c.fields)
		if err != nil {
			return nil, c.at(err, "")
		}
		if n == 0 {
			c.line--
			break
		}
		b = b[n:]
		if c.fields == nil {
			c.eof = true
			break
		}
		if err := c.values(); err != nil {
			return nil, err
		}
	}
	switch {
	case c.eof && len(b) > 0:
		return nil, c.at(sqlerr.New(sqlerr.BadCopy, "received copy data after EOF marker"), "")
	case last && len(b) > 0:
		return nil, c.at(sqlerr.New(sqlerr.BadCopy, "unexpected EOF in COPY data"), "")
	}
	return b, nil
}

// tuple reads a row into fields, nil for the end marker, and returns its length; 0: it is not complete.
func (p *binaryRows) tuple(b []byte, want int, fields *[]field) (int, error) {
	if len(b) < 2 {
		return 0, nil
	}
	count := int(int16(binary.BigEndian.Uint16(b)))
	if count == -1 {
		*fields = nil
		return 2, nil
	}
	if count != want {
		return 0, sqlerr.New(sqlerr.BadCopy, "row field count is %d, expected %d", count, want)
	}
	at := 2
	out := (*fields)[:0]
	if out == nil {
		out = make([]field, 0, want)
	}
	for range count {
		if len(b) < at+4 {
			return 0, nil
		}
		n := int(int32(binary.BigEndian.Uint32(b[at:])))
		at += 4
		switch {
		case n == -1:
			out = append(out, field{null: true})
			continue
		case n < 0:
			return 0, sqlerr.New(sqlerr.BadCopy, "invalid field size")
		case len(b)-at < n:
			return 0, nil
		}
		out = append(out, field{text: b[at : at+n]})
		at += n
	}
	*fields = out
	return at, nil
}

// append adds a value to a column of its type.
func (p *binaryRows) append(col chunk.Column, f field) error {
	if f.null {
		col.AppendNull()
		return nil
	}
	// A value may stay in the column; the input's bytes do not.
	d, err := types.ParseBinary(col.Type(), bytes.Clone(f.text))
	if err == nil && col.Type().Mod != 0 {
		d, err = types.ApplyTypmod(col.Type(), d, false)
	}
	if err != nil {
		return err
	}
	col.Append(d)
	return nil
}

// tuples writes rows in COPY's binary format.
func (w *copyWriter) tuples(dst []byte, c *chunk.Chunk) ([]byte, error) {
	for r := range c.Len() {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Cols)))
		for _, col := range c.Cols {
			if col.Null(r) {
				dst = append(dst, 0xFF, 0xFF, 0xFF, 0xFF)
				continue
			}
			at := len(dst)
			dst = types.AppendBinary(append(dst, 0, 0, 0, 0), col.Type(), col.Datum(r))
			binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
	}
	return dst, nil
}
