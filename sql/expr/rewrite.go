package expr

import (
	"fmt"
	"slices"

	"streamdb/sql/types"
)

// children lists the expressions directly inside e, in order.
func children(e Expr) []Expr {
	switch e := e.(type) {
	case *ColRef, *Const, *Param, *OuterRef:
		return nil
	case *Call:
		return e.Args
	case *Cast:
		return []Expr{e.Arg}
	case *Logic:
		return e.Args
	case *Not:
		return []Expr{e.Arg}
	case *IsNull:
		return []Expr{e.Arg}
	case *Case:
		out := make([]Expr, 0, 2*len(e.Whens)+1)
		for _, w := range e.Whens {
			out = append(out, w.Cond, w.Then)
		}
		if e.Else != nil {
			out = append(out, e.Else)
		}
		return out
	case *Coalesce:
		return e.Args
	case *InList:
		return append([]Expr{e.Arg}, e.List...)
	case *ArrayExpr:
		return e.Elems
	case *Quantified:
		return []Expr{e.Left, e.Array}
	case *Subquery:
		return e.Left
	}
	panic(fmt.Sprintf("expr: unknown expression %T", e))
}

// rebuild is e with other children, as many as children gave.
func rebuild(e Expr, kids []Expr) Expr {
	switch e := e.(type) {
	case *Call:
		c := *e
		c.Args = kids
		return &c
	case *Cast:
		c := *e
		c.Arg = kids[0]
		return &c
	case *Logic:
		return &Logic{Or: e.Or, Args: kids}
	case *Not:
		return &Not{Arg: kids[0]}
	case *IsNull:
		return &IsNull{Arg: kids[0], Negate: e.Negate}
	case *Case:
		c := *e
		c.Whens = make([]When, len(e.Whens))
		for i := range c.Whens {
			c.Whens[i] = When{kids[2*i], kids[2*i+1]}
		}
		if e.Else != nil {
			c.Else = kids[len(kids)-1]
		}
		return &c
	case *Coalesce:
		return &Coalesce{Args: kids, Typ: e.Typ}
	case *InList:
		c := *e
		c.Arg, c.List = kids[0], kids[1:]
		return &c
	case *ArrayExpr:
		return &ArrayExpr{Elems: kids, Typ: e.Typ}
	case *Quantified:
		c := *e
		c.Left, c.Array = kids[0], kids[1]
		return &c
	case *Subquery:
		c := *e
		c.Left = kids
		return &c
	}
	panic(fmt.Sprintf("expr: unknown expression %T", e))
}

// Walk calls f for e and, where f returns true, for what is inside it, outside
// in. It does not enter the plan of a Subquery. A nil e is nothing.
func Walk(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	for _, k := range children(e) {
		Walk(k, f)
	}
}

// Transform replaces every expression of e, inside out, by what f makes of it;
// parts that f returns unchanged are shared. It does not enter the plan of a Subquery.
func Transform(e Expr, f func(Expr) Expr) Expr {
	if e == nil {
		return nil
	}
	kids := children(e)
	var changed []Expr
	for i, k := range kids {
		if n := Transform(k, f); n != k {
			if changed == nil {
				changed = slices.Clone(kids)
			}
			changed[i] = n
		}
	}
	if changed != nil {
		e = rebuild(e, changed)
	}
	return f(e)
}

// Columns lists the input columns e refers to, sorted, each once. What the plan
// of a Subquery refers to is not among them.
func Columns(e Expr) []int {
	var out []int
	Walk(e, func(e Expr) bool {
		if c, ok := e.(*ColRef); ok {
			out = append(out, c.Index)
		}
		return true
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Remap is e with every column index i replaced by m(i).
func Remap(e Expr, m func(int) int) Expr {
	return Transform(e, func(e Expr) Expr {
		c, ok := e.(*ColRef)
		if !ok {
			return e
		}
		i := m(c.Index)
		if i == c.Index {
			return e
		}
		return &ColRef{Index: i, Typ: c.Typ, Name: c.Name}
	})
}

// Equal reports whether a and b are the same expression. Names of columns do
// not count; a Subquery is equal only to itself.
func Equal(a, b Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	ta, tb := a.Type(), b.Type()
	if !ta.Equal(tb) || ta.Mod != tb.Mod {
		return false
	}
	switch a := a.(type) {
	case *ColRef:
		b, ok := b.(*ColRef)
		return ok && a.Index == b.Index
	case *Const:
		b, ok := b.(*Const)
		return ok && a.Val.IsNull() == b.Val.IsNull() && a.Val.Kind() == b.Val.Kind() && types.Equal(a.Val, b.Val) &&
			a.Val.Text(a.Typ) == b.Val.Text(b.Typ) // 1.0 is not 1.00
	case *Param:
		b, ok := b.(*Param)
		return ok && a.Index == b.Index
	case *OuterRef:
		b, ok := b.(*OuterRef)
		return ok && a.Level == b.Level && a.Index == b.Index
	case *Call:
		b, ok := b.(*Call)
		if !ok || a.Fn != b.Fn {
			return false
		}
	case *Cast:
		b, ok := b.(*Cast)
		if !ok || a.Explicit != b.Explicit {
			return false
		}
	case *Logic:
		b, ok := b.(*Logic)
		if !ok || a.Or != b.Or {
			return false
		}
	case *Not:
		if _, ok := b.(*Not); !ok {
			return false
		}
	case *IsNull:
		b, ok := b.(*IsNull)
		if !ok || a.Negate != b.Negate {
			return false
		}
	case *Case:
		b, ok := b.(*Case)
		if !ok || len(a.Whens) != len(b.Whens) || (a.Else == nil) != (b.Else == nil) {
			return false
		}
	case *Coalesce:
		if _, ok := b.(*Coalesce); !ok {
			return false
		}
	case *InList:
		b, ok := b.(*InList)
		if !ok || a.Eq != b.Eq || a.Negate != b.Negate {
			return false
		}
	case *ArrayExpr:
		if _, ok := b.(*ArrayExpr); !ok {
			return false
		}
	case *Quantified:
		b, ok := b.(*Quantified)
		if !ok || a.Op != b.Op || a.All != b.All {
			return false
		}
	default:
		return false
	}
	return slices.EqualFunc(children(a), children(b), Equal)
}

// VolatilityOf says how often e must be evaluated: the worst of what is in it.
func VolatilityOf(e Expr) Volatility {
	out := Immutable
	Walk(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Call:
			out = max(out, e.Fn.Volatile)
		case *Cast:
			out = max(out, castVolatility(e.Arg.Type(), e.Typ))
		case *Param, *OuterRef, *Subquery:
			out = max(out, Stable)
		}
		return true
	})
	return out
}

// IsConst reports whether e has the same value for every row of a statement: it
// refers to no column, outer column or subquery, and is not volatile.
func IsConst(e Expr) bool {
	same := VolatilityOf(e) != Volatile
	Walk(e, func(e Expr) bool {
		switch e.(type) {
		case *ColRef, *OuterRef, *Subquery:
			same = false
		}
		return same
	})
	return same
}

// HasSubquery reports whether e has a Subquery.
func HasSubquery(e Expr) bool {
	found := false
	Walk(e, func(e Expr) bool {
		if _, ok := e.(*Subquery); ok {
			found = true
		}
		return !found
	})
	return found
}

// HasOuter reports whether e refers to a column of an enclosing query; what is
// inside the plan of a Subquery does not count, unless it is marked as Correlated.
func HasOuter(e Expr) bool {
	found := false
	Walk(e, func(e Expr) bool {
		switch e := e.(type) {
		case *OuterRef:
			found = true
		case *Subquery:
			found = found || e.Correlated
		}
		return !found
	})
	return found
}

// And joins conditions by AND, leaving out nils; nil if none is left.
func And(conds ...Expr) Expr {
	var args []Expr
	for _, c := range conds {
		if c != nil {
			args = append(args, Conjuncts(c)...)
		}
	}
	switch len(args) {
	case 0:
		return nil
	case 1:
		return args[0]
	}
	return &Logic{Args: args}
}

// Conjuncts lists what e is the AND of; nil has none.
func Conjuncts(e Expr) []Expr {
	if e == nil {
		return nil
	}
	if l, ok := e.(*Logic); ok && !l.Or {
		var out []Expr
		for _, a := range l.Args {
			out = append(out, Conjuncts(a)...)
		}
		return out
	}
	return []Expr{e}
}
