package parser

import "streamdb/sql/sqlerr"

// alterable are the kinds whose ALTER we look into.
var alterable = []ObjectKind{Table, MaterializedView, View, Sink, Source, Index, Subscription, Connection, Secret}

func (r *reader) alter(c *Clauses) (Ext, error) {
	r.i++
	if r.accept("fragment") {
		return r.alterFragment()
	}
	kind := r.kind(alterable...)
	if kind == "" {
		return nil, nil
	}
	at := r.i
	foreign := kind == Sink || kind == Source || kind == Connection || kind == Secret // PostgreSQL has no such kind
	ifExists := r.accept("if", "exists")
	name := r.name()
	switch {
	case r.err != nil:
		if foreign {
			return nil, r.err
		}
		return nil, nil
	case r.next("set") && r.i+2 < r.hi && (r.is(r.i+2, "=") || r.is(r.i+2, "to")) && r.toks[r.i+1].kind == word:
		r.i++
		e := &AlterSet{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name}
		e.Setting.Pos = r.here()
		e.Setting.Name = r.label()
		r.i++
		r.value(&e.Setting)
		if e.Setting.Kind == Word && r.accept("(") {
			if !r.kindIs(number) {
				r.fail()
				return nil, r.err
			}
			e.Setting.Value += "(" + r.src(r.i) + ")"
			r.i++
			r.expect(")")
		}
		e.Deferred = r.accept("deferred")
		return r.result(e)
	case r.accept("swap", "with"):
		return r.result(&AlterSwap{Pos: r.pos(), Kind: kind, Name: name, Other: r.name()})
	case (kind == MaterializedView || kind == Sink) && r.accept("as"):
		e := &AlterQuery{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name}
		e.Query, e.QueryText = r.embeddedQuery(c)
		return r.result(e)
	case r.accept("connector", "with"):
		return r.result(&AlterConnector{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name, With: r.options()})
	case r.next("refresh", "schema"):
		return nil, sqlerr.Unsupported("ALTER %s … REFRESH SCHEMA", kind).At(r.here())
	case !foreign && kind != Subscription:
		return nil, nil
	case r.accept("rename", "to"):
		return r.result(&AlterObject{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name, Action: "RENAME", To: r.ident()})
	case r.accept("owner", "to"):
		return r.result(&AlterObject{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name, Action: "OWNER", To: r.ident()})
	case r.accept("set", "schema"):
		return r.result(&AlterObject{Pos: r.pos(), Kind: kind, IfExists: ifExists, Name: name, Action: "SCHEMA", To: r.ident()})
	case kind == Source && (r.next("add") || r.next("drop") || r.next("rename")):
		m := r.bytes(r.span)
		from := int(r.toks[at-1].pos)
		m.blank(from, int(r.toks[at-1].end))
		m.put(from, "TABLE ")
		n := r.tree(m, "", c)
		e := &AlterSource{Pos: r.pos(), Alter: n.GetAlterTableStmt()}
		if r.err == nil && e.Alter == nil {
			return nil, sqlerr.Unsupported("this form of ALTER SOURCE").At(r.pos())
		}
		r.i = r.hi
		return r.result(e)
	case foreign:
		r.fail()
		return nil, r.err
	}
	return nil, nil
}

// alterFragment reads ALTER FRAGMENT n, … SET name {= | TO} value.
func (r *reader) alterFragment() (Ext, error) {
	e := &AlterSet{Pos: r.pos(), Kind: Fragment}
	for r.err == nil {
		e.Fragments = append(e.Fragments, r.integer())
		if !r.accept(",") {
			break
		}
	}
	r.expect("set")
	e.Setting.Pos = r.here()
	e.Setting.Name = r.label()
	if !r.accept("=") {
		r.expect("to")
	}
	r.value(&e.Setting)
	return r.result(e)
}
