// Package embed runs the database inside the test's own process.
//
// The one idea: a process costs a second to start and a socket a thread to wait on,
// an engine in a directory of a memory file system costs milliseconds; so thousands
// of seeds can be tried where a server allows dozens. What the wire does to values
// and errors is tested elsewhere.
package embed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"streamdb/e2e/slt"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/engine"
)

// A DB is an engine and the directory it keeps between its lives. Its methods are
// for one goroutine; while none of them runs, any goroutine may open sessions.
type DB struct {
	*engine.DB // nil: not running
	Options    engine.Options
	fatal      chan error
}

// TempDir makes a directory in memory, if the machine has such a file system.
func TempDir() (string, error) {
	root := ""
	if runtime.GOOS == "linux" {
		if s, err := os.Stat("/dev/shm"); err == nil && s.IsDir() {
			root = "/dev/shm"
		}
	}
	return os.MkdirTemp(root, "streamdb-embed-")
}

// New makes a database that is not yet running. Dir "": nothing is kept.
func New(o engine.Options) *DB {
	db := &DB{Options: o, fatal: make(chan error, 1)}
	db.Options.Fatal = func(err error) {
		select {
		case db.fatal <- err:
		default: // the first one counts
		}
	}
	return db
}

// Start opens the directory.
func (db *DB) Start(ctx context.Context) (err error) {
	db.DB, err = engine.Open(ctx, db.Options)
	return err
}

// Crash ends the engine: what no epoch has committed is lost, as by a kill. Statements
// under way end with errors; their sessions are of no use any more.
func (db *DB) Crash() error {
	if db.DB == nil {
		return nil
	}
	err := db.DB.Close()
	db.DB = nil
	return errors.Join(err, db.Fatal())
}

// Fatal returns the error with which the engine would have ended its process; nil: none.
func (db *DB) Fatal() error {
	select {
	case err := <-db.fatal:
		db.fatal <- err
		return fmt.Errorf("the engine gave up: %w", err)
	default:
		return nil
	}
}

// A Conn is a session that reads whole answers.
type Conn struct {
	*engine.Session
}

// Connect opens a session.
func (db *DB) Connect() (*Conn, error) {
	s, err := db.Session(engine.SessionOptions{User: "root", Database: engine.DefaultDatabase})
	if err != nil {
		return nil, err
	}
	return &Conn{s}, nil
}

// An Answer is what the last of some statements returned, rows in the order they came.
type Answer struct {
	Tag     string
	Columns []engine.ResultColumn
	Rows    [][]string // NULL is Null
}

// Null is how NULL shows in an Answer: no text value has it.
const Null = "\x00NULL"

// Lines joins the columns of each row, a line a row, and sorts them: as script files show answers.
func (a *Answer) Lines() []string {
	out := make([]string, len(a.Rows))
	for i, row := range a.Rows {
		v := make([]string, len(row))
		for k := range v {
			if row[k] == Null {
				v[k] = slt.FormatValue(nil)
			} else {
				v[k] = slt.FormatValue([]byte(row[k]))
			}
		}
		out[i] = strings.Join(v, " | ")
	}
	slices.Sort(out)
	return out
}

// Exec runs statements, separated by semicolons, each for itself, up to the first that
// fails. A panic of the engine in a statement is returned as an error with its stack.
func (c *Conn) Exec(ctx context.Context, sql string) (a *Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 16<<10)
			err = fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	stmts, err := c.Parse(sql)
	if err != nil {
		c.Fail()
		return nil, err
	}
	a = &Answer{}
	for _, st := range stmts {
		p, err := c.Prepare(ctx, st, nil)
		if err != nil {
			c.Fail()
			return nil, err
		}
		if a, err = c.read(ctx, p); err != nil {
			c.Fail()
			return nil, err
		}
	}
	return a, nil
}

func (c *Conn) read(ctx context.Context, p *engine.Prepared) (*Answer, error) {
	r, err := c.Execute(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a := &Answer{Columns: r.Columns}
	for {
		ch, err := r.Next(ctx)
		if err != nil {
			return nil, err
		}
		if ch == nil {
			break
		}
		style := c.Style()
		for i := range ch.Len() {
			row := make([]string, len(ch.Cols))
			for k, col := range ch.Cols {
				row[k] = Null
				if !col.Null(i) {
					row[k] = string(types.AppendText(nil, col.Type(), col.Datum(i), style))
				}
			}
			a.Rows = append(a.Rows, row)
		}
	}
	a.Tag = r.Tag()
	return a, nil
}

// Code is the SQLSTATE of an error, "" if it has none.
func Code(err error) string { return sqlerr.Code(err) }
