package pgwire

import (
	"encoding/binary"
	"io"

	"streamdb/sql/sqlerr"
)

// An input cuts a stream of bytes into messages. It survives an interrupted read:
// what has arrived stays, and the next call goes on.
type input struct {
	r      io.Reader
	buf    []byte
	rp, wp int // buf[rp:wp] was read but not consumed
}

// header is the type and length that begin a message.
const header = 5

// errTooLong makes the client's connection end: what follows cannot be trusted.
func errTooLong(n, limit int) error {
	return sqlerr.New(sqlerr.ProtocolViolation, "message of %d bytes is longer than the limit of %d bytes", n, limit)
}

// limit is the longest body of a message type, -1 for a type no client may send.
func limit(typ byte) int {
	switch typ {
	case 'Q', 'P':
		return maxText
	case 'B', 'd', 'F':
		return maxData
	case 'C', 'D', 'E', 'H', 'S', 'X', 'c', 'f':
		return maxSmall
	}
	return -1
}

// ensure reads until n bytes are there. The buffer grows only as bytes arrive, so
// that a length alone costs no memory.
func (in *input) ensure(n int) error {
	for in.wp-in.rp < n {
		if in.rp == in.wp {
			in.rp, in.wp = 0, 0
		}
		if in.buf == nil {
			in.buf = make([]byte, idleInput)
		}
		if len(in.buf)-in.rp < n && in.rp > 0 {
			in.wp = copy(in.buf, in.buf[in.rp:in.wp])
			in.rp = 0
		}
		if in.wp == len(in.buf) {
			in.resize(max(2*len(in.buf), min(n, copyInput)))
		}
		m, err := in.r.Read(in.buf[in.wp:])
		in.wp += m
		if err != nil && in.wp-in.rp < n {
			if err == io.EOF && in.wp > in.rp {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// resize gives the buffer another length, at least that of what is in it.
func (in *input) resize(n int) {
	buf := make([]byte, max(n, in.wp-in.rp))
	in.wp = copy(buf, in.buf[in.rp:in.wp])
	in.rp, in.buf = 0, buf
}

// shrink frees a large buffer of a connection that has fallen idle.
func (in *input) shrink() {
	if len(in.buf) > keepInput && in.wp-in.rp <= idleInput {
		in.resize(idleInput)
	}
}

// next reads a message. The body is valid until the next call.
func (in *input) next() (typ byte, body []byte, err error) {
	n, err := in.head()
	if err != nil {
		return 0, nil, err
	}
	if err := in.ensure(header + n); err != nil {
		return 0, nil, err
	}
	typ = in.buf[in.rp]
	body = in.buf[in.rp+header : in.rp+header+n : in.rp+header+n]
	in.rp += header + n
	return typ, body, nil
}

// head reads the type and length of the next message, which stays there, and returns the length of its body.
func (in *input) head() (int, error) {
	if err := in.ensure(header); err != nil {
		return 0, err
	}
	typ := in.buf[in.rp]
	lim := limit(typ)
	if lim < 0 {
		return 0, sqlerr.New(sqlerr.ProtocolViolation, "invalid frontend message type %d", typ)
	}
	n := int64(int32(binary.BigEndian.Uint32(in.buf[in.rp+1:]))) - 4
	if n < 0 {
		return 0, sqlerr.New(sqlerr.ProtocolViolation, "invalid message length")
	}
	if n > int64(lim) {
		return 0, errTooLong(int(n), lim)
	}
	return int(n), nil
}

// at is the type of the message that begins off bytes after the next one's start, and where
// the one after it begins; ok is false if it is not there with all its bytes.
func (in *input) at(off int) (typ byte, next int, ok bool) {
	b := in.buf[in.rp:in.wp]
	if off < 0 || len(b)-off < header {
		return 0, 0, false
	}
	b = b[off:]
	n := int64(binary.BigEndian.Uint32(b[1:])) + 1
	if n < header || n > int64(len(b)) {
		return 0, 0, false
	}
	return b[0], off + int(n), true
}

// A fields takes a message body apart. After a fault all reads give zero and bad is set.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.bad, f.b = true, nil
		return nil
	}
	p := f.b[:n:n]
	f.b = f.b[n:]
	return p
}

func (f *fields) byte() byte {
	if p := f.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (f *fields) int16() int {
	if p := f.take(2); p != nil {
		return int(binary.BigEndian.Uint16(p))
	}
	return 0
}

func (f *fields) int32() int {
	if p := f.take(4); p != nil {
		return int(int32(binary.BigEndian.Uint32(p)))
	}
	return 0
}

// str is a string that a zero byte ends.
func (f *fields) str() string {
	for i, c := range f.b {
		if c == 0 {
			s := string(f.b[:i])
			f.b = f.b[i+1:]
			return s
		}
	}
	f.bad, f.b = true, nil
	return ""
}

// done reports a body that was too short or too long.
func (f *fields) done() error {
	if f.bad || len(f.b) > 0 {
		return sqlerr.New(sqlerr.ProtocolViolation, "invalid message format")
	}
	return nil
}
