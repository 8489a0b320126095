package exec

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/types"
	"streamdb/storage"
)

// Desc is how storage lays out an operator's state table. The operators whose
// values are their own affair (aggregates, top-n, degrees) refine it.
func Desc(t *plan.TableDesc, vnodes int) storage.Desc {
	return storage.Desc{
		ID: uint32(t.ID), Name: t.Name, Tag: storage.TagState,
		Schema: t.Schema, Key: t.Key, Desc: t.Desc, Dist: t.Dist, Vnodes: vnodes,
	}
}

// RelationDesc is how storage lays out the rows of a table, a materialized view or an index.
func RelationDesc(r *catalog.Relation) storage.Desc {
	d := storage.Desc{
		ID: uint32(r.ID), Name: r.Name, Tag: storage.TagRows,
		Schema: r.Fields(), Key: r.KeyCols(), Dist: r.Dist, Vnodes: r.Vnodes,
	}
	if r.Kind == catalog.Index {
		d.Tag = storage.TagIndex
	}
	for i, k := range r.Key {
		if k.Desc {
			if d.Desc == nil {
				d.Desc = make([]bool, len(r.Key))
			}
			d.Desc[i] = true
		}
	}
	return d
}

// stateDesc is the layout of a table whose columns the operator chooses: only the
// identity and the distribution are the planner's. source says which input column
// each of the first columns is; the distribution is among them.
func stateDesc(t *plan.TableDesc, vnodes int, s types.Schema, source []int, key int, desc []bool) storage.Desc {
	dist := make([]int, len(t.Dist))
	for i, d := range t.Dist {
		if dist[i] = d; t.From != nil && source != nil {
			dist[i] = slices.Index(source, t.From[d])
		}
	}
	k := make([]int, key)
	for i := range k {
		k[i] = i
	}
	return storage.Desc{
		ID: uint32(t.ID), Name: t.Name, Tag: storage.TagState,
		Schema: s, Key: k, Desc: desc, Dist: dist, Vnodes: vnodes,
	}
}

// A layout collects the columns of a state table from an operator's input: leading
// key columns with their directions, then the rest.
type layout struct {
	schema types.Schema
	source []int // input column of each; for a computed column, -1 - the column it tests for NULL
	desc   []bool
}

// add appends an input column and returns its position; a column that is there
// already is not repeated.
func (l *layout) add(in types.Schema, col int, desc bool) int {
	if at := slices.Index(l.source, col); at >= 0 {
		return at
	}
	return l.repeat(in, col, desc)
}

func (l *layout) repeat(in types.Schema, col int, desc bool) int {
	l.schema, l.source, l.desc = append(l.schema, in[col]), append(l.source, col), append(l.desc, desc)
	return len(l.source) - 1
}

// addNull appends "col IS NULL" as a key column: storage has NULLs last when
// ascending and first when descending, and this column is for the other orders.
func (l *layout) addNull(in types.Schema, col int, first bool) {
	l.schema = append(l.schema, types.Field{Name: in[col].Name + " is null", Type: types.Bool})
	l.source, l.desc = append(l.source, -1-col), append(l.desc, first)
}
