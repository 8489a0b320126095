package embed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"streamdb/sql/catalog"
	"streamdb/storage"

	"github.com/dgraph-io/badger/v4"
)

// Owned are the objects that relations may have in the store: themselves and the
// state of their jobs.
func (db *DB) Owned() map[uint32]string {
	out := map[uint32]string{}
	for _, r := range db.Catalog().Relations() {
		if r.ID < catalog.FirstUserID {
			continue
		}
		out[uint32(r.ID)] = r.Name
		for _, s := range r.State {
			out[uint32(s)] = "state of " + r.Name
		}
	}
	return out
}

// Strays looks into the directory of a database that is not running for keys of
// objects that nobody owns and for jobs' metadata that was not taken away; none: nil.
// It opens the store once, as that carries out what drops were left.
func Strays(dir string, owned map[uint32]string) error {
	s, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		return err
	}
	var errs []error
	for kv, err := range s.Meta(storage.TagJobs, nil) {
		if err != nil {
			return errors.Join(err, s.Close())
		}
		errs = append(errs, fmt.Errorf("a job's metadata is left: %x", kv.Key))
	}
	if err := s.Close(); err != nil {
		return err
	}
	db, err := badger.OpenManaged(badger.DefaultOptions(filepath.Join(dir, "state")).WithReadOnly(true).WithLogger(nil))
	if err != nil {
		return err
	}
	defer db.Close()
	txn := db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	stray := map[uint32]int{}
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().Key()
		if k[0] < storage.TagState {
			continue
		}
		if k[0] > storage.TagIndex {
			k = k[1:] // pieces and blocks: their own tag stands before the object's
		}
		if id := binary.BigEndian.Uint32(k[1:]); owned[id] == "" {
			stray[id]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stray)) {
		errs = append(errs, fmt.Errorf("object %d belongs to nobody and has %d keys", id, stray[id]))
	}
	return errors.Join(errs...)
}

// Goroutines counts the goroutines that were started, directly or not, under a pprof
// label and whose stack has a function that contains what.
func Goroutines(key, value, what string) int {
	var b bytes.Buffer
	pprof.Lookup("goroutine").WriteTo(&b, 1)
	n := 0
	label := fmt.Sprintf("%q:%q", key, value)
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, label) && strings.Contains(block, what) {
			// "profile: total" heads the first block.
			_, at, _ := strings.Cut("\n"+block, "\n")
			if strings.HasPrefix(at, "goroutine profile") {
				_, at, _ = strings.Cut(at, "\n")
			}
			count, _, _ := strings.Cut(at, " @")
			k, _ := strconv.Atoi(count)
			n += k
		}
	}
	return n
}
