package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"streamdb/e2e/harness"

	"github.com/jackc/pgx/v5/pgconn"
)

// A dataset is the two CSV files in memory, without their header lines: reading
// and unpacking them is not what is measured.
type dataset struct {
	flights, airports []byte
	rows              int // of flights
	source            string
}

func (d dataset) String() string { return fmt.Sprintf("%d flights from %s", d.rows, d.source) }

// findData reads the flights from dir, or from beside the checkout, or repeats the sample.
func findData(dir string, limit int) (dataset, error) {
	root, err := harness.Root()
	if err != nil {
		return dataset{}, err
	}
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "data")
	}
	sample := filepath.Join(root, "e2e", "testdata", "flights")
	d := dataset{source: dir}
	f, err := os.Open(filepath.Join(dir, "flights.csv.gz"))
	if err != nil {
		d.source = "the sample, repeated"
		if d.flights, d.rows, err = repeat(filepath.Join(sample, "flights.csv"), limit); err != nil {
			return d, err
		}
		dir = sample
	} else {
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			return d, err
		}
		if d.flights, d.rows, err = body(z, limit); err != nil {
			return d, err
		}
	}
	a, err := os.Open(filepath.Join(dir, "airports.csv"))
	if err != nil {
		return d, err
	}
	defer a.Close()
	d.airports, _, err = body(a, 1<<30)
	return d, err
}

// body reads up to limit lines after the header.
func body(r io.Reader, limit int) ([]byte, int, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	if _, err := br.ReadSlice('\n'); err != nil {
		return nil, 0, err
	}
	var out bytes.Buffer
	n := 0
	for ; n < limit; n++ {
		line, err := br.ReadSlice('\n')
		out.Write(line)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return out.Bytes(), n, nil
}

// repeat writes the sample again and again under new ids.
func repeat(path string, n int) ([]byte, int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	sample, _, err := body(f, 1<<30)
	if err != nil {
		return nil, 0, err
	}
	lines := bytes.SplitAfter(bytes.TrimRight(sample, "\n"), []byte("\n"))
	var out bytes.Buffer
	for i := range n {
		line := lines[i%len(lines)]
		out.WriteString(strconv.Itoa(i + 1))
		out.Write(bytes.TrimRight(line[bytes.IndexByte(line, ','):], "\n"))
		out.WriteByte('\n')
	}
	return out.Bytes(), n, nil
}

const tables = `
CREATE TABLE flights (id bigint PRIMARY KEY, flown_at timestamp, origin text, destination text, delay_min int, distance_mi int);
CREATE TABLE airports (iata text PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision)`

const busiest = `SELECT a.state, f.origin, count(*) n, avg(f.delay_min) avg_delay, max(f.delay_min) worst FROM flights f JOIN airports a ON a.iata = f.origin GROUP BY a.state, f.origin`

// exec runs SQL and returns the last result's rows.
func exec(ctx context.Context, conn *pgconn.PgConn, sql string) ([][][]byte, error) {
	res, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	if len(res) == 0 {
		return nil, nil
	}
	return res[len(res)-1].Rows, nil
}
