package httpgw

import (
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// pairNow tells how a pair stands at an edition's time.
func (p *rfqPages) pairNow(e *edition, pair *rfq.Pair, in *market.Instrument) pairNow {
	n := pairNow{Pair: pair, in: in, lock: e.view.Locked(pair.Instrument, 0)}
	n.base = append(n.base, `,"base_mint":`...)
	n.base = appendAccount(n.base, pair.BaseMint)
	n.base = append(n.base, `,"base_symbol":"`...)
	n.base = append(n.base, in.Base...)
	n.base = append(n.base, '"')
	n.min, n.max = rfq.Corridor(pair)
	n.reference, n.why = p.referenceOf(e, &rfq.Ticket{Instrument: pair.Instrument})
	return n
}

// referenceOf returns the price before discounts that a ticket is sold by, or 0
// and why there is none.
func (p *rfqPages) referenceOf(e *edition, t *rfq.Ticket) (market.USDPrice, event.Reason) {
	reference, why := e.view.Reference(t, p, e.ts)
	if why != 0 {
		return 0, why
	}
	return reference, 0
}

// ticketPrice is all that a ticket's texts depend on beside the ticket itself
// and what ticketTexts.fixed tells.
type ticketPrice struct {
	reference market.USDPrice // 0 = nothing is priced
	open      bool            // quotes are given
}

// priceOf returns how a ticket of the pair is priced now. One that has ended has
// no price any more.
func (p *rfqPages) priceOf(e *edition, n *pairNow, t *rfq.Ticket) ticketPrice {
	if t.State == rfq.TicketWithdrawn || t.State == rfq.TicketExpired {
		return ticketPrice{}
	}
	price := ticketPrice{reference: n.reference}
	if t.Reference != 0 {
		price.reference, _ = p.referenceOf(e, t)
	}
	if t.State != rfq.TicketOpen || price.reference == 0 {
		return price
	}
	for rail := market.RailUSDC; rail < market.RailCount; rail++ {
		price.open = price.open || t.Rails.Has(rail) && e.view.Locked(t.Instrument, rail) == nil
	}
	return price
}

// bestPrice returns the lowest price that a tranche is sold at now, 0 for none.
func (price ticketPrice) bestPrice(v *rfq.View, t *rfq.Tranche) market.USDPrice {
	if !price.open {
		return 0
	}
	return v.BestPrice(t, price.reference)
}

// Mid returns the middle of a book as readers see it, for [rfq.Prices]. The
// machine prices by the book as it is at the command; a reader sees it a moment
// later.
func (p *rfqPages) Mid(id market.InstrumentID) (market.USDPrice, bool) {
	v, in := p.books.View(id), p.set.Get(id)
	if v == nil || in == nil || len(v.Bids) == 0 || len(v.Asks) == 0 {
		return 0, false
	}
	return midPrice(in, v.Bids[0].Price, v.Asks[0].Price)
}

// midPrice returns (bid + ask) ÷ 2 in 10^-9 quote units, rounded up; false past
// the largest price.
func midPrice(in *market.Instrument, bid, ask market.Price) (market.USDPrice, bool) {
	sum := market.Mul(uint64(bid+ask), in.Tick) // of 10^-PriceDecimals
	shift := int(in.PriceDecimals) - market.USDPriceDecimals
	var n uint64
	var err error
	switch {
	case shift >= 0:
		n, err = sum.DivCeil(2 * market.Pow10(shift))
	case sum.Hi != 0:
		return 0, false
	default:
		n, err = market.MulDivCeil(sum.Lo, market.Pow10(-shift), 2)
	}
	return market.USDPrice(n), err == nil && n <= uint64(market.MaxUSDPrice)
}
