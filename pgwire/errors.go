package pgwire

import (
	"errors"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"streamdb/sql/sqlerr"
	"streamdb/stream/engine"
)

// Reasons for a connection to end, and for its statement to be cancelled.
var (
	errCanceled     = sqlerr.New(sqlerr.QueryCanceled, "canceling statement due to user request")
	errShutdown     = sqlerr.New(sqlerr.AdminShutdown, "terminating connection due to administrator command")
	errClientGone   = sqlerr.New("08006", "connection to client lost")
	errLostSync     = sqlerr.New(sqlerr.ProtocolViolation, "terminating connection because protocol synchronization was lost")
	errStarting     = sqlerr.New(sqlerr.CannotConnectNow, "the database system is starting up")
	errShuttingDown = sqlerr.New(sqlerr.CannotConnectNow, "the database system is shutting down")
	errTooMany      = sqlerr.New(sqlerr.TooManyConnections, "sorry, too many clients already")
)

// errStop ends a connection without another word: the client has said goodbye or is gone.
var errStop = errors.New("connection closed")

// errInterrupted says that a read was woken because the running statement was cancelled.
var errInterrupted = errors.New("read interrupted")

// errPlanChanged is what PostgreSQL says when a prepared statement has other result columns than
// when it was parsed. Drivers know it by its routine, and parse again.
var errPlanChanged = sqlerr.New(sqlerr.NotSupported, "cached plan must not change result type")

const planChangedRoutine = "RevalidateCachedQuery"

// errorResponse is err as the client sees it; text is what Pos counts in.
func errorResponse(err error, severity, text string) *pgproto3.ErrorResponse {
	e := sqlerr.From(err)
	out := fieldsOf(e, severity)
	out.Position = position(text, e.Pos)
	if errors.Is(err, errPlanChanged) {
		out.Routine = planChangedRoutine
	}
	return &out
}

func noticeResponse(n *engine.Notice) *pgproto3.NoticeResponse {
	out := pgproto3.NoticeResponse(fieldsOf(&n.Error, n.Severity))
	return &out
}

func fieldsOf(e *sqlerr.Error, severity string) pgproto3.ErrorResponse {
	return pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: e.Code, Message: clean(e.Message), Detail: clean(e.Detail), Hint: clean(e.Hint), Where: clean(e.Context),
		SchemaName: e.Schema, TableName: e.Table, ColumnName: e.Column, DataTypeName: e.Type, ConstraintName: e.Constraint}
}

// clean makes a text fit for the wire: no zero byte, which would end it.
func clean(s string) string {
	for i := range len(s) {
		if s[i] == 0 {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] == 0 {
					b[i] = '?'
				}
			}
			return string(b)
		}
	}
	return s
}

// position turns 1 + a byte offset into 1 + a count of characters, 0 for none.
func position(text string, pos int) int32 {
	if pos <= 0 || pos > len(text)+1 {
		return 0
	}
	return int32(utf8.RuneCountInString(text[:pos-1])) + 1
}
