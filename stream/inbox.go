package stream

import (
	"context"
	"fmt"
	"sync"
)

// inboxRows bounds what a port queues: rows, not messages, so that a queue's
// memory does not depend on how its sender cuts chunks. One chunk always fits.
const inboxRows = 16 << 10

// An Inbox is where an actor waits for its upstream actors. Each sender has a
// channel with a bounded queue; channels belong to ports (a fragment's input
// edges). Once a channel has delivered a barrier it is held until all others have
// delivered theirs, so that the receiver sees epochs one after another.
//
// Invariants:
//  1. Messages of one channel are received in the order they were sent.
//  2. A barrier is received once, after everything that any channel sent before it.
//  3. A barrier never waits for room.
//  4. A reserved channel is neither listened to nor waited for until a barrier's
//     mutation opens it; from then on it is like any other. What was sent into it
//     before is received after that barrier.
type Inbox struct {
	mu    sync.Mutex
	ready sync.Cond // something can be received
	room  sync.Cond // something can be sent
	chans []channel
	live  int // open channels
	held  int
	next  int // the channel to look at first, for fairness
	err   error
}

type channel struct {
	state channelState
	port  int
	queue []Message
	rows  int
	held  bool
}

type channelState uint8

const (
	chanFree     channelState = iota // has no sender; its number may be given to a new one
	chanReserved                     // its sender has yet to begin
	chanOpen
)

// NewInbox makes an inbox without senders.
func NewInbox() *Inbox {
	in := &Inbox{}
	in.ready.L, in.room.L = &in.mu, &in.mu
	return in
}

// Open adds a sender to a port and returns its channel number. All senders must
// be open before the first barrier is sent.
func (in *Inbox) Open(port int) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.live++
	return in.add(channel{state: chanOpen, port: port})
}

// Reserve adds a sender that takes over from others at a barrier, whose mutation
// opens its channel. It may be called while the inbox is in use.
func (in *Inbox) Reserve(port int) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.add(channel{state: chanReserved, port: port})
}

// Release takes back a reserved channel whose sender will never begin.
func (in *Inbox) Release(c int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.chans[c].state == chanReserved {
		in.chans[c] = channel{}
	}
}

// Senders is how many channels have a sender, those that have yet to begin included.
func (in *Inbox) Senders() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.chans {
		if in.chans[i].state != chanFree {
			n++
		}
	}
	return n
}

func (in *Inbox) add(c channel) int {
	for i := range in.chans {
		if in.chans[i].state == chanFree {
			in.chans[i] = c
			return i
		}
	}
	in.chans = append(in.chans, c)
	return len(in.chans) - 1
}

// Close fails every pending and later Send and Recv with err.
func (in *Inbox) Close(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err == nil {
		in.err = err
	}
	in.ready.Broadcast()
	in.room.Broadcast()
}

// Send queues m on channel c. It blocks while the channel is full and returns the
// inbox's error once it is closed.
func (in *Inbox) Send(c int, m Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	ch := &in.chans[c]
	for in.err == nil && m.Chunk != nil && len(ch.queue) > 0 && ch.rows+m.Chunk.Len() > inboxRows {
		in.room.Wait()
		ch = &in.chans[c]
	}
	if in.err != nil {
		return in.err
	}
	ch.queue = append(ch.queue, m)
	if m.Chunk != nil {
		ch.rows += m.Chunk.Len()
	}
	in.ready.Signal()
	return nil
}

// Recv returns the next message and its port; a barrier comes once (port -1),
// when every channel has it.
func (in *Inbox) Recv() (port int, m Message, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if in.err != nil {
			return 0, Message{}, in.err
		}
		if p, m, ok := in.pop(); ok {
			return p, m, nil
		}
		in.ready.Wait()
	}
}

// TryRecv is Recv for an executor that has other work: ok is false when nothing is ready.
func (in *Inbox) TryRecv() (port int, m Message, ok bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err != nil {
		return 0, Message{}, false, in.err
	}
	port, m, ok = in.pop()
	return port, m, ok, nil
}

// Wake makes a WaitUntil look at its condition again.
func (in *Inbox) Wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ready.Broadcast()
}

// WaitUntil blocks until something can be received, the inbox is closed or ready
// returns true (looked at again after each Wake). It is for an executor that
// waits for its inbox or for a timer, whichever comes first.
func (in *Inbox) WaitUntil(ready func() bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.err == nil && !in.receivable() && !ready() {
		in.ready.Wait()
	}
}

func (in *Inbox) receivable() bool {
	for i := range in.chans {
		if c := &in.chans[i]; c.state == chanOpen && !c.held && len(c.queue) > 0 {
			return true
		}
	}
	return false
}

// pop takes the next message. A popped barrier holds its channel; the last
// channel's barrier releases them all.
func (in *Inbox) pop() (int, Message, bool) {
	for range in.chans {
		i := in.next
		if in.next++; in.next == len(in.chans) {
			in.next = 0
		}
		c := &in.chans[i]
		for c.state == chanOpen && !c.held && len(c.queue) > 0 {
			m := c.queue[0]
			c.queue[0] = Message{}
			if c.queue = c.queue[1:]; len(c.queue) == 0 {
				c.queue = nil
			}
			if m.Barrier == nil {
				if m.Chunk != nil {
					c.rows -= m.Chunk.Len()
					in.room.Broadcast()
				}
				return c.port, m, true
			}
			c.held = true
			if in.held++; in.held == in.live {
				for j := range in.chans {
					in.chans[j].held = false
				}
				in.held = 0
				if mu := m.Barrier.Mutation; mu != nil {
					in.change(mu.Switch[in])
				}
				return -1, m, true
			}
		}
	}
	return 0, Message{}, false
}

// change puts senders in the place of others, between two epochs.
func (in *Inbox) change(s Switch) {
	for _, c := range s.Close {
		if len(in.chans[c].queue) > 0 {
			panic(fmt.Sprintf("channel %d of an inbox has %d messages behind its last barrier", c, len(in.chans[c].queue)))
		}
		in.chans[c] = channel{}
		in.live--
	}
	for _, c := range s.Open {
		if in.chans[c].state != chanReserved {
			panic(fmt.Sprintf("channel %d of an inbox is opened and not reserved", c))
		}
		in.chans[c].state = chanOpen
		in.live++
	}
}

// Run makes an Inbox the first executor of an actor: it merges all its ports.
func (in *Inbox) Run(ctx context.Context, emit Emit) error {
	for {
		_, m, err := in.Recv()
		if err != nil {
			return err
		}
		if err := emit(m); err != nil {
			return err
		}
	}
}
