package harness

import (
	"bytes"
	"sync"
)

// A logTail keeps the last bytes a process wrote. Safe for concurrent use.
type logTail struct {
	mu  sync.Mutex
	buf []byte
}

const logKept = 64 << 10 // bytes

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) > 2*logKept {
		l.buf = append(l.buf[:0], l.buf[len(l.buf)-logKept:]...)
	}
	return len(p), nil
}

// tail returns the last n lines.
func (l *logTail) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := bytes.Split(bytes.TrimRight(l.buf, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
