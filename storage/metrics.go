package storage

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are kept whether or not anyone collects them.
type metrics struct {
	commit   prometheus.Histogram
	bytes    prometheus.Counter
	rows     prometheus.Counter
	hits     prometheus.Counter
	misses   prometheus.Counter
	warnings prometheus.Counter
	corrupt  prometheus.Counter
	scrubbed prometheus.Counter
	free     prometheus.Gauge
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "streamdb", Subsystem: "storage", Name: name, Help: help})
	}
	return &metrics{
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "streamdb", Subsystem: "storage", Name: "commit_seconds",
			Help:    "Time to make an epoch durable.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
		bytes:    counter("committed_bytes_total", "Bytes of keys and values committed."),
		rows:     counter("committed_rows_total", "Keys committed, deletions included."),
		hits:     counter("overlay_hits_total", "Point reads of state tables answered by their own uncommitted writes."),
		misses:   counter("overlay_misses_total", "Point reads of state tables that went to the engine."),
		warnings: counter("engine_warnings_total", "Warnings and errors in the engine's log."),
		corrupt:  counter("corrupt_objects_total", "Objects whose rows did not match their digest."),
		scrubbed: counter("scrubbed_rows_total", "Rows compared with their digest."),
		free:     prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "streamdb", Subsystem: "storage", Name: "free_disk_bytes", Help: "Free space when last looked at."}),
	}
}

// register hands the metrics to r, with those read from the store when collected.
func (s *Store) register(r prometheus.Registerer) error {
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "streamdb", Subsystem: "storage", Name: name, Help: help}, f)
	}
	m := s.m
	for _, c := range []prometheus.Collector{m.commit, m.bytes, m.rows, m.hits, m.misses, m.warnings, m.corrupt, m.scrubbed, m.free,
		gauge("pinned_views", "Versions of the state that readers hold.", func() float64 { return float64(s.pins.count()) }),
		gauge("dirty_bytes", "Bytes of uncommitted state.", func() float64 { return float64(s.DirtyBytes()) }),
		gauge("disk_bytes", "Bytes of the engine's table files.", func() float64 { return float64(s.eng.size()) }),
		gauge("committed_epoch", "Newest committed epoch.", func() float64 { return float64(s.Committed()) }),
		objectCollector{s},
	} {
		if err := r.Register(c); err != nil {
			return err
		}
		s.registered = append(s.registered, c)
	}
	return nil
}

// objectCollector reports rows and bytes of each object from its digest.
type objectCollector struct{ s *Store }

var (
	objectRows  = prometheus.NewDesc("streamdb_storage_object_rows", "Rows of an object.", []string{"object"}, nil)
	objectBytes = prometheus.NewDesc("streamdb_storage_object_bytes", "Bytes of keys and values of an object.", []string{"object"}, nil)
)

func (c objectCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- objectRows
	ch <- objectBytes
}

func (c objectCollector) Collect(ch chan<- prometheus.Metric) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for id, d := range c.s.digests {
		object := strconv.FormatUint(uint64(id), 10)
		ch <- prometheus.MustNewConstMetric(objectRows, prometheus.GaugeValue, float64(d.rows), object)
		ch <- prometheus.MustNewConstMetric(objectBytes, prometheus.GaugeValue, float64(d.bytes), object)
	}
}
