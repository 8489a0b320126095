// Package syscat computes the system relations (pg_catalog, information_schema,
// rw_catalog) and answers the functions that read them.
//
// The one idea: nothing is stored. A relation's rows are made when it is read,
// from an immutable catalog snapshot and from what the session tells (Info); a
// column that nobody asked for is not computed, and what depends on the snapshot
// alone is kept for as long as that snapshot is in use.
package syscat

import (
	"context"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
)

// An Info is a session as the system relations see it.
type Info interface {
	Snapshot() *catalog.Snapshot
	User() string
	Database() string
	SearchPath() []string // schemas, in order, "$user" resolved
	SessionID() uint32
	Version() string // the program's, for version()
	Settings() []Setting
	Setting(name string) (string, bool)
	SetSetting(name, value string, local bool) error
	Sessions() []SessionInfo
	Rows(id catalog.ID) int64  // of a relation with rows, by estimate
	Bytes(id catalog.ID) int64 // that it takes in storage
	Jobs() []JobInfo
	Definition(r *catalog.Relation, pretty bool) string // what SHOW CREATE prints
}

// A Canceler is an Info that can also end the work of other sessions.
type Canceler interface {
	// Cancel ends the statement of a session, or the session if terminate; false: there is none.
	Cancel(id uint32, terminate bool) bool
}

// A Setting is a row of pg_settings.
type Setting struct {
	Name, Value, Default string
	Context              string // user, internal …
	VarType              string // bool, integer, real, string, enum
	Description          string
	Category             string
	Source               string // default, session, client
	Min, Max             string // ""; none
	EnumVals             []string
}

// A SessionInfo is a row of pg_stat_activity. Times are µs since 2000-01-01 UTC.
type SessionInfo struct {
	ID                  uint32
	User, Database, App string
	Remote              string // the client's address, "host:port"; "": unknown
	Query               string // being run, or run last
	Started, QueryStart int64
	Active              bool
}

// A JobInfo is a streaming job and how far its backfill has come.
type JobInfo struct {
	ID             catalog.ID
	Name           string
	Statement      string
	Background     bool
	Building       bool
	Started        int64 // µs since 2000-01-01 UTC
	Done, Total    int64 // rows
	RowsPerSec     float64
	SecondsLeft    float64 // < 0: unknown
	RateLimit      int64   // rows per second; < 0: none
	WaitsFor       string  // what keeps it from going faster; "": nothing
	Phase          string  // of its scan or locality provider that is least far
	StateBytes     int64
	Finished       bool
	Err            string // why it has stopped for good; "": it runs
	Fragments      []FragmentInfo
	ExprErrorCount int64
	ExprErrors     []ExprError // the newest
}

// A FragmentInfo is a fragment of a job.
type FragmentInfo struct {
	ID          uint32
	Kinds       []string // operators, root first
	Parallelism int
	StateTables []catalog.ID
	Backfill    bool // the fields below are set
	Upstream    catalog.ID
	Phase       string
	Done, Total int64
	Actors      int
	Finished    int // actors that are done
	RowsPerSec  float64
	SecondsLeft float64 // < 0: unknown
	Rate        int64   // rows per second; -1: without limit
	WaitsFor    string
	StateBytes  int64
}

// An ExprError is an expression that failed for a row, which became NULL there.
type ExprError struct {
	At       int64 // µs since 2000-01-01 UTC
	Operator string
	Message  string
}

// Rows computes the columns cols of the system relation r.
func Rows(ctx context.Context, r *catalog.Relation, cols []int, in Info) (*chunk.Chunk, error) {
	if r.Kind != catalog.System {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not a system relation", r.Name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	src := sources()[r.Schema+"."+r.Name]
	if src == nil { // known, and nothing in it here
		out := &chunk.Chunk{Cols: make([]chunk.Column, len(cols))}
		for i, c := range cols {
			out.Cols[i] = chunk.New(r.Columns[c].Type, 0)
		}
		return out, nil
	}
	return src.read(worldOf(in.Snapshot()), in, r, cols)
}
