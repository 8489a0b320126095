package expr

import (
	_ "embed"
	"strings"
	"sync"
)

// keywordText has PostgreSQL's key words: word, category (U, C, T or R) and
// whether it may be a label without AS.
//
//go:embed keywords.txt
var keywordText string

type keyword struct {
	word     string
	category byte
	bare     bool
}

var keywords = sync.OnceValue(func() []keyword {
	var out []keyword
	for line := range strings.Lines(keywordText) {
		if f := strings.Fields(line); len(f) == 3 {
			out = append(out, keyword{f[0], f[1][0], f[2] == "t"})
		}
	}
	return out
})

var keywordCategory = sync.OnceValue(func() map[string]byte {
	m := map[string]byte{}
	for _, k := range keywords() {
		m[k.word] = k.category
	}
	return m
})

// reserved reports whether a name must be quoted because it is a key word.
func reserved(s string) bool {
	c, ok := keywordCategory()[s]
	return ok && c != 'U'
}
