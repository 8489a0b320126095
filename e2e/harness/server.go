package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Server is one streamdb process and the directory it keeps between its lives.
// Its methods are for one goroutine; Connect, Addr and Log are for any.
type Server struct {
	Bin  string
	Data string   // directory, or ":memory:"
	Args []string // after serve's own flags
	Env  []string // added to the environment

	addr, http string
	cmd        *exec.Cmd // nil: not running
	exited     chan struct{}
	waitErr    error // valid once exited is closed
	log        logTail
}

// NewServer picks addresses for a server; Start starts it.
func NewServer(bin, data string) (*Server, error) {
	s := &Server{Bin: bin, Data: data}
	return s, s.pickPorts()
}

func (s *Server) pickPorts() error {
	for _, to := range []*string{&s.addr, &s.http} {
		port, err := FreePort()
		if err != nil {
			return err
		}
		*to = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return nil
}

// Addr is where the server listens for clients.
func (s *Server) Addr() string { return s.addr }

// HTTP is where it serves /metrics.
func (s *Server) HTTP() string { return s.http }

// PID is the running process's id, 0 if there is none.
func (s *Server) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Log returns the last lines the server wrote, over all its lives.
func (s *Server) Log() string { return s.log.tail(120) }

// Launch starts the process and returns at once.
func (s *Server) Launch() error {
	if s.cmd != nil {
		return errors.New("the server is running")
	}
	args := append([]string{"serve", "--data", s.Data, "--listen", s.addr, "--http", s.http}, s.Args...)
	cmd := exec.Command(s.Bin, args...)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() { // ends with the process
		s.waitErr = cmd.Wait()
		close(exited)
	}()
	return nil
}

// Start launches the process and waits until it has answered a query.
func (s *Server) Start(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		if err := s.Launch(); err != nil {
			return err
		}
		err := s.WaitReady(ctx)
		if err == nil {
			return nil
		}
		s.Kill()
		if attempt == 3 || !strings.Contains(s.Log(), "address already in use") {
			return fmt.Errorf("start %s: %w\n%s", s.Bin, err, s.Log())
		}
		if err := s.pickPorts(); err != nil {
			return err
		}
	}
}

// WaitReady waits, at most 30 seconds, until the server answers a query.
func (s *Server) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return waitReady(ctx, s.addr, "dev", s.exited)
}

// Kill ends the process with SIGKILL and waits for its end.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// Stop asks the process to end and waits; an exit status other than 0 is an error.
func (s *Server) Stop(ctx context.Context) error {
	if s.cmd == nil {
		return nil
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		s.cmd = nil
		return s.waitErr
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("the server did not end: %w", ctx.Err())
	}
}

// Exited is closed when the current process has ended by itself or otherwise.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Connect opens a connection as root to database dev.
func (s *Server) Connect(ctx context.Context) (*pgconn.PgConn, error) {
	return Connect(ctx, s.addr, "dev")
}
