package job

import "github.com/prometheus/client_golang/prometheus"

// Metrics of the coordinator and of jobs.
type Metrics struct {
	BarrierLatency prometheus.Histogram // injection to last report
	EpochLatency   prometheus.Histogram // injection to durable
	InFlight       prometheus.Gauge
	Epoch          prometheus.Gauge
	Failures       prometheus.Counter
	ExprErrors     *prometheus.CounterVec // by job name
}

// NewMetrics registers the package's metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16)
	m := &Metrics{
		BarrierLatency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "streamdb_barrier_latency_seconds", Help: "From a barrier's injection until every actor has passed it.", Buckets: buckets}),
		EpochLatency:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "streamdb_epoch_latency_seconds", Help: "From a barrier's injection until its epoch is durable.", Buckets: buckets}),
		InFlight:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "streamdb_epochs_in_flight", Help: "Epochs between injection and commit."}),
		Epoch:          prometheus.NewGauge(prometheus.GaugeOpts{Name: "streamdb_epoch", Help: "Newest committed epoch."}),
		Failures:       prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_job_failures_total", Help: "Jobs that stopped with an error."}),
		ExprErrors:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "streamdb_expression_errors_total", Help: "Expressions of views that failed and became NULL."}, []string{"job"}),
	}
	if reg != nil {
		reg.MustRegister(m.BarrierLatency, m.EpochLatency, m.InFlight, m.Epoch, m.Failures, m.ExprErrors)
	}
	return m
}
