//go:build unix

package main

import (
	"log/slog"
	"syscall"
)

// raiseFileLimit lets the process open as many files as the system allows: each
// connection is one, and each table file of the store.
func raiseFileLimit(log *slog.Logger) {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		log.Warn("the limit of open files is unknown", "err", err)
		return
	}
	if lim.Cur < lim.Max {
		was := lim.Cur
		lim.Cur = lim.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
			log.Warn("the limit of open files could not be raised", "limit", was, "err", err)
			return
		}
	}
	const few = 4096
	if lim.Cur < few {
		log.Warn("few files may be open: raise ulimit -n", "limit", lim.Cur)
	}
}
