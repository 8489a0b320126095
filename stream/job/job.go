package job

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/stream"
)

// A Job is the running dataflow of one relation. Its actors may be replaced by others
// while it runs (Manager.Rescale); who holds a Job need not know.
type Job struct {
	Rel   *catalog.Relation // as of its creation; the catalog has the current one
	Graph *plan.Graph

	// gen are the actors that the newest barrier goes to. It changes as a barrier is sent,
	// which is when the coordinator's write side is held.
	gen     atomic.Pointer[generation]
	ctx     context.Context
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // the actors of all generations
	started time.Time
	built   chan struct{} // closed when all backfills are finished
	source  bool          // has connector heads: always active

	mu       sync.Mutex
	gens     []*generation     // that have actors which may run
	normal   int               // parallelism when it is built
	building int               // parallelism until then; 0: normal
	err      error             // why it stopped; nil while it runs
	limits   *catalog.Relation // has the limits in force of its backfills
	finished bool
	active   bool // counts as active with the coordinator
	sample   rateSample
	samples  map[plan.FragmentID]*rateSample
	warned   time.Time   // when a backfill that stands still was last reported
	errs     []ExprError // the newest expression errors
	errCount int64
}

// An ExprError is an expression of a view that failed and became NULL.
type ExprError struct {
	At       time.Time
	Operator string
	Message  string
}

const keptExprErrors = 100

// Err is why the job has stopped; nil while it runs.
func (j *Job) Err() error { j.mu.Lock(); defer j.mu.Unlock(); return j.err }

// Built is closed when all backfills of the job are finished, or it has stopped.
func (j *Job) Built() <-chan struct{} { return j.built }

// mark makes cause the reason why the job has stopped, and reports whether it is
// the first one; who was first must take the job down. From here on the job is
// not connected to others, and begins with no barrier if it has not begun yet.
func (j *Job) mark(cause error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return false
	}
	j.err = cause
	return true
}

// down ends the actors of a marked job at once, whatever is queued for them. It
// does not wait for their goroutines.
func (m *Manager) down(j *Job) {
	j.mu.Lock()
	done, active := j.finished, j.active
	j.finished, j.active = true, false
	j.mu.Unlock()
	// Before the context ends, which makes executors close their inboxes with its
	// cause: senders of other jobs must find that the receiver is gone, not an error.
	j.mu.Lock()
	gens := slices.Clone(j.gens)
	j.mu.Unlock()
	var ids []stream.ActorID
	for _, g := range gens {
		g.shut()
		ids = append(ids, g.ids()...)
	}
	j.cancel(j.Err())
	m.coord.Forget(ids)
	if !done {
		close(j.built)
	}
	if active {
		m.coord.Activate(-1)
	}
}

// exprError counts an expression of the job that failed and keeps it for users to see.
func (j *Job) exprError(m *Manager, operator string, err error) {
	m.metrics.ExprErrors.WithLabelValues(j.Rel.Name).Inc()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errCount++
	if len(j.errs) == keptExprErrors {
		j.errs = j.errs[1:]
	}
	j.errs = append(j.errs, ExprError{At: m.clock.Now(), Operator: operator, Message: err.Error()})
}

// ExprErrors returns how many expressions have failed since the job started, and the newest of them.
func (j *Job) ExprErrors() (int64, []ExprError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.errCount, append([]ExprError(nil), j.errs...)
}

func logJob(l *slog.Logger, r *catalog.Relation) *slog.Logger {
	return l.With("job", uint32(r.ID), "name", r.Name)
}
