package rfq

import (
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Members of the body of a quote (spec, 4.1), by their place in quoteMembers.
const (
	quoteOrder = iota
	quoteTranche
	quoteFill
	quoteRail
)

var quoteMembers = []wire.Member{
	quoteOrder: terms.OrderMember, quoteTranche: terms.TrancheMember, quoteFill: terms.FillMember,
	quoteRail: {Name: "rail", Kind: wire.TextMember, Most: 8},
}

// parseQuote reads the body of a quote.
func parseQuote(p *wire.Post, v *rfq.View) (*rfq.RequestQuote, *wire.Problem) {
	var m wire.Members
	if bad := wire.DecodeObject(p.Body, quoteMembers, &m); bad != nil {
		return nil, bad
	}
	r := &rfq.RequestQuote{}
	var bad *wire.Problem
	if r.Fill, bad = terms.ParseFill(m.Get(quoteFill)); bad != nil {
		return nil, bad
	}
	if r.Rail, bad = terms.ParseRail("rail", m.Get(quoteRail)); bad != nil {
		return nil, bad
	}
	if r.Ticket, r.Tranche, bad = terms.ParseOffer(v, m.Get(quoteOrder), m.Get(quoteTranche), false); bad != nil {
		return nil, bad
	}
	terms.SetKey(r, terms.OpQuote, p.Key)
	return r, nil
}

// postQuote gives a firm price for one claim.
func (e *Endpoints) postQuote(p *wire.Post) (*wire.Answer, *wire.Problem) {
	r, bad := parseQuote(p, e.deal.View())
	if bad != nil {
		return nil, bad
	}
	result, bad := e.deal.Ask(r)
	if bad != nil {
		return nil, bad
	}
	w := e.deal.Writer()
	return &wire.Answer{Status: 200, Body: appendQuote(&w, result.Quote, result.Ticket.Label), Replayed: result.Replayed}, nil
}

// appendQuote renders the answer.
func appendQuote(w *terms.Writer, q *rfq.Quote, label string) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, `{"ok":true,"quote_id":"`...)
	dst = market.AppendQuoteID(dst, q.ID)
	dst = append(dst, `",`...)
	dst = w.Offer(dst, &q.Terms, label)
	dst = append(dst, `,"payment":`...)
	dst = append(w.Payment(dst, &q.Terms), `},`...)
	dst = w.Fee(dst, &q.Terms)
	dst = wire.AppendMillis(append(dst, `,"issued_at":`...), q.IssuedAt)
	dst = wire.AppendMillis(append(dst, `,"valid_until":`...), q.ValidUntil)
	return append(dst, `,"firm":true}`...)
}
