package slt

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// An edit replaces one record's expectation. Lines are 0-based; [from, to) is
// replaced by result, and the header line by header.
type edit struct {
	headerLine, from, to int
	header               string // empty: as it is
	result               []string
}

// editOf makes the edit after which rec would have been met by got, or nil when
// nothing in the file can be changed to make it so.
func editOf(rec Record, got outcome) *edit {
	e := &edit{headerLine: rec.header, from: rec.resFrom, to: rec.resTo}
	switch {
	case got.err != nil:
		word := map[Kind]string{Query: "query", Statement: "statement"}[rec.Kind]
		e.header = word + " error " + got.err.Code
		if rec.Want.Message != nil && !strings.Contains(got.err.Message, "\n") {
			e.header += " " + regexp.QuoteMeta(got.err.Message)
		}
	case rec.Kind == Statement && rec.Want.Count >= 0:
		e.header = "statement count " + strconv.Itoa(got.count)
	case rec.Kind == Statement:
		e.header = "statement ok"
	default:
		types := rec.Types
		if len(types) != got.columns {
			types = strings.Repeat("T", got.columns)
		}
		e.header = strings.TrimSpace(strings.Join([]string{"query", types, string(rec.Sort), rec.Label}, " "))
		e.header = strings.Join(strings.Fields(e.header), " ")
		e.result = append([]string{"----"}, got.lines...)
	}
	return e
}

// rewrite applies edits, which are in file order, to a file.
func rewrite(path string, edits []edit) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := splitLines(string(text))
	var out []string
	at := 0
	for _, e := range edits {
		out = append(out, lines[at:e.headerLine]...)
		out = append(out, e.header)
		out = append(out, lines[e.headerLine+1:e.from]...)
		out = append(out, e.result...)
		at = e.to
	}
	out = append(out, lines[at:]...)
	return os.WriteFile(path, []byte(strings.Join(out, "\n")+"\n"), 0o644)
}
