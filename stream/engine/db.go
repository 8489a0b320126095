package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"streamdb/planner/plan"
	"streamdb/sql/catalog"
	"streamdb/sql/sqlerr"
	"streamdb/storage"
	"streamdb/stream"
	"streamdb/stream/connector"
	"streamdb/stream/connector/datagen"
	"streamdb/stream/engine/syscat"
	"streamdb/stream/exec"
	"streamdb/stream/job"
)

// Options of a database; the zero value of each field means what its comment says.
type Options struct {
	Dir         string           // ":memory:" or "": nothing is kept
	Store       string           // storage engine; "": badger
	Disk        *storage.MemDisk // for tests: the memory engine's disk, which can fail; nil: by Dir
	MemoryLimit int64            // bytes for the store's and the operators' caches; 0: small defaults
	CacheBytes  int64            // for the operators' caches; 0: half of MemoryLimit, or a small default
	Reserve     int64            // bytes of free disk below which writes are refused; 0: by rule
	Parallelism int              // actors of a fragment; 0: the cores, at least 2
	Interval    time.Duration    // between barriers while something is active; 0: 100 ms
	ChunkSize   int              // rows of a chunk; 0: 1024
	AcceptLoss  bool             // open although epochs are known to be missing
	Version     string           // of the program
	Logger      *slog.Logger     // nil: discard
	Registerer  prometheus.Registerer
	Clock       storage.Clock
	Seed        uint64      // of all randomness; 0: a random one
	Fatal       func(error) // the store failed: the process must end; nil: panic
}

// A DB is an open database.
type DB struct {
	o       Options
	log     *slog.Logger
	clock   storage.Clock
	store   *storage.Store
	jobs    *job.Manager
	coord   *job.Coordinator
	metrics *metrics
	cat     atomic.Pointer[catalog.Snapshot]

	ddl    sync.Mutex        // one catalog change at a time; not held while a job backfills
	nextID catalog.ID        // guarded by ddl
	params map[string]string // system parameters that were set; guarded by ddl
	tuning *stream.Tuning
	rowSeq atomic.Uint64
	speed  atomic.Int64   // rows per second of the job that was last built; 0: none was
	bg     sync.WaitGroup // background DDL and failure bookkeeping
	ctx    context.Context
	cancel context.CancelFunc

	mu          sync.Mutex
	writers     map[catalog.ID]*tableWriter
	sessions    map[uint32]*Session
	nextSess    uint32
	rowReserved uint64 // row ids below it may be given out
	rng         *rand.Rand
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// drivers are the connectors that sources can name.
var drivers = []connector.Driver{datagen.Driver()}

// Keys under storage.TagCatalog: a prefix byte and what it names.
const (
	keyRelation = 'r' // ‖ ID, big endian → Relation as JSON
	keySchema   = 's' // ‖ name → empty
	keyNextID   = 'n' // → next ID, big endian
	keyFailed   = 'f' // ‖ ID, big endian → why its job has stopped; may be there before the relation says so
	keyParam    = 'p' // ‖ name → value of a system parameter
	keyRowIDs   = 'i' // → no row id at or above it was given out, big endian
)

var systemSchemas = []string{"information_schema", "pg_catalog", "public", "rw_catalog"}

// Open opens a database and starts its jobs. It serves when Open returns.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Parallelism == 0 {
		o.Parallelism = max(2, runtime.GOMAXPROCS(0))
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(err) }
	}
	store, err := storage.Open(storage.Options{Dir: o.Dir, Engine: o.Store, Disk: o.Disk, MemoryLimit: o.MemoryLimit, Reserve: o.Reserve, AcceptLoss: o.AcceptLoss,
		Logger: o.Logger, Registerer: o.Registerer, Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	db := &DB{o: o, log: o.Logger, clock: o.Clock, store: store, metrics: newMetrics(o.Registerer), nextID: catalog.FirstUserID,
		params: map[string]string{}, tuning: stream.NewTuning(), writers: map[catalog.ID]*tableWriter{}, sessions: map[uint32]*Session{}, rng: rand.New(rand.NewPCG(o.Seed, 1))}
	db.ctx, db.cancel = context.WithCancel(context.Background())
	db.jobs = job.NewManager(job.Options{Store: store, Clock: o.Clock, Logger: o.Logger, Metrics: job.NewMetrics(o.Registerer), Exec: exec.NewMetrics(o.Registerer),
		Cache: exec.NewBudget(db.cacheBytes()), Interval: o.Interval, ChunkSize: o.ChunkSize, ExprCtx: relationExprCtx,
		Fatal: o.Fatal, StageFailed: db.stageFailed, Failed: db.jobFailed, Seed: o.Seed, Drivers: drivers, Tuning: db.tuning, SpillDir: db.tempDir()})
	db.coord = db.jobs.Coordinator()
	if err := db.restore(ctx); err != nil {
		db.jobs.Close()
		db.cancel()
		return nil, errors.Join(err, store.Close())
	}
	return db, nil
}

// cacheBytes is what all operators' caches may hold together.
func (db *DB) cacheBytes() int64 {
	if db.o.CacheBytes > 0 {
		return db.o.CacheBytes
	}
	if db.o.MemoryLimit > 0 {
		return db.o.MemoryLimit / 2
	}
	return 512 << 20
}

// Close stops all jobs and closes the store. Sessions must have been closed.
func (db *DB) Close() error {
	db.cancel()
	db.jobs.Close()
	db.bg.Wait()
	return db.store.Close()
}

// Catalog returns the newest version of the catalog.
func (db *DB) Catalog() *catalog.Snapshot { return db.cat.Load() }

func relationKey(id catalog.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyRelation}, uint32(id))
}

func failedKey(id catalog.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyFailed}, uint32(id))
}

// stageFailed notes a stopped job without the lock of catalog changes, whose holder may be waiting for the epoch.
func (db *DB) stageFailed(e storage.Epoch, id catalog.ID, err error) {
	db.store.Stage(e, storage.TagCatalog, failedKey(id), []byte(sqlerr.From(err).Message))
}

// stage adds a catalog change to epoch e.
func (db *DB) stage(e storage.Epoch, put []*catalog.Relation, drop []catalog.ID) {
	for _, r := range put {
		text, err := json.Marshal(r)
		if err != nil {
			panic(fmt.Sprintf("catalog entry %q: %v", r.Name, err))
		}
		db.store.Stage(e, storage.TagCatalog, relationKey(r.ID), text)
	}
	for _, id := range drop {
		db.store.Stage(e, storage.TagCatalog, relationKey(id), nil)
		db.store.Stage(e, storage.TagCatalog, failedKey(id), nil)
	}
	db.store.Stage(e, storage.TagCatalog, []byte{keyNextID}, binary.BigEndian.AppendUint32(nil, uint32(db.nextID)))
}

// change commits a catalog change and installs it. The caller holds ddl.
func (db *DB) change(put []*catalog.Relation, drop []catalog.ID, also func(storage.Epoch)) error {
	e, err := db.coord.Submit(context.Background(), job.Command{Stage: func(e storage.Epoch) {
		db.stage(e, put, drop)
		if also != nil {
			also(e)
		}
	}})
	if err != nil {
		return err
	}
	// Not the session's context: a change that was submitted happens.
	if err := db.coord.Wait(context.Background(), e); err != nil {
		return err
	}
	db.cat.Store(db.Catalog().With(put, drop))
	return nil
}

// stageParam adds a system parameter to epoch e.
func (db *DB) stageParam(e storage.Epoch, name string) {
	if v, ok := db.params[name]; ok {
		db.store.Stage(e, storage.TagCatalog, append([]byte{keyParam}, name...), []byte(v))
	}
}

// newIDs hands out n identifiers. The caller holds ddl.
func (db *DB) newIDs(n int) catalog.ID {
	id := db.nextID
	db.nextID += catalog.ID(n)
	return id
}

// restore reads the catalog and starts what it says must run.
func (db *DB) restore(ctx context.Context) error {
	schemas := slices.Clone(systemSchemas)
	rels := syscat.Relations()
	var user []*catalog.Relation
	stopped := map[catalog.ID]string{}
	for kv, err := range db.store.Meta(storage.TagCatalog, nil) {
		if err != nil {
			return fmt.Errorf("read the catalog: %w", err)
		}
		switch kv.Key[0] {
		case keySchema:
			schemas = append(schemas, string(kv.Key[1:]))
		case keyNextID:
			db.nextID = catalog.ID(binary.BigEndian.Uint32(kv.Val))
		case keyRowIDs:
			db.rowReserved = binary.BigEndian.Uint64(kv.Val)
			db.rowSeq.Store(db.rowReserved)
		case keyParam:
			db.params[string(kv.Key[1:])] = string(kv.Val)
		case keyFailed:
			stopped[catalog.ID(binary.BigEndian.Uint32(kv.Key[1:]))] = string(kv.Val)
		case keyRelation:
			r := &catalog.Relation{}
			if err := json.Unmarshal(kv.Val, r); err != nil {
				return sqlerr.New(sqlerr.DataCorrupted, "catalog entry %x cannot be read: %w", kv.Key, err)
			}
			user = append(user, r)
		}
	}
	for _, r := range user {
		if why, ok := stopped[r.ID]; ok && r.Failed == "" {
			r.Failed = why
		}
	}
	db.cat.Store(catalog.NewSnapshot(schemas, append(rels, user...)))

	var run []job.Spec
	var resume []*catalog.Relation
	var drop, rows []catalog.ID
	failed := map[catalog.ID]*catalog.Relation{}
	fail := func(r *catalog.Relation, err error) {
		n := *r
		n.Failed = "it cannot be restored: " + sqlerr.From(err).Message
		failed[r.ID] = &n
		db.log.Error("job cannot be restored", "job", r.Name, "err", err)
	}
	for _, r := range user { // by ID: a relation comes after what it reads
		switch {
		case r.Building && (!r.Background || r.Failed != ""):
			// Its session is gone, or what it waited for has failed: nothing must be left of it.
			drop = append(drop, r.ID)
			rows = append(append(rows, r.ID), r.State...)
			continue
		case r.Failed != "" || r.Kind == catalog.View || r.Kind == catalog.Source:
			continue
		}
		g, err := db.replan(r)
		if err != nil {
			fail(r, err)
			continue
		}
		run = append(run, db.spec(r, g))
		if r.Building {
			resume = append(resume, r)
		}
	}
	if err := db.restoreParams(ctx); err != nil {
		return err
	}
	if db.params[paramPauseNext] == "on" {
		if err := db.jobs.Pause(ctx, true); err != nil {
			return err
		}
		db.params[paramPauseNext] = "off"
		db.log.Warn("backfills are paused, as pause_on_next_bootstrap asked", "resume", "RESUME BACKFILL")
	}
	if len(user) > 0 {
		err := db.jobs.Restore(ctx, run, func(e storage.Epoch, not map[catalog.ID]error) {
			for _, r := range run {
				if err := not[r.Rel.ID]; err != nil {
					fail(r.Rel, err)
				}
			}
			db.stage(e, slices.SortedFunc(maps.Values(failed), byID), drop)
			db.store.Drop(e, ids32(rows)...)
			db.stageParam(e, paramPauseNext)
		})
		if err != nil {
			return err
		}
		db.cat.Store(db.Catalog().With(slices.SortedFunc(maps.Values(failed), byID), drop))
	}
	for _, r := range resume {
		if failed[r.ID] == nil {
			db.background(r)
		}
	}
	return nil
}

func byID(a, b *catalog.Relation) int { return cmp.Compare(a.ID, b.ID) }

func ids32(ids []catalog.ID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

func (db *DB) parallelism(r *catalog.Relation) int {
	if r.Parallelism > 0 {
		return r.Parallelism
	}
	return db.o.Parallelism
}

// spec is how a relation's job runs.
func (db *DB) spec(r *catalog.Relation, g *plan.Graph) job.Spec {
	sp := job.Spec{Rel: r, Graph: g, Parallelism: db.parallelism(r)}
	if r.Building {
		sp.Building = r.BuildParallelism
	}
	return sp
}

// jobFailed records that jobs have stopped for good.
func (db *DB) jobFailed(rels []catalog.ID, cause error) {
	db.ddl.Lock()
	defer db.ddl.Unlock()
	cat := db.Catalog()
	var put []*catalog.Relation
	for i, id := range rels {
		r := cat.ByID(id)
		if r == nil {
			continue
		}
		n := *r
		n.Failed = sqlerr.From(cause).Message
		if i > 0 {
			n.Failed = fmt.Sprintf("%q, which it reads, has stopped: %s", cat.ByID(rels[0]).Name, n.Failed)
		}
		put = append(put, &n)
	}
	if err := db.change(put, nil, nil); err != nil {
		db.log.Error("a stopped job could not be recorded", "err", err)
	}
}

// Rows and Bytes are planner statistics.
func (db *DB) Rows(id catalog.ID) int64  { return db.store.Rows(uint32(id)) }
func (db *DB) Bytes(id catalog.ID) int64 { return db.store.Bytes(uint32(id)) }

// now is the clock in PostgreSQL's microseconds.
func (db *DB) now() int64 { return db.clock.Now().UnixMicro() - pgEpoch }

// pgEpoch is 2000-01-01 UTC in Unix microseconds.
const pgEpoch = 946684800000000

// seed gives randomness to expressions.
func (db *DB) seed() uint64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.rng.Uint64()
}

// CreateSchema and DropSchema keep namespaces; the caller has checked that they may.
func (db *DB) changeSchema(name string, drop bool) error {
	e, err := db.coord.Submit(context.Background(), job.Command{Stage: func(e storage.Epoch) {
		var val []byte
		if !drop {
			val = []byte{1}
		}
		db.store.Stage(e, storage.TagCatalog, append([]byte{keySchema}, name...), val)
	}})
	if err != nil {
		return err
	}
	if err := db.coord.Wait(context.Background(), e); err != nil {
		return err
	}
	db.cat.Store(db.Catalog().WithSchema(name, drop))
	return nil
}
