package pgwire

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

// A statement is what Parse has prepared.
type statement struct {
	text    string
	stmt    parser.Statement
	oids    []uint32              // types the client stated
	prep    *engine.Prepared      // nil: an empty text
	cols    []engine.ResultColumn // as at Parse: what the client believes
	version uint64                // of the catalog that prep was last compared with
}

// A portal is a statement with its arguments, and from its first Execute on what it gives.
type portal struct {
	st      *statement
	args    []types.Datum
	formats []int16 // of results
	cols    []engine.ResultColumn

	ctx    context.Context
	cancel context.CancelCauseFunc
	res    *engine.Result // nil: not executed yet, or at its end
	state  portalState
	w      *rowWriter
	rows   *chunk.Chunk // the chunk being sent, from row at on; nil: none
	at     int
	tag    string // once done
}

type portalState uint8

const (
	portalNew portalState = iota
	portalOpen
	portalSuspended // rows were sent, and more may come
	portalDone
)

// parse answers Parse. It returns the text that an error's position counts in.
func (c *conn) parse(f *fields) (string, error) {
	name, text := f.str(), f.str()
	n := f.int16()
	var oids []uint32
	for range n {
		if f.bad {
			break
		}
		oids = append(oids, uint32(f.int32()))
	}
	if err := f.done(); err != nil {
		return "", err
	}
	for _, s := range []string{name, text} {
		if err := types.CheckUTF8(s); err != nil {
			return "", err
		}
	}
	if name != "" && c.stmts[name] != nil {
		return "", sqlerr.New("42P05", "prepared statement %q already exists", name)
	}
	if name == "" {
		delete(c.stmts, "") // also if this one fails
	}
	stmts, err := c.sess.Parse(text)
	if err != nil {
		return text, err
	}
	st := &statement{text: text, oids: oids}
	switch len(stmts) {
	case 0:
	case 1:
		st.stmt = stmts[0]
		if err := c.prepare(st); err != nil {
			return text, err
		}
		st.cols = st.prep.Columns
	default:
		return text, sqlerr.New(sqlerr.Syntax, "cannot insert multiple commands into a prepared statement")
	}
	c.stmts[name] = st
	c.out.message('1', nil)
	return "", nil
}

// prepare makes st.prep for the catalog of now.
func (c *conn) prepare(st *statement) error {
	version := c.db.Catalog().Version
	return c.wait(func() error {
		p, err := c.sess.Prepare(context.Background(), st.stmt, st.oids)
		if err != nil {
			return err
		}
		st.prep, st.version = p, version
		return nil
	})
}

// bind answers Bind.
func (c *conn) bind(f *fields) (string, error) {
	name, stName := f.str(), f.str()
	if f.bad {
		return "", f.done()
	}
	st := c.stmts[stName]
	if st == nil {
		return "", noStatement(stName)
	}
	if name != "" && c.portals[name] != nil {
		return "", sqlerr.New("42P03", "cursor %q already exists", name)
	}
	c.closePortal(name)
	// What was parsed may have another type by now. The engine plans anew by itself, but the
	// client would read the columns wrongly.
	if st.prep != nil && st.version != c.db.Catalog().Version && c.sess.Status() != 'E' {
		if err := c.prepare(st); err != nil {
			return st.text, err
		}
		if !sameColumns(st.prep.Columns, st.cols) {
			return "", errPlanChanged
		}
	}
	p := &portal{st: st, cols: st.cols}
	var params []types.Type
	if st.prep != nil {
		params = st.prep.Params
		p.args = ownArgs(st.prep)
		params = params[len(p.args):]
	}
	if err := c.bindArgs(f, name, stName, p, params); err != nil {
		return "", err
	}
	if err := f.done(); err != nil {
		return "", err
	}
	if n := len(p.formats); n > 1 && n != len(p.cols) {
		return "", sqlerr.New(sqlerr.ProtocolViolation, "bind message has %d result formats but query has %d columns", n, len(p.cols))
	}
	c.portals[name] = p
	c.out.message('2', nil)
	return "", nil
}

// bindArgs reads the arguments and formats of a Bind.
func (c *conn) bindArgs(f *fields, name, stName string, p *portal, params []types.Type) error {
	formats, err := readFormats(f)
	if err != nil {
		return err
	}
	n := f.int16()
	if f.bad {
		return f.done()
	}
	if err := checkFormats(formats); err != nil {
		return err
	}
	if len(formats) > 1 && len(formats) != n {
		return sqlerr.New(sqlerr.ProtocolViolation, "bind message has %d parameter formats but %d parameters", len(formats), n)
	}
	if n != len(params) {
		return sqlerr.New(sqlerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement %q requires %d", n, stName, len(params))
	}
	if n > 0 {
		p.args = make([]types.Datum, n)
	}
	style := c.sess.Style()
	for i := range n {
		size := f.int32()
		if size == -1 && !f.bad {
			continue
		}
		b := f.take(size)
		if f.bad {
			return sqlerr.New(sqlerr.ProtocolViolation, "insufficient data left in message")
		}
		t := params[i]
		if t.OID == 0 {
			t = types.Text
		}
		if formatOf(formats, i) == binaryFormat {
			p.args[i], err = types.ParseBinary(t, b)
		} else {
			s := string(b)
			if err = types.CheckUTF8(s); err == nil {
				p.args[i], err = types.ParseText(t, s, style)
			}
		}
		if err != nil {
			return argumentError(err, name, i+1, formatOf(formats, i))
		}
	}
	p.formats, err = readFormats(f)
	return err
}

// argumentError says which argument of a Bind is wrong.
func argumentError(err error, portal string, n int, format int16) error {
	e := *sqlerr.From(err)
	where := "unnamed portal"
	if portal != "" {
		where = fmt.Sprintf("portal %q", portal)
	}
	e.Context = fmt.Sprintf("%s parameter $%d", where, n)
	if format == textFormat {
		e.Context += " = '...'"
	}
	return &e
}

// readFormats reads a list of format codes.
func readFormats(f *fields) ([]int16, error) {
	n := f.int16()
	if f.bad || n > len(f.b)/2 {
		return nil, sqlerr.New(sqlerr.ProtocolViolation, "invalid message format")
	}
	if n == 0 {
		return nil, nil
	}
	out := make([]int16, n)
	for i := range out {
		out[i] = int16(f.int16())
	}
	return out, nil
}

// checkFormats refuses format codes that are neither text nor binary.
func checkFormats(formats []int16) error {
	for _, n := range formats {
		if n != textFormat && n != binaryFormat {
			return sqlerr.New(sqlerr.InvalidParameter, "unsupported format code: %d", n)
		}
	}
	return nil
}

func noStatement(name string) error {
	if name == "" {
		return sqlerr.New(sqlerr.UndefinedStatement, "unnamed prepared statement does not exist")
	}
	return sqlerr.New(sqlerr.UndefinedStatement, "prepared statement %q does not exist", name)
}

// sameColumns reports whether a client that was told of b can read a.
func sameColumns(a, b []engine.ResultColumn) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for i := range a {
		if !a[i].Type.Equal(b[i].Type) {
			return false
		}
	}
	return true
}

// describe answers Describe of a statement or a portal.
func (c *conn) describe(f *fields) (string, error) {
	what, name := f.byte(), f.str()
	if err := f.done(); err != nil {
		return "", err
	}
	var cols []engine.ResultColumn
	var formats []int16
	switch what {
	case 'S':
		st := c.stmts[name]
		if st == nil {
			return "", noStatement(name)
		}
		d := &pgproto3.ParameterDescription{}
		if st.prep != nil {
			for _, t := range st.prep.Params[len(ownArgs(st.prep)):] {
				d.ParameterOIDs = append(d.ParameterOIDs, wireOID(t))
			}
		}
		c.out.send(d)
		cols = st.cols
	case 'P':
		p := c.portals[name]
		if p == nil {
			return "", noPortal(name)
		}
		cols, formats = p.cols, p.formats
	default:
		return "", sqlerr.New(sqlerr.ProtocolViolation, "invalid DESCRIBE message subtype %d", what)
	}
	if cols == nil {
		c.out.message('n', nil)
	} else {
		c.out.send(rowDescription(cols, formats))
	}
	return "", nil
}

func noPortal(name string) error {
	return sqlerr.New(sqlerr.UndefinedCursor, "portal %q does not exist", name)
}

// closeMessage answers Close. What is not there is closed already.
func (c *conn) closeMessage(f *fields) error {
	what, name := f.byte(), f.str()
	if err := f.done(); err != nil {
		return err
	}
	switch what {
	case 'S':
		delete(c.stmts, name)
	case 'P':
		c.closePortal(name)
	default:
		return sqlerr.New(sqlerr.ProtocolViolation, "invalid CLOSE message subtype %d", what)
	}
	c.out.message('3', nil)
	return nil
}

func (c *conn) closePortal(name string) {
	if p := c.portals[name]; p != nil {
		p.close()
		delete(c.portals, name)
	}
}

func (c *conn) closePortals() {
	for _, p := range c.portals {
		p.close()
	}
	clear(c.portals)
}

// close ends the portal's statement if it still runs.
func (p *portal) close() {
	if p.res != nil {
		p.res.Close()
		p.res = nil
	}
	if p.cancel != nil {
		p.cancel(nil)
		p.cancel = nil
	}
}

// execute answers Execute: it runs a portal, or goes on with it.
func (c *conn) execute(f *fields) (string, error) {
	name, limit := f.str(), f.int32()
	if err := f.done(); err != nil {
		return "", err
	}
	p := c.portals[name]
	if p == nil {
		return "", noPortal(name)
	}
	if p.st.prep == nil {
		c.out.message('I', nil)
		return "", nil
	}
	switch p.state {
	case portalDone:
		if p.cols == nil {
			return "", sqlerr.New(sqlerr.NotPrepared, "portal %q cannot be run", name)
		}
		c.complete(countedTag(p.tag, 0))
		return "", nil
	case portalNew:
		if err := checkFormats(p.formats); err != nil {
			return "", err
		}
		if err := c.block(); err != nil {
			return "", err
		}
		p.ctx, p.cancel = context.WithCancelCause(context.Background())
	}
	c.begin(p.ctx, p.cancel)
	err := c.run(p, limit)
	c.finish()
	return p.st.text, err
}

// block opens the implicit transaction block that lasts to the next Sync, unless
// that is what comes next: a lone statement is a transaction anyway, and cheaper.
func (c *conn) block() error {
	if !c.implicit && c.sess.Status() == 'I' {
		alone, err := c.alone()
		if err != nil {
			return errStop // also when shutting down: nothing was executed
		}
		if alone {
			return nil
		}
	}
	c.sess.BeginImplicit()
	c.implicit = true
	return nil
}

// alone reports whether nothing is executed before the next Sync. It waits for the next message: a client that
// sends Execute sends a Sync or a Flush after it, since without one it gets no answer.
func (c *conn) alone() (bool, error) {
	if err := c.in.ensure(header); err != nil {
		return false, err
	}
	if c.in.buf[c.in.rp] == 'S' {
		return true, nil
	}
	for off := 0; ; {
		typ, next, ok := c.in.at(off)
		if !ok {
			return false, nil
		}
		switch typ {
		case 'S':
			return true, nil
		case 'H', 'C', 'D':
			off = next
		default:
			return false, nil
		}
	}
}

// run starts a new portal and sends up to limit rows of it, all of them if that is 0.
func (c *conn) run(p *portal, limit int) error {
	if p.state == portalNew {
		if tag := c.deallocate(p.st.stmt); tag != "" {
			return c.done(p, tag)
		}
		err := c.wait(func() error {
			res, err := c.sess.Execute(p.ctx, p.st.prep, p.args)
			p.res = res
			return err
		})
		p.args = nil
		if err != nil {
			return err
		}
		p.state = portalOpen
		switch {
		case p.res.CopyIn != nil:
			tag, err := c.copyIn(p.ctx, p.res.CopyIn)
			if err != nil {
				return err
			}
			return c.done(p, tag)
		case p.res.CopyOut != nil:
			if err := c.copyOut(p.ctx, p.res.CopyOut, rowEndsOf(p.st.stmt)); err != nil {
				return err
			}
			return c.done(p, p.res.Tag())
		case !sameColumns(p.res.Columns, p.cols):
			return errPlanChanged
		case p.cols == nil:
			return c.done(p, p.res.Tag())
		}
		p.w = newRowWriter(len(p.cols), p.formats, c.sess.Style())
	}
	n := 0
	for {
		if p.rows == nil {
			ch, err := c.nextRows(p.ctx, p.res)
			if err != nil {
				return err
			}
			if ch == nil {
				break
			}
			p.rows, p.at = ch, 0
			p.w.load(ch)
		}
		for ; p.at < p.rows.Len(); p.at++ {
			if limit > 0 && n == limit {
				p.state = portalSuspended
				c.out.message('s', nil)
				return nil
			}
			c.out.buf = p.w.row(c.out.buf, p.at)
			n++
			if len(c.out.buf) >= flushAt {
				if err := c.out.flush(); err != nil {
					return err
				}
			}
		}
		p.rows = nil
		if limit > 0 && n == limit {
			// Whether there are more is not known: PostgreSQL does not look ahead either.
			p.state = portalSuspended
			c.out.message('s', nil)
			return nil
		}
	}
	tag := p.res.Tag()
	if p.state == portalSuspended {
		tag = countedTag(tag, n)
	}
	return c.done(p, tag)
}

// nextRows gets the next rows of a result, nil at its end.
func (c *conn) nextRows(ctx context.Context, res *engine.Result) (*chunk.Chunk, error) {
	c.out.lend()
	defer c.out.take()
	for {
		ch, err := res.Next(ctx)
		if err != nil || ch == nil || ch.Len() > 0 {
			return ch, err
		}
	}
}

// countedTag gives the tag of a query the count of one Execute; other tags count the statement.
func countedTag(tag string, n int) string {
	if strings.HasPrefix(tag, "SELECT ") {
		return "SELECT " + strconv.Itoa(n)
	}
	return tag
}

// done completes a portal.
func (c *conn) done(p *portal, tag string) error {
	p.state, p.tag, p.rows, p.w = portalDone, tag, nil, nil
	p.close()
	c.complete(tag)
	return nil
}

// sync ends the implicit transaction block and what an error has made us skip.
func (c *conn) sync() error {
	c.skip = false
	if c.implicit {
		ctx, cancel := context.WithCancelCause(context.Background())
		c.begin(ctx, cancel)
		err := c.endImplicit(ctx)
		c.finish()
		cancel(nil)
		if err != nil {
			if err := c.fail(err, ""); err != nil {
				return err
			}
		}
	}
	return c.ready()
}
