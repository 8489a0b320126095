package exec

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"streamdb/planner/plan"
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/types"
	"streamdb/storage"
)

// Scripts say what goes into an operator and what comes out.
//
//	agg [global]       count(*), sum(v), min(v) of rows (k, g, v), by g
//	join kind=left     rows (k, j, v), by j, left and right
//	topn limit= [offset=] [group] [ties]   rows (k, g, v), by v descending
//	dedup              rows (k, g, v), by g
//	chunk [port=1]     pretty rows, without the line of types
//	barrier            ends an epoch and prints what came out in it
//	restart            kills the operator and starts it again from what is committed
func TestScripts(t *testing.T) {
	s := schemaOf(types.Int8, types.Int8, types.Int8)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return // TestMutants' table
		}
		r := newRig(t)
		var x *run
		start := func() {}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			begin := func(n plan.Stream, ports int) string {
				start = func() {
					x = r.start(n, ports, nil)
					r.barrier(nil)
				}
				r.stop()
				r.disk, r.epoch = storage.NewMemDisk(), 0
				r.open()
				start()
				return ""
			}
			switch d.Cmd {
			case "agg":
				group := []int{1}
				if d.HasArg("global") {
					group = nil
				}
				n := &plan.StreamHashAgg{GroupBy: group, Aggs: []expr.Agg{aggCallOf(t, s, "count"), aggCallOf(t, s, "sum", 2), aggCallOf(t, s, "min", 2)}}
				cols := append(append([]int{}, group...), 2, 0)
				n.Values = []*plan.TableDesc{nil, nil, stateTable(30, s, cols, upTo(len(cols)), upTo(len(group)))}
				n.State = stateTable(20, s, group, upTo(len(group)), upTo(len(group)))
				n.Schema = append(s.Project(group), schemaOf(types.Int8, types.Numeric, types.Int8)...)
				n.In = []plan.Stream{mergeOf(0, s, 0)}
				return begin(n, 1)
			case "join":
				var kind string
				d.ScanArgs(t, "kind", &kind)
				n := &plan.StreamHashJoin{LeftKeys: []int{1}, RightKeys: []int{1}}
				n.Kind = map[string]plan.JoinKind{"inner": plan.Inner, "left": plan.Left, "right": plan.Right, "full": plan.Full, "semi": plan.Semi, "anti": plan.Anti}[kind]
				n.LeftState, n.RightState = stateTable(20, s, upTo(3), []int{1, 0}, []int{1}), stateTable(21, s, upTo(3), []int{1, 0}, []int{1})
				n.LeftDegree, n.RightDegree = stateTable(22, s, []int{1, 0}, upTo(2), []int{0}), stateTable(23, s, []int{1, 0}, upTo(2), []int{0})
				n.Schema = append(append(types.Schema{}, s...), s...)
				if kind == "semi" || kind == "anti" {
					n.Schema = s
				}
				n.In = []plan.Stream{mergeOf(0, s, 0), mergeOf(1, s, 0)}
				return begin(n, 2)
			case "topn":
				n := &plan.StreamTopN{Order: []expr.Order{{Col: 2, Desc: true, NullsFirst: true}}, WithTies: d.HasArg("ties")}
				var limit, offset int
				d.ScanArgs(t, "limit", &limit)
				d.MaybeScanArgs(t, "offset", &offset)
				n.Limit, n.Offset = int64(limit), int64(offset)
				if d.HasArg("group") {
					n.GroupBy = []int{1}
				}
				n.State = stateTable(20, s, upTo(3), append(append([]int{}, n.GroupBy...), 0), n.GroupBy)
				n.Schema, n.In = s, []plan.Stream{mergeOf(0, s, 0)}
				return begin(n, 1)
			case "dedup":
				n := &plan.StreamDedup{Cols: []int{1}}
				n.State = stateTable(20, s, []int{1}, []int{0}, []int{0})
				n.Schema, n.In = s, []plan.Stream{mergeOf(0, s, 0)}
				return begin(n, 1)
			case "chunk":
				port := 0
				d.MaybeScanArgs(t, "port", &port)
				x.send(port, chunk.ParseTyped(s.Types(), d.Input))
				if port == 0 && len(x.ports) > 1 || port == 1 {
					// The ports of a join are not ordered against each other: the script is.
					r.barrier(nil)
				}
				return ""
			case "barrier":
				r.barrier(nil)
				var out []string
				for _, c := range x.take() {
					_, rows, _ := strings.Cut(c.String(), "\n")
					out = append(out, strings.TrimSpace(rows))
				}
				return strings.Join(out, "\n")
			case "restart":
				r.crash()
				start()
				return ""
			}
			return fmt.Sprintf("unknown directive %q", d.Cmd)
		})
	})
}
