package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"streamdb/pgwire"
	"streamdb/sql/parser"
	"streamdb/stream/engine"
)

// serve is `streamdb serve` with its flags.
type serve struct {
	Data   string          `default:"./data" placeholder:"DIR" help:"Directory of the data, made if missing; :memory: keeps nothing."`
	Listen string          `default:"127.0.0.1:4566" placeholder:"ADDR" help:"Where PostgreSQL clients connect."`
	HTTP   string          `name:"http" default:"127.0.0.1:4567" placeholder:"ADDR" help:"Where /metrics, /healthz and /readyz are served; empty: nowhere."`
	Config kong.ConfigFlag `placeholder:"FILE" help:"TOML file of flags by their names; flags and STREAMDB_… variables beat it."`
	Pprof  bool            `help:"Serve Go's profiles at /debug/pprof/ too."`

	Store           string        `default:"badger" enum:"badger,memory" help:"Storage engine: ${enum}."`
	StateCache      size          `default:"0" placeholder:"SIZE" help:"Memory of the caches of all views' operators together; 0: a share of the memory limit, or 512MiB."`
	MemoryLimit     size          `default:"0" placeholder:"SIZE" help:"Memory of the whole process, such as 2GiB; 0: small caches, and the collector works harder near three quarters of the machine's memory."`
	DiskReserve     size          `default:"0" placeholder:"SIZE" help:"Free disk space below which writes are refused; 0: by the size of the data, at least 1GiB."`
	Parallelism     int           `default:"0" help:"Actors of each fragment; 0: the number of cores, at least 2."`
	BarrierInterval time.Duration `default:"100ms" help:"Time between epochs while rows arrive."`
	AcceptLoss      bool          `help:"Open a store although committed epochs are missing. What they held is gone."`

	MaxConnections int    `default:"1000" help:"Sessions at once."`
	InsecureListen bool   `help:"Allow --listen on an address that other machines reach. There are no passwords yet."`
	LogLevel       string `default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: ${enum}."`
	LogFormat      string `default:"text" enum:"text,json" help:"Form of the log on standard error: ${enum}."`
}

const (
	// exitStore is the exit status when the store has failed: EX_SOFTWARE of sysexits.h.
	exitStore = 70
	// shutdownTime is what sessions are given to end before their connections are cut.
	shutdownTime = 10 * time.Second
)

// Run serves until SIGINT or SIGTERM; a second one ends the process at once.
func (s *serve) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal does what signals do
	return s.run(ctx, newLogger(os.Stderr, s.LogLevel, s.LogFormat))
}

// run serves until ctx ends.
func (s *serve) run(ctx context.Context, log *slog.Logger) error {
	started := time.Now()
	if err := checkListen(s.Listen, s.InsecureListen); err != nil {
		return err
	}
	raiseFileLimit(log)
	limitMemory(int64(s.MemoryLimit), log)
	go parser.Parse("SELECT 1") // the grammar's WebAssembly build takes seconds to load; ends by itself
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// Listen before the store opens: a client that is early is told to wait (57P03).
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	server := pgwire.NewServer(pgwire.Options{MaxConnections: s.MaxConnections, Logger: log, Registerer: reg})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }() // ends with Shutdown
	web, err := startHTTP(s.HTTP, reg, s.Pprof, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer web.stop()

	db, err := engine.Open(ctx, engine.Options{Dir: s.Data, Store: s.Store, MemoryLimit: storeMemory(int64(s.MemoryLimit)), CacheBytes: int64(s.StateCache), Reserve: int64(s.DiskReserve),
		Parallelism: s.Parallelism, Interval: s.BarrierInterval, AcceptLoss: s.AcceptLoss, Version: version, Logger: log, Registerer: reg,
		Fatal: func(err error) { // not a moment later: nothing may be acknowledged any more
			log.Error("the store has failed", "err", err)
			os.Exit(exitStore)
		}})
	if err != nil {
		endSessions(server, log)
		return fmt.Errorf("open %s: %w", s.Data, err)
	}
	server.Open(db)
	web.ready.Store(true)
	log.Info("ready", "listen", l.Addr().String(), "http", web.addr, "data", s.Data, "version", version, "took", time.Since(started).Round(time.Millisecond))

	var cause error
	select {
	case <-ctx.Done():
		log.Info("shutting down")
	case cause = <-failed:
	}
	web.ready.Store(false)
	endSessions(server, log)
	if err := errors.Join(cause, db.Close()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// endSessions ends all sessions in order, and those that take too long out of order.
func endSessions(server *pgwire.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("sessions were cut off", "after", shutdownTime)
	}
}
