package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
	"blockdesk/market"
)

// Prices returns the metrics of the assets that have rules of prices. Each scrape calls
// each, which must be safe for concurrent use and must not block.
func Prices(each func() []desk.AssetPrice) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("blockdesk_price_"+name, help, append([]string{"asset"}, labels...), nil)
	}
	return &prices{
		each:       each,
		usd:        desc("usd", "Dollar price of an asset; 0 without one."),
		age:        desc("age_seconds", "Age of an asset's price; +Inf without one."),
		confidence: desc("confidence_ratio", "Half the confidence interval as a part of the price; 0 if unknown."),
		usable:     desc("usable", "1 if an asset has a price."),
		source:     desc("source_usable", "1 if an asset's source is usable.", "source"),
		fault:      desc("fault", "1 for the reason why an asset's source is not used.", "source", "fault"),
		chosen:     desc("from_source", "1 for the source of an asset's price.", "source"),
	}
}

// prices collects the metrics of prices.
type prices struct {
	each                                                func() []desk.AssetPrice
	usd, age, confidence, usable, source, fault, chosen *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p *prices) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.usd, p.age, p.confidence, p.usable, p.source, p.fault, p.chosen} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p *prices) Collect(out chan<- prometheus.Metric) {
	now := time.Now().UnixNano()
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, a := range p.each() {
		age, confidence, usable := math.Inf(1), 0.0, 0.0
		if a.Price != 0 {
			age, usable = time.Duration(now-a.PublishedAt).Seconds(), 1
			confidence = float64(a.Confidence) / float64(a.Price)
		}
		send(p.usd, float64(a.Price)/float64(market.Pow10(market.USDPriceDecimals)), a.Asset)
		send(p.age, age, a.Asset)
		send(p.confidence, confidence, a.Asset)
		send(p.usable, usable, a.Asset)
		for i := range a.Sources {
			s := &a.Sources[i]
			if s.Fault == "" {
				send(p.source, 1, a.Asset, s.Name)
			} else {
				send(p.source, 0, a.Asset, s.Name)
				send(p.fault, 1, a.Asset, s.Name, s.Fault)
			}
			chosen := 0.0
			if s.Name == a.Source {
				chosen = 1
			}
			send(p.chosen, chosen, a.Asset, s.Name)
		}
	}
}
