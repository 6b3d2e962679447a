package httpgw

import (
	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/desk"
)

// DeskSources are the functions that /metrics asks about the desk, at each
// scrape. They must not block. A nil one leaves its metrics out.
type DeskSources struct {
	Stats func() desk.Stats
	View  func() *rfq.View // not nil
}

// collectors returns the metrics that have a source.
func (s *DeskSources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "blockdesk_desk_" + name, Help: help}, value))
	}
	counter := func(name, help string, value func(desk.Stats) uint64) {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "blockdesk_desk_" + name, Help: help},
			func() float64 { return float64(value(s.Stats())) }))
	}
	if s.Stats != nil {
		gauge("requests_waiting", "Requests to the desk under way.", func() float64 { return float64(s.Stats().Waiting) })
		gauge("answers_kept", "Answers kept for idempotency keys.", func() float64 { return float64(s.Stats().Keys) })
		gauge("cursor_seq", "Sequence number of the last command that the desk's store has seen.",
			func() float64 { return float64(s.Stats().Cursor) })
		counter("busy_total", "Requests refused because too many were under way.", func(s desk.Stats) uint64 { return s.Busy })
		counter("timeouts_total", "Requests whose outcome did not come in time.", func(s desk.Stats) uint64 { return s.Timeouts })
		counter("replayed_total", "Requests answered from the store by their idempotency key.", func(s desk.Stats) uint64 { return s.Replayed })
		counter("conflicts_total", "Idempotency keys that came with another body.", func(s desk.Stats) uint64 { return s.Conflicts })
	}
	if s.View != nil {
		gauge("tickets_open", "Tickets that are open.", func() float64 { return float64(openTickets(s.View())) })
		gauge("reserved_usd", "Dollars of all tranches that claims have reserved.", func() float64 { return reservedUSD(s.View()) })
		gauge("locks", "Locks that are shut.", func() float64 { return float64(shutLocks(s.View())) })
	}
	return all
}

func openTickets(v *rfq.View) (n int) {
	for _, t := range v.Tickets {
		if t.State == rfq.TicketOpen {
			n++
		}
	}
	return n
}

// reservedUSD is a figure for a chart, hence a float.
func reservedUSD(v *rfq.View) float64 {
	var sum float64
	for _, t := range v.Tickets {
		for i := range t.Tranches {
			sum += float64(t.Tranches[i].Reserved) / 1e6
		}
	}
	return sum
}

func shutLocks(v *rfq.View) (n int) {
	for i := range v.Locks {
		if v.Locks[i].Locked {
			n++
		}
	}
	return n
}
