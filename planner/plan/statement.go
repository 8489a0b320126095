package plan

import (
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
)

// A Statement is a bound DML statement or query, ready to be planned and run.
type Statement interface{ statement() }

type (
	// Query is a bound SELECT, VALUES or RETURNING-free query.
	Query struct {
		Root   Node
		Names  []string // result column names
		Origin []Origin // of each result column
	}

	// Insert writes Source's rows; Source's columns are all columns of Table in order
	// (defaults and generated columns filled in, hidden _row_id NULL).
	Insert struct {
		Table    *catalog.Relation
		Source   Node
		Conflict catalog.Conflict // the table's, or the statement's ON CONFLICT DO NOTHING (ConflictIgnore)
		// Upsert: ON CONFLICT (key) DO UPDATE SET. UpdateExprs over existing row ++ excluded row, one for each
		// table column; nil: not an upsert. UpdateWhere over the same; nil: always.
		UpdateExprs []expr.Expr
		UpdateWhere expr.Expr
		Checks      []expr.Expr // over a table row; must not be false
		Returning   *Returning
	}

	// Update changes the rows of Source: its columns are all columns of the table (the old row), then the new values of all columns.
	Update struct {
		Table     *catalog.Relation
		Source    Node
		Checks    []expr.Expr
		Returning *Returning
	}

	// Delete removes the rows of Source: all columns of the table.
	Delete struct {
		Table     *catalog.Relation
		Source    Node
		Returning *Returning
	}
)

// A Returning projects each affected row of the table.
type Returning struct {
	Exprs  []expr.Expr // over the table's columns (the new row of UPDATE)
	Names  []string
	Origin []Origin
}

// An Origin says which table column a result column is; zeros: none.
type Origin struct {
	Rel catalog.ID
	Col int // from 1
}

func (*Query) statement()  {}
func (*Insert) statement() {}
func (*Update) statement() {}
func (*Delete) statement() {}
