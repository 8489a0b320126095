package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream"
)

const vnodes = 8

// A rig runs actors over one store and sends them barriers.
type rig struct {
	t     testing.TB
	disk  *storage.MemDisk
	store *storage.Store
	epoch storage.Epoch
	every storage.Epoch // so many barriers commit together; 0: each does
	runs  []*run

	mu      sync.Mutex
	commits sync.Cond
}

// A run is one actor whose output is kept.
type run struct {
	r      *rig
	env    *Env
	in     *stream.Inbox
	ports  []int // channel of each port
	outs   []*stream.Dispatcher
	cancel context.CancelFunc
	ended  chan error

	mu   sync.Mutex
	cond sync.Cond
	next []*chunk.Chunk // since the last barrier
	out  []*chunk.Chunk // before it, since the last take
	seen storage.Epoch
	err  error
	done bool
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, disk: storage.NewMemDisk()}
	r.commits.L = &r.mu
	r.open()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) open() {
	s, err := storage.Open(storage.Options{Disk: r.disk})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = s
	r.epoch = max(r.epoch, s.Committed())
}

// stop ends all actors, as a kill would.
func (r *rig) stop() {
	r.mu.Lock()
	for _, x := range r.runs {
		x.cancel()
	}
	r.commits.Broadcast()
	r.mu.Unlock()
	for _, x := range r.runs {
		if err := <-x.ended; err != nil && !errors.Is(err, context.Canceled) {
			r.t.Errorf("actor: %v", err)
		}
	}
	r.runs = nil
	r.store.Close()
}

// crash loses all that is not committed and opens the store again.
func (r *rig) crash() {
	r.disk.Crash()
	r.stop()
	r.open()
}

// start runs an actor. Its plan's ports get a channel each; ports without a sender
// of their own are fed by send and barrier.
func (r *rig) start(n plan.Stream, ports int, mod func(*Env)) *run {
	x := &run{r: r, in: stream.NewInbox(), ended: make(chan error, 1)}
	x.cond.L = &x.mu
	for p := range ports {
		x.ports = append(x.ports, x.in.Open(p))
	}
	x.env = &Env{
		Store: r.store, In: x.in, Vnodes: storage.Full(vnodes), VnodeCount: vnodes, Job: 1, Fragment: 1, Single: true,
		ExprError: func(op string, err error) { r.t.Logf("%s: %v", op, err) },
		WaitCommitted: func(ctx context.Context, e storage.Epoch) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			for r.store.Committed() < e && ctx.Err() == nil {
				r.commits.Wait()
			}
			return ctx.Err()
		},
	}
	if mod != nil {
		mod(x.env)
	}
	ex, err := Build(x.env, n)
	if err != nil {
		r.t.Fatalf("build %T: %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	go func() {
		err := ex.Run(ctx, x.emit)
		x.mu.Lock()
		x.err, x.done = err, true
		x.cond.Broadcast()
		x.mu.Unlock()
		if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errWanted) {
			err = nil
		}
		x.ended <- err
	}()
	r.runs = append(r.runs, x)
	return x
}

var errWanted = errors.New("wanted")

func (x *run) emit(m stream.Message) error {
	for _, d := range x.outs {
		if err := d.Send(m); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if m.Chunk != nil {
		x.next = append(x.next, m.Chunk)
	}
	if m.Barrier != nil {
		x.out, x.next = append(x.out, x.next...), nil
		x.seen = m.Barrier.Epoch
		x.cond.Broadcast()
	}
	return nil
}

func (x *run) send(port int, c *chunk.Chunk) {
	if err := x.in.Send(x.ports[port], stream.Message{Chunk: c}); err != nil {
		x.r.t.Fatal(err)
	}
}

// barrier ends an epoch everywhere and commits it.
func (r *rig) barrier(mu *stream.Mutation) storage.Epoch {
	r.epoch++
	b := &stream.Barrier{Epoch: r.epoch, Mutation: mu}
	for _, x := range r.runs {
		for _, c := range x.ports {
			if c >= 0 {
				if err := x.in.Send(c, stream.Message{Barrier: b}); err != nil {
					r.t.Fatal(err)
				}
			}
		}
	}
	for _, x := range r.runs {
		x.mu.Lock()
		for x.seen < b.Epoch && !x.done {
			x.cond.Wait()
		}
		err := x.err
		x.mu.Unlock()
		if err != nil {
			r.t.Fatalf("actor: %v", err)
		}
	}
	if r.every > 0 && b.Epoch%r.every != 0 {
		return b.Epoch
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.Commit(b.Epoch); err != nil {
		r.t.Fatal(err)
	}
	r.commits.Broadcast()
	return b.Epoch
}

// fails waits until the run ends and returns its error.
func (x *run) fails() error {
	err := <-x.ended
	x.r.runs = slices.DeleteFunc(x.r.runs, func(y *run) bool { return y == x })
	return err
}

// take returns the output of ended epochs since the last take.
func (x *run) take() []*chunk.Chunk {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.out
	x.out = nil
	return out
}

// A bag is a multiset of rows in text form.
type bag map[string]int

func text(r types.Row, s types.Schema) string {
	var b strings.Builder
	for i, d := range r {
		if i > 0 {
			b.WriteByte('|')
		}
		if d.IsNull() {
			b.WriteString("NULL")
			continue
		}
		b.Write(types.AppendText(nil, s[i].Type, d, nil))
	}
	return b.String()
}

// A keyed relation is a bag whose rows have a key: no two with equal keys are ever there together.
type keyed struct {
	bag
	key  []int
	rows map[string]string
}

func newKeyed(key ...int) *keyed { return &keyed{bag{}, key, map[string]string{}} }

func (k *keyed) apply(t testing.TB, s types.Schema, cs []*chunk.Chunk) {
	t.Helper()
	for _, c := range cs {
		for i := range c.Len() {
			row := c.Row(i)
			key := text(row.Project(k.key), s.Project(k.key))
			old, ok := k.rows[key]
			if c.Op(i) == chunk.Insert {
				if ok {
					t.Fatalf("row %s comes before %s of the same key has gone", text(row, s), old)
				}
				k.rows[key] = text(row, s)
				continue
			}
			if old != text(row, s) {
				t.Fatalf("row %s goes, and %q is there", text(row, s), old)
			}
			delete(k.rows, key)
		}
	}
	k.bag.apply(t, s, cs)
}

// apply changes the bag, which must never go below zero.
func (b bag) apply(t testing.TB, s types.Schema, cs []*chunk.Chunk) {
	t.Helper()
	for _, c := range cs {
		if len(c.Cols) != len(s) {
			t.Fatalf("chunk has %d columns, schema %d", len(c.Cols), len(s))
		}
		for i := range c.Len() {
			k := text(c.Row(i), s)
			b[k] += int(c.Op(i).Sign())
			if b[k] < 0 {
				t.Fatalf("row %s deleted and not there", k)
			}
			if b[k] == 0 {
				delete(b, k)
			}
		}
	}
}

func (b bag) String() string {
	var out []string
	for k, n := range b {
		for range n {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func bagOf(s types.Schema, rows []types.Row) bag {
	b := bag{}
	for _, r := range rows {
		b[text(r, s)]++
	}
	return b
}

func (b bag) check(t testing.TB, want bag, what string, args ...any) {
	t.Helper()
	if g, w := b.String(), want.String(); g != w {
		t.Fatalf("%s\n--- got\n%s\n--- want\n%s", fmt.Sprintf(what, args...), g, w)
	}
}

func schemaOf(ts ...types.Type) types.Schema {
	s := make(types.Schema, len(ts))
	for i, t := range ts {
		s[i] = types.Field{Name: fmt.Sprintf("c%d", i), Type: t}
	}
	return s
}

func mergeOf(port int, s types.Schema, key ...int) *plan.StreamMerge {
	return &plan.StreamMerge{Operator: plan.Props{Schema: s, Key: key}, Port: port}
}

// stateTable describes a table over input columns.
func stateTable(id catalog.ID, in types.Schema, cols, key, dist []int) *plan.TableDesc {
	return &plan.TableDesc{ID: id, Name: fmt.Sprint("t", id), Schema: in.Project(cols), Key: key, Dist: dist, From: cols}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func aggCallOf(t testing.TB, in types.Schema, name string, args ...int) expr.Agg {
	t.Helper()
	var ts []types.Type
	for _, a := range args {
		ts = append(ts, in[a].Type)
	}
	f, _, err := expr.ResolveAgg(name, ts, len(args) == 0)
	if err != nil {
		t.Fatal(err)
	}
	ret := f.Ret
	if f.RetType != nil {
		ret = f.RetType(ts)
	}
	return expr.Agg{Fn: f, Args: args, Typ: ret, Filter: -1}
}

// A world is a random changing relation with a key.
type world struct {
	schema types.Schema
	rows   []types.Row
	rand   *rand.Rand
	fresh  func(r *rand.Rand) types.Row // a row with a new key
	old    []types.Row                  // rows as of the last barrier
}

// change makes n random changes.
func (w *world) change(n, size int, deletes bool) *chunk.Chunk {
	b := chunk.NewBuilder(w.schema.Types(), n*2+1)
	for range n {
		switch k := w.rand.IntN(10); {
		case deletes && k < 3 && len(w.rows) > 0: // delete
			i := w.rand.IntN(len(w.rows))
			b.AppendRow(chunk.Delete, w.rows[i])
			w.rows[i] = w.rows[len(w.rows)-1]
			w.rows = w.rows[:len(w.rows)-1]
		case deletes && k < 5 && len(w.rows) > 0: // update, keeping the key in column 0
			i := w.rand.IntN(len(w.rows))
			b.AppendRow(chunk.Delete, w.rows[i])
			next := w.fresh(w.rand)
			next[0] = w.rows[i][0]
			w.rows[i] = next
			b.AppendRow(chunk.Insert, next)
		default:
			row := w.fresh(w.rand)
			w.rows = append(w.rows, row)
			b.AppendRow(chunk.Insert, row)
		}
	}
	return b.Take()
}

func (w *world) mark() { w.old = slices.Clone(w.rows) }
func (w *world) lose() { w.rows = slices.Clone(w.old) }

// pieces cuts a chunk.
func pieces(c *chunk.Chunk, size int) []*chunk.Chunk {
	if c == nil {
		return nil
	}
	var out []*chunk.Chunk
	for i := 0; i < c.Len(); i += size {
		out = append(out, c.Slice(i, min(c.Len(), i+size)))
	}
	return out
}

func maybeNull(r *rand.Rand, d types.Datum) types.Datum {
	if r.IntN(6) == 0 {
		return types.Datum{}
	}
	return d
}

// chunkOf makes one chunk of rows; nil: there are none.
func chunkOf(s types.Schema, deletes bool, rows []types.Row) *chunk.Chunk {
	b := chunk.NewBuilder(s.Types(), len(rows)+1)
	op := chunk.Insert
	if deletes {
		op = chunk.Delete
	}
	for _, r := range rows {
		b.AppendRow(op, r)
	}
	return b.Take()
}

// deleteAllTo sends deletes of all rows to a port.
func (w *world) deleteAllTo(x *run, port, size int) []types.Row {
	for _, c := range pieces(chunkOf(w.schema, true, w.rows), size) {
		x.send(port, c)
	}
	return nil
}
