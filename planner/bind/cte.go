package bind

import (
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// A cte is a query of a WITH clause. It is bound anew at each reference, which
// puts it in place of its name; MATERIALIZED changes nothing.
type cte struct {
	def   *ast.CommonTableExpr
	outer *cte   // what its own query may name
	stop  *scope // the rows its query may refer to: those around the statement it belongs to
	used  bool
	// self: stands for itself or a later one while a query of WITH RECURSIVE is bound.
	self bool
}

// with adds the queries of a WITH clause to the names.
func (b *binder) with(w *ast.WithClause, parent *scope, outer *cte) (*cte, error) {
	if w == nil {
		return outer, nil
	}
	env := outer
	seen := map[string]bool{}
	for i, n := range w.Ctes {
		def := n.GetCommonTableExpr()
		pos := int(def.Location)
		if seen[def.Ctename] {
			return nil, sqlerr.New("42712", `WITH query name "%s" specified more than once`, def.Ctename).At(pos)
		}
		seen[def.Ctename] = true
		if def.Ctequery.GetSelectStmt() == nil {
			return nil, sqlerr.Unsupported("a data-modifying statement in WITH").At(pos)
		}
		if def.SearchClause != nil || def.CycleClause != nil {
			return nil, sqlerr.Unsupported("a SEARCH or CYCLE clause").At(pos)
		}
		if w.Recursive { // markers for itself and those after it, behind its own entry
			for _, later := range w.Ctes[i:] {
				env = &cte{def: later.GetCommonTableExpr(), outer: env, self: true}
			}
		}
		env = &cte{def: def, outer: env, stop: parent}
	}
	return env, nil
}

// checkUnused binds the queries of a WITH clause that nothing refers to, for their errors.
func (b *binder) checkUnused(inner, outer *cte) error {
	for c := inner; c != outer; c = c.outer {
		if c.used || c.self {
			continue
		}
		if _, err := b.selectStmt(c.def.Ctequery.GetSelectStmt(), c.stop, c.outer, false); err != nil {
			return err
		}
	}
	return nil
}

// cteRef puts a WITH query in place of its name.
func (b *binder) cteRef(c *cte, n *ast.RangeVar, in names) (*from, error) {
	if c.self {
		return nil, sqlerr.Unsupported("WITH RECURSIVE").At(int(n.Location))
	}
	c.used = true
	r, err := b.selectStmt(c.def.Ctequery.GetSelectStmt(), blindTo(in.lat, c.stop), c.outer, false)
	if err != nil {
		return nil, err
	}
	cols := strs(c.def.Aliascolnames)
	if len(cols) > len(r.cols) {
		return nil, sqlerr.New("42P10", `WITH query "%s" has %d columns available but %d columns specified`, c.def.Ctename, len(r.cols), len(cols)).
			At(int(c.def.Location))
	}
	for i, name := range cols {
		r.cols[i].name = name
	}
	alias := n.Alias
	if alias == nil {
		alias = &ast.Alias{Aliasname: n.Relname}
	}
	return b.derived(r, alias)
}
