package engine

import (
	"context"
	"fmt"

	"streamdb/planner/bind"
	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/types"
)

// copyStmt is COPY FROM STDIN and COPY TO STDOUT.
func (s *Session) copyStmt(ctx context.Context, stmt parser.Statement) (*Result, error) {
	st, err := bind.Copy(stmt, s.bindOptions(nil))
	if err != nil {
		return nil, err
	}
	if st.From {
		in, err := s.newCopyIn(ctx, st)
		if err != nil {
			return nil, err
		}
		return &Result{CopyIn: in, tag: tag("COPY")}, nil
	}
	p, err := s.plan(st.Query, s.db.Catalog())
	if err != nil {
		return nil, err
	}
	q := p.(*plan.Query)
	it, err := s.run(ctx, q.Root, s.exprCtx(nil), s.overlay)
	if err != nil {
		return nil, err
	}
	w := &copyWriter{f: st.CopyFormat, names: q.Names, style: s.Style()}
	r := &Result{stop: it.Close}
	r.tag = func(int64) string { return fmt.Sprint("COPY ", r.rows) }
	header := st.Header
	binary := st.Format == "binary"
	ended := false
	r.CopyOut = &CopyOut{Columns: len(q.Names), Binary: binary, Next: func(context.Context) ([]byte, error) {
		var out []byte
		if header || binary && w.buf == nil {
			out = w.header(out)
			header = false
		}
		for !ended {
			c, err := it.Next(ctx)
			if err != nil {
				return nil, cause(ctx, err)
			}
			switch {
			case c == nil:
				ended = true
				if binary {
					out = append(out, 0xFF, 0xFF)
				}
				return out, nil
			case binary:
				out, err = w.tuples(out, c)
			default:
				out = w.rows(out, c)
			}
			if err != nil {
				return nil, err
			}
			r.rows += int64(c.Len())
			if len(out) > 0 {
				break
			}
		}
		return out, nil
	}}
	return r, nil
}

// A copyWriter writes rows as COPY's text or CSV.
type copyWriter struct {
	f     bind.CopyFormat
	names []string
	style *types.Style
	buf   []byte
}

func (w *copyWriter) header(dst []byte) []byte {
	if w.f.Format == "binary" {
		w.buf = make([]byte, 0, 64)
		return append(dst, binaryHeader...)
	}
	for i, n := range w.names {
		if i > 0 {
			dst = append(dst, w.f.Delimiter)
		}
		dst = w.field(dst, []byte(n), false)
	}
	return append(dst, '\n')
}

func (w *copyWriter) rows(dst []byte, c *chunk.Chunk) []byte {
	for r := range c.Len() {
		for i, col := range c.Cols {
			if i > 0 {
				dst = append(dst, w.f.Delimiter)
			}
			if col.Null(r) {
				dst = append(dst, w.f.Null...)
				continue
			}
			w.buf = appendValue(w.buf[:0], col, r, w.style)
			dst = w.field(dst, w.buf, w.f.ForceQuote != nil && w.f.ForceQuote[i])
		}
		dst = append(dst, '\n')
	}
	return dst
}

// appendValue writes a value as text; the common kinds without a detour over Datum.
func appendValue(dst []byte, col chunk.Column, r int, st *types.Style) []byte {
	switch v := col.(type) {
	case *chunk.Vec[int64]:
		return types.AppendIntAs(dst, col.Type(), v.Data[r], st)
	case *chunk.Vec[string]:
		return types.AppendStringAs(dst, col.Type(), v.Data[r], st)
	case *chunk.Vec[float64]:
		return types.AppendFloatAs(dst, col.Type(), v.Data[r], st)
	}
	return types.AppendText(dst, col.Type(), col.Datum(r), st)
}

func (w *copyWriter) field(dst, text []byte, force bool) []byte {
	if w.f.Format == "csv" {
		return w.csvField(dst, text, force)
	}
	for _, c := range text {
		switch c {
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\v':
			dst = append(dst, '\\', 'v')
		case '\\', w.f.Delimiter:
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func (w *copyWriter) csvField(dst, text []byte, force bool) []byte {
	quote := force || string(text) == w.f.Null || len(w.names) == 1 && string(text) == `\.`
	for _, c := range text {
		quote = quote || c == w.f.Delimiter || c == w.f.Quote || c == '\n' || c == '\r'
	}
	if !quote {
		return append(dst, text...)
	}
	dst = append(dst, w.f.Quote)
	for _, c := range text {
		if c == w.f.Quote || c == w.f.Escape {
			dst = append(dst, w.f.Escape)
		}
		dst = append(dst, c)
	}
	return append(dst, w.f.Quote)
}
