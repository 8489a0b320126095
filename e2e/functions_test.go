package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"streamdb/e2e/embed"
	"streamdb/stream/engine"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestDiffFunctions calls PostgreSQL's immutable functions, operators and casts with
// random arguments, NULLs and extremes among them, on both sides: values must be equal
// to the character and errors have the same SQLSTATE. What streamdb does not know is
// counted, not compared. testdata/intended.txt lists what is meant to differ.
func TestDiffFunctions(t *testing.T) {
	if !*functions {
		t.Skip("only with -functions: what is known to differ is still being worked off")
	}
	s := runSeed(t)
	r := rand.New(rand.NewPCG(s, 0xf))
	p, name := judge(t)
	pg := connect(t, func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, name) })
	d := newDiffer(t, pg)
	calls := builtins(t, pg)
	samples := max(1, *diffCases/100)
	for _, c := range calls {
		for range samples {
			d.scalar(c.name, c.make(r))
		}
	}
	d.report(s)
}

// A call is a function, an operator or a cast, and its types.
type call struct {
	name   string // as reports name it
	format string // with one %s an argument
	args   []string
}

func (c *call) make(r *rand.Rand) string {
	args := make([]any, len(c.args))
	for i, t := range c.args {
		args[i] = argument(r, t)
	}
	return fmt.Sprintf("SELECT "+c.format, args...)
}

// argument makes a constant of a type.
func argument(r *rand.Rand, typ string) string {
	if r.IntN(12) == 0 {
		return "NULL::" + typ
	}
	return "'" + strings.ReplaceAll(pick(r, argumentValues[typ]...), "'", "''") + "'::" + typ
}

// argumentValues are the values that arguments are taken from, by type.
var argumentValues = map[string][]string{
	"boolean":                     {"t", "f"},
	"smallint":                    {"0", "1", "-1", "2", "7", "12", "100", "-32768", "32767"},
	"integer":                     {"0", "1", "-1", "2", "3", "4", "7", "10", "16", "64", "1000", "-2147483648", "2147483647"},
	"bigint":                      {"0", "1", "-1", "2", "5", "20", "1000000", "-9223372036854775808", "9223372036854775807", "4294967296"},
	"real":                        {"0", "1", "-1.5", "0.1", "2.5", "3.5", "NaN", "Infinity", "-Infinity", "3.4028235e+38", "1e-37", "16777217"},
	"double precision":            {"0", "1", "-1", "0.5", "1.5", "2.5", "-2.5", "0.1", "NaN", "Infinity", "-Infinity", "1.7976931348623157e+308", "1e-300", "123456.789", "1e15", "1e16", "-0"},
	"numeric":                     {"0", "1", "-1", "0.5", "1.50", "2.5", "-2.5", "100", "NaN", "Infinity", "-Infinity", "12345678901234567890.123456789", "0.000000000000000000001", "-99.99", "1e20", "3.14159"},
	"text":                        {"", "a", "ab", "abc", "Hello World", "  padded  ", "ünïcödé", "日本語", "a%b_c", "it's", "back\\slash", "2024-02-29", "12", "-3.5", "aaa,bbb,,ccc", "A1B2", "tab\there", "x", "(a)(b)", "%s-%s", "utf8", "hex", "year", "day"},
	"bytea":                       {"\\x", "\\x00", "\\x61", "\\x00ff10", "\\x616263646566", "\\xdeadbeef"},
	"date":                        {"2024-02-29", "2000-01-01", "1999-12-31", "0001-01-01", "9999-12-31", "infinity", "-infinity", "2023-03-15", "0044-03-15 BC"},
	"time without time zone":      {"00:00:00", "12:30:45.123456", "23:59:59.999999", "24:00:00", "01:02:03"},
	"timestamp without time zone": {"2024-02-29 12:34:56.789", "2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "infinity", "-infinity", "0001-01-01 00:00:00", "2023-10-31 08:00:00"},
	"timestamp with time zone":    {"2024-02-29 12:34:56.789+00", "2000-01-01 00:00:00+00", "1999-12-31 23:59:59.999999+00", "infinity", "-infinity", "2023-10-31 08:00:00+05:30"},
	"interval":                    {"0", "1 day", "-1 day", "1 month", "1 year 2 months 3 days 04:05:06.789", "-3 days 12:00:00", "36:00:00", "1 mon -1 day", "00:00:00.000001", "100 years"},
	"integer[]":                   {"{}", "{1}", "{1,2,3}", "{NULL,2}", "{{1,2},{3,4}}", "[0:1]={5,6}", "{3,1,2,3}"},
	"text[]":                      {"{}", "{a}", "{a,b,NULL}", "{\"x y\",\"\",\"NULL\"}", "{{a,b},{c,d}}"},
	"jsonb":                       {"null", "1", "\"s\"", "[]", "{}", "[1, \"a\", null, {\"b\": 2}]", "{\"a\": 1, \"b\": [1, 2], \"c\": {\"d\": \"e\"}}", "1.50", "true", "[[1,2],[3]]"},
	"json":                        {"null", "1", "\"s\"", "[]", "{ }", "[1, \"a\",null]", "{\"a\" : 1, \"b\":[1,2],\"a\":2}"},
	"uuid":                        {"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
}

// builtins asks PostgreSQL what there is over the types above: functions that are no
// operator's, cast's, aggregate's or type's inner part, operators, and casts.
func builtins(t *testing.T, pg *pgconn.PgConn) []call {
	t.Helper()
	poly := map[string][]string{"anyelement": {"integer", "text"}, "anynonarray": {"integer", "text"}, "anycompatible": {"integer", "text"}, "anyarray": {"integer[]", "text[]"}, "anycompatiblearray": {"integer[]", "text[]"}}
	expand := func(args []string) [][]string {
		var out [][]string
		for i := range 2 {
			as := slices.Clone(args)
			for k, a := range as {
				if p := poly[a]; p != nil {
					as[k] = p[i]
				}
				if argumentValues[as[k]] == nil {
					return nil
				}
			}
			if i == 1 && slices.Equal(as, out[0]) {
				break
			}
			out = append(out, as)
		}
		return out
	}
	var out []call
	for _, row := range mustExec(t, pg, `SELECT proname, array_to_string(ARRAY(SELECT format_type(a, NULL) FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS x (a, n) ORDER BY n), '|')
		FROM pg_proc AS p WHERE provolatile = 'i' AND prokind = 'f' AND NOT proretset AND provariadic = 0 AND pronamespace = 'pg_catalog'::regnamespace AND pronargs > 0
		AND NOT EXISTS (SELECT 1 FROM pg_operator AS o WHERE p.oid IN (o.oprcode, o.oprrest, o.oprjoin)) AND NOT EXISTS (SELECT 1 FROM pg_cast WHERE castfunc = p.oid)
		AND NOT EXISTS (SELECT 1 FROM pg_aggregate AS a WHERE p.oid IN (aggfnoid, aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn))
		AND NOT EXISTS (SELECT 1 FROM pg_amproc WHERE amproc = p.oid) AND NOT EXISTS (SELECT 1 FROM pg_type AS y WHERE p.oid IN (typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript))
		AND prorettype NOT IN ('internal'::regtype, 'cstring'::regtype, 'void'::regtype) AND proname !~ '^(pg_|binary_upgrade|ts_|has_|gin|gist|brin|spg|hash|tableoid|unicode|is_normalized|normalize$)'
		ORDER BY 1, 2`).Rows {
		name := string(row[0])
		for _, args := range expand(strings.Split(string(row[1]), "|")) {
			out = append(out, call{fmt.Sprintf("%s(%s)", name, strings.Join(args, ", ")), "\"" + name + "\"(" + strings.TrimSuffix(strings.Repeat("%s, ", len(args)), ", ") + ")", args})
		}
	}
	for _, row := range mustExec(t, pg, `SELECT oprname, coalesce(format_type(nullif(oprleft, 0), NULL), ''), format_type(oprright, NULL) FROM pg_operator AS o JOIN pg_proc AS p ON p.oid = oprcode
		WHERE provolatile = 'i' AND oprnamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2, 3`).Rows {
		op, left, right := string(row[0]), string(row[1]), string(row[2])
		if left == "" {
			for _, args := range expand([]string{right}) {
				out = append(out, call{op + " " + args[0], strings.ReplaceAll(op, "%", "%%") + " %s", args})
			}
			continue
		}
		for _, args := range expand([]string{left, right}) {
			out = append(out, call{args[0] + " " + op + " " + args[1], "%s " + strings.ReplaceAll(op, "%", "%%") + " %s", args})
		}
	}
	types := slices.Sorted(maps.Keys(argumentValues))
	for _, from := range types {
		for _, to := range types {
			out = append(out, call{from + "::" + to, "(%s)::" + to, []string{from}})
		}
	}
	return out
}

// A differ compares two servers and collects what differs.
type differ struct {
	t        *testing.T
	pg       *pgconn.PgConn
	db       *embed.DB
	c        *embed.Conn
	compared int
	unknown  map[string]int    // what streamdb does not support, and how often it met it
	differs  map[string]string // what differs, by name, and the first instance
	known    map[string]bool   // lines of intended.txt that were met
	intended []intention
}

// An intention is a line of testdata/intended.txt.
type intention struct{ name, what string }

func newDiffer(t *testing.T, pg *pgconn.PgConn) *differ {
	t.Helper()
	d := &differ{t: t, pg: pg, unknown: map[string]int{}, differs: map[string]string{}, known: map[string]bool{}}
	d.db = embed.New(engine.Options{Seed: 1})
	if err := d.db.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	c, err := d.db.Connect()
	if err != nil {
		t.Fatal(err)
	}
	d.c = c
	t.Cleanup(func() { c.Close(); d.db.Crash() })
	d.intended = intentions(t)
	return d
}

// intentions reads testdata/intended.txt: name ⇥ part of the difference ⇥ reason.
func intentions(t *testing.T) []intention {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "intended.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []intention
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[0] == "" || f[2] == "" {
			t.Fatalf("intended.txt:%d: not name, tab, part of the difference, tab, reason", i+1)
		}
		out = append(out, intention{f[0], f[1]})
	}
	return out
}

// meant reports whether a difference is on the list. A name ends in * to stand for all that begin so.
func (d *differ) meant(name, diff string) bool {
	for _, i := range d.intended {
		if (i.name == name || strings.HasSuffix(i.name, "*") && strings.HasPrefix(name, strings.TrimSuffix(i.name, "*"))) && strings.Contains(diff, i.what) {
			d.known[i.name+"\t"+i.what] = true
			return true
		}
	}
	return false
}

// outcome is an answer's rows as text, or an error's SQLSTATE and message.
func outcome(lines []string, code string, err error) string {
	if err != nil {
		return "ERROR " + code + " " + strings.TrimPrefix(err.Error(), "ERROR: ")
	}
	return strings.Join(lines, "\n")
}

func (d *differ) ask(sql string) (pg, sd string) {
	want, err := run(context.Background(), d.pg, sql)
	code := ""
	if e, ok := err.(*pgconn.PgError); ok {
		code = e.Code
	}
	pg = outcome(want.rows, code, err)
	got, err := d.c.Exec(context.Background(), sql)
	if err != nil {
		return pg, outcome(nil, embed.Code(err), err)
	}
	return pg, outcome(got.Lines(), "", nil)
}

// scalar compares one SELECT without FROM.
func (d *differ) scalar(name, sql string) {
	pg, sd := d.ask(sql)
	if sd == pg {
		d.compared++
		return
	}
	if strings.HasPrefix(pg, "ERROR 42") { // no such call in PostgreSQL, or ambiguous there
		return
	}
	pe, pcode, se, scode := strings.HasPrefix(pg, "ERROR"), "", strings.HasPrefix(sd, "ERROR"), ""
	if pe {
		pcode = pg[6:11]
	}
	if se {
		scode = sd[6:min(11, len(sd))]
	}
	if pe && pcode == scode {
		d.compared++
		return
	}
	if scode == "42883" || scode == "0A000" || scode == "42846" || scode == "42704" {
		d.unknown[name]++
		return
	}
	d.compared++
	diff := fmt.Sprintf("%s\n\t\tPostgreSQL: %s\n\t\tstreamdb:   %s", sql, pg, sd)
	if nearly(pg, sd) {
		diff += " (ulp)"
	}
	if d.meant(name, diff) || d.differs[name] != "" {
		return
	}
	d.differs[name] = diff
}

// nearly reports whether two numbers are the same to 14 digits, or too small to have as many.
func nearly(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= max(1e-300, 1e-14*max(math.Abs(x), math.Abs(y)))
}

// report fails the test if anything differs that is not meant to.
func (d *differ) report(seed uint64) {
	d.t.Helper()
	for _, n := range slices.Sorted(maps.Keys(d.differs)) {
		d.t.Errorf("%s: %s", n, d.differs[n])
	}
	d.t.Logf("seed %d: %d answers compared, %d things differ, %d unknown to streamdb, %d of %d intended differences met", seed, d.compared, len(d.differs), len(d.unknown), len(d.known), len(d.intended))
	if testing.Verbose() {
		for _, n := range slices.Sorted(maps.Keys(d.unknown)) {
			d.t.Logf("unknown: %s", n)
		}
	}
}
