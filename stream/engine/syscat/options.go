package syscat

import (
	"strings"

	"streamdb/sql/catalog"
	"streamdb/sql/parser"
	"streamdb/sql/types"
)

// secretWords mark options whose values are not shown.
var secretWords = [...]string{"password", "secret", "token", "private", "credential", "access.key", "access_key", "api.key", "apikey", "jaas"}

const masked = "********"

// options are a WITH clause as PostgreSQL keeps options: name=value, with secrets masked.
func options(with []catalog.Option) types.Datum {
	out := make([]string, len(with))
	for i, o := range with {
		out[i] = o.Name + "=" + optionValue(o)
	}
	return texts(types.Text, out)
}

// Mask returns text, a statement that defines r, with the secrets of its WITH options masked.
func Mask(r *catalog.Relation, text string) string {
	for _, o := range r.With {
		if shown := optionValue(o); shown != o.Value && o.Value != "" {
			text = strings.ReplaceAll(text, parser.QuoteLiteral(o.Value), parser.QuoteLiteral(shown))
		}
	}
	return text
}

// optionValue is the value of an option as it may be shown.
func optionValue(o catalog.Option) string {
	name := strings.ToLower(o.Name)
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return masked
		}
	}
	// A URL may carry a password: scheme://user:password@host.
	if scheme := strings.Index(o.Value, "://"); scheme >= 0 {
		rest := o.Value[scheme+3:]
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			if colon := strings.IndexByte(rest[:at], ':'); colon >= 0 {
				return o.Value[:scheme+3] + rest[:colon+1] + masked + rest[at:]
			}
		}
	}
	return o.Value
}
