package jsonpath

import (
	"errors"
	"math"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// An Env is what an evaluation needs besides the path and the value.
type Env struct {
	Vars types.JSONValue // an object with the values of $name; JSONNull: none
	// Regexp compiles the pattern of like_regex with a regular expression's options ("i", "n", "p", "w", "q").
	Regexp func(pattern, flags string) (func(string) bool, error)
}

// A softError is one that a silent evaluation keeps quiet about.
type softError struct{ error }

func (e softError) Unwrap() error { return e.error }

// Soft reports whether err came from the value and not from the path: a missing
// key in strict mode, a wrong type, a division by zero.
func Soft(err error) bool {
	var s softError
	return errors.As(err, &s)
}

func soft(code, format string, args ...any) error {
	return softError{sqlerr.New(code, format, args...)}
}

var errStop = errors.New("enough")

// Query calls emit with the values the path gives for v, until emit returns false.
func (p *Path) Query(v types.JSONValue, env *Env, emit func(types.JSONValue) bool) error {
	if env.Vars.Kind != types.JSONNull && env.Vars.Kind != types.JSONObject {
		return sqlerr.New(sqlerr.InvalidParameter, "\"vars\" argument is not an object").
			WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
	}
	e := &eval{env: env, root: v, current: v, strict: p.strict, last: -1}
	err := e.run(p.root, v, !p.strict, func(v types.JSONValue) error {
		if !emit(v) {
			return errStop
		}
		return nil
	})
	if err == errStop {
		return nil
	}
	return err
}

// Exists reports whether the path gives anything for v. In strict mode all of it is
// computed, to find errors.
func (p *Path) Exists(v types.JSONValue, env *Env) (bool, error) {
	found := false
	err := p.Query(v, env, func(types.JSONValue) bool {
		found = true
		return p.strict
	})
	return found && err == nil, err
}

type eval struct {
	env           *Env
	root, current types.JSONValue
	strict        bool
	quiet         bool // inside .**, where what does not fit is passed over even in strict mode
	last          int  // of the innermost array being subscripted
	objects       int  // keyvalue() numbers objects
}

// structural is an error about the shape of a value: none in lax mode.
func (e *eval) structural(code, format string, args ...any) error {
	if !e.strict || e.quiet {
		return nil
	}
	return soft(code, format, args...)
}

type emitter func(types.JSONValue) error

// then goes on with the accessor after it.
func (e *eval) then(it *item, v types.JSONValue, emit emitter) error {
	if it.next == nil {
		return emit(v)
	}
	return e.run(it.next, v, !e.strict, emit)
}

// each runs it over the items of an array, which are not unwrapped further.
func (e *eval) each(it *item, v types.JSONValue, emit emitter) error {
	for _, x := range v.Items {
		if err := e.run(it, x, false, emit); err != nil {
			return err
		}
	}
	return nil
}

// run applies it to v; unwrap says that an array stands for its items where the item wants no array.
func (e *eval) run(it *item, v types.JSONValue, unwrap bool, emit emitter) error {
	if it.op.predicate() {
		out := types.JSONValue{}
		t, err := e.test(it, v)
		if err != nil {
			return err
		}
		if t != unknown {
			out = types.NewJSONBool(t == yes)
		}
		return e.then(it, out, emit)
	}
	switch it.op {
	case opNull:
		return e.then(it, types.JSONValue{}, emit)
	case opString:
		return e.then(it, types.NewJSONString(it.str), emit)
	case opNumber:
		return e.then(it, types.NewJSONNumber(it.num), emit)
	case opBool:
		return e.then(it, types.NewJSONBool(it.yes), emit)
	case opVariable:
		x, ok := e.env.Vars.Field(it.str)
		if !ok {
			return sqlerr.New(sqlerr.UndefinedObject, "could not find jsonpath variable \"%s\"", it.str)
		}
		return e.then(it, x, emit)
	case opRoot:
		return e.then(it, e.root, emit)
	case opCurrent:
		return e.then(it, e.current, emit)
	case opLast:
		return e.then(it, types.NewJSONNumber(types.NewDecimalInt(int64(e.last))), emit)
	case opKey:
		switch {
		case v.Kind == types.JSONObject:
			if x, ok := v.Field(it.str); ok {
				return e.then(it, x, emit)
			}
			return e.structural("2203A", "JSON object does not contain key \"%s\"", it.str)
		case v.Kind == types.JSONArray && unwrap:
			return e.each(it, v, emit)
		}
		return e.structural("2203A", "jsonpath member accessor can only be applied to an object")
	case opAnyKey:
		switch {
		case v.Kind == types.JSONObject:
			for _, x := range v.Items {
				if err := e.then(it, x, emit); err != nil {
					return err
				}
			}
			return nil
		case v.Kind == types.JSONArray && unwrap:
			return e.each(it, v, emit)
		}
		return e.structural("2203C", "jsonpath wildcard member accessor can only be applied to an object")
	case opAnyArray:
		switch {
		case v.Kind == types.JSONArray:
			for _, x := range v.Items {
				if err := e.then(it, x, emit); err != nil {
					return err
				}
			}
			return nil
		case !e.strict:
			return e.then(it, v, emit)
		}
		return e.structural("22039", "jsonpath wildcard array accessor can only be applied to an array")
	case opIndex:
		return e.index(it, v, emit)
	case opAny:
		quiet := e.quiet
		e.quiet = true
		err := e.descend(it, v, 0, emit)
		e.quiet = quiet
		return err
	case opFilter:
		if v.Kind == types.JSONArray && unwrap {
			return e.each(it, v, emit)
		}
		outer := e.current
		e.current = v
		t, err := e.test(it.left, v)
		e.current = outer
		if err != nil || t != yes {
			return err
		}
		return e.then(it, v, emit)
	case opMethod:
		return e.method(it, v, unwrap, emit)
	case opPlus, opMinus:
		return e.sequence(it.left, v, func(x types.JSONValue) error {
			if x.Kind != types.JSONNumber {
				return soft("2203B", "operand of unary jsonpath operator %s is not a numeric value", opNames[it.op])
			}
			if it.op == opMinus {
				x.Num = x.Num.Neg()
			}
			return e.then(it, x, emit)
		})
	}
	return e.arithmetic(it, v, emit)
}

// sequence runs an operand and, in lax mode, gives the items of arrays in place of them.
func (e *eval) sequence(it *item, v types.JSONValue, emit emitter) error {
	return e.run(it, v, !e.strict, func(x types.JSONValue) error {
		if e.strict || x.Kind != types.JSONArray {
			return emit(x)
		}
		for _, y := range x.Items {
			if err := emit(y); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *eval) arithmetic(it *item, v types.JSONValue, emit emitter) error {
	operand := func(x *item, side string) (types.Decimal, error) {
		var got []types.JSONValue
		err := e.sequence(x, v, func(y types.JSONValue) error {
			got = append(got, y)
			return nil
		})
		if err == nil && (len(got) != 1 || got[0].Kind != types.JSONNumber) {
			err = soft("22038", "%s operand of jsonpath operator %s is not a single numeric value", side, opNames[it.op])
		}
		if err != nil {
			return types.Decimal{}, err
		}
		return got[0].Num, nil
	}
	a, err := operand(it.left, "left")
	if err != nil {
		return err
	}
	b, err := operand(it.right, "right")
	if err != nil {
		return err
	}
	var out types.Decimal
	switch it.op {
	case opAdd:
		out = a.Add(b)
	case opSub:
		out = a.Sub(b)
	case opMul:
		out = a.Mul(b)
	case opDiv:
		out, err = a.Div(b)
	case opMod:
		out, err = a.Mod(b)
	default:
		return sqlerr.New(sqlerr.Internal, "unknown jsonpath item %d", it.op)
	}
	if err == nil {
		err = out.Check()
	}
	if err != nil {
		return softError{err}
	}
	return e.then(it, types.NewJSONNumber(out), emit)
}

func (e *eval) index(it *item, v types.JSONValue, emit emitter) error {
	if v.Kind != types.JSONArray {
		if e.strict {
			return e.structural("22039", "jsonpath array accessor can only be applied to an array")
		}
		v = types.NewJSONArray([]types.JSONValue{v})
	}
	outer := e.last
	defer func() { e.last = outer }()
	size := len(v.Items)
	for _, sub := range it.subs {
		e.last = size - 1
		from, err := e.subscript(sub[0], v)
		if err != nil {
			return err
		}
		to := from
		if sub[1] != nil {
			if to, err = e.subscript(sub[1], v); err != nil {
				return err
			}
		}
		if from < 0 || from > to || to >= size {
			if err := e.structural("22033", "jsonpath array subscript is out of bounds"); err != nil {
				return err
			}
		}
		for i := max(from, 0); i <= min(to, size-1); i++ {
			e.last = outer
			if err := e.then(it, v.Items[i], emit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *eval) subscript(it *item, v types.JSONValue) (int, error) {
	var got []types.JSONValue
	if err := e.run(it, v, !e.strict, func(x types.JSONValue) error {
		got = append(got, x)
		return nil
	}); err != nil {
		return 0, err
	}
	if len(got) != 1 || got[0].Kind != types.JSONNumber {
		return 0, soft("22033", "jsonpath array subscript is not a single numeric value")
	}
	n, err := got[0].Num.Trunc(0).Int64("integer")
	if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, soft("22033", "jsonpath array subscript is out of integer range")
	}
	return int(n), nil
}

// descend is .**: v itself at level 0, then what it holds.
func (e *eval) descend(it *item, v types.JSONValue, level uint32, emit emitter) error {
	// {last}: only what holds nothing more.
	if level >= it.first && level <= it.last || it.first == noLimit && v.IsScalar() {
		if err := e.then(it, v, emit); err != nil {
			return err
		}
	}
	if level >= it.last {
		return nil
	}
	for _, x := range v.Items {
		if err := e.descend(it, x, level+1, emit); err != nil {
			return err
		}
	}
	return nil
}

func (e *eval) method(it *item, v types.JSONValue, unwrap bool, emit emitter) error {
	switch it.str {
	case "type":
		name := [...]string{"null", "string", "number", "boolean", "array", "object"}[v.Kind]
		return e.then(it, types.NewJSONString(name), emit)
	case "size":
		n := 1
		if v.Kind == types.JSONArray {
			n = len(v.Items)
		} else if err := e.structural("22039", "jsonpath item method .size() can only be applied to an array"); err != nil {
			return err
		}
		return e.then(it, types.NewJSONNumber(types.NewDecimalInt(int64(n))), emit)
	}
	if v.Kind == types.JSONArray && unwrap {
		return e.each(it, v, emit)
	}
	switch it.str {
	case "abs", "floor", "ceiling":
		if v.Kind != types.JSONNumber {
			return soft("22036", "jsonpath item method .%s() can only be applied to a numeric value", it.str)
		}
		switch it.str {
		case "abs":
			v.Num = v.Num.Abs()
		case "floor":
			v.Num = v.Num.Floor()
		default:
			v.Num = v.Num.Ceil()
		}
		return e.then(it, v, emit)
	case "double":
		switch v.Kind {
		case types.JSONNumber:
			if math.IsInf(v.Num.Float64(), 0) {
				return soft("22036", "numeric argument of jsonpath item method .%s() is out of range for type double precision", it.str)
			}
			return e.then(it, v, emit)
		case types.JSONString:
			f, err := types.ParseFloat8(v.Str)
			if err != nil || math.IsInf(f, 0) || f != f {
				return soft("22036", "string argument of jsonpath item method .%s() is not a valid representation of a double precision number", it.str)
			}
			return e.then(it, types.NewJSONNumber(types.DecimalFromFloat8(f)), emit)
		}
		return soft("22036", "jsonpath item method .%s() can only be applied to a string or numeric value", it.str)
	case "keyvalue":
		if v.Kind != types.JSONObject {
			return soft("2203C", "jsonpath item method .%s() can only be applied to an object", it.str)
		}
		id := types.NewJSONNumber(types.NewDecimalInt(int64(e.objects)))
		e.objects++
		for i, key := range v.Keys {
			pair := types.NewJSONObject([]string{"id", "key", "value"}, []types.JSONValue{id, types.NewJSONString(key), v.Items[i]})
			if err := e.then(it, pair, emit); err != nil {
				return err
			}
		}
		return nil
	}
	return sqlerr.Unsupported("jsonpath item method .%s()", it.str)
}

// A truth is three-valued.
type truth uint8

const (
	no truth = iota
	yes
	unknown
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// test evaluates a predicate with v as the value that its paths start from. Soft errors make it unknown.
func (e *eval) test(it *item, v types.JSONValue) (truth, error) {
	switch it.op {
	case opAnd, opOr:
		short := no
		if it.op == opOr {
			short = yes
		}
		a, err := e.test(it.left, v)
		if err != nil || a == short {
			return a, err
		}
		b, err := e.test(it.right, v)
		if err != nil || b == short || a != unknown {
			return b, err
		}
		return a, nil
	case opNot:
		a, err := e.test(it.left, v)
		switch a {
		case yes:
			a = no
		case no:
			a = yes
		}
		return a, err
	case opUnknown:
		a, err := e.test(it.left, v)
		return truthOf(a == unknown), err
	case opExists:
		found := false
		err := e.run(it.left, v, !e.strict, func(types.JSONValue) error {
			found = true
			if !e.strict {
				return errStop
			}
			return nil
		})
		switch {
		case err == errStop:
			return yes, nil
		case err != nil && Soft(err):
			return unknown, nil
		}
		return truthOf(found), err
	case opStarts:
		return e.pairs(it.left, it.right, v, func(a, b types.JSONValue) truth {
			if a.Kind != types.JSONString || b.Kind != types.JSONString {
				return unknown
			}
			return truthOf(strings.HasPrefix(a.Str, b.Str))
		})
	case opLike:
		match, err := e.env.Regexp(it.str, likeFlags(it.flags))
		if err != nil {
			return unknown, err
		}
		return e.pairs(it.left, nil, v, func(a, _ types.JSONValue) truth {
			if a.Kind != types.JSONString {
				return unknown
			}
			return truthOf(match(a.Str))
		})
	case opEq, opNe, opLt, opGt, opLe, opGe:
		return e.pairs(it.left, it.right, v, func(a, b types.JSONValue) truth { return compare(it.op, a, b) })
	}
	return unknown, sqlerr.New(sqlerr.Internal, "invalid boolean jsonpath item type: %d", it.op)
}

// likeFlags turns XQuery's flags into a regular expression's options: without s the
// dot stops at line ends, with m ^ and $ match at them.
func likeFlags(f string) string {
	out := ""
	if strings.ContainsRune(f, 'i') {
		out = "i"
	}
	if strings.ContainsRune(f, 'q') {
		return out + "q"
	}
	dot, lines := !strings.ContainsRune(f, 's'), strings.ContainsRune(f, 'm')
	switch {
	case dot && lines:
		out += "n"
	case dot:
		out += "p"
	case lines:
		out += "w"
	}
	return out
}

// pairs tests every value of left with every one of right (nil: none). In lax mode the
// first that holds decides; in strict mode all must be looked at, and any unknown one decides.
func (e *eval) pairs(left, right *item, v types.JSONValue, test func(a, b types.JSONValue) truth) (truth, error) {
	collect := func(it *item) ([]types.JSONValue, truth, error) {
		if it == nil {
			return []types.JSONValue{{}}, yes, nil
		}
		var out []types.JSONValue
		err := e.sequence(it, v, func(x types.JSONValue) error {
			out = append(out, x)
			return nil
		})
		if err != nil && Soft(err) {
			return nil, unknown, nil
		}
		return out, yes, err
	}
	as, t, err := collect(left)
	if err != nil || t == unknown {
		return unknown, err
	}
	bs, t, err := collect(right)
	if err != nil || t == unknown {
		return unknown, err
	}
	result := no
	for _, a := range as {
		for _, b := range bs {
			switch t := test(a, b); {
			case t == unknown && e.strict:
				return unknown, nil
			case t == unknown && result == no:
				result = unknown
			case t == yes && !e.strict:
				return yes, nil
			case t == yes:
				result = yes
			}
		}
	}
	return result, nil
}

func compare(o op, a, b types.JSONValue) truth {
	if a.Kind != b.Kind {
		if a.Kind == types.JSONNull || b.Kind == types.JSONNull {
			return truthOf(o == opNe)
		}
		return unknown
	}
	if !a.IsScalar() {
		return unknown
	}
	c := a.Cmp(b)
	switch o {
	case opEq:
		return truthOf(c == 0)
	case opNe:
		return truthOf(c != 0)
	case opLt:
		return truthOf(c < 0)
	case opGt:
		return truthOf(c > 0)
	case opLe:
		return truthOf(c <= 0)
	}
	return truthOf(c >= 0)
}
