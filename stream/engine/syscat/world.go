package syscat

import (
	"slices"
	"sync"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
)

// A world is what follows from one catalog snapshot: its objects as PostgreSQL's
// catalogs see them, and the rows and columns computed so far.
type world struct {
	snap *catalog.Snapshot

	mu      sync.Mutex
	rows    map[catalog.ID]any // []R of the relation's table
	columns map[columnKey]chunk.Column

	objects func() *objects
}

type columnKey struct {
	rel catalog.ID
	col int
}

// keptWorlds is how many snapshots' rows are kept: the newest, and those that
// older statements may still read.
const keptWorlds = 4

// worlds keeps what was computed from the snapshots read last. It only saves
// work: the same snapshot always gives the same rows.
var worlds struct {
	sync.Mutex
	recent []*world // newest first
}

func worldOf(snap *catalog.Snapshot) *world {
	worlds.Lock()
	defer worlds.Unlock()
	i := slices.IndexFunc(worlds.recent, func(w *world) bool { return w.snap == snap })
	if i < 0 {
		w := &world{snap: snap, rows: map[catalog.ID]any{}, columns: map[columnKey]chunk.Column{}}
		w.objects = sync.OnceValue(func() *objects { return objectsOf(snap) })
		worlds.recent = append(worlds.recent, w)
		i = len(worlds.recent) - 1
	}
	w := worlds.recent[i]
	copy(worlds.recent[1:i+1], worlds.recent[:i])
	worlds.recent[0] = w
	worlds.recent = worlds.recent[:min(len(worlds.recent), keptWorlds)]
	return w
}

// kept returns the rows of a relation, made at most once for a snapshot.
func kept[R any](w *world, rel catalog.ID, rows func() []R) []R {
	w.mu.Lock()
	old, ok := w.rows[rel]
	w.mu.Unlock()
	if ok {
		return old.([]R)
	}
	made := rows()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[rel] = made
	return made
}

// column returns a column of a relation, made at most once for a snapshot.
func (w *world) column(rel catalog.ID, col int, fill func() chunk.Column) chunk.Column {
	key := columnKey{rel, col}
	w.mu.Lock()
	old, ok := w.columns[key]
	w.mu.Unlock()
	if ok {
		return old
	}
	made := fill()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.columns[key] = made
	return made
}
