package pgwire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerGone reports whether the client has closed its end, without reading what it may have sent before.
func peerGone(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
