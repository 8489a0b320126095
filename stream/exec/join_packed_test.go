package exec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
	"streamdb/storage"
)

// smallPacking makes few rows many blocks.
func smallPacking() *packing {
	return &packing{tail: 12, block: 40, pending: 600, dead: 2, gone: 3, cold: 2}
}

// Rows come and go under a few keys, some of them again and again, across epochs and
// crashes; a scan of a key gives the rows that are there.
func TestPackedRows(t *testing.T) {
	// k, j (the join key), v
	schema := schemaOf(types.Int8, types.Text, types.Text)
	for name, size := range map[string]*packing{"default": nil, "small": smallPacking()} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(seed, 7))
				r := newRig(t)
				state := stateTable(30, schema, upTo(3), []int{1, 0}, []int{1})
				open := func() *packedRows {
					return newPackedRows(&Env{Store: r.store, Vnodes: storage.Full(vnodes), VnodeCount: vnodes, pack: size}, state, []int{1})
				}
				p := open()
				live := map[int64]types.Row{}
				committed := map[int64]types.Row{}
				most := 1
				for step := range 300 {
					// Phases of growth, of churn and of decline.
					grow := []int{9, 5, 2}[step/20%3]
					var rows []types.Row
					var ops []chunk.Op
					for range 1 + rnd.IntN(30) {
						ids := slices.Sorted(maps.Keys(live))
						if rnd.IntN(10) < grow || len(ids) == 0 {
							id := rnd.Int64N(400)
							if live[id] != nil {
								continue
							}
							row := types.Row{types.NewInt(id), maybeNull(rnd, types.NewString(fmt.Sprint("j", id%3))), types.NewString(fmt.Sprint("v", rnd.IntN(1000)))}
							live[id] = row
							rows, ops = append(rows, row), append(ops, chunk.Insert)
							continue
						}
						id := ids[rnd.IntN(len(ids))]
						rows, ops = append(rows, live[id]), append(ops, chunk.Delete)
						delete(live, id)
					}
					if step%97 == 96 {
						for _, id := range slices.Sorted(maps.Keys(live)) {
							rows, ops = append(rows, live[id]), append(ops, chunk.Delete)
						}
						clear(live)
					}
					if len(rows) == 0 {
						continue
					}
					c := chunkOf(schema, false, rows)
					c.Ops = ops
					keys := project(c.Cols, p.keys)
					if err := p.write(c, chunk.Hash(keys, c.Len()), func(int) bool { return false }); err != nil {
						t.Fatal(err)
					}
					switch rnd.IntN(4) {
					case 0, 1:
						r.epoch++
						if err := p.commit(r.epoch); err != nil {
							t.Fatal(err)
						}
						if rnd.IntN(3) > 0 {
							if err := r.store.Commit(r.epoch); err != nil {
								t.Fatal(err)
							}
							committed = maps.Clone(live)
						}
					case 2:
						if rnd.IntN(3) == 0 {
							r.crash()
							p, live = open(), maps.Clone(committed)
						}
					}
					got := map[int64]types.Row{}
					probe := chunkOf(schema, false, []types.Row{
						{types.NewInt(0), types.NewString("j0"), types.NewString("")}, {types.NewInt(0), types.NewString("j1"), types.NewString("")},
						{types.NewInt(0), types.NewString("j2"), types.NewString("")}, {types.NewInt(0), types.Datum{}, types.NewString("")},
					})
					keys = project(probe.Cols, p.keys)
					vn := p.rows.Vnodes(probe.Cols, probe.Len())
					for i, h := range chunk.Hash(keys, probe.Len()) {
						if err := p.written(h, keys, i); err != nil {
							t.Fatal(err)
						}
						into := newColumns(schema, 8)
						for kv, err := range p.scan(p.rows.AppendPrefix(nil, vnodeAt(vn, i), keys, i)) {
							if err == nil {
								err = p.rows.Decode(kv.Key, kv.Val, into)
							}
							if err != nil {
								t.Fatalf("step %d: %v", step, err)
							}
						}
						for j := range into[0].Len() {
							row := types.Row{into[0].Datum(j), into[1].Datum(j), into[2].Datum(j)}
							if got[row[0].Int()] != nil {
								t.Fatalf("step %d: row %s is there twice", step, text(row, schema))
							}
							got[row[0].Int()] = row
						}
					}
					if a, b := bagOf(schema, slices.Collect(maps.Values(got))), bagOf(schema, slices.Collect(maps.Values(live))); a.String() != b.String() {
						t.Fatalf("step %d: scan gives\n%s\nwant\n%s", step, a, b)
					}
					n := 0
					for _, err := range p.table.Scan(nil, nil) {
						if n++; err != nil {
							t.Fatal(err)
						}
					}
					most = max(most, n)
					if len(live) == 0 && n > 0 {
						t.Fatalf("step %d: %d entries without rows", step, n)
					}
					// The log must not grow without bound: there are at most 400 rows.
					if n > 1500 {
						t.Fatalf("step %d: %d entries for %d rows", step, n, len(live))
					}
				}
				if size != nil && most < 20 {
					t.Errorf("at most %d entries: the test has not made blocks", most)
				}
			})
		}
	}
}

// A delete of a row that never came stops the job.
func TestPackedRowsContradiction(t *testing.T) {
	schema := schemaOf(types.Int8, types.Text)
	r := newRig(t)
	p := newPackedRows(&Env{Store: r.store, Vnodes: storage.Full(vnodes), VnodeCount: vnodes}, stateTable(30, schema, upTo(2), []int{1, 0}, []int{1}), []int{1})
	c := chunkOf(schema, false, []types.Row{{types.NewInt(1), types.NewString("a")}, {types.NewInt(2), types.NewString("a")}})
	c.Ops = []chunk.Op{chunk.Insert, chunk.Delete}
	if err := p.write(c, chunk.Hash(c.Cols[1:], 2), func(int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if err := p.commit(1); err == nil {
		t.Error("the delete of a row that is not there is no error")
	}
}

func TestPacks(t *testing.T) {
	in := &plan.Props{Schema: schemaOf(types.Int8, types.Text, types.Bpchar), Key: []int{0}}
	for _, tc := range []struct {
		keys []int
		want bool
	}{{[]int{0}, false}, {[]int{1}, true}, {[]int{1, 0}, false}, {nil, true}, {[]int{2}, false}} {
		if got := packs(in, tc.keys, nil); got != tc.want {
			t.Errorf("packs by %v: %v", tc.keys, got)
		}
	}
	if packs(in, []int{1}, &plan.TableDesc{}) {
		t.Error("packs a side that has degrees")
	}
}
