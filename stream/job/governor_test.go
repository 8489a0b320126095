package job

import (
	"testing"
	"time"

	"streamdb/stream"
)

// The waits of statements grow with what a backfill does between barriers: the
// governor must settle where they are below the target, not far below, and let go when nobody waits.
func TestGovernorSettles(t *testing.T) {
	pace := &stream.Pace{}
	g := newGovernor(pace)
	g.setTarget(20 * time.Millisecond)
	now := time.Unix(0, 0)
	perRow := 5 * time.Microsecond // 4,000 rows take the target
	over, n := 0, 0
	for i := range 20_000 {
		waited := 2*time.Millisecond + time.Duration(pace.Limit())*perRow
		now = now.Add(waited)
		g.observe(now, waited)
		if i > 5_000 {
			n++
			if waited > 20*time.Millisecond {
				over++
			}
		}
	}
	if share := float64(over) / float64(n); share > 0.01 {
		t.Errorf("%.2f%% of the waits are over the target", 100*share)
	}
	if l := pace.Limit(); l < 1000 || l > 4000 {
		t.Errorf("limit settled at %d rows, want 1,000 to 4,000", l)
	}
	if d := g.interval(now, 100*time.Millisecond); d != 10*time.Millisecond {
		t.Errorf("barriers every %v under a limit", d)
	}
	if d := g.interval(now.Add(calmAfter+1), 100*time.Millisecond); d != 100*time.Millisecond || pace.Limit() != 0 || pace.Gap() != 0 {
		t.Errorf("nobody waits: interval %v, limit %d, gap %v", d, pace.Limit(), pace.Gap())
	}
}

// Where something else is slow, backfills keep a least pace.
func TestGovernorLeastPace(t *testing.T) {
	pace := &stream.Pace{}
	g := newGovernor(pace)
	g.setTarget(5 * time.Millisecond)
	now := time.Unix(0, 0)
	for range 1000 {
		now = now.Add(time.Second)
		g.observe(now, 50*time.Millisecond)
	}
	if pace.Limit() != leastLimit || pace.Gap() != mostGap {
		t.Errorf("limit %d, gap %v", pace.Limit(), pace.Gap())
	}
	for range 20_000 { // fast again
		now = now.Add(time.Millisecond)
		g.observe(now, time.Millisecond)
	}
	if pace.Limit() < firstLimit || pace.Gap() != 0 {
		t.Errorf("after it is fast again: limit %d, gap %v", pace.Limit(), pace.Gap())
	}
	g.setTarget(0)
	if g.observe(now, time.Hour); pace.Limit() != 0 {
		t.Errorf("without a target the limit is %d", pace.Limit())
	}
}
