package expr

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// maxText bounds what repeat and lpad may make, as PostgreSQL's varlena does.
const maxText = 1<<30 - 1

func errTooLarge() error { return sqlerr.New(sqlerr.ProgramLimit, "requested length too large") }

func chars(s string) int64 { return int64(utf8.RuneCountInString(s)) }

// strs adds the functions over text and bytea.
func strs(r *registry) {
	r.defs(f1(chars), "length(text) int4", "char_length(text) int4", "character_length(text) int4",
		"length(bpchar) int4", "char_length(bpchar) int4", "character_length(bpchar) int4")
	size := f1(func(s string) int64 { return int64(len(s)) })
	r.defs(size, "octet_length(text) int4", "octet_length(bytea) int4", "octet_length(bpchar) int4", "length(bytea) int4")
	r.defs(f1(func(s string) int64 { return 8 * int64(len(s)) }), "bit_length(text) int4", "bit_length(bytea) int4")
	r.def("lower(text) text", f1(strings.ToLower))
	r.def("upper(text) text", f1(strings.ToUpper))
	r.def("initcap(text) text", f1(initcap))
	trims := []struct {
		name        string
		left, right bool
	}{{"btrim", true, true}, {"ltrim", true, false}, {"rtrim", false, true}}
	for _, t := range trims {
		trim := func(s, set string) string {
			if t.left {
				s = strings.TrimLeft(s, set)
			}
			if t.right {
				s = strings.TrimRight(s, set)
			}
			return s
		}
		r.def(t.name+"(text,text) text", f2(trim))
		r.def(t.name+"(text) text", f1(func(s string) string { return trim(s, " ") }))
		r.def(t.name+"(bytea,bytea) bytea", f2(func(s, set string) string {
			i, j := 0, len(s)
			for t.left && i < j && strings.IndexByte(set, s[i]) >= 0 {
				i++
			}
			for t.right && j > i && strings.IndexByte(set, s[j-1]) >= 0 {
				j--
			}
			return s[i:j]
		}))
	}
	for _, name := range []string{"substr", "substring"} {
		r.def(name+"(text,int4) text", f2(func(s string, from int64) string { return s[byteOffset(s, from-1):] }))
		r.def(name+"(text,int4,int4) text", e3(substring))
		r.def(name+"(bytea,int4) bytea", f2(func(s string, from int64) string { return s[min(max(from-1, 0), int64(len(s))):] }))
		r.def(name+"(bytea,int4,int4) bytea", e3(func(s string, from, n int64) (string, error) {
			if n < 0 {
				return "", sqlerr.New("22011", "negative substring length not allowed")
			}
			lo, hi := min(max(from-1, 0), int64(len(s))), min(max(from-1+n, 0), int64(len(s)))
			return s[lo:max(lo, hi)], nil
		}))
	}
	r.defs(f2(strpos), "strpos(text,text) int4", "position(text,text) int4")
	r.def("position(bytea,bytea) int4", f2(func(s, sub string) int64 { return int64(strings.Index(s, sub)) + 1 }))
	r.def("left(text,int4) text", f2(func(s string, n int64) string {
		if n < 0 {
			n = max(chars(s)+n, 0)
		}
		return s[:byteOffset(s, n)]
	}))
	r.def("right(text,int4) text", f2(func(s string, n int64) string {
		if n < 0 {
			n = int64(-int32(n)) // the smallest stays as it is, as in PostgreSQL
		} else {
			n = max(chars(s)-n, 0)
		}
		return s[byteOffset(s, n):]
	}))
	pad := func(left bool) func(s string, n int64, fill string) (string, error) {
		return func(s string, n int64, fill string) (string, error) {
			if n > maxText/4 {
				return "", errTooLarge()
			}
			have := chars(s)
			if n <= have {
				return s[:byteOffset(s, max(n, 0))], nil
			}
			if fill == "" {
				return s, nil
			}
			f := []rune(fill)
			var b strings.Builder
			if !left {
				b.WriteString(s)
			}
			for i := range int(n - have) {
				b.WriteRune(f[i%len(f)])
			}
			if left {
				b.WriteString(s)
			}
			return b.String(), nil
		}
	}
	for _, p := range []struct {
		name string
		f    func(string, int64, string) (string, error)
	}{{"lpad", pad(true)}, {"rpad", pad(false)}} {
		r.def(p.name+"(text,int4,text) text", e3(p.f))
		r.def(p.name+"(text,int4) text", e2(func(s string, n int64) (string, error) { return p.f(s, n, " ") }))
	}
	r.def("repeat(text,int4) text", e2(func(s string, n int64) (string, error) {
		if n <= 0 || s == "" {
			return "", nil
		}
		if n > maxText/int64(len(s)) {
			return "", errTooLarge()
		}
		return strings.Repeat(s, int(n)), nil
	}))
	r.def("replace(text,text,text) text", f3(func(s, from, to string) string {
		if from == "" {
			return s
		}
		return strings.ReplaceAll(s, from, to)
	}))
	r.def("reverse(text) text", f1(func(s string) string {
		b := make([]byte, len(s))
		at := len(s)
		for i := 0; i < len(s); {
			_, n := utf8.DecodeRuneInString(s[i:])
			at -= n
			copy(b[at:], s[i:i+n])
			i += n
		}
		return string(b)
	}))
	r.def("split_part(text,text,int4) text", e3(splitPart))
	r.def("translate(text,text,text) text", f3(translate))
	r.def("ascii(text) int4", f1(func(s string) int64 {
		if s == "" {
			return 0
		}
		c, _ := utf8.DecodeRuneInString(s)
		return int64(c)
	}))
	r.def("chr(int4) text", e1(func(n int64) (string, error) {
		switch {
		case n < 0:
			return "", sqlerr.New(sqlerr.InvalidParameter, "character number must be positive")
		case n == 0:
			return "", sqlerr.New(sqlerr.ProgramLimit, "null character not permitted")
		case n > unicode.MaxRune || !utf8.ValidRune(rune(n)):
			if n > unicode.MaxRune {
				return "", sqlerr.New(sqlerr.ProgramLimit, "requested character too large for encoding: %d", n)
			}
			return "", sqlerr.New(sqlerr.ProgramLimit, "requested character not valid for encoding: %d", n)
		}
		return string(rune(n)), nil
	}))
	r.def("starts_with(text,text) bool", f2(strings.HasPrefix))
	r.def("^@(text,text) bool", f2(strings.HasPrefix))
	overlay := func(s, with string, from, n int64) (string, error) {
		if from <= 0 {
			return "", sqlerr.New("22011", "negative substring length not allowed")
		}
		if from+n > math.MaxInt32 {
			return "", errIntRange(32)
		}
		return s[:byteOffset(s, from-1)] + with + s[byteOffset(s, from+n-1):], nil
	}
	overlayBytes := func(s, with string, from, n int64) (string, error) {
		if from <= 0 {
			return "", sqlerr.New("22011", "negative substring length not allowed")
		}
		if from+n > math.MaxInt32 {
			return "", errIntRange(32)
		}
		size := int64(len(s))
		return s[:min(from-1, size)] + with + s[min(max(from+n-1, 0), size):], nil
	}
	r.def("overlay(bytea,bytea,int4,int4) bytea", lift4(func(_ *Ctx, s, with string, from, n int64) (string, error) {
		return overlayBytes(s, with, from, n)
	}))
	r.def("overlay(bytea,bytea,int4) bytea", e3(func(s, with string, from int64) (string, error) {
		return overlayBytes(s, with, from, int64(len(with)))
	}))
	r.def("overlay(text,text,int4,int4) text", lift4(func(_ *Ctx, s, with string, from, n int64) (string, error) {
		return overlay(s, with, from, n)
	}))
	r.def("overlay(text,text,int4) text", e3(func(s, with string, from int64) (string, error) {
		return overlay(s, with, from, chars(with))
	}))
	r.def("quote_ident(text) text", f1(quoteIdent))
	r.def("quote_literal(text) text", f1(quoteWithEscape))
	r.def("quote_literal(anyelement) text stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		s, err := textOf(ctx, ts[0], a[0])
		return types.NewString(quoteWithEscape(s)), err
	}))
	nullable := typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.NewString("NULL"), nil
		}
		s, err := textOf(ctx, ts[0], a[0])
		return types.NewString(quoteWithEscape(s)), err
	})
	r.defs(nullable, "quote_nullable(text) text lax", "quote_nullable(anyelement) text lax stable")
	r.def("parse_ident(text) text[]", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) { return parseIdent(a[0].Str(), true) }))
	r.def("parse_ident(text,bool) text[]", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		return parseIdent(a[0].Str(), a[1].Bool())
	}))

	// concat takes anything, skips NULLs, and writes values in their output form.
	r.def("concat(variadic any) text lax stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		s, err := concat(ctx, "", ts, a)
		return types.NewString(s), err
	}))
	r.def("concat_ws(text,variadic any) text lax stable", typed(func(ctx *Ctx, ts []types.Type, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Datum{}, nil
		}
		s, err := concat(ctx, a[0].Str(), ts[1:], a[1:])
		return types.NewString(s), err
	}))
	r.def("format(text) text lax stable", typed(formatFunc))
	r.def("format(text,variadic any) text lax stable", typed(formatFunc))

	hexOf := func(b []byte) string { return hex.EncodeToString(b) }
	r.defs(f1(func(s string) string { h := md5.Sum([]byte(s)); return hexOf(h[:]) }), "md5(text) text", "md5(bytea) text")
	r.def("sha1(bytea) bytea", f1(func(s string) string { h := sha1.Sum([]byte(s)); return string(h[:]) }))
	r.def("sha224(bytea) bytea", f1(func(s string) string { h := sha256.Sum224([]byte(s)); return string(h[:]) }))
	r.def("sha256(bytea) bytea", f1(func(s string) string { h := sha256.Sum256([]byte(s)); return string(h[:]) }))
	r.def("sha384(bytea) bytea", f1(func(s string) string { h := sha512.Sum384([]byte(s)); return string(h[:]) }))
	r.def("sha512(bytea) bytea", f1(func(s string) string { h := sha512.Sum512([]byte(s)); return string(h[:]) }))
	r.def("crc32(bytea) int8", f1(func(s string) int64 { return int64(crc32.ChecksumIEEE([]byte(s))) }))
	r.def("crc32c(bytea) int8", f1(func(s string) int64 {
		return int64(crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)))
	}))
	r.def("encode(bytea,text) text", e2(encode))
	r.def("decode(text,text) bytea", e2(decode))
	r.def("convert_from(bytea,name) text", e2(func(s, enc string) (string, error) {
		if !isUTF8(enc) {
			return "", sqlerr.Unsupported("encoding \"%s\"", enc)
		}
		if !utf8.ValidString(s) {
			return "", sqlerr.New("22021", "invalid byte sequence for encoding \"UTF8\"")
		}
		return s, nil
	}))
	r.def("convert_to(text,name) bytea", e2(func(s, enc string) (string, error) {
		if !isUTF8(enc) {
			return "", sqlerr.Unsupported("encoding \"%s\"", enc)
		}
		return s, nil
	}))
	r.def("get_byte(bytea,int4) int4", e2(func(s string, i int64) (int64, error) {
		if i < 0 || i >= int64(len(s)) {
			return 0, errIndex(i, int64(len(s)))
		}
		return int64(s[i]), nil
	}))
	r.def("set_byte(bytea,int4,int4) bytea", e3(func(s string, i, v int64) (string, error) {
		if i < 0 || i >= int64(len(s)) {
			return "", errIndex(i, int64(len(s)))
		}
		b := []byte(s)
		b[i] = byte(v)
		return string(b), nil
	}))
	r.def("get_bit(bytea,int8) int4", e2(func(s string, i int64) (int64, error) {
		if i < 0 || i >= 8*int64(len(s)) {
			return 0, errIndex(i, 8*int64(len(s)))
		}
		return int64(s[i/8] >> (i % 8) & 1), nil
	}))
	r.def("set_bit(bytea,int8,int4) bytea", e3(func(s string, i, v int64) (string, error) {
		if i < 0 || i >= 8*int64(len(s)) {
			return "", errIndex(i, 8*int64(len(s)))
		}
		if v != 0 && v != 1 {
			return "", sqlerr.New(sqlerr.InvalidParameter, "new bit must be 0 or 1")
		}
		b := []byte(s)
		b[i/8] = b[i/8]&^(1<<(i%8)) | byte(v)<<(i%8)
		return string(b), nil
	}))
	r.def("bit_count(bytea) int8", f1(func(s string) int64 {
		n := 0
		for i := range len(s) {
			n += bits.OnesCount8(s[i])
		}
		return int64(n)
	}))
	r.def("unistr(text) text", e1(unistr))
	r.def("textlen(text) int4", f1(chars))
	r.def("reverse(bytea) bytea", f1(func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}))
	r.def("secure_compare(text,text) bool", f2(func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }))
	r.def("hmac(text,bytea,text) bytea", e3(func(key, data, how string) (string, error) { return hmacOf(data, key, how) }))
	r.def("hmac(bytea,bytea,text) bytea", e3(func(data, key, how string) (string, error) { return hmacOf(data, key, how) }))
	for _, name := range []string{"encrypt", "decrypt"} {
		r.def(name+"(bytea,bytea,text) bytea", e3(func(data, key, how string) (string, error) { return crypt(data, key, how, name == "encrypt") }))
	}
	r.def("to_ascii(text) text", e1(func(string) (string, error) {
		return "", sqlerr.New(sqlerr.NotSupported, "encoding conversion from UTF8 to ASCII not supported")
	}))
	r.def("inet_aton(text) int8", e1(inetAton))
	r.def("inet_ntoa(int8) text", e1(inetNtoa))
	r.def("gen_random_uuid() uuid volatile", boxed(func(ctx *Ctx, _ []types.Datum) (types.Datum, error) {
		var b []byte
		for range 2 {
			v, err := ctx.random()
			if err != nil {
				return types.Datum{}, err
			}
			for k := range 8 {
				b = append(b, byte(v>>(8*k)))
			}
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return types.NewString(string(b)), nil
	}))
}

func errIndex(i, n int64) error {
	return sqlerr.New("2202E", "index %d out of valid range, 0..%d", i, n-1)
}

func isUTF8(enc string) bool {
	e := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(enc))
	return e == "utf8" || e == "unicode"
}

func initcap(s string) string {
	word := false
	return strings.Map(func(c rune) rune {
		out := unicode.ToUpper(c)
		if word {
			out = unicode.ToLower(c)
		}
		word = unicode.IsLetter(c) || unicode.IsDigit(c)
		return out
	}, s)
}

func substring(s string, from, n int64) (string, error) {
	if n < 0 {
		return "", sqlerr.New("22011", "negative substring length not allowed")
	}
	end := min(from+n-1, math.MaxInt32)
	i := byteOffset(s, from-1)
	j := byteOffset(s, end)
	return s[i:max(i, j)], nil
}

func strpos(s, sub string) int64 {
	i := strings.Index(s, sub)
	if i < 0 {
		return 0
	}
	return chars(s[:i]) + 1
}

func splitPart(s, sep string, n int64) (string, error) {
	if n == 0 {
		return "", sqlerr.New(sqlerr.InvalidParameter, "field position must not be zero")
	}
	if sep == "" {
		if n == 1 || n == -1 {
			return s, nil
		}
		return "", nil
	}
	if n < 0 {
		parts := strings.Split(s, sep)
		if -n > int64(len(parts)) {
			return "", nil
		}
		return parts[int64(len(parts))+n], nil
	}
	for ; n > 1; n-- {
		i := strings.Index(s, sep)
		if i < 0 {
			return "", nil
		}
		s = s[i+len(sep):]
	}
	out, _, _ := strings.Cut(s, sep)
	return out, nil
}

func translate(s, from, to string) string {
	f, t := []rune(from), []rune(to)
	return strings.Map(func(c rune) rune {
		for i, x := range f {
			if x == c {
				if i < len(t) {
					return t[i]
				}
				return -1
			}
		}
		return c
	}, s)
}

func concat(ctx *Ctx, sep string, ts []types.Type, a []types.Datum) (string, error) {
	var b strings.Builder
	first := true
	for i, d := range a {
		if d.IsNull() {
			continue
		}
		if !first {
			b.WriteString(sep)
		}
		first = false
		s, err := output(ctx, ts[i], d)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func parseIdent(s string, strict bool) (types.Datum, error) {
	bad := func(detail string) (types.Datum, error) {
		e := sqlerr.New(sqlerr.InvalidParameter, "string is not a valid identifier: \"%s\"", s)
		if detail != "" {
			e = e.WithDetail("%s", detail)
		}
		return types.Datum{}, e
	}
	var parts []string
	rest := strings.TrimLeft(s, " \t\n\r\f")
	after := false
	for {
		switch {
		case strings.HasPrefix(rest, `"`):
			var b strings.Builder
			i := 1
			for ; ; i++ {
				if i >= len(rest) {
					return bad("String has unclosed double quotes.")
				}
				if rest[i] == '"' {
					if i+1 < len(rest) && rest[i+1] == '"' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(rest[i])
			}
			if b.Len() == 0 {
				return bad("Quoted identifier must not be empty.")
			}
			parts, rest = append(parts, b.String()), rest[i+1:]
		default:
			i := 0
			for i < len(rest) && (rest[i] == '_' || rest[i] >= 0x80 || rest[i] >= 'a' && rest[i] <= 'z' || rest[i] >= 'A' && rest[i] <= 'Z' ||
				i > 0 && (rest[i] == '$' || rest[i] >= '0' && rest[i] <= '9')) {
				i++
			}
			if i == 0 {
				switch {
				case strings.HasPrefix(rest, "."):
					return bad("No valid identifier before \".\".")
				case after:
					return bad("No valid identifier after \".\".")
				}
				return bad("")
			}
			parts, rest = append(parts, strings.ToLower(rest[:i])), rest[i:]
		}
		rest = strings.TrimLeft(rest, " \t\n\r\f")
		if !strings.HasPrefix(rest, ".") {
			break
		}
		rest, after = strings.TrimLeft(rest[1:], " \t\n\r\f"), true
	}
	if rest != "" && strict {
		return bad("")
	}
	return textList(parts), nil
}

// unistr reads \XXXX, \uXXXX, \+XXXXXX and \UXXXXXXXX as characters, and \\ as a backslash.
func unistr(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	high := rune(0) // the first half of a surrogate pair
	for i := 0; i < len(s); {
		if s[i] != '\\' || strings.HasPrefix(s[i:], `\\`) {
			if high != 0 {
				return "", sqlerr.New(sqlerr.Syntax, "invalid Unicode surrogate pair")
			}
			b.WriteByte(s[i])
			if s[i] == '\\' {
				i++
			}
			i++
			continue
		}
		from, digits := i+1, 4
		if from < len(s) {
			switch s[from] {
			case 'u':
				from++
			case 'U':
				from, digits = from+1, 8
			case '+':
				from, digits = from+1, 6
			}
		}
		c := rune(0)
		ok := from+digits <= len(s)
		for k := from; ok && k < from+digits; k++ {
			d := strings.IndexByte("0123456789abcdef", s[k]|0x20)
			if s[k] >= '0' && s[k] <= '9' {
				d = int(s[k] - '0')
			}
			ok = d >= 0
			c = c<<4 | rune(d)
		}
		if !ok {
			return "", sqlerr.New(sqlerr.Syntax, "invalid Unicode escape").
				WithHint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
		}
		i = from + digits
		switch {
		case c <= 0 || c > unicode.MaxRune:
			return "", sqlerr.New(sqlerr.InvalidParameter, "invalid Unicode code point: %04X", c)
		case (high != 0) != (c >= 0xdc00 && c < 0xe000):
			return "", sqlerr.New(sqlerr.Syntax, "invalid Unicode surrogate pair")
		case high != 0:
			c, high = 0x10000+(high-0xd800)<<10+(c-0xdc00), 0
		case c >= 0xd800 && c < 0xdc00:
			high = c
			continue
		}
		b.WriteRune(c)
	}
	if high != 0 {
		return "", sqlerr.New(sqlerr.Syntax, "invalid Unicode surrogate pair")
	}
	return b.String(), nil
}
