package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// join plans a hash join of which the given columns are wanted (different, in any order).
//
// A join without keys runs in one actor. Otherwise both sides are hashed by the join
// keys. The output key is both sides' keys, and the join key of each side that may
// come out unmatched: when a row's join key changes, the old and the new output
// row come from different actors and must not be the same row to what follows.
func (b *builder) join(n *plan.Join, want []int) (plan.Stream, error) {
	if n.Lateral {
		return nil, sqlerr.Unsupported("LATERAL join in a streaming query")
	}
	if n.On != nil {
		if err := checkView(n.On); err != nil {
			return nil, err
		}
	}
	wl := len(n.Left.Schema())
	l, lNote, err := b.ask(n.Left, n.LeftKeys, b.joinState(n.Left, n.LeftKeys, n.Right, n.RightKeys))
	if err != nil {
		return nil, err
	}
	r, rNote, err := b.ask(n.Right, n.RightKeys, b.joinState(n.Right, n.RightKeys, n.Left, n.LeftKeys))
	if err != nil {
		return nil, err
	}
	if n.Kind == plan.Full && !neverNull(l) && !neverNull(r) {
		l = b.mark(l)
	}
	lKey, rKey := l.Props().Key, r.Props().Key
	ld, rd := plan.Dist{Kind: plan.Single}, plan.Dist{Kind: plan.Single}
	if len(n.LeftKeys) > 0 {
		ld = plan.Dist{Kind: plan.HashShard, Cols: n.LeftKeys}
		rd = plan.Dist{Kind: plan.HashShard, Cols: n.RightKeys}
	}
	l, r = port(l, ld), port(r, rd)
	ls, rs := l.Props().Schema, r.Props().Schema
	width := len(ls)
	j := &plan.StreamHashJoin{
		Kind: n.Kind, LeftKeys: n.LeftKeys, RightKeys: n.RightKeys, NullSafe: n.NullSafe,
		LeftState:  joinTable("HashJoinLeft", l.Props(), n.LeftKeys),
		RightState: joinTable("HashJoinRight", r.Props(), n.RightKeys),
	}
	if n.On != nil {
		j.Cond = remap(n.On, func(c int) int {
			if c >= wl {
				return c - wl + width
			}
			return c
		})
	}
	// Without a condition a row matches what the other side has under its key: that is its degree.
	switch {
	case n.On == nil:
	case n.Kind == plan.Left, n.Kind == plan.Semi, n.Kind == plan.Anti:
		j.LeftDegree = degreeTable("HashJoinDegreeLeft", l.Props(), j.LeftState)
	case n.Kind == plan.Right:
		j.RightDegree = degreeTable("HashJoinDegreeRight", r.Props(), j.RightState)
	case n.Kind == plan.Full:
		j.LeftDegree = degreeTable("HashJoinDegreeLeft", l.Props(), j.LeftState)
		j.RightDegree = degreeTable("HashJoinDegreeRight", r.Props(), j.RightState)
	}

	j.Output = through(want, func(c int) int {
		if c >= wl {
			return c - wl + width
		}
		return c
	})
	key, dist := joinKey(n, lKey, plus(rKey, width), n.LeftKeys, plus(n.RightKeys, width), j.Output)
	j.Output = appendNew(j.Output, key...)
	pos := positions(j.Output)
	both := append(slices.Clone(ls), rs...)
	j.Operator = plan.Props{
		Schema: both.Project(j.Output), Key: through(key, pos), Dist: mapDist(dist, pos),
		AppendOnly: (n.Kind == plan.Inner || n.Kind == plan.Semi) && l.Props().AppendOnly && r.Props().AppendOnly,
		In:         []plan.Stream{l, r},
		Locality:   notes("left", lNote.text, "right", rNote.text),
		StateRows:  lNote.state.rows + rNote.state.rows, StateBytes: lNote.state.bytes() + rNote.state.bytes(),
	}
	return j, nil
}

// joinKey gives the output's key and distribution in columns of left ++ right.
func joinKey(n *plan.Join, lKey, rKey, lJoin, rJoin, output []int) (key []int, d plan.Dist) {
	switch n.Kind {
	case plan.Semi, plan.Anti:
		key, d.Cols = appendNew(slices.Clone(lKey), lJoin...), lJoin
	case plan.Left:
		key, d.Cols = appendNew(slices.Concat(lKey, rKey), lJoin...), lJoin
	case plan.Right:
		key, d.Cols = appendNew(slices.Concat(lKey, rKey), rJoin...), rJoin
	case plan.Full:
		key = appendNew(appendNew(slices.Concat(lKey, rKey), lJoin...), rJoin...)
		if len(lJoin) > 0 {
			return key, plan.Dist{Kind: plan.SomeShard}
		}
	default:
		// The two join columns of a matched row are equal: one is enough, best one that comes out anyhow.
		key = slices.Concat(lKey, rKey)
		for i, l := range lJoin {
			r := rJoin[i]
			hasL, hasR := slices.Contains(key, l), slices.Contains(key, r)
			outL, outR := slices.Contains(output, l), slices.Contains(output, r)
			use, drop := l, r
			if outR && !outL || outL == outR && hasR && !hasL {
				use, drop = r, l
			}
			if !hasL && !hasR {
				key = append(key, use)
			} else {
				for k := range key {
					if key[k] == drop {
						key[k] = use
					}
				}
				key = appendNew(nil, key...)
			}
			d.Cols = append(d.Cols, use)
		}
	}
	if len(lJoin) > 0 {
		d.Kind = plan.HashShard
	}
	return key, d
}

// mark adds a constant to in's key. A full join needs it where both sides can have a row whose
// key is all NULL: unmatched, the two would come out with the same key.
func (b *builder) mark(in plan.Stream) plan.Stream {
	s := in.Props().Schema
	es := append(colRefs(s, upTo(len(s))), &expr.Const{Val: types.NewBool(true), Typ: types.Bool})
	p := b.project(in, es).(*plan.StreamProject)
	p.Key = append(slices.Clone(p.Key), len(s))
	return p
}

// neverNull reports whether some column of s's key surely has no NULL.
func neverNull(s plan.Stream) bool {
	return slices.ContainsFunc(s.Props().Key, func(k int) bool { return notNull(s, k) })
}

func notNull(s plan.Stream, col int) bool {
	switch s := s.(type) {
	case *plan.StreamTableScan:
		c := s.Cols[col]
		r := s.Table
		return neverNullColumn(r, c) || r.Kind == catalog.Table && c == rowIDColumn(r)
	case *plan.StreamRowIDGen:
		return col == s.Col || notNull(s.In[0], col)
	case *plan.StreamProject:
		switch e := s.Exprs[col].(type) {
		case *expr.ColRef:
			return notNull(s.In[0], e.Index)
		case *expr.Const:
			return !e.Val.IsNull()
		}
	case *plan.StreamFilter, *plan.StreamExchange, *plan.StreamLocalityProvider:
		return notNull(s.Inputs()[0], col)
	}
	return false
}

// neverNullColumn reports whether a column surely has no NULL.
func neverNullColumn(rel *catalog.Relation, c int) bool {
	key := slices.IndexFunc(rel.Key, func(k catalog.KeyColumn) bool { return k.Col == c })
	return rel.Columns[c].NotNull || key >= 0 && key < rel.PrimaryKey
}

// joinTable keeps one side's rows by join key.
func joinTable(name string, p *plan.Props, keys []int) *plan.TableDesc {
	all := upTo(len(p.Schema))
	return table(name, p.Schema, all, appendNew(slices.Clone(keys), p.Key...), slices.Clone(keys))
}

// degreeTable counts the matches of each row of state's side.
func degreeTable(name string, p *plan.Props, state *plan.TableDesc) *plan.TableDesc {
	pos := positions(state.Key)
	t := table(name, p.Schema, state.Key, upTo(len(state.Key)), through(state.Dist, pos))
	also(t, "degree", types.Int8)
	return t
}

// notes joins the remarks of several inputs.
func notes(kv ...string) string {
	out := ""
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] == "" {
			continue
		}
		if out != "" {
			out += "; "
		}
		out += kv[i] + ": " + kv[i+1]
	}
	return out
}
