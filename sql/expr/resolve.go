package expr

import (
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A candidate is one overload with its signature stretched to the number of arguments.
type candidate[F any] struct {
	fn   F
	decl []types.Type // declared
	want []types.Type // declared, with polymorphic types solved
}

// Resolve picks the overload of a function or operator for arguments of the
// given types, by PostgreSQL's rules, and says which types the arguments must be
// cast to. Errors: 42883 none fits, 42725 several do, 42804 for polymorphic
// arguments that do not agree.
func Resolve(name string, operator bool, args []types.Type) (*Func, []types.Type, error) {
	r := reg()
	if operator {
		if name == "!=" {
			name = "<>"
		}
		// One unknown operand is first assumed to be of the other's type.
		if len(args) == 2 && (args[0].OID == types.OIDUnknown) != (args[1].OID == types.OIDUnknown) {
			same := []types.Type{args[0], args[0]}
			if args[0].OID == types.OIDUnknown {
				same = []types.Type{args[1], args[1]}
			}
			for _, f := range r.ops[name] {
				if exact(f.Args, same) {
					return f, f.Args, nil
				}
			}
		}
	}
	set := r.funcs[name]
	if operator {
		set = r.ops[name]
	}
	c, err := choose(set, func(f *Func) ([]types.Type, bool) { return f.Args, f.Variadic }, args)
	if err == errNone && !operator && len(args) > 0 && (name == "greatest" || name == "least") {
		if _, e := CommonTypeFor(strings.ToUpper(name), args); e != nil {
			return nil, nil, e
		}
	}
	if err != nil {
		return nil, nil, r.explain(err, name, operator, args)
	}
	return c.fn, c.want, nil
}

// ResolveAgg picks an aggregate function; star is count(*).
func ResolveAgg(name string, args []types.Type, star bool) (*AggFunc, []types.Type, error) {
	r := reg()
	set := r.aggs[name]
	if star {
		for _, f := range set {
			if len(f.Args) == 0 {
				return f, nil, nil
			}
		}
		return nil, nil, r.explain(errNone, name, false, nil)
	}
	if len(args) == 0 && name == "count" {
		return nil, nil, sqlerr.New(sqlerr.WrongObjectType, "count(*) must be used to call a parameterless aggregate function")
	}
	c, err := choose(set, func(f *AggFunc) ([]types.Type, bool) { return f.Args, false }, args)
	if err != nil {
		return nil, nil, r.explain(err, name, false, args)
	}
	if c.fn.OrderedSet {
		return nil, nil, sqlerr.New(sqlerr.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name)
	}
	return c.fn, c.want, nil
}

// ResolveTableFunc picks a set-returning function.
func ResolveTableFunc(name string, args []types.Type) (*TableFunc, []types.Type, error) {
	r := reg()
	c, err := choose(r.tables[name], func(f *TableFunc) ([]types.Type, bool) { return f.Args, false }, args)
	if err != nil {
		return nil, nil, r.explain(err, name, false, args)
	}
	return c.fn, c.want, nil
}

// Why choose found nothing.
var (
	errNone      = sqlerr.New(sqlerr.UndefinedFunction, "no candidate")
	errAmbiguous = sqlerr.New(sqlerr.AmbiguousFunction, "ambiguous")
)

func (r *registry) explain(err error, name string, operator bool, args []types.Type) error {
	if err != errNone && err != errAmbiguous {
		return err
	}
	if operator {
		text := name
		switch len(args) {
		case 1:
			text = name + " " + label(args[0])
		case 2:
			text = label(args[0]) + " " + name + " " + label(args[1])
		}
		if err == errAmbiguous {
			return sqlerr.New(sqlerr.AmbiguousFunction, "operator is not unique: %s", text).
				WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.")
		}
		return sqlerr.New(sqlerr.UndefinedFunction, "operator does not exist: %s", text).
			WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
	}
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = label(a)
	}
	text := name + "(" + strings.Join(list, ", ") + ")"
	if err == errAmbiguous {
		return sqlerr.New(sqlerr.AmbiguousFunction, "function %s is not unique", text).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	}
	e := sqlerr.New(sqlerr.UndefinedFunction, "function %s does not exist", text)
	if len(r.funcs[name])+len(r.aggs[name])+len(r.tables[name])+len(r.windows[name]) == 0 {
		if near := nearest(name, r.names()); near != "" {
			return e.WithHint("Perhaps you meant to call the function \"%s\".", near)
		}
	}
	return e.WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// nearest is the name closest to the given one, if it is close: a third of its letters may differ, three at most.
func nearest(name string, names []string) string {
	best, dist := "", min(len(name)/3, 3)+1
	for _, n := range names {
		if d := editDistance(name, n, dist); d < dist {
			best, dist = n, d
		}
	}
	return best
}

// editDistance is Levenshtein's, or limit where it is not below.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}

func exact(decl, args []types.Type) bool {
	if len(decl) != len(args) {
		return false
	}
	for i, d := range decl {
		if !d.Equal(args[i]) {
			return false
		}
	}
	return true
}

// choose is PostgreSQL's func_select_candidate over the overloads of one name.
func choose[F any](set []F, sig func(F) ([]types.Type, bool), args []types.Type) (candidate[F], error) {
	var none candidate[F]
	var cands []candidate[F]
	var polyErr error
	for _, f := range set {
		decl, variadic := sig(f)
		if variadic {
			if len(args) < len(decl) {
				continue
			}
			decl = stretch(decl, len(args))
		}
		if len(decl) != len(args) {
			continue
		}
		if exact(decl, args) {
			return candidate[F]{f, decl, decl}, nil
		}
		want, err := solve(decl, args)
		if err != nil {
			if polyErr == nil && err != errNone && fits(decl, args) {
				polyErr = err
			}
			continue
		}
		ok := true
		for i, w := range want {
			if w.OID != types.OIDAny && !CanCast(args[i], w, Implicit) {
				ok = false
				break
			}
		}
		if ok {
			cands = append(cands, candidate[F]{f, decl, want})
		}
	}
	switch len(cands) {
	case 0:
		if polyErr != nil {
			return none, polyErr
		}
		return none, errNone
	case 1:
		return finish(cands[0], args), nil
	}
	// Most exact matches, then most exact or preferred ones. A polymorphic
	// argument is no exact match.
	cands = best(cands, func(c candidate[F]) int {
		n := 0
		for i, d := range c.decl {
			if args[i].OID != types.OIDUnknown && d.Equal(args[i]) {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return finish(cands[0], args), nil
	}
	cands = best(cands, func(c candidate[F]) int {
		n := 0
		for i, d := range c.decl {
			if args[i].OID == types.OIDUnknown {
				continue
			}
			ac, _ := category(args[i])
			dc, pref := category(d)
			if d.Equal(args[i]) || pref && ac == dc {
				n++
			}
		}
		return n
	})
	if len(cands) == 1 {
		return finish(cands[0], args), nil
	}
	// Unknown arguments: strings if some candidate takes them, else the one category all agree on.
	resolved := true
	unknowns := 0
	for i, a := range args {
		if a.OID != types.OIDUnknown {
			continue
		}
		unknowns++
		cat, pref, agree := byte(0), false, true
		for _, c := range cands {
			k, p := category(c.decl[i])
			switch {
			case cat == 0:
				cat, pref = k, p
			case cat == k:
				pref = pref || p
			default:
				agree = false
			}
			if k == 'S' {
				cat, pref, agree = k, p, true
				break
			}
		}
		if cat == 'S' {
			for _, c := range cands {
				if k, p := category(c.decl[i]); k == 'S' && p {
					pref = true
				}
			}
		}
		if !agree {
			resolved = false
			break
		}
		var kept []candidate[F]
		for _, c := range cands {
			k, p := category(c.decl[i])
			if k == cat && (p || !pref) {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 {
			cands = kept
		}
	}
	if unknowns == 0 {
		return none, errAmbiguous
	}
	if resolved && len(cands) == 1 {
		return finish(cands[0], args), nil
	}
	// Known arguments of one type: take unknown ones to be of it too.
	var known types.Type
	for _, a := range args {
		if a.OID == types.OIDUnknown {
			continue
		}
		if known.OID != 0 && !known.Equal(a) {
			return none, errAmbiguous
		}
		known = a
	}
	if known.OID == 0 {
		return none, errAmbiguous
	}
	var hit []candidate[F]
	for _, c := range cands {
		ok := true
		for i, w := range c.want {
			if args[i].OID == types.OIDUnknown && w.OID != types.OIDAny && !CanCast(known, w, Implicit) {
				ok = false
			}
		}
		if ok {
			hit = append(hit, c)
		}
	}
	if len(hit) == 1 {
		return finish(hit[0], args), nil
	}
	return none, errAmbiguous
}

// fits reports whether the arguments that are not polymorphic can be had.
func fits(decl, args []types.Type) bool {
	for i, d := range decl {
		if !polymorphic(d) && d.OID != types.OIDAny && !CanCast(args[i], d, Implicit) {
			return false
		}
	}
	return true
}

// finish gives arguments of type "any" the type they have, unknown ones text.
func finish[F any](c candidate[F], args []types.Type) candidate[F] {
	for i, w := range c.want {
		if w.OID == types.OIDRecord && w.Fields == nil && args[i].IsStruct() {
			want := append([]types.Type(nil), c.want...)
			want[i] = args[i]
			c.want = want
			continue
		}
		if w.OID != types.OIDAny {
			continue
		}
		want := append([]types.Type(nil), c.want...)
		want[i] = args[i].Base()
		if args[i].OID == types.OIDUnknown {
			want[i] = types.Text
		}
		c.want = want
	}
	return c
}

func best[F any](cands []candidate[F], score func(candidate[F]) int) []candidate[F] {
	top := -1
	var out []candidate[F]
	for _, c := range cands {
		switch n := score(c); {
		case n > top:
			top, out = n, []candidate[F]{c}
		case n == top:
			out = append(out, c)
		}
	}
	return out
}

func stretch(decl []types.Type, n int) []types.Type {
	out := append([]types.Type(nil), decl...)
	for len(out) < n {
		out = append(out, decl[len(decl)-1])
	}
	return out
}

// solve replaces polymorphic types by what the arguments make of them. It
// returns errNone where the arguments cannot be meant, and 42804 where they disagree.
func solve(decl, args []types.Type) ([]types.Type, error) {
	poly := false
	for _, d := range decl {
		poly = poly || polymorphic(d)
	}
	if !poly {
		return decl, nil
	}
	var elem types.Type     // of anyelement and anyarray
	var compat []types.Type // of anycompatible
	var mapped types.Type   // of anymap
	unknownOnly, uses := true, false
	for i, d := range decl {
		a := args[i].Base()
		switch d.OID {
		case oidAnyElement, oidAnyNonArray, oidAnyArray:
			uses = true
			if a.OID == types.OIDUnknown {
				continue
			}
			if d.OID == oidAnyNonArray && a.Elem != nil || d.OID == oidAnyArray && a.Elem == nil {
				return nil, errNone
			}
			if d.OID == oidAnyArray {
				a = *a.Elem
			}
			unknownOnly = false
			if elem.OID == 0 {
				elem = a
			} else if !elem.Equal(a) {
				return nil, errNone
			}
		case oidAnyMap:
			if a.OID == types.OIDUnknown {
				continue
			}
			if !a.IsMap() || mapped.OID != 0 && !mapped.Equal(a) {
				return nil, errNone
			}
			mapped = a
		case oidAnyCompatible:
			compat = append(compat, a)
		case oidAnyCompatibleArray:
			if a.OID == types.OIDUnknown {
				continue
			}
			if a.Elem == nil {
				return nil, errNone
			}
			compat = append(compat, *a.Elem)
		}
	}
	if uses && unknownOnly {
		return nil, sqlerr.New(sqlerr.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
	}
	common := types.Text
	if len(compat) > 0 {
		t, err := CommonType(compat)
		if err != nil {
			return nil, errNone
		}
		common = t.Base()
	}
	out := make([]types.Type, len(decl))
	for i, d := range decl {
		switch d.OID {
		case oidAnyElement, oidAnyNonArray:
			out[i] = elem
		case oidAnyArray:
			out[i] = args[i].Base()
			if out[i].Elem == nil {
				if elem.Elem != nil {
					return nil, errNone // there are no arrays of arrays
				}
				out[i] = types.ArrayOf(elem)
			}
		case oidAnyCompatible:
			out[i] = common
		case oidAnyCompatibleArray:
			if common.Elem != nil {
				return nil, errNone
			}
			out[i] = types.ArrayOf(common)
		default:
			out[i] = d
			if isMapPart(d.OID) {
				if mapped.OID == 0 {
					return nil, errNone
				}
				out[i], _ = mapPart(d.OID, mapped)
			}
		}
	}
	return out, nil
}

// solveRet is the result type of a polymorphic signature for solved argument types.
func solveRet(decl, args []types.Type, ret types.Type) types.Type {
	if len(args) > len(decl) {
		decl = stretch(decl, len(args))
	}
	for i, d := range decl {
		var elem types.Type
		if d.OID == oidAnyMap && args[i].IsMap() {
			if t, ok := mapPart(ret.OID, args[i]); ok {
				return t
			}
		}
		switch d.OID {
		case oidAnyElement, oidAnyNonArray, oidAnyCompatible:
			elem = args[i]
		case oidAnyArray, oidAnyCompatibleArray:
			if args[i].Elem == nil {
				continue
			}
			elem = *args[i].Elem
		default:
			continue
		}
		if ret.OID == oidAnyArray || ret.OID == oidAnyCompatibleArray {
			if elem.Elem != nil {
				return elem
			}
			return types.ArrayOf(elem)
		}
		return elem
	}
	return ret
}
