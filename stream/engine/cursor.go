package engine

import (
	"context"
	"strconv"

	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// A cursor is DECLAREd over a query and read by FETCH, forward only. It reads at
// the epoch at which it was declared.
type cursor struct {
	name   string
	cols   []ResultColumn
	res    *Result
	cancel context.CancelFunc
	hold   bool
	rest   *chunk.Chunk // rows read but not fetched
	born   *txn         // the transaction it was declared in; nil: none
}

func (c *cursor) close() {
	c.res.Close()
	c.cancel()
}

func (s *Session) closeCursors(held bool) {
	for name, c := range s.cursors {
		if !c.hold || held {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// declareCursor is DECLARE name CURSOR FOR query.
func (s *Session) declareCursor(ctx context.Context, stmt parser.Statement, n *ast.DeclareCursorStmt) (*Result, error) {
	const optScroll, optHold = 0x0002, 0x0020
	hold := n.Options&optHold != 0
	if !hold && !s.tx.explicit() {
		return nil, sqlerr.New(sqlerr.NoActiveTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if s.cursors[n.Portalname] != nil {
		return nil, sqlerr.New("42P03", "cursor %q already exists", n.Portalname)
	}
	inner := stmt
	inner.Node = n.Query
	p := &Prepared{Stmt: inner, session: s}
	if err := s.prepare(p); err != nil {
		return nil, err
	}
	// The cursor outlives the statement that declares it.
	cctx, cancel := context.WithCancel(s.db.ctx)
	res, err := s.execute(cctx, p, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	s.cursors[n.Portalname] = &cursor{name: n.Portalname, cols: p.Columns, res: res, cancel: cancel, hold: hold, born: s.tx.txn}
	return done("DECLARE CURSOR"), nil
}

// fetch is FETCH and MOVE forward.
func (s *Session) fetch(ctx context.Context, f *ast.FetchStmt) (*Result, error) {
	c := s.cursors[f.Portalname]
	if c == nil {
		return nil, sqlerr.New(sqlerr.UndefinedCursor, "cursor %q does not exist", f.Portalname)
	}
	if f.Direction != ast.FetchDirection_FETCH_FORWARD || f.HowMany < 0 {
		return nil, sqlerr.New(sqlerr.NotPrepared, "cursor can only scan forward").WithHint("Declare it with SCROLL option to enable backward scan.")
	}
	var out []*chunk.Chunk
	var n int64
	for n < f.HowMany {
		rows := c.rest
		c.rest = nil
		if rows == nil {
			var err error
			if rows, err = c.res.Next(ctx); err != nil {
				return nil, err
			}
			if rows == nil {
				break
			}
		}
		if want := f.HowMany - n; int64(rows.Len()) > want {
			c.rest = rows.Slice(int(want), rows.Len())
			rows = rows.Slice(0, int(want))
		}
		n += int64(rows.Len())
		out = append(out, rows)
	}
	if f.Ismove {
		r := done("")
		r.tag = func(int64) string { return "MOVE " + strconv.FormatInt(n, 10) }
		return r, nil
	}
	return rowsResult("FETCH ", c.cols, out...), nil
}

func (s *Session) closeCursor(name string) (*Result, error) {
	if name == "" {
		s.closeCursors(true)
		return done("CLOSE CURSOR ALL"), nil
	}
	c := s.cursors[name]
	if c == nil {
		return nil, sqlerr.New(sqlerr.UndefinedCursor, "cursor %q does not exist", name)
	}
	c.close()
	delete(s.cursors, name)
	return done("CLOSE CURSOR"), nil
}
