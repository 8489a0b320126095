package stream

import (
	"strings"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

func rowOf(n int64) Message {
	return Message{Chunk: chunk.Make(chunk.NewVec(types.Int8, []int64{n}, nil))}
}

func barrierOf(e storage.Epoch, mu *Mutation) Message {
	return Message{Barrier: &Barrier{Epoch: e, Mutation: mu}}
}

// drain is what can be received, rows by value and barriers as |epoch.
func drain(t *testing.T, in *Inbox) string {
	t.Helper()
	var b strings.Builder
	for {
		_, m, ok, err := in.TryRecv()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !ok:
			return b.String()
		case m.Barrier != nil:
			b.WriteByte('|')
			b.WriteByte('0' + byte(m.Barrier.Epoch))
		default:
			b.WriteByte(byte('a' + chunk.Of[int64](m.Chunk.Cols[0]).Data[0]))
		}
	}
}

func send(t *testing.T, in *Inbox, c int, ms ...Message) {
	t.Helper()
	for _, m := range ms {
		if err := in.Send(c, m); err != nil {
			t.Fatal(err)
		}
	}
}

// A reserved channel is not waited for, and what it has is held back until the
// barrier that opens it; the channels closed there are not waited for any more.
func TestSwitch(t *testing.T) {
	in := NewInbox()
	other, old := in.Open(0), in.Open(1)
	n1, n2 := in.Reserve(1), in.Reserve(1)
	send(t, in, n1, rowOf(3), barrierOf(3, nil))
	send(t, in, other, rowOf(0), barrierOf(1, nil))
	send(t, in, old, rowOf(1), barrierOf(1, nil))
	if got := drain(t, in); got != "ab|1" && got != "ba|1" {
		t.Fatalf("with reserved channels: %q", got)
	}
	b := barrierOf(2, &Mutation{Switch: map[*Inbox]Switch{in: {Open: []int{n1, n2}, Close: []int{old}}}})
	send(t, in, other, b, barrierOf(3, nil))
	if got := drain(t, in); got != "" {
		t.Fatalf("before the old sender's last barrier: %q", got)
	}
	send(t, in, old, b)
	if got := drain(t, in); got != "|2d" {
		t.Fatalf("after it: %q", got)
	}
	send(t, in, n2, rowOf(4), barrierOf(3, nil))
	if got := drain(t, in); got != "e|3" {
		t.Fatalf("from the new senders: %q", got)
	}
	if n := in.Senders(); n != 3 {
		t.Errorf("%d senders", n)
	}
	// The numbers of closed and released channels are used again.
	if c := in.Reserve(1); c != old {
		t.Errorf("reserved channel %d, %d was free", c, old)
	}
	in.Release(old)
	if c := in.Open(1); c != old {
		t.Errorf("opened channel %d, %d was free", c, old)
	}
}

// A sender that goes on after its last barrier is a bug that must not pass quietly.
func TestSwitchFindsRowsBehindTheLastBarrier(t *testing.T) {
	in := NewInbox()
	old, next := in.Open(0), in.Reserve(0)
	send(t, in, old, barrierOf(1, &Mutation{Switch: map[*Inbox]Switch{in: {Open: []int{next}, Close: []int{old}}}}), rowOf(0))
	defer func() {
		if recover() == nil {
			t.Error("rows were lost")
		}
	}()
	drain(t, in)
}

// All senders of an inbox may change, again and again, in two numbers.
func TestSwitchOfAllSenders(t *testing.T) {
	in := NewInbox()
	old := in.Open(0)
	for e := storage.Epoch(1); e < 6; e++ {
		next := in.Reserve(0)
		send(t, in, next, rowOf(int64(e)))
		send(t, in, old, barrierOf(e, &Mutation{Switch: map[*Inbox]Switch{in: {Open: []int{next}, Close: []int{old}}}}))
		if got, want := drain(t, in), "|"+string('0'+byte(e))+string('a'+byte(e)); got != want {
			t.Fatalf("epoch %d: %q, want %q", e, got, want)
		}
		old = next
	}
	if n := len(in.chans); n != 2 {
		t.Errorf("%d channels for one sender at a time", n)
	}
}

// An actor that takes over passes its first barrier to those that begin with it, and
// not to those that have it from the one before.
func TestActorTakesOver(t *testing.T) {
	inner, reader := NewInbox(), NewInbox()
	single := func(in *Inbox, c int) *Dispatcher {
		return &Dispatcher{Dist: plan.Dist{Kind: plan.Single}, To: []Port{{in, c}}}
	}
	old := reader.Open(0)
	next := reader.Reserve(0)
	a := &Actor{ID: 1, Out: []*Dispatcher{single(inner, inner.Open(0))}, Later: []*Dispatcher{single(reader, next)}, Collect: func(ActorID, *Barrier) {}}
	if err := a.send(rowOf(0)); err == nil {
		t.Error("rows before the first barrier were taken")
	}
	mu := &Mutation{Switch: map[*Inbox]Switch{reader: {Open: []int{next}, Close: []int{old}}}}
	for _, m := range []Message{barrierOf(1, mu), rowOf(1), barrierOf(2, nil)} {
		if err := a.send(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := drain(t, inner); got != "|1b|2" {
		t.Errorf("inner actor: %q", got)
	}
	send(t, reader, old, barrierOf(1, mu))
	if got := drain(t, reader); got != "|1b|2" {
		t.Errorf("reader: %q", got)
	}
}
