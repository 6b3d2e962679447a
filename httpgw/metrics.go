package httpgw

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// statuses are the status codes of this package; all others count as "other".
var statuses = [...]int{
	101, 200, 201, 202, 204, 304, 307, 400, 403, 404, 405, 408, 409, 413, 415, 422, 426, 429, 431, 500, 503,
}

// metrics are this package's metrics. The counters of a route are found when the router
// is built, so that a request looks nothing up by name.
type metrics struct {
	routes  routeMetrics
	broken  *prometheus.CounterVec
	refused prometheus.Counter
	panics  prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		routes: routeMetrics{
			requests: prometheus.NewDesc("blockdesk_http_requests_total",
				"Answered requests. Route unknown: no such path or method.",
				[]string{"surface", "route", "status"}, nil),
			latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name:    "blockdesk_http_request_seconds",
				Help:    "Time in the handler, without reading and writing.",
				Buckets: []float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2, 1e-1, 1},
			}, []string{"surface", "route"}),
		},
		broken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blockdesk_http_unreadable_requests_total",
			Help: "Requests malformed, too slow or too large.",
		}, []string{"status"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "blockdesk_http_connections_refused_total",
			Help: "Connections refused by a limit on connections.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "blockdesk_http_panics_total",
			Help: "Panics in handlers, logged with their request_id. Any value but 0 is a bug.",
		}),
	}
}

// routeMetrics collects the metrics of all routes. It omits counters that are zero:
// every status of every route on every address would be megabytes.
type routeMetrics struct {
	requests *prometheus.Desc
	latency  *prometheus.HistogramVec // not registered by itself
	all      []*routeStats            // grows before the gateway serves, never after
}

var _ prometheus.Collector = (*routeMetrics)(nil)

// routeStats are the counters of one route on one address.
type routeStats struct {
	surface, path string
	byStatus      [len(statuses) + 1]atomic.Uint64 // the last is "other"
	latency       prometheus.Observer
}

// route returns the counters of a path on an address. All methods of a path share them.
func (m *routeMetrics) route(surface, path string) *routeStats {
	for _, s := range m.all {
		if s.surface == surface && s.path == path {
			return s
		}
	}
	s := &routeStats{surface: surface, path: path, latency: m.latency.WithLabelValues(surface, path)}
	m.all = append(m.all, s)
	return s
}

// Describe sends the descriptions.
func (m *routeMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.requests
	m.latency.Describe(out)
}

// Collect sends the values of now.
func (m *routeMetrics) Collect(out chan<- prometheus.Metric) {
	for _, s := range m.all {
		asked := false
		for i := range s.byStatus {
			n := s.byStatus[i].Load()
			if n == 0 {
				continue
			}
			asked = true
			status := "other"
			if i < len(statuses) {
				status = strconv.Itoa(statuses[i])
			}
			out <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(n), s.surface, s.path, status)
		}
		if latency, ok := s.latency.(prometheus.Metric); ok && asked {
			out <- latency
		}
	}
}

func (s *routeStats) observe(status int, took time.Duration) {
	at := slices.Index(statuses[:], status)
	if at < 0 {
		at = len(statuses)
	}
	s.byStatus[at].Add(1)
	s.latency.Observe(took.Seconds())
}
