package syscat

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A call is one evaluation of a system function.
type call struct {
	Info
	name string
	args []types.Datum
	ret  types.Type
}

// function computes a call's value; NULL where the object asked about does not exist.
type function func(c *call) (types.Datum, error)

// A Sleeper is an Info that can wait, and stop waiting when its statement is cancelled.
type Sleeper interface {
	Sleep(d time.Duration) error
}

// Call evaluates a system function: one that reads the session or the catalogs.
func Call(name string, args []types.Datum, ret types.Type, in Info) (types.Datum, error) {
	f := functions()[strings.TrimPrefix(name, "pg_catalog.")]
	if f == nil {
		return types.Datum{}, sqlerr.Unsupported("function %s()", name)
	}
	return f(&call{Info: in, name: name, args: args, ret: ret})
}

// functions are all system functions, by name.
var functions = sync.OnceValue(func() map[string]function {
	m := map[string]function{}
	for _, group := range []map[string]function{sessionFunctions(), definitionFunctions(), nameFunctions(), sizeFunctions(), privilegeFunctions()} {
		for n, f := range group {
			m[n] = f
		}
	}
	return m
})

// null reports whether argument i is missing or NULL.
func (c *call) null(i int) bool { return i >= len(c.args) || c.args[i].IsNull() }

// oid is argument i as a number; 0 where it is missing, NULL or text.
func (c *call) oid(i int) int64 {
	if c.null(i) || c.args[i].Kind() != types.KindInt {
		return 0
	}
	return c.args[i].Int()
}

func (c *call) text(i int) string {
	if c.null(i) || c.args[i].Kind() != types.KindString {
		return ""
	}
	return c.args[i].Str()
}

func (c *call) objects() *objects { return worldOf(c.Snapshot()).objects() }

// value makes a function that always gives the same.
func value(d types.Datum) function {
	return func(*call) (types.Datum, error) { return d, nil }
}

func str0(f func(c *call) string) function {
	return func(c *call) (types.Datum, error) { return types.NewString(f(c)), nil }
}

// currentSchema is the first schema of the search path that exists; "": none.
func currentSchema(c *call) string {
	for _, s := range c.SearchPath() {
		if c.Snapshot().HasSchema(s) {
			return s
		}
	}
	return ""
}

// VersionText is what version() says of a program version: clients read PostgreSQL's version from its beginning.
func VersionText(serverVersion, version string) string {
	return "PostgreSQL " + serverVersion + "-streamdb-" + version + " (a streaming database)"
}

const defaultServerVersion = "13.14.0"

// started is when the oldest session began; a server without a session has nobody to ask.
func started(c *call) (types.Datum, error) {
	var first int64
	for _, s := range c.Sessions() {
		if first == 0 || s.Started < first {
			first = s.Started
		}
	}
	return types.NewInt(first), nil
}

func sessionFunctions() map[string]function {
	user := str0(func(c *call) string { return c.User() })
	database := str0(func(c *call) string { return c.Database() })
	yes, no, null, void := value(types.NewBool(true)), value(types.NewBool(false)), value(types.Datum{}), value(types.NewString(""))
	zero, utf8 := value(types.NewInt(0)), value(types.NewString("UTF8"))
	port := func(c *call) (types.Datum, error) {
		for _, s := range c.Sessions() {
			if _, p := s.address(); s.ID == c.SessionID() && p > 0 {
				return types.NewInt(int64(p)), nil
			}
		}
		return types.Datum{}, nil
	}
	address := func(c *call) (types.Datum, error) {
		for _, s := range c.Sessions() {
			if h, _ := s.address(); s.ID == c.SessionID() {
				return text(h), nil
			}
		}
		return types.Datum{}, nil
	}
	cancel := func(terminate bool) function {
		return func(c *call) (types.Datum, error) {
			k, ok := c.Info.(Canceler)
			if !ok {
				return types.Datum{}, sqlerr.Unsupported("function %s()", c.name)
			}
			return types.NewBool(k.Cancel(uint32(c.oid(0)), terminate)), nil
		}
	}
	return map[string]function{
		"current_user": user, "session_user": user, "user": user, "current_role": user, "system_user": user,
		"current_database": database, "current_catalog": database,
		"current_schema": func(c *call) (types.Datum, error) { return text(currentSchema(c)), nil },
		"current_schemas": func(c *call) (types.Datum, error) {
			var out []string
			path := c.SearchPath()
			if !c.null(0) && c.args[0].Bool() && !contains(path, "pg_catalog") {
				out = append(out, "pg_catalog")
			}
			for _, s := range path {
				if c.Snapshot().HasSchema(s) && !contains(out, s) {
					out = append(out, s)
				}
			}
			return texts(types.Name, out), nil
		},
		"version": str0(func(c *call) string {
			v, ok := c.Setting("server_version")
			if !ok {
				v = defaultServerVersion
			}
			return VersionText(v, c.Version())
		}),
		"current_setting": func(c *call) (types.Datum, error) {
			if v, ok := c.Setting(c.text(0)); ok {
				return types.NewString(v), nil
			}
			if !c.null(1) && c.args[1].Bool() {
				return types.Datum{}, nil
			}
			return types.Datum{}, sqlerr.New(sqlerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", c.text(0))
		},
		"set_config": func(c *call) (types.Datum, error) {
			if c.null(0) {
				return types.Datum{}, sqlerr.New("22004", "SET requires parameter name")
			}
			name := c.text(0)
			if err := c.SetSetting(name, c.text(1), !c.null(2) && c.args[2].Bool()); err != nil {
				return types.Datum{}, err
			}
			v, _ := c.Setting(name)
			return types.NewString(v), nil
		},
		"current_query": func(c *call) (types.Datum, error) {
			for _, s := range c.Sessions() {
				if s.ID == c.SessionID() {
					return text(s.Query), nil
				}
			}
			return types.Datum{}, nil
		},
		"pg_backend_pid":           func(c *call) (types.Datum, error) { return types.NewInt(int64(c.SessionID())), nil },
		"pg_postmaster_start_time": started, "pg_conf_load_time": started,
		"pg_cancel_backend": cancel(false), "pg_terminate_backend": cancel(true),
		"pg_sleep": sleep, "pg_sleep_for": sleep,
		"txid_current":       func(c *call) (types.Datum, error) { return types.NewInt(int64(c.Snapshot().Version) + 1), nil },
		"pg_current_xact_id": func(c *call) (types.Datum, error) { return types.NewInt(int64(c.Snapshot().Version) + 1), nil },
		"age":                zero,
		"inet_server_addr":   null, "inet_server_port": null, "inet_client_port": port, "inet_client_addr": address,
		"pg_is_in_recovery": no, "pg_is_other_temp_schema": no, "pg_jit_available": no, "pg_my_temp_schema": zero, "pg_trigger_depth": zero,
		"getdatabaseencoding": utf8, "pg_client_encoding": utf8,
		"pg_advisory_unlock_all": void, "pg_stat_clear_snapshot": void,
		"pg_blocking_pids": value(listOf(types.Int4)), "pg_relation_is_publishable": yes,
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// sleep is pg_sleep(seconds) and pg_sleep_for(interval).
func sleep(c *call) (types.Datum, error) {
	s, ok := c.Info.(Sleeper)
	if !ok {
		return types.Datum{}, sqlerr.Unsupported("function %s()", c.name)
	}
	if c.null(0) {
		return types.Datum{}, nil
	}
	var d time.Duration
	switch c.args[0].Kind() {
	case types.KindFloat:
		d = time.Duration(min(max(c.args[0].Float(), 0), 1e9) * float64(time.Second))
	case types.KindInterval:
		iv := c.args[0].Interval()
		const day = 24 * time.Hour
		days := min(int64(iv.Months)*30+int64(iv.Days), 100000)
		d = time.Duration(days)*day + time.Duration(iv.Micros)*time.Microsecond
	}
	if err := s.Sleep(d); err != nil {
		return types.Datum{}, err
	}
	return types.NewString(""), nil
}

// number is s as an OID; false: it is a name.
func number(s string) (int64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	return int64(n), err == nil
}
