package exec

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"streamdb/sql/chunk"
)

// A changeSort sorts changes by key, those of one key in the order they came, and folds
// the changes of a key to what they come to. Changes are collected in runs of a few
// megabytes, each sorted when it is full; past a budget runs go to files without a name. The
// runs are merged as the result is read, so that it takes no memory of its own.
type changeSort struct {
	dir    string // of the files
	budget int64  // bytes of runs in memory
	run    int    // bytes a run has before it is sorted
	quota  *quota

	data []byte // of the open run: changes
	ents []sortEnt
	tmp  []sortEnt
	runs []*sortRun
	size int64 // of the runs in memory

	heap []*sortRun // by key, then by age; filled by start
	key  []byte
	vals [2][]byte
}

// A sortEnt is a change of a run: where it is, and eight bytes of its key.
type sortEnt struct {
	head uint64
	at   uint32
}

const (
	mostRun    = 2 << 20
	leastSort  = 1 << 20   // the budget is never less
	freeSort   = 256 << 20 // nor more, where the cache has no limit
	sortPart   = 4         // the part of the cache that one sort may take
	mergeBytes = 64 << 10  // read of a file at a time
)

func newChangeSort(env *Env) *changeSort {
	s := &changeSort{dir: env.SpillDir, budget: freeSort}
	if env.Cache != nil && env.Cache.Limit() > 0 {
		s.budget = max(leastSort, env.Cache.Limit()/sortPart)
	}
	if env.sortBudget > 0 {
		s.budget = env.sortBudget
	}
	s.run = int(min(mostRun, s.budget/2))
	s.quota = env.Cache.register()
	return s
}

// add takes in a change; what it refers to is copied. full: a run is ended by it.
func (s *changeSort) add(op chunk.Op, key, val []byte) (full bool, err error) {
	s.ents = append(s.ents, sortEnt{at: uint32(len(s.data))})
	s.data = appendChange(s.data, op, key, val)
	if len(s.data) < s.run {
		return false, nil
	}
	return true, s.endRun()
}

// endRun sorts the open run and puts it by.
func (s *changeSort) endRun() error {
	if len(s.ents) == 0 {
		return nil
	}
	if cap(s.tmp) < len(s.ents) {
		s.tmp = make([]sortEnt, len(s.ents))
	}
	sortEnts(s.data, s.ents, s.tmp[:len(s.ents)])
	r := &sortRun{age: len(s.runs)}
	s.runs = append(s.runs, r)
	if s.size+int64(len(s.data)) > s.budget {
		if err := r.write(s.dir, s.data, s.ents); err != nil {
			return fmt.Errorf("sort changes on disk: %w", err)
		}
		s.data = s.data[:0]
	} else {
		r.data, r.order = s.data, make([]uint32, len(s.ents))
		for i, e := range s.ents {
			r.order[i] = e.at
		}
		s.size += int64(len(s.data) + 4*len(s.ents))
		s.quota.set(s.size)
		s.data = make([]byte, 0, s.run+s.run/8)
	}
	s.ents = s.ents[:0]
	return nil
}

// sortEnts sorts a run's entries by key, then by place.
func sortEnts(data []byte, ents, tmp []sortEnt) {
	key := func(at uint32) []byte {
		_, k, _, _, _ := cutChange(data[at:])
		return k
	}
	first := key(ents[0].at)
	common := len(first)
	for _, e := range ents[1:] {
		k := key(e.at)
		n := min(common, len(k))
		for i := range n {
			if k[i] != first[i] {
				n = i
				break
			}
		}
		common = n
	}
	var head [8]byte
	for i := range ents {
		if k := key(ents[i].at)[common:]; len(k) >= 8 {
			ents[i].head = binary.BigEndian.Uint64(k)
		} else {
			head = [8]byte{}
			copy(head[:], k)
			ents[i].head = binary.BigEndian.Uint64(head[:])
		}
	}
	radixEnts(ents, tmp)
	for at := 0; at < len(ents); {
		end := at + 1
		for end < len(ents) && ents[end].head == ents[at].head {
			end++
		}
		if end > at+1 {
			slices.SortFunc(ents[at:end], func(a, b sortEnt) int {
				if c := bytes.Compare(key(a.at)[common:], key(b.at)[common:]); c != 0 {
					return c
				}
				return cmp.Compare(a.at, b.at)
			})
		}
		at = end
	}
}

// radixEnts sorts by head, byte by byte from the last; a byte that all heads share is skipped.
func radixEnts(ents, tmp []sortEnt) {
	var counts [8][256]uint32
	for _, e := range ents {
		for d := range counts {
			counts[d][byte(e.head>>(8*d))]++
		}
	}
	from, to := ents, tmp
	for d := range counts {
		if counts[d][byte(from[0].head>>(8*d))] == uint32(len(from)) {
			continue
		}
		at := uint32(0)
		for i, n := range counts[d] {
			counts[d][i] = at
			at += n
		}
		for _, e := range from {
			b := byte(e.head >> (8 * d))
			to[counts[d][b]] = e
			counts[d][b]++
		}
		from, to = to, from
	}
	if &from[0] != &ents[0] {
		copy(ents, from)
	}
}

// A folded is what a key's changes come to: the first was of row was (nil where it was an
// Insert, so that no row had the key before), and row now has it (nil: none). It is valid until the next one.
type folded struct{ key, was, now []byte }

// start ends the input. next can be called from then on.
func (s *changeSort) start() error {
	if err := s.endRun(); err != nil {
		return err
	}
	s.data, s.ents, s.tmp = nil, nil, nil
	for _, r := range s.runs {
		if err := r.open(); err != nil {
			return err
		}
		if r.ok {
			s.heap = append(s.heap, r)
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	return nil
}

// errDouble is a key that is inserted or deleted twice on end.
type errDouble struct {
	op       chunk.Op
	key, val []byte
}

func (e *errDouble) Error() string {
	return fmt.Sprintf("key %x is %s twice", e.key, [...]string{"inserted", "deleted"}[e.op])
}

// next returns the next key that has changed, false at the end. Changes that cancel each
// other out give a folded without rows.
func (s *changeSort) next() (f folded, ok bool, err error) {
	if len(s.heap) == 0 {
		return f, false, nil
	}
	r := s.heap[0]
	s.key = append(s.key[:0], r.key...)
	first, last := r.op, r.op
	s.vals[r.op] = append(s.vals[r.op][:0], r.val...)
	if err := s.step(); err != nil {
		return f, false, err
	}
	for len(s.heap) > 0 && bytes.Equal(s.heap[0].key, s.key) {
		r := s.heap[0]
		if r.op == last {
			return f, false, &errDouble{last, s.key, bytes.Clone(r.val)}
		}
		// Of the rows that leave only the one that was there before counts.
		if last = r.op; last == chunk.Insert {
			s.vals[last] = append(s.vals[last][:0], r.val...)
		}
		if err := s.step(); err != nil {
			return f, false, err
		}
	}
	f.key = s.key
	if first == chunk.Delete {
		f.was = s.vals[chunk.Delete]
	}
	if last == chunk.Insert {
		f.now = s.vals[chunk.Insert]
	}
	return f, true, nil
}

// step moves on the run that stands lowest.
func (s *changeSort) step() error {
	r := s.heap[0]
	if err := r.next(); err != nil {
		return err
	}
	if !r.ok {
		n := len(s.heap) - 1
		s.heap[0] = s.heap[n]
		s.heap = s.heap[:n]
	}
	s.down(0)
	return nil
}

func (s *changeSort) down(i int) {
	for {
		l := 2*i + 1
		if l >= len(s.heap) {
			return
		}
		if l+1 < len(s.heap) && s.heap[l+1].before(s.heap[l]) {
			l++
		}
		if !s.heap[l].before(s.heap[i]) {
			return
		}
		s.heap[i], s.heap[l] = s.heap[l], s.heap[i]
		i = l
	}
}

// close lets memory and files go.
func (s *changeSort) close() {
	if s == nil {
		return
	}
	for _, r := range s.runs {
		if r.file != nil {
			r.file.Close()
		}
	}
	s.runs, s.heap, s.data = nil, nil, nil
	s.quota.close()
}

// A sortRun is sorted changes, in memory or in a file. op, key and val are those of the
// change it stands at, while ok.
type sortRun struct {
	age   int
	data  []byte
	order []uint32 // where changes are in data
	file  *os.File // nil: in memory
	in    *bufio.Reader
	buf   []byte

	ok       bool
	op       chunk.Op
	key, val []byte
}

func (r *sortRun) before(o *sortRun) bool {
	if c := bytes.Compare(r.key, o.key); c != 0 {
		return c < 0
	}
	return r.age < o.age
}

// write puts the run into a file, whose name is taken away at once.
func (r *sortRun) write(dir string, data []byte, ents []sortEnt) error {
	f, err := os.CreateTemp(dir, "streamdb-sort*")
	if err != nil {
		return err
	}
	r.file = f
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	for _, e := range ents {
		b := data[e.at:]
		_, _, _, rest, err := cutChange(b)
		if err != nil {
			return err
		}
		if _, err := w.Write(b[:len(b)-len(rest)]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// open stands at the first change.
func (r *sortRun) open() error {
	if r.file != nil {
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		r.in = bufio.NewReaderSize(r.file, mergeBytes)
	}
	return r.next()
}

func (r *sortRun) next() (err error) {
	if r.file == nil {
		if r.ok = len(r.order) > 0; !r.ok {
			return nil
		}
		r.op, r.key, r.val, _, err = cutChange(r.data[r.order[0]:])
		r.order = r.order[1:]
		return err
	}
	k, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		r.ok = false
		return nil
	}
	if err != nil {
		return err
	}
	v, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	n := k>>1 + v
	r.buf = slices.Grow(r.buf[:0], int(n))[:n]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return err
	}
	r.ok, r.op, r.key, r.val = true, chunk.Op(k&1), r.buf[:k>>1], r.buf[k>>1:]
	return nil
}
