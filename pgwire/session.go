package pgwire

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/sqlerr"
	"streamdb/stream/engine"
)

// A conn is one client's connection. All but what mu guards belongs to its goroutine.
type conn struct {
	srv  *Server
	nc   net.Conn
	in   input
	out  output
	db   *engine.DB
	sess *engine.Session // nil: not started up
	key  cancelKey

	stmts    map[string]*statement
	portals  map[string]*portal
	implicit bool // BeginImplicit was called and EndImplicit is due
	skip     bool // an extended message failed: messages are ignored up to the next Sync

	mu      sync.Mutex
	ctx     context.Context         // of the running statement; nil: none
	cancel  context.CancelCauseFunc // of ctx
	ending  error                   // the session ends before its next message; nil: it goes on
	doomed  error                   // whatever runs is cancelled with this; nil: nothing is
	reading bool                    // waiting for bytes of the client
	woken   bool                    // the read deadline was set to end that wait
	watch   *time.Timer             // looks after the client while a statement runs
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, stmts: map[string]*statement{}, portals: map[string]*portal{}}
	c.in.r = received{c}
	c.out.nc, c.out.pool, c.out.sent = nc, &s.bufs, func(n int) { s.metrics.out.Add(float64(n)) }
	return c
}

// serve runs the connection to its end.
func (c *conn) serve() {
	defer c.close()
	defer func() {
		if r := recover(); r != nil {
			c.srv.log.Error("a session has failed", "panic", r, "stack", string(debug.Stack()))
			c.out.take()
			c.fatal(sqlerr.New(sqlerr.Internal, "internal error: %v", r))
		}
	}()
	err := c.startup()
	if err == nil {
		err = c.loop()
	}
	var e *sqlerr.Error
	if errors.As(err, &e) {
		c.fatal(e)
	}
}

// close frees all that the connection holds.
func (c *conn) close() {
	defer c.nc.Close()
	c.finish()
	c.closePortals()
	if c.sess != nil {
		c.srv.leave(c.key)
		c.sess.Close()
	}
}

// fatal tells the client why its connection ends. It then waits a moment for the client to hang
// up: closing with bytes unread would make the system throw the message away.
func (c *conn) fatal(e *sqlerr.Error) {
	c.srv.log.Debug("connection ended", "remote", c.nc.RemoteAddr().String(), "code", e.Code, "err", e.Message)
	c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	c.out.acquire()
	c.out.send(errorResponse(e, "FATAL", ""))
	if c.out.flush() != nil {
		return
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		io.CopyN(io.Discard, c.nc, 1<<20)
	}
}

// A received is the connection as its input sees it: reads that can be woken.
type received struct{ c *conn }

// Read waits for the client. It returns conn.ending when the session is to end, and
// errInterrupted when the statement that waits for data was cancelled.
func (r received) Read(p []byte) (int, error) {
	c := r.c
	c.mu.Lock()
	if err := c.stopped(); err != nil {
		c.mu.Unlock()
		return 0, err
	}
	c.reading = true
	c.mu.Unlock()

	c.out.lend()
	n, err := c.nc.Read(p)
	c.out.take()
	c.srv.metrics.in.Add(float64(n))

	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	if c.woken {
		c.woken = false
		c.nc.SetReadDeadline(time.Time{})
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			err = c.stopped()
		}
	}
	if n > 0 {
		err = nil
	}
	return n, err
}

// stopped says why nothing more is to be read; nil: it may be. The caller holds mu.
func (c *conn) stopped() error {
	if c.ctx == nil {
		return c.ending
	}
	if c.ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// wake ends a wait for the client's bytes. The caller holds mu.
func (c *conn) wake() {
	if c.reading && c.stopped() != nil {
		c.woken = true
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// end makes the session end when its running statement has. Any goroutine may call it.
func (c *conn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending == nil {
		c.ending = why
	}
	c.wake()
}

// interrupt cancels the running statement. Any goroutine may call it.
func (c *conn) interrupt(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why != errCanceled {
		c.doomed = why
	}
	if c.cancel != nil {
		c.cancel(why)
		c.wake()
	}
}

// begin marks ctx as that of the running statement, which interrupt cancels.
func (c *conn) begin(ctx context.Context, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.cancel = ctx, cancel
	if c.doomed != nil {
		cancel(c.doomed)
	}
	if c.watch == nil {
		c.watch = time.AfterFunc(watchEvery, c.look)
	} else {
		c.watch.Reset(watchEvery)
	}
}

// finish ends begin.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.cancel = nil, nil
	if c.watch != nil {
		c.watch.Stop()
	}
}

// look cancels the running statement if the client has gone.
func (c *conn) look() {
	if peerGone(c.nc) {
		c.interrupt(errClientGone)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.watch.Reset(watchEvery)
	}
}

// notice sends a notice of the engine; any goroutine may call it.
func (c *conn) notice(n *engine.Notice) { c.out.others(noticeResponse(n), true) }

// changed tells the client of a setting's new value, before the next ReadyForQuery.
func (c *conn) changed(name, value string) {
	c.out.others(&pgproto3.ParameterStatus{Name: name, Value: value}, false)
}

// wait runs f, which may take long, and lets notices through meanwhile.
func (c *conn) wait(f func() error) error {
	c.out.lend()
	defer c.out.take()
	return f()
}

// loop reads messages and answers them. It returns why the session ends: an
// *sqlerr.Error if the client is to be told.
func (c *conn) loop() error {
	if err := c.ready(); err != nil {
		return err
	}
	for {
		if c.in.rp == c.in.wp {
			c.in.shrink()
			if len(c.out.buf) == 0 {
				c.out.release()
			}
		}
		c.mu.Lock()
		err := c.ending
		c.mu.Unlock()
		if err != nil {
			return err
		}
		typ, body, err := c.in.next()
		if err != nil {
			return err
		}
		c.out.acquire()
		if err := c.message(typ, body); err != nil {
			return err
		}
		if len(c.out.buf) >= flushAt {
			if err := c.out.flush(); err != nil {
				return err
			}
		}
	}
}

// message answers one message. An error ends the session.
func (c *conn) message(typ byte, body []byte) error {
	if c.skip && typ != 'S' && typ != 'X' {
		return nil
	}
	f := &fields{b: body}
	var text string // what error positions count in
	var err error
	switch typ {
	case 'Q':
		return c.query(f)
	case 'P':
		text, err = c.parse(f)
	case 'B':
		text, err = c.bind(f)
	case 'D':
		text, err = c.describe(f)
	case 'E':
		text, err = c.execute(f)
	case 'C':
		err = c.closeMessage(f)
	case 'H':
		return c.out.flush()
	case 'S':
		return c.sync()
	case 'F':
		if err := c.fail(sqlerr.Unsupported("the function call protocol"), ""); err != nil {
			return err
		}
		return c.ready()
	case 'd', 'c', 'f':
		// The rest of a COPY that has failed: the client did not know yet.
		return nil
	default: // 'X'; input lets no other through
		return errStop
	}
	if err != nil {
		c.skip = true
		return c.fail(err, text)
	}
	return nil
}

// fail reports an error that ends a statement, not the session, unless the session
// is ending too. text is what the error's position counts in.
func (c *conn) fail(err error, text string) error {
	if c.out.err != nil || err == errStop || errors.Is(err, errClientGone) {
		return errStop
	}
	if errors.Is(err, errShutdown) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = errCanceled
	}
	c.closePortals()
	c.sess.Fail()
	if c.implicit {
		c.implicit = false
		// There is nothing to commit, and so nothing to wait for or to fail.
		_ = c.sess.EndImplicit(context.Background(), false)
	}
	r := errorResponse(err, "ERROR", text)
	c.srv.log.Debug("statement failed", "session", c.key.id, "code", r.Code, "err", r.Message)
	c.out.send(r)
	return nil
}

// ready sends ReadyForQuery and all before it. Outside a transaction block portals end here.
func (c *conn) ready() error {
	c.mu.Lock()
	lost := c.ending == errLostSync
	c.mu.Unlock()
	if lost {
		return errLostSync
	}
	status := c.sess.Status()
	if status == 'I' {
		c.closePortals()
	}
	c.out.mu.Lock()
	c.out.drain()
	c.out.mu.Unlock()
	c.out.send(&pgproto3.ReadyForQuery{TxStatus: status})
	return c.out.flush()
}
