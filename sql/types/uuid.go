package types

import "strings"

// parseUUID reads a uuid into its 16 bytes: 32 hex digits, hyphens after any group of four, braces around.
func parseUUID(s string) (string, error) {
	t := s
	if strings.HasPrefix(t, "{") && strings.HasSuffix(t, "}") {
		t = t[1 : len(t)-1]
	}
	out := make([]byte, 0, 16)
	for i := 0; i < len(t); {
		if i+1 >= len(t) {
			return "", errSyntax("uuid", s)
		}
		hi, lo := hexValue(t[i]), hexValue(t[i+1])
		if hi < 0 || lo < 0 || len(out) == 16 {
			return "", errSyntax("uuid", s)
		}
		out = append(out, byte(hi<<4|lo))
		if i += 2; i < len(t)-1 && t[i] == '-' && len(out)%2 == 0 && len(out) < 16 {
			i++
		}
	}
	if len(out) != 16 {
		return "", errSyntax("uuid", s)
	}
	return string(out), nil
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func appendUUID(dst []byte, v string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(v) {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[v[i]>>4], digits[v[i]&15])
	}
	return dst
}
