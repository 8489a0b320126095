package pgwire

import (
	"context"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

// query answers a Query message: all statements of a text, then ReadyForQuery.
func (c *conn) query(f *fields) error {
	text := f.str()
	err := f.done()
	delete(c.stmts, "")
	c.closePortal("")
	if err == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		c.begin(ctx, cancel)
		err = c.simple(ctx, text)
		c.finish()
		cancel(nil)
	}
	if err != nil {
		if err := c.fail(err, text); err != nil {
			return err
		}
	}
	return c.ready()
}

// simple runs a text. Several statements are one transaction, unless they say otherwise.
func (c *conn) simple(ctx context.Context, text string) error {
	if err := types.CheckUTF8(text); err != nil {
		return err
	}
	stmts, err := c.sess.Parse(text)
	if err != nil {
		return err
	}
	if len(stmts) == 0 {
		c.out.send(&pgproto3.EmptyQueryResponse{})
		return c.endImplicit(ctx)
	}
	for i, stmt := range stmts {
		if len(stmts) > 1 || c.implicit {
			c.sess.BeginImplicit() // again after a COMMIT in the text
			c.implicit = true
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tag, err := c.runText(ctx, stmt)
		if err != nil {
			return err
		}
		// The last statement is complete when the transaction is.
		if i == len(stmts)-1 {
			if err := c.endImplicit(ctx); err != nil {
				return err
			}
		}
		c.complete(tag)
	}
	return nil
}

// endImplicit commits the implicit transaction block, if there is one.
func (c *conn) endImplicit(ctx context.Context) error {
	if !c.implicit {
		return nil
	}
	c.implicit = false
	return c.wait(func() error { return c.sess.EndImplicit(ctx, true) })
}

// runText runs one statement of a text, sends its rows as text and returns its tag.
func (c *conn) runText(ctx context.Context, stmt parser.Statement) (string, error) {
	if tag := c.deallocate(stmt); tag != "" {
		return tag, nil
	}
	var res *engine.Result
	err := c.wait(func() error {
		p, err := c.sess.Prepare(ctx, stmt, nil)
		if err != nil {
			return err
		}
		args := ownArgs(p)
		if len(args) < len(p.Params) {
			return noParameter(stmt)
		}
		res, err = c.sess.Execute(ctx, p, args)
		return err
	})
	if err != nil {
		return "", err
	}
	defer res.Close()
	switch {
	case res.CopyIn != nil:
		return c.copyIn(ctx, res.CopyIn)
	case res.CopyOut != nil:
		if err := c.copyOut(ctx, res.CopyOut, rowEndsOf(stmt)); err != nil {
			return "", err
		}
	case res.Columns != nil:
		c.out.send(rowDescription(res.Columns, nil))
		if err := c.allRows(ctx, res, newRowWriter(len(res.Columns), nil, c.sess.Style())); err != nil {
			return "", err
		}
	}
	return res.Tag(), nil
}

// ownArgs are arguments for the parameters that a statement keeps to itself: those of what
// PREPARE prepares, which get their values from EXECUTE. Other statements have none of these.
func ownArgs(p *engine.Prepared) []types.Datum {
	if p.Stmt.Ext == nil && p.Stmt.Node.GetPrepareStmt() != nil {
		return make([]types.Datum, len(p.Params))
	}
	return nil
}

// noParameter is the error for a text with parameters, of which a Query message has none.
func noParameter(stmt parser.Statement) error {
	for i := 0; i+1 < len(stmt.Text); i++ {
		if n := stmt.Text[i+1]; stmt.Text[i] == '$' && n >= '1' && n <= '9' {
			return sqlerr.New("42P02", "there is no parameter $%c", n).At(stmt.Offset + i)
		}
	}
	return sqlerr.New("42P02", "there is no parameter $1")
}

// allRows sends all rows of a result.
func (c *conn) allRows(ctx context.Context, res *engine.Result, w *rowWriter) error {
	for {
		ch, err := c.nextRows(ctx, res)
		if ch == nil || err != nil {
			return err
		}
		w.load(ch)
		for i := range ch.Len() {
			c.out.buf = w.row(c.out.buf, i)
			if len(c.out.buf) >= flushAt {
				if err := c.out.flush(); err != nil {
					return err
				}
			}
		}
	}
}

func (c *conn) complete(tag string) {
	c.out.message('C', append([]byte(tag), 0))
}

// deallocate drops statements of the protocol that SQL names. It returns the tag when that is
// all there is to do; the engine has the statements that SQL prepared.
func (c *conn) deallocate(stmt parser.Statement) string {
	if stmt.Ext != nil || c.sess.Status() == 'E' {
		return ""
	}
	switch n := stmt.Node.GetNode().(type) {
	case *ast.Node_DeallocateStmt:
		name := n.DeallocateStmt.Name
		if name == "" {
			c.dropNamed()
		} else if c.stmts[name] != nil {
			delete(c.stmts, name)
			return "DEALLOCATE"
		}
	case *ast.Node_DiscardStmt:
		if n.DiscardStmt.Target == ast.DiscardMode_DISCARD_ALL && c.sess.Status() == 'I' {
			c.dropNamed()
		}
	}
	return ""
}

func (c *conn) dropNamed() {
	for name := range c.stmts {
		if name != "" {
			delete(c.stmts, name)
		}
	}
}
