package expr

import "streamdb/sql/types"

// Fold computes the constant parts of e: calls of immutable functions over
// literals, and conditions that decide themselves. What would fail is left as
// it is, so that an error comes only when, and if, the part is evaluated. Untyped
// literals whose meaning depends on the session ('…'::timestamptz) are computed
// only if ctx has a Style.
func Fold(ctx *Ctx, e Expr) Expr {
	return Transform(e, func(e Expr) Expr { return foldOne(ctx, e) })
}

func foldOne(ctx *Ctx, e Expr) Expr {
	switch e := e.(type) {
	case *Const, *ColRef, *Param, *OuterRef, *Subquery:
		return e
	case *Logic:
		return foldLogic(e)
	case *Case:
		return foldCase(e)
	case *Coalesce:
		return foldCoalesce(e)
	case *Call:
		if e.Fn.Volatile != Immutable {
			return e
		}
		if e.Fn.Strict {
			for _, a := range e.Args {
				if isNullConst(a) {
					return &Const{Typ: e.Typ}
				}
			}
		}
	case *Cast:
		if k, ok := e.Arg.(*Const); ok && k.Val.IsNull() {
			return &Const{Typ: e.Typ}
		}
		// A literal means what it means to the session that wrote it, if ctx is its.
		literal := e.Arg.Type().OID == types.OIDUnknown && ctx != nil && ctx.Style != nil
		if !literal && castVolatility(e.Arg.Type(), e.Typ) != Immutable {
			return e
		}
	}
	for _, k := range children(e) {
		if _, ok := k.(*Const); !ok {
			return e
		}
	}
	in := Ctx{}
	if ctx != nil {
		in.Style, in.Sys = ctx.Style, ctx.Sys
	}
	d, err := EvalConst(&in, e)
	if err != nil {
		return e
	}
	return &Const{Val: d, Typ: e.Type()}
}

func isNullConst(e Expr) bool {
	k, ok := e.(*Const)
	return ok && k.Val.IsNull()
}

// boolConst says what e is if it is a constant that is not NULL.
func boolConst(e Expr) (val, ok bool) {
	k, is := e.(*Const)
	if !is || k.Val.IsNull() || k.Typ.OID != types.OIDBool {
		return false, false
	}
	return k.Val.Bool(), true
}

// foldLogic drops arguments that decide nothing, and everything where one decides all.
func foldLogic(e *Logic) Expr {
	var args []Expr
	for _, a := range e.Args {
		if v, ok := boolConst(a); ok {
			if v == e.Or {
				return a
			}
			continue
		}
		if l, ok := a.(*Logic); ok && l.Or == e.Or {
			args = append(args, l.Args...)
			continue
		}
		args = append(args, a)
	}
	switch len(args) {
	case 0:
		return &Const{Val: types.NewBool(!e.Or), Typ: types.Bool}
	case 1:
		return args[0]
	}
	if len(args) == len(e.Args) {
		return e
	}
	return &Logic{Or: e.Or, Args: args}
}

func foldCase(e *Case) Expr {
	var whens []When
	for i, w := range e.Whens {
		v, ok := boolConst(w.Cond)
		switch {
		case ok && v && len(whens) == 0:
			return w.Then
		case ok && v:
			return &Case{Whens: whens, Else: w.Then, Typ: e.Typ}
		case ok || isNullConst(w.Cond):
			if whens == nil {
				whens = append([]When{}, e.Whens[:i]...)
			}
		default:
			whens = append(whens, w)
		}
	}
	if len(whens) == len(e.Whens) {
		return e
	}
	if len(whens) == 0 {
		if e.Else != nil {
			return e.Else
		}
		return &Const{Typ: e.Typ}
	}
	return &Case{Whens: whens, Else: e.Else, Typ: e.Typ}
}

func foldCoalesce(e *Coalesce) Expr {
	var args []Expr
	for _, a := range e.Args {
		if isNullConst(a) {
			continue
		}
		args = append(args, a)
		if _, ok := a.(*Const); ok {
			break // not NULL: what follows is never reached
		}
	}
	switch {
	case len(args) == 0:
		return &Const{Typ: e.Typ}
	case len(args) == 1:
		return args[0]
	case len(args) == len(e.Args):
		return e
	}
	return &Coalesce{Args: args, Typ: e.Typ}
}
