package job

import (
	"sync"
	"time"

	"streamdb/stream"
)

// A governor slows backfills down while statements wait for epochs longer than a
// target, and lets them speed up again: additive increase, multiplicative decrease
// (Chiu and Jain, 1989) of the rows that a scan may deliver between two barriers.
// The cut is much larger than a step of growth, so that it is the slow few of a
// hundred statements that settle the pace and not the middle one.
//
// While nobody waits there is no limit. There is always a least pace: where even that is
// too much, something else is slow, and a backfill that stood still would not help.
type governor struct {
	pace *stream.Pace

	mu     sync.Mutex
	target time.Duration // 0: nothing is slowed down
	limit  float64       // rows; kept while nobody waits
	gap    time.Duration
	seen   time.Time // when somebody's epoch was last committed
	cut    time.Time // when the limit last went down
	on     bool
}

const (
	firstLimit = 2048
	leastLimit = 128
	mostLimit  = 1 << 20
	growStep   = 8
	growShare  = 0.005
	leastGap   = 500 * time.Microsecond
	mostGap    = 20 * time.Millisecond
	// calmAfter is how long nobody must have waited before limits are lifted.
	calmAfter = 3 * time.Second
	// governedInterval is the least time between barriers under a limit: small epochs end fast.
	governedInterval = 5 * time.Millisecond
)

func newGovernor(pace *stream.Pace) *governor { return &governor{pace: pace, limit: firstLimit} }

func (g *governor) setTarget(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = d
	if d == 0 {
		g.lift()
	}
}

// observe takes in that somebody waited for an epoch for so long.
func (g *governor) observe(now time.Time, waited time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target == 0 {
		return
	}
	g.seen, g.on = now, true
	switch {
	case waited > g.target:
		// The epochs behind this one were begun before the cut: they do not count again.
		if now.Sub(g.cut) < 2*waited {
			break
		}
		g.cut = now
		if g.limit /= 2; g.limit < leastLimit {
			g.limit = leastLimit
			g.gap = min(max(leastGap, 2*g.gap), mostGap)
		}
	case waited < g.target*7/10:
		if g.gap > 0 {
			if g.gap = g.gap * 49 / 50; g.gap < leastGap {
				g.gap = 0
			}
			break
		}
		g.limit = min(g.limit+growStep+g.limit*growShare, mostLimit)
	}
	g.pace.SetLimit(int(g.limit))
	g.pace.SetGap(g.gap)
}

// interval is the time between barriers, where it is base without limits. It
// lifts limits that nobody needs any more.
func (g *governor) interval(now time.Time, base time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.on && now.Sub(g.seen) > calmAfter {
		g.lift()
	}
	if !g.on {
		return base
	}
	return min(base, max(governedInterval, g.target/2))
}

// lift takes the limits away, for as long as nobody waits.
func (g *governor) lift() {
	g.on = false
	g.pace.SetLimit(0)
	g.pace.SetGap(0)
}
