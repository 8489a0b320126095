package storage

import (
	"os"
	"syscall"
)

// allocate gives f n bytes on the disk. A full disk is an error.
func allocate(f *os.File, n int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, n) }
