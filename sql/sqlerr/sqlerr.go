// Package sqlerr carries what PostgreSQL's error fields carry: a SQLSTATE, one
// line of message, detail, hint, the position in the statement and the names of
// the objects concerned. Every error a client can see is, at its root, an *Error.
package sqlerr

import (
	"errors"
	"fmt"
)

// An Error is shown to clients field by field.
type Error struct {
	Code    string // SQLSTATE, five characters
	Message string
	Detail  string
	Hint    string
	Context string // where it happened: "COPY t, line 3"; "": nothing to say
	Pos     int    // 1 + byte offset into the statement's text; 0: unknown
	// Names of the objects concerned; empty: none.
	Schema, Table, Column, Type, Constraint string
	cause                                   error
}

// SQLSTATEs used in more than one package.
const (
	Syntax               = "42601"
	UndefinedTable       = "42P01"
	UndefinedColumn      = "42703"
	UndefinedFunction    = "42883"
	UndefinedObject      = "42704"
	DuplicateTable       = "42P07"
	DuplicateObject      = "42710"
	DuplicateColumn      = "42701"
	AmbiguousColumn      = "42702"
	AmbiguousFunction    = "42725"
	WrongObjectType      = "42809"
	GroupingError        = "42803"
	WindowingError       = "42P20"
	DatatypeMismatch     = "42804"
	CannotCoerce         = "42846"
	IndeterminateType    = "42P18"
	InvalidReference     = "42P10"
	DependentObjects     = "2BP01"
	NotSupported         = "0A000"
	UniqueViolation      = "23505"
	NotNullViolation     = "23502"
	CheckViolation       = "23514"
	InvalidText          = "22P02"
	OutOfRange           = "22003"
	DatetimeOverflow     = "22008"
	InvalidDatetime      = "22007"
	DivisionByZero       = "22012"
	StringTruncation     = "22001"
	InvalidParameter     = "22023"
	InvalidRegex         = "2201B"
	CardinalityViolation = "21000"
	BadCopy              = "22P04"
	DiskFull             = "53100"
	OutOfMemory          = "53200"
	TooManyConnections   = "53300"
	ProgramLimit         = "54000"
	QueryCanceled        = "57014"
	AdminShutdown        = "57P01"
	CannotConnectNow     = "57P03"
	SnapshotTooOld       = "72000"
	SerializationFailure = "40001"
	InFailedTransaction  = "25P02"
	NoActiveTransaction  = "25P01"
	ActiveTransaction    = "25001"
	ReadOnlyTransaction  = "25006"
	ProtocolViolation    = "08P01"
	InvalidSchema        = "3F000"
	InvalidDatabase      = "3D000"
	UndefinedStatement   = "26000"
	UndefinedCursor      = "34000"
	ObjectInUse          = "55006"
	NotPrepared          = "55000" // object not in prerequisite state
	DataCorrupted        = "XX001"
	Internal             = "XX000"
)

// New makes an error with a SQLSTATE and a formatted message. A %w in the format is kept as cause.
func New(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Unsupported says that a named feature is not there (0A000).
func Unsupported(format string, args ...any) *Error {
	return New(NotSupported, format+" is not supported", args...)
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// At sets the position from a byte offset into the statement; a negative offset leaves it unknown. It returns e.
func (e *Error) At(offset int) *Error {
	if offset >= 0 && e.Pos == 0 {
		e.Pos = offset + 1
	}
	return e
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// From returns err's *Error, or one with XX000 that wraps it; nil for nil. Text
// that outer layers wrapped around the *Error is kept in the message.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Code: Internal, Message: err.Error(), cause: err}
	}
	if full := err.Error(); full != e.Message {
		out := *e
		out.Message, out.cause = full, err
		return &out
	}
	return e
}

// Code returns the SQLSTATE of err, "" for nil.
func Code(err error) string {
	if err == nil {
		return ""
	}
	return From(err).Code
}
