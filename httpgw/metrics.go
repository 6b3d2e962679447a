package httpgw

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// statuses are those that this room answers with; others count under "other".
var statuses = [...]int{
	101, 200, 201, 202, 204, 304, 400, 403, 404, 405, 408, 409, 413, 415, 422, 426, 429, 431, 500, 503,
}

// metrics are what /metrics shows of this room. Counters are resolved when the
// table is built, so that a request looks nothing up by name.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	broken   *prometheus.CounterVec
	refused  prometheus.Counter
	panics   prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blockdesk_http_requests_total",
			Help: "Requests answered, by address, route and status. Route unknown: no such path or method.",
		}, []string{"surface", "route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "blockdesk_http_request_seconds",
			Help:    "Time in the handler, without reading the request and writing the answer.",
			Buckets: []float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2, 1e-1, 1},
		}, []string{"surface", "route"}),
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blockdesk_http_unreadable_requests_total",
			Help: "Requests that could not be parsed, came too slowly or were too large, by the status of the answer.",
		}, []string{"status"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "blockdesk_http_connections_refused_total",
			Help: "Connections refused because a limit on connections was reached.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "blockdesk_http_panics_total",
			Help: "Handlers that panicked; each is in the log with its request_id. Anything but 0 is a bug.",
		}),
	}
}

// routeStats are the counters of one route on one address.
type routeStats struct {
	byStatus [len(statuses) + 1]prometheus.Counter
	latency  prometheus.Observer
}

func (m *metrics) route(surface, path string) *routeStats {
	s := &routeStats{latency: m.latency.WithLabelValues(surface, path)}
	for i, status := range statuses {
		s.byStatus[i] = m.requests.WithLabelValues(surface, path, strconv.Itoa(status))
	}
	s.byStatus[len(statuses)] = m.requests.WithLabelValues(surface, path, "other")
	return s
}

func (s *routeStats) observe(status int, took time.Duration) {
	at := len(statuses)
	for i, known := range statuses {
		if known == status {
			at = i
			break
		}
	}
	s.byStatus[at].Inc()
	s.latency.Observe(took.Seconds())
}
