package catalog

import (
	"cmp"
	"maps"
	"slices"
)

// A Snapshot is an immutable version of the catalog; a statement binds against one.
type Snapshot struct {
	Version uint64
	schemas map[string]bool
	byName  map[name]*Relation
	byID    map[ID]*Relation
	order   []*Relation // by ID; nil until asked for
}

type name struct{ schema, name string }

// NewSnapshot makes version 0, which has the given schemas and relations.
func NewSnapshot(schemas []string, rels []*Relation) *Snapshot {
	s := &Snapshot{schemas: map[string]bool{}, byName: map[name]*Relation{}, byID: map[ID]*Relation{}}
	for _, n := range schemas {
		s.schemas[n] = true
	}
	for _, r := range rels {
		s.byName[name{r.Schema, r.Name}] = r
		s.byID[r.ID] = r
	}
	s.order = s.sorted()
	return s
}

func (s *Snapshot) sorted() []*Relation {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *Relation) int { return cmp.Compare(a.ID, b.ID) })
}

// With returns the next version, in which the given relations are added or
// replaced (by ID, so that a rename works) and those in drop are gone.
func (s *Snapshot) With(put []*Relation, drop []ID) *Snapshot {
	n := &Snapshot{Version: s.Version + 1, schemas: s.schemas, byName: maps.Clone(s.byName), byID: maps.Clone(s.byID)}
	remove := func(id ID) {
		if old := n.byID[id]; old != nil {
			delete(n.byName, name{old.Schema, old.Name})
			delete(n.byID, id)
		}
	}
	for _, id := range drop {
		remove(id)
	}
	for _, r := range put {
		remove(r.ID)
	}
	for _, r := range put {
		n.byName[name{r.Schema, r.Name}] = r
		n.byID[r.ID] = r
	}
	n.order = n.sorted()
	return n
}

// WithSchema returns the next version with a schema added or, if drop, removed.
func (s *Snapshot) WithSchema(schema string, drop bool) *Snapshot {
	n := *s
	n.Version++
	n.schemas = maps.Clone(s.schemas)
	if drop {
		delete(n.schemas, schema)
	} else {
		n.schemas[schema] = true
	}
	return &n
}

// Relation finds a relation that queries may name; nil: there is none.
func (s *Snapshot) Relation(schema, rel string) *Relation {
	if r := s.byName[name{schema, rel}]; r != nil && !r.Building {
		return r
	}
	return nil
}

// Any is Relation, but finds one that is still being created as well.
func (s *Snapshot) Any(schema, rel string) *Relation { return s.byName[name{schema, rel}] }

// Resolve finds a relation by name along a search path, pg_catalog first where
// the path does not name it, as PostgreSQL does; nil: there is none.
func (s *Snapshot) Resolve(path []string, rel string) *Relation {
	if !slices.Contains(path, "pg_catalog") {
		if r := s.Relation("pg_catalog", rel); r != nil {
			return r
		}
	}
	for _, schema := range path {
		if r := s.Relation(schema, rel); r != nil {
			return r
		}
	}
	return nil
}

// ByID finds a relation by its ID; nil: there is none.
func (s *Snapshot) ByID(id ID) *Relation { return s.byID[id] }

// HasSchema reports whether a schema exists.
func (s *Snapshot) HasSchema(schema string) bool { return s.schemas[schema] }

// Schemas returns the names of all schemas, sorted.
func (s *Snapshot) Schemas() []string { return slices.Sorted(maps.Keys(s.schemas)) }

// Relations returns all relations by ID; the caller must not change the slice.
func (s *Snapshot) Relations() []*Relation { return s.order }

// Indexes returns the indexes of a relation that queries may use, by ID.
func (s *Snapshot) Indexes(of ID) []*Relation {
	var out []*Relation
	for _, r := range s.order {
		if r.Kind == Index && r.Of == of && !r.Building {
			out = append(out, r)
		}
	}
	return out
}

// Dependents returns the relations that read id, by ID.
func (s *Snapshot) Dependents(id ID) []*Relation {
	var out []*Relation
	for _, r := range s.order {
		if r.Of == id || slices.Contains(r.DependsOn, id) {
			out = append(out, r)
		}
	}
	return out
}
