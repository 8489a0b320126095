package exec

import (
	"encoding/binary"
	"errors"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// A changeLog is a table to which changes are appended, many to an entry: blocks of
// changes of one vnode, under the vnode, a generation and a number that grows.
//
// A block is a list of changes as appendChange makes them. A number is the epoch that
// ended before the block was begun and a count within the open epoch. Epochs are never
// used twice, so whoever has the vnode after a restart or a rescale appends behind what is there,
// and needs to know nothing of it.
type changeLog struct {
	table *storage.StateTable
	codec *storage.Codec
	ended storage.Epoch // the last one
	seq   int64         // blocks of the open epoch
	open  []block       // by vnode
	begun []uint16      // vnodes of open that have something
}

type block struct{ data []byte }

const (
	blockBytes = 60 << 10 // a block is ended where it has as many
	blockSeq   = 24       // bits of a number for the count within an epoch
)

func newChangeLog(env *Env, t *plan.TableDesc) *changeLog {
	d := Desc(t, env.vnodeCount())
	d.Exact = true
	table := env.Store.Table(d, env.Vnodes)
	return &changeLog{table: table, codec: table.Codec(), open: make([]block, env.vnodeCount())}
}

// append adds a change to a vnode's log.
func (l *changeLog) append(vnode uint16, op chunk.Op, key, val []byte) error {
	b := &l.open[vnode]
	if len(b.data) == 0 {
		l.begun = append(l.begun, vnode)
	}
	b.data = appendChange(b.data, op, key, val)
	if len(b.data) < blockBytes {
		return nil
	}
	return l.flush(vnode)
}

func (l *changeLog) flush(vnode uint16) error {
	b := &l.open[vnode]
	if len(b.data) == 0 {
		return nil
	}
	err := l.table.Replace(l.key(vnode, int64(l.ended)<<blockSeq|l.seq), nil, b.data)
	l.seq++
	b.data = b.data[:0]
	return err
}

// key is that of a block; all of a locality provider's are of generation 0.
func (l *changeLog) key(vnode uint16, number int64) []byte {
	return l.codec.AppendKeyVnode(nil, vnode, []chunk.Column{
		chunk.NewVec(types.Int2, []int64{int64(vnode)}, nil), chunk.NewVec(types.Int8, []int64{0}, nil),
		chunk.NewVec(types.Int8, []int64{number}, nil),
	}, 0)
}

// seal ends epoch e.
func (l *changeLog) seal(e storage.Epoch) error {
	for _, v := range l.begun {
		if err := l.flush(v); err != nil {
			return err
		}
	}
	l.begun = l.begun[:0]
	l.ended, l.seq = e, 0
	return l.table.Commit(e)
}

// free lets the memory of blocks go; nothing is appended any more.
func (l *changeLog) free() { clear(l.open) }

// load hands a vnode's blocks after a raw key (nil: all) to each until that wants no
// more, and returns the key of the last one; end: there are no more. A block is valid during the call.
func (l *changeLog) load(vnode uint16, after []byte, each func(block []byte) (more bool, err error)) (last []byte, end bool, err error) {
	from := storage.VnodePrefix(vnode)
	to := storage.NextPrefix(from)
	if after != nil {
		from = append(append(from[:0], after...), 0)
	}
	for kv, err := range l.table.Scan(from, to) {
		if err != nil {
			return nil, false, err
		}
		more, err := each(kv.Val)
		if err != nil || !more {
			return append([]byte(nil), kv.Key...), false, err
		}
	}
	return nil, true, nil
}

// drop deletes a vnode's blocks.
func (l *changeLog) drop(vnode uint16) error {
	from := storage.VnodePrefix(vnode)
	var key, val []byte
	for kv, err := range l.table.Scan(from, storage.NextPrefix(from)) {
		if err != nil {
			return err
		}
		key, val = append(key[:0], kv.Key...), append(val[:0], kv.Val...)
		if err := l.table.Replace(key, val, nil); err != nil {
			return err
		}
	}
	return nil
}

// appendChange appends a change to a block: uvarints of twice the key's length and the op,
// and of the value's length, then both.
func appendChange(dst []byte, op chunk.Op, key, val []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key))<<1|uint64(op))
	dst = binary.AppendUvarint(dst, uint64(len(val)))
	dst = append(dst, key...)
	return append(dst, val...)
}

var errBlock = errors.New("a block of changes is damaged")

// cutChange takes the first change off a block.
func cutChange(b []byte) (op chunk.Op, key, val, rest []byte, err error) {
	k, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, nil, nil, errBlock
	}
	v, m := binary.Uvarint(b[n:])
	if m <= 0 || k>>1 > uint64(len(b)) || v > uint64(len(b)) || k>>1+v > uint64(len(b)-n-m) {
		return 0, nil, nil, nil, errBlock
	}
	b = b[n+m:]
	k, op = k>>1, chunk.Op(k&1)
	return op, b[:k:k], b[k : k+v : k+v], b[k+v:], nil
}
