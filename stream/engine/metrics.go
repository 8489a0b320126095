package engine

import "github.com/prometheus/client_golang/prometheus"

// metrics of sessions and statements.
type metrics struct {
	QuerySeconds prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{QuerySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "streamdb_query_seconds", Help: "Time of a statement from its execution to its last row.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20)})}
	if reg != nil {
		reg.MustRegister(m.QuerySeconds)
	}
	return m
}
