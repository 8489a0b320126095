package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"streamdb/sql/parser"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/stream"
)

// Names of system parameters.
const (
	paramPauseNext = "pause_on_next_bootstrap"
	paramPaused    = "backfill_paused"
)

// A param is a system parameter: one value for the whole database, in force at once.
type param struct {
	def  settingDef
	keep bool // over restarts
	// apply puts a value in force; nil: it is only kept. The caller holds ddl, but for Open.
	apply func(ctx context.Context, db *DB, value string) error
	// now is the value in force; nil: the one that was set, or the default.
	now func(db *DB) string
}

// paramDefs are the system parameters that can be changed while the server runs, by name.
var paramDefs = []param{
	{
		def:   settingDef{name: paramPaused, kind: boolSetting, def: "off"},
		apply: func(ctx context.Context, db *DB, v string) error { return db.jobs.Pause(ctx, v == "on") },
		now:   func(db *DB) string { return onOff(db.jobs.Paused()) },
	},
	{
		def: settingDef{name: "barrier_interval_ms", kind: intSetting, def: "", min: 1, max: 60_000}, keep: true,
		apply: func(_ context.Context, db *DB, v string) error {
			d := db.o.Interval
			if v != "" {
				d = time.Duration(atoi(v)) * time.Millisecond
			}
			db.coord.SetInterval(d)
			return nil
		},
		now: func(db *DB) string {
			if v := db.params["barrier_interval_ms"]; v != "" {
				return v
			}
			return strconv.FormatInt(db.o.Interval.Milliseconds(), 10)
		},
	},
	{
		def: settingDef{name: "backfill_barrier_latency_target_ms", kind: intSetting, def: "50", min: 0, max: 60_000}, keep: true,
		apply: func(_ context.Context, db *DB, v string) error {
			db.jobs.SetLatencyTarget(time.Duration(atoi(v)) * time.Millisecond)
			return nil
		},
	},
	{
		def: settingDef{name: "stall_report_secs", kind: intSetting, def: "10", min: 0, max: 86_400}, keep: true,
		apply: func(_ context.Context, db *DB, v string) error {
			db.jobs.SetStallReport(time.Duration(atoi(v)) * time.Second)
			return nil
		},
	},
	{
		def: settingDef{name: "enable_locality_sort_buffer", kind: boolSetting, def: "on"}, keep: true,
		apply: func(_ context.Context, db *DB, v string) error { db.tuning.SortBuffer.Store(v == "on"); return nil },
		now:   func(db *DB) string { return onOff(db.tuning.SortBuffer.Load()) },
	},
	{
		def: settingDef{name: "locality_sort_buffer_activate_threshold", kind: intSetting, def: strconv.Itoa(stream.DefaultSortThreshold), min: 1, max: 1 << 40}, keep: true,
		apply: func(_ context.Context, db *DB, v string) error { db.tuning.SortThreshold.Store(atoi(v)); return nil },
		now:   func(db *DB) string { return strconv.FormatInt(db.tuning.SortThreshold.Load(), 10) },
	},
	{def: settingDef{name: paramPauseNext, kind: boolSetting, def: "off"}, keep: true},
}

func atoi(v string) int64 {
	n, _ := strconv.ParseInt(v, 10, 64)
	return n
}

// findParam finds a system parameter; nil: there is none of that name.
func findParam(name string) *param {
	i := slices.IndexFunc(paramDefs, func(p param) bool { return p.def.name == strings.ToLower(name) })
	if i < 0 {
		return nil
	}
	return &paramDefs[i]
}

// value is the parameter's value. The caller holds ddl where now is nil.
func (p *param) value(db *DB) string {
	if p.now != nil {
		return p.now(db)
	}
	if v, ok := db.params[p.def.name]; ok {
		return v
	}
	return p.def.def
}

// restoreParams puts what was kept, and else the defaults, in force.
func (db *DB) restoreParams(ctx context.Context) error {
	for _, p := range paramDefs {
		if p.apply == nil || !p.keep {
			continue
		}
		v, ok := db.params[p.def.name]
		if !ok {
			v = p.def.def
		}
		if err := p.apply(ctx, db, v); err != nil {
			return err
		}
	}
	return nil
}

// alterSystem is ALTER SYSTEM SET and RESET of a system parameter.
func (s *Session) alterSystem(ctx context.Context, n *ast.VariableSetStmt) (*Result, error) {
	db := s.db
	if err := s.notInBlock("ALTER SYSTEM"); err != nil {
		return nil, err
	}
	p := findParam(n.Name)
	if p == nil {
		var names []string
		for _, p := range paramDefs {
			names = append(names, p.def.name)
		}
		return nil, sqlerr.New(sqlerr.UndefinedObject, "unrecognized system parameter %q", n.Name).
			WithHint("Parameters that can be changed while the server runs: %s. SHOW PARAMETERS shows all.", strings.Join(names, ", "))
	}
	val := p.def.def
	if n.Kind == ast.VariableSetKind_VAR_SET_VALUE {
		vals, err := parser.SetValues(n)
		if err != nil {
			return nil, err
		}
		if val, err = p.def.normalize(strings.Join(vals, "")); err != nil {
			return nil, err
		}
	}
	db.ddl.Lock()
	defer db.ddl.Unlock()
	if p.keep {
		was, had := db.params[p.def.name]
		db.params[p.def.name] = val
		if err := db.change(nil, nil, func(e epoch) { db.stageParam(e, p.def.name) }); err != nil {
			if delete(db.params, p.def.name); had {
				db.params[p.def.name] = was
			}
			return nil, err
		}
	}
	if p.apply != nil {
		if err := p.apply(ctx, db, val); err != nil {
			return nil, err
		}
	}
	return done("ALTER SYSTEM"), nil
}

// setSystem is SET of a setting that is one for all jobs: it is in force at once and
// until the server stops.
func (s *Session) setSystem(ctx context.Context, name, value string) error {
	s.db.ddl.Lock()
	defer s.db.ddl.Unlock()
	s.noticef("%q is in force for all jobs, until the server stops; ALTER SYSTEM SET keeps it", name)
	return findParam(name).apply(ctx, s.db, value)
}

// parameterRows is SHOW PARAMETERS.
func parameterRows(s *Session, _ *parser.Show) ([][]string, error) {
	db := s.db
	db.ddl.Lock()
	defer db.ddl.Unlock()
	out := [][]string{
		{"checkpoint_frequency", "1", "false"},
		{"data_directory", db.o.Dir, "false"},
		{"parallelism", strconv.Itoa(db.o.Parallelism), "false"},
	}
	for _, p := range paramDefs {
		v := p.value(db)
		if p.def.kind == boolSetting {
			v = strconv.FormatBool(v == "on")
		}
		out = append(out, []string{p.def.name, v, "true"})
	}
	slices.SortFunc(out, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return out, nil
}
