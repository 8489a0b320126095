package storage

import (
	"bytes"
	"errors"
)

var errScanSealed = errors.New("the table's epoch ended while it was scanned")

// A source walks one ordered run of entries upwards. val is nil for a deleted key.
type source interface {
	seek(key []byte)
	valid() bool
	key() []byte
	val() ([]byte, error)
	next()
}

// sealedSource walks a sealed layer.
type sealedSource struct {
	l *layer
	i int
}

func (s *sealedSource) seek(key []byte) {
	lo, hi := 0, len(s.l.sorted)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if bytes.Compare(s.l.key(s.l.sorted[m]), key) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	s.i = lo
}
func (s *sealedSource) valid() bool          { return s.i < len(s.l.sorted) }
func (s *sealedSource) key() []byte          { return s.l.key(s.l.sorted[s.i]) }
func (s *sealedSource) val() ([]byte, error) { return s.l.val(s.l.sorted[s.i]), nil }
func (s *sealedSource) next()                { s.i++ }

// openSource walks an open layer; whoever inserts into the layer makes it seek again.
type openSource struct {
	l      *layer
	run, i int
	gen    int
}

func (s *openSource) seek(key []byte) {
	s.run, s.i = s.l.order.seek(s.l, key)
	s.gen = s.l.order.gen
}
func (s *openSource) valid() bool          { return s.run < len(s.l.order.runs) }
func (s *openSource) entry() uint32        { return s.l.order.runs[s.run][s.i] }
func (s *openSource) key() []byte          { return s.l.key(s.entry()) }
func (s *openSource) val() ([]byte, error) { return s.l.val(s.entry()), nil }
func (s *openSource) next() {
	if s.i++; s.i == len(s.l.order.runs[s.run]) {
		s.run, s.i = s.run+1, 0
	}
}

// A merge walks a committed view under layers of newer changes, raw keys in
// order, each key once with its newest value. It goes on rightly after the
// layers changed: changed tells it.
type merge struct {
	layers []source // newest first
	open   *openSource
	base   cursor // nil: none
	pin    *pin   // base's; nil: none
	prefix []byte // of base's keys
	to     []byte // end, exclusive; nil: none
	vnodes *VnodeSet

	baseOK    bool
	live      bool   // a source stands at the row last returned: base, or
	from      int    // this one of layers; -1: base
	k, v      []byte // the row
	pos       []byte // copy of the last key
	started   bool
	vnodeSeen int
	full      []byte // buffer for full keys
	tombs     bool   // deletions are returned too, as nil values
	track     bool   // pos is kept even without layers: they may come
}

// seek stands the merge before the first key at or above from.
func (m *merge) seek(from []byte) {
	m.pos = append(m.pos[:0], from...)
	m.started, m.live, m.vnodeSeen = false, false, -1
	for _, s := range m.layers {
		s.seek(from)
	}
	if m.base != nil {
		m.seekBase(from)
	}
}

func (m *merge) seekBase(key []byte) {
	m.full = append(append(m.full[:0], m.prefix...), key...)
	m.baseOK = m.base.seek(m.full)
	m.skipForeign()
}

// skipForeign moves base past vnodes that are not the reader's.
func (m *merge) skipForeign() {
	for m.baseOK && m.vnodes != nil {
		k := m.base.key()
		if len(k) < prefixLen+2 {
			return
		}
		v := int(VnodeOf(k[prefixLen:]))
		if v == m.vnodeSeen {
			return
		}
		if m.vnodes.Has(uint16(v)) {
			m.vnodeSeen = v
			return
		}
		next, ok := m.vnodes.next(v + 1)
		if !ok {
			m.baseOK = false
			return
		}
		m.full = append(append(m.full[:0], m.prefix...), byte(next>>8), byte(next))
		m.baseOK = m.base.seek(m.full)
	}
}

func (m *merge) stepBase() {
	m.baseOK = m.base.next()
	m.skipForeign()
}

// reseek stands every layer after the last key; base has not moved and stays.
func (m *merge) reseek() {
	m.live = m.live && m.from < 0
	for _, s := range m.layers {
		s.seek(m.pos)
		if m.started && s.valid() && bytes.Equal(s.key(), m.pos) {
			s.next()
		}
	}
}

// next moves to the next row, which is k and v until the following call.
func (m *merge) next() (bool, error) {
	if m.live {
		m.live = false
		if m.from < 0 {
			m.stepBase()
		} else {
			m.layers[m.from].next()
		}
	}
	if m.open != nil {
		o := m.open.l.order
		if o == nil {
			return false, errScanSealed
		}
		if m.open.gen != o.gen {
			m.reseek()
		}
	}
	for {
		var least []byte
		from := -1
		for i, s := range m.layers {
			if s.valid() {
				if k := s.key(); from < 0 || bytes.Compare(k, least) < 0 {
					least, from = k, i
				}
			}
		}
		onBase, same := false, false
		if m.baseOK {
			k := m.base.key()[prefixLen:]
			c := -1
			if from >= 0 {
				c = bytes.Compare(k, least)
			}
			if c < 0 {
				least, onBase = k, true
			}
			same = c == 0
		}
		if least == nil || m.to != nil && bytes.Compare(least, m.to) >= 0 {
			if m.base != nil {
				if err := m.base.err(); err != nil {
					return false, err
				}
				return false, m.pin.check()
			}
			return false, nil
		}
		if onBase {
			val, meta := m.base.val()
			if meta == metaBig {
				var err error
				if val, err = m.pin.join(m.base.key(), val); err != nil {
					return false, err
				}
			}
			if err := m.base.err(); err != nil {
				return false, err
			}
			if err := m.pin.check(); err != nil {
				return false, err
			}
			m.k, m.v, m.live, m.from, m.started = least, val, true, -1, true
			if m.track || len(m.layers) > 0 {
				m.pos = append(m.pos[:0], least...)
			}
			return true, nil
		}
		if m.base != nil && !m.baseOK { // whether at its end or at an error
			if err := m.base.err(); err != nil {
				return false, err
			}
		}
		val, err := m.layers[from].val()
		if err != nil {
			return false, err
		}
		m.pos = append(m.pos[:0], least...)
		m.started = true
		if same {
			m.stepBase()
		}
		for _, s := range m.layers[from+1:] {
			if s.valid() && bytes.Equal(s.key(), least) {
				s.next()
			}
		}
		if val != nil || m.tombs {
			m.k, m.v, m.live, m.from = least, val, true, from
			return true, nil
		}
		m.layers[from].next()
	}
}

func (m *merge) close() {
	if m.base != nil {
		m.base.close()
		m.pin.release()
		m.base = nil
	}
}
