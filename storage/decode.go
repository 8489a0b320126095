package storage

import (
	"encoding/binary"
	"math"
	"unsafe"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A plan is how to read a choice of columns: the steps through the key, then
// those through the value, each as far as the last wanted column.
type plan struct {
	key  []step
	val  []step
	more []int // destinations of columns that are chosen more than once: pairs (from, to)
}

// A step passes one encoded column.
type step struct {
	dst    int // where in the output; -1: skipped
	kind   types.Kind
	mask   byte // key: 0xFF for a descending column
	float4 bool
	typ    types.Type
}

func (c *Codec) plan(cols []int) plan {
	var p plan
	dst := make([]int, len(c.desc.Schema))
	for i := range dst {
		dst[i] = -1
	}
	for j, col := range cols {
		if dst[col] >= 0 {
			p.more = append(p.more, dst[col], j)
			continue
		}
		dst[col] = j
	}
	last := 0
	for j := range c.val {
		v := &c.val[j]
		p.val = append(p.val, step{dst: dst[v.col], kind: v.kind, float4: v.float4, typ: v.typ})
		if dst[v.col] >= 0 {
			last = j + 1
			dst[v.col] = -1
		}
	}
	p.val, last = p.val[:last], 0
	for j := range c.key {
		k := &c.key[j]
		s := step{dst: dst[k.col], kind: k.kind}
		if k.desc {
			s.mask = 0xFF
		}
		p.key = append(p.key, s)
		if s.dst >= 0 {
			last = j + 1
			dst[k.col] = -1
		}
	}
	p.key = p.key[:last]
	return p
}

// A stringArena carves strings out of blocks. A block is small, so that one string
// that lives on does not keep much else alive.
type stringArena struct{ block []byte }

const stringBlock = 8 << 10

func (a *stringArena) of(b []byte) string {
	if a == nil || len(b) > stringBlock/8 {
		return string(b)
	}
	if len(b) == 0 {
		return ""
	}
	if cap(a.block)-len(a.block) < len(b) {
		a.block = make([]byte, 0, stringBlock)
	}
	n := len(a.block)
	a.block = append(a.block, b...)
	return unsafe.String(&a.block[n], len(b))
}

func putInt(c chunk.Column, x int64) {
	v := c.(*chunk.Vec[int64])
	v.Data = append(v.Data, x)
	if v.Nulls != nil {
		v.Nulls = append(v.Nulls, false)
	}
}

func putString(c chunk.Column, x string) {
	v := c.(*chunk.Vec[string])
	v.Data = append(v.Data, x)
	if v.Nulls != nil {
		v.Nulls = append(v.Nulls, false)
	}
}

func (p *plan) decode(key, val []byte, into []chunk.Column, a *stringArena) error {
	if len(p.key) > 0 {
		if err := p.decodeKey(key, into, a); err != nil {
			return err
		}
	}
	if len(p.val) > 0 {
		if err := p.decodeVal(val, into, a); err != nil {
			return err
		}
	}
	for i := 0; i < len(p.more); i += 2 {
		src := into[p.more[i]]
		into[p.more[i+1]].AppendFrom(src, src.Len()-1)
	}
	return nil
}

func (p *plan) decodeKey(key []byte, into []chunk.Column, a *stringArena) error {
	if len(key) < 2 {
		return errCorrupt
	}
	b := key[2:]
	var scratch [64]byte
	for i := range p.key {
		s := &p.key[i]
		if len(b) == 0 {
			return errCorrupt
		}
		if b[0]^s.mask == keyNull {
			b = b[1:]
			if s.dst >= 0 {
				into[s.dst].AppendNull()
			}
			continue
		}
		switch s.kind {
		case types.KindInt:
			v, n := keyInt(b, s.mask)
			if n == 0 {
				return errCorrupt
			}
			b = b[n:]
			if s.dst >= 0 {
				putInt(into[s.dst], v)
			}
		case types.KindString:
			v, n := keyString(b[1:], s.mask, scratch[:])
			if n == 0 {
				return errCorrupt
			}
			b = b[1+n:]
			if s.dst >= 0 {
				putString(into[s.dst], a.of(v))
			}
		case types.KindBool:
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[bool]).AppendValue(b[0]^s.mask == 0x02)
			}
			b = b[1:]
		case types.KindFloat:
			if len(b) < 9 {
				return errCorrupt
			}
			b = b[9:]
		case types.KindInterval:
			if len(b) < 17 {
				return errCorrupt
			}
			b = b[17:]
		default:
			return errCorrupt // NewCodec never plans past a column without a known end
		}
	}
	return nil
}

func (p *plan) decodeVal(b []byte, into []chunk.Column, a *stringArena) error {
	if len(b) < 2 {
		return errCorrupt
	}
	format := b[0]
	n, w := uint64(b[1]), 1
	if n >= 0x80 {
		n, w = binary.Uvarint(b[1:])
	}
	if w <= 0 || n > 1<<16 {
		return errCorrupt
	}
	b = b[1+w:]
	var nulls []byte
	switch format {
	case rowPlain:
	case rowNulls:
		w := (int(n) + 7) / 8
		if len(b) < w {
			return errCorrupt
		}
		nulls, b = b[:w], b[w:]
	default:
		return errCorrupt
	}
	for i := range p.val {
		s := &p.val[i]
		if i >= int(n) || nulls != nil && nulls[i/8]>>(i%8)&1 != 0 {
			if s.dst >= 0 {
				into[s.dst].AppendNull()
			}
			continue
		}
		switch s.kind {
		case types.KindInt:
			var v int64
			if len(b) > 0 && b[0] < 0x80 {
				v = int64(b[0]>>1) ^ -int64(b[0]&1)
				b = b[1:]
			} else {
				x, w := binary.Varint(b)
				if w <= 0 {
					return errCorrupt
				}
				v, b = x, b[w:]
			}
			if s.dst >= 0 {
				putInt(into[s.dst], v)
			}
		case types.KindString:
			v, rest, err := readBytes(b)
			if err != nil {
				return err
			}
			b = rest
			if s.dst >= 0 {
				putString(into[s.dst], a.of(v))
			}
		case types.KindBool:
			if len(b) == 0 {
				return errCorrupt
			}
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[bool]).AppendValue(b[0] != 0)
			}
			b = b[1:]
		case types.KindFloat:
			var f float64
			switch {
			case s.float4 && len(b) >= 4:
				f, b = float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
			case !s.float4 && len(b) >= 8:
				f, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
			default:
				return errCorrupt
			}
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[float64]).AppendValue(f)
			}
		case types.KindDecimal:
			v, rest, err := types.ReadBinary(b)
			if err != nil {
				return err
			}
			b = rest
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[types.Decimal]).AppendValue(v)
			}
		case types.KindInterval:
			v, rest, err := readInterval(b)
			if err != nil {
				return err
			}
			b = rest
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[types.Interval]).AppendValue(v)
			}
		case types.KindList:
			v, rest, err := readList(b, *s.typ.Elem, 0)
			if err != nil {
				return err
			}
			b = rest
			if s.dst >= 0 {
				into[s.dst].(*chunk.Vec[*types.List]).AppendValue(v)
			}
		default:
			return errCorrupt
		}
	}
	return nil
}
