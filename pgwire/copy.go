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
			c.end(errLostSync) // what follows may be data or not
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

// copyOut sends the data of COPY TO STDOUT, a message a row, as clients that read rows expect.
func (c *conn) copyOut(ctx context.Context, co *engine.CopyOut, rows rowEnds) error {
	c.out.send(&pgproto3.CopyOutResponse{OverallFormat: formatByte(co.Binary), ColumnFormatCodes: formatCodes(co.Columns, co.Binary)})
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
			if !co.Binary {
				n = rows.first(data)
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

// A rowEnds knows where a row of COPY's output ends: at a line end, but in CSV not at one inside quotes.
type rowEnds struct {
	quote byte // of CSV; 0: text
	whole bool // an escape character of its own: rows are not told apart
}

// rowEndsOf reads the options of a COPY statement.
func rowEndsOf(stmt parser.Statement) rowEnds {
	var r rowEnds
	if stmt.Ext != nil {
		return rowEnds{whole: true}
	}
	n, ok := stmt.Node.GetNode().(*ast.Node_CopyStmt)
	if !ok {
		return rowEnds{whole: true}
	}
	quote, escape, csv := byte('"'), byte(0), false
	for _, o := range n.CopyStmt.Options {
		d := o.GetDefElem()
		val := d.GetArg().GetString_().GetSval()
		switch {
		case d.GetDefname() == "format":
			csv = strings.EqualFold(val, "csv")
		case d.GetDefname() == "quote" && len(val) == 1:
			quote = val[0]
		case d.GetDefname() == "escape" && len(val) == 1:
			escape = val[0]
		}
	}
	if csv {
		r.quote, r.whole = quote, escape != 0 && escape != quote
	}
	return r
}

// first is the length of the first row of b, which holds whole rows.
func (r rowEnds) first(b []byte) int {
	if r.whole {
		return len(b)
	}
	quotes := 0
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return len(b)
		}
		end := from + i + 1
		if r.quote != 0 {
			quotes += bytes.Count(b[from:end], []byte{r.quote})
		}
		if quotes%2 == 0 {
			return end
		}
		from = end
	}
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
