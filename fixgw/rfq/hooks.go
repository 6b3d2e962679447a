package rfq

import (
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Hooks let the tests of other packages use the parts of a session. The product does not use
// them.
type Hooks struct{ Session *Session }

// DecodeQuoteRequest returns what an R asks the desk for, and of which instrument.
func (h Hooks) DecodeQuoteRequest(r *wire.QuoteRequest) (*rfq.RequestQuote, market.InstrumentID, *wire.Refusal) {
	var entry reports.Request
	ask, refusal := h.Session.decodeQuoteRequest(r, &entry)
	return ask, entry.Instrument, refusal
}

// DecodeAcceptance returns what a D or AJ asks the desk for.
func (h Hooks) DecodeAcceptance(a *wire.Acceptance) (*rfq.TakeClaim, *wire.Refusal) {
	return h.Session.decodeAcceptance(a, &reports.Request{ClOrdID: a.Key()})
}

// AddQuote gives the session a quote that the desk does not have.
func (h Hooks) AddQuote(q wire.ClientQuote) {
	h.Session.addQuote(&quote{ClientQuote: q, owner: h.Session})
}
