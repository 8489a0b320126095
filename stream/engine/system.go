package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/stream/engine/syscat"
)

// A system answers system functions and system relations for one session. It is
// the session as the system catalogs see it.
type system struct{ s *Session }

// CallSystem implements expr.System.
func (y *system) CallSystem(name string, args []types.Datum, ret types.Type) (types.Datum, error) {
	return syscat.Call(name, args, ret, y)
}

// Sleep implements syscat.Sleeper: it waits until the time has passed or the statement is ended.
func (y *system) Sleep(d time.Duration) error {
	y.s.mu.Lock()
	ctx := y.s.ctx
	y.s.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// systemRows computes a system relation.
func (s *Session) systemRows(ctx context.Context, r *catalog.Relation, cols []int) (*chunk.Chunk, error) {
	return syscat.Rows(ctx, r, cols, &system{s})
}

func (y *system) Snapshot() *catalog.Snapshot { return y.s.db.Catalog() }
func (y *system) User() string                { return y.s.user }
func (y *system) Database() string            { return y.s.database }
func (y *system) SearchPath() []string        { return y.s.searchPath() }
func (y *system) SessionID() uint32           { return y.s.id }
func (y *system) Version() string             { return y.s.db.o.Version }
func (y *system) Rows(id catalog.ID) int64    { return y.s.db.Rows(id) }
func (y *system) Bytes(id catalog.ID) int64   { return y.s.db.Bytes(id) }

func (y *system) Settings() []syscat.Setting {
	var out []syscat.Setting
	for _, d := range sortedSettings() {
		st := syscat.Setting{Name: d.name, Value: y.s.set.get(d.name), Default: d.def, Context: "user", VarType: d.kind.String(), Category: d.category, Description: d.desc, EnumVals: d.enum, Source: "default"}
		if d.readOnly {
			st.Context = "internal"
		}
		if _, ok := y.s.set.vals[strings.ToLower(d.name)]; ok {
			st.Source = "session"
		} else if _, ok := y.s.set.start[strings.ToLower(d.name)]; ok {
			st.Source = "client"
		}
		if d.kind == intSetting && d.max > 0 {
			st.Min, st.Max = fmt.Sprint(d.min), fmt.Sprint(d.max)
		}
		out = append(out, st)
	}
	return out
}

func (y *system) Setting(name string) (string, bool) {
	d, err := findSetting(name)
	if err != nil {
		return "", false
	}
	return y.s.set.get(d.name), true
}

func (y *system) SetSetting(name, value string, local bool) error {
	return y.s.setTo(name, value, local)
}

func pgMicros(t time.Time) int64 { return t.UnixMicro() - pgEpoch }

func (y *system) Sessions() []syscat.SessionInfo {
	var out []syscat.SessionInfo
	for _, o := range y.s.db.sessionList() {
		o.mu.Lock()
		i := syscat.SessionInfo{ID: o.id, User: o.user, Database: o.database, Remote: o.o.Remote, App: o.app, Query: o.running, Started: pgMicros(o.started), QueryStart: pgMicros(o.since), Active: o.running != ""}
		o.mu.Unlock()
		out = append(out, i)
	}
	return out
}

func (y *system) Definition(r *catalog.Relation, pretty bool) string { return createText(r) }

// Jobs reports all jobs, and failed relations that have none any more.
func (y *system) Jobs() []syscat.JobInfo {
	db := y.s.db
	cat := db.Catalog()
	var out []syscat.JobInfo
	seen := map[catalog.ID]bool{}
	for _, j := range db.jobs.Jobs() {
		rel := cat.ByID(j.Rel.ID)
		if rel == nil {
			continue
		}
		seen[rel.ID] = true
		r := db.jobs.Report(j)
		info := syscat.JobInfo{ID: rel.ID, Name: rel.Name, Statement: createText(rel), Background: rel.Background, Building: rel.Building, Started: pgMicros(r.Started),
			Done: r.Done, Total: r.Total, RowsPerSec: r.RowsPerSec, SecondsLeft: -1, RateLimit: r.Rate, WaitsFor: r.WaitsFor, Phase: r.Phase(), StateBytes: r.StateBytes, Finished: r.Finished, Err: rel.Failed}
		if r.Left >= 0 {
			info.SecondsLeft = r.Left.Seconds()
		}
		progress := map[plan.FragmentID]int{}
		for i, f := range r.Fragments {
			progress[f.Fragment] = i
		}
		for _, pf := range j.Graph.Fragments {
			f := syscat.FragmentInfo{ID: uint32(pf.ID), Parallelism: j.Parallelism(), SecondsLeft: -1, Rate: -1}
			if pf.Single {
				f.Parallelism = 1
			}
			f.Kinds = nodeKinds(pf.Root, nil)
			for _, t := range pf.Tables {
				f.StateTables = append(f.StateTables, t.ID)
				f.StateBytes += db.Bytes(t.ID)
			}
			if i, ok := progress[pf.ID]; ok {
				p := r.Fragments[i]
				f.Backfill, f.Upstream, f.Phase, f.Done, f.Total, f.Actors, f.Finished = true, p.Upstream, p.Phase.String(), p.Done, p.Total, p.Actors, p.Finished
				f.RowsPerSec, f.Rate, f.WaitsFor = p.RowsPerSec, p.Rate, fragmentWaits(j.Rel.ID, p.WaitsFor)
				if p.Left >= 0 {
					f.SecondsLeft = p.Left.Seconds()
				}
			}
			info.Fragments = append(info.Fragments, f)
		}
		n, errs := j.ExprErrors()
		info.ExprErrorCount = n
		for _, e := range errs {
			info.ExprErrors = append(info.ExprErrors, syscat.ExprError{At: pgMicros(e.At), Operator: e.Operator, Message: e.Message})
		}
		out = append(out, info)
	}
	for _, r := range cat.Relations() {
		if r.Failed != "" && !seen[r.ID] {
			out = append(out, syscat.JobInfo{ID: r.ID, Name: r.Name, Statement: createText(r), SecondsLeft: -1, Err: r.Failed, RateLimit: -1})
		}
	}
	return out
}

// fragmentWaits names the fragments that one waits for.
func fragmentWaits(id catalog.ID, on []plan.FragmentID) string {
	var out []string
	for _, f := range on {
		out = append(out, fmt.Sprint("fragment ", syscat.FragmentNumber(id, uint32(f))))
	}
	return strings.Join(out, ", ")
}

// nodeKinds lists the operators of a fragment as EXPLAIN names them, root first.
func nodeKinds(n plan.Stream, out []string) []string {
	out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan."))
	for _, in := range n.Inputs() {
		out = nodeKinds(in, out)
	}
	return out
}
