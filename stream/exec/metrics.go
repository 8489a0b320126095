package exec

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"streamdb/stream"
)

// Metrics of all executors of a process.
type Metrics struct {
	rows     *prometheus.CounterVec // by job, executor
	hits     *prometheus.CounterVec // by job, cache
	misses   *prometheus.CounterVec
	backfill *prometheus.GaugeVec // by job, fragment
	scanned  *prometheus.CounterVec
}

// NewMetrics registers the executors' metrics; a nil registerer keeps them to itself.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		rows:    counter("streamdb_executor_rows_total", "Changes that executors emitted.", "job", "executor"),
		hits:    counter("streamdb_cache_hits_total", "Keys that an operator found in memory.", "job", "cache"),
		misses:  counter("streamdb_cache_misses_total", "Keys that an operator had to read from its state.", "job", "cache"),
		scanned: counter("streamdb_backfill_rows_total", "Rows that backfills delivered.", "job", "fragment"),
		backfill: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "streamdb_backfill_progress_ratio", Help: "Rows delivered by a backfill over the rows there are.",
		}, []string{"job", "fragment"}),
	}
	if reg != nil {
		reg.MustRegister(m.rows, m.hits, m.misses, m.scanned, m.backfill)
	}
	return m
}

// Forget drops the series of a job that is gone.
func (m *Metrics) Forget(job uint32) {
	l := prometheus.Labels{"job": strconv.Itoa(int(job))}
	m.rows.DeletePartialMatch(l)
	m.hits.DeletePartialMatch(l)
	m.misses.DeletePartialMatch(l)
	m.scanned.DeletePartialMatch(l)
	m.backfill.DeletePartialMatch(l)
}

// counters returns a cache's counters of hits and misses; nil metrics count nothing.
func (m *Metrics) cache(env *Env, name string) (hits, misses counter) {
	if m == nil {
		return nothing{}, nothing{}
	}
	job := strconv.Itoa(int(env.Job))
	return m.hits.WithLabelValues(job, name), m.misses.WithLabelValues(job, name)
}

type counter interface{ Add(float64) }

type nothing struct{}

func (nothing) Add(float64) {}

// emitted wraps emit so that the rows of an executor are counted.
func (m *Metrics) emitted(env *Env, name string, emit stream.Emit) stream.Emit {
	if m == nil {
		return emit
	}
	rows := m.rows.WithLabelValues(strconv.Itoa(int(env.Job)), name)
	return func(msg stream.Message) error {
		if msg.Chunk != nil {
			rows.Add(float64(msg.Chunk.Len()))
		}
		return emit(msg)
	}
}
