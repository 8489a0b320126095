package bind

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// A cte is a query of a WITH clause. It is bound once, where WITH stands, and every
// reference has the same plan node, so that whoever runs the plan may compute it once.
// MATERIALIZED changes nothing.
type cte struct {
	name  string
	outer *cte    // what else may be named
	stop  *scope  // the rows its query may refer to: those around the statement it belongs to
	res   *result // its columns have the names that references see; nil: see later
	// later: it comes after the query that is being bound, which cannot name it; kept for the error.
	later bool
	// work: it is the recursive query whose step is being bound.
	work *plan.WorkTable
}

// with binds the queries of a WITH clause and adds them to the names.
func (b *binder) with(w *ast.WithClause, parent *scope, outer *cte) (*cte, error) {
	if w == nil {
		return outer, nil
	}
	defs := make([]*ast.CommonTableExpr, len(w.Ctes))
	for i, n := range w.Ctes {
		def := n.GetCommonTableExpr()
		pos := int(def.Location)
		if slices.ContainsFunc(defs[:i], func(o *ast.CommonTableExpr) bool { return o.Ctename == def.Ctename }) {
			return nil, sqlerr.New("42712", `WITH query name "%s" specified more than once`, def.Ctename).At(pos)
		}
		defs[i] = def
	}
	recursive := make([]bool, len(defs))
	if w.Recursive {
		var err error
		if defs, recursive, err = dependencyOrder(defs); err != nil {
			return nil, err
		}
	}
	env := outer
	for i, def := range defs {
		pos := int(def.Location)
		switch {
		case def.Ctequery.GetSelectStmt() == nil:
			return nil, sqlerr.Unsupported("a data-modifying statement in WITH").At(pos)
		case def.SearchClause != nil || def.CycleClause != nil:
			return nil, sqlerr.Unsupported("a SEARCH or CYCLE clause").At(pos)
		}
		sees := env
		if !w.Recursive {
			for _, later := range defs[i:] {
				sees = &cte{name: later.Ctename, outer: sees, later: true}
			}
		}
		var r *result
		var err error
		if recursive[i] {
			r, err = b.recursive(def, parent, sees)
		} else if r, err = b.selectStmt(def.Ctequery.GetSelectStmt(), parent, sees, false); err == nil {
			err = nameColumns(r, def)
		}
		if err != nil {
			return nil, err
		}
		env = &cte{name: def.Ctename, outer: env, stop: parent, res: r}
	}
	return env, nil
}

// nameColumns gives a WITH query's columns the names it was declared with.
func nameColumns(r *result, def *ast.CommonTableExpr) error {
	cols := strs(def.Aliascolnames)
	if len(cols) > len(r.cols) {
		return sqlerr.New("42P10", `WITH query "%s" has %d columns available but %d columns specified`, def.Ctename, len(r.cols), len(cols)).
			At(int(def.Location))
	}
	r.cols = slices.Clone(r.cols)
	for i, name := range cols {
		r.cols[i].name = name
	}
	return nil
}

// cteRef puts a WITH query in place of its name.
func (b *binder) cteRef(c *cte, n *ast.RangeVar, in names) (*from, error) {
	alias := n.Alias
	if alias == nil {
		alias = &ast.Alias{Aliasname: n.Relname}
	}
	if c.work != nil {
		f, err := b.derived(&result{node: c.work, cols: c.res.cols}, alias)
		if err == nil {
			f.tables[0].work = true
		}
		return f, err
	}
	// The query's references to rows outside count from where WITH stands.
	depth := 0
	for s := in.lat; s != c.stop && s != nil; s = s.parent {
		depth++
	}
	node := c.res.node
	if depth > 0 {
		node = shiftOuter(node, 0, depth)
	}
	return b.derived(&result{node: node, cols: c.res.cols}, alias)
}
