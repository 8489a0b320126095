package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

// newLogger makes the log: coloured for a person at a terminal, plain or JSON else.
func newLogger(f *os.File, level, format string) *slog.Logger {
	var min slog.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		min = slog.LevelInfo // the command line has checked it
	}
	o := &slog.HandlerOptions{Level: min}
	switch info, err := f.Stat(); {
	case format == "json":
		return slog.New(slog.NewJSONHandler(f, o))
	case err == nil && info.Mode()&fs.ModeCharDevice != 0:
		return slog.New(tint.NewTextHandler(f, &tint.Options{Level: min, TimeFormat: time.TimeOnly, NoColor: os.Getenv("NO_COLOR") != ""}))
	}
	return slog.New(slog.NewTextHandler(f, o))
}

// checkListen refuses an address that other machines reach: whoever connects may do everything.
func checkListen(addr string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--listen %s is not a loopback address, and there are no passwords yet: whoever reaches it may do everything; give --insecure-listen if that is meant", addr)
}

// limitMemory sets the collector's target. With no limit given the target is where the
// machine (or the container) would run short.
func limitMemory(limit int64, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return // the runtime has taken it
	}
	if limit == 0 {
		limit = machineMemory() / 4 * 3
	}
	if limit > 0 && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit)
		log.Debug("memory", "limit", limit)
	}
}

// storeMemory is the share of the process's memory for the caches of store and operators; the
// rest is for rows in flight and the collector's slack.
func storeMemory(limit int64) int64 { return limit / 5 * 3 }

// machineMemory is what this process can have: the least of the machine's memory and its control
// group's limit, 0 if unknown.
func machineMemory() int64 {
	least := int64(0)
	take := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				take(kb << 10)
			}
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max": 0
			take(n)
		}
	}
	return least
}
