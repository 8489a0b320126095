// Package slt reads and runs sqllogictest files in the dialect RisingWave uses.
//
// The one idea: a script is a list of records, each with its place in a file,
// and a runner that plays them against a server over the Postgres wire and
// compares text. Whoever wants to know whether two servers agree plays one
// script on both.
//
// Records are separated by blank lines; # starts a comment.
//
//	statement ok | error [CODE] [REGEX] | count N     SQL that must succeed, fail, or change N rows
//	query TYPES [nosort|rowsort|valuesort] [LABEL]     SQL, then ---- and the expected rows
//	query error [CODE] [REGEX]                         a query that must fail
//	connection NAME                                    following records use this connection
//	include GLOB                                       play other files here, relative to this one
//	sleep DURATION                                     wait
//	skipif LABEL, onlyif LABEL                         guard the next record
//	hash-threshold N                                   larger results are compared by their MD5
//	control sortmode MODE                              the sort mode of queries that name none
//	control substitution on|off                        $NAME and ${NAME} in SQL come from Options.Vars
//	subtest NAME                                       names what follows in errors
//	halt                                               ends the file
//
// A statement or query may end in `retry N backoff DURATION`: it is tried again
// until it meets its expectation. An error's message may also stand in full
// below a ---- line. `system` is refused: a script only speaks SQL.
//
// A row is its values in text format joined by one blank. NULL prints as NULL,
// the empty string as (empty), a line feed as \n, a
// row of nothing but blanks as (blank). Blanks at the end of a line do not count.
package slt

import (
	"fmt"
	"regexp"
	"time"
)

// A Pos is a place in a script.
type Pos struct {
	File string
	Line int // of the record's first line, from 1
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// A SortMode says how the rows of a result are ordered before they are compared.
type SortMode string

// The sort modes. An empty mode stands for the file's current one.
const (
	NoSort    SortMode = "nosort"
	RowSort   SortMode = "rowsort"
	ValueSort SortMode = "valuesort"
)

// A Kind is what a record does.
type Kind int

// The kinds of records.
const (
	Statement Kind = iota
	Query
	Connection
	Include
	Sleep
	HashThreshold
	Control
	Subtest
	Halt
)

// A Record is one step of a script.
type Record struct {
	Pos
	Kind   Kind
	Guards []Guard

	SQL   string
	Types string   // Query: a letter a column
	Sort  SortMode // Query; empty: the current mode
	Label string   // Query: results with one label must be equal

	Want  Expect
	Retry Retry

	Arg   string        // Connection, Include, Subtest, Control: the (first) word after
	Value string        // Control: the word after Arg
	N     int           // HashThreshold
	Wait  time.Duration // Sleep

	// The expectation's place in the file, for rewriting: the header line, and the
	// lines after the SQL (0-based, half open; resFrom == resTo: none yet).
	header, resFrom, resTo int
}

// A Guard keeps a record for, or from, runs with a label.
type Guard struct {
	Only  bool // onlyif; else skipif
	Label string
}

// Retry plays a record again until it is met. The zero value tries once.
type Retry struct {
	Attempts int // after the first
	Backoff  time.Duration
}

// Expect is what must come of a record.
type Expect struct {
	Err     bool
	Code    string         // SQLSTATE; empty: any
	Message *regexp.Regexp // nil: any
	Full    []string       // the whole message, a string a line; nil: not given
	Count   int            // Statement: rows changed; -1: any
	Lines   []string       // Query: expected lines
}
