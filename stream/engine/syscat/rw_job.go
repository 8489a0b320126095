package syscat

import (
	"fmt"
	"slices"
	"strings"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

// A jobFragment is a fragment with its job. Fragments are numbered within a
// job; outside, the job's number goes before theirs.
type jobFragment struct {
	job *JobInfo
	FragmentInfo
}

const (
	fragmentsPerJob   = 1000
	actorsPerFragment = 1024 // the most there can be
)

func (f *jobFragment) id() int64 { return FragmentNumber(f.job.ID, f.ID) }

// FragmentNumber is a fragment's number outside of its job.
func FragmentNumber(job catalog.ID, fragment uint32) int64 {
	return int64(job)*fragmentsPerJob + int64(fragment)
}

// SplitFragment gives the job and the job's own number of a fragment.
func SplitFragment(id int64) (catalog.ID, uint32) {
	return catalog.ID(id / fragmentsPerJob), uint32(id % fragmentsPerJob)
}

// has reports whether the fragment has an operator whose name contains part.
func (f *jobFragment) has(part string) bool {
	return slices.ContainsFunc(f.Kinds, func(k string) bool { return strings.Contains(k, part) })
}

// flags are RisingWave's fragment flags.
func (f *jobFragment) flags() []string {
	var out []string
	for _, x := range []struct{ part, flag string }{{"Materialize", "MVIEW"}, {"Sink", "SINK"}, {"Source", "SOURCE"}, {"Scan", "STREAM_SCAN"}, {"Dml", "DML"}, {"Now", "NOW"}, {"Values", "VALUES"}} {
		if f.has(x.part) {
			out = append(out, x.flag)
		}
	}
	return out
}

func jobs(_ *world, in Info) []JobInfo { return in.Jobs() }

func fragments(_ *world, in Info) []jobFragment {
	var out []jobFragment
	js := in.Jobs()
	for i := range js {
		for _, f := range js[i].Fragments {
			out = append(out, jobFragment{&js[i], f})
		}
	}
	return out
}

// building are the jobs that backfill.
func building(_ *world, in Info) []JobInfo {
	var out []JobInfo
	for _, j := range in.Jobs() {
		if !j.Finished && j.Err == "" && (j.Building || j.Total > 0) {
			out = append(out, j)
		}
	}
	return out
}

// backfilling are the fragments that read what was there before their job.
func backfilling(w *world, in Info) []jobFragment {
	return slices.DeleteFunc(fragments(w, in), func(f jobFragment) bool { return !f.Backfill || f.job.Finished })
}

// progress is RisingWave's text: "34.00% (34/100)".
func (j *JobInfo) progress() string {
	done, total := j.Done, j.Total
	if j.Finished || total <= 0 {
		if j.Finished {
			return "100.00%"
		}
		return fmt.Sprintf("0.00%% (%d/%d)", done, max(total, 0))
	}
	return fmt.Sprintf("%.2f%% (%d/%d)", min(100*float64(done)/float64(total), 100), done, total)
}

// seconds is NULL where they are unknown.
func seconds(s float64) types.Datum {
	if s < 0 {
		return types.Datum{}
	}
	return types.NewFloat(s)
}

// maskJob is a job's statement without secrets.
func maskJob(in Info, j *JobInfo) string {
	if r := in.Snapshot().ByID(j.ID); r != nil {
		return Mask(r, j.Statement)
	}
	return j.Statement
}

// An actor is one of a fragment's parallel parts.
type actor struct {
	fragment *jobFragment
	n        int
}

// An exprError is a row of rw_expression_errors.
type exprError struct {
	job *JobInfo
	ExprError
}

func int32s(ids []catalog.ID) types.Datum {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return ints(types.Int4, out)
}

// fragmentColumns are those that every relation about fragments has.
func fragmentColumns(more map[string]column[jobFragment]) map[string]column[jobFragment] {
	m := map[string]column[jobFragment]{
		"fragment_id": num((*jobFragment).id),
		"table_id":    num(func(f *jobFragment) int64 { return int64(f.job.ID) }),
		"job_id":      num(func(f *jobFragment) int64 { return int64(f.job.ID) }),
		"id":          num(func(f *jobFragment) int64 { return int64(f.job.ID) }),
		"name":        str(func(f *jobFragment) string { return f.job.Name }),
		"distribution_type": str(func(f *jobFragment) string {
			if f.Parallelism == 1 {
				return "SINGLE"
			}
			return "HASH"
		}),
		"state_table_ids": datum(func(f *jobFragment) types.Datum { return int32s(f.StateTables) }),
		"flags":           datum(func(f *jobFragment) types.Datum { return texts(types.Varchar, f.flags()) }),
		"parallelism":     num(func(f *jobFragment) int64 { return int64(f.Parallelism) }),
		"max_parallelism": live(func(in Info, f *jobFragment) types.Datum {
			if r := in.Snapshot().ByID(f.job.ID); r != nil && r.Vnodes > 0 && f.Parallelism > 1 {
				return types.NewInt(int64(r.Vnodes)) // a vnode is never split
			}
			return types.NewInt(int64(f.Parallelism))
		}),
		"node_kinds": datum(func(f *jobFragment) types.Datum { return texts(types.Varchar, f.Kinds) }),
	}
	for n, c := range more {
		m[n] = c
	}
	return m
}

func rwJobSources() map[string]source {
	return map[string]source{
		"rw_catalog.rw_fragments": &table[jobFragment]{rows: fragments, changing: true, cols: fragmentColumns(nil)},
		"rw_catalog.rw_streaming_parallelism": &table[jobFragment]{rows: fragments, changing: true, cols: fragmentColumns(map[string]column[jobFragment]{
			"relation_type": live(func(in Info, f *jobFragment) types.Datum {
				if r := in.Snapshot().ByID(f.job.ID); r != nil {
					return types.NewString(kindName(r.Kind))
				}
				return types.NewString("")
			}),
		})},
		"rw_catalog.rw_actors": &table[actor]{
			rows: func(w *world, in Info) []actor {
				var out []actor
				fs := fragments(w, in)
				for i := range fs {
					for n := range max(fs[i].Parallelism, fs[i].Actors) {
						out = append(out, actor{&fs[i], n})
					}
				}
				return out
			},
			changing: true,
			cols: map[string]column[actor]{
				"actor_id":    num(func(a *actor) int64 { return a.fragment.id()*actorsPerFragment + int64(a.n) }),
				"fragment_id": num(func(a *actor) int64 { return a.fragment.id() }),
				"state": str(func(a *actor) string {
					if a.fragment.job.Err != "" {
						return "FAILED"
					}
					return "RUNNING"
				}),
			},
			fixed: map[string]any{"worker_id": 1},
		},
		"rw_catalog.rw_ddl_progress": &table[JobInfo]{
			rows:     building,
			changing: true,
			cols: map[string]column[JobInfo]{
				"ddl_id":        num(func(j *JobInfo) int64 { return int64(j.ID) }),
				"ddl_statement": live(func(in Info, j *JobInfo) types.Datum { return types.NewString(maskJob(in, j)) }),
				"create_type": str(func(j *JobInfo) string {
					if j.Background {
						return "BACKGROUND"
					}
					return "FOREGROUND"
				}),
				"progress":        str((*JobInfo).progress),
				"initialized_at":  num(func(j *JobInfo) int64 { return j.Started }),
				"rows_done":       num(func(j *JobInfo) int64 { return j.Done }),
				"rows_total":      num(func(j *JobInfo) int64 { return j.Total }),
				"rows_per_second": datum(func(j *JobInfo) types.Datum { return types.NewFloat(j.RowsPerSec) }),
				"seconds_left":    datum(func(j *JobInfo) types.Datum { return seconds(j.SecondsLeft) }),
				"phase":           str(func(j *JobInfo) string { return j.Phase }),
				"state_bytes":     num(func(j *JobInfo) int64 { return j.StateBytes }),
				"waits_for":       datum(func(j *JobInfo) types.Datum { return text(j.WaitsFor) }),
			},
			fixed: map[string]any{"is_serverless_backfill": false, "backfill_type": "SNAPSHOT_BACKFILL"},
		},
		"rw_catalog.rw_fragment_backfill_progress": &table[jobFragment]{rows: backfilling, changing: true, cols: fragmentColumns(map[string]column[jobFragment]{
			"current_row_count": num(func(f *jobFragment) int64 { return f.Done }),
			"total_row_count":   num(func(f *jobFragment) int64 { return f.Total }),
			"backfill_state_table_id": datum(func(f *jobFragment) types.Datum {
				if len(f.StateTables) == 0 {
					return types.Datum{}
				}
				return types.NewInt(int64(f.StateTables[0]))
			}),
			"upstream_id": datum(func(f *jobFragment) types.Datum {
				if f.Upstream == 0 {
					return types.Datum{}
				}
				return types.NewInt(int64(f.Upstream))
			}),
			"phase":           str(func(f *jobFragment) string { return f.Phase }),
			"rows_per_second": datum(func(f *jobFragment) types.Datum { return types.NewFloat(f.RowsPerSec) }),
			"seconds_left":    datum(func(f *jobFragment) types.Datum { return seconds(f.SecondsLeft) }),
			"state_bytes":     num(func(f *jobFragment) int64 { return f.StateBytes }),
			"rate_limit":      num(func(f *jobFragment) int64 { return f.Rate }),
			"waits_for":       str(func(f *jobFragment) string { return f.WaitsFor }),
			"actors":          num(func(f *jobFragment) int64 { return int64(f.Actors) }),
			"finished_actors": num(func(f *jobFragment) int64 { return int64(f.FragmentInfo.Finished) }),
		})},
		"rw_catalog.rw_rate_limit": &table[jobFragment]{
			rows: func(w *world, in Info) []jobFragment {
				return slices.DeleteFunc(fragments(w, in), func(f jobFragment) bool { return !f.Backfill || f.Rate < 0 })
			},
			changing: true,
			cols: fragmentColumns(map[string]column[jobFragment]{
				"fragment_type": datum(func(f *jobFragment) types.Datum { return texts(types.Varchar, f.flags()) }),
				"node_name": str(func(f *jobFragment) string {
					if f.has("LocalityProvider") {
						return "LOCALITY_PROVIDER"
					}
					return "STREAM_SCAN"
				}),
				"rate_limit": num(func(f *jobFragment) int64 { return f.Rate }),
			}),
		},
		"rw_catalog.rw_expression_errors": &table[exprError]{
			rows: func(_ *world, in Info) []exprError {
				var out []exprError
				js := in.Jobs()
				for i := range js {
					for _, e := range js[i].ExprErrors {
						out = append(out, exprError{&js[i], e})
					}
				}
				return out
			},
			changing: true,
			cols: map[string]column[exprError]{
				"job_id":   num(func(e *exprError) int64 { return int64(e.job.ID) }),
				"job_name": str(func(e *exprError) string { return e.job.Name }),
				"at":       num(func(e *exprError) int64 { return e.At }),
				"operator": str(func(e *exprError) string { return e.Operator }),
				"message":  str(func(e *exprError) string { return e.Message }),
				"total":    num(func(e *exprError) int64 { return e.job.ExprErrorCount }),
			},
		},
		"rw_catalog.rw_job_errors": &table[JobInfo]{
			rows: func(w *world, in Info) []JobInfo {
				return slices.DeleteFunc(jobs(w, in), func(j JobInfo) bool { return j.Err == "" })
			},
			changing: true,
			cols: map[string]column[JobInfo]{
				"job_id":    num(func(j *JobInfo) int64 { return int64(j.ID) }),
				"job_name":  str(func(j *JobInfo) string { return j.Name }),
				"statement": live(func(in Info, j *JobInfo) types.Datum { return types.NewString(maskJob(in, j)) }),
				"error":     str(func(j *JobInfo) string { return j.Err }),
			},
		},
		"rw_catalog.rw_internal_tables":     internalTables(),
		"rw_catalog.rw_internal_table_info": internalTables(),
	}
}

// A stateTable is an operator's state.
type stateTable struct {
	jobFragment
	table catalog.ID
}

func internalTables() source {
	return &table[stateTable]{
		rows: func(w *world, in Info) []stateTable {
			var out []stateTable
			for _, f := range fragments(w, in) {
				for _, t := range f.StateTables {
					out = append(out, stateTable{f, t})
				}
			}
			return out
		},
		changing: true,
		cols: map[string]column[stateTable]{
			"id":       num(func(s *stateTable) int64 { return int64(s.table) }),
			"name":     str(func(s *stateTable) string { return fmt.Sprintf("__internal_%s_%d", s.job.Name, s.table) }), // as SHOW INTERNAL TABLES
			"job_id":   num(func(s *stateTable) int64 { return int64(s.job.ID) }),
			"job_name": str(func(s *stateTable) string { return s.job.Name }),
			"schema_id": live(func(in Info, s *stateTable) types.Datum {
				if r := in.Snapshot().ByID(s.job.ID); r != nil {
					return types.NewInt(schemaOID(r.Schema))
				}
				return types.NewInt(publicSchema)
			}),
			"rows":  live(func(in Info, s *stateTable) types.Datum { return types.NewInt(in.Rows(s.table)) }),
			"bytes": live(func(in Info, s *stateTable) types.Datum { return types.NewInt(in.Bytes(s.table)) }),
		},
		fixed: map[string]any{"owner": rootRole},
	}
}
