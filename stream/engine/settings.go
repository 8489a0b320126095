package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream"
)

// A settingKind says what values a setting takes.
type settingKind uint8

const (
	boolSetting settingKind = iota
	intSetting
	realSetting
	stringSetting
	enumSetting
	timeSetting // a number of milliseconds, or a number with a unit
)

func (k settingKind) String() string {
	return [...]string{"bool", "integer", "real", "string", "enum", "integer"}[k]
}

// A settingDef is a session setting: ours, or one that PostgreSQL's clients set.
type settingDef struct {
	name     string // as shown
	kind     settingKind
	def      string
	enum     []string
	min, max int64
	readOnly bool
	report   bool // clients are told of it (ParameterStatus)
	category string
	desc     string
	// system: one value for all jobs (see param), which SET changes, too.
	system bool
	// ignored: PostgreSQL has it, we accept it and it changes nothing.
	ignored bool
	// check normalises a value or refuses it; nil: by kind.
	check func(value string) (string, error)
}

const (
	catStreaming = "Streaming"
	catClient    = "Client Connection Defaults"
	catPreset    = "Preset Options"
	catCompat    = "Version and Platform Compatibility"
)

// ServerVersion is what clients are told; drivers choose features by it.
const ServerVersion = "13.14.0"

const rateMax = 1 << 40

// settingDefs are all settings, by lower-case name.
var settingDefs = func() map[string]*settingDef {
	list := []settingDef{
		{name: "implicit_flush", kind: boolSetting, def: "on", category: catStreaming, desc: "Writes return when they are durable and every view reflects them."},
		{name: "background_ddl", kind: boolSetting, def: "off", category: catStreaming, desc: "CREATE MATERIALIZED VIEW returns at once and builds in the background."},
		{name: "streaming_parallelism", kind: stringSetting, def: "default", category: catStreaming, desc: "Actors of each fragment of a new job; default or adaptive: the number of cores.", check: checkParallelism},
		{name: "streaming_parallelism_for_backfill", kind: stringSetting, def: "default", category: catStreaming, desc: "Actors while a new job is built.", check: checkParallelism},
		{name: "streaming_max_parallelism", kind: intSetting, def: "64", min: 1, max: 1024, category: catStreaming, desc: "Vnodes of a new relation: the most actors it can ever have."},
		{name: "backfill_rate_limit", kind: stringSetting, def: "default", category: catStreaming, desc: "Rows per second for the whole backfill of a new job; default or -1: unlimited, 0: paused.", check: checkRate},
		{name: "source_rate_limit", kind: stringSetting, def: "default", category: catStreaming, desc: "Rows per second of a new source; default or -1: unlimited.", check: checkRate},
		{name: "enable_locality_backfill", kind: boolSetting, def: "on", category: catStreaming, desc: "Lets the planner read inputs in key order where that beats random access."},
		{name: "locality_backfill_mode", kind: enumSetting, def: "auto", enum: []string{"auto", "always", "off"}, category: catStreaming, desc: "Where locality providers are inserted: by estimate, wherever possible, nowhere."},
		{name: "auto_locality_backfill_min_size", kind: intSetting, def: "0", min: 0, max: 1 << 60, category: catStreaming, desc: "Bytes of input below which auto inserts no locality provider."},
		{name: "enable_locality_sort_buffer", kind: boolSetting, def: "on", system: true, category: catStreaming, desc: "Sorts the changes of large epochs by locality."},
		{name: "locality_sort_buffer_activate_threshold", kind: intSetting, def: strconv.Itoa(stream.DefaultSortThreshold), system: true, min: 1, max: 1 << 40, category: catStreaming, desc: "Rows in an epoch from which they are sorted by locality."},
		{name: "enable_index_selection", kind: boolSetting, def: "on", category: catStreaming, desc: "Lets the planner read indexes."},
		{name: "enable_join_ordering", kind: boolSetting, def: "on", category: catStreaming, desc: "Lets the planner reorder joins."},
		{name: "enable_two_phase_agg", kind: boolSetting, def: "on", category: catStreaming, desc: "Lets the planner aggregate in two phases."},
		{name: "ddl_progress_notices", kind: enumSetting, def: "auto", enum: []string{"auto", "on", "off"}, category: catStreaming, desc: "Notices on the progress of a long CREATE; auto: for psql."},
		{name: "query_mode", kind: enumSetting, def: "auto", enum: []string{"auto", "local", "distributed"}, category: catStreaming, desc: "Accepted for RisingWave's clients; every query runs here.", ignored: true},
		{name: "visibility_mode", kind: enumSetting, def: "default", enum: []string{"default", "all", "checkpoint"}, category: catStreaming, desc: "Accepted for RisingWave's clients; reads see the newest committed epoch.", ignored: true},
		{name: "sql_dialect", kind: enumSetting, def: "postgres", enum: []string{"postgres"}, category: catStreaming, desc: "The grammar of statements."},

		{name: "application_name", kind: stringSetting, def: "", report: true, category: "Reporting and Logging", desc: "Sets the application name to be reported in statistics and logs."},
		{name: "bytea_output", kind: enumSetting, def: "hex", enum: []string{"hex", "escape"}, category: catClient, desc: "Sets the output format for bytea."},
		{name: "client_encoding", kind: stringSetting, def: "UTF8", report: true, category: catClient, desc: "Sets the client's character set encoding.", check: checkEncoding},
		{name: "client_min_messages", kind: enumSetting, def: "notice", enum: messageLevels, category: catClient, desc: "Sets the message levels that are sent to the client.", check: checkMinMessages},
		{name: "DateStyle", kind: stringSetting, def: "ISO, MDY", report: true, category: catClient, desc: "Sets the display format for date and time values.", check: checkDateStyle},
		{name: "default_transaction_isolation", kind: enumSetting, def: "read committed", enum: isolationLevels, category: catClient, desc: "Sets the transaction isolation level of each new transaction."},
		{name: "default_transaction_read_only", kind: boolSetting, def: "off", report: true, category: catClient, desc: "Sets the default read-only status of new transactions."},
		{name: "extra_float_digits", kind: intSetting, def: "1", min: -15, max: 3, category: catClient, desc: "Sets the number of digits displayed for floating-point values."},
		{name: "idle_in_transaction_session_timeout", kind: timeSetting, def: "0", category: catClient, desc: "Sets the maximum allowed idle time between queries, when in a transaction."},
		{name: "IntervalStyle", kind: enumSetting, def: "postgres", enum: []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}, report: true, category: catClient, desc: "Sets the display format for interval values."},
		{name: "lock_timeout", kind: timeSetting, def: "0", category: catClient, desc: "Sets the maximum allowed duration of any wait for a lock.", ignored: true},
		{name: "row_security", kind: boolSetting, def: "on", category: catClient, desc: "Enable row security.", ignored: true},
		{name: "search_path", kind: stringSetting, def: `"$user", public`, category: catClient, desc: "Sets the schema search order for names that are not schema-qualified."},
		{name: "statement_timeout", kind: timeSetting, def: "0", category: catClient, desc: "Sets the maximum allowed duration of any statement."},
		{name: "TimeZone", kind: stringSetting, def: "UTC", report: true, category: catClient, desc: "Sets the time zone for displaying and interpreting time stamps.", check: checkTimeZone},
		{name: "transaction_isolation", kind: enumSetting, def: "read committed", enum: isolationLevels, category: catClient, desc: "Sets the current transaction's isolation level."},
		{name: "transaction_read_only", kind: boolSetting, def: "off", category: catClient, desc: "Sets the current transaction's read-only status."},
		{name: "standard_conforming_strings", kind: boolSetting, def: "on", report: true, category: catCompat, desc: "Causes '...' strings to treat backslashes literally.", check: onlyOn},

		{name: "server_version", kind: stringSetting, def: ServerVersion, readOnly: true, report: true, category: catPreset, desc: "Shows the server version."},
		{name: "server_version_num", kind: intSetting, def: "130014", readOnly: true, category: catPreset, desc: "Shows the server version as an integer."},
		{name: "server_encoding", kind: stringSetting, def: "UTF8", readOnly: true, report: true, category: catPreset, desc: "Shows the server (database) character set encoding."},
		{name: "integer_datetimes", kind: boolSetting, def: "on", readOnly: true, report: true, category: catPreset, desc: "Shows whether datetimes are integer based."},
		{name: "in_hot_standby", kind: boolSetting, def: "off", readOnly: true, report: true, category: catPreset, desc: "Shows whether hot standby is currently active."},
		{name: "is_superuser", kind: boolSetting, def: "on", readOnly: true, report: true, category: catPreset, desc: "Shows whether the current user is a superuser."},
		{name: "session_authorization", kind: stringSetting, def: "", readOnly: true, report: true, category: catPreset, desc: "Shows the session user name."},
		{name: "max_identifier_length", kind: intSetting, def: "63", readOnly: true, category: catPreset, desc: "Shows the maximum identifier length."},
		{name: "max_index_keys", kind: intSetting, def: "32", readOnly: true, category: catPreset, desc: "Shows the maximum number of index keys."},
		{name: "block_size", kind: intSetting, def: "8192", readOnly: true, category: catPreset, desc: "Shows the size of a disk block."},
		{name: "lc_collate", kind: stringSetting, def: "C", readOnly: true, category: catPreset, desc: "Shows the collation order locale."},
		{name: "lc_ctype", kind: stringSetting, def: "C", readOnly: true, category: catPreset, desc: "Shows the character classification and case conversion locale."},
	}
	// What PostgreSQL has and clients set, and what means nothing here.
	for _, s := range [][3]string{
		{"synchronize_seqscans", "on", "bool"}, {"check_function_bodies", "on", "bool"}, {"xmloption", "content", "string"},
		{"default_table_access_method", "heap", "string"}, {"default_tablespace", "", "string"}, {"synchronous_commit", "on", "string"},
		{"work_mem", "4096", "string"}, {"maintenance_work_mem", "65536", "string"}, {"jit", "off", "bool"}, {"lc_messages", "C", "string"},
		{"lc_monetary", "C", "string"}, {"lc_numeric", "C", "string"}, {"lc_time", "C", "string"}, {"escape_string_warning", "on", "bool"},
		{"backslash_quote", "safe_encoding", "string"}, {"default_transaction_deferrable", "off", "bool"}, {"transaction_deferrable", "off", "bool"}, {"geqo", "on", "bool"},
		{"enable_seqscan", "on", "bool"}, {"enable_indexscan", "on", "bool"}, {"enable_bitmapscan", "on", "bool"}, {"enable_hashjoin", "on", "bool"},
		{"enable_mergejoin", "on", "bool"}, {"enable_nestloop", "on", "bool"}, {"enable_sort", "on", "bool"}, {"enable_hashagg", "on", "bool"},
		{"force_parallel_mode", "off", "string"}, {"max_parallel_workers_per_gather", "2", "string"}, {"log_statement", "none", "string"},
		{"log_min_duration_statement", "-1", "string"}, {"log_min_messages", "warning", "string"}, {"session_replication_role", "origin", "string"}, {"vacuum_cost_delay", "0", "string"},
		{"tcp_keepalives_idle", "0", "string"}, {"tcp_keepalives_interval", "0", "string"}, {"idle_session_timeout", "0", "string"}, {"plan_cache_mode", "auto", "string"},
		{"gin_fuzzy_search_limit", "0", "string"}, {"array_nulls", "on", "bool"}, {"quote_all_identifiers", "off", "bool"}, {"role", "none", "string"},
	} {
		kind := stringSetting
		if s[2] == "bool" {
			kind = boolSetting
		}
		list = append(list, settingDef{name: s[0], def: s[1], kind: kind, ignored: true, category: catCompat, desc: "Accepted for PostgreSQL's clients; changes nothing."})
	}
	m := map[string]*settingDef{}
	for i := range list {
		m[strings.ToLower(list[i].name)] = &list[i]
	}
	return m
}()

// settingAliases are other names of settings.
var settingAliases = map[string]string{"rw_implicit_flush": "implicit_flush", "time zone": "timezone", "transaction isolation level": "transaction_isolation", "session authorization": "session_authorization", "names": "client_encoding"}

var messageLevels = []string{"debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"}

var isolationLevels = []string{"serializable", "repeatable read", "read committed", "read uncommitted"}

// reportOrder is the order in which PostgreSQL sends its thirteen parameters.
var reportOrder = []string{"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding", "server_version", "session_authorization", "standard_conforming_strings", "TimeZone"}

func findSetting(name string) (*settingDef, error) {
	key := strings.ToLower(name)
	if a, ok := settingAliases[key]; ok {
		key = a
	}
	if d := settingDefs[key]; d != nil {
		return d, nil
	}
	err := sqlerr.New(sqlerr.UndefinedObject, "unrecognized configuration parameter %q", name)
	if near := sqlerr.Nearest(key, slices.Sorted(maps.Keys(settingDefs))); near != "" {
		err.WithHint("Perhaps you meant %q.", near)
	}
	return nil, err
}

// normalize checks a value for d and returns it as it is stored.
func (d *settingDef) normalize(v string) (string, error) {
	bad := func() error {
		err := sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter %q: %q", d.name, v)
		if d.kind == enumSetting {
			err.WithHint("Available values: %s.", strings.Join(d.enum, ", "))
		}
		return err
	}
	if d.check != nil {
		out, err := d.check(v)
		if err != nil {
			return "", bad()
		}
		return out, nil
	}
	switch d.kind {
	case boolSetting:
		b, ok := parseBool(v)
		if !ok {
			return "", sqlerr.New(sqlerr.InvalidParameter, "parameter %q requires a Boolean value", d.name)
		}
		return onOff(b), nil
	case intSetting:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return "", bad()
		}
		if n < d.min || n > d.max {
			return "", sqlerr.New(sqlerr.InvalidParameter, "%d is outside the valid range for parameter %q (%d .. %d)", n, d.name, d.min, d.max)
		}
		return strconv.FormatInt(n, 10), nil
	case enumSetting:
		low := strings.ToLower(v)
		if !slices.Contains(d.enum, low) {
			return "", bad()
		}
		return low, nil
	case timeSetting:
		t, err := parseDuration(v)
		if err != nil {
			return "", bad()
		}
		return formatDuration(t), nil
	}
	return v, nil
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func parseBool(v string) (val, ok bool) {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "on", "true", "t", "yes", "y", "1":
		return true, true
	case "off", "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

// parseDuration reads a bare number as milliseconds, as PostgreSQL's timeouts do, or a number with a unit.
func parseDuration(v string) (time.Duration, error) {
	v = strings.TrimSpace(v)
	i := strings.IndexFunc(v, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	num, unit := v, "ms"
	if i >= 0 {
		num, unit = strings.TrimSpace(v[:i]), strings.TrimSpace(v[i:])
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f < 0 {
		return 0, fmt.Errorf("not a duration")
	}
	units := map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	u, ok := units[unit]
	if !ok {
		return 0, fmt.Errorf("unknown unit")
	}
	return time.Duration(f * float64(u)), nil
}

// formatDuration is how PostgreSQL shows a timeout: in the largest unit that divides it.
func formatDuration(d time.Duration) string {
	ms := d.Milliseconds()
	for _, u := range []struct {
		n int64
		s string
	}{{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}} {
		if ms != 0 && ms%u.n == 0 {
			return strconv.FormatInt(ms/u.n, 10) + u.s
		}
	}
	return "0"
}

func checkParallelism(v string) (string, error) {
	low := strings.ToLower(v)
	if low == "default" || low == "adaptive" || low == "auto" || low == "0" {
		return "default", nil
	}
	n, err := strconv.Atoi(low)
	if err != nil || n < 1 || n > 1024 {
		return "", fmt.Errorf("out of range")
	}
	return low, nil
}

func checkRate(v string) (string, error) {
	low := strings.ToLower(v)
	if low == "default" || low == "-1" {
		return "default", nil
	}
	n, err := strconv.ParseInt(low, 10, 64)
	if err != nil || n < 0 || n > rateMax {
		return "", fmt.Errorf("out of range")
	}
	return low, nil
}

func checkEncoding(v string) (string, error) {
	switch strings.ToLower(strings.Trim(v, "'\" ")) {
	case "utf8", "utf-8", "unicode":
		return "UTF8", nil
	case "sql_ascii":
		return "SQL_ASCII", nil
	}
	return "", fmt.Errorf("only UTF8")
}

func checkMinMessages(v string) (string, error) {
	low := strings.ToLower(v)
	switch low {
	case "debug":
		return "debug2", nil
	case "info", "panic", "fatal":
		return low, nil
	}
	if !slices.Contains(messageLevels, low) {
		return "", fmt.Errorf("unknown level")
	}
	return low, nil
}

func onlyOn(v string) (string, error) {
	if b, ok := parseBool(v); !ok || !b {
		return "", fmt.Errorf("only on")
	}
	return "on", nil
}

func checkTimeZone(v string) (string, error) {
	_, name, err := loadZone(v)
	return name, err
}

// loadZone finds a time zone by its name, by an offset in hours or as an interval.
func loadZone(v string) (*time.Location, string, error) {
	v = strings.Trim(strings.TrimSpace(v), "'")
	if strings.EqualFold(v, "default") || strings.EqualFold(v, "local") {
		v = "UTC"
	}
	loc, err := types.LoadZone(v)
	if err != nil {
		return nil, "", err
	}
	return loc, loc.String(), nil
}

func checkDateStyle(v string) (string, error) {
	var st types.Style
	if err := st.SetDateStyle(v); err != nil {
		return "", err
	}
	return st.DateStyleText(), nil
}

// settings are a session's. Values set inside a transaction go back at its rollback.
type settings struct {
	vals  map[string]string // by lower-case name; absent: the default
	start map[string]string // what RESET goes back to: the start-up packet's
	db    *DB               // has the settings that are one for all
}

func newSettings(db *DB) *settings {
	return &settings{vals: map[string]string{}, start: map[string]string{}, db: db}
}

func (s *settings) get(name string) string {
	name = strings.ToLower(name)
	if settingDefs[name].system {
		return findParam(name).now(s.db)
	}
	if v, ok := s.vals[name]; ok {
		return v
	}
	if v, ok := s.start[name]; ok {
		return v
	}
	return settingDefs[name].def
}

func (s *settings) on(name string) bool { return s.get(name) == "on" }

func (s *settings) int(name string) int64 {
	return atoi(s.get(name))
}

func (s *settings) duration(name string) time.Duration {
	d, _ := parseDuration(s.get(name))
	return d
}

// rate is a rate limit setting: rows per second, -1 for none.
func (s *settings) rate(name string) int64 {
	n, err := strconv.ParseInt(s.get(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// style is how the session's values are written and read.
func (s *settings) style(now func() int64) *types.Style {
	zone, _, err := loadZone(s.get("timezone"))
	if err != nil {
		zone = time.UTC
	}
	st := &types.Style{Zone: zone, Now: now, ByteaEscape: s.get("bytea_output") == "escape"}
	// Both were checked when they were set.
	_ = st.SetDateStyle(s.get("datestyle"))
	_ = st.SetIntervalStyle(s.get("intervalstyle"))
	if d := int(s.int("extra_float_digits")); d < 1 {
		st.RoundFloats, st.ExtraFloatDigits = true, d
	}
	return st
}

// searchPath splits the search_path setting into schema names.
func (s *settings) searchPath(user string) []string {
	var out []string
	for _, p := range strings.Split(s.get("search_path"), ",") {
		p = strings.TrimSpace(p)
		if strings.HasPrefix(p, `"`) && strings.HasSuffix(p, `"`) && len(p) > 1 {
			p = strings.ReplaceAll(p[1:len(p)-1], `""`, `"`)
		}
		if p == "$user" {
			p = user
		}
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}
