package pgwire

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// An output collects messages and writes them. Its buffer belongs to the
// connection's goroutine, except while that waits for the engine or for the
// client: then it is lent, and a notice of another goroutine goes out at once.
//
// Invariants: 1. buf holds whole messages whenever it is lent. 2. Who finds it not
// lent puts his message into pending, which the owner sends before it lends,
// writes or gets it back.
type output struct {
	nc  net.Conn
	buf []byte // from pool; nil: idle
	err error  // the first failed write; nothing is written after it

	mu      sync.Mutex
	lent    bool
	pending []byte

	pool *sync.Pool // of *[]byte
	sent func(n int)
}

// acquire gets a buffer at the end of idleness.
func (o *output) acquire() {
	if o.buf == nil {
		o.buf = (*o.pool.Get().(*[]byte))[:0]
	}
}

// release frees the buffer, which was written.
func (o *output) release() {
	if buf := o.buf; buf != nil {
		if o.buf = nil; cap(buf) >= flushAt && cap(buf) <= 4*flushAt {
			o.pool.Put(&buf)
		}
	}
}

// lend lets others send while the owner waits.
func (o *output) lend() {
	o.mu.Lock()
	if len(o.pending) > 0 {
		idle := len(o.buf) == 0
		o.drain()
		if idle { // nothing else would send it soon
			o.write()
		}
	}
	o.lent = true
	o.mu.Unlock()
}

// take ends lend.
func (o *output) take() {
	o.mu.Lock()
	o.lent = false
	o.mu.Unlock()
}

// drain moves what others left into buf. The caller holds mu and buf.
func (o *output) drain() {
	if len(o.pending) > 0 {
		o.buf = append(o.buf, o.pending...)
		o.pending = nil
	}
}

// others sends a message from any goroutine; now: at once if that is possible.
func (o *output) others(msg pgproto3.BackendMessage, now bool) {
	b, err := msg.Encode(nil)
	if err != nil {
		return // only a message over 1 GB
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lent || !now {
		o.pending = append(o.pending, b...)
		return
	}
	o.buf = append(o.buf, b...)
	o.write()
}

// send adds a message.
func (o *output) send(msg pgproto3.BackendMessage) {
	b, err := msg.Encode(o.buf)
	if err != nil {
		if o.err == nil {
			o.err = err
		}
		return
	}
	o.buf = b
}

// message adds a message of a type and a body.
func (o *output) message(typ byte, body []byte) {
	o.buf = append(o.buf, typ)
	o.buf = binary.BigEndian.AppendUint32(o.buf, uint32(len(body)+4))
	o.buf = append(o.buf, body...)
}

// flush writes what has been collected. A failed write ends the connection.
func (o *output) flush() error {
	o.mu.Lock()
	o.drain()
	o.mu.Unlock()
	o.write()
	return o.err
}

func (o *output) write() {
	if len(o.buf) > 0 && o.err == nil {
		var n int
		n, o.err = o.nc.Write(o.buf)
		o.sent(n)
	}
	o.buf = o.buf[:0]
}
