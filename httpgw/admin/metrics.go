package admin

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics collects the metrics of one package. At each scrape it reads all of them from a
// single S, or from one S per value of a label, so that they belong to the same moment.
// All metrics must be added before it is registered.
type Metrics[S any] struct {
	prefix string
	labels []string // one, or none
	each   func(send func(s *S, label ...string))
	list   []metric[S]
}

type metric[S any] struct {
	name  string
	of    *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

var _ prometheus.Collector = (*Metrics[struct{}])(nil)

// NewMetrics returns a collector of metrics whose names begin with prefix. Each scrape
// calls read once; it must be safe for concurrent use and must not block.
func NewMetrics[S any](prefix string, read func() S) *Metrics[S] {
	return &Metrics[S]{prefix: prefix, each: func(send func(*S, ...string)) {
		now := read()
		send(&now)
	}}
}

// newLabelled returns a collector of the same metrics of several S, labelled by name. If
// two have the same name, the second is ignored, because Prometheus would refuse the whole
// scrape.
func newLabelled[S any](prefix, label string, read func() []S, name func(*S) string) *Metrics[S] {
	return &Metrics[S]{prefix: prefix, labels: []string{label}, each: func(send func(*S, ...string)) {
		all, seen := read(), map[string]bool{}
		for i := range all {
			if text := name(&all[i]); !seen[text] {
				seen[text] = true
				send(&all[i], text)
			}
		}
	}}
}

// Gauge adds a gauge, whose name ends in its unit, and returns f. help is for the person
// on duty. A NaN value is omitted.
func (f *Metrics[S]) Gauge(name, help string, value func(*S) float64) *Metrics[S] {
	return f.add(name, help, prometheus.GaugeValue, value)
}

// Counter adds a counter, whose name ends in _total, and returns f.
func (f *Metrics[S]) Counter(name, help string, value func(*S) float64) *Metrics[S] {
	return f.add(name, help, prometheus.CounterValue, value)
}

// Formerly adds the last metric again under its old name, for this version only, and
// returns f.
func (f *Metrics[S]) Formerly(name string) *Metrics[S] {
	last := &f.list[len(f.list)-1]
	return f.add(name, "Deprecated: use "+f.prefix+last.name+".", last.kind, last.value)
}

func (f *Metrics[S]) add(name, help string, kind prometheus.ValueType, value func(*S) float64) *Metrics[S] {
	f.list = append(f.list, metric[S]{name, prometheus.NewDesc(f.prefix+name, help, f.labels, nil), kind, value})
	return f
}

// Describe implements prometheus.Collector.
func (f *Metrics[S]) Describe(out chan<- *prometheus.Desc) {
	for i := range f.list {
		out <- f.list[i].of
	}
}

// Collect implements prometheus.Collector.
func (f *Metrics[S]) Collect(out chan<- prometheus.Metric) {
	f.each(func(s *S, label ...string) {
		for i := range f.list {
			if v := f.list[i].value(s); !math.IsNaN(v) {
				out <- prometheus.MustNewConstMetric(f.list[i].of, f.list[i].kind, v, label...)
			}
		}
	})
}

// Family is a metric with one label, whose label values are determined at each scrape.
type Family struct {
	of   *prometheus.Desc
	kind prometheus.ValueType
	each func(send func(label string, value float64))
}

var _ prometheus.Collector = (*Family)(nil)

// NewFamily returns the collector of a metric with one label. Each scrape calls each, which
// must be safe for concurrent use, must not block, and sends each label value once.
func NewFamily(name, help, label string, kind prometheus.ValueType, each func(send func(label string, value float64))) *Family {
	return &Family{prometheus.NewDesc(name, help, []string{label}, nil), kind, each}
}

// Describe implements prometheus.Collector.
func (f *Family) Describe(out chan<- *prometheus.Desc) { out <- f.of }

// Collect implements prometheus.Collector.
func (f *Family) Collect(out chan<- prometheus.Metric) {
	f.each(func(label string, value float64) {
		out <- prometheus.MustNewConstMetric(f.of, f.kind, value, label)
	})
}

// BoolValue returns a condition as the value of a metric: 1 or 0.
func BoolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
