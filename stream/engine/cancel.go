package engine

import "streamdb/sql/sqlerr"

// Cancel implements syscat.Canceler for pg_cancel_backend and pg_terminate_backend.
// A session that nobody can end (SessionOptions.Terminate) loses its statement only.
func (y *system) Cancel(id uint32, terminate bool) bool {
	y.s.db.mu.Lock()
	o := y.s.db.sessions[id]
	y.s.db.mu.Unlock()
	if o == nil {
		y.s.notice("WARNING", sqlerr.New("01000", "PID %d is not a PostgreSQL server process", id))
		return false
	}
	if !terminate {
		o.interrupt(errCanceled)
		return true
	}
	why := sqlerr.New("57P01", "terminating connection due to administrator command")
	o.interrupt(why)
	if o.o.Terminate != nil {
		o.o.Terminate(why)
	}
	return true
}
