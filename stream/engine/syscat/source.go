package syscat

import (
	"fmt"
	"sync"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/types"
)

// A source computes the rows of one system relation.
type source interface {
	read(w *world, in Info, r *catalog.Relation, cols []int) (*chunk.Chunk, error)
}

// A column computes one column of a relation whose rows come from values of
// type R; one of its functions is set.
type column[R any] struct {
	i    func(*R) int64
	s    func(*R) string
	b    func(*R) bool
	d    func(*R) types.Datum
	live func(Info, *R) types.Datum // depends on more than the snapshot
}

func num[R any](f func(*R) int64) column[R]                   { return column[R]{i: f} }
func str[R any](f func(*R) string) column[R]                  { return column[R]{s: f} }
func boolean[R any](f func(*R) bool) column[R]                { return column[R]{b: f} }
func datum[R any](f func(*R) types.Datum) column[R]           { return column[R]{d: f} }
func live[R any](f func(in Info, r *R) types.Datum) column[R] { return column[R]{live: f} }

// A table is the source over values of type R. A column that is neither in cols
// nor in fixed is NULL, or its type's zero value where it cannot be NULL.
type table[R any] struct {
	// rows makes the values. Where changing is false they depend on the snapshot
	// alone and are kept with it.
	rows     func(w *world, in Info) []R
	changing bool
	cols     map[string]column[R]
	fixed    map[string]any // the same in every row: a Go value, or a func(Info) any
}

func (t *table[R]) read(w *world, in Info, r *catalog.Relation, cols []int) (*chunk.Chunk, error) {
	out := &chunk.Chunk{Cols: make([]chunk.Column, len(cols))}
	var rows []R
	if t.changing {
		rows = t.rows(w, in)
	} else {
		rows = kept(w, r.ID, func() []R { return t.rows(w, in) })
	}
	out.N = len(rows)
	for k, c := range cols {
		name, typ := r.Columns[c].Name, r.Columns[c].Type
		get, computed := t.cols[name]
		if computed && get.live == nil && !t.changing {
			out.Cols[k] = w.column(r.ID, c, func() chunk.Column { return fill(typ, rows, get, in) })
			continue
		}
		if computed {
			out.Cols[k] = fill(typ, rows, get, in)
			continue
		}
		v, ok := t.fixed[name]
		if f, isFunc := v.(func(Info) any); isFunc {
			v = f(in)
		}
		d := datumOf(v, typ)
		if !ok && r.Columns[c].NotNull {
			d = zero(typ)
		}
		out.Cols[k] = chunk.Repeat(typ, d, len(rows))
	}
	return out, nil
}

// fill computes a column of rows.
func fill[R any](t types.Type, rows []R, get column[R], in Info) chunk.Column {
	switch {
	case get.i != nil:
		data := make([]int64, len(rows))
		for i := range rows {
			data[i] = get.i(&rows[i])
		}
		return chunk.NewVec(t, data, nil)
	case get.s != nil:
		data := make([]string, len(rows))
		for i := range rows {
			data[i] = get.s(&rows[i])
		}
		return chunk.NewVec(t, data, nil)
	case get.b != nil:
		data := make([]bool, len(rows))
		for i := range rows {
			data[i] = get.b(&rows[i])
		}
		return chunk.NewVec(t, data, nil)
	}
	out := chunk.New(t, len(rows))
	for i := range rows {
		if get.live != nil {
			out.Append(get.live(in, &rows[i]))
		} else {
			out.Append(get.d(&rows[i]))
		}
	}
	return out
}

// A list is the source of a small relation whose rows are written out: values
// for the named columns, in order. The other columns are as in a table.
type list struct {
	cols []string
	rows func(w *world, in Info) [][]any
}

func (l *list) read(w *world, in Info, r *catalog.Relation, cols []int) (*chunk.Chunk, error) {
	t := table[[]any]{rows: l.rows, changing: true, cols: map[string]column[[]any]{}}
	for i, n := range l.cols {
		c := columnNamed(r, n)
		t.cols[n] = datum(func(row *[]any) types.Datum { return datumOf((*row)[i], c.Type) })
	}
	return t.read(w, in, r, cols)
}

func columnNamed(r *catalog.Relation, name string) *catalog.Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	panic(fmt.Sprintf("syscat: %s.%s has no column %s", r.Schema, r.Name, name))
}

// zero is the value of a column that cannot be NULL and means nothing here.
func zero(t types.Type) types.Datum {
	switch t.Kind() {
	case types.KindBool:
		return types.NewBool(false)
	case types.KindInt:
		return types.NewInt(0)
	case types.KindFloat:
		return types.NewFloat(0)
	case types.KindList:
		return listOf(*t.Elem)
	case types.KindDecimal:
		return types.NewDecimal(types.NewDecimalInt(0))
	case types.KindInterval:
		return types.NewInterval(types.Interval{})
	default:
		return types.NewString("")
	}
}

// datumOf is a Go value as a value of type t; nil is NULL.
func datumOf(v any, t types.Type) types.Datum {
	switch v := v.(type) {
	case nil:
		return types.Datum{}
	case types.Datum:
		return v
	case bool:
		return types.NewBool(v)
	case int:
		if t.Kind() == types.KindFloat {
			return types.NewFloat(float64(v))
		}
		return types.NewInt(int64(v))
	case int64:
		return types.NewInt(v)
	case uint32:
		return types.NewInt(int64(v))
	case float64:
		return types.NewFloat(v)
	case string:
		return types.NewString(v)
	case byte:
		return types.NewString(string(rune(v)))
	case []string:
		return texts(*t.Elem, v)
	}
	panic(fmt.Sprintf("syscat: value of type %T", v))
}

// text is s, or NULL if it is empty.
func text(s string) types.Datum {
	if s == "" {
		return types.Datum{}
	}
	return types.NewString(s)
}

// listOf makes an array; int2vector and oidvector count from 0.
func listOf(elem types.Type, items ...types.Datum) types.Datum {
	return types.NewList(&types.List{Elem: elem, Items: items, Lower: 1})
}

// vector makes an int2vector or oidvector.
func vector(elem types.Type, items []int64) types.Datum {
	l := &types.List{Elem: elem, Items: make([]types.Datum, len(items))}
	for i, v := range items {
		l.Items[i] = types.NewInt(v)
	}
	return types.NewList(l)
}

func ints(elem types.Type, items []int64) types.Datum {
	d := vector(elem, items)
	d.List().Lower = 1
	return d
}

func texts(elem types.Type, items []string) types.Datum {
	out := make([]types.Datum, len(items))
	for i, v := range items {
		out[i] = types.NewString(v)
	}
	return listOf(elem, out...)
}

// sources are the relations that may have rows, by qualified name.
var sources = sync.OnceValue(func() map[string]source {
	m := map[string]source{}
	for _, group := range []map[string]source{
		classSources(), attributeSources(), typeSources(), indexSources(), procSources(), objectSources(),
		viewSources(), statSources(), settingSources(), informationSources(), rwSources(), rwJobSources(),
	} {
		for name, s := range group {
			m[name] = s
		}
	}
	return m
})
