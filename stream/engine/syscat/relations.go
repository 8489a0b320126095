package syscat

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"streamdb/sql/catalog"
	"streamdb/sql/types"
)

//go:embed data/relations.txt
var relationText string

//go:embed data/rw_catalog.txt
var rwText string

// firstRW is where the identifiers of rw_catalog's relations begin: above
// PostgreSQL's own, below the users'.
const firstRW catalog.ID = 15000

// systemOwner owns what nobody created.
const systemOwner = "root"

// relations has every system relation, and the OIDs of those that PostgreSQL has as views.
var relations = sync.OnceValue(func() (out struct {
	all   []*catalog.Relation
	views map[catalog.ID]bool
}) {
	out.views = map[catalog.ID]bool{}
	for line := range dataLines(relationText) {
		head, cols, _ := strings.Cut(line, ": ")
		f := strings.Fields(head)
		id, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			panic("syscat: " + line)
		}
		r := systemRelation(catalog.ID(id), f[1], cols)
		if f[2] == "v" {
			out.views[r.ID] = true
		}
		out.all = append(out.all, r)
	}
	next := firstRW
	for line := range dataLines(rwText) {
		name, cols, _ := strings.Cut(line, ": ")
		r := systemRelation(next, "rw_catalog."+name, cols)
		out.views[r.ID] = true
		out.all = append(out.all, r)
		next++
	}
	return out
})

// Relations returns every relation of pg_catalog, information_schema and
// rw_catalog. Their IDs never change: PostgreSQL's where it has the relation.
func Relations() []*catalog.Relation {
	return append([]*catalog.Relation(nil), relations().all...)
}

func systemRelation(id catalog.ID, name, cols string) *catalog.Relation {
	schema, rel, _ := strings.Cut(name, ".")
	r := &catalog.Relation{ID: id, Schema: schema, Name: rel, Kind: catalog.System, Owner: systemOwner, Conflict: catalog.ConflictNone}
	for col := range strings.SplitSeq(cols, ", ") {
		n, t, _ := strings.Cut(col, " ")
		t, notNull := strings.CutSuffix(t, "!")
		r.Columns = append(r.Columns, catalog.Column{Name: n, Type: columnType(t), NotNull: notNull})
	}
	return r
}

// columnType is the type of a name in the data: pg_type's, with a length or precision.
func columnType(name string) types.Type {
	base, mod, _ := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	if base == "char" { // pg_type's name; in SQL it means character
		return types.Char
	}
	t, ok := types.ByName(base)
	if !ok {
		panic(fmt.Sprintf("syscat: no type %q", name))
	}
	if mod != "" {
		n, _ := strconv.Atoi(mod)
		if t.OID == types.OIDVarchar {
			return types.WithLength(t, n)
		}
		return types.WithPrecision(t, n)
	}
	return t
}

// dataLines yields the lines of an embedded table that are not comments.
func dataLines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if !yield(line) {
				return
			}
		}
	}
}
