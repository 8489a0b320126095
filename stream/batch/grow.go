package batch

import (
	"context"
	"fmt"
	"strings"

	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A grower appends rows to one chunk.
type grower struct {
	cols  []chunk.Column
	n     int
	bytes int64
}

func newGrower(typs []types.Type, room int) *grower {
	g := &grower{cols: make([]chunk.Column, len(typs))}
	for i, t := range typs {
		g.cols[i] = chunk.New(t, room)
	}
	return g
}

// add appends all of c.
func (g *grower) add(c *chunk.Chunk) {
	for i, col := range g.cols {
		appendSel(col, c.Cols[i], nil)
	}
	g.n += c.Len()
	g.bytes += chunkBytes(c)
}

// addSel appends the selected rows of c; it does not keep count of bytes.
func (g *grower) addSel(c *chunk.Chunk, sel []int) {
	for i, col := range g.cols {
		appendSel(col, c.Cols[i], sel)
	}
	g.n += len(sel)
}

func (g *grower) chunk() *chunk.Chunk { return &chunk.Chunk{Cols: g.cols, N: g.n} }

// appendSel appends the selected values of src to dst; a nil sel is all.
func appendSel(dst, src chunk.Column, sel []int) {
	switch d := dst.(type) {
	case *chunk.Vec[int64]:
		appendVec(d, src, sel)
	case *chunk.Vec[string]:
		appendVec(d, src, sel)
	case *chunk.Vec[float64]:
		appendVec(d, src, sel)
	case *chunk.Vec[bool]:
		appendVec(d, src, sel)
	case *chunk.Vec[types.Decimal]:
		appendVec(d, src, sel)
	case *chunk.Vec[types.Interval]:
		appendVec(d, src, sel)
	case *chunk.Vec[*types.List]:
		appendVec(d, src, sel)
	default:
		panic(fmt.Sprintf("batch: append to %T", dst))
	}
}

func appendVec[T any](d *chunk.Vec[T], src chunk.Column, sel []int) {
	s := chunk.Of[T](src)
	if s.Nulls != nil && d.Nulls == nil {
		d.Nulls = make([]bool, len(d.Data), cap(d.Data))
	}
	if sel == nil {
		d.Data = append(d.Data, s.Data...)
	} else {
		for _, i := range sel {
			d.Data = append(d.Data, s.Data[i])
		}
	}
	switch {
	case d.Nulls == nil:
	case s.Nulls == nil:
		for len(d.Nulls) < len(d.Data) {
			d.Nulls = append(d.Nulls, false)
		}
	case sel == nil:
		d.Nulls = append(d.Nulls, s.Nulls...)
	default:
		for _, i := range sel {
			d.Nulls = append(d.Nulls, s.Nulls[i])
		}
	}
}

// gatherPadded is Gather where -1 gives NULL.
func gatherPadded(c chunk.Column, sel []int) chunk.Column {
	switch v := c.(type) {
	case *chunk.Vec[int64]:
		return gatherVec(v, sel)
	case *chunk.Vec[string]:
		return gatherVec(v, sel)
	case *chunk.Vec[float64]:
		return gatherVec(v, sel)
	case *chunk.Vec[bool]:
		return gatherVec(v, sel)
	case *chunk.Vec[types.Decimal]:
		return gatherVec(v, sel)
	case *chunk.Vec[types.Interval]:
		return gatherVec(v, sel)
	case *chunk.Vec[*types.List]:
		return gatherVec(v, sel)
	}
	panic(fmt.Sprintf("batch: gather of %T", c))
}

func gatherVec[T any](v *chunk.Vec[T], sel []int) chunk.Column {
	data, nulls := make([]T, len(sel)), make([]bool, len(sel))
	for i, s := range sel {
		if s < 0 || v.Nulls != nil && v.Nulls[s] {
			nulls[i] = true
		} else {
			data[i] = v.Data[s]
		}
	}
	return chunk.NewVec(v.Type(), data, nulls)
}

// pick returns some columns.
func pick(cols []chunk.Column, at []int) []chunk.Column {
	out := make([]chunk.Column, len(at))
	for i, c := range at {
		out[i] = cols[c]
	}
	return out
}

// pickTypes returns some types.
func pickTypes(typs []types.Type, at []int) []types.Type {
	out := make([]types.Type, len(at))
	for i, c := range at {
		out[i] = typs[c]
	}
	return out
}

// pickKeys returns columns whose Go values are equal where SQL says they are:
// trailing blanks of a char(n) do not count.
func pickKeys(cols []chunk.Column, at []int) []chunk.Column {
	out := pick(cols, at)
	for i, c := range out {
		out[i] = keyColumn(c)
	}
	return out
}

func keyColumn(c chunk.Column) chunk.Column {
	if c.Type().OID != types.OIDBpchar {
		return c
	}
	v := chunk.Of[string](c)
	for _, s := range v.Data {
		if !strings.HasSuffix(s, " ") {
			continue
		}
		data := make([]string, len(v.Data))
		for k, s := range v.Data {
			data[k] = strings.TrimRight(s, " ")
		}
		return chunk.NewVec(v.Type(), data, v.Nulls)
	}
	return c
}

// upTo is 0 … n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// hashRows is chunk.Hash into memory that is used again.
func hashRows(buf []uint64, cols []chunk.Column, n int) []uint64 {
	if cap(buf) < n {
		buf = make([]uint64, n)
	}
	buf = buf[:n]
	clear(buf)
	for _, c := range cols {
		chunk.HashInto(c, buf)
	}
	return buf
}

// collect reads a source to its end, or until it has given at least limit rows (0: no limit).
func collect(ctx context.Context, in source, typs []types.Type, limit int, over func(bytes int64) error) (*chunk.Chunk, error) {
	var first *chunk.Chunk
	var g *grower
	bytes, n := int64(0), 0
	for limit == 0 || n < limit {
		c, err := in.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		n += c.Len()
		bytes += chunkBytes(c)
		if err := over(bytes); err != nil {
			return nil, err
		}
		switch {
		case first == nil:
			first = c
		case g == nil:
			g = newGrower(typs, 2*first.Len())
			g.add(first)
			fallthrough
		default:
			g.add(c)
		}
	}
	switch {
	case g != nil:
		return g.chunk(), nil
	case first != nil:
		return first, nil
	}
	return newGrower(typs, 0).chunk(), nil
}
