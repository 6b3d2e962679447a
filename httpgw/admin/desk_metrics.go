package admin

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// DeskSources are the functions that /metrics asks about the desk, at each
// scrape. They must not block. A nil one leaves its metrics out.
type DeskSources struct {
	Stats func() desk.Stats
	View  func() *rfq.View // not nil
	// Instruments name the pairs of a View; Now is the time in Unix ns. Both come with
	// it.
	Instruments *market.Instruments
	Now         func() int64
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
	if s.Stats != nil {
		all = append(all, NewFamily("blockdesk_desk_claims_total", "Claims that came into a state since the start; what the start took in again is counted too.",
			"state", prometheus.CounterValue, func(send func(string, float64)) {
				claims := s.Stats().Claims
				for state := rfq.ClaimReserved; state <= rfq.ClaimRefundDue; state++ {
					send(state.Word(), float64(claims[state]))
				}
			}))
	}
	if s.View != nil {
		gauge("tickets_open", "Tickets that are open.", func() float64 { return float64(openTickets(s.View())) })
		gauge("reserved_usd", "Dollars of all tranches that claims have reserved.", func() float64 { return reservedUSD(s.View()) })
		gauge("locks", "Locks that are shut.", func() float64 { return float64(shutLocks(s.View())) })
		all = append(all, s.priceFamilies()...)
	}
	return all
}

// priceFamilies tell how old the operator's prices are, and of what nothing is
// quoted for want of one.
func (s *DeskSources) priceFamilies() []prometheus.Collector {
	family := func(name, help string, value func(price market.USDPrice, age, maxAge time.Duration) float64) prometheus.Collector {
		return NewFamily("blockdesk_desk_price_"+name, help, "of", prometheus.GaugeValue, func(send func(string, float64)) {
			v, now := s.View(), s.Now()
			tell := func(of string, price market.USDPrice, at, maxAge int64) {
				send(of, value(price, time.Duration(now-at), time.Duration(maxAge)))
			}
			for i := range v.Pairs {
				p := &v.Pairs[i]
				if in := s.Instruments.Get(p.Instrument); in != nil {
					tell(in.Symbol, p.Anchor, p.AnchorAt, p.MaxAge)
				}
			}
			for i := range v.RailPrices {
				r := &v.RailPrices[i]
				tell(r.Rail.String(), r.Price, r.At, r.MaxAge)
			}
		})
	}
	return []prometheus.Collector{
		family("age_seconds", "Age of the operator's price of a pair or a rail; +Inf where none was ever set.",
			func(price market.USDPrice, age, _ time.Duration) float64 {
				if price == 0 {
					return math.Inf(1)
				}
				return age.Seconds()
			}),
		family("unusable", "1 where the operator's price of a pair or a rail was never set or is older than it may be: nothing of it is quoted.",
			func(price market.USDPrice, age, maxAge time.Duration) float64 {
				return OneIf(price == 0 || maxAge > 0 && age > maxAge)
			}),
	}
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
