package batch

import (
	"context"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
)

// A lookup is a lateral join whose right side is one row of a relation, found by its
// whole key: it looks up the rows of a chunk together.
type lookup struct {
	*access
	env  *Env
	plan *plan.Join
	scan *plan.Scan
	on   expr.Expr
	left Iterator
	over *Overlay
	key  []int // left columns with the values of the key
}

// lookupOf recognizes such a join.
func lookupOf(n *plan.Join, env *Env) (*plan.Scan, bool) {
	s, ok := n.Right.(*plan.Scan)
	if !ok || s.Rel.Kind == catalog.System || len(s.Ranges) != 1 || s.Ranges[0].Lo != nil || s.Ranges[0].Hi != nil ||
		n.Kind != plan.Inner && n.Kind != plan.Left {
		return nil, false
	}
	a := env.accessOf(s)
	if len(s.Ranges[0].Eq) != len(a.keys) {
		return nil, false
	}
	typs := env.typesOf(n.Left)
	for i, x := range s.Ranges[0].Eq {
		r, ok := x.(*expr.OuterRef)
		if !ok || r.Level != 1 || typs[r.Index].Kind() != a.keys[i].Kind() {
			return nil, false
		}
	}
	return s, true
}

func newLookup(n *plan.Join, s *plan.Scan, left Iterator, env *Env) *lookup {
	l := &lookup{access: env.accessOf(s), env: env, plan: n, scan: s, on: env.ready(n.On), left: left, over: env.overlayOf(s)}
	for _, x := range s.Ranges[0].Eq {
		l.key = append(l.key, x.(*expr.OuterRef).Index)
	}
	return l
}

func (l *lookup) Close() { l.left.Close() }

func (l *lookup) Next(ctx context.Context) (*chunk.Chunk, error) {
	for {
		c, err := l.left.Next(ctx)
		if err != nil || c == nil {
			return nil, err
		}
		out, err := l.join(c)
		if out != nil || err != nil {
			return out, err
		}
		if err := stopped(ctx); err != nil {
			return nil, err
		}
	}
}

func (l *lookup) join(c *chunk.Chunk) (*chunk.Chunk, error) {
	eq := pick(c.Cols, l.key)
	var vnodes []uint16
	if len(l.desc.Dist) > 0 && l.desc.Vnodes > 1 {
		dist, _ := l.dist(eq)
		vnodes = chunk.Vnodes(dist, upTo(len(dist)), c.N, l.desc.Vnodes)
	}
	var keys [][]byte
	var at []int // left row of each key
	for i := range c.N {
		null := false
		for _, col := range eq {
			null = null || col.Null(i)
		}
		if null {
			continue
		}
		v := uint16(0)
		if vnodes != nil {
			v = vnodes[i]
		}
		keys, at = append(keys, l.codec.AppendPrefix(nil, v, eq, i)), append(at, i)
	}
	cols, found, err := l.get(l.env, l.scan.Cols, l.over, keys)
	if err != nil {
		return nil, err
	}
	lsel, rsel := make([]int, len(found)), upTo(len(found))
	for k, i := range found {
		lsel[k] = at[i]
	}
	if l.on != nil && len(found) > 0 {
		pairs := &chunk.Chunk{N: len(found)}
		for _, col := range c.Cols {
			pairs.Cols = append(pairs.Cols, col.Gather(lsel))
		}
		pairs.Cols = append(pairs.Cols, cols...)
		sel, err := expr.Filter(l.env.Ctx, l.on, pairs)
		if err != nil {
			return nil, err
		}
		for k, s := range sel {
			lsel[k], rsel[k] = lsel[s], s
		}
		lsel, rsel = lsel[:len(sel)], rsel[:len(sel)]
	}
	if l.plan.Kind == plan.Left {
		hit := make([]bool, c.N)
		for _, i := range lsel {
			hit[i] = true
		}
		for i, h := range hit {
			if !h {
				lsel, rsel = append(lsel, i), append(rsel, -1)
			}
		}
	}
	if len(lsel) == 0 {
		return nil, nil
	}
	out := &chunk.Chunk{N: len(lsel), Cols: make([]chunk.Column, 0, len(c.Cols)+len(cols))}
	for _, col := range c.Cols {
		out.Cols = append(out.Cols, col.Gather(lsel))
	}
	for _, col := range cols {
		out.Cols = append(out.Cols, gatherPadded(col, rsel))
	}
	return out, nil
}
