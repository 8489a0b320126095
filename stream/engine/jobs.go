package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/parser"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/storage"
	"streamdb/stream/engine/syscat"
	"streamdb/stream/job"
)

// Progress notices come after noticeAfter and then at most every noticeEvery, when a percent or more was done.
const (
	noticeAfter = 2 * time.Second
	noticeEvery = 5 * time.Second
)

// progressNotices tells the client how far a build is, while it waits for it. The
// returned function ends that; ok: with the final count.
func (s *Session) progressNotices(rel *catalog.Relation) func(ok bool) {
	mode := s.set.get("ddl_progress_notices")
	if mode == "off" || mode == "auto" && !strings.HasPrefix(s.set.get("application_name"), "psql") {
		return func(bool) {}
	}
	db := s.db
	j := db.jobs.Job(rel.ID)
	if j == nil {
		return func(bool) {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	begin := db.clock.Now()
	shown := false
	go func() {
		defer close(ended)
		wait, last := noticeAfter, -1.0
		for {
			select {
			case <-quit:
				return
			case <-time.After(wait):
			}
			wait = noticeEvery
			r := db.jobs.Report(j)
			pct := percent(r.Done, r.Total)
			if r.Finished || pct-last < 1 {
				continue
			}
			last, shown = pct, true
			s.noticef("backfill of %s: %s", rel.Name, progressText(r))
		}
	}()
	return func(ok bool) {
		close(quit)
		<-ended
		if ok && shown {
			r := db.jobs.Report(j)
			s.noticef("backfill of %s: done, %s rows in %.1f s", rel.Name, thousands(r.Done), db.clock.Now().Sub(begin).Seconds())
		}
	}
}

func percent(done, total int64) float64 {
	if total == 0 {
		return 0
	}
	return math.Min(100*float64(done)/float64(total), 100)
}

// progressText is "34% (3.4 of 10.0 million rows, 410,000 rows/s, about 16 s left)".
func progressText(r job.Report) string {
	count := fmt.Sprintf("%s of %s rows", thousands(r.Done), thousands(r.Total))
	if r.Total >= 1_000_000 {
		count = fmt.Sprintf("%.1f of %.1f million rows", float64(r.Done)/1e6, float64(r.Total)/1e6)
	}
	text := fmt.Sprintf("%.0f%% (%s, %s rows/s", math.Floor(percent(r.Done, r.Total)), count, thousands(int64(r.RowsPerSec)))
	if r.Left >= 0 {
		text += fmt.Sprintf(", about %s left", shortDuration(r.Left))
	}
	if r.WaitsFor != "" {
		text += ", " + r.WaitsFor
	}
	return text + ")"
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(math.Ceil(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(math.Ceil(d.Minutes())))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// thousands writes n with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// building returns the jobs that are being created, by ID.
func (db *DB) building() []*job.Job {
	cat := db.Catalog()
	var out []*job.Job
	for _, j := range db.jobs.Jobs() {
		if r := cat.ByID(j.Rel.ID); r != nil && r.Building {
			out = append(out, j)
		}
	}
	return out
}

// cancelJobs is CANCEL JOBS; it returns the ids that were cancelled.
func (s *Session) cancelJobs(ids []int64) ([]int64, error) {
	db := s.db
	var out []int64
	for _, id := range ids {
		db.ddl.Lock()
		r := db.Catalog().ByID(catalog.ID(id))
		if r != nil && r.Building {
			db.abandon(r, errCanceled)
			out = append(out, id)
		}
		db.ddl.Unlock()
	}
	return out, nil
}

// waitJobs is WAIT: until no job, or not the named one, is being created.
func (s *Session) waitJobs(ctx context.Context, w *parser.Wait) error {
	db := s.db
	for _, j := range db.building() {
		if w.Kind != "" && j.Rel.Name != w.Name.Name {
			continue
		}
		select {
		case <-j.Built():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// The catalog entry follows the last row by one commit.
		for {
			r := db.Catalog().ByID(j.Rel.ID)
			if r == nil || !r.Building {
				break
			}
			e, err := db.coord.Flush()
			if err == nil {
				err = db.coord.Wait(ctx, e)
			}
			if err != nil {
				return err
			}
		}
		if err := j.Err(); err != nil && w.Kind != "" {
			return fmt.Errorf("%q was not created: %w", j.Rel.Name, err)
		}
	}
	return nil
}

// alterSet is ALTER … SET parallelism, backfill_rate_limit and the like.
func (s *Session) alterSet(ctx context.Context, a *parser.AlterSet) (*Result, error) {
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if a.Kind == parser.Fragment {
		return s.alterFragments(ctx, a)
	}
	r, err := s.find(a.Name)
	if err != nil {
		if a.IfExists {
			s.noticef("relation %q does not exist, skipping", a.Name.Name)
			return done("ALTER " + string(a.Kind)), nil
		}
		return nil, err
	}
	if want, ok := dropKinds[a.Kind]; ok && r.Kind != want {
		return nil, sqlerr.New(sqlerr.WrongObjectType, "%q is not %s", r.Name, article(kindName(want))).At(a.Name.Pos)
	}
	bad := func() error {
		return sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter %q: %q", a.Setting.Name, a.Setting.Value).At(a.Setting.ValuePos)
	}
	if db.jobs.Job(r.ID) == nil {
		return nil, sqlerr.New(sqlerr.NotPrepared, "%s %q has no job", kindName(r.Kind), r.Name).At(a.Name.Pos)
	}
	n := *r
	switch strings.ToLower(a.Setting.Name) {
	case "backfill_rate_limit":
		v, err := checkRate(a.Setting.Value)
		if err != nil {
			return nil, bad()
		}
		n.RateLimit, n.Paused = nil, false
		if x, err := strconv.ParseInt(v, 10, 64); err == nil {
			n.RateLimit = &x
		}
		err = db.throttle(ctx, &n)
		return done("ALTER " + string(a.Kind)), err
	case "parallelism":
		if n.Parallelism, err = parallelismOf(r, a.Setting.Value); err != nil {
			return nil, cmp.Or(asUser(err), bad())
		}
		err = db.jobs.Rescale(ctx, r.ID, db.parallelism(&n), func(e storage.Epoch) { db.stage(e, []*catalog.Relation{&n}, nil) })
	case "backfill_parallelism":
		if n.BuildParallelism, err = parallelismOf(r, a.Setting.Value); err != nil {
			return nil, cmp.Or(asUser(err), bad())
		}
		err = db.jobs.RescaleBackfill(ctx, r.ID, n.BuildParallelism, func(e storage.Epoch) { db.stage(e, []*catalog.Relation{&n}, nil) })
	default:
		return nil, sqlerr.Unsupported("ALTER %s … SET %s", a.Kind, strings.ToUpper(a.Setting.Name)).At(a.Setting.Pos)
	}
	if err != nil {
		return nil, err
	}
	db.cat.Store(db.Catalog().With([]*catalog.Relation{&n}, nil))
	return done("ALTER " + string(a.Kind)), nil
}

// asUser is an error that users are told as it is; nil: it is not one.
func asUser(err error) error {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// parallelismOf reads n, ADAPTIVE or DEFAULT (0) as a parallelism of r.
func parallelismOf(r *catalog.Relation, value string) (int, error) {
	v, err := checkParallelism(value)
	if err != nil {
		return 0, err
	}
	if v == "default" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if most := cmp.Or(r.Vnodes, job.DefaultVnodes); err == nil && n > most {
		return 0, sqlerr.New(sqlerr.InvalidParameter, "parallelism %d of %q is more than its %d vnodes", n, r.Name, most).
			WithHint("streaming_max_parallelism is the number of vnodes of new relations.")
	}
	return n, err
}

// throttle puts the backfill rate of a changed relation in force and keeps it. The caller holds ddl.
func (db *DB) throttle(ctx context.Context, n *catalog.Relation) error {
	err := db.jobs.Throttle(ctx, n, func(e storage.Epoch) { db.stage(e, []*catalog.Relation{n}, nil) })
	if err == nil {
		db.cat.Store(db.Catalog().With([]*catalog.Relation{n}, nil))
	}
	return err
}

// alterFragments is ALTER FRAGMENT n, … SET backfill_rate_limit. A fragment's number
// is that of rw_fragments, which has the job's in it. The caller holds ddl.
func (s *Session) alterFragments(ctx context.Context, a *parser.AlterSet) (*Result, error) {
	db := s.db
	if !strings.EqualFold(a.Setting.Name, "backfill_rate_limit") {
		return nil, sqlerr.Unsupported("ALTER FRAGMENT … SET %s", strings.ToUpper(a.Setting.Name)).At(a.Setting.Pos)
	}
	v, err := checkRate(a.Setting.Value)
	if err != nil {
		return nil, sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter %q: %q", a.Setting.Name, a.Setting.Value).At(a.Setting.ValuePos)
	}
	var changed []*catalog.Relation
	for _, id := range a.Fragments {
		rel, fragment := syscat.SplitFragment(id)
		at := slices.IndexFunc(changed, func(r *catalog.Relation) bool { return r.ID == rel })
		if at < 0 {
			r := db.Catalog().ByID(rel)
			j := db.jobs.Job(rel)
			if r == nil || j == nil || j.Graph.Fragment(plan.FragmentID(fragment)) == nil {
				return nil, sqlerr.New(sqlerr.UndefinedObject, "fragment %d does not exist", id).At(a.Pos).WithHint("SELECT fragment_id FROM rw_catalog.rw_fragments shows all.")
			}
			n := *r
			n.FragmentRates = maps.Clone(n.FragmentRates)
			at, changed = len(changed), append(changed, &n)
		}
		n := changed[at]
		if rate, err := strconv.ParseInt(v, 10, 64); err == nil {
			if n.FragmentRates == nil {
				n.FragmentRates = map[uint32]int64{}
			}
			n.FragmentRates[fragment] = rate
		} else {
			delete(n.FragmentRates, fragment)
		}
	}
	for _, n := range changed {
		if err := db.throttle(ctx, n); err != nil {
			return nil, err
		}
	}
	return done("ALTER FRAGMENT"), nil
}

// pauseBackfill is PAUSE BACKFILL and RESUME BACKFILL, of one relation or of all.
func (s *Session) pauseBackfill(ctx context.Context, x *parser.Backfill) (*Result, error) {
	tag := "PAUSE BACKFILL"
	if x.Resume {
		tag = "RESUME BACKFILL"
	}
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if x.Name.Name == "" {
		return done(tag), db.jobs.Pause(ctx, !x.Resume)
	}
	r, err := s.find(x.Name)
	if err != nil {
		return nil, err
	}
	if db.jobs.Job(r.ID) == nil {
		return nil, sqlerr.New(sqlerr.NotPrepared, "%s %q has no job", kindName(r.Kind), r.Name).At(x.Name.Pos)
	}
	n := *r
	n.Paused = !x.Resume
	if x.Resume && n.RateLimit != nil && *n.RateLimit == 0 {
		n.RateLimit = nil // it was paused by its limit
	}
	return done(tag), db.throttle(ctx, &n)
}

// jobExprCtx is what expressions of views may depend on: a fixed time zone, no clock, no session.
func jobExprCtx(zone string) *expr.Ctx {
	loc, _, err := loadZone(zone)
	if err != nil {
		loc = time.UTC
	}
	return &expr.Ctx{Style: &types.Style{Zone: loc}}
}

// relationExprCtx is jobExprCtx with the time zone that was in force when the relation was created.
func relationExprCtx(r *catalog.Relation) *expr.Ctx {
	if r.Plan == nil {
		return jobExprCtx("UTC")
	}
	return jobExprCtx((&recordedPlan{r.Plan}).get("timezone"))
}

// backfillOrderText writes a backfill order as planner.ParseBackfillOrder reads it.
func backfillOrderText(o *parser.BackfillOrder) string {
	if len(o.Arcs) == 0 {
		return o.Kind
	}
	arcs := make([]string, len(o.Arcs))
	for i, a := range o.Arcs {
		arcs[i] = a.First.Name + " -> " + a.Then.Name
	}
	return o.Kind + "(" + strings.Join(arcs, ", ") + ")"
}
