package job

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"streamdb/storage"
	"streamdb/stream"
)

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func newTestCoordinator(t *testing.T) (*Coordinator, *storage.Store) {
	t.Helper()
	store, err := storage.Open(storage.Options{Dir: ":memory:", Clock: wallClock{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCoordinator(store, wallClock{}, slog.New(slog.DiscardHandler), NewMetrics(nil), time.Millisecond, func(err error) { t.Error(err) })
	t.Cleanup(func() {
		c.Close(errClosing)
		store.Close()
	})
	return c, store
}

func meta(t *testing.T, s *storage.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for kv, err := range s.Meta(storage.TagCatalog, nil) {
		if err != nil {
			t.Fatal(err)
		}
		out[string(kv.Key)] = string(kv.Val)
	}
	return out
}

func alive() bool { return true }

// A job that is removed while an epoch waits for it is gone with that very epoch,
// also where its creation is a part of it.
func TestStageAllComesWithTheOldestEpoch(t *testing.T) {
	c, store := newTestCoordinator(t)
	e, err := c.Submit(t.Context(), Command{
		Stage: func(e storage.Epoch) { store.Stage(e, storage.TagCatalog, []byte("made"), []byte("1")) },
		Start: []Start{{Alive: alive, Expect: []stream.ActorID{1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	var in []storage.Epoch
	c.StageAll(func(e storage.Epoch) {
		in = append(in, e)
		store.Stage(e, storage.TagCatalog, []byte("made"), nil)
		store.Stage(e, storage.TagCatalog, []byte("gone"), []byte("1"))
	})
	if in[0] != e {
		t.Fatalf("staged from epoch %d on, %d is in flight", in[0], e)
	}
	if m := meta(t, store); len(m) > 0 {
		t.Fatalf("epoch %d was committed without actor 1: %v", e, m)
	}
	c.Forget([]stream.ActorID{1})
	if err := c.Wait(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if m := meta(t, store); m["gone"] != "1" || m["made"] != "" {
		t.Fatalf("after epoch %d: %v", e, m)
	}
}

// A job that stops before its first barrier is not waited for.
func TestStoppedBeforeItBegins(t *testing.T) {
	c, _ := newTestCoordinator(t)
	c.Forget([]stream.ActorID{1})
	e, err := c.Submit(t.Context(), Command{Start: []Start{{Alive: func() bool { return false }, Expect: []stream.ActorID{1}}}})
	if err == nil {
		err = c.Wait(t.Context(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A command is taken back when its context ends while barriers are held up.
func TestSubmitIsCancelled(t *testing.T) {
	c, _ := newTestCoordinator(t)
	if _, err := c.Submit(t.Context(), Command{Start: []Start{{Alive: alive, Expect: []stream.ActorID{1}}}}); err != nil {
		t.Fatal(err)
	}
	for range maxInFlight {
		if _, err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // a barrier each, as long as there is room
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Submit(ctx, Command{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	c.Forget([]stream.ActorID{1})
	e, err := c.Flush()
	if err == nil {
		err = c.Wait(t.Context(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Close ends those who wait, and does not wait for a writer that no actor serves.
func TestCloseEndsWaits(t *testing.T) {
	c, _ := newTestCoordinator(t)
	e, err := c.Submit(t.Context(), Command{Start: []Start{{Alive: alive, Expect: []stream.ActorID{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- c.Wait(context.Background(), e) }()
	block := make(chan struct{})
	entered := make(chan struct{})
	go c.Write(true, func(storage.Epoch) error { close(entered); <-block; return nil })
	<-entered
	c.shut(errClosing)
	if err := <-got; !errors.Is(err, errClosing) {
		t.Fatalf("got %v", err)
	}
	if _, err := c.Submit(context.Background(), Command{}); !errors.Is(err, errClosing) {
		t.Fatalf("got %v", err)
	}
	close(block)
}
