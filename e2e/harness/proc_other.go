//go:build !linux

package harness

import "syscall"

// dieWithParent does nothing where the kernel has no such notice.
func dieWithParent(*syscall.SysProcAttr) {}
