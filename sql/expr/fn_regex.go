package expr

import (
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// patterns adds LIKE, SIMILAR TO, the regular expression operators and functions.
func patterns(r *registry) {
	for _, t := range []string{"text", "name", "bpchar"} {
		args := "(" + t + ",text) bool"
		r.def("~~"+args, likeKernel(false, false))
		r.def("!~~"+args, likeKernel(true, false))
		r.def("~~*"+args, likeKernel(false, true))
		r.def("!~~*"+args, likeKernel(true, true))
	}
	r.def("~~(bytea,bytea) bool", likeKernel(false, false))
	r.def("!~~(bytea,bytea) bool", likeKernel(true, false))
	r.defs(likeKernel(false, false), "like(text,text) bool", "like(name,text) bool")
	r.def("like(bytea,bytea) bool", likeKernel(false, false))
	r.def("notlike(bytea,bytea) bool", likeKernel(true, false))
	r.def("like_escape(bytea,bytea) bytea", e2(likeEscape))
	r.defs(likeKernel(true, false), "notlike(text,text) bool", "notlike(name,text) bool")
	r.def("like_escape(text,text) text", e2(likeEscape))
	r.def("similar_to_escape(text,text) text", e2(similarToRegex))
	r.def("similar_to_escape(text) text", e1(func(p string) (string, error) { return similarToRegex(p, `\`) }))

	cache := &regexCache{}
	match := func(not bool, flags string) maker {
		return e2(func(s, p string) (bool, error) {
			re, err := cache.get(p, flags)
			if err != nil {
				return false, err
			}
			return re.MatchString(s) != not, nil
		})
	}
	for _, t := range []string{"text", "name", "bpchar"} {
		args := "(" + t + ",text) bool"
		r.def("~"+args, match(false, ""))
		r.def("!~"+args, match(true, ""))
		r.def("~*"+args, match(false, "i"))
		r.def("!~*"+args, match(true, "i"))
	}
	r.def("regexp_like(text,text) bool", match(false, ""))
	r.def("regexp_like(text,text,text) bool", e3(func(s, p, flags string) (bool, error) {
		re, err := cache.get(p, flags)
		if err != nil {
			return false, err
		}
		return re.MatchString(s), nil
	}))
	r.def("regexp_count(text,text) int4", e2(func(s, p string) (int64, error) { return regexpCount(cache, s, p, 1, "") }))
	r.def("regexp_count(text,text,int4) int4", e3(func(s, p string, start int64) (int64, error) {
		return regexpCount(cache, s, p, start, "")
	}))
	r.def("regexp_count(text,text,int4,text) int4", lift4(func(_ *Ctx, s, p string, start int64, flags string) (int64, error) {
		return regexpCount(cache, s, p, start, flags)
	}))
	r.def("regexp_match(text,text) text[]", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		return regexpMatch(cache, a[0].Str(), a[1].Str(), "")
	}))
	r.def("regexp_match(text,text,text) text[]", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if strings.Contains(a[2].Str(), "g") {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "regexp_match() does not support the \"global\" option").
				WithHint("Use the regexp_matches function instead.")
		}
		return regexpMatch(cache, a[0].Str(), a[1].Str(), a[2].Str())
	}))
	substr := func(s, p string, start, nth int64, flags string, group int64) (types.Datum, error) {
		re, err := cache.get(p, flags)
		if err != nil {
			return types.Datum{}, err
		}
		if start < 1 {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", "start", start)
		}
		if nth < 1 {
			return types.Datum{}, sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", "n", nth)
		}
		all := re.FindAllStringSubmatchIndex(s[byteOffset(s, start-1):], int(nth))
		if len(all) < int(nth) || int(group) > re.NumSubexp() {
			return types.Datum{}, nil
		}
		s = s[byteOffset(s, start-1):]
		m := all[nth-1]
		if m[2*group] < 0 {
			return types.Datum{}, nil
		}
		return types.NewString(s[m[2*group]:m[2*group+1]]), nil
	}
	withDefaults := func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		start, nth, flags, group := int64(1), int64(1), "", int64(0)
		if len(a) > 2 {
			start = a[2].Int()
		}
		if len(a) > 3 {
			nth = a[3].Int()
		}
		if len(a) > 4 {
			flags = a[4].Str()
		}
		if len(a) > 5 {
			group = a[5].Int()
		}
		return substr(a[0].Str(), a[1].Str(), start, nth, flags, group)
	}
	r.defs(boxed(withDefaults), "regexp_substr(text,text) text", "regexp_substr(text,text,int4) text", "regexp_substr(text,text,int4,int4) text",
		"regexp_substr(text,text,int4,int4,text) text", "regexp_substr(text,text,int4,int4,text,int4) text")
	instr := func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		n, err := regexpInstr(cache, a)
		return types.NewInt(n), err
	}
	r.defs(boxed(instr), "regexp_instr(text,text) int4", "regexp_instr(text,text,int4) int4", "regexp_instr(text,text,int4,int4) int4",
		"regexp_instr(text,text,int4,int4,int4) int4", "regexp_instr(text,text,int4,int4,int4,text) int4",
		"regexp_instr(text,text,int4,int4,int4,text,int4) int4")
	// substring(s from pattern): the first group, or the whole match without groups.
	r.def("substring(text,text) text", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		re, err := cache.get(a[1].Str(), "")
		if err != nil {
			return types.Datum{}, err
		}
		return substr(a[0].Str(), a[1].Str(), 1, 1, "", int64(min(re.NumSubexp(), 1)))
	}))
	r.defs(boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		return similarPart(cache, a[0].Str(), a[1].Str(), a[2].Str())
	}), "substring(text,text,text) text")
	r.def("regexp_replace(text,text,text) text", e3(func(s, p, with string) (string, error) {
		return regexpReplace(cache, s, p, with, 1, 1, "")
	}))
	r.def("regexp_replace(text,text,text,text) text", lift4(func(_ *Ctx, s, p, with, flags string) (string, error) {
		if flags != "" && flags[0] >= '0' && flags[0] <= '9' {
			return "", sqlerr.New(sqlerr.InvalidParameter, "invalid regular expression option: \"%c\"", flags[0]).
				WithHint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
		}
		nth := int64(1)
		if strings.Contains(flags, "g") {
			nth = 0
		}
		return regexpReplace(cache, s, p, with, 1, nth, flags)
	}))
	r.def("regexp_replace(text,text,text,int4) text", lift4(func(_ *Ctx, s, p, with string, start int64) (string, error) {
		return regexpReplace(cache, s, p, with, start, 1, "")
	}))
	more := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		flags := ""
		if len(a) > 5 {
			flags = a[5].Str()
		}
		s, err := regexpReplace(cache, a[0].Str(), a[1].Str(), a[2].Str(), a[3].Int(), a[4].Int(), flags)
		return types.NewString(s), err
	})
	r.defs(more, "regexp_replace(text,text,text,int4,int4) text", "regexp_replace(text,text,text,int4,int4,text) text")
	split := func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		flags := ""
		if len(a) > 2 {
			flags = a[2].Str()
		}
		parts, err := regexpSplit(cache, a[0].Str(), a[1].Str(), flags)
		return textList(parts), err
	}
	r.defs(boxed(split), "regexp_split_to_array(text,text) text[]", "regexp_split_to_array(text,text,text) text[]")
}

// byteOffset is where the n-th character (from 0) of s begins, at most len(s).
func byteOffset(s string, n int64) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func textList(items []string) types.Datum {
	l := &types.List{Elem: types.Text, Lower: 1}
	for _, s := range items {
		l.Items = append(l.Items, types.NewString(s))
	}
	return types.NewList(l)
}

func regexpCount(c *regexCache, s, p string, start int64, flags string) (int64, error) {
	if start < 1 {
		return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", "start", start)
	}
	re, err := c.get(p, flags)
	if err != nil {
		return 0, err
	}
	return int64(len(re.FindAllStringIndex(s[byteOffset(s, start-1):], -1))), nil
}

// groups is what regexp_match gives for one match: the groups, or the whole without groups.
func groups(s string, m []int) types.Datum {
	l := &types.List{Elem: types.Text, Lower: 1}
	first := 2
	if len(m) == 2 {
		first = 0
	}
	for k := first; k < len(m); k += 2 {
		if m[k] < 0 {
			l.Items = append(l.Items, types.Datum{})
		} else {
			l.Items = append(l.Items, types.NewString(s[m[k]:m[k+1]]))
		}
	}
	return types.NewList(l)
}

// regexpInstr is regexp_instr: where the nth match from a place on begins, or the
// place after it, of the whole match or one group; 0: nowhere.
func regexpInstr(c *regexCache, a []types.Datum) (int64, error) {
	n := [...]int64{2: 1, 3: 1, 4: 0, 6: 0}
	flags := ""
	for i, d := range a {
		if i == 5 {
			flags = d.Str()
		} else if i > 1 {
			n[i] = d.Int()
		}
	}
	start, nth, end, group := n[2], n[3], n[4], n[6]
	for _, p := range []struct {
		name string
		v    int64
		ok   bool
	}{{"start", start, start > 0}, {"n", nth, nth > 0}, {"endoption", end, end == 0 || end == 1}, {"subexpr", group, group >= 0}} {
		if !p.ok {
			return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", p.name, p.v)
		}
	}
	if strings.Contains(flags, "g") {
		return 0, sqlerr.New(sqlerr.InvalidParameter, "regexp_instr() does not support the \"global\" option")
	}
	re, err := c.get(a[1].Str(), flags)
	if err != nil {
		return 0, err
	}
	s := a[0].Str()
	at := byteOffset(s, start-1)
	all := re.FindAllStringSubmatchIndex(s[at:], int(nth))
	if len(all) < int(nth) || int(group) > re.NumSubexp() {
		return 0, nil
	}
	place := all[nth-1][2*group+end]
	if place < 0 {
		return 0, nil
	}
	return chars(s[:at+place]) + 1, nil
}

// similarPart is substring(s SIMILAR pattern ESCAPE escape): the part of s that
// matches what stands between the two escaped quotes of the pattern.
func similarPart(c *regexCache, s, pattern, escape string) (types.Datum, error) {
	re, err := similarToRegex(pattern, escape)
	if err != nil {
		return types.Datum{}, err
	}
	x, err := c.get(re, "")
	if err != nil {
		return types.Datum{}, err
	}
	m := x.FindStringSubmatchIndex(s)
	if m == nil {
		return types.Datum{}, nil
	}
	if x.NumSubexp() == 0 {
		return types.NewString(s[m[0]:m[1]]), nil
	}
	if m[2] < 0 {
		return types.Datum{}, nil
	}
	return types.NewString(s[m[2]:m[3]]), nil
}

func regexpMatch(c *regexCache, s, p, flags string) (types.Datum, error) {
	re, err := c.get(p, flags)
	if err != nil {
		return types.Datum{}, err
	}
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return types.Datum{}, nil
	}
	return groups(s, m), nil
}

// regexpReplace replaces the nth match (0: all) from character start on; \1 … \9 and \& name what was matched.
func regexpReplace(c *regexCache, s, p, with string, start, nth int64, flags string) (string, error) {
	if start < 1 {
		return "", sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", "start", start)
	}
	if nth < 0 {
		return "", sqlerr.New(sqlerr.InvalidParameter, "invalid value for parameter \"%s\": %d", "n", nth)
	}
	re, err := c.get(p, strings.ReplaceAll(flags, "g", ""))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	at := byteOffset(s, start-1)
	b.WriteString(s[:at])
	s = s[at:]
	limit := -1
	if nth > 0 {
		limit = int(nth)
	}
	done := 0
	for k, m := range re.FindAllStringSubmatchIndex(s, limit) {
		if nth > 0 && int64(k+1) != nth {
			continue
		}
		b.WriteString(s[done:m[0]])
		for i := 0; i < len(with); i++ {
			if with[i] != '\\' || i+1 == len(with) {
				b.WriteByte(with[i])
				continue
			}
			i++
			switch e := with[i]; {
			case e == '&':
				b.WriteString(s[m[0]:m[1]])
			case e >= '0' && e <= '9':
				if g := int(e - '0'); 2*g+1 < len(m) && m[2*g] >= 0 {
					b.WriteString(s[m[2*g]:m[2*g+1]])
				}
			case e == '\\':
				b.WriteByte('\\')
			default:
				b.WriteByte('\\')
				b.WriteByte(e)
			}
		}
		done = m[1]
	}
	b.WriteString(s[done:])
	return b.String(), nil
}

// regexpSplit cuts s at the matches of p, ignoring empty ones at its ends and right after another match.
func regexpSplit(c *regexCache, s, p, flags string) ([]string, error) {
	re, err := c.get(p, flags)
	if err != nil {
		return nil, err
	}
	var out []string
	from := 0
	for _, m := range re.FindAllStringIndex(s, -1) {
		if m[1] == m[0] && (m[0] == 0 || m[0] == len(s)) {
			continue
		}
		out = append(out, s[from:m[0]])
		from = m[1]
	}
	return append(out, s[from:]), nil
}
