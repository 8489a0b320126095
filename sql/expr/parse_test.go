package expr

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A reader builds expressions from SQL text for tests: literals, casts,
// operators, calls, CASE, IN, BETWEEN, arrays. The real one is the binder.
type reader struct {
	toks []string
	at   int
	cols types.Schema
}

// mustParse fails the test on a syntax error; errors of typing are returned.
func readExpr(text string, cols types.Schema) (e Expr, err error) {
	defer func() {
		if p := recover(); p != nil {
			if pe, ok := p.(error); ok {
				err = pe
				return
			}
			panic(p)
		}
	}()
	r := &reader{toks: scan(text), cols: cols}
	e = r.expr(0)
	if r.at < len(r.toks) {
		panic(fmt.Errorf("syntax error at %q", r.toks[r.at]))
	}
	return e, nil
}

func scan(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		c := s[i]
		j := i + 1
		switch {
		case c == ' ' || c == '\n':
			i++
			continue
		case c == '\'' || c == 'E' && j < len(s) && s[j] == '\'':
			esc := c == 'E'
			if esc {
				j++
			}
			for ; j < len(s); j++ {
				if esc && s[j] == '\\' {
					j++
					continue
				}
				if s[j] == '\'' {
					if j+1 < len(s) && s[j+1] == '\'' {
						j++
						continue
					}
					break
				}
			}
			j++
		case c == '"':
			for s[j] != '"' {
				j++
			}
			j++
		case c >= '0' && c <= '9' || c == '.' && j < len(s) && s[j] >= '0' && s[j] <= '9':
			for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] == '.' || s[j] == 'e' || s[j] == 'E' || (s[j] == '-' || s[j] == '+') && (s[j-1] == 'e' || s[j-1] == 'E')) {
				j++
			}
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
			for j < len(s) && (s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z' || s[j] == '_' || s[j] >= '0' && s[j] <= '9') {
				j++
			}
		case strings.IndexByte("+-*/<>=~!@#%^&|`?", c) >= 0:
			for j < len(s) && strings.IndexByte("+-*/<>=~!@#%^&|`?", s[j]) >= 0 {
				j++
			}
			for j > i+1 && (s[j-1] == '-' || s[j-1] == '+') && !strings.ContainsAny(s[i:j-1], "~!@#%^&|`?") {
				j--
			}
		case c == ':' && j < len(s) && s[j] == ':':
			j++
		}
		out = append(out, s[i:j])
		i = j
	}
	return out
}

func (r *reader) peek() string {
	if r.at < len(r.toks) {
		return r.toks[r.at]
	}
	return ""
}

func (r *reader) word() string { return strings.ToLower(r.peek()) }

func (r *reader) accept(words ...string) bool {
	for i, w := range words {
		if r.at+i >= len(r.toks) || strings.ToLower(r.toks[r.at+i]) != w {
			return false
		}
	}
	r.at += len(words)
	return true
}

func (r *reader) expect(w string) {
	if !r.accept(w) {
		panic(fmt.Errorf("syntax error: want %q, have %q", w, r.peek()))
	}
}

func check[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func call(name string, operator bool, args ...Expr) Expr {
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	fn, want, err := Resolve(name, operator, ts)
	if err != nil {
		panic(err)
	}
	for i := range args {
		args[i] = check((&Ctx{}).MakeCast(args[i], want[i], false))
	}
	ret := fn.Ret
	if fn.RetType != nil {
		ret = fn.RetType(want)
	}
	return &Call{Fn: fn, Args: args, Typ: ret}
}

func boolArg(e Expr) Expr { return check(MakeCast(e, types.Bool, false)) }

// binding powers, PostgreSQL's
func power(op string) int {
	switch op {
	case "or":
		return 1
	case "and":
		return 2
	case "not":
		return 3
	case "is":
		return 4
	case "<", ">", "=", "<=", ">=", "<>", "!=":
		return 5
	case "between", "in", "like", "ilike", "similar":
		return 6
	case "+", "-":
		return 8
	case "*", "/", "%":
		return 9
	case "^":
		return 10
	case "at":
		return 11
	case "::", "[":
		return 14
	}
	if op != "" && strings.IndexByte("+-*/<>=~!@#%^&|`?", op[0]) >= 0 {
		return 7
	}
	return 0
}

func (r *reader) expr(min int) Expr {
	left := r.prefix()
	for {
		op := r.word()
		not := false
		if op == "not" && r.at+1 < len(r.toks) {
			op, not = strings.ToLower(r.toks[r.at+1]), true
		}
		p := power(op)
		if p == 0 || p <= min || op == "not" {
			return left
		}
		r.at++
		if not {
			r.at++
		}
		left = r.infix(left, op, p, not)
	}
}

func (r *reader) infix(left Expr, op string, p int, not bool) Expr {
	wrap := func(e Expr) Expr {
		if not {
			return &Not{Arg: e}
		}
		return e
	}
	switch op {
	case "or", "and":
		return &Logic{Or: op == "or", Args: []Expr{boolArg(left), boolArg(r.expr(p))}}
	case "is":
		neg := r.accept("not")
		switch {
		case r.accept("null"):
			return &IsNull{Arg: left, Negate: neg}
		case r.accept("unknown"):
			return &IsNull{Arg: boolArg(left), Negate: neg}
		case r.accept("true"):
			return call(map[bool]string{false: "is_true", true: "is_not_true"}[neg], false, left)
		case r.accept("false"):
			return call(map[bool]string{false: "is_false", true: "is_not_false"}[neg], false, left)
		}
		r.expect("distinct")
		r.expect("from")
		return call(map[bool]string{false: "IS DISTINCT FROM", true: "IS NOT DISTINCT FROM"}[neg], true, left, r.expr(p))
	case "between":
		lo := r.expr(6)
		r.expect("and")
		hi := r.expr(6)
		return wrap(&Logic{Args: []Expr{call(">=", true, left, lo), call("<=", true, left, hi)}})
	case "in":
		r.expect("(")
		items := r.list(")")
		ts := []types.Type{left.Type()}
		for _, i := range items {
			ts = append(ts, i.Type())
		}
		t := check(CommonType(ts))
		l := check((&Ctx{}).MakeCast(left, t, false))
		for i := range items {
			items[i] = check((&Ctx{}).MakeCast(items[i], t, false))
		}
		eq, _, err := Resolve("=", true, []types.Type{t, t})
		if err != nil {
			panic(err)
		}
		return &InList{Arg: l, List: items, Eq: eq, Negate: not}
	case "like", "ilike", "similar":
		name := map[string]string{"like": "~~", "ilike": "~~*", "similar": "~"}[op]
		if not {
			name = "!" + name
		}
		if op == "similar" {
			r.expect("to")
		}
		pat := r.expr(6)
		esc := r.accept("escape")
		var args []Expr
		if esc {
			args = []Expr{pat, r.expr(6)}
		} else {
			args = []Expr{pat}
		}
		if op == "similar" {
			pat = call("similar_to_escape", false, args...)
		} else if esc {
			pat = call("like_escape", false, args...)
		}
		return call(name, true, left, pat)
	case "at":
		r.expect("time")
		r.expect("zone")
		return call("timezone", false, r.expr(p), left)
	case "::":
		return check((&Ctx{}).MakeCast(left, r.typeName(), true))
	case "[":
		if r.accept(":") {
			hi := r.expr(0)
			r.expect("]")
			return call("array_slice", false, left, &Const{Typ: types.Int4}, hi)
		}
		args := []Expr{left, r.expr(0)}
		if r.accept(":") {
			args = append(args, r.expr(0))
			r.expect("]")
			return call("array_slice", false, args...)
		}
		r.expect("]")
		for r.accept("[") {
			args = append(args, r.expr(0))
			r.expect("]")
		}
		return call("array_get", false, args...)
	}
	if r.word() == "any" || r.word() == "all" {
		all := r.word() == "all"
		r.at++
		r.expect("(")
		arr := r.expr(0)
		r.expect(")")
		if arr.Type().OID == types.OIDUnknown {
			arr = check((&Ctx{}).MakeCast(arr, types.ArrayOf(left.Type()), false))
		}
		fn, want, err := Resolve(op, true, []types.Type{left.Type(), *arr.Type().Elem})
		if err != nil {
			panic(err)
		}
		return &Quantified{Left: check((&Ctx{}).MakeCast(left, want[0], false)), Array: check((&Ctx{}).MakeCast(arr, types.ArrayOf(want[1]), false)), Op: fn, All: all}
	}
	return call(op, true, left, r.expr(p))
}

func (r *reader) list(end string) []Expr {
	var out []Expr
	for !r.accept(end) {
		if len(out) > 0 {
			r.expect(",")
		}
		out = append(out, r.expr(0))
	}
	return out
}

func (r *reader) typeName() types.Type {
	var b strings.Builder
	b.WriteString(r.peek())
	r.at++
	for {
		w := r.word()
		switch {
		case w == "precision" || w == "varying" || w == "with" || w == "without" || w == "time" || w == "zone":
			b.WriteString(" " + w)
			r.at++
		case w == "(":
			for r.peek() != ")" {
				b.WriteString(r.peek())
				r.at++
			}
			b.WriteString(")")
			r.at++
		case w == "[" && r.at+1 < len(r.toks) && r.toks[r.at+1] == "]":
			b.WriteString("[]")
			r.at += 2
		default:
			t, ok := types.ByName(b.String())
			if !ok {
				panic(sqlerr.New(sqlerr.UndefinedObject, "type \"%s\" does not exist", b.String()))
			}
			return t
		}
	}
}

func unknown(s string) Expr { return &Const{Val: types.NewString(s), Typ: types.Null} }

func (r *reader) prefix() Expr {
	tok := r.peek()
	w := r.word()
	r.at++
	switch {
	case tok == "(":
		e := r.expr(0)
		r.expect(")")
		return e
	case w == "not":
		return &Not{Arg: boolArg(r.expr(3))}
	case tok == "-" || tok == "+" || tok == "~" || tok == "@" || tok == "|/" || tok == "||/":
		p := 12
		if tok != "-" && tok != "+" {
			p = 7
		}
		arg := r.expr(p)
		if k, ok := arg.(*Const); ok && tok == "-" && k.Typ.OID == types.OIDInt8 && k.Val.Int() == 1<<31 {
			return &Const{Val: types.NewInt(-1 << 31), Typ: types.Int4}
		}
		return call(tok, true, arg)
	case strings.HasPrefix(tok, "'"):
		return unknown(strings.ReplaceAll(tok[1:len(tok)-1], "''", "'"))
	case strings.HasPrefix(tok, "E'"):
		return unknown(strings.NewReplacer(`\n`, "\n", `\\`, `\`, `\'`, "'", `\t`, "\t").Replace(tok[2 : len(tok)-1]))
	case tok != "" && (tok[0] >= '0' && tok[0] <= '9' || tok[0] == '.'):
		if strings.ContainsAny(tok, ".eE") {
			return &Const{Val: types.NewDecimal(check(types.ParseDecimal(tok))), Typ: types.Numeric}
		}
		if v, err := strconv.ParseInt(tok, 10, 32); err == nil {
			return &Const{Val: types.NewInt(v), Typ: types.Int4}
		}
		if v, err := strconv.ParseInt(tok, 10, 64); err == nil {
			return &Const{Val: types.NewInt(v), Typ: types.Int8}
		}
		return &Const{Val: types.NewDecimal(check(types.ParseDecimal(tok))), Typ: types.Numeric}
	case w == "null":
		return &Const{Typ: types.Null}
	case w == "true" || w == "false":
		return &Const{Val: types.NewBool(w == "true"), Typ: types.Bool}
	case w == "array":
		r.expect("[")
		return r.array()
	case w == "case":
		return r.caseExpr()
	case w == "coalesce":
		r.expect("(")
		args := r.list(")")
		t := r.common(args)
		return &Coalesce{Args: args, Typ: t}
	case w == "extract":
		r.expect("(")
		field := unknown(r.peek())
		r.at++
		r.expect("from")
		x := r.expr(0)
		r.expect(")")
		return call("extract", false, field, x)
	}
	if r.peek() == "(" {
		r.at++
		return call(strings.Trim(w, `"`), false, r.list(")")...)
	}
	for i, c := range r.cols {
		if c.Name == w {
			return &ColRef{Index: i, Typ: c.Type, Name: c.Name}
		}
	}
	// date '2001-01-01', timestamp with time zone '…'
	r.at--
	t := r.typeName()
	lit := r.peek()
	r.at++
	return check((&Ctx{}).MakeCast(unknown(strings.ReplaceAll(lit[1:len(lit)-1], "''", "'")), t, true))
}

func (r *reader) common(args []Expr) types.Type {
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	t := check(CommonType(ts))
	for i := range args {
		args[i] = check((&Ctx{}).MakeCast(args[i], t, false))
	}
	return t
}

func (r *reader) array() Expr {
	var elems []Expr
	for !r.accept("]") {
		if len(elems) > 0 {
			r.expect(",")
		}
		if r.accept("[") {
			elems = append(elems, r.array())
		} else {
			elems = append(elems, r.expr(0))
		}
	}
	if len(elems) == 0 {
		return &ArrayExpr{Typ: types.ArrayOf(types.Int4)}
	}
	t := r.common(elems)
	return &ArrayExpr{Elems: elems, Typ: types.ArrayOf(t)}
}

func (r *reader) caseExpr() Expr {
	var arg Expr
	if r.word() != "when" {
		arg = r.expr(0)
	}
	c := &Case{}
	var vals []Expr
	for r.accept("when") {
		cond := r.expr(0)
		if arg != nil {
			cond = call("=", true, arg, cond)
		}
		r.expect("then")
		c.Whens = append(c.Whens, When{Cond: boolArg(cond)})
		vals = append(vals, r.expr(0))
	}
	if r.accept("else") {
		vals = append(vals, r.expr(0))
	}
	r.expect("end")
	c.Typ = r.common(vals)
	for i := range c.Whens {
		c.Whens[i].Then = vals[i]
	}
	if len(vals) > len(c.Whens) {
		c.Else = vals[len(vals)-1]
	}
	return c
}

func mustRead(t testing.TB, text string, cols types.Schema) Expr {
	t.Helper()
	e, err := readExpr(text, cols)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}
