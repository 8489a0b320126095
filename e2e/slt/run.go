package slt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Options says how to play scripts. Connect is needed, the rest may be zero.
type Options struct {
	// Connect opens a connection; it is called once a connection name and file.
	Connect func(ctx context.Context) (*pgconn.PgConn, error)
	// Labels are what skipif and onlyif ask for.
	Labels []string
	// Vars are the values of `control substitution on`.
	Vars map[string]string
	// Before, if set, runs before each query on the query's connection. It may be
	// used to bring a server that does not keep views fresh up to date.
	Before func(ctx context.Context, conn *pgconn.PgConn) error
	// Rewrite replaces the expectations in the files by what the server answers
	// (not those below a retry, whose answer is a matter of time).
	Rewrite bool
	// Extended sends single statements through the extended protocol (Parse, Bind,
	// Describe, Execute, Sync); scripts of several go as simple queries all the same.
	Extended bool
	// Timeout bounds one record; zero: a minute.
	Timeout time.Duration
}

// RunFile plays one script and all it includes. The error names every record
// that was not met; a script goes on after a failed record, so that one run shows all.
func RunFile(ctx context.Context, path string, o Options) error {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	r := runner{o: o, conns: map[string]*pgconn.PgConn{}, conn: "default", sort: NoSort, labels: map[string]labelled{}}
	defer r.close()
	r.file(ctx, path)
	return errors.Join(r.errs...)
}

// A runner is the state of one run: its connections and current modes.
type runner struct {
	o         Options
	conns     map[string]*pgconn.PgConn
	conn      string // the current connection's name
	sort      SortMode
	threshold int // of values; 0: never hash
	subst     bool
	subtest   string
	labels    map[string]labelled
	halted    bool
	errs      []error
}

// A labelled result is the first one seen with its label.
type labelled struct {
	pos   Pos
	lines []string
}

func (r *runner) close() {
	for _, name := range slices.Sorted(maps.Keys(r.conns)) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r.conns[name].Close(ctx)
		cancel()
	}
}

func (r *runner) fail(pos Pos, err error) {
	if r.subtest != "" {
		err = fmt.Errorf("%s: %w", r.subtest, err)
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %w", pos, err))
}

func (r *runner) file(ctx context.Context, path string) {
	records, err := ParseFile(path)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	var edits []edit
	for _, rec := range records {
		if r.halted || ctx.Err() != nil {
			break
		}
		if !r.wanted(rec) {
			continue
		}
		e, err := r.record(ctx, rec)
		if err != nil {
			r.fail(rec.Pos, err)
		}
		if e != nil {
			edits = append(edits, *e)
		}
	}
	if len(edits) > 0 {
		if err := rewrite(path, edits); err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

func (r *runner) wanted(rec Record) bool {
	for _, g := range rec.Guards {
		if slices.Contains(r.o.Labels, g.Label) != g.Only {
			return false
		}
	}
	return true
}

// record plays one record. It returns the edit that would make it right when rewriting.
func (r *runner) record(ctx context.Context, rec Record) (*edit, error) {
	switch rec.Kind {
	case Connection:
		r.conn = rec.Arg
	case Sleep:
		select {
		case <-time.After(rec.Wait):
		case <-ctx.Done():
		}
	case HashThreshold:
		r.threshold = rec.N
	case Subtest:
		r.subtest = rec.Arg
	case Halt:
		r.halted = true
	case Control:
		return nil, r.control(rec)
	case Include:
		return nil, r.include(ctx, rec)
	case Statement, Query:
		return r.try(ctx, rec)
	default:
		return nil, fmt.Errorf("unknown record kind %d", rec.Kind)
	}
	return nil, nil
}

func (r *runner) control(rec Record) error {
	switch rec.Arg {
	case "sortmode":
		switch m := SortMode(rec.Value); m {
		case NoSort, RowSort, ValueSort:
			r.sort = m
		default:
			return fmt.Errorf("unknown sort mode %q", rec.Value)
		}
	case "substitution":
		r.subst = rec.Value == "on"
	default:
		return fmt.Errorf("unknown control %q", rec.Arg)
	}
	return nil
}

func (r *runner) include(ctx context.Context, rec Record) error {
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(rec.File), rec.Arg))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("include %s: no such file", rec.Arg)
	}
	slices.Sort(paths)
	for _, p := range paths {
		r.file(ctx, p)
	}
	return nil
}

// try plays a statement or query until it is met or its attempts are spent.
func (r *runner) try(ctx context.Context, rec Record) (*edit, error) {
	sql := rec.SQL
	if r.subst {
		sql = os.Expand(sql, func(name string) string { return r.o.Vars[name] })
	}
	var err error
	for attempt := 0; ; attempt++ {
		var got outcome
		if got, err = r.play(ctx, rec, sql); err != nil {
			return nil, err
		}
		if err = r.check(rec, got); err == nil {
			break
		}
		if attempt == rec.Retry.Attempts {
			if r.o.Rewrite && rec.Retry.Attempts == 0 {
				return editOf(rec, got), nil
			}
			break
		}
		select {
		case <-time.After(rec.Retry.Backoff):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil && rec.Retry.Attempts > 0 {
		err = fmt.Errorf("after %d attempts: %w", rec.Retry.Attempts+1, err)
	}
	return nil, err
}

// An outcome is what a server made of a record.
type outcome struct {
	err     *pgconn.PgError // nil: success
	count   int             // rows changed
	columns int
	values  int
	lines   []string
}

// play sends a record's SQL. Its error means that there is no answer at all.
func (r *runner) play(ctx context.Context, rec Record, sql string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	conn, err := r.connection(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("connection %s: %w", r.conn, err)
	}
	if rec.Kind == Query && r.o.Before != nil {
		if err := r.o.Before(ctx, conn); err != nil {
			return outcome{}, fmt.Errorf("before the query: %w", err)
		}
	}
	var out outcome
	var rows [][][]byte
	if r.o.Extended && !strings.Contains(sql, ";") {
		out, rows, err = read(conn.ExecParams(ctx, sql, nil, nil, nil, nil))
	} else {
		out, rows, err = last(conn.Exec(ctx, sql))
	}
	if err != nil && !errors.As(err, &out.err) {
		return out, fmt.Errorf("no answer: %w\n%s", err, indent(sql))
	}
	if out.err != nil {
		return out, nil
	}
	mode := rec.Sort
	if mode == "" {
		mode = r.sort
	}
	out.values = len(rows) * out.columns
	out.lines = format(rows, mode)
	if r.threshold > 0 && out.values > r.threshold {
		out.lines = []string{hash(out.lines, out.values)}
	}
	return out, nil
}

// last reads the results of all statements and keeps the last one's.
func last(results *pgconn.MultiResultReader) (out outcome, rows [][][]byte, err error) {
	for results.NextResult() {
		if out, rows, err = read(results.ResultReader()); err != nil {
			break // results.Close reports it too
		}
	}
	return out, rows, results.Close()
}

// read reads one result. (ResultReader.Read would not tell the number of columns of an empty one.)
func read(result *pgconn.ResultReader) (out outcome, rows [][][]byte, err error) {
	for result.NextRow() {
		row := make([][]byte, len(result.Values()))
		for i, v := range result.Values() {
			if v != nil {
				row[i] = append([]byte{}, v...)
			}
		}
		rows = append(rows, row)
	}
	out.columns = len(result.FieldDescriptions())
	tag, err := result.Close()
	out.count = int(tag.RowsAffected())
	return out, rows, err
}

func (r *runner) connection(ctx context.Context) (*pgconn.PgConn, error) {
	if c := r.conns[r.conn]; c != nil && !c.IsClosed() {
		return c, nil
	}
	c, err := r.o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r.conns[r.conn] = c
	return c, nil
}

// check compares an outcome with what the record wants.
func (r *runner) check(rec Record, got outcome) error {
	want := rec.Want
	if !want.Err {
		switch {
		case got.err != nil:
			return fmt.Errorf("%s\n%s", describe(got.err), indent(rec.SQL))
		case want.Count >= 0 && got.count != want.Count:
			return fmt.Errorf("%d rows changed, want %d\n%s", got.count, want.Count, indent(rec.SQL))
		case rec.Kind == Statement:
			return nil
		case len(rec.Types) != got.columns:
			return fmt.Errorf("%d columns, want %d (%s)\n%s", got.columns, len(rec.Types), rec.Types, indent(rec.SQL))
		case !slices.Equal(want.Lines, got.lines):
			return fmt.Errorf("result differs (- wanted, + got)\n%s\n%s", indent(rec.SQL), Diff(want.Lines, got.lines))
		}
		return r.checkLabel(rec, got)
	}
	switch {
	case got.err == nil:
		return fmt.Errorf("succeeded, want an error\n%s", indent(rec.SQL))
	case want.Code != "" && got.err.Code != want.Code:
		return fmt.Errorf("%s, want SQLSTATE %s\n%s", describe(got.err), want.Code, indent(rec.SQL))
	case want.Message != nil && !want.Message.MatchString(got.err.Message):
		return fmt.Errorf("%s, want a message like %q\n%s", describe(got.err), want.Message, indent(rec.SQL))
	case want.Full != nil && !slices.Equal(want.Full, splitLines(got.err.Message)):
		return fmt.Errorf("message differs (- wanted, + got)\n%s\n%s", indent(rec.SQL), Diff(want.Full, splitLines(got.err.Message)))
	}
	return nil
}

// checkLabel demands that all results with one label are equal.
func (r *runner) checkLabel(rec Record, got outcome) error {
	if rec.Label == "" {
		return nil
	}
	first, seen := r.labels[rec.Label]
	if !seen {
		r.labels[rec.Label] = labelled{rec.Pos, got.lines}
		return nil
	}
	if !slices.Equal(first.lines, got.lines) {
		return fmt.Errorf("result differs from %s, which has the same label %s\n%s", first.pos, rec.Label, Diff(first.lines, got.lines))
	}
	return nil
}

func describe(err *pgconn.PgError) string {
	s := fmt.Sprintf("error %s: %s", err.Code, err.Message)
	if err.Detail != "" {
		s += "\n\tDETAIL: " + err.Detail
	}
	if err.Hint != "" {
		s += "\n\tHINT: " + err.Hint
	}
	return s
}

func indent(sql string) string { return "\t" + strings.ReplaceAll(sql, "\n", "\n\t") }
