//go:build !linux

package storage

import "os"

// allocate gives f n bytes on the disk, by writing them. A full disk is an error.
func allocate(f *os.File, n int64) error {
	block := make([]byte, 1<<20)
	for at := int64(0); at < n; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(n-at, int64(len(block)))], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
