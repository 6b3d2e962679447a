package admin

import (
	"cmp"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// DeskSources are the sources of the desk's metrics. /metrics calls the functions at each
// scrape; they must not block. A nil function disables its metrics.
type DeskSources struct {
	Stats func() desk.Stats
	View  func() *rfq.View // never returns nil; needs Instruments and Now

	Instruments *market.Instruments
	Now         func() int64 // Unix nanoseconds
}

// collectors returns the metrics whose source is set.
func (s *DeskSources) collectors() []prometheus.Collector {
	const prefix = "blockdesk_desk_"
	var all []prometheus.Collector
	if s.Stats != nil {
		all = append(all, NewMetrics(prefix, s.Stats).
			Gauge("requests_waiting", "Requests to the desk in progress.", func(n *desk.Stats) float64 { return float64(n.Waiting) }).
			Gauge("answers_kept", "Stored answers of idempotency keys.", func(n *desk.Stats) float64 { return float64(n.Keys) }).
			Gauge("cursor_seq", "Last command in the desk's store.", func(n *desk.Stats) float64 { return float64(n.Cursor) }).
			Counter("busy_total", "Requests refused as too many.", func(n *desk.Stats) float64 { return float64(n.Busy) }).
			Counter("timeouts_total", "Requests that timed out with an unknown outcome.", func(n *desk.Stats) float64 { return float64(n.Timeouts) }).
			Counter("replayed_total", "Requests answered by their idempotency key.", func(n *desk.Stats) float64 { return float64(n.Replayed) }).
			Counter("conflicts_total", "Idempotency keys reused with another body.", func(n *desk.Stats) float64 { return float64(n.Conflicts) }),
			NewFamily(prefix+"claims_total", "Claims that entered a state, replays included.",
				"state", prometheus.CounterValue, func(send func(string, float64)) {
					claims := s.Stats().Claims
					for state := rfq.ClaimReserved; state <= rfq.ClaimRefundDue; state++ {
						send(state.Word(), float64(claims[state]))
					}
				}))
	}
	if s.View != nil {
		all = append(all, NewMetrics(prefix, s.View).
			Gauge("tickets_open", "Open tickets.", func(v **rfq.View) float64 { return float64(openTickets(*v)) }).
			Gauge("reserved_usd", "Dollars reserved by claims in all tranches.", func(v **rfq.View) float64 { return reservedUSD(*v) }).
			Gauge("locks", "Locks in force.", func(v **rfq.View) float64 { return float64(activeLocks(*v)) }).
			Gauge("deliveries_locked", "1 while deliveries are locked: nothing goes out.", func(v **rfq.View) float64 { return float64(deliveriesLocked(*v)) }))
		all = append(all, s.priceFamilies()...)
	}
	return all
}

// priceFamilies returns the metrics of the operator's prices: their age, and whether they
// are unusable.
func (s *DeskSources) priceFamilies() []prometheus.Collector {
	family := func(name, help string, value func(price market.USDPrice, age, maxAge time.Duration) float64) prometheus.Collector {
		return NewFamily("blockdesk_desk_price_"+name, help, "of", prometheus.GaugeValue, func(send func(string, float64)) {
			v, now := s.View(), s.Now()
			report := func(of string, price market.USDPrice, at, maxAge int64) {
				send(of, value(price, time.Duration(now-at), time.Duration(maxAge)))
			}
			for i := range v.Pairs {
				p := &v.Pairs[i]
				if in := s.Instruments.Get(p.Instrument); in != nil {
					report(in.Symbol, p.Anchor, cmp.Or(p.PublishedAt, p.AnchorAt), p.MaxAge)
				}
			}
			for i := range v.RailPrices {
				r := &v.RailPrices[i]
				report(r.Rail.String(), r.Price, cmp.Or(r.PublishedAt, r.At), r.MaxAge)
			}
		})
	}
	return []prometheus.Collector{
		family("age_seconds", "Age of a pair's or rail's price; +Inf without one.",
			func(price market.USDPrice, age, _ time.Duration) float64 {
				if price == 0 {
					return math.Inf(1)
				}
				return age.Seconds()
			}),
		family("unusable", "1 if a pair or a rail is not quoted: no price, or an old one.",
			func(price market.USDPrice, age, maxAge time.Duration) float64 {
				return BoolValue(price == 0 || maxAge > 0 && age > maxAge)
			}),
	}
}

// openTickets returns the number of open tickets.
func openTickets(v *rfq.View) (n int) {
	for _, t := range v.Tickets {
		if t.State == rfq.TicketOpen {
			n++
		}
	}
	return n
}

// reservedUSD returns the sum of all reservations, inexact because it is for charts.
func reservedUSD(v *rfq.View) float64 {
	var sum float64
	for _, t := range v.Tickets {
		for i := range t.Tranches {
			sum += float64(t.Tranches[i].Reserved) / 1e6
		}
	}
	return sum
}

// deliveriesLocked returns 1 while the lock of deliveries is set.
func deliveriesLocked(v *rfq.View) (n int) {
	for i := range v.Locks {
		if v.Locks[i].Locked && v.Locks[i].Scope == rfq.LockDeliveries {
			n = 1
		}
	}
	return n
}

func activeLocks(v *rfq.View) (n int) {
	for i := range v.Locks {
		if v.Locks[i].Locked {
			n++
		}
	}
	return n
}
