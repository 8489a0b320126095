package pgwire

import "github.com/prometheus/client_golang/prometheus"

// metrics of the server's connections.
type metrics struct {
	connections prometheus.Gauge
	opened      prometheus.Counter
	refused     prometheus.Counter
	canceled    prometheus.Counter
	in, out     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "streamdb_connections", Help: "Client sessions that are open."}),
		opened:      prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_connections_opened_total", Help: "Client sessions opened."}),
		refused:     prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_connections_refused_total", Help: "Clients turned away: too many, starting, wrong database."}),
		canceled:    prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_cancel_requests_total", Help: "CancelRequests that matched a session."}),
		in:          prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_wire_received_bytes_total", Help: "Bytes received from clients."}),
		out:         prometheus.NewCounter(prometheus.CounterOpts{Name: "streamdb_wire_sent_bytes_total", Help: "Bytes sent to clients."}),
	}
	if reg != nil {
		reg.MustRegister(m.connections, m.opened, m.refused, m.canceled, m.in, m.out)
	}
	return m
}
