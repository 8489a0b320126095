package expr

import (
	"sync"

	"streamdb/sql/chunk"
	"streamdb/sql/jsonpath"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A pathCache keeps the paths compiled last; most calls have one path for all rows.
type pathCache struct {
	mu    sync.Mutex
	paths map[string]*jsonpath.Path
	regex regexCache
}

func (c *pathCache) get(s string) (*jsonpath.Path, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.paths[s]; ok {
		return p, nil
	}
	p, err := jsonpath.Parse(s)
	if err != nil {
		return nil, err
	}
	if c.paths == nil || len(c.paths) >= 64 {
		c.paths = map[string]*jsonpath.Path{}
	}
	c.paths[s] = p
	return p, nil
}

// pathArgs are the arguments (value, path, variables, silent) of the jsonb_path functions.
func (c *pathCache) args(a []types.Datum) (v types.JSONValue, p *jsonpath.Path, env *jsonpath.Env, silent bool, err error) {
	if p, err = c.get(a[1].Str()); err != nil {
		return v, nil, nil, false, err
	}
	env = &jsonpath.Env{Regexp: func(pattern, flags string) (func(string) bool, error) {
		re, err := c.regex.get(pattern, flags)
		if err != nil {
			return nil, err
		}
		return re.MatchString, nil
	}}
	if len(a) > 2 {
		env.Vars = types.MustJSON(a[2].Str())
		if env.Vars.Kind == types.JSONNull {
			env.Vars = types.NewJSONArray(nil) // refused: no object
		}
	}
	return types.MustJSON(a[0].Str()), p, env, len(a) > 3 && a[3].Bool(), nil
}

// jsonPaths adds the functions and operators that follow a jsonpath, and those of the
// set-returning kind.
func jsonPaths(r *registry) {
	c := &pathCache{}
	// each adds the functions' three signatures; those with _tz read times in the session's zone.
	each := func(name, ret string, f func(a []types.Datum) (types.Datum, error)) {
		mk := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) { return f(a) })
		for _, args := range []string{"jsonb,jsonpath", "jsonb,jsonpath,jsonb", "jsonb,jsonpath,jsonb,bool"} {
			r.def(name+"("+args+") "+ret, mk)
			r.def(name+"_tz("+args+") "+ret+" stable", mk)
		}
	}
	quiet := func(err error, silent bool) error {
		if silent && jsonpath.Soft(err) {
			return nil
		}
		return err
	}
	exists := func(a []types.Datum, silent bool) (types.Datum, error) {
		v, p, env, s, err := c.args(a)
		if err != nil {
			return types.Datum{}, err
		}
		found, err := p.Exists(v, env)
		if err != nil {
			return types.Datum{}, quiet(err, s || silent)
		}
		return types.NewBool(found), nil
	}
	match := func(a []types.Datum, silent bool) (types.Datum, error) {
		v, p, env, s, err := c.args(a)
		if err != nil {
			return types.Datum{}, err
		}
		var got []types.JSONValue
		if err := p.Query(v, env, func(x types.JSONValue) bool { got = append(got, x); return true }); err != nil {
			return types.Datum{}, quiet(err, s || silent)
		}
		switch {
		case len(got) == 1 && got[0].Kind == types.JSONBool:
			return types.NewBool(got[0].Bool), nil
		case len(got) == 1 && got[0].Kind == types.JSONNull, s || silent:
			return types.Datum{}, nil
		}
		return types.Datum{}, sqlerr.New("22038", "single boolean result is expected")
	}
	each("jsonb_path_exists", "bool", func(a []types.Datum) (types.Datum, error) { return exists(a, false) })
	each("jsonb_path_match", "bool", func(a []types.Datum) (types.Datum, error) { return match(a, false) })
	r.defs(boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) { return exists(a, true) }),
		"@?(jsonb,jsonpath) bool", "jsonb_path_exists_opr(jsonb,jsonpath) bool")
	r.defs(boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) { return match(a, true) }),
		"@@(jsonb,jsonpath) bool", "jsonb_path_match_opr(jsonb,jsonpath) bool")
	each("jsonb_path_query_array", "jsonb", func(a []types.Datum) (types.Datum, error) {
		v, p, env, silent, err := c.args(a)
		if err != nil {
			return types.Datum{}, err
		}
		out := types.NewJSONArray(nil)
		err = p.Query(v, env, func(x types.JSONValue) bool { out.Items = append(out.Items, x); return true })
		if err = quiet(err, silent); err != nil {
			return types.Datum{}, err
		}
		return types.NewString(out.Text()), nil
	})
	each("jsonb_path_query_first", "jsonb", func(a []types.Datum) (types.Datum, error) {
		v, p, env, silent, err := c.args(a)
		if err != nil {
			return types.Datum{}, err
		}
		var got []types.JSONValue // all of it is computed: an error after the first value is one too
		err = p.Query(v, env, func(x types.JSONValue) bool { got = append(got, x); return true })
		if err = quiet(err, silent); err != nil || len(got) == 0 {
			return types.Datum{}, err
		}
		return types.NewString(got[0].Text()), nil
	})
	query := func(_ *Ctx, a []types.Datum, out []chunk.Column) error {
		v, p, env, silent, err := c.args(a)
		if err != nil {
			return err
		}
		col := chunk.Of[string](out[0])
		err = p.Query(v, env, func(x types.JSONValue) bool { col.AppendValue(x.Text()); return true })
		return quiet(err, silent)
	}
	for _, name := range []string{"jsonb_path_query", "jsonb_path_query_tz"} {
		for _, args := range []string{"jsonb,jsonpath", "jsonb,jsonpath,jsonb", "jsonb,jsonpath,jsonb,bool"} {
			r.table(name+"("+args+") jsonb", nil, true, query)
		}
	}
}
