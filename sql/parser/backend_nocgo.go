//go:build !cgo

package parser

import (
	"errors"

	pg_query "github.com/wasilibs/go-pgquery"
	pgparser "github.com/wasilibs/go-pgquery/parser"

	"streamdb/sql/parser/ast"
)

// grammar parses text by PostgreSQL's grammar, run as WebAssembly. The second result is what PostgreSQL said against the text, nil if nothing.
func grammar(text string) (*ast.ParseResult, *complaint) {
	r, err := pg_query.Parse(text)
	if err != nil {
		var e *pgparser.Error
		if errors.As(err, &e) {
			return nil, &complaint{e.Message, e.Cursorpos}
		}
		return nil, &complaint{err.Error(), 0}
	}
	return r, nil
}

// deparse writes a tree as SQL.
func deparse(r *ast.ParseResult) (string, error) { return pg_query.Deparse(r) }
