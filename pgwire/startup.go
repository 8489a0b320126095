package pgwire

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

// What the first packet of a connection asks for.
const (
	protocolMajor = 3
	protocol30    = protocolMajor << 16
	codeCancel    = 1234<<16 | 5678
	codeSSL       = 1234<<16 | 5679
	codeGSS       = 1234<<16 | 5680
)

// A startPacket is a start-up packet taken apart.
type startPacket struct {
	minor    int               // of protocol 3
	user     string            // "": not given
	database string            // "": not given
	params   map[string]string // settings, by lower-case name
	unknown  []string          // protocol options (_pq_.…) we do not know, sorted
}

// startup brings a connection from its first byte to its first ReadyForQuery. An
// *sqlerr.Error is for the client to see, any other error ends the connection.
func (c *conn) startup() error {
	if err := c.nc.SetReadDeadline(time.Now().Add(c.srv.o.StartupTimeout)); err != nil {
		return err
	}
	p, err := c.firstPacket()
	if err != nil {
		return err
	}
	if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	c.out.acquire()
	if p.minor > 0 || len(p.unknown) > 0 {
		c.out.send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: protocol30, UnrecognizedOptions: p.unknown})
	}
	if err := c.open(p); err != nil {
		c.srv.metrics.refused.Inc()
		return err
	}
	c.out.send(&pgproto3.AuthenticationOk{})
	for _, kv := range c.sess.ParameterStatus() {
		c.out.send(&pgproto3.ParameterStatus{Name: kv[0], Value: kv[1]})
	}
	c.out.send(&pgproto3.BackendKeyData{ProcessID: c.key.id, SecretKey: binary.BigEndian.AppendUint32(nil, c.key.secret)})
	return nil
}

// open opens the engine's session.
func (c *conn) open(p *startPacket) error {
	db := c.srv.db.Load()
	switch {
	case c.srv.isClosing():
		return errShuttingDown
	case db == nil:
		return errStarting
	case c.srv.full():
		return errTooMany
	}
	sess, err := db.Session(engine.SessionOptions{User: p.user, Database: p.database, Remote: c.nc.RemoteAddr().String(), Params: p.params, Notice: c.notice, Changed: c.changed, Terminate: func(why *sqlerr.Error) { c.end(why) }})
	if err != nil {
		return err
	}
	key := cancelKey{sess.ID(), sess.Secret()}
	if err := c.srv.admit(c, key); err != nil {
		sess.Close()
		return err
	}
	c.db, c.sess, c.key = db, sess, key
	return nil
}

// firstPacket reads packets until the client says who it is, refusing encryption.
// Bytes that are no start-up packet (a port scan, an HTTP request) get no answer.
func (c *conn) firstPacket() (*startPacket, error) {
	for range 4 {
		if err := c.in.ensure(4); err != nil {
			return nil, err
		}
		n := int64(binary.BigEndian.Uint32(c.in.buf[c.in.rp:]))
		if n < 8 || n > maxStartup {
			return nil, errStop
		}
		if err := c.in.ensure(int(n)); err != nil {
			return nil, err
		}
		body := c.in.buf[c.in.rp+4 : c.in.rp+int(n)]
		c.in.rp += int(n)
		switch code := binary.BigEndian.Uint32(body); code {
		case codeSSL, codeGSS:
			if _, err := c.nc.Write([]byte{'N'}); err != nil {
				return nil, err
			}
		case codeCancel:
			f := fields{b: body[4:]}
			if key := (cancelKey{uint32(f.int32()), uint32(f.int32())}); f.done() == nil {
				c.srv.cancel(key)
			}
			return nil, errStop
		default:
			return parseStartup(code, body[4:])
		}
	}
	return nil, errStop
}

// parseStartup reads the names and values of a start-up packet.
func parseStartup(version uint32, body []byte) (*startPacket, error) {
	major, minor := version>>16, version&0xffff
	if major != protocolMajor {
		return nil, sqlerr.New(sqlerr.NotSupported, "unsupported frontend protocol %d.%d: server supports 3.0 to 3.0", major, minor)
	}
	p := &startPacket{minor: int(minor), params: map[string]string{}}
	direct := map[string]string{}
	f := fields{b: body}
	for {
		name := f.str()
		if name == "" {
			break
		}
		value := f.str()
		if f.bad {
			break
		}
		for _, s := range []string{name, value} {
			if err := types.CheckUTF8(s); err != nil {
				return nil, err
			}
		}
		switch {
		case name == "user":
			p.user = value
		case name == "database":
			p.database = value
		case name == "options":
			set, err := splitOptions(value)
			if err != nil {
				return nil, err
			}
			maps.Copy(p.params, set)
		case name == "replication":
			if !slices.Contains([]string{"", "false", "off", "no", "0"}, strings.ToLower(value)) {
				return nil, sqlerr.Unsupported("a replication connection")
			}
		case strings.HasPrefix(name, "_pq_."):
			p.unknown = append(p.unknown, name)
		default:
			direct[strings.ToLower(name)] = value
		}
	}
	if f.bad || len(f.b) > 0 {
		return nil, sqlerr.New(sqlerr.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
	}
	maps.Copy(p.params, direct) // as in PostgreSQL, a parameter of its own beats "options"
	slices.Sort(p.unknown)
	return p, nil
}

// splitOptions reads the "options" parameter: command line switches -c name=value,
// -cname=value and --name=value, where a backslash takes the next character as it is.
func splitOptions(text string) (map[string]string, error) {
	var words []string
	var word []byte
	in := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == ' ' || b >= '\t' && b <= '\r':
			if in {
				words, word, in = append(words, string(word)), word[:0], false
			}
			continue
		case b == '\\' && i+1 < len(text):
			i++
			word = append(word, text[i])
		case b != '\\':
			word = append(word, b)
		}
		in = true
	}
	if in {
		words = append(words, string(word))
	}
	set := map[string]string{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		arg, long := strings.CutPrefix(w, "--")
		if !long {
			var short bool
			if arg, short = strings.CutPrefix(w, "-c"); !short {
				return nil, sqlerr.New(sqlerr.Syntax, "invalid command-line argument for server process: %s", w).WithHint("Settings are given as -c name=value.")
			}
			if arg == "" {
				if i++; i == len(words) {
					return nil, sqlerr.New(sqlerr.Syntax, "-c requires a value")
				}
				arg = words[i]
			}
		}
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			if long {
				return nil, sqlerr.New(sqlerr.Syntax, "--%s requires a value", arg)
			}
			return nil, sqlerr.New(sqlerr.Syntax, "-c %s requires a value", arg)
		}
		set[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = value
	}
	return set, nil
}
