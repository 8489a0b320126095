package planner

import (
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/expr"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// scan reads a relation. Its key columns come out too; they are the stream key.
func (b *builder) scan(n *plan.Scan) (plan.Stream, error) {
	rel := n.Rel
	switch {
	case rel.HasRows():
	case rel.Kind == catalog.Source:
		return b.source(n)
	case rel.Kind == catalog.System:
		return nil, sqlerr.Unsupported("system relation %q in a streaming query", rel.Name)
	default:
		return nil, sqlerr.Unsupported("relation %q in a streaming query", rel.Name)
	}
	if rel.Vnodes != b.vnodes() && len(rel.Dist) > 0 {
		return nil, sqlerr.Unsupported("reading relation %q, which has %d vnodes, in a job with %d", rel.Name, rel.Vnodes, b.vnodes())
	}
	b.reads = append(b.reads, rel.ID)
	cols := appendNew(slices.Clone(n.Cols), rel.KeyCols()...)
	pos := positions(cols)
	p := plan.Props{
		Schema:     qualified(n, rel, cols),
		Key:        through(rel.KeyCols(), pos),
		Dist:       relDist(rel, pos),
		AppendOnly: rel.AppendOnly,
	}
	out := &plan.StreamTableScan{Operator: p, Table: rel, Cols: cols, Alias: n.Alias}
	if rel.Kind == catalog.Index && b.cat != nil {
		out.Base = b.cat.ByID(rel.Of)
	}
	if b.upstreamOnly {
		out.Kind = plan.UpstreamOnly
		return out, nil
	}
	out.Order = out.Key // an arrangement backfill reads in key order
	out.Progress = progressTable("Backfill")
	return out, nil
}

// qualified names the columns of a scan as EXPLAIN shows them.
func qualified(n *plan.Scan, rel *catalog.Relation, cols []int) types.Schema {
	s := rel.Fields().Project(cols)
	for i := range s {
		s[i].Name = scanName(n) + "." + s[i].Name
	}
	return s
}

func scanName(n *plan.Scan) string {
	if n.Alias != "" {
		return n.Alias
	}
	return n.Rel.Name
}

// relDist is how the rows of a relation are distributed, with its columns mapped by pos.
func relDist(rel *catalog.Relation, pos func(int) int) plan.Dist {
	if len(rel.Dist) == 0 {
		return plan.Dist{Kind: plan.Single}
	}
	return plan.Dist{Kind: plan.UpstreamHashShard, Cols: through(rel.Dist, pos), Table: rel.ID}
}

const rowIDName = "_row_id"

// source reads a source that keeps no rows: every job has its own reader. Its
// rows get ids, which are the stream key.
func (b *builder) source(n *plan.Scan) (plan.Stream, error) {
	b.reads = append(b.reads, n.Rel.ID)
	in := sourceRows(n.Rel, scanName(n))
	return b.project(in, colRefs(in.Props().Schema, n.Cols)), nil
}

// sourceRows is a connector's reader with a row id generator.
func sourceRows(rel *catalog.Relation, name string) plan.Stream {
	s := rel.Fields()
	for i := range s {
		s[i].Name = name + "." + s[i].Name
	}
	src := &plan.StreamSource{Rel: rel, Offsets: offsetsTable(),
		Operator: plan.Props{Schema: s, Dist: plan.Dist{Kind: plan.SomeShard}, AppendOnly: true}}
	var in plan.Stream = src
	id := rowIDColumn(rel)
	if id < 0 {
		id = len(s)
		es := append(colRefs(s, upTo(len(s))), &expr.Const{Typ: types.Int8})
		p := passProps(src)
		p.Schema = append(slices.Clone(s), types.Field{Name: name + "." + rowIDName, Type: types.Int8})
		in = &plan.StreamProject{Operator: p, Exprs: es}
	}
	return rowIDs(in, id)
}

// offsetsTable is where a source keeps how far each split has been read.
func offsetsTable() *plan.TableDesc {
	return &plan.TableDesc{Name: "Source", Schema: types.Schema{{Name: "split", Type: types.Text}, {Name: "offset", Type: types.Bytea}},
		From: []int{-1, -1}, Key: []int{0}, Dist: []int{0}}
}

// rowIDs fills in the ids of rows that have none. The ids an actor makes hash to it.
func rowIDs(in plan.Stream, col int) plan.Stream {
	p := passProps(in)
	p.Key, p.Dist = []int{col}, plan.Dist{Kind: plan.HashShard, Cols: []int{col}}
	return &plan.StreamRowIDGen{Operator: p, Col: col}
}

// rowIDColumn is the hidden row id column of a relation; -1: it has none.
func rowIDColumn(rel *catalog.Relation) int {
	return slices.IndexFunc(rel.Columns, func(c catalog.Column) bool { return c.Hidden && c.Name == rowIDName })
}

// values emits literal rows, numbered where there is more than one.
func (b *builder) values(n *plan.Values) (plan.Stream, error) {
	p := plan.Props{Schema: slices.Clone(n.Out), Dist: plan.Dist{Kind: plan.Single}, AppendOnly: true}
	rows := n.Rows
	if len(rows) > 1 {
		p.Key = []int{len(p.Schema)}
		p.Schema = append(p.Schema, types.Field{Name: rowIDName, Type: types.Int8})
		rows = make([][]expr.Expr, len(n.Rows))
		for i, r := range n.Rows {
			rows[i] = append(slices.Clone(r), &expr.Const{Val: types.NewInt(int64(i)), Typ: types.Int8})
		}
	}
	t := progressTable("Values")
	t.Dist = nil
	return &plan.StreamValues{Operator: p, Rows: rows, Progress: t}, nil
}

// tablePlan is the job of a table.
//
//	no connector:  StreamDML → (StreamRowIDGen) → StreamMaterialize
//	a connector:   StreamDML and StreamSource → StreamUnion → (StreamRowIDGen) → StreamMaterialize
func tablePlan(rel *catalog.Relation) (plan.Stream, error) {
	s := rel.Fields()
	id := rowIDColumn(rel)
	identity := func(c int) int { return c }
	dist := plan.Dist{Kind: plan.Single}
	if len(rel.Dist) > 0 {
		dist = plan.Dist{Kind: plan.HashShard, Cols: through(rel.Dist, identity)}
	}
	var in plan.Stream = &plan.StreamDML{Rel: rel, Operator: plan.Props{Schema: s, Key: rel.KeyCols(), Dist: dist, AppendOnly: rel.AppendOnly}}
	if slices.ContainsFunc(rel.With, func(o catalog.Option) bool { return o.Name == "connector" }) {
		var src plan.Stream = &plan.StreamSource{Rel: rel, Offsets: offsetsTable(),
			Operator: plan.Props{Schema: s, Key: rel.KeyCols(), Dist: plan.Dist{Kind: plan.SomeShard}, AppendOnly: true}}
		if id >= 0 {
			// Ids are given behind the union, where one generator counts for both; until then any actor will do.
			p := passProps(src)
			p.Dist = dist
			src = &plan.StreamExchange{Operator: p, NoShuffle: true}
		} else {
			src = exchange(src, dist)
		}
		p := passProps(in)
		p.In = []plan.Stream{port(in, dist), src}
		in = &plan.StreamUnion{Operator: p}
	}
	if id >= 0 {
		p := passProps(in)
		in = &plan.StreamRowIDGen{Operator: p, Col: id}
	}
	return &plan.StreamMaterialize{Operator: passProps(in), Rel: rel}, nil
}
