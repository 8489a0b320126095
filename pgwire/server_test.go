package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/types"
)

func newFrontend(nc net.Conn) *pgproto3.Frontend { return pgproto3.NewFrontend(nc, nc) }

// endless is a query that only its cancellation ends.
const endless = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"

func TestCancel(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), endless)
		done <- err
	}()
	var err error
	for err == nil {
		if cerr := conn.PgConn().CancelRequest(t.Context()); cerr != nil {
			t.Fatal(cerr)
		}
		select {
		case err = <-done:
		case <-time.After(20 * time.Millisecond):
		}
	}
	if code(err) != "57014" || !strings.Contains(err.Error(), "user request") {
		t.Fatalf("got %v", err)
	}
	// The session is usable, and a cancellation that comes too late does nothing.
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&n); err != nil || n != 1 {
		t.Fatalf("afterwards: %v", err)
	}
}

func TestCancelWrongKey(t *testing.T) {
	s, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	id := conn.PgConn().PID()
	secret := binary.BigEndian.Uint32(conn.PgConn().SecretKey())
	s.cancel(cancelKey{id, secret + 1})
	s.cancel(cancelKey{id + 1, secret})
	exec(t, conn, "SELECT 1")
}

// A COPY that waits for data is cancelled too.
func TestCancelCopy(t *testing.T) {
	s, addr := startServer(t, Options{})
	r := newRaw(t, addr)
	r.expectReady()
	r.send(`query "CREATE TABLE t (a int)"`)
	r.receive(0)
	r.send(`query "COPY t FROM STDIN"`)
	if got := r.receive(0); got != "copy in [0]\n" {
		t.Fatal(got)
	}
	r.send(`data "1\n"`)
	s.each(func(c *conn) { c.interrupt(errCanceled) })
	if got := r.receive(0); got != "error 57014 canceling statement due to user request\nready I\n" {
		t.Fatal(got)
	}
	r.send(`data "2\n"`, `copydone`, `query "SELECT count(*) FROM t"`)
	if got := r.receive(0); !strings.Contains(got, "row 0\n") {
		t.Fatal(got)
	}
}

func TestStatementTimeout(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "&options=-c%20statement_timeout%3D50ms")
	if _, err := conn.Exec(t.Context(), endless); code(err) != "57014" || !strings.Contains(err.Error(), "timeout") {
		t.Fatalf("got %v", err)
	}
	exec(t, conn, "SELECT 1")
}

// A client that goes away takes its statement with it.
func TestDisconnect(t *testing.T) {
	s, addr := startServer(t, Options{})
	r := newRaw(t, addr)
	r.expectReady()
	r.send(fmt.Sprintf("query %q", endless), `query "SELECT 1"`)
	within(t, 5*time.Second, "it runs", func() bool { return s.running() == 1 })
	r.nc.Close()
	within(t, 2*time.Second, "the session has ended", func() bool { return s.sessions() == 0 })
}

// running counts the sessions in which a statement runs.
func (s *Server) running() int {
	n := 0
	s.each(func(c *conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ctx != nil {
			n++
		}
	})
	return n
}

func TestShutdown(t *testing.T) {
	s, addr := startServer(t, Options{Grace: 20 * time.Millisecond})
	idle, busy := newRaw(t, addr), newRaw(t, addr)
	idle.expectReady()
	busy.expectReady()
	idle.send(`query "BEGIN"`)
	idle.receive(0)
	busy.send(fmt.Sprintf("query %q", endless))
	within(t, 5*time.Second, "it runs", func() bool { return s.running() == 1 })
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*raw{idle, busy} {
		if got := r.receive(0); !strings.HasSuffix(got, "fatal 57P01 terminating connection due to administrator command\nclosed\n") {
			t.Error(got)
		}
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the server still listens")
	}
}

// Shutdown cuts off a client that does not read.
func TestShutdownStuck(t *testing.T) {
	s, addr := startServer(t, Options{Grace: time.Millisecond})
	r := newRaw(t, addr)
	r.expectReady()
	r.send(`query "SELECT repeat('x', 1000) FROM generate_series(1, 1000000)"`)
	within(t, 5*time.Second, "it runs", func() bool { return s.running() == 1 })
	time.Sleep(50 * time.Millisecond) // the socket's buffers fill
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Fatal("nothing was stuck")
	}
}

// A message's length costs no memory before its bytes are there, and too long a one ends the session.
func TestTooLong(t *testing.T) {
	_, addr := startServer(t, Options{})
	for _, c := range []struct{ hex, want string }{
		{"5101000005", "fatal 08P01 message of 16777217 bytes is longer than the limit of 16777216 bytes"},
		{"5300002715", "fatal 08P01 message of 10001 bytes is longer than the limit of 10000 bytes"},
		{"5100000003", "fatal 08P01 invalid message length"},
		{"51ffffffff", "fatal 08P01 invalid message length"},
		{"7000000004", "fatal 08P01 invalid frontend message type 112"},
		{"0000000004", "fatal 08P01 invalid frontend message type 0"},
	} {
		r := newRaw(t, addr)
		r.expectReady()
		r.send("bytes " + c.hex)
		if got := r.receive(0); got != c.want+"\nclosed\n" {
			t.Errorf("%s: %s", c.hex, got)
		}
	}
}

// Malformed bodies are errors, and the session goes on.
func TestMalformed(t *testing.T) {
	_, addr := startServer(t, Options{})
	r := newRaw(t, addr)
	r.expectReady()
	for _, body := range []string{
		"P", "Px", "Px\x00select 1\x00\x00\x05", "B", "Bx\x00", "Bx\x00\x00\xff\xff", "D", "DX\x00", "CX\x00", "E", "Ex\x00\x00", "Dx", "Q", "Qselect 1", "Qselect 1\x00x", "F",
	} {
		b := binary.BigEndian.AppendUint32([]byte{body[0]}, uint32(len(body)+3))
		b = append(append(b, body[1:]...), 'S', 0, 0, 0, 4)
		if _, err := r.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		got := r.receive(0)
		if !strings.HasPrefix(got, "error ") || !strings.HasSuffix(got, "ready I\n") {
			t.Errorf("%q: %s", body, got)
		}
		if body[0] == 'Q' || body[0] == 'F' { // these are answered by ready themselves
			r.receive(0)
		}
	}
}

func TestNotice(t *testing.T) {
	_, addr := startServer(t, Options{})
	cfg, err := pgx.ParseConfig(url(addr, ""))
	if err != nil {
		t.Fatal(err)
	}
	var notices []*pgconn.Notice
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n) }
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	exec(t, conn, "DROP TABLE IF EXISTS nosuch")
	if len(notices) != 1 || notices[0].Severity != "NOTICE" || notices[0].Message != `table "nosuch" does not exist, skipping` {
		t.Fatalf("got %v", notices)
	}
}

// Notices of other goroutines neither tear messages apart nor are lost.
func TestNoticeRace(t *testing.T) {
	s, addr := startServer(t, Options{})
	r := newRaw(t, addr)
	r.expectReady()
	var wg sync.WaitGroup
	s.each(func(c *conn) {
		wg.Go(func() {
			for i := range 200 {
				c.out.others(&pgproto3.NoticeResponse{Severity: "NOTICE", Code: "00000", Message: fmt.Sprint(i)}, true)
			}
		})
	})
	rows, notices := 0, 0
	for range 20 {
		r.send(`query "SELECT repeat('x', 100) FROM generate_series(1, 500)"`)
		for line := range strings.Lines(r.receive(0)) {
			rows += strings.Count(line, "row ")
			notices += strings.Count(line, "notice 00000")
		}
	}
	wg.Wait()
	r.send(`sync`)
	notices += strings.Count(r.receive(0), "notice 00000")
	if rows != 20*500 || notices != 200 {
		t.Fatalf("%d rows, %d notices", rows, notices)
	}
}

func TestPlanChanged(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn, other := connect(t, addr, ""), connect(t, addr, "")
	exec(t, other, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
	q := func() (any, error) {
		rows, err := conn.Query(t.Context(), "SELECT * FROM t")
		if err != nil {
			return nil, err
		}
		return pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (any, error) {
			v, err := r.Values()
			return v[0], err
		})
	}
	if v, err := q(); err != nil || v != int32(1) {
		t.Fatal(v, err)
	}
	exec(t, other, "CREATE TABLE elsewhere (a int)")
	if v, err := q(); err != nil || v != int32(1) {
		t.Fatal(v, err)
	}
	exec(t, other, "DROP TABLE t")
	exec(t, other, "CREATE TABLE t (a text PRIMARY KEY)")
	exec(t, other, "INSERT INTO t VALUES ('one')")
	// pgx drops its statement for this error, and the next try prepares anew.
	_, err := q()
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "0A000" || e.Routine != planChangedRoutine {
		t.Fatal(err)
	}
	if v, err := q(); err != nil || v != "one" {
		t.Fatal(v, err)
	}
}

func TestErrorFields(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	exec(t, conn, "CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL); INSERT INTO t VALUES (1, 'x')")
	get := func(sql string, args ...any) *pgconn.PgError {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", sql, err)
		}
		return e
	}
	if e := get("INSERT INTO t VALUES (1, 'y')"); e.Code != "23505" || e.ConstraintName != "t_pkey" || e.TableName != "t" || e.SchemaName != "public" || e.Detail != "Key (a)=(1) already exists." || e.SeverityUnlocalized != "ERROR" {
		t.Errorf("%+v", e)
	}
	if e := get("INSERT INTO t VALUES (2, NULL)"); e.Code != "23502" || e.ColumnName != "b" {
		t.Errorf("%+v", e)
	}
	if e := get("SELECT 'é', nosuch FROM t WHERE a = $1", 1); e.Code != "42703" || e.Position != 13 {
		t.Errorf("%+v", e)
	}
}

// Half a message costs only its own connection, and arrives whenever the rest does.
func TestSlowClient(t *testing.T) {
	_, addr := startServer(t, Options{})
	slow, quick := newRaw(t, addr), connect(t, addr, "")
	slow.expectReady()
	b := message(t, `query "SELECT 'slow'"`)
	for i := range b {
		if _, err := slow.nc.Write(b[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			exec(t, quick, "SELECT 1")
		}
	}
	if got := slow.receive(0); !strings.Contains(got, "row slow\n") {
		t.Fatal(got)
	}
}

func TestLargeMessage(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	big := strings.Repeat("0123456789", 500_000)
	var got string
	if err := conn.QueryRow(t.Context(), "SELECT $1::text", big).Scan(&got); err != nil || got != big {
		t.Fatal(len(got), err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT length('"+big+"')", pgx.QueryExecModeSimpleProtocol).Scan(&n); err != nil || n != len(big) {
		t.Fatal(n, err)
	}
}

func FuzzMessages(f *testing.F) {
	add := func(lines ...string) {
		var b []byte
		for _, l := range lines {
			b = append(b, message(f, l)...)
		}
		f.Add(b)
	}
	add(`query "SELECT 1; SELECT 2"`)
	add(`parse "" "SELECT $1::int" 23`, `bind "" "" #00000001 / 1`, `describe P ""`, `execute "" 1`, `flush`, `execute ""`, `close P ""`, `sync`)
	add(`query "COPY t FROM STDIN"`, `data "1\n"`, `copydone`)
	add(`query "COPY t FROM STDIN"`, `copyfail "x"`, `sync`)
	add(`query "BEGIN"`, `query "SELECT nope"`, `query "ROLLBACK"`)
	s, addr := startServer(f, Options{})
	conn := connect(f, addr, "")
	exec(f, conn, "CREATE TABLE t (a int)")
	f.Fuzz(func(t *testing.T, b []byte) {
		client, server := net.Pipe()
		s.start(server)
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(io.Discard, client)
		}()
		client.SetDeadline(time.Now().Add(5 * time.Second))
		client.Write(startupPacket(protocol30, "user", "root", "database", "dev", "options", "-c statement_timeout=100"))
		client.Write(b)
		client.Write([]byte{'X', 0, 0, 0, 4})
		client.Close()
		<-done
		within(t, 5*time.Second, "the session has ended", func() bool { return s.sessions() == 1 })
	})
}

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		text string
		pos  int
		want int32
	}{{"abc", 0, 0}, {"abc", 1, 1}, {"abc", 4, 4}, {"abc", 5, 0}, {"äbc", 3, 2}, {"", 1, 1}} {
		if got := position(c.text, c.pos); got != c.want {
			t.Errorf("position(%q, %d) = %d, want %d", c.text, c.pos, got, c.want)
		}
	}
}

func TestTypeSize(t *testing.T) {
	for oid, want := range map[uint32]int16{types.OIDInt2: 2, types.OIDText: -1, types.OIDNumeric: -1, types.OIDUUID: 16, types.OIDName: 64} {
		if got := typeSize(oid); got != want {
			t.Errorf("typeSize(%d) = %d", oid, got)
		}
	}
}
