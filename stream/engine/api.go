// Package engine is the database: it owns the catalog, the store and the jobs,
// and its sessions execute statements.
//
// The one idea: everything a client can do is a method of Session; pgwire only
// translates messages to calls and rows to bytes.
package engine

import (
	"context"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// SessionOptions say who connects and how to reach him.
type SessionOptions struct {
	User, Database string
	Remote         string            // address, for SHOW PROCESSLIST
	Params         map[string]string // settings of the start-up packet, "options" already split
	// Notice receives notices as they arise, also while a statement runs, from any goroutine; nil: dropped.
	Notice func(*Notice)
	// Changed is told of each setting that clients are informed of (ParameterStatus) when it changes; nil: nobody.
	Changed func(name, value string)
	// Terminate is told, from any goroutine, that the session must end, and why; nil: it goes on.
	Terminate func(why *sqlerr.Error)
}

// A Notice is a message to the client that is not an error.
type Notice struct {
	Severity string // NOTICE, WARNING, INFO, DEBUG, LOG
	sqlerr.Error
}

// A ResultColumn describes a column of a result.
type ResultColumn struct {
	Name string
	Type types.Type
	Rel  catalog.ID // table the column comes from; 0: none
	Att  int        // its number there from 1; 0: none
}

// A Prepared statement is parsed and bound once and can be executed many times.
// It is bound again by itself when the catalog has changed.
type Prepared struct {
	Stmt    parser.Statement
	Params  []types.Type
	Columns []ResultColumn // nil: it returns no rows

	session *Session
	plan    planned
}

// A Result is a statement being executed. Exactly one of rows, CopyIn and CopyOut
// is there. Close must be called, also after an error.
type Result struct {
	Columns []ResultColumn // nil: no rows
	CopyIn  *CopyIn
	CopyOut *CopyOut

	next func(ctx context.Context) (*chunk.Chunk, error) // nil: no rows
	stop func()
	tag  func(rows int64) string
	rows int64
}

// Next returns the next rows, nil at the end.
func (r *Result) Next(ctx context.Context) (*chunk.Chunk, error) {
	if r.next == nil {
		return nil, nil
	}
	c, err := r.next(ctx)
	if c != nil {
		r.rows += int64(c.Len())
	}
	return c, err
}

// Tag is the command tag once all rows were read: "SELECT 5", "INSERT 0 1", "CREATE TABLE".
func (r *Result) Tag() string { return r.tag(r.rows) }

// Close ends the statement; rows that were not read are lost.
func (r *Result) Close() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// A CopyIn takes the data of COPY FROM STDIN. Write any number of times, then
// Finish or Abort once.
type CopyIn struct {
	Columns int
	Binary  bool
	Write   func(ctx context.Context, data []byte) error
	Finish  func(ctx context.Context) (tag string, err error)
	Abort   func(reason string) error // always returns the error to report
}

// A CopyOut gives the data of COPY TO STDOUT, one or more whole lines a call; nil at the end.
type CopyOut struct {
	Columns int
	Binary  bool
	Next    func(ctx context.Context) ([]byte, error)
}

// Methods of *DB that pgwire uses:
//
//	func (db *DB) Session(o SessionOptions) (*Session, error)
//	func (db *DB) Cancel(id uint32, secret uint32)           // CancelRequest
//
// and of *Session:
//
//	func (s *Session) ID() uint32; Secret() uint32           // BackendKeyData
//	func (s *Session) Status() byte                          // 'I', 'T' or 'E'
//	func (s *Session) ParameterStatus() [][2]string          // PostgreSQL's thirteen, in order
//	func (s *Session) Style() *types.Style                   // for text output; may change after each statement
//	func (s *Session) Parse(sql string) ([]parser.Statement, error)
//	func (s *Session) Prepare(ctx, stmt parser.Statement, params []uint32) (*Prepared, error)
//	func (s *Session) Execute(ctx, p *Prepared, args []types.Datum) (*Result, error)
//	func (s *Session) BeginImplicit() / EndImplicit(ctx, ok bool) error  // around a multi-statement simple query, and from the first Execute to Sync
//	func (s *Session) Fail()                                 // an error ended a statement: an open transaction is now failed ('E')
//	func (s *Session) Close()
//
// ctx of Execute stays in force until the Result is closed; cancelling it ends the statement with 57014.
