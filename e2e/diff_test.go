package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamdb/e2e/embed"
	"streamdb/e2e/slt"
	"streamdb/e2e/sqlgen"
	"streamdb/stream/engine"

	"github.com/jackc/pgx/v5/pgconn"
)

var functions = flag.Bool("functions", false, "TestDiffFunctions: compare every function of PostgreSQL's with ours")

var diffCases = flag.Int("cases", 20, "cases of TestDiff; a hundredth of it is the calls TestDiffFunctions makes of each function")

// TestDiff compares random queries over random tables with PostgreSQL: as a SELECT, as
// a view made before the rows and as a view made after them, at parallelism 1 and 4,
// after every change. A case that differs shrinks itself to a small script.
func TestDiff(t *testing.T) {
	first := runSeed(t)
	n := *diffCases
	if *seed != 0 && !flagSet("cases") {
		n = 1
	}
	intended := intentions(t)
	var next atomic.Int64
	var mu sync.Mutex
	total := diffCount{unknown: map[string]int{}}
	failed := map[string]bool{} // kinds of failures, so that one bug is not shown again and again
	began := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		p, name := judge(t)
		pg := connect(t, func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, name) })
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				mu.Lock()
				stop := i >= n || len(failed) >= 40
				mu.Unlock()
				if stop {
					return
				}
				s := first + uint64(i)
				d := &diffRun{seed: s, pg: pg, count: diffCount{unknown: map[string]int{}}}
				err := d.run()
				mu.Lock()
				total.add(d.count)
				mu.Unlock()
				if err != nil {
					mu.Lock()
					t.Errorf("seed %d: %v", s, err)
					failed[err.Error()] = true
					mu.Unlock()
				}
				for _, c := range d.failures {
					mu.Lock()
					again := failed[c.sign()]
					failed[c.sign()] = true
					mu.Unlock()
					if again {
						continue
					}
					c.shrink(pg)
					if slices.ContainsFunc(intended, func(i intention) bool { return i.name == "query "+c.kind && strings.Contains(c.script(), i.what) }) {
						continue
					}
					path := filepath.Join(os.TempDir(), fmt.Sprintf("diff-%d.sql", s))
					os.WriteFile(path, []byte(c.script()), 0o644)
					mu.Lock()
					t.Errorf("seed %d, %s:\n%s\n\treplay with: go test ./e2e -run '^TestDiff$' -seed %d", s, c.kind, c.script(), s)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d to %d: %d answers compared with PostgreSQL's, %d kinds of failures, %s", first, first+uint64(n)-1, total.compared, len(failed), time.Since(began).Round(time.Millisecond))
	for _, u := range slices.Sorted(maps.Keys(total.unknown)) {
		t.Logf("not supported, %d times: %s", total.unknown[u], u)
	}
}

// A diffCount says how much was compared and what streamdb does not have.
type diffCount struct {
	compared int
	unknown  map[string]int
}

func (a *diffCount) add(b diffCount) {
	a.compared += b.compared
	for k, n := range b.unknown {
		a.unknown[k] += n
	}
}

// A diffRun is one seed: some tables, queries over them and a script of changes.
type diffRun struct {
	seed     uint64
	pg       *pgconn.PgConn
	g        *sqlgen.Gen
	count    diffCount
	failures []*diffCase
}

// A diffCase is a query that differs, with all that is needed to see it.
type diffCase struct {
	kind     string
	tables   []string // CREATE TABLE
	changes  []string
	at       int // how many changes come before the view
	query    string
	how      string // "select", or the settings of a view
	pg, sd   string // the two outcomes
	attempts int
}

// fresh makes an empty schema the connection's first.
func fresh(pg *pgconn.PgConn) error {
	_, err := run(context.Background(), pg, "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
	return err
}

const diffTime = 30 * time.Second // for one statement

func diffExec(c *embed.Conn, sql string) ([]string, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), diffTime)
	defer cancel()
	a, err := c.Exec(ctx, sql)
	if err != nil {
		return nil, embed.Code(err), err
	}
	return a.Lines(), "", nil
}

func (d *diffRun) run() error {
	if err := fresh(d.pg); err != nil {
		return err
	}
	d.g = sqlgen.New(d.seed)
	db := embed.New(engine.Options{Seed: d.seed, ChunkSize: []int{1, 7, 1024}[d.seed%3], Interval: 5 * time.Millisecond})
	if err := db.Start(context.Background()); err != nil {
		return err
	}
	defer db.Crash()
	c, err := db.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	var tables, changes []string
	rows := map[string]int{}
	for _, t := range d.g.Tables {
		tables = append(tables, t.DDL())
	}
	for _, sql := range tables {
		if _, err := run(context.Background(), d.pg, sql); err != nil {
			return err
		}
		if _, _, err := diffExec(c, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	// The queries come first: half of their views see every row arrive.
	type subject struct {
		kind, query string
		views       []string // their settings; "": none
		at          []int
		dead        bool // it has failed or is not supported
	}
	var all []*subject
	view := func(s *subject, i int) {
		how := fmt.Sprintf("SET streaming_parallelism = %d; SET locality_backfill_mode = %s", []int{1, 4}[d.g.N(2)], []string{"off", "always", "auto"}[d.g.N(3)])
		name := fmt.Sprintf("m%d_%d", i, len(s.views))
		_, code, err := diffExec(c, how+"; CREATE MATERIALIZED VIEW "+name+" AS "+s.query)
		switch {
		case err == nil:
			s.views, s.at = append(s.views, how), append(s.at, len(changes))
			return
		case code == "0A000" || code == "42883":
			d.count.unknown["view, "+s.kind+": "+err.Error()]++
		default:
			d.fail(&diffCase{kind: s.kind, tables: tables, changes: changes, at: len(changes), query: s.query, how: how, pg: "OK", sd: outcome(nil, code, err)})
			s.dead = true
		}
		s.views, s.at = append(s.views, ""), append(s.at, 0)
	}
	for i := range 6 {
		s := &subject{}
		if d.g.Chance(0.35) {
			s.kind, s.query = "view", d.g.View("x").Query
		} else {
			s.kind, s.query = d.g.Wide()
		}
		if _, err := run(context.Background(), d.pg, s.query); err != nil {
			d.count.unknown["PostgreSQL refuses "+s.kind+": "+err.Error()]++
			continue
		}
		all = append(all, s)
		view(s, i)
	}
	steps := 4 + d.g.N(8)
	for step := range steps {
		sql := d.g.Change(rows)
		want, err := run(context.Background(), d.pg, sql)
		if err != nil {
			return fmt.Errorf("PostgreSQL refuses %s: %w", sql, err)
		}
		changes = append(changes, sql)
		got, code, err := diffExec(c, sql)
		if err != nil || !slices.Equal(got, want.rows) {
			d.fail(&diffCase{kind: "change", tables: tables, changes: changes[:len(changes)-1], at: len(changes) - 1, query: sql, how: "select", pg: outcome(want.rows, "", nil), sd: outcome(got, code, err)})
			return nil
		}
		d.count.compared++
		for _, t := range d.g.Tables {
			a, err := run(context.Background(), d.pg, "SELECT 1 FROM "+t.Name)
			if err != nil {
				return err
			}
			rows[t.Name] = len(a.rows)
		}
		if step == steps/2 {
			for i, s := range all {
				if !s.dead {
					view(s, i)
				}
			}
		}
		for i, s := range all {
			if s.dead {
				continue
			}
			want, err := run(context.Background(), d.pg, s.query)
			if err != nil || len(want.rows) > 3000 {
				s.dead = true // it fails on these rows, or explodes
				continue
			}
			ask := func(sql, how string, at int) {
				got, code, err := diffExec(c, sql)
				switch {
				case err != nil && (code == "0A000" || code == "42883"):
					d.count.unknown["select, "+s.kind+": "+err.Error()]++
				case err != nil || !slices.Equal(got, want.rows):
					d.fail(&diffCase{kind: s.kind, tables: tables, changes: slices.Clone(changes), at: at, query: s.query, how: how, pg: outcome(want.rows, "", nil), sd: outcome(got, code, err)})
					s.dead = true
				default:
					d.count.compared++
				}
			}
			ask(s.query, "select", len(changes))
			for k, how := range s.views {
				if how != "" && !s.dead {
					ask(fmt.Sprintf("SELECT * FROM m%d_%d", i, k), how, s.at[k])
				}
			}
		}
	}
	return nil
}

func (d *diffRun) fail(c *diffCase) {
	c.changes = slices.Clone(c.changes)
	d.failures = append(d.failures, c)
}

var digits = regexp.MustCompile(`[0-9]+|"[^"]*"`)

// sign is what failures of one bug are likely to have in common.
func (c *diffCase) sign() string {
	how := "view"
	if c.how == "select" {
		how = "select"
	}
	if strings.HasPrefix(c.sd, "ERROR") {
		line, _, _ := strings.Cut(c.sd, "\n")
		return how + digits.ReplaceAllString(line, "#")
	}
	return c.kind + how
}

// script is the case as SQL, with both answers.
func (c *diffCase) script() string {
	var b strings.Builder
	for _, s := range c.tables {
		fmt.Fprintf(&b, "%s;\n", s)
	}
	view := fmt.Sprintf("%s; CREATE MATERIALIZED VIEW m AS %s;\n", c.how, c.query)
	for i, s := range c.changes {
		if i == c.at && c.how != "select" {
			b.WriteString(view)
		}
		fmt.Fprintf(&b, "%s;\n", s)
	}
	if c.how == "select" {
		fmt.Fprintf(&b, "%s;\n", c.query)
	} else {
		if c.at >= len(c.changes) {
			b.WriteString(view)
		}
		b.WriteString("SELECT * FROM m;\n")
	}
	if strings.HasPrefix(c.sd, "ERROR") {
		fmt.Fprintf(&b, "-- PostgreSQL: %d rows; streamdb: %s\n", strings.Count(c.pg, "\n")+1, strings.ReplaceAll(c.sd[:min(len(c.sd), 1500)], "\n", "\n-- "))
	} else {
		diff := slt.Diff(strings.Split(c.pg, "\n"), strings.Split(c.sd, "\n"))
		fmt.Fprintf(&b, "-- (- PostgreSQL, + streamdb)\n-- %s\n", strings.ReplaceAll(diff[:min(len(diff), 1500)], "\n", "\n-- "))
	}
	return b.String()
}

// differs plays the case anew on empty servers; it notes the two outcomes if they differ.
func (c *diffCase) differs(pg *pgconn.PgConn) bool {
	c.attempts++
	if fresh(pg) != nil {
		return false
	}
	db := embed.New(engine.Options{Seed: 1, Interval: 5 * time.Millisecond})
	if db.Start(context.Background()) != nil {
		return false
	}
	defer db.Crash()
	conn, err := db.Connect()
	if err != nil {
		return false
	}
	defer conn.Close()
	both := func(sql string) bool {
		_, err1 := run(context.Background(), pg, sql)
		_, _, err2 := diffExec(conn, sql)
		return err1 == nil && err2 == nil
	}
	for _, t := range c.tables {
		if !both(t) {
			return false
		}
	}
	var code string
	made := false
	make := func() {
		made = true
		_, code, err = diffExec(conn, c.how+"; CREATE MATERIALIZED VIEW m AS "+c.query)
	}
	for i, s := range c.changes {
		if i == c.at && c.how != "select" {
			make()
		}
		if !both(s) {
			return false
		}
	}
	if !made && c.how != "select" {
		make()
	}
	want, perr := run(context.Background(), pg, c.query)
	if perr != nil {
		return false
	}
	var got []string
	if err == nil {
		if c.how == "select" {
			got, code, err = diffExec(conn, c.query)
		} else {
			got, code, err = diffExec(conn, "SELECT * FROM m")
		}
	}
	sd := outcome(got, code, err)
	// It must stay the same bug: an error stays one with its code.
	if strings.HasPrefix(c.sd, "ERROR") != strings.HasPrefix(sd, "ERROR") || err != nil && !strings.HasPrefix(c.sd, "ERROR "+code) || err == nil && slices.Equal(got, want.rows) {
		return false
	}
	c.pg, c.sd = outcome(want.rows, "", nil), sd
	return true
}

// shrink makes the case smaller as long as it differs: fewer changes, fewer rows in
// them, a shorter query.
func (c *diffCase) shrink(pg *pgconn.PgConn) {
	until := time.Now().Add(15 * time.Second)
	try := func(n diffCase) bool {
		if time.Now().After(until) || !n.differs(pg) {
			return false
		}
		*c = n
		return true
	}
	if !c.differs(pg) {
		c.kind += " (only in the whole script)"
		return
	}
	for changed := true; changed; {
		changed = false
		for i := len(c.changes) - 1; i >= 0; i-- {
			n := *c
			n.changes = slices.Delete(slices.Clone(c.changes), i, i+1)
			if i < n.at {
				n.at--
			}
			changed = try(n) || changed
		}
		for i := range c.changes {
			for _, s := range shorter(c.changes[i]) {
				n := *c
				n.changes = slices.Clone(c.changes)
				n.changes[i] = s
				if try(n) {
					changed = true
					break
				}
			}
		}
		for again := true; again; {
			again = false
			for _, q := range shorter(c.query) {
				n := *c
				n.query = q
				if try(n) {
					again, changed = true, true
					break
				}
			}
		}
	}
	for i := len(c.tables) - 1; i >= 0; i-- {
		n := *c
		n.tables = slices.Delete(slices.Clone(c.tables), i, i+1)
		try(n)
	}
}

var clause = regexp.MustCompile(`^ (WHERE|HAVING|ORDER BY|LIMIT|OFFSET|GROUP BY|LEFT JOIN|RIGHT JOIN|FULL JOIN|JOIN|CROSS JOIN|UNION ALL|UNION|EXCEPT|INTERSECT|AND|OR|RETURNING|PARTITION BY|ON CONFLICT|ROWS|GROUPS|RANGE|FILTER) `)

// shorter are texts with one thing left out of a statement: an item of a list, a
// clause, what stands in parentheses. Most of them are no SQL; who tries them finds out.
func shorter(sql string) []string {
	var out []string
	add := func(s string) {
		if len(s) < len(sql) {
			out = append(out, s)
		}
	}
	// Where a nesting begins and ends, and where commas and clauses stand in it.
	type level struct {
		open   int
		commas []int
		clause []int
	}
	stack := []level{{open: -1}}
	end := func(l level, at int) {
		marks := append(append([]int{l.open}, l.commas...), at)
		for i := 0; i+1 < len(marks) && len(l.commas) > 0; i++ {
			if i == 0 {
				first := marks[0] + 1
				if l.open < 0 {
					first = strings.Index(sql, " ") + 1
				}
				add(sql[:first] + strings.TrimPrefix(sql[marks[1]+1:], " "))
				continue
			}
			add(sql[:marks[i]] + sql[marks[i+1]:])
		}
		marks = append(l.clause, at)
		for i := range l.clause {
			for k := i + 1; k < len(marks); k++ {
				add(sql[:marks[i]] + sql[marks[k]:])
			}
		}
		if l.open >= 0 {
			add(sql[:l.open] + "(NULL)" + sql[at+1:])
			add(sql[:l.open] + sql[at+1:])
			add(sql[:l.open] + sql[l.open+1:at] + sql[at+1:])
			if in := strings.TrimSpace(sql[l.open+1 : at]); strings.HasPrefix(in, "SELECT") && l.open > 0 {
				add(in)
			}
		}
	}
	for i := 0; i < len(sql); i++ {
		top := &stack[len(stack)-1]
		switch sql[i] {
		case '\'':
			for i++; i < len(sql) && sql[i] != '\''; i++ {
			}
		case '(':
			stack = append(stack, level{open: i})
		case ')':
			if len(stack) > 1 {
				end(*top, i)
				stack = stack[:len(stack)-1]
			}
		case ',':
			top.commas = append(top.commas, i)
		case ' ':
			if clause.MatchString(sql[i:]) {
				top.clause = append(top.clause, i)
			}
		}
	}
	end(stack[0], len(sql))
	// Long leaps first.
	slices.SortStableFunc(out, func(a, b string) int { return len(a) - len(b) })
	return out
}
