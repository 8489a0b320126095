package expr

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"streamdb/sql/sqlerr"
)

func errEncoding(name string) error {
	return sqlerr.New(sqlerr.InvalidParameter, "unrecognized encoding: \"%s\"", name)
}

func encode(s, format string) (string, error) {
	switch strings.ToLower(format) {
	case "hex":
		return hex.EncodeToString([]byte(s)), nil
	case "base64": // in lines of 76 characters
		t := base64.StdEncoding.EncodeToString([]byte(s))
		var b strings.Builder
		for len(t) > 76 {
			b.WriteString(t[:76] + "\n")
			t = t[76:]
		}
		b.WriteString(t)
		return b.String(), nil
	case "escape":
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c == '\\':
				b.WriteString(`\\`)
			case c == 0 || c >= 0x80:
				b.WriteString(`\` + string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7}))
			default:
				b.WriteByte(c)
			}
		}
		return b.String(), nil
	}
	return "", errEncoding(format)
}

func decode(s, format string) (string, error) {
	switch strings.ToLower(format) {
	case "hex":
		clean := strings.Map(func(c rune) rune {
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				return -1
			}
			return c
		}, s)
		for _, c := range clean {
			if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
				return "", sqlerr.New(sqlerr.InvalidParameter, "invalid hexadecimal digit: \"%c\"", c)
			}
		}
		if len(clean)%2 != 0 {
			return "", sqlerr.New(sqlerr.InvalidParameter, "invalid hexadecimal data: odd number of digits")
		}
		b, err := hex.DecodeString(clean)
		return string(b), err
	case "base64":
		clean := strings.Map(func(c rune) rune {
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				return -1
			}
			return c
		}, s)
		for _, c := range clean {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=') {
				return "", sqlerr.New(sqlerr.InvalidParameter, "invalid symbol \"%c\" found while decoding base64 sequence", c)
			}
		}
		b, err := base64.StdEncoding.DecodeString(clean)
		if err != nil {
			return "", sqlerr.New(sqlerr.InvalidParameter, "invalid base64 end sequence").
				WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
		}
		return string(b), nil
	case "escape":
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] != '\\' {
				b.WriteByte(s[i])
				continue
			}
			octal := func(k int, max byte) bool { return i+k < len(s) && s[i+k] >= '0' && s[i+k] <= max }
			switch {
			case i+1 < len(s) && s[i+1] == '\\':
				b.WriteByte('\\')
				i++
			case octal(1, '3') && octal(2, '7') && octal(3, '7'):
				b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
				i += 3
			default:
				return "", sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type %s", "bytea")
			}
		}
		return b.String(), nil
	}
	return "", errEncoding(format)
}
