package bind

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"streamdb/planner/plan"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

const invalidRecursion = "42P19"

// recursive binds base UNION [ALL] step, whose step refers to the query itself once.
func (b *binder) recursive(def *ast.CommonTableExpr, parent *scope, ctes *cte) (*result, error) {
	pos := int(def.Location)
	if err := wellFormed(def); err != nil {
		return nil, err
	}
	if b.o.Streaming {
		return nil, sqlerr.Unsupported("WITH RECURSIVE in a streaming query").At(pos)
	}
	s := def.Ctequery.GetSelectStmt()
	ctes, err := b.with(s.WithClause, parent, ctes)
	if err != nil {
		return nil, err
	}
	base, err := b.selectStmt(s.Larg, parent, ctes, false)
	if err != nil {
		return nil, err
	}
	*b.works++
	out := &plan.Recursive{ID: *b.works, Base: base.node, All: s.All}
	for _, c := range base.cols {
		out.Out = append(out.Out, types.Field{Name: c.name, Type: c.typ})
	}
	self := &result{node: out, cols: base.cols}
	if err := nameColumns(self, def); err != nil {
		return nil, err
	}
	for i, c := range self.cols {
		self.cols[i].origin, self.cols[i].lit = plan.Origin{}, nil
		out.Out[i].Name = c.name
	}
	work := &cte{name: def.Ctename, outer: ctes, res: self, work: &plan.WorkTable{ID: out.ID, Out: out.Out}}
	step, err := b.selectStmt(s.Rarg, parent, work, true)
	if err != nil {
		return nil, err
	}
	want, err := b.setTypes("UNION", base, step, !s.All)
	if err != nil {
		return nil, err
	}
	for i, t := range want {
		if have := out.Out[i].Type; !have.Equal(t) || have.Mod != t.Mod {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, `recursive query "%s" column %d has type %s in non-recursive term but type %s overall`,
				def.Ctename, i+1, types.FormatType(have), types.FormatType(t)).At(base.cols[i].pos).
				WithHint("Cast the output of the non-recursive term to the correct type.")
		}
	}
	if err := b.retype(step, want, implicit, nil); err != nil {
		return nil, err
	}
	out.Step = step.node
	return self, nil
}

// setTypes are the types of a set operation's columns. equality: they are compared.
func (b *binder) setTypes(name string, l, r *result, equality bool) ([]types.Type, error) {
	if len(l.cols) != len(r.cols) {
		pos := -1
		if len(r.cols) > 0 {
			pos = r.cols[0].pos
		}
		return nil, sqlerr.New(sqlerr.Syntax, "each %s query must have the same number of columns", name).At(pos)
	}
	want := make([]types.Type, len(l.cols))
	for i := range want {
		lt, rt := l.cols[i].untyped(), r.cols[i].untyped()
		t, err := expr.CommonType([]types.Type{lt, rt})
		if err != nil {
			return nil, sqlerr.New(sqlerr.DatatypeMismatch, "%s types %s and %s cannot be matched", name,
				types.FormatType(lt), types.FormatType(rt)).At(r.cols[i].pos)
		}
		t.Mod = 0
		if lt.Equal(t) && rt.Equal(t) && lt.Mod == rt.Mod {
			t.Mod = lt.Mod
		}
		if equality && sortable(t, -1) != nil {
			return nil, sqlerr.New(sqlerr.UndefinedFunction, "could not identify an equality operator for type %s", types.FormatType(t)).At(r.cols[i].pos)
		}
		want[i] = t
	}
	return want, nil
}

// What a reference to a recursive query stands in.
type recursion uint8

const (
	anywhere recursion = iota
	inBase
	inSubquery
	inOuterJoin
	inIntersect
	inExcept
)

func (r recursion) String() string {
	return [...]string{"anywhere", "its non-recursive term", "a subquery", "an outer join", "INTERSECT", "EXCEPT"}[r]
}

// A refWalker finds the unqualified names of relations in a tree that no WITH inside the tree takes.
type refWalker struct {
	where  recursion
	hidden []string
	ref    func(n *ast.RangeVar, where recursion) error
}

// dependencyOrder sorts the queries of WITH RECURSIVE so that each comes after those
// it refers to, and says which refer to themselves.
func dependencyOrder(defs []*ast.CommonTableExpr) ([]*ast.CommonTableExpr, []bool, error) {
	uses := make([][]bool, len(defs))
	for i, def := range defs {
		uses[i] = make([]bool, len(defs))
		w := &refWalker{ref: func(n *ast.RangeVar, _ recursion) error {
			if k := slices.IndexFunc(defs, func(o *ast.CommonTableExpr) bool { return o.Ctename == n.Relname }); k >= 0 {
				uses[i][k] = true
			}
			return nil
		}}
		if err := w.node(def.Ctequery); err != nil {
			return nil, nil, err
		}
	}
	var out []*ast.CommonTableExpr
	var self []bool
	done := make([]bool, len(defs))
	for len(out) < len(defs) {
		first, next := -1, -1
		for i := range defs {
			if done[i] {
				continue
			}
			if first < 0 {
				first = i
			}
			waits := false
			for k, is := range uses[i] {
				waits = waits || is && k != i && !done[k]
			}
			if !waits {
				next = i
				break
			}
		}
		if next < 0 {
			return nil, nil, sqlerr.New(sqlerr.NotSupported, "mutual recursion between WITH items is not implemented").At(int(defs[first].Location))
		}
		done[next] = true
		out, self = append(out, defs[next]), append(self, uses[next][next])
	}
	return out, self, nil
}

// wellFormed checks that a recursive query has the form and its reference to itself the place that PostgreSQL wants.
func wellFormed(def *ast.CommonTableExpr) error {
	pos := int(def.Location)
	s := def.Ctequery.GetSelectStmt()
	if s == nil {
		return sqlerr.New(invalidRecursion, `recursive query "%s" must not contain data-modifying statements`, def.Ctename).At(pos)
	}
	if s.Op != ast.SetOperation_SETOP_UNION {
		return sqlerr.New(invalidRecursion, `recursive query "%s" does not have the form non-recursive-term UNION [ALL] recursive-term`, def.Ctename).At(pos)
	}
	count := 0
	w := &refWalker{ref: func(n *ast.RangeVar, where recursion) error {
		if n.Relname != def.Ctename {
			return nil
		}
		if where != anywhere {
			return sqlerr.New(invalidRecursion, `recursive reference to query "%s" must not appear within %s`, def.Ctename, where).At(int(n.Location))
		}
		if count++; count > 1 {
			return sqlerr.New(invalidRecursion, `recursive reference to query "%s" must not appear more than once`, def.Ctename).At(int(n.Location))
		}
		return nil
	}}
	w.where = inSubquery
	for _, n := range s.WithClause.GetCtes() {
		if err := w.node(n.GetCommonTableExpr().Ctequery); err != nil {
			return err
		}
	}
	for _, n := range s.WithClause.GetCtes() {
		w.hidden = append(w.hidden, n.GetCommonTableExpr().Ctename)
	}
	w.where = inBase
	if err := w.selectStmt(s.Larg); err != nil {
		return err
	}
	w.where = anywhere
	if err := w.selectStmt(s.Rarg); err != nil {
		return err
	}
	for _, c := range []struct {
		is   bool
		what string
		pos  int
	}{
		{len(s.SortClause) > 0, "ORDER BY", firstLocation(s.SortClause)},
		{s.LimitOffset != nil, "OFFSET", location(s.LimitOffset)},
		{s.LimitCount != nil, "LIMIT", location(s.LimitCount)},
		{len(s.LockingClause) > 0, "FOR UPDATE/SHARE", -1},
	} {
		if c.is {
			return sqlerr.New(sqlerr.NotSupported, "%s in a recursive query is not implemented", c.what).At(c.pos)
		}
	}
	return nil
}

func firstLocation(list []*ast.Node) int {
	if len(list) == 0 {
		return -1
	}
	return location(list[0])
}

func (w *refWalker) node(n *ast.Node) error {
	if n == nil {
		return nil
	}
	return w.message(n.ProtoReflect())
}

// in walks a node that stands in something.
func (w *refWalker) in(where recursion, n *ast.Node) error {
	was := w.where
	if was == anywhere {
		w.where = where
	}
	err := w.node(n)
	w.where = was
	return err
}

// message walks a node of the tree; those that change what a name means, or where it stands, have a case.
func (w *refWalker) message(m protoreflect.Message) error {
	switch x := m.Interface().(type) {
	case *ast.RangeVar:
		if x.Schemaname == "" && !slices.Contains(w.hidden, x.Relname) {
			return w.ref(x, w.where)
		}
		return nil
	case *ast.SelectStmt:
		return w.selectStmt(x)
	case *ast.JoinExpr:
		left, right := anywhere, anywhere
		switch x.Jointype {
		case ast.JoinType_JOIN_LEFT:
			right = inOuterJoin
		case ast.JoinType_JOIN_RIGHT:
			left = inOuterJoin
		case ast.JoinType_JOIN_FULL:
			left, right = inOuterJoin, inOuterJoin
		}
		if err := w.in(left, x.Larg); err != nil {
			return err
		}
		if err := w.in(right, x.Rarg); err != nil {
			return err
		}
		return w.node(x.Quals)
	case *ast.SubLink:
		if err := w.in(inSubquery, x.Subselect); err != nil {
			return err
		}
		return w.node(x.Testexpr)
	}
	return w.children(m)
}

func (w *refWalker) children(m protoreflect.Message) error {
	var err error
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = w.message(v.List().Get(i).Message())
			}
		default:
			err = w.message(v.Message())
		}
		return err == nil
	})
	return err
}

// selectStmt walks a query; the names of its own WITH hide others.
func (w *refWalker) selectStmt(s *ast.SelectStmt) error {
	if s == nil {
		return nil
	}
	mark := len(w.hidden)
	defer func() { w.hidden = w.hidden[:mark] }()
	with := s.WithClause
	if with.GetRecursive() {
		for _, n := range with.Ctes {
			w.hidden = append(w.hidden, n.GetCommonTableExpr().Ctename)
		}
	}
	for _, n := range with.GetCtes() {
		if err := w.node(n.GetCommonTableExpr().Ctequery); err != nil {
			return err
		}
		w.hidden = append(w.hidden, n.GetCommonTableExpr().Ctename)
	}
	was := w.where
	defer func() { w.where = was }()
	left, right := was, was
	if was == anywhere {
		switch s.Op {
		case ast.SetOperation_SETOP_INTERSECT:
			if s.All {
				left, right = inIntersect, inIntersect
			}
		case ast.SetOperation_SETOP_EXCEPT:
			if right = inExcept; s.All {
				left = inExcept
			}
		}
	}
	w.where = left
	if err := w.selectStmt(s.Larg); err != nil {
		return err
	}
	w.where = right
	if err := w.selectStmt(s.Rarg); err != nil {
		return err
	}
	w.where = was
	// The rest in the order of the text, so that the first of several errors is PostgreSQL's.
	for _, list := range [][]*ast.Node{s.DistinctClause, s.TargetList, s.FromClause, {s.WhereClause}, s.GroupClause, {s.HavingClause},
		s.WindowClause, s.ValuesLists, s.SortClause, {s.LimitOffset, s.LimitCount}} {
		for _, n := range list {
			if err := w.node(n); err != nil {
				return err
			}
		}
	}
	return nil
}
