// Package pgwire speaks PostgreSQL's protocol 3.0: it turns messages into calls
// of an engine.Session and rows into bytes.
//
// The one idea: a connection is one goroutine that reads a message, calls the
// engine and writes the answer; everything that may reach it from elsewhere (a
// CancelRequest, a notice, shutdown, a client that has gone) either cancels the
// context of the running statement or wakes its read, and touches nothing else.
//
// Files: server.go accepts, startup.go opens a session, session.go reads
// messages, simple.go and extended.go are the two query protocols, copy.go is
// COPY, input.go and output.go the bytes in and out, encode.go rows.
package pgwire

import "time"

const (
	// maxText bounds a Query or Parse message: SQL text.
	maxText = 16 << 20
	// maxData bounds a Bind or CopyData message: values.
	maxData = 64 << 20
	// maxSmall bounds every other message, as in PostgreSQL.
	maxSmall = 10000
	// maxStartup bounds a start-up packet, as in PostgreSQL.
	maxStartup = 10000

	// idleInput is the read buffer of an idle connection; a larger one is freed
	// when the connection falls idle if it is above keepInput.
	idleInput = 4 << 10
	keepInput = 16 << 10
	// copyInput is the read buffer during COPY FROM STDIN, and how much CopyData is handed over at once.
	copyInput = 64 << 10
	// flushAt is how many bytes of answers are collected before they are written.
	flushAt = 32 << 10

	// watchEvery is how often a running statement looks whether its client is still there.
	watchEvery = 250 * time.Millisecond
)
