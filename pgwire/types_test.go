package pgwire

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

var modes = []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}

// Every type goes there and back as an argument and as a result, in text and in binary.
func TestTypes(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	num := func(s string) pgtype.Numeric {
		var n pgtype.Numeric
		if err := n.Scan(s); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		typ string
		val any
	}{
		{"bool", true}, {"int2", int16(-7)}, {"int4", int32(1 << 30)}, {"int8", int64(-1 << 60)}, {"float4", float32(1.5)}, {"float8", 0.1},
		{"numeric", num("-12345678901234567890.0123")}, {"numeric", num("0")}, {"numeric", num("NaN")},
		{"text", "äöü 'x' \\"}, {"varchar(5)", "abc"}, {"bytea", []byte{0, 1, 0xff}},
		{"date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}, {"date", time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"time", pgtype.Time{Microseconds: 3661_000_001, Valid: true}},
		{"timestamp", time.Date(2024, 2, 29, 12, 34, 56, 789000000, time.UTC)}, {"timestamptz", time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)},
		{"interval", pgtype.Interval{Months: 14, Days: -3, Microseconds: 5, Valid: true}},
		{"int4[]", []int32{1, 2, 3}}, {"text[]", []string{"a", "b,c", ""}}, {"float8[]", []float64{}},
		{"int4", nil}, {"text", nil},
	} {
		for _, mode := range modes {
			for _, format := range []int16{pgx.TextFormatCode, pgx.BinaryFormatCode} {
				rows, err := conn.Query(t.Context(), "SELECT $1::"+c.typ, mode, pgx.QueryResultFormats{format}, c.val)
				if err != nil {
					t.Fatal(err)
				}
				got, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (any, error) {
					to := reflect.New(reflect.PointerTo(reflect.TypeFor[int]()))
					if c.val != nil {
						to = reflect.New(reflect.TypeOf(c.val))
					} else if c.typ == "text" {
						to = reflect.New(reflect.TypeFor[*string]())
					}
					err := r.Scan(to.Interface())
					return to.Elem().Interface(), err
				})
				if err != nil {
					t.Errorf("%s, %v, format %d: %v", c.typ, mode, format, err)
					continue
				}
				if tm, ok := got.(time.Time); ok {
					got = tm.UTC()
				}
				if c.val == nil {
					if !reflect.ValueOf(got).IsNil() {
						t.Errorf("%s, %v, format %d: %v for NULL", c.typ, mode, format, got)
					}
				} else if !reflect.DeepEqual(got, c.val) {
					t.Errorf("%s, %v, format %d: %v, want %v", c.typ, mode, format, got, c.val)
				}
			}
		}
	}
}

// What pgx infers from ParameterDescription.
func TestInferredParameters(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	exec(t, conn, "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, at timestamptz)")
	for sql, want := range map[string][]uint32{
		"SELECT * FROM t WHERE id = $1 LIMIT $2":  {pgtype.Int4OID, pgtype.Int8OID},
		"INSERT INTO t VALUES ($1, $2, $3, $4)":   {pgtype.Int4OID, pgtype.TextOID, pgtype.NumericOID, pgtype.TimestamptzOID},
		"UPDATE t SET v = $1 WHERE id = $2":       {pgtype.TextOID, pgtype.Int4OID},
		"DELETE FROM t WHERE at > $1 RETURNING v": {pgtype.TimestamptzOID},
	} {
		d, err := conn.Prepare(t.Context(), "", sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if !reflect.DeepEqual(d.ParamOIDs, want) {
			t.Errorf("%s: %v, want %v", sql, d.ParamOIDs, want)
		}
	}
	d, err := conn.Prepare(t.Context(), "", "SELECT v, id, id + 1 FROM t")
	if err != nil {
		t.Fatal(err)
	}
	if f := d.Fields; f[0].TableOID == 0 || f[0].TableAttributeNumber != 2 || f[1].TableAttributeNumber != 1 || f[1].TableOID != f[0].TableOID || f[2].TableOID != 0 {
		t.Errorf("fields %+v", f)
	}
}

func TestPipeline(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	exec(t, conn, "CREATE TABLE t (id int PRIMARY KEY)")
	count := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// All of a batch is one transaction.
	b := &pgx.Batch{}
	for i := range 20 {
		b.Queue("INSERT INTO t VALUES ($1)", i)
	}
	b.Queue("SELECT count(*) FROM t").QueryRow(func(r pgx.Row) error {
		var n int
		if err := r.Scan(&n); err != nil || n != 20 {
			t.Errorf("inside: %d, %v", n, err)
		}
		return nil
	})
	if err := conn.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 20 {
		t.Fatalf("%d rows", n)
	}
	b = &pgx.Batch{}
	b.Queue("INSERT INTO t VALUES (100)")
	b.Queue("INSERT INTO t VALUES (5)")
	b.Queue("INSERT INTO t VALUES (101)")
	if err := conn.SendBatch(t.Context(), b).Close(); code(err) != "23505" {
		t.Fatal(err)
	}
	if n := count(); n != 20 {
		t.Fatalf("%d rows after a batch that failed", n)
	}
	// Two transactions in one pipeline: the first fails, the second does not.
	p := conn.PgConn().StartPipeline(t.Context())
	p.SendQueryParams("INSERT INTO t VALUES (200)", nil, nil, nil, nil)
	p.SendQueryParams("SELECT nope", nil, nil, nil, nil)
	p.SendPipelineSync()
	p.SendQueryParams("INSERT INTO t VALUES (201)", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	var failed int
	for {
		res, err := p.GetResults()
		if err != nil {
			failed++
			continue
		}
		if res == nil {
			break
		}
		if rr, ok := res.(*pgconn.ResultReader); ok {
			if _, err := rr.Close(); err != nil {
				failed++
			}
		}
	}
	if err := p.Close(); err != nil && code(err) != "42703" {
		t.Fatal(err)
	}
	if n := count(); n != 21 || failed == 0 {
		t.Fatalf("%d rows, %d failed", n, failed)
	}
}

func TestCopy(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	exec(t, conn, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	var in strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&in, "%d\tvalue %d\n", i, i)
	}
	tag, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(in.String()), "COPY t FROM STDIN")
	if err != nil || tag.RowsAffected() != 50_000 {
		t.Fatal(tag, err)
	}
	var out strings.Builder
	tag, err = conn.PgConn().CopyTo(t.Context(), &out, "COPY (SELECT * FROM t ORDER BY id) TO STDOUT")
	if err != nil || tag.RowsAffected() != 50_000 || out.String() != in.String() {
		t.Fatal(tag, err, out.Len())
	}
	_, err = conn.PgConn().CopyFrom(t.Context(), strings.NewReader("70000\tx\n70001\n"), "COPY t FROM STDIN")
	if code(err) != "22P04" || !strings.Contains(err.(*pgconn.PgError).Where, "COPY t, line 2") {
		t.Fatal(err)
	}
	// The client gives up.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader("1"), "COPY t FROM STDIN"); err == nil {
		t.Fatal("no error")
	}
}

func TestMultiStatement(t *testing.T) {
	_, addr := startServer(t, Options{})
	conn := connect(t, addr, "")
	res, err := conn.PgConn().Exec(t.Context(), "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2); SELECT * FROM t ORDER BY id; DELETE FROM t WHERE id = 1; SELECT count(*) FROM t").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, r := range res {
		tags = append(tags, r.CommandTag.String())
	}
	if got := strings.Join(tags, ", "); got != "CREATE TABLE, INSERT 0 2, SELECT 2, DELETE 1, SELECT 1" {
		t.Fatal(got)
	}
}

// Sessions at once, each with its own statements.
func TestConcurrent(t *testing.T) {
	_, addr := startServer(t, Options{})
	setup := connect(t, addr, "")
	exec(t, setup, "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(v) AS s FROM t")
	done := make(chan error)
	const clients, each = 8, 25
	for c := range clients {
		go func() {
			conn, err := pgx.Connect(context.Background(), url(addr, ""))
			if err == nil {
				defer conn.Close(context.Background())
			}
			for i := 0; i < each && err == nil; i++ {
				_, err = conn.Exec(context.Background(), "INSERT INTO t VALUES ($1, 1)", c*1000+i)
				var n int
				if err == nil {
					// What was acknowledged is in every view.
					if err = conn.QueryRow(context.Background(), "SELECT n FROM m").Scan(&n); err == nil && n <= i {
						err = fmt.Errorf("the view has %d rows after %d", n, i+1)
					}
				}
			}
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var n, s int
	if err := setup.QueryRow(t.Context(), "SELECT n, s FROM m").Scan(&n, &s); err != nil || n != clients*each || s != n {
		t.Fatal(n, s, err)
	}
}
