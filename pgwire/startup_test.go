package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestSplitOptions(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[string]string
		err  string
	}{
		{"", map[string]string{}, ""},
		{"-c search_path=a", map[string]string{"search_path": "a"}, ""},
		{"-csearch_path=a  --statement-timeout=5s", map[string]string{"search_path": "a", "statement_timeout": "5s"}, ""},
		{`-c TimeZone=America/New\ York\\x`, map[string]string{"timezone": `America/New York\x`}, ""},
		{"-c a=b=c -c a=d", map[string]string{"a": "d"}, ""},
		{"-c a=", map[string]string{"a": ""}, ""},
		{"-c", nil, "-c requires a value"},
		{"-c a", nil, "-c a requires a value"},
		{"--a", nil, "--a requires a value"},
		{"-d 5", nil, "invalid command-line argument for server process: -d"},
	} {
		got, err := splitOptions(c.text)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: error %v, want %s", c.text, err, c.err)
			}
		} else if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

// dialogue sends packets one after the other and returns all the server says until it closes or is ready.
func dialogue(t *testing.T, addr string, packets ...[]byte) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	var out strings.Builder
	for i, p := range packets {
		if _, err := nc.Write(p); err != nil {
			t.Fatal(err)
		}
		if i < len(packets)-1 { // encryption is asked for: one byte answers
			var b [1]byte
			if _, err := io.ReadFull(nc, b[:]); err != nil {
				t.Fatal(err)
			}
			out.WriteString(string(b[:]) + "\n")
		}
	}
	r := &raw{t: t, nc: nc}
	r.fe = newFrontend(nc)
	for line := range strings.Lines(r.receive(0)) {
		if !strings.HasPrefix(line, "status ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func packet(code uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

func TestStartup(t *testing.T) {
	_, addr := startServer(t, Options{})
	const ok = "AuthenticationOk\nBackendKeyData\nready I\n"
	good := startupPacket(protocol30, "user", "root", "database", "dev")
	for _, c := range []struct {
		name    string
		packets [][]byte
		want    string
	}{
		{"plain", [][]byte{good}, ok},
		{"encryption is refused", [][]byte{packet(codeGSS), packet(codeSSL), good}, "N\nN\n" + ok},
		{"protocol 3.2", [][]byte{startupPacket(protocol30+2, "user", "root", "database", "dev", "_pq_.x", "1")}, "NegotiateProtocolVersion\n" + ok},
		{"protocol option", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "_pq_.x", "1")}, "NegotiateProtocolVersion\n" + ok},
		{"protocol 2", [][]byte{startupPacket(2<<16, "user", "root")}, "fatal 0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.0\nclosed\n"},
		{"no user", [][]byte{startupPacket(protocol30, "database", "dev")}, "fatal 28000 no PostgreSQL user name specified in startup packet\nclosed\n"},
		{"database is the user's", [][]byte{startupPacket(protocol30, "user", "dev")}, ok},
		{"no such database", [][]byte{startupPacket(protocol30, "user", "root", "database", "nope")}, "fatal 3D000 database \"nope\" does not exist\nclosed\n"},
		{"settings", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "options", "-c statement_timeout=5s", "DateStyle", "ISO", "client_encoding", "'utf-8'", "extra_float_digits", "2")}, ok},
		{"unknown setting", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "nosuch", "1")}, "fatal 42704 unrecognized configuration parameter \"nosuch\"\nclosed\n"},
		{"unknown setting in options", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "options", "-c nosuch=1")}, "fatal 42704 unrecognized configuration parameter \"nosuch\"\nclosed\n"},
		{"replication", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "replication", "database")}, "fatal 0A000 a replication connection is not supported\nclosed\n"},
		{"no replication", [][]byte{startupPacket(protocol30, "user", "root", "database", "dev", "replication", "false")}, ok},
		{"no terminator", [][]byte{packet(protocol30, []byte("user\x00root\x00")...)}, "fatal 08P01 invalid startup packet layout: expected terminator as last byte\nclosed\n"},
		{"too much", [][]byte{packet(protocol30, []byte("user\x00root\x00\x00x")...)}, "fatal 08P01 invalid startup packet layout: expected terminator as last byte\nclosed\n"},
		{"not UTF-8", [][]byte{startupPacket(protocol30, "user", "r\xff")}, "fatal 22021 invalid byte sequence for encoding \"UTF8\": 0xff\nclosed\n"},
		{"too short", [][]byte{{0, 0, 0, 7, 0, 3, 0}}, "closed\n"},
		{"HTTP", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, "closed\n"},
		{"unknown cancel key", [][]byte{packet(codeCancel, 0, 0, 0, 1, 1, 2, 3, 4)}, "closed\n"},
	} {
		if got := dialogue(t, addr, c.packets...); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestParameterStatus(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "&application_name=it&timezone=Asia/Tokyo")
	want := map[string]string{"application_name": "it", "TimeZone": "Asia/Tokyo", "integer_datetimes": "on", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
		"IntervalStyle": "postgres", "is_superuser": "on", "session_authorization": "root", "standard_conforming_strings": "on", "in_hot_standby": "off", "default_transaction_read_only": "off", "server_version": "13.14.0"}
	for name, v := range want {
		if got := conn.PgConn().ParameterStatus(name); got != v {
			t.Errorf("%s is %q, want %q", name, got, v)
		}
	}
	exec(t, conn, "SET application_name = 'other'")
	if got := conn.PgConn().ParameterStatus("application_name"); got != "other" {
		t.Errorf("application_name is %q after SET", got)
	}
}

func TestTooMany(t *testing.T) {
	s, addr := startServer(t, Options{MaxConnections: 2})
	a := connect(t, addr, "")
	connect(t, addr, "")
	_, err := pgx.Connect(t.Context(), url(addr, ""))
	if code(err) != "53300" {
		t.Fatalf("third session: %v", err)
	}
	a.Close(context.Background())
	within(t, 5*time.Second, "the session has ended", func() bool { return s.sessions() == 1 })
	connect(t, addr, "")
}

func TestNotOpen(t *testing.T) {
	s := NewServer(Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())
	if _, err := pgx.Connect(t.Context(), url(l.Addr().String(), "")); code(err) != "57P03" {
		t.Fatalf("got %v", err)
	}
}

func TestStartupTimeout(t *testing.T) {
	_, addr := startServer(t, Options{StartupTimeout: 20 * time.Millisecond})
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Write([]byte{0, 0})
	nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("got %v", err)
	}
}

// code is the SQLSTATE of what a server has answered.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func FuzzStartup(f *testing.F) {
	for _, p := range [][]byte{startupPacket(protocol30, "user", "root", "options", `-c a=b\ `), packet(codeSSL), startupPacket(protocol30+9, "_pq_.x", "")} {
		f.Add(p[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 {
			return
		}
		p, err := parseStartup(binary.BigEndian.Uint32(b), b[4:])
		if (p == nil) == (err == nil) {
			t.Fatal("neither a packet nor an error")
		}
		if p != nil && !slices.IsSorted(p.unknown) {
			t.Fatal("unsorted")
		}
	})
}
