package parser

import (
	"unicode/utf8"

	"streamdb/sql/sqlerr"
)

// kind says what a token is.
type kind uint8

const (
	end    kind = iota // after the last token
	word               // unquoted identifier or keyword
	quoted             // "identifier", U&"identifier"
	str                // 'x', E'x', N'x', U&'x', $$x$$
	bits               // B'1', X'f'
	number             // 1, 1.5e3, 0x1f
	param              // $1
	op                 // operator, or one of PostgreSQL's single-character tokens
)

// A token is a stretch of the text; comments and white space are not tokens.
type token struct {
	kind kind
	pos  int32
	end  int32
}

// A lexer cuts text as PostgreSQL's scanner does (standard_conforming_strings on). It is our own, since it costs a
// fiftieth of a call to the grammar and every statement passes through it.
type lexer struct {
	text string
	toks []token
	// chains counts the tokens that can make a tree one level deeper without a parenthesis.
	chains int
	// clauses: there is a word or character that may begin a clause of our own inside a query.
	clauses bool
	params  bool
}

// lex cuts the whole text.
func lex(text string) (*lexer, *sqlerr.Error) {
	l := &lexer{text: text, toks: make([]token, 0, len(text)/5+4)}
	if err := l.run(); err != nil {
		return nil, err
	}
	return l, nil
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool      { return '0' <= c && c <= '9' }
func isIdentStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80 }
func isIdent(c byte) bool      { return isIdentStart(c) || isDigit(c) || c == '$' }

// opChars may stand in an operator of any length; the others below are tokens by themselves.
func isOp(c byte) bool {
	switch c {
	case '~', '!', '@', '#', '^', '&', '|', '`', '?', '+', '-', '*', '/', '%', '<', '>', '=':
		return true
	}
	return false
}

func (l *lexer) run() *sqlerr.Error {
	s := l.text
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case isSpace(c):
			i++
			continue
		case c == '-' && at(s, i+1) == '-':
			for i < len(s) && s[i] != '\n' && s[i] != '\r' {
				i++
			}
			continue
		case c == '/' && at(s, i+1) == '*':
			if i = skipComment(s, i); i < 0 {
				return l.unterminated("/* comment", start)
			}
			continue
		case c == '\'':
			if i = skipQuoted(s, i, '\''); i < 0 {
				return l.unterminated("quoted string", start)
			}
			l.add(str, start, i)
		case c == '"':
			if i = skipQuoted(s, i, '"'); i < 0 {
				return l.unterminated("quoted identifier", start)
			}
			if i == start+2 {
				return sqlerr.New(sqlerr.Syntax, `zero-length delimited identifier at or near """"`).At(start)
			}
			l.add(quoted, start, i)
		case isIdentStart(c):
			if k, j, what := prefixed(s, i); what != "" {
				if j < 0 {
					return l.unterminated(what, start)
				}
				i = j
				l.add(k, start, i)
				break
			}
			for i < len(s) && isIdent(s[i]) {
				i++
			}
			l.add(word, start, i)
			l.note(s[start:i])
		case isDigit(c) || c == '.' && isDigit(at(s, i+1)):
			i = skipNumber(s, i)
			l.add(number, start, i)
		case c == '$':
			if isDigit(at(s, i+1)) {
				for i++; i < len(s) && isDigit(s[i]); i++ {
				}
				if i < len(s) && isIdentStart(s[i]) {
					for i < len(s) && isIdent(s[i]) {
						i++
					}
					return sqlerr.New(sqlerr.Syntax, `trailing junk after parameter at or near "%s"`, s[start:i]).At(start)
				}
				l.params = true
				l.add(param, start, i)
				break
			}
			if tag := dollarTag(s[i:]); tag > 0 {
				if i = skipDollar(s, i, tag); i < 0 {
					return l.unterminated("dollar-quoted string", start)
				}
				l.add(str, start, i)
				break
			}
			i++
			l.add(op, start, i)
		case isOp(c):
			i = skipOp(s, i)
			l.add(op, start, i)
			l.chains++
		default:
			if two := at(s, i+1); c == ':' && (two == ':' || two == '=') || c == '.' && two == '.' {
				if two == ':' {
					l.chains++
				}
				i++
			}
			if c == '{' {
				l.clauses = true
			}
			i++
			l.add(op, start, i)
		}
	}
	return nil
}

func (l *lexer) add(k kind, start, end int) {
	l.toks = append(l.toks, token{k, int32(start), int32(end)})
}

// note watches for the few words that decide whether a plain statement needs a second look.
func (l *lexer) note(w string) {
	if len(w) > len("system_time") {
		return
	}
	var buf [len("system_time")]byte
	switch string(lower(buf[:0], w)) {
	case "emit", "system_time", "asof", "struct", "map":
		l.clauses = true
	case "join", "union", "intersect", "except", "not", "is", "isnull", "notnull", "collate", "at", "in", "like", "ilike", "similar", "between", "case":
		l.chains++
	}
}

func (l *lexer) unterminated(what string, start int) *sqlerr.Error {
	return sqlerr.New(sqlerr.Syntax, `unterminated %s at or near "%s"`, what, l.text[start:]).At(start)
}

// at returns s[i], 0 past the end.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// lower appends w to b with ASCII letters lowered: PostgreSQL folds no others in UTF-8.
func lower(b []byte, w string) []byte {
	for i := range len(w) {
		c := w[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// prefixed recognises a quoted thing with a letter before its quote; what is empty if there is none and names it if not.
// The position after it is negative if it does not end.
func prefixed(s string, i int) (k kind, after int, what string) {
	c := s[i] | 0x20
	switch {
	case at(s, i+1) == '\'' && c == 'e':
		return str, skipEscaped(s, i+1), "quoted string"
	case at(s, i+1) == '\'' && c == 'n':
		return str, skipQuoted(s, i+1, '\''), "quoted string"
	case at(s, i+1) == '\'' && c == 'b':
		return bits, skipQuoted(s, i+1, '\''), "bit string literal"
	case at(s, i+1) == '\'' && c == 'x':
		return bits, skipQuoted(s, i+1, '\''), "hexadecimal string literal"
	case at(s, i+1) == '&' && c == 'u' && at(s, i+2) == '\'':
		return str, skipQuoted(s, i+2, '\''), "quoted string"
	case at(s, i+1) == '&' && c == 'u' && at(s, i+2) == '"':
		return quoted, skipQuoted(s, i+2, '"'), "quoted identifier"
	}
	return 0, 0, ""
}

// skipQuoted returns the position after the string that begins with a quote at i, -1 if it does not end.
func skipQuoted(s string, i int, quote byte) int {
	for i++; i < len(s); i++ {
		if s[i] == quote {
			if at(s, i+1) != quote {
				return i + 1
			}
			i++
		}
	}
	return -1
}

// skipEscaped is skipQuoted for E'…', where a backslash takes the next byte with it.
func skipEscaped(s string, i int) int {
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '\'':
			if at(s, i+1) != '\'' {
				return i + 1
			}
			i++
		}
	}
	return -1
}

// skipComment returns the position after a comment, which may hold others.
func skipComment(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch {
		case s[i] == '/' && at(s, i+1) == '*':
			depth++
			i += 2
		case s[i] == '*' && at(s, i+1) == '/':
			i += 2
			if depth--; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return -1
}

// dollarTag returns the length of the $tag$ that s begins with, 0 if it does not.
func dollarTag(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			return i + 1
		case isIdentStart(c), i > 1 && isDigit(c):
		default:
			return 0
		}
	}
	return 0
}

func skipDollar(s string, i, tag int) int {
	mark := s[i : i+tag]
	for j := i + tag; j+tag <= len(s); j++ {
		if s[j] == '$' && s[j:j+tag] == mark {
			return j + tag
		}
	}
	return -1
}

func skipNumber(s string, i int) int {
	if s[i] == '0' {
		if c := at(s, i+1) | 0x20; (c == 'x' || c == 'o' || c == 'b') && isHex(at(s, i+2)) {
			for i += 2; i < len(s) && (isHex(s[i]) || s[i] == '_'); i++ {
			}
			return i
		}
	}
	digits := func() {
		for i < len(s) && (isDigit(s[i]) || s[i] == '_' && isDigit(at(s, i+1))) {
			i++
		}
	}
	digits()
	if at(s, i) == '.' && at(s, i+1) != '.' {
		i++
		digits()
	}
	if at(s, i)|0x20 == 'e' {
		j := i + 1
		if c := at(s, j); c == '+' || c == '-' {
			j++
		}
		if isDigit(at(s, j)) {
			i = j
			digits()
		}
	}
	return i
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// skipOp follows PostgreSQL: the longest run of operator characters that no comment begins in; one of several characters may
// end in + or - only if it also holds a character that no SQL operator has, so that a=-1 is three tokens.
func skipOp(s string, i int) int {
	j := i
	special := false
	for j < len(s) && isOp(s[j]) {
		if s[j] == '-' && at(s, j+1) == '-' || s[j] == '/' && at(s, j+1) == '*' {
			break
		}
		switch s[j] {
		case '~', '!', '@', '#', '^', '&', '|', '`', '?', '%':
			special = true
		}
		j++
	}
	for !special && j > i+1 && (s[j-1] == '+' || s[j-1] == '-') {
		j--
	}
	return j
}

// checkText refuses what PostgreSQL refuses before it parses: a NUL and invalid UTF-8.
func checkText(text string) *sqlerr.Error {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c == 0 {
				return sqlerr.New("22021", `invalid byte sequence for encoding "UTF8": 0x00`)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			return badUTF8(text[i:])
		}
		i += n
	}
	return nil
}

// badUTF8 names the bytes that PostgreSQL names: as many as the first one announces.
func badUTF8(s string) *sqlerr.Error {
	n := 1
	switch c := s[0]; {
	case c >= 0xf0 && c < 0xf8:
		n = 4
	case c >= 0xe0 && c < 0xf0:
		n = 3
	case c >= 0xc0 && c < 0xe0:
		n = 2
	}
	msg := ""
	for i := range min(n, len(s)) {
		const hex = "0123456789abcdef"
		if i > 0 {
			msg += " "
		}
		msg += "0x" + string(hex[s[i]>>4]) + string(hex[s[i]&15])
	}
	return sqlerr.New("22021", `invalid byte sequence for encoding "UTF8": %s`, msg)
}
