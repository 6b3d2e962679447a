package rfq

import (
	"cmp"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// pairAt returns the state of a pair at a snapshot's time.
func pairAt(e *snapshot, pair *rfq.Pair, in *market.Instrument) pairState {
	n := pairState{Pair: pair, in: in, lock: e.view.Locked(pair.Instrument, 0)}
	n.base = append(n.base, `,"base_mint":`...)
	n.base = wire.AppendAddress(n.base, pair.BaseMint)
	n.base = append(n.base, `,"base_symbol":"`...)
	n.base = append(n.base, in.Base...)
	n.base = append(n.base, '"')
	for r := market.RailUSDC; r < market.RailCount; r++ {
		_, why := e.rail(r)
		switch {
		case !pair.Rails.Has(r):
		case why == event.ReasonNone && e.view.Locked(pair.Instrument, r) == nil:
			n.selling = n.selling.With(r)
		case n.closed == event.ReasonNone:
			n.closed = cmp.Or(why, event.ReasonLocked)
		}
	}
	n.min, n.max = rfq.Corridor(pair)
	n.reference, n.why = e.reference(&rfq.Ticket{Instrument: pair.Instrument})
	return n
}

// reference returns the price of a ticket before discounts, or 0 and the reason why there
// is none.
func (e *snapshot) reference(t *rfq.Ticket) (market.USDPrice, event.Reason) {
	reference, why := e.view.Reference(t, e.cycle, e.ts)
	if why != 0 {
		return 0, why
	}
	return reference, 0
}

// ticketPrice is what a ticket's texts depend on besides the ticket and
// ticketTexts.common.
type ticketPrice struct {
	reference market.USDPrice // 0 = none
	open      bool            // the ticket has quotes
	stock     rfq.Fills       // the fill sizes that the pair's free inventory covers
}

// priceOf returns the price of a ticket of the pair. A ticket that has ended has none.
func (e *snapshot) priceOf(n *pairState, t *rfq.Ticket) ticketPrice {
	if t.State == rfq.TicketWithdrawn || t.State == rfq.TicketExpired {
		return ticketPrice{}
	}
	price := ticketPrice{reference: n.reference}
	if t.Reference != 0 {
		price.reference, _ = e.reference(t)
	}
	for r := market.RailUSDC; r < market.RailCount && !price.open; r++ {
		price.open = t.Rails.Has(r) && e.view.SaleRefusal(t, r, e.cycle, e.ts) == event.ReasonNone
	}
	if price.open {
		price.stock = e.view.FillsInStock(t.Instrument, price.reference)
	}
	return price
}

// rail returns the dollar price of a rail's asset, 0 if it is not usable, and the reason
// with which the engine would refuse a quote over it.
func (e *snapshot) rail(r market.Rail) (price rfq.RailPrice, why event.Reason) {
	price = rfq.RailPrice{Rail: r}
	for _, known := range e.view.RailPrices {
		if known.Rail == r {
			price = known
		}
	}
	price.Price, why = e.view.RailPrice(r, e.ts)
	lock := findLock(e.view, rfq.LockRail, 0, r)
	switch {
	case lock != nil && lock.Locked:
		why = event.ReasonLocked
	case e.view.Policy.PayTo[r] == market.Address{}:
		why = event.ReasonRailNotAccepted
	}
	return price, why
}

// bestPrice returns the lowest present price of a tranche, or 0 if there is none.
func (price ticketPrice) bestPrice(v *rfq.View, t *rfq.Tranche) market.USDPrice {
	if !price.open {
		return 0
	}
	return v.BestPrice(t, price.reference, price.stock)
}

// newCycle returns the cycle that contains now. The engine prices by the book at the time
// of a command, and never by a halted one; readers see the mid prices of the cycle's
// first read.
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

// Mid implements [rfq.Prices].
func (c *cycle) Mid(id market.InstrumentID) (market.USDPrice, bool) {
	if int(id) >= len(c.midPrices) {
		return 0, false
	}
	return c.midPrices[id], c.midPrices[id] != 0
}
