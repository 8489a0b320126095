package harness

import "syscall"

// dieWithParent makes the kernel kill the child when this process dies, so that a
// test that is killed leaves no servers behind.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
