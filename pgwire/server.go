package pgwire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"streamdb/stream/engine"
)

// Options of a Server; the zero value of each field means what its comment says.
type Options struct {
	MaxConnections int           // sessions at once; 0: 1000
	Grace          time.Duration // what a running statement is given at Shutdown before it is cancelled; 0: 500 ms
	StartupTimeout time.Duration // for a client to send its start-up packet; 0: one minute
	Logger         *slog.Logger  // nil: discard
	Registerer     prometheus.Registerer
}

// A Server accepts clients of one database. Until Open is called they are told
// that it is starting.
type Server struct {
	o       Options
	log     *slog.Logger
	metrics *metrics
	db      atomic.Pointer[engine.DB]
	bufs    sync.Pool // of *[]byte, write buffers
	wg      sync.WaitGroup

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	keys      map[cancelKey]*conn // sessions, by what a CancelRequest names
	closing   bool
}

// A cancelKey is what BackendKeyData told the client.
type cancelKey struct{ id, secret uint32 }

// NewServer makes a server; Serve lets clients in, and Open gives them the database.
func NewServer(o Options) *Server {
	if o.MaxConnections <= 0 {
		o.MaxConnections = 1000
	}
	if o.Grace <= 0 {
		o.Grace = 500 * time.Millisecond
	}
	if o.StartupTimeout <= 0 {
		o.StartupTimeout = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, log: o.Logger, metrics: newMetrics(o.Registerer), listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, keys: map[cancelKey]*conn{}}
	s.bufs.New = func() any {
		b := make([]byte, 0, flushAt+flushAt/4)
		return &b
	}
	return s
}

// Open lets clients use db.
func (s *Server) Open(db *engine.DB) { s.db.Store(db) }

// Serve accepts connections on l until Shutdown, when it returns nil, or until
// the listener fails for good.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	wait := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			wait = 0
			s.start(nc)
			continue
		}
		if s.isClosing() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// Out of file descriptors, mostly: some will come free.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		s.log.Warn("a connection could not be accepted", "err", err, "wait", wait)
		time.Sleep(wait)
	}
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// start runs a connection. Many more than there may be sessions are turned away
// unheard: a session too many is told so, a flood is not.
func (s *Server) start(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.closing || len(s.conns) >= 2*s.o.MaxConnections+64 {
		s.mu.Unlock()
		s.metrics.refused.Inc()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() { // ends when the client or Shutdown closes the connection
		defer s.wg.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}

// admit makes c's session known to CancelRequests. It fails when there are too many sessions.
func (s *Server) admit(c *conn, key cancelKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errShuttingDown
	}
	if len(s.keys) >= s.o.MaxConnections {
		return errTooMany
	}
	s.keys[key] = c
	s.metrics.opened.Inc()
	s.metrics.connections.Inc()
	return nil
}

func (s *Server) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) >= s.o.MaxConnections
}

func (s *Server) leave(key cancelKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
	s.metrics.connections.Dec()
}

// cancel answers a CancelRequest. A wrong key is ignored.
func (s *Server) cancel(key cancelKey) {
	s.mu.Lock()
	c := s.keys[key]
	s.mu.Unlock()
	if c != nil {
		s.metrics.canceled.Inc()
		c.interrupt(errCanceled)
	}
}

// Shutdown lets nobody in any more and ends all sessions with 57P01: idle ones at
// once, the others after their statement, which is cancelled when Options.Grace is
// over. It returns when all have ended; when ctx ends first it closes their
// connections and returns ctx's error once they are gone.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.each(func(c *conn) { c.end(errShutdown) })
	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	grace := time.NewTimer(s.o.Grace)
	defer grace.Stop()
	select {
	case <-gone:
		return nil
	case <-grace.C:
		s.each(func(c *conn) { c.interrupt(errShutdown) })
	case <-ctx.Done():
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	s.each(func(c *conn) {
		c.interrupt(errShutdown)
		c.nc.Close()
	})
	<-gone
	return ctx.Err()
}

func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}
