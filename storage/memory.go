package storage

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// A MemDisk is the disk of a memory engine: what a simulated crash leaves. Open
// a Store on it again after Crash to see what survived.
type MemDisk struct {
	mu       sync.Mutex
	versions []memVersion // ascending; never empty
	power    int          // counts crashes; an engine of an older count is dead
	until    int          // batches until a crash within apply; 0: none planned
	survives bool         // whether the batch of that crash is kept
}

type memVersion struct {
	epoch  Epoch
	tree   btree
	marker []byte
}

// NewMemDisk makes an empty disk.
func NewMemDisk() *MemDisk { return &MemDisk{versions: []memVersion{{}}} }

// Crash cuts the power: every Store open on d fails from here on, and old versions are forgotten.
func (d *MemDisk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crash()
}

func (d *MemDisk) crash() {
	d.power++
	d.versions = d.versions[len(d.versions)-1:]
	d.until = 0
}

// CrashAt plans a crash within the n-th commit from now on (1: the next one). The
// commit fails; survives says whether its writes reached the disk all the same.
func (d *MemDisk) CrashAt(n int, survives bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until, d.survives = n, survives
}

var errPower = errors.New("simulated power loss")

// memory is the engine over a MemDisk.
type memory struct {
	d     *MemDisk
	power int
}

func openMemory(d *MemDisk) *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &memory{d: d, power: d.power}
}

func (m *memory) apply(b batch) error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.power != m.d.power {
		return errPower
	}
	cut := m.d.until == 1
	if m.d.until > 0 {
		m.d.until--
	}
	if cut && !m.d.survives {
		m.d.crash()
		return errPower
	}
	now := m.d.versions[len(m.d.versions)-1]
	if b.epoch < now.epoch {
		return fmt.Errorf("epoch %d is below the newest, %d", b.epoch, now.epoch)
	}
	owner := new(int)
	tree := now.tree
	for w := range b.writes {
		if w.val == nil {
			tree = tree.delete(owner, w.key)
			continue
		}
		tree = tree.set(owner, write{key: bytes.Clone(w.key), val: append([]byte{}, w.val...), meta: w.meta})
	}
	next := memVersion{epoch: b.epoch, tree: tree, marker: b.marker}
	if b.marker == nil {
		next.marker = now.marker
	}
	if b.epoch == now.epoch {
		m.d.versions[len(m.d.versions)-1] = next
	} else {
		m.d.versions = append(m.d.versions, next)
	}
	if cut {
		m.d.crash()
		return errPower
	}
	return nil
}

func (m *memory) view(e Epoch) (view, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.power != m.d.power {
		return nil, errPower
	}
	for i := len(m.d.versions) - 1; i >= 0; i-- {
		if v := m.d.versions[i]; v.epoch <= e {
			return memView{v.tree}, nil
		}
	}
	return nil, fmt.Errorf("epoch %d was discarded", e)
}

func (m *memory) discard(below Epoch) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.power != m.d.power {
		return
	}
	for len(m.d.versions) > 1 && m.d.versions[1].epoch <= below {
		m.d.versions = m.d.versions[1:]
	}
}

func (m *memory) dropPrefixes(prefixes [][]byte) error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	v := &m.d.versions[len(m.d.versions)-1]
	owner := new(int)
	for _, p := range prefixes {
		var keys [][]byte
		c := treeCursor{root: v.tree.root, prefix: p}
		for ok := c.seek(p); ok; ok = c.next() {
			keys = append(keys, c.key())
		}
		for _, k := range keys {
			v.tree = v.tree.delete(owner, k)
		}
	}
	return nil
}

func (m *memory) last() (lastState, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	v := m.d.versions[len(m.d.versions)-1]
	s := lastState{marker: v.marker, newest: v.epoch}
	if v.marker != nil {
		s.version = v.epoch
	}
	return s, nil
}

// repair has nothing to undo: a batch is whole or absent.
func (m *memory) repair(_, to Epoch, marker []byte) (int, error) {
	return 0, m.apply(batch{epoch: to, writes: func(func(write) bool) {}, marker: marker})
}

func (m *memory) size() int64    { return 0 }
func (m *memory) compact() error { return nil }
func (m *memory) failure() error { return nil }
func (m *memory) close() error   { return nil }

type memView struct{ t btree }

func (v memView) get(key []byte) ([]byte, byte, error) {
	w, ok := v.t.get(key)
	if !ok {
		return nil, 0, nil
	}
	return w.val, w.meta, nil
}
func (v memView) cursor(prefix []byte) cursor { return &treeCursor{root: v.t.root, prefix: prefix} }
func (v memView) close()                      {}
