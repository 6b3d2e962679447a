package admin

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are metrics of one package, all read out of one S a scrape, so that they
// belong to the same moment, or, with a label, out of one S for each value of the
// label. Add what there is before it is registered.
type Metrics[S any] struct {
	prefix string
	labels []string // one, or none
	each   func(send func(s *S, label ...string))
	list   []metric[S]
}

type metric[S any] struct {
	of    *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

var _ prometheus.Collector = (*Metrics[struct{}])(nil)

// NewMetrics returns a collector of metrics whose names begin with prefix. read is
// called once a scrape, perhaps by several goroutines at once, and must not block.
func NewMetrics[S any](prefix string, read func() S) *Metrics[S] {
	return &Metrics[S]{prefix: prefix, each: func(send func(*S, ...string)) {
		now := read()
		send(&now)
	}}
}

// newLabelled returns a collector of the same metrics of several S, each with its
// name as a label. Of two with one name the first counts: Prometheus refuses a value
// that comes twice, and all others with it.
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

// Gauge adds a metric that goes up and down; the name ends in its unit. help is
// for the person on duty. A value that is not a number is left out. It returns f.
func (f *Metrics[S]) Gauge(name, help string, value func(*S) float64) *Metrics[S] {
	return f.add(name, help, prometheus.GaugeValue, value)
}

// Counter adds a metric that only grows while the process runs; the name ends in
// _total. It returns f.
func (f *Metrics[S]) Counter(name, help string, value func(*S) float64) *Metrics[S] {
	return f.add(name, help, prometheus.CounterValue, value)
}

func (f *Metrics[S]) add(name, help string, kind prometheus.ValueType, value func(*S) float64) *Metrics[S] {
	f.list = append(f.list, metric[S]{prometheus.NewDesc(f.prefix+name, help, f.labels, nil), kind, value})
	return f
}

// Describe sends the descriptions.
func (f *Metrics[S]) Describe(out chan<- *prometheus.Desc) {
	for i := range f.list {
		out <- f.list[i].of
	}
}

// Collect sends the values of now.
func (f *Metrics[S]) Collect(out chan<- prometheus.Metric) {
	f.each(func(s *S, label ...string) {
		for i := range f.list {
			if v := f.list[i].value(s); !math.IsNaN(v) {
				out <- prometheus.MustNewConstMetric(f.list[i].of, f.list[i].kind, v, label...)
			}
		}
	})
}

// Family is a metric with one label, whose values are known where it is scraped.
type Family struct {
	of   *prometheus.Desc
	kind prometheus.ValueType
	each func(send func(label string, value float64))
}

var _ prometheus.Collector = (*Family)(nil)

// NewFamily returns the collector of a metric with one label. each is called at
// every scrape, perhaps by several goroutines at once; it must not block, and
// sends each label once.
func NewFamily(name, help, label string, kind prometheus.ValueType, each func(send func(label string, value float64))) *Family {
	return &Family{prometheus.NewDesc(name, help, []string{label}, nil), kind, each}
}

// Describe sends the description.
func (f *Family) Describe(out chan<- *prometheus.Desc) { out <- f.of }

// Collect sends the values of now.
func (f *Family) Collect(out chan<- prometheus.Metric) {
	f.each(func(label string, value float64) {
		out <- prometheus.MustNewConstMetric(f.of, f.kind, value, label)
	})
}

// BoolValue is a condition as a metric: 1 or 0.
func BoolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
