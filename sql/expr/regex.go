package expr

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"streamdb/sql/sqlerr"
)

// A regexCache keeps compiled regular expressions by pattern and flags.
type regexCache struct {
	mu sync.Mutex
	m  map[string]*regexp.Regexp
}

// The cache is emptied when it holds this many.
const regexCacheSize = 256

func (c *regexCache) get(pattern, flags string) (*regexp.Regexp, error) {
	key := flags + "\x00" + pattern
	c.mu.Lock()
	re := c.m[key]
	c.mu.Unlock()
	if re != nil {
		return re, nil
	}
	re, err := compileRegex(pattern, flags)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= regexCacheSize {
		c.m = map[string]*regexp.Regexp{}
	}
	c.m[key] = re
	return re, nil
}

// compileRegex compiles PostgreSQL's advanced regular expressions by Go's
// engine, which matches in linear time and so has no back references and no
// look-around: those are errors by name.
func compileRegex(pattern, flags string) (*regexp.Regexp, error) {
	fold, dot, multi, literal, expanded := false, true, false, false, false
	for _, f := range flags {
		switch f {
		case 'i':
			fold = true
		case 'c':
			fold = false
		case 'n', 'm':
			dot, multi = false, true
		case 'p':
			dot, multi = false, false
		case 'w':
			dot, multi = true, true
		case 's':
			dot, multi = true, false
		case 'q':
			literal = true
		case 'x':
			expanded = true
		case 't', 'e', 'b', 'g':
		default:
			return nil, sqlerr.New(sqlerr.InvalidParameter, "invalid regular expression option: \"%c\"", f)
		}
	}
	if rest, ok := strings.CutPrefix(pattern, "***:"); ok {
		pattern = rest
	} else if rest, ok := strings.CutPrefix(pattern, "***="); ok {
		pattern, literal = rest, true
	}
	if !literal && strings.HasPrefix(pattern, "(?") {
		if end := strings.IndexByte(pattern, ')'); end > 2 && isLetters(pattern[2:end]) {
			return compileRegex(pattern[end+1:], flags+pattern[2:end])
		}
	}
	var b strings.Builder
	b.WriteString("(?")
	if fold {
		b.WriteByte('i')
	}
	if dot {
		b.WriteByte('s')
	}
	if multi {
		b.WriteByte('m')
	}
	if b.Len() == 2 {
		b.Reset()
	} else {
		b.WriteByte(')')
	}
	lazy := false
	if literal {
		b.WriteString(regexp.QuoteMeta(pattern))
	} else {
		text, l, err := translateRegex(pattern, expanded)
		if err != nil {
			return nil, err
		}
		lazy = l
		b.WriteString(text)
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, sqlerr.New(sqlerr.InvalidRegex, "invalid regular expression: %s", regexMessage(err))
	}
	if !lazy {
		re.Longest() // POSIX: the longest match wins
	}
	return re, nil
}

// regexMessage is PostgreSQL's wording of what is wrong.
func regexMessage(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return "parentheses () not balanced"
	case syntax.ErrMissingBracket:
		return "brackets [] not balanced"
	case syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp:
		return "quantifier operand invalid"
	case syntax.ErrInvalidRepeatSize:
		return "invalid repetition count(s)"
	case syntax.ErrInvalidCharRange:
		return "invalid character range"
	case syntax.ErrInvalidEscape, syntax.ErrTrailingBackslash:
		return "invalid escape \\ sequence"
	}
	return e.Code.String()
}

func isLetters(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return true
}

// translateRegex rewrites what PostgreSQL spells differently from Go.
func translateRegex(p string, expanded bool) (out string, lazy bool, err error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i++
			e := p[i]
			switch e {
			case 'm', 'M', 'y':
				b.WriteString(`\b`)
			case 'Y':
				b.WriteString(`\B`)
			case 'A':
				b.WriteString(`\A`)
			case 'Z':
				b.WriteString(`\z`)
			case 'e':
				b.WriteString(`\x1b`)
			case 'B':
				b.WriteString(`\\`)
			case '0':
				b.WriteString(`\x00`)
			case 'd', 'D', 's', 'S', 'w', 'W', 'a', 'f', 'n', 'r', 't', 'v', 'x':
				b.WriteByte('\\')
				b.WriteByte(e)
			case 'u':
				if i+4 < len(p) {
					b.WriteString(`\x{` + p[i+1:i+5] + `}`)
					i += 4
				}
			default:
				if e >= '1' && e <= '9' && !inClass {
					return "", false, sqlerr.Unsupported("a back reference in a regular expression")
				}
				if e >= 0x80 { // the first byte of a longer character
					b.WriteByte(e)
				} else {
					b.WriteString(regexp.QuoteMeta(string(rune(e))))
				}
			}
		case inClass && c == '[':
			if i+1 < len(p) && (p[i+1] == ':' || p[i+1] == '.' || p[i+1] == '=') {
				if end := strings.Index(p[i+2:], string(rune(p[i+1]))+"]"); end >= 0 {
					b.WriteString(p[i : i+2+end+2])
					i += 2 + end + 1
					continue
				}
			}
			b.WriteString(`\[`)
		case inClass:
			b.WriteByte(c)
			inClass = c != ']'
		case c == '[':
			if rest := p[i:]; strings.HasPrefix(rest, "[[:<:]]") || strings.HasPrefix(rest, "[[:>:]]") {
				b.WriteString(`\b`)
				i += len("[[:<:]]") - 1
				continue
			}
			inClass = true
			b.WriteByte(c)
			if i+1 < len(p) && p[i+1] == '^' {
				b.WriteByte('^')
				i++
			}
			if i+1 < len(p) && p[i+1] == ']' {
				b.WriteString(`\]`)
				i++
			}
		case c == '(' && strings.HasPrefix(p[i:], "(?") && i+2 < len(p):
			switch p[i+2] {
			case '=', '!', '<':
				return "", false, sqlerr.Unsupported("look-around in a regular expression")
			case '#':
				if end := strings.IndexByte(p[i:], ')'); end > 0 {
					i += end
					continue
				}
			}
			b.WriteByte(c)
		case (c == '*' || c == '+' || c == '?' || c == '}') && i+1 < len(p) && p[i+1] == '?':
			b.WriteByte(c)
			b.WriteByte('?')
			lazy = true
			i++
		case expanded && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		case expanded && c == '#':
			for i < len(p) && p[i] != '\n' {
				i++
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), lazy, nil
}

// similarToRegex turns a SIMILAR TO pattern into a regular expression, as similar_to_escape does.
func similarToRegex(pattern, escape string) (string, error) {
	if len([]rune(escape)) > 1 {
		return "", sqlerr.New("22025", "invalid escape string").WithHint("Escape string must be empty or one character.")
	}
	var b strings.Builder
	b.WriteString("^(?:")
	inClass, quoted, parts := false, false, 0
	for _, r := range pattern {
		c := string(r)
		switch {
		case quoted && r == '"' && !inClass: // the part that SUBSTRING gives begins or ends
			switch parts++; parts {
			case 1:
				b.WriteString("){1,1}?(")
			case 2:
				b.WriteString("){1,1}(?:")
			default:
				return "", sqlerr.New("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
			}
			quoted = false
		case quoted:
			b.WriteString(`\` + c)
			quoted = false
		case escape != "" && c == escape:
			quoted = true
		case inClass:
			if r == '\\' {
				b.WriteByte('\\')
			}
			b.WriteString(c)
			inClass = r != ']'
		case r == '[':
			b.WriteString(c)
			inClass = true
		case r == '%':
			b.WriteString(".*")
		case r == '_':
			b.WriteByte('.')
		case r == '(':
			b.WriteString("(?:")
		case r == '\\', r == '.', r == '^', r == '$':
			b.WriteString(`\` + c)
		default:
			b.WriteString(c)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}
