package parser

import (
	"slices"
	"strings"
)

// A KeywordCategory says where PostgreSQL takes a keyword for a name.
type KeywordCategory byte

const (
	Unreserved   KeywordCategory = 'U' // any name
	ColName      KeywordCategory = 'C' // any name but a function's or a type's
	TypeFuncName KeywordCategory = 'T' // a function's or a type's name only
	Reserved     KeywordCategory = 'R' // no name
)

// A Keyword is one row of pg_get_keywords.
type Keyword struct {
	Word     string
	Category KeywordCategory
	Bare     bool // may be a column's label without AS
}

// Keywords returns PostgreSQL's keywords, sorted.
func Keywords() []Keyword { return slices.Clone(keywords[:]) }

// keyword finds a word in lower case.
func keyword(w string) (Keyword, bool) {
	i, ok := slices.BinarySearchFunc(keywords[:], w, func(k Keyword, w string) int { return strings.Compare(k.Word, w) })
	if !ok {
		return Keyword{}, false
	}
	return keywords[i], true
}

// QuoteIdent writes a name as it must stand in SQL text, as PostgreSQL's quote_ident: quoted only where it must be.
func QuoteIdent(name string) string {
	plain := name != ""
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || c == '_' || i > 0 && isDigit(c)) {
			plain = false
			break
		}
	}
	if plain {
		if k, ok := keyword(name); !ok || k.Category == Unreserved {
			return name
		}
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteLiteral writes a string as PostgreSQL's quote_literal does.
func QuoteLiteral(s string) string {
	q := `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}
