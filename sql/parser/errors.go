package parser

import (
	"strings"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
)

// A complaint is what the grammar has against a text.
type complaint struct {
	message string
	cursor  int // 1 + the offset in characters; 0: unknown
}

// byteOffset converts a cursor; -1 for an unknown one.
func byteOffset(text string, cursor int) int {
	if cursor <= 0 {
		return -1
	}
	off := 0
	for range cursor - 1 {
		if off >= len(text) {
			break
		}
		_, n := utf8.DecodeRuneInString(text[off:])
		off += n
	}
	return off
}

// refuse makes the error for a complaint about text, whose byte 0 is the whole text's byte shift; first is where in the whole
// text the user's part of it begins. Where the grammar stumbled over something that is not in the user's text (a blank where
// our clause is, the end of a part), the error names the user's token that stands there.
func (p *parser) refuse(c *complaint, text string, shift, first int) *sqlerr.Error {
	switch {
	case strings.HasPrefix(c.message, "memory exhausted"), strings.Contains(c.message, "recursion depth"), strings.HasPrefix(c.message, "stack depth"):
		return tooDeep()
	}
	off := byteOffset(text, c.cursor)
	if strings.HasPrefix(c.message, "syntax error at ") && off >= 0 {
		for off > 0 && off <= len(text) && isSpace(text[off-1]) {
			off--
		}
		return p.unexpected(p.tokenAt(max(off+shift, first)))
	}
	e := sqlerr.New(codeOf(c.message), "%s", c.message)
	if off >= 0 {
		e.At(min(max(off+shift, first), len(p.text)))
	}
	switch {
	case strings.HasPrefix(c.message, "LIMIT #,# syntax"):
		e.WithHint("Use separate LIMIT and OFFSET clauses.")
	case c.message != "invalid Unicode escape" || off < 0:
	case p.unicodeString(off + shift):
		e.WithHint(`Unicode escapes must be \XXXX or \+XXXXXX.`)
	default:
		e.Code = "22025"
		e.WithHint(`Unicode escapes must be \uXXXX or \UXXXXXXXX.`)
	}
	return e
}

// unicodeString says whether the token around an offset is U&'…' or U&"…" rather than E'…'.
func (p *parser) unicodeString(offset int) bool {
	i := p.tokenAt(offset+1) - 1
	return i >= 0 && p.text[p.toks[i].pos]|0x20 == 'u'
}

// codeOf finds the SQLSTATE for a message of the grammar's: nearly all are syntax errors.
func codeOf(message string) string {
	switch {
	case strings.Contains(message, "not yet implemented"), strings.HasPrefix(message, "unsafe use of"):
		return sqlerr.NotSupported
	case strings.HasPrefix(message, "frame start"), strings.HasPrefix(message, "frame end"):
		return sqlerr.WindowingError
	case strings.HasPrefix(message, "precision for type"):
		return sqlerr.InvalidParameter
	case strings.Contains(message, "out of range"):
		return sqlerr.OutOfRange
	case strings.HasPrefix(message, "proto:"), strings.Contains(message, "wasm"):
		return sqlerr.Internal
	}
	return sqlerr.Syntax
}

func tooDeep() *sqlerr.Error {
	return sqlerr.New("54001", "stack depth limit exceeded").WithHint("The statement nests expressions, joins or set operations too deeply; split it up.")
}

// unexpected is PostgreSQL's error for a token that does not fit.
func (p *parser) unexpected(i int) *sqlerr.Error {
	t := p.toks[i]
	if t.kind == end {
		return sqlerr.New(sqlerr.Syntax, "syntax error at end of input").At(int(t.pos))
	}
	e := sqlerr.New(sqlerr.Syntax, `syntax error at or near "%s"`, p.src(i)).At(int(t.pos))
	p.hint(i, e)
	return e
}

// near is unexpected for a text that was lexed before.
func near(text string, offset int) *sqlerr.Error {
	p, err := newParser(text)
	if err != nil {
		return sqlerr.From(err)
	}
	return p.unexpected(p.tokenAt(offset))
}

// starters begin a statement.
var starters = [...]string{"alter", "analyze", "begin", "cancel", "check", "checkpoint", "close", "comment", "commit", "copy", "create", "deallocate", "declare",
	"delete", "describe", "discard", "drop", "end", "execute", "explain", "fetch", "flush", "grant", "insert", "kill", "listen", "lock", "merge",
	"move", "pause", "prepare", "recover", "reset", "resume", "revoke", "rollback", "savepoint", "select", "set", "show", "start", "truncate", "unlisten",
	"update", "vacuum", "values", "wait", "with"}

// hint adds the likely mend.
func (p *parser) hint(i int, e *sqlerr.Error) {
	for k := i; k >= 0 && !p.is(k, ";"); k-- {
		if p.toks[k].kind == op && strings.HasPrefix(p.src(k), "`") {
			e.WithHint(`Names are quoted with double quotes, as in "name".`)
			return
		}
	}
	if p.toks[i].kind != word || i > 0 && !p.is(i-1, ";") {
		return
	}
	w := strings.ToLower(p.src(i))
	if w == "subscribe" {
		e.WithHint("Use COPY (SUBSCRIBE name) TO STDOUT.")
		return
	}
	best, distance := "", 3
	for _, s := range starters {
		if d := sqlerr.EditDistance(w, s, 2); d < distance && d < len(s)/2 && d > 0 {
			best, distance = s, d
		}
	}
	if best != "" {
		e.WithHint("Perhaps you meant %s.", strings.ToUpper(best))
	}
}
