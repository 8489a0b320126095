package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// formatFunc is format(): %s, %I and %L with positions, widths and the - flag.
func formatFunc(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Datum{}, nil
	}
	f := a[0].Str()
	ts, a = ts[1:], a[1:]
	bad := func(format string, args ...any) (types.Datum, error) {
		return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, format, args...)
	}
	var b strings.Builder
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		i++
		unterminated := "unterminated format() type specifier"
		if i == len(f) {
			return bad("%s", unterminated)
		}
		if f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		number := func() (int, bool) {
			j := i
			for j < len(f) && f[j] >= '0' && f[j] <= '9' {
				j++
			}
			n, err := strconv.Atoi(f[i:j])
			i = j
			return n, err == nil
		}
		arg, width, left := -1, 0, false
		take := func(n int) (types.Datum, types.Type, error) {
			if n < 0 {
				n = next
				next++
			} else {
				next = n + 1
			}
			if n >= len(a) {
				return types.Datum{}, types.Type{}, sqlerr.New(sqlerr.InvalidParameter, "too few arguments for format()")
			}
			return a[n], ts[n], nil
		}
		if start := i; f[i] >= '0' && f[i] <= '9' {
			n, ok := number()
			if ok && i < len(f) && f[i] == '$' {
				if n == 0 {
					return bad("format specifies argument 0, but arguments are numbered from 1")
				}
				arg = n - 1
				i++
			} else {
				i = start
			}
		}
		for i < len(f) && f[i] == '-' {
			left = true
			i++
		}
		if i < len(f) && f[i] == '*' {
			i++
			at := -1
			if i < len(f) && f[i] >= '0' && f[i] <= '9' {
				n, _ := number()
				if i == len(f) || f[i] != '$' {
					return bad("width argument position must be ended by \"$\"")
				}
				i++
				at = n - 1
			}
			d, t, err := take(at)
			if err != nil {
				return types.Datum{}, err
			}
			if !d.IsNull() {
				if t.Kind() != types.KindInt {
					return bad("width must be an integer")
				}
				width = int(d.Int())
			}
			if width < 0 {
				left, width = true, -width
			}
		} else if i < len(f) && f[i] >= '0' && f[i] <= '9' {
			width, _ = number()
		}
		if i >= len(f) {
			return bad("%s", unterminated)
		}
		verb := f[i]
		if verb != 's' && verb != 'I' && verb != 'L' {
			c, _ := utf8.DecodeRuneInString(f[i:])
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "unrecognized format() type specifier \"%c\"", c).
				WithHint("For a single \"%%\" use \"%%%%\".")
		}
		d, t, err := take(arg)
		if err != nil {
			return types.Datum{}, err
		}
		text := ""
		switch {
		case d.IsNull() && verb == 'I':
			return types.Datum{}, sqlerr.New("22004", "null values cannot be formatted as an SQL identifier")
		case d.IsNull() && verb == 'L':
			text = "NULL"
		case !d.IsNull():
			if text, err = output(ctx, t, d); err != nil {
				return types.Datum{}, err
			}
			switch verb {
			case 'I':
				text = quoteIdent(text)
			case 'L':
				text = quoteWithEscape(text)
			}
		}
		gap := strings.Repeat(" ", max(0, min(width, maxText)-int(chars(text))))
		if left {
			b.WriteString(text + gap)
		} else {
			b.WriteString(gap + text)
		}
	}
	return types.NewString(b.String()), nil
}

// quoteWithEscape is quote_literal: with E” where there is a backslash.
func quoteWithEscape(s string) string {
	out := quoteLiteral(s)
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(out, `\`, `\\`)
	}
	return out
}

// quoteIdent quotes an identifier where it needs it.
func quoteIdent(s string) string {
	plain := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] == '_')
	for i := range len(s) {
		c := s[i]
		plain = plain && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
	}
	if plain && !reserved(s) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
