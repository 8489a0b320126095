package exec

import (
	"math"
	"sync"
	"time"

	"streamdb/storage"
	"streamdb/stream"
)

// A Limiter grants rows at a rate to all actors of a fragment together. It never
// waits: who gets too little asks again at NextAt.
type Limiter struct {
	mu    sync.Mutex
	clock storage.Clock
	rate  int64
	have  float64 // rows that may pass now
	last  time.Time
}

// burst is how long unused rate is kept.
const burst = 100 * time.Millisecond

// NewLimiter makes a limiter of rate rows per second; stream.Unlimited and
// stream.Paused (0) are rates. A nil clock is the system's.
func NewLimiter(rate int64, clock storage.Clock) *Limiter {
	if clock == nil {
		clock = systemClock{}
	}
	l := &Limiter{clock: clock, rate: rate, last: clock.Now()}
	l.have = min(1, l.most())
	return l
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// most is how many rows may be saved up.
func (l *Limiter) most() float64 { return max(1, float64(l.rate)*burst.Seconds()) }

// Set changes the rate.
func (l *Limiter) Set(rate int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate == l.rate {
		return
	}
	l.refill()
	if l.rate <= 0 {
		l.have = 1
	}
	l.rate = rate
	l.have = min(l.have, l.most())
}

// Rate returns the current rate.
func (l *Limiter) Rate() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate
}

// Allow takes up to n rows and returns how many may pass now.
func (l *Limiter) Allow(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate < 0 {
		return n
	}
	if l.rate == 0 {
		return 0
	}
	l.refill()
	n = min(n, int(l.have))
	l.have -= float64(n)
	return n
}

// Return gives back rows that were allowed and not used.
func (l *Limiter) Return(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate > 0 {
		l.have = min(l.have+float64(n), l.most())
	}
}

// NextAt is when at least a row may pass, or as many as are worth a chunk at high
// rates; the zero time: not before the rate changes.
func (l *Limiter) NextAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if l.rate < 0 {
		return now
	}
	if l.rate == 0 {
		return time.Time{}
	}
	l.refill()
	want := max(1, l.most()/10) // a hundredth of a second's rows
	if l.have >= want {
		return now
	}
	return now.Add(time.Duration(math.Ceil((want-l.have)/float64(l.rate)*1e9)) + time.Microsecond)
}

func (l *Limiter) refill() {
	now := l.clock.Now()
	if l.rate > 0 {
		l.have = min(l.have+now.Sub(l.last).Seconds()*float64(l.rate), l.most())
	}
	l.last = now
}

// paused reports whether l grants nothing until its rate changes; a nil limiter grants all.
func paused(l *Limiter) bool { return l != nil && l.Rate() == stream.Paused }
