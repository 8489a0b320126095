package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"streamdb/e2e/harness"
	"streamdb/e2e/slt"
	"streamdb/e2e/sqlgen"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	steps   = flag.Int("steps", 40, "steps of the equality test")
	noKills = flag.Bool("no-kills", false, "equality test: never kill the server")
)

// TestEquality: whatever is written, every view equals its query, and both equal
// PostgreSQL's answer, after every step; with views made before, between and after
// the rows, at parallelism 1 and 4, locality off, auto and always, killed at random.
func TestEquality(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	if *seed != 0 {
		seeds = []uint64{*seed}
	} else {
		seeds = append(seeds, runSeed(t))
	}
	for _, s := range seeds {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			e := newEquality(t, s)
			for e.step = range *steps {
				e.advance()
				e.check()
			}
		})
	}
}

// An equality is one run: one generator, two servers, what was said to them.
type equality struct {
	t     *testing.T
	seed  uint64
	step  int
	g     *sqlgen.Gen
	s     *harness.Server
	sd    *pgconn.PgConn // streamdb: the session under test
	pg    *pgconn.PgConn
	rows  map[string]int // a table's name to its rows
	views int            // ever made: names are not used twice
	said  strings.Builder
}

const maxViews = 8

func newEquality(t *testing.T, seed uint64) *equality {
	e := &equality{t: t, seed: seed, g: sqlgen.New(seed), rows: map[string]int{}}
	e.s = newServer(t)
	p, db := judge(t)
	e.pg = connect(t, func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, db) })
	if err := e.s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.reconnect()
	t.Cleanup(func() {
		if t.Failed() {
			path := filepath.Join(os.TempDir(), fmt.Sprintf("equality-%d.sql", seed))
			os.WriteFile(path, []byte(e.said.String()), 0o644)
			t.Logf("replay with: go test ./e2e -run TestEquality -seed %d -steps %d\nwhat was said up to there: %s", seed, *steps, path)
		}
	})
	for _, table := range e.g.Tables {
		e.both(table.DDL())
	}
	return e
}

func (e *equality) reconnect() {
	conn, err := e.s.Connect(e.t.Context())
	if err != nil {
		e.fatalf("connect: %v", err)
	}
	e.sd = conn
}

func (e *equality) note(format string, args ...any) {
	fmt.Fprintf(&e.said, format+";\n", args...)
}

func (e *equality) fatalf(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf("seed %d, step %d: %s", e.seed, e.step, fmt.Sprintf(format, args...))
}

// advance takes one random step.
func (e *equality) advance() {
	switch x := e.g.N(100); {
	case x < 15 && len(e.g.Views) < maxViews || e.step == 0:
		e.create()
	case x < 20:
		e.drop()
	case x < 25 && !*noKills:
		e.note("-- kill -9 and start again")
		e.s.Kill()
		if err := e.s.Start(e.t.Context()); err != nil {
			e.fatalf("start after kill -9: %v", err)
		}
		e.reconnect()
	case x < 38:
		e.transaction()
	case x < 42:
		e.both(e.g.Index(fmt.Sprintf("i%d", e.step)))
	default:
		for range 1 + e.g.N(4) {
			e.both(e.g.Change(e.rows))
			e.count()
		}
	}
}

// create makes a view on both sides, at times while another session writes.
func (e *equality) create() {
	for range 20 {
		v := e.g.View(fmt.Sprintf("v%d", e.views))
		// PostgreSQL has a plain view: always fresh. It also is the judge of whether
		// the query is one at all and does not explode.
		if _, err := run(e.t.Context(), e.pg, "CREATE VIEW "+v.Name+" AS "+v.Query); err != nil {
			e.t.Logf("seed %d, step %d: PostgreSQL refuses %s: %v", e.seed, e.step, v.Query, err)
			continue
		}
		if n, err := run(e.t.Context(), e.pg, "SELECT 1 FROM "+v.Name+" LIMIT 3000"); err != nil || len(n.rows) == 3000 {
			e.must(e.pg, "DROP VIEW "+v.Name)
			continue
		}
		e.views++
		e.must(e.sd, fmt.Sprintf("SET streaming_parallelism = %d", []int{1, 4}[e.g.N(2)]))
		e.must(e.sd, "SET locality_backfill_mode = "+[]string{"off", "always", "auto"}[e.g.N(3)])
		limit := "DEFAULT"
		if e.g.Chance(0.15) {
			limit = "300" // rows a second: slow enough for others to write meanwhile
		}
		e.must(e.sd, "SET backfill_rate_limit TO "+limit)
		e.createOn(v)
		e.g.Views = append(e.g.Views, v)
		return
	}
	e.fatalf("no view in 20 attempts")
}

func (e *equality) createOn(v *sqlgen.View) {
	sql := "CREATE MATERIALIZED VIEW " + v.Name + " AS " + v.Query
	var writes []string
	if e.g.Chance(0.5) {
		for range 1 + e.g.N(3) {
			writes = append(writes, e.g.Change(e.rows))
		}
	}
	e.note("%s -- while: %d changes", sql, len(writes))
	other, err := e.s.Connect(e.t.Context())
	if err != nil {
		e.fatalf("connect: %v", err)
	}
	defer other.Close(context.Background())
	done := make(chan error, 1)
	go func() {
		for _, w := range writes {
			if _, err := run(e.t.Context(), other, w); err != nil {
				done <- fmt.Errorf("%s: %w", w, err)
				return
			}
		}
		done <- nil
	}()
	_, err = run(e.t.Context(), e.sd, sql)
	if werr := <-done; werr != nil {
		e.fatalf("while a view was made: %v", werr)
	}
	if err != nil {
		e.fatalf("%s: %v", sql, err)
	}
	for _, w := range writes {
		e.note("%s", w)
		e.must(e.pg, w)
	}
	e.count()
}

// drop takes away the newest view or, at times, all.
func (e *equality) drop() {
	n := min(1, len(e.g.Views))
	if e.g.Chance(0.2) {
		n = len(e.g.Views)
	}
	for range n {
		v := e.g.Views[len(e.g.Views)-1]
		e.g.Views = e.g.Views[:len(e.g.Views)-1]
		e.note("DROP MATERIALIZED VIEW %s", v.Name)
		e.must(e.sd, "DROP MATERIALIZED VIEW "+v.Name)
		e.must(e.pg, "DROP VIEW "+v.Name)
	}
}

// transaction plays changes in BEGIN … COMMIT or ROLLBACK; inside it tables show
// the session's own writes.
func (e *equality) transaction() {
	e.both("BEGIN")
	saves := 0
	for range 2 + e.g.N(5) {
		switch x := e.g.N(10); {
		case x < 2:
			saves++
			e.both(fmt.Sprintf("SAVEPOINT s%d", saves))
		case x < 4 && saves > 0:
			to := 1 + e.g.N(saves)
			e.both(fmt.Sprintf("ROLLBACK TO SAVEPOINT s%d", to))
			saves = to
		case x < 5 && saves > 0:
			e.both(fmt.Sprintf("RELEASE SAVEPOINT s%d", saves))
			saves--
		}
		e.count()
		e.both(e.g.Change(e.rows))
		e.count()
		for _, t := range e.g.Tables {
			e.same("SELECT * FROM " + t.Name)
		}
	}
	e.both([]string{"COMMIT", "COMMIT", "ROLLBACK"}[e.g.N(3)])
	e.count()
}

// both says SQL to both servers, which must answer alike.
func (e *equality) both(sql string) {
	e.t.Helper()
	e.note("%s", sql)
	e.same(sql)
}

func (e *equality) same(sql string) {
	e.t.Helper()
	want, wantErr := run(e.t.Context(), e.pg, sql)
	got, gotErr := run(e.t.Context(), e.sd, sql)
	if wantErr != nil {
		e.fatalf("the generator made what PostgreSQL refuses: %s: %v", sql, wantErr)
	}
	if gotErr != nil {
		e.fatalf("%s: %v", sql, gotErr)
	}
	if got.tag != want.tag {
		e.fatalf("%s: %s, PostgreSQL: %s", sql, got.tag, want.tag)
	}
	if !slices.Equal(got.rows, want.rows) {
		e.fatalf("%s (- PostgreSQL, + streamdb)\n%s", sql, slt.Diff(want.rows, got.rows))
	}
}

func (e *equality) must(conn *pgconn.PgConn, sql string) {
	e.t.Helper()
	if _, err := run(e.t.Context(), conn, sql); err != nil {
		who := "streamdb"
		if conn == e.pg {
			who = "PostgreSQL"
		}
		e.fatalf("%s: %s: %v", who, sql, err)
	}
}

// count keeps the generator informed of the tables' sizes, PostgreSQL being right.
func (e *equality) count() {
	for _, t := range e.g.Tables {
		a, err := run(e.t.Context(), e.pg, "SELECT 1 FROM "+t.Name)
		if err != nil {
			e.fatalf("PostgreSQL: %v", err)
		}
		e.rows[t.Name] = len(a.rows)
	}
}

// check compares all tables and views. Of three answers to one view, the one
// that differs from the other two is the suspect.
func (e *equality) check() {
	for _, t := range e.g.Tables {
		e.same("SELECT * FROM " + t.Name)
	}
	for _, v := range e.g.Views {
		view, err1 := run(e.t.Context(), e.sd, "SELECT * FROM "+v.Name)
		batch, err2 := run(e.t.Context(), e.sd, v.Query)
		want, err3 := run(e.t.Context(), e.pg, v.Query)
		if err := errors.Join(err1, err2, err3); err != nil {
			e.fatalf("view %s, streamdb's SELECT, PostgreSQL's: %v | %v | %v\n%s", v.Name, err1, err2, err3, v.Query)
		}
		if slices.Equal(view.rows, want.rows) && slices.Equal(batch.rows, want.rows) {
			continue
		}
		var diff string
		if !slices.Equal(view.rows, want.rows) {
			diff = "(- PostgreSQL, + view)\n" + slt.Diff(want.rows, view.rows)
		}
		if !slices.Equal(batch.rows, want.rows) {
			diff += "\n(- PostgreSQL, + streamdb's SELECT)\n" + slt.Diff(want.rows, batch.rows)
		}
		e.fatalf("view %s\n\t%s\n%s", v.Name, v.Query, diff)
	}
}

// An answer is a statement's last result, its rows in byte order.
type answer struct {
	tag  string
	rows []string
}

// run says SQL and reads the answer; columns are joined by " | ".
func run(ctx context.Context, conn *pgconn.PgConn, sql string) (answer, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return answer{}, err
	}
	if len(results) == 0 {
		return answer{}, nil
	}
	last := results[len(results)-1]
	a := answer{tag: last.CommandTag.String()}
	for _, row := range last.Rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = slt.FormatValue(v)
		}
		a.rows = append(a.rows, strings.Join(values, " | "))
	}
	slices.Sort(a.rows)
	return a, nil
}

// TestGenerator holds the generator to its word, with PostgreSQL alone: what it makes
// runs, most views are accepted, and the same seed makes the same SQL.
func TestGenerator(t *testing.T) {
	p, db := judge(t)
	pg := connect(t, func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, db) })
	refused := map[string]int{}
	made := 0
	for s := range uint64(20) {
		g, again := sqlgen.New(s), sqlgen.New(s)
		mustExec(t, pg, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
		for i, table := range g.Tables {
			mustExec(t, pg, table.DDL())
			if again.Tables[i].DDL() != table.DDL() {
				t.Fatalf("seed %d: two tables from one seed", s)
			}
		}
		rows := map[string]int{}
		for range 10 {
			sql := g.Change(rows)
			if sql != again.Change(rows) {
				t.Fatalf("seed %d: two changes from one seed", s)
			}
			mustExec(t, pg, sql)
			for _, table := range g.Tables {
				rows[table.Name] = len(mustExec(t, pg, "SELECT 1 FROM "+table.Name).Rows)
			}
		}
		for i := range 10 {
			v := g.View(fmt.Sprintf("v%d", i))
			made++
			if _, err := run(t.Context(), pg, "CREATE VIEW "+v.Name+" AS "+v.Query); err != nil {
				refused[err.Error()]++
				continue
			}
			if _, err := run(t.Context(), pg, "SELECT * FROM "+v.Name); err != nil {
				t.Errorf("seed %d: %v\n%s", s, err, v.Query)
			}
			g.Views = append(g.Views, v)
		}
	}
	total := 0
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		t.Logf("%d refused: %s", refused[why], why)
		total += refused[why]
	}
	if total*20 > made {
		t.Errorf("PostgreSQL refused %d of %d views, more than one in twenty", total, made)
	}
}
