package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/types"
)

// k, j1, j2, v
var joinSchema = schemaOf(types.Int8, types.Int8, types.Text, types.Int8)

func joinRow(next *int64, keys int64) func(r *rand.Rand) types.Row {
	return func(r *rand.Rand) types.Row {
		*next++
		return types.Row{types.NewInt(*next), maybeNull(r, types.NewInt(r.Int64N(keys))),
			maybeNull(r, types.NewString(fmt.Sprint("j", r.IntN(2)))), types.NewInt(r.Int64N(5))}
	}
}

type joinCase struct {
	kind   plan.JoinKind
	keys   []int
	safe   []bool
	cond   bool // left.v < right.v
	budget int64
	size   int
}

func less(t testing.TB, a, b expr.Expr) expr.Expr {
	f, _, err := expr.Resolve("<", true, []types.Type{a.Type(), b.Type()})
	if err != nil {
		t.Fatal(err)
	}
	return &expr.Call{Fn: f, Args: []expr.Expr{a, b}, Typ: types.Bool}
}

func joinNode(t testing.TB, tc joinCase) *plan.StreamHashJoin {
	l, r := mergeOf(0, joinSchema, 0), mergeOf(1, joinSchema, 0)
	n := &plan.StreamHashJoin{Kind: tc.kind, LeftKeys: tc.keys, RightKeys: tc.keys, NullSafe: tc.safe}
	if tc.cond {
		n.Cond = less(t, &expr.ColRef{Index: 3, Typ: types.Int8}, &expr.ColRef{Index: 7, Typ: types.Int8})
	}
	key := append(append([]int{}, tc.keys...), 0)
	all := upTo(len(joinSchema))
	n.LeftState, n.RightState = stateTable(20, joinSchema, all, key, tc.keys), stateTable(21, joinSchema, all, key, tc.keys)
	deg := func(id catalog.ID) *plan.TableDesc { return stateTable(id, joinSchema, key, upTo(len(key)), tc.keys) }
	n.LeftDegree, n.RightDegree = deg(22), deg(23)
	n.Schema = append(append(types.Schema{}, joinSchema...), joinSchema...)
	n.Output = upTo(8)
	if tc.kind == plan.Semi || tc.kind == plan.Anti {
		n.Schema, n.Output = joinSchema, upTo(4)
	}
	n.In = []plan.Stream{l, r}
	return n
}

func naiveJoin(tc joinCase, left, right []types.Row) []types.Row {
	match := func(l, r types.Row) bool {
		for i, k := range tc.keys {
			if l[k].IsNull() || r[k].IsNull() {
				if !(tc.safe != nil && tc.safe[i] && l[k].IsNull() && r[k].IsNull()) {
					return false
				}
				continue
			}
			if types.Compare(l[k], r[k]) != 0 {
				return false
			}
		}
		return !tc.cond || l[3].Int() < r[3].Int()
	}
	pad := make(types.Row, 4)
	join := func(l, r types.Row) types.Row { return append(append(types.Row{}, l...), r...) }
	var out []types.Row
	hit := map[int]bool{}
	for _, l := range left {
		n := 0
		for j, r := range right {
			if match(l, r) {
				n++
				hit[j] = true
				if tc.kind != plan.Semi && tc.kind != plan.Anti {
					out = append(out, join(l, r))
				}
			}
		}
		switch {
		case tc.kind == plan.Semi && n > 0, tc.kind == plan.Anti && n == 0:
			out = append(out, l)
		case (tc.kind == plan.Left || tc.kind == plan.Full) && n == 0:
			out = append(out, join(l, pad))
		}
	}
	if tc.kind == plan.Right || tc.kind == plan.Full {
		for j, r := range right {
			if !hit[j] {
				out = append(out, join(pad, r))
			}
		}
	}
	return out
}

func TestHashJoin(t *testing.T) {
	names := []string{"inner", "left", "right", "full", "semi", "anti"}
	for k, name := range names {
		kind := plan.JoinKind(k)
		for i, tc := range []joinCase{
			{keys: []int{1}, size: 256},
			{keys: []int{1}, size: 1, cond: true, budget: 1},
			{keys: []int{1, 2}, safe: []bool{true, false}, size: 5, budget: 3000},
			{keys: []int{1}, safe: []bool{true}, size: 64, cond: true, budget: 1},
			{size: 16, cond: true},
		} {
			tc.kind = kind
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(3) {
					testJoin(t, tc, seed)
				}
			})
		}
	}
}

func testJoin(t *testing.T, tc joinCase, seed uint64) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	var next int64
	var sides [2]*world
	for i := range sides {
		sides[i] = &world{schema: joinSchema, rand: rnd, fresh: joinRow(&next, 5)}
	}
	n := joinNode(t, tc)
	start := func() *run {
		x := r.start(n, 2, func(e *Env) {
			e.ChunkSize, e.Cache = tc.size, NewBudget(tc.budget)
			if seed > 0 {
				e.pack = smallPacking()
			}
		})
		r.barrier(nil)
		return x
	}
	x := start()
	key := []int{0, 4}
	if tc.kind == plan.Semi || tc.kind == plan.Anti {
		key = []int{0}
	}
	for _, k := range tc.keys { // what the planner adds
		if key = append(key, k); len(n.Schema) > 4 {
			key = append(key, 4+k)
		}
	}
	got := newKeyed(key...)
	for step := range 25 {
		for range rnd.IntN(4) {
			side := rnd.IntN(2)
			if rnd.IntN(12) == 0 {
				sides[side].rows = sides[side].deleteAllTo(x, side, tc.size)
				continue
			}
			for _, c := range pieces(sides[side].change(1+rnd.IntN(8), tc.size, true), tc.size) {
				x.send(side, c)
			}
		}
		r.barrier(nil)
		got.apply(t, n.Schema, x.take())
		for _, w := range sides {
			w.mark()
		}
		got.check(t, bagOf(n.Schema, naiveJoin(tc, sides[0].rows, sides[1].rows)), "seed %d step %d", seed, step)
		if rnd.IntN(8) == 0 {
			if rnd.IntN(2) == 0 {
				for _, c := range pieces(sides[1].change(5, tc.size, true), tc.size) {
					x.send(1, c)
				}
				sides[1].lose()
			}
			r.crash()
			x = start()
		}
	}
}
