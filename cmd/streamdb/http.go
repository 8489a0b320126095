package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A web is the HTTP server: /metrics, and health for whoever watches over the process.
type web struct {
	server *http.Server
	addr   string // "": not served
	ready  atomic.Bool
	done   chan struct{}
}

// startHTTP serves on addr until stop; "" serves nowhere.
func startHTTP(addr string, reg *prometheus.Registry, profiles bool, log *slog.Logger) (*web, error) {
	w := &web{done: make(chan struct{})}
	if addr == "" {
		close(w.done)
		return w, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	w.addr = l.Addr().String()
	w.server = &http.Server{Handler: w.handler(reg, profiles), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		defer close(w.done)
		if err := w.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the HTTP server has failed", "err", err)
		}
	}()
	return w, nil
}

func (w *web) handler(reg *prometheus.Registry, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(rw, "ok")
	})
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if !w.ready.Load() {
			http.Error(rw, "not serving", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ok")
	})
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, "streamdb %s\n\n/metrics  for Prometheus\n/healthz  the process lives\n/readyz   the database serves\n", version)
	})
	return mux
}

// stop ends the server; requests under way get a second.
func (w *web) stop() {
	if w.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if w.server.Shutdown(ctx) != nil {
			w.server.Close()
		}
	}
	<-w.done
}
