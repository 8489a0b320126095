package parser

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A mask is a stretch of the text with parts of it overwritten by as many bytes, so that offsets stay what they were.
type mask struct {
	text string
	base int    // offset of text in the whole text; the methods' offsets count in the whole text
	over []byte // nil: nothing is overwritten
}

func (m *mask) string() string {
	if m.over == nil {
		return m.text
	}
	return string(m.over)
}

func (m *mask) bytes() []byte {
	if m.over == nil {
		m.over = []byte(m.text)
	}
	return m.over
}

// blank overwrites with spaces; line ends stay, and so do the line numbers.
func (m *mask) blank(from, to int) {
	b := m.bytes()[from-m.base : to-m.base]
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
}

// put overwrites with s, which must not be longer than what is there.
func (m *mask) put(from int, s string) { copy(m.bytes()[from-m.base:], s) }

// shiftLocations adds to every known location of a tree.
func shiftLocations(m protoreflect.Message, by int32) {
	if by == 0 {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Kind() == protoreflect.Int32Kind && !f.IsList() && strings.HasSuffix(string(f.Name()), "location"):
			if v := int32(m.Get(f).Int()); v >= 0 {
				m.Set(f, protoreflect.ValueOfInt32(v+by))
			}
		case f.Kind() != protoreflect.MessageKind || !m.Has(f):
		case f.IsList():
			list := m.Get(f).List()
			for k := range list.Len() {
				shiftLocations(list.Get(k).Message(), by)
			}
		default:
			shiftLocations(m.Get(f).Message(), by)
		}
	}
}

// leftmost returns the smallest known location in a tree, -1 if there is none.
func leftmost(m protoreflect.Message) int32 {
	least := int32(-1)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := int32(-1)
		switch {
		case f.Kind() == protoreflect.Int32Kind && !f.IsList() && strings.HasSuffix(string(f.Name()), "location"):
			at = int32(v.Int())
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for k := range v.List().Len() {
				if l := leftmost(v.List().Get(k).Message()); l >= 0 && (at < 0 || l < at) {
					at = l
				}
			}
		default:
			at = leftmost(v.Message())
		}
		if at >= 0 && (least < 0 || at < least) {
			least = at
		}
		return true
	})
	return least
}

// clearLocations sets every location of a tree to 0.
func clearLocations(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.Int32Kind && !f.IsList() && strings.HasSuffix(string(f.Name()), "location"):
			m.Clear(f)
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for k := range v.List().Len() {
				clearLocations(v.List().Get(k).Message())
			}
		default:
			clearLocations(v.Message())
		}
		return true
	})
}
