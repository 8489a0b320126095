package expr

import (
	"strings"
	"unicode/utf8"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A likePattern is a compiled LIKE pattern. Patterns without _ that begin or
// end with % are matched by the strings package; others piece by piece.
type likePattern struct {
	pieces []likePiece // between the % signs
	head   bool        // the pattern begins with %
	tail   bool        // it ends with %
	bad    bool        // it ended with the escape character: an error for texts that get that far
}

// A likePiece is text in which some places take any character.
type likePiece struct {
	text string // where any is nil
	any  []int  // places (in characters) that match any one character
	runs []rune // where any is not nil
}

// compileLike reads a pattern with backslash as the escape.
func compileLike(pattern string) *likePattern {
	p := &likePattern{}
	if n := len(pattern) - len(strings.TrimRight(pattern, `\`)); n%2 == 1 {
		p.bad = true
		pattern = pattern[:len(pattern)-1] + "_%"
	}
	var text strings.Builder
	var any []int
	chars := 0
	flush := func() {
		if chars == 0 {
			return
		}
		piece := likePiece{text: text.String()}
		if any != nil {
			piece.any, piece.runs = any, []rune(piece.text)
		}
		p.pieces = append(p.pieces, piece)
		text.Reset()
		any, chars = nil, 0
	}
	last := false // the last token was %
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '%':
			if i == 0 {
				p.head = true
			}
			flush()
			last = true
			i++
			continue
		case '_':
			any = append(any, chars)
			text.WriteByte('_')
			chars++
			i++
		case '\\':
			i++
			fallthrough
		default:
			_, size := utf8.DecodeRuneInString(pattern[i:])
			text.WriteString(pattern[i : i+size])
			chars++
			i += size
		}
		last = false
	}
	flush()
	p.tail = last
	return p
}

// prefix returns the length of s that piece matches at its start, or -1.
func (p *likePiece) prefix(s string) int {
	if p.any == nil {
		if strings.HasPrefix(s, p.text) {
			return len(p.text)
		}
		return -1
	}
	at, k := 0, 0
	for i, want := range p.runs {
		if at == len(s) {
			return -1
		}
		r, size := utf8.DecodeRuneInString(s[at:])
		if k < len(p.any) && p.any[k] == i {
			k++
		} else if r != want {
			return -1
		}
		at += size
	}
	return at
}

// find returns the first match of piece in s, or -1.
func (p *likePiece) find(s string) (from, to int) {
	if p.any == nil {
		i := strings.Index(s, p.text)
		if i < 0 {
			return -1, -1
		}
		return i, i + len(p.text)
	}
	for i := 0; i <= len(s); {
		if n := p.prefix(s[i:]); n >= 0 {
			return i, i + n
		}
		if i == len(s) {
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return -1, -1
}

// suffix reports whether piece matches the end of s, whole characters only.
func (p *likePiece) suffix(s string) bool {
	if p.any == nil {
		return strings.HasSuffix(s, p.text)
	}
	at := len(s)
	for range p.runs {
		if at == 0 {
			return false
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return p.prefix(s[at:]) == len(s)-at
}

// match matches greedily from the left: the first place for each piece is as good as any.
func (p *likePattern) match(s string) bool {
	pieces := p.pieces
	if len(pieces) == 0 {
		return p.head || s == ""
	}
	if !p.head {
		n := pieces[0].prefix(s)
		if n < 0 {
			return false
		}
		s, pieces = s[n:], pieces[1:]
		if len(pieces) == 0 {
			return p.tail || s == ""
		}
	}
	if !p.tail {
		last := len(pieces) - 1
		for i := range pieces[:last] {
			_, to := pieces[i].find(s)
			if to < 0 {
				return false
			}
			s = s[to:]
		}
		return pieces[last].suffix(s)
	}
	for i := range pieces {
		_, to := pieces[i].find(s)
		if to < 0 {
			return false
		}
		s = s[to:]
	}
	return true
}

// likeKernel is [NOT] LIKE and ILIKE; a constant pattern is compiled once a chunk.
func likeKernel(not, fold bool) maker {
	return func(*Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			s, pat := chunk.Of[string](args[0]), chunk.Of[string](args[1])
			sm, pm := mask(len(s.Data), n), mask(len(pat.Data), n)
			out := newResult[bool](n, args...)
			var compiled *likePattern
			var compiledFrom string
			for i := range out.data {
				if out.null(i) {
					continue
				}
				if src := pat.Data[i&pm]; compiled == nil || src != compiledFrom {
					text := src
					if fold {
						text = strings.ToLower(text)
					}
					compiled, compiledFrom = compileLike(text), src
				}
				text := s.Data[i&sm]
				if fold {
					text = strings.ToLower(text)
				}
				hit := compiled.match(text)
				if hit && compiled.bad {
					err := ctx.RowError(i, sqlerr.New("22025", "LIKE pattern must not end with escape character"))
					if err != nil {
						return nil, err
					}
					out.setNull(i)
					continue
				}
				out.data[i] = hit != not
			}
			return out.column(types.Bool), nil
		}
	}
}

// likeEscape turns a pattern with another escape character into one with backslash.
func likeEscape(pattern, escape string) (string, error) {
	if utf8.RuneCountInString(escape) > 1 {
		return "", sqlerr.New("22025", "invalid escape string").WithHint("Escape string must be empty or one character.")
	}
	if escape == `\` {
		return pattern, nil
	}
	var b strings.Builder
	for len(pattern) > 0 {
		if escape != "" && strings.HasPrefix(pattern, escape) {
			pattern = pattern[len(escape):]
			b.WriteByte('\\')
			if pattern == "" {
				break
			}
			_, size := utf8.DecodeRuneInString(pattern)
			b.WriteString(pattern[:size])
			pattern = pattern[size:]
			continue
		}
		if pattern[0] == '\\' {
			b.WriteByte('\\')
		}
		_, size := utf8.DecodeRuneInString(pattern)
		b.WriteString(pattern[:size])
		pattern = pattern[size:]
	}
	return b.String(), nil
}
