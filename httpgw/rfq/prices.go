package rfq

import (
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// pairAt returns how a pair stands at an edition's time.
func pairAt(e *snapshot, pair *rfq.Pair, in *market.Instrument) pairState {
	n := pairState{Pair: pair, in: in, lock: e.view.Locked(pair.Instrument, 0)}
	n.base = append(n.base, `,"base_mint":`...)
	n.base = wire.AppendAddress(n.base, pair.BaseMint)
	n.base = append(n.base, `,"base_symbol":"`...)
	n.base = append(n.base, in.Base...)
	n.base = append(n.base, '"')
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if _, why := e.rail(r); why == 0 && pair.Rails.Has(r) && e.view.Locked(pair.Instrument, r) == nil {
			n.selling = n.selling.With(r)
		}
	}
	n.min, n.max = rfq.Corridor(pair)
	n.reference, n.why = e.reference(&rfq.Ticket{Instrument: pair.Instrument})
	return n
}

// reference returns the price before discounts that a ticket is sold by, or 0
// and why there is none.
func (e *snapshot) reference(t *rfq.Ticket) (market.USDPrice, event.Reason) {
	reference, why := e.view.Reference(t, e.cycle, e.ts)
	if why != 0 {
		return 0, why
	}
	return reference, 0
}

// ticketPrice is all that a ticket's texts depend on beside the ticket itself
// and what ticketTexts.common has.
type ticketPrice struct {
	reference market.USDPrice // 0 = nothing is priced
	open      bool            // quotes are given
}

// priceOf returns how a ticket of the pair is priced now. One that has ended has
// no price any more.
func (e *snapshot) priceOf(n *pairState, t *rfq.Ticket) ticketPrice {
	if t.State == rfq.TicketWithdrawn || t.State == rfq.TicketExpired {
		return ticketPrice{}
	}
	price := ticketPrice{reference: n.reference}
	if t.Reference != 0 {
		price.reference, _ = e.reference(t)
	}
	price.open = price.reference != 0 && t.Rails&n.selling != 0
	return price
}

// rail returns the dollar price of a rail's asset, and why no quote is given
// over it, as the machine would refuse it.
func (e *snapshot) rail(r market.Rail) (price rfq.RailPrice, why event.Reason) {
	if r == market.RailUSDC {
		price.Price = market.USDPrice(market.Pow10(market.USDPriceDecimals))
	}
	for _, known := range e.view.RailPrices {
		if known.Rail == r {
			price = known
		}
	}
	lock := findLock(e.view, rfq.LockRail, 0, r)
	switch {
	case lock != nil && lock.Locked:
		why = event.ReasonLocked
	case e.view.Policy.PayTo[r] == market.Address{}:
		why = event.ReasonRailNotAccepted
	case price.Price == 0:
		why = event.ReasonPriceUnavailable
	case price.MaxAge != 0 && e.ts-price.At > price.MaxAge:
		why = event.ReasonPriceStale
	}
	return price, why
}

// bestPrice returns the lowest price that a tranche is sold at now, 0 for none.
func (price ticketPrice) bestPrice(v *rfq.View, t *rfq.Tranche) market.USDPrice {
	if !price.open {
		return 0
	}
	return v.BestPrice(t, price.reference)
}

// newCycle begins the cycle that now lies in. The machine prices by the book as
// it is at a command, and not at all by a halted one; readers see where it was
// when the cycle began for them.
func (s *DeskSource) newCycle(now int64) *cycle {
	c := &cycle{from: now - now%Refresh, midPrices: make([]market.USDPrice, s.Instruments.Len())}
	c.until = c.from + Refresh
	for i := range c.midPrices {
		id := market.InstrumentID(i)
		if v := s.Books.View(id); v != nil && v.Status == engine.StatusTrading && len(v.Bids) > 0 && len(v.Asks) > 0 {
			if mid, ok := s.Instruments.Get(id).MidPrice(v.Bids[0].Price, v.Asks[0].Price); ok && mid <= market.MaxUSDPrice {
				c.midPrices[i] = mid
			}
		}
	}
	return c
}

// Mid is for [rfq.Prices].
func (c *cycle) Mid(id market.InstrumentID) (market.USDPrice, bool) {
	if int(id) >= len(c.midPrices) {
		return 0, false
	}
	return c.midPrices[id], c.midPrices[id] != 0
}
