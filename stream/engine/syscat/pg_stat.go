package syscat

import (
	"net"
	"strconv"

	"streamdb/sql/types"
)

// address is the host and port of a session's client; "" and -1: not known.
func (s *SessionInfo) address() (host string, port int) {
	host, p, err := net.SplitHostPort(s.Remote)
	if err != nil {
		return s.Remote, -1
	}
	if port, err = strconv.Atoi(p); err != nil {
		return host, -1
	}
	return host, port
}

func (s *SessionInfo) state() string {
	if s.Active {
		return "active"
	}
	return "idle"
}

// moment is a time; 0 is none.
func moment(us int64) types.Datum {
	if us == 0 {
		return types.Datum{}
	}
	return types.NewInt(us)
}

func statSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_stat_activity": &table[SessionInfo]{
			rows:     func(_ *world, in Info) []SessionInfo { return in.Sessions() },
			changing: true,
			cols: map[string]column[SessionInfo]{
				"pid":              num(func(s *SessionInfo) int64 { return int64(s.ID) }),
				"datname":          str(func(s *SessionInfo) string { return s.Database }),
				"usesysid":         num(func(s *SessionInfo) int64 { return roleOID(s.User) }),
				"usename":          str(func(s *SessionInfo) string { return s.User }),
				"application_name": str(func(s *SessionInfo) string { return s.App }),
				"client_addr":      datum(func(s *SessionInfo) types.Datum { h, _ := s.address(); return text(h) }),
				"client_port":      num(func(s *SessionInfo) int64 { _, p := s.address(); return int64(p) }),
				"backend_start":    datum(func(s *SessionInfo) types.Datum { return moment(s.Started) }),
				"query_start":      datum(func(s *SessionInfo) types.Datum { return moment(s.QueryStart) }),
				"state_change":     datum(func(s *SessionInfo) types.Datum { return moment(s.QueryStart) }),
				"xact_start": datum(func(s *SessionInfo) types.Datum {
					if !s.Active {
						return types.Datum{}
					}
					return moment(s.QueryStart)
				}),
				"state":           str((*SessionInfo).state),
				"query":           str(func(s *SessionInfo) string { return s.Query }),
				"wait_event_type": datum(func(s *SessionInfo) types.Datum { return waits(s, "Client") }),
				"wait_event":      datum(func(s *SessionInfo) types.Datum { return waits(s, "ClientRead") }),
			},
			fixed: map[string]any{"datid": databaseOID, "backend_type": "client backend"},
		},
		"pg_catalog.pg_stat_ssl": &table[SessionInfo]{
			rows:     func(_ *world, in Info) []SessionInfo { return in.Sessions() },
			changing: true,
			cols:     map[string]column[SessionInfo]{"pid": num(func(s *SessionInfo) int64 { return int64(s.ID) })},
			fixed:    map[string]any{"ssl": false},
		},
		"pg_catalog.pg_stat_gssapi": &table[SessionInfo]{
			rows:     func(_ *world, in Info) []SessionInfo { return in.Sessions() },
			changing: true,
			cols:     map[string]column[SessionInfo]{"pid": num(func(s *SessionInfo) int64 { return int64(s.ID) })},
			fixed:    map[string]any{"gss_authenticated": false, "encrypted": false},
		},
		"pg_catalog.pg_stat_database": &table[int]{
			rows:     func(_ *world, in Info) []int { return []int{len(in.Sessions())} },
			changing: true,
			cols:     map[string]column[int]{"numbackends": num(func(n *int) int64 { return int64(*n) })},
			fixed: map[string]any{
				"datid": databaseOID, "datname": database, "xact_commit": 0, "xact_rollback": 0, "blks_read": 0, "blks_hit": 0, "tup_returned": 0, "tup_fetched": 0,
				"tup_inserted": 0, "tup_updated": 0, "tup_deleted": 0, "conflicts": 0, "temp_files": 0, "temp_bytes": 0, "deadlocks": 0, "blk_read_time": 0, "blk_write_time": 0,
			},
		},
	}
}

// waits is what an idle session waits for: its client.
func waits(s *SessionInfo, what string) types.Datum {
	if s.Active {
		return types.Datum{}
	}
	return types.NewString(what)
}

func settingSources() map[string]source {
	return map[string]source{
		"pg_catalog.pg_settings": &table[Setting]{
			rows:     func(_ *world, in Info) []Setting { return in.Settings() },
			changing: true,
			cols: map[string]column[Setting]{
				"name":       str(func(s *Setting) string { return s.Name }),
				"setting":    str(func(s *Setting) string { return s.Value }),
				"category":   str(func(s *Setting) string { return s.Category }),
				"short_desc": str(func(s *Setting) string { return s.Description }),
				"context":    str(func(s *Setting) string { return s.Context }),
				"vartype":    str(func(s *Setting) string { return s.VarType }),
				"source":     str(func(s *Setting) string { return s.Source }),
				"min_val":    datum(func(s *Setting) types.Datum { return text(s.Min) }),
				"max_val":    datum(func(s *Setting) types.Datum { return text(s.Max) }),
				"enumvals": datum(func(s *Setting) types.Datum {
					if len(s.EnumVals) == 0 {
						return types.Datum{}
					}
					return texts(types.Text, s.EnumVals)
				}),
				"boot_val":  str(func(s *Setting) string { return s.Default }),
				"reset_val": str(func(s *Setting) string { return s.Default }),
			},
			fixed: map[string]any{"pending_restart": false},
		},
	}
}
