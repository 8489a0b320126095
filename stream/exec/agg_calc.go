package exec

import (
	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// newAggregate chooses how a call is computed: in an accumulator where deletes can
// be undone or never come, else from its values in a table. stored says that its
// value is a column of the group's state row. groups are the groups' columns by slot.
func newAggregate(env *Env, n *plan.StreamHashAgg, a expr.Agg, values *plan.TableDesc, groups func() []chunk.Column) (calc aggregate, stored bool, err error) {
	in := n.In[0].Props().Schema
	args := make([]types.Type, len(a.Args))
	for i, c := range a.Args {
		args[i] = in[c].Type
	}
	switch {
	case values == nil:
		if !a.Fn.Retractable && !n.In[0].Props().AppendOnly {
			return nil, false, unsupportedAgg(a, "over rows that are deleted, without a table of its values,")
		}
		if len(a.Order) > 0 {
			return nil, false, unsupportedAgg(a, "with ORDER BY, without a table of its values,")
		}
		return &accumulated{acc: a.Fn.New(args, a.Typ), args: a.Args}, false, nil
	case (a.Fn.Name == "min" || a.Fn.Name == "max") && len(a.Args) == 1:
		return newExtreme(env, n, a, values, groups), true, nil
	default:
		return newReplayed(env, n, a, args, values, groups), true, nil
	}
}

// An accumulated aggregate is an accumulator that undoes deletes.
type accumulated struct {
	acc  expr.Accumulator
	args []int
}

func (x *accumulated) grow(n int) { x.acc.Grow(n) }

func (x *accumulated) update(groups []int32, in *chunk.Chunk) error {
	return x.acc.Update(groups, nil, in.Ops, project(in.Cols, x.args))
}

func (x *accumulated) output(slot int32, col chunk.Column) error { return x.acc.Output(slot, col) }

func (x *accumulated) save(dst []byte, slot int32) []byte { return x.acc.AppendState(dst, slot) }

func (x *accumulated) load(slot int32, b []byte, _ chunk.Column) ([]byte, error) {
	x.acc.Reset(slot)
	return x.acc.LoadState(slot, b)
}

func (x *accumulated) reset(slot int32) { x.acc.Reset(slot) }

func (x *accumulated) commit(storage.Epoch) error { return nil }
