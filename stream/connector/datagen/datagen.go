// Package datagen is a source of made-up rows: sequences and random values, at a
// chosen rate, with RisingWave's options.
//
//	fields.<column>.kind      sequence | random (the default)
//	  sequence: start (0), end (none)
//	  random:   min (0), max (32767), seed; length (10) of texts and arrays;
//	            max_past (1 day), max_past_mode (relative | absolute), basetime of times
//	fields.<column>._.…       of an array's elements
//	datagen.rows.per.second   (10) of all splits together
//	datagen.split.num         (1)
//
// The one idea: row n of a split is a function of the seed, the split and n, so
// that n is all there is to an offset.
package datagen

import (
	"context"
	"strconv"
	"strings"
	"time"

	"streamdb/sql/catalog"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
	"streamdb/stream/connector"
)

// Driver is the connector named datagen.
func Driver() connector.Driver {
	return connector.Driver{
		Name: "datagen",
		Splits: func(r *catalog.Relation) ([]string, error) {
			o, err := parse(r, 0)
			if err != nil {
				return nil, err
			}
			out := make([]string, o.splits)
			for i := range out {
				out[i] = strconv.Itoa(i)
			}
			return out, nil
		},
		Reader: func(r *catalog.Relation, seed uint64) (connector.Reader, error) {
			o, err := parse(r, seed)
			if err != nil {
				return nil, err
			}
			return &reader{options: o}, nil
		},
	}
}

// options are what a WITH clause asks for.
type options struct {
	rate   int64 // rows a second
	splits int64
	cols   []column
}

// A column of the relation. gen nil: the column is computed elsewhere and NULL here.
type column struct {
	typ types.Type
	gen generator
}

func parse(r *catalog.Relation, seed uint64) (*options, error) {
	o := &options{rate: 10, splits: 1}
	fields := map[string]map[string]string{}
	known := map[string]bool{}
	for _, c := range r.Columns {
		known[c.Name] = true
	}
	for _, w := range r.With {
		var err error
		switch {
		case w.Name == "datagen.rows.per.second":
			o.rate, err = positive(w, 1<<40)
		case w.Name == "datagen.split.num":
			o.splits, err = positive(w, 1024)
		case strings.HasPrefix(w.Name, "fields."):
			at := strings.LastIndexByte(w.Name, '.')
			name := w.Name[len("fields."):max(at, len("fields."))]
			if !known[strings.TrimSuffix(name, "._")] {
				return nil, sqlerr.New(sqlerr.UndefinedColumn, "column %q of option %q does not exist", strings.TrimSuffix(name, "._"), w.Name)
			}
			if fields[name] == nil {
				fields[name] = map[string]string{}
			}
			fields[name][w.Name[at+1:]] = w.Value
		case strings.HasPrefix(w.Name, "datagen."):
			return nil, sqlerr.New(sqlerr.InvalidParameter, "unrecognized option %q", w.Name).
				WithHint("Known are datagen.rows.per.second and datagen.split.num.")
		}
		if err != nil {
			return nil, err
		}
	}
	for i, c := range r.Columns {
		col := column{typ: c.Type}
		if !c.Hidden && c.Generated == "" {
			f := fieldOptions{name: c.Name, typ: c.Type, opts: fields[c.Name], elems: fields[c.Name+"._"], splits: o.splits, seed: mix(seed, uint64(i))}
			var err error
			if col.gen, err = f.generator(); err != nil {
				return nil, err
			}
		}
		o.cols = append(o.cols, col)
	}
	return o, nil
}

func positive(w catalog.Option, most int64) (int64, error) {
	n, err := strconv.ParseInt(w.Value, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid value for option %q: %q", w.Name, w.Value).
			WithHint("It must be a number from 1 to %d.", most)
	}
	return n, nil
}

// A split is one that this reader has.
type split struct {
	id    string
	num   int64
	next  int64 // row
	first int64 // row at start
	rate  float64
	ended bool // a sequence has come to its end
}

// A reader makes the rows of some splits.
type reader struct {
	*options
	at    []split
	start time.Time
	turn  int
}

// Open begins at the splits' offsets, which are row numbers.
func (r *reader) Open(_ context.Context, at []connector.Split, _ func()) error {
	for _, s := range at {
		n, err := strconv.ParseInt(s.ID, 10, 64)
		if err != nil || n < 0 || n >= r.splits {
			return sqlerr.New(sqlerr.InvalidParameter, "datagen has no split %q", s.ID)
		}
		x := split{id: s.ID, num: n, rate: float64(r.rate / r.splits)}
		if n < r.rate%r.splits {
			x.rate++
		}
		if s.Offset != "" {
			if x.next, err = strconv.ParseInt(s.Offset, 10, 64); err != nil {
				return sqlerr.New(sqlerr.DataCorrupted, "invalid offset %q of split %q", s.Offset, s.ID)
			}
		}
		x.first = x.next
		r.at = append(r.at, x)
	}
	return nil
}

// due is how many rows a split should have made by now and has not.
func (s *split) due(elapsed time.Duration) int64 {
	if s.ended {
		return 0
	}
	return s.first + int64(elapsed.Seconds()*s.rate) - s.next
}

// Read makes the rows that are due, of one split at a time, in turn.
func (r *reader) Read(now time.Time, most int) (connector.Batch, error) {
	if r.start.IsZero() {
		r.start = now
	}
	elapsed := now.Sub(r.start)
	var next time.Time
	for range r.at {
		s := &r.at[r.turn]
		r.turn = (r.turn + 1) % len(r.at)
		if n := min(s.due(elapsed), int64(most)); n > 0 {
			return r.rows(s, n, now), nil
		}
		if s.ended || s.rate == 0 {
			continue
		}
		// A row, or what a hundredth of a second brings.
		want := max(1, s.rate/100)
		at := r.start.Add(time.Duration((float64(s.next-s.first) + want) / s.rate * 1e9)).Add(time.Microsecond)
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if next.IsZero() {
		next = now.Add(time.Hour) // all splits have ended
	}
	return connector.Batch{Next: next}, nil
}

func (r *reader) rows(s *split, n int64, now time.Time) connector.Batch {
	for _, c := range r.cols {
		if l, ok := c.gen.(limited); ok {
			if left := l.left(s.num, s.next); left < n {
				n, s.ended = left, true
			}
		}
	}
	if n <= 0 {
		return connector.Batch{Next: now}
	}
	c := &chunk.Chunk{N: int(n), Cols: make([]chunk.Column, len(r.cols))}
	for i, col := range r.cols {
		if col.gen == nil {
			c.Cols[i] = chunk.Nulls(col.typ, int(n))
			continue
		}
		c.Cols[i] = chunk.New(col.typ, int(n))
		col.gen.generate(c.Cols[i], s.num, s.next, n, now)
	}
	s.next += n
	return connector.Batch{Chunk: c, Splits: []connector.Split{{ID: s.id, Offset: strconv.FormatInt(s.next, 10)}}}
}
