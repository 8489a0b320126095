// Command bench prints the figures of the README as a table: loading, backfill,
// insert latency, freshness, start, memory, binary size; each a median of three,
// with PostgreSQL 15's beside it where it does the same thing.
//
//	go run ./e2e/bench -bin bin/streamdb [-data DIR] [-only NAME] [-runs 3] [-rows 3000000]
//	go run ./e2e/bench -suite locality|sortbuffer|governor|rescale [-times 10] …
//
// The data are flights.csv.gz and airports.csv (../shared/data beside the checkout);
// without them, the sample of e2e/testdata is repeated under new keys up to -rows.
// PostgreSQL runs with its default durability (fsync on), as the server does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"streamdb/e2e/harness"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	bin  = flag.String("bin", "", "the streamdb binary; empty: build it")
	data = flag.String("data", "", "directory of flights.csv.gz and airports.csv; empty: ../shared/data")
	only = flag.String("only", "", "run only the figures whose name contains this")
	runs = flag.Int("runs", 3, "runs a figure; the median is printed")
	rows = flag.Int("rows", 3_000_000, "flights to load, at most what the data have")

	suite = flag.String("suite", "", "locality, sortbuffer, governor or rescale; empty: the README's table")
	times = flag.Int("times", 1, "for suites: how often the flights are loaded, each time under new ids")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A bench holds what all figures need.
type bench struct {
	binary string
	tmp    string
	set    dataset
	table  []figure
}

// A figure is one row of the table.
type figure struct {
	name, unit     string
	ours, postgres []float64 // a value a run; nil: not measured
	better         string    // "more" or "less"
}

func run(ctx context.Context) error {
	tmp, err := os.MkdirTemp("", "streamdb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &bench{binary: *bin, tmp: tmp}
	if b.binary == "" {
		if b.binary, err = harness.Build(ctx, tmp, false); err != nil {
			return err
		}
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	if b.set, err = findData(*data, *rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s; %d runs\n", b.set, *runs)
	if *suite != "" {
		f := suites[*suite]
		if f == nil {
			return fmt.Errorf("there is no suite %q: locality, sortbuffer, governor, rescale", *suite)
		}
		return f(b, ctx)
	}
	for i := range *runs {
		fmt.Fprintf(os.Stderr, "run %d\n", i+1)
		// Ours and PostgreSQL's in turn, so that a noisy moment hits both.
		if err := b.once(ctx, b.openOurs, true); err != nil {
			return err
		}
		if err := b.once(ctx, openPostgres, false); err != nil {
			return err
		}
	}
	b.print()
	return nil
}

// A system is a server under measurement.
type system struct {
	server  *harness.Server // nil: PostgreSQL
	connect func(context.Context) (*pgconn.PgConn, error)
	stop    func()
}

func (b *bench) openOurs(ctx context.Context) (*system, error) { return b.openWith(ctx) }

// openWith starts one of ours with more arguments.
func (b *bench) openWith(ctx context.Context, args ...string) (*system, error) {
	dir, err := os.MkdirTemp(b.tmp, "data-")
	if err != nil {
		return nil, err
	}
	s, err := harness.NewServer(b.binary, dir)
	if err != nil {
		return nil, err
	}
	s.Args = args
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return &system{server: s, connect: s.Connect, stop: func() { s.Kill(); os.RemoveAll(dir) }}, nil
}

func openPostgres(ctx context.Context) (*system, error) {
	p, err := harness.StartPostgres(ctx, true)
	if err != nil {
		return nil, err
	}
	return &system{connect: func(ctx context.Context) (*pgconn.PgConn, error) { return p.Connect(ctx, "dev") }, stop: p.Stop}, nil
}

// once measures all figures of one system.
func (b *bench) once(ctx context.Context, open func(context.Context) (*system, error), ours bool) error {
	for _, part := range []struct {
		name string
		run  func(context.Context, *system, *recorder) error
	}{
		{"load", b.load},
		{"insert", b.insert},
		{"freshness", b.freshness},
		{"start", b.start},
	} {
		if !strings.Contains(part.name, *only) {
			continue
		}
		s, err := open(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = part.run(ctx, s, &recorder{b, ours})
		if err != nil && s.server != nil {
			err = fmt.Errorf("%w\n%s", err, s.server.Log())
		}
		s.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(os.Stderr, "  %-10s ours=%v %s\n", part.name, ours, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// A recorder puts values into the table.
type recorder struct {
	b    *bench
	ours bool
}

func (r *recorder) add(name, unit, better string, value float64) {
	i := slices.IndexFunc(r.b.table, func(f figure) bool { return f.name == name })
	if i < 0 {
		i = len(r.b.table)
		r.b.table = append(r.b.table, figure{name: name, unit: unit, better: better})
	}
	f := &r.b.table[i]
	if r.ours {
		f.ours = append(f.ours, value)
	} else {
		f.postgres = append(f.postgres, value)
	}
}

func (b *bench) print() {
	fmt.Printf("| what | unit | streamdb | PostgreSQL 15 | ratio |\n|---|---|---:|---:|---:|\n")
	for _, f := range b.table {
		ratio := ""
		if len(f.ours) > 0 && len(f.postgres) > 0 {
			r := median(f.ours) / median(f.postgres)
			if f.better == "less" {
				r = 1 / r
			}
			ratio = fmt.Sprintf("%.2f×", r)
		}
		fmt.Printf("| %s | %s | %s | %s | %s |\n", f.name, f.unit, show(f.ours), show(f.postgres), ratio)
	}
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func show(v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	switch m := median(v); {
	case m >= 1000:
		s := fmt.Sprintf("%.0f", m)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case m >= 10:
		return fmt.Sprintf("%.1f", m)
	default:
		return fmt.Sprintf("%.2f", m)
	}
}
