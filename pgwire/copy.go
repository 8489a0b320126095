package pgwire

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/stream/engine"
)

// copyIn takes the data of COPY FROM STDIN and returns the command tag.
//
// Clients send anything from a line to megabytes a message; small ones that are
// there already are handed over together.
func (c *conn) copyIn(ctx context.Context, ci *engine.CopyIn) (string, error) {
	c.out.send(&pgproto3.CopyInResponse{OverallFormat: formatByte(ci.Binary), ColumnFormatCodes: formatCodes(ci.Columns, ci.Binary)})
	if err := c.out.flush(); err != nil {
		return "", err
	}
	if len(c.in.buf) < copyInput {
		c.in.resize(copyInput)
	}
	var batch []byte
	write := func(data []byte) error {
		return c.wait(func() error { return ci.Write(ctx, data) })
	}
	for {
		typ, body, err := c.in.next()
		if err != nil {
			ci.Abort("connection lost")
			if errors.Is(err, errInterrupted) {
				return "", context.Cause(ctx)
			}
			return "", c.copyLost(err)
		}
		switch typ {
		case 'd':
			next, _, more := c.in.at(0)
			more = more && next == 'd'
			switch {
			case len(batch) == 0 && (!more || len(body) >= copyInput):
				err = write(body)
			default:
				batch = append(batch, body...)
				if !more || len(batch) >= copyInput {
					err = write(batch)
					batch = batch[:0]
				}
			}
			if err != nil {
				return "", err
			}
		case 'c':
			var tag string
			err := c.wait(func() (err error) {
				tag, err = ci.Finish(ctx)
				return err
			})
			return tag, err
		case 'f':
			f := fields{b: body}
			reason := f.str()
			return "", ci.Abort(reason)
		case 'H', 'S':
			// A client that sent Execute and Sync before it knew of the COPY.
		case 'X':
			ci.Abort("connection lost")
			return "", errStop
		default:
			ci.Abort("protocol fault")
			return "", sqlerr.New(sqlerr.ProtocolViolation, "unexpected message type 0x%02X during COPY from stdin", typ)
		}
	}
}

// copyLost turns a failed read during COPY into the error that ends the connection:
// a fault of the protocol is told to the client, a lost connection is not.
func (c *conn) copyLost(err error) error {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		c.end(e)
		return e
	}
	return errStop
}

// copyOut sends the data of COPY TO STDOUT; split: a message a line, as clients that read rows expect.
func (c *conn) copyOut(ctx context.Context, co *engine.CopyOut, split bool) error {
	c.out.send(&pgproto3.CopyOutResponse{OverallFormat: formatByte(co.Binary), ColumnFormatCodes: formatCodes(co.Columns, co.Binary)})
	split = split && !co.Binary
	for {
		var data []byte
		err := c.wait(func() (err error) {
			data, err = co.Next(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if data == nil {
			break
		}
		for len(data) > 0 {
			n := len(data)
			if i := bytes.IndexByte(data, '\n'); split && i >= 0 {
				n = i + 1
			}
			c.out.message('d', data[:n])
			data = data[n:]
			if len(c.out.buf) >= flushAt {
				if err := c.out.flush(); err != nil {
					return err
				}
			}
		}
	}
	c.out.message('c', nil)
	return nil
}

// linesAreRows reports whether every line that a COPY gives is a row: not in CSV, where a quoted value may have line ends.
func linesAreRows(stmt parser.Statement) bool {
	if stmt.Ext != nil {
		return false
	}
	n, ok := stmt.Node.GetNode().(*ast.Node_CopyStmt)
	if !ok {
		return false
	}
	for _, o := range n.CopyStmt.Options {
		d := o.GetDefElem()
		if d.GetDefname() == "format" && !strings.EqualFold(d.GetArg().GetString_().GetSval(), "text") {
			return false
		}
	}
	return true
}

func formatByte(binary bool) byte {
	if binary {
		return binaryFormat
	}
	return textFormat
}

func formatCodes(n int, binary bool) []uint16 {
	out := make([]uint16, n)
	for i := range out {
		out[i] = uint16(formatByte(binary))
	}
	return out
}
