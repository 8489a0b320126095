package batch

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// openFiles counts this process's open files that are the queries'.
func openFiles(t *testing.T) int {
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(names) == 0 {
		t.Skip("no list of open files")
	}
	n := 0
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && strings.Contains(to, "streamdb-query-") {
			n++
		}
	}
	return n
}

func TestRowsInFiles(t *testing.T) {
	seeds(t, 40, func(t *testing.T, rnd *rand.Rand) {
		env := &Env{TempDir: t.TempDir()}
		typs := randomTypes(rnd, 1+rnd.IntN(6))
		f, err := env.tempFile()
		if err != nil {
			t.Fatal(err)
		}
		lists := []*rowList{f.list(typs), f.list(typs)}
		var want [2][]string
		for range rnd.IntN(6) {
			k := rnd.IntN(2)
			rows := randomRows(rnd, typs, rnd.IntN(1500))
			g := newGrower(typs, 0)
			for _, row := range rows {
				for i, d := range row {
					g.cols[i].Append(d)
				}
				g.n++
				want[k] = append(want[k], rowText(typs, row))
			}
			if g.n > 0 {
				if err := lists[k].write(g.chunk()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for k, l := range lists {
			if l.rows != int64(len(want[k])) {
				t.Errorf("%d rows written, %d noted", len(want[k]), l.rows)
			}
			for range 2 {
				rd, n := l.reader(), 0
				for {
					c, err := rd.Next(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if c == nil {
						break
					}
					for i := range c.Len() {
						if got := rowText(typs, c.Row(i)); got != want[k][n] {
							t.Fatalf("row %d: %s, want %s", n, got, want[k][n])
						}
						n++
					}
				}
				if n != len(want[k]) {
					t.Errorf("%d rows of %d", n, len(want[k]))
				}
			}
			l.close()
		}
	})
}

// Damaged bytes are an error, not a panic.
func FuzzReadRows(f *testing.F) {
	typs := []types.Type{types.Int8, types.Text, types.Numeric, types.IntervalT, types.ArrayOf(types.Int4), types.Float8, types.Bool}
	rnd := rand.New(rand.NewPCG(1, 1))
	g := newGrower(typs, 0)
	for _, row := range randomRows(rnd, typs, 5) {
		for i, d := range row {
			g.cols[i].Append(d)
		}
		g.n++
	}
	f.Add(appendRows(nil, g.chunk()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := readRows(b, typs, 5); err == nil && c.Len() != 5 {
			t.Fatal("a chunk of other size")
		}
	})
}

// Wide rows are in blocks of few, and a place that cannot be written to is an error that says so.
func TestSpillErrors(t *testing.T) {
	env := &Env{TempDir: t.TempDir()}
	f, err := env.tempFile()
	if err != nil {
		t.Fatal(err)
	}
	l := f.list([]types.Type{types.Text})
	wide := make([]string, 20)
	for i := range wide {
		wide[i] = strings.Repeat("x", 100_000)
	}
	if err := l.write(chunk.Make(chunk.NewVec(types.Text, wide, nil))); err != nil {
		t.Fatal(err)
	}
	if len(l.blocks) < 8 {
		t.Errorf("%d blocks", len(l.blocks))
	}
	f.f.Close()
	if _, err := l.reader().Next(context.Background()); sqlerr.Code(err) != "58030" || !strings.Contains(err.Error(), "could not read temporary file") {
		t.Errorf("got %v", err)
	}
	r := newRig(t)
	r.env.TempDir = filepath.Join(t.TempDir(), "missing")
	r.env.Memory = 10
	in := r.table([]types.Type{types.Int8}, randomRows(rand.New(rand.NewPCG(1, 1)), []types.Type{types.Int8}, 100))
	for _, n := range []plan.Node{&plan.Distinct{Input: in}, &plan.Join{Left: in, Right: in}, &plan.Join{Left: in, Right: in, LeftKeys: []int{0}, RightKeys: []int{0}},
		&plan.Agg{Input: in, GroupBy: []int{0}}, &plan.SetOp{Op: plan.Except, Ins: []plan.Node{in, in}, Out: in.Schema()}} {
		if _, err := r.run(n); err == nil || !strings.Contains(err.Error(), "could not create temporary file") {
			t.Errorf("%T: %v", n, err)
		}
	}
}
