package planner

import (
	"fmt"
	"slices"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
)

// view plans a materialized view down to the rows it keeps.
func (b *builder) view(q *plan.Query, rel *catalog.Relation) (*plan.StreamMaterialize, error) {
	in, err := b.query(q.Root)
	if err != nil {
		return nil, err
	}
	in = b.narrow(in, len(q.Names))
	p := in.Props()
	switch {
	case len(p.Key) == 0:
		in = byKey(in, nil)
	case p.Dist.Kind == plan.SomeShard || p.Dist.Kind == plan.Broadcast || !subset(p.Dist.Cols, p.Key):
		in = exchange(in, plan.Dist{Kind: plan.HashShard, Cols: p.Key})
	}
	out, err := fillColumns(in, q.Names, rel)
	if err != nil {
		return nil, err
	}
	p = in.Props()
	out.Key = make([]catalog.KeyColumn, len(p.Key))
	for i, k := range p.Key {
		out.Key[i].Col = k
	}
	out.Dist, out.Vnodes, out.Conflict = nil, b.vnodes(), catalog.ConflictNone
	if hashed(p.Dist) {
		out.Dist = slices.Clone(p.Dist.Cols)
	}
	out.DependsOn = b.dependsOn(rel)
	return &plan.StreamMaterialize{Operator: passProps(in), Rel: out}, nil
}

// fillColumns gives a relation in's columns: those the query names, then hidden ones.
func fillColumns(in plan.Stream, names []string, rel *catalog.Relation) (*catalog.Relation, error) {
	p := in.Props()
	out := *rel
	out.AppendOnly = p.AppendOnly
	out.Columns = make([]catalog.Column, len(p.Schema))
	seen := map[string]bool{}
	for i, f := range p.Schema {
		c := catalog.Column{Name: f.Name, Type: f.Type, Hidden: i >= len(names)}
		if !c.Hidden {
			c.Name = names[i]
			if seen[c.Name] {
				return nil, sqlerr.New(sqlerr.DuplicateColumn, "column %q specified more than once", c.Name)
			}
		}
		for n := 1; seen[c.Name]; n++ {
			c.Name = fmt.Sprintf("%s#%d", f.Name, n)
		}
		seen[c.Name] = true
		out.Columns[i] = c
	}
	return &out, nil
}

// dependsOn adds the relations that the plan reads, an index chosen by the planner too,
// to those that the definition names.
func (b *builder) dependsOn(rel *catalog.Relation) []catalog.ID {
	out := slices.Concat(rel.DependsOn, b.reads)
	slices.Sort(out)
	return slices.Compact(out)
}

// index plans the rows of an index, whose key and distribution the catalog has already.
func (b *builder) index(n plan.Node, rel *catalog.Relation) (plan.Stream, error) {
	in, err := b.query(n)
	if err != nil {
		return nil, err
	}
	if width := len(n.Schema()); width != len(rel.Columns) {
		return nil, fmt.Errorf("index %q has %d columns, its query %d", rel.Name, len(rel.Columns), width)
	}
	if extra := len(in.Props().Schema) - len(rel.Columns); extra > 0 {
		return nil, fmt.Errorf("index %q lacks %d key columns of its relation", rel.Name, extra)
	}
	d := plan.Dist{Kind: plan.Single}
	if len(rel.Dist) > 0 {
		d = plan.Dist{Kind: plan.HashShard, Cols: rel.Dist}
	}
	in = exchange(in, d)
	p := passProps(in)
	p.Key = rel.KeyCols()
	return &plan.StreamMaterialize{Operator: p, Rel: rel}, nil
}

// sink plans the changes that go to a connector.
func (b *builder) sink(q *plan.Query, rel *catalog.Relation) (*plan.StreamSink, error) {
	b.upstreamOnly = slices.ContainsFunc(rel.With, func(o catalog.Option) bool { return o.Name == "snapshot" && o.Value == "false" })
	in, err := b.query(q.Root)
	if err != nil {
		return nil, err
	}
	in = b.narrow(in, len(q.Names))
	out, err := fillColumns(in, q.Names, rel)
	if err != nil {
		return nil, err
	}
	out.DependsOn = b.dependsOn(rel)
	return &plan.StreamSink{Operator: passProps(in), Rel: out}, nil
}
