package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"streamdb/storage"
	"streamdb/stream"
)

// Tables, views over them and a view over a view are rescaled at random while rows are
// written and views are built; each is its query at the end of every round.
func TestRescaleUnderLoad(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { rescaleUnderLoad(t, seed) })
	}
}

func rescaleUnderLoad(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	locality := []string{"off", "always"}[seed%2]
	r := newRig(t, nil)
	r.table("t", 1+rnd.IntN(3))
	r.table("u", 1+rnd.IntN(3))
	for range 20 {
		for _, name := range []string{"t", "u"} {
			if _, err := r.write(rnd, name, 30); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.flush()
	views := map[string]string{}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i, name := range []string{"t", "u"} {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for {
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Microsecond):
				}
				if _, err := r.write(rnd, name, 1+rnd.IntN(8)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var jobs []*Job
	for _, v := range [][2]string{{"copy", copyOfT}, {"agg", aggOfT}, {"over", overAgg}, {"join", joined}, {"glob", global}} {
		// Slow enough that rescales fall into the build.
		s := r.spec(v[0], v[1], locality, 1+rnd.IntN(4), rnd.IntN(4), rate(int64(500+rnd.IntN(3000))))
		j, err := r.m.Start(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
		views[v[0]] = v[1]
		names := []string{"t", "u"}
		for n := range views {
			names = append(names, n)
		}
		for range 1 + rnd.IntN(3) {
			rescale(t, r, names[rnd.IntN(len(names))], 1+rnd.IntN(5))
		}
		if v[0] == "agg" {
			r.built(j) // who reads it has to find it whole
		}
	}
	for _, n := range []int{1, 4, 2} {
		for _, j := range jobs {
			rescale(t, r, j.Rel.Name, n)
		}
	}
	for _, j := range jobs {
		if err := r.throttle(j, stream.Unlimited); err != nil {
			t.Fatal(err)
		}
		r.built(j)
		rescale(t, r, j.Rel.Name, 1+rnd.IntN(5))
	}
	rescale(t, r, "t", 4)
	close(stop)
	writers.Wait()
	r.check(views)
	for _, j := range jobs {
		rep := r.m.Report(j)
		if !rep.Finished || rep.Done > rep.Total {
			t.Errorf("%s: %+v", j.Rel.Name, rep)
		}
	}
	for _, n := range []int{3, 1} {
		for _, name := range []string{"t", "agg", "over"} {
			rescale(t, r, name, n)
			if _, err := r.write(rnd, "t", 50); err != nil {
				t.Fatal(err)
			}
		}
		r.check(views)
	}
}

// A rescale to what a job has changes no actor; what it stages is committed.
func TestRescaleToTheSame(t *testing.T) {
	r := newRig(t, nil)
	r.table("t", 3)
	before := r.m.Job(r.rels["t"].ID).gen.Load()
	err := r.m.Rescale(t.Context(), r.rels["t"].ID, 3, func(e storage.Epoch) {
		r.store.Stage(e, storage.TagCatalog, []byte("n"), []byte("3"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.m.Job(r.rels["t"].ID).gen.Load() != before {
		t.Error("actors were replaced")
	}
	if m := meta(t, r.store); m["n"] != "3" {
		t.Errorf("staged: %v", m)
	}
}

// A build has its own parallelism and goes over to the other one when it is done.
func TestBuildingParallelism(t *testing.T) {
	r := newRig(t, nil)
	rnd := rand.New(rand.NewPCG(1, 1))
	r.table("t", 1)
	for range 10 {
		if _, err := r.write(rnd, "t", 100); err != nil {
			t.Fatal(err)
		}
	}
	r.flush()
	j, err := r.m.Start(t.Context(), r.spec("agg", aggOfT, "off", 3, 2, rate(0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := j.Parallelism(); n != 2 {
		t.Fatalf("built with %d", n)
	}
	// Neither of these takes force while it is built with a parallelism of its own.
	rescale(t, r, "agg", 4)
	if n := j.Parallelism(); n != 2 {
		t.Fatalf("built with %d after a rescale", n)
	}
	if err := r.m.RescaleBackfill(t.Context(), j.Rel.ID, 5, nil); err != nil {
		t.Fatal(err)
	}
	if n := j.Parallelism(); n != 5 {
		t.Fatalf("built with %d, want 5", n)
	}
	if err := r.throttle(j, stream.Unlimited); err != nil {
		t.Fatal(err)
	}
	r.built(j)
	for end := time.Now().Add(10 * time.Second); j.Parallelism() != 4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("parallelism is %d after the build", j.Parallelism())
		}
	}
	r.check(map[string]string{"agg": aggOfT})
}

// Progress does not go back when actors are replaced, and a limit that was set stays.
func TestRescaleKeepsProgress(t *testing.T) {
	r := newRig(t, nil)
	rnd := rand.New(rand.NewPCG(2, 1))
	r.table("t", 2)
	for range 10 {
		if _, err := r.write(rnd, "t", 100); err != nil {
			t.Fatal(err)
		}
	}
	r.flush()
	j, err := r.m.Start(t.Context(), r.spec("copy", copyOfT, "off", 2, 0, rate(200)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for r.m.Report(j).Done < 20 {
		time.Sleep(time.Millisecond)
	}
	if err := r.throttle(j, stream.Paused); err != nil {
		t.Fatal(err)
	}
	r.flush()
	done := r.m.Report(j).Done
	for _, n := range []int{1, 4, 3} {
		rescale(t, r, "copy", n)
		for range 5 {
			if got := r.m.Report(j); got.Done != done || got.Rate != 0 || got.WaitsFor == "" {
				t.Fatalf("with %d actors: %d rows done, there were %d; rate %d, %q", n, got.Done, done, got.Rate, got.WaitsFor)
			}
			r.flush()
		}
	}
	if err := r.throttle(j, stream.Unlimited); err != nil {
		t.Fatal(err)
	}
	r.built(j)
	r.check(map[string]string{"copy": copyOfT})
}

// A rescale whose context ends before its barrier leaves everything as it was.
func TestRescaleIsTakenBack(t *testing.T) {
	r := newRig(t, nil)
	rnd := rand.New(rand.NewPCG(3, 1))
	r.table("t", 2)
	j := r.view("agg", aggOfT, 2)
	over := r.view("over", overAgg, 2)
	r.built(j)
	r.built(over)
	// An actor that never reports holds barriers up.
	if _, err := r.m.coord.Submit(t.Context(), Command{Start: []Start{{Alive: alive, Expect: []stream.ActorID{1 << 20}}}}); err != nil {
		t.Fatal(err)
	}
	for range maxInFlight {
		if _, err := r.m.coord.Flush(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Millisecond)
	}
	chans := r.channels(over)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := r.m.Rescale(ctx, j.Rel.ID, 4, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		cancel()
	}
	r.m.coord.Forget([]stream.ActorID{1 << 20})
	r.flush()
	if n := j.Parallelism(); n != 2 {
		t.Errorf("parallelism is %d", n)
	}
	if n := r.channels(over); n != chans {
		t.Errorf("%d channels, there were %d", n, chans)
	}
	rescale(t, r, "agg", 3)
	if _, err := r.write(rnd, "t", 100); err != nil {
		t.Fatal(err)
	}
	r.check(map[string]string{"agg": aggOfT, "over": overAgg})
}

// channels counts those of a job's inboxes that have a sender.
func (r *rig) channels(j *Job) (n int) {
	for _, a := range j.gen.Load().actors {
		n += a.in.Senders()
	}
	return n
}

// Removed, failing and closing jobs take both generations with them, and leave no goroutine.
func TestRescaleEndsEarly(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, how := range []string{"remove", "fail", "close"} {
		t.Run(how, func(t *testing.T) {
			for seed := range uint64(8) {
				endEarly(t, how, seed)
			}
		})
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

func endEarly(t *testing.T, how string, seed uint64) {
	r := newRig(t, nil)
	rnd := rand.New(rand.NewPCG(seed, 4))
	r.table("t", 2)
	if _, err := r.write(rnd, "t", 200); err != nil {
		t.Fatal(err)
	}
	r.flush()
	agg, err := r.m.Start(t.Context(), r.spec("agg", aggOfT, "off", 2, 0, rate(100)), nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := r.view("copy", copyOfT, 1)
	ended := make(chan error, 1)
	go func() {
		var err error
		for n := 1; err == nil && n < 50; n++ {
			err = r.m.Rescale(context.Background(), agg.Rel.ID, 1+n%4, nil)
		}
		ended <- err
	}()
	time.Sleep(time.Duration(rnd.IntN(6000)) * time.Microsecond)
	cause := errors.New("dropped by " + how)
	switch how {
	case "remove":
		r.m.Remove([]Removal{{agg.Rel.ID, cause}}, func(storage.Epoch) {})
	case "fail":
		g := agg.gen.Load()
		r.m.fail(agg, g.actors[rnd.IntN(len(g.actors))], cause)
		if err := <-r.fails; !errors.Is(err, cause) {
			t.Fatal(err)
		}
	case "close":
		r.m.Close()
	}
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, cause) && !errors.Is(err, errClosing) && !strings.Contains(err.Error(), "has no job") {
			t.Errorf("seed %d: %v", seed, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("seed %d: the rescale does not end: %s", seed, r.m.stalled())
	}
	if how == "close" {
		return
	}
	if _, err := r.write(rnd, "t", 100); err != nil {
		t.Fatal(err)
	}
	r.built(copied)
	r.check(map[string]string{"copy": copyOfT})
	if how == "fail" {
		r.m.Remove([]Removal{{agg.Rel.ID, cause}}, func(storage.Epoch) {})
	}
	r.m.Remove([]Removal{{copied.Rel.ID, cause}, {r.rels["t"].ID, cause}}, func(storage.Epoch) {})
	r.m.Close()
}

// throttle changes a job's backfill rate.
func (r *rig) throttle(j *Job, rate int64) error {
	n := *j.Rel
	n.RateLimit = &rate
	if rate == stream.Unlimited {
		n.RateLimit = nil
	}
	return r.m.Throttle(context.Background(), &n, nil)
}
