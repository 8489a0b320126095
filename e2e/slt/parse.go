package slt

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ParseFile reads a script from disk.
func ParseFile(path string) ([]Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Parse reads a script; file names it in errors.
func Parse(file, text string) ([]Record, error) {
	p := parser{file: file, lines: splitLines(text)}
	var out []Record
	var guards []Guard
	for p.at < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.at])
		if line == "" || strings.HasPrefix(line, "#") {
			p.at++
			continue
		}
		words := strings.Fields(line)
		if words[0] == "skipif" || words[0] == "onlyif" {
			if len(words) != 2 {
				return nil, p.errorf("%s wants one label", words[0])
			}
			guards = append(guards, Guard{Only: words[0] == "onlyif", Label: words[1]})
			p.at++
			continue
		}
		r, err := p.record(words, line)
		if err != nil {
			return nil, err
		}
		r.Guards, guards = guards, nil
		out = append(out, r)
	}
	if guards != nil {
		return nil, p.errorf("skipif or onlyif without a record after it")
	}
	return out, nil
}

func splitLines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// A parser walks the lines of one file; at is the next line, 0-based.
type parser struct {
	file  string
	lines []string
	at    int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.file, p.at+1, fmt.Sprintf(format, args...))
}

func (p *parser) record(words []string, line string) (Record, error) {
	r := Record{Pos: Pos{p.file, p.at + 1}, header: p.at, Want: Expect{Count: -1}}
	var err error
	switch words[0] {
	case "statement":
		return p.statement(r, words[1:], line)
	case "query":
		return p.query(r, words[1:], line)
	case "connection", "include", "subtest":
		if len(words) != 2 {
			return r, p.errorf("%s wants one word", words[0])
		}
		r.Kind = map[string]Kind{"connection": Connection, "include": Include, "subtest": Subtest}[words[0]]
		r.Arg = words[1]
	case "sleep":
		r.Kind = Sleep
		if len(words) != 2 {
			return r, p.errorf("sleep wants a duration")
		}
		if r.Wait, err = duration(words[1]); err != nil {
			return r, p.errorf("%v", err)
		}
	case "hash-threshold":
		r.Kind = HashThreshold
		if len(words) == 2 {
			r.N, err = strconv.Atoi(words[1])
		}
		if len(words) != 2 || err != nil {
			return r, p.errorf("hash-threshold wants a number")
		}
	case "control":
		r.Kind = Control
		if len(words) != 3 {
			return r, p.errorf("control wants a name and a value")
		}
		r.Arg, r.Value = words[1], words[2]
	case "halt":
		r.Kind = Halt
	case "system":
		return r, p.errorf("system is refused: a script only speaks SQL")
	default:
		return r, p.errorf("unknown record %q", words[0])
	}
	p.at++
	return r, nil
}

func (p *parser) statement(r Record, args []string, line string) (Record, error) {
	r.Kind = Statement
	if len(args) == 0 {
		return r, p.errorf("statement wants ok, error or count")
	}
	args, err := p.retry(&r, args)
	if err != nil {
		return r, err
	}
	switch args[0] {
	case "ok":
		if len(args) > 1 {
			return r, p.errorf("unexpected %q after ok", args[1])
		}
	case "count":
		if len(args) == 2 {
			r.Want.Count, err = strconv.Atoi(args[1])
		}
		if len(args) != 2 || err != nil {
			return r, p.errorf("statement count wants a number")
		}
	case "error":
		if err := p.expectError(&r, line, "error"); err != nil {
			return r, err
		}
	default:
		return r, p.errorf("unknown expectation %q", args[0])
	}
	return r, p.body(&r)
}

func (p *parser) query(r Record, args []string, line string) (Record, error) {
	r.Kind = Query
	if len(args) == 0 {
		return r, p.errorf("query wants its column types, or error")
	}
	args, err := p.retry(&r, args)
	if err != nil {
		return r, err
	}
	if args[0] == "error" {
		if err := p.expectError(&r, line, "error"); err != nil {
			return r, err
		}
		return r, p.body(&r)
	}
	r.Types = args[0]
	for _, w := range args[1:] {
		switch {
		case r.Sort == "" && (w == string(NoSort) || w == string(RowSort) || w == string(ValueSort)):
			r.Sort = SortMode(w)
		case r.Label == "":
			r.Label = w
		default:
			return r, p.errorf("unexpected %q", w)
		}
	}
	return r, p.body(&r)
}

var retryWords = regexp.MustCompile(`\s+retry\s+(\d+)\s+backoff\s+(\S+)\s*$`)

// retry takes `retry N backoff D` off the end of a record's words.
func (p *parser) retry(r *Record, args []string) ([]string, error) {
	n := len(args)
	if n < 5 || args[n-4] != "retry" || args[n-2] != "backoff" {
		return args, nil
	}
	var err error
	if r.Retry.Attempts, err = strconv.Atoi(args[n-3]); err != nil {
		return nil, p.errorf("retry wants a number, not %q", args[n-3])
	}
	if r.Retry.Backoff, err = duration(args[n-1]); err != nil {
		return nil, p.errorf("%v", err)
	}
	return args[:n-4], nil
}

var sqlstate = regexp.MustCompile(`^[0-9A-Z]{5}$`)

// expectError reads what stands after the word error: a SQLSTATE, a regular
// expression, both or neither.
func (p *parser) expectError(r *Record, line, word string) error {
	r.Want.Err = true
	line = retryWords.ReplaceAllString(line, "")
	_, rest, _ := strings.Cut(line, word)
	rest = strings.TrimSpace(rest)
	if first, after, _ := strings.Cut(rest, " "); sqlstate.MatchString(first) && strings.ContainsAny(first, "0123456789") {
		r.Want.Code, rest = first, strings.TrimSpace(after)
	}
	if rest == "" {
		return nil
	}
	re, err := regexp.Compile(rest)
	if err != nil {
		return p.errorf("%v", err)
	}
	r.Want.Message = re
	return nil
}

// body reads the SQL below a header and, after ----, what is expected.
func (p *parser) body(r *Record) error {
	p.at++
	var sql []string
	for p.at < len(p.lines) && strings.TrimSpace(p.lines[p.at]) != "" && p.lines[p.at] != "----" {
		sql = append(sql, p.lines[p.at])
		p.at++
	}
	if len(sql) == 0 {
		p.at = r.header
		return p.errorf("no SQL below %q", strings.TrimSpace(p.lines[r.header]))
	}
	r.SQL = strings.Join(sql, "\n")
	r.resFrom, r.resTo = p.at, p.at
	if p.at == len(p.lines) || p.lines[p.at] != "----" {
		return nil
	}
	p.at++
	var lines []string
	for p.at < len(p.lines) && strings.TrimSpace(p.lines[p.at]) != "" {
		lines = append(lines, strings.TrimRight(p.lines[p.at], " \t"))
		p.at++
	}
	r.resTo = p.at
	switch {
	case r.Want.Err:
		r.Want.Full = lines
	case r.Kind == Query:
		r.Want.Lines = lines
	default:
		p.at = r.resFrom
		return p.errorf("a statement has no rows to compare")
	}
	return nil
}

// duration reads Go's form, or a bare number of milliseconds.
func duration(s string) (time.Duration, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(n) * time.Millisecond, nil
	}
	return time.ParseDuration(s)
}
